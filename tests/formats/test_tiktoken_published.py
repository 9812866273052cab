"""Published encodings by name and by content, and the cache."""

from __future__ import annotations

import hashlib
import json
import re
import socket
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bpe_tokenizer import ArgumentTypeError, FormatError, HubError, Model, OptionError
from bpe_tokenizer.compat.tiktoken.load import load_tiktoken_bpe
from bpe_tokenizer.formats import tiktoken as format_
from bpe_tokenizer.formats.tiktoken import published
from bpe_tokenizer.formats.tiktoken.cache import download
from bpe_tokenizer.formats.tiktoken.data_gym import ranks_from_data_gym
from bpe_tokenizer.formats.tiktoken.published import PublishedEncoding, PublishedFile
from bpe_tokenizer.formats.tiktoken.ranks import parse_ranks
from bpe_tokenizer.patterns import NAMED_PATTERNS
from tiktoken_files import TINY, FileServer, encoding, gpt2_files, ids


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


@pytest.fixture
def ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rank file that two published encodings share, in the current directory."""
    file = PublishedFile("https://example.org/ranks.tiktoken", hashlib.sha256(TINY).hexdigest())
    patterns = [NAMED_PATTERNS[name].patterns[0] for name in ("r50k", "cl100k")]
    first = PublishedEncoding(file, patterns[0], {"<|end|>": 258})
    second = PublishedEncoding(file, patterns[1], {"<|end|>": 258, "<|fim|>": 300})
    monkeypatch.setattr(published, "PUBLISHED", {"first": first, "second": second})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ranks").write_bytes(TINY)
    return Path("ranks")


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
    with pytest.raises(HubError, match=r"^tiny: the cache, which is disabled, does not"):
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
    monkeypatch.setattr("time.sleep", pytest.fail)  # it is not tried again
    monkeypatch.setattr(format_, "PUBLISHED", {"tiny": nowhere})
    with pytest.raises(HubError, match="cannot be downloaded") as raised:
        format_.load_named("tiny")
    assert not cache.exists()
    # The file that the error names is found.
    name = re.search(r"save it as ([0-9a-f]{40}) in TIKTOKEN_CACHE_DIR$", str(raised.value))
    assert name
    cache.mkdir()
    (cache / name[1]).write_bytes(TINY)
    digest = hashlib.sha256(TINY).hexdigest()
    assert load_tiktoken_bpe("http://127.0.0.1:9/x", digest) == parse_ranks(TINY, "tiny")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    with pytest.raises(HubError, match=r"load it by its path$"):
        format_.load_named("tiny")


def test_no_more_is_read_than_a_tokenizer_file_has(
    server: FileServer, cache: Path, tiny: PublishedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bpe_tokenizer.formats.tiktoken.cache._MAX_BYTES", 100)
    with pytest.raises(HubError, match="more than 100 bytes"):
        format_.load_named("tiny")
    endless = SimpleNamespace(read=lambda size: b"x" * min(size, 200), headers={})
    with monkeypatch.context() as patch:
        patch.setattr("urllib.request.urlopen", lambda *_, **__: nullcontext(endless))
        with pytest.raises(HubError, match="more than 100 bytes"):
            download("http://127.0.0.1/x")
    monkeypatch.setattr("bpe_tokenizer.formats.tiktoken.cache._MAX_BYTES", len(TINY))
    assert format_.load_named("tiny").core.vocab_size == 259


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


def test_gpt2_may_be_there_in_its_own_two_files(
    server: FileServer, cache: Path, tiny: PublishedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir()
    for name, data in zip(("VOCAB_BPE", "ENCODER_JSON"), gpt2_files(), strict=True):
        file = PublishedFile(f"{server.address}/{name}", hashlib.sha256(data).hexdigest())
        monkeypatch.setattr(format_, name, file)
        (cache / cached_name(file.url)).write_bytes(data)
    model = format_.load_named("gpt2")
    assert model.core.vocab[0] == b"!"
    assert model.core.merges == [(b"a", b"b"), (b"ab", b"c")]
    assert server.requests == []
    # Another encoding does not use the two files. GPT-2 needs both.
    assert format_.load_named("tiny").core.vocab[0] == b"\0"
    assert len(server.requests) == 1
    (cache / cached_name(tiny.url)).unlink()
    (cache / cached_name(f"{server.address}/ENCODER_JSON")).unlink()
    assert format_.load_named("gpt2").core.vocab[0] == b"\0"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("vocab", "ids", "problem"),
    [
        (b"#version: 0.2\na b\na b\n", {}, r"^vocab\.bpe: duplicate token b'ab'"),
        (b"a b\nab c\n", {}, r"^vocab\.bpe: line 1 must be the version"),
        (b"#version: 0.2\na b\nab\n", {}, r"^vocab\.bpe: line 3: 'ab' is not a merge"),
        (b"#version: 0.2\na  b\n", {}, r"^vocab\.bpe: line 2: "),
        (b"#version: 0.2\na \n", {}, r"^vocab\.bpe: line 2: "),
        (b"#version: 0.2\n b\n", {}, r"^vocab\.bpe: line 2: "),
        (b"#version: 0.2\na b c\n", {}, r"^vocab\.bpe: line 2: "),
        ("#version: 0.2\na 日\n".encode(), {}, r"^vocab\.bpe: line 2: "),
        (b"#version: 0.2\n\xff\n", {}, r"^vocab\.bpe: is not UTF-8: byte 0xff at offset 14"),
        (None, {"日": 300}, r"^encoder\.json: '日' has a character outside"),
        (None, {"ab": 9, "abc": 8}, r"^encoder\.json: .* b'ab' has the id 9, but the rank 256 in vocab\.bpe"),
        (None, {"x y": 300}, r"^encoder\.json: 'x y' has"),
        (None, {"ab": "9"}, r"^encoder\.json: ab: must be an id"),
        (None, {"xyz": 300}, r"b'xyz' has the id 300, but the rank None"),
    ],
)
def test_broken_files_of_gpt2(vocab: bytes | None, ids: dict[str, Any], problem: str) -> None:
    good, encoder = gpt2_files()
    changed = json.dumps(json.loads(encoder) | ids).encode()
    with pytest.raises(FormatError, match=problem):
        ranks_from_data_gym(good if vocab is None else vocab, changed)
    other = problem.replace(r"vocab\.bpe", "one").replace(r"encoder\.json", "two")
    with pytest.raises(FormatError, match=other):
        ranks_from_data_gym(good if vocab is None else vocab, changed, names=("one", "two"))


def test_files_of_gpt2_with_other_ids_of_bytes() -> None:
    good, encoder = gpt2_files()
    assert ranks_from_data_gym(good.removesuffix(b"\n"), encoder) == ranks_from_data_gym(good, encoder)
    ids = json.loads(encoder)
    swapped = json.dumps(ids | {"!": ids["a"], "a": ids["!"]}).encode()
    with pytest.raises(FormatError, match=r"b'!' has the id 64, but the rank 0"):
        ranks_from_data_gym(good, swapped)
    ranks = ranks_from_data_gym(good, swapped, clobber_one_byte_tokens=True)
    assert (ranks[b"!"], ranks[b"a"], ranks[b"ab"]) == (64, 0, 256)
    wrong = json.dumps(ids | {"ab": 257, "abc": 256}).encode()
    with pytest.raises(FormatError, match=r"b'ab' has the id 257"):
        ranks_from_data_gym(good, wrong, clobber_one_byte_tokens=True)


def test_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_tokenizer.formats.tiktoken.cache._TIMEOUT", 0.05)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(HubError, match="timed out"):
        download(f"http://127.0.0.1:{silent.getsockname()[1]}/x")


def settings(model: Model) -> tuple[list[str] | None, dict[str, int]]:
    return model.core.split_patterns, {token.content: token.id for token in model.core.added_tokens}


@pytest.mark.parametrize("load", [format_.load, format_.load_any])
def test_a_published_file_needs_no_settings(
    ranks: Path, load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    r50k, cl100k = ([*NAMED_PATTERNS[name].patterns] for name in ("r50k", "cl100k"))
    for path in (ranks, tmp_path / "ranks", ranks.rename("ranks.tiktoken"), "./ranks.tiktoken"):
        if Path(path).exists():
            assert settings(load(path)) == (r50k, {"<|end|>": 258})
    path = Path("ranks.tiktoken").rename("second.tiktoken")
    assert settings(load(path)) == (cl100k, {"<|end|>": 258, "<|fim|>": 300})
    assert settings(load(path, split_pattern="r50k")) == (r50k, {"<|end|>": 258, "<|fim|>": 300})
    assert settings(load(path, special_tokens={})) == (cl100k, {})
    llama = PublishedEncoding(PublishedFile("", hashlib.sha256(TINY).hexdigest()), r50k[0], None)
    monkeypatch.setattr(published, "PUBLISHED", {})
    with pytest.raises(OptionError, match=r"the content is not a published one .* split_pattern="):
        load(path)
    monkeypatch.setattr(published, "_LLAMA3", llama)
    with pytest.raises(OptionError, match=r"models name them differently .* special_tokens="):
        load(path)
    assert settings(load(path, special_tokens=["<|x|>"])) == (r50k, {"<|x|>": 258})


def test_a_source_of_any_kind(server: FileServer, tiny: PublishedFile, ranks: Path, tmp_path: Path) -> None:
    vocab = format_.load(ranks).core.vocab
    for path in (ranks, "ranks", str(tmp_path / "ranks")):
        assert format_.load_any(path).core.vocab == vocab
        assert format_.load_any(path, "gpt2", {}).core.split_patterns == [*NAMED_PATTERNS["gpt2"].patterns]
    assert format_.load_any(encoding("b+")).core.split_patterns is None
    with pytest.raises(ArgumentTypeError, match=r"expected a tiktoken\.Encoding, not int"):
        format_.load_any(5)  # type: ignore[arg-type]
    given: Any
    for given in ({"split_pattern": "gpt2"}, {"special_tokens": {}}):
        with pytest.raises(OptionError, match="'tiny' is not a file, and an encoding has its own"):
            format_.load_any("tiny", **given)
    cache = tmp_path / "other"
    with pytest.raises(HubError, match="local_files_only is True"):
        format_.load_any("tiny", cache_dir=cache, local_files_only=True)
    assert format_.load_any("tiny", cache_dir=cache).core.vocab == vocab
    assert [path.name for path in cache.iterdir()] == [cached_name(tiny.url)]
    for path in ("none.tiktoken", "a/b", tmp_path / "none"):
        with pytest.raises(FormatError, match="cannot be read"):
            format_.load_any(path, "gpt2", {})
    for name in ("none", "x" * 5000, "a\0"):
        with pytest.raises(OptionError, match="unknown encoding"):
            format_.load_any(name)


@pytest.mark.parametrize("name", ["cl100k", "gpt-2", "", "../etc/passwd"])
def test_another_name_is_refused(name: str, cache: Path) -> None:
    with pytest.raises(OptionError, match=f"unknown encoding {re.escape(repr(name))}.*o200k_harmony"):
        format_.load_named(name)
    if name == "cl100k":
        with pytest.raises(OptionError, match=r"; did you mean 'cl100k_base'\?"):
            format_.load_named(name)
    nothing: Any = None
    with pytest.raises(ArgumentTypeError, match="name must be a str, not NoneType"):
        format_.load_named(nothing)
