"""The files beside a tokenizer.json: the tokens, flags and ids that transformers finds in a directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, FormatError, StreamDecoder
from hf_files import SIZE, added_token, bytes_vocab, read, sequence, split, tokenizer_json, write
from peers.hf_transformers import tokenizers, transformers

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("default")]

X, Y = added_token(SIZE, "<x>"), added_token(SIZE + 1, "<y>")
PLAIN = added_token(SIZE, "<x>", special=False, normalized=True)
TEXTS = ["a <x> b", "<x><y>", "A<x>B", "x  <y>", "<s> <p>", "q<x> \n<z>", "<e><i>", "<x", "é<x>é", "<x> <x>"]


def entry(content: str, special: bool = True, **flags: bool) -> dict[str, Any]:
    fields: dict[str, Any] = added_token(0, content, special, **flags)
    del fields["id"]
    return fields


def typed(content: str, **flags: bool) -> dict[str, Any]:
    return {"__type": "AddedToken", "content": content, **flags}


def decoder(*entries: dict[str, Any], start: int = SIZE) -> dict[str, Any]:
    return {"added_tokens_decoder": {str(start + index): each for index, each in enumerate(entries)}}


def directory(
    path: Path,
    config: dict[str, Any] | None = None,
    *,
    added: list[Any] | None = None,
    vocab: tuple[str, ...] = (),
    **beside: Any,
) -> Path:
    write(path, tokenizer_json(bytes_vocab(*vocab), added=added or [], pre_tokenizer=sequence(split(r"\s+"))))
    if config is not None:
        beside["tokenizer_config"] = {"tokenizer_class": "PreTrainedTokenizerFast"} | config
    for name, content in beside.items():
        (path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return path


def tokens(of: dict[int, Any]) -> dict[int, tuple[Any, ...]]:
    names = ("content", "special", "single_word", "lstrip", "rstrip", "normalized")
    return {token_id: tuple(getattr(token, name) for name in names) for token_id, token in of.items()}


CASES: dict[str, dict[str, Any]] = {
    "a role": {"config": {"eos_token": "<x>"}},
    "a role as an object": {"config": {"eos_token": typed("<x>", lstrip=True)}},
    "a role as an object that says it is normalized": {
        "config": {"eos_token": typed("<x>", normalized=True)}
    },
    "the flags of tokenizer.json": {"config": {"eos_token": typed("<x>", lstrip=True)}, "added": [X]},
    "a role of an ordinary token": {"config": {"eos_token": "<x>"}, "added": [PLAIN]},
    "a role of a token of the vocabulary": {"config": {"eos_token": "<x>"}, "vocab": ("<x>",)},
    "all roles": {
        "config": {
            "extra_special_tokens": ["<e>"],
            **{f"{role}_token": f"<{role}>" for role in ("mask", "pad", "audio", "cls", "sep", "unk", "eos")},
            "bos_token": "<x>",
        }
    },
    "one token of two roles": {"config": {"eos_token": "<x>", "bos_token": "<x>", "pad_token": ""}},
    "extra_special_tokens": {"config": {"extra_special_tokens": ["<x>", "<y>", "<x>"]}},
    "extra_special_tokens as objects": {
        "config": {"extra_special_tokens": [typed("<x>", lstrip=True), typed("<y>", special=True)]}
    },
    "extra_special_tokens of an ordinary token": {
        "config": {"extra_special_tokens": ["<x>"]},
        "added": [PLAIN],
    },
    "extra_special_tokens by name": {"config": {"extra_special_tokens": {"image_token": "<i>"}}},
    "model_specific_special_tokens": {"config": {"model_specific_special_tokens": {"image_token": "<i>"}}},
    "both names of them": {"config": {"additional_special_tokens": ["<x>"], "extra_special_tokens": ["<y>"]}},
    "the older name": {"config": {"additional_special_tokens": ["<x>"], "extra_special_tokens": []}},
    "a token of a model": {"config": {"image_token": "<i>"}, "added": [X]},
    "a token of a model as an object": {"config": {"image_token": typed("<x>", lstrip=True)}},
    "the decoder alone": {"config": decoder(entry("<x>"), entry("<y>", special=False))},
    "the decoder in another order": {
        "config": {"added_tokens_decoder": {"257": entry("<x>"), "256": entry("<y>")}}
    },
    "the decoder's flags": {
        "config": decoder(entry("<x>", lstrip=True, rstrip=True, single_word=True)),
        "added": [X],
    },
    "the decoder's flags, some of them": {
        "config": decoder({"content": "<x>"}, {"content": "<y>", "special": True}),
        "added": [added_token(SIZE, "<x>", lstrip=True), PLAIN | {"id": SIZE + 1, "content": "<y>"}],
    },
    "the decoder makes it ordinary": {"config": decoder(entry("<x>", special=False)), "added": [X]},
    "the decoder makes it special": {"config": decoder(entry("<x>")), "added": [PLAIN]},
    "the decoder and a role": {
        "config": {"eos_token": "<x>"} | decoder(entry("<x>", special=False)),
        "added": [X],
    },
    "a role that the decoder lacks": {"config": {"eos_token": "<x>"} | decoder(), "added": [PLAIN]},
    "the decoder and a new role": {"config": {"pad_token": "<p>"} | decoder(entry("<x>")), "added": [X]},
    "the decoder of a part": {"config": decoder(entry("<x>", lstrip=True)), "added": [X, Y]},
    "the decoder of a token of the vocabulary": {
        "config": decoder(entry("<x>", lstrip=True)),
        "vocab": ("<x>",),
    },
    "the map": {"special_tokens_map": {"eos_token": "<x>", "image_token": "<i>"}},
    "the map after the config": {
        "config": {"eos_token": "<x>", "pad_token": "<x>"},
        "special_tokens_map": {"eos_token": "<y>", "pad_token": None},
        "added": [X, Y],
    },
    "objects in the map": {
        "config": {},
        "special_tokens_map": {"sep_token": {"content": "<x>", "lstrip": True, "normalized": False}},
    },
    "lists in the map": {
        "config": {"extra_special_tokens": ["<z>"]},
        "special_tokens_map": {"extra_special_tokens": ["<x>", {"content": "<y>", "rstrip": True}]},
    },
    "the older name in the map": {
        "config": {"additional_special_tokens": ["<x>"]},
        "special_tokens_map": {"additional_special_tokens": ["<y>"]},
    },
    "the map beside a decoder": {
        "config": decoder(),
        "special_tokens_map": {"eos_token": "<y>"},
        "added": [X],
    },
    "added_tokens.json": {"added_tokens": {"<y>": 257, "<x>": 256}},
    "added_tokens.json and roles": {
        "config": {"eos_token": "<x>", "extra_special_tokens": ["<y>"], "image_token": "<i>"},
        "added_tokens": {"<x>": 256, "<y>": 257, "<i>": 258},
    },
    "added_tokens.json after tokenizer.json": {"added_tokens": {"<x>": 256, "<y>": 257}, "added": [X]},
    "added_tokens.json of the vocabulary": {"added_tokens": {"<x>": 256}, "vocab": ("<x>",)},
    "added_tokens.json beside a decoder": {
        "config": decoder(entry("<x>")),
        "added_tokens": {"<y>": 257},
        "added": [X],
    },
    "add_bos_token": {"config": {"bos_token": "<x>", "add_bos_token": True}, "added": [X]},
}


@pytest.mark.parametrize("name", CASES)
def test_the_tokens_of_a_directory(name: str, tmp_path: Path) -> None:
    path = directory(tmp_path / "1", **CASES[name])
    theirs = transformers.AutoTokenizer.from_pretrained(path)
    ours = BPETokenizer.load(path)
    ours.save(tmp_path / "2")
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "2")
    for tokenizer in (ours, BPETokenizer.load(tmp_path / "2")):
        found = {token.id: token for token in tokenizer.model.core.added_tokens}
        assert tokens(found) == tokens(theirs.added_tokens_decoder) or name == "a role that the decoder lacks"
        for text in TEXTS:
            ids = theirs(text, add_special_tokens=False).input_ids
            assert tokenizer.encode(text, allowed_special="all") == ids == again(text).input_ids, text
        roles = {role: token for role, token in tokenizer.model.named_tokens.items() if token}
        expected = {
            role.removesuffix("_token"): token for role, token in theirs.special_tokens_map.items() if token
        }
        assert roles == {role: token for role, token in expected.items() if role in roles}
        assert {"bos", "eos", "pad", "unk"} & expected.keys() == roles.keys()
    named = theirs.special_tokens_map.items()
    assert again.special_tokens_map == {role: token for role, token in named if token}
    assert again.extra_special_tokens == theirs.extra_special_tokens


@pytest.mark.parametrize(
    ("config", "beside", "message"),
    [
        (
            decoder(entry("<y>")),
            {},
            r"tokenizer_config\.json: added_tokens_decoder\.256: gives '<y>' the id 256,",
        ),
        (
            decoder(entry("<x>"), start=300),
            {},
            "'<x>' the id 300, but by tokenizer.json, .* has 256; correct",
        ),
        ({}, {"added_tokens": {"<x>": 300}}, r"added_tokens\.json: <x>: gives '<x>' the id 300, .* has 256;"),
        (
            {},
            {"added_tokens": {"<y>": 256}},
            r"gives '<y>' the id 256, .* it has 257; .* by its path: alone$",
        ),
    ],
)
def test_ids_that_contradict_each_other(config: Any, beside: Any, message: str, tmp_path: Path) -> None:
    path = directory(tmp_path, config, added=[X], **beside)
    with pytest.raises(FormatError, match=message):
        BPETokenizer.load(path)
    assert BPETokenizer.load(path / "tokenizer.json").special_tokens == {"<x>": SIZE}


@pytest.mark.parametrize("kind", ["bytes", "characters"])
def test_without_a_decoder_token_strings_are_joined_with_spaces(kind: str, tmp_path: Path) -> None:
    merges = [["l", "o"], ["lo", "w"]]
    vocab = bytes_vocab("lo", "low") if kind == "bytes" else {c: n for n, c in enumerate("▁ lowerxAab<>sé")}
    vocab |= {} if kind == "bytes" else {"lo": 100, "low": 101}
    size = len(vocab)
    added = [added_token(size, "<s>"), added_token(size + 1, "é ", special=False)]
    document = tokenizer_json(vocab, merges, added=added, decoder=None)
    if kind == "characters":
        document["pre_tokenizer"] = None
    write(tmp_path, document)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    first = BPETokenizer.load(tmp_path)
    first.save(tmp_path / "2")
    assert read(tmp_path / "2" / "tokenizer.json")["decoder"] is None
    first.export(tmp_path / "model.json", "base64-json")
    again = tokenizers.Tokenizer.from_file(str(tmp_path / "2" / "tokenizer.json"))
    texts = [*TEXTS, "low lower", "  low", "", "<s>", "<s>low<s>", "é low", "low\nlow"]
    rows = [theirs.encode(text, add_special_tokens=False).ids for text in texts]
    for ours in (first, BPETokenizer.load(tmp_path / "2"), BPETokenizer.load(tmp_path / "model.json")):
        for skip in (True, False):
            expected = [theirs.decode(row, skip_special_tokens=skip) for row in rows]
            assert expected == [again.decode(row, skip_special_tokens=skip) for row in rows]
            assert [ours.decode(row, skip) for row in rows] == ours.decode_batch(rows, skip) == expected
            for row, text in zip(rows, expected, strict=True):
                stream = StreamDecoder(ours, skip_special_tokens=skip)
                assert "".join(map(stream.step, row)) + stream.flush() == text
        assert [ours.encode(text, allowed_special="all") for text in texts] == rows
