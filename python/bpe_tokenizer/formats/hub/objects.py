"""Objects of `tokenizers` and `transformers`: read as the files that they would save."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats import huggingface
from bpe_tokenizer.model import Model
from bpe_tokenizer.special_tokens import ROLES

__all__ = ["TokenizersTokenizer", "TransformersTokenizer", "from_tokenizers", "from_transformers"]


@runtime_checkable
class TokenizersTokenizer(Protocol):
    """What a `tokenizers.Tokenizer` is known by."""

    def to_str(self) -> str:
        """Return what its tokenizer.json would hold."""


@runtime_checkable
class TransformersTokenizer(Protocol):
    """What a tokenizer of `transformers` is known by."""

    @property
    def is_fast(self) -> bool:
        """Whether `tokenizers` is behind it."""

    def save_pretrained(self, save_directory: str, **options: Any) -> object:
        """Save its files."""


def from_tokenizers(tokenizer: TokenizersTokenizer) -> Model:
    """Return the model of a `tokenizers.Tokenizer`, or of a class of `tokenizers.implementations`.

    Raises:
        FormatError: It cannot be saved (it has parts written in Python), or not represented exactly.
    """

    def save(directory: Path) -> None:
        (directory / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")

    return _save_and_load(tokenizer, save)


def from_transformers(tokenizer: TransformersTokenizer) -> Model:
    """Return the model of a fast tokenizer of `transformers`.

    A role that it gives to no token is none's, whatever the names of its tokens.

    Raises:
        FormatError: It is none of the fast ones, cannot be saved, or cannot be represented exactly.
    """
    if not tokenizer.is_fast:
        raise FormatError(
            f"{_name(tokenizer)}: is no fast tokenizer of transformers: it encodes in Python or with another "
            "library, and no tokenizer.json says what it does. Give the fast one, from "
            "AutoTokenizer.from_pretrained(...), or the files that it was loaded from"
        )

    def save(directory: Path) -> None:
        # In the config there is a place for several chat templates; chat_template.jinja holds one.
        tokenizer.save_pretrained(str(directory), save_jinja_files=False)
        path = directory / "tokenizer_config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        for role in ROLES:
            config.setdefault(f"{role}_token", None)
        path.write_text(json.dumps(config), encoding="utf-8")

    return _save_and_load(tokenizer, save)


def _save_and_load(tokenizer: object, save: Callable[[Path], None]) -> Model:
    with tempfile.TemporaryDirectory(prefix="bpe_tokenizer-") as name:
        directory = Path(name)
        try:
            save(directory)
        except Exception as error:  # a bare Exception, where a part of the tokenizer is written in Python
            raise FormatError(f"{_name(tokenizer)}: cannot be saved: {error}") from error
        try:
            return huggingface.load(directory)
        except FormatError as error:
            message = str(error).replace(f"{directory}{os.sep}", "").replace(str(directory), "")
            raise FormatError(f"{_name(tokenizer)}: {message}") from error


def _name(tokenizer: object) -> str:
    kind = type(tokenizer)
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
