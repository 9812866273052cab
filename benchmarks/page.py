"""Writes docs/benchmarks.md, its chart, and the README's figures from the records.

python -m benchmarks.page [--records DIRECTORY]
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.cases import BASELINES, CALL_SIZES, CORPORA, MIXED, MODES
from benchmarks.measure import spread
from benchmarks.peers import OURS
from benchmarks.records import DIRECTORY, Run, newest, newest_python
from bpe_tokenizer.view.plots import Axis, Bar, ranked_bars

__all__ = ["between_markers", "files", "not_ahead", "readme_rows", "results", "speeds"]

_ROOT = Path(__file__).parents[1]
_BEGIN = "<!-- Written by `python -m benchmarks.page` from benchmarks/records; do not edit. -->"
_END = "<!-- End of the generated part. -->"
_Result = Mapping[str, Any]
# The median, the lowest and the highest.
_Ratio = Sequence[float]


def main() -> None:
    """Write the chart, the page and the rows of the README."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=Path, default=DIRECTORY)
    for path, text in files(parser.parse_args().records).items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")


def files(directory: Path = DIRECTORY) -> dict[Path, str]:
    """Return the contents of all files that show the records.

    Args:
        directory: Where the records are.

    Returns:
        Path to text.

    Raises:
        SystemExit: No record exists.
    """
    suite = newest("suite", directory)
    if suite is None:
        raise SystemExit(f"{directory} has no record; `make bench` makes one")
    found = [
        newest(name, directory) for name in ("training", "loading", "hostile", "corpora", "interpreters")
    ]
    others = {run.about["run"]: run for run in found if run is not None}
    page, readme = _ROOT / "docs" / "benchmarks.md", _ROOT / "README.md"
    text = results(suite, others)
    bars = speeds(suite.of("case"), suite.of("wrong"), (MIXED, *CORPORA))
    return {
        page: between_markers(page.read_text(encoding="utf-8"), text),
        page.with_suffix(".svg"): ranked_bars("Encoding speed", Axis("MB/s"), bars).svg(),
        readme: _with_rows(readme.read_text(encoding="utf-8"), readme_rows(suite, others.get("training"))),
    }


def speeds(cases: Sequence[_Result], wrong: Sequence[_Result], corpora: Sequence[str]) -> list[Bar]:
    """Return the bars of the chart, warm and in one thread: all packages to lists, then gigatoken's arrays.

    Args:
        cases: Results with cl100k, as they are recorded.
        wrong: Cases that were not timed, because their ids are not ours, as they are recorded.
        corpora: The first one with lists is that of the lists; those with arrays are all shown.

    Returns:
        Bars with headings. Ours have another colour.
    """

    def found(mode: str, corpus: str) -> list[Bar]:
        wanted = [mode, corpus, "cl100k", "warm", "1t"]
        results = [case for case in cases if list(case["case"][1:]) == wanted and case["case"][0] != OURS]
        if not results:
            return []
        ours = Bar(OURS, [round(statistics.median(case["ours"] for case in results))], 1)
        return [ours, *(Bar(case["case"][0], [round(case["theirs"])], 0) for case in results)]

    corpus = next((corpus for corpus in corpora if found("list", corpus)), "")
    lists = sorted(found("list", corpus), key=lambda bar: -(bar.values[0] or 0))
    lists += [
        Bar(f"{case['case'][0]}: wrong ids", [None])
        for case in wrong
        if [*case["case"][1:3]] == ["list", corpus]
    ]
    arrays = [
        bar._replace(name=f"{bar.name}, {corpus}")
        for corpus in corpora
        for bar in found("numpy", corpus)
        if bar.name in (OURS, "gigatoken")
    ]
    return [Bar("To lists (cl100k)", []), *lists, Bar("To NumPy arrays (cl100k)", []), *arrays]


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


