"""Saving GGUF files, and llama.cpp's own vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.errors import FormatError, TokenizerError
from bpe_tokenizer.formats import gguf, huggingface
from bpe_tokenizer.formats.capabilities import drop_normalization
from bpe_tokenizer.formats.gguf import writing
from bpe_tokenizer.formats.gguf.file import read_metadata
from bpe_tokenizer.formats.gguf.pre_tokenizers import BYTE_LEVEL, LINES
from bpe_tokenizer.model import (
    AddedToken,
    Decoder,
    Metaspace,
    Model,
    PlainNormalizer,
    PostProcessor,
    Prepend,
    Replace,
    Split,
)
from bpe_tokenizer.patterns import NAMED_PATTERNS, pattern_name
from gguf_files import (
    BYTE,
    CONTROL,
    NORMAL,
    RESPELT,
    WORDS,
    byte_level,
    gemma,
    load,
    model,
    spm,
    spm_tokenizer,
)

YOUTU, FALCON = (BYTE_LEVEL[name].patterns for name in ("youtu", "falcon"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


# -- saving ---------------------------------------------------------------------------------------------


def trained(pattern: str | Sequence[str], special: dict[str, int] | None = None) -> BPETokenizer:
    text = "low lower lowest it's IT'S 1234 don't \n\n new newer, newest! 日本語 中文。 " * 4
    return BPETokenizer(split_pattern=pattern, normalization=None).train(
        text, 320, special_tokens=special or ["<|bos|>", "<|eos|>"], verbose=False
    )


SAVEABLE = ["gpt2", "r50k", "cl100k", "llama3", "qwen2", "qwen3.5", "deepseek-v3", "falcon", "starcoder"]


@pytest.mark.parametrize("pattern", [*SAVEABLE, "bailing", "seed-coder"])
def test_a_trained_tokenizer_comes_back(path: Path, pattern: str) -> None:
    tokenizer = trained(pattern)
    gguf.save(tokenizer.model, path)
    again = load(path)
    assert again.vocab == tokenizer.vocab
    assert again.merges == tokenizer.merges
    assert again.special_tokens == tokenizer.special_tokens
    text = "lowest<|eos|>\n\n  it's 12345 日本 \n"
    for special in ("none", "all"):
        assert again.encode(text, allowed_special=special) == tokenizer.encode(text, allowed_special=special)
    assert again.encode(text, add_special_tokens=True) == tokenizer.encode(text, add_special_tokens=True)
    assert (again.bos_token, again.eos_token) == ("<|bos|>", "<|eos|>")


@pytest.mark.parametrize("name", RESPELT)
def test_patterns_that_split_alike_are_written_alike(path: Path, name: str) -> None:
    text = "Low IT'S it'ſ 12345 ¼²¾\t\r\n \n  日本語テキスト!?\u3000x` don't\n\n  "
    core = trained(NAMED_PATTERNS[name].patterns).model.core

    def respelt(patterns: Sequence[str]) -> Model:
        steps = [Split(pattern=pattern) for pattern in patterns]
        return Model(_core.Model(core.vocab, core.merges, **core.settings | {"pre_tokenizers": steps}))

    gguf.save(Model(core), path)
    pre = gguf.load(path).config["gguf"]["pre"]
    made = respelt(RESPELT[name])
    assert pattern_name(made.core.split_patterns) == name
    gguf.save(made, path)
    assert gguf.load(path).config["gguf"]["pre"] == pre
    assert load(path).encode(text) == BPETokenizer.from_model(made).encode(text)


def test_patterns_that_split_almost_alike_are_refused(path: Path) -> None:
    patterns = [pattern.replace(r"\s+(?!\S)", r"\s(?!\S)") for pattern in RESPELT["llama3"]]
    with pytest.raises(FormatError, match=r"^split_patterns: no tokenizer\.ggml\.pre"):
        gguf.save(model(split_patterns=patterns), path)


@pytest.mark.parametrize("pattern", ["o200k", "tekken", "deepseek-llm", "deepseek-coder", r"\w+|\W"])
def test_patterns_that_llama_cpp_does_not_know(path: Path, pattern: str) -> None:
    with pytest.raises(
        FormatError, match=r"split_patterns: no tokenizer.ggml.pre .* train with one of gpt2, .*llama3"
    ):
        gguf.save(trained(pattern).model, path)
    assert not path.exists()


REFUSED = [
    (
        {"normalization": "NFC"},
        r"normalization: llama\.cpp does not normalise .* NFC\. with_normalization\(None\), or .*ation none",
    ),
    ({"add_prefix_space": True}, "add_prefix_space: "),
    (
        {"split_patterns": None, "pre_tokenizers": [Split(pattern="a", behavior="Removed")]},
        "pre_tokenizers: ",
    ),
    ({"added_tokens": [AddedToken("<a>", 300, True, True, False, False, False)]}, "single_word: "),
    ({"added_tokens": [AddedToken("<a>", 300, True, False, True, False, False)]}, "lstrip, rstrip: "),
    (
        {"added_tokens": [AddedToken("<|im_end|>", 300, False, False, False, False, False)]},
        "special: .*im_end",
    ),
    ({"added_tokens": [AddedToken("a\0", 300, *[False] * 5)]}, "zero byte"),
    (
        {"added_tokens": [AddedToken("<a>", 5_000_000, *[False] * 5)]},
        "ids: llama.cpp needs a token for each id",
    ),
    (
        {"added_tokens": [AddedToken("b", 300, *[False] * 5)]},
        "vocab: the ids 98 and 300 are both written 'b', and llama.cpp refuses duplicate texts",
    ),
    (
        {
            "added_tokens": [AddedToken("STOP", 300, True, *[False] * 4)],
            "ignore_merges": True,
            "merges": ["a b"],
        },
        None,  # without ignore_merges the same ids come out
    ),
]


@pytest.mark.parametrize(("given_settings", "problem"), REFUSED)
def test_what_a_gguf_file_cannot_hold(
    path: Path, given_settings: dict[str, Any], problem: str | None
) -> None:
    settings = {name: value for name, value in given_settings.items() if value is not None}
    made = model(**settings)
    if problem is None:
        gguf.save(made, path)
        assert gguf.load(path).config["gguf"]["pre"] == "dbrx"
    else:
        with pytest.raises(FormatError, match=problem):
            gguf.save(made, path)


BYTES = {byte: bytes([byte]) for byte in range(256)}


@pytest.mark.parametrize(
    ("core", "problem"),
    [
        (model(decoder=Decoder("▁", byte_fallback=True)).core, "^decoder: "),
        (_core.Model({0: b"a"}, [], requires_all_bytes=False), "^unk_id: "),
        (
            _core.Model(
                BYTES | {256: "日".encode(), 257: b"\xe6\x97"},
                [(b"\xe6", b"\x97"), (b"\xe6\x97", b"\xa5")],
                added_tokens=[AddedToken("日", 256)],
            ),
            "^added_tokens: '日' is an added token that merging makes too",
        ),
        (
            model(added_tokens=[AddedToken("\n", 10)]).core,
            "^added_tokens: .* is also the token of a byte",
        ),
        (
            model(split_patterns=YOUTU, ignore_merges=True, added_tokens=[AddedToken("STOP", 300)]).core,
            "^added_tokens: llama.cpp would take the plain text 'STOP' for the token",
        ),
        (
            _core.Model(BYTES | {256: b"xyz"}, [], split_patterns=YOUTU),
            "^ignore_merges: .* does not merge a piece that is a token; that changes the token b'xyz'",
        ),
        (
            _core.Model(BYTES | {256: b"xyz"}, [], split_patterns=FALCON, ignore_merges=True),
            "^ignore_merges: .* always merges; that changes the token b'xyz'",
        ),
    ],
)
def test_what_llama_cpp_does_not_do_with_bytes(path: Path, core: _core.Model, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        gguf.save(Model(core), path)
    assert not path.exists()


TWO = model(added_tokens=[AddedToken("<|a|>", 256), AddedToken("<|b|>", 257)]).core


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (Model(TWO, {}, PostProcessor((256, 257))), r"^post_processor: .* at most one token .*\(256, 257\)"),
        (Model(TWO, {}, PostProcessor((), (97, 98))), "^post_processor: .* at most one token"),
        (Model(TWO, {"bos": "<|a|>"}, PostProcessor((257,))), "only the BOS token, not the id 257"),
        (Model(TWO, {"eos": "<|b|>"}, PostProcessor((), (256,))), "only the EOS token, not the id 256"),
        (Model(TWO, config={"chat_template": 5}), "^chat_template: "),
        (Model(TWO, config={"chat_template": [5]}), "^chat_template: "),
        (Model(TWO, config={"chat_template": [{"name": "a"}]}), "^chat_template: "),
        (Model(TWO, config={"chat_template": [{"template": "a"}]}), "^chat_template: "),
        (
            Model(TWO, config={"chat_template": [{"name": "default", "template": "a"}] * 2}),
            "^chat_template: ",
        ),
    ],
)
def test_what_cannot_stand_beside_the_tokens(path: Path, made: Model, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        gguf.save(made, path)


def test_ids_around_a_text_and_ids_of_roles(path: Path) -> None:
    kept = {"eot_token_id": 255, "eom_token_id": 0, "a_token_id": -1, "b_token_id": 258, "c_token_id": True}
    config = {"gguf": kept | {"d_token_id": "5", "e": 5, "pre": 5, "bos_token_id": 7}}
    gguf.save(Model(TWO, {"pad": "<|b|>", "unk": "a"}, PostProcessor((256,), (97,)), config), path)
    metadata = read_metadata(path, lambda _: True)
    found = {
        key.removeprefix("tokenizer.ggml."): metadata.integer(key)
        for key in metadata.values
        if key.endswith("_token_id")
    }
    assert found == {
        "bos_token_id": 256,
        "eos_token_id": 97,
        "padding_token_id": 257,
        "unknown_token_id": 97,
        "eot_token_id": 255,
        "eom_token_id": 0,
    }
    assert metadata.flag("tokenizer.ggml.add_bos_token")
    assert metadata.flag("tokenizer.ggml.add_eos_token")
    assert metadata.text("general.architecture") == "llama"
    assert "general.name" not in metadata.values
    gguf.save(Model(TWO, {"bos": "<|a|>"}, PostProcessor()), path)
    metadata = read_metadata(path, lambda _: True)
    assert metadata.integer("tokenizer.ggml.bos_token_id") == 256
    assert not metadata.flag("tokenizer.ggml.add_bos_token")


@pytest.mark.parametrize(("name", "content"), [("modern-bert", "[MASK]"), (None, "[other]")])
def test_a_name_whose_tokens_strip(path: Path, name: str | None, content: str) -> None:
    made = model(added_tokens=[AddedToken(content, 256, lstrip=True), AddedToken("<|b|>", 257)])
    if name is None:
        with pytest.raises(FormatError, match=r"^lstrip, rstrip: "):
            gguf.save(made, path)
    else:
        gguf.save(made, path)
        assert read_metadata(path, lambda _: True).text("general.name") == name
        assert gguf.load(path).core.added_tokens == made.core.added_tokens


def test_a_model_without_tokens(path: Path) -> None:
    with pytest.raises(FormatError, match="the model has no tokens"):
        gguf.save(Model(_core.Model({}, [], split_patterns=[], requires_all_bytes=False)), path)


def test_tokens_across_the_places_where_patterns_differ(path: Path) -> None:
    cl100k = NAMED_PATTERNS["cl100k"].patterns
    gguf.save(model(["Ċ Ċ", "Ġ Ċ", "Ċ ĠĊ"], split_patterns=cl100k), path)
    with pytest.raises(FormatError, match=r"token b'\\n ' crosses .* split_pattern='llama3'"):
        gguf.save(model(["Ċ Ġ"], split_patterns=cl100k), path)
    with pytest.raises(FormatError, match=r"token b'\\xc5\\xbfs' crosses"):
        gguf.save(model(["Å ¿", "Å¿ s"]), path)
    made = model(["Å ¿", "Å¿ s"], split_patterns=BYTE_LEVEL["dbrx"].patterns)
    gguf.save(made, path)
    assert gguf.load(path).core.split_patterns == made.core.split_patterns


def test_ignore_merges(path: Path) -> None:
    """Where merging makes every token, both ways are the same; else a name that does the same is needed."""
    vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"ab", 257: b"xyz"}

    def made(ignore_merges: bool, pattern: str) -> Model:
        patterns = NAMED_PATTERNS[pattern].patterns
        core = _core.Model(vocab, [(b"a", b"b")], split_patterns=patterns, ignore_merges=ignore_merges)
        return Model(core)

    for ignore_merges, pre in ((True, "llama-bpe"), (False, "dbrx")):
        gguf.save(made(ignore_merges, "llama3"), path)
        again = gguf.load(path)
        assert again.config["gguf"]["pre"] == pre
        assert again.core.ignore_merges == ignore_merges
    gguf.save(made(False, "qwen2"), path)
    with pytest.raises(FormatError, match=r"ignore_merges: .* changes the token b'xyz'"):
        gguf.save(made(True, "qwen2"), path)


def test_a_learned_token_that_llama_cpp_takes_for_a_special_one(path: Path) -> None:
    """As Qwen's "</s>"."""
    tokenizer = BPETokenizer.from_model(model(["< /", "</ s", "</s >"]))
    with pytest.raises(FormatError, match=r"vocab: .*'</s>'.* add_special_tokens\(\{'</s>': 258\}\)"):
        gguf.save(tokenizer.model, path)
    tokenizer.add_special_tokens({"</s>": 258})
    gguf.save(tokenizer.model, path)
    again = load(path)
    for special in ("none", "all"):
        assert again.encode("a</s>b", allowed_special=special) == tokenizer.encode(
            "a</s>b", allowed_special=special
        )


