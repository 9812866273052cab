"""Reads the pages of a Parquet column of long texts in steps, https://parquet.apache.org/docs/file-format/.

pyarrow decompresses a page as a whole, and its writer puts 1,024 values or more into a page, however long
they are. This module holds a small piece of a page, and a batch of its texts. Column chunks with anything
that it does not know are left to pyarrow.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Generator, Iterator
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from bpe_tokenizer import _core
from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.readers.compression import inflated
from bpe_tokenizer.readers.rows import BATCH_BYTES

__all__ = ["ChunkRows", "ColumnChunk", "OtherLayoutError", "chunk_rows", "long_texts"]

# Texts of this mean size are read here. Of smaller ones pyarrow reads pages of at most 16 MB, and faster.
MIN_MEAN_BYTES = 16 << 10
# Also texts of this mean size, if the first page has at least so many bytes: long texts that are repeated.
_MIN_REPEATED_BYTES = 2 << 10
_MIN_PAGE_BYTES = 16 << 20
# Values of a chunk. More of that size do not fit into a file that a writer makes.
_MAX_VALUES = 1 << 22
_MAX_ROWS = 1 << 16
# Content that is held at once, stored bytes that are read for it, and stored bytes of Snappy, which expand at
# most 22-fold.
_PIECE_BYTES = 128 << 10
_STORED_BYTES = 256 << 10
_SNAPPY_BYTES = 64 << 10
# Bytes of a page header; it may have statistics, which are values.
_HEADER_BYTES = 4 << 10
_MAX_HEADER_BYTES = 1 << 20
_MAX_DEPTH = 8
# Texts of a dictionary that are held in memory.
_DICTIONARY_BYTES = 16 << 20
# Groups of 8 bit-packed numbers that are unpacked at once.
_GROUPS = 1 << 13

_CODECS = frozenset(("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"))
# BIT_PACKED is named for levels that are not stored.
_ENCODINGS = frozenset(("PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"))
# The numbers of encodings and of kinds of pages.
_PLAIN: Final = 0
_RLE: Final = 3
_INDEXED: Final = (2, 8)
_DATA_PAGE: Final = 0
_INDEX_PAGE: Final = 1
_DICTIONARY_PAGE: Final = 2
_DATA_PAGE_2: Final = 3

# A structure of Thrift: its fields by number. Texts are left out.
_Struct: TypeAlias = dict[int, Any]


class OtherLayoutError(Exception):
    """A column chunk has what this module does not know. The rows so far are right."""


class ColumnChunk(NamedTuple):
    """A column of a row group.

    Args:
        name: The name of the file.
        codec: How pages are compressed.
        start: The offset of the first page in the file.
        end: The end of the last page, as far as the file's metadata tell.
        values: The number of rows.
        is_nullable: Whether rows may be null.
    """

    name: str
    codec: str
    start: int
    end: int
    values: int
    is_nullable: bool


class ChunkRows(NamedTuple):
    """Rows that follow each other.

    Args:
        data: Their bytes, concatenated.
        offsets: The start of each, and the end of the last.
        nulls: The numbers, from 0, of those that are null.
    """

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    nulls: list[int]


def long_texts(table: Any, file: Any, group: int, column: str, name: str) -> ColumnChunk | None:
    """Return the column chunk of a row group if it has long texts in a layout that this module knows.

    Args:
        table: A `pyarrow.parquet.ParquetFile`.
        file: The same file, with `seek` and `read`.
        group: The number of the row group.
        column: The name of the column, which is not nested.
        name: The name of the file.
    """
    metadata = table.metadata.row_group(group)
    paths = [metadata.column(index).path_in_schema for index in range(metadata.num_columns)]
    if paths.count(column) != 1:
        return None
    index = paths.index(column)
    found, kind = metadata.column(index), table.schema.column(index)
    values, size, levels = found.num_values, found.total_uncompressed_size, kind.max_definition_level
    # Some writers give 0 for a dictionary that there is not.
    starts = [start for start in (found.dictionary_page_offset, found.data_page_offset) if start]
    is_known = (
        found.physical_type == "BYTE_ARRAY"
        and kind.max_repetition_level == 0
        and levels <= 1
        and found.compression in _CODECS
        and _ENCODINGS.issuperset(found.encodings)
        and not found.file_path
        and 0 < values <= _MAX_VALUES
        and values == metadata.num_rows
        and starts
        and min(starts) > 0
    )
    if not is_known or size < _MIN_REPEATED_BYTES * values:
        return None
    start, end, is_nullable = min(starts), min(starts) + found.total_compressed_size, bool(levels)
    chunk = ColumnChunk(name, found.compression, start, end, values, is_nullable)
    if size >= MIN_MEAN_BYTES * values:
        return chunk
    try:
        return chunk if _count(_page_header(file, start, chunk)[0], 2) >= _MIN_PAGE_BYTES else None
    except (CorpusError, OtherLayoutError):
        return None


def chunk_rows(pyarrow: Any, file: Any, chunk: ColumnChunk, skip: int) -> Generator[ChunkRows, None, None]:
    """Yield the rows of a column chunk in parts of about `BATCH_BYTES`, or of one row.

    Args:
        pyarrow: The library.
        file: The file, with `seek` and `read`.
        chunk: The column chunk, from `long_texts`.
        skip: The number of rows to leave out.

    Raises:
        CorpusError: The chunk is broken.
        OtherLayoutError: It has what this module does not know.
    """
    dictionary: _Dictionary | None = None
    rows = _Rows()
    done = 0
    place = chunk.start
    try:
        while done < chunk.values:
            if place >= chunk.end:
                raise OtherLayoutError
            header, body = _page_header(file, place, chunk)
            stored_size, size = _count(header, 3), _count(header, 2)
            place = body + stored_size
            stored = _StoredPage(file, body, stored_size, chunk)
            kind = header.get(1)
            if kind == _DICTIONARY_PAGE:
                if dictionary is not None or _count(_fields(header, 7), 2) not in (_PLAIN, *_INDEXED):
                    raise OtherLayoutError
                dictionary = _Dictionary(chunk)
                content = _Content(_pieces(pyarrow, stored, size, chunk), size, chunk)
                dictionary.fill(content, _count(_fields(header, 7), 1))
            elif kind in (_DATA_PAGE, _DATA_PAGE_2):
                count = _count(_fields(header, 5 if kind == _DATA_PAGE else 8), 1)
                if count > chunk.values - done:
                    raise _broken(chunk, "it has more values than its metadata tell")
                if done + count > skip:
                    page = _data_page(pyarrow, header, stored, count, chunk)
                    yield from _page_rows(page, dictionary, rows, max(skip - done, 0))
                done += count
            elif kind != _INDEX_PAGE:
                raise OtherLayoutError
        if rows.offsets[1:]:
            yield rows.take()
    finally:
        if dictionary is not None:
            dictionary.close()


class _Rows:
    """Rows that wait to be yielded."""

    def __init__(self) -> None:
        # Room for a batch, or for one larger row. A buffer that grows moves several times, and the allocator
        # keeps the memory that it leaves.
        self._room = np.empty(0, np.uint8)
        self.offsets = [0]
        self.nulls: list[int] = []

    def is_full(self, size: int) -> bool:
        """Return whether a row of a size should be in another batch."""
        count = len(self.offsets) - 1
        return count > 0 and (self.offsets[-1] + size > BATCH_BYTES or count >= _MAX_ROWS)

    def add(self, size: int, parts: Iterator[memoryview | bytes]) -> None:
        """Add a row of a size, in parts."""
        start = self.offsets[-1]
        if start + size > len(self._room):
            # The row is the first with bytes. If its size is broken, no byte reaches most of the room, and
            # the system gives no memory for it.
            self._room = np.empty(max(size, BATCH_BYTES), np.uint8)
        for part in parts:
            self._room[start : start + len(part)] = np.frombuffer(part, np.uint8)
            start += len(part)
        self.end(size)

    def end(self, size: int, is_null: bool = False) -> None:
        """End a row of a size, whose bytes are there."""
        if is_null:
            self.nulls.append(len(self.offsets) - 1)
        self.offsets.append(self.offsets[-1] + size)

    def take(self) -> ChunkRows:
        """Return the rows, and start anew."""
        rows = ChunkRows(self._room[: self.offsets[-1]], np.array(self.offsets, np.int64), self.nulls)
        self._room, self.offsets, self.nulls = np.empty(0, np.uint8), [0], []
        return rows


class _StoredPage:
    """The stored bytes of a page, which are read in sequence. Others may move the file meanwhile."""

    closed = False

    def __init__(self, file: Any, place: int, left: int, chunk: ColumnChunk) -> None:
        self._file = file
        self._place = place
        self._chunk = chunk
        self.left = left

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most so many; nothing at the end of the page only."""
        size = min(size, self.left)
        if size <= 0:
            return b""
        self._file.seek(self._place)
        data = bytes(self._file.read(size))
        if not data:
            raise _broken(self._chunk, "the file is truncated")
        self._place += len(data)
        self.left -= len(data)
        return data

    def close(self) -> None:
        """Do nothing: the file stays open."""

    def take(self, size: int) -> bytes:
        """Return exactly so many bytes."""
        if size > self.left:
            raise _broken(self._chunk, "levels are longer than their page")
        data = b""
        while len(data) < size:
            data += self.read(size - len(data))
        return data


