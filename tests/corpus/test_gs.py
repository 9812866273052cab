"""Runs whose output is in Google Cloud Storage, on a local server."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus.remote_path import output_path
from bpe_tokenizer.corpus.shards import ShardFormatName
from line_documents import tokenize_corpus
from token_files import as_jsonl, contents

pytestmark = pytest.mark.token_readers


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket; fsspec is told of the server as its users tell it."""
    # Otherwise it asks Google what kind of bucket it is. Read when it is imported.
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    system = pytest.importorskip("gcsfs").GCSFileSystem
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        port = found.getsockname()[1]
    server = emulator.create_server("127.0.0.1", port, in_memory=True, default_bucket="bucket")
    server.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    config = pytest.importorskip("fsspec").config.conf
    monkeypatch.setitem(config, "gs", {"token": "anon", "project": "test"})
    yield "gs://bucket"
    system.clear_instance_cache()
    server.stop()


@pytest.mark.parametrize("token_format", ["megatron", "parquet"])
def test_the_objects_are_the_files_of_a_local_run(
    token_format: ShardFormatName, bucket: str, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    chance = random.Random(5)
    texts = ["".join(chance.choices("abcde fgh\n", k=chance.randrange(200))) for _ in range(500)]
    (tmp_path / "corpus.jsonl").write_bytes(as_jsonl(texts))
    out = output_path(f"{bucket}/tokens")
    for directory in (tmp_path / "tokens", out):
        tokenize_corpus(tmp_path / "corpus.jsonl", str(directory), tokenizer, token_format, shard_tokens=3000)
    assert contents(out) == contents(tmp_path / "tokens")
    # What is missing is made again.
    lost = next(path for path in out.iterdir() if path.name.endswith((".bin", ".parquet")))
    lost.unlink()
    tokenize_corpus(tmp_path / "corpus.jsonl", str(out), tokenizer, token_format, shard_tokens=3000)
    assert contents(out) == contents(tmp_path / "tokens")
