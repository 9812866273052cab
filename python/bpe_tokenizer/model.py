"""`Model`: a whole tokenizer as an immutable value, which files are read into and written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from bpe_tokenizer import _core

__all__ = ["AddedToken", "Model", "PostProcessor"]


class AddedToken(NamedTuple):
    """A token that is found in the text before the text is split into pieces, and is never merged.

    Args:
        content: The text of the token.
        id: Its id.
        special: True for a control token, which is plain text unless `allowed_special` names it. A token
            that is not special is always found.
        single_word: Found only where no word character touches it.
        lstrip: Includes the white space before it.
        rstrip: Includes the white space after it.
        normalized: Found in the normalised text instead of the original text.

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
    """The ids that `add_special_tokens=True` adds.

    Args:
        prefix: Ids at the beginning.
        suffix: Ids at the end.
    """

    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()


@dataclass(frozen=True)
class Model:
    """A whole tokenizer: what the core runs, and what only people and files know.

    Args:
        core: Vocabulary, merges, split patterns, normalisation and added tokens.
        named_tokens: The special tokens by role: `"bos"`, `"eos"`, `"pad"`, `"unk"`. For a missing role, the
            tokens' names decide; "" says that the role has no token.
        post_processor: What `add_special_tokens=True` adds; None adds BOS at the beginning and EOS at the
            end, if they exist.
        config: Entries of a `tokenizer_config.json` that this package does not interpret and writes back
            (`model_max_length`, `chat_template`, ...).
    """

    core: _core.Model
    named_tokens: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    post_processor: PostProcessor | None = None
    config: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
