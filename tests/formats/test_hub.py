"""Tokenizers of the Hugging Face hub, from a server on this machine that answers as it does."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import warnings
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from bpe_tokenizer import (
    AddedToken,
    ArgumentTypeError,
    BPETokenizer,
    FormatError,
    HubError,
    MissingDependencyError,
    Model,
    OptionError,
    _core,
)
from bpe_tokenizer.formats import hub, huggingface
from bpe_tokenizer.formats.hub.repository import Repository
from hf_files import small_model
from hub_server import HubServer, requested_files, running

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    huggingface_hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")

CONSTANTS = importlib.import_module("huggingface_hub.constants")
BESIDE = ["special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "tokenizer_config.json"]
FILES = ["tokenizer.json", *BESIDE]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library waits between attempts."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub, and a library that knows no other, has no token, and may use the network."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setattr(CONSTANTS, "HF_TOKEN_PATH", str(tmp_path / "no token"))
    monkeypatch.setattr(CONSTANTS, "HF_HUB_OFFLINE", False)
    with running() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        yield server


@pytest.fixture(scope="module")
def files(tokenizer: BPETokenizer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a repository: a tokenizer, and files that are not fetched."""
    directory = tmp_path_factory.mktemp("repository")
    tokenizer.save(directory)
    return {
        **{path.name: path.read_bytes() for path in directory.iterdir()},
        "chat_template.jinja": b"{{ messages }}",
        "README.md": b"# A model",
        "config.json": b"{}",
        "model.safetensors": b"\0" * 10_000,
        "onnx/tokenizer.json": b"{",
    }


