"""Counts of a corpus: bytes, characters, words and tokens, in all and by script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bpe_tokenizer import _core
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


# Longer words are cut where a part of the text ends, in bytes.
_MAX_WORD = 1 << 16


@dataclass(frozen=True)
class CorpusStats:
    """The size of a text and of its tokens.

    Args:
        bytes: Number of UTF-8 bytes.
        characters: Number of code points.
        words: Number of words by UAX 29: segments with a letter or a digit.
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
        """Whether the text separates words: scripts that do not have at most a tenth of the letters."""
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

    A word is a segment of UAX 29 with a letter or a digit. Its script is that of its first letter.

    Example:
        >>> counter = TextCounter()
        >>> counter.add("Один, tw")
        >>> counter.add("o 3.5")
        >>> counter.finish()
        >>> {SCRIPTS[k]: n for k, n in enumerate(counter.words.tolist()) if n}
        {'other': 1, 'Latin': 1, 'Cyrillic': 1}
    """

    def __init__(self) -> None:
        self.bytes = self.lines = 0
        self.characters = np.zeros(len(SCRIPTS), dtype=np.int64)
        self.words = np.zeros(len(SCRIPTS), dtype=np.int64)
        # The end of the text so far, from its last word on, which may go on.
        self._pending = ""
        # Whether the last line so far has no line feed.
        self._line_is_open = False

    def add(self, text: str) -> None:
        """Count the next part of the text."""
        if text:
            self._count(self._pending + text, is_end=False)

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

    def finish(self) -> None:
        """End the text; another may follow."""
        self._count(self._pending, is_end=True)
        self.lines += self._line_is_open
        self._line_is_open = False

    def _count(self, text: str, is_end: bool) -> None:
        starts, ends = _core.words(text)
        data, self._pending = text.encode(), ""
        if not is_end and len(starts) and len(data) - int(starts[-1]) < _MAX_WORD:
            data, self._pending = data[: starts[-1]], data[starts[-1] :].decode()
            starts, ends = starts[:-1], ends[:-1]
        if not data:
            return
        characters = classify_characters(data)
        self.bytes += len(data)
        self.lines += data.count(b"\n")
        self._line_is_open = not data.endswith(b"\n")
        self.characters += np.bincount(characters.classes, minlength=len(SCRIPTS))
        self.words += _count_scripts(characters, starts, ends)


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
        self.total = 0
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
        self.total += done
        starts = ends - self._lengths[row]
        self.scripts += _count_scripts(characters, starts[:done], ends[:done])


def _count_scripts(
    characters: Characters, starts: npt.NDArray[np.integer], ends: npt.NDArray[np.integer]
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
