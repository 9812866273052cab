"""The course: the checks of its exercises, and the pictures of its chapters.

The chapters are pages in `docs/learn/`. In the root of the repository, `python -m course check 3` checks a
file of answers; `check(3, globals())` checks the answers in a notebook.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["check"]


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
    import contextlib
    import io

    from course.chapters import load_chapter
    from course.runner import line, run_exercise

    for exercise in load_chapter(chapter).exercises:
        noise = io.StringIO()
        with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
            result = run_exercise(exercise, names)
        print(line(result))