def test_holes_become_unused_tokens(path: Path) -> None:
    tokenizer = trained("llama3", {"<|bos|>": 256, "<|end|>": 400})
    gguf.save(tokenizer.model, path)
    assert (
        read_metadata(path, lambda _: True).strings("tokenizer.ggml.tokens").tolist()[399] == b"<unused 399>"
    )
    again = load(path)
    assert again.vocab == tokenizer.vocab
    assert again.encode("low<|end|>", allowed_special="all") == tokenizer.encode(
        "low<|end|>", allowed_special="all"
    )


def test_what_stands_beside_the_tokens_comes_back(path: Path, tmp_path: Path) -> None:
    keys: dict[str, Any] = {
        "tokenizer__ggml__eot_token_id": 256,
        "tokenizer.chat_template": "one",
        "tokenizer.chat_template.rag": "two",
        "tokenizer__ggml__bos_token_id": 257,
        "tokenizer__ggml__add_bos_token": True,
    }
    first = gguf.load(byte_level(path, more=[("<a>", CONTROL), ("<b>", CONTROL)], pre="refact", **keys))
    gguf.save(first, tmp_path / "deeper" / "again.gguf")
    again = gguf.load(tmp_path / "deeper" / "again.gguf")
    assert again.config == first.config
    assert again.post_processor == first.post_processor == PostProcessor((257,))
    assert again.named_tokens == first.named_tokens == {"bos": "<b>"}
    assert again.core.added_tokens == first.core.added_tokens