class _Content:
    """The content of a page, which is read in sequence."""

    def __init__(self, pieces: Iterator[bytes], size: int, chunk: ColumnChunk) -> None:
        self._pieces = pieces
        self._piece = memoryview(b"")
        self._chunk = chunk
        self.left = size

    def check(self, size: int) -> None:
        """Refuse a value of more bytes than are left."""
        if size > self.left:
            raise _broken(self._chunk, "a value is longer than its page")

    def parts(self, size: int) -> Iterator[memoryview]:
        """Yield the next `size` bytes, in parts."""
        self.check(size)
        self.left -= size
        while size > 0:
            if not self._piece:
                piece = next(self._pieces, None)
                if piece is None:
                    raise _broken(self._chunk, "a page is shorter than its header tells")
                self._piece = memoryview(piece)
                del piece
            part = self._piece[:size]
            self._piece = self._piece[len(part) :]
            size -= len(part)
            yield part

    def finish(self) -> None:
        """Check that the content is as long as the header tells, and its checksum if it has one."""
        for _ in self.parts(self.left):
            pass
        if self._piece or any(self._pieces):
            raise _broken(self._chunk, "a page is longer than its header tells")

    def take(self, size: int) -> bytes:
        return b"".join(self.parts(size))

    def number(self) -> int:
        """Return the next 4 bytes as a number."""
        return int.from_bytes(self.take(4), "little")


