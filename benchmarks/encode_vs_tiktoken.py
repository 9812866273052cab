"""Encoding speed against tiktoken's: books, cl100k, one thread, to a list of ids.

    python -m benchmarks.encode_vs_tiktoken [--rounds 7] [--cold]

The ids are compared first. Then the two sides run in turn, and what counts is the ratio of each turn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import tiktoken
from benchmarks.inputs import fixture, load_ranks, ours, read_documents

from bpe_tokenizer.patterns import CL100K_SPLIT_PATTERN


def main() -> None:
    """Compare ids, then speeds."""
    options = _options()
    documents = read_documents(options.corpus or fixture("corpora", "books.txt.xz"), options.bytes)
    ranks = load_ranks(options.ranks or fixture("vocab", "cl100k_base.tiktoken"))
    size = sum(len(document.encode("utf-8")) for document in documents)

    peer = tiktoken.Encoding("cl100k", pat_str=CL100K_SPLIT_PATTERN, mergeable_ranks=ranks, special_tokens={})
    tokenizer = ours(ranks, CL100K_SPLIT_PATTERN)
    tokens = _compare(documents, tokenizer.encode, peer.encode_ordinary)
    print(f"{len(documents):,} documents, {size:,} bytes, {tokens:,} tokens: the same ids")

    speeds: list[tuple[float, float]] = []
    for _ in range(options.rounds):
        if options.cold:
            tokenizer.clear_cache()
        speeds.append(
            (size / _seconds(documents, tokenizer.encode), size / _seconds(documents, peer.encode_ordinary))
        )
    ratios = [mine / theirs for mine, theirs in speeds]
    print(f"bpe_tokenizer {statistics.median(mine for mine, _ in speeds) / 1e6:8.1f} MB/s")
    print(f"tiktoken      {statistics.median(theirs for _, theirs in speeds) / 1e6:8.1f} MB/s")
    print(
        f"ratio         {statistics.median(ratios):8.2f} ({min(ratios):.2f} to {max(ratios):.2f}, "
        f"{options.rounds} rounds, {'cold' if options.cold else 'warm'} cache)"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, help="text, plain or .xz (default: books of the fixtures)")
    parser.add_argument("--ranks", type=Path, help="cl100k_base.tiktoken (default: of the fixtures)")
    parser.add_argument("--bytes", type=int, help="take this much of the corpus (default: all)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cold", action="store_true", help="empty our cache of pieces before each round")
    return parser.parse_args()


def _compare(
    documents: Sequence[str], mine: Callable[[str], list[int]], theirs: Callable[[str], list[int]]
) -> int:
    tokens = 0
    for number, document in enumerate(documents):
        ids = mine(document)
        if ids != theirs(document):
            raise SystemExit(f"document {number} gets other ids than tiktoken's")
        tokens += len(ids)
    return tokens


def _seconds(documents: Sequence[str], encode: Callable[[str], list[int]]) -> float:
    begin = time.perf_counter()
    for document in documents:
        encode(document)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
