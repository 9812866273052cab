"""The course: the checks of its exercises, and the pictures of its chapters.

The chapters are pages in `docs/learn/`. In the root of the repository, `python -m course check 3` checks a
file of answers; `check(3, globals())` checks the answers in a notebook.
`solution(3, "merge_word", globals())` shows a solution after an attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from course.chapters import Chapter
    from course.runner import Result

__all__ = ["check", "solution"]


def check(chapter: int, names: Mapping[str, Any]) -> None:
    """Check the answers to a chapter's exercises, and print one line for each exercise.

    The check hides what the answers print, and has no time limit: interrupt an endless loop.

    Args:
        chapter: The number of the chapter.
        names: The reader's names: `globals()` in a notebook.

    Raises:
        ValueError: The course has no such chapter.

    Example:
        >>> check(1, {})
        no answer yet  character_vocabulary
        no answer yet  encode_characters
        no answer yet  unknown_share
        no answer yet  compression_ratio
        no answer yet  table_numbers
    """
    from course.chapters import load_chapter
    from course.runner import line

    for result in _results(load_chapter(chapter), names):
        print(line(result))


def solution(chapter: int, name: str, names: Mapping[str, Any]) -> None:
    """Print a solution of an exercise, if the reader has an answer to compare it with.

    Args:
        chapter: The number of the chapter.
        name: The name of the exercise.
        names: The reader's names: `globals()` in a notebook.

    Raises:
        ValueError: The course has no such chapter.

    Example:
        >>> solution(1, "compression_ratio", {})
        compression_ratio has no answer yet: try it, and then its solution is shown
        >>> solution(1, "compression_ratio", {"compression_ratio": lambda text, ids: 1})
        def compression_ratio(text: str, ids: list[int]) -> float:
            ...
    """
    from course import tasks
    from course.chapters import load_chapter

    found = load_chapter(chapter)
    try:
        print(tasks.solution(found, name, _results(found, names)))
    except tasks.NotTriedError as error:
        print(error)


def _results(chapter: Chapter, names: Mapping[str, Any]) -> Iterator[Result]:
    """Yield the result of each exercise, without what the answers print."""
    import contextlib
    import io

    from course.runner import run_exercise

    for exercise in chapter.exercises:
        noise = io.StringIO()
        with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
            result = run_exercise(exercise, names)
        yield result
