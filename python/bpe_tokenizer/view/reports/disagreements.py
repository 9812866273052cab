"""Where tokenizers cut a corpus differently."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.view.reports.documents import Document, read_lines
from bpe_tokenizer.view.reports.examples import Example, ExampleFinder

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["Cuts", "Disagreements", "Line", "find_disagreements"]

# Lengths of the lists of lines and of tokens.
_LINES, _TOKENS = 10, 15
# Spans that are tuples at a time.
_SPANS = 20_000


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

    def most_frequent(self) -> list[int]:
        """Return the ids that are split most often, the most frequent first."""
        count = min(_TOKENS, int(np.count_nonzero(self.times)))
        return [int(each) for each in np.argsort(-self.times, kind="stable")[:count]]


@dataclass(frozen=True)
class Disagreements:
    """Where tokenizers cut a corpus differently. Each line is encoded alone.

    Args:
        lines: Number of lines.
        same_count: Number of lines that have the same number of tokens with every tokenizer.
        largest: The lines with the largest differences, the largest first.
        cuts: The splits between the first tokenizer and each other one, in both directions.
        examples: The lines, or parts of lines, with the largest ratios between the numbers of tokens, of
            different scripts.
    """

    lines: int
    same_count: int
    largest: list[Line]
    cuts: list[Cuts]
    examples: list[Example]

    def to_dict(
        self, names: Sequence[str], tokenizers: Sequence[BPETokenizer], files: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return everything as JSON values.

        Args:
            names: The name of each tokenizer.
            tokenizers: The tokenizers.
            files: The shown name of each file.
        """
        return {
            "lines": self.lines,
            "lines_of_same_count": self.same_count,
            "largest_differences": [
                {
                    "file": files[each.file],
                    "line": each.number,
                    "tokens": list(each.tokens),
                    "text": each.text,
                }
                for each in self.largest
            ],
            "examples": [{**each.to_dict(names), "file": files[each.file]} for each in self.examples],
            "cuts": [
                {
                    "tokens_of": names[each.whole],
                    "cut_by": names[each.by],
                    "times": int(each.times.sum()),
                    "most_frequent": [
                        {
                            "id": token_id,
                            "token": tokenizers[each.whole].convert_ids_to_tokens(token_id),
                            "times": int(each.times[token_id]),
                            "into": tokenizers[each.by].convert_ids_to_tokens(each.into[token_id]),
                        }
                        for token_id in each.most_frequent()
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
    counts: npt.NDArray[np.int64]


def find_disagreements(
    tokenizers: Sequence[BPETokenizer],
    corpus: Sequence[Document],
    progress: Callable[[int], None] | None = None,
) -> Disagreements:
    """Encode each line of a corpus alone with several tokenizers, and compare the boundaries.

    Special tokens are plain text. Lines of more than 65,536 characters are compared in parts. Of files with
    rows, a document is compared as a line.

    Args:
        tokenizers: At least two.
        corpus: The files.
        progress: Called with the number of stored bytes of each step.

    Raises:
        CorpusError: A file cannot be read, is not a corpus, or is not UTF-8.
    """
    cuts = [
        Cuts(whole, by, np.zeros(max(tokenizers[whole].vocab, default=-1) + 1, dtype=np.int64), {})
        for other in range(1, len(tokenizers))
        for whole, by in ((0, other), (other, 0))
    ]
    lines = same = 0
    # A heap of the largest differences. Ties keep the earlier line.
    largest: list[tuple[int, int, Line]] = []
    finder = ExampleFinder(tokenizers)
    for document in corpus:
        for numbered in read_lines(document, progress):
            rows = [_spans(each, [text for _, text in numbered]) for each in tokenizers]
            for each in cuts:
                _count_cuts(each, rows[each.whole], rows[each.by])
            counts = [row.counts for row in rows]
            finder.add(document.name, numbered, counts)
            differences = np.maximum.reduce(counts) - np.minimum.reduce(counts)
            same += int(np.count_nonzero(differences == 0))
            for index in np.argsort(-differences, kind="stable").tolist():
                difference = int(differences[index])
                if not difference or (len(largest) == _LINES and difference <= largest[0][0]):
                    break
                number, text = numbered[index]
                if any(text.rstrip() == each.text.rstrip() for _, _, each in largest):
                    continue
                tokens = tuple(int(count[index]) for count in counts)
                line = Line(document.name, number, text, tokens)
                push = heapq.heappush if len(largest) < _LINES else heapq.heapreplace
                push(largest, (difference, -lines - index, line))
            lines += len(numbered)
    found = [line for _, _, line in sorted(largest, reverse=True)]
    return Disagreements(lines, same, found, cuts, finder.finish())


def _spans(tokenizer: BPETokenizer, lines: Sequence[str]) -> _Spans:
    ids: list[int] = []
    spans: list[tuple[int, int]] = []
    arrays: list[npt.NDArray[np.int64]] = []
    counts: list[int] = []
    for line in lines:
        line_ids, line_spans = tokenizer.encode_with_offsets(line, unit="byte")
        ids += line_ids
        spans += line_spans
        counts.append(len(line_ids))
        # An array for each line would take longer than to encode it; tuples for all lines take much memory.
        if len(spans) >= _SPANS:
            arrays.append(_array(spans))
            spans.clear()
    places = np.concatenate([*arrays, _array(spans)])
    count = np.array(counts, dtype=np.int64)
    sizes = np.array([len(line.encode()) for line in lines], dtype=np.int64)
    places += np.repeat(np.cumsum(sizes) - sizes, count)[:, None]
    return _Spans(np.array(ids, dtype=np.int64), places[:, 0], places[:, 1], count)


def _array(spans: Sequence[tuple[int, int]]) -> npt.NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(spans), dtype=np.int64, count=2 * len(spans)).reshape(-1, 2)


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
