"""What a GGUF file says about its model: the sizes, and the ids that end a reply."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bpe_tokenizer.formats.gguf.file import read_metadata

__all__ = ["Sizes", "read_sizes", "read_stop_ids"]

_ARCHITECTURE = "general.architecture"
_TOKENS = "tokenizer.ggml.tokens"
_CONTEXT = ".context_length"
# The ends of the text, of a turn, and of a message with a call of a tool.
_STOPS = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id")


class Sizes(NamedTuple):
    """The sizes that a model's file states; None where it does not.

    Args:
        vocab_size: How many ids the tokenizer has.
        context_length: How many positions the model was made for.
    """

    vocab_size: int | None
    context_length: int | None


def read_sizes(path: Path) -> Sizes:
    """Read the sizes of the model in a GGUF file.

    Raises:
        FormatError: It cannot be read, or is no GGUF.
    """
    metadata = read_metadata(path, lambda key: key in (_ARCHITECTURE, _TOKENS) or key.endswith(_CONTEXT))
    count = len(metadata.strings(_TOKENS)) if _TOKENS in metadata.values else None
    return Sizes(count, metadata.integer(metadata.text(_ARCHITECTURE, "") + _CONTEXT))


def read_stop_ids(path: Path) -> frozenset[int]:
    """Read the ids that end a reply.

    Raises:
        FormatError: The file cannot be read, or is no GGUF.
    """
    metadata = read_metadata(path, lambda key: key in _STOPS)
    return frozenset(found for key in _STOPS if (found := metadata.integer(key)) is not None)
