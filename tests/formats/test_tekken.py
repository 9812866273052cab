"""Mistral's tekken.json, made here from learned and from published ranks, and every refusal.

tests/peers compares with mistral-common's own tokenizer, where it is installed.
"""

from __future__ import annotations

import copy
import json
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, FormatError
from bpe_tokenizer.formats import tekken
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hostile import hostile_texts

PATTERN = NAMED_PATTERNS["tekken"].patterns[0]


def document(
    tokens: Sequence[bytes] = (b"lo", b"low"),
    special: Sequence[str] | None = ("<unk>", "<s>", "</s>", "[INST]"),
    count: int = 10,
    **config: Any,
) -> dict[str, Any]:
    tokens = [*(bytes([byte]) for byte in range(256)), *tokens]
    made: dict[str, Any] = {
        "config": {
            "pattern": PATTERN,
            "num_vocab_tokens": len(tokens),
            "default_vocab_size": len(tokens) + count,
            "default_num_special_tokens": count,
            "version": "v13" if special else "v3",
        }
        | config,
        "vocab": [
            {"rank": rank, "token_bytes": b64encode(token).decode(), "token_str": None}
            for rank, token in enumerate(tokens)
        ],
    }
    if special is not None:
        made["special_tokens"] = [
            {"rank": rank, "token_str": text, "is_control": rank != 3} for rank, text in enumerate(special)
        ]
    return made


def write(path: Path, made: Any) -> Path:
    path.write_text(json.dumps(made), encoding="utf-8")
    return path


def test_ids_are_ranks_behind_the_special_tokens(tmp_path: Path) -> None:
    tokenizer = BPETokenizer.load(write(tmp_path / "x.json", document()), "tekken")
    assert tokenizer.vocab_size == len(tokenizer) == 268
    assert tokenizer.encode("low [INST]</s>", allowed_special="all") == [267, 32 + 10, 3, 2]
    assert tokenizer.decode([267, 9]) == "low<SPECIAL_9>"
    assert tokenizer.special_tokens == {
        "<unk>": 0,
        "<s>": 1,
        "</s>": 2,
        "[INST]": 3,
        **{f"<SPECIAL_{n}>": n for n in range(4, 10)},
    }
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token, tokenizer.unk_token) == (
        *("<s>", "</s>", None, "<unk>"),
    )
    assert tokenizer.encode("low", add_special_tokens=True) == [1, 267, 2]
    assert tokenizer.split_pattern == PATTERN
    assert tokenizer.normalization is None


def test_no_special_token_is_found_unless_it_is_allowed(tmp_path: Path) -> None:
    """Not even one that is no control token: mistral-common never looks for any."""
    tokenizer = BPETokenizer.load(write(tmp_path / "x.json", document()), "tekken")
    assert min(tokenizer.encode("[INST]<s>")) >= 10


def test_older_files_have_the_known_special_tokens(tmp_path: Path) -> None:
    tokenizer = BPETokenizer.load(write(tmp_path / "x.json", document(special=None, count=1000)), "tekken")
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
    made = document([b"<s", b"<s>"], pattern=r"\S+|\s+")
    tokenizer = BPETokenizer.load(write(tmp_path / "x.json", made), "tekken")
    assert tokenizer.encode("<s>") == [267]
    assert tokenizer.encode("<s>", allowed_special="all") == [1]
    assert (tokenizer.vocab[1], tokenizer.vocab[267], len(tokenizer)) == (b"<s>", b"<s>", 268)


def test_the_smallest_vocabulary(tmp_path: Path) -> None:
    made = document(tokens=(), count=4)
    tokenizer = BPETokenizer.load(write(tmp_path / "x.json", made), "tekken")
    assert (len(tokenizer), tokenizer.encode("a")) == (260, [97 + 4])


def test_the_roles_are_those_of_mistral(tmp_path: Path) -> None:
    """Whatever other names the file has."""
    made = document(special=("<|begin_of_text|>", "<|end_of_text|>", "<s>", "</s>", "<|pad|>", "<pad>"))
    tokenizer = BPETokenizer.load(write(tmp_path / "x.json", made), "tekken")
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token) == ("<s>", "</s>", "<pad>")


