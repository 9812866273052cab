"""What tests do with an open page of `view`: typing, copying, dropping files."""

from __future__ import annotations

import base64
import json
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opened_pages import is_firefox, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

__all__ = [
    "CLIPBOARD",
    "FIREFOX_DOWNLOADS",
    "copied",
    "count",
    "downloaded",
    "drop",
    "fragment",
    "paste",
    "processor_seconds",
    "read_fragment",
    "share",
    "type_over",
    "wait_for_count",
]

# Replaces the clipboard: what the page copies is in a variable, whatever the browser permits.
CLIPBOARD = """
Object.defineProperty(navigator, "clipboard", {
  value: { writeText: async text => { window.copiedText = text } },
})
"""

# Where Firefox puts downloads, of which Playwright hears nothing.
FIREFOX_DOWNLOADS = tempfile.TemporaryDirectory()


def count(page: Page) -> int:
    """Return the number of tokens that the page shows for the first tokenizer."""
    return int(page.locator(".count-number").first.inner_text().replace(",", ""))


def wait_for_count(page: Page, expected: int, place: int = 0) -> None:
    """Wait until the page shows a number of tokens."""
    number = f"document.querySelectorAll('.count-number')[{place}]?.textContent"
    wait_until(page, f"{number} === '{expected:,}'")


def processor_seconds(page: Page) -> Callable[[], float]:
    """Return what tells the processor time of the page's thread from now on, whatever else runs."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def total() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    before = total()
    return lambda: total() - before


def paste(page: Page, text: str) -> None:
    """Replace the text at once, as a paste does. `fill` of Playwright is slow for long texts."""
    page.evaluate(
        """text => {
            const field = document.querySelector("#text")
            field.focus()
            field.value = text
            field.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertFromPaste" }))
        }""",
        text,
    )


def copied(page: Page, label: str) -> str:
    """Copy with an item of the share menu, and return what is copied. The page needs `CLIPBOARD`."""
    page.evaluate("window.copiedText = null")
    share(page, label)
    wait_until(page, "window.copiedText !== null")
    text: str = page.evaluate("window.copiedText")
    return text


def downloaded(page: Page, act: Callable[[], object]) -> bytes:
    """Return the file that an action downloads."""
    if not is_firefox(page):
        with page.expect_download() as started:
            act()
        return Path(started.value.path()).read_bytes()
    act()
    for _ in range(600):
        files = list(Path(FIREFOX_DOWNLOADS.name).iterdir())
        # A download that goes on is an empty file and one that ends in `.part`.
        if len(files) == 1 and files[0].suffix != ".part" and files[0].stat().st_size > 0:
            content = files[0].read_bytes()
            files[0].unlink()
            return content
        page.wait_for_timeout(50)
    raise AssertionError("nothing is downloaded")


def share(page: Page, label: str) -> None:
    """Choose an item of the share menu."""
    page.get_by_role("button", name="Share").click()
    page.get_by_role("menuitem", name=label).click()


def type_over(field: Locator, text: str) -> None:
    """Replace what is in a field by keys. What `fill` writes is not an edit of the reader in Firefox."""
    field.press("ControlOrMeta+a")
    field.press_sequentially(text)


def drop(page: Page, files: Mapping[str, bytes]) -> None:
    """Drop files on the page."""
    contents = {name: base64.b64encode(data).decode() for name, data in files.items()}
    page.evaluate(
        """contents => {
            const dataTransfer = new DataTransfer()
            for (const [name, base64] of Object.entries(contents)) {
                const bytes = Uint8Array.from(atob(base64), character => character.charCodeAt(0))
                dataTransfer.items.add(new File([bytes], name))
            }
            for (const type of ["dragenter", "dragover", "drop"]) {
                const options = { bubbles: true, cancelable: true, dataTransfer }
                document.body.dispatchEvent(new DragEvent(type, options))
            }
        }""",
        contents,
    )


def fragment(state: object) -> str:
    """Return the fragment of a link with a state."""
    packed = zlib.compress(json.dumps(state).encode())
    return "#s=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read_fragment(address: str) -> Any:
    """Return the state in a link."""
    packed = address.partition("#s=")[2]
    return json.loads(zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))))