def results(suite: Run, others: Mapping[str, Run]) -> str:
    """Return all results as Markdown.

    Args:
        suite: A run of `python -m benchmarks`.
        others: Runs of the other programs by name.

    Returns:
        The text.
    """
    cases = suite.of("case")
    compared = [
        {**result, "name": f"{name}, {result['name']}"}
        for name, run in others.items()
        for result in run.of("compared")
        if "target" not in result  # some of the corpora's other sides are ours
    ]
    parts = [
        _about(suite, others),
        "![Encoding speed in MB per second](benchmarks.svg)",
        *_once(suite),
        "## Where we are not ahead",
        *not_ahead(cases, compared),
        *_lengths(cases),
        *_modes(cases),
        *_ours(cases),
        *_memory(suite.of("memory")),
        *_others(others),
        *_left_out(suite),
    ]
    return "\n\n".join(parts) + "\n"


def readme_rows(suite: Run, training: Run | None) -> dict[str, str]:
    """Return the rows of the README's table that hold figures, by their first cell."""

    def cell(peer: str, mode: str, state: str) -> str:
        cases = _select(suite.of("case"), peer=peer, modes=(mode,), state=state, threads="1t")
        return _range([case["ratio"][0] for case in cases])

    peers = ("tiktoken", "tokenizers", "gigatoken", "fastokens")
    rows = {
        name: f"| {name} | **1** | {' | '.join(cell(peer, mode, state) for peer in peers)} | {last} |"
        for name, mode, state, last in (
            ("Encoding to lists, warm, times our time", "list", "warm", "pure Python"),
            ("Encoding to arrays, warm, times our time", "numpy", "warm", "–"),
            ("Encoding to arrays, cold, times our time", "numpy", "cold", "–"),
        )
    }
    if training is not None:
        name = "Training, times our time"
        trained = {
            peer: _range([r["ratio"][0] for r in training.of("compared") if f"against {peer}" in r["name"]])
            for peer in ("tokenizers", "gigatoken")
        }
        rows[name] = (
            f"| {name} | **1** | – | {trained['tokenizers']} | {trained['gigatoken']} | – | pure Python |"
        )
    return rows


def not_ahead(cases: Iterable[_Result], compared: Iterable[_Result]) -> Iterator[str]:
    """Return every comparison whose median is below 1, as Markdown.

    Args:
        cases: Results of cases.
        compared: Results of training and loading.
    """
    slower: dict[str, list[str]] = {}
    for case in cases:
        peer, mode, corpus, vocabulary, state, threads = case["case"]
        if case["ratio"][0] < 1 and peer != OURS:
            title = f"{peer}, `{mode}`, {state}, {_threads(threads)}"
            slower.setdefault(title, []).append(f"{vocabulary} {corpus} {_ratio(case['ratio'])}")
    lines = [f"- {title}: {'; '.join(names)}" for title, names in slower.items()]
    lines += [
        f"- {result['name']}: {_ratio(result['ratio'])}"
        for result in compared
        if result["ratio"][0] < 1 and "against itself" not in result["name"]
    ]
    yield (
        "Every case with a median ratio below 1: the package is faster than we are."
        if lines
        else ("Nowhere: every median ratio is at least 1.")
    )
    if lines:
        yield "\n".join(lines)


def _about(suite: Run, others: Mapping[str, Run]) -> str:
    about = suite.about
    machine = about["machine"]
    seconds = [end.get("seconds", 0) for run in (suite, *others.values()) for end in run.of("end")]
    peers = ", ".join(f"{name} {version}" for name, version in about["peers"].items())
    commits = {f"{run.about['commit']} ({name}, {run.about['time'][:10]})" for name, run in others.items()}
    elsewhere = [text for text in sorted(commits) if not text.startswith(about["commit"])]
    lines = [
        f"- Date: {about['time'][:10]}. Commit: {about['commit']}"
        + (f"; {', '.join(elsewhere)}." if elsewhere else "."),
        f"- Processor: {machine['cpu']}; {machine['cores']} cores, {machine['system']}.",
        f"- Versions: Python {machine['python']}, {peers}.",
        f"- Turns: {about['options']['turns']}; the median counts."
        + (f" Load of the machine before: {machine['load']:.1f}." if "load" in machine else "")
        + (f" All took {sum(seconds) / 60:.0f} minutes." if all(seconds) else ""),
    ]
    older = {run.about["machine"]["python"] for run in (suite, *others.values())}
    older = {python for python in older if tuple(map(int, python.split(".")[:2])) < newest_python()}
    if older:
        lines.append(
            f"- **Measured with Python {', '.join(sorted(older))}, older than Python "
            f"{'.'.join(map(str, newest_python()))}, the newest that the package is tested on.**"
        )
    if not suite.complete:
        lines.append("- **Only a part of the cases, or small texts: no figures to quote.**")
    return "\n".join(lines)


