"""Plans counting and tokenizing terabytes on many machines, from rates that are measured on one core.

    python -m benchmarks.distributed [--rates RATES.json] [--patterns cl100k cl100k-bounded] CORPUS...
    python -m benchmarks.distributed --rates RATES.json

Measures tasks as the engines run them, on one core and from JSON Lines with Zstandard: counting a unit and
writing its sorted file, adding sorted files up, learning merges, and tokenizing a unit to shards. It also
measures how the number of distinct pieces grows with the corpus. Then it prints the tables of
docs/distributed.md.

With --rates it also writes the rates to a file; without corpora it reads them from there.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus.plan import Unit, plan_units
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.corpus.units import run_unit
from bpe_tokenizer.distributed import CountSettings
from bpe_tokenizer.distributed.count_files import merge_range, piece_ranges, save_unit
from bpe_tokenizer.distributed.count_units import CountWork, count_unit
from bpe_tokenizer.readers import ReadOptions, find_inputs
from bpe_tokenizer.train.piece_counts import PieceCounts, core_counter

pa: Any = import_module("pyarrow")
zstd: Any = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")

ROW_BYTES = 4000
VOCAB_SIZE = 32_000
# Files that are added up, with different parts of the corpus.
FILES = 8
# Bytes of a place in a sorted file that the calling process remembers, and the most places of a file.
PLACE_BYTES = 120
MAX_PLACES = 256


@dataclass(frozen=True)
class Rates:
    """Measurements of one core on a corpus; rates are bytes of text or pieces in a second.

    Args:
        corpus: The name of the corpus.
        pattern: The split pattern.
        size: Bytes of the text.
        stored: Bytes of its JSON Lines with Zstandard, for each byte of text.
        counting: Counting a unit and writing its sorted file.
        adding: Pieces of sorted files, added up and written.
        learning: Distinct pieces, from counts to merges.
        tokenizing: Tokenizing a unit to shards.
        tokens: Tokens for each byte of text.
        file_bytes: Bytes of a distinct piece and its count in a sorted file.
        task_bytes: Bytes of memory of a distinct piece while a unit is counted.
        base_memory: Bytes of memory of a task without pieces.
        learn_bytes: Bytes of memory of a distinct piece while merges are learned.
        growth: How many pieces differ in so many bytes, for more and more of them.
    """

    corpus: str
    pattern: str
    size: int
    stored: float
    counting: float
    adding: float
    learning: float
    tokenizing: float
    tokens: float
    file_bytes: float
    task_bytes: float
    base_memory: float
    learn_bytes: float
    growth: Sequence[Sequence[int]]

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
    """Measure each corpus with each pattern, and print the plans."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="*", type=Path, metavar="CORPUS")
    parser.add_argument("--patterns", nargs="+", default=["cl100k", "cl100k-bounded"])
    parser.add_argument("--rates", type=Path)
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e12, 1e13])
    parser.add_argument("--unit", type=float, default=1e9, help="bytes of text of a task")
    parser.add_argument("--cores", type=int, default=160)
    parser.add_argument("--price", type=float, default=0.04, help="euros for an hour of a core")
    options = parser.parse_args()
    if options.corpora:
        rates = [measure(path, pattern) for path in options.corpora for pattern in options.patterns]
        if options.rates:
            content = json.dumps([asdict(each) for each in rates], indent=1)
            options.rates.write_text(content + "\n", encoding="utf-8")
    else:
        rates = [Rates(**each) for each in json.loads(options.rates.read_bytes())]
    print(table("One core", rates, rate_rows()))
    for size in options.sizes:
        title = f"{size / 1e12:g} TB"
        print(table(title, rates, plan_rows(size, options.unit, options.cores, options.price)))


