"""Loads objects of `tokenizers` and `transformers` through the files that they save."""

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
    """The methods that identify a `tokenizers.Tokenizer`."""

    def to_str(self) -> str:
        """Return its tokenizer.json."""


@runtime_checkable
class TransformersTokenizer(Protocol):
    """The methods that identify a tokenizer of `transformers`."""

    @property
    def is_fast(self) -> bool:
        """Whether it runs on `tokenizers`."""

    def save_pretrained(self, save_directory: str, **options: Any) -> object:
        """Save its files."""


def from_tokenizers(tokenizer: TokenizersTokenizer) -> Model:
    """Return the model of a `tokenizers.Tokenizer`, or of a class of `tokenizers.implementations`.

    Raises:
        FormatError: It cannot be saved (a part is written in Python) or cannot be represented exactly.
    """

    def save(directory: Path) -> None:
        (directory / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")

    return _save_and_load(tokenizer, save)


def from_transformers(tokenizer: TransformersTokenizer) -> Model:
    """Return the model of a fast tokenizer of `transformers`.

    A role without a token stays empty, whatever the names of the tokens suggest.

    Raises:
        FormatError: It is not a fast tokenizer, cannot be saved, or cannot be represented exactly.
    """
    if not tokenizer.is_fast:
        raise FormatError(
            f"{_name(tokenizer)}: is not a fast tokenizer of transformers, so no tokenizer.json defines it; "
            "give the fast one, from AutoTokenizer.from_pretrained(...), or its files"
        )

    def save(directory: Path) -> None:
        # tokenizer_config.json can hold several chat templates, chat_template.jinja only one.
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
        except MemoryError:
            raise
        except Exception as error:  # the library raises a bare Exception if a part is written in Python
            raise FormatError(f"{_name(tokenizer)}: cannot be saved: {error}") from error
        try:
            return huggingface.load(directory)
        except FormatError as error:
            message = str(error).replace(f"{directory}{os.sep}", "").replace(f"{directory}: ", "")
            raise FormatError(f"{_name(tokenizer)}: {message}") from error


def _name(tokenizer: object) -> str:
    kind = type(tokenizer)
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
