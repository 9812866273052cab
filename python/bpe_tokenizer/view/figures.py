"""What is counted of a corpus and its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.view.scripts import OTHER, SCRIPTS, SPACE, UNSPACED, Characters, characters_of

__all__ = ["Figures", "TextCounter", "TokenCounter", "by_script", "ratio"]


def ratio(part: int, whole: int) -> float | None:
    """Return `part / whole`, rounded to what is worth comparing; None where there is nothing to divide by."""
    return round(part / whole, 4) if whole else None


@dataclass(frozen=True)
class Figures:
    """The size of a text, and of its tokens.

    Args:
        bytes: In UTF-8.
        characters: Unicode code points.
        words: Runs of characters that are no white space.
        tokens: Number of ids.
    """

    bytes: int
    characters: int
    words: int
    tokens: int

    def to_dict(self) -> dict[str, int | float | None]:
        """Return the sizes and their ratios; fertility is tokens per word."""
        return {
            "bytes": self.bytes,
            "characters": self.characters,
            "words": self.words,
            "tokens": self.tokens,
            "bytes_per_token": ratio(self.bytes, self.tokens),
            "characters_per_token": ratio(self.characters, self.tokens),
            "fertility": ratio(self.tokens, self.words),
        }


class TextCounter:
    """Counts bytes, characters and words of a text that comes some at a time.

    A word is a run of characters that are no white space; its script is that of its first letter.

    Example:
        >>> counter = TextCounter()
        >>> counter.add("Один, tw")
        >>> counter.add("o 3")
        >>> counter.finish()
        >>> {SCRIPTS[k]: n for k, n in enumerate(counter.words.tolist()) if n}
        {'other': 1, 'Latin': 1, 'Cyrillic': 1}
    """

    def __init__(self) -> None:
        self.bytes = 0
        self.characters = np.zeros(len(SCRIPTS), dtype=np.int64)
        self.words = np.zeros(len(SCRIPTS), dtype=np.int64)
        # Whether the text so far ends inside a word, and one that had no letter yet.
        self._inside = False
        self._undecided = False

    def add(self, text: str) -> None:
        """Count the next part of the text."""
        data = text.encode()
        classes = characters_of(data).classes
        if not len(classes):
            return
        self.bytes += len(data)
        self.characters += np.bincount(classes, minlength=len(SCRIPTS))
        self._count_words(classes)

    def _count_words(self, classes: npt.NDArray[np.uint8]) -> None:
        inside = classes != SPACE
        begins = inside & ~np.concatenate([[self._inside], inside[:-1]])
        # Word 0 is the one that the part before ended in.
        word_of = np.cumsum(begins)
        last = int(word_of[-1])
        letters = np.flatnonzero(classes > SPACE)
        lettered, first = np.unique(word_of[letters], return_index=True)
        scripts = classes[letters[first]]
        without_letter = np.ones(last + 1, dtype=bool)
        without_letter[lettered] = False
        if not self._undecided:  # then word 0 was counted before, or there is none
            scripts = scripts[lettered > 0]
            without_letter[0] = False
        self._inside = bool(inside[-1])
        self._undecided = self._inside and bool(without_letter[last])
        self.words += np.bincount(scripts, minlength=len(SCRIPTS))
        self.words[OTHER] += int(without_letter.sum()) - self._undecided

    def finish(self) -> None:
        """End the text; another may follow."""
        self.words[OTHER] += self._undecided
        self._inside = self._undecided = False


class TokenCounter:
    """Counts the tokens of texts, by id and by script.

    A token's script is that of its first letter; one that begins inside a character has
    that character first.

    Args:
        tokenizer: The tokenizer of the ids.
    """

    def __init__(self, tokenizer: BPETokenizer) -> None:
        self._surfaces = _surfaces(tokenizer)
        size = max(self._surfaces, default=-1) + 1
        self._lengths = np.zeros(size, dtype=np.int64)
        for each, surface in self._surfaces.items():
            self._lengths[each] = len(surface)
        self.counts = np.zeros(size, dtype=np.int64)
        self.scripts = np.zeros(len(SCRIPTS), dtype=np.int64)
        # Ids whose last character is not complete yet.
        self._held: list[int] = []

    def add(self, ids: Sequence[int]) -> None:
        """Count the next ids of a text."""
        self._count([*self._held, *ids], whole=False)

    def finish(self) -> None:
        """End the text; another may follow."""
        self._count(self._held, whole=True)

    def _count(self, ids: list[int], whole: bool) -> None:
        row = np.array(ids, dtype=np.int64)
        ends = np.cumsum(self._lengths[row])
        data = b"".join(map(self._surfaces.__getitem__, ids))
        characters = characters_of(data)
        done = len(ids)
        if not whole:
            # Up to the last token that the next one does not share a character with.
            apart = np.flatnonzero(np.isin(ends[:-1], characters.starts))
            done = int(apart[-1]) + 1 if len(apart) else 0
        self._held = ids[done:]
        self.counts += np.bincount(row[:done], minlength=len(self.counts))
        begins = ends - self._lengths[row]
        self.scripts += _scripts_of_spans(characters, begins[:done], ends[:done])


def _scripts_of_spans(
    characters: Characters, begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Count the classes of spans of bytes: each that of the first letter that it covers something of."""
    letters = np.flatnonzero(characters.classes > SPACE)
    if not len(letters):
        return np.bincount(np.full(len(begins), OTHER), minlength=len(SCRIPTS))
    first_character = np.searchsorted(characters.starts, begins, side="right") - 1
    following = np.searchsorted(letters, first_character)
    letter = letters[np.minimum(following, len(letters) - 1)]
    covered = (following < len(letters)) & (characters.starts[letter] < ends) & (begins < ends)
    return np.bincount(np.where(covered, characters.classes[letter], OTHER), minlength=len(SCRIPTS))


def _surfaces(tokenizer: BPETokenizer) -> dict[int, bytes]:
    """Return the bytes of text that each id stands for; none for added tokens and the unknown token."""
    core = tokenizer.model.core
    surfaces = dict(core.vocab)
    if core.decoder is not None:
        replacement, has_bytes, _ = core.decoder
        for each, token in surfaces.items():
            surfaces[each] = token.replace(replacement.encode(), b" ")
            if has_bytes and len(token) == 6 and token.startswith(b"<0x"):
                surfaces[each] = bytes([int(token[3:5], 16)])
    surfaces.update((token[1], b"") for token in core.added_tokens)
    if core.unk_id is not None:
        surfaces[core.unk_id] = b""
    return surfaces


def by_script(text: TextCounter, tokens: TokenCounter) -> Iterator[dict[str, str | int | float | None]]:
    """Yield what was counted of each script that the corpus has letters of, the most frequent first."""
    found = [k for k in range(len(SCRIPTS)) if k > SPACE and text.characters[k]]
    for k in sorted(found, key=lambda each: (-text.characters[each], each)):
        spaced = SCRIPTS[k] not in UNSPACED
        words, count, letters = int(text.words[k]), int(tokens.scripts[k]), int(text.characters[k])
        yield {
            "script": SCRIPTS[k],
            "letters": letters,
            "words": words if spaced else None,
            "tokens": count,
            "tokens_per_letter": ratio(count, letters),
            "fertility": ratio(count, words) if spaced else None,
        }