def _select(
    cases: Iterable[_Result], peer: str, modes: Iterable[str], state: str, threads: str
) -> list[_Result]:
    keys = {(peer, mode, state, threads) for mode in modes}
    return [case for case in cases if (case["case"][0], case["case"][1], *case["case"][4:]) in keys]


def _once(suite: Run) -> Iterator[str]:
    """Return the table of all packages, each once: its speed, or what it gets wrong."""
    timed = [case for case in suite.of("case") if case["case"][1:3] == ["list", MIXED]]
    wrong = [case for case in suite.of("wrong") if case["case"][1:3] == ["list", MIXED]]
    if not timed and not wrong:
        return
    yield "## Every package, once"
    yield (
        "Documents of about 20 kB to `list[int]`, one thread, cl100k, equal parts of all corpora. A package "
        "with other ids than ours is not timed; ours are those of tiktoken, as the tests check."
    )
    rows = [
        [case["case"][0], _ratio(case["ratio"]), f"{case['ours']:,.0f} : {case['theirs']:,.0f}"]
        for case in sorted(timed, key=lambda case: case["ratio"][0])
    ]
    rows += [[case["case"][0], "wrong ids", _escaped(case["reason"])] for case in wrong]
    yield _table(["package", "times as fast we are", "MB per second, ours : its"], rows)


def _lengths(cases: Sequence[_Result]) -> Iterator[str]:
    """Return the ratios by the length of a text."""
    rows: dict[str, dict[str, list[_Ratio]]] = {}
    for case in cases:
        peer, mode, _, vocabulary, _, _ = case["case"]
        if mode in CALL_SIZES:
            title = f"{peer}, {vocabulary}, to {'lists' if mode.startswith('call') else 'arrays'}"
            rows.setdefault(title, {}).setdefault(mode.partition("-")[2], []).append(case["ratio"])
    if rows:
        sizes = list(dict.fromkeys(mode.partition("-")[2] for mode in CALL_SIZES))
        sizes.sort(key=lambda size: CALL_SIZES[f"array-{size}"])
        yield "## Texts of every length"
        yield "Texts of this many bytes, one call each (`call-…`, `array-…`); the median over the corpora."
        yield _table(
            ["", *sizes],
            [[title, *(_plain(row.get(size, ())) for size in sizes)] for title, row in rows.items()],
        )


def _modes(cases: Sequence[_Result]) -> Iterator[str]:
    """Return a table with a row per mode and a column per peer."""
    ratios: dict[tuple[str, ...], dict[str, list[_Ratio]]] = {}
    for case in cases:
        peer, mode, corpus, _, cache, threads = case["case"]
        if peer != OURS and mode not in CALL_SIZES and corpus != MIXED:
            row = ratios.setdefault((f"`{mode}`", cache, threads.removesuffix("t")), {})
            row.setdefault(peer, []).append(case["ratio"])
    peers = list(dict.fromkeys(peer for row in ratios.values() for peer in row))
    yield "## Every mode"
    yield (
        "How many times as fast as each package we are: the median over all corpora and vocabularies, and "
        "in brackets the lowest and the highest case. *Warm*: the process has encoded the text before. "
        "*Cold*: the first encode of a new process."
    )
    yield _table(
        ["mode", "cache", "threads", *peers],
        [[*key, *(_median(row.get(peer, ())) for peer in peers)] for key, row in ratios.items()],
    )
    yield "\n".join(f"- `{mode}`: {text}." for mode, text in MODES.items() if mode not in CALL_SIZES)


