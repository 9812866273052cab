"""The page Piecewise with tokenizers, a text and the tables that it shares with the package, as one file.

The page encodes, trains and traces in the browser. It requests nothing, except from the local server of
`bpe-tokenizer view`. `page/` in the repository has its sources, which `make wasm` joins to `page.html`.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from functools import cache
from html import unescape
from importlib import resources
from typing import TYPE_CHECKING, Any

from bpe_tokenizer import _core
from bpe_tokenizer.errors import (
    MissingDependencyError,
    OptionError,
    PatternError,
    SpecialTokenError,
    shorten,
)
from bpe_tokenizer.special_tokens import AllowedSpecial

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = [
    "MAX_TEXT",
    "content_security_policy",
    "file_patterns",
    "has_page",
    "packed_gzip",
    "page",
    "published_names",
]

# Characters. Chromium's text field takes seconds to lay out a longer text, and its tab may run out of memory.
MAX_TEXT = 5_000_000

# The first example of the chat mode.
SAMPLE_CONVERSATION = [
    {"role": "system", "content": "You are a helpful assistant. Answer in one sentence."},
    {"role": "user", "content": "Why is the sky blue?"},
    {"role": "assistant", "content": "Air scatters blue light more than red light."},
    {"role": "user", "content": "And at sunset?"},
]

_FILE = resources.files(__package__).joinpath("page.html")
_FIELD = re.compile(r"\[\[(connect|data|tokenizers)\]\]")
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">')


def page(
    tokenizers: Mapping[str, BPETokenizer],
    text: str = "",
    *,
    allowed_special: AllowedSpecial = "none",
    server: bool = False,
    public_url: str = "",
) -> str:
    """Return the page as one HTML file. It runs only its own scripts, and needs no network.

    Args:
        tokenizers: The tokenizers to embed, by name; the page shows the first one, and compares the second
            with it. Without any, the page trains a small one on its sample text.
        text: The initial text; "" shows a sample.
        allowed_special: The special tokens that the page recognises while its switch is on: `"all"` or a set;
            the switch is off at the start if it is `"none"`. A tokenizer that lacks a token of the set reads
            it as plain text.
        server: Whether the page may request `tokenizers/NAME` from the server that it comes from.
        public_url: The address of a copy of the page that others can open; shared links lead there.

    Raises:
        MissingDependencyError: The installation lacks `page.html`.
        OptionError: The text is longer than `MAX_TEXT`, or `public_url` is not an address of the web.
        SpecialTokenError: The set names a token that no tokenizer has.

    Example:
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> html = page({"mine": tokenizer}, "</script>")  # doctest: +SKIP
        >>> html.startswith("<!DOCTYPE html>"), "<title>Piecewise</title>" in html  # doctest: +SKIP
        (True, True)
    """
    if len(text) > MAX_TEXT:
        raise OptionError(
            f"the text has {len(text):,} characters, and a page takes at most {MAX_TEXT:,}: "
            "shorten it, or use --plain"
        )
    if public_url and not re.fullmatch(r"https?://[^\s#]+", public_url):
        raise OptionError(
            f"public_url is {shorten(public_url)}; it must be like https://example.org/page.html"
        )
    if isinstance(allowed_special, set):
        _check_known(tokenizers, allowed_special)
    from bpe_tokenizer.view.own_chat import count_own, has_own_template

    data = {
        "version": _version(),
        "text": text,
        "special": sorted(allowed_special) if isinstance(allowed_special, set) else allowed_special,
        "server": server,
        "publicUrl": public_url,
        "names": published_names(),
        "patterns": _patterns(),
        "filePatterns": file_patterns(),
        "chat": _chat_data(),
        # Those with a chat template, which the local server renders, and what the first example costs in it.
        "ownChats": {
            name: count_own(tokenizer, SAMPLE_CONVERSATION)
            for name, tokenizer in tokenizers.items()
            if has_own_template(tokenizer)
        },
    }
    fields = {
        "connect": _connections(server),
        "data": _json(data),
        "tokenizers": _json(
            [
                {"name": name, "packed": base64.b64encode(packed_gzip(each)).decode()}
                for name, each in tokenizers.items()
            ]
        ),
    }
    return _FIELD.sub(lambda field: fields[field[1]], _html())


def content_security_policy(*, server: bool = False) -> str:
    """Return the Content-Security-Policy of a page, which allows only its own styles and scripts.

    Args:
        server: Whether the page may connect to its server.

    Source: https://www.w3.org/TR/CSP3/
    """
    found = _POLICY.search(_html())
    if not found:
        raise AssertionError("page.html has no Content-Security-Policy")
    return unescape(found[1]).replace("[[connect]]", _connections(server))


def _connections(server: bool) -> str:
    return "'self'" if server else "'none'"


def published_names() -> list[dict[str, Any]]:
    """Return the published encodings by name: their models and files, and what a rank file does not hold.

    >>> published_names()[-1]["name"]
    'gpt2'
    """
    from bpe_tokenizer.formats.tiktoken.models import MODEL_NAMES
    from bpe_tokenizer.formats.tiktoken.published import PUBLISHED
    from bpe_tokenizer.formats.tiktoken.special_tokens import to_added_tokens

    no_ranks = _core.RankTable.parse(b"= 0", "")  # their ids are given
    names = []
    for name, encoding in reversed(list(PUBLISHED.items())):
        models = [model for model, used in MODEL_NAMES.items() if used == name]
        file = encoding.ranks.url.rpartition("/")[2]
        special = to_added_tokens(no_ranks, encoding.special_tokens or {})
        names.append(
            {
                "name": name,
                "models": models[:3],
                "file": file,
                "patterns": [encoding.split_pattern],
                "specialTokens": {token.content: token.id for token in special},
            }
        )
    return names


def _check_known(tokenizers: Mapping[str, BPETokenizer], allowed: set[str]) -> None:
    known = {token for tokenizer in tokenizers.values() for token in tokenizer.special_tokens}
    for token in sorted(allowed - known):
        raise SpecialTokenError(f"unknown special token {shorten(token)}: no tokenizer of the page has it")


def _patterns() -> list[dict[str, Any]]:
    from bpe_tokenizer.patterns import NAMED_PATTERNS

    return [{"name": name, "patterns": list(named.patterns)} for name, named in NAMED_PATTERNS.items()]


def file_patterns() -> dict[str, Any]:
    """Return the published patterns as files spell them, with ours, and that of a byte-level step."""
    from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN, NAMED_PATTERNS

    found = {}
    for pattern in {pattern for named in NAMED_PATTERNS.values() for pattern in named.patterns}:
        try:
            spellings = [pattern, _core.SplitPattern(pattern).to_oniguruma()]
        except PatternError:
            spellings = [pattern]
        for spelling in spellings:
            if _core.SplitPattern.objection(spelling, "from_oniguruma") is None:
                found[spelling] = _core.SplitPattern.from_oniguruma(spelling)
    return {"oniguruma": dict(sorted(found.items())), "gpt2": GPT2_SPLIT_PATTERN}


def _chat_data() -> dict[str, Any]:
    """The built-in chat templates, each with all text that it may write as markup."""
    from bpe_tokenizer.chat.builtin_templates import BUILT_IN, templates_data
    from bpe_tokenizer.chat.template_selection import OPENAI_CONTROL_IDS

    data = templates_data()
    data["sample"] = SAMPLE_CONVERSATION
    data["openaiIds"] = OPENAI_CONTROL_IDS
    for template in data["templates"]:
        template["source"] = BUILT_IN[template["name"]].source
    return data


def packed_gzip(tokenizer: BPETokenizer) -> bytes:
    r"""Return a tokenizer as the page reads it: packed, then compressed.

    >>> from bpe_tokenizer import BPETokenizer
    >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
    >>> packed_gzip(tokenizer)[:2]
    b'\x1f\x8b'
    """
    from bpe_tokenizer.view.packed import pack

    # The highest level takes three times as long for 2 % less.
    return gzip.compress(pack(tokenizer), compresslevel=6, mtime=0)


def _version() -> str:
    from bpe_tokenizer import __version__

    return __version__


def has_page() -> bool:
    """Return whether this installation has the page."""
    return _FILE.is_file()


@cache
def _html() -> str:
    if not has_page():
        raise MissingDependencyError(
            "this installation lacks page.html, the page with its core: run `make wasm` in the repository, "
            "or install a wheel"
        )
    return _FILE.read_text(encoding="utf-8")


def _json(value: object) -> str:
    """Write JSON that no string can end: inside a script, HTML knows only `<` as the start of anything."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
