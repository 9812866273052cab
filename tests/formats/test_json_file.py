"""JSON files: what is refused, files that are replaced meanwhile, and the layout of what is written."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import FormatError
from bpe_tokenizer.formats.files import read_together
from bpe_tokenizer.formats.json_file import Field, write_json


@pytest.mark.parametrize(("length", "shown"), [(100, "a" * 100), (101, "a" * 50)])
def test_a_message_cuts_a_value_that_does_not_fit(length: int, shown: str) -> None:
    value = "a" * length
    path = Path("d" * (300 - len(": must be an array, not ''") - 100))
    with pytest.raises(FormatError, match=f"must be an array, not '{shown}") as error:
        Field(path, "", value).values()
    assert len(str(error.value)) == 300
    assert ("..." in str(error.value)) == (length > 100)


# -- files that another process replaces meanwhile ------------------------------------------------------


class Files:
    """Two files, and a reader of both that another process may disturb."""

    def __init__(self, directory: Path) -> None:
        self.paths = [directory / "a", directory / "b"]
        self.reads = 0
        self.replacements: Iterator[int] = itertools.count(1)
        self.replace()

    def replace(self) -> None:
        """Save both anew; files of other sizes are other files."""
        size = next(self.replacements)
        for path in self.paths:
            path.write_bytes(b"x" * size)

    def reader(self, disturbed: int, problem: str = "") -> Callable[[], tuple[int, int]]:
        """Reads both, between which the first reads are disturbed; each disturbed read may be refused."""

        def read() -> tuple[int, int]:
            self.reads += 1
            first = self.paths[0].stat().st_size
            if self.reads <= disturbed:
                self.replace()
                if problem:
                    raise FormatError(problem)
            return first, self.paths[1].stat().st_size

        return read


def test_files_are_read_again_if_one_is_replaced_meanwhile(tmp_path: Path) -> None:
    for problem in ("", "half"):
        files = Files(tmp_path)
        assert read_together(files.reader(2, problem), files.paths) == (3, 3)
        assert files.reads == 3


def test_files_that_rest_are_read_once(tmp_path: Path) -> None:
    files = Files(tmp_path)
    assert read_together(files.reader(0), [*files.paths, tmp_path / "absent", Path("\0")]) == (1, 1)
    assert files.reads == 1

    def refuse() -> None:
        files.reads += 1
        raise FormatError("broken")

    with pytest.raises(FormatError, match="broken"):
        read_together(refuse, files.paths)
    assert files.reads == 2


def test_the_reading_of_files_without_rest_ends(tmp_path: Path) -> None:
    files = Files(tmp_path)
    assert read_together(files.reader(10**9), files.paths)[0] == files.reads
    with pytest.raises(FormatError, match="half"):
        read_together(files.reader(10**9, "half"), files.paths)


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
