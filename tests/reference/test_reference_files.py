"""The lesson: its own files, and OpenAI's."""

import base64
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer.reference import (
    GPT2_PATTERN,
    GPT4_PATTERN,
    CharBPETokenizer,
    NaiveBPETokenizer,
    RegexBPETokenizer,
)
from bpe_tokenizer.reference.characters import BYTE_CHARACTERS
from bpe_tokenizer.reference.unicode import printable
from lesson import WORDS, AnyTokenizer, every_class


@pytest.fixture(scope="module")
def fixtures_dir() -> Path:
    directory = os.environ.get("BPE_TOKENIZER_FIXTURES")
    if directory is None:
        pytest.skip("BPE_TOKENIZER_FIXTURES is not set: it names the directory of vocabularies and corpora")
    return Path(directory)


# Files


def trained(kind: type[AnyTokenizer]) -> AnyTokenizer:
    return kind().train(WORDS + ' 中文é "Ġ" \x00\n', 275, special_tokens={"<|end|>": 300, "<é>": 301})


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
    tokenizer = CharBPETokenizer(GPT4_PATTERN, byte_level=True).train(WORDS, 258)
    tokenizer.save(tmp_path / "b")
    loaded = CharBPETokenizer().load(tmp_path / "b")
    assert (loaded.pattern, loaded.byte_level) == (GPT4_PATTERN, True)
    assert loaded.encode("中 low") == tokenizer.encode("中 low")


def test_tokens_are_saved_in_base64(tmp_path: Path) -> None:
    NaiveBPETokenizer().train("éé", 258).save(tmp_path / "a")
    saved = json.loads((tmp_path / "a").read_text(encoding="utf-8"))
    assert saved["vocab"]["256"] == base64.b64encode(b"\xc3\xa9").decode()
    assert saved["merges"] == [["ww==", "qQ=="], ["w6k=", "w6k="]]
    assert saved["special_tokens"] == {}


def no_format(saved: dict[str, Any]) -> None:
    del saved["format"]


def other_class(saved: dict[str, Any]) -> None:
    saved["class"] = "OtherTokenizer"


def newer_version(saved: dict[str, Any]) -> None:
    saved["version"] = 2


def no_merges(saved: dict[str, Any]) -> None:
    del saved["merges"]


def vocab_as_list(saved: dict[str, Any]) -> None:
    saved["vocab"] = []


def bad_id(saved: dict[str, Any]) -> None:
    saved["vocab"]["x"] = "YQ=="


def bad_base64(saved: dict[str, Any]) -> None:
    saved["vocab"]["256"] = "###"


def same_token_twice(saved: dict[str, Any]) -> None:
    saved["vocab"]["999"] = saved["vocab"]["97"]


def missing_byte(saved: dict[str, Any]) -> None:
    del saved["vocab"]["97"]


def unmade_token(saved: dict[str, Any]) -> None:
    saved["vocab"]["999"] = base64.b64encode(b"xyz").decode()


def merge_of_three(saved: dict[str, Any]) -> None:
    saved["merges"][1].append("YQ==")


def unknown_part(saved: dict[str, Any]) -> None:
    saved["merges"][0][0] = base64.b64encode(b"xyz").decode()


def missing_setting(saved: dict[str, Any]) -> None:
    del saved["settings"]["pattern"]


def bad_pattern(saved: dict[str, Any]) -> None:
    saved["settings"]["pattern"] = "("


def special_id_taken(saved: dict[str, Any]) -> None:
    saved["special_tokens"]["<|end|>"] = 97


