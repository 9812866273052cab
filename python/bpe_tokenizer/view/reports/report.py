"""The statistics of a tokenizer on a corpus."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.errors import shorten
from bpe_tokenizer.readers.positions import SkippedRows
from bpe_tokenizer.view.reports.compression import CompressionPoint, compression_curve
from bpe_tokenizer.view.reports.documents import Document, read_texts
from bpe_tokenizer.view.reports.languages import LanguageCosts, file_costs, find_reference, script_costs
from bpe_tokenizer.view.reports.measures import Units, information
from bpe_tokenizer.view.reports.names import file_labels, public_names, tokenizer_labels
from bpe_tokenizer.view.reports.reachability import Reachability, reachability
from bpe_tokenizer.view.reports.stats import (
    CorpusStats,
    TextCounter,
    TokenCounter,
    ratio,
    script_letters,
    script_stats,
)

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer
    from bpe_tokenizer.view.plots import Plot
    from bpe_tokenizer.view.reports.tables import Table

__all__ = ["Report", "make_report"]

# Length of the list of the longest tokens.
_LONGEST = 10
# Characters of a part of a long text, which a bootstrap draws.
_UNIT = 1 << 14
# Percentages of the corpus, for its coverage by the most frequent tokens.
_SHARES = (50, 90, 99)


@dataclass(frozen=True)
class Report:
    """The statistics of a tokenizer on a corpus.

    Args:
        name: The tokenizer's name for people.
        tokenizer: The tokenizer.
        files: The name and the statistics of each file, in order.
        scripts: The statistics of each script.
        counts: How often each id occurs, int64, indexed by id.
        under_used_below: Tokens that occur, but fewer times than this, are under-used.
        reachability: Which of the unused tokens are unreachable.
        compression: The number of tokens with fewer merges, or the reason why it is unknown.
        reference: Index of the file with whose cost the others are compared; None for none.
        documents: Number of documents; None for the number of files.
        units: The parts of the corpus that a bootstrap draws.
    """

    name: str
    tokenizer: BPETokenizer
    files: list[tuple[str, CorpusStats]]
    scripts: list[dict[str, Any]]
    counts: npt.NDArray[np.int64]
    under_used_below: int
    reachability: Reachability
    compression: list[CompressionPoint] | str
    reference: int | None = None
    documents: int | None = None
    units: Units = field(default_factory=Units)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(name={shorten(self.name)}, tokenizer={self.tokenizer}, "
            f"files={len(self.files):,}, tokens={self.total.tokens:,})"
        )

    def _repr_html_(self) -> str:
        from bpe_tokenizer.view.reports.report_html import report_fragment

        return report_fragment(self)

    def tables(self) -> list[Table]:
        """Return all tables of the report."""
        from bpe_tokenizer.view.reports.report_tables import report_tables

        return list(report_tables([self]))

    def figures(self) -> dict[str, Plot]:
        """Return the plots by their titles; `svg()` of one is a file."""
        from bpe_tokenizer.view.reports.figures import figures

        return figures([self.facts], [self.label])

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write every table as CSV and LaTeX, and every plot as SVG and, with the extra `png`, as PNG.

        Args:
            directory: Where to write them; it is made if it does not exist.

        Raises:
            WriteError: A file cannot be written.
        """
        from bpe_tokenizer.view.reports.saving import save_result

        save_result(directory, self.tables(), self.figures())

    @property
    def label(self) -> str:
        """The tokenizer's short name."""
        return tokenizer_labels([self.name])[0]

    @property
    def total(self) -> CorpusStats:
        """The statistics of all files together."""
        return CorpusStats.total(each for _, each in self.files)

    @property
    def languages(self) -> LanguageCosts | None:
        """The cost of each file against the one in English, or else of each script against Latin letters.

        None if the corpus has nothing to compare.
        """
        if self.reference is not None and len(self.files) > 1 and self.files[self.reference][1].tokens:
            return file_costs(self.files, self.reference)
        return script_costs(self.scripts)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; tokens as `info --json` writes them.

        Example:
            >>> import pathlib, tempfile
            >>> from bpe_tokenizer import BPETokenizer
            >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
            >>> with tempfile.TemporaryDirectory() as directory:
            ...     path = pathlib.Path(directory, "corpus.txt")
            ...     _ = path.write_bytes(b"low lower")
            ...     found = make_report("words", tokenizer, [Document("corpus.txt", path)]).to_dict()
            >>> found["corpus"]["bytes_per_token"], found["unused"]["count"], found["summary"][0]
            (1.8, 254, 'words encodes 9 bytes as 5 tokens: 1.80 bytes per token.')
        """
        return copy.deepcopy(self.facts)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The values of `to_dict`, for those who do not change them."""
        from bpe_tokenizer.view.reports.summary import report_summary

        unused = _unused(self.tokenizer, self.counts)
        under_used = self._under_used()
        size, used = len(_merged_ids(self.tokenizer)), int(np.count_nonzero(self.counts))
        names = [name for name, _ in self.files]
        labels = file_labels(names)
        languages = self.languages
        facts = {
            "tokenizer": public_names([self.name])[0],
            "name": self.label,
            "vocab_size": self.tokenizer.vocab_size,
            "corpus": {
                "documents": len(self.files) if self.documents is None else self.documents,
                **self.total.to_dict(),
                **self._words(labels),
            },
            "information": information(self.counts),
            "sample": self.units.to_dict(),
            "files": [
                {"name": name, "label": label, **each.to_dict()}
                for name, label, (_, each) in zip(public_names(names), labels, self.files, strict=True)
            ],
            "scripts": self.scripts,
            "languages": languages and languages.to_dict(),
            "token_lengths": self._lengths(),
            "rank_frequency": self._ranks(),
            "coverage": self._coverage(),
            "used": {"count": used, "share": ratio(size - len(unused), size)},
            "unused": {"count": len(unused), "ids": unused},
            "under_used": {
                "below": self.under_used_below,
                "count": len(under_used),
                "ids": under_used,
            },
            "unreachable": [
                {**self._token(each), "reason": reason}
                for each, reason in self.reachability.unreachable.items()
            ],
            "reachability_undecided": self.reachability.undecided,
            "longest_tokens": self._longest(),
            "compression": self._compression(),
            "compression_left_out": self.compression if isinstance(self.compression, str) else None,
        }
        return {"summary": report_summary(facts), **facts}

    def _words(self, labels: Sequence[str]) -> dict[str, Any]:
        """Return the words and the fertility of the files that separate words."""
        separated = [each for _, each in self.files if each.has_words]
        total = CorpusStats.total(separated)
        without = [label for label, (_, each) in zip(labels, self.files, strict=True) if not each.has_words]
        return {
            "words": total.words if separated else None,
            "fertility": total.fertility,
            "files_without_words": without,
        }

    def _token(self, token_id: int) -> dict[str, Any]:
        return {
            "id": token_id,
            "token": self.tokenizer.convert_ids_to_tokens(token_id),
            "count": int(self.counts[token_id]),
        }

    def _under_used(self) -> list[int]:
        rare = np.flatnonzero((self.counts > 0) & (self.counts < self.under_used_below))
        return [int(each) for each in rare]

    def _lengths(self) -> list[dict[str, int]]:
        """Count tokens by their length in bytes, in the vocabulary and in the corpus."""
        ids = np.array(_merged_ids(self.tokenizer), dtype=np.int64)
        vocab = self.tokenizer.vocab
        lengths = np.array([len(vocab[each]) for each in ids.tolist()], dtype=np.int64)
        in_vocabulary = np.bincount(lengths)
        in_corpus = np.zeros(len(in_vocabulary), dtype=np.int64)
        np.add.at(in_corpus, lengths, self.counts[ids])
        return [
            {"bytes": k, "vocabulary": int(in_vocabulary[k]), "corpus": int(in_corpus[k])}
            for k in np.flatnonzero(in_vocabulary).tolist()
        ]

    def _by_frequency(self) -> npt.NDArray[np.int64]:
        """Return the ids that occur, the most frequent first; ties by id."""
        order = np.argsort(-self.counts, kind="stable")
        return order[: int(np.count_nonzero(self.counts))]

    def _ranks(self) -> list[dict[str, Any]]:
        order = self._by_frequency()
        return [{"rank": rank, **self._token(int(order[rank - 1]))} for rank in _log_ranks(len(order))]

    def _coverage(self) -> list[dict[str, int]]:
        """Return how many of the most frequent tokens cover each percentage of the corpus."""
        running = np.cumsum(self.counts[self._by_frequency()])
        if not len(running):
            return []
        needed = [int(np.searchsorted(running * 100, share * running[-1])) + 1 for share in _SHARES]
        return [{"percent": share, "tokens": each} for share, each in zip(_SHARES, needed, strict=True)]

    def _longest(self) -> list[dict[str, Any]]:
        vocab = self.tokenizer.vocab
        longest = sorted(_merged_ids(self.tokenizer), key=lambda each: (-len(vocab[each]), each))[:_LONGEST]
        return [{**self._token(each), "bytes": len(vocab[each])} for each in longest]

    def _compression(self) -> list[dict[str, Any]]:
        if isinstance(self.compression, str):
            return []
        size = self.total.bytes
        return [
            {**each._asdict(), "bytes_per_token": round(size / each.tokens, 4)}
            for each in self.compression
            if each.tokens
        ]


