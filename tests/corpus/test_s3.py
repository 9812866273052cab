"""Runs whose output is in S3, on a local server: they are killed, and their connections end."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import small_batches
from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import merge_manifests
from bpe_tokenizer.corpus.remote_path import output_path
from bpe_tokenizer.errors import TokenizerError
from line_documents import tokenize_corpus
from token_files import as_jsonl, contents

SUPPORT = str(Path(small_batches.__file__).parent)
RUN = """
import sys
support, tokenizer, corpus, out, of = sys.argv[1:]
sys.path.insert(0, support)
from bpe_tokenizer import BPETokenizer
from line_documents import tokenize_corpus
from small_batches import patch_batches
patch_batches(7)
parts = {"part": 0, "of": 1, "unit_bytes": 20000} if int(of) else {}
tokenize_corpus(corpus, out, BPETokenizer.load(tokenizer), "megatron", shard_tokens=5000, **parts)
"""

pytestmark = pytest.mark.token_readers


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a server."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    yield server.get_host_and_port()[1]
    server.stop()


@pytest.fixture
def bucket(port: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket; fsspec is told of the server as users tell it."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }.items():
        monkeypatch.setenv(name, value)
    system = pytest.importorskip("s3fs").S3FileSystem(skip_instance_cache=True)
    name = f"b{random.SystemRandom().getrandbits(40)}"
    system.mkdir(name)
    return f"s3://{name}"


@pytest.fixture
def place(tmp_path: Path, tokenizer: BPETokenizer) -> Path:
    """A directory with a saved tokenizer, and a corpus of some units."""
    tokenizer.save(tmp_path / "tokenizer")
    chance = random.Random(5)
    texts = ["".join(chance.choices("abcde fgh\n", k=chance.randrange(200))) for _ in range(1000)]
    (tmp_path / "corpus.jsonl").write_bytes(as_jsonl(texts))
    return tmp_path


def whole(place: Path, tokenizer: BPETokenizer, of: int) -> dict[str, bytes]:
    """The files of a local run."""
    parts: dict[str, Any] = {"part": 0, "of": 1, "unit_bytes": 20000} if of else {}
    out = place / f"whole{of}"
    tokenize_corpus(place / "corpus.jsonl", out, tokenizer, "megatron", shard_tokens=5000, **parts)
    if of:
        merge_manifests(out)
    return contents(out)


def start(place: Path, out: str, of: int) -> subprocess.Popen[bytes]:
    paths = [str(place / each) for each in ("tokenizer", "corpus.jsonl")]
    return subprocess.Popen(
        [sys.executable, "-c", RUN, SUPPORT, *paths, out, str(of)],
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(place)},
    )


@pytest.mark.parametrize("of", [0, 1])
def test_kills_change_nothing(of: int, bucket: str, place: Path, tokenizer: BPETokenizer) -> None:
    expected = whole(place, tokenizer, of)
    out = output_path(f"{bucket}/tokens")
    chance = random.Random(of)
    killed = 0
    for _ in range(4):
        with start(place, str(out), of) as process:
            wanted = len(list(out.iterdir())) + chance.randrange(1, 6)
            while process.poll() is None and len(list(out.iterdir())) < wanted:
                time.sleep(0.01)
            time.sleep(chance.uniform(0, 0.03))
            process.kill()
            killed += process.wait() == -signal.SIGKILL
    assert killed > 1
    running = [start(place, str(out), of) for _ in range(2)]  # two at once
    assert [(process.communicate()[1], process.returncode) for process in running] == [(b"", 0)] * 2
    if of:
        merge_manifests(out, verify=True)
    assert contents(out) == expected
    assert not list(place.glob(".*"))
    if of:  # objects are copied within the store
        again = f"{bucket}/again"
        options: dict[str, Any] = {"part": 0, "of": 1, "unit_bytes": 20000, "shard_tokens": 5000}
        made = tokenize_corpus(place / "corpus.jsonl", again, tokenizer, "megatron", reuse=out, **options)
        assert made.kept == len([name for name in expected if name.endswith(".bin")])
        shards = {name: data for name, data in expected.items() if name.startswith("tokens-")}
        assert shards.items() < contents(output_path(again)).items()


class Breaking:
    """A proxy that ends some connections after some bytes.

    Args:
        port: The port of the server.
        share: The share of the connections that end early.
    """

    def __init__(self, port: int, share: float) -> None:
        self.share = share
        self._server = port
        self._chance = random.Random(1)
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                limit = self._chance.randrange(8000) if self._chance.random() < self.share else 1 << 40
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._copy, args=(*pair, limit), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, limit: int) -> None:
        with suppress(OSError):
            while limit > 0 and (data := source.recv(min(limit, 4096))):
                target.sendall(data)
                limit -= len(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def test_connections_that_end(
    port: int, bucket: str, place: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = whole(place, tokenizer, 0)
    proxy = Breaking(port, 0.5)
    out = f"{bucket}/tokens"
    with closing(proxy.listener):
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.listener.getsockname()[1]}")
        for _ in range(20):
            with start(place, out, 0) as process:
                error = process.communicate()[1].decode()
            if process.returncode == 0:
                break
            # No traceback of a library is the last word.
            assert "bpe_tokenizer.errors." in error.splitlines()[-1], error
            assert "s3://" in error.splitlines()[-1]
            proxy.share /= 2
        assert process.returncode == 0
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    assert contents(output_path(out)) == expected


def test_no_bucket_and_no_server(
    bucket: str, place: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for out, url in ((f"{bucket}x/tokens", None), (f"{bucket}/tokens", "http://127.0.0.1:9")):
        if url is not None:
            monkeypatch.setenv("AWS_ENDPOINT_URL", url)
            pytest.importorskip("s3fs").S3FileSystem.clear_instance_cache()
        with pytest.raises(TokenizerError, match="tokens"):
            tokenize_corpus(place / "corpus.jsonl", out, tokenizer)
