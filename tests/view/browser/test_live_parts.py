"""The live parts of the documentation site: the page takes the state of each."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from bpe_tokenizer import BPETokenizer
from opened_pages import PageOpener, wait_until
from pages import ROOT

pytestmark = pytest.mark.browser

TABS = {"text": "Text", "all": "Compare all", "training": "Training", "chat": "Chat"}


def live_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_live", ROOT / "docs" / "site" / "live.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LIVE = live_module()


@pytest.mark.parametrize("name", LIVE.LIVE)
def test_the_page_shows_what_a_live_part_asks_for(name: str, open_page: PageOpener) -> None:
    tokenizer = BPETokenizer("gpt2", None).train("low lower newest", 265, verbose=False)
    _, state = LIVE.LIVE[name]
    page = open_page({"o200k_base": tokenizer, "gpt2": tokenizer}, fragment=LIVE.fragment(state))
    shown = f"document.querySelector('.tabs [aria-selected=true]')?.innerText === {TABS[state['mode']]!r}"
    wait_until(page, shown)
    # The frame in a telephone of 360 pixels, between the margins and borders of the site.
    page.set_viewport_size({"width": 324, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 324
    if state["mode"] == "text":
        assert page.locator("#text").input_value() == state["text"]
    if state["mode"] == "training":
        form = page.locator("#mode-training")
        assert form.get_by_label("Text to learn from").input_value() == state["training"]["text"]
        assert form.get_by_label("Split pattern").input_value() == state["training"]["pattern"]
        assert form.locator("#training-size").input_value() == str(state["training"]["size"])
