"""transformers' interface over this package's core.

    from bpe_tokenizer.compat.transformers import AutoTokenizer

`AutoTokenizer.from_pretrained` returns what transformers returns, in a subclass of its class: every method,
argument, result and error is transformers', and this package's core encodes and decodes. The classes of
transformers are here by their names, such as `PreTrainedTokenizerFast` and `GPT2TokenizerFast`.
`docs/transformers.md` lists the differences.
"""

from __future__ import annotations

from typing import Any

from bpe_tokenizer.compat.transformers.auto import AutoTokenizer, from_tokenizer, register, unregister
from bpe_tokenizer.compat.transformers.face import face_class
from bpe_tokenizer.libraries import import_library

__all__ = ["AutoTokenizer", "from_tokenizer", "register", "unregister"]


def __getattr__(name: str) -> Any:
    """Return the subclass of a class of transformers; pickles find the classes here."""
    if name[:1].isupper():  # not what pytest and others look up in every module
        transformers = import_library("transformers", "transformers")
        found = getattr(transformers, name, None)
        if isinstance(found, type) and issubclass(found, transformers.PreTrainedTokenizerFast):
            return face_class(found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
