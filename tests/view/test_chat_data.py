"""The chat templates of the page are those of the package, and its JavaScript renders like the package."""

from __future__ import annotations

import base64
import json
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, TokenizerError
from bpe_tokenizer.chat.assistant_spans import assistant_spans
from bpe_tokenizer.chat.builtin_templates import BUILT_IN
from bpe_tokenizer.chat.options import ChatOptions
from bpe_tokenizer.chat.renderer import ConversationRenderer
from bpe_tokenizer.view import page as page_module
from chat_cases import MARKUP, SPECIAL, chat_tokenizer
from conversations import ATTACKS
from sampling import sample_size
from view.report_corpus import sentencepiece_style

PAGE = Path(__file__).parents[2] / "page"
TEMPLATES = page_module._chat_data()["templates"]
ROLES = ("system", "user", "assistant", "tool")
STRANGE_ROLES = (
    "admin",
    "",
    "System",
    "o'brien",
    '"',
    "'\"\\",
    "a\nb\t\x00",
    "\u200b",
    "\xa0é日",
    "\ud800",
    "😀" * 90,
)
CONTENTS = (
    *(
        "",
        " ",
        "\n",
        "\n\nHi\n",
        "\ufeffHi\ufeff",
        "\x1cHi\x1f",
        "\x85Hi\x85",
        "\u2028Hi\u3000",
        "\x0bHi\x0c",
    ),
    *(
        "Why is the sky blue?",
        "שלום עולם",
        "👩\u200d👩\u200d👧",
        "e\u0301",
        "\0",
        "{{ messages }}",
        "</script>",
    ),
    *("<|endoftext|>", *ATTACKS),
)


def run_node(script: str, given: dict[str, Any]) -> Any:
    """Return what a script makes of the page's JavaScript; both speak JSON."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    command = [node, "--no-warnings", str(Path(__file__).parent / script), str(PAGE)]
    done = subprocess.run(command, input=json.dumps(given).encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def encoded_in_javascript(
    tokenizer: BPETokenizer, cases: Sequence[dict[str, Any]], added: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return what the page encodes conversations to, with the core in WebAssembly.

    Args:
        tokenizer: The tokenizer.
        cases: The conversations.
        added: Special tokens that the page adds to it.
    """
    if not (PAGE / "core.wasm").exists():
        pytest.skip("core.wasm is not built; `make wasm` builds it")
    from bpe_tokenizer.view.packed import pack

    model = base64.b64encode(pack(tokenizer)).decode()
    given = {"templates": TEMPLATES, "cases": cases, "model": model, "added": added}
    results: list[dict[str, Any]] = run_node("encode_chats.mjs", given)
    return results


def in_package(case: dict[str, Any]) -> dict[str, Any]:
    """Return what the package makes of a case, with positions in UTF-16 code units."""
    options = ChatOptions(case["prompt"], case["continues"])
    try:
        renderer = ConversationRenderer(case["messages"], BUILT_IN[case["template"]], options, {})
        rendered = renderer.render(traced=True)
    except TokenizerError:
        return {"error": True}
    segments = [{"text": text, "message": origin and origin.index} for text, origin in rendered.segments]
    spans: Any
    try:
        spans = assistant_spans(rendered, renderer.messages, renderer.render_messages, ())
    except TokenizerError:
        spans = {"error": True}
    else:
        spans = [[utf16_length(rendered.text[:position]) for position in span] for span in spans]
    return {"segments": segments, "spans": spans, "text": rendered.text}


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def random_case(rng: random.Random, template: str) -> dict[str, Any]:
    """Make up a conversation; one of ten has a role that no template knows."""
    roles: Sequence[str] = ROLES if rng.random() < 0.5 else ROLES[:3]
    messages = [{"role": rng.choice(roles), "content": content(rng)} for _ in range(rng.randint(0, 7))]
    if messages and rng.random() < 0.5:
        # Most templates accept turns that alternate.
        for number, message in enumerate(messages):
            message["role"] = ("user", "assistant")[number % 2]
        messages[0]["role"] = rng.choice(("user", "system"))
    if messages and rng.random() < 0.1:
        rng.choice(messages)["role"] = rng.choice(STRANGE_ROLES)
    return {
        "template": template,
        "messages": messages,
        "prompt": rng.random() < 0.6,
        "continues": rng.random() < 0.25,
    }


def content(rng: random.Random) -> str:
    parts = rng.choices(CONTENTS, k=rng.choice((0, 1, 1, 2, 4)))
    return rng.choice(("", " ", "\n")).join(parts)


@pytest.mark.sampled(1.0)
@pytest.mark.parametrize("template", list(BUILT_IN))
def test_javascript_renders_the_segments_of_the_package(template: str) -> None:
    rng = random.Random(f"chats {template}")
    cases = [random_case(rng, template) for _ in range(sample_size(3_000, 0.25))]
    results = run_node("render_chats.mjs", {"templates": TEMPLATES, "cases": cases})
    assert len(results) == len(cases)
    rendered = 0
    for case, result in zip(cases, results, strict=True):
        expected = in_package(case)
        assert {name: result.get(name) for name in expected} == expected, case
        rendered += "error" not in result
        if "error" not in result:
            check_turns(case, result)
    assert len(cases) > rendered > len(cases) / 4


