"""Hugging Face files without Hugging Face: round trips, every refusal, broken files, crashes while saving.

tests/peers compares the same files with `tokenizers` and `transformers` themselves.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import (
    GPT2_SPLIT_PATTERN,
    AddedToken,
    BPETokenizer,
    FormatError,
    Model,
    OptionError,
    PostProcessor,
    TokenizerError,
    _core,
)
from bpe_tokenizer.formats import huggingface
from bpe_tokenizer.formats.huggingface.regex import objection
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hf_files import (
    BYTE_LEVEL,
    LLAMA3_REGEX,
    added_token,
    byte_level,
    bytes_vocab,
    sequence,
    split,
    template,
    tokenizer_json,
    write,
)
from hostile import hostile_texts
from sampling import DAY, sample, sample_size

SIZE = 256


def contents(model: Model) -> dict[str, Any]:
    """Everything a model is, roles by what they amount to."""
    core = model.core
    tokenizer = BPETokenizer.from_model(model)
    return {
        "vocab": core.vocab,
        "vocab_size": core.vocab_size,
        "merges": core.merges,
        "normalizers": core.normalizers,
        "pre_tokenizers": core.pre_tokenizers,
        "alphabet": core.alphabet,
        "unknown": (core.unk_id, core.fuse_unk, core.byte_fallback),
        "decoder": core.decoder,
        "added_tokens": core.added_tokens,
        "ignore_merges": core.ignore_merges,
        "roles": [getattr(tokenizer, f"{role}_token") for role in ("bos", "eos", "pad", "unk")],
        "post_processor": model.post_processor,
        "config": dict(model.config),
    }


def round_trip(model: Model, directory: Path) -> Model:
    huggingface.save(model, directory)
    loaded = huggingface.load(directory)
    assert contents(loaded) == contents(model)
    return loaded


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def small_model(*added: AddedToken, **settings: Any) -> Model:
    vocab = {byte: bytes([byte]) for byte in range(SIZE)}
    core = _core.Model(
        vocab, [], **{"split_patterns": [GPT2_SPLIT_PATTERN], "added_tokens": added} | settings
    )
    return Model(core)


# -- round trips ----------------------------------------------------------------------------------------


def test_a_trained_tokenizer_comes_back(tokenizer: BPETokenizer, mixed_text: str, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    again = BPETokenizer.from_pretrained(tmp_path)
    assert contents(again.model) == contents(tokenizer.model)
    assert repr(again) == repr(tokenizer)
    for text in [mixed_text, *hostile_texts(300)]:
        for allowed in ("none", "all"):
            assert again.encode(text, True, allowed) == tokenizer.encode(text, True, allowed)


def test_what_save_writes(plain_tokenizer: BPETokenizer, tmp_path: Path) -> None:
    files = huggingface.save(plain_tokenizer.model, tmp_path / "new" / "directory")
    assert [file.name for file in files] == ["tokenizer.json", "tokenizer_config.json"]
    assert sorted(tmp_path.glob("new/directory/*")) == files
    document = read(files[0])
    assert list(document) == list(tokenizer_json({}))
    assert list(document["model"]) == list(tokenizer_json({})["model"])
    assert document["pre_tokenizer"] == BYTE_LEVEL
    assert document["model"]["merges"][0] == list(plain_tokenizer.model.core.printable_merges()[0])
    assert list(document["model"]["vocab"].values()) == list(range(600))
    assert read(files[1])["tokenizer_class"] == "PreTrainedTokenizerFast"


def test_another_name(plain_tokenizer: BPETokenizer, tokenizer: BPETokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    plain_tokenizer.save(tmp_path, name="plain")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "plain.json",
        "plain_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert contents(huggingface.load(tmp_path / "plain.json")) == contents(plain_tokenizer.model)
    assert contents(huggingface.load(tmp_path)) == contents(tokenizer.model)
    assert contents(huggingface.load(str(tmp_path / "tokenizer.json"))) == contents(tokenizer.model)


def test_what_was_saved_under_another_name_is_found(
    plain_tokenizer: BPETokenizer, tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    plain_tokenizer.save(tmp_path, name="plain")
    assert contents(BPETokenizer.from_pretrained(tmp_path).model) == contents(plain_tokenizer.model)
    plain_tokenizer.save(tmp_path, name="other")
    with pytest.raises(FormatError, match=r"tokenizer\.json"):
        BPETokenizer.from_pretrained(tmp_path)  # which of the two?
    tokenizer.save(tmp_path)
    assert contents(BPETokenizer.from_pretrained(tmp_path).model) == contents(tokenizer.model)


@pytest.mark.parametrize("name", ["", "a/b", "../x", "/tmp/x"])
def test_a_name_that_is_none(name: str, plain_tokenizer: BPETokenizer, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="must be the stem of a file name"):
        plain_tokenizer.save(tmp_path, name=name)


@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_split_patterns_come_back_as_they_were(name: str, tmp_path: Path) -> None:
    round_trip(small_model(split_patterns=NAMED_PATTERNS[name].patterns), tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {"split_patterns": []},
        {"normalization": "NFC"},
        {"normalization": "NFKD"},
        {"ignore_merges": True},
        {"add_prefix_space": True},
        {"add_prefix_space": True, "split_patterns": []},
        {"split_patterns": [r"\w+$|\s+", r"^\d", "(?i)a|b"]},
        {
            "normalizers": [
                ("NFKD",),
                ("StripAccents",),
                ("Lowercase",),
                ("Strip", True, False),
                ("Replace", r"\w+", "$0"),
                ("Replace", r"a\.b", ""),
                ("Prepend", "▁"),
            ]
        },
        {
            "pre_tokenizers": [
                ("Split", r"\w", "Removed", False),
                ("Split", r"\w+|[^\w\s]+", "Removed", True),
                ("Split", r"\s", "Removed", False),
                ("Split", "a", "Contiguous", True),
                ("PrefixSpace",),
                ("SplitBytes", r"\p{N}", "MergedWithNext", False),
            ]
        },
        {
            "pre_tokenizers": [
                ("Metaspace", "_", "first", False),
                ("Split", "b+", "MergedWithPrevious", False),
            ]
        },
    ],
)
def test_settings_come_back(settings: dict[str, Any], tmp_path: Path) -> None:
    round_trip(small_model(**settings), tmp_path)


def characters_model(*added: AddedToken, **settings: Any) -> Model:
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "é", "▁a", "aé", "▁aé"]
    merges = [("▁", "a"), ("▁a", "é"), ("a", "é"), ("▁", "aé")]
    core = _core.Model(
        {index: token.encode() for index, token in enumerate(tokens)},
        [(left.encode(), right.encode()) for left, right in merges],
        alphabet="characters",
        added_tokens=added,
        **settings,
    )
    return Model(core)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"byte_fallback": True, "unk_id": 0, "fuse_unk": True, "decoder": ("▁", True, "one")},
        {"byte_fallback": True, "decoder": ("▁", True, "none")},
        {"unk_id": 0, "decoder": ("▁", False, "first")},
        {"decoder": (" ", True, "one"), "normalizers": [("Prepend", "▁"), ("Replace", " ", "▁")]},
        {"decoder": (" ", False, "one"), "pre_tokenizers": [("Metaspace", "▁", "always", True)]},
        {"ignore_merges": True, "pre_tokenizers": [("Split", " ", "MergedWithPrevious", False)]},
    ],
)
@pytest.mark.parametrize(
    "added", [(), (AddedToken("<unk>", 0), AddedToken("<s>", 263), AddedToken("é ", 400))]
)
def test_models_of_characters_come_back(
    added: tuple[AddedToken, ...], settings: dict[str, Any], tmp_path: Path
) -> None:
    loaded = round_trip(characters_model(*added, **settings), tmp_path / "1")
    huggingface.save(loaded, tmp_path / "2")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    (tmp_path / "1" / "tokenizer_config.json").unlink()
    alone = huggingface.load(tmp_path / "1")
    assert alone.core.merges == loaded.core.merges
    assert alone.core.pre_tokenizers == loaded.core.pre_tokenizers


def test_a_vocabulary_that_lacks_bytes_comes_back(tmp_path: Path) -> None:
    vocab = {byte: bytes([byte]) for byte in range(90)} | {90: b"<unk>"}
    for unk_id, fuse_unk in ((None, False), (90, False), (90, True)):
        core = _core.Model(vocab, [], requires_all_bytes=False, unk_id=unk_id, fuse_unk=fuse_unk)
        round_trip(Model(core), tmp_path)


def test_the_unknown_token_stays_in_the_vocabulary(tmp_path: Path) -> None:
    core = _core.Model(
        {0: b"a", 7: b"<unk>"},
        [],
        alphabet="characters",
        unk_id=7,
        added_tokens=[AddedToken("<unk>", 7)],
    )
    round_trip(Model(core), tmp_path)
    assert read(tmp_path / "tokenizer.json")["model"]["unk_token"] == "<unk>"


def test_flags_of_added_tokens_come_back(tmp_path: Path) -> None:
    flags = [tuple(bool(bits >> flag & 1) for flag in range(5)) for bits in range(32)]
    round_trip(
        small_model(*(AddedToken(f"<{i}>", SIZE + i, *flag) for i, flag in enumerate(flags))), tmp_path
    )


@pytest.mark.parametrize(
    ("special_tokens", "vocab_size"),
    [
        (["<a>", "<b>", "<c>"], 276),  # reserved after the bytes
        ({"<far>": 100_257}, 276),  # outside, and in model.vocab for its id
        ({"<a>": 270, "<far>": 100_257}, 276),
        ({"<a>": 275, "<b>": 276}, 276),  # the last one inside and the first one outside
        (
            {"<a>": 276, "<b>": 277, "<far>": 300},
            276,
        ),  # these two stand in model.vocab only because of the third
        ({"<a>": 278, "<b>": 280, "<c>": 4_294_967_294}, 276),
    ],
)
def test_ids_of_special_tokens_and_the_size_of_the_vocabulary_come_back(
    special_tokens: Any, vocab_size: int, tmp_path: Path
) -> None:
    tokenizer = BPETokenizer().train(
        "the cat in the hat sat on that mat and the rat", 276, 1, special_tokens, verbose=False
    )
    assert tokenizer.vocab_size == vocab_size
    round_trip(tokenizer.model, tmp_path)


def test_without_its_config_a_file_still_gives_every_id(tmp_path: Path) -> None:
    tokenizer = BPETokenizer(split_pattern="cl100k").train(
        "the cat in the hat", 260, 1, {"<e>": 260, "<far>": 100_257}, verbose=False
    )
    tokenizer.save(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    alone = BPETokenizer.from_pretrained(tmp_path)
    assert (alone.vocab, alone.merges) == (tokenizer.vocab, tokenizer.merges)
    assert alone.special_tokens == tokenizer.special_tokens
    assert alone.vocab_size == 261  # <e> follows the vocabulary, so it counts to it
    assert alone.encode("12345 a's\n\n ") == tokenizer.encode("12345 a's\n\n ")


def test_an_added_token_that_merges_make_stays_in_the_vocabulary(tmp_path: Path) -> None:
    vocab = bytes_vocab() | {"ab": 500}
    write(tmp_path, tokenizer_json(vocab, [["a", "b"]], added=[added_token(500, "ab", special=False)]))
    model = huggingface.load(tmp_path)
    assert (model.core.vocab_size, model.core.merges) == (257, [(b"a", b"b")])
    round_trip(model, tmp_path)


# -- what the config says -------------------------------------------------------------------------------


def test_roles_and_the_rest_of_the_config_come_back(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    config = {
        "model_max_length": 512,
        "chat_template": "{{ '«' }}",
        "padding_side": "left",
        "x": {"y": [1, None]},
    }
    model = Model(tokenizer.model.core, {"bos": "<|unk|>", "pad": ""}, config=config)
    loaded = round_trip(model, tmp_path)
    assert loaded.named_tokens == {"bos": "<|unk|>", "eos": "<|eos|>", "pad": "", "unk": "<|unk|>"}
    assert read(tmp_path / "tokenizer_config.json")["pad_token"] is None
    assert BPETokenizer.from_model(loaded).pad_token is None


@pytest.mark.parametrize("value", ["<x>", {"content": "<x>", "lstrip": False, "__type": "AddedToken"}])
def test_spellings_of_roles(value: Any, tmp_path: Path) -> None:
    added = [added_token(SIZE, "<x>"), added_token(SIZE + 1, "<bos>")]
    write(tmp_path, tokenizer_json(bytes_vocab(), added=added))
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"eos_token": value, "bos_token": None, "unk_token": ""}), encoding="utf-8")
    tokenizer = BPETokenizer.from_pretrained(tmp_path)
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.unk_token) == (None, "<x>", None)


def test_the_files_beside(tmp_path: Path) -> None:
    write(
        tmp_path,
        tokenizer_json(bytes_vocab(), added=[added_token(SIZE, "<x>"), added_token(SIZE + 1, "<y>")]),
    )
    (tmp_path / "special_tokens_map.json").write_text('{"eos_token": {"content": "<y>"}, "sep_token": "<x>"}')
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<x>", "chat_template": "old"}')
    (tmp_path / "chat_template.jinja").write_text("né\n", encoding="utf-8")
    model = huggingface.load(tmp_path)
    assert model.named_tokens == {"eos": "<y>"}
    assert model.config == {"sep_token": "<x>", "chat_template": "né\n"}
    decoder = {str(SIZE): {"content": "<x>"}, str(SIZE + 1): {"content": "<y>", "special": True}}
    config = {"eos_token": "<x>", "added_tokens_decoder": decoder}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert huggingface.load(tmp_path).named_tokens == {"eos": "<x>"}  # then the map is not looked at


def test_what_is_only_kept_comes_back(tmp_path: Path) -> None:
    added = [added_token(SIZE, "<s>")]
    document = tokenizer_json(bytes_vocab(), added=added, post_processor=byte_level(trim_offsets=True))
    document["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    document["padding"] = {
        "strategy": {"Fixed": 8},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": SIZE,
        "pad_type_id": 0,
        "pad_token": "<s>",
    }
    model = huggingface.load(write(tmp_path / "1", document))
    assert len(BPETokenizer.from_model(model).encode("abcdefghij")) == 10
    round_trip(model, tmp_path / "2")
    saved = read(tmp_path / "2" / "tokenizer.json")
    for name in ("truncation", "padding", "post_processor"):
        assert saved[name] == document[name]


# -- post-processors ------------------------------------------------------------------------------------


def with_bos_and_eos(**changes: Any) -> Model:
    return dataclasses.replace(small_model(AddedToken("<bos>", SIZE), AddedToken("<eos>", 300)), **changes)


def test_no_post_processor_puts_bos_and_eos_around(tmp_path: Path) -> None:
    loaded = round_trip(with_bos_and_eos(), tmp_path)
    assert loaded.post_processor is None
    assert read(tmp_path / "tokenizer.json")["post_processor"] == {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<bos>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "<eos>", "type_id": 0}},
        ],
        "pair": [
            {"SpecialToken": {"id": "<bos>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "<eos>", "type_id": 0}},
            {"SpecialToken": {"id": "<bos>", "type_id": 1}},
            {"Sequence": {"id": "B", "type_id": 1}},
            {"SpecialToken": {"id": "<eos>", "type_id": 1}},
        ],
        "special_tokens": {
            "<bos>": {"id": "<bos>", "ids": [SIZE], "tokens": ["<bos>"]},
            "<eos>": {"id": "<eos>", "ids": [300], "tokens": ["<eos>"]},
        },
    }


@pytest.mark.parametrize(
    "around",
    [
        PostProcessor(),
        PostProcessor((SIZE,)),
        PostProcessor((), (300, 97, 300)),
        PostProcessor((300,), (300,)),
    ],
)
def test_post_processors_come_back(around: PostProcessor, tmp_path: Path) -> None:
    model = with_bos_and_eos(post_processor=around)
    again = BPETokenizer.from_model(round_trip(model, tmp_path))
    assert again.encode("b", add_special_tokens=True) == [*around.prefix, 98, *around.suffix]


def test_a_file_that_adds_nothing_adds_nothing(tmp_path: Path) -> None:
    added = [added_token(SIZE, "<bos>"), added_token(SIZE + 1, "<eos>")]
    for post_processor in (None, BYTE_LEVEL):
        document = tokenizer_json(bytes_vocab(), added=added, post_processor=post_processor)
        tokenizer = BPETokenizer.from_pretrained(write(tmp_path, document))
        assert (tokenizer.bos_token, tokenizer.encode("b", add_special_tokens=True)) == ("<bos>", [98])


# -- files changed by hand ------------------------------------------------------------------------------


def test_a_changed_tokenizer_json_wins(tmp_path: Path) -> None:
    huggingface.save(
        small_model(AddedToken("<eos>", SIZE), split_patterns=NAMED_PATTERNS["cl100k"].patterns), tmp_path
    )
    document = read(tmp_path / "tokenizer.json")
    document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = r"\p{L}+"
    document["added_tokens"][0]["lstrip"] = True
    document["added_tokens"].append(added_token(SIZE + 1, "<new>"))
    write(tmp_path, document)
    model = huggingface.load(tmp_path)
    assert model.core.split_patterns == [r"\p{L}+"]
    assert [token[0] for token in model.core.added_tokens] == ["<eos>", "<new>"]
    assert AddedToken(*model.core.added_tokens[0]).lstrip
    assert model.named_tokens == {"eos": "<eos>"}


def test_a_changed_config_wins(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    config = read(tmp_path / "tokenizer_config.json")
    config |= {"eos_token": "<|pad|>", "model_max_length": 9, "bpe_tokenizer": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    again = BPETokenizer.from_pretrained(tmp_path)
    assert (again.eos_token, again.model.config) == ("<|pad|>", {"model_max_length": 9})
    assert again.encode("a", add_special_tokens=True) == tokenizer.encode("a", add_special_tokens=True)


# -- refusals -------------------------------------------------------------------------------------------

Change = Callable[[dict[str, Any]], object]


def at(*path: Any, to: Any) -> Change:
    """Sets a field."""

    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = to

    return change


def without(*path: Any) -> Change:
    """Takes a field away."""

    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for name in path[:-1]:
            place = place[name]
        del place[path[-1]]

    return change


def rename(*path: str, to: str) -> Change:
    """Gives a field another name."""

    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for name in path[:-1]:
            place = place[name]
        place[to] = place.pop(path[-1])

    return change


def good() -> dict[str, Any]:
    """Every part of the format that we read."""
    return tokenizer_json(
        bytes_vocab("he", "<eos>", "hel"),
        [["h", "e"], ["he", "l"]],
        added=[added_token(257, "<eos>"), added_token(259, "<bos>", lstrip=True)],
        pre_tokenizer=sequence(
            split(LLAMA3_REGEX), {"type": "Digits", "individual_digits": True}, {"type": "Punctuation"}
        ),
        normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}]},
        post_processor={
            "type": "Sequence",
            "processors": [BYTE_LEVEL, template("<bos>", "$A", ids={"<bos>": [259]})],
        },
        decoder={"type": "Sequence", "decoders": [BYTE_LEVEL]},
    )


def without_bytes(**changes: Any) -> dict[str, Any]:
    """A model that lacks a byte; an integer is a further token."""
    tokens = {name: value for name, value in changes.items() if type(value) is int}
    settings = {name: value for name, value in changes.items() if name not in tokens}
    vocab = dict(list(bytes_vocab().items())[:255]) | {"<byte>": 255, "he": 256, "<eos>": 257, "hel": 258}
    if tokens:
        vocab = {token: index for token, index in vocab.items() if index not in tokens.values()} | tokens
    model: dict[str, Any] = tokenizer_json(vocab, **settings)["model"]
    return model


def replacing(pattern: dict[str, str]) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": "x"}


METASPACE = {"type": "Metaspace", "replacement": "▁"}


def good_characters() -> dict[str, Any]:
    """The same of a file whose tokens are characters."""
    tokens = ["<unk>", "<s>", "<0x21>", "▁", "h", "e", "l", "1", "▁h", "▁he", "el"]
    document = tokenizer_json(
        {token: index for index, token in enumerate(tokens)},
        [["▁", "h"], ["▁h", "e"], ["e", "l"]],
        added=[added_token(0, "<unk>"), added_token(1, "<s>"), added_token(11, "<bos>", normalized=True)],
        normalizer={
            "type": "Sequence",
            "normalizers": [
                {"type": "Strip", "strip_left": False, "strip_right": True},
                {"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            ],
        },
        pre_tokenizer={
            "type": "Sequence",
            "pretokenizers": [
                {"type": "CharDelimiterSplit", "delimiter": "2"},
                {"type": "FixedLength", "length": 9},
                METASPACE | {"prepend_scheme": "first", "split": False},
            ],
        },
        post_processor=template("<s>", "$A", ids={"<s>": [1]}),
        decoder={"type": "Sequence", "decoders": [TO_SPACE, {"type": "ByteFallback"}, FUSE, STRIP]},
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
    return copy.deepcopy(document)


FUSE = {"type": "Fuse"}
TO_SPACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
PRE = ("pre_tokenizer", "pretokenizers")
POST = ("post_processor", "processors", 1)

REFUSED: list[tuple[Change, str]] = [
    (at("version", to="2.0"), r"version: '2\.0' is not supported"),
    (at("extra", to=1), "unknown field 'extra' in tokenizer.json"),
    (without("model"), "model: is missing"),
    (at("model", "type", to="WordPiece"), "model.type: 'WordPiece' is not supported; only BPE models are"),
    (at("model", "max_chars", to=1), "model: unknown field 'max_chars' in a BPE model"),
    (at("model", "dropout", to=0.1), "model.dropout: 0.1 makes encoding random"),
    (
        at("model", "continuing_subword_prefix", to="##"),
        "model.continuing_subword_prefix: '##' is not supported",
    ),
    (at("model", "end_of_word_suffix", to="</w>"), "model.end_of_word_suffix: '</w>' is not supported"),
    (at("model", "ignore_merges", to="yes"), "model.ignore_merges: must be true or false, not 'yes'"),
    (without("model", "vocab"), "model.vocab: is missing"),
    (without("model", "merges"), "model.merges: is missing"),
    (at("model", "vocab", to=[["a", 0]]), r"model.vocab: must be an object, not \[\['a', 0\]\]"),
    (
        at("model", "vocab", "he", to="256"),
        "model.vocab.he: must be an id, an integer from 0 to .*, not '256'",
    ),
    (at("model", "vocab", "he", to=-1), "model.vocab.he: must be an id, .*, not -1"),
    (at("model", "vocab", "he", to=2**32), "model.vocab.he: must be an id, .*, not 4294967296"),
    (at("model", "vocab", "he", to=True), "model.vocab.he: must be an id, .*, not True"),
    (at("model", "vocab", "he", to=97), "model.vocab: duplicate id 97: tokens 'a' and 'he'"),
    (
        rename("model", "vocab", "hel", to="▁the"),
        'model: the token "▁the" holds a character that stands for no',
    ),
    (at("model", "merges", 1, to="he l"), r"model.merges\[1\]: 'he l' is not a merge: all must be pairs"),
    (at("model", "merges", to=["h e", "he l x"]), r"model.merges\[1\]: 'he l x' is not a merge"),
    (at("model", "merges", 0, to=["h", "e", "l"]), r"model.merges\[0\]: \['h', 'e', 'l'\] is not a merge"),
    (at("model", "merges", 0, to=["h", 5]), r"model.merges\[0\]: \['h', 5\] is not a merge"),
    (at("model", "merges", 0, to=["x", "y"]), r'model: merge 0 \("x", "y"\): "xy" is not in the vocabulary'),
    (at("added_tokens", 1, "id", to=300), r"added_tokens\[1\].id: 300 is not the id .* which is 259"),
    (
        at("added_tokens", 0, "id", to=258),
        r"added_tokens\[0\].id: 258 is not the id .* '<eos>', which is 257",
    ),
    (at("added_tokens", 1, "content", to=""), r"added_tokens\[1\].content: is empty"),
    (at("added_tokens", 1, "content", to="<eos>"), r"added_tokens: duplicate token '<eos>': ids 257 and 259"),
    (without("added_tokens", 1, "lstrip"), r"added_tokens\[1\].lstrip: is missing"),
    (at("added_tokens", 1, "special", to=1), r"added_tokens\[1\].special: must be true or false, not 1"),
    (
        at("model", to=without_bytes(byte_fallback=True, **{"<0x0A>": 255})),
        "model.byte_fallback: True is not supported in a byte-level file that lacks bytes",
    ),
    (
        at("model", to=without_bytes(unk_token="<nowhere>")),
        "model.unk_token: '<nowhere>' is not in model.vocab, where Hugging Face tokenizers needs it",
    ),
    (
        at("added_tokens", to=[added_token(233, "é")]),
        r"added_tokens: 'é' \(id 233\) is in model.vocab, where its text spells other bytes",
    ),
    (
        at("added_tokens", to=[added_token(259, "RR", rstrip=True), added_token(260, " x")]),
        r"added_tokens: ' x' \(id 260\) begins with white space, which another token strips",
    ),
    (
        at(
            "added_tokens",
            to=[
                added_token(259, "<é>", normalized=True),
                added_token(260, "<e\u0301>", normalized=True),
            ],
        ),
        "is the same as '<é>' after normalisation",
    ),
    *(
        (at("normalizer", to={"type": kind}), f"normalizer.type: '{kind}' is not supported; NFC, NFD,")
        for kind in ("BertNormalizer", "Precompiled", "Magic")
    ),
    (
        at("normalizer", "normalizers", to=[{"type": "ByteLevel"}, {"type": "NFC"}]),
        r"normalizers\[1\]: follows ByteLevel, which must be the last step",
    ),
    (
        at("normalizer", to={"type": "ByteLevel"}),
        r"pretokenizers\[3\]: ByteLevel after ByteLevel is not supported",
    ),
    (at("normalizer", to={"type": "Strip", "strip_left": True}), "normalizer.strip_right: is missing"),
    (at("normalizer", to={"type": "Prepend", "prepend": ""}), "normalizer.prepend: is empty"),
    (
        at("normalizer", to=replacing({"Regex": "a*"})),
        "normalizer.pattern.Regex: .* can match the empty text",
    ),
    (at("normalizer", to=replacing({"String": ""})), "normalizer.pattern.String: is empty"),
    (at("normalizer", to=replacing({"Regex": r"\bx"})), r"normalizer.pattern.Regex: .* holds \\b, which may"),
    (at(*PRE, 0, to=BYTE_LEVEL), r"pretokenizers\[3\]: ByteLevel after ByteLevel is not supported"),
    (at(*PRE, to=[BYTE_LEVEL, METASPACE]), r"pretokenizers\[1\]: Metaspace after ByteLevel is not supported"),
    (at(*PRE, 0, to={"type": "UnicodeScripts"}), r"pretokenizers\[0\].type: 'UnicodeScripts' is not supp"),
    (at(*PRE, 0, to={"type": "Delimiter"}), r"pretokenizers\[0\].type: 'Delimiter' is not supported"),
    (at(*PRE, 0, to={"type": "FixedLength", "length": 0}), r"pretokenizers\[0\].length: 0 is not supported"),
    (at(*PRE, 0, to=METASPACE | {"replacement": "ab"}), r"\[0\].replacement: 'ab' must be one character"),
    (at(*PRE, 0, to=METASPACE | {"prepend_scheme": "x"}), r"\[0\].prepend_scheme: 'x' must be one of"),
    (at(*PRE, 0, to=METASPACE | {"prepend_scheme": None}), r"\[0\].prepend_scheme: must be a string"),
    (
        at(*PRE, 0, to=METASPACE | {"add_prefix_space": False}),
        r"\[0\].add_prefix_space: False contradicts the prepend_scheme 'always'",
    ),
    (without(*PRE, 3, "add_prefix_space"), r"pretokenizers\[3\].add_prefix_space: is missing"),
    (at(*PRE, 0, "behavior", to="Shuffled"), r"pretokenizers\[0\].behavior: 'Shuffled' must be one of"),
    (at(*PRE, 0, "pattern", to={"Glob": "*"}), r"\.pattern: \{'Glob': '\*'\} must be \{\"Regex\": pattern\}"),
    (at(*PRE, 0, "pattern", to={"String": ""}), r"\.pattern.String: is empty"),
    (at(*PRE, 0, "pattern", "Regex", to="(a"), r"\.pattern.Regex: '\(a' is not supported: it holds \("),
    (at(*PRE, 0, "pattern", "Regex", to=r"(?=\d)"), r"\.pattern.Regex: .* can match the empty text"),
    (
        at(*PRE, 0, "pattern", "Regex", to="a*"),
        r"\.pattern.Regex: 'a\*' is not supported: it can match the empty text",
    ),
    (at(*PRE, 2, "behavior", to="Kept"), r"pretokenizers\[2\].behavior: 'Kept' must be one of"),
    (at("decoder", to=None), "decoder: must be ByteLevel"),
    (at("decoder", to={"type": "Metaspace"}), "decoder.type: 'Metaspace' is not supported"),
    (at("decoder", "decoders", to=[BYTE_LEVEL, BYTE_LEVEL]), "decoder: has 2 steps"),
    (at(*POST, "type", to="Magic"), r"post_processor.processors\[1\].type: 'Magic' is not supported"),
    (at(*POST, "single", to=[]), r"processors\[1\].single: holds Sequence A 0 times"),
    (
        at(*POST, "single", 1, "Sequence", "id", to="B"),
        r"single\[1\].Sequence.id: 'B' must be A, the only sequence",
    ),
    (at(*POST, "single", 0, to={"Other": 1}), r"single\[0\]: \{'Other': 1\} must be a Sequence or a Spec"),
    (at(*POST, "special_tokens", to={}), r"processors\[1\].special_tokens.<bos>: is missing"),
    (at(*POST, "special_tokens", "<bos>", "ids", 0, to=999), r"<bos>.ids\[0\]: 999 is not the id of a token"),
    (
        at("post_processor", "processors", 0, to=template("x", "$A", ids={"x": [5]})),
        "is the second step that adds",
    ),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_cannot_be_represented_is_refused_by_name(change: Change, message: str, tmp_path: Path) -> None:
    document = good()
    change(document)
    with pytest.raises(FormatError, match=message) as caught:
        huggingface.load(write(tmp_path, document))
    assert str(caught.value).startswith(str(tmp_path / "tokenizer.json"))


DECODER = ("decoder", "decoders")

REFUSED_CHARACTERS: list[tuple[Change, str]] = [
    (at("decoder", to=None), "decoder: is missing; without a decoder tokens are joined with spaces"),
    (
        at("decoder", to=BYTE_LEVEL),
        "decoder: ByteLevel is not supported here; use Metaspace alone, or a Seq",
    ),
    (at("decoder", to={"type": "BPEDecoder"}), "decoder: BPEDecoder is not supported here"),
    (at(*DECODER, to=[FUSE, TO_SPACE]), r"decoders\[1\]: Replace is not supported here"),
    (at(*DECODER, to=[TO_SPACE, STRIP]), r"decoders\[1\]: Strip is not supported here"),
    (at(*DECODER, to=[TO_SPACE, METASPACE]), r"decoders\[1\]: Metaspace is not supported here"),
    (at(*DECODER, 0, "content", to="_"), r"decoders\[0\].content: '_' is not supported in a decoder"),
    (
        at(*DECODER, 0, "pattern", "String", to="▁▁"),
        r"decoders\[0\].pattern: .* is not supported in a decoder",
    ),
    (
        at(*DECODER, 0, "pattern", to={"Regex": "a+"}),
        r"decoders\[0\].pattern: .* is not supported in a decoder",
    ),
    (at(*DECODER, 3, "start", to=2), r"decoders\[3\]: .* is not supported; it must strip one space"),
    (at(*DECODER, 3, "content", to="a"), r"decoders\[3\]: .* is not supported; it must strip one space"),
    (
        rename("model", "vocab", "<0x21>", to="<0x+f>"),
        "decoder: ByteFallback takes the token '<0x\\+f>' for a byte",
    ),
    (
        at("added_tokens", 2, "content", to="<0x+1>"),
        "decoder: ByteFallback takes the token '<0x\\+1>' for a byte",
    ),
    (at("added_tokens", 2, "content", to=" "), "added_tokens: ' ' \\(id 11\\) is empty after normalisation"),
    (at("model", "unk_token", to="?"), "model.unk_token: '\\?' is not in model.vocab"),
    (at("model", "vocab", "h", to=3), "model.vocab: duplicate id 3: tokens '▁' and 'h'"),
    (without("model", "vocab", "▁he"), "added_tokens\\[2\\].id: 11 is not the id"),
    (at("model", "merges", 0, to=["▁", "l"]), r'model: merge 0 .*l" is not in the vocabulary'),
    (at("model", "merges", 0, to=["x", "l"]), 'merge 0 \\("x", "l"\\): "x" is not in the vocabulary'),
    (at(*PRE, 2, to={"type": "UnicodeScripts"}), r"pretokenizers\[2\].type: 'UnicodeScripts' is not supp"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED_CHARACTERS)
def test_what_cannot_be_represented_of_characters(change: Change, message: str, tmp_path: Path) -> None:
    document = good_characters()
    change(document)
    with pytest.raises(FormatError, match=message) as caught:
        huggingface.load(write(tmp_path, document))
    assert str(caught.value).startswith(str(tmp_path / "tokenizer.json"))


def test_the_good_file_of_characters_is_good(tmp_path: Path) -> None:
    model = huggingface.load(write(tmp_path / "1", good_characters()))
    tokenizer = BPETokenizer.from_model(model)
    ids = tokenizer.encode("hel 2!ö1<s> ", add_special_tokens=True, allowed_special="all")
    assert [tokenizer.vocab[token_id].decode() for token_id in ids] == (
        ["<s>", "▁he", "l", "▁", "<0x21>", "<unk>", "1", "<s>"]
    )
    assert tokenizer.decode(ids) == "<s> hel !<unk>1<s>"
    assert tokenizer.decode(ids[1:-1]) == "hel !<unk>1"
    round_trip(model, tmp_path / "2")


def test_the_good_file_is_good(tmp_path: Path) -> None:
    model = huggingface.load(write(tmp_path / "1", good()))
    assert BPETokenizer.from_model(model).encode("hel 12", add_special_tokens=True) == [259, 258, 32, 49, 50]
    round_trip(model, tmp_path / "2")


ACCEPTED: list[Change] = [
    without("version"),
    without("truncation"),
    without("model", "type"),
    without("model", "dropout"),
    at("model", "dropout", to=0.0),
    at("model", "unk_token", to="<unk>"),
    at("model", "byte_fallback", to=True),
    at("model", "fuse_unk", to=True),
    at("model", "end_of_word_suffix", to=""),
    at("model", "merges", to=["#version: 0.2", "h e", "he l"]),
    at("normalizer", to=None),
    at("normalizer", "normalizers", to=[]),
    at("decoder", to=BYTE_LEVEL),
    at("post_processor", to=None),
]


@pytest.mark.parametrize("change", ACCEPTED)
def test_what_changes_nothing_is_accepted(change: Change, tmp_path: Path) -> None:
    document = good()
    change(document)
    loaded = huggingface.load(write(tmp_path / "1", document))
    expected = huggingface.load(write(tmp_path / "2", good()))
    assert loaded.core.merges == expected.core.merges
    tokenizers = [BPETokenizer.from_model(model) for model in (loaded, expected)]
    assert tokenizers[0].encode("hel <bos> 12!") == tokenizers[1].encode("hel <bos> 12!")


REFUSED_CONFIGS: list[tuple[Any, str]] = [
    ({"eos_token": 5}, "eos_token: must be a string, not 5"),
    ({"eos_token": {"text": "x"}}, "eos_token.content: is missing"),
    ({"eos_token": "<nowhere>"}, "eos_token: '<nowhere>' is not a token of tokenizer.json"),
    ({"mask_token": "<nowhere>"}, "mask_token: '<nowhere>' is not a token of tokenizer.json"),
    (
        {"additional_special_tokens": ["<nowhere>"]},
        r"additional_special_tokens\[0\]: '<nowhere>' is not a token",
    ),
    ({"extra_special_tokens": {"image": "<i>"}}, r"extra_special_tokens.image: '<i>' is not a token"),
    (
        {"added_tokens_decoder": {"259": {"content": "<x>"}}},
        "decoder.259: .* is not an added token of tokenizer.json",
    ),
    (
        {"added_tokens_decoder": {"7": {"content": "<bos>"}}},
        "decoder.7: .* is not an added token of tokenizer.json",
    ),
    (
        {"added_tokens_decoder": {"259": {"content": "<bos>", "lstrip": False}}},
        "decoder.259.lstrip: False contradicts tokenizer.json about '<bos>'",
    ),
    ({"bpe_tokenizer": "x"}, "bpe_tokenizer: must be an object, not 'x'"),
    ({"bpe_tokenizer": {"pre_tokenizers": 5}}, "bpe_tokenizer.pre_tokenizers: must be an array, not 5"),
    ({"bpe_tokenizer": {"normalizers": [["X"]]}}, r"bpe_tokenizer.normalizers\[0\]: \['X'\] is not a step"),
    ({"bpe_tokenizer": {"normalizers": [[]]}}, r"bpe_tokenizer.normalizers\[0\]: \[\] is not a step"),
    ([], r"must be an object, not \[\]"),
]


@pytest.mark.parametrize(("config", "message"), REFUSED_CONFIGS)
def test_configs_that_are_refused_by_name(config: Any, message: str, tmp_path: Path) -> None:
    write(tmp_path, good())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(FormatError, match=rf"tokenizer_config\.json: .*{message}"):
        huggingface.load(tmp_path)


def test_places_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file or directory"):
        huggingface.load(tmp_path / "nowhere")
    with pytest.raises(FormatError, match=r"holds no tokenizer\.json"):
        huggingface.load(tmp_path)
    (tmp_path / "vocab.json").touch()
    (tmp_path / "merges.txt").touch()
    with pytest.raises(FormatError, match=r"GPT-2's vocab\.json and merges\.txt; load them with"):
        huggingface.load(tmp_path)
    (tmp_path / "tokenizer.json").mkdir()
    with pytest.raises(FormatError, match=r"tokenizer\.json: cannot be read: Is a directory"):
        huggingface.load(tmp_path)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (small_model(split_patterns=[r"\s*"]), r"the pattern '\\\\s\*' can match the empty text"),
        (
            small_model(split_patterns=["a(?i)b|c"]),
            r"'a\(\?i\)b\|c' holds \(\?i\)\.\.\., which may mean",
        ),
        (
            small_model(add_prefix_space=True, split_patterns=["a"]),
            "cannot hold add_prefix_space together with",
        ),
        (small_model(AddedToken("a", 900)), "'a' has the id 900, but a token .* same spelling has 97"),
        (small_model(AddedToken("é", SIZE)), "'é' has the id 256, but a token .* same spelling has 233"),
        (dataclasses.replace(small_model(), named_tokens={"eos": "a"}), "eos_token: 'a' is not an added"),
        (
            dataclasses.replace(small_model(), post_processor=PostProcessor((900,))),
            "900 is not the id of a token",
        ),
        (dataclasses.replace(small_model(), config={"x": object()}), "the model's config cannot be written"),
        (
            dataclasses.replace(small_model(), config={"x": float("nan")}),
            "the model's config cannot be written",
        ),
    ],
)
def test_what_a_file_cannot_hold_is_refused_before_it_is_written(
    model: Model, message: str, tmp_path: Path
) -> None:
    with pytest.raises(FormatError, match=message):
        huggingface.save(model, tmp_path)
    assert not list(tmp_path.iterdir())


def test_tokens_that_a_file_cannot_tell_apart(tmp_path: Path) -> None:
    vocab = {byte: bytes([byte]) for byte in range(SIZE)} | {SIZE: b"a"}
    twice = Model(_core.Model(vocab, [], split_patterns=[]))
    with pytest.raises(TokenizerError, match="the same token"):
        huggingface.save(twice, tmp_path)
    vocab |= {SIZE: "é".encode()}
    made = _core.Model(vocab, [(b"\xc3", b"\xa9")], split_patterns=[], added_tokens=[AddedToken("é", SIZE)])
    with pytest.raises(TokenizerError, match="é"):
        huggingface.save(Model(made), tmp_path)
    vocab |= {SIZE: "日".encode(), SIZE + 1: "日".encode()[:2]}
    merges = [(b"\xe6", b"\x97"), (b"\xe6\x97", b"\xa5")]
    made = _core.Model(vocab, merges, split_patterns=[], added_tokens=[AddedToken("日", SIZE)])
    with pytest.raises(FormatError, match=r"merges make '日' .* too"):
        huggingface.save(Model(made), tmp_path)


# -- broken files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not valid JSON: Expecting value"),
        (b"{", "is not valid JSON"),
        (b"[]", r"must be an object, not \[\]"),
        (b"null", "must be an object, not null"),
        (b'{"version": "1.0", "version": "1.0"}', "duplicate key 'version' in an object"),
        (b'{"a": "\xff"}', "is not UTF-8: byte 0xff at offset 7"),
        ('{"a": 1}'.encode("utf-16"), "is not UTF-8: byte 0xff at offset 0"),
        (b'\xef\xbb\xbf{"a": 1}', "is not valid JSON: Unexpected UTF-8 BOM"),
        (b'{"a": NaN}', "holds the number NaN, which is not finite"),
        (b'{"a": 1e999}', "holds the number 1e999, which is not finite"),
        pytest.param(
            b'{"a": ' + b"9" * 5000 + b"}",
            "is not valid JSON: Exceeds the limit",
            marks=pytest.mark.skipif(not hasattr(sys, "get_int_max_str_digits"), reason="has no limit"),
        ),
        (b'{"a": ["\\ud83d"]}', "holds a lone surrogate"),
        (b'{"\\udc00": 1}', "holds a lone surrogate"),
        (b'{"a":' * 100_000, "is nested too deeply"),
        (b"[" * 1_000_000, "is nested too deeply"),
    ],
    ids=lambda value: repr(value[:20]),
)
def test_broken_json(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(data)
    with pytest.raises(FormatError, match=message):
        huggingface.load(tmp_path)
    write(tmp_path, good())
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(FormatError, match=message):
            huggingface.load(tmp_path)
        (tmp_path / name).unlink()


def test_paired_surrogates_are_a_character(tmp_path: Path) -> None:
    document = good()
    document["added_tokens"][1]["content"] = "<🙂>"
    document["post_processor"] = None
    (tmp_path / "tokenizer.json").write_text(json.dumps(document, ensure_ascii=True))
    assert BPETokenizer.from_pretrained(tmp_path).special_tokens["<🙂>"] == 259


def test_steps_nested_a_hundred_times(tmp_path: Path) -> None:
    document = good()
    for _ in range(100):
        for name, members in (
            ("normalizer", "normalizers"),
            ("pre_tokenizer", "pretokenizers"),
            ("post_processor", "processors"),
            ("decoder", "decoders"),
        ):
            document[name] = {"type": "Sequence", members: [document[name]]}
    assert contents(huggingface.load(write(tmp_path / "1", document)))["normalizers"] == [("NFC",)]


WRONG: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    97,
    1.5,
    2**40,
    "",
    "x",
    "\ud800",
    [],
    {},
    [[]],
    [0, "x"],
    {"type": "ByteLevel"},
    {"type": "Sequence"},
    {"content": "a"},
]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field; of the vocabulary only some entries."""
    yield path
    if isinstance(value, dict):
        names = list(value) if len(value) < 200 else ["a", "he", "<eos>", "Ā"]
        for name in names:
            yield from paths(value[name], (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from paths(item, (*path, index))


def assert_model_or_error(directory: Path) -> None:
    try:
        tokenizer = BPETokenizer.from_model(huggingface.load(directory))
    except TokenizerError as error:
        message = str(error)
    else:
        message = str(directory)
        ids = tokenizer.encode("hel <bos>é 12!", add_special_tokens=True, allowed_special="all")
        assert isinstance(tokenizer.decode(ids), str)
    assert str(directory) in message


@pytest.mark.sampled(1.0)
@pytest.mark.parametrize("in_bytes", [True, False])
def test_every_field_with_every_wrong_value(in_bytes: bool, tmp_path: Path) -> None:
    document = good() if in_bytes else good_characters()
    document |= {"truncation": {"max_length": 3}, "padding": {}}
    if in_bytes:  # these compile faster
        document["pre_tokenizer"] = sequence(split(r"\s"), {"type": "Digits", "individual_digits": True})
    for path in sample([*paths(document)], 0.2, f"wrong values {in_bytes}"):
        changes = [at(*path, to=wrong) for wrong in WRONG] + [without(*path)] if path else []
        for change in changes:
            changed = copy.deepcopy(document)
            change(changed)
            # ASCII only, for lone surrogates have no UTF-8.
            (tmp_path / "tokenizer.json").write_text(json.dumps(changed))
            assert_model_or_error(tmp_path)


@pytest.mark.sampled(1.0)
def test_every_field_of_the_config_with_every_wrong_value(tmp_path: Path) -> None:
    core = huggingface.load(write(tmp_path, good())).core
    huggingface.save(
        Model(core, config={"model_max_length": 5, "additional_special_tokens": ["<eos>"]}), tmp_path
    )
    document = read(tmp_path / "tokenizer_config.json")
    for path in sample([*paths(document)], 0.2, "wrong values of the config"):
        changes = [at(*path, to=wrong) for wrong in WRONG] + [without(*path)] if path else []
        for change in changes:
            changed = copy.deepcopy(document)
            change(changed)
            (tmp_path / "tokenizer_config.json").write_text(json.dumps(changed))
            assert_model_or_error(tmp_path)


@pytest.mark.parametrize("document", [good(), good_characters()], ids=["bytes", "characters"])
def test_files_with_bytes_changed_or_cut_off(document: dict[str, Any], tmp_path: Path) -> None:
    data = json.dumps(document, ensure_ascii=False).encode()
    generator = random.Random(0)
    for _ in range(400):
        changed = bytearray(data)
        for _ in range(generator.randint(1, 3)):
            changed[generator.randrange(len(changed))] = generator.choice(b'"{}[]:,0 \xff\xc3en\\')
        (tmp_path / "tokenizer.json").write_bytes(changed[: generator.choice([len(data), None])])
        assert_model_or_error(tmp_path)
        (tmp_path / "tokenizer.json").write_bytes(data[: generator.randrange(len(data))])
        with pytest.raises(FormatError):
            huggingface.load(tmp_path)


# -- crashes --------------------------------------------------------------------------------------------


@pytest.fixture
def two_models(tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer) -> list[Model]:
    """Models that differ in everything, and whose configs do not fit the other's tokens."""
    return [
        dataclasses.replace(tokenizer.model, config={"model_max_length": 1}),
        Model(
            plain_tokenizer.model.core.with_added_tokens([AddedToken("<x>", 7777)]),
            {"eos": "<x>", "bos": ""},
            PostProcessor((), (7777, 97)),
            {"model_max_length": 2},
        ),
    ]


SAVE_FOREVER = """
import sys
from bpe_tokenizer.formats import huggingface
models = [huggingface.load(directory) for directory in sys.argv[1:3]]
huggingface.save(models[0], sys.argv[3])
print("ready", flush=True)
while True:
    for model in models:
        huggingface.save(model, sys.argv[3])
"""


@pytest.mark.sampled(1.0)
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9")
def test_kill_9_while_saving_leaves_one_of_the_two(two_models: list[Model], tmp_path: Path) -> None:
    directories = [str(tmp_path / name) for name in ("a", "b", "target")]
    for model, directory in zip(two_models, directories, strict=False):
        huggingface.save(model, directory)
    expected = [contents(model) for model in two_models]
    generator = random.Random(os.environ[DAY])
    for _ in range(sample_size(20, 0.2)):
        with subprocess.Popen(
            [sys.executable, "-c", SAVE_FOREVER, *directories], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(generator.uniform(0, 0.06))
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert contents(huggingface.load(directories[2])) in expected


@pytest.mark.parametrize("moved", [0, 1, 2])
@pytest.mark.parametrize("first", [0, 1, None], ids=["over one", "over the other", "into nothing"])
@pytest.mark.usefixtures("ctrl_c")
def test_a_crash_after_each_move(
    two_models: list[Model], moved: int, first: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = two_models[1 - (first or 0)]
    if first is not None:
        huggingface.save(two_models[first], tmp_path)
    replace = Path.replace
    moves: list[Path] = []

    def crash(self: Path, target: Path) -> Path:
        if len(moves) == moved:
            os.kill(os.getpid(), signal.SIGINT)
        moves.append(target)
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", crash)
        if moved < 2:
            with pytest.raises(KeyboardInterrupt):
                huggingface.save(new, tmp_path)
        else:
            huggingface.save(new, tmp_path)
    if moved == 0 and first is None:
        with pytest.raises(FormatError, match=r"holds no tokenizer\.json"):
            huggingface.load(tmp_path)
        return
    loaded = huggingface.load(tmp_path)
    assert contents(loaded) == contents(new if moved or first is None else two_models[first])
    round_trip(two_models[0], tmp_path)  # what was left over is in nobody's way
    round_trip(two_models[1], tmp_path)


def test_what_a_crash_cut_off_is_passed_over(two_models: list[Model], tmp_path: Path) -> None:
    for model in two_models:
        huggingface.save(model, tmp_path)
        config = (tmp_path / "tokenizer_config.json").read_bytes()
        for index, data in enumerate((b"", config[:50], b"{}", b"\xff", b'{"bpe_tokenizer": 5}')):
            (tmp_path / f".tokenizer_config.json.{index}.tmp").write_bytes(data)
        assert contents(huggingface.load(tmp_path)) == contents(model)
        (tmp_path / "tokenizer_config.json").unlink()
        assert huggingface.load(tmp_path).core.vocab == model.core.vocab


@pytest.mark.parametrize("failing", ["fsync", "open"])
def test_a_full_disk_leaves_the_old_files(
    failing: str, two_models: list[Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    huggingface.save(two_models[0], tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    calls: list[None] = []

    def full(*_args: Any, **_named: Any) -> Any:
        calls.append(None)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os if failing == "fsync" else Path, failing, full)
        with pytest.raises(OSError, match="No space left"):
            huggingface.save(two_models[1], tmp_path)
    assert calls
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_mode_of_a_file_is_kept(plain_tokenizer: BPETokenizer, tmp_path: Path) -> None:
    plain_tokenizer.save(tmp_path)
    plain = tmp_path / "plain"
    plain.touch()
    assert (tmp_path / "tokenizer.json").stat().st_mode == plain.stat().st_mode
    (tmp_path / "tokenizer.json").chmod(0o640)
    plain_tokenizer.save(tmp_path)
    assert (tmp_path / "tokenizer.json").stat().st_mode & 0o777 == 0o640


# -- regular expressions --------------------------------------------------------------------------------

EMPTY = "can match the empty text"


@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_named_patterns_can_be_carried_over(name: str) -> None:
    for pattern in NAMED_PATTERNS[name].patterns:
        assert objection(pattern, oniguruma=False) is None
        assert objection(_core.SplitPattern(pattern).to_oniguruma(), oniguruma=True) is None


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        (r"a|\p{L}+\.\n|[^\s\d]{2,3}?|(?:b++|c{2}+)(?=d)|(?<!e)f$", None),
        ("", EMPTY),
        ("a|", EMPTY),
        ("a?", EMPTY),
        ("a{0,3}", EMPTY),
        ("a{,3}", EMPTY),
        ("a{00}", EMPTY),
        (r"\x{41}*", EMPTY),
        (r"\p{L}*+", EMPTY),
        ("(?:a|b*)", EMPTY),
        ("(?=a)", EMPTY),
        ("(?i)", EMPTY),
        ("^$", EMPTY),
        ("[^^]*", EMPTY),
        ("{", None),
        ("a{b}", None),
        ("(?:a|b*)c", None),
        ("(?i:'s|'ll)|(?>a*)b", None),
        ("[]a]+|[^]a*]|[a[b]c&&[^a]]", None),
        ("(" * 40 + "a" + ")" * 40, None),
        ("(" * 90 + "a" + ")" * 90, "groups nested too deeply"),
        ("a{2}{2}", "two quantifiers in a row"),
        ("a+*", "two quantifiers in a row"),
        ("(?:a*)+", "a quantifier of something that can match the empty text"),
        (r"\z?a", "a quantifier of something that can match the empty text"),
        ("*a", "\\* with nothing before it"),
        (r"\x61+", r"a quantifier of \\x without braces"),
        (r"\xe9", r"\\xe9"),
        (r"\u12", r"\\u"),
        (r"\x{110000}", r"\\x\{110000\}"),
        (r"\x{" + "1" * 5000 + "}", r"\\x"),
        (r"\pL", r"\\pL"),
        (r"\p{Script=Han}", r"\\p\{Script=Han\}"),
        (r"a\b", r"\\b"),
        (r"(a)\1", r"\\1"),
        (r"\R|\X", r"\\R"),
        (r"\<a", r"\\<"),
        ("a\\", r"\\"),
        ("(?<name>a)", r"\(\?<n"),
        ("(?#x)a", r"\(\?#x"),
        ("a(?i)b", r"\(\?i\)"),
        ("(?-i:a)", r"\(\?-i"),
        ("(?:a", r"\("),
        ("a)b", r"\)"),
        ("[a", r"\["),
        ("[[:alpha:]]", r"\[: in a class"),
        ("[a--b]", "-- in a class"),
        ("(?i:ß)", "'ß' with its case ignored"),
        ("(?i:[ß])", "'ß' with its case ignored"),
        ("(?i:Ss)", "'ss' with its case ignored"),
        ("(?i)first", "'fi' with its case ignored"),
        ("(?i:s+)", "a quantifier of a letter whose case is ignored"),
        (r"(?i:\p{Lu})", r"\\p with its case ignored"),
        (r"(?i:\x{df})", r"\\x\{df\}"),
    ],
)
def test_what_the_engines_do_not_read_alike(pattern: str, problem: str | None) -> None:
    for oniguruma in (False, True):
        found = objection(pattern, oniguruma=oniguruma)
        assert found is None if problem is None else re.match(f"(holds )?{problem}", str(found)), found


def test_what_is_translated_from_one_of_the_two_only() -> None:
    assert objection(r"\w+|[^\w]", oniguruma=False) is None
    assert "holds \\w, which" in str(objection(r"\w+", oniguruma=True))
    assert objection("^a|^b", oniguruma=True) is objection("a^b", oniguruma=False) is None
    assert "holds ^ inside, which" in str(objection(r"\n^", oniguruma=True))
    assert "holds ^ inside, which" in str(objection(r"(?:^a)b", oniguruma=True))
    assert objection("a{2}?", oniguruma=False) is None
    assert EMPTY in str(objection("a{2}?", oniguruma=True))
    assert objection("(?:a{2}|b{1,2})+?c{1,2}?d{2}+", oniguruma=True) is None
    assert objection(r"a\Z", oniguruma=True) is objection("(?m:.)|(?mi:a)", oniguruma=True) is None
    assert "holds \\Z, which" in str(objection(r"a\Z", oniguruma=False))
    assert "holds (?m:..., which" in str(objection("(?m:.)", oniguruma=False))


atoms = st.sampled_from(["a", "b", r"\s", r"\p{L}", "[ab]", "[^a]", ".", "(?=a)", "(?!b)", "$", r"\{"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map("|".join).map("(?:{})".format),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{0,2}", "{1,2}", "*?", "++"])).map("".join),
        inner.map("(?>{})".format),
    ),
    max_leaves=8,
)


@given(patterns, st.text(alphabet="ab \n{1", max_size=8))
def test_a_pattern_that_passes_matches_no_empty_text(pattern: str, text: str) -> None:
    if objection(pattern, oniguruma=False) is None:
        assert all(match.group() for match in regex.finditer(pattern, text, flags=regex.V1))
