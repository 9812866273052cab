"""`python -m course`: the chapters, files for answers, and their checks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from course.answers import SECONDS, AnswerFileError, check_file
from course.chapters import PAGES, Chapter, load_chapter
from course.runner import line
from course.tasks import NotTriedError, skeletons, solution

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Exit codes: 0 success, 1 an exercise is not solved or a file cannot be used, 2 a wrong command line, 130
    Ctrl-C.

    Args:
        arguments: The command line without the program's name; None uses the process's own.

    Raises:
        SystemExit: Always, with the exit code.

    Example:
        >>> main(["check", "18"])
        Traceback (most recent call last):
        SystemExit: 2
    """
    options = _parser().parse_args(arguments)
    try:
        if options.command == "check":
            _check(options.chapter, options.file or Path(_file_name(options.chapter)), options.time_limit)
        if options.command == "solution":
            path = options.file or Path(_file_name(options.chapter))
            print(solution(options.chapter, options.name, check_file(options.chapter, path)))
            raise SystemExit(0)
        if options.command == "start":
            _start(options.chapter)
        _list()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except (AnswerFileError, NotTriedError, OSError) as error:
        raise SystemExit(f"course: {error}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m course",
        description="The course on byte-pair encoding. Without a command: the chapters and their exercises.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    check = commands.add_parser("check", help="check your answers to the exercises of a chapter")
    check.add_argument("chapter", type=_chapter, metavar="CHAPTER", help="the number of the chapter")
    check.add_argument("file", nargs="?", type=Path, metavar="FILE", help="default: chapter_NN.py")
    limit = f"seconds for each exercise (default: {SECONDS:g})"
    check.add_argument("--time-limit", type=float, default=SECONDS, metavar="SECONDS", help=limit)
    shown = commands.add_parser("solution", help="show a solution of an exercise that you have tried")
    shown.add_argument("chapter", type=_chapter, metavar="CHAPTER", help="the number of the chapter")
    shown.add_argument("name", metavar="NAME", help="the name of the exercise")
    shown.add_argument("file", nargs="?", type=Path, metavar="FILE", help="default: chapter_NN.py")
    start = commands.add_parser("start", help="write a file with the tasks and what to define")
    start.add_argument("chapter", type=_chapter, metavar="CHAPTER", help="the number of the chapter")
    return parser


def _chapter(text: str) -> Chapter:
    try:
        return load_chapter(int(text))
    except ValueError:
        message = f"{text!r} is not a chapter; the course has the chapters 1 to {len(PAGES)}"
        raise argparse.ArgumentTypeError(message) from None


def _file_name(chapter: Chapter) -> str:
    return f"chapter_{chapter.number:02}.py"


def _list() -> NoReturn:
    for number in range(1, len(PAGES) + 1):
        chapter = load_chapter(number)
        print(f"{number:2}  {chapter.title}: {', '.join(exercise.name for exercise in chapter.exercises)}")
    raise SystemExit(0)


def _check(chapter: Chapter, path: Path, seconds: float) -> NoReturn:
    solved = 0
    for result in check_file(chapter, path, seconds):
        solved += result.state == "solved"
        print(line(result), flush=True)
    raise SystemExit(solved < len(chapter.exercises))


def _start(chapter: Chapter) -> NoReturn:
    path = Path(_file_name(chapter))
    if path.exists():
        raise AnswerFileError(f"{path} exists already, and stays as it is")
    text = (
        f"# Chapter {chapter.number}: {chapter.title}\n"
        "# Replace each `...` and `raise NotImplementedError` by your answer.\n"
        "# Copy or import what an answer needs. What it prints is not shown by the check.\n"
        f"# Then run: python -m course check {chapter.number}\n\n\n{skeletons(chapter)}"
    )
    path.write_text(text, encoding="utf-8")
    print(path)
    raise SystemExit(0)


if __name__ == "__main__":
    main()
