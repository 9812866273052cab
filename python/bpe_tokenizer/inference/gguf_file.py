"""Reads the metadata of a GGUF file: the sizes, and the ids that end a reply."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bpe_tokenizer.formats.gguf.file import read_metadata

__all__ = ["Sizes", "read_sizes", "read_stop_ids"]

_ARCHITECTURE = "general.architecture"
_TOKENS = "tokenizer.ggml.tokens"
_CONTEXT = ".context_length"
# The ends of a text, of a turn, and of a message that calls a tool.
_STOPS = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id")


class Sizes(NamedTuple):
    """The sizes in a model's file; None if the file does not state them.

    Args:
        vocab_size: The number of the tokenizer's ids.
        context_length: The model's context length in ids.
    """

    vocab_size: int | None
    context_length: int | None


def read_sizes(path: Path) -> Sizes:
    """Read the sizes of the model in a GGUF file.

    Raises:
        FormatError: The file cannot be read, or is not GGUF.
    """
    metadata = read_metadata(path, lambda key: key in (_ARCHITECTURE, _TOKENS) or key.endswith(_CONTEXT))
    count = len(metadata.strings(_TOKENS)) if _TOKENS in metadata.values else None
    return Sizes(count, metadata.integer(metadata.text(_ARCHITECTURE, "") + _CONTEXT))


def read_stop_ids(path: Path) -> frozenset[int]:
    """Read the ids that end a reply.

    Raises:
        FormatError: The file cannot be read, or is not GGUF.
    """
    metadata = read_metadata(path, lambda key: key in _STOPS)
    return frozenset(found for key in _STOPS if (found := metadata.integer(key)) is not None)
