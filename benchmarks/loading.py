"""Time from files to a tokenizer that is ready to encode, against the files' own libraries, in turn.

    python -m benchmarks.loading [--rounds 9]

The cases: cl100k_base.tiktoken; a tokenizer.json of LLaMA 3's 128,256 tokens and 280,147 merges; one of 400
tokens and 100,000 added tokens. Each loaded tokenizer has to encode a sentence to the same ids as the other.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import tiktoken
from benchmarks.inputs import fixture
from tiktoken.load import load_tiktoken_bpe
from tokenizers import Tokenizer

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.patterns import CL100K_SPLIT_PATTERN

SENTENCE = "A sentence of 12 words isn't long, but it shows what was loaded: naïve café 日本語.\n"


def main() -> None:
    """Time each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as directory:
        llama3, many = Path(directory, "llama3"), Path(directory, "many")
        BPETokenizer.from_gguf(fixture("vocab", "ggml-vocab-llama-bpe.gguf")).save(llama3)
        _with_added_tokens(100_000).save(many)
        ranks = fixture("vocab", "cl100k_base.tiktoken")
        _compare("cl100k_base.tiktoken", rounds, partial(_ours, ranks), partial(_tiktoken, ranks))
        for name, place in (("128k tokenizer.json", llama3), ("100k added tokens", many)):
            _compare(name, rounds, partial(_ours, place), partial(_theirs, place))


def _with_added_tokens(count: int) -> BPETokenizer:
    tokenizer = BPETokenizer(split_pattern="gpt2", normalization=None)
    tokenizer.train(SENTENCE * 20, 400, verbose=False)
    tokenizer.add_special_tokens([f"<|added token {number}|>" for number in range(count)])
    return tokenizer


def _ours(path: Path) -> list[int]:
    return BPETokenizer.load(path).encode(SENTENCE)


def _tiktoken(path: Path) -> list[int]:
    ranks = load_tiktoken_bpe(str(path))
    encoding = tiktoken.Encoding(
        "cl100k", pat_str=CL100K_SPLIT_PATTERN, mergeable_ranks=ranks, special_tokens={}
    )
    return encoding.encode_ordinary(SENTENCE)


def _theirs(directory: Path) -> list[int]:
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    ids: list[int] = tokenizer.encode(SENTENCE, add_special_tokens=False).ids
    return ids


def _compare(name: str, rounds: int, mine: Callable[[], list[int]], theirs: Callable[[], list[int]]) -> None:
    if mine() != theirs():
        raise SystemExit(f"{name}: the two encode a sentence to different ids")
    times = [(_seconds(mine), _seconds(theirs)) for _ in range(rounds)]
    ratios = [peer / own for own, peer in times]
    print(
        f"{name:22} {statistics.median(own for own, _ in times):6.3f} s, peer "
        f"{statistics.median(peer for _, peer in times):6.3f} s, {statistics.median(ratios):5.2f} times "
        f"as fast ({min(ratios):.2f} to {max(ratios):.2f}, {rounds} rounds)"
    )


def _seconds(load: Callable[[], list[int]]) -> float:
    begin = time.perf_counter()
    load()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
