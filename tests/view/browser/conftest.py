"""Fixtures of the tests that drive Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opened_pages import PageOpener

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium that Playwright drives: the system's, or the one that Playwright installed."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    executable = shutil.which("chromium")
    with api.sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        except api.Error as error:
            pytest.skip(f"Chromium does not start: {error.message.splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[PageOpener]:
    """Opens the page with tokenizers, as a file."""
    opener = PageOpener(browser, tmp_path)
    yield opener
    opener.close()
