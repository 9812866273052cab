"""An open file of a corpus: its kind, and its content in chunks."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any

from bpe_tokenizer.options import ReadOptions
from bpe_tokenizer.readers.compression import decompressed_chunks
from bpe_tokenizer.readers.detect import InputKind, kind_of
from bpe_tokenizer.readers.inputs import Input, StoredFile, open_stored
from bpe_tokenizer.readers.prefetcher import Prefetcher

__all__ = ["ChunkReader", "OpenInput", "open_input"]

# Content that waits for its reader, if a thread decompresses or downloads it.
_AHEAD_BYTES = 4 << 20


class OpenInput:
    """An open file of a corpus.

    Args:
        source: The file.
        stored: Its stored bytes, at the start.
        kind: What it holds.
    """

    def __init__(self, source: Input, stored: StoredFile, kind: InputKind) -> None:
        self.source = source
        self.stored = stored
        self.kind = kind

    @property
    def bytes_read(self) -> int:
        """The number of stored bytes that were read."""
        return self.stored.bytes_read

    @contextmanager
    def chunks(self) -> Iterator[Iterator[bytes]]:
        """Give the content in chunks. A thread decompresses and downloads ahead."""
        chunks = decompressed_chunks(self.stored, self.kind.compression, self.source.name)
        is_slow = self.kind.compression is not None or isinstance(self.source.location, str)
        # A thread that waits for a pipe could not be stopped.
        if is_slow and self.source.is_regular:
            with Prefetcher(chunks, len, _AHEAD_BYTES) as prefetcher:
                yield prefetcher
        else:
            with closing(chunks):
                yield chunks


@contextmanager
def open_input(source: Input, options: ReadOptions) -> Iterator[OpenInput]:
    """Open a file of a corpus. Its first bytes tell how it is compressed and what it holds.

    Raises:
        CorpusError: The file cannot be read, or is not a corpus.
        MissingDependencyError: A library that it needs is not installed.
    """
    with open_stored(source) as stored:
        yield OpenInput(source, stored, kind_of(source, stored, options.input_format))


class ChunkReader:
    """Chunks as a file that is read in sequence.

    Args:
        chunks: The chunks, none of which is empty.

    >>> reader = ChunkReader(iter([b"abc", b"de"]))
    >>> reader.read(2), reader.read(9), reader.read(9)
    (b'ab', b'cde', b'')
    """

    def __init__(self, chunks: Iterator[bytes] | Generator[bytes, None, None]) -> None:
        self._chunks = chunks
        self._held = memoryview(b"")
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, or all; fewer at the end only."""
        parts: list[Any] = []
        while size:
            if not self._held:
                self._held = memoryview(next(self._chunks, b""))
                if not self._held:
                    break
            part = self._held if size < 0 else self._held[:size]
            self._held = self._held[len(part) :]
            size -= len(part) if size > 0 else 0
            parts.append(part)
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Mark the file as closed."""
        self.closed = True
