"""Where tokenizers disagree about a corpus."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.view.reading import Document, read_lines
from bpe_tokenizer.view.report import Report
from bpe_tokenizer.view.report_tables import labels
from bpe_tokenizer.view.tables import Cell, Table, name_text, token_text

__all__ = ["Cuts", "Disagreements", "Line", "disagreement_tables", "find_disagreements"]

# Entries of each list.
_LINES, _TOKENS = 10, 15
# Characters of a line that people see.
_SHOWN = 60


class Line(NamedTuple):
    """A line that takes more tokens with one tokenizer than with another.

    Args:
        file: The name of its file.
        number: Its number there, from 1 on.
        text: With its line end.
        tokens: Number of tokens of it alone, by tokenizer.
    """

    file: str
    number: int
    text: str
    tokens: tuple[int, ...]


class Cuts(NamedTuple):
    """Tokens of one tokenizer inside of which another has a boundary.

    Args:
        whole: Index of the tokenizer whose tokens they are.
        by: Index of the tokenizer that cuts them.
        times: How often each id is cut.
        into: The ids that overlap an id where it is cut first.
    """

    whole: int
    by: int
    times: npt.NDArray[np.int64]
    into: dict[int, list[int]]


@dataclass(frozen=True)
class Disagreements:
    """Where tokenizers disagree about a corpus, whose lines are encoded alone.

    Args:
        lines: Number of lines.
        same_count: Number of those that all cut into as many tokens.
        largest: The lines with the largest differences, the largest first.
        cuts: What the first cuts and another does not, and the other way round, for each other.
    """

    lines: int
    same_count: int
    largest: list[Line]
    cuts: list[Cuts]

    def to_dict(self, reports: Sequence[Report]) -> dict[str, Any]:
        """Return everything as what JSON can hold."""
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
    """The tokens of a block's lines, which stand one after the other."""

    ids: npt.NDArray[np.int64]
    begins: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    counts: list[int]


def find_disagreements(
    tokenizers: Sequence[BPETokenizer],
    corpus: Sequence[Document],
    progress: Callable[[int], None] | None = None,
) -> Disagreements:
    """Encode every line of a corpus alone with several tokenizers, and compare where they cut.

    Special tokens are plain text. A line of more than 65,536 characters is compared in parts.

    Args:
        tokenizers: At least two.
        corpus: Files in UTF-8.
        progress: Called with the number of bytes of each block that was read.

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
    # A heap of the largest differences; of equal ones the earlier line stays.
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
        found, places = tokenizer.encode_with_offsets(line, unit="byte")
        ids += found
        spans.append(np.array(places, dtype=np.int64).reshape(-1, 2) + before)
        counts.append(len(found))
        before += len(line.encode())
    all_spans = np.concatenate([np.zeros((0, 2), dtype=np.int64), *spans])
    return _Spans(np.array(ids, dtype=np.int64), all_spans[:, 0], all_spans[:, 1], counts)


def _count_cuts(cuts: Cuts, whole: _Spans, by: _Spans) -> None:
    """Count the tokens of `whole` inside of which a token of `by` begins."""
    first = np.searchsorted(by.begins, whole.begins, side="right")
    last = np.searchsorted(by.begins, whole.ends, side="left")
    cut = np.flatnonzero(first < last)
    cuts.times[:] += np.bincount(whole.ids[cut], minlength=len(cuts.times))
    for token_id, at in zip(*np.unique(whole.ids[cut], return_index=True), strict=True):
        if int(token_id) not in cuts.into:
            place = cut[at]
            cuts.into[int(token_id)] = by.ids[max(first[place] - 1, 0) : last[place]].tolist()


def _most_frequent(cuts: Cuts) -> list[int]:
    order = np.argsort(-cuts.times, kind="stable")[: min(_TOKENS, int(np.count_nonzero(cuts.times)))]
    return [int(each) for each in order]


def disagreement_tables(found: Disagreements, reports: Sequence[Report]) -> Iterator[Table]:
    """Yield what the tokenizers disagree about as tables.

    Args:
        found: The disagreements.
        reports: The report of each tokenizer, in the same order.
    """
    names = labels(reports)
    lines: list[list[Cell]] = [
        [name_text(each.file), each.number, *each.tokens, _beginning(each.text)] for each in found.largest
    ]
    note = f"Each line alone; {found.same_count:,} of {found.lines:,} take as many tokens with all."
    columns = ["file", "line", *(f"tokens, {name}" for name in names), "text"]
    yield Table("Lines with the largest differences", columns, lines, note)
    for each in found.cuts:
        whole, by = reports[each.whole].tokenizer, reports[each.by].tokenizer
        rows: list[list[Cell]] = [
            [int(each.times[k]), _tokens(whole, [k]), _tokens(by, each.into[k])] for k in _most_frequent(each)
        ]
        yield Table(
            f"Tokens of {names[each.whole]} that {names[each.by]} cuts",
            ["times", "token", "where it first stands"],
            rows,
            f"{int(each.times.sum()):,} times in all.",
        )


def _beginning(line: str) -> str:
    return token_text(line[:_SHOWN].encode()) + ("..." if len(line) > _SHOWN else "")


def _tokens(tokenizer: BPETokenizer, ids: Sequence[int]) -> str:
    return " ".join(token_text(tokenizer.model.core.token(each) or b"") for each in ids)
