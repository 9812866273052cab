"""Random split patterns have the pieces of tiktoken's engine and of `tokenizers`', or are refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.errors import PatternError
from peers.test_regex_against_tokenizers import assert_splits_alike, read_pattern, write_pattern

tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is not installed")

pytestmark = pytest.mark.peer

LETTERS = "abAlLsStTfFiIkKxq1 '-éÉßſ日\n"
TEXT = LETTERS + "c2._ẞ\u212a\r\t\u00a0ﬁﬆİı½²\u0301\u200dσςΣŉǰ"
SETS = (
    r"\p{L} \p{Lu} \p{Ll} \P{L} \p{N} \p{^Lu} \p{M} \p{P} \s \S \d \D \w \W \n \p{Han} \p{Greek}"
    " a-z 0-9 k-t A-K"
)
ANCHORS = r"^ $ \b \B \A \z (?=a) (?!\S) (?=(?:\d{3})*\b)"
GROUPS = "(?: ( (?> (?= (?! (?<= (?<! (?i: (?s: (?-i:"
QUANTIFIERS = "? * + {2} {1,2} {2,} {0,1} {1,3}"


class Generator:
    """Patterns and texts of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def any_of(self, *choices: str) -> str:
        return self.random.choice(self.random.choice(choices).split(" "))

    def set_of(self, depth: int = 2) -> str:
        items = [
            self.set_of(depth - 1)
            if depth and self.random.random() < 0.25
            else self.any_of(SETS, r"s f a l t \- \n é S")
            for _ in range(self.random.randint(1, 3))
        ]
        both = "&&" + self.set_of(0) if self.random.random() < 0.15 else ""
        return f"[{self.random.choice(['', '', '^'])}{''.join(items)}{both}]"

    def atom(self, depth: int) -> str:
        kind = self.random.random()
        if kind < 0.4 or not depth:
            return self.random.choice(LETTERS)
        if kind < 0.5:
            return self.any_of(SETS.removesuffix(" a-z 0-9 k-t A-K"), ". .")
        if kind < 0.65:
            return self.set_of()
        if kind < 0.7:
            return self.any_of(ANCHORS)
        return f"{self.any_of(GROUPS)}{self.branches(depth - 1)})"

    def branches(self, depth: int) -> str:
        def repeated() -> str:
            quantifier = self.any_of(QUANTIFIERS) + self.random.choice(["", "", "?", "+"])
            return self.atom(depth) + (quantifier if self.random.random() < 0.35 else "")

        sequences = [
            [repeated() for _ in range(self.random.randint(1, 3))] for _ in range(self.random.randint(1, 2))
        ]
        return "|".join(map("".join, sequences))

    def pattern(self) -> str:
        flags = self.random.choice(["", "", "", "(?i)"])
        return flags + (self.set_of() + "+" if self.random.random() < 0.1 else self.branches(3))

    def texts(self, pattern: str) -> list[str]:
        own = "".join(c for c in pattern if c.isalnum() or c in " \n'-") + "".join(
            self.random.sample(TEXT, 3)
        )
        return ["".join(self.random.choices(own if at % 2 else TEXT, k=9)) for at in range(10)]


def tiktoken_of(pattern: str, texts: list[str]) -> Any:
    """An encoding in which each piece of the texts is one token; None if tiktoken refuses the pattern."""
    parts = [
        text.encode()[i:j] for text in texts for i in range(99) for j in range(i + 1, len(text.encode()) + 1)
    ]
    tokens = dict.fromkeys([*(bytes([i]) for i in range(256)), *parts])
    ranks = {token: rank for rank, token in enumerate(tokens)}
    try:
        return tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    except ValueError:
        return None


