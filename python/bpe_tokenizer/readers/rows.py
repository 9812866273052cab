"""The rows of one file of text or JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bpe_tokenizer import _core
from bpe_tokenizer.options import ReadOptions
from bpe_tokenizer.readers.compression import CHUNK_BYTES
from bpe_tokenizer.readers.fields import row_id, row_text

__all__ = [
    "BATCH_BYTES",
    "FileRows",
    "decoding_problem",
    "json_rows",
    "range_chunks",
    "text_rows",
    "texts_of",
    "with_names",
    "without",
]

# Content of a batch, unless one row is longer.
BATCH_BYTES = 4 << 20

RowKind: TypeAlias = Literal["line", "json", "separated"]
# The text of a row, or None and what is wrong with the row.
_Decided: TypeAlias = tuple[str | None, str]


class FileRows(NamedTuple):
    """Documents of one file.

    Args:
        data: Their UTF-8, concatenated.
        offsets: The start of each, and the end of the last.
        rows: The number of the row of each, from 1.
        bad: The rows without a valid document, each with its problem.
        names: The own id of each, a str; None if it is not read.
    """

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    bad: tuple[tuple[int, str], ...] = ()
    names: npt.NDArray[np.object_] | None = None


class _RowField(NamedTuple):
    """What is read of each row.

    Args:
        kind: What a row is.
        name: The field, or the separator.
        value: The value of a row of JSON that the core leaves undecided.
    """

    kind: RowKind
    name: str = ""
    value: Callable[[Mapping[str, Any], str], _Decided] = row_text


def text_rows(
    chunks: Iterator[bytes], options: ReadOptions, after: int, threads: int, block_bytes: int = BATCH_BYTES
) -> Generator[FileRows, None, None]:
    r"""Yield the documents of a text: its lines, what lies between separators, or all of it.

    A line ends at `\n` or `\r\n` and nowhere else. Empty documents are left out.

    Args:
        chunks: The content.
        options: Tell what a document is.
        after: Skip the rows up to this number without checking them.
        threads: The number of threads that split a block.
        block_bytes: The bytes of a block.
    """
    if options.separator is not None:
        yield from _rows(chunks, _RowField("separated", options.separator), after, threads, block_bytes)
    elif options.documents == "file":
        yield from _whole(chunks, after)
    else:
        yield from _rows(chunks, _RowField("line"), after, threads, block_bytes)


def json_rows(
    chunks: Iterator[bytes], options: ReadOptions, after: int, threads: int, block_bytes: int = BATCH_BYTES
) -> Generator[FileRows, None, None]:
    """Yield the documents of JSON Lines: the strings in a field. Lines of white space are left out.

    The options name the fields. The other arguments are those of `text_rows`.
    """
    text = _RowField("json", options.field, partial(row_text, as_json=options.as_json))
    own_id = None if options.id_field is None else _RowField("json", options.id_field, row_id)
    yield from _rows(chunks, text, after, threads, block_bytes, own_id)


def range_chunks(chunks: Iterator[bytes], length: int, starts_inside: bool) -> Generator[bytes, None, None]:
    """Yield the lines that start in a range of bytes.

    Args:
        chunks: The content, from the byte before the range if `starts_inside`, else from the range's start.
        length: The number of bytes of the range.
        starts_inside: Whether the range starts after the start of the file. The rest of a line that begins
            before it is left out.
    """
    skipping = starts_inside
    left = length + starts_inside
    for chunk in chunks:
        part = chunk
        if skipping:
            end = chunk.find(b"\n") + 1
            if end == 0:
                left -= len(chunk)
                if left <= 0:
                    return
                continue
            skipping = False
            part = chunk[end:]
            left -= end
        if left <= 0:
            return
        if len(part) < left:
            left -= len(part)
            if part:
                yield part
            continue
        # The last line goes on to its end.
        end = part.find(b"\n", left - 1) + 1
        if end:
            yield part[:end]
            return
        yield part
        left = 1


def _rows(
    chunks: Iterator[bytes], field: _RowField, after: int, threads: int, block_bytes: int,
    own_id: _RowField | None = None,
) -> Generator[FileRows, None, None]:  # fmt: skip
    done = 0
    pool = _core.BufferPool()
    read = partial(_block_rows, after=after, threads=threads, pool=pool)
    end = field.name.encode() if field.kind == "separated" else b"\n"
    for block in _blocks(chunks, end, block_bytes):
        rows, count = read(block, field, done + 1)
        if own_id is not None:
            ids, _ = read(block, own_id, done + 1)
            found: dict[int, _Decided] = {number: (None, problem) for number, problem in ids.bad}
            texts = texts_of(ids.data, ids.offsets)
            found.update((number, (text, "")) for number, text in zip(ids.rows.tolist(), texts, strict=True))
            rows = with_names(rows, found)
            del ids
        done += count
        if isinstance(block, bytearray):
            block.clear()  # frees it while the consumer works
        if len(rows.rows) or rows.bad:
            yield rows
        del rows


def _block_rows(
    block: memoryview | bytearray, field: _RowField, first: int, after: int, threads: int, pool: Any
) -> tuple[FileRows, int]:
    """Return what a field has in the rows of a block, and the number of all rows."""
    view = np.frombuffer(block, np.uint8)
    data, offsets, numbers, undecided, count = _core.read_rows(
        view, field.kind, field.name.encode(), first=first, after=after, threads=threads, pool=pool
    )
    del view
    rows = FileRows(data, offsets, numbers)
    if undecided:
        decided = [
            (before, number, *_decide(bytes(block[start:stop]), field))
            for number, start, stop, before in undecided
        ]
        rows = _inserted(rows, decided)
    return rows, count


def _blocks(
    chunks: Iterator[bytes], end: bytes, block_bytes: int
) -> Generator[memoryview | bytearray, None, None]:
    """Yield blocks of whole rows, of about `block_bytes`, or of one row.

    The first blocks are smaller, so that the consumer begins to work early.

    A `memoryview` is valid until the next block, which uses the same memory. The consumer may clear a
    `bytearray`.
    """
    usual = block_bytes + CHUNK_BYTES
    wanted = min(CHUNK_BYTES, block_bytes)
    room = bytearray()
    held = searched = 0
    for chunk in chunks:
        if held + len(chunk) > len(room):
            del room[held:]
            room += chunk
        else:
            memoryview(room)[held : held + len(chunk)] = chunk
        held += len(chunk)
        if held < wanted:
            continue
        cut = _last_end(room, end, searched, held)
        if cut == 0:
            # A row end may begin at the end of this chunk.
            searched = max(held - len(end) + 1, 0)
            continue
        rest = room[cut:held]
        if len(room) > usual:
            del room[cut:]
            yield room
            room = bytearray()
        else:
            with memoryview(room) as whole, whole[:cut] as block:
                yield block
        room[: len(rest)] = rest
        held, searched = len(rest), 0
        wanted = min(2 * wanted, block_bytes)
    del room[held:]
    if room:
        yield room


def _last_end(held: bytearray, end: bytes, start: int, stop: int) -> int:
    """Return where the last row ends; 0 if none does. `start` is where the first end may begin."""
    if len(end) == 1:
        return held.rfind(end, start, stop) + 1
    # From the left: a separator may overlap itself.
    cut = 0
    while (found := held.find(end, max(start, cut), stop)) >= 0:
        cut = found + len(end)
    return cut


def _whole(chunks: Iterator[bytes], after: int) -> Generator[FileRows, None, None]:
    if after:
        return
    held = bytearray()
    for chunk in chunks:
        held += chunk
    if not held:
        return
    data = np.frombuffer(held, np.uint8)
    offsets = np.array([0, len(held)], np.int64)
    if len(_core.find_bad_rows(data, offsets)):
        yield _bad(1, decoding_problem(bytes(held)))
    else:
        del held
        yield FileRows(data, offsets, np.ones(1, np.int64))


def _bad(number: int, problem: str) -> FileRows:
    nothing = np.zeros(0, np.int64)
    return FileRows(np.zeros(0, np.uint8), np.zeros(1, np.int64), nothing, ((number, problem),))


def _inserted(rows: FileRows, decided: list[tuple[int, int, bytes | None, str]]) -> FileRows:
    """Insert rows that were decided here.

    Args:
        rows: The others.
        decided: The number of documents before a row, its number, its text if it is a document, or its
            problem.
    """
    bad = tuple((number, problem) for _, number, text, problem in decided if text is None)
    good = [(before, number, text) for before, number, text, _ in decided if text is not None]
    if not good:
        return rows._replace(bad=bad)
    data, offsets, numbers = rows[:3]
    parts: list[npt.NDArray[np.uint8]] = []
    places = [before for before, _, _ in good]
    start = 0
    for before, _, text in good:
        end = int(offsets[before])
        parts += [data[start:end], np.frombuffer(text, np.uint8)]
        start = end
    parts.append(data[start:])
    sizes = np.insert(np.diff(offsets), places, [len(text) for _, _, text in good])
    all_offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=all_offsets[1:])
    all_numbers = np.insert(numbers, places, [number for _, number, _ in good])
    return FileRows(np.concatenate(parts), all_offsets, all_numbers, bad)


def _decide(line: bytes, field: _RowField) -> tuple[bytes | None, str]:
    """Return the text of a row that the core left undecided, or what is wrong with it."""
    if field.kind == "json":
        return _json_text(line, field.name, field.value)
    if field.kind == "line":
        line = line.removesuffix(b"\r\n" if line.endswith(b"\r\n") else b"\n")
    else:
        line = line.removesuffix(field.name.encode())
    return None, decoding_problem(line)


def _json_text(
    line: bytes, field: str, read: Callable[[Mapping[str, Any], str], _Decided] = row_text
) -> tuple[bytes | None, str]:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None, decoding_problem(line)
    except json.JSONDecodeError as error:
        return None, f"is not valid JSON: {error.msg.removesuffix(' at')} at its character {error.pos}"
    except (ValueError, RecursionError) as error:
        return None, f"is JSON that Python cannot read: {str(error)[:80]}"
    if not isinstance(value, dict):
        return None, f"is not a JSON object, but {type(value).__name__}"
    text, problem = read(value, field)
    if text is None:
        return None, problem
    try:
        return text.encode(), ""
    except UnicodeEncodeError:
        # Lone surrogates become U+FFFD, as everywhere in this package.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode(), ""


def texts_of(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> list[str]:
    """Return texts as strings.

    Args:
        data: Their UTF-8, concatenated.
        offsets: The start of each, and the end of the last.
    """
    view = memoryview(np.ascontiguousarray(data).data)
    return [str(view[start:end], "utf-8") for start, end in pairwise(offsets.tolist())]


def with_names(rows: FileRows, found: Mapping[int, _Decided]) -> FileRows:
    """Return the documents with their own ids, without those whose id is bad.

    Args:
        rows: The documents.
        found: The id of each row, by its number, or None and what is wrong with it.
    """
    ids = [found[number] for number in rows.rows.tolist()]
    names = np.array([name for name, _ in ids if name is not None], object)
    wrong = {place: problem for place, (name, problem) in enumerate(ids) if name is None}
    return without(rows, wrong)._replace(names=names)


def without(rows: FileRows, wrong: Mapping[int, str]) -> FileRows:
    """Return rows without some documents, which become bad rows.

    Args:
        rows: The rows.
        wrong: What is wrong with a document, by its index.
    """
    if not wrong:
        return rows
    good = np.ones(len(rows.rows), bool)
    good[[*wrong]] = False
    lengths = np.diff(rows.offsets)
    bad = [(int(rows.rows[place]), problem) for place, problem in wrong.items()]
    return FileRows(
        rows.data[np.repeat(good, lengths)],
        np.concatenate(([0], np.cumsum(lengths[good]))),
        rows.rows[good],
        tuple(sorted([*rows.bad, *bad])),
    )


def decoding_problem(data: bytes) -> str:
    """Return where bytes that are not UTF-8 are not."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"is not UTF-8: byte 0x{data[error.start]:02x} at its offset {error.start}"
    raise AssertionError("these bytes are UTF-8")
