"""The errors of files that are not UTF-8, from every reader of files."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer, CorpusError, TokenizerError, count, train_bpe
from bpe_tokenizer.cli.inputs import read_text
from bpe_tokenizer.view.reports.documents import documents, read_blocks

TEXT = ("low lower lowest " * 50 + "中文\n").encode()
TOKENIZER = BPETokenizer().train("low low", 257, verbose=False)


def read_document(path: Path) -> None:
    with documents([str(path)]) as (document,):
        list(read_blocks(document))


CORPUS_READERS: dict[str, Callable[[Path], object]] = {
    "train": lambda path: BPETokenizer().train(path, 300, verbose=False),
    "train_bpe": lambda path: train_bpe(path, 300),
    "count": lambda path: count([path]),
    "report": read_document,
}
READERS: dict[str, Callable[[Path], object]] = {
    "encode_files": TOKENIZER.encode_files,
    "read_text": lambda path: read_text(str(path)),
}


@pytest.mark.parametrize(
    ("data", "command"),
    [
        (gzip.compress(TEXT, mtime=0), "gzip -dk"),
        (lzma.compress(TEXT), "xz -dk"),
        (bz2.compress(TEXT), "bzip2 -dk"),
        (b"\x28\xb5\x2f\xfd\xff\xff", "zstd -d"),
        (b"PK\x03\x04\xff\xff", "unzip"),
    ],
    ids=["gzip", "xz", "bzip2", "zstd", "zip"],
)
def test_encode_files_refuses_a_compressed_file(data: bytes, command: str, tmp_path: Path) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(data)
    with pytest.raises(CorpusError) as raised:
        TOKENIZER.encode_files(path)
    assert str(raised.value) == f"{path} is compressed: unpack it first ({command} FILE)"


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
def test_the_text_of_a_compressed_file_of_a_command(
    compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(compress(TEXT))
    assert read_text(str(path)).encode() == TEXT
    path.write_bytes(compress(b""))
    assert read_text(str(path)) == ""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(TEXT)[:-5], "is corrupt or truncated compressed data"),
        (gzip.compress(gzip.compress(TEXT)), "is compressed twice: unpack it first$"),
        (gzip.compress(bytes(257) + b"ustar" + bytes(250)), "is a tar archive: unpack it first"),
        (gzip.compress(TEXT + b"\xff"), f"is not UTF-8: byte 0xff at offset {len(TEXT)}; convert it"),
        (b"PK\x03\x04\xff\xff", r"is compressed: unpack it first \(unzip FILE\)$"),
    ],
    ids=["truncated", "twice", "tar", "latin1", "zip"],
)
def test_a_file_of_a_command_that_is_no_compressed_text(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(data)
    with pytest.raises(TokenizerError, match=message):
        read_text(str(path))


@pytest.mark.parametrize("reader", [*READERS, *CORPUS_READERS])
def test_another_encoding(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(b"caf\xe9 BZh")
    with pytest.raises(TokenizerError, match=r"corpus.* (?:byte|offset) 3.*convert .* to UTF-8 first$"):
        {**READERS, **CORPUS_READERS}[reader](path)


@pytest.mark.skipif(os.name == "nt", reason="pipes")
def test_a_pipe_is_not_read_again(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.write(writes, b"low \xff")
    os.close(writes)
    with pytest.raises(CorpusError, match="UTF-8 first"):
        TOKENIZER.encode_files(f"/dev/fd/{reads}")
    os.close(reads)
