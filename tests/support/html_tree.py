"""Parses pages strictly, and checks that no text breaks out of them."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

ATTACKS = [
    "</script><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "</textarea><b>bold</b>",
    "<!-- --> ]]> &lt;b&gt; &#60;",
    "</details></section></main></body></html>",
]


class Tree(HTMLParser):
    """Every element of a page with its attributes, and what is between tags; refuses tags out of order."""

    EMPTY = frozenset({"meta", "link", "br"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.blocks: list[tuple[dict[str, str | None], str]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.blocks.append((self.elements[-1][1], data))
        self.texts.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag: str) -> str:
        return "".join(data for name, data in self.texts if name == tag)

    def block(self, name: str) -> str:
        """Return the content of the data block with an id."""
        return "".join(data for attributes, data in self.blocks if attributes.get("id") == name)

    def script(self) -> str:
        """Return the script that runs."""
        return "".join(data for attributes, data in self.blocks if attributes.get("type") == "module")


HEAD = {"charset", "content", "href", "http-equiv", "lang", "name", "rel"}


PAGE_ATTRIBUTES = HEAD | {"aria-label", "aria-live", "class", "id", "role", "tabindex", "target", "type"}
# Help, course and source of the page: links that a reader follows, which the page itself does not request.
REPOSITORY = "https://github.com/bpe-tokenizer/bpe-tokenizer"
PAGE_BLOCKS = {"data", "tokenizers", "wasm", "worker"}


def check_page(html: str) -> Tree:
    """Check that a page of `view` holds its skeleton, its blocks and one script, whatever is embedded."""
    tree = Tree(html)
    for _, attributes in tree.elements:
        assert attributes.keys() <= PAGE_ATTRIBUTES
        own = ("#", "data:image/svg+xml;base64,", REPOSITORY)
        assert (attributes.get("href") or "#").startswith(own)
    scripts = tree.all("script")
    assert {each["id"] for each in scripts if "id" in each} == PAGE_BLOCKS
    assert [each["type"] for each in scripts if "id" not in each] == ["module"]
    assert len(tree.all("style")) == 1
    skeleton = Path(__file__).parents[2] / "page" / "index.html"
    assert [tag for tag, _ in tree.elements] == [
        tag for tag, _ in Tree(skeleton.read_text(encoding="utf-8")).elements
    ]
    return tree


def luminance(colour: str) -> float:
    """The relative luminance of a colour, #rrggbb."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
