"""Which documents are taken, and the index that says where each comes from."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer, TokenizerError
from bpe_tokenizer.corpus import merge_manifests, tokenize_corpus
from bpe_tokenizer.corpus.shards import FORMATS
from small_batches import patch_batches
from token_files import DAMAGES, DOCUMENTS, contents, flat, read_nanogpt
from zstd_library import zstd

# The ids of documents, as JSON has them.
IDS = ["a", 7, 'the "b", c', None, "é\n"]
INDEX: dict[str, Any] = {"index": True, "id_field": "meta.id"}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "shuffle": {"shuffle": 3},
    "val": {"val_fraction": 0.4},
    "parts": {"part": 0, "of": 1, "unit_bytes": 150},
    "all": {"part": 0, "of": 1, "unit_bytes": 400, "shuffle": 1, "val_fraction": 0.4, "sample": 0.9},
}


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A directory of two files, one with a name that CSV must quote."""
    for name, texts in (("a.jsonl", DOCUMENTS), ('b, "c".jsonl', [*DOCUMENTS, "", "last"])):
        rows = [{"text": text, "meta": {"id": IDS[row % len(IDS)]}} for row, text in enumerate(texts)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_text(lines, encoding="utf-8", newline="\n")
    return tmp_path / "in"


def row_of(directory: Path, source: str, row: int) -> tuple[str, str]:
    """Return a document and its id by its place in an index."""
    name, _, start = source.partition("@")
    data = (directory / name).read_bytes()
    if start:
        begin = int(start)
        data = data[begin + data[begin - 1 :].find(b"\n") :] if begin else data
    found = json.loads(data.splitlines()[row - 1])
    own_id = found["meta"]["id"]
    return found["text"], "" if own_id is None else str(own_id)


@pytest.mark.parametrize("name", OPTIONS)
def test_an_index_finds_each_document(name: str, two: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    out = tmp_path / "out"
    options: dict[str, Any] = {"shard_tokens": 100, "bos_token": "<|pad|>", **INDEX, **OPTIONS[name]}
    made = tokenize_corpus(two, out, tokenizer, "npy", **options)
    found: list[tuple[str, int]] = []
    for path in made.files:
        ids = np.load(path)
        lines = gzip.decompress(path.with_suffix(".index.csv.gz").read_bytes()).decode()
        end = 0
        for start, stop, own_id, source, row in csv.reader(io.StringIO(lines, newline="")):
            text, expected = row_of(two, source, int(row))
            assert own_id == expected
            assert int(start) == end
            end = int(stop)
            assert ids[int(start) : end].tolist() == [
                tokenizer.pad_token_id,
                *tokenizer.encode(text),
                tokenizer.eos_token_id,
            ]
            found.append((source, int(row)))
        assert end == len(ids)
    assert len(found) == len(set(found)) == made.documents
    assert name == "all" or len(found) == 2 * len(DOCUMENTS) + 2


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_the_same_index(
    name: Any, two: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    made = tokenize_corpus(two, tmp_path / "out", tokenizer, name, **INDEX)
    plain = tokenize_corpus(two, tmp_path / "plain", tokenizer, name)
    assert [path.name for path in made.files] == [path.name for path in plain.files]
    suffix = ".csv.gz" if name == "olmo" else ".index.csv.gz"
    written, without = contents(tmp_path / "out"), contents(tmp_path / "plain")
    index = written[f"tokens-00000{suffix}"]
    tokenize_corpus(two, tmp_path / "npy", tokenizer, "npy", **INDEX)
    assert index == (tmp_path / "npy" / "tokens-00000.index.csv.gz").read_bytes()
    for file in made.files:
        assert file.name.endswith(".csv.gz") or written[file.name] == without[file.name]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("shuffle", [None, 3])
def test_a_damaged_index_is_written_again(
    damage: str, shuffle: int | None, two: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    out = tmp_path / "out"
    options: dict[str, Any] = {"shard_tokens": 100, "shuffle": shuffle, "verify": True, **INDEX}
    made = tokenize_corpus(two, out, tokenizer, **options)
    expected = contents(out)
    DAMAGES[damage](out / "tokens-00002.index.csv.gz")
    assert tokenize_corpus(two, out, tokenizer, **options) == made._replace(kept=2)
    assert contents(out) == expected


def parquet(rows: list[dict[str, Any]]) -> bytes:
    pyarrow, file = pytest.importorskip("pyarrow"), io.BytesIO()
    pytest.importorskip("pyarrow.parquet").write_table(
        pyarrow.Table.from_pylist(rows), file, row_group_size=4
    )
    return file.getvalue()


def arrow(rows: list[dict[str, Any]]) -> bytes:
    pyarrow, file = pytest.importorskip("pyarrow"), io.BytesIO()
    table = pyarrow.Table.from_pylist(rows)
    with pytest.importorskip("pyarrow.ipc").new_stream(file, table.schema) as writer:
        writer.write_table(table, 5)
    return file.getvalue()


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


KINDS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "jsonl": jsonl,
    "gzip": lambda rows: gzip.compress(jsonl(rows)),
    "zstd": lambda rows: zstd().compress(jsonl(rows)),
    "parquet": parquet,
    "arrow": arrow,
}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_every_kind_of_file(kind: str, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    rows = [{"text": text, "n": n, "meta": {"id": f"d{n}"}} for n, text in enumerate(DOCUMENTS)]
    (tmp_path / "corpus").write_bytes(KINDS[kind](rows))
    for field, ids in (("meta.id", "d{}"), ("n", "{}"), ("{meta.id}/{n}", "d{0}/{0}")):
        given: dict[str, Any] = {"index": True, "id_field": field, "overwrite": True}
        for limits in ({}, {"min_document_tokens": 3, "sample": 0.7, "shuffle": 1}):
            out = tmp_path / "out"
            tokenize_corpus(tmp_path / "corpus", out, tokenizer, "npy", **{**given, **limits})
            lines = gzip.decompress((out / "tokens-00000.index.csv.gz").read_bytes()).decode().splitlines()
            found = [line.split(",") for line in lines]
            assert found
            assert [each[2] for each in found] == [ids.format(int(each[4]) - 1) for each in found]


@pytest.mark.parametrize("kind", KINDS)
def test_bad_ids(kind: str, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(KINDS[kind]([{"text": "low", "id": [each]} for each in (1, 2)]))
    options: dict[str, Any] = {"index": True, "id_field": "id"}
    with pytest.raises(TokenizerError, match=r"corpus, row 1 has no id in the field 'id', but list"):
        tokenize_corpus(path, tmp_path / "out", tokenizer, **options)
    with pytest.raises(TokenizerError, match=r"corpus.* has no (field|column) 'key'"):
        tokenize_corpus(path, tmp_path / "out", tokenizer, index=True, id_field="key")
    path.write_bytes(KINDS[kind]([{"text": text, "id": None if text else 1.5} for text in ("", "low")]))
    made = tokenize_corpus(path, tmp_path / "out", tokenizer, on_error="skip", **options)
    assert (made.documents, made.skipped) == (1, 1)
    path.write_text("low\n")
    with pytest.raises(TokenizerError, match="is plain text, whose documents have no field 'id'"):
        tokenize_corpus(path, tmp_path / "text", tokenizer, **options)


CHOICES: dict[str, Any] = {
    "limit": {"limit": 20},
    "ids": {"max_tokens": 150},
    "no ids": {"max_tokens": 1},
    "more than all": {"limit": 1000, "max_tokens": 10**6},
    "lengths": {"min_document_tokens": 2, "max_document_tokens": 9},
    "sample": {"sample": 0.5},
    "all": {"sample": 0.8, "min_document_tokens": 1, "limit": 9, "max_tokens": 100},
}


@pytest.mark.parametrize("name", CHOICES)
def test_what_is_taken(
    name: str, two: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = CHOICES[name]
    (two / "a.jsonl").write_bytes((two / "a.jsonl").read_bytes() + b'{"text": 1}\n')
    rest: dict[str, Any] = {"shard_tokens": 20, "on_error": "skip", **options}
    texts = [*DOCUMENTS, *DOCUMENTS, "", "last"]
    rows = [[*tokenizer.encode(text), tokenizer.eos_token_id or 0] for text in texts]
    if "sample" in options:
        sample: dict[str, Any] = {"sample": options["sample"], "on_error": "skip", "shard_tokens": None}
        everything = tokenize_corpus(two, tmp_path / "sample", tokenizer, **sample)
        kept = read_nanogpt(everything.files, "<u2")
        # Equal documents are taken or not together.
        ends = np.flatnonzero(np.array(kept) == tokenizer.eos_token_id) + 1
        taken = {tuple(each.tolist()) for each in np.split(kept, ends)}
        rows = [row for row in rows if tuple(row) in taken]
        assert flat(rows) == kept
    least, most = (options.get(f"{side}_document_tokens") for side in ("min", "max"))
    good = [row for row in rows if (least or 0) <= len(row) - 1 <= (most or 1000)]
    expected = good[: options.get("limit")]
    while len(flat(expected)) > options.get("max_tokens", 10**9):
        expected.pop()
    out = tmp_path / "out"
    if not expected:
        with pytest.raises(TokenizerError, match="the corpus is empty"):
            tokenize_corpus(two, out, tokenizer, **rest)
        return
    made = tokenize_corpus(two, out, tokenizer, **rest)
    assert read_nanogpt(made.files, "<u2") == flat(expected)
    assert made.documents == len(expected)
    files = contents(out)
    if len(expected) == len(good):
        assert made.skipped == len(rows) - len(good) + 1
    for size in (1, 3):
        patch_batches(size, monkeypatch)
        made.files[-1].unlink()
        assert tokenize_corpus(two, out, tokenizer, **rest).kept == len(made.files) - 1
        assert contents(out) == files
        tokenize_corpus(two, tmp_path / f"{size}", tokenizer, **rest)
        assert contents(tmp_path / f"{size}") == files


def test_a_sample_of_parts(two: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    whole = tokenize_corpus(two, tmp_path / "whole", tokenizer, sample=0.4)
    tokenize_corpus(two, tmp_path / "out", tokenizer, sample=0.4, part=0, of=1, unit_bytes=200)
    parts = merge_manifests(tmp_path / "out")
    assert read_nanogpt(parts.files, "<u2") == read_nanogpt(whole.files, "<u2")
    larger = tokenize_corpus(two, tmp_path / "larger", tokenizer, sample=0.7)
    assert 0 < whole.documents < larger.documents


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 5, "part": 0, "of": 2}, "a part does not know"),
        ({"index": True, "pack": 8, "format": "npy"}, "packed sequences have no index"),
        ({"id_field": "id"}, "id_field has no meaning without index"),
        ({"id_field": 5, "index": True}, "id_field must be a str"),
        ({"sample": 1.5}, "sample is 1.5"),
        ({"min_document_tokens": 5, "max_document_tokens": 4}, "max_document_tokens"),
        ({"bos_token": "<s>"}, "bos_token is '<s>', which is not a special token"),
    ],
)
def test_refused(
    options: dict[str, Any], message: str, two: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    with pytest.raises(TokenizerError, match=message):
        tokenize_corpus(two, tmp_path / "out", tokenizer, **options)
