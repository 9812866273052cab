"""The plots of reports on one corpus, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bpe_tokenizer.view.plots import (
    Axis,
    Bar,
    Plot,
    Series,
    bar_plot,
    dot_plot,
    line_plot,
    ranked_bars,
)
from bpe_tokenizer.view.reports.report_tables import LENGTHS, language_rows

__all__ = ["figures"]

Facts = Mapping[str, Any]

# Rows of the plot of languages; the table has all.
_MAX_ROWS = 40


def figures(facts: Sequence[Facts], names: Sequence[str]) -> dict[str, Plot]:
    """Return the plots by their titles, which are those of the tables with the same values.

    Args:
        facts: The reports as JSON values.
        names: The name of each tokenizer.
    """
    return dict(_figures(facts, names))


def _figures(facts: Sequence[Facts], names: Sequence[str]) -> Iterator[tuple[str, Plot]]:
    if len(facts) > 1:
        bars = [
            Bar(name, [fact["corpus"]["tokens"]], colour)
            for colour, (name, fact) in enumerate(zip(names, facts, strict=True))
        ]
        axis = Axis("tokens of this corpus; fewer is better")
        yield "Tokens of this corpus", ranked_bars("Tokens of the corpus by tokenizer", axis, bars)
    if all(fact["languages"] for fact in facts):
        yield "Cost of languages", _languages(facts, names)

    def series(key: str, x: str, y: str) -> list[Series]:
        return [
            Series(name, [(each[x], each[y]) for each in fact[key]])
            for name, fact in zip(names, facts, strict=True)
        ]

    curves = series("compression", "vocab_size", "bytes_per_token")
    if any(len(each.points) > 1 for each in curves):
        axes = Axis("vocabulary size, logarithmic", logarithmic=True, base=2), Axis("bytes per token")
        yield (
            "Compression by vocabulary size",
            line_plot("Bytes per token by vocabulary size", *axes, curves),
        )
    ranks = series("rank_frequency", "rank", "count")
    if any(each.points for each in ranks):
        axes = (
            Axis("rank of the token, logarithmic", logarithmic=True),
            Axis("occurrences, logarithmic", logarithmic=True),
        )
        yield "Rank and frequency", line_plot("Occurrences of tokens by rank", *axes, ranks)
    for key, noun in (("corpus", "corpus"), ("vocabulary", "vocabulary")):
        if plot := _lengths(facts, names, key):
            yield f"Token lengths in the {noun}", plot


def _languages(facts: Sequence[Facts], names: Sequence[str]) -> Plot:
    first = facts[0]["languages"]
    costs = [{row["name"]: row["cost"] for row in fact["languages"]["rows"]} for fact in facts]
    bars = [Bar(name, [each.get(name) for each in costs]) for name in language_rows(facts)[:_MAX_ROWS]]
    unit = {"translations": "the same text", "files": "a character", "scripts": "a letter"}[first["by"]]
    return dot_plot(
        f"Cost of languages against {first['reference']}",
        Axis(f"tokens for {unit}, as a multiple of {first['reference']}"),
        names,
        bars,
        (1.0, f"{first['reference']} = 1"),
    )


def _lengths(facts: Sequence[Facts], names: Sequence[str], key: str) -> Plot | None:
    longest = max((each["bytes"] for fact in facts for each in fact["token_lengths"]), default=0)
    bins = {label: among for label, among in LENGTHS.items() if among.start <= longest}
    series = []
    for name, fact in zip(names, facts, strict=True):
        total = sum(each[key] for each in fact["token_lengths"])
        if total:
            shares = [
                100 * sum(each[key] for each in fact["token_lengths"] if each["bytes"] in among) / total
                for among in bins.values()
            ]
            series.append(Series(name, list(enumerate(shares))))
    if not series:
        return None
    unit = "% of the tokens of this corpus" if key == "corpus" else "% of the vocabulary"
    axes = Axis("bytes of the token"), Axis(unit)
    return bar_plot(f"Tokens by length, {unit}", *axes, series, list(bins))
