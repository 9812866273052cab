"""The lesson: its own files, and OpenAI's."""

import base64
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer.reference import (
    GPT2_SPLIT_PATTERN,
    GPT4_SPLIT_PATTERN,
    CharBPETokenizer,
    NaiveBPETokenizer,
    RegexBPETokenizer,
    from_ranks,
    read_ranks,
)
from bpe_tokenizer.reference.characters import BYTE_CHARACTERS
from bpe_tokenizer.reference.text import printable
from lesson import WORDS, AnyTokenizer, every_class, trained_on

# Files


def trained(kind: type[AnyTokenizer]) -> AnyTokenizer:
    return trained_on(kind, WORDS + ' 中文é "Ġ" \x00\n', 275, {"<|end|>": 300, "<é>": 301})


@every_class
def test_save_and_load(kind: type[AnyTokenizer], tmp_path: Path) -> None:
    tokenizer = trained(kind)
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = kind()
    assert loaded.load(str(tmp_path / "tokenizer.json")) is loaded
    assert vars(loaded) == vars(tokenizer)
    text = WORDS + "<|end|> 中é\n"
    assert loaded.encode(text, "all") == tokenizer.encode(text, "all")


def test_settings_are_saved(tmp_path: Path) -> None:
    RegexBPETokenizer(r"\w+").train(WORDS, 258).save(tmp_path / "a")
    assert RegexBPETokenizer().load(tmp_path / "a").pattern == r"\w+"
    tokenizer = CharBPETokenizer(GPT4_SPLIT_PATTERN, byte_level=True).train(WORDS, 258)
    tokenizer.save(tmp_path / "b")
    loaded = CharBPETokenizer().load(tmp_path / "b")
    assert (loaded.pattern, loaded.byte_level) == (GPT4_SPLIT_PATTERN, True)
    assert loaded.encode("中 low") == tokenizer.encode("中 low")


