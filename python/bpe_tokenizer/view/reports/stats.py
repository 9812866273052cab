"""Counts of a corpus: bytes, characters, words and tokens, in all and by script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.view.reports.scripts import (
    OTHER,
    SCRIPTS,
    SPACE,
    UNSPACED,
    Characters,
    classify_characters,
)

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = [
    "CorpusStats",
    "TextCounter",
    "TokenCounter",
    "ratio",
    "script_letters",
    "script_stats",
    "token_surfaces",
]


def ratio(part: int, whole: int) -> float | None:
    """Return `part / whole`, rounded to four decimals; None if `whole` is 0."""
    return round(part / whole, 4) if whole else None


@dataclass(frozen=True)
class CorpusStats:
    """The size of a text and of its tokens.

    Args:
        bytes: Number of UTF-8 bytes.
        characters: Number of code points.
        words: Number of runs without white space.
        tokens: Number of ids.
        lines: Number of lines; the last one may lack its line feed.
        letters: Number of letters of each script that occurs.
    """

    bytes: int
    characters: int
    words: int
    tokens: int
    lines: int = 0
    letters: dict[str, int] = field(default_factory=dict)

    @property
    def script(self) -> str | None:
        """The script of most letters; None without letters."""
        return max(self.letters, key=self.letters.__getitem__, default=None)

    @property
    def has_words(self) -> bool:
        """Whether white space separates words: scripts without spaces have at most a tenth of the letters."""
        unspaced = sum(count for script, count in self.letters.items() if script in UNSPACED)
        return unspaced * 10 <= sum(self.letters.values())

    @property
    def fertility(self) -> float | None:
        """Tokens per word; None if the text has no words, or its scripts do not separate them."""
        return ratio(self.tokens, self.words) if self.has_words else None

    def to_dict(self) -> dict[str, Any]:
        """Return the sizes and their ratios. Fertility is tokens per word."""
        return {
            "bytes": self.bytes,
            "characters": self.characters,
            "lines": self.lines,
            "words": self.words if self.has_words else None,
            "tokens": self.tokens,
            "script": self.script,
            "bytes_per_token": ratio(self.bytes, self.tokens),
            "characters_per_token": ratio(self.characters, self.tokens),
            "tokens_per_character": ratio(self.tokens, self.characters),
            "fertility": self.fertility,
        }

    @staticmethod
    def total(parts: Iterable[CorpusStats]) -> CorpusStats:
        """Return the statistics of several texts together."""
        parts = list(parts)
        letters: Counter[str] = Counter()
        for each in parts:
            letters.update(each.letters)
        return CorpusStats(
            sum(each.bytes for each in parts),
            sum(each.characters for each in parts),
            sum(each.words for each in parts),
            sum(each.tokens for each in parts),
            sum(each.lines for each in parts),
            dict(letters),
        )


class TextCounter:
    """Counts the bytes, characters, lines and words of a text incrementally.

    A word is a run without white space. Its script is that of its first letter.

    Example:
        >>> counter = TextCounter()
        >>> counter.add("Один, tw")
        >>> counter.add("o 3")
        >>> counter.finish()
        >>> {SCRIPTS[k]: n for k, n in enumerate(counter.words.tolist()) if n}
        {'other': 1, 'Latin': 1, 'Cyrillic': 1}
    """

    def __init__(self) -> None:
        self.bytes = self.lines = 0
        self.characters = np.zeros(len(SCRIPTS), dtype=np.int64)
        self.words = np.zeros(len(SCRIPTS), dtype=np.int64)
        # Whether the text so far ends inside a word, and whether that word has no letter yet.
        self._inside = False
        self._undecided = False
        # Whether the last line so far has no line feed.
        self._line_is_open = False

    def add(self, text: str) -> None:
        """Count the next part of the text."""
        data = text.encode()
        classes = classify_characters(data).classes
        if not len(classes):
            return
        self.bytes += len(data)
        self.lines += data.count(b"\n")
        self._line_is_open = not data.endswith(b"\n")
        self.characters += np.bincount(classes, minlength=len(SCRIPTS))
        self._count_words(classes)

    def add_documents(self, texts: Sequence[str]) -> None:
        """Count whole texts. None may be open, and none is open then."""
        lines = self.lines + sum(text.count("\n") + (text[-1:] not in ("", "\n")) for text in texts)
        separators = max(len(texts) - 1, 0)
        # A word ends at a line feed.
        self.add("\n".join(texts))
        self.finish()
        self.bytes -= separators
        self.characters[SPACE] -= separators
        self.lines = lines

    def _count_words(self, classes: npt.NDArray[np.uint8]) -> None:
        inside = classes != SPACE
        starts = inside & ~np.concatenate([[self._inside], inside[:-1]])
        # Word 0 continues the last word of the previous part.
        word_of = np.cumsum(starts)
        last = int(word_of[-1])
        letters = np.flatnonzero(classes > SPACE)
        lettered, first = np.unique(word_of[letters], return_index=True)
        scripts = classes[letters[first]]
        without_letter = np.ones(last + 1, dtype=bool)
        without_letter[lettered] = False
        if not self._undecided:  # Word 0 has been counted, or does not exist.
            scripts = scripts[lettered > 0]
            without_letter[0] = False
        self._inside = bool(inside[-1])
        self._undecided = self._inside and bool(without_letter[last])
        self.words += np.bincount(scripts, minlength=len(SCRIPTS))
        self.words[OTHER] += int(without_letter.sum()) - self._undecided

    def finish(self) -> None:
        """End the text; another may follow."""
        self.words[OTHER] += self._undecided
        self.lines += self._line_is_open
        self._inside = self._undecided = self._line_is_open = False


class TokenCounter:
    """Counts the tokens of texts, by id and by script.

    A token's script is that of its first letter. A token that starts inside a character includes that
    character.

    Args:
        tokenizer: The tokenizer of the ids.
    """

    def __init__(self, tokenizer: BPETokenizer) -> None:
        self._surfaces = token_surfaces(tokenizer)
        size = max(self._surfaces, default=-1) + 1
        self._lengths = np.zeros(size, dtype=np.int64)
        for each, surface in self._surfaces.items():
            self._lengths[each] = len(surface)
        self.counts = np.zeros(size, dtype=np.int64)
        self.scripts = np.zeros(len(SCRIPTS), dtype=np.int64)
        # Ids that share their last character with the next token.
        self._pending: list[int] = []

    def add(self, ids: Sequence[int]) -> None:
        """Count the next ids of a text."""
        self._count([*self._pending, *ids], is_end=False)

    def finish(self) -> None:
        """End the text; another may follow."""
        self._count(self._pending, is_end=True)

    def _count(self, ids: list[int], is_end: bool) -> None:
        row = np.array(ids, dtype=np.int64)
        ends = np.cumsum(self._lengths[row])
        data = b"".join(map(self._surfaces.__getitem__, ids))
        characters = classify_characters(data)
        done = len(ids)
        if not is_end:
            # Count up to the last boundary of tokens that is a boundary of characters.
            boundaries = np.flatnonzero(np.isin(ends[:-1], characters.starts))
            done = int(boundaries[-1]) + 1 if len(boundaries) else 0
        self._pending = ids[done:]
        self.counts += np.bincount(row[:done], minlength=len(self.counts))
        starts = ends - self._lengths[row]
        self.scripts += _count_scripts(characters, starts[:done], ends[:done])


def _count_scripts(
    characters: Characters, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Count the scripts of byte spans. The first letter that a span overlaps decides."""
    letters = np.flatnonzero(characters.classes > SPACE)
    if not len(letters):
        return np.bincount(np.full(len(starts), OTHER), minlength=len(SCRIPTS))
    first_character = np.searchsorted(characters.starts, starts, side="right") - 1
    following = np.searchsorted(letters, first_character)
    letter = letters[np.minimum(following, len(letters) - 1)]
    covered = (following < len(letters)) & (characters.starts[letter] < ends) & (starts < ends)
    return np.bincount(np.where(covered, characters.classes[letter], OTHER), minlength=len(SCRIPTS))


