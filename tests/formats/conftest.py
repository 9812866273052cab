"""Fixtures of the tests of formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tiktoken_files import FileServer, running


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test writes a GGUF file."""
    return tmp_path / "model.gguf"


@pytest.fixture
def server() -> Iterator[FileServer]:
    """A server of files on this machine, whose content a test fills."""
    with running() as content:
        yield content
