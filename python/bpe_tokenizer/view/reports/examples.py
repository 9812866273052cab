"""The texts of a corpus for which tokenizers need the most different numbers of tokens."""

from __future__ import annotations

import heapq
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.view.reports.scripts import SCRIPTS, SPACE, classify_characters

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["Example", "ExampleFinder", "ExampleTokens"]

# Number of examples, and of candidates for each script.
_EXAMPLES, _CANDIDATES = 8, 3
# The best lines of a block that are candidates.
_LINES_OF_BLOCK = 32
# Shorter lines, and lines of fewer tokens, are examples only if the corpus has no others.
_MIN_CHARACTERS, _MIN_TOKENS = 20, 8
# The kind of lines that are mostly white space. They often have the largest ratio; one example is enough.
_BLANK = "white space"
# Characters of an example, and of the line in which it is looked for.
_EXCERPT, _SEARCHED = 56, 4096


class ExampleTokens(NamedTuple):
    """The tokens of an example, by one tokenizer.

    Args:
        ids: The ids.
        spans: Start and end of each token, in bytes of the example.
        differs: Whether a token of another tokenizer covers other bytes.
    """

    ids: list[int]
    spans: list[tuple[int, int]]
    differs: list[bool]


class Example(NamedTuple):
    """A line, or the part of it in which the numbers of tokens differ most.

    Args:
        file: The name of its file.
        line: Its line number, from 1.
        text: The text without its line end.
        is_part: Whether the text is a part of the line.
        tokens: The tokens of each tokenizer.
    """

    file: str
    line: int
    text: str
    is_part: bool
    tokens: list[ExampleTokens]

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "file": self.file,
            "line": self.line,
            "text": self.text,
            "is_part_of_line": self.is_part,
            "tokenizers": [
                {
                    "name": name,
                    "tokens": len(each.ids),
                    "ids": each.ids,
                    "byte_spans": [list(span) for span in each.spans],
                    "differs": each.differs,
                }
                for name, each in zip(names, self.tokens, strict=True)
            ],
        }


class _Candidate(NamedTuple):
    """A line that may become an example; candidates compare by their first two fields."""

    score: tuple[bool, float]
    order: int
    file: str
    number: int
    text: str


class ExampleFinder:
    """Collects the lines with the largest ratio between the numbers of tokens, a few of each script.

    Its memory does not depend on the size of the corpus.

    Args:
        tokenizers: At least two.
    """

    def __init__(self, tokenizers: Sequence[BPETokenizer]) -> None:
        self._tokenizers = tokenizers
        self._heaps: dict[str, list[_Candidate]] = {}
        self._seen = 0

    def add(
        self, file: str, lines: Sequence[tuple[int, str]], counts: Sequence[npt.NDArray[np.int64]]
    ) -> None:
        """Look at the lines of a block.

        Args:
            file: The name of their file.
            lines: The number and the text of each line.
            counts: For each tokenizer, the number of tokens of each line, int64.
        """
        if not lines:
            return
        most, least = np.maximum.reduce(counts), np.minimum.reduce(counts)
        sizes = np.array([len(text) for _, text in lines])
        is_long = (sizes >= _MIN_CHARACTERS) & (most >= _MIN_TOKENS)
        ratios = most / np.maximum(least, 1)
        order = np.lexsort((-ratios, ~is_long))[:_LINES_OF_BLOCK]
        for index in order[most[order] > least[order]].tolist():
            number, text = lines[index]
            text = text.rstrip("\r\n")[:_SEARCHED]
            score = bool(is_long[index]), float(ratios[index])
            self._push(_Candidate(score, -self._seen - index, file, number, text))
        self._seen += len(lines)

    def _push(self, candidate: _Candidate) -> None:
        kind = _kind(candidate.text)
        heap = self._heaps.setdefault(kind, [])
        if any(candidate.text == each.text for each in heap):
            return
        if len(heap) < (1 if kind == _BLANK else _CANDIDATES):
            heapq.heappush(heap, candidate)
        elif candidate > heap[0]:
            heapq.heapreplace(heap, candidate)

    def finish(self) -> list[Example]:
        """Return the examples: the best of each script, then the second ones, in the order of the ratio."""
        ranked = [sorted(heap, reverse=True) for heap in self._heaps.values()]
        rounds = [
            sorted((heap[k] for heap in ranked if len(heap) > k), reverse=True) for k in range(_CANDIDATES)
        ]
        chosen = [each for candidates in rounds for each in candidates][:_EXAMPLES]
        latin = max(self._heaps.get("Latin", []), default=None)
        # Most readers can judge an example in Latin letters.
        if latin is not None and latin not in chosen:
            chosen[-1] = latin
        # Of two lines, the same part may differ most.
        shown = {each.text: each for each in map(self._example, reversed(chosen))}
        return list(reversed(shown.values()))

    def _example(self, candidate: _Candidate) -> Example:
        text = self._densest_part(candidate.text)
        tokens = _tokens(self._tokenizers, text)
        return Example(candidate.file, candidate.number, text, text != candidate.text, tokens)

    def _densest_part(self, text: str) -> str:
        """Return the part of a line in which the numbers of tokens differ most, if possible whole words."""
        if len(text) <= _EXCERPT:
            return text
        running = []
        for tokenizer in self._tokenizers:
            starts = np.zeros(len(text) + 1, dtype=np.int64)
            spans = tokenizer.encode_with_offsets(text, unit="char")[1]
            first = np.array([start for start, _ in spans], dtype=np.int64)
            np.add.at(starts, np.minimum(first, len(text) - 1) + 1, 1)
            running.append(np.cumsum(starts))
        inside = [total[_EXCERPT:] - total[:-_EXCERPT] for total in running]
        difference = np.maximum.reduce(inside) - np.minimum.reduce(inside)
        start = int(np.argmax(difference))
        end = start + _EXCERPT
        # Not inside a word, and not before a mark that belongs to a letter.
        for near in range(start, max(start - 12, -1), -1):
            if near == 0 or text[near - 1].isspace():
                start, end = near, near + _EXCERPT
                break
        if end < len(text):
            end = next((k for k in range(end, start + _EXCERPT // 2, -1) if text[k].isspace()), end)
        while end < len(text) and unicodedata.category(text[end]) in ("Mn", "Mc", "Me", "Cf"):
            end += 1
        while unicodedata.category(text[start]) in ("Mn", "Mc", "Me", "Cf") and start < end - 1:
            start += 1
        return text[start:end]


def _tokens(tokenizers: Sequence[BPETokenizer], text: str) -> list[ExampleTokens]:
    encoded = [each.encode_with_offsets(text, unit="byte") for each in tokenizers]
    shared = set.intersection(*(set(spans) for _, spans in encoded))
    return [
        ExampleTokens(list(ids), list(spans), [span not in shared for span in spans])
        for ids, spans in encoded
    ]


def _kind(text: str) -> str:
    """Return the script of most letters; "" without letters; `_BLANK` for text that is mostly white space."""
    counts = np.bincount(classify_characters(text.encode()).classes, minlength=len(SCRIPTS))
    if counts[SPACE] * 2 > len(text):
        return _BLANK
    counts[: SPACE + 1] = 0
    return SCRIPTS[int(np.argmax(counts))] if counts.any() else ""