def _ours(cases: Sequence[_Result]) -> Iterator[str]:
    """Return our own modes compared with plain encoding, and two threads with one."""
    rows: dict[str, dict[str, list[_Ratio]]] = {}
    for case in cases:
        peer, mode, corpus, _, _, threads = case["case"]
        if peer == OURS:
            plain = f"plain encoding (`{BASELINES[mode]}`)" if mode in BASELINES else "one thread"
            title = f"`{mode}`, {_threads(threads)}, against {plain}"
            rows.setdefault(title, {}).setdefault(corpus, []).append(case["ratio"])
    if rows:
        corpora = list(dict.fromkeys(corpus for row in rows.values() for corpus in row))
        yield "## Our own modes"
        yield "The speed of each as a multiple of another one of ours; below 1, it is slower."
        yield _table(
            ["", *corpora],
            [[title, *(_plain(row.get(corpus, ())) for corpus in corpora)] for title, row in rows.items()],
        )


def _memory(results: Sequence[_Result]) -> Iterator[str]:
    if not results:
        return
    yield "## Peak memory"
    yield (
        "One call in a new process with cl100k, in MB: what it needs beyond the text or the file, the ids, "
        "and the process with the vocabulary loaded."
    )
    rows: dict[str, dict[str, str]] = {}
    for each in results:
        peer, mode, corpus, _, _, threads = each["case"]
        rows.setdefault(f"{peer}, `{mode}`, {_threads(threads)}", {})[corpus] = f"{each['extra'] / 1e6:,.0f}"
    corpora = list(dict.fromkeys(corpus for row in rows.values() for corpus in row))
    yield _table(
        ["", *corpora],
        [[title, *(row.get(corpus, "") for corpus in corpora)] for title, row in rows.items()],
    )


def _others(others: Mapping[str, Run]) -> Iterator[str]:
    """Return training, loading and hostile inputs."""
    for name, run in others.items():
        yield f"## {name.capitalize()}"
        if name == "corpora":
            yield from _corpora(run)
        elif run.of("compared"):
            yield _table(
                ["", "ours", "peer", "times as fast"],
                [
                    [each["name"], each["ours"], each["theirs"], _ratio(each["ratio"])]
                    for each in run.of("compared")
                ],
            )
        if run.of("alone"):
            yield "\n".join(f"- {each['name']}: {each['ours']} ({each['said']})." for each in run.of("alone"))
        yield from _growth(run)
        yield from _interpreters(run)


def _interpreters(run: Run) -> Iterator[str]:
    """Return the speed of each mode on each Python."""
    columns: dict[tuple[str, str], None] = {}
    rows: dict[str, dict[tuple[str, str], str]] = {}
    for each in run.of("python"):
        column = (each["package"], each["python"])
        columns[column] = None
        rows.setdefault(each["mode"], {})[column] = f"{each['speed']:,}"
    if rows:
        yield (
            "cl100k on 4 MB of books in one thread. MB per second of processor time; of the short call, "
            "nanoseconds."
        )
        yield _table(
            ["", *(f"{package}, {python}" for package, python in columns)],
            [[mode, *(row.get(column, "") for column in columns)] for mode, row in rows.items()],
        )


