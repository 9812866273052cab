"""Published encodings by name and by content, and the cache."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import (
    ArgumentTypeError,
    FormatError,
    HubError,
    OptionError,
    _core,
)
from bpe_tokenizer.formats import tiktoken as format_
from bpe_tokenizer.formats.tiktoken.published import (
    PUBLISHED,
    PublishedEncoding,
    PublishedFile,
)
from bpe_tokenizer.patterns import NAMED_PATTERNS
from tiktoken_files import TINY, FileServer, ids, running


@pytest.fixture
def server() -> Iterator[FileServer]:
    with running() as content:
        yield content


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(directory))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return directory


@pytest.fixture
def tiny(server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch) -> PublishedFile:
    """A published encoding of this name, and where its ranks are."""
    server.files["/encodings/tiny.tiktoken"] = TINY
    file = PublishedFile(f"{server.address}/encodings/tiny.tiktoken", hashlib.sha256(TINY).hexdigest())
    encoding = PublishedEncoding(file, NAMED_PATTERNS["r50k"].patterns[0], {"<|end|>": 258})
    monkeypatch.setattr(format_, "PUBLISHED", {"tiny": encoding, "gpt2": encoding})
    return file


def cached_name(url: str) -> str:
    return hashlib.sha1(url.encode()).hexdigest()


def test_an_encoding_is_downloaded_once_and_kept_where_tiktoken_keeps_it(
    server: FileServer, cache: Path, tiny: PublishedFile
) -> None:
    model = format_.load_named("tiny")
    assert ids(model, ["abc<|end|>"]) == [[257, 258]]
    assert [path.name for path in cache.iterdir()] == [cached_name(tiny.url)]
    assert (cache / cached_name(tiny.url)).read_bytes() == TINY
    assert format_.load_named("tiny").core.vocab == model.core.vocab
    assert format_.load_named("tiny", local_files_only=True).core.vocab == model.core.vocab
    assert len(server.requests) == 1


def test_nothing_is_downloaded_if_only_local_files_may_be_used(
    server: FileServer, cache: Path, tiny: PublishedFile, tmp_path: Path
) -> None:
    with pytest.raises(HubError, match=rf"^tiny: .*{cached_name(tiny.url)} does not hold .*local_files_only"):
        format_.load_named("tiny", local_files_only=True)
    with pytest.raises(HubError, match="the cache, which is disabled"):
        format_.load_named("tiny", cache_dir="", local_files_only=True)
    cache.mkdir()
    (cache / cached_name(tiny.url)).write_bytes(TINY + b"\n")  # damaged
    with pytest.raises(HubError, match="SHA-256"):
        format_.load_named("tiny", local_files_only=True)
    (tmp_path / "tiny.tiktoken").write_bytes(TINY + b"\n")
    with pytest.raises(HubError):
        format_.load_named("tiny", cache_dir=tmp_path, local_files_only=True)
    (tmp_path / "tiny.tiktoken").write_bytes(TINY)
    assert format_.load_named("tiny", cache_dir=tmp_path, local_files_only=True).core.vocab_size == 259
    assert server.requests == []


def test_a_damaged_file_in_the_cache_is_replaced(
    server: FileServer, cache: Path, tiny: PublishedFile
) -> None:
    cache.mkdir()
    (cache / cached_name(tiny.url)).write_bytes(TINY[:1000])
    format_.load_named("tiny")
    assert (cache / cached_name(tiny.url)).read_bytes() == TINY
    assert len(server.requests) == 1


@pytest.mark.parametrize("data", [b"", TINY[:-1], TINY + b"YWE= 258\n", b"<html>log in</html>"])
def test_what_is_not_published_is_neither_used_nor_kept(
    server: FileServer, cache: Path, tiny: PublishedFile, data: bytes
) -> None:
    server.files["/encodings/tiny.tiktoken"] = data
    digest = hashlib.sha256(data).hexdigest()
    with pytest.raises(FormatError, match=rf"downloaded file has the SHA-256 .*{digest}, not {tiny.sha256}"):
        format_.load_named("tiny")
    assert not cache.exists()


def test_a_download_that_fails_is_an_error_that_says_so(
    server: FileServer, cache: Path, tiny: PublishedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/encodings/tiny.tiktoken"] = None
    with pytest.raises(HubError, match=r"tiny\.tiktoken: (returned 3 of 9 bytes|cannot be downloaded)"):
        format_.load_named("tiny")
    del server.files["/encodings/tiny.tiktoken"]
    with pytest.raises(HubError, match=r"cannot be downloaded: .*404"):
        format_.load_named("tiny")
    nowhere = PublishedEncoding(PublishedFile("http://127.0.0.1:9/x", "0" * 64), "a", {})
    monkeypatch.setattr(format_, "PUBLISHED", {"tiny": nowhere})
    with pytest.raises(HubError, match="cannot be downloaded"):
        format_.load_named("tiny")
    assert not cache.exists()


def test_no_more_is_read_than_a_tokenizer_file_has(
    server: FileServer, cache: Path, tiny: PublishedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bpe_tokenizer.formats.tiktoken.cache._MAX_BYTES", 100)
    with pytest.raises(HubError, match="more than 100 bytes"):
        format_.load_named("tiny")


def test_the_cache_is_where_the_environment_says(
    server: FileServer, tiny: PublishedFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(first))
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(second))
    format_.load_named("tiny")
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    format_.load_named("tiny")
    monkeypatch.delenv("DATA_GYM_CACHE_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(third))
    format_.load_named("tiny")
    name = cached_name(tiny.url)
    assert all(path.exists() for path in (first / name, second / name, third / "data-gym-cache" / name))
    assert len(server.requests) == 3


def test_an_empty_name_means_no_cache(
    server: FileServer, tiny: PublishedFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    monkeypatch.chdir(tmp_path)
    format_.load_named("tiny")
    format_.load_named("tiny")
    assert len(server.requests) == 2
    assert list(tmp_path.iterdir()) == []


def test_only_a_cache_that_was_asked_for_must_be_writable(
    tiny: PublishedFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_bytes(b"a file, where a directory is wanted")
    with pytest.raises(OSError, match="blocked"):
        format_.load_named("tiny", cache_dir=blocked)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(blocked))
    assert format_.load_named("tiny").core.vocab_size == 259


def data_gym_files() -> tuple[bytes, bytes]:
    """GPT-2's two files for bytes, "ab" and "abc"."""
    order = sorted(range(256), key=lambda byte: _core.to_printable(bytes([byte])))
    tokens = [_core.to_printable(bytes([byte])) for byte in order] + ["ab", "abc", "<|endoftext|>"]
    encoder = json.dumps({token: token_id for token_id, token in enumerate(tokens)}).encode()
    return b"#version: 0.2\na b\nab c\n", encoder