def _pieces(
    pyarrow: Any, stored: _StoredPage, size: int, chunk: ColumnChunk, is_compressed: bool = True
) -> Iterator[bytes]:
    """Yield the content of a page of `size` bytes, in pieces."""
    if size == 0:
        return iter(())
    codec = chunk.codec if is_compressed else "UNCOMPRESSED"
    if codec == "UNCOMPRESSED":
        return iter(lambda: stored.read(_PIECE_BYTES), b"")
    if codec == "SNAPPY":
        return _snappy_pieces(stored, chunk)
    if codec == "GZIP":
        return _gzip_pieces(stored, chunk)
    return _zstd_pieces(pyarrow, stored, chunk)


def _snappy_pieces(stored: _StoredPage, chunk: ColumnChunk) -> Iterator[bytes]:
    decoder = _core.SnappyDecoder()
    try:
        while data := stored.read(_SNAPPY_BYTES):
            piece = decoder.feed(data)
            if piece is None:
                raise OtherLayoutError
            if piece:
                yield piece
        decoder.finish()
    except CorpusError as error:
        if str(error).startswith("corrupt"):
            raise _broken(chunk, str(error)) from None
        raise


def _gzip_pieces(stored: _StoredPage, chunk: ColumnChunk) -> Iterator[bytes]:
    """Yield the content of the members of gzip, or of zlib."""
    data = stored.read(_STORED_BYTES)
    try:
        while data:
            data = yield from inflated(stored, data, 32 + zlib.MAX_WBITS)
            data = data or stored.read(_STORED_BYTES)
    except EOFError:
        raise _broken(chunk, "a page ends within a member of gzip") from None
    except zlib.error as error:
        raise _broken(chunk, f"corrupt gzip: {error}") from None


def _zstd_pieces(pyarrow: Any, stored: _StoredPage, chunk: ColumnChunk) -> Iterator[bytes]:
    try:
        stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(stored, mode="r"), "zstd")
    except (pyarrow.ArrowException, ValueError):  # a build without it
        raise OtherLayoutError from None
    while True:
        try:
            piece = stream.read(_PIECE_BYTES)
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            if isinstance(error, CorpusError):
                raise
            if "memory" in str(error):  # a window of more than 128 MB
                raise OtherLayoutError from None
            raise _broken(chunk, f"corrupt Zstandard: {str(error)[:80]}") from None
        if not piece:
            return
        yield piece


class _DataPage(NamedTuple):
    """The rows of a data page.

    Args:
        rows: The number of rows.
        present: Which of them are not null; None for all.
        encoding: The encoding of the values.
        content: The values.
    """

    rows: int
    present: npt.NDArray[np.bool_] | None
    encoding: int
    content: _Content


