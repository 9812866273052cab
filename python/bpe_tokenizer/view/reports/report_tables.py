"""Reports of one or several tokenizers as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bpe_tokenizer.view.reports.tables import Cell, Table, name_text, token_text

if TYPE_CHECKING:
    from bpe_tokenizer.view.reports.report import Report

__all__ = ["labels", "report_tables"]

# Tables show the first entries of a long list; --json has all.
_SHOWN = 20
_CORPUS_KEYS = (
    "bytes",
    "characters",
    "words",
    "tokens",
    "bytes_per_token",
    "characters_per_token",
    "fertility",
)
# The rows of the table of lengths in bytes.
_LENGTHS = {
    **{str(k): range(k, k + 1) for k in range(1, 17)},
    "17 to 32": range(17, 33),
    "33 or more": range(33, 1 << 32),
}


def report_tables(reports: Sequence[Report]) -> Iterator[Table]:
    """Yield the tables of reports on the same corpus, side by side.

    Args:
        reports: At least one.
    """
    facts = [report.to_dict() for report in reports]
    names = labels(reports)
    yield _overview(reports, facts, names)
    yield _per_file(facts, names)
    yield _per_script(facts, names)
    yield _lengths(facts, names)
    yield _ranks(reports, facts, names)
    yield _coverage(facts, names)
    yield _compression(reports, facts, names)
    for report, fact, name in zip(reports, facts, names, strict=True):
        yield from _tokens(report, fact, f" of {name}" if len(reports) > 1 else "")


def labels(reports: Sequence[Report]) -> list[str]:
    """Return the tokenizers' labels in headings: its name for a single one, otherwise A, B, C, ..."""
    if len(reports) == 1:
        return [name_text(reports[0].name)]
    return [chr(ord("A") + k) if k < 26 else f"tokenizer {k + 1}" for k in range(len(reports))]


def _labelled(names: Sequence[str], column: str) -> list[str]:
    """Return the headings of a column for each tokenizer."""
    return [f"{column}, {name}" for name in names] if len(names) > 1 else [column]


