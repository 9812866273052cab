"""The main results of a report or a comparison in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bpe_tokenizer.console import count_noun
from bpe_tokenizer.view.reports.languages import MIN_HEADLINE

__all__ = ["comparison_summary", "join_words", "report_summary"]

Facts = Mapping[str, Any]

# A gap of less than this share is not worth a sentence.
_EQUAL = 0.005
# Parts of the corpus with a smaller share of the tokens do not decide where the gap is largest.
_MIN_SHARE = 0.001


def report_summary(facts: Facts) -> list[str]:
    """Return the sentences of a report.

    Args:
        facts: The report as JSON values.
    """
    name, corpus = facts["name"], facts["corpus"]
    if not corpus["tokens"]:
        return [f"{name} has nothing to encode: the corpus is empty."]
    size, tokens = count_noun(corpus["bytes"], "byte"), count_noun(corpus["tokens"], "token")
    sentences = [f"{name} encodes {size} as {tokens}: {corpus['bytes_per_token']:.2f} bytes per token."]
    sentences += _cost_sentences(facts)
    if facts["coverage"]:
        needed = next(each["tokens"] for each in facts["coverage"] if each["percent"] == 90)
        frequent = f"{needed:,} of them make" if needed > 1 else "one of them makes"
        sentences.append(
            f"The corpus uses {_percent(facts['used']['share'])} of the vocabulary's tokens; "
            f"{frequent} up 90 % of the corpus."
        )
    if facts["unreachable"]:
        sentences.append(
            f"No text can produce {count_noun(len(facts['unreachable']), 'token')} of the vocabulary."
        )
    return sentences


def comparison_summary(facts: Facts) -> list[str]:
    """Return the sentences of a comparison: who needs the fewest tokens, and where the gap is largest.

    Args:
        facts: The comparison as JSON values.
    """
    tokenizers = facts["tokenizers"]
    best = min(tokenizers, key=lambda each: each["corpus"]["tokens"])
    if not best["corpus"]["tokens"]:
        return ["The corpus is empty: there is nothing to compare."]
    ratios = {(each["first"], each["second"]): each["interval"] for each in facts["token_ratios"]}
    sentences = [
        _gap_sentence(best, other, ratios[best["name"], other["name"]])
        for other in tokenizers
        if other is not best
    ]
    sentences += _fairness_sentences(tokenizers)
    if len(tokenizers) == 2 and None not in facts["overlap"][0]["share_of_each"]:
        shares = zip(facts["overlap"][0]["share_of_each"], tokenizers, strict=True)
        listed = [f"{_percent(share)} of the vocabulary of {each['name']}" for share, each in shares]
        shared = count_noun(facts["overlap"][0]["shared"], "token")
        sentences.append(f"They share {shared}: {join_words(listed)}.")
    found = facts["disagreements"]
    if found["lines"]:
        sentences.append(
            f"{_percent(found['lines_of_same_count'] / found['lines'])} of the lines have the same number of "
            f"tokens with {'both' if len(tokenizers) == 2 else 'all of them'}."
        )
    return sentences


def join_words(words: Sequence[str]) -> str:
    """Return a list in words.

    Example:
        >>> join_words(["a"]), join_words(["a", "b"]), join_words(["a", "b", "c"])
        ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _cost_sentences(facts: Facts) -> list[str]:
    languages = facts["languages"]
    known = _known_costs(languages)
    highest = sorted(known, key=lambda each: -each["cost"])[:3]
    if not highest or highest[0]["cost"] <= 1 + _EQUAL:
        return []
    above = [each for each in highest if each["cost"] > 1]
    listed = join_words(
        [
            f"{each['cost']:.1f} {'times ' * (not k)}{'as many tokens ' * (not k)}in {each['name']}"
            for k, each in enumerate(above)
        ]
    )
    unit = {"translations": "the same text", "files": "a character", "scripts": "a letter"}[languages["by"]]
    return [f"Against {languages['reference']}, {unit} needs {listed}."]


def _known_costs(languages: Facts | None) -> list[Facts]:
    """Return the costs against the reference that rest on enough text, the reference's included."""
    rows = languages["rows"] if languages else []
    enough = [each for each in rows if each["cost"] and each["characters"] >= MIN_HEADLINE]
    base = [each for each in enough if languages and each["name"] == languages["reference"]]
    return [each for each in enough if each not in base] if base else []


def _gap_sentence(best: Facts, other: Facts, interval: Sequence[float] | None) -> str:
    mine, theirs = best["corpus"]["tokens"], other["corpus"]["tokens"]
    gap = 1 - mine / theirs
    if gap < _EQUAL:
        return f"{best['name']} and {other['name']} need about equally many tokens on this corpus."
    sentence = f"{best['name']} needs {_percent(gap)} fewer tokens than {other['name']} on this corpus"
    if interval is not None:
        sentence += f" (95 % interval: {_percent(1 - interval[1])} to {_percent(1 - interval[0])})"
    parts = _parts(best, other)
    if len(parts) > 1:
        name, largest = max(parts, key=lambda part: part[1])
        least, smallest = min(parts, key=lambda part: part[1])
        sentence += f"; the gap is largest for {name}: {_percent(largest)}"
        if smallest < -_EQUAL:
            sentence += f", and {least} needs {_percent(1 - 1 / (1 - smallest))} fewer with {other['name']}"
    return f"{sentence}."


def _parts(best: Facts, other: Facts) -> list[tuple[str, float]]:
    """Return the gap in each file of the corpus, or else in each script."""
    key, label, size = ("files", "label", "characters")
    if len(best["files"]) == 1:
        key, label, size = ("scripts", "script", "letters")
    theirs = {each[label]: each["tokens"] for each in other[key]}
    needed = max(1, _MIN_SHARE * other["corpus"]["tokens"])
    return [
        (each[label], 1 - each["tokens"] / theirs[each[label]])
        for each in best[key]
        if each[size] >= MIN_HEADLINE and theirs.get(each[label], 0) >= needed
    ]


def _fairness_sentences(tokenizers: Sequence[Facts]) -> list[str]:
    """Compare the highest cost of a language between the tokenizers."""
    highest = []
    for each in tokenizers:
        costs = [(row["cost"], row["name"]) for row in _known_costs(each["languages"])]
        if not costs or max(costs)[0] <= 1:
            return []
        highest.append((*max(costs), each["name"]))
    reference = tokenizers[0]["languages"]["reference"]
    listed = join_words([f"{cost:.1f} with {name} ({language})" for cost, language, name in highest])
    return [f"The highest cost against {reference} is {listed}."]


def _percent(share: float) -> str:
    """Return a share in percent: whole numbers, and one decimal below 1."""
    percent = 100 * share
    return f"{percent:.1f} %" if 0 < percent < 1 or 99 < percent < 100 else f"{percent:.0f} %"
