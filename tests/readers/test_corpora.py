"""Training, counting and reports read every kind of corpus, and give the same."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import (
    BPETokenizer,
    CorpusError,
    CorpusFileNotFoundError,
    MissingDependencyError,
    OptionError,
    PieceCounts,
    count,
)
from bpe_tokenizer.cli import main
from bpe_tokenizer.readers import ReadOptions, find_inputs, find_sources, input_kind, read_batches
from bpe_tokenizer.readers.remote import is_url
from bpe_tokenizer.train import corpus as train_corpus
from token_files import as_jsonl
from zstd_library import zstd

TEXTS = [
    "low lower lowest\n",
    "naïve café 日本語<|end|>newer",
    "wider  newer\r\n\r\n",
    "",
    "a",
    "low low newest",
] * 40


def counted(corpus: Any, **options: Any) -> PieceCounts:
    return count(corpus, "gpt2", special_tokens=["<|end|>"], **options)


EXPECTED = counted(TEXTS)


def zstandard(data: bytes) -> bytes:
    compressed: bytes = zstd().compress(data)
    return compressed


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard,
}


@pytest.mark.filterwarnings("ignore:.* are one file, which is read twice")
@pytest.mark.parametrize("extension", COMPRESSIONS)
def test_json_lines_are_their_texts(extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.jsonl{extension}"
    path.write_bytes(COMPRESSIONS[extension](as_jsonl(TEXTS)))
    assert counted(path) == EXPECTED
    assert counted([path]) == counted(str(path)) == counted(iter([path])) == EXPECTED
    tokenizer = BPETokenizer().train(path, 300, verbose=False)
    assert tokenizer.merges == BPETokenizer().train(TEXTS, 300, verbose=False).merges
    twice = count([path, path], "gpt2", special_tokens=["<|end|>"], weights=[2, 3])
    assert twice.pieces == 5 * EXPECTED.pieces


@pytest.mark.filterwarnings("ignore:.* are one file, which is read twice")
@pytest.mark.parametrize("extension", COMPRESSIONS)
def test_a_text_file_is_one_document_however_it_is_read(extension: str, tmp_path: Path) -> None:
    text = "".join(TEXTS) * 200
    path = tmp_path / f"a.txt{extension}"
    path.write_bytes(COMPRESSIONS[extension](text.encode()))
    expected = counted([text])
    assert counted(path) == expected
    assert counted([path, path], weights=[1, 2]).pieces == 3 * expected.pieces
    lines = counted([line for line in text.replace("\r\n", "\n").split("\n") if line])
    assert counted(path, documents="line") == lines
    assert counted(path, separator="<|end|>") == counted([part for part in text.split("<|end|>") if part])


def test_tables_are_their_texts(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = import_module("pyarrow.parquet")
    table = pyarrow.table({"id": range(len(TEXTS)), "body": TEXTS})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=17)
    with import_module("pyarrow.ipc").new_file(str(tmp_path / "a.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=9)
    for name in ("a.parquet", "a.arrow"):
        assert counted(tmp_path / name, field="body") == EXPECTED
        with pytest.raises(CorpusError, match=f"{name} has no column 'text'; it has 'id', 'body'"):
            counted(tmp_path / name)
    parquet.write_table(pyarrow.table({}), tmp_path / "a.parquet.0")
    with pytest.raises(CorpusError, match=r"has no column 'text'; it has none$"):
        counted(tmp_path / "a.parquet.0", input_format="parquet")
    assert counted([tmp_path / "a.parquet", tmp_path / "a.arrow"], field="body").pieces == 2 * EXPECTED.pieces


def corpus_directory(tmp_path: Path) -> Path:
    """Half of the texts as JSON Lines, half as compressed JSON Lines in a folder, and hidden files."""
    directory = tmp_path / "data"
    (directory / "deep").mkdir(parents=True)
    (directory / ".git").mkdir()
    (directory / "a.jsonl").write_bytes(as_jsonl(TEXTS[:120]))
    (directory / "deep" / "b.json.gz").write_bytes(gzip.compress(as_jsonl(TEXTS[120:])))
    (directory / ".git" / "c.txt").write_bytes(b"hidden")
    (directory / ".d.txt").write_bytes(b"hidden")
    (directory / "_SUCCESS").write_bytes(b"")
    return directory


def test_directories_and_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = corpus_directory(tmp_path)
    expected = [EXPECTED.pieces, EXPECTED.distinct]
    for corpus in (directory, str(directory), [directory], f"{directory}/**/*.js*", f"file://{directory}"):
        made = counted(corpus)
        assert [made.pieces, made.distinct] == expected
        assert list(made) == list(EXPECTED)
    monkeypatch.chdir(directory)
    assert counted("*.jsonl") == counted(TEXTS[:120])
    assert counted("deep/*") == counted(TEXTS[120:])
    with pytest.raises(CorpusFileNotFoundError, match="nothing"):
        counted("nothing/*.jsonl")
    assert counted("what is this? [really] *yes*").documents == 1
    both = [counted(directory / name).pieces for name in ("a.jsonl", "deep/b.json.gz")]
    assert counted(directory, weights=[1, 2, 3]).pieces == 2 * both[0] + 3 * both[1]
    with pytest.raises(OptionError, match="there are 2 weights for 3 files"):
        counted(directory, weights=[1, 2])


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Any]:
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    directory = corpus_directory(tmp_path)
    for path in directory.rglob("*"):
        if path.is_file():
            system.pipe(f"/bucket/{path.relative_to(directory).as_posix()}", path.read_bytes())
    yield system
    system.rm("/bucket", recursive=True)


def test_urls(memory: Any, tmp_path: Path) -> None:
    assert counted("memory://bucket/a.jsonl") == counted(TEXTS[:120])
    for corpus in ("memory://bucket", "memory://bucket/", "memory://bucket/**/*.js*"):
        made = counted(corpus)
        assert (made.pieces, list(made)) == (EXPECTED.pieces, list(EXPECTED))
    assert [each.name for each in find_inputs("memory://bucket")] == [
        "memory:///bucket/_SUCCESS",
        "memory:///bucket/a.jsonl",
        "memory:///bucket/deep/b.json.gz",
    ]
    source = find_inputs("memory://bucket/a.jsonl")[0]
    assert (source.size, source.modified > 0) == (len(as_jsonl(TEXTS[:120])), True)
    text = "".join(TEXTS) * 500
    memory.pipe("/bucket/text/a.txt", text.encode())
    memory.pipe("/bucket/text/b.txt.xz", lzma.compress(text.encode()))
    assert (
        counted("memory://bucket/text/a.txt") == counted("memory://bucket/text/b.txt.xz") == counted([text])
    )
    memory.pipe("/bucket/text/bad.txt.gz", gzip.compress(b"abc\xff"))
    memory.pipe("/bucket/text/bad.jsonl.gz", gzip.compress(b'{"text": 1}'))
    with pytest.raises(CorpusError, match=r"memory:///bucket/text/bad\.txt\.gz: byte 3 is not valid UTF-8"):
        counted("memory://bucket/text/bad.txt.gz")
    with pytest.raises(CorpusError, match=r"memory:///bucket/text/bad\.jsonl\.gz, row 1 has no text"):
        counted("memory://bucket/text/bad.jsonl.gz")
    with pytest.raises(CorpusError, match="there is no file memory://bucket/nothing"):
        counted("memory://bucket/nothing")
    with pytest.raises(CorpusError, match="no file matches memory://bucket/nothing"):
        counted("memory://bucket/nothing/*")


def test_a_remote_parquet_file(memory: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    with io.BytesIO() as stream:
        import_module("pyarrow.parquet").write_table(
            pyarrow.table({"text": TEXTS}), stream, row_group_size=50
        )
        memory.pipe("/bucket/table/a.parquet", stream.getvalue())
    assert counted("memory://bucket/table") == EXPECTED
    source = find_inputs("memory://bucket/table")[0]
    assert input_kind(source) == ("parquet", None)
    ranges = [[(0, 2)], [(2, 5)]]
    parts = [list(read_batches([source], ReadOptions(documents="line"), byte_ranges=each)) for each in ranges]
    assert [text for part in parts for batch in part for text in batch.texts()] == TEXTS


def test_libraries_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    try:
        import_module("s3fs")
    except ImportError:
        with pytest.raises(
            MissingDependencyError, match=r"s3://bucket/a needs another library: Install s3fs"
        ):
            counted("s3://bucket/a")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingDependencyError, match=r"fsspec: pip install .*\[remote\]'"):
        counted("s3://bucket/a.jsonl")
    monkeypatch.setitem(sys.modules, "fsspec.registry", None)
    assert not is_url("unknown://bucket/a")


def test_errors_of_a_file_system_name_the_url(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no credentials " * 100)

    monkeypatch.setattr(type(memory), "_open", refuse)
    with pytest.raises(
        CorpusError, match=r"memory:///bucket/a\.jsonl cannot be read: RuntimeError: no cred"
    ) as raised:
        counted("memory://bucket/a.jsonl")
    assert len(str(raised.value)) <= 300


@pytest.mark.parametrize("rows", ["b.jsonl", "deep/b.jsonl.gz", "b.parquet", "b.json"])
def test_a_directory_of_rows_and_other_files(rows: str, tmp_path: Path, memory: Any) -> None:
    """A `README.md` beside files of rows becomes a document only if it is named or `input_format` says so."""
    for name in ("README.md", rows):
        (tmp_path / "c" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "c" / name).write_bytes(b"low")
        memory.pipe(f"/bucket/c/{name}", b"low")
    (tmp_path / "data" / "readme.txt").write_bytes(b"low")
    for corpus in (tmp_path / "c", "memory://bucket/c", [tmp_path / "data"]):
        with pytest.raises(
            CorpusError, match=r"the directory .* has \w+\.\S+, of which .*(md|txt); name the"
        ):
            counted(corpus)
        with pytest.raises(CorpusError, match="of which each row is a document"):
            find_sources(corpus, ReadOptions())
    assert counted(tmp_path / "c", input_format="text").documents == 2
    assert counted([tmp_path / "c" / "README.md", tmp_path / "data" / "a.jsonl"]).documents == 121


def test_a_json_file_is_never_taken_for_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(as_jsonl(TEXTS))
    assert counted(path) == EXPECTED
    assert counted(path, input_format="text") == counted([path.read_text(encoding="utf-8")])
    path.write_text(json.dumps(TEXTS), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"a\.txt is a JSON document"):
        counted(path)


def test_bad_rows_stop_or_are_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(as_jsonl(TEXTS[:3]) + b"oops\n" + as_jsonl(TEXTS[3:]) + b'{"text": 1}\n')
    with pytest.raises(CorpusError, match=r"a\.jsonl, row 4 is not valid JSON.*--on-error skip"):
        counted(path)
    assert counted(path, on_error="skip", verbose=True) == EXPECTED
    assert "Skipped 2 bad rows, the first: " in capsys.readouterr().err
    BPETokenizer().train(iter([path]), 300, on_error="skip")
    assert "Skipped 2 bad rows, the first: " in capsys.readouterr().err


def test_extending_and_adding_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(as_jsonl(TEXTS, "body")))
    special = ["<|end|>"]
    expected = BPETokenizer().train("low low", 257, special_tokens=special, verbose=False)
    expected.extend(TEXTS, 300, verbose=False)
    made = BPETokenizer().train("low low", 257, special_tokens=special, verbose=False)
    made.extend(path, 300, verbose=False, field="body")
    assert made == expected
    counts = PieceCounts("gpt2", special_tokens=special).add(path, field="body")
    assert counts == EXPECTED == BPETokenizer("gpt2").count(path, special, field="body")


@pytest.mark.skipif(os.name == "nt", reason="named pipes")
@pytest.mark.parametrize("as_lines", [True, False])
def test_a_pipe_is_read_once(as_lines: bool, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    text = "".join(TEXTS) * 300
    data = as_jsonl(TEXTS) if as_lines else text.encode()

    def write() -> None:
        with path.open("wb") as file:
            for start in range(0, len(data), 10_007):
                file.write(gzip.compress(data[start : start + 10_007]))
                file.flush()

    writer = threading.Thread(target=write)
    writer.start()
    made = counted(path)
    writer.join()
    assert made == (EXPECTED if as_lines else counted([text]))
    with pytest.raises(OptionError, match="a checkpoint needs files"):
        BPETokenizer().train(path, 300, verbose=False, checkpoint=tmp_path / "checkpoint")


class Stopped(BaseException):
    pass


@pytest.mark.filterwarnings("ignore:.*a usual separator of documents")
def test_a_checkpoint_within_rows_goes_on_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / name for name in ("a.jsonl", "b.jsonl.gz", "c.txt.gz", "d.txt")]
    files[0].write_bytes(as_jsonl(TEXTS))
    files[1].write_bytes(gzip.compress(as_jsonl(TEXTS[:77])))
    files[2].write_bytes(gzip.compress("".join(TEXTS).encode()))
    files[3].write_bytes("".join(TEXTS).encode())
    monkeypatch.setattr("bpe_tokenizer.readers.batches.BATCH_BYTES", 1000)
    monkeypatch.setattr("bpe_tokenizer.readers.compression.CHUNK_BYTES", 500)
    options: dict[str, Any] = {"vocab_size": 300, "verbose": False}
    whole = BPETokenizer().train(files, **options)
    stops = 0
    add_rows = train_corpus._add_rows

    def stop_sometimes(*arguments: Any) -> None:
        nonlocal stops
        stops += 1
        add_rows(*arguments)
        if stops % 3 == 0:
            raise Stopped

    made, runs = None, 0
    monkeypatch.setattr(train_corpus, "_add_rows", stop_sometimes)
    while made is None:
        runs += 1
        with contextlib.suppress(Stopped):
            made = BPETokenizer().train(files, **options, checkpoint=tmp_path / "run", checkpoint_seconds=0)
    assert runs > 3
    assert made.merges == whole.merges
    with pytest.raises(Exception, match="is the checkpoint of another run: its file 0 has the reading"):
        BPETokenizer().train(files, **options, checkpoint=tmp_path / "run", field="body")


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as raised:
        main([str(each) for each in arguments])
    return int(raised.value.code or 0)


@pytest.mark.filterwarnings("default:Skipped 1 bad row")
def test_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = corpus_directory(tmp_path)
    saved = tmp_path / "saved"
    assert run("train", "--corpus", directory, "--vocab-size", 300, "-o", saved, "-q") == 0
    expected = BPETokenizer().train([*TEXTS], 300, verbose=False)
    assert BPETokenizer.load(saved).merges == expected.merges
    counts, pattern = tmp_path / "a.counts", f"{directory}/**/*.js*"
    assert run("count", "--corpus", pattern, "--split-pattern", "gpt2", "-o", counts, "-q") == 0
    assert PieceCounts.load(counts).pieces == count(TEXTS, "gpt2").pieces
    capsys.readouterr()
    assert run("compare", saved, saved, "--corpus", pattern, "--json") == 0
    assert json.loads(capsys.readouterr().out)["disagreements"]["lines"] == len([*filter(None, TEXTS)])
    options = ("--field", "body", "--on-error", "skip", "--input-format", "jsonl")
    size = sum(len(text.encode()) for text in TEXTS)
    for source, documents in (((directory,), len(TEXTS) + 1), (("-", *options), None)):
        lines = gzip.compress(as_jsonl(TEXTS, "body") + b"oops\n")
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
        assert run("report", "-t", saved, "--json", "--corpus", *source) == 0
        captured = capsys.readouterr()
        corpus = json.loads(captured.out)["corpus"]
        tokens = sum(len(expected.encode(text)) for text in TEXTS)
        assert (corpus["bytes"], corpus["tokens"]) == (size, tokens)
        assert documents in (None, corpus["documents"])
        said = "Skipped 1 bad row, the first: standard input, row 241 is not valid JSON"
        assert (said in captured.err) == (documents is None)
