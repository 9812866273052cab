"""GGUF files: the container, the kinds of tokenizers, tokens, and the ids around a text."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gguf_files
from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats import gguf
from bpe_tokenizer.formats.gguf import file, reading
from bpe_tokenizer.formats.gguf.file import ValueType, read_metadata, write_metadata
from bpe_tokenizer.formats.gguf.pre_tokenizers import BYTE_LEVEL, CHARACTERS, FAMILIES
from bpe_tokenizer.formats.gguf.tokens import TokenType, final_types, read_tokens
from bpe_tokenizer.model import AddedToken, PostProcessor
from bpe_tokenizer.patterns import NAMED_PATTERNS
from gguf_files import (
    BYTES,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    byte_level,
    load,
    refusal,
)

H_E = ["h e", "l l", "he ll", "hell o", "Ġ w"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


# -- the container --------------------------------------------------------------------------------------


VALUES: list[tuple[str, ValueType, Any]] = [
    ("a.u8", ValueType.UINT8, 255),
    ("a.i8", ValueType.INT8, -128),
    ("a.u16", ValueType.UINT16, 65535),
    ("a.i16", ValueType.INT16, -32768),
    ("a.u32", ValueType.UINT32, 2**32 - 1),
    ("a.i32", ValueType.INT32, -(2**31)),
    ("a.u64", ValueType.UINT64, 2**64 - 1),
    ("a.i64", ValueType.INT64, -(2**63)),
    ("a.f32", ValueType.FLOAT32, 0.5),
    ("a.f64", ValueType.FLOAT64, 0.1),
    ("a.yes", ValueType.BOOL, True),
    ("a.no", ValueType.BOOL, False),
    ("a.text", ValueType.STRING, "日本"),
    ("a.empty", ValueType.STRING, ""),
    ("a.strings", ValueType.STRING, ["a", "", "b\0c"]),
    ("a.numbers", ValueType.INT32, [1, -1]),
    ("a.none", ValueType.STRING, []),
    ("a.floats", ValueType.FLOAT32, [0.5]),
]


def test_every_type_of_value_comes_back(path: Path) -> None:
    path.write_bytes(write_metadata(VALUES))
    metadata = read_metadata(path, lambda key: True)
    for key, _, value in VALUES:
        found = metadata.values[key]
        if isinstance(found, np.ndarray):
            assert found.tolist() == value
        elif isinstance(value, list):
            assert found.tolist() == [item.encode() for item in value]
        else:
            assert type(found) is type(value)
            assert found == value
    assert read_metadata(path, lambda key: key == "a.text").values == {"a.text": "日本"}


def test_the_bytes_of_a_file() -> None:
    header = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)  # version, tensors, pairs
    assert write_metadata([("k", ValueType.UINT8, 7)]) == header + struct.pack("<Qs", 1, b"k") + struct.pack(
        "<IB", 0, 7
    )


def test_a_value_of_another_type_is_named(path: Path) -> None:
    path.write_bytes(write_metadata(VALUES))
    metadata = read_metadata(path, lambda key: True)
    attempts: list[tuple[str, Callable[[str], object], str]] = [
        ("a.u8", metadata.text, "must be a string"),
        ("a.u8", metadata.flag, "must be a boolean"),
        ("a.yes", metadata.integer, "must be an integer"),
        ("a.f32", metadata.integer, "must be an integer"),
        ("a.numbers", metadata.strings, "must be an array of strings"),
        ("a.missing", metadata.strings, "is missing"),
        ("a.strings", lambda key: metadata.numbers(key, "i"), "must be an array of integers"),
        ("a.floats", lambda key: metadata.numbers(key, "i"), "must be an array of integers"),
        ("a.i32", lambda key: metadata.numbers(key, "if"), "must be an array of numbers"),
    ]
    for key, attempt, problem in attempts:
        with pytest.raises(FormatError) as caught:
            attempt(key)
        assert str(caught.value) == f"{path}: {key}: {problem}"
    assert metadata.integer("a.missing") is None
    assert metadata.numbers("a.missing", "i") is None


def test_versions(path: Path) -> None:
    data = write_metadata(VALUES)
    path.write_bytes(data[:4] + struct.pack("<I", 2) + data[8:])
    assert len(read_metadata(path, lambda key: True).values) == len(VALUES)
    for version, problem in ((1, "version 1 is not"), (4, "version 4 is not"), (3 << 24, "big-endian")):
        path.write_bytes(data[:4] + struct.pack("<I", version) + data[8:])
        assert problem in refusal(path)


def test_a_file_that_breaks_off_anywhere_is_refused(path: Path) -> None:
    data = write_metadata(VALUES)
    for end in range(len(data)):
        path.write_bytes(data[:end])
        with pytest.raises(FormatError, match=r"model\.gguf"):
            read_metadata(path, lambda key: True)
    path.write_bytes(data + b"tensors, which nobody reads")
    assert len(read_metadata(path, lambda key: True).values) == len(VALUES)


@pytest.mark.parametrize("window", [1, 7, 40])
def test_the_way_a_file_is_read_does_not_show(
    path: Path, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "_WINDOW", window)
    data = write_metadata(VALUES)
    path.write_bytes(data)
    for kept in (VALUES, VALUES[::2], VALUES[1::2]):
        keys = {key for key, _, _ in kept}
        values = read_metadata(path, keys.__contains__).values
        for key, _, value in kept:
            found = values[key]
            assert (found.tolist() if isinstance(found, np.ndarray | _core.Strings) else found) == (
                [text.encode() for text in value] if key == "a.strings" else value
            )
    for end in range(len(data)):
        path.write_bytes(data[:end])
        with pytest.raises(FormatError, match=r"model\.gguf"):
            read_metadata(path, lambda key: False)


@pytest.mark.parametrize("size", [0, 1, 40, 100_000, 3_000_000])
@pytest.mark.parametrize("moment", ["a", "b", "c", "d"])
def test_a_file_that_another_process_cuts_off_is_an_error_where_it_is_read(
    path: Path, moment: str, size: int
) -> None:
    strings = ["low", "lower " * 1000] * 400
    numbers: list[tuple[str, ValueType, Any]] = [("b", ValueType.INT32, [1] * 500_000)]
    path.write_bytes(
        write_metadata(
            [
                ("a", ValueType.STRING, strings),
                *numbers,
                ("c", ValueType.STRING, strings),
                ("d", ValueType.BOOL, True),
            ]
        )
    )
    assert 6_000_000 < path.stat().st_size < 9_000_000

    def wanted(key: str) -> bool:
        if key == moment:
            os.truncate(path, size)
        return key in "ac"

    if moment == "d":  # the rest is read already
        assert read_metadata(path, wanted).values.keys() == set("ac")
    else:
        with pytest.raises(FormatError, match=r"model\.gguf: .*the file ends here"):
            read_metadata(path, wanted)


def test_claims_are_checked_before_anything_is_made_of_them(path: Path) -> None:
    def attempt(*parts: bytes) -> str:
        path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + b"".join(parts))
        return refusal(path)

    key = struct.pack("<Q", 1) + b"k"
    huge = struct.pack("<Q", 2**63)
    assert "must be at most" in attempt(huge) or "claims a string" in attempt(huge)
    assert "the key is empty" in attempt(struct.pack("<Q", 0))
    assert "is not UTF-8" in attempt(struct.pack("<Q", 1), b"\xff")
    assert "unknown value type 13" in attempt(key, struct.pack("<I", 13))
    part_of_a_file = struct.pack("<Q", 5000) + b"tokenizer.\0\t\x1b" + b"x" * 4987
    message = attempt(part_of_a_file, struct.pack("<I", 13))
    assert "unknown value type 13" in message
    assert len(message) < len(str(path)) + 160
    assert "\0" not in message
    assert "claims a string" in attempt(key, struct.pack("<I", 8), huge)
    assert "array of arrays" in attempt(key, struct.pack("<IIQ", 9, 9, 1))
    more = "; the file has 0 more bytes"
    assert attempt(key, struct.pack("<II", 9, 8), huge).endswith(f": k: claims {2**63} strings{more}")
    items = attempt(key, struct.pack("<II", 9, 12), huge)
    assert items.endswith(f": k: claims {2**63} items of 8 bytes{more}")
    short = struct.pack("<Q", 8)
    assert "string 1 starts after the end" in attempt(key, struct.pack("<IIQ", 9, 8, 2), short, b"12345678")
    assert "string 0 continues after the end" in attempt(key, struct.pack("<IIQ", 9, 8, 1), huge, b"12345678")
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 2**40))
    assert "claims 1099511627776 metadata pairs" in refusal(path)
    for name in ("k", "k" * 5000):
        path.write_bytes(write_metadata([(name, ValueType.BOOL, True)] * 2))
        assert "duplicate key 'k" in refusal(path)
        assert len(refusal(path)) < len(str(path)) + 160


@pytest.mark.parametrize("strings", [[""], ["ab", "", "c"], ["a", ""]])
def test_strings_at_the_end_of_a_file(
    path: Path, strings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(write_metadata([("a", ValueType.STRING, strings)]))
    for window in (1 << 20, 40, 1):
        monkeypatch.setattr(file, "_WINDOW", window)
        assert read_metadata(path, lambda _: True).strings("a").tolist() == [
            text.encode() for text in strings
        ]


def test_limits_of_the_container(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"GGUF")
    assert refusal(path) == f"{path}: the header: the file ends here"
    longest = "k" * (2**16 - 1)
    path.write_bytes(write_metadata([(longest, ValueType.STRING, "to the end")]))
    assert read_metadata(path, lambda _: True).values == {longest: "to the end"}
    path.write_bytes(write_metadata([(longest + "k", ValueType.BOOL, True)]))
    assert "metadata pair 0: claims a string of 65536 bytes; the limit is 65535" in refusal(path)
    path.write_bytes(write_metadata([("k", ValueType.STRING, "x" * 100)]))
    monkeypatch.setattr(file, "_MAX_METADATA", 60)
    assert "k: claims a string of 100 bytes; the limit for metadata is 60 bytes" in refusal(path)
    monkeypatch.undo()
    path.write_bytes(path.read_bytes()[:-1])
    assert "k: claims a string of 100 bytes; the file has 99 more bytes" in refusal(path)


def test_what_is_no_gguf_file(path: Path, tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path)
    assert "cannot be read" in refusal(tmp_path / "nothing.gguf")
    path.write_bytes(b"")
    assert "is empty" in refusal(path)
    path.write_bytes(b'{"version": "1.0"}')
    assert "not a GGUF file" in refusal(path)


def test_only_the_metadata_of_a_large_file_is_read(path: Path) -> None:
    byte_level(path, H_E)
    with path.open("r+b") as file:
        file.truncate(1 << 36)  # takes no space
    assert load(path).encode("hello") == [259]


def test_the_first_file_of_several_is_asked_for(path: Path) -> None:
    gguf_files.write(path, {"general.architecture": "llama", "split.no": 2, "split.count": 3})
    assert "part 3 of a model in several files" in refusal(path)
    assert load(byte_level(path, H_E, split__no=1)).encode("hello") == [259]


# -- kinds of tokenizers --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bert", "t5", "rwkv", "plamo2", "none", "hybriddna", "whitespace", "wat"])
def test_other_tokenizers_are_refused_by_name(path: Path, name: str) -> None:
    gguf_files.write(path, {"tokenizer.ggml.model": name, "tokenizer.ggml.tokens": ["a"]})
    message = f"unknown tokenizer {name!r}" if name == "wat" else f"{name!r} is"
    assert f"tokenizer.ggml.model: {message}" in refusal(path)


def test_other_pre_tokenizers_are_refused_by_name(path: Path) -> None:
    assert "tokenizer.ggml.pre: unknown pre-tokenizer 'nope'" in refusal(byte_level(path, pre="nope"))
    assert "tokenizer.ggml.pre: 'whitespace' is BPE over words" in refusal(byte_level(path, pre="whitespace"))


@pytest.mark.parametrize("pre", BYTE_LEVEL)
def test_every_byte_level_pre_tokenizer(path: Path, pre: str) -> None:
    model = gguf.load(byte_level(path, H_E, [("<bos>", CONTROL)], pre=pre, tokenizer__ggml__bos_token_id=261))
    expected = BYTE_LEVEL[pre]
    published = expected.published and NAMED_PATTERNS[expected.published].patterns
    assert model.core.split_patterns == list(published or expected.patterns)
    assert model.core.ignore_merges == expected.ignore_merges
    assert model.post_processor == PostProcessor((261,) if expected.add_bos else ())
    assert model.config["gguf"]["pre"] == pre
    assert BPETokenizer.from_model(model).encode("hello world") == [259, 260, *b"orld"]


def test_names_and_families() -> None:
    names = [name for family, _ in FAMILIES for name in family.split()]
    assert len(names) == len(set(names)) == len(BYTE_LEVEL)
    assert not CHARACTERS.keys() & BYTE_LEVEL.keys()


# What llama.cpp makes of texts that its regular expressions, or those of the models' files, cut otherwise.
PIECES = [
    ("default", "a``1234²x  y", ["a", "``", "123", "4²", "x", " ", " y"]),
    (
        "llama-bpe",
        "it'ſs IT'LL 12345\n\n  x",
        ["it", "'ſs", " IT", "'LL", " ", "123", "45", "\n\n", " ", " x"],
    ),
    ("tekken", "aÉÉb ABc a\u0301", ["aÉÉb", " ABc", " a", "\u0301"]),
    ("tekken", "abCd12", ["ab", "Cd", "1", "2"]),
    ("gpt-4o", "abÉIT's x'S1234", ["abÉ", "IT's", " x'S", "123", "4"]),
    ("granite-embed-multi-97m", "a\u0301b AB's", ["a\u0301b", " AB's"]),
    ("deepseek-llm", "12a　　你好。　b", ["12", "a", "　　", "你好", "。", "　b"]),
    ("deepseek-coder", "12a　　你好。　b", ["1", "2", "a", "　", "　", "你好", "。", "　b"]),
    ("afmoe", "ab  1234567 中文！a,b", ["ab", " ", " ", "1", "234", "567", " ", "中文", "！", "a", ",b"]),
    ("tiny_aya", "x  1234567y'S AbÉ", ["x", " ", " ", "1", "234", "567", "y'S", " AbÉ"]),
    ("superbpe", "a 1234567b ²1234", ["a ", "1", "234", "567", "b ", "²1", "234"]),
    ("kimi-k2", "中文abC's1234 ?\n", ["中文", "abC's", "123", "4", " ?\n"]),
    ("bloom", "ab, cd (e|f) 1", ["ab", ",", " cd", " (", "e", "|", "f", ")", " 1"]),
    ("viking", "ab12. c", ["ab", "1", "2", ".", " c"]),
    ("bailingmoe", "a\n\n\n b", ["a", "\n\n\n", " b"]),
    ("seed-coder", "a!\n b12", ["a", "!", "\n", " b", "1", "2"]),
    ("exaone-moe", "ab cd ef's 1\n\n", ["ab cd ef", "'s", " ", "1", "\n\n"]),
    ("youtu", "가나abÉ中文…12", ["가나", "abÉ", "中文", "…", "1", "2"]),
    ("ufakzeka", "it's 12", ["it", "'s", " ", "1", "2"]),
    ("laguna", "a \n\n b", ["a", " ", "\n\n", " b"]),
    ("spark2_5", "a!\n12345", ["a", "!", "\n", "1", "2", "3", "4", "5"]),
    ("chameleon", "IMGIMGABZ\t    12a", ["IMGIMGABZ", "\t", "    ", "1", "2", "a"]),
    ("minicpm5", "a 12345's", ["a", " ", "123", "45", "'s"]),
    ("jais-2", " " * 7 + "a", [" " * 4, " " * 2, " a"]),
    ("qwen35", "a\u0301\u0301b 12", ["a\u0301\u0301b", " ", "1", "2"]),
]


@pytest.mark.parametrize(("pre", "text", "pieces"), PIECES)
def test_pieces(pre: str, text: str, pieces: list[str]) -> None:
    vocab = {byte: bytes([byte]) for byte in range(256)}
    encoder = _core.Encoder(_core.Model(vocab, [], split_patterns=BYTE_LEVEL[pre].patterns))
    assert [piece.decode() for piece in encoder.pieces(text)] == pieces


def test_no_pre_tokenizer_is_the_default_one(path: Path) -> None:
    model = gguf.load(byte_level(path, H_E, pre=None))
    assert model.core.split_patterns == list(BYTE_LEVEL["default"].patterns)
    assert model.config["gguf"]["pre"] == "default"


def test_a_published_pattern_gives_way_where_a_token_lies_across_its_cut(path: Path) -> None:
    merges = ["Å ¿", "Å¿ s", "' Å¿s"]
    tokenizer = load(byte_level(path, merges, pre="qwen2"))
    assert tokenizer.model.core.split_patterns == list(BYTE_LEVEL["qwen2"].patterns)
    assert tokenizer.encode("'ſs") == [258]
    assert load(byte_level(path, merges[:1], pre="qwen2")).encode("'ſs") == [39, 256, 115]


# -- tokens ---------------------------------------------------------------------------------------------


def test_types_of_tokens(path: Path) -> None:
    more = [
        ("<ctrl>", CONTROL),
        ("<unk>", UNKNOWN),
        ("<user>", USER_DEFINED),
        ("<unused>", UNUSED),
        ("<plain>", NORMAL),
        ("", NORMAL),
        ("cut\0off\0twice", CONTROL),
        ("<unused 268>", NORMAL),
        ("<unused 269>", UNUSED),
    ]
    tokenizer = load(byte_level(path, H_E, more))
    added = [AddedToken(*token) for token in tokenizer.model.core.added_tokens]
    assert [(token.content, token.id, token.special) for token in added] == [
        ("<ctrl>", 261, True),
        ("<unk>", 262, True),
        ("<user>", 263, False),
        ("cut", 267, True),
    ]
    assert tokenizer.encode("<user>") == [263]
    assert tokenizer.encode("<ctrl>") == list(b"<ctrl>")
    assert tokenizer.encode("<ctrl><unk>", allowed_special="all") == [261, 262]
    assert tokenizer.encode("<unused>", allowed_special="all") == list(b"<unused>")
    assert tokenizer.convert_ids_to_tokens([264, 266]) == ["<unused>", "[EMPTY_266]"]
    # An unused token that only fills a hole is none.
    assert 268 in tokenizer.model.core.vocab
    assert 269 not in tokenizer.model.core.vocab


@pytest.mark.parametrize(
    ("merges", "more", "options"),
    [
        (H_E, [], {}),
        (H_E, [], {"tokenizer__ggml__merges": [*H_E, "h e"]}),
        (H_E, [], {"tokenizer__ggml__merges": ["À", *H_E, "h À", "h 日"]}),
        (H_E, [("<é>", CONTROL), ("<user>", USER_DEFINED), ("<unused 263>", UNUSED)], {}),
        (["' Å¿", "Å ¿", "Å¿ s", "¿ s"], [("¿é", CONTROL)], {"pre": "qwen2"}),
        (["a À", "h e"], [], {"missing": [0xC1]}),
        (H_E, [], {"missing": [0x41, 0xFF]}),
        (H_E, [("日", NORMAL), ("日é", NORMAL)], {"tokenizer__ggml__merges": ["日 é", *H_E]}),
        (H_E, [("", NORMAL)], {}),
        (H_E, [("cut\0off", CONTROL)], {}),
        (H_E, [], {"tokenizer__ggml__merges": ["h e\0 l", "h\0 e", *H_E]}),
    ],
)
def test_the_tokens_and_merges_are_those_of_llama_cpp(
    path: Path, merges: list[str], more: list[tuple[str, int]], options: dict[str, Any]
) -> None:
    byte_level(path, merges, more, **options)
    core = gguf.load(path).core
    metadata = read_metadata(path, lambda _: True)
    texts = [
        string.decode().partition("\0")[0] for string in metadata.strings("tokenizer.ggml.tokens").tolist()
    ]
    added = {token.id: token.content for token in core.added_tokens}
    vocab: dict[int, bytes] = {}
    for index, text in enumerate(texts):
        text = text or f"[EMPTY_{index}]"
        parts = [_core.from_printable(c) or f"[UNK_BYTE_0x{c.encode().hex()}{text}]".encode() for c in text]
        if text != f"<unused {index}>":
            vocab[index] = text.encode() if index in added else b"".join(parts)
    assert core.vocab == vocab
    pairs = [
        merge.decode().partition("\0")[0] for merge in metadata.strings("tokenizer.ggml.merges").tolist()
    ]
    sides = [(pair.partition(" ")[0], pair.partition(" ")[2]) for pair in pairs if " " in pair]
    pairs_of_bytes = [(_core.from_printable(left), _core.from_printable(right)) for left, right in sides]
    tokens = {
        data for index, data in vocab.items() if index not in added or _core.from_printable(added[index])
    }
    expected = [
        (left, right)
        for left, right in dict.fromkeys(pairs_of_bytes)
        if left is not None and right is not None and {left, right, left + right} <= tokens
    ]
    assert core.merges == expected


def test_without_types_all_tokens_are_normal(path: Path) -> None:
    byte_level(path, H_E, [("<a>", CONTROL), ("<|im_end|>", NORMAL)], tokenizer__ggml__token_type=None)
    # llama.cpp goes by the texts of some.
    assert [token[0] for token in gguf.load(path).core.added_tokens] == ["<|im_end|>"]


@pytest.mark.parametrize(
    ("texts", "kind", "expected"),
    [
        (["<|im_end|>", "</s>", "<eos>"], USER_DEFINED, {"<|im_end|>": True, "</s>": True, "<eos>": True}),
        (["<|channel|>", "<|start|>"], CONTROL, {"<|channel|>": False, "<|start|>": False}),
        (
            ["<|return|>", "<|call|>", "<|end|>"],
            CONTROL,
            {"<|return|>": True, "<|call|>": True, "<|end|>": False},
        ),
        (
            ["<|flush|>", "<|calls|>", "<|end|>"],
            CONTROL,
            {"<|flush|>": True, "<|calls|>": True, "<|end|>": False},
        ),
        (["<|return|>", "<|end|>"], CONTROL, {"<|return|>": True, "<|end|>": True}),
        (["<|call|>", "<|end|>"], CONTROL, {"<|call|>": True, "<|end|>": True}),
        (["<|tool_response>", "</s>"], CONTROL, {"<|tool_response>": True}),
        (["<fim_prefix>"], NORMAL, {"<fim_prefix>": True}),
        (["<|file_sep|>"], USER_DEFINED, {"<|file_sep|>": True}),
        (["<PRE>", "<fim_prefix>"], CONTROL, {"<PRE>": True, "<fim_prefix>": True}),
    ],
)
def test_llama_cpp_goes_by_texts(path: Path, texts: list[str], kind: int, expected: dict[str, bool]) -> None:
    model = gguf.load(byte_level(path, more=[(text, kind) for text in texts]))
    assert {token[0]: token[2] for token in model.core.added_tokens} == expected


def test_a_part_that_two_tokens_could_play(path: Path) -> None:
    more = [("<PRE>", NORMAL), ("<fim_prefix>", NORMAL)]
    message = refusal(byte_level(path, more=more))
    role = "tokenizer.ggml.fim_pre_token_id"
    beginning = f"tokenizer.ggml.tokens: each of '<fim_prefix>', '<PRE>' may be the token of {role}, which is"
    assert beginning in message
    assert message.endswith(f" Set {role}")
    model = gguf.load(byte_level(path, more=more, tokenizer__ggml__fim_pre_token_id=256))
    assert model.core.added_tokens == []
    assert model.config["gguf"]["fim_pre_token_id"] == 256


def test_a_token_that_no_longer_ends_a_text_is_a_normal_one() -> None:
    ids = _core.TokenTable.from_strings(_core.Strings([b"<|tool_response>", b"</s>"]), "tokens")
    types = final_types(ids, [TokenType.CONTROL] * 2, {})
    assert types == [TokenType.CONTROL, TokenType.NORMAL]


@pytest.mark.parametrize("role", ["eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep"])
def test_the_end_token_of_plamo_makes_another_normal(path: Path, role: str) -> None:
    more = [("<|plamo:eos|>", CONTROL), ("</s>", CONTROL)]
    ends: dict[str, Any] = {f"tokenizer__ggml__{role}_token_id": 256}
    others: dict[str, Any] = {"tokenizer__ggml__bos_token_id": 256}
    for keys, expected in ((ends, ["<|plamo:eos|>"]), (others, ["<|plamo:eos|>", "</s>"])):
        added = gguf.load(byte_level(path, more=more, **keys)).core.added_tokens
        assert [token.content for token in added] == expected
    ends[f"tokenizer__ggml__{role}_token_id"] = 1
    added = gguf.load(byte_level(path, more=[("</s>", CONTROL)], **ends)).core.added_tokens
    assert [token.content for token in added] == ["</s>"]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, []),
        ({"pre": "jina-v2-de"}, ["<mask>"]),
        ({"pre": "jina-v2-es"}, ["<mask>"]),
        ({"pre": "jina-v2-code"}, ["<mask>"]),
        ({"general__architecture": "nomic-bert-moe"}, ["<mask>"]),
        ({"general__architecture": "jina-bert-v3"}, ["<mask>"]),
        ({"general__name": "Modern-BERT base"}, ["[MASK]"]),
        ({"general__architecture": "modern-bert"}, []),
    ],
)
def test_tokens_that_strip_the_space_before_them(path: Path, keys: Any, expected: list[str]) -> None:
    more = [("<mask>", CONTROL), ("[MASK]", CONTROL), ("<other>", CONTROL)]
    added = gguf.load(byte_level(path, more=more, **keys)).core.added_tokens
    assert [token.content for token in added if token.lstrip] == expected
    assert not any(token.rstrip for token in added)


def test_default_ids_give_no_roles(path: Path) -> None:
    pairs: dict[str, Any] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": [*(f"<{index}>" for index in range(12)), *BYTES],
        "tokenizer.ggml.token_type": [CONTROL] * 12 + [NORMAL] * 256,
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.add_bos_token": True,
    }
    model = gguf.load(gguf_files.write(path, pairs))
    assert model.named_tokens == {}
    assert model.post_processor == PostProcessor((11,))


def test_kinds_of_tokens_and_ids_that_mean_nothing(path: Path) -> None:
    keys: dict[str, Any] = {f"tokenizer__ggml__{name}_token_id": 258 for name in ("eos", "eot", "bos")}
    keys |= {"tokenizer__ggml__eom_token_id": 0, "tokenizer__ggml__x_token_id": 257}
    model = gguf.load(byte_level(path, more=[("<a>", 0), ("<b>", 9)], **keys))
    types_found = read_tokens(read_metadata(path, lambda _: True)).types
    assert types_found == [TokenType.NORMAL] * 256 + [TokenType.UNDEFINED] * 2
    assert model.core.added_tokens == []
    assert model.config["gguf"] == {"model": "gpt2", "pre": "gpt-2", "eom_token_id": 0, "x_token_id": 257}
    assert model.named_tokens == {}
    types = [NORMAL] * 256 + [CONTROL, CONTROL, CONTROL]
    model = gguf.load(byte_level(path, more=[("<a>", NORMAL)], tokenizer__ggml__token_type=types))
    assert [token.content for token in model.core.added_tokens] == ["<a>"]


def test_broken_tokens(path: Path) -> None:
    twice = byte_level(path, more=[("xy", NORMAL), ("xy", NORMAL)])
    assert 'tokenizer.ggml.tokens: duplicate token "xy": ids 256 and 257' in refusal(twice)
    assert 'tokens[256]: "\ufffd" is not UTF-8' in refusal(byte_level(path, more=[(b"\xff", NORMAL)]))
    short = refusal(byte_level(path, tokenizer__ggml__token_type=[1]))
    assert "tokenizer.ggml.token_type: has 1 entries for 256 tokens" in short
    assert "token_type: must be an array" in refusal(byte_level(path, tokenizer__ggml__token_type="a"))
    spm = byte_level(path, tokenizer__ggml__model="llama", tokenizer__ggml__pre=["a"])
    assert refusal(spm) == f"{path}: tokenizer.ggml.pre: must be a string"
    assert "tokens: the list is empty" in refusal(byte_level(path, tokenizer__ggml__tokens=[]))
    assert "tokens: is missing" in refusal(byte_level(path, tokenizer__ggml__tokens=None))
    assert "merges: is missing" in refusal(byte_level(path, tokenizer__ggml__merges=None))
    without = byte_level(path, pre="kimi-k2", more=[("ab", NORMAL)], tokenizer__ggml__merges=None)
    assert gguf.load(without).core.merges == []


def test_tokens_that_stand_for_no_bytes(path: Path) -> None:
    """Command-R has such, and llama.cpp shows them so."""
    tokenizer = load(byte_level(path, H_E, [("™", NORMAL), ("â Ħ¢", NORMAL), ("Ġé™b", NORMAL)]))
    assert tokenizer.encode("™") == list("™".encode())
    assert tokenizer.decode([261]) == "[UNK_BYTE_0xe284a2™]"
    assert tokenizer.decode_bytes([263]) == b" \xe9" + "[UNK_BYTE_0xe284a2Ġé™b]b".encode()
    same = _core.to_printable("[UNK_BYTE_0xe284a2™]".encode())
    message = refusal(byte_level(path, more=[("™", NORMAL), (same, NORMAL)]))
    assert message.endswith(": tokenizer.ggml.tokens: two tokens are the same bytes")


def test_tokens_that_stand_for_no_bytes_are_not_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What llama.cpp shows grows with the square of their length."""
    message = refusal(byte_level(path, more=[("™" * 10_000, NORMAL)]))
    assert message.endswith(
        ": tokenizer.ggml.tokens: the tokens that encode no bytes are too long for a vocabulary"
    )
    monkeypatch.setattr(reading, "_MAX_UNREACHABLE", 13)
    more = [("™™™", NORMAL), ("a long token with spaces", CONTROL), ("a" * 9, NORMAL)]
    load(byte_level(path, more=[*more, ("™™", NORMAL)]))
    assert "are too long" in refusal(byte_level(path, more=[*more, ("™™", NORMAL), ("™", NORMAL)]))


