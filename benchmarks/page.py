"""Writes the chart and the tables of docs/benchmarks.md from the newest records.

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

__all__ = ["between_markers", "tables"]

_DOCS = Path(__file__).parents[1] / "docs"
_BEGIN = "<!-- Written by `python -m benchmarks.page` from benchmarks/records; do not edit. -->"
_END = "<!-- End of what is written. -->"


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=Path, default=DIRECTORY)
    directory = parser.parse_args().records
    suite = newest("suite", directory)
    if suite is None:
        raise SystemExit(f"{directory} has no record; `make bench` makes one")
    page, picture = _DOCS / "benchmarks.md", _DOCS / "benchmarks.svg"
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
    others = [newest(name, directory) for name in ("training", "loading", "worst_case")]
    text = tables(suite, [run for run in others if run is not None])
    page.write_text(between_markers(page.read_text(encoding="utf-8"), text), encoding="utf-8")
    print(f"wrote {page} and {picture}")


def between_markers(page: str, text: str) -> str:
    """Put a text in the place of what stands between the page's markers.

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


def tables(suite: Run, others: Iterable[Run] = ()) -> str:
    """Return the results as Markdown.

    Args:
        suite: A run of `python -m benchmarks`.
        others: Runs of the other programs.

    Returns:
        The text.
    """
    parts = [
        _about(suite),
        "![Encoding speed, MB a second](benchmarks.svg)",
        *_summary(suite.of("case")),
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


def _summary(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One row a peer and mode, over all corpora and vocabularies."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for case in cases:
        peer, mode, _, _, state, threads = case["case"]
        groups.setdefault((peer, mode, state, threads), []).append(case["ratio"][0])
    yield "### All corpora and vocabularies together"
    yield "How many times as fast we are: the median of the cases' ratios, the lowest and the highest."
    yield _table(
        ["against", "mode", "cache", "threads", "cases", "median", "lowest", "highest"],
        [
            [
                "one thread of ours" if peer == OURS else peer,
                mode,
                state,
                threads.removesuffix("t"),
                str(len(ratios)),
                f"**{statistics.median(ratios):.2f}**",
                f"{min(ratios):.2f}",
                f"{max(ratios):.2f}",
            ]
            for (peer, mode, state, threads), ratios in groups.items()
        ],
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
        "Of one call in a process of its own, MB: the text or the file, the ids, and what was needed beyond "
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
    compared = run.of("compared")
    if compared:
        yield _table(
            ["", "ours", "peer", "times as fast"],
            [
                [
                    result["name"],
                    result["ours"],
                    result["theirs"],
                    "**{:.2f}** ({:.2f} to {:.2f})".format(*result["ratio"]),
                ]
                for result in compared
            ],
        )
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


if __name__ == "__main__":
    main()
