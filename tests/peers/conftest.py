"""Fixtures of the comparisons with other libraries: real vocabularies and corpora."""

from __future__ import annotations

import base64
import lzma
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest

from tiktoken_files import fill_cache

# A block of lines up to its blank lines, which belong to it.
_BLOCK = re.compile(r".+?(?:\n{2,}|\Z)", re.DOTALL)
_LONG = 10_000


@pytest.fixture(scope="session")
def ranks(shared: Path) -> Callable[[str], dict[bytes, int]]:
    """Reads `NAME.tiktoken`: tokens and their ranks."""

    @lru_cache
    def read(name: str) -> dict[bytes, int]:
        lines = (shared / "vocab" / f"{name}.tiktoken").read_bytes().splitlines()
        return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}

    return read


@pytest.fixture(scope="session")
def corpus(shared: Path) -> Callable[[str, int], str]:
    """Reads the first characters of a corpus; -1 for all of it."""

    def read(name: str, characters: int) -> str:
        with lzma.open(shared / "corpora" / f"{name}.txt.xz", "rt", encoding="utf-8", newline="") as file:
            return file.read(characters)

    return read


@pytest.fixture(scope="session")
def documents(corpus: Callable[[str, int], str]) -> Callable[[str, int], list[str]]:
    """Reads a corpus as documents: blocks up to a blank line, or lines where blocks are long."""

    def read(name: str, characters: int) -> list[str]:
        blocks = _BLOCK.findall(corpus(name, characters))
        return [
            document
            for block in blocks
            for document in ([block] if len(block) < _LONG else re.split(r"(?<=\n)", block))
            if document
        ]

    return read


@pytest.fixture(scope="session")
def cache(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of tiktoken with the published rank files."""
    directory = tmp_path_factory.mktemp("cache")
    fill_cache(directory, shared / "vocab")
    return directory
