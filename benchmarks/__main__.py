"""Encoding and decoding against tiktoken, tokenizers, fastokens, quicktok and gigatoken.

    python -m benchmarks [--quick] [--list] [--only gigatoken cl100k,gpt2 cold] [--turns 5]

The ids of both sides are compared first. Then they run in turn, warm ones in this process, cold ones in
processes of their own; what counts is the ratio of each turn. `--only` keeps the cases that have each of
its words as a part of their names; a word with commas is any of several.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from benchmarks.cases import CORPORA, declared, select
from benchmarks.inputs import fixture
from benchmarks.records import DIRECTORY, Record
from benchmarks.suite import Suite

# Bytes of each corpus of a quick run.
_QUICK_BYTES = 1_000_000


def main() -> None:
    """Run the cases, or list them."""
    options = _options()
    names = [path.name.split(".")[0] for path in options.corpus] or CORPORA
    cases = select(declared(names, options.quick), options.only)
    if options.list:
        print("\n".join(case.name for case in cases))
        return
    paths = options.corpus or [fixture("corpora", f"{name}.txt.xz") for name in CORPORA]
    # Some packages fix their number of threads when they start; the cases use two.
    os.environ["RAYON_NUM_THREADS"] = "2"
    limit = options.bytes or (_QUICK_BYTES if options.quick else None)
    complete = not (options.quick or options.only or options.corpus or options.bytes)
    settings = {"turns": options.turns, "bytes": limit, "quick": options.quick, "only": options.only}
    with tempfile.TemporaryDirectory() as directory:
        record = Record("suite", complete, settings, options.records)
        suite = Suite(dict(zip(names, paths, strict=True)), Path(directory), record, options.turns, limit)
        suite.run(cases)
        if not options.only:
            suite.run_ours()
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
    parser.add_argument("--quick", action="store_true", help="two vocabularies and 1 MB of each corpus")
    parser.add_argument("--turns", type=int, help="how often both sides run (default: 5, quick 3)")
    parser.add_argument("--bytes", type=int, help="take this much of each corpus (default: all of it)")
    parser.add_argument(
        "--corpus", type=Path, nargs="+", default=[], help="texts, plain or .xz, for the fixtures' four"
    )
    parser.add_argument("--records", type=Path, default=DIRECTORY, help="where the records are kept")
    options = parser.parse_args()
    options.turns = options.turns or (3 if options.quick else 5)
    return options


if __name__ == "__main__":
    main()