@pytest.fixture(scope="module")
def gpt2_files(plain_tokenizer: BPETokenizer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    plain_tokenizer.export(directory := tmp_path_factory.mktemp("pair"), "gpt2")
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def same(model: Model, tokenizer: BPETokenizer, text: str = "Grüße <|bos|> 日本語 'def f(x):'") -> bool:
    ours = BPETokenizer.from_model(model)
    return (
        ours.encode(text, True, "all") == tokenizer.encode(text, True, "all")
        and ours.special_tokens == tokenizer.special_tokens
        and (ours.bos_token, ours.pad_token) == (tokenizer.bos_token, tokenizer.pad_token)
    )


def paths(server: HubServer) -> list[list[str]]:
    """The paths of the requests since the last time, in parts."""
    return [request.path.split("/") for request in server.take()]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_only_the_files_of_the_tokenizer_are_fetched(
    server: HubServer, files: dict[str, bytes], cache: Path, tokenizer: BPETokenizer
) -> None:
    server.publish("owner/name", files)
    model = hub.load("owner/name", cache_dir=cache)
    assert same(model, tokenizer)
    assert model.config["chat_template"] == "{{ messages }}"
    fetched = [request.path.rpartition("/")[2] for request in server.requests if request.method == "GET"]
    commit = fetched.pop(1)  # the list of its files
    assert sorted(fetched) == ["chat_template.jinja", "tokenizer.json", "tokenizer_config.json"]
    assert server.requests[2].path == f"/api/models/owner/name/revision/{commit}"
    assert requested_files(server, "HEAD") == FILES
    assert all(request.authorization is None for request in server.take())


def test_additional_chat_templates_are_fetched(
    server: HubServer, files: dict[str, bytes], cache: Path
) -> None:
    others = {"rag.jinja": b"rag", "tool_use.jinja": b"tools", "README.md": b"#", "old/x.jinja": b"x"}
    others = {f"additional_chat_templates/{name}": data for name, data in others.items()}
    server.publish("owner/name", files | others)
    expected = {"default": "{{ messages }}", "rag": "rag", "tool_use": "tools"}
    for local in (False, True):
        found = hub.load("owner/name", cache_dir=cache, local_files_only=local).config["chat_template"]
        assert {each["name"]: each["template"] for each in found} == expected
    assert "README.md" not in requested_files(server, "HEAD")


def test_the_second_time_the_cache_gives_the_content(
    server: HubServer, files: dict[str, bytes], cache: Path, tokenizer: BPETokenizer
) -> None:
    commit = server.publish("owner/name", files)
    hub.load("owner/name", cache_dir=cache)
    server.take()
    assert same(hub.load("owner/name", cache_dir=cache), tokenizer)
    assert [request[:2] for request in server.take()] == [("HEAD", "/owner/name/resolve/main/tokenizer.json")]
    assert same(hub.load("owner/name", cache_dir=cache, revision=commit), tokenizer)
    assert server.take() == []


def test_all_files_are_of_one_commit(server: HubServer, files: dict[str, bytes], cache: Path) -> None:
    old = server.publish("owner/name", files)
    hub.load("owner/name", cache_dir=cache)
    new = server.publish(
        "owner/name", files | {"chat_template.jinja": b"new", "special_tokens_map.json": b"{}"}
    )
    server.take()
    assert hub.load("owner/name", cache_dir=cache).config["chat_template"] == "new"
    assert {path[6 if path[1] == "api" else 4] for path in paths(server)} == {"main", new}
    assert hub.load("owner/name", cache_dir=cache, revision=old).config["chat_template"] == "{{ messages }}"


def test_revisions(server: HubServer, files: dict[str, bytes], cache: Path) -> None:
    server.publish("owner/name", files)
    server.publish("owner/name", files | {"chat_template.jinja": b"v2"}, revision="v2")
    assert hub.load("owner/name", revision="v2", cache_dir=cache).config["chat_template"] == "v2"
    with pytest.raises(HubError, match=r"owner/name at 'v3': no such branch, tag or commit; see http"):
        hub.load("owner/name", revision="v3", cache_dir=cache)


@pytest.mark.parametrize(
    ("token", "environment", "sent"),
    [
        (None, None, None),
        (None, "from-env", "Bearer from-env"),
        (True, "from-env", "Bearer from-env"),
        (False, "from-env", None),
        ("given", "from-env", "Bearer given"),
    ],
)
def test_the_token_is_sent(
    token: str | bool | None,
    environment: str | None,
    sent: str | None,
    server: HubServer,
    files: dict[str, bytes],
    gpt2_files: dict[str, bytes],
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if environment:
        monkeypatch.setenv("HF_TOKEN", environment)
    server.publish("owner/name", files)
    hub.load("owner/name", token=token, cache_dir=cache)
    assert {request.authorization for request in server.take()} == {sent}
    server.publish("owner/old", gpt2_files)  # its files are listed
    hub.load("owner/old", token=token, cache_dir=cache)
    assert {request.authorization for request in server.take()} == {sent}


def test_the_token_does_not_leave_the_hub(
    server: HubServer, files: dict[str, bytes], cache: Path, tokenizer: BPETokenizer
) -> None:
    """A large file comes from another host, whose address holds the permission."""
    server.publish("owner/name", files)
    server.large.add("tokenizer.json")
    assert same(hub.load("owner/name", token="secret", cache_dir=cache), tokenizer)
    tokens = {request.path.startswith("/blob/"): request.authorization for request in server.take()}
    assert tokens == {True: None, False: "Bearer secret"}


def test_a_token_that_must_be_there(server: HubServer, files: dict[str, bytes], cache: Path) -> None:
    server.publish("owner/name", files)
    with pytest.raises(HubError, match=r"there is none; log in with `hf auth login`, set HF_TOKEN or pass"):
        hub.load("owner/name", token=True, cache_dir=cache)
    assert server.take() == []


@pytest.mark.parametrize("token", [None, "refused"])
def test_a_gated_repository(
    token: str | None, server: HubServer, files: dict[str, bytes], cache: Path, tokenizer: BPETokenizer
) -> None:
    server.publish("owner/gated", files)
    server.gated.add("owner/gated")
    with pytest.raises(HubError, match=r"owner/gated: is gated: request access on http.*/owner/gated, then"):
        hub.load("owner/gated", token=token, cache_dir=cache)
    assert same(hub.load("owner/gated", token="admitted", cache_dir=cache), tokenizer)


def test_a_repository_that_is_not_there(server: HubServer, cache: Path) -> None:
    with pytest.raises(HubError, match=r"nobody/nothing: no such repository at http://127") as raised:
        hub.load("nobody/nothing", cache_dir=cache)
    assert isinstance(raised.value, OSError)
    assert "and no local file or directory of this name; if it is private, log in" in str(raised.value)


def test_a_repository_that_moved(
    server: HubServer, files: dict[str, bytes], cache: Path, tokenizer: BPETokenizer
) -> None:
    server.publish("openai-community/gpt2", files)
    server.moved["gpt2"] = "openai-community/gpt2"
    assert same(hub.load("gpt2", cache_dir=cache), tokenizer)


def test_a_folder_and_a_file_of_a_repository(
    server: HubServer, files: dict[str, bytes], cache: Path, tokenizer: BPETokenizer
) -> None:
    inside = {f"text/tokenizer/{name}": data for name, data in files.items()}
    server.publish("owner/name", inside | {"tokenizer.json": b"{}"})
    model = hub.load("owner/name/text/tokenizer", cache_dir=cache)
    assert same(model, tokenizer)
    assert model.config["chat_template"] == "{{ messages }}"
    alone = hub.load("owner/name/text/tokenizer/tokenizer.json", cache_dir=cache)
    assert (alone.core.merges, alone.config) == (tokenizer.merges, {})
    with pytest.raises(
        HubError, match=r"owner/name: holds no file 'text/vocab\.gguf'; see http.*/owner/name for"
    ):
        hub.load("owner/name/text/vocab.gguf", cache_dir=cache)


def test_a_pair_of_gpt2_files(
    server: HubServer, gpt2_files: dict[str, bytes], cache: Path, plain_tokenizer: BPETokenizer
) -> None:
    """Like the repositories from before tokenizer.json; OpenAI's names too, and each of the two."""
    server.publish("owner/old", gpt2_files | {"tekken.json": b"", "model.safetensors": b"\0"})
    for source in ("owner/old", "owner/old/vocab.json", "owner/old/merges.txt"):
        model = hub.load(source, cache_dir=cache)
        assert BPETokenizer.from_model(model).encode("low lower") == plain_tokenizer.encode("low lower")
    assert set(requested_files(server, "GET")) == {"main", *gpt2_files}
    openai = {"encoder.json": gpt2_files["vocab.json"], "vocab.bpe": gpt2_files["merges.txt"]}
    server.publish("owner/openai", openai)
    assert hub.load("owner/openai", cache_dir=cache).core.merges == plain_tokenizer.merges


def test_every_request_names_this_package(
    server: HubServer, gpt2_files: dict[str, bytes], cache: Path
) -> None:
    server.publish("owner/old", gpt2_files)
    hub.load("owner/old", cache_dir=cache)
    requests = server.take()
    assert requests
    for request in requests:
        assert request.agent.startswith(f"bpe-tokenizer/{_core.__version__};")


def test_the_files_of_a_pair_are_of_the_listed_commit(
    server: HubServer, gpt2_files: dict[str, bytes], cache: Path
) -> None:
    commit = server.publish("owner/old", gpt2_files)
    hub.load("owner/old", cache_dir=cache)
    asked = [request.path.removeprefix("/owner/old/resolve/") for request in server.take()]
    assert asked[:2] == ["main/tokenizer.json", "/api/models/owner/old/revision/main"]
    assert {path.partition("/")[0] for path in asked[2:]} == {commit}


def test_a_pair_of_a_revision_offline(
    server: HubServer,
    gpt2_files: dict[str, bytes],
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    merges = b"\n".join(gpt2_files["merges.txt"].splitlines()[:10]) + b"\n"
    server.publish("owner/old", gpt2_files)
    pair = {"vocab.json": gpt2_files["vocab.json"], "merges.txt": merges}
    server.publish("owner/old", pair, revision="v2")
    found = [
        hub.load("owner/old", revision=revision, cache_dir=cache).core.merges for revision in ("main", "v2")
    ]
    assert found[0] != found[1]
    server.take()
    monkeypatch.setattr(CONSTANTS, "ENDPOINT", server.address)
    for revision, expected in zip(("main", "v2"), found, strict=True):
        model = hub.load("owner/old", revision=revision, cache_dir=cache, local_files_only=True)
        assert model.core.merges == expected
    assert server.take() == []


def test_a_pair_offline_in_a_repository_of_which_another_program_fetched_a_part(
    server: HubServer, gpt2_files: dict[str, bytes], cache: Path, plain_tokenizer: BPETokenizer
) -> None:
    server.publish("owner/old", gpt2_files | {"model.safetensors": b"\0"})
    hub.load("owner/old", cache_dir=cache)
    huggingface_hub.snapshot_download(
        "owner/old",
        allow_patterns=["*.json", "*.txt"],
        cache_dir=cache,
        endpoint=server.address,
        token=False,
    )
    model = hub.load("owner/old", cache_dir=cache, local_files_only=True)
    assert model.core.merges == plain_tokenizer.merges


def test_a_list_of_files_that_the_hub_does_not_give(
    server: HubServer, gpt2_files: dict[str, bytes], cache: Path
) -> None:
    server.publish("owner/old", gpt2_files)
    server.is_unlisted = True
    with pytest.raises(HubError, match=r"^owner/old: the list of its files cannot be fetched from .*418"):
        hub.load("owner/old", cache_dir=cache)


def test_what_was_added_to_a_pair_counts(
    server: HubServer, gpt2_files: dict[str, bytes], cache: Path
) -> None:
    added = {"added_tokens.json": b'{"<new>": 600}', "special_tokens_map.json": b'{"eos_token": "<new>"}'}
    server.publish(
        "owner/old", {"vocab.json": gpt2_files["vocab.json"], "merges.txt": gpt2_files["merges.txt"]} | added
    )
    for local_files_only in (False, True):
        model = hub.load("owner/old", cache_dir=cache, local_files_only=local_files_only)
        assert BPETokenizer.from_model(model).special_tokens == {"<new>": 600}


def test_a_tekken_json(server: HubServer, cache: Path) -> None:
    vocab = [
        {"rank": byte, "token_bytes": b64encode(bytes([byte])).decode(), "token_str": None}
        for byte in range(256)
    ]
    config = {
        "pattern": ".",
        "num_vocab_tokens": 256,
        "default_vocab_size": 286,
        "default_num_special_tokens": 30,
        "version": "v3",
    }
    tekken = json.dumps({"config": config, "vocab": vocab}).encode()
    server.publish("owner/name", {"tekken.json": tekken, "params.json": b"{}"})
    for local_files_only in (False, True):
        model = hub.load("owner/name", cache_dir=cache, local_files_only=local_files_only)
        assert BPETokenizer.from_model(model).encode("a") == [30 + 97]


def test_a_rank_file_needs_what_stands_in_code(server: HubServer, cache: Path) -> None:
    ranks = b"".join(b"%s %d\n" % (b64encode(bytes([byte])), byte) for byte in range(256))
    server.publish("owner/name", {"some.tiktoken": ranks, "tokenization_some.py": b""})
    given: dict[str, Any] = {"split_pattern": "gpt2", "special_tokens": ["<|end|>"]}
    for source in ("owner/name", "owner/name/some.tiktoken"):
        ours = BPETokenizer.from_model(hub.load(source, cache_dir=cache, **given))
        assert ours.encode("a<|end|>", allowed_special="all") == [97, 256]
    with pytest.raises(OptionError, match="split pattern"):
        hub.load("owner/name/some.tiktoken", cache_dir=cache)
    with pytest.raises(
        HubError, match=r"like owner/name/some\.tiktoken, with the split_pattern and special_t"
    ):
        hub.load("owner/name", cache_dir=cache)


def test_other_files_hold_what_is_given(
    server: HubServer, files: dict[str, bytes], cache: Path, tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    server.publish("owner/name", files)
    tokenizer.save(tmp_path / "saved")
    for source in ("owner/name", tmp_path / "saved"):
        with pytest.raises(OptionError, match=r"holds its own .*; leave out split_pattern"):
            hub.load(source, cache_dir=cache, split_pattern="gpt2")


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (["README.md", "x/tokenizer.json"], r"no tekken\.json$"),
        (["b.gguf", "a.gguf"], r"; name a file of it, like owner/name/a\.gguf$"),
        (
            ["vocab.json", "tokenizer.model"],
            r"; name a file of it, like owner/name/tokenizer\.model$",
        ),
        (
            ["b.tiktoken", "a.tiktoken", "x.gguf"],
            r"; name a file of it, like owner/name/a\.tiktoken, wi",
        ),
    ],
)
def test_a_repository_without_a_tokenizer(
    names: list[str], hint: str, server: HubServer, cache: Path
) -> None:
    server.publish("owner/name", dict.fromkeys(names, b""))
    with pytest.raises(HubError, match=r"holds no tokenizer\.json, no vocab\.json with.*" + hint):
        hub.load("owner/name", cache_dir=cache)
    assert "GET" not in {request.method for request in server.take() if "/resolve/" in request.path}


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
def test_a_download_that_is_cut_off_is_never_read(
    name: str, server: HubServer, files: dict[str, bytes], cache: Path, tokenizer: BPETokenizer
) -> None:
    server.publish("owner/name", files)
    server.cut.add(name)
    with pytest.raises(HubError, match=rf"{name} cannot be fetched from http.*Check the connection and try"):
        hub.load("owner/name", cache_dir=cache)
    with pytest.raises(HubError, match="is not in the cache"):
        hub.load("owner/name", cache_dir=cache, local_files_only=True)
    server.cut.clear()
    assert same(hub.load("owner/name", cache_dir=cache), tokenizer)


def test_offline_the_cache_is_enough(
    server: HubServer,
    files: dict[str, bytes],
    cache: Path,
    tokenizer: BPETokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.publish("owner/name", files)
    online = hub.load("owner/name", cache_dir=cache)
    server.take()
    offline = hub.load("owner/name", cache_dir=cache, local_files_only=True)
    assert (offline.config, offline.named_tokens) == (online.config, online.named_tokens)
    monkeypatch.setattr(CONSTANTS, "HF_HUB_OFFLINE", True)
    assert same(hub.load("owner/name", cache_dir=cache), tokenizer)
    assert server.take() == []


def test_offline_with_nothing_cached(
    server: HubServer, files: dict[str, bytes], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.publish("owner/name", files)
    with pytest.raises(HubError, match=r"tokenizer\.json is not in the cache, and local_files_only is True"):
        hub.load("owner/name", cache_dir=cache, local_files_only=True)
    monkeypatch.setattr(CONSTANTS, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match=r"is not in the cache, and HF_HUB_OFFLINE is set; load the tokenizer"):
        hub.load("owner/name", cache_dir=cache)
    assert server.take() == []


def test_offline_with_a_part_cached(server: HubServer, files: dict[str, bytes], cache: Path) -> None:
    """`tokenizers` fetches tokenizer.json alone; without the config the special tokens could be others."""
    server.publish("owner/name", files)
    huggingface_hub.hf_hub_download(
        "owner/name", "tokenizer.json", cache_dir=cache, endpoint=server.address, token=False
    )
    with pytest.raises(HubError, match=r"tokenizer_config\.json is not in the cache"):
        hub.load("owner/name", cache_dir=cache, local_files_only=True)


def test_offline_with_a_cache_that_another_program_filled(
    server: HubServer, files: dict[str, bytes], cache: Path, tokenizer: BPETokenizer
) -> None:
    """What was never asked for, the cache cannot know to be absent."""
    server.publish("owner/name", files)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        huggingface_hub.hf_hub_download(
            "owner/name", name, cache_dir=cache, endpoint=server.address, token=False
        )
    assert same(hub.load("owner/name", cache_dir=cache, local_files_only=True), tokenizer)


def test_without_a_connection(
    server: HubServer,
    files: dict[str, bytes],
    cache: Path,
    tokenizer: BPETokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.publish("owner/name", files)
    hub.load("owner/name", cache_dir=cache)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nothing listens there
    assert same(hub.load("owner/name", cache_dir=cache), tokenizer)
    with pytest.raises(
        HubError, match=r"owner/other: tokenizer\.json cannot be fetched from http://127\.0\.0\.1:9: "
    ):
        hub.load("owner/other", cache_dir=cache)


NOT_CACHED = importlib.import_module("huggingface_hub.errors").LocalEntryNotFoundError("nothing is cached")


@pytest.mark.parametrize(
    ("error", "cause", "reason"),
    [
        (ValueError("no route\n  to X."), None, "no route to X"),
        (ValueError("no route"), OSError("within"), "no route"),
        (NOT_CACHED, OSError(".home is unknown"), ".home is unknown"),
        (NOT_CACHED, None, "nothing is cached"),
    ],
)
def test_why_a_file_cannot_be_fetched(
    error: Exception,
    cause: Exception | None,
    reason: str,
    server: HubServer,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_args: object, **_named: object) -> None:
        raise error from cause

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fail)
    message = (
        rf"tokenizer\.json cannot be fetched from {server.address}: {re.escape(reason)}\. Check the conn"
    )
    with pytest.raises(HubError, match=f"^owner/name: {message}"):
        hub.load("owner/name", cache_dir=cache)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "http://127.0.0.1:9/X"])
def test_the_address_of_the_hub_may_end_with_a_slash(
    address: str, server: HubServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"{address}/")
    with pytest.raises(HubError, match=rf"cannot be fetched from {re.escape(address)}: "):
        hub.load("owner/name", cache_dir=cache)


def test_without_another_address_the_hub_is_that_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    monkeypatch.setattr(CONSTANTS, "ENDPOINT", "http://127.0.0.1:9")
    assert Repository("owner/name", "main").page == "http://127.0.0.1:9/owner/name"


def test_without_the_library(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingDependencyError, match=r"needs huggingface_hub, .*pip install '"):
        hub.load("owner/name")


def test_a_page_in_the_place_of_the_hub(server: HubServer, cache: Path) -> None:
    server.is_portal = True
    with pytest.raises(HubError, match=r"tokenizer\.json cannot be fetched from http"):
        hub.load("owner/name", cache_dir=cache)


def test_a_broken_file_is_named(server: HubServer, files: dict[str, bytes], cache: Path) -> None:
    server.publish("owner/name", files | {"tokenizer.json": b'{"truncation": null, '})
    with pytest.raises(FormatError, match=r"snapshots.*tokenizer\.json: is not valid JSON"):
        hub.load("owner/name", cache_dir=cache)


def test_local_paths_come_first(
    server: HubServer,
    files: dict[str, bytes],
    tmp_path: Path,
    tokenizer: BPETokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.publish("owner/name", {})
    tokenizer.save(tmp_path / "owner/name")
    monkeypatch.chdir(tmp_path)
    for source in ("owner/name", Path("owner/name"), str(tmp_path / "owner/name")):
        assert same(hub.load(source), tokenizer)
    with pytest.raises(FormatError, match="no such file or directory"):
        hub.load(Path("owner/other"))  # a Path is never the name of a repository
    assert server.take() == []


@pytest.mark.parametrize(
    "source",
    [
        "/no/such/place",
        "../name",
        "owner/../name",
        "owner//name",
        "owner/na me",
        "owner\\name",
        "ow--ner/name",
        "https://huggingface.co/owner/name",
        "tokenizer.json",
        "missing.gguf",
        "é",
        "n" * 300,  # no path on this system
    ],
)
def test_what_is_no_repository(source: str, server: HubServer) -> None:
    is_name = source in ("tokenizer.json", "missing.gguf")  # but not of a repository with a tokenizer
    hint = "" if is_name else ", and not the name of a repository like 'owner/name'"
    with pytest.raises(FormatError, match=f"{re.escape(source)}: no such file or directory{hint}$"):
        hub.load(source)
    assert server.take() == []


@pytest.mark.parametrize("source", ["n" * 5000, "a\0b"], ids=["long", "NUL"])
def test_what_is_neither_a_repository_nor_a_path(source: str, server: HubServer) -> None:
    with pytest.raises(OptionError, match=r"a path (holds at most|cannot hold)"):
        hub.load(source)
    assert server.take() == []


@pytest.mark.parametrize("source", [3, None, b"owner/name", ["owner/name"], object()])
def test_what_is_no_source(source: Any) -> None:
    with pytest.raises(
        ArgumentTypeError, match="source must be the name of a repository, a path, a tokenizers"
    ):
        hub.load(source)


class Tokenizer:
    """Stands for a `tokenizers.Tokenizer`."""

    __module__ = "tokenizers.implementations"

    def __init__(self, text: str | Exception) -> None:
        self.text = text

    def to_str(self) -> str:
        if isinstance(self.text, Exception):
            raise self.text
        return self.text


class FastTokenizer:
    """Stands for a tokenizer of `transformers`, which saves roles without a token as missing ones."""

    __module__ = "transformers.models.gpt2"
    is_fast = True
    config: ClassVar[dict[str, Any]] = {
        "chat_template": [{"name": "é", "template": "x"}],
        "model_max_length": 5,
    }

    def __init__(self, text: str | None) -> None:
        self.text = text

    def save_pretrained(self, save_directory: str, **options: Any) -> None:
        directory, config = Path(save_directory), dict(self.config)
        if options.get("save_jinja_files", True):
            (directory / "chat_template.jinja").write_text("y")
            del config["chat_template"]
        text = json.dumps(config, ensure_ascii=False)
        (directory / "tokenizer_config.json").write_text(text, encoding="utf-8")
        if self.text is not None:
            (directory / "tokenizer.json").write_text(self.text, encoding="utf-8")


class SlowTokenizer(FastTokenizer):
    __module__ = "transformers.models.gpt2"
    is_fast = False


def test_objects_of_other_libraries() -> None:
    model = small_model(AddedToken("<eos>", 256), AddedToken("<é日>", 257))
    text = huggingface.to_json(model).decode()
    loaded = hub.load(Tokenizer(text))
    assert loaded.core.added_tokens == model.core.added_tokens
    assert BPETokenizer.from_model(loaded).eos_token == "<eos>"
    loaded = hub.load(FastTokenizer(text))
    assert loaded.core.added_tokens == model.core.added_tokens
    assert loaded.config == FastTokenizer.config
    assert BPETokenizer.from_model(loaded).eos_token is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Tokenizer(ValueError("Python")), "tokenizers.Tokenizer: cannot be saved: Python"),
        (Tokenizer("{}"), "tokenizers.Tokenizer: tokenizer.json: model: is missing"),
        (FastTokenizer("{}"), "transformers.FastTokenizer: tokenizer.json: model: is missing"),
        (FastTokenizer(None), "transformers.FastTokenizer: holds no tokenizer.json"),
        (
            SlowTokenizer("{}"),
            "transformers.SlowTokenizer: is not a fast tokenizer of transformers, so no tokenizer.json "
            "defines it; give the fast one, from AutoTokenizer.from_pretrained(...), or its files",
        ),
    ],
)
def test_objects_that_cannot_be_loaded(source: Any, message: str) -> None:
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        hub.load(source)


