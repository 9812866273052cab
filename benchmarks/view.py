"""Measures the page of `view` in Chromium: from a key to its token, the size of the file, its elements.

    make .venv/page/.installed
    BPE_TOKENIZER_FIXTURES=... PYTHONPATH=python .venv/page/bin/python -m benchmarks.view

The time is that of the browser: from the event of the key to the frame that shows the tokens, with the text
field's own work. A machine that does other work gives other figures.
"""

from __future__ import annotations

import lzma
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.view.page import page

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["delays", "texts"]

_FIXTURES = Path(os.environ.get("BPE_TOKENIZER_FIXTURES", "shared"))
_KEYS = 20
_PASTE = """text => {
    const field = document.querySelector("#text")
    field.focus()
    field.value = text
    field.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertFromPaste" }))
}"""
_MOVE = """where => {
    const field = document.querySelector("#text")
    const at = where * field.value.length
    field.setSelectionRange(at, at)
    field.focus()
}"""
_DURATION = "performance.getEntriesByName('key-to-tokens').at(-1)?.duration ?? null"


def main() -> None:
    """Print the size of the file, and the delays at 10 kB and 1 MB."""
    from playwright.sync_api import sync_playwright

    tokenizer = BPETokenizer.load(str(_FIXTURES / "vocab" / "o200k_base.tiktoken"))
    print(f"page without tokenizers  {len(page({}).encode()):>10,} bytes")
    print(f"with o200k_base          {len(page({'o200k_base': tokenizer}).encode()):>10,} bytes")
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        file = Path(directory, "page.html")
        file.write_text(page({"o200k_base": tokenizer}), encoding="utf-8")
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        print(f"{'text':>20} {'key at':>6} {'median':>9} {'highest':>9} {'tokens':>9} {'elements':>9}")
        for name, text in texts():
            for where in (0, 1):
                opened = chromium.new_page(viewport={"width": 1280, "height": 800})
                opened.goto(file.as_uri())
                opened.wait_for_selector("[role=option]")
                times = delays(opened, text, where)
                tokens = opened.locator(".count-number").first.inner_text()
                elements = opened.evaluate("document.querySelectorAll('*').length")
                row = f"{statistics.median(times):>6.0f} ms {max(times):>6.0f} ms {tokens:>9} {elements:>9,}"
                print(f"{name:>20} {'end' if where else 'start':>6} {row}", flush=True)
                opened.close()
        chromium.close()


def texts() -> Iterator[tuple[str, str]]:
    """Yield texts by name: English, many languages, and one line without spaces."""
    for name, size in (("books", 10_000), ("books", 1_000_000), ("multi", 1_000_000)):
        with lzma.open(_FIXTURES / "corpora" / f"{name}.txt.xz") as stream:
            text = stream.read(size).decode(errors="ignore")
        yield f"{name} {size // 1000:,} kB", text
    yield "one line 1,000 kB", "abcdefghij" * 100_000


def delays(opened: Page, text: str, where: int) -> list[float]:
    """Return the milliseconds from each key to its token.

    Args:
        opened: An open page.
        text: The text.
        where: 0 types at its start, 1 at its end.
    """
    opened.evaluate(_PASTE, text)
    opened.wait_for_timeout(3000)  # Rows are laid out in slices.
    opened.evaluate(_MOVE, where)
    opened.wait_for_timeout(500)
    times = []
    for number in range(_KEYS):
        opened.evaluate("performance.clearMeasures('key-to-tokens')")
        opened.keyboard.press("x" if number % 2 else " ")
        for _ in range(1000):
            duration = opened.evaluate(_DURATION)
            if duration is not None:
                times.append(float(duration))
                break
            opened.wait_for_timeout(10)
        else:
            sys.exit("a key without tokens")
        opened.wait_for_timeout(150)
    return times


if __name__ == "__main__":
    main()
