"""What ends a worker in the middle of its work."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any


def kill_once(record: Path) -> Callable[[], None]:
    """A function that ends the process that first calls it, with SIGKILL, and writes its id to a file.

    It is sent to workers by value, for they do not see the tests.
    """
    name = str(record)

    def kill() -> None:
        try:
            with open(name, "x", encoding="utf-8") as file:  # noqa: PTH123
                file.write(str(os.getpid()))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    return kill


def killed_after(work: Callable[..., Any], kill: Callable[[], None]) -> Callable[..., Any]:
    """The function, whose process is killed when it has its result, and before the engine has it."""

    def works(*arguments: Any) -> Any:
        result = work(*arguments)
        kill()
        return result

    return works
