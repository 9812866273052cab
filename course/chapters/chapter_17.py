"""Checks of the capstone, chapter 17."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.reference import GPT2_SPLIT_PATTERN, BasicBPE, split
from course.exercise import WrongAnswer, exercise, expect_call, expect_function, shortened
from course.stories import stories

_END = "<|endoftext|>"


@exercise("Cut the text at `special` first, and split each part alone.")
def _check_count_pieces(answer: Any) -> None:
    for text in (stories(20), f"low lower{_END}low", f"a{_END}{_END} a", "", _END, f"the end {_END} of it"):
        counts = Counter(piece for part in text.split(_END) for piece in split(part, GPT2_SPLIT_PATTERN))
        expect_call(answer, (text, _END), dict(counts))


@exercise("`data.find(special, position)` is -1 if there is none; a set keeps each position once.")
def _check_chunk_starts(answer: Any) -> None:
    end = _END.encode()
    for data in (stories(30).encode(), b"a" * 50 + end, end * 3, b"no end", b""):
        for number in (1, 2, 3, 7):
            found = [data.find(end, len(data) * k // number) for k in range(1, number)]
            expect_call(answer, (data, number, end), sorted({0, *(each for each in found if each >= 0)}))


@exercise("Keep the count of each pair and the words that contain it; a merge changes only those words.")
def _check_train_bpe(answer: Any) -> None:
    chance = random.Random(17)
    many = {"".join(chance.choices("abcdefgh", k=chance.randint(3, 12))): k % 20 + 1 for k in range(2000)}
    for pieces, number in (({"low": 5, "lower": 2, "newest": 6}, 4), ({"ab": 1}, 5), (many, 300)):
        tokenizer = BPETokenizer("gpt2", None)
        words = [piece for piece, times in pieces.items() for _ in range(times)]
        tokenizer.train(words, 256 + number, min_frequency=1, verbose=False)
        expect_call(answer, (pieces, number), tokenizer.merges)
    expect_call(answer, ({}, 3), [])


@exercise("`yield from encode(line)` in a loop over the lines is enough.")
def _check_encode_lines(answer: Any) -> None:
    expect_function(answer)
    read: list[str] = []

    def lines() -> Iterator[str]:
        for number in itertools.count():
            read.append(f"line {number}\n")
            yield read[-1]

    encode = BasicBPE(258).train("line line").encode
    ids = iter(answer(encode, lines()))
    found = [next(ids) for _ in range(12)]
    expected = [each for number in range(3) for each in encode(f"line {number}\n")][:12]
    if found != expected:
        raise WrongAnswer(f"encode_lines yields {shortened(found)}, expected {shortened(expected)}")
    if len(read) > 3:
        raise WrongAnswer(f"encode_lines reads {len(read)} lines before it yields 12 ids: 3 are enough")
    expect_call(lambda *given: list(answer(*given)), (encode, ["", "a", ""]), [97])


@exercise("A dictionary comprehension with two `for`, and `if` for texts that have tokens.")
def _check_compression(answer: Any) -> None:
    tokenizers = {"bytes": BasicBPE(256), "low": BasicBPE(260).train("low lower lowest " * 3)}
    texts = {"new": "lowest é", "none": "", "other": "xyz"}
    expected = {
        (name, other): len(text.encode()) / len(tokenizer.encode(text))
        for name, tokenizer in tokenizers.items()
        for other, text in texts.items()
        if text
    }
    expect_call(answer, (tokenizers, texts), expected)
    expect_call(answer, ({}, texts), {})