def test_gpt2_may_be_there_in_its_own_two_files(
    server: FileServer, cache: Path, tiny: PublishedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir()
    for name, data in zip(("VOCAB_BPE", "ENCODER_JSON"), data_gym_files(), strict=True):
        file = PublishedFile(f"{server.address}/{name}", hashlib.sha256(data).hexdigest())
        monkeypatch.setattr(format_, name, file)
        (cache / cached_name(file.url)).write_bytes(data)
    model = format_.load_named("gpt2")
    assert model.core.vocab[0] == b"!"
    assert model.core.merges == [(b"a", b"b"), (b"ab", b"c")]
    assert server.requests == []


@pytest.mark.parametrize("name", ["cl100k", "gpt-2", "", "../etc/passwd"])
def test_another_name_is_refused(name: str, cache: Path) -> None:
    with pytest.raises(OptionError, match=f"unknown encoding {re.escape(repr(name))}.*o200k_harmony"):
        format_.load_named(name)
    nothing: Any = None
    with pytest.raises(ArgumentTypeError):
        format_.load_named(nothing)


def test_harmony_keeps_the_first_of_two_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    special = PUBLISHED["o200k_harmony"].special_tokens
    assert special is not None
    assert len(special) == 1091
    path = tmp_path / "my.tiktoken"
    path.write_bytes(TINY)
    model = format_.load(path, split_pattern="o200k", special_tokens=special)
    contents = {token[1]: token[0] for token in model.core.added_tokens}
    assert len(contents) == 1090
    assert contents[200018] == "<|endofprompt|>"
