"""What the languages or scripts of a corpus cost in tokens, against English."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bpe_tokenizer.errors import OptionError, did_you_mean, shorten
from bpe_tokenizer.view.reports.measures import gini
from bpe_tokenizer.view.reports.names import file_labels
from bpe_tokenizer.view.reports.stats import CorpusStats, ratio

__all__ = ["MIN_HEADLINE", "LanguageCost", "LanguageCosts", "file_costs", "find_reference", "script_costs"]

_ENGLISH = frozenset({"en", "eng", "english"})
# Fewer lines are not enough to take files of equally many lines as translations.
_MIN_LINES = 3
# A script with fewer letters is not a sample of its languages.
_MIN_LETTERS = 20
# A sentence at the top speaks of no language or script with fewer characters: about 200 words of English.
MIN_HEADLINE = 1000


@dataclass(frozen=True)
class LanguageCost:
    """The tokens of one language or script against the reference.

    Args:
        name: The label of the file, or the script.
        script: The script of most letters.
        characters: Number of characters; of letters for a script.
        tokens_per_character: Tokens per character; per letter for a script.
        per_character: The same, divided by that of the reference.
        per_byte: Tokens per byte, divided by that of the reference; None for a script.
        same_text: Tokens, divided by those of the reference; None if the files are not translations.
    """

    name: str
    script: str | None
    characters: int
    tokens_per_character: float | None
    per_character: float | None
    per_byte: float | None
    same_text: float | None

    @property
    def cost(self) -> float | None:
        """The cost of the same text if it is known, otherwise that of a character."""
        return self.per_character if self.same_text is None else self.same_text


@dataclass(frozen=True)
class LanguageCosts:
    """The cost of each language or script of a corpus.

    Args:
        by: `"translations"`: the lines of the files are translations of each other, and the cost is that of
            the same text. `"files"`: the files are different texts, and the cost is that of a character.
            `"scripts"`: the cost is that of a letter of each script.
        reference: The label of the file, or the script, that costs 1.
        rows: The costs, in the order of the corpus.
    """

    by: str
    reference: str
    rows: list[LanguageCost]

    @property
    def measure(self) -> str:
        """What the costs compare."""
        return {
            "translations": "tokens for the same text",
            "files": "tokens per character",
            "scripts": "tokens per letter",
        }[self.by]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "by": self.by,
            "reference": self.reference,
            "measure": self.measure,
            "gini": gini([each.cost for each in self.rows if each.cost]),
            "rows": [
                {
                    "name": each.name,
                    "script": each.script,
                    "characters": each.characters,
                    "cost": each.cost,
                    "tokens_per_character": each.tokens_per_character,
                    "cost_per_character": each.per_character,
                    "cost_per_byte": each.per_byte,
                    "cost_of_same_text": each.same_text,
                }
                for each in self.rows
            ],
        }


def find_reference(names: Sequence[str], wanted: str | None = None) -> int | None:
    """Return the index of the file with which others are compared; None if there is none.

    Args:
        names: The names of the files.
        wanted: The name or the label of the file; None for a file whose name has a part `en`, `eng` or
            `english`.

    Raises:
        OptionError: No file has the wanted name.

    Example:
        >>> find_reference(["texts/de.txt", "texts/en.txt"]), find_reference(["a.txt", "b.txt"])
        (1, None)
    """
    labels = file_labels(names)
    if wanted is not None:
        for known in (names, labels):
            if wanted in known:
                return list(known).index(wanted)
        near = did_you_mean(wanted, labels)
        raise OptionError(f"the reference {shorten(wanted)} is not a file of the corpus{near}")
    for index, label in enumerate(labels):
        if _ENGLISH.intersection(re.split(r"[^a-z]+", label.lower())):
            return index
    return None


def file_costs(files: Sequence[tuple[str, CorpusStats]], reference: int) -> LanguageCosts:
    """Compare the files of a corpus with one of them.

    Files of equally many lines (at least three) are taken as translations of each other.

    Args:
        files: The name and the statistics of each file.
        reference: The index of the file that costs 1.

    Example:
        >>> english, german = CorpusStats(9, 9, 2, 3, 4), CorpusStats(12, 12, 2, 6, 4)
        >>> costs = file_costs([("en.txt", english), ("de.txt", german)], 0)
        >>> costs.by, [(each.name, each.cost, each.per_character) for each in costs.rows]
        ('translations', [('en', 1.0, 1.0), ('de', 2.0, 1.5)])
    """
    base = files[reference][1]
    is_parallel = base.lines >= _MIN_LINES and all(each.lines == base.lines for _, each in files)
    labels = file_labels([name for name, _ in files])
    rows = [
        LanguageCost(
            label,
            each.script,
            each.characters,
            ratio(each.tokens, each.characters),
            ratio(each.tokens * base.characters, each.characters * base.tokens),
            ratio(each.tokens * base.bytes, each.bytes * base.tokens),
            ratio(each.tokens, base.tokens) if is_parallel else None,
        )
        for label, (_, each) in zip(labels, files, strict=True)
    ]
    return LanguageCosts("translations" if is_parallel else "files", labels[reference], rows)


def script_costs(scripts: Sequence[dict[str, Any]]) -> LanguageCosts | None:
    """Compare the letters of each script with Latin ones; None without two scripts to compare.

    Args:
        scripts: The scripts of a report.
    """
    known = [each for each in scripts if each["letters"] >= _MIN_LETTERS and each["tokens"]]
    base = next((each for each in known if each["script"] == "Latin"), None)
    if base is None or len(known) < 2:
        return None
    rows = [
        LanguageCost(
            each["script"],
            each["script"],
            each["letters"],
            each["tokens_per_letter"],
            ratio(each["tokens"] * base["letters"], each["letters"] * base["tokens"]),
            None,
            None,
        )
        for each in known
    ]
    return LanguageCosts("scripts", "Latin", rows)
