"""What the targets in Python share: errors that are allowed, broken files, and the loop of atheris.

Importing it makes the modules of `tests/support` importable.
"""

from __future__ import annotations

import copy
import json
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import atheris

from bpe_tokenizer.errors import TokenizerError

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "support"))
from mutations import INSERTED, NUMBERS, VALUES

__all__ = ["broken", "expected_errors", "fuzz", "put"]

# Files in memory: a target writes thousands in a second.
_MEMORY = Path("/dev/shm")
_MAX_MESSAGE = 300
# In the place of any value of a JSON document: the values of the tests, and more.
_VALUES: list[Any] = [*VALUES, 0, 1, 256, float("inf"), "(a*)*b", "<s>", "Ġ", "\ud800", [{}], ["a", "b"]]


@contextmanager
def expected_errors(name: str = "") -> Iterator[None]:
    """A block that may end with an error of the package, whose message is short and names the file."""
    try:
        yield
    except TokenizerError as error:
        message = str(error)
        # The directory of a file may have any length.
        problem = message.rpartition(name)[2] if name else message
        if not problem or len(problem) > _MAX_MESSAGE or name not in message:
            raise AssertionError(f"the message of {type(error).__name__} is {message!r}") from error


def broken(provider: atheris.FuzzedDataProvider, data: bytes, document: Any = None) -> bytes:
    """A sound file with changes; of a JSON document, often of its values."""
    if document is not None and provider.ConsumeBool():
        document = copy.deepcopy(document)
        for _ in range(provider.ConsumeIntInRange(1, 3)):
            document = _change_value(provider, document)
        data = json.dumps(document, ensure_ascii=provider.ConsumeBool()).encode("utf-8", "surrogatepass")
        if provider.ConsumeIntInRange(0, 3):
            return data
    for _ in range(provider.ConsumeIntInRange(0, 4)):
        data = _change_bytes(provider, data)
    return data


def _change_bytes(provider: atheris.FuzzedDataProvider, data: bytes) -> bytes:
    # Headers are where the harm is done.
    limit = min(len(data), 200) if provider.ConsumeBool() else len(data)
    at, kind = provider.ConsumeIntInRange(0, max(limit - 1, 0)), provider.ConsumeIntInRange(0, 7)
    length = provider.ConsumeIntInRange(1, 64)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + data[at + length :]
    if kind == 2:
        return data[: at + length] + data[at:]
    if kind == 3:
        inserted: bytes = provider.PickValueInList(list(INSERTED))
        return data[:at] + inserted + data[at:]
    if kind == 4:
        width: int = provider.PickValueInList([1, 4, 8])
        value: int = provider.PickValueInList(list(NUMBERS)) % 256**width
        return data[:at] + value.to_bytes(width, "little") + data[at + width :]
    new: bytes = provider.ConsumeBytes(length)
    return data[:at] + new + data[at + (len(new) if kind < 7 else 0) :]


def _change_value(provider: atheris.FuzzedDataProvider, document: Any) -> Any:
    """Replace, drop, rename, double or move a value anywhere."""
    owner: Any = {"": document}
    key: Any = ""
    for _ in range(provider.ConsumeIntInRange(1, 8)):
        value = owner[key]
        if not isinstance(value, dict | list) or not value:
            break
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        owner, key = value, provider.PickValueInList(keys)
    root = {"": document} if owner == {"": document} else None
    kind = provider.ConsumeIntInRange(0, 5)
    if root is not None:
        return provider.PickValueInList(_VALUES) if kind == 0 else document
    if kind == 0:
        del owner[key]
    elif kind == 1 and isinstance(owner, dict):
        owner[provider.PickValueInList(["", "type", f"{key}s", "\0", "id"])] = owner.pop(key)
    elif kind == 1:
        owner.append(owner[key])
    elif kind == 2:
        keys = list(owner) if isinstance(owner, dict) else list(range(len(owner)))
        owner[key] = copy.deepcopy(owner[provider.PickValueInList(keys)])
    elif kind == 3 and isinstance(owner[key], int):
        owner[key] += provider.ConsumeIntInRange(-3, 3)
    else:
        owner[key] = copy.deepcopy(provider.PickValueInList(_VALUES))
    return document


def put(path: Path, data: bytes) -> Path:
    """Write a file and return its path."""
    path.write_bytes(data)
    return path


def fuzz(check: Callable[[atheris.FuzzedDataProvider, Path], None]) -> None:
    """Run a target for ever, or as long as its arguments say, with a directory for its files."""
    warnings.simplefilter("ignore")
    logging.disable()
    memory = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory, prefix="bpe-tokenizer-fuzz-") as directory:

        def test_one(data: bytes) -> None:
            check(atheris.FuzzedDataProvider(data), Path(directory))

        atheris.Setup(sys.argv, test_one)
        atheris.Fuzz()
