"""The compression of smaller vocabularies with the same merges."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.view.reports.reachability import merge_only_encoder

if TYPE_CHECKING:
    from bpe_tokenizer import _core

__all__ = ["CompressionPoint", "compression_curve"]


class CompressionPoint(NamedTuple):
    """The compression of a vocabulary of the first merges.

    Args:
        vocab_size: Number of ids without added tokens.
        tokens: Number of tokens of the corpus.
    """

    vocab_size: int
    tokens: int


def compression_curve(core: _core.Model, counts: npt.NDArray[np.int64]) -> list[CompressionPoint] | str:
    """Return the number of tokens with only the first n merges, for vocabulary sizes at powers of two.

    If one merge makes each token, from tokens of earlier merges, then merging applies the merges in order.
    The result of the first n merges is then the full result with the later merges undone. The token counts
    tell how often each merge was used, so no text is encoded again and the numbers are exact.

    Args:
        core: The model.
        counts: How often each id occurs in the corpus, int64.

    Returns:
        Points from the vocabulary without merges to the full one, or the reason why there are none.

    Example:
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> ids = tokenizer.encode("low low lower")
        >>> compression_curve(tokenizer.model.core, np.bincount(ids, minlength=258))
        [CompressionPoint(vocab_size=256, tokens=13), CompressionPoint(vocab_size=258, tokens=7)]
    """
    merges = core.merges
    if reason := _obstacle(core, counts, merges):
        return reason
    products = {left + right for left, right in merges}
    joined = {part for pair in merges for part in pair}
    added = {token.id for token in core.added_tokens}
    remaining: dict[bytes, int] = {}
    for each, token in core.vocab.items():
        if each not in added or token in products or token in joined:
            remaining[token] = remaining.get(token, 0) + int(counts[each])
    alphabet = len(remaining) - len(products)
    tokens = int(counts.sum())
    # Undo the merges from the last to the first. Undoing one use adds one token.
    totals = [tokens]
    for left, right in reversed(merges):
        uses = remaining[left + right]
        remaining[left] += uses
        remaining[right] += uses
        tokens += uses
        totals.append(tokens)
    return [
        CompressionPoint(size, totals[alphabet + len(merges) - size]) for size in _sizes(alphabet, merges)
    ]


def _sizes(alphabet: int, merges: list[tuple[bytes, bytes]]) -> list[int]:
    whole = alphabet + len(merges)
    powers = [1 << k for k in range(whole.bit_length()) if alphabet < 1 << k < whole]
    return sorted({alphabet, *powers, whole})


def _obstacle(
    core: _core.Model, counts: npt.NDArray[np.int64], merges: list[tuple[bytes, bytes]]
) -> str | None:
    """Return the reason if the counts do not tell how often each merge was used, otherwise None."""
    if not merges:
        return "the vocabulary has no merges"
    products = {left + right for left, right in merges}
    if len(products) < len(merges):
        return "some tokens are made by more than one merge, so a token does not tell how it was made"
    made: set[bytes] = set()
    for left, right in merges:
        if any(part in products and part not in made for part in (left, right)):
            return "some merges join a token that only a later merge makes"
        made.add(left + right)
    plain = {token.id for token in core.added_tokens if not token.special}
    if any(core.token(each) in products and counts[each] for each in plain):
        return "some tokens of the corpus are both added tokens and made by merges"
    if core.ignore_merges and (unmerged := _unmerged_tokens(core, counts)):
        return f"{unmerged} tokens of the corpus are whole pieces that merging does not give"
    return None


def _unmerged_tokens(core: _core.Model, counts: npt.NDArray[np.int64]) -> int:
    """Count the tokens of the corpus that merging their own bytes does not make."""
    added = {token.id for token in core.added_tokens}
    used = [each for each in np.flatnonzero(counts).tolist() if each not in added]
    merged = merge_only_encoder(core).encode_batch([core.token(each) or b"" for each in used])
    return sum(ids != [each] for each, ids in zip(used, merged, strict=True))