def test_a_vocabulary_of_scores_comes_back(path: Path, tmp_path: Path) -> None:
    runs = {"▁" * count: -1e9 for count in range(3, 17)}
    first, _ = spm_tokenizer(path, WORDS | runs, more=[("<|user|>", CONTROL), ("<|endoftext|>", CONTROL)])
    huggingface.save(first.model, tmp_path)
    for made in (first.model, huggingface.load(tmp_path)):
        gguf.save(made, path)
        again = load(path)
        for count in range(40):
            text = "ab" + " " * count + "abé<|user|>日"
            for special in ("none", "all"):
                assert again.encode(text, allowed_special=special) == first.encode(
                    text, allowed_special=special
                )
        assert again.decode(again.encode(" ab 日")) == " ab 日"
        assert again.model.core.added_tokens == first.model.core.added_tokens


def test_the_tokens_of_phi_3_and_gemma4_come_back(path: Path) -> None:
    more = [("<|user|>", CONTROL), ("<|endoftext|>", CONTROL)]
    for made in (
        spm(path, WORDS, more, general__name="phi-3"),
        gemma(path, ["\n \n", "a b", "▁ ab"], ["▁", "a", "b", "\n", "ab", "▁ab", "\n\n"]),
    ):
        first = gguf.load(made)
        gguf.save(first, path)
        again = gguf.load(path)
        assert again.core.added_tokens == first.core.added_tokens
        assert again.core.vocab == first.core.vocab
        assert again.post_processor == first.post_processor
        assert again.config == first.config