def make_report(
    name: str,
    tokenizer: BPETokenizer,
    corpus: Sequence[Document],
    under_used_below: int = 10,
    progress: Callable[[int], None] | None = None,
    reference: str | None = None,
    skipped: SkippedRows | None = None,
) -> Report:
    """Encode a corpus and compute its statistics.

    A text file is one document, encoded incrementally; a row of another file is one. Special tokens in them
    are plain text.

    Args:
        name: The tokenizer's name for people.
        tokenizer: The tokenizer.
        corpus: The files.
        under_used_below: Tokens that occur, but fewer times than this, are under-used.
        progress: Called with the number of stored bytes of each step.
        reference: The name of the file with whose cost the others are compared; None for the file in
            English, if a name tells: `en.txt`, `english/news.txt`.
        skipped: Gets the rows that were skipped.

    Raises:
        CorpusError: A file cannot be read, is not a corpus, or is not UTF-8.
        OptionError: The reference is not a file of the corpus.

    Example:
        >>> import pathlib, tempfile
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     path = pathlib.Path(directory, "corpus.txt")
        ...     _ = path.write_bytes(b"low lower")
        ...     report = make_report("words", tokenizer, [Document("corpus.txt", path)])
        >>> report.total
        CorpusStats(bytes=9, characters=9, words=2, tokens=5, lines=1, letters={'Latin': 8})
    """
    compared = find_reference([each.name for each in corpus], reference)
    text, tokens, units = TextCounter(), TokenCounter(tokenizer), Units()
    found = [(each.name, *_count(tokenizer, each, text, tokens, units, progress, skipped)) for each in corpus]
    files = [(file_name, stats) for file_name, stats, _ in found]
    counts = tokens.counts
    return Report(
        name,
        tokenizer,
        files,
        list(script_stats(text, tokens)),
        counts,
        under_used_below,
        reachability(tokenizer, _unused(tokenizer, counts)),
        compression_curve(tokenizer.model.core, counts),
        compared,
        sum(documents for _, _, documents in found),
        units,
    )


