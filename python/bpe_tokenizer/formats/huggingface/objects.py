"""Makes objects of `tokenizers` and `transformers` from models."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from bpe_tokenizer.formats import huggingface
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.model import Model

if TYPE_CHECKING:
    import tokenizers
    from transformers import PreTrainedTokenizerFast

__all__ = ["to_tokenizers", "to_transformers"]


def to_tokenizers(model: Model) -> tokenizers.Tokenizer:
    """Return a `tokenizers.Tokenizer` that gives the same ids as a model.

    Raises:
        FormatError: A tokenizer.json cannot hold something of the model.
        MissingDependencyError: tokenizers is not installed.
    """
    library = import_library("tokenizers", "")
    tokenizer: tokenizers.Tokenizer = library.Tokenizer.from_str(huggingface.to_json(model).decode("utf-8"))
    return tokenizer


def to_transformers(model: Model) -> PreTrainedTokenizerFast:
    """Return the `PreTrainedTokenizerFast` that transformers makes of a saved model.

    Raises:
        FormatError: The format cannot hold something of the model.
        MissingDependencyError: transformers is not installed.
    """
    library = import_library("transformers", "transformers")
    with tempfile.TemporaryDirectory(prefix="bpe_tokenizer-") as directory:
        huggingface.save(model, directory)
        tokenizer: PreTrainedTokenizerFast = library.PreTrainedTokenizerFast.from_pretrained(
            directory, local_files_only=True
        )
    # The directory does not exist any more.
    tokenizer.name_or_path = ""
    tokenizer.init_kwargs["name_or_path"] = ""
    return tokenizer