def measure(path: Path, pattern: str) -> Rates:
    """Measure one core on a text."""
    settings = CountSettings(pattern)
    directory = Path(tempfile.mkdtemp(prefix="distributed-"))
    try:
        rows = rows_of(path)
        size = sum(map(len, rows))
        inputs = tuple(find_inputs(write_jsonl(rows, directory)))
        work = CountWork(settings, None, str(directory), ReadOptions(), inputs)
        unit = Unit(0, 0, len(inputs))

        def count() -> None:
            save_unit(count_unit(work, unit)[0], directory / "unit.counts")

        counting = seconds(count)
        counts, _ = count_unit(work, unit)
        each_file = [count_unit(work, Unit(number, number, 1))[0] for number in range(len(inputs))]
        files = [
            save_unit(counted, directory / f"{number}.counts") for number, counted in enumerate(each_file)
        ]
        written = sum(map(len, each_file))
        ranges = piece_ranges(files, 2)
        adding = seconds(lambda: [merge_range(work, each) for each in ranges])
        learning = seconds(
            lambda: BPETokenizer(pattern).train_from_counts(counts, VOCAB_SIZE, verbose=False), rounds=1
        )
        tokenizer = BPETokenizer(pattern).train_from_counts(counts, VOCAB_SIZE, verbose=False)
        plan = plan_units(inputs, CorpusSettings.of(tokenizer, work.read), 1 << 40)
        made: list[Any] = []

        def tokenize() -> None:
            shutil.rmtree(directory / "shards", ignore_errors=True)
            made[:] = [
                run_unit(unit, plan, directory / "shards", tokenizer, threads=1) for unit in plan.units
            ]

        tokenizing = seconds(tokenize)
        base, peak = memory_of(work, unit)
        return Rates(
            corpus=path.stem,
            pattern=pattern,
            size=size,
            stored=sum(each.size for each in inputs) / size,
            counting=size / counting,
            adding=written / adding,
            learning=len(counts) / learning,
            tokenizing=size / tokenizing,
            tokens=made[0].tokens / size,
            file_bytes=(directory / "unit.counts").stat().st_size / len(counts),
            task_bytes=(peak - base) / len(counts),
            base_memory=base,
            learn_bytes=learn_bytes(counts),
            growth=list(growth(rows, settings)),
        )
    finally:
        shutil.rmtree(directory)


def rows_of(path: Path) -> list[bytes]:
    """Split a text into documents of some kilobytes, at line ends."""
    rows: list[bytes] = []
    with path.open("rb") as file:
        while lines := file.readlines(ROW_BYTES):
            rows.append(b"".join(lines))
    # A corpus may be sorted by language.
    order = np.random.default_rng(0).permutation(len(rows))
    return [rows[number] for number in order]


def write_jsonl(rows: list[bytes], directory: Path) -> list[Path]:
    """Write documents into files of JSON Lines with Zstandard."""
    paths = [directory / f"{number}.jsonl.zst" for number in range(FILES)]
    for number, path in enumerate(paths):
        lines = [json.dumps({"text": row.decode()}, ensure_ascii=False) for row in rows[number::FILES]]
        data = zstd.compress(("\n".join(lines) + "\n").encode(), level=3)
        path.write_bytes(data)
    return paths


def growth(rows: list[bytes], settings: CountSettings) -> Iterator[tuple[int, int]]:
    """Count the distinct pieces of growing numbers of documents."""
    column = pa.array(rows, pa.large_binary())
    for halvings in range(6, -1, -1):
        part = column.slice(0, len(rows) >> halvings)
        yield sum(map(len, rows[: len(part)])), settings.counts().add_column(part).distinct


def memory_of(work: CountWork, unit: Unit) -> tuple[int, int]:
    """Return the memory of a new process, before and after it has counted a unit."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        before: int = pool.apply(_peak)
        pool.apply(_count_in_process, (work, unit))
        return before, pool.apply(_peak)


def _peak() -> int:
    """Return the most memory that this process has had."""
    # `ru_maxrss` counts that of the parent too.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def _count_in_process(work: CountWork, unit: Unit) -> int:
    return len(count_unit(work, unit)[0])


def seconds(work: Callable[[], object], rounds: int = 3) -> float:
    """Return the minimum processor time of some rounds: other processes may be running."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def learn_bytes(counts: PieceCounts) -> float:
    """Return the memory that learning needs, for each distinct piece."""
    needs: list[tuple[int, int, int | None]] = []
    core_counter(counts).train(vocab_size=257, needs=lambda *found: needs.append(found))
    [(distinct, memory, _)] = needs
    return memory / distinct


Row = tuple[str, Callable[[Rates], float]]


