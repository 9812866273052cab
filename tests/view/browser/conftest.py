"""Fixtures of the tests that drive Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bpe_tokenizer import BPETokenizer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request


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


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which checks the accessibility of a page."""
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    return Path(str(resources.files(package).joinpath("axe.min.js"))).read_text(encoding="utf-8")


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Opens the page with tokenizers, as a file.

    The test fails if the page has an error, or requests anything.
    """
    from bpe_tokenizer.view.page import page as page_of

    contexts: list[Any] = []
    problems: list[str] = []

    def open_page(
        tokenizers: Mapping[str, BPETokenizer],
        text: str = "",
        *,
        fragment: str = "",
        width: int = 1280,
        height: int = 900,
        script: str = "",
        **options: Any,
    ) -> Page:
        """Open a page.

        Args:
            tokenizers: The tokenizers that it embeds.
            text: The initial text.
            fragment: The fragment of its address.
            width: The width of the window.
            height: The height of the window.
            script: A script that runs before those of the page.
            **options: Other options of a browser context, such as `color_scheme`.
        """
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        opened = context.new_page()
        opened.on("pageerror", lambda error: problems.append(f"error: {error}"))
        opened.on("console", check_message)
        opened.on("request", check_request)
        if script:
            opened.add_init_script(script)
        file = tmp_path / f"page-{len(contexts)}.html"
        file.write_text(page_of(tokenizers, text), encoding="utf-8")
        opened.goto(file.as_uri() + fragment)
        opened.wait_for_selector("[role=tab][aria-selected=true]")
        return opened

    def check_message(message: ConsoleMessage) -> None:
        if message.type == "error":
            problems.append(f"console: {message.text}")

    def check_request(request: Request) -> None:
        if not request.url.startswith(("file:", "blob:", "data:", "about:")):
            problems.append(f"request: {request.url}")

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
