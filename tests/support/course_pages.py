"""The course: its chapters, its pages, the answers to its exercises, and the programs in docs/learn/."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from course.chapters import PAGES, Chapter, load_chapter

from pages import ROOT

COURSE = ROOT / "docs" / "learn"
ANSWERS = ROOT / "tests" / "learn" / "answers"
NUMBERS = range(1, len(PAGES) + 1)

every_chapter = pytest.mark.parametrize(
    "chapter", [load_chapter(n) for n in NUMBERS], ids=lambda each: each.page
)


def page(chapter: Chapter) -> str:
    return (COURSE / f"{chapter.page}.md").read_text(encoding="utf-8")


def answers_path(chapter: Chapter) -> Path:
    """Return the file of the right answers, and of wrong ones in `WRONG`."""
    return ANSWERS / f"chapter_{chapter.number:02}.py"


def answers(chapter: Chapter) -> dict[str, Any]:
    return vars(load_program(answers_path(chapter), f"answers_{chapter.number:02}"))


def load_program(path: Path, name: str) -> ModuleType:
    """Import a file that is not a part of a package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
