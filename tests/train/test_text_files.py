"""The errors of files that are not UTF-8, from every reader of files."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer, CorpusError, TokenizerError, count
from bpe_tokenizer.cli.inputs import read_text
from bpe_tokenizer.view.reports.documents import documents, read_blocks

TEXT = ("low lower lowest " * 50 + "中文\n").encode()
TOKENIZER = BPETokenizer().train("low low", 257, verbose=False)


def read_document(path: Path) -> None:
    with documents([str(path)]) as (document,):
        list(read_blocks(document))


CORPUS_READERS: dict[str, Callable[[Path], object]] = {
    "train": lambda path: BPETokenizer().train(path, 300, verbose=False),
    "count": lambda path: count([path]),
    "report": read_document,
}
READERS: dict[str, Callable[[Path], object]] = {
    "encode_files": TOKENIZER.encode_files,
    "read_text": lambda path: read_text(str(path)),
}


@pytest.mark.parametrize("reader", READERS)
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
def test_a_compressed_file(reader: str, data: bytes, command: str, tmp_path: Path) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(data)
    with pytest.raises(TokenizerError) as raised:
        READERS[reader](path)
    assert str(raised.value) == f"{path} is compressed: unpack it first ({command} FILE)"


@pytest.mark.parametrize("reader", CORPUS_READERS)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(TEXT, mtime=0)[:-5], "is corrupt or truncated compressed data"),
        (b"\x28\xb5\x2f\xfd\xff\xff", "is corrupt or truncated compressed data"),
        (b"PK\x03\x04\xff\xff", r"is a ZIP archive .*unzip FILE.* input_format='text'"),
    ],
    ids=["gzip", "zstd", "zip"],
)
def test_a_compressed_file_of_a_corpus(reader: str, data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "corpus"
    for whole in (gzip.compress(TEXT), lzma.compress(TEXT), bz2.compress(TEXT)):
        path.write_bytes(whole)
        CORPUS_READERS[reader](path)
    path.write_bytes(data)
    with pytest.raises(CorpusError, match=message):
        CORPUS_READERS[reader](path)


@pytest.mark.parametrize("reader", [*READERS, *CORPUS_READERS])
def test_another_encoding(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(b"caf\xe9 BZh")
    with pytest.raises(TokenizerError, match=r"corpus.* (?:byte|offset) 3.*convert .* to UTF-8 first$"):
        {**READERS, **CORPUS_READERS}[reader](path)


def test_the_compressed_one_of_several_files(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad.gz"
    good.write_bytes(TEXT)
    bad.write_bytes(gzip.compress(TEXT))
    with pytest.raises(CorpusError, match=r"bad\.gz is compressed"):
        TOKENIZER.encode_files([good, bad])
    with pytest.raises(CorpusError, match="no file"):
        BPETokenizer().train([bad, tmp_path / "absent"], 300, verbose=False)


@pytest.mark.skipif(os.name == "nt", reason="pipes")
def test_a_pipe_is_not_read_again(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.write(writes, b"low \xff")
    os.close(writes)
    with pytest.raises(CorpusError, match="UTF-8 first"):
        TOKENIZER.encode_files(f"/dev/fd/{reads}")
    os.close(reads)
