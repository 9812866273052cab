"""Encoding time of inputs that are hard for byte-pair encoding, from 10 thousand to 10 million units.

    python -m benchmarks.worst_case [--sizes 10000 100000 1000000 10000000]

A unit is a letter, a space, an `'s`, an emoji or a byte. `growth` is the time a byte divided by the
time a byte at the size before: 1.00 is linear, and n log n from 10 thousand to 10 million is
at most 1.25 a step.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.hostile import INPUTS, ns_a_byte
from benchmarks.inputs import fixture, load_ranks, ours
from benchmarks.records import Record
from bpe_tokenizer.patterns import CL100K_SPLIT_PATTERN

_SIZES = [10_000, 100_000, 1_000_000, 10_000_000]


def main() -> None:
    """Encode every input at every size and print nanoseconds a byte."""
    options = _options()
    ranks = load_ranks(options.ranks or fixture("vocab", "cl100k_base.tiktoken"))
    tokenizer = ours(ranks, CL100K_SPLIT_PATTERN)
    record = Record("worst_case", options.sizes == _SIZES and not options.ranks, {"rounds": options.rounds})
    print(f"{'input':<14}{'units':>12}{'ns/byte':>10}{'growth':>8}")
    for name, make in INPUTS.items():
        before = None
        for units in options.sizes:
            time = ns_a_byte(tokenizer, make(units), options.rounds)
            growth = "" if before is None else f"{time / before:.2f}"
            before = time
            print(f"{name:<14}{units:>12,}{time:>10.1f}{growth:>8}", flush=True)
            record.add("growth", input=name, units=units, ns=round(time, 2))
    record.end()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=Path, help="cl100k_base.tiktoken (default: of the fixtures)")
    parser.add_argument("--sizes", type=int, nargs="+", default=_SIZES)
    parser.add_argument("--rounds", type=int, default=3, help="the fastest counts")
    return parser.parse_args()


if __name__ == "__main__":
    main()