def _data_page(
    pyarrow: Any, header: _Struct, stored: _StoredPage, count: int, chunk: ColumnChunk
) -> _DataPage:
    size = _count(header, 2)
    # A run of levels has at least a value, and not more than these bytes.
    most = 16 * count + 64
    levels = None
    if header[1] == _DATA_PAGE:
        fields = _fields(header, 5)
        content = _Content(_pieces(pyarrow, stored, size, chunk), size, chunk)
        if chunk.is_nullable:
            length = content.number()
            if _count(fields, 3) != _RLE or length > most:
                raise OtherLayoutError
            levels = content.take(length)
    else:
        fields = _fields(header, 8)
        length, repetition = _count(fields, 5), _count(fields, 6)
        if length > most or repetition > most or length + repetition > size:
            raise OtherLayoutError
        stored.take(repetition)
        taken = stored.take(length)
        levels = taken if chunk.is_nullable else None
        size -= length + repetition
        is_compressed = fields.get(7) is not False
        content = _Content(_pieces(pyarrow, stored, size, chunk, is_compressed), size, chunk)
    present = None if levels is None else _hybrid(levels, 1, count, chunk) == 1
    return _DataPage(count, present, _count(fields, 4 if header[1] == _DATA_PAGE_2 else 2), content)


def _page_rows(
    page: _DataPage, dictionary: _Dictionary | None, rows: _Rows, skip: int
) -> Generator[ChunkRows, None, None]:
    """Add the rows of a page to those that wait, and yield them when they are enough."""
    values: _Values
    if page.encoding == _PLAIN:
        values = _PlainValues(page.content)
    elif page.encoding in _INDEXED and dictionary is not None:
        count = page.rows if page.present is None else int(page.present.sum())
        values = _IndexedValues(dictionary, dictionary.indices(page.content, count))
    else:
        raise OtherLayoutError
    for number in range(page.rows):
        if page.present is not None and not page.present[number]:
            if number >= skip:
                if rows.is_full(0):
                    yield rows.take()
                rows.end(0, is_null=True)
            continue
        size = values.next_size()
        if number < skip:
            values.skip()
            continue
        if rows.is_full(size):
            yield rows.take()
        rows.add(size, values.parts())
    page.content.finish()


class _Values(Protocol):
    """The values of a page. Each is asked for its size, then read or skipped."""

    def next_size(self) -> int:
        """Return the size of the next value."""

    def parts(self) -> Iterator[memoryview | bytes]:
        """Yield the value in parts."""

    def skip(self) -> None:
        """Leave the value out."""


class _PlainValues:
    def __init__(self, content: _Content) -> None:
        self._content = content
        self._size = 0

    def next_size(self) -> int:
        self._size = self._content.number()
        self._content.check(self._size)
        return self._size

    def parts(self) -> Iterator[memoryview | bytes]:
        return self._content.parts(self._size)

    def skip(self) -> None:
        for _ in self._content.parts(self._size):
            pass


class _IndexedValues:
    def __init__(self, dictionary: _Dictionary, indices: list[int]) -> None:
        self._dictionary = dictionary
        self._indices = iter(indices)
        self._index = 0

    def next_size(self) -> int:
        self._index = next(self._indices)
        return self._dictionary.size(self._index)

    def parts(self) -> Iterator[memoryview | bytes]:
        return self._dictionary.parts(self._index)

    def skip(self) -> None:
        pass


class _Dictionary:
    """The texts of a dictionary page, in memory or in a temporary file without a name."""

    def __init__(self, chunk: ColumnChunk) -> None:
        self._chunk = chunk
        self._file = tempfile.SpooledTemporaryFile(_DICTIONARY_BYTES)  # noqa: SIM115 (`close`)
        self._offsets = [0]

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def fill(self, content: _Content, count: int) -> None:
        """Read the texts."""
        total = 0
        for _ in range(count):
            size = content.number()
            for part in content.parts(size):
                self._write(part)
            total += size
            self._offsets.append(total)
        content.finish()

    def size(self, index: int) -> int:
        return self._offsets[index + 1] - self._offsets[index]

    def parts(self, index: int) -> Iterator[bytes]:
        """Yield a text in parts."""
        self._file.seek(self._offsets[index])
        left = self.size(index)
        while left > 0:
            part = self._file.read(min(left, _PIECE_BYTES))
            if not part:
                raise _broken(self._chunk, "its temporary file has become shorter")
            left -= len(part)
            yield part

    def indices(self, content: _Content, count: int) -> list[int]:
        """Return the indices of a data page: the width of a number in bits, and the numbers."""
        if count == 0:
            return []
        if content.left > 16 * count + 64:
            raise OtherLayoutError
        data = content.take(content.left)
        width = data[0] if data else 0
        if width > 32:
            raise _broken(self._chunk, f"an index has {width} bits")
        indices = _hybrid(data[1:], width, count, self._chunk)
        if int(indices.max()) >= len(self._offsets) - 1:
            raise _broken(self._chunk, "an index is not in the dictionary")
        found: list[int] = indices.tolist()
        return found

    def _write(self, part: memoryview) -> None:
        try:
            self._file.write(part)
        except OSError as error:
            raise CorpusError(
                f"the dictionary of {self._chunk.name[:100]} needs room for a temporary file in "
                f"{tempfile.gettempdir()[:60]} (TMPDIR names another place): {error.strerror}"
            ) from None


