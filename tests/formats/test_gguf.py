"""GGUF files: the kinds of tokenizers, tokens, the ids around a text, and llama.cpp's own vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gguf_files
from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.formats import gguf
from bpe_tokenizer.formats.gguf import reading
from bpe_tokenizer.formats.gguf.pre_tokenizers import BYTE_LEVEL
from bpe_tokenizer.formats.gguf.tokens import TokenType, read_tokens
from bpe_tokenizer.model import PostProcessor
from bpe_tokenizer.patterns import NAMED_PATTERNS
from gguf_files import (
    BYTES,
    CONTROL,
    HELLO,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    byte_level,
    load,
    read,
    refusal,
)

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
    model = gguf.load(
        byte_level(path, HELLO, [("<bos>", CONTROL)], pre=pre, tokenizer__ggml__bos_token_id=261)
    )
    expected = BYTE_LEVEL[pre]
    published = expected.published and NAMED_PATTERNS[expected.published].patterns
    assert model.core.split_patterns == list(published or expected.patterns)
    assert model.core.ignore_merges == expected.ignore_merges
    assert model.post_processor == PostProcessor((261,) if expected.add_bos else ())
    assert model.config["gguf"]["pre"] == pre
    assert BPETokenizer.from_model(model).encode("hello world") == [259, 260, *b"orld"]


# What llama.cpp makes of texts that its regular expressions, or those of the models' files, cut otherwise.
PIECES = [
    ("default", "a``1234²x  y", ["a", "``", "123", "4²", "x", " ", " y"]),
    ("llama-bpe", "it'ſs IT'LL 12345\n\n", ["it", "'ſs", " IT", "'LL", " ", "123", "45", "\n\n"]),
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
    model = gguf.load(byte_level(path, HELLO, pre=None))
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
    more = [("<ctrl>", CONTROL), ("<unk>", UNKNOWN), ("<user>", USER_DEFINED), ("<unused>", UNUSED)]
    more += [("<plain>", NORMAL), ("", NORMAL), ("cut\0off\0twice", CONTROL)]
    tokenizer = load(byte_level(path, HELLO, more))
    assert [(token.content, token.id, token.special) for token in tokenizer.model.core.added_tokens] == [
        *(("<ctrl>", 261, True), ("<unk>", 262, True), ("<user>", 263, False), ("cut", 267, True))
    ]
    assert tokenizer.encode("<user>") == [263]
    assert tokenizer.encode("<ctrl>") == list(b"<ctrl>")
    assert tokenizer.encode("<ctrl><unk>", allowed_special="all") == [261, 262]
    assert tokenizer.encode("<unused>", allowed_special="all") == list(b"<unused>")
    assert tokenizer.convert_ids_to_tokens([264, 266]) == ["<unused>", "[EMPTY_266]"]


MERGES = "tokenizer__ggml__merges"
ABC = [("ab", NORMAL), ("bc", NORMAL), ("abc", NORMAL)]
OF_NO_TEXT: list[Any] = [b"\xff a", b"a \xff", "õ a", "a õ", "™ a", "a ™", "a b c"]


@pytest.mark.parametrize(
    ("merges", "more", "options"),
    [
        (HELLO, [], {}),
        (HELLO, [], {MERGES: [*HELLO, "h e"]}),  # of equal merges the first counts
        (HELLO, [], {MERGES: ["À", *HELLO, "h À", "h 日"]}),
        (HELLO, [("<é>", CONTROL), ("<user>", USER_DEFINED), ("<unused 263>", UNUSED)], {}),
        (HELLO, [("<unused 261>", NORMAL), ("<unused 262>", UNUSED)], {}),  # the second only fills a hole
        (["' Å¿", "Å ¿", "Å¿ s", "¿ s"], [("¿é", CONTROL)], {"pre": "qwen2"}),
        (["a À", "h e"], [], {"missing": [0xC1]}),
        (HELLO, [], {"missing": [0x41, 0xFF]}),
        (HELLO, [("日", NORMAL), ("日é", NORMAL)], {MERGES: ["日 é", *HELLO]}),
        (HELLO, [("", NORMAL)], {}),
        (HELLO, [("cut\0off", CONTROL)], {}),
        (HELLO, [], {MERGES: ["h e\0 l", "h\0 e", *HELLO]}),
        ([], ABC, {MERGES: ["a b", "b c", "a b", "nothing", " a", "x\0 y", "ab c\0 d", "a bc"]}),
        # One part encodes no bytes, or the byte 0xF5, which is not in UTF-8.
        ([], ABC, {MERGES: [*OF_NO_TEXT, "a b"], "missing": [0xF5]}),
    ],
)
def test_the_tokens_and_merges_are_those_of_llama_cpp(
    path: Path, merges: list[str], more: list[tuple[str, int]], options: dict[str, Any]
) -> None:
    core = gguf.load(byte_level(path, merges, more, **options)).core
    metadata, of_text = read(path), _core.from_printable
    lists = (metadata.strings(f"tokenizer.ggml.{name}").tolist() for name in ("tokens", "merges"))
    texts, pairs = ([each.decode("utf-8", "replace").partition("\0")[0] for each in some] for some in lists)
    added = {token.id: token.content for token in core.added_tokens}
    vocab: dict[int, bytes] = {}
    for index, text in enumerate(texts):
        text = text or f"[EMPTY_{index}]"
        parts = [of_text(c) or f"[UNK_BYTE_0x{c.encode().hex()}{text}]".encode() for c in text]
        if not (text == f"<unused {index}>" and (text, UNUSED) in more):
            vocab[index] = text.encode() if index in added else b"".join(parts)
    assert core.vocab == vocab
    sides = [(pair.partition(" ")[0], pair.partition(" ")[2]) for pair in pairs if " " in pair]
    pairs_of_bytes = dict.fromkeys((of_text(left), of_text(right)) for left, right in sides)
    tokens = {data for index, data in vocab.items() if index not in added or of_text(added[index])}
    assert core.merges == [
        (left, right)
        for left, right in pairs_of_bytes
        if left is not None and right is not None and {left, right, left + right} <= tokens
    ]


def test_without_types_all_tokens_are_normal(path: Path) -> None:
    byte_level(path, HELLO, [("<a>", CONTROL), ("<|im_end|>", NORMAL)], tokenizer__ggml__token_type=None)
    # llama.cpp goes by the texts of some.
    assert [token[0] for token in gguf.load(path).core.added_tokens] == ["<|im_end|>"]


@pytest.mark.parametrize(
    ("texts", "kind", "special", "plain"),
    [
        ("<|im_end|> </s> <eos>", USER_DEFINED, "<|im_end|> </s> <eos>", ""),
        ("<|channel|> <|start|>", CONTROL, "", "<|channel|> <|start|>"),
        ("<|return|> <|call|> <|end|>", CONTROL, "<|return|> <|call|>", "<|end|>"),
        ("<|flush|> <|calls|> <|end|>", CONTROL, "<|flush|> <|calls|>", "<|end|>"),
        ("<|return|> <|end|>", CONTROL, "<|return|> <|end|>", ""),
        ("<|call|> <|end|>", CONTROL, "<|call|> <|end|>", ""),
        ("<|tool_response> </s>", CONTROL, "<|tool_response>", ""),  # the other is a normal one
        ("<fim_prefix>", NORMAL, "<fim_prefix>", ""),
        ("<|file_sep|>", USER_DEFINED, "<|file_sep|>", ""),
        ("<PRE> <fim_prefix>", CONTROL, "<PRE> <fim_prefix>", ""),
    ],
)
def test_llama_cpp_goes_by_texts(path: Path, texts: str, kind: int, special: str, plain: str) -> None:
    model = gguf.load(byte_level(path, more=[(text, kind) for text in texts.split()]))
    expected = dict.fromkeys(special.split(), True) | dict.fromkeys(plain.split(), False)
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
        *(({"pre": f"jina-v2-{name}"}, ["<mask>"]) for name in ("de", "es", "code")),
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


def test_kinds_of_tokens_and_ids_that_mean_nothing(path: Path) -> None:
    keys: dict[str, Any] = {f"tokenizer__ggml__{name}_token_id": 258 for name in ("eos", "eot", "bos")}
    keys |= {"tokenizer__ggml__eom_token_id": 0, "tokenizer__ggml__x_token_id": 257}
    model = gguf.load(byte_level(path, more=[("<a>", 0), ("<b>", 9)], **keys))
    assert read_tokens(read(path)).types == [TokenType.NORMAL] * 256 + [TokenType.UNDEFINED] * 2
    assert model.core.added_tokens == []
    assert model.config["gguf"] == {"model": "gpt2", "pre": "gpt-2", "eom_token_id": 0, "x_token_id": 257}
    assert model.named_tokens == {}
    types = [NORMAL] * 256 + [CONTROL, CONTROL, CONTROL]
    model = gguf.load(byte_level(path, more=[("<a>", NORMAL)], tokenizer__ggml__token_type=types))
    assert [token.content for token in model.core.added_tokens] == ["<a>"]


@pytest.mark.parametrize(
    ("more", "fields", "problem"),
    [
        (["xy", "xy"], {}, 'tokens: duplicate token "xy": ids 256 and 257'),
        ([b"\xff"], {}, 'tokens[256]: "\ufffd" is not UTF-8'),
        ([], {"token_type": [1]}, "token_type: has 1 entries for 256 tokens"),
        ([], {"token_type": "a"}, "token_type: must be an array"),
        ([], {"model": "llama", "pre": ["a"]}, "pre: must be a string"),
        ([], {"tokens": []}, "tokens: the list is empty"),
        ([], {"tokens": None}, "tokens: is missing"),
        ([], {"merges": None}, "merges: is missing"),
        ([], {"merges": ["a b"]}, "merges[0]: 'ab' is not a token"),
        ([], {"merges": ["a zz"]}, "merges[0]: 'zz' is not a token"),
        (["zza"], {"merges": ["zz a"]}, "merges[0]: 'zz' is not a token that merging can make"),
        ([], {"add_bos_token": 1}, "add_bos_token: must be a boolean"),
        ([], {"bos_token_id": "a"}, "bos_token_id: must be an integer"),
        # llama.cpp shows tokens that stand for no bytes in a way that may be that of another.
        (["™", _core.to_printable("[UNK_BYTE_0xe284a2™]".encode())], {}, "tokens: two tokens are the same"),
        (["™" * 10_000], {}, "tokens: the tokens that encode no bytes are too long for a vocabulary"),
    ],
)
def test_broken_tokens(path: Path, more: list[str], fields: dict[str, Any], problem: str) -> None:
    keys: dict[str, Any] = {f"tokenizer__ggml__{name}": value for name, value in fields.items()}
    byte_level(path, more=[(text, NORMAL) for text in more], **keys)
    assert f"{path}: tokenizer.ggml.{problem}" in refusal(path)


def test_a_vocabulary_that_needs_no_merges(path: Path) -> None:
    byte_level(path, pre="kimi-k2", more=[("ab", NORMAL)], tokenizer__ggml__merges=None)
    assert gguf.load(path).core.merges == []


def test_tokens_that_stand_for_no_bytes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Command-R has such, and llama.cpp shows them so, which grows with the square of their length."""
    tokenizer = load(byte_level(path, HELLO, [("™", NORMAL), ("â Ħ¢", NORMAL), ("Ġé™b", NORMAL)]))
    assert tokenizer.encode("™") == list("™".encode())
    assert tokenizer.decode([261]) == "[UNK_BYTE_0xe284a2™]"
    assert tokenizer.decode_bytes([263]) == b" \xe9" + "[UNK_BYTE_0xe284a2Ġé™b]b".encode()
    monkeypatch.setattr(reading, "_MAX_UNREACHABLE", 13)
    more = [("™™™", NORMAL), ("a long token with spaces", CONTROL), ("a" * 9, NORMAL)]
    load(byte_level(path, more=[*more, ("™™", NORMAL)]))
    assert "are too long" in refusal(byte_level(path, more=[*more, ("™™", NORMAL), ("™", NORMAL)]))


