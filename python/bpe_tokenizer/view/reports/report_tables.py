"""Reports of one or several tokenizers as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bpe_tokenizer.display.text import printable
from bpe_tokenizer.view.reports.measures import ORDER
from bpe_tokenizer.view.reports.names import tokenizer_labels
from bpe_tokenizer.view.reports.tables import (
    Cell,
    Column,
    Share,
    Table,
    Times,
    TokenCell,
    name_text,
)

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer
    from bpe_tokenizer.view.reports.comparison import Comparison
    from bpe_tokenizer.view.reports.report import Report

__all__ = [
    "LENGTHS",
    "comparison_tables",
    "cut_tables",
    "difference_table",
    "labels_by_file",
    "language_rows",
    "overlap_tables",
    "report_tables",
    "token_tables",
]

Facts = Mapping[str, Any]

# Tables show the first entries of a long list; --json has all.
_SHOWN = 20
# Files without words that a note names.
_LEFT_OUT = 5
# Characters that a table shows of a line.
_LINE = 60
_CORPUS_KEYS = (
    "bytes",
    "characters",
    "words",
    "tokens",
    "bytes_per_token",
    "characters_per_token",
    "fertility",
)
# The bars of lengths in bytes. The last one has all longer tokens: a few long ones would stretch the plot.
LENGTHS = {**{str(k): range(k, k + 1) for k in range(1, 17)}, "17+": range(17, 1 << 32)}
_NOTE = "A file is a document. Words are those of UAX 29, and fertility is tokens per word."
_UNSPACED = "Scripts that separate no words (Han, Kana, Thai, ...) have no words to count, and no fertility."


def report_tables(reports: Sequence[Report]) -> Iterator[Table]:
    """Yield the tables of reports on the same corpus, side by side.

    Args:
        reports: At least one.
    """
    facts = [report.facts for report in reports]
    names = tokenizer_labels([report.name for report in reports])
    yield _overview(facts, names)
    yield from _languages(facts, names)
    yield _per_file(facts, names)
    yield _per_script(facts, names)
    yield _lengths(facts, names)
    yield _ranks(reports, facts, names)
    yield _coverage(facts, names)
    yield _compression(reports, facts, names)
    for report, fact, name in zip(reports, facts, names, strict=True):
        yield from token_tables(report, fact, f" of {name}" if len(reports) > 1 else "")


def comparison_tables(comparison: Comparison) -> Iterator[Table]:
    """Yield all tables of a comparison.

    Args:
        comparison: The comparison.
    """
    yield from report_tables(comparison.reports)
    yield from overlap_tables(comparison)
    yield example_table(comparison)
    yield difference_table(comparison)
    yield from cut_tables(comparison)


def _columns(names: Sequence[str], column: str) -> list[Column]:
    """Return the heading of a figure for each tokenizer."""
    return [(column, name) for name in names] if len(names) > 1 else [column]


def _overview(facts: Sequence[Facts], names: Sequence[str]) -> Table:
    def row(label: str, value: Callable[[Facts], Cell]) -> list[Cell]:
        return [label, *(value(fact) for fact in facts)]

    rows: list[list[Cell]] = [
        row("vocabulary size", lambda fact: fact["vocab_size"]),
        row("documents", lambda fact: fact["corpus"]["documents"]),
        *(row(key.replace("_", " "), lambda fact, key=key: fact["corpus"][key]) for key in _CORPUS_KEYS),  # type: ignore[misc]
        *(
            row(f"95 % interval of bytes per token, {end}", lambda fact, k=k: _end(fact, k))  # type: ignore[misc]
            for k, end in enumerate(("from", "to"))
        ),
        row("bytes for an interval of ±1 %", lambda fact: fact["sample"]["bytes_for_one_percent"]),
        row("entropy of the tokens, in bits", lambda fact: fact["information"]["entropy"]),
        row(f"Rényi efficiency of order {ORDER}", lambda fact: fact["information"]["renyi_efficiency"]),
        row("average rank of a token", lambda fact: fact["information"]["average_rank"]),
        row("type-token ratio", lambda fact: fact["information"]["type_token_ratio"]),
        row(
            "Gini's coefficient of the costs of languages", lambda fact: (fact["languages"] or {}).get("gini")
        ),
        row("used tokens", lambda fact: _share(fact["used"]["share"])),
        row("unused tokens", lambda fact: fact["unused"]["count"]),
        row(
            f"used fewer than {facts[0]['under_used']['below']} times",
            lambda fact: fact["under_used"]["count"],
        ),
        row("unreachable tokens", lambda fact: len(fact["unreachable"])),
        row("reachability undecided", lambda fact: len(fact["reachability_undecided"])),
    ]
    note = f"{_NOTE} Added tokens do not count as unused."
    if facts[0]["corpus"]["words"] is None:
        rows = [row for row in rows if any(cell is not None for cell in row[1:])]
        note = f"A file is a document. {_UNSPACED} Added tokens do not count as unused."
    elif without := facts[0]["corpus"]["files_without_words"]:
        more = f" and {len(without) - _LEFT_OUT:,} more" if len(without) > _LEFT_OUT else ""
        note = f"{note} {_UNSPACED} Left out of both: {', '.join(without[:_LEFT_OUT])}{more}."
    return Table("Overview", ["figure", *names], rows, note)


def _languages(facts: Sequence[Facts], names: Sequence[str]) -> Iterator[Table]:
    found = [fact["languages"] for fact in facts]
    # Tokenizers may give a script tokens that others do not, and then have no row of it.
    if any(each is None for each in found):
        return
    costs = [{row["name"]: row for row in each["rows"]} for each in found]
    first = found[0]
    rows: list[list[Cell]] = []
    for name in language_rows(facts):
        cells: list[Cell] = [name, *(_times(each.get(name, {}).get("cost")) for each in costs)]
        rows.append(cells if first["by"] == "scripts" else [*cells, costs[0][name]["script"] or ""])
    columns: list[Column] = ["script" if first["by"] == "scripts" else "file"]
    columns += _columns(names, f"cost against {first['reference']}")
    columns += ["script"] if first["by"] != "scripts" else []
    yield Table("Cost of languages", columns, rows, cost_note(first))


def language_rows(facts: Sequence[Facts]) -> list[str]:
    """Return the languages or scripts of reports on one corpus, the most costly first.

    Args:
        facts: The reports as JSON values, all with costs of languages.
    """
    highest: dict[str, float] = {row["name"]: 0 for row in facts[0]["languages"]["rows"]}
    for fact in facts:
        for row in fact["languages"]["rows"]:
            if row["name"] in highest:
                highest[row["name"]] = max(highest[row["name"]], row["cost"] or 0)
    return sorted(highest, key=lambda name: -highest[name])


def cost_note(languages: Facts) -> str:
    """Return what the costs of languages compare.

    Args:
        languages: The costs as JSON values.
    """
    reference = languages["reference"]
    return {
        "translations": (
            "The files have equally many lines, so they count as translations of each other. The cost is the "
            f"number of tokens for the same text, divided by that of {reference}."
        ),
        "files": (
            f"The cost is the number of tokens per character, divided by that of {reference}. The files are "
            "different texts, so a script that writes a word in fewer characters costs more here."
        ),
        "scripts": (
            "The cost is the number of tokens per letter, divided by that of Latin letters. A script that "
            "writes a word in fewer letters costs more here."
        ),
    }[languages["by"]]


def _per_file(facts: Sequence[Facts], names: Sequence[str]) -> Table:
    columns: list[Column] = ["file", "bytes", "words"]
    keys = ("tokens", "bytes_per_token", "tokens_per_character", "fertility")
    for key in keys:
        columns += _columns(names, key.replace("_", " "))
    rows = []
    for same in zip(*(fact["files"] for fact in facts), strict=True):
        row: list[Cell] = [name_text(same[0]["label"]), same[0]["bytes"], same[0]["words"]]
        for key in keys:
            row += [each[key] for each in same]
        rows.append(row)
    note = "" if all(each["words"] is not None for each in facts[0]["files"]) else _UNSPACED
    return Table("Files", columns, rows, note)


def _per_script(facts: Sequence[Facts], names: Sequence[str]) -> Table:
    columns: list[Column] = ["script", "letters", "words"]
    for column in ("tokens", "tokens per letter", "fertility"):
        columns += _columns(names, column)
    rows = []
    for same in zip(*(fact["scripts"] for fact in facts), strict=True):
        row: list[Cell] = [same[0][key] for key in ("script", "letters", "words")]
        for key in ("tokens", "tokens_per_letter", "fertility"):
            row += [each[key] for each in same]
        rows.append(row)
    note = f"A token or word is in the script of its first letter. {_UNSPACED}"
    return Table("Scripts", columns, rows, note)


def _lengths(facts: Sequence[Facts], names: Sequence[str]) -> Table:
    found = [{each["bytes"]: each for each in fact["token_lengths"]} for fact in facts]
    columns: list[Column] = ["bytes", *_columns(names, "tokens in the vocabulary")]
    columns += _columns(names, "tokens of the corpus")
    longest = max((length for lengths in found for length in lengths), default=0)
    rows: list[list[Cell]] = []
    for label, among in LENGTHS.items():
        if longest >= among.start:
            row: list[Cell] = [label]
            for key in ("vocabulary", "corpus"):
                row += [sum(lengths[k][key] for k in lengths if k in among) for lengths in found]
            rows.append(row)
    return Table("Token lengths", columns, rows)


def _ranks(reports: Sequence[Report], facts: Sequence[Facts], names: Sequence[str]) -> Table:
    found = [{each["rank"]: each for each in fact["rank_frequency"]} for fact in facts]
    columns: list[Column] = ["rank"]
    for name in names:
        columns += [(name, "count"), (name, "token")] if len(names) > 1 else ["count", "token"]
    rows = []
    last = {max(each) for each in found if each}
    for rank in sorted(set().union(*found)):
        # The plot has more points than people read.
        if str(rank)[0] not in "125" and rank not in last:
            continue
        row: list[Cell] = [rank]
        for report, ranks in zip(reports, found, strict=True):
            entry = ranks.get(rank)
            row += [entry["count"], _token(report.tokenizer, entry["id"])] if entry else [None, ""]
        rows.append(row)
    return Table("Rank and frequency", columns, rows)


def _coverage(facts: Sequence[Facts], names: Sequence[str]) -> Table:
    columns: list[Column] = ["percent of the corpus", *_columns(names, "most frequent tokens needed")]
    rows = [
        [same[0]["percent"], *(each["tokens"] for each in same)]
        for same in zip(*(fact["coverage"] for fact in facts), strict=True)
    ]
    return Table("Coverage", columns, rows)


def _compression(reports: Sequence[Report], facts: Sequence[Facts], names: Sequence[str]) -> Table:
    found = [{each["vocab_size"]: each for each in fact["compression"]} for fact in facts]
    columns: list[Column] = ["vocabulary size", *_columns(names, "tokens")]
    columns += _columns(names, "bytes per token")
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


def token_tables(report: Report, fact: Facts, whose: str) -> Iterator[Table]:
    """Yield the tables of single tokens: the longest, unreachable, unused and under-used ones.

    Args:
        report: The report.
        fact: The report as JSON values.
        whose: What follows the titles.
    """
    tokenizer = report.tokenizer
    rows: list[list[Cell]] = [
        [each["id"], each["bytes"], each["count"], _token(tokenizer, each["id"])]
        for each in fact["longest_tokens"]
    ]
    yield Table(f"Longest tokens{whose}", ["id", "bytes", "count", "token"], rows)
    unreachable: list[list[Cell]] = [
        [each["id"], _token(tokenizer, each["id"]), each["reason"]] for each in fact["unreachable"][:_SHOWN]
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
            [each, int(report.counts[each]), _token(tokenizer, each)] for each in ids[:_SHOWN]
        ]
        yield Table(f"{title}{whose}", ["id", "count", "token"], listed, _more(len(ids), note))


def overlap_tables(comparison: Comparison) -> Iterator[Table]:
    """Yield the matrix of the tokens that vocabularies share, and of their share of the tokens in either.

    Args:
        comparison: The comparison.
    """
    names = comparison.labels
    pairs = {(each.first, each.second): each for each in comparison.overlap}
    sizes = {k: size for each in comparison.overlap for k, size in zip(each[:2], each.sizes, strict=True)}
    shared: list[list[Cell]] = []
    jaccard: list[list[Cell]] = []
    for i, name in enumerate(names):
        found = [pairs.get((min(i, j), max(i, j))) for j in range(len(names))]
        shared.append([name, *(each.shared if each else sizes[i] for each in found)])
        jaccard.append([name, *(_share(each.jaccard) if each else Share(1) for each in found)])
    note = "Tokens are compared by the bytes of their text, without added tokens."
    yield Table("Shared tokens", ["tokenizer", *names], shared, note)
    note = "The shared tokens as a share of the tokens in either vocabulary (Jaccard index)."
    yield Table("Overlap of vocabularies", ["tokenizer", *names], jaccard, note)


def example_table(comparison: Comparison) -> Table:
    """Return the texts of which the tokenizers make the most different numbers of tokens.

    Args:
        comparison: The comparison.
    """
    names, labels = comparison.labels, labels_by_file(comparison)
    rows: list[list[Cell]] = [
        [labels[each.file], each.line, *(len(tokens.ids) for tokens in each.tokens), _line(each.text)]
        for each in comparison.disagreements.examples
    ]
    columns: list[Column] = ["file", "line", *_columns(names, "tokens"), "text"]
    note = "The lines, or parts of long lines, with the largest ratio of tokens; a few of each script."
    return Table("Where the tokenizers disagree most", columns, rows, note)


def difference_table(comparison: Comparison) -> Table:
    """Return the lines whose numbers of tokens differ most.

    Args:
        comparison: The comparison.
    """
    found, names, labels = comparison.disagreements, comparison.labels, labels_by_file(comparison)
    rows: list[list[Cell]] = [
        [labels[each.file], each.number, *each.tokens, _line(each.text)] for each in found.largest
    ]
    same = f"{found.same_count:,} of {found.lines:,}"
    note = f"Each line alone; {same} have the same number of tokens with every tokenizer."
    columns: list[Column] = ["file", "line", *_columns(names, "tokens"), "text"]
    return Table("Lines with the largest differences", columns, rows, note)


def cut_tables(comparison: Comparison) -> Iterator[Table]:
    """Yield the tokens of a tokenizer that another one cuts.

    Args:
        comparison: The comparison.
    """
    names, tokenizers = comparison.labels, [each.tokenizer for each in comparison.reports]
    for each in comparison.disagreements.cuts:
        whole, by = tokenizers[each.whole], tokenizers[each.by]
        rows: list[list[Cell]] = [
            [int(each.times[k]), _token(whole, k), _token(by, *each.into[k])] for k in each.most_frequent()
        ]
        yield Table(
            f"Tokens of {names[each.whole]} that {names[each.by]} cuts",
            ["times", "token", "first split"],
            rows,
            f"{int(each.times.sum()):,} times in total.",
        )


def labels_by_file(comparison: Comparison) -> dict[str, str]:
    """Return the short name of each file of the corpus."""
    report = comparison.reports[0]
    labels = [name_text(each["label"]) for each in report.facts["files"]]
    return dict(zip((name for name, _ in report.files), labels, strict=True))


def _more(count: int, note: str) -> str:
    if not count:
        return "There are none."
    return f"{note} The first {_SHOWN} of {count:,}; --json has all." if count > _SHOWN else note


def _line(line: str) -> str:
    """Return the beginning of a line in quotes."""
    return f'"{printable(line[:_LINE].encode())}"' + "..." * (len(line) > _LINE)


def _token(tokenizer: BPETokenizer, *ids: int) -> TokenCell:
    return TokenCell(tuple(tokenizer.model.core.token(each) or b"" for each in ids))


def _end(fact: Facts, end: int) -> float | None:
    interval: Sequence[float] | None = fact["sample"]["bytes_per_token"]
    return None if interval is None else interval[end]


def _share(value: float | None) -> Share | None:
    return None if value is None else Share(value)


def _times(value: float | None) -> Times | None:
    return None if value is None else Times(value)
