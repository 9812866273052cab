"""Regular expressions give the same pieces in `tokenizers` and here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, TokenizerError
from bpe_tokenizer.formats.huggingface.pre_tokenizer import (
    PUNCTUATION,
    read_pre_tokenizer,
    write_pre_tokenizer,
)
from bpe_tokenizer.formats.huggingface.regex import regex_escape
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import Split
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hf_files import sequence, split
from hostile import code_points, hostile_texts
from peers.hf_compare import tokenizers
from small_tokenizers import without_surrogates

pytestmark = pytest.mark.peer


def assert_splits_alike(regex: str, pattern: str, texts: Iterable[str]) -> None:
    theirs = tokenizers.pre_tokenizers.Split(tokenizers.Regex(regex), "isolated")
    ours = _core.SplitPattern(pattern)
    for text in texts:
        text = without_surrogates(text)
        expected = [piece for piece, _ in theirs.pre_tokenize_str(text)]
        assert ours.split(text) == expected, (regex, pattern, text[:500])


def all_characters() -> list[str]:
    characters = list(code_points())
    return ["a\n".join(characters[i : i + 997]) for i in range(0, len(characters), 997)]


@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_named_patterns_in_the_librarys_words(name: str) -> None:
    for pattern in NAMED_PATTERNS[name].patterns:
        regex = _core.SplitPattern(pattern).to_oniguruma()
        assert_splits_alike(regex, pattern, hostile_texts(300))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_named_patterns_on_every_code_point(name: str) -> None:
    for pattern in NAMED_PATTERNS[name].patterns:
        regex = _core.SplitPattern(pattern).to_oniguruma()
        assert_splits_alike(regex, pattern, all_characters())


REGEXES = [
    *(r"\w+|\W", r"[\w-]+", r"[^\w]", r"\d+|\D", r"\s+|\S+", r"[[:alpha:]]+", r"[[:^space:]a]+"),
    *(r"[[:punct:]]", r"^.|.$", r"\A.|.\z", r".\Z", r"(?m:.)+", r"(?m).", r"(?i)straße|k", r"(?i:ſ|K)"),
    *(r"a(?-i:b)c", r"\p{Han}+|\p{Greek}", r"\p{^L}", r"\P{Lu}+", r"[a-z&&[^aeiou]]+", r"[^\n]+"),
    *(r"(?<=a)b", r"(?<!a)b", r"\bfoo\b|\B.", r"(?>a+)b|a", r"a{2,3}+|b{,2}c|d{2}", r"xd{2}?|a{3}+"),
    *(r"a{2}{2}|b+{2}", r"\x61{1,2}+|\u00e9{2}+", r"\x{20}?a|\x{3000}+", r"$+a", r"(?:\z|a)+b", r"\pL+"),
    *(r"\p{Word}+", r"\p{Script=Han}", r"(?i:\p{Lu})", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"),
    r" ?[^(\s|[.,!?…。，、।۔،])]+",  # BLOOM
    *(r"(?:\r?\n)+(?!\r?\n)", r"(?=(\d{3})+(?!\d))", r"\<a|a\>"),
    *(r"\xe9", r"(?P<name>a)", r"(ab)+|(?<name>cd)", r"\x41|\x{e9}|\t", r"\h+", r"\R", r"\X", r"(a)\1"),
    *(r"(?#comment)ab", r"[]a]+", r"[a\]b-]+", r"\.|\-|\#", r"a++|b*+c"),
]


WORDS = [
    "foo food_foo aab abab cdcd aaa aaaa bbc cc dd éA\t",
    "straße STRASSE ſk KK",
    "a\nb\r\nc\n",
    "[]a-b].#",
]


def read_pattern(regex: str) -> str | None:
    """What we make of the library's regular expression; None if one of us refuses it."""
    try:
        tokenizers.Regex(regex)
        steps, _ = read_pre_tokenizer(Field(Path("tokenizer.json"), "", sequence(split(regex))))
        assert isinstance(steps[0], Split)
        return steps[0].pattern
    except FormatError:
        return None
    except Exception as error:
        if "Oniguruma" not in str(error):
            raise
        return None


def write_pattern(pattern: str) -> str | None:
    """What we write for a pattern of ours; None if we refuse it."""
    try:
        _core.SplitPattern(pattern)
        step = write_pre_tokenizer([Split(pattern=pattern)])
    except TokenizerError:
        return None
    assert step is not None
    written: dict[str, str] = step["pretokenizers"][0]["pattern"]
    return written["Regex"] if "Regex" in written else regex_escape(written["String"])


@pytest.mark.sampled(0.12)
@pytest.mark.parametrize("regex", REGEXES)
def test_a_regular_expression_of_the_librarys_means_the_same_or_is_refused(regex: str) -> None:
    pattern = read_pattern(regex)
    if pattern is not None:
        assert_splits_alike(regex, pattern, [*WORDS, *hostile_texts(200)])
        assert_splits_alike(regex, pattern, all_characters()[::7])


@pytest.mark.sampled(0.12)
@pytest.mark.parametrize("pattern", REGEXES)
def test_a_pattern_of_ours_means_the_same_or_is_refused(pattern: str) -> None:
    regex = write_pattern(pattern)
    if regex is not None:
        assert_splits_alike(regex, pattern, [*WORDS, *hostile_texts(200)])
        assert_splits_alike(regex, pattern, all_characters()[::7])


PROPERTIES = [
    *("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps"),
    *("Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "^L"),
    *("Alphabetic", "Han", "Hiragana", "Katakana", "Hangul", "Latin", "Greek", "Cyrillic", "Arabic"),
    *("Hebrew", "Thai", "Lao", "Khmer", "Myanmar", "Devanagari"),
]


@pytest.mark.sampled(0.1)
@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_hold_the_same_characters(name: str) -> None:
    characters = list(code_points())
    texts = ["".join(characters[i : i + 4096]) for i in range(0, len(characters), 4096)]
    for regex in (rf"\p{{{name}}}+", rf"[^\p{{{name}}}]+"):
        assert read_pattern(regex) == write_pattern(regex) == regex
        assert_splits_alike(regex, regex, texts)


def test_punctuation_is_the_librarys(tmp_path: Path) -> None:
    pattern = _core.SplitPattern(f"[{PUNCTUATION}]")
    theirs = tokenizers.pre_tokenizers.Punctuation("isolated")
    for text in all_characters():
        assert pattern.split(text) == [piece for piece, _ in theirs.pre_tokenize_str(text)]


def test_digits_are_numbers_of_unicode_16() -> None:
    """The library's `Digits` asks the Rust it was built with, which may know a newer Unicode than its
    regular expressions and ours do. Code points that Unicode 16 does not assign are left out."""
    pattern, letter = _core.SplitPattern(r"\p{N}"), _core.SplitPattern(r"\p{Cn}")
    theirs = tokenizers.pre_tokenizers.Digits(individual_digits=True)
    for start in range(0, 0x110000, 0x1000):
        assigned = [c for c in code_points(start, start + 0x1000) if len(letter.split(f"{c}a")) == 1]
        text = "a".join(assigned)
        assert pattern.split(text) == [piece for piece, _ in theirs.pre_tokenize_str(text)]
