"""The encodings of OpenAI's models, by the models' names.

Facts of tiktoken 0.14, `tiktoken/model.py`: https://github.com/openai/tiktoken
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["MODEL_NAMES", "MODEL_PREFIXES", "find_encoding_name"]

# A longer prefix precedes a shorter one.
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


def _by_name(names: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(
        {name: encoding for encoding, several in names.items() for name in several.split()}
    )


# The encoding of each prefix of model names; the first match decides.
MODEL_PREFIXES = _by_name(_PREFIXES)
# The encoding of each whole name, which takes precedence over prefixes.
MODEL_NAMES = _by_name(_NAMES)


def find_encoding_name(
    model_name: str,
    names: Mapping[str, str] = MODEL_NAMES,
    prefixes: Mapping[str, str] = MODEL_PREFIXES,
) -> str | None:
    """Return the name of the encoding that a model uses; None for an unknown model.

    >>> find_encoding_name("gpt-4o-2024-05-13"), find_encoding_name("llama3")
    ('o200k_base', None)
    """
    if model_name in names:
        return names[model_name]
    return next((encoding for prefix, encoding in prefixes.items() if model_name.startswith(prefix)), None)
