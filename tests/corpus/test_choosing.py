"""Which documents are taken, and the index that says where each comes from."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer, TokenizerError
from bpe_tokenizer.corpus import merge_manifests, tokenize_corpus
from bpe_tokenizer.corpus.shards import FORMATS
from small_batches import patch_batches
from token_files import DAMAGES, DOCUMENTS, contents, flat, read_nanogpt

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
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_text(lines, encoding="utf-8", newline="\n")
    return tmp_path / "in"


def text_of(directory: Path, source: str, row: int) -> str:
    """Return a document by its place in an index."""
    name, _, start = source.partition("@")
    data = (directory / name).read_bytes()
    if start:
        begin = int(start)
        data = data[begin + data[begin - 1 :].find(b"\n") :] if begin else data
    text: str = json.loads(data.splitlines()[row - 1])["text"]
    return text


@pytest.mark.parametrize("name", OPTIONS)
def test_an_index_finds_each_document(name: str, two: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    out = tmp_path / "out"
    options: dict[str, Any] = {"shard_tokens": 100, "index": True, "bos_token": "<|pad|>", **OPTIONS[name]}
    made = tokenize_corpus(two, out, tokenizer, "npy", **options)
    found: list[tuple[str, int]] = []
    for path in made.files:
        ids = np.load(path)
        lines = gzip.decompress(path.with_suffix(".index.csv.gz").read_bytes()).decode()
        end = 0
        for start, stop, _, source, row in csv.reader(lines.splitlines()):
            text = text_of(two, source, int(row))
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
    made = tokenize_corpus(two, tmp_path / "out", tokenizer, name, index=True)
    plain = tokenize_corpus(two, tmp_path / "plain", tokenizer, name)
    assert [path.name for path in made.files] == [path.name for path in plain.files]
    suffix = ".csv.gz" if name == "olmo" else ".index.csv.gz"
    written, without = contents(tmp_path / "out"), contents(tmp_path / "plain")
    index = written[f"tokens-00000{suffix}"]
    tokenize_corpus(two, tmp_path / "npy", tokenizer, "npy", index=True)
    assert index == (tmp_path / "npy" / "tokens-00000.index.csv.gz").read_bytes()
    for file in made.files:
        assert file.name.endswith(".csv.gz") or written[file.name] == without[file.name]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("shuffle", [None, 3])
def test_a_damaged_index_is_written_again(
    damage: str, shuffle: int | None, two: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    out = tmp_path / "out"
    options: dict[str, Any] = {"shard_tokens": 100, "index": True, "shuffle": shuffle, "verify": True}
    made = tokenize_corpus(two, out, tokenizer, **options)
    expected = contents(out)
    DAMAGES[damage](out / "tokens-00002.index.csv.gz")
    assert tokenize_corpus(two, out, tokenizer, **options) == made._replace(kept=2)
    assert contents(out) == expected


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
