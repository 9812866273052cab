"""Steps of a run of which one does not happen, as if the process died there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Died", "DyingSteps"]


class Died(BaseException):
    pass


class DyingSteps:
    """Wraps functions: of their calls, the one that makes `left` 0 raises instead. At first, none does.

    Args:
        error: Returns what is raised.
    """

    def __init__(self, error: Callable[[], BaseException] = Died) -> None:
        self.left = 0
        self._error = error

    def __call__(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def take(*arguments: Any, **options: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise self._error()
            return step(*arguments, **options)

        return take
