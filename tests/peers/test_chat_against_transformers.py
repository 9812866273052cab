"""Jinja chat templates as `transformers` renders them: the same text, and refusals where it refuses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pytest

from bpe_tokenizer.chat.jinja.template import JinjaTemplate
from bpe_tokenizer.chat.jinja.tool_schema import tool_schema
from bpe_tokenizer.chat.segment import Rendered
from bpe_tokenizer.errors import TokenizerError
from conversations import ATTACKS, Conversation, vary
from jinja_rendering import tool_of
from jinja_templates import CONSTRUCTS, FAMILIES
from peers.hf_transformers import transformers
from provenance import assert_no_content_is_trusted, shifted, trusted_mask, unshifted

chat_template_utils: Any = import_module(f"{transformers.__name__}.utils.chat_template_utils")

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("default")]

TOKENS = {"bos_token": "<BOS>", "eos_token": "<EOS>", "pad_token": "<PAD>", "unk_token": "<UNK>"}
FIXTURES = os.environ.get("BPE_TOKENIZER_FIXTURES")
GIVEN = sorted(path.stem for path in Path(FIXTURES or "/nowhere", "chat_templates").glob("*.jinja"))
# What a template accepts at all, so that enough conversations are compared.
ACCEPTED: dict[str, dict[str, Any]] = {
    "google-gemma-2-2b-it": {"system": False, "tools": False, "parts": False},
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": {"tools": True, "parts": False},
}
VARIABLES: list[dict[str, Any]] = [
    {},
    {},
    {"enable_thinking": False},
    {"enable_thinking": True, "date_string": "1 Jan 2025", "thinking": True},
    {"reasoning_effort": "high", "builtin_tools": ["python", "browser"], "tools_in_user_message": False},
]


@cache
def ours(source: str) -> JinjaTemplate:
    return JinjaTemplate(source)


def our_rendering(source: str, conversation: Conversation, **options: Any) -> Rendered:
    return ours(source).render(
        conversation.messages,
        tools=conversation.tools,
        documents=conversation.documents,
        special_tokens=TOKENS,
        **options,
    )


def their_rendering(
    source: str,
    conversation: Conversation,
    add_generation_prompt: bool,
    continue_final_message: bool | str,
    variables: dict[str, Any],
) -> tuple[str, list[tuple[int, int]]]:
    # As apply_chat_template() does before it renders.
    messages = [
        {key: value for key, value in message.items() if value is not None}
        for message in conversation.messages
    ]
    # The annotation there says that it is a string.
    result: Any = chat_template_utils.render_jinja_template(
        [messages],
        tools=[*conversation.tools] if conversation.tools is not None else None,
        documents=conversation.documents,
        chat_template=source,
        return_assistant_tokens_mask=bool(re.search(r"\{%-?\s*generation\s*-?%\}", source)),
        continue_final_message=continue_final_message,
        add_generation_prompt=add_generation_prompt,
        **{**TOKENS, **variables},
    )
    (text,), generated = result
    return text, generated[0] if generated else []


def assert_same(source: str, conversation: Conversation, **options: Any) -> bool:
    """Compare one rendering; return whether there is one."""
    try:
        text, generated = their_rendering(source, conversation, **options)
    except Exception:
        with pytest.raises(TokenizerError):
            our_rendering(source, conversation, **options)
        return False
    rendered = our_rendering(source, conversation, **options)
    if options["continue_final_message"] is True and not str(conversation.messages[-1]["content"]).strip():
        # A template that trims the content loses its own space there, with which its generation prompt ends.
        text += rendered.text[len(rendered.text.rstrip()) :] if text == text.rstrip() else ""
    assert rendered.text == text
    assert "".join(segment.text for segment in rendered.segments) == text
    if rendered.generated is not None and not options["continue_final_message"]:
        # Blocks that follow each other are one here.
        assert characters(rendered.generated) == characters(generated)
    return True


def characters(ranges: Iterable[tuple[int, int]]) -> set[int]:
    return {character for start, end in ranges for character in range(start, end)}


def compare(source: str, wanted: int, **fixed: Any) -> None:
    """Compare until so many conversations were rendered."""
    rendered = 0
    for seed in range(5 * wanted):
        conversation = vary(seed, attacks=ATTACKS if seed % 3 == 0 else (), **fixed)
        kind = seed % 4
        rendered += assert_same(
            source,
            conversation,
            add_generation_prompt=kind in (0, 1),
            continue_final_message=kind == 2 and conversation.messages[-1]["role"] != "tool",
            variables=VARIABLES[seed % len(VARIABLES)],
        )
        if rendered == wanted:
            return
    pytest.fail(f"only {rendered} conversations were accepted")


def given_source(shared: Path, name: str) -> str:
    return (shared / "chat_templates" / f"{name}.jinja").read_text(encoding="utf-8")


@pytest.mark.fixtures
@pytest.mark.parametrize("name", GIVEN)
def test_given_templates_render_the_same_text(shared: Path, name: str) -> None:
    compare(given_source(shared, name), 200, **ACCEPTED.get(name, {}))


@pytest.mark.sampled(0.12)
@pytest.mark.parametrize("name", [*FAMILIES, *CONSTRUCTS])
def test_other_templates_render_the_same_text(name: str) -> None:
    compare((FAMILIES | CONSTRUCTS)[name], 60)


@pytest.mark.sampled(0.12)
@pytest.mark.fixtures
@pytest.mark.parametrize("name", GIVEN)
def test_no_content_is_ever_markup_in_given_templates(shared: Path, name: str) -> None:
    source, compared = given_source(shared, name), 0
    for seed in range(200):
        conversation = vary(seed, attacks=ATTACKS, **ACCEPTED.get(name, {}))
        try:
            oracle = our_rendering(source, shifted(conversation))
            rendered = our_rendering(source, conversation)
        except TokenizerError:
            continue
        assert_no_content_is_trusted(oracle)
        assert oracle.untracked == rendered.untracked == ()
        if unshifted(oracle.text) == rendered.text:
            compared += 1
            assert trusted_mask(rendered) == trusted_mask(oracle), seed
    assert compared > 50


class Unit(Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


class Tools:
    def method(self, place: str) -> None:
        """Go somewhere.

        Args:
            place: Where to: it is
                a place, say
        """


def plain(a: int, b: str = "x", c: float | None = None) -> str:
    """
    Do one thing.
    And more.

    Args:
        a: The first: with a colon
        b: The second (choices: ["x", " y"])
        c: The third
          goes on: here

    Returns:
        A string
        of two lines.
    """
    return f"{a}{b}{c}"


def rich(
    a: list[int],
    b: dict[str, float],
    c: tuple[int, str],
    d: Literal["p", 3],
    e: Unit,
    f: int | str,
    g: list[str] | int | None,
    h: Any,
    i: dict,  # type: ignore[type-arg]
    *j: list,  # type: ignore[type-arg]
) -> Tools:
    """Short.
    Args:
        a: 1
        b: 2
        c: 3
        d: 4
        e: 5
        f: 6
        g: 7
        h: 8
        i: 9
        j: 10
    Raises:
        ValueError: never
    """
    raise ValueError


def nothing() -> None:
    """Do nothing. Returns: none"""


HI = [{"role": "user", "content": "Hi"}]
ASKED: dict[str, Any] = {"add_generation_prompt": True, "continue_final_message": False, "variables": {}}
CONTINUED: dict[str, Any] = {"add_generation_prompt": False, "continue_final_message": True, "variables": {}}


@pytest.mark.parametrize("tool", [plain, rich, nothing, Tools.method, Tools().method])
def test_functions_have_the_same_schema(tool: Any) -> None:
    # As text, because the order is what a model sees.
    assert str(tool_schema(tool)) == str(chat_template_utils.get_json_schema(tool))
    assert_same("{{ tools | tojson }}", Conversation(HI, [tool]), **ASKED)


def no_docstring(a: int) -> None:
    pass


REFUSED = [
    tool_of("a", "a: One."),
    tool_of("a: int"),
    tool_of("a: tuple[int, ...]", "a: Some."),
    tool_of("a: str", "a: One (choices: x, y)"),
]


@pytest.mark.parametrize("tool", [no_docstring, *REFUSED, 7, Tools])
def test_functions_are_refused_alike(tool: Any) -> None:
    assert not assert_same("{{ tools | tojson }}", Conversation(HI, [tool]), **ASKED)


@pytest.mark.fixtures
@pytest.mark.parametrize(
    "name", ["google-gemma-2-2b-it", "meta-llama-Llama-3.1-8B-Instruct", "Qwen-Qwen2.5-7B-Instruct"]
)
def test_an_empty_answer_ends_where_the_generation_prompt_ends(name: str, shared: Path) -> None:
    source = given_source(shared, name)
    asked = [{"role": "user", "content": "Why?"}]
    answered = Conversation([*asked, {"role": "assistant", "content": ""}])
    assert assert_same(source, answered, **CONTINUED)
    prompted = our_rendering(source, Conversation(asked), **ASKED).text
    assert our_rendering(source, answered, **CONTINUED).text == prompted
    assert prompted == their_rendering(source, Conversation(asked), **ASKED)[0]


@pytest.mark.parametrize("field", ["reasoning_content", "thinking", "reasoning", "content"])
def test_any_field_can_be_continued(field: str) -> None:
    source = "{% for m in messages %}<think>{{ m.thinking | trim }}</think>{{ m.content }}{% endfor %}"
    for value in ("hm", " hm ", "", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]):
        continued = CONTINUED | {"continue_final_message": field}
        assert_same(source, Conversation([{"role": "assistant", field: value}]), **continued)
