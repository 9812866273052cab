"""The statistics of several tokenizers on a corpus, side by side."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.readers.positions import SkippedRows
from bpe_tokenizer.view.reports.disagreements import Disagreements, find_disagreements
from bpe_tokenizer.view.reports.documents import Document
from bpe_tokenizer.view.reports.measures import interval, resampled_sums
from bpe_tokenizer.view.reports.names import public_names, tokenizer_labels
from bpe_tokenizer.view.reports.overlap import Overlap, vocabulary_overlap
from bpe_tokenizer.view.reports.report import Report, make_report
from bpe_tokenizer.view.reports.stats import ratio

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer
    from bpe_tokenizer.view.plots import Plot
    from bpe_tokenizer.view.reports.tables import Table

__all__ = ["Comparison", "compare_tokenizers"]


@dataclass(frozen=True)
class Comparison:
    """The statistics of several tokenizers on a corpus, and where they cut it differently.

    Args:
        reports: The report of each tokenizer.
        overlap: The tokens that each two vocabularies share.
        disagreements: Where the tokenizers cut the corpus differently.
    """

    reports: list[Report]
    overlap: list[Overlap]
    disagreements: Disagreements

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.labels)})"

    def _repr_html_(self) -> str:
        from bpe_tokenizer.view.reports.report_html import comparison_fragment

        return comparison_fragment(self)

    def tables(self) -> list[Table]:
        """Return all tables of the comparison."""
        from bpe_tokenizer.view.reports.report_tables import comparison_tables

        return list(comparison_tables(self))

    def figures(self) -> dict[str, Plot]:
        """Return the plots by their titles; `svg()` of one is a file."""
        from bpe_tokenizer.view.reports.figures import figures

        return figures(self.facts["tokenizers"], self.labels)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write all tables and plots, as `Report.save`.

        Args:
            directory: Where to write them; it is made if it does not exist.

        Raises:
            WriteError: A file cannot be written.
        """
        from bpe_tokenizer.view.reports.saving import save_result

        save_result(directory, self.tables(), self.figures())

    def _ratios(self) -> Iterator[dict[str, Any]]:
        """Yield the tokens of each tokenizer as a share of those of each other, with intervals."""
        labels = self.labels
        # Of the same parts of the corpus, drawn once for all pairs.
        tokens = np.array([each.units.columns()[1] for each in self.reports])
        sums = resampled_sums(tokens[:, tokens.all(axis=0)])
        for first, second in permutations(range(len(labels)), 2):
            yield {
                "first": labels[first],
                "second": labels[second],
                "ratio": ratio(self.reports[first].total.tokens, self.reports[second].total.tokens),
                "interval": None if sums is None else interval(sums[first], sums[second]),
            }

    @property
    def labels(self) -> list[str]:
        """A short name for each tokenizer."""
        return tokenizer_labels([each.name for each in self.reports])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return copy.deepcopy(self.facts)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The values of `to_dict`, for those who do not change them."""
        from bpe_tokenizer.view.reports.summary import comparison_summary, report_summary

        names = self.labels
        paths = public_names([report.name for report in self.reports])
        each = [
            {**report.facts, "name": name, "tokenizer": path}
            for name, path, report in zip(names, paths, self.reports, strict=True)
        ]
        files = [name for name, _ in self.reports[0].files]
        shown = dict(zip(files, public_names(files), strict=True))
        facts = {
            "token_ratios": list(self._ratios()),
            "tokenizers": [{**facts, "summary": report_summary(facts)} for facts in each],
            "overlap": [each.to_dict(names) for each in self.overlap],
            "disagreements": self.disagreements.to_dict(
                names, [each.tokenizer for each in self.reports], shown
            ),
        }
        return {"summary": comparison_summary(facts), **facts}


def compare_tokenizers(
    tokenizers: Mapping[str, BPETokenizer] | Sequence[tuple[str, BPETokenizer]],
    corpus: Sequence[Document],
    under_used_below: int = 10,
    progress: Callable[[int], None] | None = None,
    reference: str | None = None,
    skipped: SkippedRows | None = None,
) -> Comparison:
    """Encode a corpus with several tokenizers and compare them.

    The corpus is read once for each tokenizer, and once more line by line.

    Args:
        tokenizers: At least two tokenizers by name, or pairs of a name and a tokenizer.
        corpus: The files.
        under_used_below: Tokens that occur, but fewer times than this, are under-used.
        progress: Called with the number of stored bytes of each step.
        reference: As in `make_report`.
        skipped: Gets the rows that were skipped.

    Raises:
        CorpusError: A file cannot be read, is not a corpus, or is not UTF-8.
        OptionError: There are fewer than two tokenizers, or the reference is not a file of the corpus.

    Example:
        >>> import pathlib, tempfile
        >>> from bpe_tokenizer import BPETokenizer
        >>> made = {text: BPETokenizer().train(text * 9, 258, verbose=False) for text in ("low ", "new ")}
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     path = pathlib.Path(directory, "corpus.txt")
        ...     _ = path.write_bytes(b"low low low")
        ...     found = compare_tokenizers(made, [Document("corpus.txt", path)])
        >>> [each.total.tokens for each in found.reports]
        [5, 11]
    """
    pairs = list(tokenizers.items()) if isinstance(tokenizers, Mapping) else list(tokenizers)
    if len(pairs) < 2:
        raise OptionError("a comparison needs at least two tokenizers")
    reports = [
        # All read the same rows.
        make_report(
            name, tokenizer, corpus, under_used_below, progress, reference, None if number else skipped
        )
        for number, (name, tokenizer) in enumerate(pairs)
    ]
    loaded = [tokenizer for _, tokenizer in pairs]
    return Comparison(reports, vocabulary_overlap(loaded), find_disagreements(loaded, corpus, progress))
