"""Encoding time of input that is hard for byte-pair encoding, from 10 thousand to 10 million units.

    python -m benchmarks.worst_case [--sizes 10000 100000 1000000 10000000]

A unit is a letter, a space, an `'s`, an emoji or a byte. `growth` is the time a byte divided by the
time a byte at the size before: 1.00 is linear, and n log n from 10 thousand to 10 million is
at most 1.25 a step.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.inputs import fixture, load_ranks, ours

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.patterns import CL100K_SPLIT_PATTERN


def _random_letters(units: int) -> str:
    return "".join(random.Random(units).choices("abcdefghijklmnopqrstuvwxyz", k=units))


_INPUTS: dict[str, Callable[[int], str | bytes]] = {
    "one letter": lambda units: "a" * units,
    "letters": _random_letters,
    "spaces": lambda units: " " * units,
    "'s": lambda units: "'s" * units,
    "emoji": lambda units: "🙂" * units,
    "random bytes": lambda units: random.Random(units).randbytes(units),
}


def main() -> None:
    """Encode every input at every size and print seconds and nanoseconds a byte."""
    options = _options()
    ranks = load_ranks(options.ranks or fixture("vocab", "cl100k_base.tiktoken"))
    tokenizer = ours(ranks, CL100K_SPLIT_PATTERN)
    print(f"{'input':<14}{'units':>12}{'seconds':>10}{'ns/byte':>10}{'growth':>8}")
    for name, make in _INPUTS.items():
        before = None
        for units in options.sizes:
            data = make(units)
            seconds = _seconds(tokenizer, data, options.rounds)
            size = len(data if isinstance(data, bytes) else data.encode("utf-8"))
            growth = "" if before is None else f"{seconds / size / before:.2f}"
            before = seconds / size
            print(f"{name:<14}{units:>12,}{seconds:>10.4f}{before * 1e9:>10.1f}{growth:>8}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=Path, help="cl100k_base.tiktoken (default: of the fixtures)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=3, help="the fastest counts")
    return parser.parse_args()


def _seconds(tokenizer: BPETokenizer, data: str | bytes, rounds: int) -> float:
    """Time the encoding; each round begins with an empty cache, so none profits from the one before."""
    best = float("inf")
    for _ in range(rounds):
        tokenizer.clear_cache()
        begin = time.perf_counter()
        ids = tokenizer.encode_bytes(data) if isinstance(data, bytes) else tokenizer.encode(data)
        best = min(best, time.perf_counter() - begin)
    expected = data if isinstance(data, bytes) else data.encode("utf-8")
    if tokenizer.decode_bytes(ids) != expected:
        raise SystemExit("the ids do not decode to the input")
    return best


if __name__ == "__main__":
    main()
