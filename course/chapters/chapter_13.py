"""The checks of chapter 13: counting look-ups, merging with few of them, a cache, windows."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import cache
from itertools import accumulate
from typing import Any, TypeAlias

from bpe_tokenizer.reference import BasicBPE
from course.exercise import WrongAnswer, exercise, expect_call, expect_function, same, shortened

_Encode: TypeAlias = Callable[[str], list[int]]


@cache
def _tokenizer() -> BasicBPE:
    return BasicBPE(290).train("low lower lowest newest newer widest wide aaaa banana bananas " * 2)


class _CountingMerges(dict[tuple[int, int], int]):
    """Merges that count how often they are looked up, and refuse to be listed.

    Look-ups of the same pair in sequence are one: `if pair in merges: merges[pair]`, also when the answer
    builds the pair twice.
    """

    lookups = 0
    last: object = None

    def get(self, key: Any, default: Any = None) -> Any:
        self._count(key)
        return super().get(key, default)

    def __getitem__(self, key: Any) -> int:
        self._count(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._count(key)
        return super().__contains__(key)

    def _count(self, key: object) -> None:
        if key != self.last:
            self.lookups += 1
        self.last = key

    def _refuse(self, *_: Any) -> Any:
        raise WrongAnswer("merge_fewer goes through all merges: look up only the pairs of the piece")

    __iter__ = keys = values = items = copy = __or__ = __ror__ = _refuse


@exercise("A piece of n symbols has n - 1 pairs, and each merge leaves one pair fewer. Count the last look.")
def _check_naive_lookups(answer: Any) -> None:
    for n in range(12):
        for m in range(max(n, 1)):
            # Before the merge number k, n - k symbols are left: n - k - 1 pairs.
            looks = [n - done - 1 for done in range(m + 1)]
            expect_call(answer, (n, m), sum(pairs for pairs in looks if pairs > 0))
    expect_call(answer, (1_000, 999), 999 * 1_000 // 2)


@exercise("Keep the rank of each pair in a list, and after a merge look up only the pairs on its two sides.")
def _check_merge_fewer(answer: Any) -> None:
    tokenizer = _tokenizer()
    chance = random.Random(13)
    texts = ["".join(chance.choices("lowenstba ", k=chance.randint(2, 60))) for _ in range(40)]
    for text in ["", "a", "aaaaaaa", "bananas", "lowest newest", "xyz", *texts]:
        ids = list(text.encode())
        expected = tokenizer.encode(text)
        merges = _CountingMerges(tokenizer.merges)
        expect_call(answer, (merges, ids), expected)
        limit = max(len(ids) - 1, 0) + 2 * (len(ids) - len(expected))
        if merges.lookups > limit:
            call = f"merge_fewer(merges, {shortened(ids, 60)})"
            raise WrongAnswer(f"{call} looks up {merges.lookups} pairs; {limit} are enough")
    # The first pair is a merge until the second one takes its right half.
    overlapping = _CountingMerges({(98, 99): 256, (97, 98): 257})
    expect_call(answer, (overlapping, [97, 98, 99]), [97, 256])


@exercise("Define a function inside make_cached, with a dictionary outside of it.")
def _check_make_cached(answer: Any) -> None:
    for capacity, pieces in [
        (2, ["low", "est", "low", "est", "low"]),
        (2, ["a", "b", "c", "c", "a", "b", "c"]),
        (1, ["a", "b", "a", "b", "a"]),
        (0, ["a", "a"]),
        (3, ["", "", "é", "é", ""]),
    ]:
        encoded: list[str] = []

        def encode(piece: str, encoded: list[str] = encoded) -> list[int]:
            encoded.append(piece)
            return list(piece.encode())

        cached = _call_make_cached(answer, encode, capacity)
        remembered: set[str] = set()
        expected: list[str] = []
        for piece in pieces:
            if piece not in remembered:
                expected.append(piece)
                if len(remembered) < capacity:
                    remembered.add(piece)
            ids = cached(piece)
            if not same(ids, list(piece.encode())):
                raise WrongAnswer(f"the cached function gives {shortened(ids)} for {piece!r}, unlike encode")
        if encoded != expected:
            raise WrongAnswer(
                f"capacity {capacity}: the pieces {pieces} call encode for {encoded}, not for {expected}"
            )


def _call_make_cached(answer: Any, encode: _Encode, capacity: int) -> _Encode:
    expect_function(answer)
    cached: Any = answer(encode, capacity)
    if not callable(cached):
        raise WrongAnswer(f"make_cached(encode, {capacity}) gives {shortened(cached)}, expected a function")
    return cached  # type: ignore[no-any-return]


@exercise("Add up the lengths of the tokens of `first` until they give `start`, and compare the next token.")
def _check_stitch(answer: Any) -> None:
    for first, second, start in [
        ([b"low", b"est"], [b"est", b" new"], 3),
        ([b"low", b"es"], [b"est", b" new"], 3),
        ([b"low", b"e", b"s"], [b"e", b"st", b" new"], 3),
        ([b"a", b"b"], [b"a", b"b", b"c"], 0),
        ([b"a", b"bc", b"d"], [b"bc", b"de", b"f"], 1),
        ([b"a", b"bc", b"d"], [b"b", b"cde", b"f"], 1),
        ([b"x", b"x", b"x"], [b"x", b"xx", b"y"], 2),
        ([b"x", b"x", b"x"], [b"x", b"xx", b"y"], 1),
        ([b"caf", b"\xc3\xa9", b"s"], [b"\xc3\xa9", b"s!"], 3),
    ]:
        starts = list(accumulate(map(len, first), initial=0))
        index = starts.index(start)
        is_common = first[index] == second[0]
        expect_call(answer, (first, second, start), first[:index] + second if is_common else None)
    _check_stitched_windows(answer, _tokenizer().vocab)


def _check_stitched_windows(answer: Any, vocab: Mapping[int, bytes]) -> None:
    """Stitch windows of texts: where there is a common token, the tokens of the whole come out."""
    chance = random.Random(31)
    for _ in range(20):
        text = "".join(chance.choices("lowenstba ", k=60))
        first = [vocab[token_id] for token_id in _tokenizer().encode(text[:40])]
        start = len(b"".join(first[:-4]))
        second = [vocab[token_id] for token_id in _tokenizer().encode(text[start:])]
        whole = [vocab[token_id] for token_id in _tokenizer().encode(text)]
        expect_call(answer, (first, second, start), whole if first[-4] == second[0] else None)
