"""A lesson in byte-pair encoding, in pure Python: short files, listed in reading order.

1. `pairs`: the two basic operations: count the pairs, merge a pair.
2. `merging`: training and encoding, as two loops over these operations.
3. `unicode`: from text to bytes, and from bytes to printable text.
4. `special`: special tokens: where they cut the text, which ids they get, whether a text may hold them.
5. `tokenizer`: training, encoding and decoding, for all three tokenizers.
6. `naive`: `NaiveBPETokenizer`, which merges over the whole byte stream.
7. `splitting`: `RegexBPETokenizer`, which splits the text into pieces first, as GPT-4 does.
8. `characters`: `CharBPETokenizer`, which starts from characters, and reads OpenAI's files of GPT-2.
9. `tracing`: every step of encoding or decoding, for printing.
10. `saving`: a tokenizer as a JSON file, and as a listing for people.
11. `oracle`: training and encoding once more, as simply as possible. The tests compare the fast core with it.

Nothing here is fast, and nothing else of the package is imported. Split patterns, from 7, need the `regex`
module, because Python's `re` does not know the classes of Unicode: `pip install "bpe-tokenizer[reference]"`.

The algorithm is that of Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword
Units", 2016, https://aclanthology.org/P16-1162/; on bytes, as in Radford et al., "Language Models are
Unsupervised Multitask Learners", 2019 (GPT-2). The order of the lesson owes much to
https://github.com/karpathy/minbpe.
"""

from .characters import CharBPETokenizer
from .merging import learn_merges, merge_all, origins, rank_merges
from .naive import NaiveBPETokenizer
from .pairs import count_pairs, merge_pair
from .splitting import GPT2_PATTERN, GPT4_PATTERN, RegexBPETokenizer, split
from .tokenizer import Tokenizer
from .tracing import DecodeTrace, EncodeTrace

__all__ = [
    "GPT2_PATTERN",
    "GPT4_PATTERN",
    "CharBPETokenizer",
    "DecodeTrace",
    "EncodeTrace",
    "NaiveBPETokenizer",
    "RegexBPETokenizer",
    "Tokenizer",
    "count_pairs",
    "learn_merges",
    "merge_all",
    "merge_pair",
    "origins",
    "rank_merges",
    "split",
]
