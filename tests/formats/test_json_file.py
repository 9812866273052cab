"""JSON files: what is refused, files that are replaced meanwhile, and the layout of what is written."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import FormatError
from bpe_tokenizer.formats.files import read_together
from bpe_tokenizer.formats.json_file import Field, write_json


@pytest.mark.parametrize("value", [0, 2**32 - 2])
def test_the_smallest_and_the_largest_id(value: int) -> None:
    assert Field(Path("x"), "y", value).id() == value


@pytest.mark.parametrize(("length", "shown"), [(100, "a" * 100), (101, "a" * 50)])
def test_a_message_cuts_a_value_that_does_not_fit(length: int, shown: str) -> None:
    value = "a" * length
    path = Path("d" * (300 - len(": must be an array, not ''") - 100))
    with pytest.raises(FormatError, match=f"must be an array, not '{shown}") as error:
        Field(path, "", value).values()
    assert len(str(error.value)) == 300
    assert ("..." in str(error.value)) == (length > 100)


def test_files_that_are_always_replaced_are_not_read_for_ever(tmp_path: Path) -> None:
    """tests/test_atomic.py has two programs that save, and one that reads."""
    path = tmp_path / "a"
    reads = itertools.count(1)

    def read() -> int:
        number = next(reads)
        path.write_bytes(b"x" * number)  # a file of another size is another file
        return number

    assert read_together(read, [path]) < 1000


# -- writing --------------------------------------------------------------------------------------------


LONG = [f'    "{name}": 0' for name in "abcdefghijklmnopq"]
DEEP = "[\n              0\n            ]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"é": "\n"}, '{\n  "é": "\\n"\n}'),
        # One line for what holds no other, unless it is a vocabulary.
        ({"a": {"b": 1, "c": (2, None)}}, '{\n  "a": {\n    "b": 1,\n    "c": [2, null]\n  }\n}'),
        ({"a": dict.fromkeys("abcdefghijklmnop", 0)}, None),
        ({"a": dict.fromkeys("abcdefghijklmnopq", 0)}, '{\n  "a": {\n' + ",\n".join(LONG) + "\n  }\n}"),
        (
            {"a": [{"b": [{"c": [[1]]}]}]},
            json.dumps({"a": [{"b": [{"c": [[0]]}]}]}, indent=2).replace(DEEP, "[1]"),
        ),
    ],
)
def test_the_layout(value: Any, text: str | None) -> None:
    assert write_json(value) == (text or '{\n  "a": ' + json.dumps(value["a"]) + "\n}")
    assert json.loads(write_json(value)) == json.loads(json.dumps(value))


@pytest.mark.parametrize(
    ("value", "problem"), [({1: 2}, "a key is not a string"), ({"a": {1, 2}}, "set"), ({"a": 1e999}, "JSON")]
)
def test_what_json_cannot_hold(value: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        write_json(value)