def test_a_text_for_a_byte_that_no_text_holds(path: Path) -> None:
    """DeepSeek's tokens 'õ' to 'ÿ' are those letters, and stand where the bytes 0xF5 to 0xFF would."""
    byte = 0xF5
    tokenizer = load(byte_level(path, H_E, [("õ", USER_DEFINED)], missing=[byte]))
    assert tokenizer.encode("õ") == [260]
    assert tokenizer.decode([260]) == "õ"
    assert not tokenizer.model.core.keeps_gaps
    message = refusal(byte_level(path, H_E, [("é", USER_DEFINED)], missing=[0xE9]))
    assert "tokenizer.ggml.tokens[260]: 'é' is an added token, and also the spelling of the bytes" in message


def test_a_text_that_would_also_be_a_piece(path: Path) -> None:
    assert load(byte_level(path, H_E, [("<é>", CONTROL)], pre="llama-bpe")).encode("<é>") == [*"<é>".encode()]
    message = refusal(byte_level(path, H_E, [("Ġhi", CONTROL)], pre="llama-bpe"))
    assert "'Ġhi' is an added token, and also the spelling of the bytes b' hi'" in message
    assert load(byte_level(path, H_E, [("Ġhi", CONTROL)])).encode(" hi") == [*b" hi"]


