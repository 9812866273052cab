"""The chapters of the course, one module each, with the checks of their exercises."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from course.exercise import Exercise

__all__ = ["PAGES", "PLACE", "Chapter", "load_chapter"]

PLACE = Path(__file__).parents[2] / "docs" / "learn"
# The pages, without `.md`. The first two characters are the number of the chapter.
PAGES = tuple(sorted(path.stem for path in PLACE.glob("[0-9]*.md")))


class Chapter(NamedTuple):
    """A chapter of the course.

    Args:
        number: Its number, from 1.
        title: Its title.
        page: The name of its page in `docs/learn/`, without `.md`.
        exercises: Its exercises, in the order of the page.
    """

    number: int
    title: str
    page: str
    exercises: tuple[Exercise, ...]


def load_chapter(number: int) -> Chapter:
    """Import a chapter.

    Args:
        number: Its number, from 1.

    Raises:
        ValueError: The course has no such chapter.

    Example:
        >>> load_chapter(2).title
        'Bytes and UTF-8'
        >>> load_chapter(18)
        Traceback (most recent call last):
            ...
        ValueError: chapter 18 does not exist; the course has the chapters 1 to 17
    """
    if number not in range(1, len(PAGES) + 1):
        raise ValueError(f"chapter {number!r} does not exist; the course has the chapters 1 to {len(PAGES)}")
    page = PAGES[number - 1]
    with (PLACE / f"{page}.md").open(encoding="utf-8") as file:
        _, _, title = file.readline().strip().partition(". ")
    module = import_module(f"{__name__}.chapter_{number:02}")
    exercises = tuple(each for each in vars(module).values() if isinstance(each, Exercise))
    return Chapter(number, title, page, exercises)