def _hybrid(data: bytes, width: int, count: int, chunk: ColumnChunk) -> npt.NDArray[np.int64]:
    """Read numbers in runs: repeated ones, and bit-packed ones in groups of 8.

    Args:
        data: The runs.
        width: The bits of a number, at most 32.
        count: The number of numbers.
        chunk: The column chunk, for messages.
    """
    numbers = np.zeros(count, np.int64)
    done = at = 0
    while done < count:
        run, at = _varint(data, at, chunk)
        if run & 1:
            groups = min(run >> 1, (count - done + 7) // 8)
            for start in range(0, groups, _GROUPS):
                some = min(groups - start, _GROUPS)
                packed = data[at : at + some * width].ljust(some * width, b"\0")
                if at > len(data):
                    raise _broken(chunk, "numbers are truncated")
                at += some * width
                now = min(8 * some, count - done)
                numbers[done : done + now] = _unpacked(packed, width)[:now] if width else 0
                done += now
        else:
            size = (width + 7) // 8
            if at + size > len(data):
                raise _broken(chunk, "numbers are truncated")
            now = min(run >> 1, count - done)
            numbers[done : done + now] = int.from_bytes(data[at : at + size], "little")
            at += size
            done += now
    return numbers


def _unpacked(packed: bytes, width: int) -> npt.NDArray[np.int64]:
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little").reshape(-1, width)
    return bits @ (np.int64(1) << np.arange(width, dtype=np.int64))


def _varint(data: bytes, at: int, chunk: ColumnChunk) -> tuple[int, int]:
    number = shift = 0
    while at < len(data) and shift < 35:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at
    raise _broken(chunk, "numbers are truncated")


def _page_header(file: Any, place: int, chunk: ColumnChunk) -> tuple[_Struct, int]:
    """Return the header of the page at a place of the file, and where it ends."""
    size = _HEADER_BYTES
    while True:
        file.seek(place)
        head = bytes(file.read(size))
        if not head:
            raise _broken(chunk, "the file is truncated")
        header = _ThriftHeader(head)
        try:
            return header.struct(0), place + header.at
        except IndexError:
            # A read may give less than it is asked for.
            if size >= _MAX_HEADER_BYTES:
                raise OtherLayoutError from None
            size *= 4


class _ThriftHeader:
    """A page header, https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.

    Reading beyond the end is an `IndexError`.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int) -> _Struct:
        if depth > _MAX_DEPTH:
            raise OtherLayoutError
        fields: _Struct = {}
        number = 0
        while start := self._byte():
            kind, step = start & 15, start >> 4
            number = number + step if step else self._integer()
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2, 3):  # of a list; or a byte
            return self._byte()
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 7:
            return self._pass(8)
        if kind == 8:
            return self._pass(self._varint())
        if kind in (9, 10):
            start = self._byte()
            count = start >> 4 if start >> 4 < 15 else self._varint()
            if count > len(self._data):
                raise IndexError
            return [self._value(start & 15, depth + 1) for _ in range(count)]
        if kind == 12:
            return self.struct(depth + 1)
        raise OtherLayoutError

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _pass(self, size: int) -> None:
        self.at += size
        if self.at > len(self._data):
            raise IndexError

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number
            if shift > 63:
                raise OtherLayoutError

    def _integer(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)


def _fields(header: _Struct, number: int) -> _Struct:
    fields = header.get(number)
    if not isinstance(fields, dict):
        raise OtherLayoutError
    return fields


def _count(fields: _Struct, number: int) -> int:
    """Return a field that holds a size, or a number that is not negative."""
    value = fields.get(number)
    if not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise OtherLayoutError
    return value


def _broken(chunk: ColumnChunk, problem: str) -> CorpusError:
    return CorpusError(f"{chunk.name[:100]} cannot be read as Parquet: {problem[:150]}")
