"""A lesson in byte-pair encoding, in pure Python: short files, listed in reading order.

1. `smallest`: the whole of byte-pair encoding on ids, in about 50 lines: `BasicBPE`.
2. `naive`: a tokenizer with checks, errors and traces, over the whole text: `NaiveBPETokenizer`.
3. `splitting`: the text is split into pieces first, as GPT-2 and GPT-4 do: `RegexBPETokenizer`.
4. `characters`: characters instead of bytes, `Ġ` for the space, and OpenAI's files: `CharBPETokenizer`.
5. `words`: BPE on a table of words, as plain functions.
6. `special` and `chat`: special tokens, and conversations whose messages cannot forge them.
7. `ranks`: GPT-4's tokenizer from its published ranks.
8. `tracing`: every step of training, encoding and decoding, as data and for printing.

The rest is machinery: `text` has the error class and what concerns printing, and `saving` has the JSON file
and the listing for people. Nothing here is fast, and nothing else of the package is imported. Split patterns,
from 3 on, need the `regex` module, because Python's `re` does not know the classes of Unicode: `pip install
regex`. The course in `docs/learn/` explains these files.

The algorithm is that of Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword
Units", 2016, https://aclanthology.org/P16-1162/; on bytes, as in Radford et al., "Language Models are
Unsupervised Multitask Learners", 2019 (GPT-2). The order of the lesson owes much to
https://github.com/karpathy/minbpe.
"""

from . import words
from .characters import BPETokenizerSimple, CharBPETokenizer
from .chat import chatml_segments, encode_segments
from .naive import NaiveBPETokenizer, apply_merges, learn_merges
from .ranks import from_ranks, read_ranks
from .smallest import BasicBPE, compute_pair_of_tokens_stats, count_pairs, merge_pair
from .special import split_at_special
from .splitting import GPT2_SPLIT_PATTERN, GPT4_SPLIT_PATTERN, RegexBPE, RegexBPETokenizer, split
from .text import TokenizerError
from .tracing import DecodeTrace, EncodeTrace, MergeTree, TrainingTrace

__all__ = [
    "GPT2_SPLIT_PATTERN", "GPT4_SPLIT_PATTERN", "BPETokenizerSimple", "BasicBPE", "CharBPETokenizer",
    "DecodeTrace", "EncodeTrace", "MergeTree", "NaiveBPETokenizer", "RegexBPE", "RegexBPETokenizer",
    "TokenizerError", "TrainingTrace", "apply_merges", "chatml_segments", "compute_pair_of_tokens_stats",
    "count_pairs", "encode_segments", "from_ranks", "learn_merges", "merge_pair", "read_ranks", "split",
    "split_at_special", "words",
]  # fmt: skip
