"""transformers' interface over this package's core.

    from bpe_tokenizer.compat.transformers import AutoTokenizer

`AutoTokenizer.from_pretrained` returns what transformers returns, in a subclass of its class: every method,
argument, result and error is transformers', and this package's core encodes and decodes. The tokenizers of
transformers are here by their names, such as `PreTrainedTokenizerFast` and `GPT2TokenizerFast`, and so is the
rest of transformers, unchanged: `from bpe_tokenizer.compat.transformers import AutoModelForCausalLM`.
`docs/hugging-face.md` lists the differences.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from bpe_tokenizer.compat.transformers.auto import AutoTokenizer, from_tokenizer, register, unregister
from bpe_tokenizer.compat.transformers.face import face_class
from bpe_tokenizer.libraries import import_library

__all__ = ["AutoTokenizer", "from_tokenizer", "register", "unregister"]


def __getattr__(name: str) -> Any:
    """Return what transformers has by this name; of a tokenizer its subclass, which pickles find here."""
    # pytest and others look up names in every module, with transformers or without.
    if name[:1].isupper() or (name[:1].isalpha() and find_spec("transformers")):
        transformers = import_library("transformers", "transformers")
        found = getattr(transformers, name, None)
        if not isinstance(found, type) or not issubclass(found, transformers.PreTrainedTokenizerBase):
            if found is not None:
                return found
        elif issubclass(found, transformers.PreTrainedTokenizerFast):
            return face_class(found)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
