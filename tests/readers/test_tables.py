"""Columns of Parquet and Arrow files: right rows, or an error that names the file."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import CorpusError
from bpe_tokenizer.readers import ReadOptions, find_inputs, read_batches

pa: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")

BROKEN = """
import pathlib, random, sys
from bpe_tokenizer.corpus.plan import _row_groups
from bpe_tokenizer.errors import TokenizerError
from bpe_tokenizer.readers import ReadOptions, find_inputs, read_batches

path, start, step = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
whole = path.read_bytes()
source = random.Random(start)
for place in range(start, len(whole), step):
    data = bytearray(whole)
    data[place] ^= source.choice((1, 8, 64, 255))
    path.write_bytes(data)
    try:
        for batch in read_batches(find_inputs(path), ReadOptions(on_error="skip"), threads=1):
            batch.texts()
        list(_row_groups(find_inputs(path)[0], 100))
    except TokenizerError as error:
        assert path.name in str(error) and len(str(error)) <= 300, str(error)
print("survived")
"""


def rows_of(path: Path) -> tuple[dict[int, bytes], dict[int, str]]:
    found: dict[int, bytes] = {}
    bad: dict[int, str] = {}
    for batch in read_batches(find_inputs(path), ReadOptions(on_error="skip"), threads=1):
        ends = batch.offsets.tolist()
        for row, (start, end) in zip(batch.rows.tolist(), pairwise(ends), strict=True):
            found[row] = batch.data[start:end].tobytes()
        bad |= {row.row: row.problem for row in batch.bad}
    return found, bad


def write_arrow(path: Path, array: Any, new: Any = pa.ipc.new_file) -> Path:
    batch = pa.RecordBatch.from_arrays([array], ["text"])
    with new(str(path), batch.schema) as file:
        file.write_batch(batch)
    return path


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream", "dictionary"])
def test_a_changed_byte_never_ends_the_process(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ("broken.parquet" if kind == "parquet" else "broken.arrow")
    table = pa.table({"text": ["low", None, "naïve", "low"] * 3})
    if kind == "parquet":  # every byte of the footer
        parquet.write_table(table, path, row_group_size=5, store_schema=False)
        data = path.read_bytes()
        start, step = len(data) - 8 - int.from_bytes(data[-8:-4], "little"), 1
    else:
        texts = table.column("text").combine_chunks()
        texts = texts.dictionary_encode() if kind == "dictionary" else texts.cast(pa.string_view())
        write_arrow(path, texts, pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file)
        start, step = 8, 5
    command = [sys.executable, "-c", BROKEN, str(path), str(start), str(step)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr[-2000:]


@pytest.mark.parametrize(
    "kind", ["string", "large_binary", "string_view", "dictionary", "dictionary of views"]
)
def test_rows_of_every_type(tmp_path: Path, kind: str) -> None:
    source = random.Random(kind)
    words: list[str | None] = [None, "", "low", "日本" * 9, "a" * 5000]
    texts = [source.choice(words) for _ in range(3000)]
    array = pa.array(texts, pa.string())
    if kind.startswith("dictionary"):
        array = array.dictionary_encode()
        if kind.endswith("views"):
            array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.string_view()))
    else:
        array = array.cast(kind)
    paths = [write_arrow(tmp_path / "a.arrow", array)]
    if "view" not in kind:
        paths.append(tmp_path / "a.parquet")
        parquet.write_table(pa.table({"text": array}), paths[-1], row_group_size=700)
    for path in paths:
        good = {row: text.encode() for row, text in enumerate(texts, 1) if text is not None}
        bad = {row: "is null" for row, text in enumerate(texts, 1) if text is None}
        assert rows_of(path) == (good, bad)


def test_what_a_null_row_has_in_memory_is_not_read(tmp_path: Path) -> None:
    array = pa.array(["low", None, "d" * 30], pa.string_view())
    bits, views, *data = array.buffers()
    garbage = np.frombuffer(views, np.uint8).copy()
    garbage[16:32] = 255
    broken = pa.Array.from_buffers(array.type, 3, [bits, pa.py_buffer(garbage), *data])
    indices = pa.array([2, 1, None, 0])
    named = pa.DictionaryArray.from_arrays(indices, broken, safe=False)
    expected = {1: b"low", 3: b"d" * 30}, {2: "is null"}
    assert rows_of(write_arrow(tmp_path / "a.arrow", broken)) == expected
    expected = {1: b"d" * 30, 4: b"low"}, {2: "is null", 3: "is null"}
    assert rows_of(write_arrow(tmp_path / "b.arrow", named)) == expected


def test_an_empty_row_within_a_character(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, 2, 2, 4], np.int32))
    array = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer("aéb".encode())])
    good, bad = rows_of(write_arrow(tmp_path / "a.arrow", array))
    assert good == {2: b""}
    assert {row: problem.split()[4] for row, problem in bad.items()} == {1: "0xc3", 3: "0xa9"}


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_column_of_nulls_alone(tmp_path: Path, suffix: str) -> None:
    path, array = tmp_path / f"nulls.{suffix}", pa.nulls(5)
    if suffix == "parquet":
        parquet.write_table(pa.table({"text": array}), path)
    else:
        write_arrow(path, array)
    assert rows_of(path) == ({}, dict.fromkeys(range(1, 6), "is null"))
    with pytest.raises(CorpusError, match=rf"nulls\.{suffix}, row 1 is null"):
        list(read_batches(find_inputs(path), ReadOptions()))
