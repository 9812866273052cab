"""The container of a GGUF file: every type of value, and files that break off or claim too much."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gguf_files
from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats.gguf import file
from bpe_tokenizer.formats.gguf.file import ValueType, read_metadata, write_metadata
from gguf_files import HELLO, byte_level, load, read, refusal

VALUES: list[tuple[str, ValueType, Any]] = [
    ("a.u8", ValueType.UINT8, 255),
    ("a.i8", ValueType.INT8, -128),
    ("a.u16", ValueType.UINT16, 65535),
    ("a.i16", ValueType.INT16, -32768),
    ("a.u32", ValueType.UINT32, 2**32 - 1),
    ("a.i32", ValueType.INT32, -(2**31)),
    ("a.u64", ValueType.UINT64, 2**64 - 1),
    ("a.i64", ValueType.INT64, -(2**63)),
    ("a.f32", ValueType.FLOAT32, 0.5),
    ("a.f64", ValueType.FLOAT64, 0.1),
    ("a.yes", ValueType.BOOL, True),
    ("a.no", ValueType.BOOL, False),
    ("a.text", ValueType.STRING, "日本"),
    ("a.empty", ValueType.STRING, ""),
    ("a.strings", ValueType.STRING, ["a", "", "b\0c"]),
    ("a.numbers", ValueType.INT32, [1, -1]),
    ("a.none", ValueType.STRING, []),
    ("a.floats", ValueType.FLOAT32, [0.5]),
    ("a.last", ValueType.STRING, ["a", ""]),
]


TEXTS = ("a.strings", "a.last")


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | _core.Strings) else value


@pytest.mark.parametrize("window", [None, 1, 7, 40])
def test_every_type_of_value_comes_back_however_it_is_read(
    path: Path, window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if window is not None:
        monkeypatch.setattr(file, "_WINDOW", window)
    data = write_metadata(VALUES)
    path.write_bytes(data)
    for kept in (VALUES, VALUES[::2], VALUES[1::2]):
        values = read_metadata(path, {key for key, _, _ in kept}.__contains__).values
        assert values.keys() == {key for key, _, _ in kept}
        for key, _, value in kept:
            expected = [text.encode() for text in value] if key in TEXTS else value
            assert (type(plain(values[key])), plain(values[key])) == (type(value), expected)
    for end in range(len(data)):
        path.write_bytes(data[:end])
        for kept in (VALUES, []):
            with pytest.raises(FormatError, match=r"model\.gguf"):
                read_metadata(path, lambda key, kept=kept: bool(kept))  # type: ignore[misc]
    path.write_bytes(data + b"tensors, which nobody reads")
    assert len(read(path).values) == len(VALUES)


def test_the_bytes_of_a_file() -> None:
    header = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)  # version, tensors, pairs
    pair = struct.pack("<Qs", 1, b"k") + struct.pack("<IB", 0, 7)
    assert write_metadata([("k", ValueType.UINT8, 7)]) == header + pair


def test_versions(path: Path) -> None:
    data = write_metadata(VALUES)
    path.write_bytes(data[:4] + struct.pack("<I", 2) + data[8:])
    assert len(read(path).values) == len(VALUES)
    for version, problem in ((1, "version 1 is not"), (4, "version 4 is not"), (3 << 24, "big-endian")):
        path.write_bytes(data[:4] + struct.pack("<I", version) + data[8:])
        assert problem in refusal(path)


@pytest.mark.parametrize("size", [0, 1, 40, 100_000, 3_000_000])
@pytest.mark.parametrize("moment", ["a", "b", "c", "d"])
def test_a_file_that_another_process_cuts_off_is_an_error_where_it_is_read(
    path: Path, moment: str, size: int
) -> None:
    strings = ["low", "lower " * 1000] * 400
    rows: list[tuple[str, ValueType, Any]] = [
        ("a", ValueType.STRING, strings),
        ("b", ValueType.INT32, [1] * 500_000),
        ("c", ValueType.STRING, strings),
        ("d", ValueType.BOOL, True),
    ]
    path.write_bytes(write_metadata(rows))
    assert 6_000_000 < path.stat().st_size < 9_000_000

    def wanted(key: str) -> bool:
        if key == moment:
            os.truncate(path, size)
        return key in "ac"

    if moment == "d":  # the rest is read already
        assert read_metadata(path, wanted).values.keys() == set("ac")
    else:
        with pytest.raises(FormatError, match=r"model\.gguf: .*the file ends here"):
            read_metadata(path, wanted)


KEY = struct.pack("<Q", 1) + b"k"
HUGE, SHORT = struct.pack("<Q", 2**63), struct.pack("<Q", 8)
PART_OF_A_FILE = struct.pack("<Q", 5000) + b"tokenizer.\0\t\x1b" + b"x" * 4987


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (HUGE, "claims a string"),
        (struct.pack("<Q", 0), "the key is empty"),
        (struct.pack("<Q", 1) + b"\xff", "is not UTF-8"),
        (KEY + struct.pack("<I", 13), "unknown value type 13"),
        (PART_OF_A_FILE + struct.pack("<I", 13), "unknown value type 13"),
        (KEY + struct.pack("<I", 8) + HUGE, "claims a string"),
        (KEY + struct.pack("<IIQ", 9, 9, 1), "array of arrays"),
        (KEY + struct.pack("<II", 9, 8) + HUGE, f": k: claims {2**63} strings; the file has 0 more bytes"),
        (KEY + struct.pack("<II", 9, 12) + HUGE, f": k: claims {2**63} items of 8 bytes; the file has 0 "),
        (KEY + struct.pack("<IIQ", 9, 8, 2) + SHORT + b"12345678", "string 1 starts after the end"),
        (KEY + struct.pack("<IIQ", 9, 8, 1) + HUGE + b"12345678", "string 0 continues after the end"),
    ],
)
def test_claims_are_checked_before_anything_is_made_of_them(path: Path, data: bytes, problem: str) -> None:
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + data)
    message = refusal(path)
    assert problem in message
    assert len(message) < len(str(path)) + 160
    assert "\0" not in message


def test_pairs_that_are_too_many_or_twice(path: Path) -> None:
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 2**40))
    assert "claims 1099511627776 metadata pairs" in refusal(path)
    for name in ("k", "k" * 5000):
        path.write_bytes(write_metadata([(name, ValueType.BOOL, True)] * 2))
        assert "duplicate key 'k" in refusal(path)
        assert len(refusal(path)) < len(str(path)) + 160


def test_limits_of_the_container(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"GGUF")
    assert refusal(path) == f"{path}: the header: the file ends here"
    longest = "k" * (2**16 - 1)
    path.write_bytes(write_metadata([(longest, ValueType.STRING, "to the end")]))
    assert read(path).values == {longest: "to the end"}
    path.write_bytes(write_metadata([(longest + "k", ValueType.BOOL, True)]))
    assert "metadata pair 0: claims a string of 65536 bytes; the limit is 65535" in refusal(path)
    path.write_bytes(write_metadata([("k", ValueType.STRING, "x" * 100)]))
    monkeypatch.setattr(file, "_MAX_METADATA", 60)
    assert "k: claims a string of 100 bytes; the limit for metadata is 60 bytes" in refusal(path)
    monkeypatch.undo()
    path.write_bytes(path.read_bytes()[:-1])
    assert "k: claims a string of 100 bytes; the file has 99 more bytes" in refusal(path)


def test_what_is_no_gguf_file(path: Path, tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path)
    assert "cannot be read" in refusal(tmp_path / "nothing.gguf")
    path.write_bytes(b"")
    assert "is empty" in refusal(path)
    path.write_bytes(b'{"version": "1.0"}')
    assert "not a GGUF file" in refusal(path)


def test_only_the_metadata_of_a_large_file_is_read(path: Path) -> None:
    byte_level(path, HELLO)
    with path.open("r+b") as file:
        file.truncate(1 << 36)  # takes no space
    assert load(path).encode("hello") == [259]


def test_the_first_file_of_several_is_asked_for(path: Path) -> None:
    gguf_files.write(path, {"general.architecture": "llama", "split.no": 2, "split.count": 3})
    assert "part 3 of a model in several files" in refusal(path)
    assert load(byte_level(path, HELLO, split__no=1)).encode("hello") == [259]
