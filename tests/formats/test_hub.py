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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bpe_tokenizer import (
    BPETokenizer,
    FormatError,
    HubError,
    Model,
    OptionError,
    _core,
)
from bpe_tokenizer.formats import hub
from bpe_tokenizer.formats.hub.repository import Repository
from hub_server import HubServer, only_hub, requested_files
from tekken_files import tekken_document

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    huggingface_hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")

CONSTANTS = importlib.import_module("huggingface_hub.constants")
NAME, OLD, NOWHERE = "owner/name", "owner/old", "http://127.0.0.1:9"  # nothing listens there


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library waits between attempts."""
    monkeypatch.setattr("time.sleep", lambda seconds: None)


class Repositories(NamedTuple):
    """A hub and an empty cache; the files of a tokenizer's repository, and those of a pair of GPT-2."""

    server: HubServer
    cache: Path
    tokenizer: BPETokenizer
    files: dict[str, bytes]
    plain: BPETokenizer
    pair: dict[str, bytes]

    def publish(self, changes: Mapping[str, bytes] = {}, **named: str) -> str:
        """Commit the files of the tokenizer with changes."""
        return self.server.publish(NAME, self.files | dict(changes), **named)

    def load(self, source: str = NAME, **options: Any) -> Model:
        return hub.load(source, cache_dir=self.cache, **options)

    def template(self, **options: Any) -> Any:
        return self.load(**options).config["chat_template"]

    def gives_the_tokenizer(self, source: Any = NAME, **options: Any) -> bool:
        ours = BPETokenizer.from_model(self.load(source, **options))
        text = "Grüße <|bos|> 日本語 'def f(x):'"
        return (
            ours.encode(text, True, "all") == self.tokenizer.encode(text, True, "all")
            and ours.special_tokens == self.tokenizer.special_tokens
            and (ours.bos_token, ours.pad_token) == (self.tokenizer.bos_token, self.tokenizer.pad_token)
        )

    def fetch_with_another_program(self, name: str) -> None:
        where = {"cache_dir": self.cache, "endpoint": self.server.address, "token": False}
        huggingface_hub.hf_hub_download(NAME, name, **where)


@pytest.fixture(scope="module")
def written(
    tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, bytes]]:
    """The files of both repositories."""
    directory, pair = tmp_path_factory.mktemp("repository"), tmp_path_factory.mktemp("pair")
    tokenizer.save(directory)
    plain_tokenizer.export(pair, "gpt2")
    not_fetched = {"README.md": b"#", "config.json": b"{}", "model.safetensors": b"\0" * 10_000}
    not_fetched |= {"onnx/tokenizer.json": b"{", "chat_template.jinja": b"{{ messages }}"}
    first, second = ({path.name: path.read_bytes() for path in each.iterdir()} for each in (directory, pair))
    return [first | not_fetched, second]


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: list[Any], tokenizer: Any, plain_tokenizer: Any
) -> Iterator[Repositories]:
    with only_hub(tmp_path, monkeypatch) as server:
        yield Repositories(server, tmp_path / "cache", tokenizer, written[0], plain_tokenizer, written[1])


# -- what is fetched ------------------------------------------------------------------------------------


