"""Inputs that are hard for byte-pair encoding."""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.measure import seconds
from bpe_tokenizer import BPETokenizer

__all__ = ["INPUTS", "ns_a_byte"]


def _random_letters(units: int) -> str:
    return "".join(random.Random(units).choices("abcdefghijklmnopqrstuvwxyz", k=units))


# The units of each input: letters, spaces, `'s`, emoji or bytes.
INPUTS: dict[str, Callable[[int], str | bytes]] = {
    "one letter": lambda units: "a" * units,
    "letters": _random_letters,
    "spaces": lambda units: " " * units,
    "'s": lambda units: "'s" * units,
    "emoji": lambda units: "🙂" * units,
    "random bytes": lambda units: random.Random(units).randbytes(units),
}


def ns_a_byte(tokenizer: BPETokenizer, data: str | bytes, rounds: int, cold: bool = True) -> float:
    """Time the encoding of an input, after checking that its ids decode to it.

    Args:
        tokenizer: The tokenizer.
        data: The input.
        rounds: The fastest counts.
        cold: Each round begins with an empty cache, so none profits from the one before.

    Returns:
        Nanoseconds a byte.

    Raises:
        SystemExit: The ids do not decode to the input.
    """

    def encode() -> list[int]:
        return tokenizer.encode_bytes(data) if isinstance(data, bytes) else tokenizer.encode(data)

    expected = data if isinstance(data, bytes) else data.encode("utf-8")
    if tokenizer.decode_bytes(encode()) != expected:
        raise SystemExit("the ids do not decode to the input")
    best = float("inf")
    for _ in range(rounds):
        if cold:
            tokenizer.clear_cache()
        best = min(best, seconds(encode))
    return best / len(expected) * 1e9
