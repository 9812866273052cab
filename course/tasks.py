"""What a reader gets of an exercise: its task, a function to fill in, and after an attempt a solution."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator

from course.chapters import PLACE, Chapter
from course.runner import Result

__all__ = ["NotTriedError", "skeletons", "solution", "tasks"]

# The right answers of the tests.
_ANSWERS = PLACE.parents[1] / "tests" / "learn" / "answers"
_TASK = re.compile(r"^\d+\. \*\*`(\w+)`\*\*:? (.*?)(?=^\d+\. |^\S|\Z)", re.MULTILINE | re.DOTALL)


class NotTriedError(Exception):
    """The reader has no answer to compare with a solution."""


def tasks(chapter: Chapter) -> dict[str, str]:
    """Return the task of each exercise of a chapter, from its page.

    Example:
        >>> from course.chapters import load_chapter
        >>> tasks(load_chapter(2))["count_bytes"]
        'Write a function `count_bytes(text)` that returns how many bytes the UTF-8 of a text has.'
    """
    text = (PLACE / f"{chapter.page}.md").read_text(encoding="utf-8")
    found = _TASK.findall(text.partition("\n## Exercises\n")[2])
    return {name: " ".join(task.split()) for name, task in found}


def skeletons(chapter: Chapter, with_tasks: bool = True) -> str:
    """Return the program that a reader completes: each exercise with its signature, and perhaps its task.

    Example:
        >>> from course.chapters import load_chapter
        >>> print(skeletons(load_chapter(2), with_tasks=False)[:54])
        def count_bytes(text):
            raise NotImplementedError
        <BLANKLINE>
        <BLANKLINE>
    """
    parts = []
    for name, task in tasks(chapter).items():
        call = re.search(rf"`({name}\([\w, ]*\))`", task)
        body = f"def {call[1]}:\n    raise NotImplementedError\n" if call else f"{name} = ...\n"
        parts.append(with_tasks * (textwrap.indent(textwrap.fill(task, 97), "# ") + "\n") + body)
    return "\n\n".join(parts)


def solution(chapter: Chapter, name: str, results: Iterable[Result]) -> str:
    """Return the code of a solution, if the reader has tried.

    Args:
        chapter: The chapter.
        name: The name of the exercise.
        results: The results of the reader's answers.

    Raises:
        NotTriedError: The reader has no answer yet, or the chapter has no such exercise.
    """
    states = {result.name: result.state for result in results}
    if name not in states:
        raise NotTriedError(f"chapter {chapter.number} has no {name!r}; it has {', '.join(states)}")
    if states[name] == "no answer yet":
        raise NotTriedError(f"{name} has no answer yet: try it, and then its solution is shown")
    source = (_ANSWERS / f"chapter_{chapter.number:02}.py").read_text(encoding="utf-8")
    nodes = ast.parse(source).body
    defined = {each: node for node in nodes for each in _defined(node)}
    wanted: set[ast.stmt] = set()
    todo = [name]
    while todo:
        node = defined.get(todo.pop())
        if node and node not in wanted:
            wanted.add(node)
            todo += [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    return "\n\n".join(ast.get_source_segment(source, node) or "" for node in nodes if node in wanted)


def _defined(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a file defines."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (each.asname or each.name for each in node.names)
    elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Assign):
        yield from (each.id for each in node.targets if isinstance(each, ast.Name))
