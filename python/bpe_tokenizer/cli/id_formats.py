"""Ids on their way out of `encode` and into `decode`: text, JSON and binary numbers, in blocks."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bpe_tokenizer import _core
from bpe_tokenizer.errors import OptionError, shorten

__all__ = ["ID_FORMATS", "Ids", "parse_ids", "read_ids", "write_ids"]

# The values of `encode --output-format` and `decode --input-format`.
ID_FORMATS = ("text", "json", "uint16", "uint32")

Ids: TypeAlias = "Sequence[int] | npt.NDArray[np.uint32]"
_Blocks: TypeAlias = Iterable[npt.NDArray[np.uint32]]
_Write: TypeAlias = Callable[[bytes | memoryview], object]
_Tokens: TypeAlias = Callable[[list[int]], list[str]]

# More digits than any id has; Python reads no number of many thousands.
_MAX_DIGITS = 20
_MAX_UINT16 = 0xFFFF
# JSON that `encode` writes: a list, or an object on a line whose first member is the ids.
_BEGIN_OF_JSON = re.compile(rb'(\{ *"ids" *: *)?\[')
_BEGIN_BYTES = 64
_FIRST_WORD = re.compile(rb"[^\s,\x1c-\x1f]*")
_LAST_WORD = re.compile(rb"[^\s,\x1c-\x1f]*\Z")


def write_ids(format_: str, blocks: _Blocks, write: _Write, tokens_of: _Tokens) -> None:
    """Write the ids of one text, block by block.

    Args:
        format_: One of `ID_FORMATS`.
        blocks: The ids.
        write: Receives the output.
        tokens_of: Returns the printable tokens of ids, which JSON shows too.

    Raises:
        OptionError: An id needs more bits than the format has.
    """
    if format_ == "text":
        _write_numbers(blocks, b" ", write)
        write(b"\n")
    elif format_ == "json":
        _write_json(blocks, write, tokens_of)
    elif format_ == "uint32":
        for ids in blocks:
            write(ids.astype("<u4", copy=False).data.cast("B"))
    else:
        for ids in blocks:
            if ids.size and (largest := int(ids.max())) > _MAX_UINT16:
                raise OptionError(
                    f"id {largest} does not fit into uint16, whose largest number is 65,535; "
                    "use --output-format uint32"
                )
            write(ids.astype("<u2").data.cast("B"))


def _write_numbers(blocks: _Blocks, separator: bytes, write: _Write) -> None:
    before = b""
    for ids in blocks:
        if ids.size:
            write(before)
            text = _core.write_ids(ids)
            numbers = memoryview(text)[:-1]
            write(numbers if separator == b" " else bytes(numbers).replace(b" ", separator))
            before = separator


def _write_json(blocks: _Blocks, write: _Write, tokens_of: _Tokens) -> None:
    """Write the ids at once, and the tokens to a temporary file until the ids end."""
    with tempfile.SpooledTemporaryFile(max_size=1 << 20) as tokens:
        write(b'{"ids": [')
        _write_numbers(_with_tokens(blocks, tokens, tokens_of), b", ", write)
        write(b'], "tokens": [')
        tokens.seek(0)
        while block := tokens.read(1 << 20):
            write(block)
        write(b"]}\n")


def _with_tokens(blocks: _Blocks, tokens: IO[bytes], tokens_of: _Tokens) -> Iterator[Any]:
    before, token_of = b"", _JsonTokens(tokens_of)
    for ids in blocks:
        if ids.size:
            tokens.write(before + b", ".join(map(token_of.__getitem__, ids.tolist())))
            before = b", "
        yield ids


class _JsonTokens(dict[int, bytes]):
    """The token of each id as a JSON string, made when it is first asked for."""

    def __init__(self, tokens_of: _Tokens) -> None:
        self._tokens_of = tokens_of

    def __missing__(self, token_id: int) -> bytes:
        self[token_id] = token = json.dumps(self._tokens_of([token_id])[0]).encode("ascii")
        return token


def read_ids(format_: str | None, blocks: Iterable[bytes]) -> Iterator[Ids]:
    """Read the ids of one input, block by block.

    Args:
        format_: One of `ID_FORMATS`; None tells JSON from text by the first character.
        blocks: The input.

    Raises:
        OptionError: Something in the input is not an id.
    """
    if format_ in ("uint16", "uint32"):
        return _binary_ids(format_, blocks)
    first, blocks = _first_character(blocks)
    if format_ == "json" and first and first not in b"[{":
        raise OptionError("the ids are not JSON: it begins with [ or {")
    is_json = format_ == "json" or (format_ is None and first and first in b"[{")
    return _json_ids(blocks) if is_json else _text_ids(blocks)


def parse_ids(text: str) -> list[int]:
    """Parse ids: numbers separated by white space or commas, a JSON list, or the output of `encode --json`.

    Args:
        text: The ids as text.

    Raises:
        OptionError: Something in the text is not an id.

    Example:
        >>> parse_ids("9906 11"), parse_ids("[9906, 11]"), parse_ids('{"ids": [9906, 11]}')
        ([9906, 11], [9906, 11], [9906, 11])
    """
    data = text.encode("utf-8", errors="surrogateescape")
    return [int(each) for ids in read_ids(None, [data]) for each in ids]


def _first_character(blocks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first character that is not white space, and all blocks."""
    rest = iter(blocks)
    for block in rest:
        if stripped := block.lstrip():
            return stripped[:1], _chained(stripped, rest)
    return b"", iter(())


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _binary_ids(format_: str, blocks: Iterable[bytes]) -> Iterator[npt.NDArray[np.uint32]]:
    size = 2 if format_ == "uint16" else 4
    rest = b""
    for block in blocks:
        data = rest + block if rest else block
        whole = len(data) // size * size
        rest = data[whole:]
        yield np.frombuffer(data, f"<u{size}", whole // size).astype(np.uint32, copy=False)
    if rest:
        raise OptionError(
            f"the ids are not {format_}: the last one has {len(rest)} of {size} bytes; "
            "--input-format names the format"
        )


def _text_ids(blocks: Iterable[bytes]) -> Iterator[Ids]:
    rest, pending = b"", list[Ids]()
    for block in blocks:
        data = rest + block if rest else block
        # The last word may continue in the next block. A longer word is not an id.
        word = _LAST_WORD.search(data, max(0, len(data) - _MAX_DIGITS - 1))
        cut = word.start() if word and len(word[0]) <= _MAX_DIGITS else len(data)
        rest = data[cut:]
        found = _numbers(data[:cut])
        yield from pending
        pending = found
    last = _numbers(rest)  # may be wrong, which a short input shows before any output
    yield from pending
    yield from last


def _numbers(data: bytes) -> list[Ids]:
    """Return the ids of whole words."""
    found: list[Ids] = []
    start = 0
    while start < len(data):
        ids, length = _core.read_ids(data[start:] if start else data)
        found.append(ids)
        start += length
        if start < len(data):
            word = _FIRST_WORD.match(data, start, start + 10_000)[0]  # type: ignore[index]
            if not word.isdigit() or len(word) > _MAX_DIGITS:
                shown = shorten(word.decode("utf-8", errors="surrogateescape"))
                raise OptionError(f"{shown} is not an id: ids are whole numbers from 0")
            found.append([int(word)])  # larger than any id: the decoder says that it is unknown
            start += len(word)
    return found


def _json_ids(blocks: Iterator[bytes]) -> Iterator[Ids]:
    """Yield the ids of JSON values in sequence. Only JSON of another form than ours is read as a whole."""
    data = b""
    while True:
        while len(data) < _BEGIN_BYTES and (block := next(blocks, b"")):
            data += block
        data = data.lstrip()
        if not data:
            return
        begin = _BEGIN_OF_JSON.match(data)
        if begin is None:
            yield _ids_of(_json_value(data + b"".join(blocks)))
            return
        data = yield from _json_list(data[begin.end() :], blocks)
        if begin[1]:
            data = _after_object(data, blocks)


def _json_list(data: bytes, blocks: Iterator[bytes]) -> Generator[Ids, None, bytes]:
    """Yield the ids of a list after its `[`, and return what follows its `]`."""
    is_first = True
    while True:
        end = data.find(b"]")
        comma = data.rfind(b",")
        if end >= 0:
            yield _items(data[:end], is_first)
            return data[end + 1 :]
        if comma > 0:
            yield _items(data[:comma], is_first)
            data, is_first = data[comma + 1 :], False
        block = next(blocks, b"")
        if not block:
            raise OptionError("the ids are not valid JSON: the list does not end")
        data += block


def _items(data: bytes, is_first: bool) -> Ids:
    """Return the ids of a list's items, the first ones or those that follow a comma."""
    ids, _ = _core.read_ids(data)
    # `read_ids` also takes what JSON does not: the same ids are written again, with a comma between two.
    if ids.size and data.count(b",") == ids.size - 1:
        plain = data.lstrip(b" ").replace(b", ", b",").replace(b",", b" ")
        if plain == _core.write_ids(ids)[:-1]:
            return ids
    if b"[" in data:
        raise OptionError("JSON ids must be a list of numbers, not of lists: write each list on its own line")
    before = b"[" if is_first else b"[0,"
    return _ids_of(_json_value(before + data + b"]"))[not is_first :]


def _after_object(data: bytes, blocks: Iterator[bytes]) -> bytes:
    """Skip the other members of an object, which ends with its line, and return what follows."""
    last = b""
    while b"\n" not in data:
        last = data.rstrip()[-1:] or last
        block = next(blocks, b"")
        if not block:
            data = b""
            break
        data = block
    line, _, rest = data.partition(b"\n")
    if (line.rstrip()[-1:] or last) != b"}":
        raise OptionError("the ids are not valid JSON: the object does not end on its line")
    return rest


def _json_value(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"the ids are not valid JSON: {error}") from None


def _ids_of(value: Any) -> list[int]:
    ids = value.get("ids") if isinstance(value, dict) else value
    if not isinstance(ids, list):
        raise OptionError('JSON ids must be a list of numbers, or an object with such a list as "ids"')
    for each in ids:
        if type(each) is not int or each < 0:
            raise OptionError(f"{shorten(each)} is not an id: ids are whole numbers from 0")
    return ids
