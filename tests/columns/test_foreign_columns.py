"""Columns that nothing has checked, and streams: an error names the rows that break the rules of Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bpe_tokenizer.columns import arrow as columns
from bpe_tokenizer.errors import ArgumentTypeError, CorpusError
from bpe_tokenizer.train.piece_counts import PieceCounts
from columns.test_arrow_columns import TOKENIZER, encoded

pa: Any = pytest.importorskip("pyarrow")


def of_buffers(kind: Any, length: int, *contents: bytes | None, children: Any = ()) -> Any:
    """Return an array that nothing has checked."""
    given = [None if content is None else pa.py_buffer(content) for content in contents]
    return pa.Array.from_buffers(kind, length, given, children=list(children))


def int32(*numbers: int) -> bytes:
    return np.array(numbers, np.int32).tobytes()


def test_rows_that_are_not_utf8() -> None:
    bad = [b"a\xc3\x28", b"\xff", b"low", None]
    dictionary = pa.DictionaryArray.from_arrays(pa.array([2, None, 3, 1, 0, 2, 2, 2, 2]), pa.array(bad))
    for array in (
        pa.array([b"low", None, None, b"\xff", b"a\xff"]),
        pa.array([b"low", None, None, b"\xff", b"a\xff"], pa.binary_view()),
        of_buffers(pa.string(), 4, None, int32(0, 1, 1, 1, 3), b"l\xff\xff"),
        dictionary,
    ):
        for first in (0, 2):
            column = pa.chunked_array([array[:first], array[first:]])
            with pytest.raises(CorpusError, match=r"^row 3: byte 0 is not valid UTF-8; convert"):
                TOKENIZER.encode_arrow(column)
    # Texts of a dictionary that no row has are not looked at.
    assert TOKENIZER.encode_arrow(dictionary[:3]).to_pylist() == encoded(["low", None, None])


@pytest.mark.parametrize(
    "array",
    [
        of_buffers(pa.string(), 2, None, int32(0, 3, 1), b"low"),
        of_buffers(pa.large_string(), 2, None, np.array([0, 9, 3]).tobytes(), b"low"),
        of_buffers(pa.string(), 2, None, int32(0, -1, 3), b"low"),
        of_buffers(pa.string_view(), 1, None, int32(20, 0, 0, 9), b"x" * 20),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["l"]), safe=False),
        pa.DictionaryArray.from_arrays(pa.array([-1]), pa.array(["l"]), safe=False),
    ],
    ids=lambda array: str(array.type),
)
def test_texts_that_break_the_rules(array: Any) -> None:
    for column in (array, pa.chunked_array([array[:0], array])):
        with pytest.raises(CorpusError, match="encode_arrow: the rows from 0 on cannot be read: "):
            TOKENIZER.encode_arrow(column)
    with pytest.raises(CorpusError, match="add_column: the rows from 0 on cannot be read: "):
        PieceCounts().add_column(array)


@pytest.mark.parametrize("offsets", [(0, 4, 3), (0, 2, 1), (0, -1, 3)], ids=str)
def test_ids_that_break_the_rules(offsets: tuple[int, ...]) -> None:
    ids = pa.array([97, 98, 99], pa.uint32())
    for kind, number in ((pa.list_, np.int32), (pa.large_list, np.int64)):
        buffers = (None, np.array(offsets, number).tobytes())
        with pytest.raises(CorpusError, match="decode_arrow: the rows from 0 on cannot be read: "):
            TOKENIZER.decode_arrow(of_buffers(kind(pa.uint32()), 2, *buffers, children=[ids]))


def test_ids_under_a_null_are_not_read() -> None:
    ids = pa.array([97, 98, 2**32 - 1, None, 99], pa.uint32())
    array = of_buffers(pa.list_(pa.uint32()), 3, b"\x05", int32(0, 2, 4, 5), children=[ids])
    assert TOKENIZER.decode_arrow(array).to_pylist() == ["ab", None, "c"]


def test_memory_at_odd_addresses() -> None:
    offsets, numbers = np.array([0, 1, 3]).tobytes(), np.array([97, 98, 99], np.uint32).tobytes()
    data, places, ids = (pa.py_buffer(b"-" + given)[1:] for given in (b"low", offsets, numbers))
    texts = pa.Array.from_buffers(pa.large_binary(), 2, [None, places, data])
    assert TOKENIZER.encode_arrow(texts).to_pylist() == encoded(["l", "ow"])
    items = pa.Array.from_buffers(pa.uint32(), 3, [None, ids])
    lists = pa.Array.from_buffers(pa.large_list(pa.uint32()), 2, [None, places], children=[items])
    assert TOKENIZER.decode_arrow(lists).to_pylist() == ["a", "bc"]


def test_columns_of_an_extension_type() -> None:
    if not hasattr(pa, "json_"):
        pytest.skip("this pyarrow has no such type")
    rows = ['{"low": 1}', None]
    for column in (pa.array(rows, pa.json_()), pa.table({"text": pa.array(rows, pa.json_())})):
        assert TOKENIZER.encode_arrow(column).to_pylist() == encoded(rows)


class Failing:
    """A stream whose second batch fails."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        schema = pa.schema({"text": pa.string()})

        def batches() -> Any:
            yield pa.RecordBatch.from_arrays([pa.array(["low"])], schema=schema)
            raise ValueError("the disk is on fire")

        return pa.RecordBatchReader.from_batches(schema, batches()).__arrow_c_stream__()


def test_a_stream_that_fails() -> None:
    with pytest.raises(
        CorpusError, match=r"encode_arrow: the rows from 1 on cannot be read: .*the disk is on fire"
    ):
        TOKENIZER.encode_arrow(Failing())


def test_a_stream_is_read_batch_by_batch() -> None:
    given: list[int] = []
    read: list[int] = []

    def batches() -> Any:
        for number in range(3):
            given.append(number)
            yield pa.RecordBatch.from_arrays([pa.array([f"low {number}"])], ["text"])

    stream = pa.RecordBatchReader.from_batches(pa.schema({"text": pa.string()}), batches())
    for first, _ in columns._Column("encode_arrow", stream, ""):
        read.append(first)
        assert given == read
    assert read == [0, 1, 2]


class NotCapsules:
    """An object whose capsules are something else."""

    def __init__(self, *capsules: object) -> None:
        self.capsules = capsules

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, ...]:
        return self.capsules


def test_capsules_of_another_kind() -> None:
    schema, array = pa.array(["a"]).__arrow_c_array__()
    for capsules in (("schema", "array"), (array, schema), (schema, None), (schema,)):
        with pytest.raises(ArgumentTypeError, match="encode_arrow: pyarrow cannot convert the column: "):
            TOKENIZER.encode_arrow(NotCapsules(*capsules))
