"""Choosing tokenizers: by name, from files, from the local server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.view.page import page as page_with
from opened_pages import PageOpener, wait_until
from page_actions import CLIPBOARD, copied, downloaded, drop, share, wait_for_count

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

TEXT = "low lower newest <|end|>"


@pytest.fixture(scope="module")
def small() -> BPETokenizer:
    return BPETokenizer("gpt2", None).train("low", 257, verbose=False)


@pytest.fixture(scope="module")
def trained() -> BPETokenizer:
    return BPETokenizer("gpt2", None).train(
        "low lower newest", 268, special_tokens=["<|end|>"], verbose=False
    )


def hf_files(tokenizer: BPETokenizer, directory: Path) -> dict[str, bytes]:
    tokenizer.save(directory)
    return {"tokenizer.json": (directory / "tokenizer.json").read_bytes()}


@pytest.fixture(scope="module")
def address(small: BPETokenizer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a local server with a small tokenizer."""
    for module in ("starlette", "uvicorn"):
        pytest.importorskip(module, reason="the local page needs starlette and uvicorn")
    directory = tmp_path_factory.mktemp("served") / "small"
    small.save(directory)
    command = [sys.executable, "-m", "bpe_tokenizer", "view", "--no-browser", "--text", TEXT]
    with subprocess.Popen(
        [*command, "--tokenizer", str(directory)], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        yield running.stdout.readline().split()[0]
        running.kill()


@pytest.fixture
def served(browser: Browser, address: str, small: BPETokenizer) -> Iterator[Page]:
    """The page of the local server."""
    page = browser.new_page()
    page.goto(address)
    wait_for_count(page, small.count_tokens(TEXT))
    yield page
    page.close()


def test_a_tokenizer_json(served: Page, trained: BPETokenizer, tmp_path: Path) -> None:
    drop(served, hf_files(trained, tmp_path))
    wait_for_count(served, trained.count_tokens(TEXT))
    assert served.locator(".picker-button").first.inner_text() == "tokenizer"


def test_a_vocabulary_with_its_merges(served: Page, trained: BPETokenizer, tmp_path: Path) -> None:
    trained.export(tmp_path, "gpt2")
    names = ("merges.txt", "tokenizer_config.json", "vocab.json")
    drop(served, {name: (tmp_path / name).read_bytes() for name in names})
    wait_for_count(served, trained.count_tokens(TEXT))
    assert served.locator(".picker-button").first.inner_text() == "vocab.json"


def test_a_page_without_a_server_reads_json(
    open_page: PageOpener, small: BPETokenizer, trained: BPETokenizer, tmp_path: Path
) -> None:
    page = open_page({"small": small}, TEXT)
    drop(page, hf_files(trained, tmp_path))
    wait_for_count(page, trained.count_tokens(TEXT))
    plain = BPETokenizer("gpt2", None).train("low lower lowest newest", 270, verbose=False)
    plain.export(tmp_path / "pair", "gpt2")
    # In any order: the browser gives files as people select them.
    drop(page, {name: (tmp_path / "pair" / name).read_bytes() for name in ("merges.txt", "vocab.json")})
    wait_for_count(page, plain.count_tokens(TEXT))


@pytest.mark.parametrize("name", ["model.gguf", "tokenizer.json"])
def test_a_page_without_a_server_says_what_reads_other_files(
    open_page: PageOpener, small: BPETokenizer, name: str
) -> None:
    page = open_page({"small": small}, TEXT)
    drop(page, {name: b'{"model": {"type": "Unigram"}}'})
    wait_until(page, "document.querySelector('.picker-message.problem') !== null")
    said = page.locator(".picker-message").inner_text()
    assert said.startswith(f"{name}: ")
    assert said.endswith(". Other files need the local server: bpe-tokenizer view.")


def test_the_picker_finds_models_by_their_names(open_page: PageOpener, small: BPETokenizer) -> None:
    page = open_page({"o200k_base": small, "mine": small}, TEXT)
    page.locator(".picker-button").first.click()
    names = page.locator(".picker-name")
    assert names.all_inner_texts()[:4] == ["o200k_base", "mine", "GPT-5, GPT-4.1, o3, o4-mini", "GPT-4o, o1"]
    page.keyboard.type("qwen")
    assert names.all_inner_texts() == ["Qwen 3"]
    page.keyboard.press("Enter")
    assert "Drop the tokenizer.json of huggingface.co/Qwen/" in page.locator(".picker-message").inner_text()
    page.get_by_label("Search tokenizers").fill("https://huggingface.co/owner/name")
    assert names.all_inner_texts() == ["hf:owner/name"]
    for model, label in (
        ("gpt-3.5-turbo", "GPT-4, GPT-3.5, text-embedding-3"),
        ("gpt-4o-mini", "GPT-4o, o1"),
        ("gpt-4.1-mini", "GPT-5, GPT-4.1, o3, o4-mini"),
        ("text-davinci-003", "Codex, text-davinci-002, text-davinci-003"),
    ):
        page.get_by_label("Search tokenizers").fill(model)
        assert names.all_inner_texts() == [label]
    page.get_by_label("Search tokenizers").fill("no such thing")
    assert page.locator(".picker-nothing").is_visible()
    page.get_by_label("Search tokenizers").fill("gpt-5")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    wait_until(page, "!document.querySelector('dialog').open")
    assert page.locator(".picker-button").first.inner_text() == "o200k_base"


def test_a_repository_through_the_local_server(served: Page) -> None:
    served.locator(".picker-button").first.click()
    served.keyboard.type("owner/name-that-nobody-has")
    served.keyboard.press("Enter")
    wait_until(served, "document.querySelector('.picker-message.problem') !== null")
    assert "hf:owner/name-that-nobody-has" in served.locator(".picker-message").inner_text()


def test_ranks_need_a_pattern(
    open_page: PageOpener, small: BPETokenizer, trained: BPETokenizer, tmp_path: Path
) -> None:
    page = open_page({"small": small}, TEXT)
    trained.export(tmp_path / "mine.tiktoken", "tiktoken")
    drop(page, {"mine.tiktoken": (tmp_path / "mine.tiktoken").read_bytes()})
    wait_until(page, "document.querySelector('.picker-message').textContent.includes('no split pattern')")
    page.get_by_label("Its split pattern").select_option("gpt2")
    page.get_by_role("button", name="Load", exact=True).click()
    wait_for_count(page, trained.count_tokens(TEXT))


@pytest.mark.fixtures
def test_a_published_name_and_its_file(open_page: PageOpener, small: BPETokenizer, shared: Path) -> None:
    file = shared / "vocab" / "o200k_base.tiktoken"
    page = open_page({"small": small}, "<|start|>" + TEXT)
    page.locator(".picker-button").first.click()
    page.get_by_role("button", name="gpt-oss").click()
    assert "Drop o200k_base.tiktoken here" in page.locator(".picker-message").inner_text()
    drop(page, {file.name: file.read_bytes()})
    wait_until(page, "document.querySelector('.picker-button').textContent.startsWith('o200k_harmony')")
    page.locator("#mode-text").get_by_label("Special tokens").check()
    wait_until(page, "document.querySelector('[role=option].chip-special')?.textContent === '<|start|>'")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("tokenizer.json", b"{"),
        ("tokenizer.json", b'{"model": {"type": "Unigram"}}'),
        ("broken.tiktoken", b"\xff\xfe not ranks"),
        ("vocab.json", b'{"a": 0}'),
        ("merges.txt", b"a b"),
        ("empty.json", b""),
    ],
)
def test_a_broken_file_is_explained(served: Page, small: BPETokenizer, name: str, data: bytes) -> None:
    drop(served, {name: data})
    wait_until(served, f"document.querySelector('.picker-message.problem')?.textContent.startsWith('{name}')")
    served.keyboard.press("Escape")
    assert served.locator(".count-number").first.inner_text() == str(small.count_tokens(TEXT))


