"""A model's own chat template in the page: the local server renders it, and the ids are the package's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.view.page import SAMPLE_CONVERSATION
from chat_cases import chat_tokenizer
from opened_pages import PageOpener, accessibility_violations, wait_until
from page_actions import CLIPBOARD, drop

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

SHORT = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
TEMPLATE = (
    "{% if tools %}<|system|>{{ tools | tojson }}{% endif %}"
    f"{SHORT}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is false %}<think></think>{% endif %}{% endif %}"
)
TALK = [
    {"role": "user", "content": "Hi <|im_end|> 🙂"},
    {"role": "assistant", "content": "low\u2028er"},
    {"role": "user", "content": "And then?"},
]
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "<|im_end|>", "parameters": {}}}]


def saved(directory: Path, template: str) -> BPETokenizer:
    chat_tokenizer().save(directory)
    (directory / "chat_template.jinja").write_text(template, encoding="utf-8")
    return BPETokenizer.load(directory)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "own"
    saved(path, TEMPLATE)
    return path


@pytest.fixture(scope="module")
def address(directory: Path) -> Iterator[str]:
    for module in ("starlette", "uvicorn"):
        pytest.importorskip(module, reason="the local page needs starlette and uvicorn")
    command = [sys.executable, "-m", "bpe_tokenizer", "view", "--no-browser", "--tokenizer", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        yield running.stdout.readline().split()[0]
        running.kill()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    opened = browser.new_page()
    opened.add_init_script(CLIPBOARD)
    opened.goto(address)
    opened.get_by_role("tab", name="Chat").click()
    opened.locator(".chat-lane").first.wait_for()
    yield opened
    opened.close()


def settle(page: Page) -> None:
    wait_until(page, "document.querySelector('.chat-mode').ariaBusy === 'false'")


def paste(page: Page, messages: list[dict[str, Any]]) -> None:
    if not page.get_by_label("Messages as JSON").is_visible():
        page.get_by_text("Paste messages as JSON").click()
    page.get_by_label("Messages as JSON").fill(json.dumps(messages))
    page.get_by_role("button", name="Use these messages").click()
    settle(page)


def ids(page: Page) -> list[int]:
    page.get_by_role("button", name="Copy ids").evaluate("each => each.click()")
    found: list[int] = json.loads(page.evaluate("window.copiedText"))
    return found


def expect_ids(page: Page, wanted: list[int]) -> None:
    """Wait for ids: the page begins to render some moments after a change."""
    for _ in range(600):
        settle(page)
        if ids(page) == wanted:
            return
        page.wait_for_timeout(100)
    assert ids(page) == wanted


def test_the_own_template_with_tools_and_reasoning(page: Page, directory: Path) -> None:
    tokenizer = BPETokenizer.load(directory)
    assert page.get_by_label("Template").evaluate("each => each.selectedOptions[0].text") == "The model’s own"
    paste(page, TALK)
    assert ids(page) == tokenizer.apply_chat_template(TALK)
    # Firefox has no inner text of a lane that is out of sight.
    lanes = page.locator(".chat-lane").all_text_contents()
    assert len(lanes) == 4
    assert all(map(str.startswith, lanes, ["user", "assistant", "user", "Generation prompt"])), lanes
    assert "no message becomes a control token" in page.locator(".chat-forgery").inner_text()
    page.get_by_text("Tools and reasoning").click()
    page.get_by_label("Tools as JSON").fill(json.dumps(TOOLS))
    page.get_by_label("Reasoning").select_option("off")
    options: Any = {"tools": TOOLS, "template_variables": {"enable_thinking": False}}
    expect_ids(page, tokenizer.apply_chat_template(TALK, **options))
    page.get_by_role("switch", name="Generation prompt").click()
    expect_ids(page, tokenizer.apply_chat_template(TALK, None, False, **options))
    page.get_by_label("Tools as JSON").fill("[")
    page.locator(".chat-problem", has_text="The tools are not JSON").wait_for()
    page.get_by_label("Tools as JSON").fill("")
    settle(page)
    assert accessibility_violations(page, "#mode-chat") == []


def test_the_example_with_a_tool_call(page: Page, directory: Path) -> None:
    tools, examples = page.get_by_label("Tools as JSON"), page.get_by_label("Example", exact=True)
    examples.select_option(label="Reasoning and a tool call")
    settle(page)
    page.get_by_role("button", name="Copy JSON").evaluate("each => each.click()")
    messages = json.loads(page.evaluate("window.copiedText"))
    assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"]
    given = json.loads(tools.input_value())
    assert given[0]["function"]["name"] == messages[1]["tool_calls"][0]["function"]["name"]
    assert ids(page) == BPETokenizer.load(directory).apply_chat_template(messages, tools=given)
    examples.select_option(label="Plain conversation")
    settle(page)
    assert tools.input_value() == ""
    page.get_by_label("Template").select_option("chatml")
    assert "Reasoning and a tool call" not in examples.inner_text()


def test_a_built_in_template_beside_the_own(page: Page, directory: Path) -> None:
    paste(page, TALK)
    page.get_by_label("Template").select_option("chatml")
    settle(page)
    assert ids(page) == BPETokenizer.load(directory).apply_chat_template(TALK, "chatml")
    assert "This model has its own chat template" in page.locator(".chat-problem").inner_text()
    assert page.locator(".chat-panel-forgery").is_visible()


@pytest.mark.fixtures
def test_templates_of_ten_models(page: Page, shared: Path, tmp_path: Path) -> None:
    files = sorted((shared / "chat_templates").glob("*.jinja"))
    assert len(files) >= 10
    refused = 0
    for file in files:
        directory = tmp_path / file.stem
        tokenizer = saved(directory, file.read_text(encoding="utf-8"))
        drop(page, {each.name: each.read_bytes() for each in directory.iterdir() if each.is_file()})
        wait_until(page, "document.querySelector('.picker-button').innerText.startsWith('tokenizer')")
        settle(page)
        page.wait_for_timeout(200)
        paste(page, TALK)
        try:
            wanted = tokenizer.apply_chat_template(TALK)
        except ValueError:
            refused += 1
            wait_until(page, "document.querySelector('.chat-problem').innerText !== ''")
            continue
        expect_ids(page, wanted)
    assert refused <= len(files) - 10


def test_a_page_without_a_server_says_so(open_page: PageOpener, directory: Path) -> None:
    page = open_page({"own": BPETokenizer.load(directory)})
    page.get_by_role("tab", name="Chat").click()
    page.locator(".chat-lane").first.wait_for()
    said = page.locator(".chat-problem").inner_text()
    count = len(BPETokenizer.load(directory).apply_chat_template(SAMPLE_CONVERSATION))
    assert said.startswith(
        f"This model has its own chat template, in which this conversation has {count} tokens. These are the "
        "tokens of the built-in template "
    )
    assert "Only the local server" in said
    assert page.locator(".chat-tone-warn, .chat-tone-danger").count() == 0


def test_openai_encodings_open_with_openais_chat(open_page: PageOpener) -> None:
    for name in ("o200k_base", "cl100k_base"):
        tokenizer = BPETokenizer.load(name)
        page = open_page({name: tokenizer}, script=CLIPBOARD)
        page.get_by_role("tab", name="Chat").click()
        page.locator(".chat-lane").first.wait_for()
        template = page.get_by_label("Template").evaluate("each => each.selectedOptions[0].text")
        assert template == "Automatic (gpt-4)"
        assert page.locator(".chat-problem:not(:empty)").count() == 0
        paste(page, TALK)
        assert ids(page) == tokenizer.apply_chat_template(TALK)
