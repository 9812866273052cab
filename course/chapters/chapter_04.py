"""Checks of the exercises of chapter 4."""

from __future__ import annotations

from typing import Any

from bpe_tokenizer.reference import BasicBPE, count_pairs, merge_pair
from course.exercise import (
    WrongAnswer,
    compared,
    exercise,
    expect_call,
    expect_function,
    same,
    shortened,
)

_TRAINING = (
    ("aaabdaaabac", 259),
    ("she sells sea shells", 262),
    ("low lower lowest flow flower", 270),
    ("Häufige Paare, häufige Tokens: 東京, 東京", 280),
)


@compared(
    "Count the pairs, and return None if there are none.",
    [
        ([97, 97, 97, 98, 100, 97, 97, 97, 98, 97, 99],),
        *(([1, 2, 3, 1, 2],), ([9, 8, 1, 2],), ([5, 5, 5],), ([9, 1, 2, 7, 1, 2],)),
        *(([5, 5, 5, 1, 2, 1, 2],), ([1, 2, 9, 8, 9, 8, 1, 2],), ([300, 256, 300, 256],)),
        *(([4, 3, 2, 3, 2, 4, 3],), ([1, 2],), ([7],), ([],)),
    ],
)
def _most_frequent(ids: list[int]) -> tuple[int, int] | None:
    counts = count_pairs(ids)
    return max(counts, key=counts.__getitem__, default=None)


@exercise(
    "Start from the 256 bytes; the bytes of a new id are those of its two parts, which you already have."
)
def _check_build_vocab(answer: Any) -> None:
    """Compare entry by entry, because the message of `expect_call` shows only the ends of a long `dict`."""
    expect_function(answer)
    for tokenizer in (BasicBPE(vocab_size).train(text) for text, vocab_size in (*_TRAINING, ("", 256))):
        found = answer(dict(tokenizer.merges))
        call = f"build_vocab({shortened(tokenizer.merges)})"
        if not isinstance(found, dict):
            raise WrongAnswer(f"{call} gives {shortened(found)}, expected a dict")
        for token_id in tokenizer.vocab | found:
            token, expected = found.get(token_id), tokenizer.vocab.get(token_id)
            if not same(token, expected):
                name = shortened(token_id)
                raise WrongAnswer(f"{call}.get({name}) is {shortened(token)}, expected {expected!r}")


@compared(
    "If the count of the chosen pair is too small, leave the loop with `break`, and do not merge.",
    [
        (*training, min_count)
        for training in (*_TRAINING, ("", 300), ("a", 300), ("abab", 256))
        for min_count in (1, 2, 3)
    ],
)
def _train_often(text: str, vocab_size: int, min_count: int) -> dict[tuple[int, int], int]:
    ids = list(text.encode("utf-8"))
    merges: dict[tuple[int, int], int] = {}
    for pair, new_id in BasicBPE(vocab_size).train(text).merges.items():
        if count_pairs(ids)[pair] < min_count:
            break
        merges[pair] = new_id
        ids = merge_pair(ids, pair, new_id)
    return merges


@exercise("One `for` loop over `merges.items()`, with `merge_pair` inside, is enough.")
def _check_encode_in_order(answer: Any) -> None:
    for text, vocab_size in _TRAINING:
        tokenizer = BasicBPE(vocab_size).train(text)
        for sample in (text, text[::-1], " she", "aaaa", "lowest 京", "", "x"):
            expect_call(answer, (sample, tokenizer.merges), tokenizer.encode(sample))


@exercise("Every learned id can be replaced by its two parts, and each part by its parts.")
def _check_two_ways(answer: Any) -> None:
    tokenizer = BasicBPE(259).train("aaabdaaabac")
    if not isinstance(answer, (list, tuple)) or len(answer) != 2:
        raise WrongAnswer(f"`two_ways` must be a pair of two lists of ids: you have {shortened(answer)}")
    for ids in answer:
        if not isinstance(ids, (list, tuple)) or not all(
            type(token_id) is int and token_id in tokenizer.vocab for token_id in ids
        ):
            raise WrongAnswer(f"{shortened(ids)} is not a list of ids from 0 to 258")
        if (text := tokenizer.decode(ids)) != "aaab":
            raise WrongAnswer(f"{shortened(ids)} decodes to {shortened(text)}, not to 'aaab'")
        if list(ids) == tokenizer.encode("aaab"):
            raise WrongAnswer(f"{shortened(ids)} is what encode('aaab') returns")
    if list(answer[0]) == list(answer[1]):
        raise WrongAnswer("the two lists are equal")
