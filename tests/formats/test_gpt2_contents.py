"""GPT-2's pair of files: the merges, the vocabulary and the config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import AddedToken, BPETokenizer, FormatError, Model
from bpe_tokenizer.formats import gpt2
from bpe_tokenizer.formats.gpt2.config import read_config_files
from gpt2_files import MERGES, VOCAB, write


def parts(model: Model) -> tuple[dict[str, str | None], Any]:
    tokenizer = BPETokenizer.from_model(model)
    roles = {role: getattr(tokenizer, f"{role}_token") for role in ("bos", "eos", "pad", "unk")}
    return roles, tokenizer._compiled().prefix_suffix_ids


# -- merges.txt -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        MERGES,
        MERGES[1:],
        ["#version: 0.2 - Trained by `huggingface/tokenizers`", *MERGES[1:]],
        ["#version: 0.2\r", *(f"{line}\r" for line in MERGES[1:])],
        ["#version: 0.2", "", "l o", "", "lo w", "Ġ low", "", ""],
        ["#version: 0.2", "lo w", "l o", "lo w", "Ġ low"],  # the last of two counts
    ],
)
def test_spellings_of_merges(lines: list[str], tmp_path: Path) -> None:
    model = gpt2.load(write(tmp_path, merges=lines))
    assert model.core.merges == [(b"l", b"o"), (b"lo", b"w"), (b" ", b"low")]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["#version: 0.2", "l o", "lo"], "line 3: 'lo' is not a merge"),
        (["l o", "lo w x"], "line 2: 'lo w x' is not a merge"),
        (["l o", "lo\tw"], r"line 2: 'lo\\tw' is not a merge"),
        (["l o", " lo w"], "line 2: ' lo w' is not a merge"),
        (["l o", "o w"], "line 2: 'ow' is not in the vocabulary"),
        (["l o", "日 w"], "line 2: '日' is not in the vocabulary"),
        (["l o", "#version: 0.2"], "line 2: '#version:' is not in the vocabulary"),
    ],
)
def test_broken_merges_are_refused(lines: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message) as error:
        gpt2.load(write(tmp_path, merges=lines))
    assert str(error.value).startswith(str(tmp_path / "merges.txt"))


def test_merges_that_were_cut_off(tmp_path: Path) -> None:
    path = write(tmp_path) / "merges.txt"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert len(gpt2.load(tmp_path).core.merges) == 3  # nothing is missing but the end of a line
    for length in range(len("#version: 0.2\n"), len(whole) - 1):
        path.write_bytes(whole[:length])
        if whole[:length].endswith(b"\n"):
            continue  # this cannot be seen
        with pytest.raises(FormatError):
            gpt2.load(tmp_path)


def test_what_merges_lack_that_were_cut_off(tmp_path: Path) -> None:
    (write(tmp_path) / "merges.txt").write_bytes(b"#version: 0.2\nl o")
    with pytest.raises(FormatError, match=r"merges\.txt: the last line .* and no merge makes 'low'"):
        gpt2.load(tmp_path)
    (tmp_path / "merges.txt").write_bytes(b"#version: 0.2\nl o\n")
    assert gpt2.load(tmp_path).core.merges == [(b"l", b"o")]


def test_merges_that_are_no_text(tmp_path: Path) -> None:
    (write(tmp_path) / "merges.txt").write_bytes(b"l o\n\xff\n")
    with pytest.raises(FormatError, match=r"merges\.txt: is not UTF-8: byte 0xff at offset 4"):
        gpt2.load(tmp_path)


# -- vocab.json -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": 5}, "duplicate id 5"),
        ({"lo": -1}, "lo: must be an id, an integer from 0 to 4294967294, not -1"),
        ({"lo": 2**32 - 1}, "lo: must be an id"),
        ({"lo": 1.0}, "lo: must be an id"),
        ({"lo": True}, "lo: must be an id"),
        ({"lo": None}, "lo: must be an id"),
        ({"日本": 999}, "'日本' has a character outside the 256 printable bytes"),
    ],
)
def test_a_broken_vocabulary_is_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message) as error:
        gpt2.load(write(tmp_path, {**VOCAB, **change}))
    assert str(error.value).startswith(str(tmp_path / "vocab.json"))


def test_a_vocabulary_without_a_byte(tmp_path: Path) -> None:
    vocab = {token: token_id for token, token_id in VOCAB.items() if token != "a"}
    with pytest.raises(FormatError, match="no token for the byte 0x61, written 'a'"):
        gpt2.load(write(tmp_path, vocab))


def test_ids_may_have_holes(tmp_path: Path) -> None:
    vocab = {token: 10 * token_id + 3 for token, token_id in VOCAB.items()}
    assert BPETokenizer.load(write(tmp_path, vocab), "gpt2").encode(" low") == [2583]


# -- beside them ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beside", "roles", "around"),
    [
        ({"tokenizer_config": {}}, ["<|endoftext|>", "<|endoftext|>", None, "<|endoftext|>"], ((), ())),
        (
            {"tokenizer_config": {"tokenizer_class": "GPT2TokenizerFast", "add_bos_token": True}},
            ["<|endoftext|>", "<|endoftext|>", None, "<|endoftext|>"],
            ((259,), ()),
        ),
        (
            {"tokenizer_config": {"tokenizer_class": "Qwen2Tokenizer", "eos_token": "low"}},
            [None, "low", "<|endoftext|>", "<|endoftext|>"],
            ((), ()),
        ),
        (
            {"tokenizer_config": {"bos_token": "lo", "add_bos_token": True, "add_eos_token": True}},
            ["lo", "<|endoftext|>", None, "<|endoftext|>"],
            ((256,), (259,)),
        ),
        (
            {"special_tokens_map": {"pad_token": {"content": "low"}}},
            ["<|endoftext|>", "<|endoftext|>", "low"],
            ((), ()),
        ),
        ({"added_tokens": {"<x>": 260}}, ["<|endoftext|>", "<|endoftext|>"], ((), ())),
        (
            {"tokenizer_config": {"bos_token": None, "unk_token": None}},
            [None, "<|endoftext|>", None, None],
            ((), ()),
        ),
    ],
)
def test_the_parts_that_tokens_play(
    beside: Any, roles: list[str | None], around: Any, tmp_path: Path
) -> None:
    model = gpt2.load(write(tmp_path, **beside))
    assert not model.core.add_prefix_space
    found, found_around = parts(model)
    assert list(found.values())[: len(roles)] == roles
    assert found_around == around


def test_added_tokens_of_the_config(tmp_path: Path) -> None:
    decoder = {
        "259": {"content": "<|endoftext|>", "special": True, "rstrip": True},
        "260": {"content": "new", "lstrip": True, "normalized": True},
        "261": {"content": "日本", "single_word": True, "special": False},
    }
    config = {"added_tokens_decoder": decoder, "extra_special_tokens": ["lo", "new"], "model_max_length": 5}
    model = gpt2.load(write(tmp_path, tokenizer_config=config))
    assert model.core.added_tokens == [
        AddedToken("lo", 256),
        AddedToken("<|endoftext|>", 259, rstrip=True),
        AddedToken("new", 260, special=False, lstrip=True, normalized=True),
        AddedToken("日本", 261, special=False, single_word=True, normalized=True),
    ]
    assert model.config == {"extra_special_tokens": ["lo", "new"], "model_max_length": 5}


def test_added_tokens_json(tmp_path: Path) -> None:
    named = {"pad_token": "<p>", "additional_special_tokens": ["<x>"]}
    tokens = {"<x>": 261, "<p>": 260, "plain": 262}
    model = gpt2.load(write(tmp_path, special_tokens_map=named, added_tokens=tokens))
    assert model.core.added_tokens == [
        AddedToken("<|endoftext|>", 259),
        AddedToken("<p>", 260),
        AddedToken("<x>", 261),
        AddedToken("plain", 262, special=False, normalized=True),
    ]


def test_without_the_usual_name_nothing_beside_is_read(tmp_path: Path) -> None:
    directory = write(tmp_path, tokenizer_config={"tokenizer_class": "Qwen2Tokenizer"})
    for name in ("vocab.json", "merges.txt"):
        (directory / name).rename(directory / f"my-{name}")
    assert gpt2.load(directory / "my-vocab.json").core.normalization is None


def test_an_added_token_outside_of_both_files(tmp_path: Path) -> None:
    config = {"added_tokens_decoder": {"260": {"content": "<x>"}}, "bpe_tokenizer": {"outside": [260, 7]}}
    model = gpt2.load(write(tmp_path, tokenizer_config=config))
    assert model.core.added_tokens[-1] == AddedToken("<x>", 260, special=False, normalized=True)


def test_a_config_that_is_replaced_meanwhile_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, tokenizer_config={"tokenizer_class": "RobertaTokenizer"})

    def read_and_replace(*arguments: Any) -> Any:
        try:
            return read_config_files(*arguments)
        finally:
            (tmp_path / "tokenizer_config.json").write_text("{}")

    monkeypatch.setattr(gpt2, "read_config_files", read_and_replace)
    assert gpt2.load(tmp_path).named_tokens["eos"] == "<|endoftext|>"


def test_a_default_token_that_does_not_exist(tmp_path: Path) -> None:
    vocab = {token: token_id for token, token_id in VOCAB.items() if token != "<|endoftext|>"}
    assert gpt2.load(write(tmp_path, vocab, tokenizer_config={})).named_tokens == {}
    config = {"add_bos_token": True}
    with pytest.raises(FormatError, match="add_bos_token: is true, but there is no bos_token"):
        gpt2.load(write(tmp_path, vocab, tokenizer_config=config))


def test_given_special_tokens_replace_those_with_a_role(tmp_path: Path) -> None:
    write(tmp_path, tokenizer_config={"eos_token": "low", "pad_token": None})
    model = gpt2.load(tmp_path, special_tokens=["low"])
    assert model.named_tokens == {"eos": "low", "pad": ""}
    assert model.core.added_tokens == [AddedToken("low", 257)]


def test_added_tokens_in_any_order_and_special_if_something_says_so(tmp_path: Path) -> None:
    decoder = {
        "262": {"content": "<c>"},
        "260": {"content": "<a>", "special": True},
        "261": {"content": "<b>"},
    }
    config = {"added_tokens_decoder": decoder, "pad_token": "<b>"}
    named = {"mask_token": {"content": "low", "lstrip": True}}
    model = gpt2.load(write(tmp_path, tokenizer_config=config | named))
    assert model.core.added_tokens == [
        AddedToken("low", 257, lstrip=True),
        AddedToken("<|endoftext|>", 259),
        AddedToken("<a>", 260),
        AddedToken("<b>", 261),
        AddedToken("<c>", 262, special=False, normalized=True),
    ]
    assert model.named_tokens["pad"] == "<b>"


def decoder(token_id: str, content: Any) -> dict[str, Any]:
    return {"tokenizer_config": {"added_tokens_decoder": {token_id: {"content": content}}}}


@pytest.mark.parametrize(
    ("beside", "message"),
    [
        (
            {"tokenizer_config": {"tokenizer_class": "RobertaTokenizer"}},
            "tokenizer_class: 'RobertaTokenizer' is not supported .*: GPT2Tokenizer, .*Qwen2Tokenizer",
        ),
        ({"tokenizer_config": {"tokenizer_class": 3}}, "tokenizer_class: must be a string"),
        (
            {"tokenizer_config": {"add_bos_token": True, "bos_token": None}},
            "add_bos_token: is true, but there is no",
        ),
        ({"tokenizer_config": {"add_prefix_space": 1}}, "add_prefix_space: must be true or false"),
        ({"tokenizer_config": []}, "must be an object"),
        (
            decoder("261", "<x>"),
            "gives '<x>' the id 261, but by vocab.json, .* 260; correct one of the files$",
        ),
        (decoder("5", "low"), "gives 'low' the id 5, but by vocab.json, .* it has 257"),
        (decoder("x", "<x>"), 'added_tokens_decoder: "x" is not an id'),
        (decoder("4294967294", "<x>"), "it has 260"),
        (decoder("4294967295", "<x>"), 'added_tokens_decoder: "4294967295" is not an id'),
        (decoder("42949672950", "<x>"), 'added_tokens_decoder: "42949672950" is not an id'),
        (
            {
                "tokenizer_config": {
                    "added_tokens_decoder": {"260": {"content": "<x>"}, "261": {"content": "<x>"}}
                }
            },
            "gives '<x>' the id 261, but by vocab.json, .* it has 260",
        ),
        ({"tokenizer_config": {"bos_token": {"content": "low", "lstrip": 1}}}, "bos_token.lstrip: must be"),
        (decoder("9" * 5000, "<x>"), 'added_tokens_decoder: "9{10}…9{10}" is not an id'),
        (decoder("260", 3), "content: (must be|invalid type: integer `3`, expected) a string"),
        ({"added_tokens": {"<x>": "a"}}, "<x>: must be an id"),
        ({"added_tokens": {"<x>": 999}}, "it has 260"),
        ({"special_tokens_map": {"pad_token": {"content": 1}}}, "pad_token.content: must be a string"),
    ],
)
def test_what_contradicts_the_vocabulary_is_refused(beside: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message) as error:
        gpt2.load(write(tmp_path, **beside))
    assert str(tmp_path) in str(error.value)
