"""The page as a file: what is embedded, and that no text or token breaks out of it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page.build import COMMENT, EXPORT, IMPORT, SOURCES, build, script

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.errors import (
    MissingDependencyError,
    NotTrainedError,
    OptionError,
    SpecialTokenError,
)
from bpe_tokenizer.view import page as page_module
from bpe_tokenizer.view.packed import pack
from bpe_tokenizer.view.page import MAX_TEXT, content_security_policy, page, published_names
from html_tree import ATTACKS, Tree, check_page
from page_core import needs_core
from small_tokenizers import BYTES

CORPUS = "low low low lower lowest newer newer newest wider widest </script> \"'&<b>é🙂" * 3


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    made = BPETokenizer(normalization=None)
    return made.train(CORPUS, vocab_size=300, special_tokens=["<|end|>", "<|other|>"], verbose=False)


def block(tree: Tree, name: str) -> Any:
    """Return the JSON of one of the page's blocks."""
    return json.loads(tree.block(name))


@needs_core
@pytest.mark.parametrize(
    "text", [*ATTACKS, "\n\nleading lines", "", "\x00\u2028\u202e\ud800", "[[script]] [[data]]", "<" * 100]
)
def test_no_text_breaks_out_of_the_page(tokenizer: BPETokenizer, text: str) -> None:
    for server in (False, True):
        tree = check_page(page({text or "a": tokenizer}, text, server=server))
        assert block(tree, "data")["text"] == text
        assert block(tree, "data")["server"] is server
        assert [each["name"] for each in block(tree, "tokenizers")] == [text or "a"]


@needs_core
@settings(max_examples=50, deadline=None)
@given(text=st.text(st.sampled_from("<>&\"'/=!-scriptab \n`[]\\")))
def test_no_random_text_breaks_out_either(tokenizer: BPETokenizer, text: str) -> None:
    tree = check_page(page({text: tokenizer}, text))
    assert block(tree, "data")["text"] == text


@needs_core
@pytest.mark.parametrize("attack", [*ATTACKS, "'\"><script>x()</script>"])
def test_a_token_may_be_an_attack(attack: str) -> None:
    tokenizer = BPETokenizer().train("low", 257, special_tokens=[attack], verbose=False)
    html = page({"a": tokenizer}, f"a{attack}", allowed_special={attack})
    tree = check_page(html)
    assert block(tree, "data")["special"] == [attack]
    (embedded,) = block(tree, "tokenizers")
    assert gzip.decompress(base64.b64decode(embedded["packed"])) == pack(tokenizer)


@needs_core
def test_the_page_holds_its_core_and_its_worker() -> None:
    tree = check_page(page({}))
    wasm = gzip.decompress(base64.b64decode(tree.block("wasm")))
    assert wasm == SOURCES.joinpath("core.wasm").read_bytes()
    assert "Core.start" in tree.block("worker")
    assert not re.search(r"^\s*(import|export) ", tree.block("worker"), re.MULTILINE)
    assert block(tree, "tokenizers") == []
    assert [each["name"] for each in block(tree, "data")["names"]] == [
        each["name"] for each in published_names()
    ]


@needs_core
def test_the_file_of_the_page_is_that_of_its_sources() -> None:
    # Another zlib, which may have made the file, compresses the core to other bytes.
    core = re.compile(r'(?<=id="wasm">)[^<[]+')
    assert core.sub("", page_module._html()) == core.sub("", build())


@needs_core
def test_a_page_without_tokenizers_is_small() -> None:
    assert len(page({}).encode()) < 1_540_000


@needs_core
def test_the_policy_lets_the_page_run_its_own_script_and_nothing_else(tokenizer: BPETokenizer) -> None:
    for server in (False, True):
        tree = check_page(page({"a": tokenizer}, "low", server=server))
        (rules,) = (each["content"] or "" for each in tree.all("meta") if each.get("http-equiv"))
        assert rules == content_security_policy(server=server)
        assert rules.startswith("default-src 'none'; ")
        assert "unsafe" not in rules.replace("'wasm-unsafe-eval'", "")
        for tag, source in (("script", tree.script()), ("style", tree.text("style"))):
            digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in rules
        assert ("connect-src 'self'" in rules) == server


@needs_core
def test_special_tokens_that_the_page_recognises(tokenizer: BPETokenizer) -> None:
    other = BPETokenizer(normalization=None).train("new new", vocab_size=258, verbose=False)
    both = {"one": tokenizer, "other": other}
    for allowed, expected in (("none", "none"), ("all", "all"), ({"<|end|>"}, ["<|end|>"])):
        tree = check_page(page(both, "new<|end|>", allowed_special=allowed))  # type: ignore[arg-type]
        assert block(tree, "data")["special"] == expected
    with pytest.raises(SpecialTokenError, match="nobody"):
        page(both, "new", allowed_special={"<|nobody|>"})


def test_a_text_that_a_browser_could_not_lay_out_is_refused(tokenizer: BPETokenizer) -> None:
    with pytest.raises(OptionError, match=f"{MAX_TEXT + 1:,} characters"):
        page({"a": tokenizer}, "x" * (MAX_TEXT + 1))


def test_without_its_core_the_error_says_what_to_do(
    tokenizer: BPETokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "_FILE", tmp_path / "page.html")
    page_module._html.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"page\.html.*`make wasm`.*wheel"):
        page({"a": tokenizer})
    page_module._html.cache_clear()


def test_a_top_level_name_exists_in_one_module_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for first in ("app.js", "worker.js"):
        assert script(first)
    (tmp_path / "app.js").write_text('import { two } from "./two.js";\nconst one = two;\n')
    (tmp_path / "two.js").write_text("const one = 1;\nexport function two() {}\n")
    monkeypatch.setattr("page.build.SOURCES", tmp_path)
    with pytest.raises(AssertionError, match="several declare one"):
        script("app.js")


def test_modules_keep_the_form_that_joining_them_needs() -> None:
    for path in SOURCES.glob("*.js"):
        source = path.read_text(encoding="utf-8")
        rest = EXPORT.sub("", IMPORT.sub("", source))
        assert not re.search(r"^(import|export)\b", rest, re.MULTILINE), path.name
        assert "import.meta" not in source
        assert not re.search(
            r"\b(innerHTML|outerHTML\s*=\s*|insertAdjacentHTML|document\.write|eval)\b", source
        ), path.name
        # Comments at the beginning of a line are left out of the page, also inside a text.
        for text in re.findall(r"`[^`]*`", source):
            assert not COMMENT.search(text), path.name


# The tokenizers of a page. `test_wasm.py` compares what it reads.


def test_a_packed_model_is_small(plain_tokenizer: BPETokenizer) -> None:
    assert len(gzip.compress(pack(plain_tokenizer))) < 6000


def test_merges_that_follow_from_ranks_take_one_byte() -> None:
    vocab = BYTES | {256: b"ab", 257: b"abc"}
    assert pack(BPETokenizer.from_vocab(vocab)).endswith(b"ababc\0")
    other = BPETokenizer.from_vocab(vocab | {256: b"abc", 257: b"ab"}, [(b"a", b"b"), (b"ab", b"c")])
    assert pack(other).endswith(b"abcab\x01\x02\x82\x04\x01\x01\x02")


def test_an_untrained_tokenizer_is_refused() -> None:
    with pytest.raises(NotTrainedError):
        pack(BPETokenizer())
