"""Whether merging alone makes every token, so that a format without `ignore_merges` can hold a model."""

from __future__ import annotations

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats._plain import plain
from bpe_tokenizer.model import Model

__all__ = ["mergeable"]


def mergeable(
    model: Model, name: str, *, normalization: bool = False, prefix_space: bool = False
) -> _core.Model:
    """Return the core of a model, once it is clear that merging alone makes what it makes.

    A model whose ids are ranks (a `.tiktoken` file's) takes a piece that is a token for that token. Where
    merging the bytes of each token ends in that token anyway, the rule changes nothing, and a format whose
    readers only merge can hold the model.

    Args:
        model: What to save.
        name: The format, for messages.
        normalization: The format can hold a normal form.
        prefix_space: The format can hold a space before the text.

    Raises:
        FormatError: The model has something that the format cannot hold; names it.
    """
    core = plain(model, name, normalization=normalization, prefix_space=prefix_space, ignore_merges=True)
    if core.ignore_merges:
        unmade = _unmade(core)
        if unmade is not None:
            raise FormatError(
                f"ignore_merges: {name} cannot hold it; its readers would merge every piece step by step, "
                f"which never makes the token {unmade[1]!r} (id {unmade[0]})"
            )
    return core


def _unmade(core: _core.Model) -> tuple[int, bytes] | None:
    """A token, no added one, that merging its own bytes does not end in; None if there is none."""
    added = {token[1] for token in core.added_tokens}
    outside = added.difference(core.added_ids_in_vocab)
    vocab = {token_id: token for token_id, token in core.vocab.items() if token_id not in outside}
    # Of two ids with the same bytes the lower one stands for them.
    owners = {token: token_id for token_id, token in reversed(vocab.items())}
    tokens = [token for token, token_id in owners.items() if token and token_id not in added]
    merging = _core.Model(vocab, core.merges, split_patterns=[])
    rows = _core.Encoder(merging).encode_batch(tokens)
    return next(
        ((owners[token], token) for token, row in zip(tokens, rows, strict=True) if row != [owners[token]]),
        None,
    )
