"""The notebooks: what the pages make, valid, and without a cell that needs more than the package."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from course.chapters import PAGES, Chapter

from course_pages import COURSE, answers, answers_path, every_chapter, load_program, page
from pages import blocks

NOTEBOOKS = load_program(COURSE / "notebooks.py", "learn_notebooks")
# The reader has the package, and what it needs.
IMPORTABLE = {"bpe_tokenizer", "course", "regex", "numpy", "jinja2"}


@cache
def document_of(chapter: Chapter) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(NOTEBOOKS.make(chapter))
    return document


def cells(chapter: Chapter, kind: str) -> list[dict[str, Any]]:
    return [cell for cell in document_of(chapter)["cells"] if cell["cell_type"] == kind]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def tags(cell: dict[str, Any]) -> list[str]:
    return list(cell["metadata"].get("tags", ()))


def run_cell(cell: dict[str, Any], names: dict[str, Any]) -> str:
    """Run a cell, and return what it prints."""
    tree = ast.parse(source(cell))
    code = compile(ast.Interactive(tree.body), "cell", "single")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


@every_chapter
def test_the_structure(chapter: Chapter) -> None:
    document = document_of(chapter)
    assert set(document) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert document["metadata"]["kernelspec"]["name"] == "python3"
    identifiers = [cell["id"] for cell in document["cells"]]
    assert len(set(identifiers)) == len(identifiers)
    for cell in document["cells"]:
        assert all(isinstance(line, str) for line in cell["source"])
        assert not any(line.endswith("\n") for line in cell["source"][-1:])
        if cell["cell_type"] == "markdown":
            assert set(cell) == {"cell_type", "id", "metadata", "source"}
        else:
            assert set(cell) == {"cell_type", "execution_count", "id", "metadata", "outputs", "source"}
            assert cell["cell_type"] == "code"
            assert (cell["execution_count"], cell["outputs"]) == (None, [])  # a reader predicts them


@every_chapter
def test_the_first_and_the_last_cells(chapter: Chapter) -> None:
    first = document_of(chapter)["cells"][0]
    assert first["source"][0] == f"# {chapter.number}. {chapter.title}\n"
    install, *_, ask, checks = cells(chapter, "code")
    assert '# %pip install "../../..[reference]"' in "".join(install["source"])
    assert (tags(install), tags(ask), tags(checks)) == (["install"], ["answers"], ["check"])
    named: dict[str, Any] = {}
    run_cell(ask, named)
    assert [name for name in named if name != "__builtins__"] == [each.name for each in chapter.exercises]
    assert f"solution({chapter.number}, {chapter.exercises[0].name!r}, globals())" in source(checks)
    assert run_cell(checks, named).splitlines() == [
        f"no answer yet  {each.name}" for each in chapter.exercises
    ]
    assert run_cell(checks, answers(chapter)).splitlines() == [
        f"solved         {each.name}" for each in chapter.exercises
    ]
    assert answers_path(chapter).name not in "".join(ask["source"])


@every_chapter
def test_the_cells_are_the_examples_of_the_page(chapter: Chapter) -> None:
    parser = doctest.DocTestParser()
    for needs_files in (False, True):
        examples = [
            example
            for block in blocks(page(chapter))
            if block.language == "python" and block.needs_files == needs_files
            for example in parser.get_examples(block.text)
        ]
        middle = [cell for cell in cells(chapter, "code")[1:-2] if ("fixtures" in tags(cell)) == needs_files]
        code = "".join(example.source for example in examples)
        shown = "".join(source(cell) + "\n" for cell in middle).replace(NOTEBOOKS._NEEDS_FILES, "")
        assert shown == re.sub(r" *# doctest:.*", "", code)
        assert all(source(cell).startswith(NOTEBOOKS._NEEDS_FILES) == needs_files for cell in middle)


@every_chapter
def test_the_cells_import_only_the_package(chapter: Chapter) -> None:
    for cell in cells(chapter, "code"):
        for node in ast.walk(ast.parse(source(cell))):
            modules = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            for module in modules:
                name = module.partition(".")[0]
                assert name in IMPORTABLE or name in sys.stdlib_module_names, module


@every_chapter
def test_the_cells_run_in_order(chapter: Chapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells(chapter, "code"):
        if "raises-exception" in tags(cell) and "fixtures" not in tags(cell):
            with pytest.raises(Exception):  # noqa: B017, PT011
                run_cell(cell, names)
        elif "fixtures" not in tags(cell):
            run_cell(cell, names)


@every_chapter
def test_the_prose_needs_no_other_file(chapter: Chapter) -> None:
    for cell in cells(chapter, "markdown"):
        text = "".join(cell["source"])
        assert "pictures/" not in text
        for link in re.findall(r"\]\(([^)]+)\)", text):
            if "://" not in link and not link.startswith("#"):
                path = COURSE / link.partition("#")[0].removeprefix("../")
                assert path.exists() or path.stem in PAGES, link
