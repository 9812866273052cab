"""Base64 JSON: everything a model is comes back; the lesson is read where a model does the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import (
    CL100K_SPLIT_PATTERN,
    GPT2_SPLIT_PATTERN,
    AddedToken,
    BPETokenizer,
    FormatError,
    Model,
    PostProcessor,
    _core,
)
from bpe_tokenizer.formats import base64_json
from bpe_tokenizer.model import Metaspace, PlainNormalizer, PrefixSpace, Replace, Split, Strip
from bpe_tokenizer.reference import CharBPETokenizer, NaiveBPETokenizer, RegexBPETokenizer
from hostile import hostile_texts
from lesson import trained_on
from small_tokenizers import BYTES, bytes_model, characters_model, contents


def check_refused(path: Path, changes: dict[str, Any], message: str) -> None:
    """Change a saved file, and check that loading refuses it."""
    saved = json.loads(path.read_bytes())
    path.write_text(json.dumps(saved | changes), encoding="utf-8")
    with pytest.raises(FormatError, match=message) as error:
        base64_json.load(path)
    assert str(error.value).startswith(str(path))


NORMALIZERS = [
    *(PlainNormalizer("NFKC"), PlainNormalizer("Lowercase"), PlainNormalizer("StripAccents")),
    *(Strip(strip_left=True, strip_right=False), Replace(pattern=r"\s+", content=" ")),
]
PRE_TOKENIZERS = [
    Split(pattern=r"\d", behavior="Removed", invert=True),
    PrefixSpace(),
    Split(pattern=r"\s", behavior="MergedWithNext"),
    Split("SplitBytes", "Ġ", "Contiguous", False),
]
ALL_FLAGS = AddedToken("<s>", 1, True, True, True, True, True)
MODELS = {
    "bytes": bytes_model(),
    "empty": bytes_model({256: b""}),
    "ranks": bytes_model({256: b"ab", 300: b"abc"}, None, split_patterns=[CL100K_SPLIT_PATTERN]),
    "prefix": bytes_model(split_patterns=[r"\d", r"\s"], add_prefix_space=True, normalization="NFKD"),
    "twice": bytes_model({256: b"a", 257: b"ab", 258: b"ab"}, [(b"a", b"b")]),
    "named": Model(
        _core.Model(BYTES, [], added_tokens=[AddedToken("<é>", 256), AddedToken(" ", 999, special=False)]),
        {"bos": "<é>", "eos": ""},
        PostProcessor((256, 97), (999,)),
        {"chat_template": "{{ '\n' }}", "model_max_length": 10**30, "x": [None, 1.5]},
    ),
    "steps": bytes_model(normalizers=NORMALIZERS, pre_tokenizers=PRE_TOKENIZERS),
    "metaspace": bytes_model(pre_tokenizers=[Metaspace("Metaspace", "▁", "first", True)]),
    "gaps": Model(_core.Model({0: b"a", 2**32 - 2: b"b"}, [], requires_all_bytes=False, keeps_gaps=True)),
    "characters": Model(characters_model(fuse_unk=True, added_tokens=[ALL_FLAGS])),
}


@pytest.mark.parametrize("name", MODELS)
def test_everything_comes_back(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    base64_json.save(model, tmp_path / "new" / "x.json")
    again = base64_json.load(tmp_path / "new" / "x.json")
    assert contents(again) == contents(model)
    ours, theirs = BPETokenizer.from_model(model), BPETokenizer.from_model(again)
    for text in ["ab  Ünï 12 a\u0301b", *hostile_texts(50)]:
        assert ours.encode(text, True, "all") == theirs.encode(text, True, "all")


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    base64_json.save(MODELS["bytes"], tmp_path / "x.json")
    saved = json.loads((tmp_path / "x.json").read_bytes())
    assert MODELS["bytes"].core.settings.keys() <= saved.keys()  # no setting of the core is forgotten
    assert (saved["format"], saved["version"], saved["vocab"]["97"]) == ("bpe_tokenizer", 1, "YQ==")
    kept = {name: saved[name] for name in ("format", "version", "vocab", "merges")}
    (tmp_path / "x.json").write_text(json.dumps(kept))
    assert contents(base64_json.load(tmp_path / "x.json")) == contents(MODELS["bytes"])


def steps(*pre_tokenizers: Any) -> dict[str, Any]:
    return {"pre_tokenizers": list(pre_tokenizers)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "format: 'other' must be 'bpe_tokenizer'"),
        ({"format": None}, "format: must be a string"),
        ({"version": 2}, "version: 2 is not supported; only version 1 is"),
        ({"new_field": 1}, "new_field: unknown field of base64 JSON"),
        ({"vocab": []}, "vocab: must be an object"),
        ({"vocab": {"0": "AA=="}}, "the vocabulary has no token for the byte 0x01"),
        ({"vocab": {"00": "AA=="}}, "vocab: '00' is not an id"),
        ({"vocab": {"9" * 5000: "AA=="}}, "vocab: '9{75}...' is not an id"),
        ({"vocab": {"4294967295": "AA=="}}, "4294967295 is not an id; the largest id is 4294967294"),
        ({"vocab": {"0": "A"}}, "vocab.0: 'A' is not a token in base64"),
        ({"vocab": {"0": "A*A=="}}, r"vocab.0: 'A\*A==' is not a token in base64"),
        ({"merges": {}}, "merges: must be an array"),
        ({"merges": [["YQ=="]]}, r"merges\[0\]: \['YQ=='\] is not a pair"),
        ({"merges": [["YQ==", 1]]}, r"merges\[0\]: .* is not a pair"),
        ({"merges": [["YQ==", ""]]}, r"merges\[0\]: .* is not a pair"),
        ({"merges": [["YQ==", "Yg=="]]}, '"ab" is not in the vocabulary'),
        ({"ignore_merges": 1}, "ignore_merges: must be true or false"),
        ({"alphabet": "runes"}, "alphabet: 'runes' must be one of bytes, characters"),
        ({"unk_id": 999}, "the unknown token's id 999 is not in the vocabulary"),
        ({"unk_id": 2**40}, "unk_id: must be an id"),
        ({"decoder": ["a"]}, "decoder: .* must hold str and bool and str"),
        ({"decoder": ["a", True, "x"]}, r"decoder\[2\]: 'x' must be one of none, one, first"),
        ({"decoder": ["", True, "one"]}, r"decoder\[0\]: '' must be one character"),
        ({"decoder": {}}, "decoder: must be an array"),
        (steps(["PrefixSpace"], ["Split", "a", "Merged", False]), r"\[1\]\[2\]: 'Merged' must be one of"),
        (steps(["Metaspace", "_", "last", True]), r"rs\[0\]\[2\]: 'last' must be one of"),
        (steps(["Metaspace", "ab", "always", True]), r"pre_tokenizers\[0\]\[1\]: 'ab' must be one character"),
        ({"normalizers": [["NFX"]]}, r"normalizers\[0\]: .* is not a step; use one of NFC, "),
        ({"normalizers": [[["NFC"]]]}, "is not a step"),
        ({"normalizers": ["NFC"]}, r"normalizers\[0\]: must be an array"),
        ({"normalizers": [["NFC", 1]]}, "must hold nothing else"),
        ({"normalizers": [["Strip", 1, 0]]}, "must hold bool and bool"),
        ({"normalizers": [["Replace", "(", ""]]}, r"normalizers\[0\]: .*parenthesis"),
        (steps(["Split", "(", "Isolated", False]), r"pre_tokenizers\[0\]: .*parenthesis"),
        (steps(["Split", "a", "Isolated"]), "must hold str and str and bool"),
        ({"added_tokens": {}}, "added_tokens: must be an array"),
        ({"added_tokens": [{"content": "x"}]}, r"added_tokens\[0\].id: is missing"),
        ({"added_tokens": [{"content": "x", "id": 256}]}, r"added_tokens\[0\].special: is missing"),
        ({"named_tokens": {"boss": "x"}}, "named_tokens.boss: unknown role"),
        ({"named_tokens": {"bos": 1}}, "named_tokens.bos: must be a string"),
        ({"post_processor": {"prefix": [1]}}, "post_processor.suffix: is missing"),
        ({"post_processor": {"prefix": [256], "suffix": []}}, r"prefix\[0\]: 256 is not the id of a token"),
        ({"config": []}, "config: must be an object"),
    ],
)
def test_broken_files_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    base64_json.save(MODELS["bytes"], tmp_path / "x.json")
    check_refused(tmp_path / "x.json", changes, message)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"x": {1, 2}}, "set"),
        ({"x": float("nan")}, "JSON compliant"),
        ({1: {2: 3}}, "a key is not a string"),
        ({1: 2}, "it changes when it is read again"),
    ],
)
def test_a_config_that_is_no_json(config: Any, problem: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=f"config: cannot be written as JSON: .*{problem}"):
        base64_json.save(Model(_core.Model(BYTES, []), config=config), tmp_path / "x.json")
    assert not list(tmp_path.iterdir())


# -- the lesson -----------------------------------------------------------------------------------------

TEXT = "the cat in the hat, low lower lowest; naïve café \U0001f642 don't!  12 \n\n" * 3


@pytest.mark.parametrize(
    "lesson",
    [
        NaiveBPETokenizer().train(TEXT, 300),
        RegexBPETokenizer().train(TEXT, 300),
        trained_on(RegexBPETokenizer, TEXT, 300, {"<|a|>": 256, "<|b|>": 290}),
        RegexBPETokenizer(GPT2_SPLIT_PATTERN).train(TEXT, 300),
        RegexBPETokenizer(r"[a-z]+|\s").train(TEXT, 300),
        RegexBPETokenizer("").train(TEXT, 300),
        CharBPETokenizer(byte_level=True).train(TEXT, 300, allowed_special={"<|end|>", "<|a|>"}),
    ],
    ids=lambda lesson: type(lesson).__name__,
)
def test_the_lesson_is_read(lesson: Any, tmp_path: Path) -> None:
    lesson.save(tmp_path / "x.json")
    tokenizer = BPETokenizer.load(tmp_path / "x.json", "base64-json")
    assert tokenizer.special_tokens == lesson.special_tokens
    core = tokenizer.model.core
    assert core.split_patterns == [each for each in [getattr(lesson, "pattern", "")] if each]
    assert not core.ignore_merges
    assert tokenizer.vocab == {
        **{token_id: lesson.id_bytes(token_id) for token_id in lesson.vocab},
        **{token_id: text.encode() for text, token_id in lesson.special_tokens.items()},
    }
    for text in [TEXT, "the<|end|>cat<|a|><|endoftext|>", *(t for t in hostile_texts(200) if len(t) < 300)]:
        for allowed in ("none", "all"):
            assert tokenizer.encode(text, allowed_special=allowed) == lesson.encode(
                text, allowed_special=allowed
            )


def test_a_lesson_of_characters_is_refused(tmp_path: Path) -> None:
    CharBPETokenizer().train(TEXT, 300).save(tmp_path / "x.json")
    message = "class: 'CharBPETokenizer' fails on unknown characters, which a model cannot"
    with pytest.raises(FormatError, match=message):
        BPETokenizer.load(tmp_path / "x.json", "base64-json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "version: 2 is not supported"),
        ({"class": "Other"}, "class: 'Other' is not a class of bpe_tokenizer.reference"),
        ({"settings": {}}, "settings: .* must be the settings of a RegexBPETokenizer"),
        ({"settings": {"pattern": "("}}, "settings.pattern: is not supported"),
        ({"settings": {"pattern": r"\s+$"}}, r"settings.pattern: .* holds \$"),
        ({"special_tokens": {"<a>": 97}}, "special_tokens.<a>: 97 is already the id of a token"),
        ({"special_tokens": {"": 999}}, "the text is empty"),
        ({"special_tokens": {"<a>": 999, "<b>": 999}}, "has the same id"),
        ({"merges": []}, "merges: no merge makes the token"),
        ({"merges": [["AAE=", "AA=="]]}, r"merges\[0\]: .* uses a token that no earlier merge makes"),
    ],
)
def test_a_broken_lesson_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    RegexBPETokenizer().train(TEXT, 300).save(tmp_path / "x.json")
    check_refused(tmp_path / "x.json", changes, message)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vocab", {"0": "5a2X"}),
        ("vocab", {"0": "/w=="}),
        ("merges", [["5a2X", "YQ=="]]),
        ("merges", [["YQ==", "5a2X"]]),
    ],
)
def test_a_lesson_of_printable_bytes_with_others_is_refused(field: str, value: Any, tmp_path: Path) -> None:
    CharBPETokenizer(byte_level=True).train("ab ab", 257, allowed_special=[]).save(tmp_path / "x.json")
    message = f"{field}: .* has a character outside the 256 printable bytes"
    check_refused(tmp_path / "x.json", {field: value}, message)


def test_merges_that_make_the_same_token_are_refused(tmp_path: Path) -> None:
    """The lesson merges all places of a pair at once, and then the order would matter."""
    RegexBPETokenizer().train("ab ab", 257).save(tmp_path / "x.json")
    merges = json.loads((tmp_path / "x.json").read_bytes())["merges"]
    message = r"merges\[1\]: .* makes a token that already exists"
    check_refused(tmp_path / "x.json", {"merges": merges * 2}, message)
