"""`python -m bpe_tokenizer.learn`: the chapters, files for answers, and their checks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from bpe_tokenizer.learn.chapters import PAGES, Chapter, load_chapter

__all__ = ["main"]

_STYLES = {"solved": "green", "wrong": "red", "no answer yet": "yellow"}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Exit codes: 0 success, 1 an exercise is not solved or a file cannot be used, 2 a wrong command line, 130
    Ctrl-C, 141 the reader of the output is gone.

    Args:
        arguments: The command line without the program's name; None uses the process's own.

    Raises:
        SystemExit: Always, with the exit code.

    Example:
        >>> main(["check", "16"])
        Traceback (most recent call last):
        SystemExit: 2
    """
    from bpe_tokenizer.cli.streams import discard_output, make_usable

    make_usable()
    try:
        code = _run(_parser().parse_args(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        code = 141
    except KeyboardInterrupt:
        code = 130
    raise SystemExit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bpe_tokenizer.learn",
        description="The course on byte-pair encoding. Without a command: the chapters and their exercises.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    check = commands.add_parser("check", help="check your answers to the exercises of a chapter")
    check.add_argument("chapter", type=_chapter, metavar="CHAPTER", help="the number of the chapter")
    check.add_argument("file", nargs="?", type=Path, metavar="FILE", help="default: chapter_NN.py")
    check.add_argument(
        "--time-limit",
        type=_seconds,
        default=5.0,
        metavar="SECONDS",
        help="time for each exercise (default: 5)",
    )
    start = commands.add_parser("start", help="write a file with the names to define")
    start.add_argument("chapter", type=_chapter, metavar="CHAPTER", help="the number of the chapter")
    return parser


def _chapter(text: str) -> Chapter:
    try:
        return load_chapter(int(text))
    except ValueError:
        message = f"{text!r} is not a chapter; the course has the chapters 1 to {len(PAGES)}"
        raise argparse.ArgumentTypeError(message) from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.01 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


def _run(options: argparse.Namespace) -> int:
    if options.command == "check":
        return _check(options.chapter, options.file or Path(_file_name(options.chapter)), options.time_limit)
    if options.command == "start":
        return _start(options.chapter)
    return _list()


def _file_name(chapter: Chapter) -> str:
    return f"chapter_{chapter.number:02}.py"


def _list() -> int:
    for number in range(1, len(PAGES) + 1):
        chapter = load_chapter(number)
        names = ", ".join(exercise.name for exercise in chapter.exercises)
        print(f"{number:2}  {chapter.title}: {names}")
    if sys.stdout.isatty():
        print("\nWrite a file for your answers: python -m bpe_tokenizer.learn start 1")
        print("Check them:                    python -m bpe_tokenizer.learn check 1")
    return 0


def _check(chapter: Chapter, path: Path, seconds: float) -> int:
    from bpe_tokenizer.learn.answer_file import AnswerFileError, check_file
    from bpe_tokenizer.learn.runner import line

    solved = 0
    try:
        for result in check_file(chapter, path, seconds):
            solved += result.state == "solved"
            _print(line(result), _STYLES[result.state], len(result.state))
    except AnswerFileError as error:
        print(f"learn: {error}", file=sys.stderr)
        return 1
    if sys.stdout.isatty():
        print(f"{solved} of {len(chapter.exercises)} exercises of chapter {chapter.number} are solved.")
    return 0 if solved == len(chapter.exercises) else 1


def _print(line: str, style: str, length: int) -> None:
    """Print a line at once; on a terminal, its first characters are coloured."""
    if not sys.stdout.isatty():
        print(line, flush=True)
        return
    from rich.text import Text

    from bpe_tokenizer.console import new_console

    text = Text(line)
    text.stylize(style, 0, length)
    new_console(highlight=False).print(text)


def _start(chapter: Chapter) -> int:
    path = Path(_file_name(chapter))
    names = "\n".join(f"{exercise.name} = ...\n" for exercise in chapter.exercises)
    text = (
        f"# Chapter {chapter.number}: {chapter.title}\n"
        "# Replace each `...` by your answer. A function replaces the whole line.\n"
        "# Copy or import what an answer needs. What it prints is not shown by the check.\n"
        f"# Then run: python -m bpe_tokenizer.learn check {chapter.number}\n\n{names}"
    )
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        print(f"learn: {path} exists already, and stays as it is", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"learn: {path}: {error.strerror}", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    main()