def test_merges_that_scores_do_not_amount_to(path: Path) -> None:
    first = gguf.load(spm(path, {"a": -1.0, "b": -2.0, "ab": -3.0, "aba": -4.0, "ba": -5.0}))
    core = first.core
    settings: dict[str, Any] = {
        name: getattr(core, name)
        for name in ("normalizers", "alphabet", "byte_fallback", "decoder", "added_tokens", "keeps_gaps")
    }
    for merges in ([(b"a", b"b"), (b"b", b"a")], [(b"a", b"b"), (b"a", b"ba"), (b"b", b"a")]):
        made = _core.Model(core.vocab, merges, **settings)
        with pytest.raises(FormatError, match=r"merges: llama\.cpp would also join 'ab' and 'a'"):
            gguf.save(Model(made, first.named_tokens, first.post_processor), path)


# -- saving tokens of characters ------------------------------------------------------------------------


SPACES = Replace(pattern=" ", content="▁")


def characters(*merges: tuple[str, str], more: Sequence[str] = (), **changes: Any) -> _core.Model:
    """SentencePiece-style BPE as llama.cpp has it, apart from the changes."""
    texts = [f"<0x{byte:02X}>" for byte in range(256)] + ["▁", "a", "b", "c", "\n", "\t", "X"]
    texts += dict.fromkeys([*("".join(pair) for pair in merges), *more])
    settings: dict[str, Any] = {
        "split_patterns": [],
        "normalizers": [SPACES],
        "alphabet": "characters",
        "byte_fallback": True,
        "keeps_gaps": True,
        "decoder": Decoder("▁", byte_fallback=True),
    }
    pairs = [(left.encode(), right.encode()) for left, right in merges]
    vocab = {index: text.encode() for index, text in enumerate(texts)}
    return _core.Model(vocab | changes.pop("vocab", {}), pairs, **settings | changes)


