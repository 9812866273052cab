"""Files that runs continue from, and corpora: a broken one is refused, or gives the right result."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import shutil
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["bpe_tokenizer"]):
    from bpe_tokenizer import BPETokenizer, ChatSession, PieceCounts
    from bpe_tokenizer.corpus import tokenize_corpus
    from bpe_tokenizer.readers import *  # noqa: F403 (imported here to be instrumented)

from harness import broken, expected_errors, fuzz, put
from scripted_model import scripted

TEXT = "low lower lowest, new newer newest. " * 3
TOKENIZER = BPETokenizer(split_pattern="gpt2", normalization=None)
TOKENIZER.train(TEXT, 270, special_tokens={"<|end|>": 270}, verbose=False)
LINES = [{"text": "low lower"}, {"text": "日本 <|end|>"}, {"text": ""}, {"other": 1}]
JSONL = "".join(json.dumps(line) + "\n" for line in LINES[:3]).encode()


def saved(make: Any) -> dict[str, bytes]:
    """The files that a run writes into a directory."""
    with tempfile.TemporaryDirectory() as directory:
        make(Path(directory))
        files = sorted(path for path in Path(directory).rglob("*") if path.is_file())
        return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def train(directory: Path) -> BPETokenizer:
    """Train with a checkpoint in a directory, which holds the corpus too."""
    corpus = put(directory / "corpus.txt", TEXT.encode())
    return BPETokenizer("gpt2", None).train(
        [corpus], 262, verbose=False, checkpoint=directory / "run", checkpoint_seconds=0
    )


def tokenize(directory: Path) -> list[bytes]:
    """Tokenize lines into shards in a directory."""
    lines = put(directory / "lines.txt", b"low\nlower\nnew\nnewest\n")
    output = directory / "out"
    done = tokenize_corpus(lines, output, TOKENIZER, shard_tokens=4, threads=1, verbose=False)
    return [path.read_bytes() for path in done.files]


CHECKPOINT, SHARDS = saved(train), saved(tokenize)
COUNTS = saved(lambda directory: PieceCounts("gpt2").add(TEXT).save(directory / "a.counts"))["a.counts"]
CHAT = json.dumps(
    {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
).encode()
with tempfile.TemporaryDirectory() as _directory:
    EXPECTED = tokenize(Path(_directory))


def restore(
    files: dict[str, bytes], directory: Path, changed: str, provider: atheris.FuzzedDataProvider
) -> None:
    """Write the files of a run, one of them broken."""
    for name, data in files.items():
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        document = json.loads(data) if name.endswith(".json") else None
        put(path, broken(provider, data, document) if name == changed else data)


def check_checkpoint(provider: atheris.FuzzedDataProvider, directory: Path) -> None:
    """A run with a broken checkpoint fails, or learns what the corpus says."""
    changed = provider.PickValueInList([name for name in CHECKPOINT if name.startswith("run/")])
    restore(CHECKPOINT, directory, changed, provider)
    with expected_errors():
        train(directory)


def check_shards(provider: atheris.FuzzedDataProvider, directory: Path) -> None:
    """A run that continues with a broken shard or manifest fails, or writes what a new one writes."""
    changed = provider.PickValueInList([name for name in SHARDS if name.startswith("out/")])
    restore(SHARDS, directory, changed, provider)
    bystander = put(directory / "out" / ".bystander.tmp", b"") if provider.ConsumeBool() else None
    with expected_errors():
        found = tokenize(directory)
        if changed.endswith(".bin"):
            assert found == EXPECTED
    assert bystander is None or bystander.exists()


def check_counts(provider: atheris.FuzzedDataProvider, directory: Path) -> None:
    """Piece counts are refused, or can be trained on."""
    path = put(directory / "a.counts", broken(provider, COUNTS))
    with expected_errors("a.counts"):
        counts = PieceCounts.load(path)
        counts.save(path)
        assert PieceCounts.load(path) == counts


def check_chat(provider: atheris.FuzzedDataProvider, directory: Path) -> None:
    """A saved conversation is refused, or continues."""
    path = put(directory / "chat.json", broken(provider, CHAT, json.loads(CHAT)))
    session = ChatSession(scripted([])[1], TOKENIZER, template="alpaca")
    with expected_errors("chat.json"):
        session.load(path)
        session.save(path)


def check_corpus(provider: atheris.FuzzedDataProvider, directory: Path) -> None:
    """A corpus of any content is tokenized, or refused with its name."""
    data = provider.PickValueInList([JSONL, TEXT.encode(), b"", *TABLES])
    data = broken(provider, data) if provider.ConsumeBool() else data
    suffix, packed = provider.PickValueInList(
        [("", data), (".gz", gzip.compress(data, 1)), (".xz", lzma.compress(data))]
    )
    packed = broken(provider, packed)
    kind = provider.PickValueInList([".txt", ".jsonl", ".parquet", ".arrow"])
    path = put(directory / f"corpus{kind}{'' if kind == '.parquet' else suffix}", packed)
    with expected_errors():
        tokenize_corpus(
            path,
            directory / "out",
            TOKENIZER,
            separator=provider.PickValueInList([None, None, "e", "<|end|>"]) if kind == ".txt" else None,
            on_error=provider.PickValueInList(["stop", "skip"]),
            threads=1,
            verbose=False,
        )
    with expected_errors():
        BPETokenizer("gpt2").train([path], 260, verbose=False)


def tables() -> list[bytes]:
    """The lines as a Parquet and as an Arrow file, if pyarrow is installed."""
    if find_spec("pyarrow") is None:
        return []
    pa, parquet_module = import_module("pyarrow"), import_module("pyarrow.parquet")
    table = pa.table({"text": ["low", None, "日本"], "n": [1, 2, 3]})
    parquet, arrow = io.BytesIO(), io.BytesIO()
    parquet_module.write_table(table, parquet)
    with pa.ipc.new_file(arrow, table.schema) as writer:
        writer.write_table(table)
    return [parquet.getvalue(), arrow.getvalue()]


TABLES = tables()
CHECKS = [check_checkpoint, check_shards, check_counts, check_chat, check_corpus]


def check(provider: atheris.FuzzedDataProvider, directory: Path) -> None:
    """One of the readers, in an empty directory."""
    empty = directory / "empty"
    shutil.rmtree(empty, ignore_errors=True)
    empty.mkdir()
    provider.PickValueInList(CHECKS)(provider, empty)


fuzz(check)
