"""The checks of chapter 12: lines of a rank file, the order of the bytes, merges, encoding with ranks."""

from __future__ import annotations

import random
from base64 import b64encode
from functools import cache
from typing import Any

from bpe_tokenizer.reference import RegexBPETokenizer, from_ranks
from course.exercise import exercise, expect_call

_TEXT = "low low low lower lower newest newest newest widest wide été étés naïve 🙂🙂 aaaa banana " * 2
_PIECES = ["lowest", " newest", "", "a", "aaaaaaa", "bananas", " étés", "🙂🙂🙂", "wide lower", "\n\t"]


def _byte_order() -> list[int]:
    """Return the bytes in the order of their ids in GPT-2's and GPT-4's files."""
    visible = [byte for byte in range(256) if chr(byte).isprintable() and byte != ord(" ")]
    return visible + [byte for byte in range(256) if byte not in visible]


@cache
def _tokenizer() -> RegexBPETokenizer:
    return RegexBPETokenizer().train(_TEXT, 300)


def _ranks() -> dict[bytes, int]:
    return {token: token_id for token_id, token in _tokenizer().vocab.items()}


def _shuffled(ranks: dict[bytes, int]) -> dict[bytes, int]:
    """Give the bytes the ids that they have in GPT-4's file."""
    order = _byte_order()
    return {token: order.index(token[0]) if len(token) == 1 else rank for token, rank in ranks.items()}


@exercise("Split the line at white space; the first field is base64, the second is a decimal number.")
def _check_parse_line(answer: Any) -> None:
    for token, rank in [(b" low", 258), (b"\n", 0), (b"\xc3", 195), (b"a" * 90, 100_255), (b"\xff\xfe ", 7)]:
        for end in (b"", b"\n", b"\r\n"):
            expect_call(answer, (b64encode(token) + b" " + str(rank).encode() + end,), (token, rank))


@exercise(
    "Build the order of the bytes as the chapter does, and then ask for each byte at which index it is."
)
def _check_byte_ids(answer: Any) -> None:
    order = _byte_order()
    expect_call(answer, (), [order.index(byte) for byte in range(256)])


@exercise("Merge the bytes of the token, but use only ranks that are lower than the rank of the token.")
def _check_recover(answer: Any) -> None:
    tokenizer = _tokenizer()
    ranks = _ranks()
    for table in (ranks, _shuffled(ranks)):
        for (left, right), token_id in list(tokenizer.merges.items())[::4]:
            parts = tokenizer.vocab[left], tokenizer.vocab[right]
            expect_call(answer, (table, tokenizer.vocab[token_id]), parts)
        expect_call(answer, (table, b"a"), None)
    # A later token is inside of this one, with a higher rank; and a token that no merge makes.
    order = {b"a": 0, b"b": 1, b"c": 2, b"ab": 3, b"abc": 4, b"bc": 5, b"cab": 6, b"ccc": 7}
    expect_call(answer, (order, b"abc"), (b"ab", b"c"))
    expect_call(answer, (order, b"cab"), (b"c", b"ab"))
    expect_call(answer, (order, b"ccc"), None)
    late = {b"a": 0, b"b": 1, b"c": 2, b"bc": 3, b"abc": 4, b"ab": 5}
    expect_call(answer, (late, b"abc"), (b"a", b"bc"))
    # Two tokens make this one, but the trainer did not have `ab` when it would have learned `abc`.
    added = {b"a": 0, b"b": 1, b"c": 2, b"abc": 3, b"ab": 4}
    expect_call(answer, (added, b"abc"), None)


@exercise("Join the neighbours whose joined bytes have the lowest rank until none are in the table.")
def _check_encode_piece(answer: Any) -> None:
    chance = random.Random(12)
    generated = ["".join(chance.choices("lowenstabé", k=chance.randint(1, 20))) for _ in range(30)]
    late = {bytes([byte]): byte for byte in range(256)} | {b"bc": 256, b"bcd": 257, b"ab": 258}
    for ranks in (_ranks(), _shuffled(_ranks()), late):
        tokenizer = from_ranks(ranks, "(?s:.+)", {})  # the text is one piece
        for piece in [*_PIECES, "abcd", "abcabcd", *generated]:
            expect_call(answer, (ranks, piece.encode()), tokenizer.encode(piece))
