"""Ids to text: the forms that ids come in, and bytes that are not UTF-8."""

from __future__ import annotations

import codecs
import operator
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, cast

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import items_in_turn, items_of
from bpe_tokenizer.compiled import CompiledModel
from bpe_tokenizer.display.text import printable_bytes
from bpe_tokenizer.errors import ArgumentTypeError, DecodingError, OptionError, shorten

if TYPE_CHECKING:
    import numpy.typing as npt

    from bpe_tokenizer.results import EncodingResult

__all__ = [
    "Ids",
    "ResultList",
    "build_byte_to_char",
    "build_char_to_byte",
    "check_error_handler",
    "decoding_error",
    "id_row",
    "id_rows",
    "is_utf8",
    "row_error",
    "to_ids",
    "to_text",
    "tokens_to_text",
]

# Ids as callers have them: one, or several in a list, an array or a tensor.
Ids: TypeAlias = "SupportsIndex | Iterable[SupportsIndex] | EncodingResult | Mapping[str, object]"
Row: TypeAlias = "Sequence[int] | npt.NDArray[Any]"


class ResultList(list[Any]):
    """A list of ids or rows, for callers who may expect a dict of columns: `result["input_ids"]`."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        """Return an item or a slice, as a list does. The name of a column is an error."""
        if isinstance(index, str):
            raise ArgumentTypeError(
                f"this result is a list and has no column {shorten(index)}: pass return_dict=True"
            )
        return super().__getitem__(index)

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Any]]]:
        """Pickle and copy it as the plain list that it is, so that no reader needs this package."""
        return list, (list(self),)


def to_ids(ids: Any) -> int | Sequence[int]:
    """Return ids as an `int` or a sequence of `int`.

    Args:
        ids: An integer, a list, another iterable, or a NumPy array or PyTorch tensor of 0 or 1 dimensions;
            an `EncodingResult` or a dict with `input_ids`.

    Raises:
        ArgumentTypeError: It is none of these.
    """
    if type(ids) in (list, tuple):
        return cast("Sequence[int]", ids)
    ids = _input_ids(ids)
    if hasattr(ids, "tolist"):
        ids = ids.tolist()
        if isinstance(ids, list) and ids and isinstance(ids[0], list):
            raise ArgumentTypeError("ids have more than one dimension; decode_batch() takes rows of ids")
    if isinstance(ids, Iterable) and not isinstance(ids, str | bytes | bytearray):
        return items_of(ids)
    try:
        return operator.index(ids)
    except TypeError:
        name = type(ids).__name__
        raise ArgumentTypeError(f"ids must be an int or a sequence of int, not {name}") from None


def _input_ids(ids: Any) -> Any:
    """The ids of an `EncodingResult`, or of a dict with a column of that name; anything else unchanged."""
    found = ids.get("input_ids") if isinstance(ids, Mapping) else getattr(ids, "input_ids", None)
    return ids if found is None else found


def _row_or_id(ids: Any) -> Any:
    """Return `int | Row`: what `to_ids` returns, but a flat array unchanged: the core reads its memory."""
    if type(ids) is list:
        return ids
    numpy = sys.modules.get("numpy")  # not imported here: nobody can hold an array without it
    if numpy is not None and isinstance(ids, numpy.ndarray) and ids.ndim == 1:
        if type(ids) is numpy.ndarray:
            return ids
        if isinstance(ids, numpy.memmap):
            return ids.view(numpy.ndarray)
    return to_ids(ids)


def id_row(ids: Any) -> Row:
    """Return ids as a row that the core takes; a single id is a row of one."""
    if type(ids) is list:
        return ids  # the usual case, where every call counts
    row = _row_or_id(ids)
    return [row] if isinstance(row, int) else row


def row_error(error: ArgumentTypeError, row: Iterable[Any]) -> ArgumentTypeError:
    """Return the error for a row whose items are not ids, with the call that takes such items.

    >>> row_error(ArgumentTypeError("ids must be integers, not 'lo' at position 0"), ["lo", "w"])
    ArgumentTypeError("ids must be integers, not 'lo' at position 0; convert_tokens_to_string() takes tokens")
    """
    for item in row:
        if isinstance(item, str):
            return ArgumentTypeError(f"{error}; convert_tokens_to_string() takes tokens")
        if isinstance(item, Iterable):
            return ArgumentTypeError(f"{error}; decode_batch() takes rows of ids")
    return error


def id_rows(batch: Iterable[Any]) -> list[Row]:
    """Return several rows of ids.

    Raises:
        ArgumentTypeError: An item is a single id.
    """
    rows: list[Row] = []
    batch = _input_ids(batch)
    if isinstance(batch, str | bytes) or not isinstance(batch, Iterable):
        raise ArgumentTypeError(f"a batch must be an iterable of rows of ids, not {type(batch).__name__}")
    for number, ids in enumerate(items_in_turn(batch)):
        try:
            row = _row_or_id(ids)
        except ArgumentTypeError as error:
            raise ArgumentTypeError(f"item {number} of the batch: {error}") from None
        if isinstance(row, int):
            raise ArgumentTypeError(
                f"item {number} of the batch is an id, not a row of ids; decode() takes one row"
            )
        rows.append(row)
    return rows


def tokens_to_text(compiled: CompiledModel, tokens: Iterable[str]) -> str:
    """Return the text of token strings, without unknown ones. What is not UTF-8 becomes U+FFFD."""
    core, known = compiled.model.core, compiled.token_ids
    changed = {text: token_id for token_id, text in core.normal_forms.items()}
    if core.decoder is not None:
        ids = (known.get(token, changed.get(token)) for token in tokens)
        return compiled.encoder.decode([i for i in ids if i is not None]).decode(errors="replace")
    return b"".join(
        token.encode() if token in compiled.added or token in changed else printable_bytes(token)
        for token in tokens
        if token in known or token in changed
    ).decode(errors="replace")


def build_byte_to_char() -> dict[int, str]:
    """Return GPT-2's printable character for each byte, which token strings and files write.

    https://github.com/openai/gpt-2/blob/master/src/encoder.py: `bytes_to_unicode`

    >>> build_byte_to_char()[32], build_byte_to_char()[65]
    ('Ġ', 'A')
    """
    return {byte: _core.to_printable(bytes([byte])) for byte in range(256)}


def build_char_to_byte(byte_to_char: Mapping[int, str]) -> dict[str, int]:
    """Return the byte for each character: the inverse of `build_byte_to_char`.

    >>> build_char_to_byte(build_byte_to_char())["Ġ"]
    32
    """
    return {character: byte for byte, character in byte_to_char.items()}


def is_utf8(data: bytes) -> bool:
    r"""Return whether bytes are UTF-8.

    >>> is_utf8(b"\xc3\xa9"), is_utf8(b"\xc3")
    (True, False)
    """
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def to_text(data: bytes, errors: str) -> str:
    r"""Decode bytes with an error handler of `bytes.decode`.

    Raises:
        DecodingError: The bytes are not UTF-8, and `errors` is `"strict"`.

    >>> to_text(b"ab\xff", "replace")
    'ab\ufffd'
    """
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise decoding_error(error) from None


def decoding_error(error: UnicodeDecodeError) -> DecodingError:
    """Return a `UnicodeDecodeError` as the package's own class."""
    return DecodingError(error.encoding, error.object, error.start, error.end, error.reason)


def check_error_handler(errors: str) -> None:
    """Check the name of an error handler of `bytes.decode`.

    Raises:
        OptionError: There is no such handler.
    """
    if not isinstance(errors, str):
        raise ArgumentTypeError(f"errors must be a str, not {type(errors).__name__}")
    if errors == "replace":
        return
    try:
        if errors in ("xmlcharrefreplace", "namereplace"):  # They handle errors of encoding only.
            raise LookupError(errors)
        codecs.lookup_error(errors)
    except (LookupError, ValueError):  # ValueError: a NUL or a surrogate
        raise OptionError(
            f"errors is {shorten(errors)}; it must be 'replace', 'strict', 'ignore' or another handler"
        ) from None
