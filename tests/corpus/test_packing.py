"""Packing: no id is lost, the order is kept, and the masks are those of the documents."""

from __future__ import annotations

import copy
import io
import itertools
import pickle
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer.corpus import packed_shards, packing
from bpe_tokenizer.corpus.packed_shards import PackedSequences, packed_format
from bpe_tokenizer.corpus.packing import BestFitPacker, ConcatPacker, PackedIds, PackStrategy, best_fit
from bpe_tokenizer.errors import CorpusError
from token_files import flat

SIZES = st.integers(2, 9)
LENGTHS = st.lists(st.integers(0, 25), max_size=30)
CUTS = st.lists(st.integers(0, 30), max_size=4)
Packer: TypeAlias = ConcatPacker | BestFitPacker
PACKERS: dict[PackStrategy, Callable[[int], Packer]] = {"concat": ConcatPacker, "best-fit": BestFitPacker}


def documents(lengths: Sequence[int]) -> list[list[int]]:
    """Documents whose ids all differ: a thousand times the number of the document, plus the position."""
    return [[1000 * number + each for each in range(length)] for number, length in enumerate(lengths)]


def batches(rows: Sequence[Sequence[int]], cuts: Sequence[int]) -> list[tuple[Any, Any]]:
    """Divide documents into calls."""
    borders = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    return [
        (
            np.array(flat(rows[start:stop]), dtype=np.uint32),
            np.array([len(row) for row in rows[start:stop]], int),
        )
        for start, stop in itertools.pairwise(borders)
    ]


def packed(packer: Packer, rows: Sequence[Sequence[int]], cuts: Sequence[int] = ()) -> list[list[list[int]]]:
    """Return the pieces of each sequence."""
    found: list[PackedIds] = []
    for ids, lengths in batches(rows, cuts):
        found.extend(packer.add(ids, lengths))
    found.extend(packer.finish())
    sequences: list[list[list[int]]] = []
    for each in found:
        assert each.pieces.sum() == len(each.ids) == each.lengths.sum()
        assert each.counts.sum() == len(each.pieces)
        pieces = iter(np.split(each.ids, np.cumsum(each.pieces)[:-1]))
        sequences.extend([next(pieces).tolist() for _ in range(count)] for count in each.counts)
    return sequences


def concatenated(rows: Sequence[Sequence[int]], size: int) -> list[list[list[int]]]:
    """Concatenate and cut, the simple way."""
    sequences: list[list[list[int]]] = []
    room = 0
    for row in rows:
        for position, each in enumerate(row):
            if room == 0:
                sequences.append([[]])
                room = size
            elif position == 0:
                sequences[-1].append([])
            sequences[-1][-1].append(each)
            room -= 1
    return sequences


BLOCKS = st.sampled_from([1, 12, 1 << 20])


@given(LENGTHS, CUTS, SIZES, BLOCKS)
def test_concat(lengths: list[int], cuts: list[int], size: int, block: int) -> None:
    rows = documents(lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_BLOCK_TOKENS", block)
        sequences = packed(ConcatPacker(size), rows, cuts)
    assert sequences == concatenated(rows, size)
    assert flat(flat(sequences)) == flat(rows)
    assert all(len(flat(sequence)) == size for sequence in sequences[:-1])


@given(LENGTHS, CUTS, SIZES, st.sampled_from([30, 1 << 20]), BLOCKS)
def test_best_fit_packing(lengths: list[int], cuts: list[int], size: int, window: int, block: int) -> None:
    rows = documents(lengths)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "_WINDOW_TOKENS", window)
        patch.setattr(packing, "_WINDOW_SEQUENCES", 1)
        patch.setattr(packing, "_BLOCK_TOKENS", block)
        sequences = packed(BestFitPacker(size), rows, cuts)
        assert sequences == packed(BestFitPacker(size), rows)
    assert all(0 < len(flat(sequence)) <= size for sequence in sequences)
    # Every document is cut at multiples of the size only, and no part is lost.
    parts = [row[start : start + size] for row in rows for start in range(0, len(row), size)]
    assert sorted(flat(sequences)) == parts
    assert all(sequence == sorted(sequence) for sequence in sequences)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=60))
