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


def killed_around(
    work: Callable[..., Any], owner: type, name: str, before: Path, *after: Path
) -> Callable[..., Any]:
    """The function, whose process is killed before or after it calls a method. Paths: as of `kill_once`."""
    kill, *kills = map(kill_once, (before, *after))

    def works(*arguments: Any) -> Any:
        method = getattr(owner, name)

        def called(*given: Any) -> Any:
            kill()
            result = method(*given)
            for each in kills:
                each()
            return result

        setattr(owner, name, called)
        try:
            return work(*arguments)
        finally:
            setattr(owner, name, method)

    return works
