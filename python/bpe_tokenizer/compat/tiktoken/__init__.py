"""tiktoken's interface: `import bpe_tokenizer.compat.tiktoken as tiktoken`.

Names, arguments, defaults, results and exceptions are those of tiktoken 0.14, with the exceptions that
`docs/tiktoken.md` lists: https://github.com/openai/tiktoken
"""

from bpe_tokenizer.compat.tiktoken.core import Encoding
from bpe_tokenizer.compat.tiktoken.model import encoding_for_model, encoding_name_for_model
from bpe_tokenizer.compat.tiktoken.registry import get_encoding, list_encoding_names

__all__ = [
    "Encoding",
    "encoding_for_model",
    "encoding_name_for_model",
    "get_encoding",
    "list_encoding_names",
]

# The release of tiktoken whose interface this is.
__version__ = "0.14.0"