def rate_rows() -> list[Row]:
    """Return what a table of rates shows."""
    return [
        ("text, MB", lambda rates: rates.size / 1e6),
        ("counting, MB/s", lambda rates: rates.counting / 1e6),
        ("adding up, million pieces/s", lambda rates: rates.adding / 1e6),
        ("learning, million pieces/s", lambda rates: rates.learning / 1e6),
        ("tokenizing, MB/s", lambda rates: rates.tokenizing / 1e6),
        ("distinct pieces, thousand", lambda rates: rates.growth[-1][1] / 1e3),
        ("power of the size", lambda rates: rates.exponent),
        ("bytes of a piece in a sorted file", lambda rates: rates.file_bytes),
        ("bytes of a piece while a task counts", lambda rates: rates.task_bytes),
        ("bytes of a piece while merges are learned", lambda rates: rates.learn_bytes),
        ("tokens for 100 bytes", lambda rates: 100 * rates.tokens),
        ("stored bytes for 100 bytes", lambda rates: 100 * rates.stored),
    ]


def plan_rows(size: float, unit: float, cores: int, price: float) -> list[Row]:
    """Return what a table of a plan shows."""
    tasks = math.ceil(size / unit)
    terabytes = size / 1e12

    def written(rates: Rates) -> float:
        return tasks * rates.distinct(unit)

    def counting(rates: Rates) -> float:
        return size / rates.counting / 3600

    def adding(rates: Rates) -> float:
        return written(rates) / rates.adding / 3600

    def tokenizing(rates: Rates) -> float:
        return size / rates.tokenizing / 3600

    def task_memory(rates: Rates) -> float:
        return rates.base_memory + rates.task_bytes * rates.distinct(unit)

    def places(rates: Rates) -> float:
        return tasks * min(MAX_PLACES, rates.distinct(unit) * rates.file_bytes / (64 << 10) + 1)

    def reading(rates: Rates) -> float:
        return size * rates.stored / 1e9 / (cores / 16) / 3600

    return [
        ("tasks", lambda rates: tasks),
        (f"reading, hours at {cores / 16:g} GB/s", reading),
        ("counting, core-hours", counting),
        (
            "memory of a task, GB",
            lambda rates: task_memory(rates) / 1e9,
        ),
        ("sorted files of the tasks, GB", lambda rates: written(rates) * rates.file_bytes / 1e9),
        ("adding up, core-hours", adding),
        ("memory of the calling process, GB", lambda rates: places(rates) * PLACE_BYTES / 1e9),
        (f"counting in all, hours on {cores} cores", lambda rates: (counting(rates) + adding(rates)) / cores),
        ("counting in all, EUR a TB", lambda rates: (counting(rates) + adding(rates)) * price / terabytes),
        ("distinct pieces, million", lambda rates: rates.distinct(size) / 1e6),
        ("counts, GB", lambda rates: rates.distinct(size) * rates.file_bytes / 1e9),
        ("learning, GB of memory", lambda rates: rates.distinct(size) * rates.learn_bytes / 1e9),
        ("learning, hours on one core", lambda rates: rates.distinct(size) / rates.learning / 3600),
        ("tokenizing, core-hours", tokenizing),
        (f"tokenizing, hours on {cores} cores", lambda rates: tokenizing(rates) / cores),
        ("shards of 2 bytes a token, GB", lambda rates: 2 * size * rates.tokens / 1e9),
        ("tokenizing, EUR a TB", lambda rates: tokenizing(rates) * price / terabytes),
    ]


def table(title: str, rates: list[Rates], rows: list[Row]) -> str:
    """Return a table in Markdown."""
    lines = [
        f"| {title} | {' | '.join(f'{each.corpus}, {each.pattern}' for each in rates)} |",
        f"|---|{'--:|' * len(rates)}",
    ]
    lines += [f"| {name} | {' | '.join(shown(value(each)) for each in rates)} |" for name, value in rows]
    return "\n".join(lines) + "\n"


def shown(value: float) -> str:
    """Return a number with two or three digits that count.

    >>> shown(0.01234), shown(5.678), shown(98.7), shown(12345.6)
    ('0.012', '5.7', '99', '12,300')
    """
    if value == 0:
        return "0"
    if value >= 1000:
        return f"{round(value, 2 - math.floor(math.log10(value))):,.0f}"
    digits = max(1 - math.floor(math.log10(value)), 0)
    return f"{value:.{digits}f}"


if __name__ == "__main__":
    main()
