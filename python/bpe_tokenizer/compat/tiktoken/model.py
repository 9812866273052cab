"""The encodings of OpenAI's models: `tiktoken.model`."""

from __future__ import annotations

from typing import Final

from bpe_tokenizer.compat.tiktoken._errors import UnknownModelError
from bpe_tokenizer.compat.tiktoken.core import Encoding
from bpe_tokenizer.compat.tiktoken.registry import get_encoding
from bpe_tokenizer.errors import shorten
from bpe_tokenizer.formats.tiktoken.models import MODEL_NAMES, MODEL_PREFIXES, find_encoding_name

__all__ = ["MODEL_PREFIX_TO_ENCODING", "MODEL_TO_ENCODING", "encoding_for_model", "encoding_name_for_model"]

# A program may add names to these.
MODEL_PREFIX_TO_ENCODING: Final[dict[str, str]] = dict(MODEL_PREFIXES)
MODEL_TO_ENCODING: Final[dict[str, str]] = dict(MODEL_NAMES)


def encoding_name_for_model(model_name: str) -> str:
    """Return the name of the encoding that a model uses.

    Raises:
        UnknownModelError: The model is unknown; it is a `KeyError`.

    >>> encoding_name_for_model("gpt-4o-2024-05-13")
    'o200k_base'
    """
    found = find_encoding_name(model_name, MODEL_TO_ENCODING, MODEL_PREFIX_TO_ENCODING)
    if found is not None:
        return found
    raise UnknownModelError(
        f"unknown model {shorten(model_name)}; use get_encoding() with a name of list_encoding_names()"
    )


def encoding_for_model(model_name: str) -> Encoding:
    """Return the encoding that a model uses.

    Raises:
        UnknownModelError: The model is unknown; it is a `KeyError`.
    """
    return get_encoding(encoding_name_for_model(model_name))
