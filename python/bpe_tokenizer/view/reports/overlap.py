"""Which tokens the vocabularies of tokenizers share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bpe_tokenizer.view.reports.stats import ratio, token_surfaces

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["Overlap", "vocabulary_overlap"]


class Overlap(NamedTuple):
    """The tokens that two vocabularies share, compared by the bytes of their text, without added tokens.

    Args:
        first: Index of the first tokenizer.
        second: Index of the second tokenizer.
        sizes: The number of distinct tokens of each.
        shared: The number of tokens in both.
    """

    first: int
    second: int
    sizes: tuple[int, int]
    shared: int

    @property
    def jaccard(self) -> float | None:
        """The shared tokens as a share of the tokens in either."""
        return ratio(self.shared, sum(self.sizes) - self.shared)

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "tokenizers": [names[self.first], names[self.second]],
            "sizes": list(self.sizes),
            "shared": self.shared,
            "jaccard": self.jaccard,
            "share_of_each": [ratio(self.shared, size) for size in self.sizes],
        }


def vocabulary_overlap(tokenizers: Sequence[BPETokenizer]) -> list[Overlap]:
    """Compare the vocabularies of each two tokenizers.

    Args:
        tokenizers: The tokenizers.

    Example:
        >>> from bpe_tokenizer import BPETokenizer
        >>> made = [BPETokenizer().train(text, 257, verbose=False) for text in ("low low", "new new")]
        >>> [(each.shared, each.jaccard) for each in vocabulary_overlap(made)]
        [(256, 0.9922)]
    """
    texts = [{surface for surface in token_surfaces(each).values() if surface} for each in tokenizers]
    return [
        Overlap(i, j, (len(texts[i]), len(texts[j])), len(texts[i] & texts[j]))
        for i in range(len(texts))
        for j in range(i + 1, len(texts))
    ]