def check_turns(case: dict[str, Any], result: dict[str, Any]) -> None:
    """The turns tile the text in order, and each content is in the turn of its message or of a later user."""
    turns = result["turns"]
    borders = [0, *(turn["end"] for turn in turns)]
    assert [turn["start"] for turn in turns] == borders[:-1]
    assert borders[-1] == utf16_length(result["text"])
    position = 0
    for segment in result["segments"]:
        start, position = position, position + utf16_length(segment["text"])
        if segment["message"] is None:
            continue
        (turn,) = (turn for turn in turns if turn["start"] <= start and position <= turn["end"])
        is_folded = case["messages"][segment["message"]]["role"] == "system" and turn["role"] == "user"
        assert turn["message"] == segment["message"] or is_folded


def encoded_in_package(tokenizer: BPETokenizer, case: dict[str, Any]) -> dict[str, Any]:
    options = {"continue_final_message": case["continues"], "plain_markup": True}
    given = (case["messages"], BUILT_IN[case["template"]], case["prompt"])
    try:
        ids, mask = tokenizer.apply_chat_template(*given, return_assistant_mask=True, **options)
    except TokenizerError:
        return {"error": True}
    text = tokenizer.apply_chat_template(*given, tokenize=False, **options)
    whole = base64.b64encode(tokenizer.decode_bytes(ids)).decode()
    return {"ids": ids, "mask": mask, "string": tokenizer.encode(text, allowed_special="all"), "text": whole}


def check_encoding(tokenizer: BPETokenizer, seed: str, count: int, added: Sequence[str] = ()) -> None:
    rng = random.Random(seed)
    cases = [random_case(rng, template) for template in BUILT_IN for _ in range(count)]
    results = encoded_in_javascript(tokenizer, cases, added)
    tokenizer.add_special_tokens(list(added))
    encoded = attacked = 0
    for case, result in zip(cases, results, strict=True):
        expected = encoded_in_package(tokenizer, case)
        assert {name: result.get(name) for name in expected} == expected, case
        if "error" not in result:
            assert result["leaked"] == 0, case
            encoded += 1
            attacked += bool(result["forged"])
    assert encoded > len(cases) / 5
    assert attacked > 0 or not tokenizer.special_tokens


@pytest.mark.sampled(0.22)
@pytest.mark.parametrize("normalization", [None, "NFC", "NFKC"])
@pytest.mark.parametrize("plain", [0.0, 0.3, 1.0])
def test_javascript_encodes_to_the_ids_and_the_mask_of_the_package(
    plain: float, normalization: str | None
) -> None:
    """Plain added tokens are control tokens only where the template writes them."""
    rng = random.Random(f"plain {plain}")
    special = [text for text in SPECIAL if rng.random() >= plain]
    markup = [*MARKUP, *(text for text in SPECIAL if text not in special)]
    tokenizer = chat_tokenizer(special, markup, normalization=normalization)
    check_encoding(tokenizer, f"ids {plain} {normalization}", 200)


def test_javascript_encodes_without_control_tokens() -> None:
    check_encoding(chat_tokenizer((), ()), "no control tokens", 100)


@pytest.mark.sampled(0.25, "long tests")
def test_javascript_adds_control_tokens_as_the_package_does() -> None:
    check_encoding(chat_tokenizer((), ()), "added tokens", 200, control_tokens())


def test_javascript_adds_control_tokens_to_a_vocabulary_of_sentencepiece() -> None:
    tokenizer = sentencepiece_style()
    missing = [text for text in control_tokens() if text not in tokenizer.special_tokens]
    rng = random.Random("SentencePiece")
    cases = [random_case(rng, template) for template in BUILT_IN for _ in range(10)]
    results = encoded_in_javascript(tokenizer, cases, missing)
    tokenizer.add_special_tokens(missing)
    for case, result in zip(cases, results, strict=True):
        expected = encoded_in_package(tokenizer, case)
        for name in ("error", "ids", "string"):
            assert result.get(name) == expected.get(name), case


def control_tokens() -> list[str]:
    return sorted({text for each in BUILT_IN.values() for text in getattr(each, "control_tokens", ())})


@pytest.mark.fixtures
@pytest.mark.sampled(0.33)
@pytest.mark.parametrize(
    "name", ["ggml-vocab-llama-bpe.gguf", "ggml-vocab-qwen2.gguf", "ggml-vocab-gpt-2.gguf"]
)
def test_javascript_encodes_with_published_vocabularies(name: str, shared: Path) -> None:
    path = shared / "vocab" / name
    check_encoding(BPETokenizer.load(path), name, 300)
    tokenizer = BPETokenizer.load(path)
    missing = [text for text in control_tokens() if text not in tokenizer.special_tokens]
    check_encoding(tokenizer, f"{name} and more", 100, missing)
