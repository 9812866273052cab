"""The rank files that the package carries."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer, HubError
from bpe_tokenizer.formats import tiktoken
from bpe_tokenizer.formats.tiktoken import carried
from bpe_tokenizer.formats.tiktoken.cache import has_sha256
from bpe_tokenizer.formats.tiktoken.published import PUBLISHED

MAX_BYTES = 2_000_000


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("sha256", carried.CARRIED)
def test_a_carried_file_is_the_published_one(sha256: str) -> None:
    data = carried.rank_file(sha256)
    assert data is not None
    assert has_sha256(data, sha256)
    assert sha256 in [encoding.ranks.sha256 for encoding in PUBLISHED.values()]


def test_they_are_small() -> None:
    room = resources.files("bpe_tokenizer.formats.tiktoken")
    files = [room.joinpath(f"{name}.xz").read_bytes() for name in carried.CARRIED.values()]
    assert sum(map(len, files)) <= MAX_BYTES


def test_names_need_no_cache_and_no_network() -> None:
    assert BPETokenizer.load("gpt-5").encode("low lower") == [14739, 6931]
    assert BPETokenizer.load("gpt-4").encode("low lower") == [10516, 4827]
    assert BPETokenizer.load("gpt2").encode("low lower") == [9319, 2793]
    with pytest.raises(HubError, match="pass download=True"):
        BPETokenizer.load("p50k_base")


def test_a_broken_copy_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carried, "rank_file", lambda _: b"IQ== 0\n")
    with pytest.raises(HubError, match="no intact"):
        BPETokenizer.load("gpt2")


@pytest.mark.fixtures
def test_packing_gives_the_carried_file(shared: Path) -> None:
    room = resources.files(tiktoken.__name__)
    raw = (shared / "vocab" / "r50k_base.tiktoken").read_bytes()
    assert carried.pack(raw) == room.joinpath("r50k_base.xz").read_bytes()
