"""Saving GGUF files: what comes back, and what llama.cpp cannot have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats import gguf, huggingface
from bpe_tokenizer.formats.capabilities import drop_normalization
from bpe_tokenizer.formats.gguf import writing
from bpe_tokenizer.formats.gguf.file import Metadata
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
    read,
    spm,
    spm_tokenizer,
)
from small_tokenizers import BYTES, bytes_model

YOUTU, FALCON = (BYTE_LEVEL[name].patterns for name in ("youtu", "falcon"))
GPT2, CL100K = NAMED_PATTERNS["gpt2"].patterns, NAMED_PATTERNS["cl100k"].patterns
SAVEABLE = ["gpt2", "r50k", "cl100k", "llama3", "qwen2", "qwen3.5", "deepseek-v3", "falcon", "starcoder"]
SAVEABLE += ["bailing", "seed-coder"]
TWO = model(added_tokens=[AddedToken("<|a|>", 256), AddedToken("<|b|>", 257)]).core


def saved(path: Path, made: Model) -> Metadata:
    """Save the model, and return the metadata of the file."""
    gguf.save(made, path)
    return read(path)


def with_tokens(*added: AddedToken, **settings: Any) -> Model:
    return model(added_tokens=added, **settings)


def trained(pattern: str | Sequence[str], special: dict[str, int] | None = None) -> BPETokenizer:
    text = "low lower lowest it's IT'S 1234 don't \n\n new newer, newest! 日本語 中文。 " * 4
    return BPETokenizer(split_pattern=pattern, normalization=None).train(
        text, 320, special_tokens=special or ["<|bos|>", "<|eos|>"], verbose=False
    )


def assert_same_ids(again: BPETokenizer, tokenizer: BPETokenizer, *texts: str) -> None:
    for text in texts:
        for special in ("none", "all"):
            assert again.encode(text, False, special) == tokenizer.encode(text, False, special)


# -- what comes back ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", SAVEABLE)
def test_a_trained_tokenizer_comes_back(path: Path, pattern: str) -> None:
    tokenizer = trained(pattern)
    gguf.save(tokenizer.model, path)
    again = load(path)
    assert (again.vocab, again.merges) == (tokenizer.vocab, tokenizer.merges)
    assert again.special_tokens == tokenizer.special_tokens
    text = "lowest<|eos|>\n\n  it's 12345 日本 \n"
    assert_same_ids(again, tokenizer, text)
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


def test_ids_around_a_text_and_ids_of_roles(path: Path) -> None:
    kept = {"eot_token_id": 255, "eom_token_id": 0, "a_token_id": -1, "b_token_id": 258, "c_token_id": True}
    config = {"gguf": kept | {"d_token_id": "5", "e": 5, "pre": 5, "bos_token_id": 7}}
    roles = {"pad": "<|b|>", "unk": "a"}
    metadata = saved(path, Model(TWO, roles, PostProcessor((256,), (97,)), config))
    found = {key: metadata.integer(key) for key in metadata.values if key.endswith("_token_id")}
    expected = {"bos": 256, "eos": 97, "padding": 257, "unknown": 97, "eot": 255, "eom": 0}
    assert found == {f"tokenizer.ggml.{role}_token_id": value for role, value in expected.items()}
    assert metadata.flag("tokenizer.ggml.add_bos_token")
    assert metadata.flag("tokenizer.ggml.add_eos_token")
    assert metadata.text("general.architecture") == "llama"
    assert "general.name" not in metadata.values
    metadata = saved(path, Model(TWO, {"bos": "<|a|>"}, PostProcessor()))
    assert metadata.integer("tokenizer.ggml.bos_token_id") == 256
    assert not metadata.flag("tokenizer.ggml.add_bos_token")


def test_a_role_is_played_by_the_added_token_of_its_text(path: Path) -> None:
    """Not by a learned token of the same bytes, whose text in the file is another."""
    core = model(["æ Ĺ", "æĹ ¥"], added_tokens=[AddedToken("日", 300)]).core
    assert core.vocab[257] == "日".encode()
    assert saved(path, Model(core, {"bos": "日"})).integer("tokenizer.ggml.bos_token_id") == 300


def test_a_name_whose_tokens_strip(path: Path) -> None:
    made = with_tokens(AddedToken("[MASK]", 256, lstrip=True), AddedToken("<|b|>", 257))
    assert saved(path, made).text("general.name") == "modern-bert"
    assert gguf.load(path).core.added_tokens == made.core.added_tokens


@pytest.mark.parametrize("kept", ["starcoder", "no such name", [], 5, "jina-v2-de"])
def test_a_kept_name_is_written_where_it_splits_and_strips_alike(path: Path, kept: object) -> None:
    """With jina's, <mask> strips white space."""
    strips = kept == "jina-v2-de"
    made = with_tokens(AddedToken("<mask>", 256, lstrip=strips), split_patterns=GPT2)
    values = saved(path, Model(made.core, config={"gguf": {"pre": kept}})).values
    assert values["tokenizer.ggml.pre"] == ("jina-v2-de" if strips else "gpt-2")
    assert "general.name" not in values
    assert gguf.load(path).core.added_tokens == made.core.added_tokens


