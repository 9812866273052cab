"""Fixtures of the tests of formats."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tiktoken_files import FileServer, running


@pytest.fixture
def server() -> Iterator[FileServer]:
    """A server of files on this machine, whose content a test fills."""
    with running() as content:
        yield content
