"""Times the face for transformers against transformers' own tokenizer, on 10,000 documents.

    python -m benchmarks.transformers_face [--rounds 7] [--documents 10000] [--corpus books]

Both tokenizers come from the same directory. Each call has to give equal results before it is timed. The two
run in turn; the ratio of CPU times counts the work of all threads and does not depend on what else runs.
"""

from __future__ import annotations

import argparse
import lzma
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs import fixture
from benchmarks.measure import in_turn, seconds, spread
from benchmarks.records import DIRECTORY, Record
from bpe_tokenizer import BPETokenizer

BATCHES: dict[str, dict[str, Any]] = {
    "no options": {},
    "add_special_tokens=False": {"add_special_tokens": False},
    "truncation, 128 ids": {"truncation": True, "max_length": 128},
    "padding, truncation, 128 ids": {"padding": True, "truncation": True, "max_length": 128},
    "the same as arrays": {"padding": True, "truncation": True, "max_length": 128, "return_tensors": "np"},
    "padding as arrays": {"padding": True, "return_tensors": "np"},
    "special_tokens_mask": {"return_special_tokens_mask": True},
    "offsets": {"return_offsets_mapping": True},
}
SHORT = "A sentence of 100 bytes is short: it shows what a call costs when the text itself costs nothing..."
MANY = 2000


def main() -> None:
    """Time each call."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--corpus", default="books")
    parser.add_argument("--vocabulary", default="llama-bpe")
    parser.add_argument("--records", type=Path, default=DIRECTORY)
    arguments = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    texts = documents(arguments.corpus, arguments.documents)
    record = Record("transformers_face", True, vars(arguments) | {"records": None}, arguments.records)
    size = sum(len(text.encode()) for text in texts)
    print(f"{len(texts):,} documents, {size / 1e6:.1f} MB, {arguments.vocabulary}")
    mine, theirs = load(arguments.vocabulary)
    for name, options in BATCHES.items():
        compare(
            record, name, arguments.rounds, partial(mine, texts, **options), partial(theirs, texts, **options)
        )
    rows = theirs(texts)["input_ids"]
    compare(
        record,
        "batch_decode",
        arguments.rounds,
        partial(mine.batch_decode, rows),
        partial(theirs.batch_decode, rows),
    )
    for name, short in (("encode, 100 bytes", "encode"), ("call, 100 bytes", "__call__")):
        compare(
            record,
            f"{name}, {MANY} times",
            arguments.rounds,
            partial(repeat, getattr(mine, short)),
            partial(repeat, getattr(theirs, short)),
        )
    record.end()


def documents(corpus: str, count: int) -> list[str]:
    """Return texts of about 1,000 characters, cut from a corpus."""
    with lzma.open(fixture("corpora", f"{corpus}.txt.xz"), "rt", encoding="utf-8", newline="") as file:
        texts = [file.read(1000) for _ in range(count)]
    return [text for text in texts if text]


def load(vocabulary: str) -> tuple[Any, Any]:
    """Return the face and transformers' tokenizer of one directory."""
    import transformers

    from bpe_tokenizer.compat.transformers import PreTrainedTokenizerFast

    with tempfile.TemporaryDirectory() as directory:
        BPETokenizer.load(fixture("vocab", f"ggml-vocab-{vocabulary}.gguf"), "gguf").save(directory)
        mine = PreTrainedTokenizerFast.from_pretrained(directory)
        theirs = transformers.PreTrainedTokenizerFast.from_pretrained(directory)
    for tokenizer in (mine, theirs):
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return mine, theirs


def repeat(call: Callable[[str], Any]) -> Any:
    """Call it often."""
    for _ in range(MANY):
        result = call(SHORT)
    return result


def compare(
    record: Record, name: str, rounds: int, mine: Callable[[], Any], theirs: Callable[[], Any]
) -> None:
    """Compare the results, then time both in turn."""
    if plain(mine()) != plain(theirs()):
        raise SystemExit(f"{name}: the two give different results")
    cpu: dict[str, list[float]] = {"mine": [], "theirs": []}
    times = in_turn(
        partial(timed, mine, cpu["mine"]),
        partial(timed, theirs, cpu["theirs"]),
        rounds,
    )
    wall = spread(peer / own for own, peer in times)
    busy = spread(peer / own for own, peer in zip(cpu["mine"], cpu["theirs"], strict=True))
    ours, peers = (spread(side).median for side in zip(*times, strict=True))
    print(
        f"{name:32} {ours * 1e3:8.1f} ms, theirs {peers * 1e3:8.1f} ms: {wall.median:5.1f} times as fast "
        f"({wall.low:.1f} to {wall.high:.1f}), by CPU time {busy.median:5.1f} "
        f"({busy.low:.1f} to {busy.high:.1f})"
    )
    record.add("compared", name=name, ours=ours, theirs=peers, ratio=wall, cpu_ratio=busy)


def timed(call: Callable[[], Any], cpu: list[float]) -> float:
    """Return the seconds of a call, and append those of its CPU time, of all threads."""

    def counted() -> Any:
        begin = time.process_time()
        result = call()
        cpu.append(time.process_time() - begin)
        return result

    return seconds(counted)


def plain(result: Any) -> Any:
    """Return a result as values that can be compared."""
    if hasattr(result, "data") and isinstance(result.data, dict):
        return {name: plain(field) for name, field in result.data.items()}
    return result.tolist() if isinstance(result, np.ndarray) else result


if __name__ == "__main__":
    main()
