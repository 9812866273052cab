"""Checks of the exercises of chapter 10."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bpe_tokenizer.reference import (
    GPT2_SPLIT_PATTERN,
    GPT4_SPLIT_PATTERN,
    NaiveBPETokenizer,
    RegexBPETokenizer,
    split,
)
from course.exercise import exercise, expect_call

_TEXTS = {
    "English": "All human beings are born free and equal in dignity and rights.",
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "Russian": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है ।",
    "Chinese": "人人生而自由,在尊严和权利上一律平等。",
}


@exercise("`len(text)` counts characters, and `len(text.encode())` counts bytes.")
def _check_bytes_per_character(answer: Any) -> None:
    for text in (*_TEXTS.values(), "", "a", "é", "🦜", "e\u0301"):
        expect_call(answer, (text,), len(text.encode()) / len(text) if text else 0.0)


@exercise("The premium of the language `base` is 1.0.")
def _check_premiums(answer: Any) -> None:
    for counts, base in (
        ({"English": 33, "Hindi": 182, "Chinese": 52}, "English"),
        ({"English": 33, "Hindi": 182, "Chinese": 52}, "Chinese"),
        ({"Amharic": 206, "English": 33}, "English"),
        ({"Swahili": 7}, "Swahili"),
    ):
        expect_call(
            answer, (counts, base), {language: count / counts[base] for language, count in counts.items()}
        )


@exercise("The largest text has the weight 1, and a text of half its size has the weight 2.")
def _check_weights(answer: Any) -> None:
    for sizes in (
        {"English": 1_000_000, "Hindi": 10_000, "Chinese": 300_000},
        {"Swahili": 120, "English": 170},
        {"A": 900, "B": 350, "C": 260, "D": 900},
        {"A": 7},
        {"A": 1000, "B": 601, "C": 700},
    ):
        largest = max(sizes.values())
        expect_call(answer, (sizes,), {language: round(largest / size) for language, size in sizes.items()})


def _cut_words(text: str, pattern: str) -> float:
    words = text.split()
    return sum(len(split(word, pattern)) > 1 for word in words) / len(words) if words else 0.0


@exercise("A word is cut if `split(word, pattern)` returns more than one piece.")
def _check_cut_words(answer: Any) -> None:
    for pattern in (GPT2_SPLIT_PATTERN, GPT4_SPLIT_PATTERN, r"[\p{L}\p{M}]+"):
        for text in (
            _TEXTS["Hindi"],
            _TEXTS["English"],
            "one two2 three!",
            "हिन्दी और café",
            "  a\n\tb  ",
            "",
            "  ",
        ):
            expect_call(answer, (text, pattern), _cut_words(text, pattern))


def _fairest(tokenizers: Mapping[str, NaiveBPETokenizer], texts: Mapping[str, str], base: str) -> str:
    def worst(tokenizer: NaiveBPETokenizer) -> float:
        counts = {language: len(tokenizer.encode(text)) for language, text in texts.items()}
        return max(count / counts[base] for count in counts.values())

    return min(tokenizers, key=lambda name: worst(tokenizers[name]))


@exercise(
    "First find the largest premium of each tokenizer with `max`, then the smallest of these with `min`."
)
def _check_fairest(answer: Any) -> None:
    names = ("English", "Russian", "Hindi")
    on_one = {name: RegexBPETokenizer().train(_TEXTS[name] * 3, 290) for name in names}
    on_all = {"all": RegexBPETokenizer().train(" ".join(_TEXTS.values()), 380)}
    on_none = {
        "bytes": RegexBPETokenizer().train("ab", 256),
        "more bytes": RegexBPETokenizer().train("ab", 256),
    }
    cases: list[tuple[dict[str, RegexBPETokenizer], str]] = [
        (on_one, "English"),
        (on_one | on_all, "English"),
        (on_all | on_one, "Hindi"),
        (on_one, "Russian"),
        (on_none | on_one, "Chinese"),
        (on_none, "English"),
        ({"English": on_one["English"], **on_none}, "English"),
    ]
    for tokenizers, base in cases:
        for languages in (tuple(_TEXTS), ("English", "German", "Russian", "Chinese")):
            texts = {language: _TEXTS[language] for language in languages}
            if base in texts:
                expect_call(answer, (tokenizers, texts, base), _fairest(tokenizers, texts, base))