def test_best_fit_needs_few_sequences(lengths: list[int]) -> None:
    size = 12
    sequences = best_fit(np.array(lengths), size)
    assert sorted(flat(sequences)) == list(range(len(lengths)))
    fill = [sum(lengths[piece] for piece in sequence) for sequence in sequences]
    assert max(fill) <= size
    # Any two sequences together are too long for one: else the later one's pieces would be in the first.
    assert sum(each <= size // 2 for each in fill) <= 1


@pytest.mark.parametrize("strategy", list(PACKERS))
@given(LENGTHS, CUTS, SIZES)
def test_npy(strategy: PackStrategy, lengths: list[int], cuts: list[int], size: int) -> None:
    rows = documents(lengths)
    files = [io.BytesIO() for _ in range(3)]
    shard = packed_format("npy", size, strategy, pad_id=65_535).open(files, "uint16")
    for batch in batches(rows, cuts):
        shard.write(*batch)
    shard.finish()
    arrays: list[npt.NDArray[Any]] = [np.load(io.BytesIO(file.getvalue())) for file in files]
    found = PackedSequences(*arrays)
    packer = PACKERS[strategy](size)
    expected = packed(packer, rows)
    assert found.ids.dtype == np.uint16
    assert found.ids.shape == (len(expected), size)
    assert found.lengths.tolist() == [len(flat(sequence)) for sequence in expected]
    ids = [[*flat(each), *[65_535] * (size - len(flat(each)))] for each in expected]
    assert found.ids.tolist() == ids
    # The masks, the simple way.
    numbers = [flat([[number] * len(piece) for number, piece in enumerate(each)]) for each in expected]
    numbers = [[*each, *[-1] * (size - len(each))] for each in numbers]
    assert found.document_ids(0, len(expected)).tolist() == numbers
    starts = found.position_ids(0, len(expected))
    for row, sequence in enumerate(expected):
        positions = flat([range(len(piece)) for piece in sequence])
        assert starts[row, : len(positions)].tolist() == positions
        assert starts[row, len(positions) :].tolist() == list(range(size - len(positions)))
        borders = found.cu_seqlens(row, row + 1)
        pieces = [len(piece) for piece in sequence]
        padding = [size - sum(pieces)] if sum(pieces) < size else []
        assert np.diff(borders).tolist() == [*pieces, *padding]
        assert found.document_ids(row, row + 1).tolist() == [numbers[row]]
    assert found.cu_seqlens(0, len(expected)).tolist() == found.borders.tolist()


@pytest.mark.parametrize("strategy", list(PACKERS))
def test_parquet(strategy: PackStrategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = import_module("pyarrow.parquet")
    monkeypatch.setattr(packed_shards, "_ROW_GROUP_TOKENS", 16)
    rows = documents([3, 9, 0, 5, 5, 1, 2, 20, 4])
    contents = []
    for cuts in ([], [1, 2, 5]):
        path = tmp_path / f"{len(cuts)}.parquet"
        with path.open("wb") as file:
            shard = packed_format("parquet", 8, strategy).open([file], "uint32")
            for batch in batches(rows, cuts):
                shard.write(*batch)
            shard.finish()
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]
    table = parquet.read_table(path)
    assert table.schema.field("input_ids").type == pyarrow.list_(pyarrow.uint32())
    packer = PACKERS[strategy](8)
    expected = packed(packer, rows)
    assert table["input_ids"].to_pylist() == [flat(each) for each in expected]
    assert table["seq_lengths"].to_pylist() == [[len(piece) for piece in each] for each in expected]
    assert table["position_ids"].to_pylist() == [
        flat([range(len(piece)) for piece in each]) for each in expected
    ]
    assert parquet.ParquetFile(path).num_row_groups == -(-len(expected) // 2)


def test_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    form = packed_format("npy", 4)
    paths = [tmp_path / f"tokens-00000{suffix}" for suffix in form.suffixes]
    files = [path.open("wb") for path in paths]
    shard = form.open(files, "uint32")
    shard.write(np.arange(70_000, 70_009, dtype=np.uint32), np.array([9]))
    shard.finish()
    for file in files:
        file.close()
    found = PackedSequences.load(paths[0])
    assert found.ids.tolist()[0] == [70_000, 70_001, 70_002, 70_003]
    assert found.cu_seqlens(1, 3).tolist() == [0, 4, 5, 8]
    sent = pickle.dumps(found)
    assert bytes(found.ids[:1]) not in sent
    monkeypatch.chdir(tmp_path)
    relative = pickle.dumps(PackedSequences.load(paths[0].name))
    monkeypatch.chdir("/")
    for arrived in (pickle.loads(sent), pickle.loads(relative), copy.copy(found)):
        assert isinstance(arrived, PackedSequences)
        assert isinstance(arrived.ids, np.memmap)
        assert [each.tolist() for each in arrived[:3]] == [each.tolist() for each in found[:3]]
    # Arrays of any other origin are sent themselves: views, changed copies, arrays in memory.
    changed = np.load(paths[0], mmap_mode="c")
    changed[0, 0] = 1
    for other in (
        PackedSequences(found.ids[::-1], found.borders[:], found.lengths[::-1]),
        found._replace(ids=changed),
        PackedSequences(found.ids.astype(np.uint32), np.array(found.borders), np.array(found.lengths)),
    ):
        again = pickle.loads(pickle.dumps(other))
        assert [each.tolist() for each in again[:3]] == [each.tolist() for each in other[:3]]
    np.save(paths[2], np.zeros(7, dtype=np.int32))
    with pytest.raises(CorpusError, match="not files of one packed shard"):
        PackedSequences.load(str(paths[0]))
    paths[1].unlink()
    with pytest.raises(CorpusError, match="cannot be read"):
        PackedSequences.load(paths[0])
