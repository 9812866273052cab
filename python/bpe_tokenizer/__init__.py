"""Byte-level BPE tokenizers: train, encode, decode, save and load, exactly and fast.

Train a tokenizer, or load one: `load` takes a file, a directory, or a published name such as `"gpt2"`.

>>> from bpe_tokenizer import BPETokenizer
>>> tokenizer = BPETokenizer().train("low low low lower lowest", vocab_size=259, verbose=False)
>>> ids = tokenizer.encode("low lower")
>>> ids, tokenizer.decode(ids)
([257, 258, 101, 114], 'low lower')
>>> tokenizer(["low", "lower"])[1].tokens
['low', 'e', 'r']
>>> tokenizer.save("my-tokenizer")  # doctest: +SKIP

`help(BPETokenizer)` lists what a tokenizer can do. `StreamDecoder` decodes ids as they arrive, `ChatSession`
talks to a language model, `PieceCounts` holds the counts of a corpus, and all errors are `TokenizerError`s.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from bpe_tokenizer._core import __version__
from bpe_tokenizer.decoding import build_byte_to_char, build_char_to_byte
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    ChatTemplateError,
    ContextLengthError,
    CorpusError,
    CorpusFileNotFoundError,
    DecodingError,
    FormatError,
    GenerationError,
    HubError,
    MismatchError,
    MissingDependencyError,
    ModelError,
    ModelFileNotFoundError,
    NotTrainedError,
    OptionError,
    PatternError,
    SpecialTokenError,
    TokenizerError,
    TokenizerFileNotFoundError,
    UnknownColumnError,
    UnknownIdError,
    WriteError,
)
from bpe_tokenizer.model import AddedToken, Model, PostProcessor
from bpe_tokenizer.patterns import (
    CL100K_SPLIT_PATTERN,
    GPT2_SPLIT_PATTERN,
    O200K_SPLIT_PATTERN,
    SPLIT_PATTERNS,
)
from bpe_tokenizer.special_tokens import CHATML_SPECIAL_TOKENS, LLAMA3_SPECIAL_TOKENS
from bpe_tokenizer.streaming import StreamDecoder
from bpe_tokenizer.tokenizer import BPETokenizer, load, train_from_counts

if _TYPE_CHECKING:
    from bpe_tokenizer.chat import ChatTemplate
    from bpe_tokenizer.chat.reply import Reply
    from bpe_tokenizer.chat.session import ChatSession
    from bpe_tokenizer.inference import InferenceBackend, detect_best_backend
    from bpe_tokenizer.results import EncodingResult
    from bpe_tokenizer.train.piece_counts import PieceCounts, count
    from bpe_tokenizer.train.progress import OnProgress, Progress, report_progress
    from bpe_tokenizer.train.trainer import train_bpe
    from bpe_tokenizer.view.reports.making import compare, report

__all__ = [
    "CHATML_SPECIAL_TOKENS",
    "CL100K_SPLIT_PATTERN",
    "GPT2_SPLIT_PATTERN",
    "LLAMA3_SPECIAL_TOKENS",
    "O200K_SPLIT_PATTERN",
    "SPLIT_PATTERNS",
    "AddedToken",
    "ArgumentTypeError",
    "BPETokenizer",
    "ChatSession",
    "ChatTemplate",
    "ChatTemplateError",
    "ContextLengthError",
    "CorpusError",
    "CorpusFileNotFoundError",
    "DecodingError",
    "EncodingResult",
    "FormatError",
    "GenerationError",
    "HubError",
    "InferenceBackend",
    "MismatchError",
    "MissingDependencyError",
    "Model",
    "ModelError",
    "ModelFileNotFoundError",
    "NotTrainedError",
    "OnProgress",
    "OptionError",
    "PatternError",
    "PieceCounts",
    "PostProcessor",
    "Progress",
    "Reply",
    "SpecialTokenError",
    "StreamDecoder",
    "TokenizerError",
    "TokenizerFileNotFoundError",
    "UnknownColumnError",
    "UnknownIdError",
    "WriteError",
    "__version__",
    "build_byte_to_char",
    "build_char_to_byte",
    "compare",
    "count",
    "detect_best_backend",
    "load",
    "report",
    "report_progress",
    "train_bpe",
    "train_from_counts",
]

# Public names whose modules load on first use, and rooms that are also used as attributes: loading them here
# would triple the time of the import.
_LAZY = {
    "ChatSession": "chat.session",
    "ChatTemplate": "chat",
    "EncodingResult": "results",
    "InferenceBackend": "inference",
    "OnProgress": "train.progress",
    "PieceCounts": "train.piece_counts",
    "Progress": "train.progress",
    "Reply": "chat.reply",
    "compare": "view.reports.making",
    "count": "train.piece_counts",
    "detect_best_backend": "inference",
    "report": "view.reports.making",
    "report_progress": "train.progress",
    "train_bpe": "train.trainer",
}
_LAZY_ROOMS = frozenset({"chat", "compat", "formats", "inference", "results", "train", "view"})


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _LAZY_ROOMS:
        return import_module(f"{__name__}.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