def _overview(reports: Sequence[Report], facts: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    def row(label: str, value: Callable[[Mapping[str, Any]], Cell]) -> list[Cell]:
        return [label, *(value(fact) for fact in facts)]

    rows: list[list[Cell]] = [
        row("vocabulary size", lambda fact: fact["vocab_size"]),
        row("documents", lambda fact: fact["corpus"]["documents"]),
        *(row(key.replace("_", " "), lambda fact, key=key: fact["corpus"][key]) for key in _CORPUS_KEYS),  # type: ignore[misc]
        row("unused tokens", lambda fact: fact["unused"]["count"]),
        row(
            f"used fewer than {facts[0]['under_used']['below']} times",
            lambda fact: fact["under_used"]["count"],
        ),
        row("unreachable tokens", lambda fact: len(fact["unreachable"])),
        row("reachability undecided", lambda fact: len(fact["reachability_undecided"])),
    ]
    note = (
        "A file is a document. Words are runs without white space; fertility is tokens per word. "
        "Added tokens do not count as unused."
    )
    if len(reports) > 1:
        meant = (f"{name} is {name_text(report.name)}." for name, report in zip(names, reports, strict=True))
        note = " ".join([*meant, note])
    return Table("Overview", ["figure", *names], rows, note)


def _per_file(facts: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    columns = ["file", "bytes", "words"]
    for column in ("tokens", "bytes per token", "fertility"):
        columns += _labelled(names, column)
    rows = []
    for same in zip(*(fact["files"] for fact in facts), strict=True):
        row: list[Cell] = [name_text(same[0]["name"]), same[0]["bytes"], same[0]["words"]]
        for key in ("tokens", "bytes_per_token", "fertility"):
            row += [each[key] for each in same]
        rows.append(row)
    return Table("Files", columns, rows)


def _per_script(facts: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    columns = ["script", "letters", "words"]
    for column in ("tokens", "tokens per letter", "fertility"):
        columns += _labelled(names, column)
    rows = []
    for same in zip(*(fact["scripts"] for fact in facts), strict=True):
        row: list[Cell] = [same[0][key] for key in ("script", "letters", "words")]
        for key in ("tokens", "tokens_per_letter", "fertility"):
            row += [each[key] for each in same]
        rows.append(row)
    note = (
        "A token or word is in the script of its first letter. Scripts that are written without spaces have "
        "no words to count."
    )
    return Table("Scripts", columns, rows, note)


def _lengths(facts: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    found = [{each["bytes"]: each for each in fact["token_lengths"]} for fact in facts]
    columns = [
        "bytes",
        *_labelled(names, "tokens in the vocabulary"),
        *_labelled(names, "tokens of the corpus"),
    ]
    longest = max((length for lengths in found for length in lengths), default=0)
    rows: list[list[Cell]] = []
    for label, among in _LENGTHS.items():
        if longest >= among.start:
            row: list[Cell] = [label]
            for key in ("vocabulary", "corpus"):
                row += [sum(lengths[k][key] for k in lengths if k in among) for lengths in found]
            rows.append(row)
    return Table("Token lengths", columns, rows)


def _ranks(reports: Sequence[Report], facts: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    found = [{each["rank"]: each for each in fact["rank_frequency"]} for fact in facts]
    columns = ["rank"]
    for name in names:
        columns += [*_labelled([name], "count"), "token"] if len(names) == 1 else [f"count, {name}", "token"]
    rows = []
    for rank in sorted(set().union(*found)):
        row: list[Cell] = [rank]
        for report, ranks in zip(reports, found, strict=True):
            entry = ranks.get(rank)
            row += [entry["count"], _shown(report, entry["id"])] if entry else [None, ""]
        rows.append(row)
    return Table("Rank and frequency", columns, rows)


def _coverage(facts: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    columns = ["percent of the corpus", *_labelled(names, "most frequent tokens needed")]
    rows = [
        [same[0]["percent"], *(each["tokens"] for each in same)]
        for same in zip(*(fact["coverage"] for fact in facts), strict=True)
    ]
    return Table("Coverage", columns, rows)


def _compression(
    reports: Sequence[Report], facts: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> Table:
    found = [{each["vocab_size"]: each for each in fact["compression"]} for fact in facts]
    columns = ["vocabulary size", *_labelled(names, "tokens"), *_labelled(names, "bytes per token")]
    rows = [
        [
            size,
            *(curve.get(size, {}).get("tokens") for curve in found),
            *(curve.get(size, {}).get("bytes_per_token") for curve in found),
        ]
        for size in sorted(set().union(*found))
    ]
    notes = ["With only the first merges, computed exactly by undoing the later ones."] if rows else []
    notes += [
        f"{name}: left out, for {report.compression}."
        for name, report in zip(names, reports, strict=True)
        if isinstance(report.compression, str)
    ]
    return Table("Compression by vocabulary size", columns, rows, " ".join(notes))


def _tokens(report: Report, fact: Mapping[str, Any], whose: str) -> Iterator[Table]:
    rows: list[list[Cell]] = [
        [each["id"], each["bytes"], each["count"], _shown(report, each["id"])]
        for each in fact["longest_tokens"]
    ]
    yield Table(f"Longest tokens{whose}", ["id", "bytes", "count", "token"], rows)
    unreachable: list[list[Cell]] = [
        [each["id"], _shown(report, each["id"]), each["reason"]] for each in fact["unreachable"][:_SHOWN]
    ]
    yield Table(
        f"Unreachable tokens{whose}",
        ["id", "token", "reason"],
        unreachable,
        _more(len(fact["unreachable"]), "No text gives these tokens."),
    )
    for key, title, note in (
        ("unused", "Unused tokens", "They do not occur in this corpus."),
        ("under_used", "Under-used tokens", "They occur, but rarely."),
    ):
        ids = fact[key]["ids"]
        listed: list[list[Cell]] = [
            [each, int(report.counts[each]), _shown(report, each)] for each in ids[:_SHOWN]
        ]
        yield Table(f"{title}{whose}", ["id", "count", "token"], listed, _more(len(ids), note))


def _more(count: int, note: str) -> str:
    if not count:
        return "There are none."
    return f"{note} The first {_SHOWN} of {count:,}; --json has all." if count > _SHOWN else note


def _shown(report: Report, token_id: int) -> str:
    return token_text(report.tokenizer.model.core.token(token_id) or b"")
