"""PieceEncoder to ids: what tiktoken does with bytes that no pattern splits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from bpe_tokenizer import _core

__all__ = ["PieceEncoder"]


class PieceEncoder:
    """Encodes bytes as one piece, with the tokens as ranks.

    Its models are made when they are needed first: few programs need them.

    Args:
        vocab: The tokens by their ranks; every byte is one.
    """

    def __init__(self, vocab: Mapping[int, bytes]) -> None:
        self._vocab = vocab

    def encode(self, piece: bytes) -> list[int]:
        """Return the ids of a piece; one that is a token is that token."""
        return self._encoder.encode(piece)

    def merge(self, piece: bytes) -> list[int]:
        """Return the ids of a piece by merging alone."""
        return (self._merging if piece in self._unmade else self._encoder).encode(piece)

    @cached_property
    def _encoder(self) -> _core.Encoder:
        return _core.Encoder(_core.Model(self._vocab, None, split_patterns=[]))

    @cached_property
    def _merges(self) -> list[tuple[bytes, bytes]]:
        return self._encoder.model.merges

    @cached_property
    def _unmade(self) -> frozenset[bytes]:
        """The tokens that merging never makes: for them alone the two ways differ."""
        made = {left + right for left, right in self._merges}
        return frozenset(token for token in self._vocab.values() if len(token) > 1 and token not in made)

    @cached_property
    def _merging(self) -> _core.Encoder:
        return _core.Encoder(_core.Model(self._vocab, self._merges, split_patterns=[], ignore_merges=False))
