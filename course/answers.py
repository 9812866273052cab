"""Checks a file of answers in another process, which an endless loop or a crash cannot outlive.

The process writes one line of JSON for each exercise. When an exercise takes too long, `faulthandler` writes
the stack and ends the process: its thread needs neither signals nor the GIL, so it also ends a regular
expression that never returns.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

from course.chapters import Chapter, load_chapter
from course.runner import Result, describe_error, run_exercise

__all__ = ["SECONDS", "AnswerFileError", "check_file"]

# The time of one exercise.
SECONDS = 5.0
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
        raise AnswerFileError(
            f"{path} is not a file. To make a file with the names to define: "
            f"python -m course start {chapter.number}"
        )
    done = 0
    while done < len(chapter.exercises):
        is_loaded = False
        stack = ""
        for line in _output(chapter.number, path.resolve(), done, seconds):
            if line.startswith("["):
                yield Result(*json.loads(line))
                done += 1
            elif line.startswith('"'):
                is_loaded = True
            elif line.startswith("{"):
                raise AnswerFileError(f"{path}: {json.loads(line)['error']}")
            else:
                stack += line
        if done < len(chapter.exercises):
            message = _why_it_ended(stack, path.resolve(), seconds)
            if not is_loaded:
                raise AnswerFileError(f"{path}: {message}")
            exercise = chapter.exercises[done]
            yield Result(exercise.name, "wrong", message, exercise.hint)
            done += 1


def _output(number: int, path: Path, first: int, seconds: float) -> Iterator[str]:
    """Run the process, and yield the lines that it writes."""
    command = [sys.executable, "-m", "course.answers", str(number), str(path), str(first), str(seconds)]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, encoding="ascii", errors="replace"
    ) as process:
        assert process.stdout is not None
        try:
            yield from process.stdout
        finally:
            process.kill()


def _why_it_ended(stack: str, path: Path, seconds: float) -> str:
    """Return the reason why the process ended, from the stack that it wrote at its end."""
    name = str(path).encode("ascii", "backslashreplace").decode("ascii")[:_MAX_NAME]
    number = next((number for file, number in _FRAME.findall(stack) if file == name), None)
    where = f"line {number}: " if number else ""
    if stack.startswith("Timeout"):
        return f"{where}the code still runs after {seconds:g} seconds; does a loop never end?"
    fatal = re.match(r"Fatal Python error: (.*)", stack)
    return f"{where}the code ends Python{f' ({fatal[1]})' if fatal else ''}"


def _check_here(number: int, path: Path, first: int, seconds: float) -> None:
    """Check the answers to a chapter from an exercise on, and end the process."""
    exercises = load_chapter(number).exercises[first:]
    # What the reader's code prints goes nowhere, also from other languages and other processes.
    results = os.fdopen(os.dup(1), "w", encoding="ascii", buffering=1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    faulthandler.enable(results)
    faulthandler.dump_traceback_later(seconds, exit=True, file=results)
    sys.path.insert(0, str(path.parent))
    answers = types.ModuleType(f"answers_{number:02}")
    answers.__file__ = str(path)
    # Data classes look for their module.
    sys.modules[answers.__name__] = answers
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), answers.__dict__)
    except (Exception, SystemExit) as error:
        results.write(json.dumps({"error": describe_error(error, answers.__dict__)}) + "\n")
        os._exit(1)
    results.write('"loaded"\n')
    for exercise in exercises:
        faulthandler.dump_traceback_later(seconds, exit=True, file=results)
        results.write(json.dumps(run_exercise(exercise, answers.__dict__)) + "\n")
    # Threads of the reader's code may still run.
    os._exit(0)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        _check_here(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
