"""`encode_arrow` and `decode_arrow`: every type of column gives the ids, and the texts, of its rows."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.columns import arrow as columns
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    CorpusError,
    DecodingError,
    MissingDependencyError,
    NotTrainedError,
    OptionError,
    SpecialTokenError,
    UnknownIdError,
)
from bpe_tokenizer.train.piece_counts import PieceCounts

pa: Any = pytest.importorskip("pyarrow")

SPECIAL = ["<|bos|>", "<|eos|>"]
TOKENIZER = BPETokenizer().train(
    ["low lower lowest über naïve 日本語 low", "a'a 1 12"], 300, special_tokens=SPECIAL, verbose=False
)
TEXT_TYPES = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "dictionary": pa.dictionary(pa.int8(), pa.string()),
    "dictionary of uint64": pa.dictionary(pa.uint64(), pa.large_string()),
    "dictionary of views": pa.dictionary(pa.int32(), pa.string_view()),
    "dictionary of binary": pa.dictionary(pa.int16(), pa.binary()),
}
ID_TYPES = {
    "list<uint32>": pa.list_(pa.uint32()),
    "list<int32>": pa.list_(pa.int32()),
    "list<int64>": pa.list_(pa.int64()),
    "list<uint16>": pa.list_(pa.uint16()),
    "list<uint64>": pa.list_(pa.uint64()),
    "large_list": pa.large_list(pa.uint32()),
    "list_view": pa.list_view(pa.uint32()),
    "large_list_view": pa.large_list_view(pa.int64()),
}
TEXTS = st.text("aéo \u0301日😀\nlwer'1<|bs>", max_size=30) | st.sampled_from(
    ["", "<|bos|>low lower", "low" * 9]
)
ROWS = st.lists(st.none() | TEXTS, max_size=12)
PLACES = st.integers(0, 12)


def column(rows: list[str | None], kind: Any) -> Any:
    """Return a column of any type."""
    if pa.types.is_dictionary(kind):
        distinct: list[str | None] = [*dict.fromkeys(rows), "unused", None]
        values = column(distinct, kind.value_type)
        indices = [None if row is None else distinct.index(row) for row in rows]
        if len(rows) % 2:  # a null of the dictionary
            indices = [distinct.index(row) for row in rows]
        return pa.DictionaryArray.from_arrays(pa.array(indices, kind.index_type), values)
    is_binary = kind in (pa.binary(), pa.large_binary(), pa.binary_view())
    values = [row.encode() if is_binary and row is not None else row for row in rows]
    return pa.array(values, kind)


def encoded(rows: list[str | None], *options: Any) -> list[list[int] | None]:
    return [None if row is None else TOKENIZER.encode(row, *options) for row in rows]


# -- Encoding -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TEXT_TYPES.values(), ids=TEXT_TYPES)
@settings(max_examples=40)
@given(rows=ROWS, start=PLACES, end=PLACES, threads=st.sampled_from([None, 1, 2]))
@example(rows=[], start=0, end=0, threads=None)
@example(rows=[None], start=0, end=1, threads=None)
@example(rows=["x" * 12, "y" * 13, None, "日" * 20], start=1, end=4, threads=2)
def test_ids_are_those_of_the_rows(
    kind: Any, rows: list[str | None], start: int, end: int, threads: int | None
) -> None:
    array = column(rows, kind)
    ids = TOKENIZER.encode_arrow(array, threads=threads)
    ids.validate(full=True)
    assert (type(ids), ids.type) == (pa.ListArray, pa.list_(pa.uint32()))
    assert ids.to_pylist() == encoded(rows)
    assert ids.null_count == rows.count(None)
    part = array[start:end]
    assert TOKENIZER.encode_arrow(part).to_pylist() == encoded(rows[start:end])
    for options in ((True,), (False, "all"), (True, {"<|bos|>"})):
        assert TOKENIZER.encode_arrow(part, *options).to_pylist() == encoded(rows[start:end], *options)


@pytest.mark.parametrize("kind", TEXT_TYPES.values(), ids=TEXT_TYPES)
@settings(max_examples=40)
@given(rows=ROWS, cuts=st.lists(PLACES, max_size=4))
def test_chunks_stay_chunks(kind: Any, rows: list[str | None], cuts: list[int]) -> None:
    array = column(rows, kind)
    places = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    parts = [array[start:end] for start, end in pairwise(places)]
    chunked = pa.chunked_array(parts, kind)
    ids = TOKENIZER.encode_arrow(chunked)
    ids.validate(full=True)
    assert (type(ids), ids.type) == (pa.ChunkedArray, pa.list_(pa.uint32()))
    assert [chunk.to_pylist() for chunk in ids.chunks] == [
        encoded(part.to_pylist()) for part in map(texts, parts)
    ]
    table = pa.table({"text": chunked})
    for stream in (table, table.to_reader(max_chunksize=3)):
        assert TOKENIZER.encode_arrow(stream).to_pylist() == encoded(rows)
    batch = pa.RecordBatch.from_arrays([array], ["text"])
    assert TOKENIZER.encode_arrow(batch).to_pylist() == encoded(rows)
    assert TOKENIZER.encode_arrow(batch[1:4]).to_pylist() == encoded(rows[1:4])


def texts(array: Any) -> Any:
    """Return a column of texts as one of `string`."""
    rows = [row.decode() if isinstance(row, bytes) else row for row in array.to_pylist()]
    return pa.array(rows, pa.string())


@given(rows=ROWS, valid=st.lists(st.booleans(), min_size=12, max_size=12), start=PLACES)
def test_structs_of_one_field_are_its_column(rows: list[str | None], valid: list[bool], start: int) -> None:
    mask = pa.array([not is_valid for is_valid in valid[: len(rows)]], pa.bool_())
    structs = pa.StructArray.from_arrays([pa.array(rows, pa.string())], ["text"], mask=mask)
    expected = [row if is_valid else None for row, is_valid in zip(rows, valid, strict=False)]
    assert TOKENIZER.encode_arrow(structs).to_pylist() == encoded(expected)
    assert TOKENIZER.encode_arrow(structs[start:]).to_pylist() == encoded(expected[start:])


def test_nulls_without_a_type() -> None:
    for array in (pa.nulls(3), pa.nulls(3)[1:], pa.nulls(0)):
        ids = TOKENIZER.encode_arrow(array, add_special_tokens=True)
        assert (ids.type, ids.to_pylist()) == (pa.list_(pa.uint32()), [None] * len(array))
        decoded = TOKENIZER.decode_arrow(array)
        assert (decoded.type, decoded.to_pylist()) == (pa.string(), [None] * len(array))
    assert TOKENIZER.encode_arrow(pa.chunked_array([], pa.string())).to_pylist() == []
    assert TOKENIZER.decode_arrow(pa.chunked_array([], pa.list_(pa.int64()))).to_pylist() == []


def test_bytes_under_a_null_are_not_read() -> None:
    data, offsets = pa.py_buffer(b"low\xff\xfflow"), pa.py_buffer(np.array([0, 3, 5, 8], np.int32))
    array = pa.StringArray.from_buffers(3, offsets, data, pa.py_buffer(b"\x05"))
    assert TOKENIZER.encode_arrow(array).to_pylist() == encoded(["low", None, "low"])


def test_many_rows_on_threads(stdlib_texts: list[str]) -> None:
    rows = [line for text in stdlib_texts[:20] for line in text.splitlines()]
    expected = TOKENIZER.encode_batch(rows)
    for kind in TEXT_TYPES.values():
        if pa.types.is_dictionary(kind):
            values = column([*dict.fromkeys(rows)], kind.value_type)
            indices = pa.array(rows).dictionary_encode().indices
            array = pa.DictionaryArray.from_arrays(indices, values)
        else:
            array = column([*rows], kind)
        assert TOKENIZER.encode_arrow(array).to_pylist() == expected
    ids = TOKENIZER.encode_arrow(pa.array(rows), threads=3)
    assert TOKENIZER.decode_arrow(ids, threads=3).to_pylist() == rows


def test_rows_of_buffers_that_are_wrong() -> None:
    encoder = _core.Encoder(TOKENIZER.model.core)
    data = np.frombuffer("aé".encode() + b"\xff", np.uint8)
    for offsets, message in [
        ([0, 1, 4], "row 1: byte 2 is not valid UTF-8"),
        ([0, 2, 4], "row 0: byte 1 is not valid UTF-8"),
    ]:
        with pytest.raises(CorpusError, match=message):
            encoder.encode_rows(data, np.array(offsets))
    for offsets, message in [
        ([0, 5], "row 0 has the offsets 0 and 5"),
        ([0, 1, 0], "row 1 has the offsets 1 and 0"),
        ([-1, 1], "row 0 has the offsets -1 and 1"),
        ([], "offsets are empty"),
    ]:
        with pytest.raises(OptionError, match=message):
            encoder.encode_rows(data, np.array(offsets, np.int64))
    assert encoder.encode_rows(data, np.array([0]))[1].tolist() == [0]


# -- Decoding -------------------------------------------------------------------------------------------

IDS = st.lists(st.none() | st.lists(st.integers(0, TOKENIZER.vocab_size - 1), max_size=8), max_size=10)


@pytest.mark.parametrize("kind", ID_TYPES.values(), ids=ID_TYPES)
@settings(max_examples=40)
@given(rows=IDS, start=PLACES, end=PLACES, errors=st.sampled_from(["replace", "ignore"]), skip=st.booleans())
def test_texts_are_those_of_the_rows(
    kind: Any, rows: list[list[int] | None], start: int, end: int, errors: str, skip: bool
) -> None:
    array = pa.array(rows, kind)
    expected = [None if row is None else TOKENIZER.decode(row, skip, errors) for row in rows]
    decoded = TOKENIZER.decode_arrow(array, skip, errors)
    decoded.validate(full=True)
    assert (type(decoded), decoded.type) == (pa.StringArray, pa.string())
    assert decoded.to_pylist() == expected
    assert TOKENIZER.decode_arrow(array[start:end], skip, errors).to_pylist() == expected[start:end]
    chunked = pa.chunked_array([array[:start], array[start:]], kind)
    decoded = TOKENIZER.decode_arrow(chunked, skip, errors, threads=2)
    assert [len(chunk) for chunk in decoded.chunks] == [len(chunk) for chunk in chunked.chunks]
    assert decoded.to_pylist() == expected


@given(
    rows=st.lists(st.none() | st.lists(st.integers(0, 255), min_size=3, max_size=3), max_size=9), start=PLACES
)
def test_lists_of_a_fixed_size(rows: list[list[int] | None], start: int) -> None:
    array = pa.array(rows, pa.list_(pa.int64(), 3))
    expected = [None if row is None else TOKENIZER.decode(row) for row in rows]
    assert TOKENIZER.decode_arrow(array[start:]).to_pylist() == expected[start:]
    batch = pa.RecordBatch.from_arrays([array], ["ids"])
    assert TOKENIZER.decode_arrow(batch[start:]).to_pylist() == expected[start:]


def test_ids_that_are_not_in_the_vocabulary() -> None:
    for kind, value in ((pa.uint32(), 100_000), (pa.int64(), -1), (pa.uint64(), 2**63), (pa.int16(), -5)):
        array = pa.array([[97], [], [98, value]], pa.list_(kind))
        with pytest.raises(
            UnknownIdError, match=f"^row 2: id {value} at position 1 is not in the vocabulary"
        ):
            TOKENIZER.decode_arrow(array)
        chunked = pa.chunked_array([array[:2], array[2:]])
        with pytest.raises(UnknownIdError, match=f"row 2: id {value} at position 1"):
            TOKENIZER.decode_arrow(chunked)
    for rows, position in (([[97], [97, None]], 1), ([[], [None]], 0)):
        with pytest.raises(CorpusError, match=f"row 1: the id at position {position} is null"):
            TOKENIZER.decode_arrow(pa.array(rows))


def test_strict_decoding_names_the_row() -> None:
    rows = pa.array([[97], [98, 0xC3]] + [[0xFF]] * 1000)
    for threads in (1, 3):
        with pytest.raises(DecodingError, match="unexpected end of data, in row 1") as raised:
            TOKENIZER.decode_arrow(rows, errors="strict", threads=threads)
        assert (raised.value.object, raised.value.start) == (b"b\xc3", 1)
    assert TOKENIZER.decode_arrow(rows[:1], errors="strict").to_pylist() == ["a"]


# -- Limits ---------------------------------------------------------------------------------------------


@given(rows=ROWS, limit=st.integers(1, 20))
def test_a_chunk_of_too_many_ids_becomes_several(rows: list[str | None], limit: int) -> None:
    array, expected = pa.array(rows, pa.string()), encoded(rows)
    counts = [len(ids or []) for ids in expected]

    def encode(given: Any) -> Any:
        return columns.encode_column(TOKENIZER._compiled(), given, False, "none", None, limit)

    if max(counts, default=0) > limit:
        for given in (array, pa.chunked_array([array])):
            with pytest.raises(CorpusError, match=f"more than the {limit} that a list of Arrow holds"):
                encode(given)
        return
    ids = encode(pa.chunked_array([array]))
    ids.validate(full=True)
    assert ids.to_pylist() == expected
    assert all(sum(len(row or []) for row in chunk.to_pylist()) <= limit for chunk in ids.chunks)
    if sum(counts) <= limit:
        assert encode(array).to_pylist() == expected
    else:
        with pytest.raises(CorpusError, match="encode slices of it"):
            encode(array)


@given(rows=IDS, limit=st.integers(4, 20))
def test_more_text_than_a_string_array_holds(rows: list[list[int] | None], limit: int) -> None:
    array = pa.array(rows, pa.list_(pa.uint32()))
    expected = [None if row is None else TOKENIZER.decode(row) for row in rows]
    sizes = [len((text or "").encode()) for text in expected]

    def decode(given: Any) -> Any:
        return columns.decode_column(TOKENIZER._compiled(), given, False, "replace", None, limit)

    decoded = decode(array)
    decoded.validate(full=True)
    assert decoded.type == (pa.string() if sum(sizes) <= limit else pa.large_string())
    assert decoded.to_pylist() == expected
    if max(sizes, default=0) > limit:
        with pytest.raises(CorpusError, match=f"more than the {limit} that a string of Arrow holds"):
            decode(pa.chunked_array([array]))
        return
    chunked = decode(pa.chunked_array([array]))
    chunked.validate(full=True)
    assert (chunked.type, chunked.to_pylist()) == (pa.string(), expected)


# -- Other libraries, and without pyarrow ---------------------------------------------------------------


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, ids = pa.array(["low"]), pa.array([[97]])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for call in (
        lambda: TOKENIZER.encode_arrow(texts),
        lambda: TOKENIZER.decode_arrow(ids),
        lambda: PieceCounts().add_column(texts),
    ):
        with pytest.raises(MissingDependencyError, match=r"pip install .*\[arrow\]'"):
            call()
    with pytest.raises(ArgumentTypeError, match="encode_ragged"):
        TOKENIZER.encode_arrow(["low"])


def test_what_is_not_a_column() -> None:
    for wrong in (["low"], "low", ("low",), np.array(["low"]), None, 3, pa.Array):
        with pytest.raises(
            ArgumentTypeError, match=r"encode_arrow takes a column of Arrow, not .*encode_ragged"
        ):
            TOKENIZER.encode_arrow(wrong)
        with pytest.raises(
            ArgumentTypeError, match=r"decode_arrow takes a column of Arrow, not .*decode_batch"
        ):
            TOKENIZER.decode_arrow(wrong)
        with pytest.raises(ArgumentTypeError, match=r"add_column takes a column of Arrow, not "):
            PieceCounts().add_column(wrong)
    for wrong, name in (
        (pa.array([1]), "int64"),
        (pa.array([["a"]]), "list<item: string>"),
        (pa.array([[1]], pa.list_(pa.int8(), 1)), "fixed_size_list<item: int8>"),
        (pa.array([1]).dictionary_encode(), "dictionary<values=int64"),
        (pa.array([{}], pa.struct([])), "the table has no columns"),
        (pa.array([{"a": 1, "b": 2}]), "the table has 2 columns; select one of them: 'a', 'b'"),
        (pa.table({"a": ["x"], "b": ["y"]}), "the table has 2 columns"),
        (pa.array([0], pa.timestamp("us")), "timestamp"),
    ):
        with pytest.raises(ArgumentTypeError, match=name):
            TOKENIZER.encode_arrow(wrong)
    for wrong, name in (
        (pa.array(["a"]), "string"),
        (pa.array([["a"]]), "list<item: string>"),
        (pa.array([[1.0]]), "list<item: double>"),
    ):
        with pytest.raises(
            ArgumentTypeError, match=f"decode_arrow takes a column of lists of integers, not {name}"
        ):
            TOKENIZER.decode_arrow(wrong)


def test_options_are_checked() -> None:
    array = pa.array(["a"])
    with pytest.raises(SpecialTokenError):
        TOKENIZER.encode_arrow(array, allowed_special={"<|none|>"})
    with pytest.raises(OptionError):
        TOKENIZER.encode_arrow(array, threads=0)
    with pytest.raises(OptionError, match="'replace', 'strict' or 'ignore'"):
        TOKENIZER.decode_arrow(pa.array([[97]]), errors="backslashreplace")
    with pytest.raises(ArgumentTypeError, match="errors must be a str"):
        TOKENIZER.decode_arrow(pa.array([[97]]), errors=None)  # type: ignore[arg-type]
    for call in (BPETokenizer().encode_arrow, BPETokenizer().decode_arrow):
        with pytest.raises(NotTrainedError):
            call(array)


# -- Counting -------------------------------------------------------------------------------------------


@given(rows=st.lists(TEXTS, max_size=12), start=PLACES)
def test_counting_takes_every_type(rows: list[str], start: int) -> None:
    expected = PieceCounts("gpt2").add(rows[start:])
    for kind in TEXT_TYPES.values():
        assert PieceCounts("gpt2").add_column(column([*rows], kind)[start:]) == expected


def test_counting_in_blocks(monkeypatch: pytest.MonkeyPatch, stdlib_texts: list[str]) -> None:
    rows = [*stdlib_texts[:3], ""]
    expected = PieceCounts("gpt2").add(rows)
    for size in (1, 100_000):
        monkeypatch.setattr(columns, "_BLOCK_BYTES", size)
        assert PieceCounts("gpt2").add_column(pa.array(rows)) == expected
        with pytest.raises(CorpusError, match="row 4 is null"):
            PieceCounts("gpt2").add_column(pa.array([*rows, None]))
        chunks = [pa.array(rows).cast("binary"), pa.array([b"", b"a\xff"])]
        with pytest.raises(CorpusError, match="row 5: byte 1 is not valid UTF-8"):
            PieceCounts("gpt2").add_column(pa.chunked_array(chunks))
