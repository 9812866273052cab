"""Exercises, and what their checks are written with.

A check gets what the reader defined, calls it with several arguments, and raises `WrongAnswer` at the first
result that is not right. Other exceptions of the reader's code are the runner's task (`runner.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, TypeAlias, TypeGuard

_Function: TypeAlias = Callable[..., Any]
_Arguments: TypeAlias = Iterable[tuple[Any, ...]]
Cases: TypeAlias = _Arguments | Callable[[], _Arguments]

_MAX_VALUE = 100
_MAX_CALL = 120


class WrongAnswer(Exception):  # noqa: N818 (the answer is wrong, not the program)
    """The reader's answer is not right; the message says what is wrong."""


@dataclass(frozen=True)
class Exercise:
    """One exercise of a chapter.

    Attributes:
        name: The name that the reader defines.
        check: Gets what the reader defined, and raises `WrongAnswer` if it is not right.
        hint: One sentence that helps without giving the answer.
    """

    name: str
    check: Callable[[Any], None]
    hint: str


def exercise(hint: str, *forbidden: str) -> Callable[[Callable[[Any], None]], Exercise]:
    """Make an exercise of its check: `_check_cut` is the check of the exercise `cut`.

    Args:
        hint: One sentence that helps without giving the answer.
        forbidden: Names that the answer must not use, as the task says.

    Example:
        >>> @exercise("Multiply by 2.")
        ... def _check_double(answer):
        ...     expect_call(answer, (3,), 6)
        >>> _check_double.name
        'double'
    """

    def make(check: Callable[[Any], None]) -> Exercise:
        def checked(answer: Any) -> None:
            if used := next((name for name in forbidden if name in _names_in(answer)), None):
                raise WrongAnswer(f"it uses `{used}`, which the task does not allow")
            check(answer)

        return Exercise(check.__name__.removeprefix("_check_"), checked, hint)

    return make


def _names_in(answer: Any) -> set[str]:
    """Return the names that a function uses, also in the functions of the same file that it calls."""
    globals_ = getattr(answer, "__globals__", {})
    found: set[str] = set()
    todo = [getattr(answer, "__code__", None)]
    while todo:
        code = todo.pop()
        if isinstance(code, CodeType):
            values = [globals_.get(name) for name in code.co_names if name not in found]
            # A function that is imported under another name is found by its own.
            found.update(code.co_names, (getattr(value, "__name__", "") for value in values))
            todo += [*code.co_consts, *(value.__code__ for value in values if _is_in(value, globals_))]
    return found


def _is_in(value: Any, globals_: Mapping[str, Any]) -> TypeGuard[FunctionType]:
    return isinstance(value, FunctionType) and value.__globals__ is globals_


def compared(
    hint: str, cases: Cases, *forbidden: str, is_new: bool = False
) -> Callable[[_Function], Exercise]:
    """Make an exercise of a right answer: `_cut` is that of the exercise `cut`.

    Args:
        hint: One sentence that helps without giving the answer.
        cases: The arguments of each call, or a function that returns them.
        forbidden: Names that the answer must not use, as the task says.
        is_new: Whether the result must be another object than the arguments, which must stay as they are.

    Example:
        >>> @compared("Multiply by 2.", [(3,), (4,)])
        ... def _double(number):
        ...     return 2 * number
        >>> _double.name
        'double'
    """

    def make(right: _Function) -> Exercise:
        def check(answer: Any) -> None:
            for arguments in cases() if callable(cases) else cases:
                expect_call(answer, arguments, right(*arguments), is_new=is_new)

        check.__name__ = f"_check{right.__name__}"
        return exercise(hint, *forbidden)(check)

    return make


def expect_function(answer: Any) -> None:
    """Raise `WrongAnswer` if what the reader defined cannot be called."""
    if not callable(answer):
        raise WrongAnswer(f"it must be a function, and you have {shortened(answer)}")