def test_learned_ranks(stdlib_texts: list[str], mixed_text: str, tmp_path: Path) -> None:
    """The same pieces and ranks, so the same tokens, with their ids shifted."""
    learned = BPETokenizer("tekken", None).train([*stdlib_texts, mixed_text], 1500, verbose=False)
    made = document([learned.vocab[token_id] for token_id in range(256, 1500)], count=1000)
    tokenizer = BPETokenizer.load(write(tmp_path / "x.json", made), "tekken")
    for text in [mixed_text, stdlib_texts[0], *hostile_texts(300)]:
        assert tokenizer.encode(text) == [token_id + 1000 for token_id in learned.encode(text)]


def broken(*path: Any, value: Any = ...) -> dict[str, Any]:
    """A sound file with one value replaced, or removed."""
    made = copy.deepcopy(document())
    *owners, last = path
    place: Any = made
    for key in owners:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return made


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ([], "must be an object"),
        ({}, "config: is missing"),
        (broken("vocab"), "vocab: is missing"),
        (broken("vocab", value={}), "vocab: must be an array"),
        (broken("config", "pattern"), "config.pattern: is missing"),
        (broken("config", "pattern", value="("), "Opening|paren|parenthes"),
        (broken("config", "version", value="v99"), "config.version: 'v99' is not supported; v1, v2"),
        (broken("config", "version", value=3), "config.version: must be a string"),
        (broken("config", "default_vocab_size", value=265), "leaves no room for 256 bytes after 10"),
        (broken("config", "default_vocab_size", value=10**20), "config.default_vocab_size: must be an id"),
        (
            broken("config", "default_vocab_size", value=4 * 10**9),
            "holds 258 tokens, but .* needs 3999999990",
        ),
        (broken("config", "default_num_special_tokens", value=4 * 10**9), "is too large; at most 100,000"),
        (
            broken("config", "default_num_special_tokens", value=3),
            "is less than the number of special tokens, 4",
        ),
        (broken("config", "default_num_special_tokens", value=-1), "must be an id"),
        (broken("special_tokens"), "special_tokens: is missing; files of version v13 must list"),
        (broken("special_tokens", value="x"), "special_tokens: must be an array"),
        (broken("special_tokens", 1, value="x"), r"special_tokens\[1\]: must be an object"),
        (broken("special_tokens", 1, "token_str", value=""), r"special_tokens\[1\].token_str: is empty"),
        (
            broken("special_tokens", 1, "token_str", value="<unk>"),
            "special_tokens: duplicate special token '<unk>'",
        ),
        (
            broken("special_tokens", 1, "token_str", value="<SPECIAL_9>"),
            "duplicate special token '<SPECIAL_9>'",
        ),
        (
            broken("special_tokens", 1, "rank", value=2),
            r"special_tokens\[1\].rank: 2 must be 1, the index of '<s>'",
        ),
        (
            broken("vocab", 0, value=None),
            r"vocab\[0\]: None must have the fields rank, token_bytes, token_str",
        ),
        (broken("vocab", 0, "token_str"), r"vocab\[0\]: .* must have the fields"),
        (broken("vocab", 0, "rank", value=1), r"vocab\[0\].rank: 1 must be 0, its index in the list"),
        (broken("vocab", 0, "rank", value=False), r"vocab\[0\].rank: False must be 0"),
        (
            broken("vocab", 5, "token_bytes", value="AA=="),
            r"vocab\[5\].token_bytes: 'AA==' must be the byte 0x05",
        ),
        (broken("vocab", 257, "token_bytes", value="é"), r"vocab\[257\].token_bytes: 'é' is not a token"),
        (broken("vocab", 257, "token_bytes", value="A"), "is not a token in base64"),
        (broken("vocab", 257, "token_bytes", value="bG93*"), "is not a token in base64"),
        (broken("vocab", 257, "token_bytes", value=""), "is not a token in base64"),
        (broken("vocab", 257, "token_bytes", value=7), "is not a token in base64"),
        (
            broken("vocab", 257, "token_bytes", value="bG8="),
            r"vocab\[257\]: is the same token as vocab\[256\]",
        ),
    ],
)
def test_broken_files_are_refused(made: Any, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "tekken.json", made)
    with pytest.raises(FormatError, match=message) as error:
        tekken.load(path)
    assert str(error.value).startswith(str(path))
