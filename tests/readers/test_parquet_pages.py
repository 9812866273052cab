"""Parquet columns of long texts, read in steps: they give what pyarrow gives, in bounded memory."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bpe_tokenizer import CorpusError, _core
from bpe_tokenizer.readers import Position, ReadOptions, columns, find_inputs, parquet_pages, read_batches

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

CODECS = ("none", "snappy", "gzip", "zstd")
SKIP = ReadOptions(on_error="skip")
Rows = tuple[list[tuple[int, bytes]], list[tuple[int, str]]]


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Read every column in steps. Gives the numbers of the row groups that were."""
    monkeypatch.setattr(parquet_pages, "MIN_MEAN_BYTES", 0)
    monkeypatch.setattr(parquet_pages, "_MIN_REPEATED_BYTES", 0)
    groups: list[int] = []

    def watched(table: Any, file: Any, group: int, column: str, name: str) -> Any:
        chunk = parquet_pages.long_texts(table, file, group, column, name)
        if chunk is not None:
            groups.append(group)
        return chunk

    monkeypatch.setattr(columns, "long_texts", watched)
    return groups


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave nothing to pyarrow after a start."""

    def refuse(*_: object) -> Any:
        raise AssertionError("pyarrow reads it")

    monkeypatch.setattr(columns, "_group_batches", refuse)


def read(path: Path, start: Position = Position(), groups: tuple[int, int] | None = None) -> Rows:  # noqa: B008
    rows: list[tuple[int, bytes]] = []
    bad: list[tuple[int, str]] = []
    for batch in read_batches(find_inputs(path), SKIP, start, threads=1, byte_ranges=[groups]):
        ends = batch.offsets.tolist()
        texts = [batch.data[begin:end].tobytes() for begin, end in pairwise(ends)]
        rows += zip(batch.rows.tolist(), texts, strict=True)
        bad += [(row.row, row.problem) for row in batch.bad]
    return rows, bad


def expected(values: list[bytes | None], after: int = 0) -> Rows:
    rows: list[tuple[int, bytes]] = []
    bad: list[tuple[int, str]] = []
    for row, value in enumerate(values, start=1):
        if row <= after:
            continue
        if value is None:
            bad.append((row, "is null"))
            continue
        try:
            value.decode()
            rows.append((row, value))
        except UnicodeDecodeError as error:
            bad.append((row, f"is not UTF-8: byte 0x{value[error.start]:02x} at its offset {error.start}"))
    return rows, bad


def write(path: Path, values: list[bytes | None], nullable: bool = True, **options: Any) -> None:
    field = pyarrow.field("text", pyarrow.binary(), nullable)
    other = pyarrow.field("other", pyarrow.int64())
    schema = pyarrow.schema([other, field])
    table = pyarrow.table([list(range(len(values))), pyarrow.array(values, pyarrow.binary())], schema)
    parquet.write_table(table, path, **options)


def found(path: Path, column: str) -> parquet_pages.ColumnChunk | None:
    with parquet.ParquetFile(path) as table, path.open("rb") as file:
        return parquet_pages.long_texts(table, file, 0, column, "")


def some_values(seed: int, nulls: bool = True) -> list[bytes | None]:
    source = random.Random(seed)
    words = [source.randbytes(3).hex().encode() for _ in range(30)]
    texts: list[bytes | None] = [b"", b"\xff broken", "é日本".encode()]
    texts += [b" ".join(source.choices(words, k=source.choice((0, 1, 20, 1000)))) for _ in range(40)]
    texts += source.choices(texts, k=60)
    texts += [texts[3]] * 30
    if nulls:
        texts[10:10] = [None] * 9
        texts += [None, texts[5], None]
    return texts


@pytest.mark.parametrize(
    ("codec", "version", "dictionary"), list(itertools.product(CODECS, ("1.0", "2.0"), (True, False)))
)
@pytest.mark.usefixtures("complete")
def test_all_layouts_give_the_rows(
    tmp_path: Path, used: list[int], codec: str, version: str, dictionary: bool
) -> None:
    path = tmp_path / "texts.parquet"
    cases = itertools.product(
        (True, False), (1 << 20, 1000), ({}, {"row_group_size": 40}, {"write_batch_size": 7})
    )
    for seed, (nulls, page, more) in enumerate(cases):
        values = some_values(seed, nulls)
        options: dict[str, Any] = {
            "compression": codec,
            "data_page_version": version,
            "use_dictionary": dictionary,
        }
        write(path, values, nullable=nulls, data_page_size=page, **options, **more)
        used.clear()
        assert read(path) == expected(values)
        assert used == list(range(parquet.ParquetFile(path).num_row_groups))
        for after in (1, 12, 75, len(values) - 1, len(values)):
            assert read(path, Position(0, after, 0)) == expected(values, after)


@pytest.mark.usefixtures("complete")
def test_row_groups_are_those_of_a_range(tmp_path: Path, used: list[int]) -> None:
    values = some_values(3)
    write(tmp_path / "texts.parquet", values, row_group_size=40)
    rows, bad = read(tmp_path / "texts.parquet", groups=(1, 3))
    assert used == [1, 2]
    assert {*dict(rows), *dict(bad)} == set(range(41, 121))
    assert all(values[row - 1] == text for row, text in rows)


@given(
    st.lists(st.one_of(st.none(), st.binary(max_size=40), st.just(b"again")), min_size=1, max_size=200),
    st.sampled_from(CODECS),
    st.sampled_from(("1.0", "2.0")),
    st.booleans(),
    st.integers(1, 300),
    st.integers(1, 50),
    st.integers(0, 100),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("used", "complete")
def test_any_values_and_pages(
    tmp_path: Path,
    values: list[bytes | None],
    codec: str,
    version: str,
    dictionary: bool,
    page: int,
    batch: int,
    after: int,
) -> None:
    path = tmp_path / "texts.parquet"
    options: dict[str, Any] = {
        "compression": codec,
        "data_page_version": version,
        "use_dictionary": dictionary,
    }
    write(path, values, data_page_size=page, write_batch_size=batch, **options)
    assert read(path, Position(0, after, 0)) == expected(values, after)


@pytest.mark.usefixtures("complete")
def test_long_values_and_dictionaries_in_files(
    tmp_path: Path, used: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_pages, "_DICTIONARY_BYTES", 1 << 10)
    source = random.Random(1)
    values: list[bytes | None] = [source.randbytes(size).hex().encode() for size in (10, 1 << 20, 0, 300_000)]
    values += [values[1], None, values[3], values[0]]
    for codec in CODECS:
        for dictionary in (True, False):
            path = tmp_path / "texts.parquet"
            write(path, values, compression=codec, use_dictionary=dictionary, write_batch_size=1)
            assert read(path) == expected(values)
    assert len(used) == 8


def test_only_long_texts_of_known_layouts_are_read_in_steps(tmp_path: Path) -> None:
    path = tmp_path / "texts.parquet"
    long: list[bytes | None] = [b"%06d" % number * 5000 for number in range(20)]
    known = [{"compression": codec} for codec in CODECS]
    others: list[dict[str, Any]] = [
        {"compression": "brotli"},
        {"compression": "lz4"},
        {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
    ]
    for options in (*known, *others):
        write(path, long, **options)
        assert (found(path, "text") is not None) == (options in known)
        assert found(path, "other") is None
        assert read(path) == expected(long)
    write(path, some_values(1)[:50])
    assert found(path, "text") is None
    # A large dictionary whose texts are repeated.
    long = [b"%03d" % number * 30_000 for number in range(200)]
    write(path, long * 9, row_group_size=3000)
    assert found(path, "text") is not None


def test_pyarrow_reads_on_after_a_surprise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, used: list[int]
) -> None:
    original = parquet_pages.chunk_rows

    def surprised(*arguments: Any) -> Iterator[Any]:
        for number, rows in enumerate(original(*arguments)):
            if number == 3:
                raise parquet_pages.OtherLayoutError
            yield rows

    monkeypatch.setattr(columns, "chunk_rows", surprised)
    monkeypatch.setattr(parquet_pages, "_MAX_ROWS", 5)
    values = some_values(2)
    write(tmp_path / "texts.parquet", values, row_group_size=50)
    for after in (0, 3, 52):
        assert read(tmp_path / "texts.parquet", Position(0, after, 0)) == expected(values, after)
    assert used


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.usefixtures("used")
def test_broken_files_are_errors_or_give_rows(tmp_path: Path, codec: str) -> None:
    source = random.Random(codec)
    path = tmp_path / "broken.parquet"
    messages = []
    for version, dictionary in itertools.product(("1.0", "2.0"), (True, False)):
        options: dict[str, Any] = {
            "compression": codec,
            "data_page_version": version,
            "use_dictionary": dictionary,
        }
        write(path, some_values(4), data_page_size=3000, **options)
        whole = path.read_bytes()
        chunk = found(path, "text")
        assert chunk is not None
        for change in range(60):
            data = bytearray(whole)
            # Headers are in the first bytes of a page.
            near = min(chunk.end, chunk.start + 40 if change % 2 else chunk.end)
            for _ in range(source.randint(1, 3)):
                data[source.randrange(chunk.start, near)] = source.randrange(256)
            path.write_bytes(data)
            try:
                read(path)
            except CorpusError as error:
                messages.append(str(error))
    assert messages
    assert all("broken.parquet" in message and len(message) <= 300 for message in messages)


def test_a_chunk_beyond_the_end_of_the_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "texts.parquet"
    path.write_bytes(b"PAR1")
    with path.open("rb") as file:
        chunk = parquet_pages.ColumnChunk("a.parquet", "SNAPPY", 4, 1000, 3, True)
        with pytest.raises(CorpusError, match=r"a\.parquet cannot be read as Parquet: the file is truncated"):
            list(parquet_pages.chunk_rows(pyarrow, file, chunk, 0))


@given(st.lists(st.tuples(st.binary(max_size=300), st.integers(1, 400)), max_size=12), st.integers(1, 5000))
@settings(deadline=None)
def test_snappy_in_steps_gives_what_was_compressed(parts: list[tuple[bytes, int]], size: int) -> None:
    content = b"".join(part * count for part, count in parts)
    stored = pyarrow.Codec("snappy").compress(content, asbytes=True)
    decoder = _core.SnappyDecoder()
    found = [decoder.feed(stored[start : start + size]) for start in range(0, len(stored), size)]
    decoder.finish()
    assert b"".join(part for part in found if part is not None) == content


@given(st.binary(max_size=200), st.integers(1, 50))
def test_snappy_of_any_bytes_ends(data: bytes, size: int) -> None:
    decoder = _core.SnappyDecoder()
    try:
        found = [decoder.feed(data[start : start + size]) for start in range(0, len(data), size)]
        decoder.finish()
    except CorpusError:
        return
    if None not in found:
        content = b"".join(part or b"" for part in found)
        assert pyarrow.Codec("snappy").decompress(data, len(content), asbytes=True) == content


_READ = r"""
import pathlib, re, sys
from bpe_tokenizer.readers import ReadOptions, find_inputs, read_batches
total = 0
for batch in read_batches(find_inputs(sys.argv[1]), ReadOptions(), threads=1):
    total += len(batch.data)
    del batch
# Not `getrusage`, which starts with the peak of the process that starts this one.
print(total, int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("dictionary", [True, False])
def test_memory_does_not_grow_with_a_page(tmp_path: Path, dictionary: bool) -> None:
    path = tmp_path / "texts.parquet"
    peaks = []
    base = random.Random(5).randbytes(1 << 15).hex() * 16
    for count in (40, 120):
        texts = pyarrow.array([f"{number:05} {base}" for number in range(count)])
        parquet.write_table(pyarrow.table({"text": texts}), path, use_dictionary=dictionary)
        assert parquet.ParquetFile(path).num_row_groups == 1
        found = subprocess.run(
            [sys.executable, "-c", _READ, path], capture_output=True, text=True, check=True
        )
        total, peak = map(int, found.stdout.split())
        assert total == count * (len(base) + 6)
        peaks.append(peak)
        path.unlink()
    assert peaks[1] < 150
    assert peaks[1] < 1.1 * peaks[0] + 20
