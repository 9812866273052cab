"""Encoding and decoding against other packages.

    python -m benchmarks [--all] [--list] [--only gigatoken cl100k,gpt2 cold] [--turns 5]

The ids of both sides are compared first. Then they run in turn, warm ones in this process, cold ones in
processes of their own; what counts is the ratio of each turn. `--only` keeps the cases that have each of
its words as a part of their names; a word with commas is any of several.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from benchmarks.cases import ALL_LIMITS, CORPORA, LIMITS, declared, select
from benchmarks.inputs import fixture
from benchmarks.records import DIRECTORY, Record
from benchmarks.suite import Suite


def main() -> None:
    """Run the cases, or list them."""
    options = _options()
    names = [path.name.split(".")[0] for path in options.corpus] or CORPORA
    # What is asked for by name may be any case.
    cases = select(declared(names, options.all or bool(options.only)), options.only)
    if options.list:
        print("\n".join(case.name for case in cases))
        return
    paths = options.corpus or [fixture("corpora", f"{name}.txt.xz") for name in CORPORA]
    # Some packages fix their number of threads when they start; the cases use two.
    os.environ["RAYON_NUM_THREADS"] = "2"
    complete = not (options.only or options.corpus or options.bytes)
    settings = {name: getattr(options, name) for name in ("turns", "bytes", "all", "only")}
    with tempfile.TemporaryDirectory() as directory:
        record = Record("suite", complete, settings, options.records)
        limits = ALL_LIMITS if options.all else LIMITS
        corpora = dict(zip(names, paths, strict=True))
        suite = Suite(corpora, Path(directory), record, options.turns, options.bytes, limits)
        suite.run(cases)
        if not options.only:
            suite.run_memory()
        record.end()
    print(f"recorded in {record.path}; python -m benchmarks.page writes docs/benchmarks.md")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="parts of the cases' names")
    parser.add_argument("--list", action="store_true", help="list the cases and do nothing")
    parser.add_argument("--all", action="store_true", help="every case, on more text: most of an hour")
    parser.add_argument("--turns", type=int, default=5, help="how often both sides run")
    parser.add_argument("--bytes", type=int, help="take at most this much of each corpus")
    parser.add_argument(
        "--corpus", type=Path, nargs="+", default=[], help="texts, plain or .xz, for the fixtures' four"
    )
    parser.add_argument("--records", type=Path, default=DIRECTORY, help="where the records are kept")
    return parser.parse_args()


if __name__ == "__main__":
    main()
