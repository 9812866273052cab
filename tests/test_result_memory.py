"""The memory of a large array of ids is used again, but never while anything refers to it."""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bpe_tokenizer import BPETokenizer

# Whose ids take some megabytes.
_TEXT = "low lower lowest 0123456789 " * 100_000
# Whose ids take more than 32 MiB: C's allocator gives back such memory at once, whatever was freed before.
_LARGE = _TEXT * 8
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
def test_the_next_array_uses_the_memory_of_the_last(way: str, tokenizer: BPETokenizer, path: Path) -> None:
    encode = _WAYS[way]
    first = encode(tokenizer, _TEXT, path)
    expected, place = first.copy(), address(first)
    del first
    # If the system had the memory back, it could give it here.
    others = [np.empty_like(expected) for _ in range(4)]
    second = encode(tokenizer, _TEXT, path)
    assert address(second) == place
    del others
    third = encode(tokenizer, _TEXT, path)
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


def test_texts_of_similar_lengths_share_the_memory(tokenizer: BPETokenizer) -> None:
    dense = "0123456789" * 300_000
    for text in (_TEXT, dense):
        places = set()
        for cut in (1, 100, 3, 50, 2):
            ids = tokenizer.encode_to_numpy(text[cut:])
            places.add(address(ids))
            del ids
        assert len(places) == 1


def resident() -> int:
    """The bytes of memory that the process has."""
    path = Path("/proc/self/statm")
    if not path.exists():
        pytest.skip("the system does not say how much memory a process has")
    return int(path.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("free", [BPETokenizer.clear_cache, lambda tokenizer: tokenizer.limit_cache(1 << 20)])
def test_the_memory_can_be_freed(tokenizer: BPETokenizer, free: Callable[[BPETokenizer], None]) -> None:
    size = tokenizer.encode_to_numpy(_LARGE).nbytes
    before = resident()
    free(tokenizer)
    assert before - resident() > size / 2


def test_an_array_keeps_no_memory_of_a_tokenizer_that_is_gone(tokenizer: BPETokenizer) -> None:
    gone = pickle.loads(pickle.dumps(tokenizer))
    kept, size = gone.encode_to_numpy(_TEXT), gone.encode_to_numpy(_LARGE).nbytes
    before = resident()
    del gone
    gc.collect()
    assert before - resident() > size / 2
    assert kept.nbytes == size // 8
