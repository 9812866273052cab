"""GPT-2's pair of files: the merges, the vocabulary and the config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import AddedToken, BPETokenizer, FormatError
from bpe_tokenizer.formats import gpt2
from gpt2_files import MERGES, VOCAB, write

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
        if not whole[:length].endswith(b"\n"):  # this cannot be seen
            with pytest.raises(FormatError):
                gpt2.load(tmp_path)
    path.write_bytes(b"#version: 0.2\nl o")
    with pytest.raises(FormatError, match=r"merges\.txt: the last line .* and no merge makes 'low'"):
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
    largest = 2**32 - 2
    vocab = {token: 10 * token_id + 3 for token, token_id in VOCAB.items()} | {"Ġlow": largest}
    assert BPETokenizer.load(write(tmp_path, vocab), "gpt2").encode("low low") == [2573, largest]


# -- beside them ----------------------------------------------------------------------------------------


END = "<|endoftext|>"


def config(**fields: Any) -> dict[str, Any]:
    return {"tokenizer_config": fields}


@pytest.mark.parametrize(
    ("beside", "roles", "around"),
    [
        (config(), [END, END, None, END], ((), ())),
        (
            config(tokenizer_class="GPT2TokenizerFast", add_bos_token=True),
            [END, END, None, END],
            ((259,), ()),
        ),
        (config(tokenizer_class="Qwen2Tokenizer", eos_token="low"), [None, "low", END, END], ((), ())),
        (
            config(bos_token="lo", add_bos_token=True, add_eos_token=True),
            ["lo", END, None, END],
            ((256,), (259,)),
        ),
        ({"special_tokens_map": {"pad_token": {"content": "low"}}}, [END, END, "low"], ((), ())),
        ({"added_tokens": {"<x>": 260}}, [END, END], ((), ())),
        (config(bos_token=None, unk_token=None), [None, END, None, None], ((), ())),
    ],
)
def test_the_parts_that_tokens_play(
    beside: Any, roles: list[str | None], around: Any, tmp_path: Path
) -> None:
    model = gpt2.load(write(tmp_path, **beside))
    assert not model.core.add_prefix_space
    tokenizer = BPETokenizer.from_model(model)
    found = [getattr(tokenizer, f"{role}_token") for role in ("bos", "eos", "pad", "unk")]
    assert found[: len(roles)] == roles
    assert tokenizer._compiled().prefix_suffix_ids == around


def test_added_tokens_of_the_config(tmp_path: Path) -> None:
    decoder = {
        "259": {"content": "<|endoftext|>", "special": True, "rstrip": True},
        "260": {"content": "new", "lstrip": True, "normalized": True},
        "261": {"content": "日本", "single_word": True, "special": False},
    }
    fields: dict[str, Any] = {"extra_special_tokens": ["lo", "new"], "model_max_length": 5}
    model = gpt2.load(write(tmp_path, **config(added_tokens_decoder=decoder, **fields)))
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


def test_a_default_token_that_does_not_exist(tmp_path: Path) -> None:
    vocab = {token: token_id for token, token_id in VOCAB.items() if token != "<|endoftext|>"}
    assert gpt2.load(write(tmp_path, vocab, tokenizer_config={})).named_tokens == {}
    with pytest.raises(FormatError, match="add_bos_token: is true, but there is no bos_token"):
        gpt2.load(write(tmp_path, vocab, **config(add_bos_token=True)))


def decoder(token_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return config(added_tokens_decoder={token_id: {"content": content}} | more)


ROBERTA = "tokenizer_class: 'RobertaTokenizer' is not supported .*: GPT2Tokenizer, .*Qwen2Tokenizer"
OTHER_ID = "gives '{}' the id {}, but by vocab.json, .* {}"


@pytest.mark.parametrize(
    ("beside", "message"),
    [
        (config(tokenizer_class="RobertaTokenizer"), ROBERTA),
        (config(tokenizer_class=3), "tokenizer_class: must be a string"),
        (config(add_bos_token=True, bos_token=None), "add_bos_token: is true, but there is no"),
        (config(add_prefix_space=1), "add_prefix_space: must be true or false"),
        ({"tokenizer_config": []}, "must be an object"),
        (decoder("261", "<x>"), OTHER_ID.format("<x>", 261, "260; correct one of the files$")),
        (decoder("5", "low"), OTHER_ID.format("low", 5, "it has 257")),
        (decoder("260", "<x>", **{"261": {"content": "<x>"}}), OTHER_ID.format("<x>", 261, "it has 260")),
        (decoder("x", "<x>"), 'added_tokens_decoder: "x" is not an id'),
        (decoder("4294967294", "<x>"), "it has 260"),
        (decoder("4294967295", "<x>"), 'added_tokens_decoder: "4294967295" is not an id'),
        (decoder("42949672950", "<x>"), 'added_tokens_decoder: "42949672950" is not an id'),
        (decoder("9" * 5000, "<x>"), 'added_tokens_decoder: "9{10}…9{10}" is not an id'),
        (decoder("260", 3), "content: (must be|invalid type: integer `3`, expected) a string"),
        (config(bos_token={"content": "low", "lstrip": 1}), "bos_token.lstrip: must be"),
        ({"added_tokens": {"<x>": "a"}}, "<x>: must be an id"),
        ({"added_tokens": {"<x>": 999}}, "it has 260"),
        ({"special_tokens_map": {"pad_token": {"content": 1}}}, "pad_token.content: must be a string"),
    ],
)
def test_what_contradicts_the_vocabulary_is_refused(beside: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message) as error:
        gpt2.load(write(tmp_path, **beside))
    assert str(tmp_path) in str(error.value)