@pytest.mark.parametrize("given", [{"split_pattern": "gpt2"}, {"special_tokens": ["<eos>"]}])
def test_an_object_holds_what_is_given(given: Any) -> None:
    with pytest.raises(
        OptionError, match="an object has its own split pattern and special tokens; leave out"
    ):
        hub.load(Tokenizer("{}"), **given)


LOAD = """
import sys
from bpe_tokenizer import BPETokenizer
print(BPETokenizer.from_huggingface(sys.argv[1]).encode("low lower"))
"""


def run(program: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=kept | environment,
        check=False,
    )


def test_the_environment_of_the_library_counts(
    server: HubServer, files: dict[str, bytes], cache: Path, tokenizer: BPETokenizer
) -> None:
    server.publish("owner/name", files)
    server.gated.add("owner/name")
    where = {"HF_ENDPOINT": f"{server.address}/", "HF_HOME": str(cache)}
    ids = f"{tokenizer.encode('low lower')}\n"
    done = run(LOAD, "owner/name", **where, HF_TOKEN="admitted")
    assert (done.stdout, done.stderr) == (ids, "")  # no progress where there is no terminal
    assert (cache / "hub" / "models--owner--name").is_dir()
    server.take()
    assert run(LOAD, "owner/name", **where, HF_HUB_OFFLINE="1").stdout == ids
    assert server.take() == []


def test_local_paths_need_no_library(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    without = "import sys; sys.modules['huggingface_hub'] = None" + LOAD
    assert run(without, tmp_path).stdout == f"{tokenizer.encode('low lower')}\n"
    done = run(without, "owner/name")
    assert "MissingDependencyError: a tokenizer of the Hugging Face hub needs huggingface_hub" in done.stderr
    assert "[hub]'" in done.stderr


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_hostile_content_is_refused(
    name: str, server: HubServer, files: dict[str, bytes], cache: Path
) -> None:
    for content in (b"", b"\xff", b"[]", b"{" * 5000, b"<html>", files[name][:-3], files[name] + b"}"):
        server.publish("owner/name", files | {name: content})
        with pytest.raises(FormatError, match=rf"snapshots.*{name}: "):
            hub.load("owner/name", cache_dir=cache)
