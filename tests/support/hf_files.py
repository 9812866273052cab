"""tokenizer.json files as Hugging Face's own tools write them, made from parts."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bpe_tokenizer import GPT2_SPLIT_PATTERN, AddedToken, BPETokenizer, Model, _core
from bpe_tokenizer.formats import huggingface

LLAMA3_REGEX = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def byte_level(add_prefix_space: bool = False, trim_offsets: bool = False, use_regex: bool = True) -> Any:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": trim_offsets,
        "use_regex": use_regex,
    }


BYTE_LEVEL = byte_level()


def split(pattern: str, kind: str = "Regex", behavior: str = "Isolated", invert: bool = False) -> Any:
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps: Any) -> Any:
    return {"type": "Sequence", "pretokenizers": [*steps, byte_level(use_regex=False)]}


def template(*pieces: str, ids: Mapping[str, Sequence[int]]) -> Any:
    """`$A` is the text, everything else a special token of `ids`."""
    single = [
        {"Sequence" if piece == "$A" else "SpecialToken": {"id": piece.removeprefix("$"), "type_id": 0}}
        for piece in pieces
    ]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {
            name: {"id": name, "ids": list(values), "tokens": [name] * len(values)}
            for name, values in ids.items()
        },
    }


def added_token(token_id: int, content: str, special: bool = True, **flags: bool) -> Any:
    names = ("single_word", "lstrip", "rstrip", "normalized")
    shown = {name: flags.get(name, False) for name in names}
    return {"id": token_id, "content": content} | shown | {"special": special}


def bytes_vocab(*tokens: str) -> dict[str, int]:
    """The 256 bytes, then these token strings."""
    vocab = {_core.to_printable(bytes([byte])): byte for byte in range(256)}
    return vocab | {token: 256 + index for index, token in enumerate(tokens)}


def tokenizer_json(
    vocab: Mapping[str, int],
    merges: Sequence[Any] = (),
    *,
    added: Sequence[Any] = (),
    pre_tokenizer: Any = BYTE_LEVEL,
    normalizer: Any = None,
    post_processor: Any = None,
    decoder: Any = BYTE_LEVEL,
    **model: Any,
) -> dict[str, Any]:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": list(added),
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": post_processor,
        "decoder": decoder,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": dict(vocab),
            "merges": list(merges),
        }
        | model,
    }


def write(directory: Path, document: Mapping[str, Any]) -> Path:
    """Write it as the tokenizer.json of a directory, which is returned."""
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, ensure_ascii=False)
    (directory / "tokenizer.json").write_text(text, encoding="utf-8")
    return directory


SIZE = 256


def contents(model: Model) -> dict[str, Any]:
    """Everything a model is, roles by what they amount to."""
    core = model.core
    tokenizer = BPETokenizer.from_model(model)
    names = "vocab vocab_size merges normalizers pre_tokenizers alphabet decoder added_tokens ignore_merges"
    return {name: getattr(core, name) for name in names.split()} | {
        "unknown": (core.unk_id, core.fuse_unk, core.byte_fallback),
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


Change = Callable[[dict[str, Any]], object]


def owner_of(document: Any, path: tuple[Any, ...]) -> Any:
    for name in path[:-1]:
        document = document[name]
    return document


def at(*path: Any, to: Any) -> Change:
    """Sets a field."""
    return lambda document: owner_of(document, path).__setitem__(path[-1], to)


def without(*path: Any) -> Change:
    """Takes a field away."""
    return lambda document: owner_of(document, path).__delitem__(path[-1])


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
