"""Makes a notebook of each chapter: prose cells, code cells without results, and cells for the answers.

python -m docs.learn.notebooks
"""

from __future__ import annotations

import base64
import doctest
import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from course.chapters import PAGES, Chapter, load_chapter
from course.tasks import skeletons

PLACE = Path(__file__).parent
NOTEBOOKS = PLACE / "notebooks"

_BLOCK = re.compile(r"^(<!-- fixtures -->\n)?```python\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
_IMAGE = re.compile(r"!\[([^\]]*)\]\((pictures/[\w-]+\.svg)\)")
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)]+)(?=\))")
_COMMAND = re.compile(r"Write your answers in a file .*?\.$\n", re.MULTILINE)
_NEXT = "## Next\n"

_INSTALL = """\
# This notebook is in docs/learn/notebooks/ of the repository of bpe-tokenizer.
# If the package is not installed, remove the `#` from the next line.
# %pip install "../../..[reference]"
import sys

sys.path.append("../../..")  # the course
"""
_FILES = "# Cells whose first line says that they need files fail without these.\n"
_NEEDS_FILES = "# Needs the files that the variable BPE_TOKENIZER_FIXTURES names.\n"
_CHECK = """\
from course import check, solution

"""
_ANSWERS = "# Replace each `...` and `raise NotImplementedError` by your answer.\n"


def notebook(page: str, chapter: Chapter) -> str:
    """Return the notebook of a page as JSON."""
    body, heading, end = page.rpartition(_NEXT)
    cells = list(_cells(body, needs_files="<!-- fixtures -->" in page))
    cells.append(_code(_ANSWERS + skeletons(chapter, with_tasks=False), "answers"))
    shown = f"# After an attempt: solution({chapter.number}, {chapter.exercises[0].name!r}, globals())\n"
    cells.append(_code(f"{_CHECK}check({chapter.number}, globals())\n{shown}", "check"))
    cells.append(_prose(heading + end))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    document = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _cells(text: str, needs_files: bool) -> Iterator[dict[str, Any]]:
    """Yield the cells up to the exercises; the cell that installs the package comes after the title."""
    text = _COMMAND.sub("Write your answers in the next cell, and run it and the cell below it.\n", text)
    position = 0
    is_first = True
    for block in _BLOCK.finditer(text):
        for part in _sections(text[position : block.start()]):
            yield _prose(part)
            if is_first:
                yield _code(_INSTALL + _FILES * needs_files, "install")
                is_first = False
        yield from _examples(block[2], tag="fixtures" if block[1] else "")
        position = block.end()
    yield from map(_prose, _sections(text[position:]))


def _sections(text: str) -> Iterator[str]:
    """Cut prose at its headings, so that each section can be folded."""
    for part in re.split(r"^(?=##+ )", text, flags=re.MULTILINE):
        if part.strip():
            yield part


def _examples(block: str, tag: str) -> Iterator[dict[str, Any]]:
    """Yield a cell for each result, with the lines that lead to it."""
    source = ""
    for example in doctest.DocTestParser().get_examples(block):
        source += re.sub(r" *# doctest:.*", "", example.source)
        if example.want:
            yield _code(source, tag, example.want)
            source = ""
    if source:
        yield _code(source, tag)


def _prose(text: str) -> dict[str, Any]:
    text = _LINK.sub(_target, _IMAGE.sub(_picture, text.strip()))
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _target(link: re.Match[str]) -> str:
    """Return a link of a page as a link of its notebook, which is one folder deeper."""
    path, mark, anchor = link[1].partition("#")
    if path.removesuffix(".md") in PAGES:
        return path.removesuffix(".md") + ".ipynb"
    return f"../{path}{mark}{anchor}"


def _picture(image: re.Match[str]) -> str:
    """Return a picture of a page with its data in it, so that a notebook can be copied alone.

    JupyterLab does not show an SVG file that is an attachment of a cell.
    """
    data = base64.b64encode((PLACE / image[2]).read_bytes()).decode("ascii")
    return f'<img alt="{escape(image[1])}" src="data:image/svg+xml;base64,{data}">'


def _code(source: str, tag: str = "", want: str = "") -> dict[str, Any]:
    """Return a cell without its result: a reader predicts it, and then runs the cell."""
    # "Run all" goes on after a cell with the tag `raises-exception`.
    may_fail = want.startswith("Traceback ") or tag == "fixtures"
    tags = [each for each in (tag, "raises-exception" if may_fail else "") if each]
    if tag == "fixtures":
        source = f"{_NEEDS_FILES}{source}"
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {"tags": tags} if tags else {},
        "outputs": [],
        "source": source.rstrip("\n").splitlines(keepends=True),
    }


def path_of(chapter: Chapter) -> Path:
    """Return where the notebook of a chapter is."""
    return NOTEBOOKS / f"{chapter.page}.ipynb"


def make(chapter: Chapter) -> str:
    """Return the notebook of a chapter as JSON."""
    return notebook((PLACE / f"{chapter.page}.md").read_text(encoding="utf-8"), chapter)


if __name__ == "__main__":
    NOTEBOOKS.mkdir(exist_ok=True)
    for number in range(1, len(PAGES) + 1):
        path_of(load_chapter(number)).write_text(make(load_chapter(number)), encoding="utf-8")
