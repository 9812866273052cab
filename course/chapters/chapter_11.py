"""The checks of chapter 11: letters, digits, unused tokens, token healing."""

from __future__ import annotations

from typing import Any

from course.exercise import exercise, expect_call


def _vocab(*tokens: bytes) -> dict[int, bytes]:
    """Return the 256 bytes, and tokens with the ids from 256 on."""
    return {byte: bytes([byte]) for byte in range(256)} | dict(enumerate(tokens, 256))


@exercise("Join the bytes of all tokens first, and decode them once.")
def _check_count_letter(answer: Any) -> None:
    expect_call(answer, ({0: b" straw", 1: b"berry"}, [0, 1], "r"), 3)
    expect_call(answer, ({0: b"caf\xc3", 1: b"\xa9"}, [0, 1], "é"), 1)
    vocab = _vocab(b" straw", b"berry", b"caf\xc3", b"\xa9s", b"rr")
    cases: list[tuple[list[int], str]] = [
        ([256, 257], "r"),
        ([256, 257], "z"),
        ([], "r"),
        ([260, 260, 114], "r"),
        ([99, 97, 102, 195, 169], "é"),
        ([258, 259, 32, 258, 169], "é"),
        ([258, 259], "e"),
        (list("naïve 🙂🙂".encode()), "🙂"),
        (list("été, père, forêt".encode()), "é"),  # all accented letters begin with the same byte
    ]
    for ids, letter in cases:
        text = b"".join(vocab[token_id] for token_id in ids).decode()
        expect_call(answer, (vocab, ids, letter), text.count(letter))


@exercise("The first group has as many digits as remain when the length is divided by three.")
def _check_group_digits(answer: Any) -> None:
    for number in ("1234567", "", "7", "12", "123", "1234", "100000", "000123", "9" * 20):
        groups = f"{'x' * (-len(number) % 3)}{number}"
        expected = [groups[start : start + 3].lstrip("x") for start in range(0, len(groups), 3)]
        expect_call(answer, (number,), expected)


@exercise("Collect the ids of all rows in a set, then go through the ids from 256 on.")
def _check_never_used(answer: Any) -> None:
    cases: list[tuple[int, list[list[int]]]] = [
        (260, [[256, 65], [258]]),
        (260, []),
        (260, [[], []]),
        (256, [[1, 2]]),
        (262, [[261, 300, 261], [256, 257], [259]]),
        (258, [[256, 257], [257]]),
        (2001, [sorted({*range(2001)} - {263, 1000, 2000})]),  # a set of these three is not in order
    ]
    for vocab_size, rows in cases:
        used = {token_id for row in rows for token_id in row}
        expected = [token_id for token_id in range(256, vocab_size) if token_id not in used]
        expect_call(answer, (vocab_size, rows), expected)


@exercise("The allowed tokens include the removed one, and those that are longer than it.")
def _check_heal(answer: Any) -> None:
    expect_call(answer, ({0: b":", 1: b"://", 2: b"http"}, [2, 0]), ([2], b":", [0, 1]))
    vocab = _vocab(b"://", b":/", b" the", b"the", b"\xc3\xa9", b"::")
    for ids in ([116, 58], [259, 32], [257], [104, 258], [], [99, 195], [259, 259, 256], [0]):
        removed = vocab[ids[-1]] if ids else b""
        allowed = sorted(token_id for token_id, token in vocab.items() if token[: len(removed)] == removed)
        expect_call(answer, (vocab, ids), (ids[:-1], removed, allowed), is_new=True)
    shuffled = {9: b"ab", 3: b"abc", 5: b"a", 1: b"b", 0: b"ba"}
    expect_call(answer, (shuffled, [1, 5]), ([1], b"a", [3, 5, 9]))