def token_surfaces(tokenizer: BPETokenizer) -> dict[int, bytes]:
    """Return the text bytes of each id; empty for added tokens and the unknown token."""
    core = tokenizer.model.core
    surfaces = dict(core.vocab)
    if core.decoder is not None:
        for each, token in surfaces.items():
            surfaces[each] = token.replace(core.decoder.space.encode(), b" ")
            if core.decoder.byte_fallback and len(token) == 6 and token.startswith(b"<0x"):
                surfaces[each] = bytes([int(token[3:5], 16)])
    surfaces.update((token.id, b"") for token in core.added_tokens)
    if core.unk_id is not None:
        surfaces[core.unk_id] = b""
    return surfaces


def script_letters(characters: npt.NDArray[np.int64]) -> dict[str, int]:
    """Return the number of letters of each script that occurs, from the counts of character classes."""
    found = {SCRIPTS[k]: int(characters[k]) for k in range(len(SCRIPTS)) if k > SPACE and characters[k]}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def script_stats(text: TextCounter, tokens: TokenCounter) -> Iterator[dict[str, str | int | float | None]]:
    """Yield the counts of each script in the corpus, the most frequent first."""
    found = [k for k in range(len(SCRIPTS)) if k > SPACE and text.characters[k]]
    for k in sorted(found, key=lambda k: (-text.characters[k], k)):
        has_words = SCRIPTS[k] not in UNSPACED
        words, count, letters = int(text.words[k]), int(tokens.scripts[k]), int(text.characters[k])
        yield {
            "script": SCRIPTS[k],
            "letters": letters,
            "words": words if has_words else None,
            "tokens": count,
            "tokens_per_letter": ratio(count, letters),
            "fertility": ratio(count, words) if has_words else None,
        }