def test_a_text_file(open_page: PageOpener, small: BPETokenizer) -> None:
    page = open_page({"small": small}, TEXT)
    drop(page, {"notes.txt": "low é\r\n".encode()})
    wait_for_count(page, small.count_tokens("low é\r\n"))


def test_a_file_that_is_no_text_leaves_the_text(open_page: PageOpener, small: BPETokenizer) -> None:
    page = open_page({"small": small}, TEXT)
    drop(page, {"photo.png": b"\x89PNG\r\n\x1a\n\xff\xfe"})
    wait_until(page, "document.querySelector('.notice-problem') !== null")
    assert "photo.png is not opened" in page.locator(".notice-problem").inner_text()
    assert page.locator("#text").input_value() == TEXT


def test_comparing_with_a_file(served: Page, trained: BPETokenizer, tmp_path: Path) -> None:
    served.get_by_role("button", name="Compare").click()
    (file,) = hf_files(trained, tmp_path).items()
    with served.expect_file_chooser() as chooser:
        served.get_by_role("button", name="Choose files").click()
    chooser.value.set_files({"name": file[0], "mimeType": "application/json", "buffer": file[1]})
    wait_for_count(served, trained.count_tokens(TEXT), 1)
    assert served.locator(".versus-line").is_visible()


def test_the_dialog_with_the_keyboard(
    open_page: PageOpener, small: BPETokenizer, trained: BPETokenizer
) -> None:
    page = open_page({"small": small, "trained": trained}, TEXT)
    page.locator(".picker-button").first.focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog", name="Choose a tokenizer").is_visible()
    assert page.evaluate("document.activeElement.ariaLabel") == "Search tokenizers"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.className") == "picker-choice"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    wait_for_count(page, trained.count_tokens(TEXT))
    assert page.get_by_role("dialog").count() == 0


