"""A page that shows how one or more tokenizers cut a text: one HTML file that needs no other."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib import resources

from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.view.fragment import STYLE, fragment
from bpe_tokenizer.view.tokens import Visualization

__all__ = ["LONGEST_TEXT", "columns_of", "page", "policy", "visualized"]

# Characters. A browser takes seconds to lay more chips out.
LONGEST_TEXT = 50_000

_FILES = resources.files(__package__)
_STYLE = STYLE + _FILES.joinpath("page.css").read_text(encoding="utf-8")
_SCRIPT = _FILES.joinpath("page.js").read_text(encoding="utf-8")


def columns_of(
    tokenizers: Mapping[str, BPETokenizer], text: str, allowed_special: str | set[str] = "none"
) -> str:
    """Return how each tokenizer cuts a text, as HTML to be put into a page.

    Args:
        tokenizers: The tokenizers by what they are called.
        text: The text.
        allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.

    Raises:
        OptionError: The text is longer than `LONGEST_TEXT`.
    """
    if len(text) > LONGEST_TEXT:
        raise OptionError(
            f"the text has {len(text):,} characters, and a page shows at most {LONGEST_TEXT:,}: "
            "take a part of it, or --plain"
        )
    columns = []
    for name, shown in visualized(tokenizers, text, allowed_special):
        title = escape(name)
        columns.append(
            f'<section class="column" aria-label="{title}"><h2>{title}</h2>{fragment(shown)}</section>'
        )
    return "".join(columns)


def visualized(
    tokenizers: Mapping[str, BPETokenizer], text: str, allowed_special: str | set[str] = "none"
) -> Iterator[tuple[str, Visualization]]:
    """Yield the name of each tokenizer and how it cuts a text.

    Args:
        tokenizers: The tokenizers by what they are called.
        text: The text.
        allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set. One that only
            some of the tokenizers have is plain text to the others.

    Raises:
        SpecialTokenError: The set names a token that none of them has.
    """
    known = {token for tokenizer in tokenizers.values() for token in tokenizer.special_tokens}
    for name, tokenizer in tokenizers.items():
        special = allowed_special
        if isinstance(special, set):
            special = special - (known - tokenizer.special_tokens.keys())
        yield name, tokenizer.visualize(text, allowed_special=special)


def page(
    tokenizers: Mapping[str, BPETokenizer],
    text: str,
    allowed_special: str | set[str] = "none",
    *,
    is_live: bool = False,
) -> str:
    r"""Return a whole page. It loads nothing, and runs no script but its own.

    Args:
        tokenizers: The tokenizers by what they are called; they stand side by side.
        text: The text.
        allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.
        is_live: The text can be edited; what is typed is sent to `tokens` beside the page.

    Raises:
        OptionError: The text is longer than `LONGEST_TEXT`.

    Example:
        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> html = page({"mine": tokenizer}, "</script>")
        >>> html.startswith("<!DOCTYPE html>"), html.count("</script>")
        (True, 1)
    """
    shown = columns_of(tokenizers, text, allowed_special)
    what = "Type here; the tokens follow." if is_live else "The text."
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(policy(is_live=is_live))}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Tokens</title>
<link rel="icon" href="data:,">
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>Tokens</h1>
<p><label for="text">{what}</label> <span id="help">Tab to the tokens; arrow keys, Home and End walk over
them, Enter shows the merges of the token's piece.</span></p>
<textarea id="text" dir="auto" spellcheck="false" aria-describedby="help"{"" if is_live else " readonly"}>
{escape(text)}</textarea>
<p id="problem" class="problem" role="alert"></p>
<p id="counts" class="quiet" role="status"></p>
<div id="shown" class="columns">{shown}</div>
</main>
<script>{_SCRIPT}</script>
</body>
</html>
"""


def policy(*, is_live: bool = False) -> str:
    """Return the Content-Security-Policy of a page: its own style and script, and nothing from elsewhere.

    Args:
        is_live: The page may talk to the server that it comes from.

    Source: https://www.w3.org/TR/CSP3/
    """
    rules: Sequence[str] = (
        "default-src 'none'",
        f"style-src {_hash(_STYLE)}",
        f"script-src {_hash(_SCRIPT)}",
        "img-src data:",
        *(["connect-src 'self'"] if is_live else []),
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _hash(source: str) -> str:
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
