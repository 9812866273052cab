"""A piece to ids: what tiktoken does with bytes that no pattern splits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from bpe_tokenizer import _core

__all__ = ["PieceEncoder"]


class PieceEncoder:
    """Encodes bytes as one piece. Its models are built on first use, because few programs need them.

    Args:
        vocab: The tokens by rank, including every byte.
    """

    def __init__(self, vocab: Mapping[int, bytes]) -> None:
        self._vocab = vocab

    def encode(self, piece: bytes) -> list[int]:
        """Return the ids of a piece; a piece that is a token becomes that token."""
        return self._encoder.encode(piece)

    def merge(self, piece: bytes) -> list[int]:
        """Return the ids of a piece by merging alone."""
        return (self._merging if piece in self._unmerged else self._encoder).encode(piece)

    @cached_property
    def _encoder(self) -> _core.Encoder:
        return _core.Encoder(_core.Model(self._vocab, None, split_patterns=[]))

    @cached_property
    def _merges(self) -> list[tuple[bytes, bytes]]:
        return self._encoder.model.merges

    @cached_property
    def _unmerged(self) -> frozenset[bytes]:
        """The tokens that merging never makes; only for them do `encode` and `merge` differ."""
        merged = {left + right for left, right in self._merges}
        return frozenset(token for token in self._vocab.values() if len(token) > 1 and token not in merged)

    @cached_property
    def _merging(self) -> _core.Encoder:
        return _core.Encoder(_core.Model(self._vocab, self._merges, split_patterns=[], ignore_merges=False))