def _corpora(run: Run) -> Iterator[str]:
    """Return the speed and the memory from files of documents to token files."""
    if run.of("compared"):
        yield "Times as fast as the other side, and the least that it should be."
        yield _table(
            ["", "ours", "other", "times as fast", "at least"],
            [
                [each["name"], each["ours"], each["theirs"], _ratio(each["ratio"]), f"{each['target']:g}"]
                for each in run.of("compared")
            ],
        )
    peaks: dict[tuple[str, str, str], dict[int, int]] = {}
    for each in run.of("peak"):
        row = peaks.setdefault((each["command"], each["documents"], each["format"]), {})
        row[each["size"]] = each["peak"]
    if peaks:
        sizes = sorted({size for row in peaks.values() for size in row})
        yield "Peak memory of a command by the size of its input, in MB."
        yield _table(
            ["", *(f"{size / 1e6:,.0f} MB" for size in sizes)],
            [
                [
                    f"{command}, {kind} documents, {form}",
                    *(f"{row[size] / 1e6:,.0f}" if size in row else "" for size in sizes),
                ]
                for (command, kind, form), row in peaks.items()
            ],
        )
    for each in run.of("spill"):
        yield (
            f"Training on {each['name']}: {each['limited']}, against {each['unlimited']} without a limit, "
            f"{_ratio(each['times'])} times its time; "
            f"{'the same merges' if each['same_merges'] else 'other merges'}."
        )


def _growth(run: Run) -> Iterator[str]:
    rows: dict[str, dict[int, float]] = {}
    for result in run.of("growth"):
        rows.setdefault(result["input"], {})[result["units"]] = result["ns"]
    if rows:
        units = dict.fromkeys(result["units"] for result in run.of("growth"))
        sizes = sorted({min(units), max(units)})
        (prose,) = run.of("prose")
        yield (
            "Nanoseconds per byte of inputs of these lengths with cl100k and an empty cache, "
            f"and the slowest as a multiple of prose ({prose['ns']:.1f} ns per byte)."
        )
        yield _table(
            ["", *(f"{size:,}" for size in sizes), "times prose"],
            [
                [name, *(f"{row[size]:.1f}" for size in sizes), f"{max(row.values()) / prose['ns']:.1f}"]
                for name, row in rows.items()
            ],
        )


def _left_out(suite: Run) -> Iterator[str]:
    for kind, title in (("wrong", "Wrong results, so not timed"), ("skipped", "Skipped")):
        reasons: dict[str, list[str]] = {}
        for result in suite.of(kind):
            if result["case"][1:3] == ["list", MIXED]:
                continue  # in the table of all packages
            reasons.setdefault(result["reason"], []).append("/".join(result["case"]))
        if reasons:
            yield f"## {title}"
            yield "\n".join(
                f"- {_escaped(reason)} ({names[0]}{f' and {len(names) - 1} more' if names[1:] else ''})"
                for reason, names in reasons.items()
            )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---"] + ["--:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def _ratio(ratio: _Ratio) -> str:
    median, low, high = ratio
    return f"**{median:.2f}** ({low:.2f} to {high:.2f})"


def _median(ratios: Sequence[_Ratio]) -> str:
    """Return the median of several cases' medians, with the lowest and the highest, or the only case."""
    if len(ratios) < 2:
        return "".join(map(_ratio, ratios))
    return _ratio(spread(ratio[0] for ratio in ratios))


def _plain(ratios: Sequence[_Ratio]) -> str:
    """Return the median of several cases' medians alone."""
    return f"{spread(ratio[0] for ratio in ratios)[0]:.2f}" if ratios else ""


def _range(values: Sequence[float]) -> str:
    """Return the lowest and the highest value, rounded as people say them."""
    if not values:
        return "–"
    low, high = min(values), max(values)
    digits = 0 if low >= 5 else 1
    return f"{low:.{digits}f} to {high:.{digits}f}"


def _threads(threads: str) -> str:
    return "1 thread" if threads == "1t" else f"{threads.removesuffix('t')} threads"


def _escaped(reason: str) -> str:
    """Return a reason, which may quote any text, for a table of Markdown."""
    return re.sub(r"([\\`*_|<])", r"\\\1", " ".join(reason.split()))


def _with_rows(text: str, rows: Mapping[str, str]) -> str:
    """Replace the rows of tables that have these first cells."""

    def replaced(line: str) -> str:
        first = line.split("|")[1].strip() if line.startswith("|") else ""
        return rows.get(first, line)

    return "\n".join(map(replaced, text.split("\n")))


if __name__ == "__main__":
    main()
