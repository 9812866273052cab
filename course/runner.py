"""Runs the check of one exercise on the reader's names, and words the result."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from course.exercise import Exercise, WrongAnswer

__all__ = ["Result", "describe_error", "line", "run_exercise"]

State = Literal["solved", "wrong", "no answer yet"]

_MAX_MESSAGE = 300
_MISSING_NAME = "An answer uses only names of its file: copy or import the others."


class Result(NamedTuple):
    """The result of one exercise.

    Args:
        name: The name that the exercise asks for.
        state: Whether the answer is right.
        message: What is wrong, if it is wrong.
        hint: What helps, if it is wrong.
    """

    name: str
    state: State
    message: str = ""
    hint: str = ""


def run_exercise(exercise: Exercise, names: Mapping[str, Any]) -> Result:
    """Run the check of an exercise.

    Args:
        exercise: The exercise.
        names: The reader's names. An exercise whose name is missing, or is `...`, has no answer yet.

    Example:
        >>> from course.exercise import expect_call
        >>> exercise = Exercise("double", lambda answer: expect_call(answer, (3,), 6), "Multiply by 2.")
        >>> run_exercise(exercise, {"double": lambda number: 2 * number}).state
        'solved'
        >>> run_exercise(exercise, {"double": lambda number: number / 0}).message
        'ZeroDivisionError: division by zero'
        >>> run_exercise(exercise, {}).state
        'no answer yet'
    """
    answer = names.get(exercise.name, ...)
    if answer is ...:
        return Result(exercise.name, "no answer yet")
    try:
        exercise.check(answer)
    except WrongAnswer as wrong:
        return Result(exercise.name, "wrong", _one_line(str(wrong)), exercise.hint)
    except NotImplementedError:  # the function is still the one of `start`
        return Result(exercise.name, "no answer yet")
    except NameError as error:
        return Result(exercise.name, "wrong", describe_error(error, names), _MISSING_NAME)
    except (Exception, SystemExit) as error:
        return Result(exercise.name, "wrong", describe_error(error, names), exercise.hint)
    return Result(exercise.name, "solved")


def describe_error(error: BaseException, names: Mapping[str, Any]) -> str:
    """Return an error as one line, with the last line of the reader's code that led to it.

    Args:
        error: The error.
        names: The global names of the reader's code, which tell its frames from others.
    """
    lines = [number for frame, number in traceback.walk_tb(error.__traceback__) if frame.f_globals is names]
    where = f"line {lines[-1]}: " if lines else ""
    if isinstance(error, SystemExit):
        return f"{where}the code ends the program"
    if isinstance(error, SyntaxError) and not lines:  # in the file itself
        return _one_line(f"line {error.lineno}: {type(error).__name__}: {error.msg}")
    try:
        what = "".join(traceback.format_exception_only(type(error), error))
    except Exception:  # an error whose text cannot be made
        what = type(error).__name__
    return _one_line(f"{where}{what}")


def line(result: Result) -> str:
    """Return a result as a line of text.

    Example:
        >>> line(Result("double", "solved"))
        'solved         double'
        >>> line(Result("double", "wrong", "double(3) gives 3, expected 6", "Multiply by 2."))
        'wrong          double: double(3) gives 3, expected 6. Hint: Multiply by 2.'
    """
    message = f": {result.message}" if result.message else ""
    end = "" if not result.hint or message.endswith((".", "!", "?")) else "."
    hint = f"{end} Hint: {result.hint}" if result.hint else ""
    return f"{result.state:<13}  {result.name}{message}{hint}"


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 4] + " ..."