def test_only_the_files_of_the_tokenizer_are_fetched(here: Repositories) -> None:
    here.publish()
    assert here.template() == "{{ messages }}"
    server = here.server
    fetched = [request.path.rpartition("/")[2] for request in server.requests if request.method == "GET"]
    commit = fetched.pop(1)  # the list of its files
    assert sorted(fetched) == ["chat_template.jinja", "tokenizer.json", "tokenizer_config.json"]
    assert server.requests[2].path == f"/api/models/{NAME}/revision/{commit}"
    beside = ["special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "tokenizer_config.json"]
    assert requested_files(server, "HEAD") == ["tokenizer.json", *beside]
    # The second time the cache gives the content.
    assert here.gives_the_tokenizer()
    assert [request[:2] for request in server.take()] == [("HEAD", f"/{NAME}/resolve/main/tokenizer.json")]
    assert here.gives_the_tokenizer(revision=commit)
    assert server.take() == []


def test_additional_chat_templates_are_fetched(here: Repositories) -> None:
    others = {"rag.jinja": b"rag", "tool_use.jinja": b"tools", "README.md": b"#", "old/x.jinja": b"x"}
    here.publish({f"additional_chat_templates/{name}": data for name, data in others.items()})
    expected = {"default": "{{ messages }}", "rag": "rag", "tool_use": "tools"}
    for local in (False, True):
        found = here.template(local_files_only=local)
        assert {each["name"]: each["template"] for each in found} == expected
    assert "README.md" not in requested_files(here.server, "HEAD")


def test_all_files_are_of_one_commit(here: Repositories) -> None:
    old = here.publish()
    here.load()
    new = here.publish({"chat_template.jinja": b"new", "special_tokens_map.json": b"{}"})
    here.server.take()
    assert here.template() == "new"
    paths = [request.path.split("/") for request in here.server.take()]
    assert {path[6 if path[1] == "api" else 4] for path in paths} == {"main", new}
    assert here.template(revision=old) == "{{ messages }}"


def test_revisions(here: Repositories) -> None:
    here.publish()
    here.publish({"chat_template.jinja": b"v2"}, revision="v2")
    assert here.template(revision="v2") == "v2"
    with pytest.raises(HubError, match=rf"{NAME} at 'v3': no such branch, tag or commit; see http"):
        here.load(revision="v3")


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
    token: Any, environment: str | None, sent: str | None, here: Repositories, monkeypatch: pytest.MonkeyPatch
) -> None:
    if environment:
        monkeypatch.setenv("HF_TOKEN", environment)
    here.publish()
    here.server.publish(OLD, here.pair)  # its files are listed
    for source in (NAME, OLD):
        here.load(source, token=token)
        requests = here.server.take()
        assert {request.authorization for request in requests} == {sent}
        assert {request.agent.partition(";")[0] for request in requests} == {
            f"bpe-tokenizer/{_core.__version__}"
        }


def test_the_token_does_not_leave_the_hub(here: Repositories) -> None:
    """A large file comes from another host, whose address holds the permission."""
    here.publish()
    here.server.large.add("tokenizer.json")
    assert here.gives_the_tokenizer(token="secret")
    tokens = {request.path.startswith("/blob/"): request.authorization for request in here.server.take()}
    assert tokens == {True: None, False: "Bearer secret"}


def test_a_token_that_must_be_there(here: Repositories) -> None:
    here.publish()
    with pytest.raises(HubError, match=r"there is none; log in with `hf auth login`, set HF_TOKEN or pass"):
        here.load(token=True)
    assert here.server.take() == []


@pytest.mark.parametrize("token", [None, "refused"])
def test_a_gated_repository(token: str | None, here: Repositories) -> None:
    here.publish()
    here.server.gated.add(NAME)
    with pytest.raises(HubError, match=rf"{NAME}: is gated: request access on http.*/{NAME}, then"):
        here.load(token=token)
    assert here.gives_the_tokenizer(token="admitted")


def test_a_repository_that_is_not_there(here: Repositories) -> None:
    with pytest.raises(HubError, match=r"nobody/nothing: no such repository at http://127") as raised:
        here.load("nobody/nothing")
    assert isinstance(raised.value, OSError)
    assert "and no local file or directory of this name; if it is private, log in" in str(raised.value)


def test_a_repository_that_moved(here: Repositories) -> None:
    here.publish()
    here.server.moved["gpt2"] = NAME
    assert here.gives_the_tokenizer("gpt2")


