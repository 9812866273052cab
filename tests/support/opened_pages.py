"""Opens the page in a browser, and watches its errors and requests."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.errors import MissingDependencyError
from bpe_tokenizer.view.page import page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


class PageOpener:
    """Opens pages. `close` fails if one of them had an error or requested anything.

    Args:
        browser: The browser.
        directory: A directory for the files of the pages.
    """

    def __init__(self, browser: Browser, directory: Path) -> None:
        self._browser = browser
        self._directory = directory
        self._contexts: list[BrowserContext] = []
        self._problems: list[str] = []

    def __call__(
        self,
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
        try:
            html = page(tokenizers, text)
        except MissingDependencyError as error:
            pytest.skip(str(error))
        context = self._browser.new_context(viewport={"width": width, "height": height}, **options)
        self._contexts.append(context)
        file = self._directory / f"page-{len(self._contexts)}.html"
        file.write_text(html, encoding="utf-8")
        opened = context.new_page()
        opened.on("pageerror", lambda error: self._problems.append(f"error: {error}"))
        opened.on("console", lambda message: self._note_message(message.type, message.text))
        opened.on("request", lambda request: self._note_request(request.url))
        if script:
            opened.add_init_script(script)
        opened.goto(file.as_uri() + fragment)
        opened.wait_for_selector("[role=tabpanel]:not([hidden])")
        return opened

    def close(self) -> None:
        """Close the pages, and check that nothing went wrong in them."""
        for context in self._contexts:
            context.close()
        assert self._problems == []

    def _note_message(self, kind: str, text: str) -> None:
        if kind == "error":
            self._problems.append(text)

    def _note_request(self, url: str) -> None:
        if not url.startswith(("file:", "blob:", "data:", "about:")):
            self._problems.append(f"request: {url}")


def is_firefox(opened: Page) -> bool:
    """Whether the page is open in Firefox."""
    browser = opened.context.browser
    return browser is not None and browser.browser_type.name == "firefox"


def wait_until(opened: Page, expression: str) -> None:
    """Wait until an expression is true. The page's policy forbids Playwright's own polling."""
    for _ in range(1200):
        if opened.evaluate(expression):
            return
        opened.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")


def accessibility_violations(opened: Page, selector: str, has_contrast: bool = True) -> list[Any]:
    """Return what axe-core finds in a part of a page: the rules, and the elements that violate them.

    Args:
        opened: The page.
        selector: The part.
        has_contrast: Whether Chromium measures the contrast, which takes most of the time. Firefox has the
            same colours, but axe-core misplaces what `content-visibility` skips there.
    """
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        pytest.skip("axe-playwright-python is not installed")
    if opened.evaluate("typeof axe === 'undefined'"):
        opened.evaluate(Path(spec.origin).with_name("axe.min.js").read_text(encoding="utf-8"))
    violations: list[Any] = opened.evaluate(
        """async ([selector, enabled]) => {
            const { violations } = await axe.run(selector, { rules: { "color-contrast": { enabled } } })
            return violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])
        }""",
        [selector, has_contrast and not is_firefox(opened)],
    )
    return violations
