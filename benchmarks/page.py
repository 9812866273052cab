"""Writes the chart and tables of docs/benchmarks.md and docs/benchmarks-detail.md from the newest records.

python -m benchmarks.page [--records DIRECTORY]
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks import chart
from benchmarks.cases import MODES
from benchmarks.peers import OURS
from benchmarks.records import DIRECTORY, Run, newest

__all__ = ["between_markers", "detail", "summary"]

_DOCS = Path(__file__).parents[1] / "docs"
_BEGIN = "<!-- Written by `python -m benchmarks.page` from benchmarks/records; do not edit. -->"
_END = "<!-- End of the generated part. -->"


def main() -> None:
    """Write the chart and both pages."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=Path, default=DIRECTORY)
    directory = parser.parse_args().records
    suite = newest("suite", directory)
    if suite is None:
        raise SystemExit(f"{directory} has no record; `make bench` makes one")
    picture = _DOCS / "benchmarks.svg"
    picture.write_text(
        chart.draw(
            {
                "to list[int], cl100k, one thread, MB a second": chart.speeds(
                    suite.of("case"), "list", "cl100k"
                ),
                "to a NumPy array": chart.speeds(suite.of("case"), "numpy", "cl100k"),
            }
        ),
        encoding="utf-8",
    )
    found = [newest(name, directory) for name in ("training", "loading", "worst_case")]
    others = [run for run in found if run is not None]
    for name, text in (
        ("benchmarks.md", summary(suite, others)),
        ("benchmarks-detail.md", detail(suite, others)),
    ):
        page = _DOCS / name
        page.write_text(between_markers(page.read_text(encoding="utf-8"), text), encoding="utf-8")
        print(f"wrote {page}")
    print(f"wrote {picture}")


def between_markers(page: str, text: str) -> str:
    """Replace the text between the page's markers.

    Args:
        page: The page.
        text: The text.

    Returns:
        The page with it.

    Raises:
        SystemExit: The page lacks a marker.
    """
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise SystemExit(f"the page lacks the line {_BEGIN if not begin else _END!r}")
    return f"{before}{_BEGIN}\n\n{text}\n{_END}{after}"


def summary(suite: Run, others: Iterable[Run] = ()) -> str:
    """Return the ratios over all corpora and vocabularies, and those of training, as Markdown.

    Args:
        suite: A run of `python -m benchmarks`.
        others: Runs of the other programs.

    Returns:
        The text.
    """
    parts = [
        _about(suite),
        "![Encoding speed in MB per second](benchmarks.svg)",
        "How many times as fast as each package we are: the median over all corpora and vocabularies, and "
        "in brackets the lowest and the highest case.",
        _medians(suite.of("case")),
    ]
    for run in others:
        if run.about["run"] == "training":
            parts += [
                "From files to a trained tokenizer, on 2 threads, with peak memory:",
                _compared(run),
            ]
    return "\n\n".join(parts) + "\n"


def detail(suite: Run, others: Iterable[Run] = ()) -> str:
    """Return every result as Markdown.

    Args:
        suite: A run of `python -m benchmarks`.
        others: Runs of the other programs.

    Returns:
        The text.
    """
    parts = [
        _about(suite),
        *_details(suite.of("case")),
        *_memory(suite.of("memory")),
        *_hostile(suite.of("hostile")),
        *_left_out(suite),
    ]
    for run in others:
        parts += [f"### {run.about['run'].replace('_', ' ').capitalize()}", _about(run), *_other(run)]
    return "\n\n".join(parts) + "\n"


