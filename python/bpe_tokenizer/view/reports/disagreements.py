"""Where tokenizers cut a corpus differently."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.view.reports.documents import Document, read_lines
from bpe_tokenizer.view.reports.report_tables import labels
from bpe_tokenizer.view.reports.tables import Cell, Table, name_text, token_text

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer
    from bpe_tokenizer.view.reports.report import Report

__all__ = ["Cuts", "Disagreements", "Line", "disagreement_tables", "find_disagreements"]

# Lengths of the lists of lines and of tokens.
_LINES, _TOKENS = 10, 15
# Number of characters that a table shows of a line.
_SHOWN = 60


class Line(NamedTuple):
    """A line whose number of tokens differs between tokenizers.

    Args:
        file: The name of its file.
        number: Its line number, from 1.
        text: The line with its line end.
        tokens: The number of tokens of the line alone, by tokenizer.
    """

    file: str
    number: int
    text: str
    tokens: tuple[int, ...]


class Cuts(NamedTuple):
    """Tokens of one tokenizer that another tokenizer splits.

    Args:
        whole: Index of the tokenizer of the tokens.
        by: Index of the tokenizer that splits them.
        times: How often each id is split, int64, indexed by id.
        into: For each id, the ids of the other tokenizer that overlap its first split.
    """

    whole: int
    by: int
    times: npt.NDArray[np.int64]
    into: dict[int, list[int]]


@dataclass(frozen=True)
class Disagreements:
    """Where tokenizers cut a corpus differently. Each line is encoded alone.

    Args:
        lines: Number of lines.
        same_count: Number of lines that have the same number of tokens with every tokenizer.
        largest: The lines with the largest differences, the largest first.
        cuts: The splits between the first tokenizer and each other one, in both directions.
    """

    lines: int
    same_count: int
    largest: list[Line]
    cuts: list[Cuts]

    def to_dict(self, reports: Sequence[Report]) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "lines": self.lines,
            "lines_of_same_count": self.same_count,
            "largest_differences": [
                {"file": each.file, "line": each.number, "tokens": list(each.tokens), "text": each.text}
                for each in self.largest
            ],
            "cuts": [
                {
                    "tokens_of": reports[each.whole].name,
                    "cut_by": reports[each.by].name,
                    "times": int(each.times.sum()),
                    "most_frequent": [
                        {
                            "id": token_id,
                            "token": reports[each.whole].tokenizer.convert_ids_to_tokens(token_id),
                            "times": int(each.times[token_id]),
                            "into": reports[each.by].tokenizer.convert_ids_to_tokens(each.into[token_id]),
                        }
                        for token_id in _most_frequent(each)
                    ],
                }
                for each in self.cuts
            ],
        }


class _Spans(NamedTuple):
    """The tokens of a block of lines, with their byte spans in the block and their number for each line."""

    ids: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    counts: list[int]


def find_disagreements(
    tokenizers: Sequence[BPETokenizer],
    corpus: Sequence[Document],
    progress: Callable[[int], None] | None = None,
) -> Disagreements:
    """Encode each line of a corpus alone with several tokenizers, and compare the boundaries.

    Special tokens are plain text. Lines of more than 65,536 characters are compared in parts.

    Args:
        tokenizers: At least two.
        corpus: Files in UTF-8.
        progress: Called with the size of each block, in bytes.

    Raises:
        CorpusError: A file is not UTF-8.
        OSError: A file cannot be read.
    """
    cuts = [
        Cuts(whole, by, np.zeros(max(tokenizers[whole].vocab, default=-1) + 1, dtype=np.int64), {})
        for other in range(1, len(tokenizers))
        for whole, by in ((0, other), (other, 0))
    ]
    lines = same = position = 0
    # A heap of the largest differences. Ties keep the earlier line.
    largest: list[tuple[int, int, Line]] = []
    for document in corpus:
        for numbered in read_lines(document, progress):
            rows = [_spans(each, [text for _, text in numbered]) for each in tokenizers]
            for each in cuts:
                _count_cuts(each, rows[each.whole], rows[each.by])
            for (number, text), *tokens in zip(numbered, *(row.counts for row in rows), strict=True):
                difference = max(tokens) - min(tokens)
                lines, same, position = lines + 1, same + (not difference), position - 1
                if difference and (len(largest) < _LINES or difference > largest[0][0]):
                    line = Line(document.name, number, text, tuple(tokens))
                    push = heapq.heappush if len(largest) < _LINES else heapq.heapreplace
                    push(largest, (difference, position, line))
    return Disagreements(lines, same, [line for _, _, line in sorted(largest, reverse=True)], cuts)


def _spans(tokenizer: BPETokenizer, lines: Sequence[str]) -> _Spans:
    ids: list[int] = []
    spans: list[npt.NDArray[np.int64]] = []
    counts = []
    before = 0
    for line in lines:
        line_ids, line_spans = tokenizer.encode_with_offsets(line, unit="byte")
        ids += line_ids
        spans.append(np.array(line_spans, dtype=np.int64).reshape(-1, 2) + before)
        counts.append(len(line_ids))
        before += len(line.encode())
    all_spans = np.concatenate([np.zeros((0, 2), dtype=np.int64), *spans])
    return _Spans(np.array(ids, dtype=np.int64), all_spans[:, 0], all_spans[:, 1], counts)


def _count_cuts(cuts: Cuts, whole: _Spans, by: _Spans) -> None:
    """Count the tokens of `whole` inside which a token of `by` starts."""
    first = np.searchsorted(by.starts, whole.starts, side="right")
    last = np.searchsorted(by.starts, whole.ends, side="left")
    cut = np.flatnonzero(first < last)
    cuts.times[:] += np.bincount(whole.ids[cut], minlength=len(cuts.times))
    for token_id, at in zip(*np.unique(whole.ids[cut], return_index=True), strict=True):
        if int(token_id) not in cuts.into:
            row = cut[at]
            cuts.into[int(token_id)] = by.ids[max(first[row] - 1, 0) : last[row]].tolist()


def _most_frequent(cuts: Cuts) -> list[int]:
    order = np.argsort(-cuts.times, kind="stable")[: min(_TOKENS, int(np.count_nonzero(cuts.times)))]
    return [int(each) for each in order]


def disagreement_tables(found: Disagreements, reports: Sequence[Report]) -> Iterator[Table]:
    """Yield the disagreements as tables.

    Args:
        found: The disagreements.
        reports: The report of each tokenizer, in the order of the indices.
    """
    names = labels(reports)
    lines: list[list[Cell]] = [
        [name_text(each.file), each.number, *each.tokens, _shortened(each.text)] for each in found.largest
    ]
    same = f"{found.same_count:,} of {found.lines:,}"
    note = f"Each line alone; {same} have the same number of tokens with every tokenizer."
    columns = ["file", "line", *(f"tokens, {name}" for name in names), "text"]
    yield Table("Lines with the largest differences", columns, lines, note)
    for each in found.cuts:
        whole, by = reports[each.whole].tokenizer, reports[each.by].tokenizer
        rows: list[list[Cell]] = [
            [int(each.times[k]), _tokens(whole, [k]), _tokens(by, each.into[k])] for k in _most_frequent(each)
        ]
        yield Table(
            f"Tokens of {names[each.whole]} that {names[each.by]} cuts",
            ["times", "token", "first split"],
            rows,
            f"{int(each.times.sum()):,} times in total.",
        )


def _shortened(line: str) -> str:
    return token_text(line[:_SHOWN].encode()) + ("..." if len(line) > _SHOWN else "")


def _tokens(tokenizer: BPETokenizer, ids: Sequence[int]) -> str:
    return " ".join(token_text(tokenizer.model.core.token(each) or b"") for each in ids)
