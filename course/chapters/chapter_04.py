"""Checks of the exercises of chapter 4."""

from __future__ import annotations

from typing import Any

from bpe_tokenizer.reference import BasicBPE, count_pairs, merge_pair
from course.exercise import WrongAnswer, exercise, expect_call, expect_function, same, shortened

_TRAINING = (
    ("aaabdaaabac", 259),
    ("she sells sea shells", 262),
    ("low lower lowest flow flower", 270),
    ("Häufige Paare, häufige Tokens: 東京, 東京", 280),
)


@exercise("Count the pairs, and return None if there are none.")
def _check_most_frequent(answer: Any) -> None:
    for ids in (
        [97, 97, 97, 98, 100, 97, 97, 97, 98, 97, 99],
        [1, 2, 3, 1, 2],
        [9, 8, 1, 2],
        [5, 5, 5],
        [9, 1, 2, 7, 1, 2],
        [5, 5, 5, 1, 2, 1, 2],
        [1, 2, 9, 8, 9, 8, 1, 2],
        [300, 256, 300, 256],
        [4, 3, 2, 3, 2, 4, 3],
        [1, 2],
    ):
        counts = count_pairs(ids)
        expect_call(answer, (ids,), max(counts, key=counts.__getitem__))
    expect_call(answer, ([7],), None)
    expect_call(answer, ([],), None)


@exercise(
    "Start from the 256 bytes; the bytes of a new id are those of its two parts, which you already have."
)
def _check_build_vocab(answer: Any) -> None:
    for text, vocab_size in _TRAINING:
        tokenizer = BasicBPE(vocab_size).train(text)
        _expect_vocab(answer, tokenizer.merges, tokenizer.vocab)
    _expect_vocab(answer, {}, {byte: bytes([byte]) for byte in range(256)})


def _expect_vocab(answer: Any, merges: dict[tuple[int, int], int], vocab: dict[int, bytes]) -> None:
    """Compare entry by entry, because the message of `expect_call` shows only the ends of a long `dict`."""
    expect_function(answer)
    found = answer(dict(merges))
    call = f"build_vocab({shortened(merges)})"
    if not isinstance(found, dict):
        raise WrongAnswer(f"{call} gives {shortened(found)}, expected a dict")
    for token_id, token in vocab.items():
        if token_id not in found:
            raise WrongAnswer(f"{call} has no entry for the id {token_id}")
        if not same(found[token_id], token):
            raise WrongAnswer(f"{call}[{token_id}] is {shortened(found[token_id])}, expected {token!r}")
    if more := found.keys() - vocab.keys():
        raise WrongAnswer(f"{call} has an entry for {shortened(min(more, key=repr))}, which is not an id")


def _train_often(text: str, vocab_size: int, min_count: int) -> dict[tuple[int, int], int]:
    ids = list(text.encode("utf-8"))
    merges: dict[tuple[int, int], int] = {}
    for new_id in range(256, vocab_size):
        counts = count_pairs(ids)
        pair = max(counts, key=counts.__getitem__, default=None)
        if pair is None or counts[pair] < min_count:
            break
        ids = merge_pair(ids, pair, new_id)
        merges[pair] = new_id
    return merges


@exercise("If the count of the chosen pair is too small, leave the loop with `break`, and do not merge.")
def _check_train_often(answer: Any) -> None:
    for text, vocab_size in (*_TRAINING, ("", 300), ("a", 300), ("abab", 256)):
        for min_count in (1, 2, 3):
            expected = _train_often(text, vocab_size, min_count)
            expect_call(answer, (text, vocab_size, min_count), expected)


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
