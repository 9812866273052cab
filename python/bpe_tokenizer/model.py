"""The value that files are read into and written from: everything a tokenizer is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from bpe_tokenizer import _core

__all__ = ["AddedToken", "Model", "PostProcessor"]


class AddedToken(NamedTuple):
    """A token that is found in the text before it is split into pieces, and is never merged.

    Args:
        content: The text that the token stands for.
        id: Its id.
        special: A control token: plain text unless `allowed_special` names it. Otherwise the token
            is part of the vocabulary and always found.
        single_word: Found only where no word character touches it.
        lstrip: Takes the white space before it along.
        rstrip: Takes the white space after it along.
        normalized: Looked for in the normalised text instead of the text as given.

    The flags are those of Hugging Face's `AddedToken`:
    https://huggingface.co/docs/tokenizers/api/added-tokens
    """

    content: str
    id: int
    special: bool = True
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False


@dataclass(frozen=True)
class PostProcessor:
    """The ids that `add_special_tokens=True` puts around a text.

    Args:
        prefix: Ids before the text.
        suffix: Ids after the text.
    """

    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()


@dataclass(frozen=True)
class Model:
    """Everything a tokenizer is: what the core runs, and what only people and files know.

    Args:
        core: Vocabulary, merges, split patterns, normalisation and added tokens.
        named_tokens: The special tokens that play a part, by role: `"bos"`, `"eos"`, `"pad"`, `"unk"`.
            A role that is absent is found from the tokens' names; "" says that no token plays it.
        post_processor: What `add_special_tokens=True` adds; None puts BOS before and EOS after the
            text, where they exist.
        config: Entries of a `tokenizer_config.json` that we do not interpret and give back on saving
            (`model_max_length`, `chat_template`, ...).
    """

    core: _core.Model
    named_tokens: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    post_processor: PostProcessor | None = None
    config: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