def test_a_text_for_a_byte_that_no_text_holds(path: Path) -> None:
    """DeepSeek's tokens 'õ' to 'ÿ' are those letters, and stand where the bytes 0xF5 to 0xFF would."""
    byte = 0xF5
    tokenizer = load(byte_level(path, HELLO, [("õ", USER_DEFINED)], missing=[byte]))
    assert tokenizer.encode("õ") == [260]
    assert tokenizer.decode([260]) == "õ"
    assert not tokenizer.model.core.keeps_gaps
    message = refusal(byte_level(path, HELLO, [("é", USER_DEFINED)], missing=[0xE9]))
    assert "tokenizer.ggml.tokens[260]: 'é' is an added token, and also the spelling of the bytes" in message


def test_a_text_that_would_also_be_a_piece(path: Path) -> None:
    assert load(byte_level(path, HELLO, [("<é>", CONTROL)], pre="llama-bpe")).encode("<é>") == [
        *"<é>".encode()
    ]
    message = refusal(byte_level(path, HELLO, [("Ġhi", CONTROL)], pre="llama-bpe"))
    assert "'Ġhi' is an added token, and also the spelling of the bytes b' hi'" in message
    assert load(byte_level(path, HELLO, [("Ġhi", CONTROL)])).encode(" hi") == [*b" hi"]


