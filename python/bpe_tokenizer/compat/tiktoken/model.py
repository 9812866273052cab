"""The encodings of OpenAI's models: `tiktoken.model`."""

from __future__ import annotations

from typing import Final

from bpe_tokenizer.compat.tiktoken._errors import UnknownModelError
from bpe_tokenizer.compat.tiktoken.core import Encoding
from bpe_tokenizer.compat.tiktoken.registry import get_encoding
from bpe_tokenizer.errors import shorten

__all__ = ["MODEL_PREFIX_TO_ENCODING", "MODEL_TO_ENCODING", "encoding_for_model", "encoding_name_for_model"]

# Facts of tiktoken 0.14. A longer prefix precedes a shorter one.
_PREFIXES = {
    "o200k_base": "o1- o3- o4-mini- gpt-5 gpt-4.5- gpt-4.1- chatgpt-4o- gpt-4o- ft:gpt-4o",
    "o200k_harmony": "gpt-oss-",
    "cl100k_base": (
        "gpt-4- gpt-3.5-turbo- gpt-35-turbo- ft:gpt-4 ft:gpt-3.5-turbo ft:davinci-002 ft:babbage-002"
    ),
}
_NAMES = {
    "o200k_base": "o1 o3 o4-mini gpt-5 gpt-4.1 gpt-4o",
    "cl100k_base": (
        "gpt-4 gpt-3.5-turbo gpt-3.5 gpt-35-turbo davinci-002 babbage-002 "
        "text-embedding-ada-002 text-embedding-3-small text-embedding-3-large"
    ),
    "p50k_base": (
        "text-davinci-003 text-davinci-002 code-davinci-002 code-davinci-001 code-cushman-002 "
        "code-cushman-001 davinci-codex cushman-codex"
    ),
    "r50k_base": (
        "text-davinci-001 text-curie-001 text-babbage-001 text-ada-001 davinci curie babbage ada "
        "text-similarity-davinci-001 text-similarity-curie-001 text-similarity-babbage-001 "
        "text-similarity-ada-001 text-search-davinci-doc-001 text-search-curie-doc-001 "
        "text-search-babbage-doc-001 text-search-ada-doc-001 code-search-babbage-code-001 "
        "code-search-ada-code-001"
    ),
    "p50k_edit": "text-davinci-edit-001 code-davinci-edit-001",
    "gpt2": "gpt2 gpt-2",
}

# Prefixes of model names; the first match decides.
MODEL_PREFIX_TO_ENCODING: Final[dict[str, str]] = {
    prefix: encoding for encoding, prefixs in _PREFIXES.items() for prefix in prefixs.split()
}
# Whole names, which take precedence over prefixes.
MODEL_TO_ENCODING: Final[dict[str, str]] = {
    name: encoding for encoding, names in _NAMES.items() for name in names.split()
}


def encoding_name_for_model(model_name: str) -> str:
    """Return the name of the encoding that a model uses.

    Raises:
        UnknownModelError: The model is unknown; it is a `KeyError`.

    >>> encoding_name_for_model("gpt-4o-2024-05-13")
    'o200k_base'
    """
    if model_name in MODEL_TO_ENCODING:
        return MODEL_TO_ENCODING[model_name]
    for prefix, encoding in MODEL_PREFIX_TO_ENCODING.items():
        if model_name.startswith(prefix):
            return encoding
    raise UnknownModelError(
        f"unknown model {shorten(model_name)}; use get_encoding() with a name of list_encoding_names()"
    )


def encoding_for_model(model_name: str) -> Encoding:
    """Return the encoding that a model uses.

    Raises:
        UnknownModelError: The model is unknown; it is a `KeyError`.
    """
    return get_encoding(encoding_name_for_model(model_name))
