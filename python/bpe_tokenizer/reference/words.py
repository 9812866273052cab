"""5. BPE on words: the classic form of the algorithm, as plain functions.

Sennrich's paper counts words, not text: `{("l", "o", "w"): 5, ...}`. Training works on this table alone, so a
corpus of any size needs one pass. Each byte is one of GPT-2's printable characters, and a token is a string.

The algorithm is that of Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword
Units", 2016, https://aclanthology.org/P16-1162/.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from .characters import BYTE_CHARACTERS
from .saving import load_tokenizer as load_tokenizer
from .saving import save_tokenizer as save_tokenizer
from .smallest import count_pairs, merge_pair
from .special import split_at_special
from .splitting import split
from .text import TokenizerError

if TYPE_CHECKING:
    import regex

# A variant of GPT-4's: any white space may precede punctuation, and line ends are one piece.
SPLIT_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# The symbols of a word: a tuple of strings, or a string with spaces between them, as in the paper.
Word = TypeVar("Word", str, tuple[str, ...])
Merge: TypeAlias = tuple[str, str]


def get_stats(vocab: Mapping[Word, int]) -> dict[Merge, int]:
    """Count the pairs of neighbouring symbols in a table of words.

    >>> get_stats({("l", "o", "w"): 5, ("l", "o"): 2})
    {('l', 'o'): 7, ('o', 'w'): 5}
    >>> get_stats({"l o w": 5})
    {('l', 'o'): 5, ('o', 'w'): 5}
    """
    counts: dict[Merge, int] = {}
    for word, times in vocab.items():
        count_pairs(word.split() if isinstance(word, str) else word, counts, times)
    return counts


def merge_vocab(pair: Merge, vocab: Mapping[Word, int]) -> dict[Word, int]:
    """Merge a pair in every word of a table.

    >>> merge_vocab(("l", "o"), {("l", "o", "w"): 5})
    {('lo', 'w'): 5}
    >>> merge_vocab(("l", "o"), {"l o w": 5})
    {'lo w': 5}
    """
    merged: dict[Word, int] = {}
    for word, times in vocab.items():
        symbols = merge_pair(word.split() if isinstance(word, str) else word, pair, "".join(pair))
        merged[" ".join(symbols) if isinstance(word, str) else tuple(symbols)] = times
    return merged


def build_byte_vocab() -> dict[int, str]:
    """Return GPT-2's printable character of each byte, the visible characters first.

    >>> build_byte_vocab()[ord(" ")]
    'Ġ'
    """
    return dict(sorted(enumerate(BYTE_CHARACTERS), key=lambda entry: entry[1]))


def train_bpe(
    corpus_iterator: Iterable[str], vocab_size: int, min_frequency: int = 2, verbose: bool = False
) -> tuple[dict[str, int], list[Merge]]:
    """Learn a vocabulary from texts. Of pairs with equal counts, the greatest pair of strings is merged.

    Args:
        corpus_iterator: The texts of the corpus; each is read once.
        vocab_size: The number of tokens: 256 bytes, and the tokens to learn.
        min_frequency: Stop when the best pair occurs less often than this.
        verbose: Print each merge.

    Returns:
        The id of each token, and the merges in order.

    Raises:
        TokenizerError: `vocab_size` leaves no token to learn.

    >>> token_to_id, merges = train_bpe(["low low lower"], 259, min_frequency=1)
    >>> merges
    [('o', 'w'), ('l', 'ow'), ('Ġ', 'low')]
    >>> token_to_id["Ġlow"]
    258
    """
    if vocab_size <= 256:
        raise TokenizerError(f"vocab_size={vocab_size} must be greater than 256, the number of bytes")
    words = Counter(piece for text in corpus_iterator for piece in split(text, SPLIT_PATTERN))
    vocab = {tuple(BYTE_CHARACTERS[byte] for byte in word.encode()): times for word, times in words.items()}
    token_to_id = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}
    merges: list[Merge] = []
    while len(merges) < vocab_size - 256 and (counts := get_stats(vocab)):
        count, best = max((count, pair) for pair, count in counts.items())
        if count < min_frequency:
            break
        vocab = merge_vocab(best, vocab)
        token_to_id["".join(best)] = len(token_to_id)
        merges.append(best)
        if verbose:
            print(f"merge {len(merges)}: {best[0]} + {best[1]}, seen {count} times")
    return token_to_id, merges


def encode_pre_token(
    pre_token_bytes: bytes, byte_to_char: Mapping[int, str], merge_ranks: Mapping[Merge, int]
) -> list[str]:
    """Turn a single piece into tokens: merge the pair of the lowest rank, the leftmost first, and repeat.

    >>> encode_pre_token(b" lower", build_byte_vocab(), {("l", "o"): 0, ("lo", "w"): 1})
    ['Ġ', 'low', 'e', 'r']
    """
    tokens = [byte_to_char[byte] for byte in pre_token_bytes]
    while found := [(merge_ranks[p], i) for i, p in enumerate(pairwise(tokens)) if p in merge_ranks]:
        _, i = min(found)
        tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
    return tokens


def make_cached_encoder(
    byte_to_char: Mapping[int, str], merge_ranks: Mapping[Merge, int], max_cache_size: int | None = 65_536
) -> Callable[[bytes], tuple[str, ...]]:
    """Return `encode_pre_token` as a function that remembers the tokens of pieces.

    Most pieces of a text repeat, so this is many times as fast.

    >>> encoder = make_cached_encoder(build_byte_vocab(), {("l", "o"): 0, ("lo", "w"): 1})
    >>> encoder(b" lower")
    ('Ġ', 'low', 'e', 'r')
    """
    return lru_cache(max_cache_size)(lambda data: tuple(encode_pre_token(data, byte_to_char, merge_ranks)))


def encode(
    text: str,
    token_to_id: Mapping[str, int],
    merges: Iterable[Merge],
    special_tokens: Mapping[str, int] = MappingProxyType({}),
    split_pattern: "str | regex.Pattern[str]" = SPLIT_PATTERN,
    byte_to_char: Mapping[int, str] = MappingProxyType(build_byte_vocab()),
) -> list[int]:
    """Turn a text into ids. It is cut at the special tokens, so a user who types one forges it: see `special`.

    >>> token_to_id, merges = train_bpe(["low low lower"], 259, min_frequency=1)
    >>> encode("low low<|end|>", token_to_id, merges, {"<|end|>": 259})
    [257, 258, 259]
    """
    encoder = make_cached_encoder(byte_to_char, {pair: rank for rank, pair in enumerate(merges)})
    ids: list[int] = []
    for part in split_at_special(text, special_tokens):
        if part in special_tokens:
            ids.append(special_tokens[part])
            continue
        for piece in split(part, split_pattern):
            ids += [token_to_id[token] for token in encoder(piece.encode())]
    return ids


def decode(
    ids: Iterable[int],
    id_to_token: Sequence[str],
    char_to_byte: Mapping[str, int],
    special_token_ids: Collection[int] = frozenset(),
) -> str:
    """Turn ids into text. Bytes that are not UTF-8 become U+FFFD.

    Args:
        ids: The ids.
        id_to_token: The token of each id, the special tokens too.
        char_to_byte: The byte of each printable character.
        special_token_ids: The ids of the special tokens, which are text and not characters of bytes.

    Raises:
        TokenizerError: An id is not in the vocabulary.

    >>> token_to_id, merges = train_bpe(["low low lower"], 259, min_frequency=1)
    >>> char_to_byte = {character: byte for byte, character in build_byte_vocab().items()}
    >>> decode([257, 258, 259], [*token_to_id, "<|end|>"], char_to_byte, {259})
    'low low<|end|>'
    """
    text, data = "", b""
    for token_id in ids:
        if not 0 <= token_id < len(id_to_token):
            raise TokenizerError(f"id {token_id} is not in the vocabulary of {len(id_to_token)} tokens")
        token = id_to_token[token_id]
        if token_id in special_token_ids:
            text, data = text + data.decode("utf-8", "replace") + token, b""
        else:
            data += bytes(char_to_byte[character] for character in token)
    return text + data.decode("utf-8", "replace")


def apply_llama3_chat_template(
    messages: Iterable[Mapping[str, str]], add_generation_prompt: bool = True
) -> str:
    r"""Write a conversation as LLaMA 3 reads it. A message may forge turns: see `chat`.

    >>> apply_llama3_chat_template([{"role": "user", "content": "Hi"}], add_generation_prompt=False)
    '<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>'
    """
    header = "<|start_header_id|>{}<|end_header_id|>\n\n"
    turns = [header.format(turn["role"]) + turn["content"] + "<|eot_id|>" for turn in messages]
    return "".join(["<|begin_of_text|>", *turns, header.format("assistant") * add_generation_prompt])


def apply_chatml_template(messages: Iterable[Mapping[str, str]], add_generation_prompt: bool = True) -> str:
    r"""Write a conversation in ChatML. A message may forge turns: see `chat`.

    >>> apply_chatml_template([{"role": "user", "content": "Hi"}], add_generation_prompt=False)
    '<|im_start|>user\nHi<|im_end|>\n'
    """
    turns = [f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n" for turn in messages]
    return "".join([*turns, "<|im_start|>assistant\n" * add_generation_prompt])
