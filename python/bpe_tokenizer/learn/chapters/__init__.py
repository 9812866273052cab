"""The chapters of the course, one module each, with the checks of their exercises."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bpe_tokenizer.learn.exercise import Exercise

__all__ = ["PAGES", "Chapter", "load_chapter"]

# The pages in docs/learn/, without `.md`. The first two characters are the number of the chapter.
PAGES = (
    "01-why-tokenizers",
    "02-bytes-and-utf-8",
    "03-merging-by-hand",
    "04-the-smallest-bpe",
    "05-why-split-first",
    "06-special-tokens-and-chats",
    "07-from-ids-to-text",
    "08-training-at-scale",
    "09-vocabulary-size",
    "10-fairness-across-languages",
    "11-why-models-fail",
    "12-rebuilding-gpt-4",
    "13-the-fast-encoder",
    "14-other-algorithms",
    "15-pitfalls",
)


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
        >>> load_chapter(16)
        Traceback (most recent call last):
            ...
        ValueError: chapter 16 does not exist; the course has the chapters 1 to 15
    """
    if number not in range(1, len(PAGES) + 1):
        raise ValueError(f"chapter {number!r} does not exist; the course has the chapters 1 to {len(PAGES)}")
    module = import_module(f"{__name__}.chapter_{number:02}")
    return Chapter(number, module.TITLE, PAGES[number - 1], module.EXERCISES)
