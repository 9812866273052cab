"""Tokenizers by their published names: what a name means, where its files come from, and what is said."""

from __future__ import annotations

import hashlib
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import bpe_tokenizer
from bpe_tokenizer import BPETokenizer, FormatError, HubError, OptionError
from bpe_tokenizer.formats import names
from bpe_tokenizer.formats import tiktoken as format_
from bpe_tokenizer.formats.names import find_encoding
from bpe_tokenizer.formats.tiktoken import carried
from bpe_tokenizer.formats.tiktoken.models import MODEL_NAMES, MODEL_PREFIXES
from bpe_tokenizer.formats.tiktoken.published import PUBLISHED, PublishedEncoding, PublishedFile
from bpe_tokenizer.formats.tiktoken.ranks import write_ranks
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hub_server import HubServer, only_hub
from tiktoken_files import TINY, FileServer, bytes_and

PATTERN = NAMED_PATTERNS["r50k"].patterns[0]
GPT2 = write_ranks(bytes_and("lo", "low"))
MAX_MESSAGE = 300


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of tiktoken's cache; the working directory is empty."""
    directory, work = tmp_path / "cache", tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(directory))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    return directory


@pytest.fixture
def encodings(
    server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, PublishedEncoding]:
    """Small published encodings, on a server on this machine."""
    small = {"gpt2": GPT2, "o200k_base": TINY}
    published = {}
    for name, data in small.items():
        server.files[f"/{name}.tiktoken"] = data
        file = PublishedFile(f"{server.address}/{name}.tiktoken", hashlib.sha256(data).hexdigest())
        published[name] = PublishedEncoding(file, PATTERN, {"<|end|>": 258})
    monkeypatch.setattr(format_, "PUBLISHED", published)
    monkeypatch.setattr(names, "PUBLISHED", published)
    return published


def keep(cache: Path, encoding: PublishedEncoding, data: bytes) -> Path:
    """Put a file where tiktoken keeps it."""
    cache.mkdir(exist_ok=True)
    path = cache / hashlib.sha1(encoding.ranks.url.encode()).hexdigest()
    path.write_bytes(data)
    return path


# -- what a name means -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        *((name, name) for name in PUBLISHED),
        *MODEL_NAMES.items(),
        *((f"{prefix}2030-01-01", encoding) for prefix, encoding in MODEL_PREFIXES.items()),
        ("gpt-4o-mini", "o200k_base"),
        ("gpt-5-nano", "o200k_base"),
        ("gpt-4-0314", "cl100k_base"),
        ("gpt-oss-20b", "o200k_harmony"),
        ("llama3", None),
        ("qwen2", None),
        ("cl100k", None),
        ("gpt-4o/mini", None),
        ("gpt-5/tokenizer.json", None),
        ("", None),
    ],
)
def test_the_names_of_encodings_and_models(name: str, encoding: str | None) -> None:
    assert find_encoding(name) == encoding


@pytest.mark.usefixtures("encodings")
@pytest.mark.parametrize("name", ["gpt-4o", "o200k_base", "gpt2"])
def test_an_existing_path_wins(name: str) -> None:
    BPETokenizer().train("low low lower", 257, verbose=False).save(name)
    for path in (name, f"./{name}", Path(name), str(Path(name).resolve())):
        assert BPETokenizer.load(path, download=True).vocab_size == 257


@pytest.mark.usefixtures("encodings")
def test_a_broken_path_wins_too(server: FileServer) -> None:
    Path("gpt2").mkdir()
    Path("o1").touch()
    Path("o3").symlink_to("nowhere")
    for name, problem in (("gpt2", "holds no file"), ("o1", "is empty"), ("o3", "no such file")):
        with pytest.raises(FormatError, match=rf"^{name}: {problem}"):
            BPETokenizer.load(name, download=True)
    assert server.requests == []


@pytest.mark.usefixtures("encodings")
@pytest.mark.parametrize("path", ["./gpt2", Path("gpt2"), "gpt2/", "/none/gpt2", "x/gpt2"])
def test_what_is_always_a_path(path: str | Path, server: FileServer) -> None:
    with pytest.raises(FormatError, match="no such file or directory"):
        BPETokenizer.load(path, download=True)
    assert server.requests == []


