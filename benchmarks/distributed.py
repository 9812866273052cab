"""Estimates the time to count a terabyte on many machines, from measurements of one core.

    python -m benchmarks.distributed [--pattern cl100k] [--machines 10] [--cores 16] CORPUS...

Measures, on one core: counting rows of Arrow and ranges of files, adding counts up, encoding; how the number
of distinct pieces grows with the corpus; and how many bytes a piece takes on its way through a shuffle. Then
computes the plan of docs/distributed.md.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.distributed import (
    CountSettings,
    count_ranges,
    count_texts,
    encode_texts,
    file_ranges,
    sum_counts,
)

pa: Any = import_module("pyarrow")
ipc: Any = import_module("pyarrow.ipc")

ROW_BYTES = 4000
BATCH_ROWS = 4000


class Measured(NamedTuple):
    """Measurements of one core on a corpus; rates are bytes or pieces in a second.

    Args:
        rows: Counting rows of Arrow.
        ranges: Counting ranges of a file.
        encoding: Encoding rows of Arrow.
        adding: Adding up counts.
        wire: Bytes of a distinct piece and its count in Arrow's format, compressed as Ray does it.
        growth: How many pieces differ in so many bytes, for more and more of them.
    """

    rows: float
    ranges: float
    encoding: float
    adding: float
    wire: float
    growth: list[tuple[int, int]]

    @property
    def exponent(self) -> float:
        """The power of the corpus size by which the distinct pieces grow, at the largest measured sizes.

        The law is that of Heaps, 1978, section 7.5; the power gets smaller as a corpus grows.
        """
        (small, few), (large, many) = self.growth[-3], self.growth[-1]
        return math.log(many / few) / math.log(large / small)

    def distinct(self, size: float) -> float:
        """Return the estimated number of distinct pieces in a corpus of this size."""
        large, many = self.growth[-1]
        return float(many * (size / large) ** self.exponent)


def main() -> None:
    """Measure each corpus and plan for it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+", type=Path, metavar="CORPUS")
    parser.add_argument("--pattern", default="cl100k")
    parser.add_argument("--size", type=float, default=1e12)
    parser.add_argument("--task", type=float, default=1e9)
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--machines", type=int, default=10)
    options = parser.parse_args()
    for path in options.corpora:
        measured = measure(path, CountSettings(options.pattern))
        print(f"{path.name}, a core:")
        for name, rate in (
            ("rows counted, MB/s", measured.rows / 1e6),
            ("ranges counted, MB/s", measured.ranges / 1e6),
            ("rows encoded, MB/s", measured.encoding / 1e6),
            ("pieces added up, M/s", measured.adding / 1e6),
            ("bytes a distinct piece on the wire", measured.wire),
            ("distinct pieces, power of the size", measured.exponent),
        ):
            print(f"  {name:36}{rate:8.2f}")
        for size, distinct in measured.growth:
            print(f"  {f'distinct pieces in {size / 1e6:.1f} MB':36}{distinct:10,}")
        plan(measured, options)


def measure(path: Path, settings: CountSettings) -> Measured:
    """Measure one core on a corpus."""
    batches = list(batches_of(path))
    texts = sum(batch.column("text").nbytes for batch in batches)
    tokenizer = BPETokenizer(settings.split_pattern).train(path, 32_000, verbose=False)
    counted = [count_texts(batch, settings) for batch in batches]
    rows = seconds(lambda: [count_texts(batch, settings) for batch in batches])
    (task,) = file_ranges(path, 1 << 40)
    ranges = seconds(lambda: count_ranges(task, settings))
    adding = seconds(lambda: [*sum_counts(counted)])
    encoding = seconds(lambda: [encode_texts(batch, tokenizer) for batch in batches])
    whole = count_ranges(task, settings)
    return Measured(
        rows=texts / rows,
        ranges=path.stat().st_size / ranges,
        encoding=texts / encoding,
        adding=sum(batch.num_rows for batch in counted) / adding,
        wire=compressed(whole) / whole.num_rows,
        growth=list(growth(batches, settings)),
    )


def batches_of(path: Path) -> Iterator[Any]:
    """Split a corpus into rows at line ends, and the rows into batches."""
    rows: list[bytes] = []
    with path.open("rb") as file:
        while lines := file.readlines(ROW_BYTES):
            rows.append(b"".join(lines))
    for start in range(0, len(rows), BATCH_ROWS):
        yield pa.RecordBatch.from_pydict(
            {"text": pa.array(rows[start : start + BATCH_ROWS], pa.large_binary())}
        )


def growth(batches: list[Any], settings: CountSettings) -> Iterator[tuple[int, int]]:
    """Count the distinct pieces of growing numbers of shuffled rows: a corpus may be sorted by language."""
    table = pa.Table.from_batches(batches)
    rows = table.take(np.random.default_rng(0).permutation(table.num_rows)).column("text")
    for halvings in range(6, -1, -1):
        part = rows.slice(0, len(rows) >> halvings)
        yield part.nbytes, settings.counts().add_column(part).distinct


def compressed(batch: Any) -> int:
    """Return the size of a batch as an Arrow stream with Zstandard."""
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema, options=ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_batch(batch)
    return int(sink.getvalue().size)


def seconds(work: Callable[[], object], rounds: int = 3) -> float:
    """Return the minimum processor time of some rounds: other processes may be running."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def plan(measured: Measured, options: argparse.Namespace) -> None:
    """Print the estimates for counting and encoding."""
    cores = options.machines * options.cores
    tasks = math.ceil(options.size / options.task)
    sent = tasks * measured.distinct(options.task)
    distinct = measured.distinct(options.size)
    machines = f"{options.machines} machines of {options.cores} cores"
    print(f"  {options.size / 1e12:g} TB in {tasks:,} tasks on {machines}:")
    for name, amount in (
        ("reading at 1 GB/s a machine, min", options.size / 1e9 / options.machines / 60),
        ("counting, min", options.size / measured.ranges / cores / 60),
        ("through the shuffle, GB", sent * measured.wire / 1e9),
        ("that at 1 GB/s a machine, min", sent * measured.wire / 1e9 / options.machines / 60),
        ("adding up, min", sent / measured.adding / cores / 60),
        ("distinct pieces, M", distinct / 1e6),
        ("of them to the one who calls, GB", distinct * measured.wire / 1e9),
        ("and added up there, min", distinct / measured.adding / 60),
        ("encoding, min", options.size / measured.encoding / cores / 60),
    ):
        print(f"    {name:34}{amount:10.1f}")


if __name__ == "__main__":
    main()
