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
from typing import TypeAlias, TypeVar

from .characters import BYTE_CHARACTERS
from .saving import load_tokenizer as load_tokenizer
from .saving import save_tokenizer as save_tokenizer
from .smallest import count_pairs, merge_pair
from .special import split_at_special
from .splitting import Pattern, split
from .text import TokenizerError

# LLaMA 3's, but any white space may precede punctuation, where LLaMA 3's takes a space only.
SPLIT_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# The symbols of a word: a tuple of strings, or a string with spaces between them, as in the paper.
Word = TypeVar("Word", str, tuple[str, ...])
Merge: TypeAlias = tuple[str, str]
Ids: TypeAlias = Mapping[str, int]  # The id of each token, or the byte of each character.
Characters: TypeAlias = Mapping[int, str]  # The printable character of each byte, or the token of each id.


def pre_tokenize(text: str) -> list[str]:
    """Split a text into pieces with `SPLIT_PATTERN`.

    >>> pre_tokenize("Hello, world! It's 2026.")
    ['Hello', ',', ' world', '!', ' It', "'s", ' ', '202', '6', '.']
    """
    return split(text, SPLIT_PATTERN)


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
    words = Counter(piece for text in corpus_iterator for piece in pre_tokenize(text))
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
    pre_token_bytes: bytes, byte_to_char: Characters, merge_ranks: Mapping[Merge, int]
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
    byte_to_char: Characters, merge_ranks: Mapping[Merge, int], max_cache_size: int | None = 65_536
) -> Callable[[bytes], tuple[str, ...]]:
    """Return `encode_pre_token` as a function that remembers the tokens of pieces.

    Most pieces of a text repeat, so this is many times as fast.

    >>> encoder = make_cached_encoder(build_byte_vocab(), {("l", "o"): 0, ("lo", "w"): 1})
    >>> encoder(b" lower")
    ('Ġ', 'low', 'e', 'r')
    """
    return lru_cache(max_cache_size)(lambda data: tuple(encode_pre_token(data, byte_to_char, merge_ranks)))


def encode(
    text: str, token_to_id: Ids, merges: Iterable[Merge], special_tokens: Ids, split_pattern: Pattern,
    byte_to_char: Characters,
) -> list[int]:  # fmt: skip
    """Turn a text into ids.

    The text is cut at the special tokens, so a user who types one forges it: see `special`.

    >>> token_to_id, merges = train_bpe(["low low lower"], 259, min_frequency=1)
    >>> special = {"<|end|>": 259}
    >>> encode("low low<|end|>", token_to_id, merges, special, SPLIT_PATTERN, build_byte_vocab())
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
    ids: Iterable[int], id_to_token: Sequence[str] | Characters, char_to_byte: Ids,
    special_token_ids: Collection[int],
) -> str:  # fmt: skip
    """Turn ids into text. Bytes that are not UTF-8 become U+FFFD.

    Args:
        ids: The ids.
        id_to_token: The token of each id, the special tokens too: a list, or a dict.
        char_to_byte: The byte of each printable character.
        special_token_ids: The ids of the special tokens, which are text and not characters of bytes.

    Raises:
        TokenizerError: An id is not in the vocabulary, or its token is not made of characters of bytes.

    >>> token_to_id, merges = train_bpe(["low low lower"], 259, min_frequency=1)
    >>> char_to_byte = {character: byte for byte, character in build_byte_vocab().items()}
    >>> decode([257, 258, 259], [*token_to_id, "<|end|>"], char_to_byte, {259})
    'low low<|end|>'
    """
    tokens = id_to_token if isinstance(id_to_token, Mapping) else dict(enumerate(id_to_token))
    text, data = "", b""
    for token_id in ids:
        if token_id not in tokens:
            raise TokenizerError(f"id {token_id} is not in the vocabulary of {len(tokens)} tokens")
        token = tokens[token_id]
        if token_id in special_token_ids:
            text, data = text + data.decode("utf-8", "replace") + token, b""
        elif char_to_byte.keys() >= set(token):
            data += bytes(map(char_to_byte.__getitem__, token))
        else:
            raise TokenizerError(f"id {token_id}: {token!r} has characters that stand for no byte")
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
