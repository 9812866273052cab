"""Columns of any library that has Arrow's capsules, which pyarrow reads: encoded and decoded in the core.

https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_choice, check_flag, thread_count
from bpe_tokenizer.columns.texts import (
    Buffers,
    Texts,
    arrow_errors,
    blocks,
    buffers,
    cuts,
    holds_texts,
    validity,
)
from bpe_tokenizer.decoding import decoding_error
from bpe_tokenizer.encoding import resolve_allowed_special
from bpe_tokenizer.errors import ArgumentTypeError, CorpusError, UnknownIdError, escaped
from bpe_tokenizer.libraries import import_library

if TYPE_CHECKING:
    from bpe_tokenizer.compiled import CompiledModel
    from bpe_tokenizer.special_tokens import AllowedSpecial

__all__ = ["decode_column", "encode_column", "text_blocks"]

# The ids of rows, and the start of each with the end of the last.
_Ids: TypeAlias = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]

# The most ids, or bytes of text, of an array whose offsets have 32 bits.
_MAX_ITEMS = 2**31 - 1
_MAX_ID = 2**32 - 1
# The bytes of a block of texts, unless one text has more.
_BLOCK_BYTES = 4 << 20
_LISTS = "pass a column of pyarrow, Polars, DuckDB, pandas or datasets"


def encode_column(
    compiled: CompiledModel,
    array: Any,
    add_special_tokens: bool,
    allowed_special: AllowedSpecial,
    threads: int | None,
    max_ids: int = _MAX_ITEMS,
) -> Any:
    """Return the lists of ids of a column of texts.

    Args:
        compiled: The model.
        array: The column.
        add_special_tokens: Whether to add the model's special tokens to each row.
        allowed_special: The special tokens to recognise.
        threads: Number of threads.
        max_ids: The most ids of an array.

    Raises:
        ArgumentTypeError: It is not a column of texts.
        CorpusError: A row is not UTF-8, an array breaks Arrow's rules, or has too many ids.
        MissingDependencyError: `pyarrow` is not installed.
        OptionError: `allowed_special` is another `str` than `"all"` or `"none"`.
        SpecialTokenError: A set names an unknown token.
    """
    special = resolve_allowed_special(compiled, (), allowed_special)
    added = compiled.added_ids(check_flag("add_special_tokens", add_special_tokens))
    count = thread_count(threads)
    advice = f"{_LISTS}; encode_ragged() and encode_batch() take lists of str"
    column = _Column("encode_arrow", array, advice)
    if not holds_texts(column.kind):
        raise ArgumentTypeError(
            "encode_arrow takes a column of strings, or of binary values in UTF-8, not "
            f"{escaped(str(column.kind), 60)}"
        )

    def encode(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> _Ids:
        return compiled.encoder.encode_rows(data, offsets, special, count, added)

    arrays: list[Any] = []
    for first, part in column:
        with arrow_errors(column.problem(first)):
            arrays += _lists(part, first, encode, max_ids)
    if not column.is_chunked and len(arrays) > 1:
        raise CorpusError(
            f"the array has more ids than the {max_ids:,} of a list array: encode slices of it, or a "
            "chunked array of one chunk, whose result has several"
        )
    pyarrow = import_library("pyarrow")
    return column.of_results(arrays, pyarrow.list_(pyarrow.uint32()))


def decode_column(
    compiled: CompiledModel,
    array: Any,
    skip_special_tokens: bool,
    errors: str,
    threads: int | None,
    max_bytes: int = _MAX_ITEMS,
) -> Any:
    """Return the texts of a column of lists of ids.

    Args:
        compiled: The model.
        array: The column.
        skip_special_tokens: Whether to leave special tokens out.
        errors: `"replace"`, `"strict"` or `"ignore"`.
        threads: Number of threads.
        max_bytes: The most bytes of an array of `string`.

    Raises:
        ArgumentTypeError: It is not a column of lists of integers.
        CorpusError: An id is null, or an array breaks Arrow's rules.
        DecodingError: A row is not UTF-8, and `errors` is `"strict"`.
        MissingDependencyError: `pyarrow` is not installed.
        OptionError: `errors` is none of these.
        UnknownIdError: An id is not in the vocabulary.
    """
    if not isinstance(errors, str):
        raise ArgumentTypeError(f"errors must be a str, not {type(errors).__name__}")
    check_choice("errors", errors, ("replace", "strict", "ignore"))
    invalid = cast("Literal['replace', 'ignore', 'keep']", "keep" if errors == "strict" else errors)
    count = thread_count(threads)
    column = _Column("decode_arrow", array, f"{_LISTS}; decode_batch() takes lists of ids")
    if not _holds_ids(column.kind):
        raise ArgumentTypeError(
            f"decode_arrow takes a column of lists of integers, not {escaped(str(column.kind), 60)}"
        )
    arrays: list[Any] = []
    for first, part in column:
        with arrow_errors(column.problem(first)):
            ids, offsets = _ids(part, first)
            text, ends = compiled.encoder.decode_rows(
                ids, offsets, skip_special_tokens, invalid, count, first
            )
            if errors == "strict":
                _check_texts(text, ends, first)
            arrays += _strings(text, ends, validity(part), first, column.is_chunked, max_bytes)
    return column.of_results(arrays, import_library("pyarrow").string())


def text_blocks(array: Any) -> Iterator[Buffers]:
    """Yield the rows of a column of texts in blocks of about 4 MB.

    Args:
        array: The column.

    Yields:
        The concatenated bytes of the rows, and the offsets of the rows and of the end.

    Raises:
        ArgumentTypeError: It is not a column of texts.
        CorpusError: A row is null, or an array breaks Arrow's rules.
        MissingDependencyError: `pyarrow` is not installed.
    """
    column = _Column("add_column", array, f"{_LISTS}; add() takes lists of str")
    if not holds_texts(column.kind):
        raise ArgumentTypeError(f"a column of {escaped(str(column.kind), 60)} does not hold texts")
    for first, part in column:
        with arrow_errors(column.problem(first)):
            for block in blocks(part, _BLOCK_BYTES):
                if len(block.nulls):
                    row = first + int(block.nulls[0])
                    raise CorpusError(f"row {row} is null: leave such rows out, or make them empty texts")
                yield block.data, block.offsets


class _Column:
    """A column of any library: an iterator of its arrays, each with the number of its first row.

    Args:
        method: The method that takes it, for messages.
        array: The column.
        advice: What to pass instead.

    Raises:
        ArgumentTypeError: It is not a column of Arrow, or a table with several columns.
        CorpusError: pyarrow cannot read it.
        MissingDependencyError: `pyarrow` is not installed.
    """

    def __init__(self, method: str, array: Any, advice: str) -> None:
        library = type(array).__module__.partition(".")[0]
        has_capsules = hasattr(array, "__arrow_c_array__") or hasattr(array, "__arrow_c_stream__")
        if isinstance(array, type) or not (has_capsules or library == "pandas"):
            if library == "datasets":
                advice = 'take the column of dataset.with_format("arrow"), or dataset.data.column(name)'
            raise ArgumentTypeError(f"{method} takes a column of Arrow, not {type(array).__name__}: {advice}")
        pyarrow = import_library("pyarrow", "arrow")
        self._method = method
        self._arrays: Iterator[Any]
        with arrow_errors(f"{method}: the column cannot be read"):
            try:
                if not has_capsules:  # a pandas before version 3
                    array = pyarrow.array(array, from_pandas=True)
                kind, self._arrays, self.is_chunked = _opened(pyarrow, array)
            except (TypeError, ValueError) as error:
                raise ArgumentTypeError(
                    f"{method}: pyarrow cannot convert the column: {escaped(str(error), 160)}"
                ) from None
        if pyarrow.types.is_struct(kind):
            names = [kind.field(number).name for number in range(kind.num_fields)]
            if not names:
                raise ArgumentTypeError("the table has no columns")
            if len(names) > 1:
                shown = escaped(", ".join(map(repr, names)), 160)
                raise ArgumentTypeError(f"the table has {len(names)} columns; select one of them: {shown}")
            kind = kind.field(0).type
        self.kind = kind.storage_type if isinstance(kind, pyarrow.BaseExtensionType) else kind

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        pyarrow = import_library("pyarrow")
        first = 0
        while True:
            with arrow_errors(self.problem(first)):
                array = next(self._arrays, None)
                if array is None:
                    return
                if not len(array):  # whose buffers pyarrow may refuse
                    array = pyarrow.nulls(0)
                if pyarrow.types.is_struct(array.type):
                    array.validate()
                    array = array.flatten()[0]
                if isinstance(array, pyarrow.ExtensionArray):
                    array = array.storage
            yield first, array
            first += len(array)

    def problem(self, first: int) -> str:
        """Return the beginning of a message about the array that begins with a row."""
        return f"{self._method}: the rows from {first:,} on cannot be read"

    def of_results(self, arrays: list[Any], kind: Any) -> Any:
        """Return arrays of a type as one array, or as the chunks of one, as the column is."""
        pyarrow = import_library("pyarrow")
        return pyarrow.chunked_array(arrays, kind) if self.is_chunked else arrays[0]


def _opened(pyarrow: Any, array: Any) -> tuple[Any, Iterator[Any], bool]:
    """Return the type of the arrays of a column, the arrays, and whether they are a stream.

    A stream of record batches is read batch by batch.
    """
    if hasattr(array, "__arrow_c_array__"):
        array = array if isinstance(array, pyarrow.Array) else pyarrow.array(array)
        return array.type, iter([array]), False
    if not isinstance(array, pyarrow.ChunkedArray):
        try:
            reader = pyarrow.RecordBatchReader.from_stream(array)
        except pyarrow.ArrowInvalid:  # the stream of a column, such as one of strings
            array = pyarrow.chunked_array(array)
        else:
            batches = (batch.to_struct_array() for batch in reader)
            return pyarrow.struct(list(reader.schema)), batches, True
    return array.type, iter(array.chunks), True


# Encoding


def _lists(
    array: Any,
    first: int,
    encode: Callable[[npt.NDArray[np.uint8], npt.NDArray[np.int64]], _Ids],
    max_ids: int,
) -> Iterator[Any]:
    """Yield the lists of ids of an array of texts, in arrays of at most `max_ids` ids."""
    pyarrow = import_library("pyarrow")
    texts = Texts.of(array)
    index = texts.index
    if index is None:
        data, offsets = buffers(texts.array)
    else:  # a dictionary, of which each text that occurs is encoded once
        used, index = texts.used()
        data, offsets = buffers(used)
    try:
        ids, ends = encode(data, offsets)
    except CorpusError as error:
        raise _not_utf8(texts.valid, index, data, offsets, first) or error from None
    lengths = np.diff(ends)
    if index is not None:
        lengths = lengths[index]
        ids = _taken(ids, ends, index, _ends(lengths, None))
    values = pyarrow.array(ids)
    ends = _ends(lengths, texts.valid)
    for start, stop in _ranges(ends, max_ids, first, "ids", "list"):
        begin = ends[start]
        places = pyarrow.array((ends[start : stop + 1] - begin).astype(np.int32))
        nulls = None if texts.valid is None else pyarrow.array(~texts.valid[start:stop])
        yield pyarrow.ListArray.from_arrays(places, values.slice(begin, ends[stop] - begin), mask=nulls)


def _taken(
    ids: npt.NDArray[np.uint32],
    ends: npt.NDArray[np.int64],
    index: npt.NDArray[np.int64],
    taken_ends: npt.NDArray[np.int64],
) -> npt.NDArray[np.uint32]:
    """Return the ids of the texts with these positions, one after the other."""
    pyarrow = import_library("pyarrow")
    # As bytes, which `take` copies: for lists, it makes an index of all ids.
    parts = [None, pyarrow.py_buffer(ids.itemsize * ends), pyarrow.py_buffer(ids)]
    texts = pyarrow.Array.from_buffers(pyarrow.large_binary(), len(ends) - 1, parts)
    taken = np.empty(taken_ends[-1], ids.dtype)
    for start, stop in cuts(taken_ends[1:], _BLOCK_BYTES // ids.itemsize):
        rows = texts.take(pyarrow.array(index[start:stop]))
        taken[taken_ends[start] : taken_ends[stop]] = buffers(rows)[0].view(ids.dtype)
    return taken


def _ends(lengths: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.int64]:
    """Return the start of each row and the end of the last, from the lengths of those that are not null."""
    sizes = lengths
    if valid is not None:
        sizes = np.zeros(len(valid), np.int64)
        sizes[valid] = lengths
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


def _ranges(
    ends: npt.NDArray[np.int64], limit: int, first: int, items: str, holder: str
) -> Iterator[tuple[int, int]]:
    """Yield the ranges of rows, at least one, with at most `limit` items."""
    for start, stop in list(cuts(ends[1:], limit)) or [(0, 0)]:
        size = int(ends[stop] - ends[start])
        if size > limit:
            raise CorpusError(
                f"row {first + start} has {size} {items}, more than the {limit} that a {holder} of Arrow "
                "holds"
            )
        yield start, stop


def _not_utf8(
    valid: npt.NDArray[np.bool_] | None,
    index: npt.NDArray[np.int64] | None,
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    first: int,
) -> CorpusError | None:
    """Return the error for the first row that is not UTF-8. Arguments: of `Texts`; texts; the first row."""
    bad = _core.find_bad_rows(data, offsets)
    texts = np.arange(len(offsets) - 1) if index is None else index
    found = np.flatnonzero(np.isin(texts, bad))
    if not len(found):
        return None
    row = int(found[0]) if valid is None else int(np.flatnonzero(valid)[found[0]])
    text = texts[found[0]]
    try:
        data[offsets[text] : offsets[text + 1]].tobytes().decode()
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not valid UTF-8; convert the text to UTF-8 first"
        return CorpusError(f"row {first + row}: {problem}")
    return None


# Decoding


def _holds_ids(kind: Any) -> bool:
    """Return whether a type is one of lists of integers, or of nulls."""
    types = import_library("pyarrow").types
    if types.is_null(kind):
        return True
    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view)
    is_list = any(is_kind(kind) for is_kind in (*lists, types.is_large_list_view))
    return is_list and (types.is_integer(kind.value_type) or types.is_null(kind.value_type))


def _ids(array: Any, first: int) -> _Ids:
    """Return the ids of an array of lists, and the start of each list with the end of the last.

    A list that is null has none.
    """
    pyarrow = import_library("pyarrow")
    array.validate(full=True)
    if pyarrow.types.is_null(array.type):
        return np.zeros(0, np.uint32), np.zeros(len(array) + 1, np.int64)
    lengths = import_library("pyarrow.compute").list_value_length(array)
    offsets = _ends(lengths.drop_null().to_numpy(zero_copy_only=False), validity(array))
    items = array.flatten()  # those of lists that are not null
    if items.null_count:
        row, position, _ = _place(items.is_null().to_numpy(zero_copy_only=False), offsets)
        raise CorpusError(f"row {first + row}: the id at position {position} is null")
    try:
        ids = items.cast(pyarrow.uint32()).to_numpy(zero_copy_only=False)
    except pyarrow.ArrowInvalid:
        values = items.to_numpy(zero_copy_only=False)
        row, position, place = _place((values < 0) | (values > _MAX_ID), offsets)
        raise UnknownIdError(
            f"row {first + row}: id {values[place]} at position {position} is not in the vocabulary"
        ) from None
    return np.require(ids, requirements="A"), offsets


def _place(is_wrong: npt.NDArray[np.bool_], offsets: npt.NDArray[np.int64]) -> tuple[int, int, int]:
    """Return the row of the first id that is wrong, its position there, and among all."""
    place = int(np.flatnonzero(is_wrong)[0])
    row = int(np.searchsorted(offsets, place, side="right")) - 1
    return row, place - int(offsets[row]), place


def _check_texts(text: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], first: int) -> None:
    """Raise the error of `bytes.decode` for the first row that is not UTF-8."""
    for row in _core.find_bad_rows(text, ends)[:1].tolist():
        try:
            text[ends[row] : ends[row + 1]].tobytes().decode()
        except UnicodeDecodeError as error:
            error.reason += f", in row {first + row}"
            raise decoding_error(error) from None


def _strings(
    text: npt.NDArray[np.uint8],
    ends: npt.NDArray[np.int64],
    valid: npt.NDArray[np.bool_] | None,
    first: int,
    is_chunked: bool,
    max_bytes: int,
) -> Iterator[Any]:
    """Yield texts in arrays of `string`; as one of `large_string`, if they are one with too many bytes."""
    pyarrow = import_library("pyarrow")
    is_large = not is_chunked and len(text) > max_bytes
    kind, places = (pyarrow.large_string(), np.int64) if is_large else (pyarrow.string(), np.int32)
    ranges = [(0, len(ends) - 1)] if is_large else _ranges(ends, max_bytes, first, "bytes", "string")
    for start, stop in ranges:
        begin = ends[start]
        # An array of `bool` has the bits that say which rows are valid.
        bits = None if valid is None else pyarrow.array(valid[start:stop]).buffers()[1]
        offsets = (ends[start : stop + 1] - begin).astype(places)
        content = pyarrow.py_buffer(text[begin : ends[stop]])
        yield pyarrow.Array.from_buffers(kind, stop - start, [bits, pyarrow.py_buffer(offsets), content])