def _count(
    tokenizer: BPETokenizer,
    document: Document,
    text: TextCounter,
    tokens: TokenCounter,
    units: Units,
    progress: Callable[[int], None] | None,
    skipped: SkippedRows | None,
) -> tuple[CorpusStats, int]:
    """Return the statistics of a file, and its number of documents."""

    def counted(blocks: Iterator[str]) -> Iterator[str]:
        for block in blocks:
            for at in range(0, len(block), _UNIT):
                part = block[at : at + _UNIT]
                before = tokens.total
                text.add(part)
                yield part
                units.add(len(part.encode()), tokens.total - before)

    size, lines, characters = text.bytes, text.lines, text.characters.copy()
    words, count = int(text.words.sum()), int(tokens.counts.sum())
    documents = 0
    for part in read_texts(document, progress, skipped):
        if isinstance(part, list):
            documents += len(part)
            text.add_documents(part)
            row, offsets = tokenizer.encode_ragged(part)
            tokens.add(row.tolist())
            for each, length in zip(part, np.diff(offsets).tolist(), strict=True):
                units.add(len(each.encode()), length)
        else:
            documents += 1
            for ids in tokenizer.encode_streaming(counted(part)):
                tokens.add(ids)
            text.finish()
        tokens.finish()
    characters = text.characters - characters
    stats = CorpusStats(
        text.bytes - size,
        int(characters.sum()),
        int(text.words.sum()) - words,
        int(tokens.counts.sum()) - count,
        text.lines - lines,
        script_letters(characters),
    )
    return stats, documents


def _merged_ids(tokenizer: BPETokenizer) -> list[int]:
    """Return the ids of merged tokens: all but added tokens and the unknown token."""
    added = {token.id for token in tokenizer.model.core.added_tokens}
    return [each for each in tokenizer.vocab if each not in added and each != tokenizer.model.core.unk_id]


def _unused(tokenizer: BPETokenizer, counts: npt.NDArray[np.int64]) -> list[int]:
    return [each for each in _merged_ids(tokenizer) if not counts[each]]


def _log_ranks(length: int) -> list[int]:
    """Return ranks from 1 to `length`, spaced logarithmically: 1, 2, 3, 5, 7, 10, 20, ..."""
    ranks = {digit * 10**power for power in range(len(str(length))) for digit in (1, 2, 3, 5, 7)}
    return sorted({rank for rank in ranks if rank < length} | ({length} if length else set()))
