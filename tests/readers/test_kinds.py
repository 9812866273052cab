"""What a file holds is known by its content."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import zipfile
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer, CorpusError, OptionError, count
from bpe_tokenizer.readers import InputKind, find_inputs, input_kind
from bpe_tokenizer.readers.detect import json_state
from sampling import sample_size
from zstd_library import zstd

LINES = b'{"text": "low"}\n{"text": "lower"}\n'


def kind(tmp_path: Path, data: bytes, name: str = "corpus") -> InputKind:
    path = tmp_path / name
    path.write_bytes(data)
    return input_kind(find_inputs(path)[0])


@pytest.mark.parametrize("name", ["corpus", "a.txt", "a.json", "a.jsonl", "a.csv.gz", "a.dat"])
def test_json_lines_under_any_name(name: str, tmp_path: Path) -> None:
    assert kind(tmp_path, LINES, name) == ("jsonl", None)
    assert kind(tmp_path, gzip.compress(LINES), name) == ("jsonl", "gzip")
    assert kind(tmp_path, bz2.compress(LINES), name) == ("jsonl", "bz2")
    assert kind(tmp_path, lzma.compress(LINES), name) == ("jsonl", "xz")


@pytest.mark.parametrize(
    "data",
    [
        b'\n \r\n{"text": "low"}\n',
        b'\xef\xbb\xbf{"text": "low"}\n',
        b'{"text": "' + b"low " * 100_000 + b'"}\n',
        b'{"text": "' + b"low \\u00e9\\n" * 7_000,
        b"{}",
    ],
    ids=["blank", "mark", "long", "cut", "empty"],
)
def test_the_first_line_decides(data: bytes, tmp_path: Path) -> None:
    assert kind(tmp_path, data) == ("jsonl", None)
    assert kind(tmp_path, gzip.compress(data, 9)) == ("jsonl", "gzip")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"low lower",
        b"[1] A footnote\n[2] Another\n",
        b"[section]\nname = value\n",
        rb"{\documentclass article} {\bf x}",
        b"{ int x = 0; }\n",
        b"{{ template }}\n",
        b"[[wiki]]",
        b'{"quoted" text}',
        b"- [ ] to do",
        b"caf\xe9 au lait",
        b"PAR1 is a gene, GGUF is a word",
        b"GGUF is a format",
        b"BZh, a name",
        b"a text with a \0 zero byte " + b"in it " * 99,
        b"[" * 300 + b"x",
        "日本語".encode() * 3000,
    ],
)
def test_what_merely_looks_like_something_is_text(data: bytes, tmp_path: Path) -> None:
    assert kind(tmp_path, data) == ("text", None)


@pytest.mark.parametrize(
    "data",
    [
        b'{\n  "text": "low"\n}\n',
        b'[{"text": "low"}]',
        b'[\n{"text": "low"},\n{"text": "lower"}\n]',
        b"[1, 2]\n[3, 4]\n",
        b'{"a": 1} {"a": 2}\n',
        json.dumps([{"text": "é" * 99, "id": [None, True, 1.5e9]}] * 2000, indent=1).encode(),
        b'[\n {"text": "x", "n": 12',
        b'[{"text": "a\\u00',
    ],
)
def test_a_json_document_is_not_text(data: bytes, tmp_path: Path) -> None:
    for stored in (data, gzip.compress(data)):
        with pytest.raises(
            CorpusError, match=r"corpus is a JSON document, not JSON Lines.*--input-format text"
        ):
            kind(tmp_path, stored)
    counts = count(tmp_path / "corpus", input_format="text", documents="line")
    assert counts.documents == len(data.splitlines())


def archive() -> bytes:
    with io.BytesIO() as stream:
        with zipfile.ZipFile(stream, "w") as file:
            file.writestr(zipfile.ZipInfo("a.txt"), "low")  # with a constant time
        return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (archive(), "ZIP archive.*unzip"),
        (b"%PDF-1.7\n%\xe2\xe3", "PDF"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG"),
        (b"\x93NUMPY\x01\0v\0{'descr'", "NumPy"),
        (b"GGUF\x03\0\0\0", "GGUF"),
        (b"SQLite format 3\0", "SQLite"),
        (b"\x7fELF\x02\x01", "ELF"),
        (
            b"name.txt".ljust(100, b"\0") + b"0000644\0".ljust(157, b"\0") + b"ustar\x0000",
            r"tar archive.*tar -xf",
        ),
        ("low lower".encode("utf-16"), "UTF-16"),
        ("low lower lowest".encode("utf-16-le"), "UTF-16"),
        (b"\xff\xfe\0\0l\0\0\0", "UTF-32"),
        (b"\0\1\2\3" * 9, "binary"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "Git LFS"),
        (gzip.compress(LINES, mtime=0), "compressed twice"),
    ],
)
def test_other_files_are_refused_with_their_name(data: bytes, name: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=rf"is .*{name}.*input_format='text'"):
        kind(tmp_path, gzip.compress(data))
    if name != "compressed twice":
        with pytest.raises(CorpusError, match=rf"is .*{name}.*input_format='text'"):
            kind(tmp_path, data, "a.jsonl")


def test_tables_under_any_name(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"text": ["low", "lower"]})
    parquet, stream, file = tmp_path / "p", tmp_path / "s", tmp_path / "f"
    import_module("pyarrow.parquet").write_table(table, parquet)
    ipc = import_module("pyarrow.ipc")
    for new, path in ((ipc.new_stream, stream), (ipc.new_file, file)):
        with new(str(path), table.schema) as writer:
            writer.write_table(table)
    expected = BPETokenizer().train(["low", "lower"], 260, verbose=False)
    for path, found in ((parquet, "parquet"), (stream, "arrow"), (file, "arrow")):
        assert kind(tmp_path, path.read_bytes(), "a.txt") == (found, None)
        assert kind(tmp_path, path.read_bytes(), "a.jsonl") == (found, None)
        assert BPETokenizer().train(path, 260, verbose=False).merges == expected.merges
    assert kind(tmp_path, gzip.compress(stream.read_bytes()), "a.txt.gz") == ("arrow", "gzip")
    # A name of a table is not a text, whatever is in it.
    assert kind(tmp_path, b"low", "a.parquet") == ("parquet", None)
    with pytest.raises(CorpusError, match=r"a\.parquet cannot be read as Parquet"):
        BPETokenizer().train(tmp_path / "a.parquet", 260)


def test_zstandard(tmp_path: Path) -> None:
    assert kind(tmp_path, zstd().compress(LINES)) == ("jsonl", "zstd")
    skipped = b"\x52\x2a\x4d\x18\x03\0\0\0abc"
    assert kind(tmp_path, skipped + zstd().compress(b"[1] text")) == ("text", "zstd")
    # More than the head of the file is needed for the first bytes of its content.
    noise = lzma.compress(bytes(range(256)) * 4000).hex().encode() * 300
    assert kind(tmp_path, zstd().compress(b'{"text": "' + noise + b'"}')) == ("jsonl", "zstd")


def test_more_than_the_head_of_a_file_may_hold_its_first_bytes(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(400_000).hex()  # one block of bz2
    assert kind(tmp_path, bz2.compress(f'{{"text": "{noise}"}}\n'.encode())) == ("jsonl", "bz2")


def test_a_pipe_has_no_kind_before_it_is_read() -> None:
    with pytest.raises(OptionError, match="standard input can be read only once"):
        input_kind(find_inputs("-")[0])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(json_values, max_size=3) | st.dictionaries(st.text(max_size=3), json_values), st.booleans())
@pytest.mark.sampled(1.0)
@settings(max_examples=sample_size(200, 0.25), deadline=None)
def test_every_beginning_of_json_is_one(value: object, spaced: bool) -> None:
    text = json.dumps(value, indent=1 if spaced else None, ensure_ascii=spaced).encode()
    assert json_state(text) == ("object" if isinstance(value, dict) else "values")
    for end in range(1, len(text)):
        assert json_state(text[:end]) == "prefix"
    assert json_state(text + b" x") == "invalid"


@given(st.text('{}[]",:1e-. tx\\u', max_size=12).map(str.encode))
@settings(max_examples=500, deadline=None)
def test_json_is_what_python_reads(text: bytes) -> None:
    state = json_state(b"[" + text)
    try:
        json.loads(b"[" + text)
    except ValueError:
        # Several values may follow each other.
        assert state in ("prefix", "invalid", "values")
    else:
        assert state == "values"
