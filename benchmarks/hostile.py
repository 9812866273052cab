"""Encoding time of inputs that are hard for byte-pair encoding, at several sizes and against prose.

    python -m benchmarks.hostile

A unit is a letter, a space, an `'s`, an emoji or a byte. Every input meets an empty cache, but prose
a full one.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path

from benchmarks.inputs import fixture, load_ranks, ours, read_documents
from benchmarks.measure import seconds
from benchmarks.records import DIRECTORY, Record
from bpe_tokenizer import BPETokenizer

__all__ = ["INPUTS", "measure", "ns_a_byte"]

_SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
# The fastest counts. The largest inputs take a second each, and run once.
_ROUNDS = {10_000_000: 1}
# A run of prose takes two milliseconds, so three runs may all be slow on a busy machine.
_PROSE_ROUNDS = 25


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


def main() -> None:
    """Encode every input at every size and print nanoseconds a byte."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=Path, default=DIRECTORY)
    tokenizer = ours(load_ranks(fixture("vocab", "cl100k_base.tiktoken")), "cl100k")
    prose = "".join(read_documents(fixture("corpora", "books.txt.xz"), 1_000_000))
    record = Record("hostile", True, {}, parser.parse_args().records)
    measure(tokenizer, prose, record)
    record.end()


def measure(tokenizer: BPETokenizer, prose: str, record: Record, sizes: tuple[int, ...] = _SIZES) -> None:
    """Time every input at every size, and prose, and record it."""
    record.add("prose", ns=round(ns_a_byte(tokenizer, prose, _PROSE_ROUNDS, cold=False), 2))
    for name, make in INPUTS.items():
        for units in sizes:
            time = ns_a_byte(tokenizer, make(units), _ROUNDS.get(units, 3))
            print(f"{name:<14}{units:>12,} units{time:>10.1f} ns a byte", flush=True)
            record.add("growth", input=name, units=units, ns=round(time, 2))


def ns_a_byte(tokenizer: BPETokenizer, data: str | bytes, rounds: int, cold: bool = True) -> float:
    """Time the encoding of an input, after checking that its ids decode to it.

    Args:
        tokenizer: The tokenizer.
        data: The input.
        rounds: The fastest counts.
        cold: Each round begins with an empty cache.

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


if __name__ == "__main__":
    main()