def special_id_as_text(saved: dict[str, Any]) -> None:
    saved["special_tokens"]["<|end|>"] = "97"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (no_format, "field 'format' is not 'bpe_tokenizer.reference'"),
        (other_class, "field 'class' is 'OtherTokenizer', but this is a RegexBPETokenizer"),
        (newer_version, "field 'version' is 2"),
        (no_merges, "field 'merges' is missing"),
        (vocab_as_list, "field 'vocab' is a list, not a dict"),
        (bad_id, "field 'vocab': 'x' is not an id"),
        (bad_base64, "field 'vocab', id 256: '###' is not a token in base64"),
        (same_token_twice, "field 'vocab': ids 97 and 999 are both 'a'"),
        (missing_byte, "field 'vocab': the token 'a' is missing"),
        (unmade_token, "field 'vocab': the token 'xyz' is made by no merge"),
        (merge_of_three, "field 'merges', rank 1: expected two tokens"),
        (unknown_part, "field 'merges', rank 0: 'xyz' is neither one of the smallest tokens nor made by a"),
        (missing_setting, "field 'pattern' is missing"),
        (bad_pattern, "field 'settings': the split pattern '[(]' is not"),
        (special_id_taken, "field 'special_tokens': .*'<[|]end[|]>' cannot have id 97, which belongs to 'a'"),
        (special_id_as_text, "field 'special_tokens': the id of '<[|]end[|]>' is '97', not an integer"),
    ],
)
def test_broken_files(change: Callable[[dict[str, Any]], None], message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    trained(RegexBPETokenizer).save(path)
    saved = json.loads(path.read_text(encoding="utf-8"))
    change(saved)
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
    with pytest.raises(ValueError, match=r"tokenizer\.json: (not a JSON file|field 'format')"):
        NaiveBPETokenizer().load(path)


def test_readable_listing(tmp_path: Path) -> None:
    tokenizer = NaiveBPETokenizer().train("éé low low\n", 262, special_tokens={"<|end|>": 258})
    tokenizer.save_readable(tmp_path / "listing.txt")
    lines = (tmp_path / "listing.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "NaiveBPETokenizer(tokens=261, merges=5, special_tokens=1)"
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
    tokenizer = CharBPETokenizer(r"\w+").load_openai(*write_openai_files(tmp_path))
    assert tokenizer.pattern == GPT2_PATTERN
    assert tokenizer.merges == [("l", "o"), ("lo", "w"), ("Ġ", "low")]
    assert tokenizer.special_tokens == {"<|endoftext|>": 259}
    assert tokenizer.encode("low low!<|endoftext|>", "all") == [257, 258, 0, 259]
    assert tokenizer.decode(tokenizer.encode("né 中\n")) == "né 中\n"
    tokenizer.save(tmp_path / "saved")
    assert vars(CharBPETokenizer().load(tmp_path / "saved")) == vars(tokenizer)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("encoder.json", '"lo": 256', '"lo": "256"', r"the id of 'lo' is '256', not an integer"),
        ("encoder.json", '"lo": 256', '"lo": 257', r"'lo' and 'low' have the same id, 257"),
        ("encoder.json", '"lo": 256, ', "", r"no id for 'lo', a token of .*vocab\.bpe"),
        ("encoder.json", "{", "", "not a JSON file"),
        ("encoder.json", '"lo": 256', '"lo": ' + "[" * 100_000, "not a JSON file"),
        ("vocab.bpe", "lo w\n", "low\n", "line 3: expected two tokens and a space, got 'low'"),
        ("vocab.bpe", "lo w\n", "lo w x\n", "line 3: expected two tokens and a space"),
        ("vocab.bpe", "l o\n", "l e\n", "line 3: 'lo' is neither a byte nor made by a line above"),
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
    with pytest.raises(ValueError, match=message) as caught:
        CharBPETokenizer().load_openai(vocab, merges)
    assert str(path) in str(caught.value)


def gpt2(fixtures_dir: Path) -> CharBPETokenizer:
    vocab = fixtures_dir / "vocab"
    return CharBPETokenizer().load_openai(vocab / "gpt2-vocab.json", vocab / "gpt2-merges.txt")


def read_ranks(path: Path) -> dict[bytes, int]:
    """Read a `.tiktoken` file: a token in base64 and its rank on each line."""
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


@pytest.mark.fixtures
def test_gpt2_vocabulary(fixtures_dir: Path) -> None:
    tokenizer = gpt2(fixtures_dir)
    assert len(tokenizer.merges) == 50_000
    assert tokenizer.special_tokens == {"<|endoftext|>": 50256}
    ranks = read_ranks(fixtures_dir / "vocab" / "r50k_base.tiktoken")
    assert {tokenizer.id_bytes(token_id): token_id for token_id in tokenizer.vocab} == ranks
    assert tokenizer.encode("Hello, world!") == [15496, 11, 995, 0]


@pytest.mark.fixtures
@pytest.mark.peer
@pytest.mark.parametrize("corpus", ["books", "code", "multi", "zh"])
def test_gpt2_ids_are_those_of_tiktoken(corpus: str, fixtures_dir: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    peer = tiktoken.Encoding(
        "gpt2",
        pat_str=GPT2_PATTERN,
        mergeable_ranks=read_ranks(fixtures_dir / "vocab" / "r50k_base.tiktoken"),
        special_tokens={"<|endoftext|>": 50256},
    )
    tokenizer = gpt2(fixtures_dir)
    with lzma.open(fixtures_dir / "corpora" / f"{corpus}.txt.xz") as file:
        start = file.read(4_000_000)
    for offset in range(0, 4_000_000, 400_000):
        text = start[offset : offset + 10_000].decode("utf-8", "ignore") + "<|endoftext|>"
        assert len(text) > 2_000
        ids = tokenizer.encode(text, "all")
        assert ids == peer.encode(text, allowed_special="all")
        assert tokenizer.encode(text) == peer.encode(text, disallowed_special=())
        assert tokenizer.decode(ids) == text