# -- tiktoken's encodings --------------------------------------------------------------------------------


def test_a_name_is_loaded_from_the_cache(
    server: FileServer, cache: Path, encodings: dict[str, PublishedEncoding]
) -> None:
    path = keep(cache, encodings["o200k_base"], TINY)
    for name in ("o200k_base", "gpt-4o", "o1", "gpt-5-mini"):
        tokenizer = bpe_tokenizer.load(name)
        assert tokenizer.encode("abc<|end|>", allowed_special="all") == [257, 258]
    path.rename(cache / "o200k_base.tiktoken")
    assert bpe_tokenizer.load("gpt-4o").encode("abc") == [257]
    assert names.load("gpt-4o", "tiktoken").format_name == "tiktoken"
    assert server.requests == []


def test_only_a_permitted_download_touches_the_network(
    server: FileServer, cache: Path, encodings: dict[str, PublishedEncoding]
) -> None:
    url = encodings["o200k_base"].ranks.url
    digest = hashlib.sha1(url.encode()).hexdigest()
    with pytest.raises(HubError) as refused:
        BPETokenizer.load("gpt-4o")
    message = str(refused.value)
    for part in ("gpt-4o: ", "o200k_base.tiktoken", str(cache)[-30:], digest, "download=True", "--download"):
        assert part in message
    assert server.requests == []
    assert BPETokenizer.load("gpt-4o", download=True).encode("abc") == [257]
    assert [path.name for path in cache.iterdir()] == [digest]
    assert BPETokenizer.load("o200k_base", download=True).encode("abc") == [257]
    assert BPETokenizer.load("o200k_base").encode("abc") == [257]
    assert server.requests == ["/o200k_base.tiktoken"]


@pytest.mark.usefixtures("encodings")
@pytest.mark.parametrize("library", [True, False])
def test_offline_nothing_is_downloaded(
    library: bool, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if library:
        constants = pytest.importorskip("huggingface_hub.constants")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    else:
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(HubError, match=r"^gpt-4o: .*HF_HUB_OFFLINE forbids a download; give its path$"):
        BPETokenizer.load("gpt-4o", download=True)
    assert server.requests == []


@pytest.mark.usefixtures("encodings")
def test_an_encoding_has_its_own_settings() -> None:
    with pytest.raises(OptionError, match=r"^gpt-4o: a published encoding has its own split pattern"):
        BPETokenizer.load("gpt-4o", split_pattern="gpt2")
    with pytest.raises(OptionError, match=r"^gpt-4o: a published encoding is of the format tiktoken, not gg"):
        names.load("gpt-4o", "gguf")


# -- names that nobody knows -----------------------------------------------------------------------------


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("cl100k", "cl100k_base"),
        ("o200k", "o200k_base"),
        ("GPT-4o", "gpt-4o"),
        ("Gpt2", "gpt2"),
        ("gpt4o", "gpt-4o"),
        ("cl100k_base.tiktoken", "cl100k_base"),
        ("llama3", None),
        ("qwen2", None),
        ("mistral", None),
        ("my-tokenizer", None),
    ],
)
def test_an_unknown_name(name: str, near: str | None) -> None:
    with pytest.raises(FormatError) as refused:
        BPETokenizer.load(name)
    message = str(refused.value)
    assert message.startswith(f"{name}: no such file or directory, and not a published name")
    assert re.findall(r"did you mean '(.*)'\?", message) == ([near] if near else [])
    for part in (*PUBLISHED, "gpt-4o", "hf:owner/name"):
        assert part in message
    assert len(message) <= MAX_MESSAGE


@pytest.mark.usefixtures("cache")
def test_a_repository_without_the_prefix() -> None:
    with pytest.raises(FormatError, match=r"no such file or directory; a repository of .* is hf:Qwen/Q$"):
        BPETokenizer.load("Qwen/Q")
    for path in ("/Qwen/Q", "a/b/c", "./Q", "../Q"):
        with pytest.raises(FormatError, match=r"no such file or directory$"):
            BPETokenizer.load(path)