def expect_call(function: Any, arguments: tuple[Any, ...], expected: object, *, is_new: bool = False) -> None:
    """Call a function of the reader and compare its result.

    Lists and tuples count as equal. A float is right if it differs by less than a millionth. The function
    gets copies of lists, dictionaries and sets, so one call cannot change the arguments of the next.

    Args:
        function: What the reader defined.
        arguments: The arguments of the call.
        expected: The right result.
        is_new: Whether the result must be another object than the arguments, which must stay as they are.

    Raises:
        WrongAnswer: `function` cannot be called, or its result differs from `expected`.

    Example:
        >>> expect_call(len, ("abc",), 3)
        >>> expect_call(sorted, ([2, 1],), [2, 1])
        Traceback (most recent call last):
            ...
        course.exercise.WrongAnswer: sorted([2, 1]) gives [1, 2], expected [2, 1]
    """
    expect_function(function)
    given = [_copy(argument) for argument in arguments]
    answer = function(*given)
    call = _call(function, arguments)
    if is_new and (given != list(arguments) or any(answer is each for each in given)):
        raise WrongAnswer(f"{call} changes or returns what it is given: it must return a new object")
    if not same(answer, expected):
        raise WrongAnswer(f"{call} gives {_described(answer)}, expected {shortened(expected)}")


def expect_equal(answer: object, expected: object, what: str) -> None:
    """Compare a value of the reader with the right one, which the message does not show.

    Args:
        answer: What the reader defined.
        expected: The right value.
        what: What the value is, for the message.

    Raises:
        WrongAnswer: The two differ.

    Example:
        >>> expect_equal(2, 2, "the number of bytes")
        >>> expect_equal(1, 2, "the number of bytes")
        Traceback (most recent call last):
            ...
        course.exercise.WrongAnswer: the number of bytes is not right: you have 1
    """
    if not same(answer, expected):
        raise WrongAnswer(f"{what} is not right: you have {_described(answer)}")


def same(answer: object, expected: object) -> bool:
    """Compare as a teacher does: lists and tuples are alike, and floats may differ by a millionth.

    Example:
        >>> same((1, [2, 3]), [1, (2, 3)]), same(0.1 + 0.2, 0.3), same("1", 1)
        (True, True, False)
    """
    if isinstance(expected, (str, bytes, bytearray)) or isinstance(answer, (str, bytes, bytearray)):
        return type(answer) is type(expected) and answer == expected
    if isinstance(expected, Mapping):
        return (
            isinstance(answer, Mapping)
            and len(answer) == len(expected)
            and all(key in answer and same(answer[key], value) for key, value in expected.items())
        )
    if isinstance(expected, Sequence):
        return (
            isinstance(answer, Sequence)
            and len(answer) == len(expected)
            and all(same(left, right) for left, right in zip(answer, expected, strict=True))
        )
    if isinstance(expected, Set):
        return isinstance(answer, Set) and answer == expected
    if isinstance(answer, float) or isinstance(expected, float):
        numbers = isinstance(answer, (int, float)) and isinstance(expected, (int, float))
        return numbers and math.isclose(answer, expected, rel_tol=1e-6, abs_tol=1e-9)  # type: ignore[arg-type]
    return bool(answer == expected)


def shortened(value: object, limit: int = _MAX_VALUE) -> str:
    """Return the `repr` of a value, without its middle if it is long.

    Example:
        >>> shortened("abc"), shortened("abcdefghijkl", limit=12)
        ("'abc'", "'abcd ... l'")
    """
    try:
        text = repr(value)
    except Exception as error:  # the reader's class
        return f"an object whose repr raises {type(error).__name__}"
    text = " ".join(text.split("\n"))
    if len(text) <= limit:
        return text
    tail = (limit - 5) // 3
    return f"{text[: limit - 5 - tail]} ... {text[len(text) - tail :]}"


def _described(answer: object) -> str:
    """Return the text of a result, with the usual reason for a surprising one."""
    if answer is None:
        return "None (is a `return` missing?)"
    if isinstance(answer, Iterator):
        return f"{shortened(answer)} (make a list of it with `list(...)`)"
    return shortened(answer)


def _call(function: Any, arguments: tuple[Any, ...]) -> str:
    name = getattr(function, "__name__", None) or type(function).__name__
    each = max(24, _MAX_CALL // max(1, len(arguments)))
    return f"{name}({', '.join(shortened(argument, each) for argument in arguments)})"


def _copy(value: Any) -> Any:
    """Copy lists, dictionaries and sets, at every depth; other objects stay as they are."""
    if type(value) in (list, tuple):
        return type(value)(_copy(item) for item in value)
    if type(value) is dict:
        return {key: _copy(item) for key, item in value.items()}
    if type(value) in (set, bytearray):
        return value.copy()
    return value
