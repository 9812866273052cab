"""How much the rendering of a template may do, as a factor of the default."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from bpe_tokenizer.errors import ArgumentTypeError, OptionError, shorten

__all__ = ["check_template_budget", "scaled", "template_budget"]


class _State(threading.local):
    factor: float = 1.0


_STATE = _State()


def check_template_budget(factor: float) -> None:
    """Check the argument of `template_budget`.

    Raises:
        ArgumentTypeError: The factor is not a number.
        OptionError: It is not positive, or an integer beyond the floats.
    """
    if isinstance(factor, bool) or not isinstance(factor, (int, float)):
        raise ArgumentTypeError(f"template_budget must be a number, not {type(factor).__name__}")
    if not factor > 0:
        raise OptionError(f"template_budget is {shorten(factor)}; it must be greater than 0")
    try:
        float(factor)
    except OverflowError:
        raise OptionError(f"template_budget is {shorten(factor)}; math.inf is no limit") from None


def template_budget(factor: float) -> AbstractContextManager[None]:
    """Multiply the budget of Jinja templates that this thread compiles or renders inside the block.

    A template is code that comes with a model's files. So its operations, characters and memory are limited:
    by a constant, and in proportion to the conversation. Raise the limit only for templates that you trust.

    Args:
        factor: The factor; `math.inf` for no limit.

    Raises:
        ArgumentTypeError: The factor is not a number.
        OptionError: It is not positive, or an integer beyond the floats.

    >>> from bpe_tokenizer import ChatTemplate
    >>> ChatTemplate.register("long", "{{ '-' * 10**8 }}")
    >>> with template_budget(10):
    ...     len(ChatTemplate.get_template("long")([{"role": "user", "content": "Hi"}]))
    100000000
    >>> ChatTemplate.unregister("long")
    """
    check_template_budget(factor)
    return _multiplied(factor)


@contextmanager
def _multiplied(factor: float) -> Iterator[None]:
    previous, _STATE.factor = _STATE.factor, float(factor)
    try:
        yield
    finally:
        _STATE.factor = previous


def scaled(limit: float) -> float:
    """Return a default limit, multiplied by the factor of the surrounding `template_budget`."""
    return limit * _STATE.factor