def test_tokens_across_the_places_where_patterns_differ(path: Path) -> None:
    gguf.save(model(["Ċ Ċ", "Ġ Ċ", "Ċ ĠĊ"], split_patterns=CL100K), path)
    made = model(["Å ¿", "Å¿ s"], split_patterns=BYTE_LEVEL["dbrx"].patterns)
    gguf.save(made, path)
    assert gguf.load(path).core.split_patterns == made.core.split_patterns


@pytest.mark.parametrize(
    ("pattern", "ignore_merges", "pre"),
    [("llama3", True, "llama-bpe"), ("llama3", False, "dbrx"), ("qwen2", False, "qwen2")],
)
def test_ignore_merges(path: Path, pattern: str, ignore_merges: bool, pre: str) -> None:
    """Where merging makes every token, both ways are the same; else a name that does the same is needed."""
    settings: Any = {"split_patterns": NAMED_PATTERNS[pattern].patterns, "ignore_merges": ignore_merges}
    gguf.save(Model(_core.Model(BYTES | {256: b"ab", 257: b"xyz"}, [(b"a", b"b")], **settings)), path)
    again = gguf.load(path)
    assert (again.config["gguf"]["pre"], again.core.ignore_merges) == (pre, ignore_merges)


def test_where_merging_makes_every_token_the_name_does_not_matter(path: Path) -> None:
    made = model(["a b"], added_tokens=[AddedToken("STOP", 300)], ignore_merges=True)
    assert saved(path, made).text("tokenizer.ggml.pre") == "dbrx"
    # With `ignore_merges`, only the text of a special token must be no piece of plain text.
    tokens = AddedToken("STOP", 256, special=False), AddedToken("<|a|>", 257)
    made = with_tokens(*tokens, split_patterns=YOUTU, ignore_merges=True)
    assert saved(path, made).text("tokenizer.ggml.pre") == "youtu"


def test_a_learned_token_that_llama_cpp_takes_for_a_special_one(path: Path) -> None:
    """As Qwen's "</s>"."""
    tokenizer = BPETokenizer.from_model(model(["< /", "</ s", "</s >"]))
    with pytest.raises(FormatError, match=r"vocab: .*'</s>'.* add_special_tokens\(\{'</s>': 258\}\)"):
        gguf.save(tokenizer.model, path)
    tokenizer.add_special_tokens({"</s>": 258})
    gguf.save(tokenizer.model, path)
    assert_same_ids(load(path), tokenizer, "a</s>b")


