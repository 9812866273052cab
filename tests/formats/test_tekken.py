"""Mistral's tekken.json, made here from learned and from published ranks, and every refusal.

tests/peers compares with mistral-common's own tokenizer, where it is installed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, FormatError
from bpe_tokenizer.formats import tekken
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hf_files import Change, at, without
from hostile import hostile_texts
from tekken_files import SPECIAL, tekken_document

PATTERN = NAMED_PATTERNS["tekken"].patterns[0]


def document(
    tokens: Sequence[bytes] = (b"lo", b"low"), special: Any = SPECIAL, count: int = 10, **config: Any
) -> dict[str, Any]:
    return tekken_document(tokens, special, count, **{"pattern": PATTERN} | config)


def load(directory: Path, *arguments: Any, **config: Any) -> BPETokenizer:
    return BPETokenizer.load(write(directory / "x.json", document(*arguments, **config)), "tekken")


def write(path: Path, made: Any) -> Path:
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


def test_ids_are_ranks_behind_the_special_tokens(tmp_path: Path) -> None:
    tokenizer = load(tmp_path)
    assert tokenizer.vocab_size == len(tokenizer) == 268
    assert tokenizer.encode("low [INST]</s>", allowed_special="all") == [267, 32 + 10, 3, 2]
    assert tokenizer.decode([267, 9]) == "low<SPECIAL_9>"
    special = [*SPECIAL, *(f"<SPECIAL_{number}>" for number in range(4, 10))]
    assert tokenizer.special_tokens == {token: number for number, token in enumerate(special)}
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.unk_token) == ("<s>", "</s>", "<unk>")
    assert tokenizer.pad_token is None
    assert tokenizer.encode("low", add_special_tokens=True) == [1, 267, 2]
    assert tokenizer.split_pattern == PATTERN
    assert tokenizer.normalization is None


def test_older_files_have_the_known_special_tokens(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, special=None, count=1000)
    special = list(tokenizer.special_tokens)
    assert special[:5] == ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    assert special[9:12] == ["[TOOL_CALLS]", "[IMG]", "<pad>"]
    assert special[19:21] == ["[TOOL_CONTENT]", "<SPECIAL_20>"]
    assert len(special) == 1000
    assert tokenizer.pad_token_id == 11


def test_the_vocabulary_is_cut(tmp_path: Path) -> None:
    made = document([b"lo", b"low", b"never", b"read"], default_vocab_size=256 + 2 + 10)
    made["vocab"][-1] = "not looked at"
    assert sorted(BPETokenizer.load(write(tmp_path / "x.json", made), "tekken").vocab) == list(range(268))


def test_a_special_token_with_the_bytes_of_another(tmp_path: Path) -> None:
    tokenizer = load(tmp_path, [b"<s", b"<s>"], pattern=r"\S+|\s+")
    assert tokenizer.encode("<s>") == [267]
    assert tokenizer.encode("<s>", allowed_special="all") == [1]
    assert (tokenizer.vocab[1], tokenizer.vocab[267], len(tokenizer)) == (b"<s>", b"<s>", 268)


def test_the_roles_are_those_of_mistral(tmp_path: Path) -> None:
    """Whatever other names the file has."""
    special = ("<|begin_of_text|>", "<|end_of_text|>", "<s>", "</s>", "<|pad|>", "<pad>")
    tokenizer = load(tmp_path, special=special)
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token) == ("<s>", "</s>", "<pad>")


def test_learned_ranks(stdlib_texts: list[str], mixed_text: str, tmp_path: Path) -> None:
    """The same pieces and ranks, so the same tokens, with their ids shifted."""
    learned = BPETokenizer("tekken", None).train([*stdlib_texts, mixed_text], 1500, verbose=False)
    tokenizer = load(tmp_path, [learned.vocab[token_id] for token_id in range(256, 1500)], count=1000)
    for text in [mixed_text, stdlib_texts[0], *hostile_texts(300)]:
        assert tokenizer.encode(text) == [token_id + 1000 for token_id in learned.encode(text)]


def config(name: str, value: Any) -> Change:
    return at("config", name, to=value)


def special(name: str, value: Any) -> Change:
    return at("special_tokens", 1, name, to=value)


def token(value: Any, rank: int = 257) -> Change:
    return at("vocab", rank, "token_bytes", to=value)


SIZE, COUNT = "default_vocab_size", "default_num_special_tokens"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("config"), "config: is missing"),
        (without("vocab"), "vocab: is missing"),
        (at("vocab", to={}), "vocab: must be an array"),
        (without("config", "pattern"), "config.pattern: is missing"),
        (config("pattern", "("), "Opening|paren|parenthes"),
        (config("version", "v99"), "config.version: 'v99' is not supported; v1, v2"),
        (config("version", 3), "config.version: must be a string"),
        (config(SIZE, 265), "leaves no room for 256 bytes after 10"),
        (config(SIZE, 10**20), "config.default_vocab_size: must be an id"),
        (config(SIZE, 4 * 10**9), "holds 258 tokens, but .* needs 3999999990"),
        (config(COUNT, 4 * 10**9), "is too large; at most 100,000"),
        (config(COUNT, 3), "is less than the number of special tokens, 4"),
        (config(COUNT, -1), "must be an id"),
        (without("special_tokens"), "special_tokens: is missing; files of version v13 must list"),
        (at("special_tokens", to="x"), "special_tokens: must be an array"),
        (at("special_tokens", 1, to="x"), r"special_tokens\[1\]: must be an object"),
        (special("token_str", ""), r"special_tokens\[1\].token_str: is empty"),
        (special("token_str", "<unk>"), "special_tokens: duplicate special token '<unk>'"),
        (special("token_str", "<SPECIAL_9>"), "duplicate special token '<SPECIAL_9>'"),
        (special("rank", 2), r"special_tokens\[1\].rank: 2 must be 1, the index of '<s>'"),
        (at("vocab", 0, to=None), r"vocab\[0\]: None must have the fields rank, token_bytes, token_str"),
        (without("vocab", 0, "token_str"), r"vocab\[0\]: .* must have the fields"),
        (at("vocab", 0, "rank", to=1), r"vocab\[0\].rank: 1 must be 0, its index in the list"),
        (at("vocab", 0, "rank", to=False), r"vocab\[0\].rank: False must be 0"),
        (token("AA==", 5), r"vocab\[5\].token_bytes: 'AA==' must be the byte 0x05"),
        (token("é"), r"vocab\[257\].token_bytes: 'é' is not a token"),
        *((token(value), "is not a token in base64") for value in ("A", "bG93*", "", 7)),
        (token("bG8="), r"vocab\[257\]: is the same token as vocab\[256\]"),
    ],
)
def test_broken_files_are_refused(change: Change, message: str, tmp_path: Path) -> None:
    made = document()
    change(made)
    path = write(tmp_path / "tekken.json", made)
    with pytest.raises(FormatError, match=message) as error:
        tekken.load(path)
    assert str(error.value).startswith(str(path))