def test_a_folder_and_a_file_of_a_repository(here: Repositories) -> None:
    inside = {f"text/tokenizer/{name}": data for name, data in here.files.items()}
    here.publish(inside | {"tokenizer.json": b"{}"})
    assert here.gives_the_tokenizer(f"{NAME}/text/tokenizer")
    assert here.load(f"{NAME}/text/tokenizer").config["chat_template"] == "{{ messages }}"
    alone = here.load(f"{NAME}/text/tokenizer/tokenizer.json")
    assert (alone.core.merges, alone.config) == (here.tokenizer.merges, {})
    with pytest.raises(HubError, match=rf"{NAME}: holds no file 'text/vocab\.gguf'; see http.*/{NAME} for"):
        here.load(f"{NAME}/text/vocab.gguf")


# -- GPT-2's pair, and other files ----------------------------------------------------------------------


def test_a_pair_of_gpt2_files(here: Repositories) -> None:
    """Like the repositories from before tokenizer.json; OpenAI's names too, and each of the two."""
    commit = here.server.publish(OLD, here.pair | {"tekken.json": b"", "model.safetensors": b"\0"})
    assert here.load(OLD).core.merges == here.plain.merges
    asked = [request.path.removeprefix(f"/{OLD}/resolve/") for request in here.server.requests]
    assert asked[:2] == ["main/tokenizer.json", f"/api/models/{OLD}/revision/main"]
    assert {path.partition("/")[0] for path in asked[2:]} == {commit}  # the listed one
    for source in (f"{OLD}/vocab.json", f"{OLD}/merges.txt"):
        assert here.load(source).core.merges == here.plain.merges
    assert set(requested_files(here.server, "GET")) == {"main", *here.pair}
    openai = {"encoder.json": here.pair["vocab.json"], "vocab.bpe": here.pair["merges.txt"]}
    here.server.publish("owner/openai", openai)
    assert here.load("owner/openai").core.merges == here.plain.merges


def test_a_pair_of_a_revision_offline(here: Repositories, monkeypatch: pytest.MonkeyPatch) -> None:
    merges = b"\n".join(here.pair["merges.txt"].splitlines()[:10]) + b"\n"
    here.server.publish(OLD, here.pair)
    here.server.publish(OLD, {"vocab.json": here.pair["vocab.json"], "merges.txt": merges}, revision="v2")
    found = [here.load(OLD, revision=revision).core.merges for revision in ("main", "v2")]
    assert found[0] != found[1]
    here.server.take()
    monkeypatch.setattr(CONSTANTS, "ENDPOINT", here.server.address)
    for revision, expected in zip(("main", "v2"), found, strict=True):
        assert here.load(OLD, revision=revision, local_files_only=True).core.merges == expected
    assert here.server.take() == []


def test_a_pair_offline_in_a_repository_of_which_another_program_fetched_a_part(here: Repositories) -> None:
    here.server.publish(OLD, here.pair | {"model.safetensors": b"\0"})
    here.load(OLD)
    where = {"cache_dir": here.cache, "endpoint": here.server.address, "token": False}
    huggingface_hub.snapshot_download(OLD, allow_patterns=["*.json", "*.txt"], **where)
    assert here.load(OLD, local_files_only=True).core.merges == here.plain.merges


def test_what_was_added_to_a_pair_counts(here: Repositories) -> None:
    added = {"added_tokens.json": b'{"<new>": 600}', "special_tokens_map.json": b'{"eos_token": "<new>"}'}
    pair = {name: here.pair[name] for name in ("vocab.json", "merges.txt")}
    here.server.publish(OLD, pair | added)
    for local_files_only in (False, True):
        model = here.load(OLD, local_files_only=local_files_only)
        assert BPETokenizer.from_model(model).special_tokens == {"<new>": 600}


def test_a_tekken_json(here: Repositories) -> None:
    tekken = json.dumps(tekken_document()).encode()
    here.server.publish(NAME, {"tekken.json": tekken, "params.json": b"{}"})
    for local_files_only in (False, True):
        model = here.load(local_files_only=local_files_only)
        assert BPETokenizer.from_model(model).encode("a") == [4 + 97]


