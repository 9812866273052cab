"""Compressed files in steps of bounded size."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tracemalloc
import zlib
from collections.abc import Callable

import pytest

from bpe_tokenizer import CorpusError
from bpe_tokenizer.readers.compression import CHUNK_BYTES, compression_of, decompressed_chunks
from zstd_library import zstd

DATA = "".join(random.Random(1).choices("abcdefgh \n\u2028é", k=400_000)).encode()


def zstandard(data: bytes) -> bytes:
    compressed: bytes = zstd().compress(data)
    return compressed


def zstandard_checked(data: bytes) -> bytes:
    parameter = zstd().CompressionParameter
    options = {parameter.checksum_flag: 1, parameter.content_size_flag: 0}
    compressed: bytes = zstd().compress(data, options=options)
    return compressed


Compress = Callable[[bytes], bytes]
COMPRESSIONS = [
    pytest.param(gzip.compress, id="gzip"),
    pytest.param(lzma.compress, id="xz"),
    pytest.param(bz2.compress, id="bz2"),
    pytest.param(zstandard, id="zstd"),
    pytest.param(zstandard_checked, id="zstd-checksum"),
]
pytestmark = pytest.mark.filterwarnings("error")


class Trickle(io.BytesIO):
    """A file whose reads return a few bytes."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__(data)
        self._step = step

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self._step if size is None or size < 0 else min(size, self._step))


def decompress(data: bytes, step: int = 1 << 30) -> bytes:
    return b"".join(decompressed_chunks(Trickle(data, step), compression_of(data[:16]), "c"))


@pytest.mark.parametrize("compress", COMPRESSIONS)
def test_parts_in_sequence(compress: Compress) -> None:
    assert decompress(compress(DATA)) == DATA
    assert decompress(compress(b"")) == b""
    several = compress(DATA[:1000]) + compress(b"") + compress(DATA[1000:]) + compress(b"x")
    assert decompress(several) == DATA + b"x"
    short = compress(b"low ") + compress(b"lower")
    for step in (1, 2, 3, 7, 100):
        assert decompress(short, step) == b"low lower"


@pytest.mark.parametrize("compress", COMPRESSIONS)
def test_what_is_truncated_or_corrupt_is_an_error(compress: Compress) -> None:
    small, large = compress(b"low lower lowest"), compress(DATA)
    for data in (small, large, small + large):
        for end in {*range(max(len(data) - 12, 17), len(data)), len(data) // 2, 20}:
            # Between two parts, the file is whole.
            if data[:end] != small:
                with pytest.raises(CorpusError, match="c is corrupt or truncated compressed data"):
                    decompress(data[:end])
    with pytest.raises(CorpusError, match="corrupt"):
        decompress(large[:5000] + large[5500:])


@pytest.mark.parametrize("compress", COMPRESSIONS)
def test_what_follows_a_part(compress: Compress) -> None:
    data = compress(b"low")
    for step in (1, 5, 1 << 20):
        assert decompress(data + bytes(1000), step) == b"low"
        assert decompress(data + bytes(1000) + data, step) == b"lowlow"
        for garbage in (b"garbage", bytes(10) + data[:1], b"\xff" + data):
            with pytest.raises(CorpusError, match="corrupt or truncated"):
                decompress(data + garbage, step)


def test_skippable_frames_of_zstandard() -> None:
    skipped = b"\x5f\x2a\x4d\x18\x05\0\0\0abcde"
    data = skipped + zstandard(b"low ") + skipped + skipped + zstandard(DATA) + skipped
    for step in (1, 3, 1 << 20):
        assert decompress(data, step) == b"low " + DATA
    with pytest.raises(CorpusError, match="ends within its data"):
        decompress(data[:-1])


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("compress", COMPRESSIONS)
def test_little_that_expands_enormously_is_read_in_small_steps(compress: Compress) -> None:
    bomb = compress(bytes(100 << 20))
    assert len(bomb) < 1 << 20
    done = 0
    tracemalloc.start()
    try:
        for chunk in decompressed_chunks(io.BytesIO(bomb), compression_of(bomb[:16]), "c"):
            assert len(chunk) <= 4 * CHUNK_BYTES
            done += len(chunk)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    assert done == 100 << 20


def test_a_broken_checksum_is_an_error() -> None:
    data = bytearray(gzip.compress(b"low"))
    data[-5] ^= 1
    with pytest.raises(CorpusError, match="incorrect"):
        decompress(bytes(data))
    assert zlib.crc32(b"low") != int.from_bytes(data[-8:-4], "little")