def test_missing_bytes_are_dropped_after_merging(path: Path) -> None:
    """As with Falcon and StarCoder."""
    tokenizer = load(byte_level(path, ["a b"], missing=[0x0B]))
    assert tokenizer.model.core.keeps_gaps
    ids = {text: index for index, text in enumerate(text for text in BYTES if text != BYTES[0x0B])}
    for _ in range(2):  # the second time from the cache
        assert tokenizer.encode("ab\x0ba\x0bb") == [255, ids["a"], ids["b"]]
        assert tokenizer.encode("\x0b\x0b") == []


def test_merges(path: Path) -> None:
    # Of equal merges the first counts; what has no space, or ends at a zero byte, is nothing.
    merges = ["a b", "b c", "a b", "nothing", " a", "x\0 y", "ab c\0 d", "a bc"]
    byte_level(path, tokenizer__ggml__merges=merges, more=[(t, NORMAL) for t in ("ab", "bc", "abc")])
    tokenizer = load(path)
    assert tokenizer.model.core.merges == [(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"a", b"bc")]
    assert tokenizer.encode("abc") == [258]
    byte_level(path, tokenizer__ggml__merges=["a b"])
    assert "merges[0]: 'ab' is not a token" in refusal(path)
    byte_level(path, tokenizer__ggml__merges=["a zz"])
    assert "merges[0]: 'zz' is not a token" in refusal(path)
    byte_level(path, tokenizer__ggml__merges=["zz a"], more=[("zza", NORMAL)])
    assert "merges[0]: 'zz' is not a token that merging can make" in refusal(path)