def test_a_rank_file_needs_what_stands_in_code(here: Repositories) -> None:
    ranks = b"".join(b"%s %d\n" % (b64encode(bytes([byte])), byte) for byte in range(256))
    here.server.publish(NAME, {"some.tiktoken": ranks, "tokenization_some.py": b""})
    given: dict[str, Any] = {"split_pattern": "gpt2", "special_tokens": ["<|end|>"]}
    for source in (NAME, f"{NAME}/some.tiktoken"):
        ours = BPETokenizer.from_model(here.load(source, **given))
        assert ours.encode("a<|end|>", allowed_special="all") == [97, 256]
    with pytest.raises(OptionError, match="split pattern"):
        here.load(f"{NAME}/some.tiktoken")
    with pytest.raises(HubError, match=rf"like {NAME}/some\.tiktoken, with the split_pattern and special_t"):
        here.load()


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (["README.md", "x/tokenizer.json"], r"no tekken\.json$"),
        (["b.gguf", "a.gguf"], r"; name a file of it, like owner/name/a\.gguf$"),
        (["vocab.json", "tokenizer.model"], r"; name a file of it, like owner/name/tokenizer\.model$"),
        (["b.tiktoken", "a.tiktoken", "x.gguf"], r"; name a file of it, like owner/name/a\.tiktoken, wi"),
    ],
)
def test_a_repository_without_a_tokenizer(names: list[str], hint: str, here: Repositories) -> None:
    here.server.publish(NAME, dict.fromkeys(names, b""))
    with pytest.raises(HubError, match=r"holds no tokenizer\.json, no vocab\.json with.*" + hint):
        here.load()
    assert "GET" not in {request.method for request in here.server.take() if "/resolve/" in request.path}


# -- without the hub, or with a broken one --------------------------------------------------------------


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
def test_a_download_that_is_cut_off_is_never_read(name: str, here: Repositories) -> None:
    here.publish()
    here.server.cut.add(name)
    with pytest.raises(HubError, match=rf"{name} cannot be fetched from http.*Check the connection and try"):
        here.load()
    with pytest.raises(HubError, match="is not in the cache"):
        here.load(local_files_only=True)
    here.server.cut.clear()
    assert here.gives_the_tokenizer()


def test_offline_the_cache_is_enough(here: Repositories, monkeypatch: pytest.MonkeyPatch) -> None:
    here.publish()
    online = here.load()
    here.server.take()
    offline = here.load(local_files_only=True)
    assert (offline.config, offline.named_tokens) == (online.config, online.named_tokens)
    monkeypatch.setattr(CONSTANTS, "HF_HUB_OFFLINE", True)
    assert here.gives_the_tokenizer()
    assert here.server.take() == []


def test_offline_with_nothing_cached(here: Repositories, monkeypatch: pytest.MonkeyPatch) -> None:
    here.publish()
    with pytest.raises(HubError, match=r"tokenizer\.json is not in the cache, and local_files_only is True"):
        here.load(local_files_only=True)
    monkeypatch.setattr(CONSTANTS, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match=r"is not in the cache, and HF_HUB_OFFLINE is set; load the tokenizer"):
        here.load()
    assert here.server.take() == []


def test_offline_with_what_another_program_fetched(here: Repositories) -> None:
    """`tokenizers` fetches tokenizer.json alone; without the config the special tokens could be others.
    What was never asked for, the cache cannot know to be absent."""
    here.publish()
    here.fetch_with_another_program("tokenizer.json")
    with pytest.raises(HubError, match=r"tokenizer_config\.json is not in the cache"):
        here.load(local_files_only=True)
    here.fetch_with_another_program("tokenizer_config.json")
    assert here.gives_the_tokenizer(local_files_only=True)


def test_without_a_connection(here: Repositories, monkeypatch: pytest.MonkeyPatch) -> None:
    here.publish()
    here.load()
    monkeypatch.setenv("HF_ENDPOINT", f"{NOWHERE}/")  # it may end with a slash
    assert here.gives_the_tokenizer()
    with pytest.raises(HubError, match=rf"owner/other: .* cannot be fetched from {NOWHERE}: .*refused"):
        here.load("owner/other")


