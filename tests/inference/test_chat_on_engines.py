"""`BPETokenizer.chat` and `bpe-tokenizer chat` on the local engines: the same replies from each of them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, ChatSession, Reply
from bpe_tokenizer.inference import InferenceBackend, cached_models, free_model, free_models
from inference.tiny_models import BACKENDS, NAMES, Models

pytestmark = pytest.mark.inference

TALK = [{"role": "user", "content": "def parse(<|eot_id|>"}]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Models]:
    models = Models(tmp_path_factory.mktemp("models"))
    yield models
    free_models()


@pytest.fixture(params=BACKENDS, ids=NAMES)
def backend(request: pytest.FixtureRequest) -> InferenceBackend:
    found: InferenceBackend = request.param
    return found


def expected(models: Models, count: int = 40) -> str:
    """The reply of a plain loop of Transformers, up to the end of the turn."""
    tokenizer = models.tokenizer
    ids = models.greedy(tokenizer.apply_chat_template(TALK, "llama3"), count)
    stops = [at for at, token_id in enumerate(ids) if token_id in tokenizer.stop_token_ids("llama3")]
    return tokenizer.decode(ids[: stops[0]] if stops else ids, skip_special_tokens=True)


def test_the_same_reply_from_each(models: Models, backend: InferenceBackend) -> None:
    path = models.path(backend)
    options: dict[str, Any] = {"max_new_tokens": 40, "temperature": 0, "backend": backend}
    text = models.tokenizer.chat(TALK, path, "llama3", **options)
    assert text == expected(models)
    reply = models.tokenizer.chat(TALK, path, "llama3", stream=True, **options)
    assert isinstance(reply, Reply)
    parts = list(reply)
    assert "".join(parts) == text
    assert len(parts) > 3
    awaited = asyncio.run(models.tokenizer.chat_async(TALK, path, "llama3", **options))
    assert awaited == text
    own = BPETokenizer.for_model(path)
    assert own.chat(TALK, path, "llama3", **options) == text
    assert any(model.backend is backend for model in cached_models())
    assert free_model(path) >= 1


def test_a_session_on_each(models: Models, backend: InferenceBackend) -> None:
    session = ChatSession(
        models.path(backend), template="llama3", max_new_tokens=10, temperature=0, backend=backend
    )
    for text in ["one"] * 12:  # more than the context holds
        assert "".join(session.send(text)) == session.messages[-1]["content"]
    assert len(session.messages) == 24


def test_the_command_line_on_each(models: Models, backend: InferenceBackend) -> None:
    command = [sys.executable, "-m", "bpe_tokenizer", "chat", "--model", str(models.path(backend))]
    command += ["--template", "llama3", "--max-tokens", "40", "--temperature", "0", "--json"]
    command += ["--backend", backend.value, "--message", TALK[0]["content"]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["reply"] == expected(models)
