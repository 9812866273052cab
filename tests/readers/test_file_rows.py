"""The rows of text and JSON Lines: the core's and Python's give the same."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bpe_tokenizer import CorpusError, _core
from bpe_tokenizer.readers import DocumentBatch, Position, ReadOptions, find_inputs, read_batches
from bpe_tokenizer.readers import rows as reader_rows
from bpe_tokenizer.readers.batches import opened_batches
from bpe_tokenizer.readers.opened import open_input
from bpe_tokenizer.readers.rows import BATCH_BYTES, FileRows, json_rows, range_chunks, text_rows
from sampling import sample_size
from small_tokenizers import without_surrogates
from token_files import as_jsonl

Row = tuple[int, str]
Bad = dict[int, str]


def rows_of(found: list[FileRows]) -> tuple[list[Row], Bad]:
    rows: list[Row] = []
    bad: Bad = {}
    for data, offsets, numbers, problems, _ in found:
        ends = offsets.tolist()
        texts = [data[start:end].tobytes().decode() for start, end in pairwise(ends)]
        rows += zip(numbers.tolist(), texts, strict=True)
        bad.update(problems)
        assert (ends[0], ends[-1]) == (0, len(data))
    return rows, bad


def chunked(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def read_text(
    data: bytes,
    options: ReadOptions | None = None,
    after: int = 0,
    chunk: int = 1 << 20,
    block: int = BATCH_BYTES,
) -> tuple[list[Row], Bad]:
    chunks = iter(chunked(data, chunk))
    return rows_of(list(text_rows(chunks, options or ReadOptions(documents="line"), after, 1, block)))


def read_json(
    data: bytes, field: str = "text", after: int = 0, chunk: int = 1 << 20, block: int = BATCH_BYTES
) -> tuple[list[Row], Bad]:
    options = ReadOptions(field=field)
    return rows_of(list(json_rows(iter(chunked(data, chunk)), options, after, 1, block)))


def python_json(data: bytes, field: str) -> tuple[list[Row], Bad]:
    """Read JSON Lines with Python alone."""
    rows: list[Row] = []
    bad: Bad = {}
    for number, line in enumerate(io.BytesIO(data), 1):
        if not line.isspace():
            text, problem = reader_rows._json_text(line, field)
            if text is None:
                bad[number] = problem
            else:
                rows.append((number, text.decode()))
    return rows, bad


# Lines


def test_lines() -> None:
    data = "\ufeffa\r\n\n b \u2028c\rd\n\r\ne".encode()
    assert read_text(data) == ([(1, "\ufeffa"), (3, " b \u2028c\rd"), (5, "e")], {})
    assert read_text(data, after=3) == ([(5, "e")], {})
    assert read_text(b"\r\r\n\r") == ([(1, "\r"), (2, "\r")], {})
    assert read_text(b"a\nb\xffc\n\xe6") == (
        [(1, "a")],
        {2: "is not UTF-8: byte 0xff at its offset 1", 3: "is not UTF-8: byte 0xe6 at its offset 0"},
    )


def test_a_file_is_a_document() -> None:
    whole = ReadOptions(documents="file")
    for chunk in (1, 3, 99):
        assert read_text(b"a\r\n\nb\n", whole, chunk=chunk) == ([(1, "a\r\n\nb\n")], {})
    assert read_text(b"a", whole, after=1) == ([], {})
    assert read_text(b"", whole) == ([], {})
    assert read_text(b"ab\xc3", whole) == ([], {1: "is not UTF-8: byte 0xc3 at its offset 2"})


@given(
    st.lists(st.text("ab\r\né", max_size=6), max_size=6),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(0, 5),
)
@settings(max_examples=300, deadline=None)
def test_blocks_of_any_size_give_the_same_lines(texts: list[str], chunk: int, block: int, after: int) -> None:
    data = "\n".join(texts).encode()
    lines = enumerate(data.split(b"\n"), 1)
    # The last line has no end, so a carriage return there is text.
    last = data.count(b"\n") + 1
    expected = [
        (number, (line.removesuffix(b"\r") if number < last else line).decode())
        for number, line in lines
        if number > after
    ]
    found, bad = read_text(data, after=after, chunk=chunk, block=block)
    assert found == [row for row in expected if row[1]]
    assert bad == {}


@given(
    st.lists(st.text("ab<>", max_size=6), max_size=6),
    st.sampled_from(["<>", "<<>", "a", "aa", "é", "aba"]),
    st.integers(1, 9),
    st.integers(1, 9),
)
@settings(max_examples=300, deadline=None)
def test_separators(parts: list[str], separator: str, chunk: int, block: int) -> None:
    text = separator.join(parts)
    found, bad = read_text(text.encode(), ReadOptions(separator=separator), chunk=chunk, block=block)
    assert found == [(number, part) for number, part in enumerate(text.split(separator), 1) if part]
    assert bad == {}


# JSON Lines


def test_json_lines() -> None:
    data = (
        b'\xef\xbb\xbf{"text": "a\\nb"}\r\n\n{"text": ""}\n{"text": 3}\n{"body": "x"}\n["text"]\n'
        b'{"text": "x}\n{"text": "\xff"}\n' + b"[" * 100_000 + b'\n{"text": "\\ud83d\\ude42"}'
    )
    found, bad = read_json(data)
    assert found == [(1, "a\nb"), (3, ""), (10, "🙂")]
    assert list(bad) == [4, 5, 6, 7, 8, 9]
    assert bad[4] == "has no text in the field 'text', but int"
    assert bad[5] == "has no field 'text' (its first fields: 'body')"
    assert bad[6] == "is not a JSON object, but list"
    assert bad[7] == "is not valid JSON: Invalid control character at its character 12"
    assert bad[8] == "is not UTF-8: byte 0xff at its offset 10"
    assert read_json(b'{"body": "x"}', "body") == ([(1, "x")], {})
    assert read_json(data, after=9) == ([(10, "🙂")], {})


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None, categories=None), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
UNUSUAL = ['"\\ud800"', '"\\x"', "NaN", "-Infinity", "01", '"', "1.", "[1,]"]
names = st.sampled_from(["text", "te\\u0078t", "id", "", "t", "text "])
spaces = st.sampled_from(["", " ", "\t", " \r", "  "])
strings = st.text(st.characters(categories=None), max_size=8) | st.text('\\"\n\t/\b\x7f\x00é🙂', max_size=6)


@st.composite
def json_line(draw: st.DrawFn) -> bytes:
    """Objects with repeated names, white space and every kind of escape; sometimes broken."""
    members = []
    for name in draw(st.lists(names, max_size=4)):
        value = draw(strings | json_values)
        encoded = json.dumps(value, ensure_ascii=draw(st.booleans()))
        if draw(st.integers(0, 20)) == 0:
            encoded = draw(st.sampled_from(UNUSUAL))
        members.append(f'{draw(spaces)}"{name}"{draw(spaces)}:{draw(spaces)}{encoded}{draw(spaces)}')
    line = "{" + ",".join(members) + "}" + draw(spaces)
    data = line.encode("utf-8", "surrogatepass").replace(b"\n", b"")
    kind = draw(st.integers(0, 30))
    if kind == 0:
        data = b"\xef\xbb\xbf" + data
    elif kind == 1:
        place = draw(st.integers(0, len(data)))
        data = data[:place] + draw(st.sampled_from([b"\xff", b"{", b'"', b"\x00", b"\xc3"])) + data[place:]
    elif kind == 2:
        data = data[: draw(st.integers(0, len(data)))]
    return data


@given(st.lists(json_line(), max_size=5), st.integers(1, 40), st.integers(1, 40))
@example([b'{"text": "a", "text": 1}', b'{"text": 1, "text": "a"}'], 1, 1)
@example([b'{"text": "\\ud83d\\ude42 \\ud83d \\u0000"}'], 9, 9)
@pytest.mark.sampled(1.0)
@settings(max_examples=sample_size(600, 0.25), deadline=None)
def test_the_core_reads_json_as_python_does(lines: list[bytes], chunk: int, block: int) -> None:
    data = b"\n".join(lines)
    for field in ("text", ""):
        assert read_json(data, field, chunk=chunk, block=block) == python_json(data, field)


def test_limits_of_python_are_its_own() -> None:
    deep = b"[" * 500 + b"]" * 500
    for value in (deep, b"[" * 100_000, b"9" * 5000, b"[[" + b"9" * 5000 + b"]]", b"-" + b"9" * 4200):
        data = b'{"x": ' + value + b', "text": "a"}'
        assert read_json(data) == python_json(data, "text")


def test_a_lone_surrogate_becomes_u_fffd_as_in_encoding() -> None:
    for text in ("\ud800", "a\udc00b", "\udc00\ud800", "\ud83d\ude42\ud83d", "\ud800\ud800x"):
        data = json.dumps({"text": text}).encode()
        joined = without_surrogates(text)
        assert read_json(data) == ([(1, joined)], {})
        counter = _core.PieceCounter(split_patterns=["(?s:.+)"])
        counter.add_texts([text])
        assert counter.arrays()[0].tobytes().decode() == joined


# Ranges


@given(
    st.lists(st.sampled_from(["", "a", "bc\r", "é日", "x" * 20]), max_size=12).map("\n".join),
    st.integers(1, 30),
    st.integers(1, 9),
)
@settings(max_examples=300, deadline=None)
def test_ranges_tile_a_file(text: str, step: int, chunk: int) -> None:
    data = text.encode()
    parts = []
    for start in range(0, len(data), step):
        end = min(start + step, len(data))
        before = max(start - 1, 0)
        parts.append(b"".join(range_chunks(iter(chunked(data[before:], chunk)), end - start, start > 0)))
    assert b"".join(parts) == data


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def everything(batches: list[DocumentBatch]) -> list[str]:
    return [text for batch in batches for text in batch.texts()]


def test_byte_ranges_and_row_groups(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = [f"text {number}" * (number % 5) for number in range(40)]
    lines = write(tmp_path / "a.jsonl", as_jsonl(texts))
    plain = write(tmp_path / "a.txt", "\n".join(texts).encode())
    size, plain_size = lines.stat().st_size, plain.stat().st_size
    inputs = find_inputs([lines, plain])
    for step in (1, 13, 100):
        found: tuple[list[str], list[str]] = ([], [])
        for start in range(0, max(size, plain_size), step):
            ranges = [
                (min(start, size), min(start + step, size)),
                (min(start, plain_size), min(start + step, plain_size)),
            ]
            for batch in read_batches(inputs, ReadOptions(documents="line"), byte_ranges=ranges):
                found[batch.input].extend(batch.texts())
        assert found == (texts, [text for text in texts if text])
    table = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"text": texts}), table, row_group_size=7)
    batches = list(read_batches(find_inputs(table), ReadOptions(documents="line"), byte_ranges=[(1, 3)]))
    assert everything(batches) == texts[7:21]
    assert [row for batch in batches for row in batch.rows.tolist()] == list(range(8, 22))


def test_an_error_in_a_range_says_where_the_range_starts(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'{"text": "a"}\n' * 3 + b"oops\n")
    with pytest.raises(CorpusError, match=r"a\.jsonl, row 2 after byte 20 is not valid JSON"):
        list(read_batches(find_inputs(path), ReadOptions(documents="line"), byte_ranges=[(20, 50)]))


def test_reading_goes_on_after_any_row(tmp_path: Path) -> None:
    texts = [f"text {number}\n" for number in range(20)]
    path = write(tmp_path / "a.jsonl", as_jsonl(texts))
    inputs = find_inputs([path, path])
    for number in range(2):
        for row in range(21):
            found = everything(
                list(read_batches(inputs, ReadOptions(documents="line"), Position(number, row)))
            )
            assert found == (texts * 2)[number * 20 + row :]


def test_bad_rows_are_listed_and_do_not_stop_the_rest(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'{"text": "a"}\nx\n{"text": "b"}\n{}\n')
    batches = list(read_batches(find_inputs(path), ReadOptions(documents="line", on_error="skip")))
    assert everything(batches) == ["a", "b"]
    assert [(row.input, row.row) for batch in batches for row in batch.bad] == [(0, 2), (0, 4)]
    stopping = read_batches(find_inputs(path), ReadOptions(documents="line"))
    assert next(stopping).texts() == ["a"]
    with pytest.raises(CorpusError, match=r"a\.jsonl, row 2 is not valid JSON"):
        next(stopping)


def test_a_batch_has_the_size_of_a_few_megabytes(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.txt", b"x" * 99 + b"\n" + (b"y" * 999 + b"\n") * 12_000 + b"z" * (9 << 20) + b"\nend"
    )
    batches = list(read_batches(find_inputs(path), ReadOptions(documents="line")))
    sizes = [len(batch.data) for batch in batches]
    assert all(size <= BATCH_BYTES + (1 << 20) for size in sizes if size < 9 << 20)
    assert sizes[0] < BATCH_BYTES // 4  # the consumer begins early
    assert BATCH_BYTES * 3 // 4 < sizes[4] < BATCH_BYTES * 5 // 4
    assert sum(sizes) == 99 + 999 * 12_000 + (9 << 20) + 3
    assert batches[-1].bytes_read == path.stat().st_size
    with open_input(find_inputs(path)[0], ReadOptions(documents="line")) as opened:
        again = list(opened_batches(0, opened, ReadOptions(documents="line")))
    assert np.array_equal(
        np.concatenate([batch.data for batch in again]), np.concatenate([batch.data for batch in batches])
    )
