"""The process that loads a file of answers and checks them, started by `answer_file.py`.

It writes one line of JSON for each exercise. When an exercise takes too long, `faulthandler` writes the stack
and ends the process: its thread needs neither signals nor the GIL, so it also ends a regular expression that
never returns.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
import types
from pathlib import Path

from bpe_tokenizer.learn.chapters import load_chapter
from bpe_tokenizer.learn.runner import describe_error, run_exercise

__all__ = ["LOADED", "main"]

# Written when the file is loaded.
LOADED = "loaded"

# Enough for every exercise; a list that grows without end reaches it before the machine is out of memory.
_MAX_BYTES = 4 << 30


def main(number: int, path: Path, first: int, seconds: float) -> None:
    """Check the answers to a chapter, and end the process.

    Args:
        number: The number of the chapter.
        path: The file of answers.
        first: The index of the first exercise to check.
        seconds: The time limit of the file, and of each exercise.
    """
    exercises = load_chapter(number).exercises[first:]
    # What the reader's code prints goes nowhere, also from other languages and other processes.
    results = os.fdopen(os.dup(1), "w", encoding="ascii", buffering=1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    faulthandler.enable(results)
    _limit_memory()

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
    results.write(json.dumps(LOADED) + "\n")
    for exercise in exercises:
        faulthandler.dump_traceback_later(seconds, exit=True, file=results)
        result = run_exercise(exercise, answers.__dict__)
        results.write(json.dumps(result) + "\n")
    # Threads of the reader's code may still run.
    os._exit(0)


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # not everywhere
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (_MAX_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1]))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
