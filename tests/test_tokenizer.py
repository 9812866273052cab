from __future__ import annotations

import base64
import copy
import multiprocessing
import os
import pickle
import sys
import threading
import types
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import bpe_tokenizer
from bpe_tokenizer import (
    CHATML_SPECIAL_TOKENS,
    CL100K_SPLIT_PATTERN,
    GPT2_SPLIT_PATTERN,
    LLAMA3_SPECIAL_TOKENS,
    AddedToken,
    ArgumentTypeError,
    BPETokenizer,
    DecodingError,
    EncodingResult,
    MissingDependencyError,
    Model,
    ModelError,
    NotTrainedError,
    OptionError,
    PostProcessor,
    SpecialTokenError,
    TokenizerError,
    UnknownIdError,
)
from bpe_tokenizer.patterns import NAMED_PATTERNS
from bpe_tokenizer.reference import oracle
from bpe_tokenizer.special_tokens import find_roles

BYTES = {byte: bytes([byte]) for byte in range(256)}
# Text with what breaks tokenizers: surrogates, combining marks, spaces, line ends, contractions, specials.
awkward = st.sampled_from(
    [
        *("\ud800", "\udc00", "\ud83d\ude00", "e\u0301", "\u0301", "é", "日本", "\U0001f469\u200d\U0001f467"),
        *(" ", "  ", "\n", "\r\n", "\t", "\0", "'s", "'LL", "ſ", "the", " def", "123", "½"),
        *("<|bos|>", "<|eos|>", "<|pad|", "\u2003", "ﬁ", "\u212b"),
    ]
)
hard_texts = st.lists(awkward | st.text(max_size=4) | st.characters(exclude_categories=()), max_size=25).map(
    "".join
)
# Fixtures of a session are the same for every example.
relaxed = settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def without_surrogates(text: str) -> str:
    """The text as it is encoded: pairs joined, lone surrogates replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def tiny(*merges: str, special_tokens: Any = None, **options: Any) -> BPETokenizer:
    """A tokenizer of merges like "a|b", whose tokens have the ids 256, 257, ..."""
    pairs = [(left.encode(), right.encode()) for left, _, right in (merge.partition("|") for merge in merges)]
    vocab = BYTES | {256 + rank: left + right for rank, (left, right) in enumerate(pairs)}
    return BPETokenizer.from_vocab(vocab, pairs, special_tokens, **options)


# -- the whole ------------------------------------------------------------------------------------------


def test_everything_public_is_exported() -> None:
    assert sorted(bpe_tokenizer.__all__) == sorted(set(bpe_tokenizer.__all__))
    for name in bpe_tokenizer.__all__:
        assert hasattr(bpe_tokenizer, name)
    assert bpe_tokenizer.__version__.count(".") >= 2


def test_repr() -> None:
    pairs = [(bytes([i // 256]), bytes([i % 256])) for i in range(31_744)]
    vocab = BYTES | {256 + rank: left + right for rank, (left, right) in enumerate(pairs)}
    tokenizer = BPETokenizer.from_vocab(vocab, pairs, {"<a>": 32000, "<b>": 32001, "<c>": 40000})
    assert repr(tokenizer) == "BPETokenizer(vocab_size=32,000, merges=31,744, special_tokens=3)"
    assert (tokenizer.vocab_size, len(tokenizer)) == (32_000, 32_003)
    assert repr(BPETokenizer("gpt2", None)) == (
        f"BPETokenizer(untrained, split_pattern={GPT2_SPLIT_PATTERN!r}, normalization=None)"
    )


def test_defaults() -> None:
    tokenizer = BPETokenizer()
    assert tokenizer.split_pattern == CL100K_SPLIT_PATTERN
    assert tokenizer.normalization == "NFC"


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.encode("a"),
        lambda t: t.encode_to_numpy("a"),
        lambda t: t.encode_bytes(b"a"),
        lambda t: t.encode_batch(["a"]),
        lambda t: t.encode_ragged(["a"]),
        lambda t: t.encode_with_offsets("a"),
        lambda t: t("a"),
        lambda t: t(["a"]),
        lambda t: t.decode([1]),
        lambda t: t.decode_bytes([1]),
        lambda t: t.decode_batch([[1]]),
        lambda t: t.tokenize("a"),
        lambda t: t.count_tokens("a"),
        lambda t: t.truncate("a", 1),
        lambda t: t.split_by_tokens("a", 1),
        lambda t: t.get_vocab(),
        lambda t: t.vocab,
        lambda t: t.merges,
        lambda t: t.model,
        lambda t: t.convert_tokens_to_ids("a"),
        lambda t: t.convert_ids_to_tokens(1),
        lambda t: t.convert_tokens_to_string(["a"]),
        lambda t: t.add_special_tokens(["<a>"]),
        lambda t: t.get_cache_stats(),
        lambda t: t.clear_cache(),
        lambda t: t.save("directory"),
        lambda t: setattr(t, "bos_token", "<a>"),
        lambda t: setattr(t, "pad_token_id", 1),
    ],
)
def test_an_untrained_tokenizer_says_so(use: Callable[[BPETokenizer], object]) -> None:
    with pytest.raises(NotTrainedError, match=r"no vocabulary yet.*train") as caught:
        use(BPETokenizer())
    assert isinstance(caught.value, TokenizerError)
    assert isinstance(caught.value, RuntimeError)


def test_an_untrained_tokenizer_is_empty() -> None:
    tokenizer = BPETokenizer()
    assert (tokenizer.vocab_size, len(tokenizer), tokenizer.special_tokens) == (0, 0, {})
    assert (tokenizer.bos_token, tokenizer.eos_token_id) == (None, None)
    assert tokenizer


@pytest.mark.parametrize("text", [123, None, ["a"], b"a", 1.5])
@pytest.mark.parametrize(
    "method", ["encode", "encode_to_numpy", "encode_with_offsets", "count_tokens", "tokenize"]
)
def test_a_text_that_is_none_is_a_type_error(tokenizer: BPETokenizer, method: str, text: Any) -> None:
    with pytest.raises(TypeError, match=f"expects a str, not {type(text).__name__}"):
        getattr(tokenizer, method)(text)
    for limited in (tokenizer.truncate, tokenizer.split_by_tokens):
        with pytest.raises(TypeError, match="expects a str"):
            limited(text, 5)


def test_bytes_are_pointed_to_their_method(tokenizer: BPETokenizer) -> None:
    with pytest.raises(TypeError, match="encode_bytes"):
        tokenizer.encode(b"a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expects bytes, not str"):
        tokenizer.encode_bytes("a")  # type: ignore[arg-type]


# -- round trips ----------------------------------------------------------------------------------------


@given(text=hard_texts)
@relaxed
def test_without_normalisation_nothing_is_lost(plain_tokenizer: BPETokenizer, text: str) -> None:
    assert plain_tokenizer.decode(plain_tokenizer.encode(text)) == without_surrogates(text)


@given(text=hard_texts)
@relaxed
def test_with_nfc_the_text_comes_back_normalised(tokenizer: BPETokenizer, text: str) -> None:
    expected = unicodedata.normalize("NFC", without_surrogates(text))
    assert tokenizer.decode(tokenizer.encode(text)) == expected


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_every_normalisation_form(form: Literal["NFC", "NFD", "NFKC", "NFKD"], mixed_text: str) -> None:
    tokenizer = BPETokenizer("gpt2", form).train([mixed_text] * 2, 400, verbose=False)
    assert tokenizer.normalization == form
    text = mixed_text + "ﬁ½Å\ud800"
    expected = unicodedata.normalize(form, without_surrogates(text))
    assert tokenizer.decode(tokenizer.encode(text)) == expected
    for method in (tokenizer.tokenize, tokenizer.count_tokens, tokenizer.encode_to_numpy):
        assert repr(method(text)) == repr(method(expected))


@given(data=st.binary(max_size=60) | hard_texts.map(lambda text: text.encode(errors="replace")))
@relaxed
def test_any_bytes_come_back(tokenizer: BPETokenizer, data: bytes) -> None:
    assert tokenizer.decode_bytes(tokenizer.encode_bytes(data)) == data
    assert tokenizer.encode_bytes(bytearray(data)) == tokenizer.encode_bytes(memoryview(data))


@given(text=hard_texts)
@relaxed
def test_ids_are_those_of_the_reference(plain_tokenizer: BPETokenizer, text: str) -> None:
    ids = {token: token_id for token_id, token in plain_tokenizer.vocab.items()}
    merges = plain_tokenizer.merges
    expected = [
        ids[token]
        for piece in oracle.split(without_surrogates(text), GPT2_SPLIT_PATTERN)
        for token in oracle.encode_piece(piece.encode(), merges)
    ]
    assert plain_tokenizer.encode(text) == expected


@given(text=hard_texts)
@relaxed
def test_every_way_of_encoding_gives_the_same_ids(tokenizer: BPETokenizer, text: str) -> None:
    options: dict[str, Any] = {"add_special_tokens": True, "allowed_special": "all"}
    ids = tokenizer.encode(text, **options)
    assert tokenizer.encode_to_numpy(text, **options).tolist() == ids
    assert tokenizer.encode_with_offsets(text, **options)[0] == ids
    assert tokenizer.encode_batch([text], **options)[0].input_ids == ids
    assert tokenizer.encode_ragged([text, "", text], **options)[0].tolist() == [*ids, 256, 257, *ids]
    assert tokenizer(text, **options) == ids
    assert tokenizer.count_tokens(text, **options) == len(ids)
    assert tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text, **options)) == ids


def test_arrays_have_their_types(tokenizer: BPETokenizer) -> None:
    assert tokenizer.encode_to_numpy("abc").dtype == np.uint32
    assert tokenizer.encode_to_numpy("abc", add_special_tokens=True).dtype == np.uint32
    flat, offsets = tokenizer.encode_ragged(["ab", ""], add_special_tokens=True)
    assert flat.dtype == np.uint32
    assert offsets.dtype == np.int64
    flat, offsets = tokenizer.encode_ragged([])
    assert (flat.tolist(), offsets.tolist()) == ([], [0])


def test_the_empty_text(tokenizer: BPETokenizer) -> None:
    assert tokenizer.encode("") == []
    assert tokenizer.encode("", add_special_tokens=True) == [256, 257]
    assert tokenizer.decode([]) == ""
    assert tokenizer.encode_with_offsets("") == ([], [])
    assert tokenizer.truncate("", 5) == ""
    assert tokenizer.split_by_tokens("", 5) == []


# -- special tokens -------------------------------------------------------------------------------------


def test_special_tokens_in_a_text_are_plain_text_unless_allowed(tokenizer: BPETokenizer) -> None:
    text = "a<|eos|>b<|pad|>"
    plain = tokenizer.encode(text)
    assert not set(plain) & set(tokenizer.special_tokens.values())
    assert tokenizer.decode(plain) == text
    a, b = tokenizer.encode("a"), tokenizer.encode("b")
    assert tokenizer.encode(text, allowed_special="all") == [*a, 257, *b, 258]
    some = tokenizer.encode(text, allowed_special={"<|pad|>"})
    assert some == [*tokenizer.encode("a<|eos|>b"), 258]
    assert tokenizer.encode(text, allowed_special=["<|pad|>"]) == some
    assert tokenizer.encode(text, allowed_special=set()) == plain
    assert tokenizer.encode_bytes(text.encode(), allowed_special={"<|pad|>"}) == some
    assert tokenizer.encode_batch([text], allowed_special="all")[0].input_ids == [*a, 257, *b, 258]


def test_the_longest_special_token_wins() -> None:
    tokenizer = tiny("a|b", special_tokens=["<x>", "<x><y>", "<y>"])
    assert tokenizer.special_tokens == {"<x>": 257, "<x><y>": 258, "<y>": 259}
    assert tokenizer.encode("ab<x><y>ab<y><x>", allowed_special="all") == [256, 258, 256, 259, 257]
    assert tokenizer.encode("<x><y>", allowed_special={"<x>", "<y>"}) == [257, 259]


@pytest.mark.parametrize("disallowed", ["all", {"<|eos|>"}, ["<|eos|>"], ("<|eos|>", "<|pad|>")])
def test_a_disallowed_special_token_is_an_error(tokenizer: BPETokenizer, disallowed: Any) -> None:
    uses: list[Callable[..., Any]] = [
        tokenizer.encode,
        tokenizer.encode_to_numpy,
        tokenizer.encode_with_offsets,
        tokenizer.tokenize,
        tokenizer.count_tokens,
        tokenizer,
        lambda text, **options: tokenizer.truncate(text, 5, **options),
        lambda text, **options: tokenizer.split_by_tokens(text, 5, **options),
    ]
    for use in uses:
        with pytest.raises(SpecialTokenError) as caught:
            use("né<|eos|>", disallowed_special=disallowed)
        message = str(caught.value)
        assert "'<|eos|>' at character 2" in message
        assert "allowed_special={'<|eos|>'}" in message
        assert isinstance(caught.value, ValueError)
        use("né<|eos|", disallowed_special=disallowed)
    with pytest.raises(SpecialTokenError, match="at byte 3"):
        tokenizer.encode_bytes("né<|eos|>".encode(), disallowed_special=disallowed)
    for batch in (tokenizer.encode_batch, tokenizer.encode_ragged):
        with pytest.raises(SpecialTokenError, match=r"text 1 holds .* at character 2"):
            batch(["fine", "né<|eos|>"], disallowed_special=disallowed)


def test_what_is_allowed_is_not_disallowed_by_all(tokenizer: BPETokenizer) -> None:
    options: dict[str, Any] = {"allowed_special": {"<|eos|>"}, "disallowed_special": "all"}
    assert tokenizer.encode("<|eos|>", **options) == [257]
    with pytest.raises(SpecialTokenError, match=r"'<\|pad\|>' at character 7"):
        tokenizer.encode("<|eos|><|pad|>", **options)
    assert tokenizer.encode("<|eos|><|pad|>", allowed_special="all", disallowed_special="all") == [257, 258]


@pytest.mark.parametrize("option", ["allowed_special", "disallowed_special"])
def test_unknown_special_tokens_are_named(tokenizer: BPETokenizer, option: str) -> None:
    with pytest.raises(SpecialTokenError, match=rf"{option} names '<\|eso\|>'.*did you mean '<\|eos\|>'"):
        tokenizer.encode("a", **{option: {"<|eso|>"}})  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=f"{option} is 'some'"):
        tokenizer.encode("a", **{option: "some"})  # type: ignore[arg-type]


def test_a_text_of_a_special_token_is_not_a_set_of_characters(tokenizer: BPETokenizer) -> None:
    with pytest.raises(OptionError, match="a set of special tokens"):
        tokenizer.encode("a", allowed_special="<|eos|>")


def test_bos_and_eos_are_put_around(tokenizer: BPETokenizer) -> None:
    ids = tokenizer.encode("hello")
    assert tokenizer.encode("hello", add_special_tokens=True) == [256, *ids, 257]
    assert tokenizer.encode_bytes(b"hello", add_special_tokens=True) == [256, *ids, 257]
    only_eos = tiny("a|b", special_tokens=["<|endoftext|>"])
    assert only_eos.encode("ab", add_special_tokens=True) == [256, 257]
    assert tiny("a|b").encode("ab", add_special_tokens=True) == [256]


def test_the_post_processor_of_a_model_decides(tokenizer: BPETokenizer) -> None:
    core = tokenizer.model.core
    for prefix, suffix in [((), ()), ((258, 258), (257,)), ((256,), ())]:
        other = BPETokenizer.from_model(Model(core, post_processor=PostProcessor(prefix, suffix)))
        assert other.encode("a", add_special_tokens=True) == [*prefix, *tokenizer.encode("a"), *suffix]
        flat, offsets = other.encode_ragged(["a", ""], add_special_tokens=True)
        assert flat.tolist() == [*prefix, *tokenizer.encode("a"), *suffix, *prefix, *suffix]
        assert offsets.tolist() == [0, len(flat) - len(prefix + suffix), len(flat)]


@pytest.mark.parametrize(
    ("contents", "roles"),
    [
        (LLAMA3_SPECIAL_TOKENS, ("<|begin_of_text|>", "<|end_of_text|>", "<|finetune_right_pad_id|>", None)),
        (CHATML_SPECIAL_TOKENS, (None, None, None, None)),
        (["<|endoftext|>"], (None, "<|endoftext|>", None, None)),
        (["<pad>", "</s>", "<s>", "<unk>"], ("<s>", "</s>", "<pad>", "<unk>")),
        (["<|BOS|>", "<EOS>", "[PAD]", "[UNK]"], ("<|BOS|>", "<EOS>", "[PAD]", "[UNK]")),
        (["<s>", "<bos>", "<|endoftext|>", "<eos>"], ("<bos>", "<eos>", None, None)),
        (["<pad2>", "<pad1>"], (None, None, "<pad2>", None)),
        (["<|videos|>", "<|verbose|>", "<|keypad|>", "<|chunk|>", "<|eot_id|>"], (None, None, None, None)),
        (["<unknown>", "<|padding|>"], (None, None, "<|padding|>", "<unknown>")),
        ([], (None, None, None, None)),
    ],
)
def test_roles_are_found_from_names(contents: Any, roles: tuple[str | None, ...]) -> None:
    tokens = [AddedToken(content, 300 + place) for place, content in enumerate(contents)]
    found = find_roles(tokens)
    assert (found.get("bos"), found.get("eos"), found.get("pad"), found.get("unk")) == roles
    tokenizer = tiny("a|b", special_tokens=contents)
    names = (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token, tokenizer.unk_token)
    assert names == roles
    ids = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id)
    assert ids == tuple(name and tokenizer.special_tokens[name] for name in roles)


def test_the_well_known_sets() -> None:
    assert LLAMA3_SPECIAL_TOKENS == {
        "<|begin_of_text|>": 128000,
        "<|end_of_text|>": 128001,
        "<|reserved_special_token_0|>": 128002,
        "<|reserved_special_token_1|>": 128003,
        "<|finetune_right_pad_id|>": 128004,
        "<|reserved_special_token_2|>": 128005,
        "<|start_header_id|>": 128006,
        "<|end_header_id|>": 128007,
        "<|eom_id|>": 128008,
        "<|eot_id|>": 128009,
        "<|python_tag|>": 128010,
    }
    assert CHATML_SPECIAL_TOKENS == {"<|im_start|>": 32001, "<|im_end|>": 32002}


def test_roles_can_be_set_and_unset() -> None:
    def roles() -> tuple[str | None, int | None, str | None, int | None]:
        return tokenizer.bos_token, tokenizer.bos_token_id, tokenizer.eos_token, tokenizer.eos_token_id

    tokenizer = tiny("a|b", special_tokens=["<|start|>", "<|stop|>", "<eos>"])
    assert roles() == (None, None, "<eos>", 259)
    tokenizer.bos_token = "<|start|>"
    tokenizer.eos_token_id = 258
    assert roles() == ("<|start|>", 257, "<|stop|>", 258)
    assert tokenizer.encode("ab", add_special_tokens=True) == [257, 256, 258]
    assert dict(tokenizer.model.named_tokens) == {"bos": "<|start|>", "eos": "<|stop|>"}
    tokenizer.eos_token = None
    tokenizer.bos_token_id = None
    assert roles() == (None, None, None, None)
    assert tokenizer.encode("ab", add_special_tokens=True) == [256]
    assert dict(tokenizer.model.named_tokens) == {"bos": "", "eos": ""}
    assert pickle.loads(pickle.dumps(tokenizer)).eos_token is None
    tokenizer.add_special_tokens(["<bos>"])
    assert roles() == (None, None, None, None)
    tokenizer.eos_token = "<eos>"
    assert roles() == (None, None, "<eos>", 259)


def test_a_role_cannot_be_set_to_an_unknown_token() -> None:
    tokenizer = tiny("a|b", special_tokens=["<|start|>"])
    with pytest.raises(SpecialTokenError, match=r"bos_token cannot be '<\|star\|>'.*'<\|start\|>'"):
        tokenizer.bos_token = "<|star|>"
    with pytest.raises(SpecialTokenError, match="pad_token_id cannot be 5"):
        tokenizer.pad_token_id = 5
    assert (tokenizer.bos_token, tokenizer.pad_token) == (None, None)


def test_the_named_tokens_of_a_model_come_before_the_names() -> None:
    core = tiny("a|b", special_tokens=["<|pad|>", "<|endoftext|>"]).model.core
    tokenizer = BPETokenizer.from_model(Model(core, named_tokens={"pad": "<|endoftext|>", "bos": "missing"}))
    assert (tokenizer.pad_token, tokenizer.eos_token) == ("<|endoftext|>", "<|endoftext|>")
    assert tokenizer.bos_token is None


def test_special_tokens_can_be_added() -> None:
    tokenizer = tiny("a|b", special_tokens={"<x>": 300})
    before = tokenizer.model
    assert tokenizer.add_special_tokens(["<y>", "<x>", "<z>"]) == 2
    assert tokenizer.special_tokens == {"<x>": 300, "<y>": 301, "<z>": 302}
    assert tokenizer.add_special_tokens({"<w>": 257, "<x>": 300}) == 1
    assert tokenizer.add_special_tokens({"<w>": 257}) == tokenizer.add_special_tokens([]) == 0
    assert tokenizer.encode("ab<w><z>", allowed_special="all") == [256, 257, 302]
    assert tokenizer.decode([256, 302]) == "ab<z>"
    assert (tokenizer.vocab_size, len(tokenizer)) == (257, 261)
    assert [token[0] for token in before.core.added_tokens] == ["<x>"]


@pytest.mark.parametrize(
    ("special_tokens", "error", "message"),
    [
        ({"<x>": 301}, ModelError, "'<x>' has the id 300 already"),
        ({"<y>": 300}, ModelError, "'<y>' cannot get the id 300: it belongs to the token b'<x>'"),
        ({"<y>": 256}, ModelError, "it belongs to the token b'ab'"),
        ({"<y>": 65}, ModelError, "it belongs to the token b'A'"),
        ({"<y>": -5}, ModelError, "is -5"),
        ({"<y>": 2**32}, ModelError, "must be from 0 to 4,294,967,295"),
        ({"<y>": 400, "<z>": 400}, ModelError, "it belongs to the token b'<y>'"),
        (["<y>", "<y>"], ModelError, "listed twice"),
        ([""], ModelError, "empty"),
        ("<y>", TypeError, "not a str"),
        ([5], TypeError, "must be a str, not int"),
    ],
)
def test_conflicts_are_errors_and_change_nothing(
    special_tokens: Any, error: type[Exception], message: str
) -> None:
    tokenizer = tiny("a|b", special_tokens={"<x>": 300})
    with pytest.raises(error, match=message):
        tokenizer.add_special_tokens(special_tokens)
    assert tokenizer.special_tokens == {"<x>": 300}


# -- from_vocab -----------------------------------------------------------------------------------------


def test_the_properties_of_a_tokenizer_make_it_again(tokenizer: BPETokenizer, mixed_text: str) -> None:
    again = BPETokenizer.from_vocab(
        tokenizer.vocab,
        tokenizer.merges,
        tokenizer.special_tokens,
        split_pattern=tokenizer.split_pattern,
        normalization="NFC",
    )
    assert repr(again) == repr(tokenizer)
    assert (again.vocab, again.merges) == (tokenizer.vocab, tokenizer.merges)
    assert again.special_tokens == tokenizer.special_tokens
    assert (again.split_pattern, again.normalization) == (tokenizer.split_pattern, tokenizer.normalization)
    text = mixed_text + "<|eos|>"
    assert again.encode(text, allowed_special="all") == tokenizer.encode(text, allowed_special="all")


def test_from_vocab_has_the_defaults_of_train_bpe() -> None:
    tokenizer = tiny("a|b")
    assert (tokenizer.split_pattern, tokenizer.normalization) == (GPT2_SPLIT_PATTERN, None)


def test_from_vocab_finds_special_tokens_in_the_vocabulary() -> None:
    vocab = BYTES | {256: b"<a>", 257: b"ab"}
    for special_tokens in (["<a>", "<b>"], {"<a>": 256, "<b>": 258}):
        tokenizer = BPETokenizer.from_vocab(vocab, [(b"a", b"b")], special_tokens)
        assert tokenizer.special_tokens == {"<a>": 256, "<b>": 258}
        assert tokenizer.encode("ab<a><b>", allowed_special="all") == [257, 256, 258]
        assert (tokenizer.vocab_size, len(tokenizer)) == (258, 259)


@pytest.mark.parametrize(
    ("special_tokens", "message"),
    [
        ({"<a>": 300}, "'<a>' has the id 256 in vocab"),
        ({"<b>": 257}, "it belongs to the token b'ab'"),
        (["<b>", "<b>"], "listed twice"),
    ],
)
def test_from_vocab_refuses_conflicts(special_tokens: Any, message: str) -> None:
    vocab = BYTES | {256: b"<a>", 257: b"ab"}
    with pytest.raises(ModelError, match=message):
        BPETokenizer.from_vocab(vocab, [(b"a", b"b")], special_tokens)


def test_from_vocab_refuses_a_broken_vocabulary() -> None:
    with pytest.raises(ModelError):
        BPETokenizer.from_vocab({0: b"a"}, [])
    with pytest.raises(ModelError):
        BPETokenizer.from_vocab(BYTES, [(b"a", b"b")])
    with pytest.raises(OptionError):
        BPETokenizer.from_vocab(BYTES, [], normalization="nfc")  # type: ignore[arg-type]


def test_ids_are_ranks_without_merges() -> None:
    ranks = BYTES | {256: b"ab", 257: b"abc", 258: b"bc"}
    tokenizer = BPETokenizer.from_vocab(ranks, special_tokens={"<x>": 260}, split_pattern="cl100k")
    assert tokenizer.encode("abc bc") == [257, 32, 258]
    assert tokenizer.vocab == ranks | {260: b"<x>"}


@pytest.mark.fixtures
@pytest.mark.peer
@pytest.mark.parametrize("name", ["r50k", "cl100k", "o200k"])
def test_published_ranks_give_the_ids_of_tiktoken(
    name: str, stdlib_texts: list[str], mixed_text: str
) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    if "BPE_TOKENIZER_FIXTURES" not in os.environ:
        pytest.skip("BPE_TOKENIZER_FIXTURES is not set")
    path = Path(os.environ["BPE_TOKENIZER_FIXTURES"], "vocab", f"{name}_base.tiktoken")
    pairs = [line.split() for line in path.read_text().splitlines()]
    ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    special = {"<|endoftext|>": max(ranks.values()) + 1}
    peer = tiktoken.Encoding(
        name, pat_str=NAMED_PATTERNS[name].patterns[0], mergeable_ranks=ranks, special_tokens=special
    )
    ours = BPETokenizer.from_vocab({v: k for k, v in ranks.items()}, None, special, name)
    for text in (mixed_text, *stdlib_texts):
        assert ours.encode(text) == peer.encode(text, disallowed_special=())
    text = "a<|endoftext|>b"
    assert ours.encode(text, allowed_special="all") == peer.encode(text, allowed_special="all")


# -- batches --------------------------------------------------------------------------------------------


def test_a_batch_is_a_list_of_results(tokenizer: BPETokenizer) -> None:
    texts = ["def f(x):", "", "naïve"]
    results = tokenizer.encode_batch(texts)
    assert [result.input_ids for result in results] == [tokenizer.encode(text) for text in texts]
    for result, text in zip(results, texts, strict=True):
        assert isinstance(result, EncodingResult)
        assert result.attention_mask == [1] * len(result)
        assert result.tokens == tokenizer.tokenize(text)
        assert result.token_type_ids is None
        assert len(result) == len(result.input_ids)
    assert tokenizer.encode_batch([]) == []
    assert tokenizer.encode_batch(iter(texts)) == tokenizer.encode_batch(tuple(texts)) == results
    assert tokenizer.encode_batch(texts, threads=1) == tokenizer.encode_batch(texts, threads=5) == results
    assert pickle.loads(pickle.dumps(results)) == results
    assert results[0] != results[1]
    assert results[0] != "def f(x):"
    assert repr(results[1]) == "EncodingResult(input_ids=[], attention_mask=[])"


def test_a_large_batch_keeps_its_order(tokenizer: BPETokenizer, stdlib_texts: list[str]) -> None:
    lines = [line for text in stdlib_texts for line in text.splitlines(keepends=True)]
    expected = [tokenizer.encode(line) for line in lines]
    for threads in (1, 2, 7, None):
        assert [result.input_ids for result in tokenizer.encode_batch(lines, threads=threads)] == expected
        flat, offsets = tokenizer.encode_ragged(lines, threads=threads)
        rows = [flat[a:b].tolist() for a, b in pairwise(offsets)]
        assert rows == expected


def test_padding(tokenizer: BPETokenizer) -> None:
    texts = ["\0\0\0", "\0"]
    rows = [[0, 0, 0], [0, 258, 258]]
    for padding in (True, "longest"):
        results = tokenizer.encode_batch(texts, padding=padding)
        assert [result.input_ids for result in results] == rows
        assert [result.attention_mask for result in results] == [[1, 1, 1], [1, 0, 0]]
        assert results[1].tokens == ["Ā", "<|pad|>", "<|pad|>"]
    wide = tokenizer.encode_batch(texts, padding="max_length", max_length=5)
    assert [len(result) for result in wide] == [5, 5]
    capped = tokenizer.encode_batch(texts, padding=True, max_length=2)
    assert [result.input_ids for result in capped] == [[0, 0, 0], [0, 258]]


def test_padding_without_a_pad_token_is_0() -> None:
    results = tiny("a|b").encode_batch(["abc", "c"], padding=True)
    assert [result.input_ids for result in results] == [[256, 99], [99, 0]]
    assert [result.attention_mask for result in results] == [[1, 1], [1, 0]]


def test_truncation_keeps_what_was_added(tokenizer: BPETokenizer) -> None:
    texts = ["\0\0\0\0", "\0"]
    cut = tokenizer.encode_batch(texts, truncation=True, max_length=3)
    assert [result.input_ids for result in cut] == [[0, 0, 0], [0]]
    around = tokenizer.encode_batch(texts, add_special_tokens=True, truncation=True, max_length=3)
    assert [result.input_ids for result in around] == [[256, 0, 257], [256, 0, 257]]
    bare = tokenizer.encode_batch(texts, add_special_tokens=True, truncation=True, max_length=2)
    assert [result.input_ids for result in bare] == [[256, 257], [256, 257]]
    padded = tokenizer.encode_batch(texts, truncation=True, max_length=3, padding=True)
    assert [result.input_ids for result in padded] == [[0, 0, 0], [0, 258, 258]]


def test_arrays(tokenizer: BPETokenizer) -> None:
    texts = ["\0\0\0\0", "\0", ""]
    arrays = tokenizer.encode_batch(texts, add_special_tokens=True, padding=True, return_tensors="np")
    assert list(arrays) == ["input_ids", "attention_mask"]
    assert arrays["input_ids"].tolist() == [
        [256, 0, 0, 0, 0, 257],
        [256, 0, 257, 258, 258, 258],
        [256, 257, 258, 258, 258, 258],
    ]
    assert arrays["attention_mask"].tolist() == [[1] * 6, [1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0]]
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.int64)}
    cut = tokenizer.encode_batch(texts[:1], truncation=True, max_length=2, return_tensors="np")
    assert cut["input_ids"].tolist() == [[0, 0]]
    wide = tokenizer.encode_batch(texts[1:], padding="max_length", max_length=3, return_tensors="np")
    assert wide["input_ids"].tolist() == [[0, 258, 258], [258, 258, 258]]
    assert tokenizer.encode_batch(["\0", "\0"], return_tensors="np")["input_ids"].shape == (2, 1)
    assert tokenizer.encode_batch([], return_tensors="np")["input_ids"].shape == (0, 0)
    assert tokenizer.encode_batch([""], return_tensors="np")["attention_mask"].shape == (1, 0)


@given(
    texts=st.lists(st.text("ab \0é", max_size=6), max_size=5),
    add=st.booleans(),
    truncation=st.booleans(),
    max_length=st.integers(2, 8),
    padding=st.sampled_from([True, "max_length"]),
)
@relaxed
def test_arrays_hold_what_results_hold(
    tokenizer: BPETokenizer, texts: list[str], add: bool, truncation: bool, max_length: int, padding: Any
) -> None:
    options: dict[str, Any] = {
        "add_special_tokens": add, "truncation": truncation, "max_length": max_length, "padding": padding
    }  # fmt: skip
    results = tokenizer.encode_batch(texts, **options)
    if len({len(result) for result in results}) > 1:
        with pytest.raises(OptionError, match="rows of one length"):
            tokenizer.encode_batch(texts, return_tensors="np", **options)
        return
    arrays = tokenizer.encode_batch(texts, return_tensors="np", **options)
    assert arrays["input_ids"].tolist() == [result.input_ids for result in results]
    assert arrays["attention_mask"].tolist() == [result.attention_mask for result in results]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"truncation": True}, OptionError, "truncation=True needs max_length"),
        ({"padding": "max_length"}, OptionError, "needs max_length"),
        ({"padding": "left"}, OptionError, "padding is 'left'"),
        ({"max_length": 0}, OptionError, "max_length is 0"),
        ({"max_length": "5"}, TypeError, "max_length must be an int, not str"),
        ({"max_length": True}, TypeError, "max_length must be an int, not bool"),
        ({"truncation": True, "max_length": 1, "add_special_tokens": True}, OptionError, "no room for the 2"),
        ({"return_tensors": "np"}, OptionError, "rows of one length.*1 to 2 ids.*padding=True"),
        ({"return_tensors": "np", "padding": True, "max_length": 1}, OptionError, "rows of one length"),
        ({"return_tensors": "tf"}, OptionError, "return_tensors is 'tf'"),
        ({"threads": 0}, OptionError, "threads is 0"),
        ({"threads": 1.0}, TypeError, "threads must be an int"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tokenizer: BPETokenizer, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tokenizer.encode_batch(["\0", "\0\0"], **options)


@pytest.mark.parametrize("texts", ["a", b"a", 5, None, ["a", 5], ["a", None], [b"a"]])
def test_a_batch_is_of_texts(tokenizer: BPETokenizer, texts: Any) -> None:
    for batch in (tokenizer.encode_batch, tokenizer.encode_ragged):
        with pytest.raises(TypeError, match="expects a list of str"):
            batch(texts)


def test_pytorch_is_asked_for_by_its_install_command(
    tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match="pip install torch") as caught:
        tokenizer.encode_batch(["a"], return_tensors="pt")
    assert isinstance(caught.value, ImportError)


def test_tensors_are_made_of_the_arrays(tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = types.ModuleType("torch")
    setattr(stand_in, "from_numpy", lambda array: ("tensor", array))  # noqa: B010
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    tensors = tokenizer.encode_batch(["\0", "\0\0"], padding=True, return_tensors="pt")
    arrays = tokenizer.encode_batch(["\0", "\0\0"], padding=True, return_tensors="np")
    assert isinstance(tensors, dict)
    for name, array in arrays.items():
        kind, shared = tensors[name]
        assert kind == "tensor"
        assert shared.dtype == np.int64
        assert shared.tolist() == array.tolist()


def test_pytorch(tokenizer: BPETokenizer) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    tensors = tokenizer.encode_batch(["\0", "\0\0"], padding=True, return_tensors="pt")
    assert isinstance(tensors, dict)
    assert tensors["input_ids"].dtype == tensors["attention_mask"].dtype == torch.int64
    assert tensors["input_ids"].tolist() == [[0, 258], [0, 0]]
    assert tokenizer.decode(tensors["input_ids"][0]) == "\0<|pad|>"


def test_call(tokenizer: BPETokenizer) -> None:
    assert tokenizer("hello") == tokenizer.encode("hello")
    assert tokenizer(["hello"]) == tokenizer.encode_batch(["hello"])
    assert tokenizer("hello", add_special_tokens=True) == tokenizer.encode("hello", add_special_tokens=True)
    assert tokenizer("\0\0\0", truncation=True, max_length=2) == [0, 0]
    assert isinstance(tokenizer(["a"], return_tensors="np"), dict)
    for options in ({"padding": True}, {"return_tensors": "np"}):
        with pytest.raises(OptionError, match="put the text into a list"):
            tokenizer("a", **options)
    wrong: list[Any] = [5, None, b"a"]
    for text in wrong:
        with pytest.raises(TypeError, match="str"):
            tokenizer(text)


# -- offsets --------------------------------------------------------------------------------------------


@given(text=hard_texts)
@example("e\u0301\u0301x")
@relaxed
def test_spans_tile_the_text(tokenizer: BPETokenizer, text: str) -> None:
    ids, spans = tokenizer.encode_with_offsets(text, allowed_special="all")
    assert len(ids) == len(spans)
    joined = [0, *(end for _, end in spans)]
    assert [start for start, _ in spans] == joined[:-1]
    assert joined[-1] == len(text)


@given(text=hard_texts)
@relaxed
def test_byte_spans_are_the_bytes_of_the_tokens(plain_tokenizer: BPETokenizer, text: str) -> None:
    data = without_surrogates(text).encode()
    ids, spans = plain_tokenizer.encode_with_offsets(text, unit="byte")
    assert [data[start:end] for start, end in spans] == [plain_tokenizer.vocab[token_id] for token_id in ids]
    assert b"".join(data[start:end] for start, end in spans) == data


def test_spans_that_overlap_cover_whole_characters() -> None:
    tokenizer = tiny("a|b")
    assert tokenizer.encode_with_offsets("abé") == ([256, 195, 169], [(0, 2), (2, 2), (2, 3)])
    assert tokenizer.encode_with_offsets("abé", tile=False)[1] == [(0, 2), (2, 3), (2, 3)]
    assert tokenizer.encode_with_offsets("éab", unit="byte", tile=False)[1] == [(0, 1), (1, 2), (2, 4)]


def test_added_tokens_have_empty_spans(tokenizer: BPETokenizer) -> None:
    ids, spans = tokenizer.encode_with_offsets("\0\0é", add_special_tokens=True)
    assert (ids[0], ids[-1], spans[0], spans[-1]) == (256, 257, (0, 0), (3, 3))
    assert tokenizer.encode_with_offsets("\0é", add_special_tokens=True, unit="byte")[1][-1] == (3, 3)
    assert tokenizer.encode_with_offsets("\0é", add_special_tokens=True, tile=False)[1][-1] == (0, 0)
    assert tokenizer.encode_with_offsets("", add_special_tokens=True)[1] == [(0, 0), (0, 0)]


def test_an_unknown_unit_is_refused(tokenizer: BPETokenizer) -> None:
    with pytest.raises(OptionError, match="unit is 'word'"):
        tokenizer.encode_with_offsets("a", unit="word")  # type: ignore[arg-type]


# -- decoding -------------------------------------------------------------------------------------------


def test_ids_come_in_every_form() -> None:
    tokenizer = tiny("h|i")
    forms: list[Any] = [
        [256, 33],
        (256, 33),
        iter([256, 33]),
        np.array([256, 33]),
        np.array([256, 33], dtype=np.uint32),
        [np.int64(256), np.uint8(33)],
    ]
    for ids in forms:
        assert tokenizer.decode(ids) == "hi!"
    for single in (256, np.int32(256), np.array(256)):
        assert tokenizer.decode(single) == "hi"
        assert tokenizer.decode_bytes(single) == b"hi"
    assert tokenizer.decode(range(97, 100)) == "abc"


some_ids = st.lists(
    st.one_of(
        st.integers(0, 1100), st.integers(-3, 2**34), st.sampled_from([2**32 - 1, 2**63 - 1, 2**64 - 1])
    )
    | st.just(97)
)
usual_ids = st.lists(st.sampled_from([*range(256), 256, 257, 1000, 40_000_000]), max_size=40)


@given(ids=some_ids | usual_ids, skip=st.booleans())
@relaxed
def test_every_form_of_ids_is_decoded_like_one_id_after_the_other(ids: list[int], skip: bool) -> None:
    tokenizer = tiny("h|i", special_tokens={"<|a|>": 257, "<|longer than sixteen bytes|>": 40_000_000})
    vocab = tokenizer.vocab | {id_: text.encode() for text, id_ in tokenizer.special_tokens.items()}
    special = set(tokenizer.special_tokens.values())

    at = next((at for at, i in enumerate(ids) if not 0 <= i < 2**32), None)
    if at is None:
        at = next((at for at, i in enumerate(ids) if i not in vocab), None)
    unknown = None if at is None else f"id {ids[at]} at position {at} is not"
    expected = b"".join(vocab.get(i, b"") for i in ids if not (skip and i in special))
    forms: list[Any] = [ids, tuple(ids), iter(ids), Numbers(ids), [*map(Number, ids)]]
    for dtype in ("uint8", "uint16", "int32", "uint32", "int64", "uint64", ">i4", "object"):
        kind = np.dtype(dtype)
        if kind.kind == "O" or all(np.iinfo(kind).min <= i <= np.iinfo(kind).max for i in ids):
            array = np.array(ids, dtype=kind)
            forms += [array, np.repeat(array, 2)[::2], array[::-1][::-1]]
    for form in forms:
        if unknown:
            with pytest.raises(UnknownIdError, match=unknown):
                tokenizer.decode_bytes(form, skip)
        else:
            assert tokenizer.decode_bytes(form, skip) == expected
    if not unknown:
        text = expected.decode(errors="replace")
        assert tokenizer.decode(ids, skip) == text
        assert tokenizer.decode_batch([ids, tuple(ids)], skip) == [text, text]


class Number(int):
    """An `int` that is none itself."""


class Numbers(list[int]):
    """A list that is none itself."""


class Shrinking:
    """An id that empties the list it is in when it is looked at."""

    def __init__(self, ids: list[Any]) -> None:
        self.ids = ids

    def __index__(self) -> int:
        self.ids.clear()
        return 98


def test_a_list_may_change_while_it_is_read() -> None:
    ids: list[Any] = [97] * 100
    ids[50] = Shrinking(ids)
    assert tiny().decode(ids) == "a" * 50 + "b"


def test_arrays_of_other_kinds(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    np.array([97, 98], dtype=np.uint16).tofile(tmp_path / "ids")
    assert tokenizer.decode(np.memmap(tmp_path / "ids", dtype=np.uint16)) == "ab"
    with pytest.raises(TypeError, match="None at position 1"):
        tokenizer.decode(np.ma.masked_array([97, 98], [False, True]))
    unaligned = np.frombuffer(b"\0" + np.array([97, 98], dtype=np.uint32).tobytes(), np.uint8)[1:]
    assert tokenizer.decode(unaligned.view(np.uint32)) == "ab"


def test_lists_of_ids_own_their_integers() -> None:
    tokenizer = tiny("h|i", "hi|hi")
    text = "hihi " * 20_000
    ids = tokenizer.encode(text)
    assert ids == tokenizer.encode_to_numpy(text).tolist() == [257, 32] * 20_000
    kept = tokenizer.encode(text)[0]
    before = sys.getrefcount(kept)
    more = tokenizer.encode(text)
    assert more[0] is kept
    assert sys.getrefcount(kept) == before + more.count(257)
    del more
    assert sys.getrefcount(kept) == before


@pytest.mark.parametrize("ids", ["hi", b"hi", None, 1.5, [1.5], ["a"], [None], np.array([1.5]), [[1, 2]]])
def test_ids_of_the_wrong_type_are_a_type_error(tokenizer: BPETokenizer, ids: Any) -> None:
    for decode in (tokenizer.decode, tokenizer.decode_bytes):
        with pytest.raises(TypeError):
            decode(ids)


def test_a_matrix_is_pointed_to_decode_batch(tokenizer: BPETokenizer) -> None:
    with pytest.raises(TypeError, match="decode_batch"):
        tokenizer.decode(np.zeros((2, 2), dtype=np.int64))


@pytest.mark.parametrize("unknown", [1000, 5000, 2**32 - 1, 2**32, 2**40, 2**70, -1, -(2**70)])
def test_an_unknown_id_is_named(tokenizer: BPETokenizer, unknown: int) -> None:
    uses: list[Callable[[], object]] = [
        lambda: tokenizer.decode([65, unknown]),
        lambda: tokenizer.decode(unknown),
        lambda: tokenizer.decode_bytes([unknown], skip_special_tokens=True),
        lambda: tokenizer.decode_batch([[65], [unknown]]),
    ]
    for use in uses:
        with pytest.raises(UnknownIdError, match=f"{unknown}(?!\\d)") as caught:
            use()
        assert isinstance(caught.value, KeyError)


def test_special_tokens_can_be_left_out(tokenizer: BPETokenizer) -> None:
    ids = tokenizer.encode("a<|eos|>b", add_special_tokens=True, allowed_special="all")
    assert tokenizer.decode(ids) == "<|bos|>a<|eos|>b<|eos|>"
    assert tokenizer.decode(ids, skip_special_tokens=True) == "ab"
    assert tokenizer.decode_bytes(ids, skip_special_tokens=True) == b"ab"
    assert tokenizer.decode_batch([ids], skip_special_tokens=True) == ["ab"]


def test_bytes_that_are_no_text(tokenizer: BPETokenizer) -> None:
    ids = [*b"a\xe2\x82b"]
    assert tokenizer.decode(ids) == "a\ufffdb"
    assert tokenizer.decode(ids, errors="ignore") == "ab"
    assert tokenizer.decode(ids, errors="backslashreplace") == "a\\xe2\\x82b"
    assert tokenizer.decode_batch([ids], errors="ignore") == ["ab"]
    for decode in (tokenizer.decode, lambda ids, errors: tokenizer.decode_batch([ids], errors=errors)):
        with pytest.raises(DecodingError):
            decode(ids, errors="strict")
        with pytest.raises(OptionError, match="errors is 'wrong'"):
            decode([97], errors="wrong")


def test_a_batch_is_decoded_without_its_padding(tokenizer: BPETokenizer) -> None:
    texts = ["one", "three words here", ""]
    for batch in (
        tokenizer.encode_batch(texts, padding=True, return_tensors="np")["input_ids"],
        [result.input_ids for result in tokenizer.encode_batch(texts, padding=True)],
        iter([tokenizer.encode(text) for text in texts]),
    ):
        assert tokenizer.decode_batch(batch) == texts
    assert tokenizer.decode_batch([[65, 258]], skip_padding=False) == ["A<|pad|>"]
    assert tiny("a|b").decode_batch([[65, 0]]) == ["A\0"]
    assert tokenizer.decode_batch([]) == []
    with pytest.raises(TypeError, match="item 1 of the batch is an id"):
        tokenizer.decode_batch([[65], 66])


# -- tokens and ids -------------------------------------------------------------------------------------


def test_token_strings_are_gpt2s_printable_characters(tokenizer: BPETokenizer) -> None:
    tokens = tokenizer.tokenize(" \0é\n<|eos|>", allowed_special={"<|eos|>"})
    assert "".join(tokens) == "ĠĀÃ©Ċ<|eos|>"
    assert tokenizer.convert_tokens_to_string(tokens) == " \0é\n<|eos|>"
    assert tokenizer.tokenize("a", add_special_tokens=True) == ["<|bos|>", "a", "<|eos|>"]


def test_get_vocab(tokenizer: BPETokenizer) -> None:
    vocab = tokenizer.get_vocab()
    assert len(vocab) == 1000
    assert list(vocab.values()) == sorted(vocab.values())
    assert (vocab["A"], vocab["Ġ"], vocab["<|pad|>"]) == (65, 32, 258)
    assert {token_id: tokenizer.decode_bytes(token_id) for token_id in vocab.values()} == tokenizer.vocab


def test_tokens_and_ids_convert(tokenizer: BPETokenizer) -> None:
    vocab = tokenizer.get_vocab()
    assert tokenizer.convert_ids_to_tokens(list(vocab.values())) == list(vocab)
    assert tokenizer.convert_tokens_to_ids(list(vocab)) == list(vocab.values())
    assert tokenizer.convert_tokens_to_ids("<|eos|>") == 257
    assert tokenizer.convert_tokens_to_ids("no token") == -1
    assert tokenizer.convert_tokens_to_ids(["a", "日", "a"]) == [97, -1, 97]
    assert tokenizer.convert_ids_to_tokens(257) == "<|eos|>"
    assert tokenizer.convert_ids_to_tokens(np.array([97, 32])) == ["a", "Ġ"]
    assert tokenizer.convert_ids_to_tokens([5000, -1, 2**40, 97]) == ["", "", "", "a"]
    assert tokenizer.convert_ids_to_tokens(-1) == ""


def test_tokens_make_text(tokenizer: BPETokenizer) -> None:
    assert tokenizer.convert_tokens_to_string([]) == ""
    assert tokenizer.convert_tokens_to_string(["Ã", "©"]) == "é"
    assert tokenizer.convert_tokens_to_string(["Ã"]) == "\ufffd"
    assert tokenizer.convert_tokens_to_string(["日", "a"]) == "日a"
    with pytest.raises(TypeError, match="list of token strings"):
        tokenizer.convert_tokens_to_string("abc")


@given(text=hard_texts)
@relaxed
def test_tokens_of_a_text_make_it_again(plain_tokenizer: BPETokenizer, text: str) -> None:
    tokens = plain_tokenizer.tokenize(text)
    assert plain_tokenizer.convert_tokens_to_string(tokens) == without_surrogates(text)


def test_an_added_token_comes_before_the_bytes_it_is_spelt_with() -> None:
    tokenizer = tiny("a|b", special_tokens={"Ġ": 300})
    assert tokenizer.convert_tokens_to_ids("Ġ") == tokenizer.get_vocab()["Ġ"] == 300
    assert tokenizer.convert_ids_to_tokens([300, 32]) == ["Ġ", "Ġ"]
    assert tokenizer.convert_tokens_to_string(["Ġ"]) == "Ġ"


def test_what_properties_return_can_be_changed_without_harm(tokenizer: BPETokenizer) -> None:
    before = (
        len(tokenizer.vocab),
        len(tokenizer.merges),
        len(tokenizer.special_tokens),
        len(tokenizer.get_vocab()),
    )
    tokenizer.vocab.clear()
    tokenizer.merges.clear()
    tokenizer.special_tokens.clear()
    tokenizer.get_vocab().clear()
    after = (
        len(tokenizer.vocab),
        len(tokenizer.merges),
        len(tokenizer.special_tokens),
        len(tokenizer.get_vocab()),
    )
    assert after == before


# -- limits ---------------------------------------------------------------------------------------------


@given(text=hard_texts, limit=st.integers(0, 12), add=st.booleans())
@relaxed
def test_a_truncated_text_fits(tokenizer: BPETokenizer, text: str, limit: int, add: bool) -> None:
    limit += 2 * add
    cut = tokenizer.truncate(text, limit, add_special_tokens=add, allowed_special="all")
    assert text.startswith(cut)
    assert tokenizer.count_tokens(cut, add_special_tokens=add, allowed_special="all") <= limit
    if tokenizer.count_tokens(text, add_special_tokens=add, allowed_special="all") <= limit:
        assert cut == text


def test_truncate_never_ends_inside_a_character() -> None:
    tokenizer = tiny("a|b")
    assert [tokenizer.truncate("abé!", limit) for limit in range(5)] == ["", "ab", "ab", "abé", "abé!"]


@pytest.mark.parametrize(("limit", "error"), [(-1, OptionError), (1.5, TypeError), ("5", TypeError)])
def test_an_impossible_limit_is_refused(tokenizer: BPETokenizer, limit: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="max_tokens"):
        tokenizer.truncate("a", limit)
    with pytest.raises(OptionError, match="max_tokens is 1; it must be at least 2"):
        tokenizer.truncate("a", 1, add_special_tokens=True)


@given(text=hard_texts, limit=st.integers(4, 12), data=st.data())
@relaxed
def test_chunks_fit_and_cover_the_text(
    tokenizer: BPETokenizer, text: str, limit: int, data: st.DataObject
) -> None:
    chunks = tokenizer.split_by_tokens(text, limit, allowed_special="all")
    assert "".join(chunks) == text
    assert all(1 <= tokenizer.count_tokens(chunk, allowed_special="all") <= limit for chunk in chunks)
    overlap = data.draw(st.integers(1, limit - 1))
    overlapping = tokenizer.split_by_tokens(text, limit, overlap, allowed_special="all")
    assert all(tokenizer.count_tokens(chunk, allowed_special="all") <= limit for chunk in overlapping)
    covered = 0
    for chunk in overlapping:
        start = text.find(chunk)
        # Repeated text may stand in several places: the latest that leaves no gap is as good as any.
        while (later := text.find(chunk, start + 1)) != -1 and later <= covered:
            start = later
        assert 0 <= start <= covered
        covered = max(covered, start + len(chunk))
    assert covered == len(text)


def test_chunks_share_exactly_the_overlap() -> None:
    tokenizer = tiny("a|b")
    assert tokenizer.split_by_tokens("ab c ab!é", 3) == ["ab c", " ab!", "é"]
    assert tokenizer.split_by_tokens("ababab", 2, 1) == ["abab", "abab"]
    assert tokenizer.split_by_tokens("0123456789", 4, 2) == ["0123", "2345", "4567", "6789"]
    assert tokenizer.split_by_tokens("0123456", 4, 3) == ["0123", "1234", "2345", "3456"]
    # A token boundary inside a character moves to its start.
    assert tokenizer.split_by_tokens("12é34", 4, 1) == ["12é", "é34"]


def test_chunks_of_real_text_are_full(tokenizer: BPETokenizer, stdlib_texts: list[str]) -> None:
    text = stdlib_texts[0]
    chunks = tokenizer.split_by_tokens(text, 100)
    assert "".join(chunks) == text
    counts = [tokenizer.count_tokens(chunk) for chunk in chunks]
    assert max(counts) <= 100
    assert len(chunks) <= 1.05 * tokenizer.count_tokens(text) / 100 + 1


def test_a_long_text_is_cut_in_linear_time(tokenizer: BPETokenizer) -> None:
    for text in ("x" * 300_000, " " * 300_000, "a\n" * 150_000):
        assert "".join(tokenizer.split_by_tokens(text, 16)) == text


def test_a_character_that_does_not_fit_is_named(tokenizer: BPETokenizer) -> None:
    with pytest.raises(
        OptionError, match="max_tokens=2 is less than the 4 ids of the character '𝔸' at position 1"
    ):
        tokenizer.split_by_tokens("a𝔸", 2)


@pytest.mark.parametrize(
    ("limit", "overlap", "message"),
    [
        (0, 0, "max_tokens is 0; it must be at least 1"),
        (-5, 0, "max_tokens is -5"),
        (5, -1, "overlap is -1; it must be at least 0"),
        (5, 5, "overlap is 5; it must be less than max_tokens=5"),
        (5, 9, "overlap is 9"),
    ],
)
def test_impossible_chunks_are_refused(
    tokenizer: BPETokenizer, limit: int, overlap: int, message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        tokenizer.split_by_tokens("some text", limit, overlap)


# -- cache, copies, threads, processes ------------------------------------------------------------------


def test_the_cache_counts(plain_tokenizer: BPETokenizer) -> None:
    tokenizer = BPETokenizer.from_model(plain_tokenizer.model)
    fresh = tokenizer.get_cache_stats()
    assert sorted(fresh) == ["hit_rate_pct", "hits", "misses", "size"]
    assert (fresh["hits"], fresh["misses"], fresh["hit_rate_pct"]) == (0, 0, 0.0)
    ids = tokenizer.encode("unprecedented unprecedented unprecedented")
    used = tokenizer.get_cache_stats()
    assert used["hits"] >= 1
    assert used["misses"] >= 1
    assert used["hit_rate_pct"] == pytest.approx(100 * used["hits"] / (used["hits"] + used["misses"]))
    tokenizer.clear_cache()
    cleared = tokenizer.get_cache_stats()
    assert (cleared["hits"], cleared["misses"]) == (0, 0)
    assert tokenizer.encode("unprecedented unprecedented unprecedented") == ids


@pytest.mark.parametrize("limit", [0, 1, 180_000, 190_000, 4 << 20])
def test_a_limited_cache_changes_no_id(plain_tokenizer: BPETokenizer, mixed_text: str, limit: int) -> None:
    tokenizer = BPETokenizer.from_model(plain_tokenizer.model)
    words = [f"{mixed_text} word{number:x} {number * 7919}" for number in range(3000)]
    expected = [tokenizer.encode(word) for word in words]
    tokenizer.limit_cache(limit)
    assert [tokenizer.encode(word) for word in words] == expected
    if limit < 180_001:
        assert tokenizer.get_cache_stats()["size"] == 0
        assert tokenizer.get_cache_stats()["misses"] > len(words)
    else:
        assert 32 * 1000 < 32 * tokenizer.get_cache_stats()["size"] < limit
    # What is made in its place has the same limit.
    tokenizer.add_special_tokens(["<|limit|>"])
    tokenizer.encode("unprecedented")
    assert (tokenizer.get_cache_stats()["size"] == 0) == (limit < 180_001)


def test_an_impossible_limit_of_the_cache_is_refused(tokenizer: BPETokenizer) -> None:
    for limit in (-1, 1.5, "1MB"):
        with pytest.raises((OptionError, ArgumentTypeError), match="max_bytes"):
            tokenizer.limit_cache(limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickling(tokenizer: BPETokenizer, mixed_text: str, protocol: int) -> None:
    again = pickle.loads(pickle.dumps(tokenizer, protocol))
    assert type(again) is BPETokenizer
    assert repr(again) == repr(tokenizer)
    assert again.encode(mixed_text, True, "all") == tokenizer.encode(mixed_text, True, "all")
    assert (again.split_pattern, again.normalization) == (tokenizer.split_pattern, tokenizer.normalization)
    assert again.special_tokens == tokenizer.special_tokens
    untrained = pickle.loads(pickle.dumps(BPETokenizer("deepseek-v3", "NFD"), protocol))
    assert repr(untrained) == repr(BPETokenizer("deepseek-v3", "NFD"))


def test_all_of_a_model_is_pickled(tokenizer: BPETokenizer) -> None:
    model = Model(
        tokenizer.model.core,
        named_tokens={"pad": "<|eos|>"},
        post_processor=PostProcessor((258,), ()),
        config=types.MappingProxyType({"model_max_length": 512}),
    )
    again = pickle.loads(pickle.dumps(BPETokenizer.from_model(model)))
    assert again.pad_token == "<|eos|>"
    assert again.encode("", add_special_tokens=True) == [258]
    assert dict(again.model.config) == {"model_max_length": 512}


def test_copies_go_their_own_ways(tokenizer: BPETokenizer) -> None:
    for make in (copy.copy, copy.deepcopy):
        copied = make(tokenizer)
        assert copied.encode("hello") == tokenizer.encode("hello")
        assert copied.add_special_tokens(["<|more|>"]) == 1
        copied.bos_token = "<|more|>"
        assert "<|more|>" not in tokenizer.special_tokens
        assert tokenizer.bos_token == "<|bos|>"
    untrained = copy.copy(BPETokenizer())
    assert untrained.train("aa aa", 257, verbose=False).encode("aa") == [256]


def test_threads_share_a_tokenizer(tokenizer: BPETokenizer, stdlib_texts: list[str]) -> None:
    expected = [tokenizer.encode(text) for text in stdlib_texts]
    fresh = BPETokenizer.from_model(tokenizer.model)
    barrier = threading.Barrier(8)

    def work(number: int) -> bool:
        barrier.wait()
        places = [(number + step) % len(stdlib_texts) for step in range(len(stdlib_texts))]
        return all(
            fresh.encode(stdlib_texts[place]) == expected[place]
            and fresh.decode(expected[place]) == tokenizer.decode(expected[place])
            for place in places
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_special_tokens_can_be_added_while_others_encode(tokenizer: BPETokenizer) -> None:
    shared = copy.copy(tokenizer)
    expected = tokenizer.encode("some text")
    with ThreadPoolExecutor(4) as pool:
        encodings = [pool.submit(shared.encode, "some text") for _ in range(200)]
        for number in range(20):
            shared.add_special_tokens([f"<|{number}|>"])
        assert all(encoding.result() == expected for encoding in encodings)
    assert len(shared.special_tokens) == 24


def encode_in_child(tokenizer: BPETokenizer, texts: list[str]) -> list[list[int]]:
    return [result.input_ids for result in tokenizer.encode_batch(texts)]


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_processes_encode(tokenizer: BPETokenizer, stdlib_texts: list[str], method: str) -> None:
    texts = [text[:5000] for text in stdlib_texts]
    # Used before the fork, so that the cache and the threads of the core are there.
    expected = encode_in_child(tokenizer, texts)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.starmap_async(encode_in_child, [(tokenizer, texts)] * 2).get(timeout=60) == [expected] * 2


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_tokenizer_encodes_and_trains(tokenizer: BPETokenizer, stdlib_texts: list[str]) -> None:
    expected = encode_in_child(tokenizer, stdlib_texts)
    child = os.fork()
    if child == 0:
        ok = encode_in_child(tokenizer, stdlib_texts) == expected
        trained = BPETokenizer().train(stdlib_texts[:2], 300, verbose=False)
        os._exit(0 if ok and len(trained.merges) == 44 else 1)
    assert os.waitpid(child, 0)[1] == 0


# -- files ----------------------------------------------------------------------------------------------


def test_a_saved_tokenizer_comes_back(
    tokenizer: BPETokenizer, tmp_path: Path, mixed_text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer.save(tmp_path / "saved")
    again = BPETokenizer.from_pretrained(str(tmp_path / "saved"))
    assert capsys.readouterr() == ("", "")
    assert repr(again) == repr(tokenizer)
    text = mixed_text + "<|eos|>"
    assert again.encode(text, True, "all") == tokenizer.encode(text, True, "all")
    assert again.special_tokens == tokenizer.special_tokens
    assert (again.bos_token, again.pad_token_id) == ("<|bos|>", 258)
    again.bos_token, again.unk_token = None, "<|eos|>"
    again.save(tmp_path / "other")
    other = BPETokenizer.from_pretrained(tmp_path / "other")
    assert (other.bos_token, other.eos_token_id, other.unk_token_id) == (None, 257, 257)
    tokenizer.save(tmp_path / "saved", verbose=True)
    BPETokenizer.from_pretrained(tmp_path / "saved", verbose=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Saved BPETokenizer(" in shown.err
    assert "Loaded BPETokenizer(" in shown.err