NEW = base64.b64encode(b"xyz").decode()
GONE = object()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("format", GONE, "field 'format': it is missing"),
        ("class", "OtherTokenizer", "field 'class': 'OtherTokenizer' is not 'RegexBPETokenizer'"),
        ("version", 2, "field 'version': 2 is not 1"),
        ("merges", GONE, "field 'merges': it is missing"),
        ("vocab", [], "field 'vocab': .*list"),
        ("vocab.x", "YQ==", "field 'vocab': .*'x'"),
        ("vocab.256", "###", "field 'vocab': .*base64"),
        ("vocab.999", "YQ==", "field 'vocab': two ids are the same token"),
        ("vocab.97", GONE, "field 'merges': 'a' is made by no merge, or is not in the vocabulary"),
        ("vocab.999", NEW, "field 'merges': 'xyz' is made by no merge"),
        ("merges.1", ["YQ=="] * 3, "field 'merges': too many values"),
        ("merges.0.0", NEW, "field 'merges': rank 0 uses a token that no earlier merge makes"),
        ("settings", GONE, "field 'settings': it is missing"),
        ("settings.pattern", "(", "field 'settings': the split pattern '[(]' is not"),
        ("special_tokens.<|end|>", 97, "field 'special_tokens': .*'<[|]end[|]>' cannot have id 97"),
        ("special_tokens.<|end|>", "97", "field 'special_tokens': .*'<'"),
    ],
)
def test_broken_files(place: str, value: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    trained(RegexBPETokenizer).save(path)
    saved = inner = json.loads(path.read_text(encoding="utf-8"))
    *outer, last = (int(key) if key in "01" else key for key in place.split("."))
    for key in outer:
        inner = inner[key]
    inner[last] = value
    if value is GONE:
        del inner[last]
    path.write_text(json.dumps(saved), encoding="utf-8")
    tokenizer = RegexBPETokenizer()
    with pytest.raises(ValueError, match=message) as caught:
        tokenizer.load(path)
    assert str(path) in str(caught.value)
    assert vars(tokenizer) == vars(RegexBPETokenizer())


@pytest.mark.parametrize("contents", [b"no JSON", b"[1, 2]", b"\xff\xfe", b"", b"[" * 100_000])
def test_files_of_another_kind(contents: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(contents)
    with pytest.raises(
        ValueError, match=r"tokenizer\.json: (not a JSON file|expected a JSON object, got a list)"
    ):
        NaiveBPETokenizer().load(path)


def test_readable_listing(tmp_path: Path) -> None:
    tokenizer = trained_on(NaiveBPETokenizer, "éé low low\n", 262, {"<|end|>": 258})
    tokenizer.save_readable(tmp_path / "listing.txt")
    lines = (tmp_path / "listing.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "NaiveBPETokenizer(vocab_size=261, merges=5, special_tokens=1)"
    assert len(lines) == 1 + 262
    assert lines[1 + 0] == "      0  '\\x00'"
    assert lines[1 + 10] == "     10  '\\n'"
    assert lines[1 + 97] == "     97  'a'"
    assert lines[1 + 195] == "    195  <c3>"
    assert lines[1 + 256 :] == [
        "    256  'é' = <c3> + <a9>",
        "    257  ' l' = ' ' + 'l'",
        "    258  '<|end|>' special token",
        "    259  ' lo' = ' l' + 'o'",
        "    260  ' low' = ' lo' + 'w'",
        "    261  'éé' = 'é' + 'é'",
    ]


@given(st.binary(max_size=4) | st.text(max_size=4).map(str.encode))
def test_printable_tokens_fit_a_line_and_can_be_told_apart(token: bytes) -> None:
    shown = printable(token)
    assert shown.isprintable()
    if shown.startswith("<"):
        assert bytes.fromhex(shown[1:-1]) == token
    else:
        assert eval(shown).encode() == token


# OpenAI's files


def write_openai_files(directory: Path) -> tuple[Path, Path]:
    tokens = [*sorted(BYTE_CHARACTERS), "lo", "low", "Ġlow", "<|endoftext|>"]
    vocab, merges = directory / "encoder.json", directory / "vocab.bpe"
    vocab.write_text(json.dumps({token: token_id for token_id, token in enumerate(tokens)}), encoding="utf-8")
    merges.write_text("#version: 0.2\nl o\nlo w\nĠ low\n", encoding="utf-8")
    return vocab, merges


def test_load_openai(tmp_path: Path) -> None:
    tokenizer = CharBPETokenizer().load_vocab_and_merges_from_openai(*write_openai_files(tmp_path))
    assert (tokenizer.pattern, tokenizer.byte_level) == (GPT2_SPLIT_PATTERN, True)
    assert list(tokenizer.bpe_ranks) == [("l", "o"), ("lo", "w"), ("Ġ", "low")]
    assert tokenizer.special_tokens == {"<|endoftext|>": 259}
    assert tokenizer.encode("low low!<|endoftext|>", "all") == [257, 258, 0, 259]
    assert tokenizer.decode(tokenizer.encode("né 中\n")) == "né 中\n"
    tokenizer.save(tmp_path / "saved")
    assert vars(CharBPETokenizer().load(tmp_path / "saved")) == vars(tokenizer)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("encoder.json", '"lo": 256', '"lo": "256"', "expected an integer for each token"),
        ("encoder.json", '"lo": 256', '"lo": 257', "an integer for each token, and no integer twice"),
        (
            "encoder.json",
            '"lo": 256, ',
            "",
            "line 2: 'l o' is not two tokens of earlier lines",
        ),
        ("encoder.json", "{", "", "not a JSON file"),
        ("encoder.json", '"lo": 256', '"lo": ' + "[" * 100_000, "not a JSON file"),
        ("vocab.bpe", "lo w\n", "low\n", "line 3: 'low' is not two tokens"),
        ("vocab.bpe", "lo w\n", "lo w x\n", "line 3: 'lo w x' is not two tokens"),
        ("vocab.bpe", "l o\n", "l e\n", "line 2: 'l e' is not two tokens of earlier lines"),
    ],
)
def test_broken_openai_files(name: str, old: str, new: str, message: str, tmp_path: Path) -> None:
    vocab, merges = write_openai_files(tmp_path)
    path = tmp_path / name
    text = json.dumps(json.loads(vocab.read_text(encoding="utf-8")), ensure_ascii=False)
    vocab.write_text(text, encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        CharBPETokenizer().load_vocab_and_merges_from_openai(vocab, merges)


def gpt2(shared: Path) -> CharBPETokenizer:
    vocab = shared / "vocab"
    return CharBPETokenizer().load_vocab_and_merges_from_openai(
        vocab / "gpt2-vocab.json", vocab / "gpt2-merges.txt"
    )


@pytest.mark.parametrize("byte_level", [False, True])
def test_openai_files_are_written_and_read(byte_level: bool, tmp_path: Path) -> None:
    tokenizer = CharBPETokenizer(GPT2_SPLIT_PATTERN, byte_level).train(WORDS + "<|endoftext|> 中é", 280)
    files = tmp_path / "vocab.json", tmp_path / "merges.txt"
    tokenizer.save_vocab_and_merges(*files)
    loaded = CharBPETokenizer().load_vocab_and_merges_from_openai(*files)
    assert loaded.pattern == (GPT2_SPLIT_PATTERN if byte_level else "")
    loaded = CharBPETokenizer(GPT2_SPLIT_PATTERN).load_vocab_and_merges_from_openai(*files)
    assert vars(loaded) == vars(tokenizer)


def test_ranks_give_the_tokenizer_again() -> None:
    tokenizer = trained_on(RegexBPETokenizer, WORDS * 2 + " 中文é", 290, {"<|end|>": 400})
    ranks = {token: token_id for token_id, token in tokenizer.vocab.items()}
    rebuilt = from_ranks(ranks, special_tokens={"<|end|>": 400})
    assert rebuilt.merges == tokenizer.merges
    assert vars(rebuilt) == vars(tokenizer)


@pytest.mark.fixtures
@pytest.mark.peer
@pytest.mark.parametrize("corpus", ["books", "code", "multi", "zh"])
def test_gpt2_ids_are_those_of_tiktoken(corpus: str, shared: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    peer = tiktoken.Encoding(
        "gpt2",
        pat_str=GPT2_SPLIT_PATTERN,
        mergeable_ranks=read_ranks(shared / "vocab" / "r50k_base.tiktoken"),
        special_tokens={"<|endoftext|>": 50256},
    )
    tokenizer = gpt2(shared)
    with lzma.open(shared / "corpora" / f"{corpus}.txt.xz") as file:
        start = file.read(4_000_000)
    for offset in range(0, 4_000_000, 400_000):
        text = start[offset : offset + 10_000].decode("utf-8", "ignore") + "<|endoftext|>"
        assert len(text) > 2_000
        ids = tokenizer.encode(text, "all")
        assert ids == peer.encode(text, allowed_special="all")
        assert tokenizer.encode(text) == peer.encode(text, disallowed_special=())
        assert tokenizer.decode(ids) == text
