"""The memory of a large array of ids is used again, but never while anything refers to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bpe_tokenizer import BPETokenizer

# Whose ids take some megabytes.
_TEXT = "low lower lowest 0123456789 " * 100_000
_WAYS: dict[str, Callable[[BPETokenizer, str, Path], npt.NDArray[Any]]] = {
    "one thread": lambda tokenizer, text, _: tokenizer.encode_to_numpy(text),
    "two threads": lambda tokenizer, text, _: tokenizer.encode_to_numpy(text, threads=2),
    "ragged": lambda tokenizer, text, _: tokenizer.encode_ragged([text, text])[0],
    "files": lambda tokenizer, text, path: tokenizer.encode_files([path], threads=2)[0],
}


@pytest.fixture
def tokenizer() -> BPETokenizer:
    return BPETokenizer(normalization=None).train("low lower lowest", 260, verbose=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text(_TEXT, encoding="utf-8")
    return tmp_path / "a.txt"


def address(ids: npt.NDArray[Any]) -> int:
    return ids.ctypes.data


@pytest.mark.parametrize("way", _WAYS)
def test_the_next_array_uses_the_memory_of_one_that_is_gone(
    way: str, tokenizer: BPETokenizer, path: Path
) -> None:
    encode = _WAYS[way]
    first = encode(tokenizer, _TEXT, path)
    expected, place = first.copy(), address(first)
    del first
    second = encode(tokenizer, _TEXT, path)
    assert address(second) == place
    third = encode(tokenizer, _TEXT, path)
    assert address(third) != place
    for ids in (second, third):
        assert ids.flags.writeable
        assert np.array_equal(ids, expected)


def test_a_view_keeps_its_memory(tokenizer: BPETokenizer) -> None:
    view = tokenizer.encode_to_numpy(_TEXT)[1000:2000]
    kept = view.copy()
    other = tokenizer.encode_to_numpy(_TEXT[::-1])
    other[:] = 0
    assert np.array_equal(view, kept)


def test_a_result_that_is_much_smaller_gets_memory_of_its_own(tokenizer: BPETokenizer) -> None:
    place = address(tokenizer.encode_to_numpy(_TEXT))
    small = tokenizer.encode_to_numpy(_TEXT[: len(_TEXT) // 4])
    assert address(small) != place
    assert address(tokenizer.encode_to_numpy(_TEXT)) == place


def test_clear_cache_frees_the_memory(tokenizer: BPETokenizer) -> None:
    pytest.importorskip("resource")
    text = _TEXT * 4

    def resident() -> int:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * 4096

    if not Path("/proc/self/statm").exists():
        pytest.skip("the system does not say how much memory a process has")
    size = tokenizer.encode_to_numpy(text).nbytes
    before = resident()
    tokenizer.clear_cache()
    assert before - resident() > size / 2