def with_metaspace(*merges: tuple[str, str], normalizers: Sequence[Any] = (), **fields: Any) -> _core.Model:
    core = characters(*merges)
    steps = [Metaspace(**{"prepend_scheme": "never"} | fields)]
    settings = core.settings | {"normalizers": normalizers, "pre_tokenizers": steps}
    return _core.Model(core.vocab, core.merges, **settings)


@pytest.mark.parametrize(
    ("core", "problem"),
    [
        (characters(ignore_merges=True), "^ignore_merges: "),
        (characters(decoder=None), "^decoder: "),
        (characters(decoder=Decoder("_", byte_fallback=True)), "^decoder: "),
        (characters(decoder=Decoder("▁", byte_fallback=False)), "^decoder: "),
        (characters(byte_fallback=False), "^byte_fallback: "),
        (characters(vocab={0x41: b"x"}), "^byte_fallback: "),
        (characters(normalizers=[]), "^normalizers: .*; the model has none$"),
        (characters(normalizers=[SPACES, PlainNormalizer("NFC"), SPACES]), "^normalizers: .* Replace, NFC, "),
        (characters(split_patterns=[r"\s"]), "^pre_tokenizers: "),
        (with_metaspace(("a", "▁"), split=True), "^normalizers: .*; the model has Metaspace$"),
        (with_metaspace(split=False, prepend_scheme="first"), "^normalizers: .*; the model has Metaspace$"),
        (with_metaspace(split=False, replacement="_"), "^normalizers: .*; the model has Metaspace$"),
        (characters(split_patterns=[LINES], add_prefix_space=True), "^pre_tokenizers: "),
        (characters(split_patterns=[LINES], normalizers=[Prepend(prepend="▁"), SPACES]), "^pre_tokenizers: "),
        (characters(added_tokens=[AddedToken("<x>", 400, normalized=True)]), "^normalized: .*'<x>'"),
        (characters(("a", "\n"), more=["ab"]), "^merges: llama.cpp would also join 'a' and 'b'"),
    ],
)
def test_what_llama_cpp_does_not_do_with_characters(path: Path, core: _core.Model, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        gguf.save(Model(core), path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("core", "bos", "kind", "pre"),
    [
        # Only scores do without a split at newlines, and can have a space before a text.
        (characters(("a", "b"), normalizers=[Prepend(prepend="▁"), SPACES]), True, "llama", None),
        (characters(("a", "\n"), ("\n", "\n")), True, "llama", None),
        (characters(("\n", "\t")), False, "llama", None),
        (characters(("X", "\n")), False, "llama", None),
        (characters(("a", "\n"), more=["a "]), False, "llama", None),
        (characters(("c", "\n"), ("b", "a"), ("a", "b"), ("ba", "b")), False, "llama", None),
        # Merges keep their order; of two equal ones the last counts. gemma4 always adds BOS, and a run of
        # newlines becomes its token.
        (characters(("b", "a"), ("a", "b"), ("ab", "c"), ("b", "a"), ("\n", "\n")), True, "gemma4", None),
        (characters(("\n", "\n"), ("a", "b"), split_patterns=[LINES]), True, "gemma4", None),
        (characters(("b", "a"), ("a", "b"), ("b", "a"), more=["\n\n"]), True, "gpt2", "sarvam-moe"),
        (characters(("a", "b"), ("\n", "\n"), split_patterns=[LINES]), False, "gpt2", "sarvam-moe"),
        # Metaspace that only replaces spaces.
        (with_metaspace(("▁", "a"), ("a", "▁a"), split=False), True, "gemma4", None),
        (with_metaspace(("a", "b"), ("▁", "ab"), split=True), True, "gemma4", None),
        (with_metaspace(("▁", "a"), split=True, normalizers=[SPACES]), False, "gpt2", "sarvam-moe"),
        (with_metaspace(("▁", "a"), split=False, normalizers=[Prepend(prepend="▁")]), True, "llama", None),
    ],
)
def test_characters_are_written_as_the_kind_that_gives_their_ids(
    path: Path, core: _core.Model, bos: bool, kind: str, pre: str | None
) -> None:
    gguf.save(Model(core, post_processor=PostProcessor((97,) if bos else ())), path)
    metadata = read_metadata(path, lambda _: True)
    assert metadata.text("tokenizer.ggml.model") == kind
    assert metadata.values.get("tokenizer.ggml.pre") == pre
    prefixed = Prepend(prepend="▁") in core.normalizers
    assert metadata.flag("tokenizer.ggml.add_space_prefix") == prefixed
    if kind != "llama":
        written = [tuple(line.split(b" ")) for line in metadata.strings("tokenizer.ggml.merges").tolist()]
        assert written == list(dict.fromkeys(core.merges[::-1]))[::-1]
    again = load(path)
    first = BPETokenizer.from_model(Model(core))
    for text in ("", "aba ab", "bab\n\na\nb", "c\nX\n\tabc", " a\n\n\n", "a\n\nab abab"):
        ids = first.encode(text)
        assert again.encode(text) == ids, text
        assert again.encode(text, add_special_tokens=True) == [97] * bos + ids


def test_a_failed_save_leaves_the_old_file(path: Path) -> None:
    gguf.save(trained("llama3").model, path)
    before = path.read_bytes()
    with pytest.raises(TokenizerError):
        gguf.save(trained("o200k").model, path)
    assert path.read_bytes() == before


def written(path: Path, made: Model) -> dict[str, Any]:
    """Save the model, and return the metadata of the file."""
    gguf.save(made, path)
    return read_metadata(path, lambda _: True).values


def test_the_holes_a_file_may_have(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_MAX_HOLES", 2)
    gguf.save(model(added_tokens=[AddedToken("<|a|>", 258)]), path)
    message = "^ids: .* for each id up to the largest, 259; this model has 257 tokens$"
    with pytest.raises(FormatError, match=message):
        gguf.save(model(added_tokens=[AddedToken("<|a|>", 259)]), path)


def test_only_tokens_of_bytes_have_the_type_of_bytes(path: Path) -> None:
    core = characters(("a", "b"))
    types = written(path, Model(core))["tokenizer.ggml.token_type"].tolist()
    assert types == [BYTE] * 256 + [NORMAL] * (len(core.vocab) - 256)
    # In a byte-level model, "<0x41>" is plain text.
    merges = ["< 0", "<0 x", "<0x 4", "<0x4 1", "<0x41 >"]
    assert set(written(path, model(merges))["tokenizer.ggml.token_type"].tolist()) == {NORMAL}


def test_a_pre_tokenizer_with_which_mask_strips_white_space(path: Path) -> None:
    config = {"gguf": {"pre": "jina-v2-de"}}
    patterns = NAMED_PATTERNS["gpt2"].patterns
    made = model(split_patterns=patterns, added_tokens=[AddedToken("<mask>", 256, lstrip=True)])
    values = written(path, Model(made.core, config=config))
    assert values["tokenizer.ggml.pre"] == "jina-v2-de"
    assert "general.name" not in values
    assert gguf.load(path).core.added_tokens == made.core.added_tokens
    made = model(split_patterns=patterns, added_tokens=[AddedToken("<mask>", 256)])
    with pytest.raises(FormatError, match=r"^lstrip, rstrip: "):
        gguf.save(Model(made.core, config=config), path)


@pytest.mark.parametrize("kept", ["starcoder", "no such name", [], 5])
def test_a_kept_name_that_splits_otherwise_is_not_written(path: Path, kept: object) -> None:
    made = model(split_patterns=NAMED_PATTERNS["gpt2"].patterns)
    values = written(path, Model(made.core, config={"gguf": {"pre": kept}}))
    assert values["tokenizer.ggml.pre"] == "gpt-2"


@pytest.mark.parametrize(
    ("content", "special", "verb"), [("<|im_end|>", False, "takes"), ("<|channel|>", True, "does not take")]
)
def test_a_text_that_makes_llama_cpp_see_another_kind_of_token(
    path: Path, content: str, special: bool, verb: str
) -> None:
    message = f"special: llama.cpp {verb} '{content}' for a control token because of its text"
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        gguf.save(model(added_tokens=[AddedToken(content, 300, special)]), path)


def test_a_role_is_played_by_the_added_token_of_its_text(path: Path) -> None:
    """Not by a learned token of the same bytes, whose text in the file is another."""
    core = model(["æ Ĺ", "æĹ ¥"], added_tokens=[AddedToken("日", 300)]).core
    assert core.vocab[257] == "日".encode()
    assert written(path, Model(core, {"bos": "日"}))["tokenizer.ggml.bos_token_id"] == 300


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ x }}", {"": "{{ x }}"}),
        (
            [{"name": "rag", "template": "two"}, {"name": "default", "template": "one"}],
            {"": "one", ".rag": "two"},
        ),
    ],
)
def test_the_keys_of_chat_templates(path: Path, template: object, expected: dict[str, str]) -> None:
    values = written(path, Model(TWO, config={"chat_template": template}))
    key = "tokenizer.chat_template"
    assert {name: value for name, value in values.items() if name.startswith(key)} == {
        key + suffix: text for suffix, text in expected.items()
    }
    assert gguf.load(path).config["chat_template"] == template