def test_without_another_address_the_hub_is_that_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    monkeypatch.setattr(CONSTANTS, "ENDPOINT", "http://127.0.0.1:9")
    assert Repository("owner/name", "main").page == "http://127.0.0.1:9/owner/name"


@pytest.mark.parametrize(
    ("misbehaves", "message"),
    [
        ("is_unlisted", rf"^{OLD}: the list of its files cannot be fetched from .*418"),
        ("is_portal", r"tokenizer\.json cannot be fetched from http"),  # a page in the place of the hub
    ],
)
def test_a_hub_that_answers_otherwise(misbehaves: str, message: str, here: Repositories) -> None:
    here.server.publish(OLD, here.pair)
    setattr(here.server, misbehaves, True)
    with pytest.raises(HubError, match=message):
        here.load(OLD)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_hostile_content_is_refused(name: str, here: Repositories) -> None:
    whole = here.files[name]
    for content in (b"", b"\xff", b"[]", b"{" * 5000, b"<html>", whole[:-3], whole + b"}"):
        here.publish({name: content})
        with pytest.raises(FormatError, match=rf"snapshots.*{name}: "):
            here.load()


# -- paths and other sources ----------------------------------------------------------------------------


def test_local_paths_come_first(here: Repositories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here.server.publish(NAME, {})
    here.tokenizer.save(tmp_path / NAME)
    monkeypatch.chdir(tmp_path)
    for source in (NAME, Path(NAME), str(tmp_path / NAME)):
        assert here.gives_the_tokenizer(source)
    with pytest.raises(FormatError, match="no such file or directory"):
        hub.load(Path("owner/other"))  # a Path is never the name of a repository
    assert here.server.take() == []


NO_REPOSITORIES = ["/no/such/place", "../name", "owner/../name", "owner//name", "owner/na me", "owner\\name"]
NO_REPOSITORIES += [
    "ow--ner/name",
    "https://huggingface.co/owner/name",
    "tokenizer.json",
    "missing.gguf",
    "é",
]
NO_REPOSITORIES += ["n" * 300]  # no path on this system


@pytest.mark.parametrize("source", NO_REPOSITORIES)
def test_what_is_no_repository(source: str, here: Repositories) -> None:
    is_name = source in ("tokenizer.json", "missing.gguf")  # but not of a repository with a tokenizer
    hint = "" if is_name else ", and not the name of a repository like 'owner/name'"
    with pytest.raises(FormatError, match=f"{re.escape(source)}: no such file or directory{hint}$"):
        hub.load(source)
    assert here.server.take() == []


LOAD = """
import sys
from bpe_tokenizer import BPETokenizer
print(BPETokenizer.from_huggingface(sys.argv[1]).encode("low lower"))
"""


def run(program: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=kept | environment, check=False)


def test_the_environment_of_the_library_counts(here: Repositories) -> None:
    here.publish()
    here.server.gated.add(NAME)
    where = {"HF_ENDPOINT": f"{here.server.address}/", "HF_HOME": str(here.cache)}
    ids = f"{here.tokenizer.encode('low lower')}\n"
    done = run(LOAD, NAME, **where, HF_TOKEN="admitted")
    assert (done.stdout, done.stderr) == (ids, "")  # no progress where there is no terminal
    assert (here.cache / "hub" / "models--owner--name").is_dir()
    here.server.take()
    assert run(LOAD, NAME, **where, HF_HUB_OFFLINE="1").stdout == ids
    assert here.server.take() == []


def test_local_paths_need_no_library(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    without = "import sys; sys.modules['huggingface_hub'] = None" + LOAD
    assert run(without, tmp_path).stdout == f"{tokenizer.encode('low lower')}\n"
    done = run(without, "owner/name")
    assert "MissingDependencyError: a tokenizer of the Hugging Face hub needs huggingface_hub" in done.stderr
    assert "[hub]'" in done.stderr