def _about(run: Run) -> str:
    about = run.about
    machine, options = about["machine"], about["options"]
    peers = ", ".join(f"{name} {version}" for name, version in about["peers"].items())
    settings = ", ".join(
        f"{name} {value}" for name, value in options.items() if value not in (None, [], False)
    )
    return (
        f"{about['time'][:10]}, commit {about['commit']}: {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['system']}, Python {machine['python']}; {peers}; {settings}."
        + ("" if run.complete else " **Only a part of the cases, or small texts: no figures to quote.**")
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---"] + ["--:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def _medians(cases: Sequence[Mapping[str, Any]]) -> str:
    """Return a table with a row per mode and a column per peer."""
    ratios: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for case in cases:
        peer, mode, _, _, cache, threads = case["case"]
        row = ratios.setdefault((mode, cache, threads.removesuffix("t")), {})
        row.setdefault(peer, []).append(case["ratio"][0])
    peers = list(dict.fromkeys(peer for row in ratios.values() for peer in row))

    def cell(values: Sequence[float]) -> str:
        if not values:
            return ""
        return f"**{statistics.median(values):.2f}** ({min(values):.2f} to {max(values):.2f})"

    return _table(
        ["mode", "cache", "threads", *("our one thread" if peer == OURS else peer for peer in peers)],
        [[*key, *(cell(row.get(peer, ())) for peer in peers)] for key, row in ratios.items()],
    )


def _details(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A table a mode: a row a vocabulary and corpus, a column a peer."""

    def group(case: Mapping[str, Any]) -> tuple[int, str, str]:
        _, mode, _, _, state, threads = case["case"]
        return [*MODES].index(mode), state, threads

    yield "### Each case"
    yield (
        "The median ratio, with the smallest and the largest of the turns in brackets, and the MB of UTF-8 a "
        "second of both."
    )
    for (mode, state, threads), members in groupby(sorted(cases, key=group), group):
        yield _detail(f"{[*MODES][mode]}, {state}, threads: {threads.removesuffix('t')}", [*members])


def _detail(title: str, cases: Sequence[Mapping[str, Any]]) -> str:
    peers = list(dict.fromkeys(case["case"][0] for case in cases))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for case in cases:
        peer, _, corpus, vocabulary, _, _ = case["case"]
        median, low, high = case["ratio"]
        cells.setdefault((vocabulary, corpus), {})[peer] = (
            f"**{median:.2f}** ({low:.2f} to {high:.2f}), {case['ours']:,.0f} : {case['theirs']:,.0f}"
        )
    table = _table(
        ["", *("one thread of ours" if peer == OURS else peer for peer in peers)],
        [
            [f"{vocabulary}, {corpus}", *(row.get(peer, "") for peer in peers)]
            for (vocabulary, corpus), row in cells.items()
        ],
    )
    return f"<details><summary>{title}</summary>\n\n{table}\n\n</details>"


def _memory(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not results:
        return
    yield "### Peak memory"
    yield (
        "One call in a new process, in MB: the text or the file, the ids, and what the call needed beyond "
        "both and beyond the process with the vocabulary loaded."
    )
    yield _table(
        ["", "input", "output", "beyond"],
        [
            [
                f"{result['case'][1]}, {result['case'][2]}, threads: {result['case'][5].removesuffix('t')}",
                *(f"{result[name] / 1e6:,.0f}" for name in ("input", "output", "extra")),
            ]
            for result in results
        ],
    )


def _hostile(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not results:
        return
    yield "### Hard input"
    yield "A million units with cl100k and an empty cache, against a byte of prose with a warm one."
    yield _table(
        ["", "ns a byte", "times prose"],
        [[result["input"], f"{result['ns']:.1f}", f"{result['times_prose']:.1f}"] for result in results],
    )


def _left_out(suite: Run) -> Iterator[str]:
    for kind, title in (("wrong", "Other results than ours, so not timed"), ("skipped", "Skipped")):
        reasons: dict[str, list[str]] = {}
        for result in suite.of(kind):
            reasons.setdefault(result["reason"], []).append("/".join(result["case"]))
        if reasons:
            yield f"### {title}"
            yield "\n".join(
                f"- {reason} ({names[0]}{f' and {len(names) - 1} more' if names[1:] else ''})"
                for reason, names in reasons.items()
            )


def _other(run: Run) -> Iterator[str]:
    if run.of("compared"):
        yield _compared(run)
    alone = run.of("alone")
    if alone:
        yield "\n".join(f"- {result['name']}: {result['ours']}. {result['said']}." for result in alone)
    growth = run.of("growth")
    if growth:
        sizes = list(dict.fromkeys(result["units"] for result in growth))
        rows: dict[str, dict[int, float]] = {}
        for result in growth:
            rows.setdefault(result["input"], {})[result["units"]] = result["ns"]
        yield "Nanoseconds a byte at so many units, each time with an empty cache."
        yield _table(
            ["", *(f"{size:,}" for size in sizes)],
            [
                [name, *(f"{row[size]:.1f}" if size in row else "" for size in sizes)]
                for name, row in rows.items()
            ],
        )


def _compared(run: Run) -> str:
    ratio = "**{:.2f}** ({:.2f} to {:.2f})"
    return _table(
        ["", "ours", "peer", "times as fast"],
        [
            [result["name"], result["ours"], result["theirs"], ratio.format(*result["ratio"])]
            for result in run.of("compared")
        ],
    )


if __name__ == "__main__":
    main()