def test_a_link_never_holds_the_secret_of_the_server(
    browser: Browser, address: str, small: BPETokenizer
) -> None:
    secret = address.rstrip("/").rpartition("/")[2]
    page = browser.new_page()
    page.add_init_script(CLIPBOARD)
    page.goto(address)
    wait_for_count(page, small.count_tokens(TEXT))
    link = copied(page, "Copy link")
    assert link.startswith("#s=")
    assert secret not in link
    assert "only this machine has this page" in page.locator(".notice").inner_text()
    saved = downloaded(page, lambda: share(page, "Save this view")).decode()
    assert secret not in saved
    assert "connect-src 'none'" in saved
    page.close()


def test_links_lead_to_the_public_copy_of_the_page(
    browser: Browser, small: BPETokenizer, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_text(page_with({"small": small}, TEXT, public_url="https://example.org/p.html"), "utf-8")
    page = browser.new_page()
    page.add_init_script(CLIPBOARD)
    page.goto(file.as_uri())
    wait_for_count(page, small.count_tokens(TEXT))
    assert copied(page, "Copy link").startswith("https://example.org/p.html#s=")
    page.close()


def test_a_name_of_the_local_server(browser: Browser, address: str, small: BPETokenizer) -> None:
    requests: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: requests.append(f"{request.method} {request.url} {request.post_data}"))
    page.goto(address)
    wait_for_count(page, small.count_tokens(TEXT))
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("button", name="cl100k_base").click()
    wait_until(page, "document.querySelectorAll('.pane').length === 2")
    page.locator("#text").fill("typed text")
    wait_for_count(page, small.count_tokens("typed text"))
    page.close()
    sent = [each for each in requests if not each.split()[1].startswith(("blob:", "data:"))]
    assert sent == [f"GET {address} None", f"GET {address}tokenizers/cl100k_base None"]
