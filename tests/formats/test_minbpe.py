"""minbpe's `.model`: read as minbpe reads it, refused where it cannot be.

`Minbpe` below is what https://github.com/karpathy/minbpe does with such a file, in other words.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import AddedToken, BPETokenizer, FormatError, Model, OptionError, PatternError, _core
from bpe_tokenizer.formats import minbpe
from bpe_tokenizer.formats.python_regex import python_objection
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN, NAMED_PATTERNS
from bpe_tokenizer.reference import merge_pair
from hostile import hostile_texts
from small_tokenizers import bytes_model

GPT4_AS_MINBPE_SPELLS_IT = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
    r"|\s+(?!\S)|\s+"
)


class Minbpe:
    """A `.model` as minbpe runs it: the naive way."""

    def __init__(self, path: Path) -> None:
        version, pattern, count, *lines = path.read_text(encoding="utf-8").splitlines()
        assert version == "minbpe v1"
        self.pattern = pattern.strip()
        self.special: dict[str, int] = {}
        for line in lines[: int(count)]:
            text, number = line.strip().split()
            self.special[text] = int(number)
        self.ranks: dict[tuple[int, int], int] = {}
        self.vocab = {byte: bytes([byte]) for byte in range(256)}
        for made, line in enumerate(lines[int(count) :], 256):
            left, right = map(int, line.split())
            self.ranks[left, right] = made
            self.vocab[made] = self.vocab[left] + self.vocab[right]

    def encode(self, text: str, special: bool = False) -> list[int]:
        if not special or not self.special:
            pieces = regex.findall(self.pattern, text) if self.pattern else [text]
            return [token_id for piece in pieces for token_id in self.merged(piece.encode())]
        ids: list[int] = []
        for part in regex.split("(" + "|".join(map(regex.escape, self.special)) + ")", text):
            ids += [self.special[part]] if part in self.special else self.encode(part)
        return ids

    def merged(self, data: bytes) -> list[int]:
        ids = [*data]
        while found := [(self.ranks[pair], pair) for pair in pairwise(ids) if pair in self.ranks]:
            token_id, pair = min(found)
            ids = merge_pair(ids, pair, token_id)
        return ids


def write(path: Path, pattern: str = "", special: Sequence[str] = (), merges: Sequence[str] = ()) -> Path:
    lines = ["minbpe v1", pattern, str(len(special)), *special, *merges]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return path


def texts() -> list[str]:
    """Hostile texts, without lone surrogates (no text for minbpe) and what takes the naive way minutes."""
    short = [text for text in hostile_texts(400) if len(text) < 300]
    return [text for text in short if text == text.encode("utf-8", "ignore").decode()]


def trained(split_pattern: str, texts: list[str], **settings: Any) -> BPETokenizer:
    tokenizer = BPETokenizer(split_pattern=split_pattern, normalization=None)
    return tokenizer.train(texts, verbose=False, **{"vocab_size": 600} | settings)


# -- round trips ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpt2", "cl100k", "o200k", "llama3", "qwen2", "tekken"])
def test_what_is_saved_means_the_same_to_minbpe(name: str, stdlib_texts: list[str], tmp_path: Path) -> None:
    tokenizer = trained(name, stdlib_texts, special_tokens={"<|end|>": 600, "<|e": 700})
    tokenizer.export(tmp_path / "x.model", "minbpe")
    theirs = Minbpe(tmp_path / "x.model")
    again = BPETokenizer.load(tmp_path / "x.model", "minbpe")
    assert again.vocab == tokenizer.vocab == theirs.vocab | {600: b"<|end|>", 700: b"<|e"}
    assert again.merges == tokenizer.merges
    assert again.split_pattern == tokenizer.split_pattern
    for text in [*texts(), stdlib_texts[0][:3000], "a<|end|>b<|e<|end|>"]:
        assert tokenizer.encode(text) == again.encode(text) == theirs.encode(text)
        for row in (tokenizer.encode(text, allowed_special="all"), again.encode(text, allowed_special="all")):
            assert row == theirs.encode(text, special=True)


def test_the_basic_tokenizer_does_not_split(stdlib_texts: list[str], tmp_path: Path) -> None:
    tokenizer = trained(r"(?s).+", [stdlib_texts[0][:5000]], vocab_size=400)
    whole = Model(_core.Model(tokenizer.vocab, tokenizer.merges, split_patterns=[]))
    minbpe.save(whole, tmp_path / "x.model")
    theirs, ours = Minbpe(tmp_path / "x.model"), BPETokenizer.load(tmp_path / "x.model", "minbpe")
    assert theirs.pattern == ""
    assert ours.model.core.pre_tokenizers == []
    for text in [*texts(), stdlib_texts[0][:3000]]:
        assert ours.encode(text) == theirs.encode(text)


@pytest.mark.parametrize("pattern", [GPT2_SPLIT_PATTERN, GPT4_AS_MINBPE_SPELLS_IT])
def test_the_published_patterns_load(pattern: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.model", pattern, ["<|endoftext|> 100257"], ["108 111", "256 119", "32 257"])
    ours, theirs = BPETokenizer.load(path, "minbpe"), Minbpe(path)
    assert ours.split_pattern == pattern
    assert ours.special_tokens == {"<|endoftext|>": 100257}
    for text in [*texts(), "low slow<|endoftext|>"]:
        assert ours.encode(text) == theirs.encode(text)


@pytest.mark.parametrize(
    "pattern", [r"[a-z]+|\d", r"\p{Lu}\p{Ll}*|[.,;]{2,3}?", r"(?i:[abc]+)| (?=x)|(?<!a)z"]
)
def test_what_a_pattern_leaves_out_is_dropped_as_there(pattern: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.model", pattern, merges=["97 98", "256 99"])
    ours, theirs = BPETokenizer.load(path, "minbpe"), Minbpe(path)
    for text in [*texts(), "Abc abcABC.,;.. x z az Ünïcode"]:
        assert ours.encode(text) == theirs.encode(text)
    with pytest.raises(FormatError, match="pre_tokenizers"):
        ours.export(tmp_path / "y.model", "minbpe")


def test_windows_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "x.model", r"\s+|\S+", ["<a> 300"], ["108 111"])
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert BPETokenizer.load(path, "minbpe").merges == [(b"l", b"o")]


# -- refused when loaded --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the last line has no newline"),
        (b"minbpe v2\n\n0\n", "line 1: must be 'minbpe v1'"),
        (b"minbpe v1\n", "line 3: must be the number of special tokens"),
        (b"minbpe v1\n\n-1\n", "line 3: must be the number"),
        (b"minbpe v1\n\n" + b"9" * 5000 + b"\n", "line 3: must be the number"),
        (b"minbpe v1\n\n2\n<a> 300\n", "line 3: announces 2 special tokens, but only 1 lines follow"),
        (b"minbpe v1\n\n1\n<a>\n", "line 4: '<a>' is not a special token"),
        (b"minbpe v1\n\n1\n<a b> 300\n", "line 4: '<a b> 300' is not a special token"),
        (b"minbpe v1\n\n1\n<a> 4294967295\n", "line 4"),
        (b"minbpe v1\n\n1\n<a> 00000000300\n", "line 4"),
        (b"minbpe v1\n\n1\n<a> 255\n", "line 4: the id 255 of '<a>' is already the id of"),
        (b"minbpe v1\n\n1\n<a> 256\n97 98\n", "line 4: the id 256 of '<a>' is already the id of"),
        (b"minbpe v1\n\n2\n<a> 300\n<a> 301\n", "line 5: duplicate special token '<a>'"),
        (b"minbpe v1\n\n2\n<a> 300\n<b> 300\n", "line 5: '<a>' and '<b>' both have the id 300"),
        (b"minbpe v1\n\n2\n<a 300\n<a> 301\n", "'<a' precedes '<a>'"),
        (b"minbpe v1\n\n3\n<abc 300\n<a 301\n<ab 302\n", "'<a' precedes '<ab'"),
        (b"minbpe v1\n\n4\n<a 300\n<b 301\n<ad 302\n<ac 303\n", "'<a' precedes '<ac'"),
        (b"minbpe v1\n\n0\n97 98 99\n", "line 4: '97 98 99' is not a merge"),
        (b"minbpe v1\n\n0\n97 -1\n", "line 4: '97 -1' is not a merge"),
        (b"minbpe v1\n\n0\n-1 97\n", "line 4: '-1 97' is not a merge"),
        (b"minbpe v1\n\n0\n97 98\n\n", "line 5: '' is not a merge"),
        (b"minbpe v1\n\n0\n97 256\n", "line 4: the id 256 is not defined"),
        (b"minbpe v1\n\n0\n97 98\n97 98\n", "line 5: makes the same token as id 256"),
        (b"minbpe v1\n\n0\n97 98\n256 99\n98 99\n97 258\n", "line 7: makes the same token as id 257"),
        (b"minbpe v1\n\n0\n97 98\n97 9", "the last line has no newline"),
        (b"minbpe v1\n ?\\p{L}+\n0\n", "line 2: the pattern begins or ends with white space"),
        (b"minbpe v1\na\rb\n0\n", "line 2: the pattern begins or ends with white space"),
        (b"minbpe v1\n(\n0\n", "line 2: the pattern is not supported"),
        (b"minbpe v1\n\\s+$\n0\n", r"line 2: the pattern '\\\\s\+\$' holds \$"),
        (b"minbpe v1\n(a)|b\n0\n", "holds \\(, which may mean something else to Python's regex module"),
        (b"minbpe v1\n\xff\n0\n", "is not UTF-8: byte 0xff at offset 10"),
        (b"minbpe v1\n\n0\n255 255\n" + b"".join(b"%d %d\n" % (i, i) for i in range(256, 300)), "too large"),
    ],
)
def test_broken_files_are_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.model"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as error:
        minbpe.load(path)
    assert str(error.value).startswith(str(path))


def test_the_largest_id(tmp_path: Path) -> None:
    path = write(tmp_path / "x.model", special=["<a> 4294967294"])
    assert BPETokenizer.load(path, "minbpe").special_tokens == {"<a>": 2**32 - 2}


def test_merges_of_two_ids_are_merged_and_no_others(tmp_path: Path) -> None:
    """`abc` is the merge of `a` and `bc`; a text merges `ab` first, which no merge joins with `c`."""
    path = write(tmp_path / "x.model", merges=["97 98", "98 99", "97 257"])
    assert BPETokenizer.load(path, "minbpe").encode("abc") == Minbpe(path).encode("abc") == [256, 99]


def test_tokens_and_vocabularies_of_limited_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minbpe, "_MAX_TOKEN", 4)
    monkeypatch.setattr(minbpe, "_MAX_VOCABULARY", 8)
    for merges, line in (
        (["97 97", "256 256", "98 98"], None),
        (["97 97", "256 256", "257 97"], 6),
        (["97 97", "256 256", "98 98", "99 99"], 7),
    ):
        path = write(tmp_path / "x.model", merges=merges)
        if line is None:
            assert len(minbpe.load(path).core.merges) == 3
        else:
            with pytest.raises(FormatError, match=f"line {line}: makes a token of"):
                minbpe.load(path)


# -- refused when saved ---------------------------------------------------------------------------------


def model(vocab: dict[int, bytes], merges: Sequence[tuple[bytes, bytes]] | None, **settings: Any) -> Model:
    return bytes_model(vocab, merges, **{"split_patterns": [GPT2_SPLIT_PATTERN]} | settings)


def added(content: str, **flags: bool) -> Model:
    return model({}, [], added_tokens=[AddedToken(content, 300, **flags)])


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (model({257: b"ab"}, [(b"a", b"b")]), "vocab: .* b'ab' must have the id 256, not 257"),
        (model({256: b"ab", 257: b"unmade"}, [(b"a", b"b")]), r"no merge makes b'unmade' \(id 257\)$"),
        (model({0: b"b", 98: b"\0"}, []), "must have the id 0, not 98"),
        (model({256: b"abc", 257: b"ab"}, [(b"ab", b"c"), (b"a", b"b")]), "merges: .* precedes the merge"),
        (model({256: b"aa", 257: b"aaa"}, [(b"a", b"a"), (b"aa", b"a"), (b"a", b"aa")]), "two merges make"),
        (model({256: b"xyz"}, None), "ignore_merges: a minbpe .model .* never makes the token b'xyz'"),
        (model({}, [], normalization="NFC"), "normalization: a minbpe .model cannot hold 'NFC'"),
        (model({}, [], add_prefix_space=True), "add_prefix_space"),
        (model({}, [], split_patterns=[r"\d", r"\s"]), "split_patterns: .* holds one pattern"),
        (model({}, [], split_patterns=[r"\w+|\W+"]), "split_patterns: .* holds \\\\w"),
        (model({}, [], split_patterns=[r"\s+"]), "split_patterns: .* may leave text unmatched"),
        (added("a", special=False), "added_tokens: .* not a special token"),
        (added("a", lstrip=True), "added_tokens: .* lstrip"),
        (added("a b"), "added_tokens: .* white space"),
        (Model(_core.Model({0: b"a"}, [], alphabet="characters")), "alphabet"),
    ],
)
def test_what_cannot_be_held_is_refused_by_name(refused: Model, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        minbpe.save(refused, tmp_path / "x.model")
    assert not list(tmp_path.iterdir())


def test_another_name_is_refused(plain_tokenizer: BPETokenizer, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"path is 'x\.txt'; .* ends in \.model: write 'x\.txt\.model'"):
        plain_tokenizer.export(tmp_path / "x.txt", "minbpe")


# -- patterns -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern", [named.patterns[0] for named in NAMED_PATTERNS.values() if len(named.patterns) == 1]
)
def test_the_known_patterns_are_read_alike_and_leave_nothing_out(pattern: str) -> None:
    split = _core.SplitPattern(pattern)
    assert python_objection(pattern) is None
    for text in texts():
        pieces = regex.findall(pattern, text)
        assert pieces == split.split(text)
        assert "".join(pieces) == text


ATOMS = [
    *("a", "B", "é", " ", "日", ".", "^", r"\s", r"\S", r"\d", r"\D", r"\n", r"\r", r"\t", r"\.", r"\-"),
    *(r"\p{L}", r"\p{Lu}", r"\P{N}", r"\p{Han}", r"\x41", r"\u00e9", "[ab]", r"[^\s\p{L}]", "[a-z]"),
    *(r"[\r\n]", "(?:ab|c)", "(?:a|)", "(?i:St)", "(?i:[sk])", "(?i:x|é)", "(?=a)", "(?!a)", "(?<=a)"),
    *(r"(?<!\s)", "(?>ab|a)", "$", r"\w", "(a)", "(?i:i)", "{", "[[a]]", "a&&b", "[a--b]", r"\b", r"\Z"),
    "a{e<=1}",
]
QUANTIFIERS = ["", "", "", "?", "*", "+", "+?", "*+", "++", "{2}", "{1,2}", "{2,}", "{,2}"]


repeated = st.tuples(st.sampled_from(ATOMS), st.sampled_from(QUANTIFIERS)).map("".join)
branches = st.lists(repeated, min_size=1, max_size=3).map("".join)
patterns = st.lists(branches, min_size=1, max_size=3).map("|".join)


@given(patterns, st.text(alphabet="aAbBsSkKiIxé日\u0130\u0131ſK \n\r\t.-1\u00a0", max_size=12))
def test_a_pattern_that_passes_is_read_alike(pattern: str, text: str) -> None:
    try:
        split = _core.SplitPattern(pattern)
    except PatternError:
        return
    # The regex engine, which runs the others, finds `b` for `b+a?b+`, and so does tiktoken.
    if split.is_compiled and python_objection(pattern) is None:
        assert split.split(text) == _cut(text, pattern)


@pytest.mark.sampled(0.16)
@pytest.mark.parametrize(
    "pattern", [r"a(?=b)|\s", r"(?<=a)b+", r"(?<!\s)\d", r"(?>ab|a)b", r"a++b?", r"x*+y"]
)
def test_what_the_regex_engine_runs_is_read_alike(pattern: str) -> None:
    assert python_objection(pattern) is None
    for text in [*texts(), "aab abb ab xxy 1 a1"]:
        assert _core.SplitPattern(pattern).split(text) == _cut(text, pattern)


def _cut(text: str, pattern: str) -> list[str]:
    """The matches that are not empty, and what is between them."""
    matches = (found for found in regex.finditer(pattern, text) if found[0])
    ends = [0, *(end for found in matches for end in found.span()), len(text)]
    return [piece for piece in (text[start:end] for start, end in pairwise(ends)) if piece]


def test_a_passing_pattern_is_not_rare() -> None:
    passing = [atom for atom in ATOMS if python_objection(atom + "a") is None]
    assert len(passing) > len(ATOMS) / 2
    assert python_objection(NAMED_PATTERNS["starcoder"].patterns[0]) is None