def test_missing_bytes_are_dropped_after_merging(path: Path) -> None:
    """As with Falcon and StarCoder."""
    tokenizer = load(byte_level(path, ["a b"], missing=[0x0B]))
    assert tokenizer.model.core.keeps_gaps
    ids = {text: index for index, text in enumerate(text for text in BYTES if text != BYTES[0x0B])}
    for _ in range(2):  # the second time from the cache
        assert tokenizer.encode("ab\x0ba\x0bb") == [255, ids["a"], ids["b"]]
        assert tokenizer.encode("\x0b\x0b") == []


@pytest.mark.parametrize("kind", [CONTROL, USER_DEFINED])
def test_the_first_of_overlapping_tokens_is_found(path: Path, kind: int) -> None:
    tokenizer = load(byte_level(path, more=[(">>A<<", kind), ("<|end|>>>", kind)]))
    assert tokenizer.encode(">>A<<|end|>>>", allowed_special="all")[0] == 256


# -- ids around a text ----------------------------------------------------------------------------------


def around(path: Path, more: Any = (), pre: str = "gpt-2", **fields: Any) -> list[int]:
    """The ids of "a" with the special tokens around it."""
    keys: dict[str, Any] = {f"tokenizer__ggml__{name}": value for name, value in fields.items()}
    return load(byte_level(path, more=more, pre=pre, **keys)).encode("a", add_special_tokens=True)


