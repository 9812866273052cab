"""Live parts of the site: Piecewise, the package's page, in a frame, with the example of a picture.

The site has the page as `piecewise.html`. Its state is in the fragment of the address, as in a link that
people share (`page/link.js`). The picture stays for those without scripts.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from html import escape
from typing import Any

__all__ = ["HOME", "LIVE", "fragment", "with_live_parts"]

_TRAINING = "she sells sea shells by the sea shore. the shells she sells are sea shells."
_WAY = " by the way, the sea is near. we met at the end of the day, by the way."
# What a frame is about, and the state of the page, below a picture of the course.
LIVE: dict[str, tuple[str, dict[str, Any]]] = {
    "01-units": ("A text of yours in tokens", {"mode": "text", "text": "walking reads"}),
    "02-utf-8": ("The bytes of a text of yours", {"mode": "text", "text": "aé中😀", "tokenizers": ["gpt2"]}),
    "03-merges": (
        "This training, step by step",
        {"mode": "training", "training": {"text": "aaabdaaabac", "pattern": "none", "size": 259, "step": 0}},
    ),
    "04-encode": (
        "The merges of a word of yours: choose a token",
        {"mode": "text", "text": "unbelievably she sells", "tokenizers": ["gpt2"]},
    ),
    "05-pieces": (
        "The pieces of a text of yours, by several patterns",
        {"mode": "training", "training": {"text": "I'll feed 2 dogs, OK?", "pattern": "gpt2", "size": 260}},
    ),
    "06-chat": ("A conversation of yours in tokens", {"mode": "chat"}),
    "08-work": (
        "Train on a text of yours",
        {"mode": "training", "training": {"text": _TRAINING, "pattern": "gpt2", "size": 290, "step": 0}},
    ),
    "10-premium": ("What languages cost", {"mode": "all"}),
    "11-space": ("A space at the end", {"mode": "text", "text": "The cat sat on the ", "showsIds": True}),
    "16-superwords": (
        "Merges across words: a training without a split pattern",
        {"mode": "training", "training": {"text": _WAY, "pattern": "none", "size": 290, "step": 0}},
    ),
}
# The page itself, in place of its picture on the home page.
HOME = "page-light"
_PICTURE = re.compile(r"^!\[([^\]]*)\]\((pictures/([\w-]+)\.\w+)\)$", re.MULTILINE)


def fragment(state: dict[str, Any]) -> str:
    """Return the fragment of an address that gives the page a state.

    Example:
        >>> packed = base64.urlsafe_b64decode(fragment({"mode": "chat"}).removeprefix("#s="))
        >>> zlib.decompress(packed)
        b'{"mode": "chat"}'
    """
    packed = zlib.compress(json.dumps(state).encode(), 9)
    return "#s=" + base64.urlsafe_b64encode(packed).decode("ascii").rstrip("=")


def with_live_parts(markdown: str, uri: str) -> str:
    """Add a frame below each picture that has one; on the home page, put it in the picture's place.

    Args:
        markdown: The page.
        uri: Its path in `docs/`.
    """
    page = "../" * uri.count("/") + "piecewise.html"

    def framed(picture: re.Match[str]) -> str:
        about, path, name = picture.groups()
        if name == HOME and uri == "index.md":
            image = f'<noscript><img alt="{escape(about)}" src="{path}"></noscript>'
            return f'<iframe class="piecewise" title="Piecewise" src="{page}"></iframe>\n{image}'
        if name not in LIVE:
            return picture[0]
        title, state = LIVE[name]
        source = f'loading="lazy" src="{page}{fragment(state)}"'
        frame = f'<iframe class="piecewise" title="{title}" {source}></iframe>'
        return f'{picture[0]}\n\n<details class="live"><summary>{title}</summary>\n{frame}\n</details>'

    return _PICTURE.sub(framed, markdown)
