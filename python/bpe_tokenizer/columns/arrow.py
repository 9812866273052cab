"""Columns of any library that has Arrow's capsules, encoded and decoded in the core.

https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_flag, thread_count
from bpe_tokenizer.decoding import decoding_error
from bpe_tokenizer.encoding import resolve_allowed_special
from bpe_tokenizer.errors import ArgumentTypeError, CorpusError, MissingDependencyError, OptionError, shorten
from bpe_tokenizer.libraries import import_library

if TYPE_CHECKING:
    from bpe_tokenizer.compiled import CompiledModel
    from bpe_tokenizer.special_tokens import AllowedSpecial

__all__ = ["decode_column", "encode_column", "text_blocks"]

_HANDLERS = ("replace", "strict", "ignore")
# The most ids, or bytes of text, of an array whose offsets have 32 bits.
_MAX_ITEMS = 2**31 - 1
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
        OptionError: `allowed_special` is another `str` than `"all"` or `"none"`.
        SpecialTokenError: A set names an unknown token.
    """
    special = resolve_allowed_special(compiled, (), allowed_special)
    added = compiled.added_ids(check_flag("add_special_tokens", add_special_tokens))
    count = thread_count(threads)
    advice = f"{_LISTS}; encode_ragged() and encode_batch() take lists of str"
    reader = _open_column("encode_arrow", array, advice)
    if not reader.holds_texts:
        raise ArgumentTypeError(
            f"encode_arrow takes a column of strings, or of binary values in UTF-8, not {reader.type_name}"
        )
    parts = [compiled.encoder.encode_column(part, special, count, added, max_ids) for part in reader]
    if not reader.is_chunked and len(parts[0]) > 1:
        raise CorpusError(
            f"the array has more ids than the {max_ids:,} of a list array: encode slices of it, or a "
            "chunked array of one chunk, whose result has several"
        )
    return _result([array for part in parts for array in part], "list", reader.is_chunked)


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
        OptionError: `errors` is none of these.
        UnknownIdError: An id is not in the vocabulary.
    """
    if not isinstance(errors, str):
        raise ArgumentTypeError(f"errors must be a str, not {type(errors).__name__}")
    if errors not in _HANDLERS:
        raise OptionError(f"errors is {shorten(errors)}; it must be 'replace', 'strict' or 'ignore'")
    count = thread_count(threads)
    reader = _open_column("decode_arrow", array, f"{_LISTS}; decode_batch() takes lists of ids")
    if not reader.holds_ids:
        raise ArgumentTypeError(f"decode_arrow takes a column of lists of integers, not {reader.type_name}")
    arrays = []
    try:
        for part in reader:
            arrays += compiled.encoder.decode_column(
                part,
                skip_special_tokens,
                cast("Literal['replace', 'strict', 'ignore']", errors),
                count,
                reader.is_chunked,
                max_bytes,
            )
    except UnicodeDecodeError as error:
        raise decoding_error(error) from None
    return _result(arrays, "string", reader.is_chunked)


def text_blocks(array: Any) -> Iterator[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]]:
    """Yield the rows of a column of texts in blocks of about 4 MB.

    Args:
        array: The column.

    Yields:
        The concatenated bytes of the rows, and the offsets of the rows and of the end.

    Raises:
        ArgumentTypeError: It is not a column of texts.
        CorpusError: A row is null, or an array breaks Arrow's rules.
    """
    reader = _open_column("add_column", array, f"{_LISTS}; add() takes lists of str")
    if not reader.holds_texts:
        raise ArgumentTypeError(f"a column of {reader.type_name} does not hold texts")
    for part in reader:
        start = 0
        while start < len(part):
            data, offsets = part.text_block(start, _BLOCK_BYTES)
            yield data, offsets
            start += len(offsets) - 1


def _open_column(method: str, array: Any, advice: str) -> _core.ArrowReader:
    """Open the arrays of a column, by the capsules that its library offers."""
    if not _has_capsules(array) and type(array).__module__.partition(".")[0] == "pandas":
        array = _from_pandas(method, array)
    if isinstance(array, type) or not _has_capsules(array):
        if type(array).__module__.partition(".")[0] == "datasets":
            advice = 'take the column of dataset.with_format("arrow"), or dataset.data.column(name)'
        raise ArgumentTypeError(f"{method} takes a column of Arrow, not {type(array).__name__}: {advice}")
    if hasattr(array, "__arrow_c_array__"):
        capsules = array.__arrow_c_array__()
        if not isinstance(capsules, tuple) or len(capsules) != 2:
            raise ArgumentTypeError(f"{method}: the column's __arrow_c_array__ did not return two capsules")
        return _core.ArrowReader.from_array(*capsules)
    return _core.ArrowReader.from_stream(array.__arrow_c_stream__())


def _has_capsules(array: object) -> bool:
    return hasattr(array, "__arrow_c_array__") or hasattr(array, "__arrow_c_stream__")


def _from_pandas(method: str, series: Any) -> Any:
    """Convert a `pandas.Series` of a pandas that has no capsules."""
    pyarrow = import_library("pyarrow")
    try:
        return pyarrow.array(series, from_pandas=True)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError) as error:
        raise ArgumentTypeError(
            f"{method}: pyarrow cannot convert the series: {shorten(error, 160)}"
        ) from None


def _result(arrays: list[_core.ArrowArray], type_name: Literal["list", "string"], is_chunked: bool) -> Any:
    """Return arrays of pyarrow over the same memory; where it is not installed, ours."""
    try:
        pyarrow = import_library("pyarrow")
    except MissingDependencyError:
        return _core.ArrowChunkedArray(type_name, arrays) if is_chunked else arrays[0]
    if not is_chunked:
        return pyarrow.array(arrays[0])
    kind = pyarrow.list_(pyarrow.uint32()) if type_name == "list" else pyarrow.string()
    return pyarrow.chunked_array([pyarrow.array(array) for array in arrays], kind)
