"""What the simple formats cannot hold of a model, named."""

from __future__ import annotations

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.model import Model

__all__ = ["plain"]


def plain(
    model: Model,
    name: str,
    *,
    normalization: bool = False,
    prefix_space: bool = False,
    ignore_merges: bool = False,
) -> _core.Model:
    """Return the core of a model, once it is clear that a format can hold how it treats text.

    Args:
        model: What to save.
        name: The format, for messages, like `.tiktoken`.
        normalization: The format, or what its reader is told beside it, can hold a normal form.
        prefix_space: The same for a space before the text.
        ignore_merges: The same for "a piece that is a token is that token"; otherwise only a model that
            does without is accepted.

    Raises:
        FormatError: The model has something that the format cannot hold; names it.
    """
    core = model.core
    if core.alphabet != "bytes" or core.decoder is not None:
        raise FormatError(
            f"alphabet: {name} holds tokens of bytes; this model's are text (SentencePiece-style)"
        )
    if not core.requires_all_bytes:
        raise FormatError(f"vocab: {name} needs a token for each of the 256 bytes; this model lacks some")
    if core.split_patterns is None:
        steps = ", ".join(step[0] for step in core.pre_tokenizers)
        raise FormatError(f"pre_tokenizers: {name} cuts at the matches of a pattern only, not with {steps}")
    if core.normalizers and core.normalization is None:
        steps = ", ".join(step[0] for step in core.normalizers)
        raise FormatError(f"normalizers: {name} cannot hold {steps}")
    if core.normalization is not None and not normalization:
        raise FormatError(
            f"normalization: {name} cannot hold {core.normalization!r}; its readers would not normalise"
        )
    if core.add_prefix_space and not prefix_space:
        raise FormatError(f"add_prefix_space: {name} cannot hold it; its readers put no space before a text")
    if core.ignore_merges and not ignore_merges:
        raise FormatError(
            f"ignore_merges: {name} cannot hold it; its readers would merge every piece step by step"
        )
    return core
