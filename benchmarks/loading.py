"""Time from files to a tokenizer that is ready to encode, compared with the files' own libraries.

    python -m benchmarks.loading [--rounds 5]

The cases: cl100k_base.tiktoken; a tokenizer.json of LLaMA 3's 128,256 tokens and 280,147 merges; one of 400
tokens and 100,000 added tokens; LLaMA 3's GGUF, which no other package here reads. Each loaded tokenizer has
to encode a sentence to the same ids as the other.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import tiktoken
from tiktoken.load import load_tiktoken_bpe
from tokenizers import Tokenizer

from benchmarks.inputs import fixture
from benchmarks.measure import in_turn, seconds, spread
from benchmarks.peers import load
from benchmarks.records import DIRECTORY, Record
from benchmarks.vocabularies import Vocabulary, prepare
from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.patterns import CL100K_SPLIT_PATTERN

SENTENCE = "A sentence of 12 words isn't long, but it shows what was loaded: naïve café 日本語.\n"


def main() -> None:
    """Time each case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=Path, default=DIRECTORY, help="where the records are kept")
    options = parser.parse_args()
    record = Record("loading", True, {"rounds": options.rounds}, options.records)
    with tempfile.TemporaryDirectory() as directory:
        llama3, many = Path(directory, "llama3"), Path(directory, "many")
        gguf, ranks = fixture("vocab", "ggml-vocab-llama-bpe.gguf"), fixture("vocab", "cl100k_base.tiktoken")
        BPETokenizer.load(gguf, "gguf").save(llama3)
        _with_added_tokens(100_000).save(many)
        cl100k = prepare("cl100k", Path(directory))
        for peer, theirs in (
            ("tiktoken", partial(_tiktoken, ranks)),
            ("gigatoken", partial(_peer, "gigatoken", cl100k)),
            ("fastokens", partial(_peer, "fastokens", cl100k)),
        ):
            name = f"cl100k_base.tiktoken, against {peer}"
            _compare(record, name, options.rounds, partial(_ours, ranks), theirs)
        for files, place in (("128k tokenizer.json", llama3), ("100k added tokens", many)):
            name = f"{files}, against tokenizers"
            _compare(record, name, options.rounds, partial(_ours, place), partial(_theirs, place))
        times = spread(seconds(partial(_ours, gguf)) for _ in range(options.rounds))
        said = f"{times.low:.3f} to {times.high:.3f} s"
        record.add("alone", name="GGUF of LLaMA 3", ours=f"{times.median:.3f} s", said=said)
    record.end()


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


def _peer(package: str, vocabulary: Vocabulary) -> list[int]:
    return load(package, vocabulary).to_list(SENTENCE)


def _theirs(directory: Path) -> list[int]:
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    ids: list[int] = tokenizer.encode(SENTENCE, add_special_tokens=False).ids
    return ids


def _compare(
    record: Record, name: str, rounds: int, mine: Callable[[], list[int]], theirs: Callable[[], list[int]]
) -> None:
    if mine() != theirs():
        raise SystemExit(f"{name}: the two encode a sentence to different ids")
    times = in_turn(partial(seconds, mine), partial(seconds, theirs), rounds)
    ratio = spread(peer / own for own, peer in times)
    ours, peers = (f"{spread(side).median:.3f} s" for side in zip(*times, strict=True))
    print(
        f"{name:40} {ours}, peer {peers}, {ratio.median:5.2f} times "
        f"as fast ({ratio.low:.2f} to {ratio.high:.2f}, {rounds} rounds)"
    )
    record.add("compared", name=name, ours=ours, theirs=peers, ratio=ratio)


if __name__ == "__main__":
    main()