def split_on(pattern: str) -> Split:
    return Split(pattern=pattern, behavior="Removed")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"normalization": "NFC"},
            "normalization: llama.cpp does not normalise text, so a GGUF file cannot hold NFC. "
            f"{drop_normalization('NFC')}",
        ),
        (
            {"normalizers": [Replace(pattern="a", content="b"), PlainNormalizer("NFC")]},
            "normalization: llama.cpp does not normalise text, so a GGUF file cannot hold Replace, NFC",
        ),
        (
            {"split_patterns": [], "pre_tokenizers": [split_on("a"), split_on("b")]},
            "pre_tokenizers: llama.cpp splits with patterns only, not with Split, Split",
        ),
    ],
)
def test_steps_that_llama_cpp_does_not_have_are_listed(
    path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        gguf.save(model(**settings), path)


def test_a_byte_without_a_token_is_dropped_or_refused(path: Path, tmp_path: Path) -> None:
    first = gguf.load(byte_level(path, ["a b"], missing=[0x0B]))
    gguf.save(first, tmp_path / "again.gguf")
    assert gguf.load(tmp_path / "again.gguf").core.vocab == first.core.vocab
    settings: dict[str, Any] = {"split_patterns": FALCON, "keeps_gaps": True, "requires_all_bytes": False}
    unknown = _core.Model(first.core.vocab, [], unk_id=0, **settings)
    with pytest.raises(FormatError, match=r"^unk_id: llama\.cpp drops a byte without a token"):
        gguf.save(Model(unknown), path)


def test_added_tokens_that_no_plain_text_becomes(path: Path) -> None:
    """With `ignore_merges`, only the text of a special token must be no piece of plain text."""
    added = [AddedToken("STOP", 256, special=False), AddedToken("<|a|>", 257)]
    settings: dict[str, Any] = {"split_patterns": YOUTU, "ignore_merges": True}
    assert written(path, model(added_tokens=added, **settings))["tokenizer.ggml.pre"] == "youtu"
    # The special token is what stands in the way, not the token that merging does not make.
    core = _core.Model(BYTES | {256: b"xyz"}, [], added_tokens=[AddedToken("STOP", 300)], **settings)
    with pytest.raises(FormatError, match=r"^added_tokens: .* plain text 'STOP' for the token"):
        gguf.save(Model(core), path)


def test_a_token_across_a_difference_names_the_pattern_to_train_with(path: Path) -> None:
    own = BYTE_LEVEL["llama-bpe"].patterns[0]
    message = (
        "split_patterns: llama.cpp's 'llama-bpe' splits text like them except in a few places, and the token "
        rf"b'\xc5\xbfs' crosses such a place; train with split_pattern='llama3' or {own!r}"
    )
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        gguf.save(model(["Å ¿", "Å¿ s"]), path)


@pytest.mark.parametrize(
    ("patterns", "shown"),
    [
        (NAMED_PATTERNS["o200k"].patterns, "'o200k'"),
        (NAMED_PATTERNS["cl100k-bounded"].patterns, "'cl100k-bounded'"),
        ((r"\d+",), r"['\\d+']"),
    ],
)
def test_patterns_without_a_name_are_shown_beside_those_with_one(
    path: Path, patterns: Sequence[str], shown: str
) -> None:
    with pytest.raises(FormatError) as caught:
        gguf.save(model(split_patterns=patterns), path)
    message, _, usable = str(caught.value).partition("; train with one of ")
    assert message == f"split_patterns: no tokenizer.ggml.pre of llama.cpp splits text like {shown}"
    assert {*SAVEABLE, "bailing", "seed-coder"} == set(usable.split(", "))


# -- llama.cpp's own vectors ----------------------------------------------------------------------------


@pytest.mark.fixtures
@pytest.mark.parametrize("name", ["falcon", "gpt-2", "llama-bpe", "qwen2", "starcoder"])
def test_the_vectors_of_llama_cpp(name: str, shared: Path) -> None:
    path = shared / "vocab" / f"ggml-vocab-{name}.gguf"
    with path.with_suffix(".gguf.inp").open(encoding="utf-8", newline="") as file:
        texts = file.read().split("\n__ggml_vocab_test__\n")
    lines = path.with_suffix(".gguf.out").read_text(encoding="utf-8").split("\n")
    rows = [[int(number) for number in line.split()] for line in lines]
    tokenizer = load(path)
    assert len(texts) == len(rows)
    for _ in range(2):  # the second time from the cache
        assert [tokenizer.encode(text) for text in texts] == rows
