"""A self-contained HTML page with the tokens of a text, for one or more tokenizers."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.view.html import STYLE, visualization_html

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer
    from bpe_tokenizer.view.visualization import Visualization

__all__ = ["MAX_TEXT", "columns_html", "content_security_policy", "page", "visualize_all"]

# Characters. A browser takes seconds to lay out more tokens.
MAX_TEXT = 50_000

_FILES = resources.files(__package__)
_STYLE = STYLE + _FILES.joinpath("page.css").read_text(encoding="utf-8")
_SCRIPT = _FILES.joinpath("page.js").read_text(encoding="utf-8")


def columns_html(
    tokenizers: Mapping[str, BPETokenizer],
    text: str,
    allowed_special: AllowedSpecial = "none",
    check: Callable[[], None] | None = None,
) -> str:
    """Return the tokens of a text as HTML, one column for each tokenizer.

    Args:
        tokenizers: The tokenizers by name.
        text: The text.
        allowed_special: The special tokens to recognise: `"none"`, `"all"` or a set.
        check: Called for each token; it raises an exception to stop the work.

    Raises:
        OptionError: The text is longer than `MAX_TEXT`.
    """
    if len(text) > MAX_TEXT:
        raise OptionError(
            f"the text has {len(text):,} characters, and a page shows at most {MAX_TEXT:,}: "
            "shorten it, or use --plain"
        )
    columns = []
    for name, shown in visualize_all(tokenizers, text, allowed_special):
        title = escape(name)
        tokens = visualization_html(shown, check)
        columns.append(f'<section class="column" aria-label="{title}"><h2>{title}</h2>{tokens}</section>')
    return "".join(columns)


def visualize_all(
    tokenizers: Mapping[str, BPETokenizer], text: str, allowed_special: AllowedSpecial = "none"
) -> Iterator[tuple[str, Visualization]]:
    """Yield the name of each tokenizer and the tokens that it cuts a text into.

    Args:
        tokenizers: The tokenizers by name.
        text: The text.
        allowed_special: The special tokens to recognise: `"none"`, `"all"` or a set. A tokenizer that lacks
            a token of the set reads it as plain text.

    Raises:
        SpecialTokenError: The set names a token that no tokenizer has.
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
    allowed_special: AllowedSpecial = "none",
    *,
    is_live: bool = False,
) -> str:
    r"""Return a complete page. It loads nothing and runs only its own script.

    Args:
        tokenizers: The tokenizers by name, shown side by side.
        text: The text.
        allowed_special: The special tokens to recognise: `"none"`, `"all"` or a set.
        is_live: Whether the text can be edited; the page then posts it to the relative URL `tokens`.

    Raises:
        OptionError: The text is longer than `MAX_TEXT`.

    Example:
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> html = page({"mine": tokenizer}, "</script>")
        >>> html.startswith("<!DOCTYPE html>"), html.count("</script>")
        (True, 1)
    """
    shown = columns_html(tokenizers, text, allowed_special)
    label = "Type here; the tokens follow." if is_live else "The text."
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(content_security_policy(is_live=is_live))}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Tokens</title>
<link rel="icon" href="data:,">
<style>{_STYLE}</style>
</head>
<body>
<main>
<h1>Tokens</h1>
<p><label for="text">{label}</label> <span id="help">Tab to the tokens; arrow keys, Home and End walk over
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


def content_security_policy(*, is_live: bool = False) -> str:
    """Return the Content-Security-Policy of a page, which allows only its own style and script.

    Args:
        is_live: Whether the page may connect to its server.

    Source: https://www.w3.org/TR/CSP3/
    """
    rules = (
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
