"""Checks a file of answers in another process, which an endless loop or a crash cannot outlive."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bpe_tokenizer.learn.answer_process import LOADED
from bpe_tokenizer.learn.chapters import Chapter
from bpe_tokenizer.learn.limits import SECONDS
from bpe_tokenizer.learn.runner import Result, still_running

__all__ = ["AnswerFileError", "check_file"]

# A line of a stack that `faulthandler` writes. It shortens long names of files.
_FRAME = re.compile(r'^  File "(.*?)(?:\.\.\.)?", line (\d+) in ', re.MULTILINE)
_MAX_NAME = 500


class AnswerFileError(Exception):
    """A file of answers cannot be loaded; the message says why."""


def check_file(chapter: Chapter, path: Path, seconds: float = SECONDS) -> Iterator[Result]:
    """Check the answers in a file, and yield the result of each exercise.

    Args:
        chapter: The chapter.
        path: The file.
        seconds: The time limit of the file, and of each exercise.

    Raises:
        AnswerFileError: The file cannot be loaded.
    """
    if not path.is_file():
        problem = "is not a file" if path.exists() else "does not exist"
        raise AnswerFileError(
            f"{path} {problem}. To make a file with the names to define: "
            f"python -m bpe_tokenizer.learn start {chapter.number}"
        )
    done = 0
    while done < len(chapter.exercises):
        is_loaded = False
        end = ""
        for line in _output(chapter.number, path.resolve(), done, seconds):
            record = _record(line)
            if isinstance(record, list):
                yield Result(*record)
                done += 1
            elif isinstance(record, dict):
                raise AnswerFileError(f"{path}: {record['error']}")
            elif record == LOADED:
                is_loaded = True
            else:
                end += line
        if done < len(chapter.exercises):
            message = _why_it_ended(end, path.resolve(), seconds)
            if not is_loaded:
                raise AnswerFileError(f"{path}: {message}")
            exercise = chapter.exercises[done]
            yield Result(exercise.name, "wrong", message, exercise.hint)
            done += 1


def _output(number: int, path: Path, first: int, seconds: float) -> Iterator[str]:
    """Run the process, and yield the lines that it writes."""
    arguments = [str(number), str(path), str(first), str(seconds)]
    with subprocess.Popen(
        [sys.executable, "-m", "bpe_tokenizer.learn.answer_process", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="ascii",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        try:
            yield from process.stdout
        finally:
            process.kill()


def _record(line: str) -> object:
    """Return a line of JSON as its object; None for a line of a stack."""
    try:
        record: object = json.loads(line)
    except ValueError:
        return None
    return record


def _why_it_ended(end: str, path: Path, seconds: float) -> str:
    """Return the reason why the process ended, from the stack that it wrote at its end."""
    name = str(path).encode("ascii", "backslashreplace").decode("ascii")[:_MAX_NAME]
    number = next((int(number) for file, number in _FRAME.findall(end) if file == name), None)
    if end.startswith("Timeout"):
        return still_running(seconds, number)
    where = f"line {number}: " if number is not None else ""
    fatal = re.match(r"Fatal Python error: (.*)", end)
    reason = f" ({fatal[1]})" if fatal else ""
    return f"{where}the code ends Python{reason}"
