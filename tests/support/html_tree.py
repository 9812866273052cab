"""Parses pages strictly, and checks that no text breaks out of them."""

from __future__ import annotations

from html.parser import HTMLParser

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
        self.texts.append((self.open[-1] if self.open else "", data))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag: str) -> str:
        return "".join(data for name, data in self.texts if name == tag)


HEADINGS = {"h1", "h2", "h4", "label", "summary", "title"}
BLOCKS = {"body", "details", "div", "head", "html", "li", "main", "ol", "p", "section", "textarea"}
KNOWN = HEADINGS | BLOCKS | {"b", "br", "i", "link", "meta", "script", "span", "style"}

ARIA = {"aria-describedby", "aria-label", "aria-orientation", "aria-selected", "role", "tabindex"}
HEAD = {"charset", "content", "href", "http-equiv", "lang", "name", "rel"}
ATTRIBUTES = ARIA | HEAD | {"class", "data-piece", "dir", "for", "id", "readonly", "spellcheck", "start"}


def check(html: str) -> Tree:
    """Check that a page holds no element, attribute or address but those that it should."""
    tree = Tree(html)
    for tag, attributes in tree.elements:
        assert tag in KNOWN
        assert not [
            name for name in attributes if name.startswith("on") or name in ("style", "src", "autofocus")
        ]
        assert attributes.get("href", "data:,") == "data:,"
    assert len(tree.all("script")) == len(tree.all("style")) == len(tree.all("textarea")) == 1
    assert "://" not in tree.text("script") + tree.text("style")
    return tree


def token_elements(tree: Tree) -> list[dict[str, str | None]]:
    return [each for each in tree.all("span") if each.get("role") == "option"]
