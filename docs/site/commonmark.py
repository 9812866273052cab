"""What the site and its tests know of Markdown: links, headings, and lists for Python-Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = [
    "EXTERNAL",
    "LINK",
    "headings",
    "hide_predictions",
    "indent_lists",
    "links",
    "outside_fences",
    "slug",
]

# The target of a link or a picture, and its anchor.
LINK = re.compile(r"(?<=\]\()([^)\s#]*)(#[^)\s]*)?(?=\))")
EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:|//")
FENCE = re.compile(r"^ *(```+|~~~+)")
ITEM = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)]) +(?=\S)")
# A paragraph with the word, and the session of Python after it.
PREDICTION = re.compile(
    r"^(.*\*\*Predict\*\*.*\n(?:.+\n)*\n)(?:<!-- fixtures -->\n)?(```\w+\n)((?:.*\n)*?)```$", re.MULTILINE
)
HEADING = re.compile(r"#{1,6} +(.+?) *#*$")


def outside_fences(markdown: str, change: Callable[[str], str]) -> str:
    """Apply a function to the lines that are not in blocks of code."""
    lines, fence = [], ""
    for line in markdown.split("\n"):
        found = FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and line.strip() == fence:
            fence = ""
        elif not fence:
            line = change(line)
        lines.append(line)
    return "\n".join(lines)


def hide_predictions(markdown: str) -> str:
    """Show only the code of a session after a question to predict its results, until they are asked for."""

    def hidden(found: re.Match[str]) -> str:
        question, fence, session = found.groups()
        code = "".join(re.findall(r"^(?:>>>|\.\.\.).*\n", session, re.MULTILINE))
        return (
            f"{question}{fence}{code}```\n\n<details><summary>The results</summary>\n\n"
            f"{fence}{session}```\n\n</details>"
        )

    return PREDICTION.sub(hidden, markdown)


def links(markdown: str) -> list[tuple[str, str]]:
    """Return the targets of the links to files and headings, with their anchors: "" for none."""
    found: list[tuple[str, str]] = []

    def collect(line: str) -> str:
        # What looks like a link inside `code` is not one.
        plain = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", lambda code: "x" * len(code[0]), line)
        found.extend(
            (link[1], (link[2] or "")[1:]) for link in LINK.finditer(plain) if not EXTERNAL.match(link[1])
        )
        return line

    outside_fences(markdown, collect)
    return found


def headings(markdown: str) -> list[str]:
    """Return the texts of the headings."""
    found: list[str] = []

    def collect(line: str) -> str:
        if heading := HEADING.match(line):
            found.append(heading[1])
        return line

    outside_fences(markdown, collect)
    return found


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and the site make it.

    >>> slug("How do I use `tokenizer.json`, and [why](x.md)?")
    'how-do-i-use-tokenizerjson-and-why'
    """
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def indent_lists(markdown: str) -> str:
    """Return CommonMark with the lists that Python-Markdown understands.

    In CommonMark, what belongs to an item is indented as far as the item's text, and a list may follow a
    paragraph without an empty line. Python-Markdown wants four spaces for each level, and an empty line.
    """
    lines: list[str] = []
    columns: list[int] = []  # where the text of each open item begins
    fence, level, previous = "", 0, ""
    for line in markdown.split("\n"):
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        item = ITEM.match(text)
        opens = FENCE.match(line)
        if fence:
            margin = columns[level - 1] if level else 0
            lines.append(" " * 4 * level + line[min(indent, margin) :] if text else line)
            if text.rstrip() == fence:
                fence = ""
        elif not text:
            lines.append(line)
        else:
            if item or opens or not previous:
                while columns and indent < columns[-1]:
                    columns.pop()
            level = len(columns)
            margin = columns[-1] if columns else 0
            if item and indent - margin < 4:
                if previous and not ITEM.match(previous) and not _in_item(lines):
                    lines.append("")
                columns.append(indent + len(item[0]))
                lines.append(" " * 4 * level + text)
            else:
                lines.append(" " * 4 * level + line[min(indent, margin) :])
            if opens:
                fence = opens[1]
        previous = text
    return "\n".join(lines)


def _in_item(lines: list[str]) -> bool:
    """Return whether the last paragraph of these lines is a part of a list."""
    for line in reversed(lines):
        if not line.strip():
            return False
        if ITEM.match(line.lstrip()):
            return True
    return False
