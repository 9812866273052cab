"""Fixtures of the tests that drive Chromium and Firefox."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from opened_pages import PageOpener
from page_actions import FIREFOX_DOWNLOADS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of the page in Chromium, and on every second day in Firefox, unless it needs Chromium."""
    if "browser" in metafunc.fixturenames:
        firefox = pytest.param("firefox", marks=pytest.mark.sampled(0.5, "firefox"))
        needs_chromium = metafunc.definition.get_closest_marker("chromium") is not None
        names = ["chromium"] if needs_chromium else ["chromium", firefox]
        metafunc.parametrize("browser", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """A browser that Playwright drives: the system's, or for Chromium the one that Playwright installed."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        try:
            started = launch(playwright, request.param)
        except api.Error as error:
            pytest.skip(f"{request.param} does not start: {error.message.splitlines()[0]}")
        yield started
        started.close()


def launch(playwright: Playwright, name: str) -> Browser:
    """Start a browser. Playwright drives the Firefox of the system by WebDriver BiDi, a standard."""
    if name == "chromium":
        return playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
    executable = shutil.which("firefox-esr") or shutil.which("firefox")
    return playwright.firefox.launch(
        executable_path=executable, channel="moz-firefox", downloads_path=FIREFOX_DOWNLOADS.name
    )


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[PageOpener]:
    """Opens the page with tokenizers, as a file."""
    opener = PageOpener(browser, tmp_path)
    yield opener
    opener.close()