@pytest.mark.parametrize("merge", [b"\xff a", b"a \xff", "õ a", "a õ", "™ a", "a ™", "a b c"])
def test_a_merge_of_what_no_text_becomes_is_nothing(path: Path, merge: str | bytes) -> None:
    """One part encodes no bytes, or the byte 0xF5, which is not in UTF-8."""
    byte_level(path, tokenizer__ggml__merges=[merge, "a b"], more=[("ab", NORMAL)], missing=[0xF5])
    assert gguf.load(path).core.merges == [(b"a", b"b")]


@pytest.mark.parametrize("kind", [CONTROL, USER_DEFINED])
def test_the_first_of_overlapping_tokens_is_found(path: Path, kind: int) -> None:
    tokenizer = load(byte_level(path, more=[(">>A<<", kind), ("<|end|>>>", kind)]))
    assert tokenizer.encode(">>A<<|end|>>>", allowed_special="all")[0] == 256


# -- ids around a text ----------------------------------------------------------------------------------


def test_bos_and_eos(path: Path) -> None:
    more = [("<bos>", CONTROL), ("<eos_>", CONTROL), ("<pad_>", CONTROL)]
    ids = {"bos": 256, "eos": 257, "padding": 258, "unknown": 999}
    keys: dict[str, Any] = {f"tokenizer__ggml__{name}_token_id": value for name, value in ids.items()}
    tokenizer = load(byte_level(path, more=more, **keys))
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token) == ("<bos>", "<eos_>", "<pad_>")
    assert tokenizer.encode("a", add_special_tokens=True) == [97]
    keys |= {"tokenizer__ggml__add_bos_token": True, "tokenizer__ggml__add_eos_token": True}
    assert load(byte_level(path, more=more, **keys)).encode("a", add_special_tokens=True) == [256, 97, 257]
    # llama-bpe adds BOS unless told otherwise; without an id BOS is 11.
    assert load(byte_level(path, pre="llama-bpe")).encode("a", add_special_tokens=True) == [11, 97]
    told: dict[str, Any] = {"tokenizer__ggml__add_bos_token": False}
    assert load(byte_level(path, pre="llama-bpe", **told)).encode("a", add_special_tokens=True) == [97]
    wanted: dict[str, Any] = {"tokenizer__ggml__add_bos_token": True}
    for pre in ("chatglm-bpe", "glm4", "glm5"):
        message = refusal(byte_level(path, pre=pre, **wanted))
        assert "tokenizer.ggml.add_bos_token: is true, but bos_token_id is missing" in message
    two: dict[str, Any] = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": ["<unk>", "<s>"],
        "tokenizer.ggml.token_type": [UNKNOWN, CONTROL],
        "tokenizer.ggml.add_eos_token": True,
    }
    assert "add_eos_token: is true, but eos_token_id is missing" in refusal(gguf_files.write(path, two))
    assert "must be a boolean" in refusal(byte_level(path, tokenizer__ggml__add_bos_token=1))
    assert "must be an integer" in refusal(byte_level(path, tokenizer__ggml__bos_token_id="a"))


def test_chat_templates(path: Path) -> None:
    key = "tokenizer.chat_template"
    templates: dict[str, Any] = {key: "{{ x }}"}
    assert gguf.load(byte_level(path, **templates)).config["chat_template"] == "{{ x }}"
    templates = {key: "one", f"{key}.tool_use": "two", f"{key}s": ["tool_use"]}
    assert gguf.load(byte_level(path, **templates)).config["chat_template"] == [
        {"name": "default", "template": "one"},
        {"name": "tool_use", "template": "two"},
    ]
