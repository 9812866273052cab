"""How the merges of a model put a piece together, one by one: what the core does, written down.

The core only tells how a piece ends up; here each merge is done in Python and recorded.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Iterator
from typing import NamedTuple

from bpe_tokenizer import _core
from bpe_tokenizer.model import AddedToken

__all__ = ["Merge", "MergeTable", "Merging", "merge_table"]


class Merge(NamedTuple):
    """One merge of two neighbours.

    Args:
        rank: The place of the merge in the model's list, from 0; the lowest that is possible comes first.
        left: Index of the symbol, among those that merging begins with, where the left neighbour begins.
        right: The same of the right neighbour.
        token_id: The id of the token that they become.
    """

    rank: int
    left: int
    right: int
    token_id: int


class Merging(NamedTuple):
    """How a piece becomes tokens.

    Args:
        symbols: The ids that merging begins with; None stands for what has no token.
        merges: The merges, in the order in which they are done.
        ids: The ids that the encoder gives.
        is_whole: The piece is a token, and the encoder takes it without merging (`ignore_merges`). The
            merges are those that it saves itself, and need not lead to the same ids.
    """

    symbols: tuple[int | None, ...]
    merges: tuple[Merge, ...]
    ids: tuple[int, ...]
    is_whole: bool = False

    def rows(self) -> Iterator[dict[int, int | None]]:
        """Yield what there is before the first merge and after each: ids by the index where they begin.

        Example:
            >>> list(Merging((97, 98), (Merge(0, 0, 1, 256),), (256,)).rows())
            [{0: 97, 1: 98}, {0: 256}]
        """
        row = dict(enumerate(self.symbols))
        yield dict(row)
        for merge in self.merges:
            row[merge.left] = merge.token_id
            del row[merge.right]
            yield dict(row)


class MergeTable:
    """The tokens and merges of a model, ready to merge pieces.

    Args:
        core: The model.

    Example:
        >>> core = _core.Model({i: bytes([i]) for i in range(256)} | {256: b"lo"}, [(b"l", b"o")])
        >>> MergeTable(core).merge(b"low")
        Merging(symbols=(108, 111, 119), merges=(Merge(rank=0, left=0, right=1, token_id=256),),
                ids=(256, 119), is_whole=False)
    """

    def __init__(self, core: _core.Model) -> None:
        self.core = core
        added = [AddedToken(*token) for token in core.added_tokens]
        outside = {token.id for token in added} - set(core.added_ids_in_vocab)
        self._special = {token.id for token in added if token.special}
        self._ids: dict[bytes, int] = {}
        for token_id, token in core.vocab.items():
            if token_id not in outside:
                self._ids.setdefault(token, token_id)
        self._pairs: list[tuple[int | None, int | None]] = []
        self._products: list[int] = []
        for left, right in core.merges:
            self._pairs.append((self._ids[left], self._ids[right]))
            self._products.append(self._ids[left + right])
        # Of equal pairs the last counts, as in the core.
        self._ranks = {pair: rank for rank, pair in enumerate(self._pairs)}

    def merge(self, piece: bytes) -> Merging:
        """Merge a piece.

        Args:
            piece: Its bytes, normalised, as `Encoder.pieces` gives them.

        Returns:
            What merging begins with, each merge, and the ids.
        """
        symbols = tuple(self._symbols(piece))
        row = dict(enumerate(symbols))
        merges = tuple(self._merges(row))
        whole = self._ids.get(piece) if self.core.ignore_merges else None
        if whole is not None and whole not in self._special:
            return Merging(symbols, merges, (whole,), is_whole=True)
        return Merging(symbols, merges, tuple(each for each in row.values() if each is not None))

    def _merges(self, row: dict[int, int | None]) -> Iterator[Merge]:
        """Merge a row in place: always the lowest rank, and of equal ones the leftmost."""
        after = {index: index + 1 for index in row}
        before = {index: index - 1 for index in row}
        waiting: list[tuple[int, int, int]] = []

        def offer(left: int, right: int) -> None:
            if left in row and right in row:
                rank = self._ranks.get((row[left], row[right]))
                if rank is not None:
                    heapq.heappush(waiting, (rank, left, right))

        for index in row:
            offer(index, index + 1)
        while waiting:
            rank, left, right = heapq.heappop(waiting)
            if (row.get(left), row.get(right)) != self._pairs[rank]:
                continue  # One of the two has become part of another token since.
            row[left] = self._products[rank]
            del row[right]
            after[left] = after.pop(right)
            before[after[left]] = left
            yield Merge(rank, left, right, self._products[rank])
            offer(before[left], left)
            offer(left, after[left])

    def _symbols(self, piece: bytes) -> Iterator[int | None]:
        """The symbols of a piece by the rules of Hugging Face `tokenizers`, as in the core's `symbols.rs`."""
        core = self.core
        # Unknown characters wait for a known one, as they may fuse; what falls back to bytes overtakes them.
        waiting = False
        for character in self._characters(piece):
            token_id = self._ids.get(character)
            fallback = self._fall_back(character) if token_id is None else None
            if fallback is not None:
                yield from fallback
            elif token_id is not None:
                if waiting:
                    yield core.unk_id
                waiting = False
                yield token_id
            elif core.unk_id is not None:
                if waiting and not core.fuse_unk:
                    yield core.unk_id
                waiting = True
            elif core.keeps_gaps:
                yield None
        if waiting:
            yield core.unk_id

    def _characters(self, piece: bytes) -> list[bytes]:
        if self.core.alphabet == "bytes":
            return [bytes([byte]) for byte in piece]
        text = piece.decode("utf-8", errors="surrogateescape")
        return [character.encode("utf-8", errors="surrogateescape") for character in text]

    def _fall_back(self, character: bytes) -> list[int] | None:
        """The tokens of a character's bytes, if the model has one for each."""
        if not self.core.byte_fallback or self.core.alphabet == "bytes":
            return None
        ids = [self._ids.get(b"<0x%02X>" % byte) for byte in character]
        found = [each for each in ids if each is not None]
        return found if len(found) == len(ids) else None


@functools.lru_cache(maxsize=2)
def merge_table(core: _core.Model) -> MergeTable:
    """Return the table of a model; those of the last two models are kept, as they take a while to make."""
    return MergeTable(core)