@pytest.mark.parametrize("seed", range(3))
def test_random_patterns_have_the_pieces_of_tiktoken(seed: int) -> None:
    for at in range(100):
        generator = Generator(1000 * seed + at)
        pattern = generator.pattern() + r"|[\s\S]"  # tiktoken drops what no branch matches
        texts = generator.texts(pattern)
        theirs = tiktoken_of(pattern, texts)
        try:
            ours = _core.SplitPattern(pattern)
        except PatternError:
            assert theirs is None, pattern
            continue
        assert theirs is not None, pattern
        for text in texts:
            try:
                found = theirs.decode_tokens_bytes(theirs.encode_ordinary(text))
            except BaseException as error:  # tiktoken panics at an empty match, or drops the next character
                if type(error).__name__ != "PanicException":
                    raise
                continue
            if b"".join(found) == text.encode():
                assert [piece.encode() for piece in ours.split(text)] == found, (pattern, text)


@pytest.mark.parametrize("seed", range(3))
def test_random_patterns_have_the_pieces_of_tokenizers_or_are_refused(seed: int) -> None:
    for at in range(250):
        generator = Generator(1000 * seed + at)
        regex = generator.pattern()
        texts = generator.texts(regex)
        if (pattern := read_pattern(regex)) is not None:
            assert_splits_alike(regex, pattern, texts)
        if (written := write_pattern(regex)) is not None:
            assert_splits_alike(written, regex, texts)


@pytest.mark.parametrize("repeat", ["(l+?)*", "(?:l+?)*", "(l{1,2}?)+", "(?:ll+?|l)*"])
def test_a_repeated_lazy_group_is_repeated_as_in_tiktoken(repeat: str) -> None:
    pattern, texts = rf"(?<!q)x{repeat}|[\s\S]", ["xllll", "qxll", "x", "xlll xl", "llxl"]
    theirs = tiktoken_of(pattern, texts)
    assert theirs is not None
    for text in texts:
        found = theirs.decode_tokens_bytes(theirs.encode_ordinary(text))
        assert [piece.encode() for piece in _core.SplitPattern(pattern).split(text)] == found


# What Oniguruma reads in another way: each had other pieces.
REFUSED = (
    r"(?i)[F&&a-z]",
    r"(?i)[^S0-9[^x]]",
    r"(?i)s(?:s)",
    r"(?i)(?:s)s",
    r"(?i)[\S]a",
    r"[^[^[\D\P{L}]]k-t]*b",
    r"(?<=a++)b",
    r"f(?<=f\z)",
    r"F(?<!L(i|T)A)",
)


@pytest.mark.parametrize("regex", REFUSED)
def test_what_oniguruma_reads_in_another_way_is_refused(regex: str) -> None:
    assert read_pattern(regex) is None
    assert write_pattern(regex) is None


# Cohere 2 (tiny-aya, Command A+) and SuperBPE group digits from the right.
FROM_THE_RIGHT = (r"\d{1,3}(?=(?:\d{3})*\b)", r"(?=(\d{3})+(?!\d))", r"(?<=a)", r"(?!\d)", r"[\w-]+|\b\w")


@pytest.mark.parametrize("regex", FROM_THE_RIGHT)
def test_digits_from_the_right_are_read_and_written_as_they_are_published(regex: str) -> None:
    pattern = read_pattern(regex)
    assert pattern is not None
    assert write_pattern(pattern) == regex
    choose = random.Random(1).choice
    texts = [
        "".join(choose("0123456789" * 2 + "ab ._²½٣\u200d\n-x\u0345") for _ in range(20)) for _ in range(300)
    ]
    assert_splits_alike(regex, pattern, texts)


SUPERBPE = r"(?=(\d{3})+(?!\d))"


def test_training_counts_the_pieces_of_a_look_around() -> None:
    ours = BPETokenizer(split_pattern=SUPERBPE, normalization=None)
    ours.train(["1234567 1234567 234"] * 3, vocab_size=300, special_tokens=[], verbose=False)
    assert b"234" in ours.vocab.values()
    assert not [token for token in ours.vocab.values() if b"45" in token]