def test_no_message_is_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / ("d" * 100)))
    monkeypatch.setattr(carried, "CARRIED", {})
    for name in (*PUBLISHED, *MODEL_NAMES, "gpt-5" + "x" * 200, "x" * 200, "hf:" + "x" * 200):
        with pytest.raises((FormatError, HubError)) as refused:
            BPETokenizer.load(name)
        assert len(str(refused.value)) <= MAX_MESSAGE


# -- repositories of the hub -----------------------------------------------------------------------------


@pytest.fixture
def hub(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub on this machine, and an empty cache of the library."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with only_hub(tmp_path, monkeypatch) as server:
        yield server


def files_of(tokenizer: BPETokenizer, directory: Path) -> dict[str, bytes]:
    tokenizer.save(directory)
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_a_repository_is_downloaded_once_and_when_permitted(
    hub: HubServer, tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    hub.publish("owner/name", files_of(tokenizer, tmp_path / "saved"))
    with pytest.raises(HubError, match=r"^owner/name: tokenizer.json is not in the cache, .*download=True"):
        BPETokenizer.load("hf:owner/name")
    assert hub.take() == []
    text = "low lower"
    assert BPETokenizer.load("hf:owner/name", download=True).encode(text) == tokenizer.encode(text)
    assert hub.take() != []
    for download in (True, False):
        assert BPETokenizer.load("hf:owner/name", download=download).encode(text) == tokenizer.encode(text)
    assert names.load("hf:owner/name").format_name == "huggingface"
    assert hub.take() == []


def test_revisions_and_folders(hub: HubServer, tokenizer: BPETokenizer, tmp_path: Path) -> None:
    small = BPETokenizer().train("low low", 257, verbose=False)
    files = files_of(tokenizer, tmp_path / "main")
    hub.publish("owner/name", files | {f"sub/{name}": data for name, data in files.items()})
    commit = hub.publish("owner/name", files_of(small, tmp_path / "v2"), revision="v2")
    for name, expected in (
        ("hf:owner/name@v2", small),
        (f"hf:owner/name@{commit}", small),
        ("hf:owner/name@main", tokenizer),
        ("hf:owner/name/sub", tokenizer),
    ):
        assert BPETokenizer.load(name, download=True).vocab == expected.vocab
        assert BPETokenizer.load(name).vocab == expected.vocab
    with pytest.raises(HubError, match="no such branch, tag or commit"):
        BPETokenizer.load("hf:owner/name@v3", download=True)
    with pytest.raises(HubError, match="no such repository"):
        BPETokenizer.load("hf:owner/other", download=True)


def test_a_path_does_not_hide_a_repository(hub: HubServer, tokenizer: BPETokenizer, tmp_path: Path) -> None:
    hub.publish("owner/name", files_of(tokenizer, tmp_path / "saved"))
    BPETokenizer().train("low low", 257, verbose=False).save("owner/name")
    assert BPETokenizer.load("owner/name").vocab_size == 257
    assert BPETokenizer.load("hf:owner/name", download=True).vocab == tokenizer.vocab


def test_an_unreachable_hub_is_not_waited_for(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("time.sleep", pytest.fail)
    with pytest.raises(HubError, match=r"^owner/name: .* cannot be fetched from http.*Check the connection"):
        BPETokenizer.load("hf:owner/name", download=True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match="HF_HUB_OFFLINE is set"):
        BPETokenizer.load("hf:owner/name", download=True)


@pytest.mark.parametrize("name", ["hf:", "hf:owner/name@", "hf:@v2", "hf:/name", "hf:a b", "hf:../x"])
def test_what_names_no_repository(name: str, hub: HubServer) -> None:
    with pytest.raises(FormatError, match=r"not the name of a repository .*hf:owner/name@revision"):
        BPETokenizer.load(name, download=True)
    assert hub.take() == []