def test_bos_and_eos(path: Path) -> None:
    more = [("<bos>", CONTROL), ("<eos_>", CONTROL), ("<pad_>", CONTROL)]
    ids: dict[str, Any] = {
        "bos_token_id": 256,
        "eos_token_id": 257,
        "padding_token_id": 258,
        "unknown_token_id": 999,
    }
    assert around(path, more, **ids) == [97]
    tokenizer = load(path)
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token) == ("<bos>", "<eos_>", "<pad_>")
    assert around(path, more, **ids, add_bos_token=True, add_eos_token=True) == [256, 97, 257]
    # llama-bpe adds BOS unless told otherwise; without an id BOS is 11.
    assert around(path, pre="llama-bpe") == [11, 97]
    assert load(path).bos_token is None
    assert around(path, pre="llama-bpe", add_bos_token=False) == [97]


def test_no_bos_or_eos_to_add(path: Path) -> None:
    keys: dict[str, Any] = {"tokenizer__ggml__add_bos_token": True}
    for pre in ("chatglm-bpe", "glm4", "glm5"):
        message = refusal(byte_level(path, pre=pre, **keys))
        assert "tokenizer.ggml.add_bos_token: is true, but bos_token_id is missing" in message
    fields = {"model": "llama", "tokens": ["<unk>", "<s>"], "token_type": [UNKNOWN, CONTROL]}
    fields["add_eos_token"] = True  # type: ignore[assignment]
    gguf_files.write(path, {f"tokenizer.ggml.{name}": value for name, value in fields.items()})
    assert "add_eos_token: is true, but eos_token_id is missing" in refusal(path)


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
