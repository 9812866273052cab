"""The interface of Hugging Face's `tokenizers` over this package's core.

    from bpe_tokenizer.compat.tokenizers import Tokenizer

`Tokenizer` loads a tokenizer.json, encodes, decodes, pads and truncates as `tokenizers.Tokenizer` does. Its
results are `Encoding`s. Its components are read-only, and it does not train: `BPETokenizer` does.
`docs/migrate-transformers.md` lists the differences.
"""

from __future__ import annotations

from bpe_tokenizer.compat.tokenizers.encodings import Encoding
from bpe_tokenizer.compat.tokenizers.tokenizer import Tokenizer

__all__ = ["Encoding", "Tokenizer"]
