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


def case(config: Any = None, *added: Any, **beside: Any) -> dict[str, Any]:
    return {"config": config, "added": list(added), **beside}


EOS, LEFT = {"eos_token": "<x>"}, typed("<x>", lstrip=True)
EXTRA, OLDER = "extra_special_tokens", "additional_special_tokens"
ROLES = {f"{role}_token": f"<{role}>" for role in ("mask", "pad", "audio", "cls", "sep", "unk", "eos")}
ALL_FLAGS = entry("<x>", lstrip=True, rstrip=True, single_word=True)
OLD_X, OLD_Y = {OLDER: ["<x>"]}, {OLDER: ["<y>"]}
SEP = {"content": "<x>", "lstrip": True, "normalized": False}

CASES: dict[str, dict[str, Any]] = {
    "a role": case(EOS),
    "a role as an object": case({"eos_token": LEFT}),
    "a role as an object that says it is normalized": case({"eos_token": typed("<x>", normalized=True)}),
    "the flags of tokenizer.json": case({"eos_token": LEFT}, X),
    "a role of an ordinary token": case(EOS, PLAIN),
    "a role of a token of the vocabulary": case(EOS, vocab=("<x>",)),
    "all roles": case({EXTRA: ["<e>"], **ROLES, "bos_token": "<x>"}),
    "one token of two roles": case({"eos_token": "<x>", "bos_token": "<x>", "pad_token": ""}),
    "extra_special_tokens": case({EXTRA: ["<x>", "<y>", "<x>"]}),
    "extra_special_tokens as objects": case({EXTRA: [LEFT, typed("<y>", special=True)]}),
    "extra_special_tokens of an ordinary token": case({EXTRA: ["<x>"]}, PLAIN),
    "extra_special_tokens by name": case({EXTRA: {"image_token": "<i>"}}),
    "model_specific_special_tokens": case({"model_specific_special_tokens": {"image_token": "<i>"}}),
    "both names of them": case({OLDER: ["<x>"], EXTRA: ["<y>"]}),
    "the older name": case({OLDER: ["<x>"], EXTRA: []}),
    "a token of a model": case({"image_token": "<i>"}, X),
    "a token of a model as an object": case({"image_token": LEFT}),
    "the decoder alone": case(decoder(entry("<x>"), entry("<y>", special=False))),
    "the decoder in another order": case(
        {"added_tokens_decoder": {"257": entry("<x>"), "256": entry("<y>")}}
    ),
    "the decoder's flags": case(decoder(ALL_FLAGS), X),
    "the decoder's flags, some of them": case(
        decoder({"content": "<x>"}, {"content": "<y>", "special": True}),
        added_token(SIZE, "<x>", lstrip=True),
        PLAIN | {"id": SIZE + 1, "content": "<y>"},
    ),
    "the decoder makes it ordinary": case(decoder(entry("<x>", special=False)), X),
    "the decoder makes it special": case(decoder(entry("<x>")), PLAIN),
    "the decoder and a role": case(EOS | decoder(entry("<x>", special=False)), X),
    "a role that the decoder lacks": case(EOS | decoder(), PLAIN),
    "the decoder and a new role": case({"pad_token": "<p>"} | decoder(entry("<x>")), X),
    "the decoder of a part": case(decoder(entry("<x>", lstrip=True)), X, Y),
    "the decoder of a token of the vocabulary": case(decoder(entry("<x>", lstrip=True)), vocab=("<x>",)),
    "the map": case(special_tokens_map={"eos_token": "<x>", "image_token": "<i>"}),
    "the map after the config": case(
        {"eos_token": "<x>", "pad_token": "<x>"},
        X,
        Y,
        special_tokens_map={"eos_token": "<y>", "pad_token": None},
    ),
    "objects in the map": case({}, special_tokens_map={"sep_token": SEP}),
    "lists in the map": case(
        {EXTRA: ["<z>"]}, special_tokens_map={EXTRA: ["<x>", {"content": "<y>", "rstrip": True}]}
    ),
    "the older name in the map": case(OLD_X, special_tokens_map=OLD_Y),
    "the map beside a decoder": case(decoder(), X, special_tokens_map={"eos_token": "<y>"}),
    "added_tokens.json": case(added_tokens={"<y>": 257, "<x>": 256}),
    "added_tokens.json and roles": case(
        EOS | {EXTRA: ["<y>"], "image_token": "<i>"}, added_tokens={"<x>": 256, "<y>": 257, "<i>": 258}
    ),
    "added_tokens.json after tokenizer.json": case(None, X, added_tokens={"<x>": 256, "<y>": 257}),
    "added_tokens.json of the vocabulary": case(added_tokens={"<x>": 256}, vocab=("<x>",)),
    "added_tokens.json beside a decoder": case(decoder(entry("<x>")), X, added_tokens={"<y>": 257}),
    "add_bos_token": case({"bos_token": "<x>", "add_bos_token": True}, X),
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
        (decoder(entry("<y>")), {}, r"_config\.json: added_tokens_decoder\.256: gives '<y>' the id 256,"),
        (
            decoder(entry("<x>"), start=300),
            {},
            "'<x>' the id 300, but by tokenizer.json, .* has 256; correct",
        ),
        ({}, {"added_tokens": {"<x>": 300}}, r"added_tokens\.json: <x>: gives '<x>' the id 300, .* has 256;"),
        ({}, {"added_tokens": {"<y>": 256}}, r"'<y>' the id 256, .* it has 257; .* by its path: alone$"),
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