def test_holes_become_unused_tokens(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = trained("llama3", {"<|bos|>": 256, "<|end|>": 400})
    tokens = saved(path, tokenizer.model).strings("tokenizer.ggml.tokens").tolist()
    assert tokens[399] == b"<unused 399>"
    assert load(path).vocab == tokenizer.vocab
    assert_same_ids(load(path), tokenizer, "low<|end|>")
    monkeypatch.setattr(writing, "_MAX_HOLES", 2)
    gguf.save(with_tokens(AddedToken("<|a|>", 258)), path)
    message = "^ids: .* for each id up to the largest, 259; this model has 257 tokens$"
    with pytest.raises(FormatError, match=message):
        gguf.save(with_tokens(AddedToken("<|a|>", 259)), path)


def assert_all_comes_back(first: Model, path: Path) -> None:
    gguf.save(first, path)
    again = gguf.load(path)
    assert (again.core.vocab, again.core.added_tokens) == (first.core.vocab, first.core.added_tokens)
    assert (again.config, again.post_processor) == (first.config, first.post_processor)
    assert again.named_tokens.items() >= first.named_tokens.items()


def test_everything_comes_back(path: Path, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"tokenizer.chat_template": "one", "tokenizer.chat_template.rag": "two"}
    fields = {"eot_token_id": 256, "bos_token_id": 257, "add_bos_token": True}
    keys |= {f"tokenizer__ggml__{name}": value for name, value in fields.items()}
    more = [("<|user|>", CONTROL), ("<|endoftext|>", CONTROL)]
    texts = ["▁", "a", "b", "\n", "ab", "▁ab", "\n\n"]
    for made in (
        byte_level(path, more=[("<a>", CONTROL), ("<b>", CONTROL)], pre="refact", **keys),
        byte_level(path, ["a b"], missing=[0x0B]),  # a byte without a token is dropped
        spm(path, WORDS, more, general__name="phi-3"),
        gemma(path, ["\n \n", "a b", "▁ ab"], texts),
    ):
        assert_all_comes_back(gguf.load(made), tmp_path / "deeper" / "again.gguf")


def test_a_vocabulary_of_scores_comes_back(path: Path, tmp_path: Path) -> None:
    runs = {"▁" * count: -1e9 for count in range(3, 17)}
    first, _ = spm_tokenizer(path, WORDS | runs, more=[("<|user|>", CONTROL), ("<|endoftext|>", CONTROL)])
    huggingface.save(first.model, tmp_path)
    for made in (first.model, huggingface.load(tmp_path)):
        gguf.save(made, path)
        again = load(path)
        assert_same_ids(again, first, *("ab" + " " * count + "abé<|user|>日" for count in range(40)))
        assert again.decode(again.encode(" ab 日")) == " ab 日"
        assert again.model.core.added_tokens == first.model.core.added_tokens


RAG, DEFAULT = {"name": "rag", "template": "two"}, {"name": "default", "template": "one"}


@pytest.mark.parametrize(
    ("template", "expected"), [("{{ x }}", {"": "{{ x }}"}), ([RAG, DEFAULT], {"": "one", ".rag": "two"})]
)
def test_the_keys_of_chat_templates(path: Path, template: object, expected: dict[str, str]) -> None:
    values = saved(path, Model(TWO, config={"chat_template": template})).values
    key = "tokenizer.chat_template"
    found = {name.removeprefix(key): value for name, value in values.items() if name.startswith(key)}
    assert found == expected
    assert gguf.load(path).config["chat_template"] == template


# -- what is refused ------------------------------------------------------------------------------------


def plain(content: str, token_id: int) -> Model:
    return with_tokens(AddedToken(content, token_id, *[False] * 5))


def split_on(pattern: str) -> Split:
    return Split(pattern=pattern, behavior="Removed")


def with_template(template: Any) -> Model:
    return Model(TWO, config={"chat_template": template})


XYZ, STOP = {256: b"xyz"}, [AddedToken("STOP", 300)]
MADE = [(b"\xe6", b"\x97"), (b"\xe6\x97", b"\xa5")]
MADE_TOKENS = {256: "日".encode(), 257: b"\xe6\x97"}
ALMOST = [pattern.replace(r"\s+(?!\S)", r"\s(?!\S)") for pattern in RESPELT["llama3"]]
TWICE = [{"name": "default", "template": "a"}] * 2
WITHOUT_VT = dict(enumerate(bytes([byte]) for byte in range(256) if byte != 11))
NO_FORM = "normalization: llama.cpp does not normalise text, so a GGUF file cannot hold "
MASK = with_tokens(AddedToken("<mask>", 256), split_patterns=GPT2)
CHANGES = "that changes the token b'xyz'"
DROPS: Any = {"split_patterns": FALCON, "keeps_gaps": True, "requires_all_bytes": False, "unk_id": 0}

REFUSED: list[tuple[Model, str]] = [
    (model(normalization="NFC"), re.escape(f"{NO_FORM}NFC. {drop_normalization('NFC')}") + "$"),
    (
        model(normalizers=[Replace(pattern="a", content="b"), PlainNormalizer("NFC")]),
        re.escape(f"{NO_FORM}Replace, NFC") + "$",
    ),
    (model(add_prefix_space=True), "add_prefix_space: "),
    (
        model(split_patterns=[], pre_tokenizers=[split_on("a"), split_on("b")]),
        "pre_tokenizers: llama.cpp splits with patterns only, not with Split, Split$",
    ),
    (model(split_patterns=ALMOST), r"split_patterns: no tokenizer\.ggml\.pre"),
    (model(["Å ¿", "Å¿ s"]), r"split_patterns: .* the token b'\\xc5\\xbfs' crosses .* split_pattern='llama"),
    (model(["Ċ Ġ"], split_patterns=CL100K), r"split_patterns: .* the token b'\\n ' .*='llama3'"),
    (with_tokens(AddedToken("<a>", 300, single_word=True)), "single_word: "),
    (with_tokens(AddedToken("<a>", 300, rstrip=True)), "lstrip, rstrip: "),
    (with_tokens(AddedToken("[other]", 256, lstrip=True)), "lstrip, rstrip: "),
    (Model(MASK.core, config={"gguf": {"pre": "jina-v2-de"}}), "lstrip, rstrip: "),
    (plain("<|im_end|>", 300), r"special: llama.cpp takes '<\|im_end\|>' for a control token"),
    (with_tokens(AddedToken("<|channel|>", 300)), r"special: llama.cpp does not take '<\|channel\|>' for"),
    (plain("a\0", 300), ".*zero byte"),
    (plain("<a>", 5_000_000), "ids: llama.cpp needs a token for each id"),
    (plain("b", 300), "vocab: the ids 98 and 300 are both written 'b', and llama.cpp refuses dup"),
    (model(decoder=Decoder("▁", byte_fallback=True)), "decoder: "),
    (Model(_core.Model({0: b"a"}, [], requires_all_bytes=False)), "unk_id: "),
    (Model(_core.Model(WITHOUT_VT, [], **DROPS)), r"unk_id: llama\.cpp drops a byte without a token"),
    (Model(_core.Model({}, [], split_patterns=[], requires_all_bytes=False)), ".*the model has no tokens"),
    (
        bytes_model(MADE_TOKENS, MADE, added_tokens=[AddedToken("日", 256)]),
        "added_tokens: '日' is an added token that merging makes too",
    ),
    (with_tokens(AddedToken("\n", 10)), "added_tokens: .* is also the token of a byte"),
    # The special token is in the way, not the token that merging does not make.
    (
        bytes_model(XYZ, split_patterns=YOUTU, ignore_merges=True, added_tokens=STOP),
        "added_tokens: llama.cpp would take the plain text 'STOP' for the token",
    ),
    (
        bytes_model(XYZ, split_patterns=YOUTU),
        f"ignore_merges: .* does not merge a .* {CHANGES}",
    ),
    (
        bytes_model(XYZ, split_patterns=FALCON, ignore_merges=True),
        f"ignore_merges: .*always merges; {CHANGES}",
    ),
    (Model(TWO, {}, PostProcessor((256, 257))), r"post_processor: .* at most one token .*\(256, 257\)"),
    (Model(TWO, {}, PostProcessor((), (97, 98))), "post_processor: .* at most one token"),
    (Model(TWO, {"bos": "<|a|>"}, PostProcessor((257,))), ".*only the BOS token, not the id 257"),
    (Model(TWO, {"eos": "<|b|>"}, PostProcessor((), (256,))), ".*only the EOS token, not the id 256"),
    *(
        (with_template(template), "chat_template: ")
        for template in (5, [5], [{"name": "a"}], [{"template": "a"}], TWICE)
    ),
]


@pytest.mark.parametrize(("made", "problem"), REFUSED)
def test_what_a_gguf_file_cannot_hold(path: Path, made: Model, problem: str) -> None:
    with pytest.raises(FormatError, match=f"^{problem}"):
        gguf.save(made, path)
    assert not path.exists()


UNKNOWN = ["o200k", "cl100k-bounded", "tekken", "deepseek-llm", "deepseek-coder", r"\d+"]


@pytest.mark.parametrize("pattern", UNKNOWN)
def test_patterns_that_llama_cpp_does_not_know(path: Path, pattern: str) -> None:
    """One without a name is shown, beside the names of those that it knows."""
    named = NAMED_PATTERNS.get(pattern)
    with pytest.raises(FormatError) as caught:
        gguf.save(model(split_patterns=named.patterns if named else [pattern]), path)
    message, _, usable = str(caught.value).partition("; train with one of ")
    shown = repr(pattern) if named else repr([pattern])
    assert message == f"split_patterns: no tokenizer.ggml.pre of llama.cpp splits text like {shown}"
    assert set(usable.split(", ")) == set(SAVEABLE)


def test_merges_that_scores_do_not_amount_to(path: Path) -> None:
    first = gguf.load(spm(path, {"a": -1.0, "b": -2.0, "ab": -3.0, "aba": -4.0, "ba": -5.0}))
    for merges in ([(b"a", b"b"), (b"b", b"a")], [(b"a", b"b"), (b"a", b"ba"), (b"b", b"a")]):
        made = _core.Model(first.core.vocab, merges, **first.core.settings)
        with pytest.raises(FormatError, match=r"merges: llama\.cpp would also join 'ab' and 'a'"):
            gguf.save(Model(made, first.named_tokens, first.post_processor), path)


# -- tokens of characters -------------------------------------------------------------------------------


SPACES = Replace(pattern=" ", content="▁")


PREFIX = Prepend(prepend="▁")


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
        (characters(split_patterns=[LINES], normalizers=[PREFIX, SPACES]), "^pre_tokenizers: "),
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
    metadata = saved(path, Model(core, post_processor=PostProcessor((97,) if bos else ())))
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


def test_only_tokens_of_bytes_have_the_type_bytes_model(path: Path) -> None:
    core = characters(("a", "b"))
    types = saved(path, Model(core)).values["tokenizer.ggml.token_type"].tolist()
    assert types == [BYTE] * 256 + [NORMAL] * (len(core.vocab) - 256)
    # In a byte-level model, "<0x41>" is plain text.
    made = model(["< 0", "<0 x", "<0x 4", "<0x4 1", "<0x41 >"])
    assert set(saved(path, made).values["tokenizer.ggml.token_type"].tolist()) == {NORMAL}
