"""Every command that takes a tokenizer takes a published name, and downloads only when it may."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.formats import names
from bpe_tokenizer.formats import tiktoken as format_
from bpe_tokenizer.formats.tiktoken.published import PublishedEncoding, PublishedFile
from bpe_tokenizer.patterns import NAMED_PATTERNS
from command_line import Run
from tiktoken_files import TINY, FileServer, running


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A small published encoding on a server on this machine, and an empty cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in ("BPE_TOKENIZER_DOWNLOAD", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    if "huggingface_hub.constants" in sys.modules:  # it has read the environment already
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with running() as content:
        content.files["/o200k_base.tiktoken"] = TINY
        file = PublishedFile(f"{content.address}/o200k_base.tiktoken", hashlib.sha256(TINY).hexdigest())
        encoding = PublishedEncoding(file, NAMED_PATTERNS["r50k"].patterns[0], {"<|end|>": 258})
        other = PublishedEncoding(file._replace(sha256="0" * 64), "x", {})
        for module in (names, format_):
            monkeypatch.setattr(module, "PUBLISHED", {"o200k_base": encoding, "gpt2": other})
        yield content


COMMANDS = {
    "encode": ["encode", "--tokenizer", "gpt-4o", "--text", "abc"],
    "decode": ["decode", "--tokenizer", "gpt-4o", "--ids", "257"],
    "info": ["info", "--tokenizer", "gpt-4o"],
    "convert": ["convert", "gpt-4o", "saved", "--to", "huggingface", "--overwrite"],
    "compare": ["compare", "gpt-4o", "o200k_base", "--corpus", "corpus.txt"],
    "report": ["report", "--tokenizer", "gpt-4o", "--corpus", "corpus.txt"],
    "tokenize-corpus": ["tokenize-corpus", "--tokenizer", "gpt-4o", "--corpus", "corpus.txt"],
    "view": ["view", "--tokenizer", "gpt-4o", "--text", "abc", "--plain"],
}
COMMANDS["tokenize-corpus"] += ["--output", "tokens", "--eos-token", "<|end|>"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_a_published_name(name: str, run: Run, server: FileServer) -> None:
    Path("corpus.txt").write_text("abc ab\n")
    refused = run(*COMMANDS[name])
    assert (refused.code, refused.out) == (1, b"")
    assert refused.err.startswith("bpe-tokenizer: gpt-4o: no intact o200k_base.tiktoken is on this machine")
    assert "--download" in refused.err
    assert refused.err.count("\n") == 1
    assert server.requests == []
    assert run(*COMMANDS[name], "--download").code == 0
    assert run(*COMMANDS[name]).code == 0
    assert server.requests == ["/o200k_base.tiktoken"]


def test_the_result_is_that_of_the_encoding(run: Run, server: FileServer) -> None:
    assert run(*COMMANDS["encode"], "--download").text == "257\n"
    assert run(*COMMANDS["decode"]).text == "abc"
    converted = run(*COMMANDS["convert"], "--json")
    assert json.loads(converted.text)["from"] == "tiktoken"
    assert BPETokenizer.load("saved").encode("abc<|end|>", allowed_special="all") == [257, 258]
    assert run("convert", "./saved", "again", "--to", "base64-json").code == 0
    assert len(server.requests) == 1


def test_the_environment_may_permit_downloads(
    run: Run, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value, code in (("0", 1), ("1", 0)):
        monkeypatch.setenv("BPE_TOKENIZER_DOWNLOAD", value)
        assert run(*COMMANDS["encode"]).code == code
        assert len(server.requests) == int(value)


def test_a_path_wins_as_it_is_written(run: Run, server: FileServer) -> None:
    BPETokenizer().train("abc abc", 258, verbose=False).save("gpt-4o")
    assert run("encode", "--tokenizer", "./gpt-4o", "--text", "a").text == "97\n"
    refused = run("encode", "--tokenizer", "./o200k_base", "--text", "a", "--download")
    assert refused.err == "bpe-tokenizer: ./o200k_base: no such file or directory\n"
    assert server.requests == []


def test_chat_takes_a_published_name(run: Run, server: FileServer) -> None:
    Path("none.gguf").write_bytes(b"GGUF")
    refused = run("chat", "--model", "none.gguf", "--tokenizer", "gpt-4o", "--message", "hi")
    assert "no intact o200k_base.tiktoken" in refused.err
    run("chat", "--model", "none.gguf", "--tokenizer", "gpt-4o", "--message", "hi", "--download")
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_name_is_one_line(name: str, run: Run, server: FileServer) -> None:
    Path("corpus.txt").write_text("abc ab\n")
    refused = run(*(word.replace("gpt-4o", "gpt4o") for word in COMMANDS[name]))
    assert refused.code == 1
    assert "gpt4o: no such file or directory" in refused.err
    assert "did you mean 'gpt-4o'?" in refused.err
    assert refused.err.count("\n") == 1
