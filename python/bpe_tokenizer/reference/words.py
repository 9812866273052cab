"""5. BPE on words: the classic form of the algorithm, as plain functions.

Sennrich's paper counts words, not text: `{("l", "o", "w"): 5, ...}`. Training works on this table alone, so a
corpus of any size needs one pass. Each byte is one of GPT-2's printable characters, and a token is a string.

The algorithm is that of Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword
Units", 2016, https://aclanthology.org/P16-1162/.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias, TypeVar

from . import saving
from .characters import BYTE_CHARACTERS
from .smallest import count_pairs, merge_pair
from .splitting import GPT2_SPLIT_PATTERN, split
from .text import FilePath, TokenizerError

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


def train_bpe(
    corpus_iterator: Iterable[str], vocab_size: int, min_frequency: int = 2, verbose: bool = False
) -> tuple[dict[str, int], list[Merge]]:
    """Learn a vocabulary from texts.

    Args:
        corpus_iterator: The texts of the corpus; each is read once.
        vocab_size: The number of tokens: 256 bytes, and the tokens to learn.
        min_frequency: Stop when the best pair occurs less often than this.
        verbose: Print each merge.

    Returns:
        The id of each token, and the merges in order.

    >>> token_to_id, merges = train_bpe(["low low lower"], 259, min_frequency=1)
    >>> merges
    [('l', 'o'), ('lo', 'w'), ('Ġ', 'low')]
    >>> token_to_id["Ġlow"]
    258
    """
    words = Counter(piece for text in corpus_iterator for piece in split(text, GPT2_SPLIT_PATTERN))
    vocab = {tuple(BYTE_CHARACTERS[byte] for byte in word.encode()): times for word, times in words.items()}
    token_to_id = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}
    merges: list[Merge] = []
    while len(token_to_id) < vocab_size and (counts := get_stats(vocab)):
        best = max(counts, key=counts.__getitem__)
        if counts[best] < min_frequency:
            break
        vocab = merge_vocab(best, vocab)
        token_to_id["".join(best)] = len(token_to_id)
        merges.append(best)
        if verbose:
            print(f"merge {len(merges)}: {best[0]} + {best[1]}, seen {counts[best]} times")
    return token_to_id, merges


def encode_pre_token(pre_token: str, merges: Iterable[Merge]) -> list[str]:
    """Turn a single piece into tokens: apply the merges in their order.

    >>> encode_pre_token(" lower", [("l", "o"), ("lo", "w")])
    ['Ġ', 'low', 'e', 'r']
    """
    tokens = [BYTE_CHARACTERS[byte] for byte in pre_token.encode()]
    for pair in merges:
        tokens = merge_pair(tokens, pair, "".join(pair))
    return tokens


def make_cached_encoder(
    token_to_id: Mapping[str, int], merges: Iterable[Merge], maxsize: int | None = 65_536
) -> Callable[[str], list[int]]:
    """Return a function that turns a text into ids, and remembers the ids of pieces.

    Most pieces of a text repeat, so this is many times as fast.

    >>> encoder = make_cached_encoder(*train_bpe(["low low lower"], 259, min_frequency=1))
    >>> encoder("low low low")
    [257, 258, 258]
    """

    @lru_cache(maxsize=maxsize)
    def piece_ids(piece: str) -> list[int]:
        return [token_to_id[token] for token in encode_pre_token(piece, merges)]

    return lambda text: [i for piece in split(text, GPT2_SPLIT_PATTERN) for i in piece_ids(piece)]


def encode(text: str, token_to_id: Mapping[str, int], merges: Iterable[Merge]) -> list[int]:
    """Turn a text into ids.

    >>> token_to_id, merges = train_bpe(["low low lower"], 259, min_frequency=1)
    >>> encode("low low", token_to_id, merges)
    [257, 258]
    """
    return make_cached_encoder(token_to_id, merges)(text)


def decode(ids: Iterable[int], token_to_id: Mapping[str, int]) -> str:
    """Turn ids into text. Bytes that are not UTF-8 become U+FFFD.

    Raises:
        TokenizerError: An id is not in the vocabulary.

    >>> decode([257, 258], train_bpe(["low low lower"], 259, min_frequency=1)[0])
    'low low'
    """
    tokens = {token_id: token for token, token_id in token_to_id.items()}
    try:
        characters = "".join(tokens[token_id] for token_id in ids)
    except KeyError as error:
        raise TokenizerError(f"id {error} is not in the vocabulary of {len(tokens)} tokens") from error
    return bytes(map(BYTE_CHARACTERS.index, characters)).decode("utf-8", "replace")


def save_tokenizer(path: FilePath, token_to_id: Mapping[str, int], merges: Sequence[Merge]) -> None:
    """Write the vocabulary and the merges to a JSON file."""
    saving.write_json(path, {"vocab": dict(token_to_id), "merges": [list(pair) for pair in merges]})


def load_tokenizer(path: FilePath) -> tuple[dict[str, int], list[Merge]]:
    """Read what `save_tokenizer` wrote.

    Raises:
        TokenizerError: The file is not such a file.
    """
    saved = saving.read_json(path)
    try:
        return {str(token): int(token_id) for token, token_id in saved["vocab"].items()}, [
            (str(left), str(right)) for left, right in saved["merges"]
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TokenizerError(f"{path}: not a file of save_tokenizer: {error}") from error


def apply_llama3_chat_template(
    messages: Iterable[Mapping[str, str]], add_generation_prompt: bool = True
) -> str:
    r"""Write a conversation as LLaMA 3 reads it. A message may forge turns: see `chat`.

    >>> apply_llama3_chat_template([{"role": "user", "content": "Hi"}], add_generation_prompt=False)
    '<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>'
    """
    header = "<|start_header_id|>{}<|end_header_id|>\n\n"
    turns = [header.format(turn["role"]) + turn["content"].strip() + "<|eot_id|>" for turn in messages]
    return "".join(["<|begin_of_text|>", *turns, header.format("assistant") * add_generation_prompt])


def apply_chatml_template(messages: Iterable[Mapping[str, str]], add_generation_prompt: bool = True) -> str:
    r"""Write a conversation in ChatML. A message may forge turns: see `chat`.

    >>> apply_chatml_template([{"role": "user", "content": "Hi"}], add_generation_prompt=False)
    '<|im_start|>user\nHi<|im_end|>\n'
    """
    turns = [f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n" for turn in messages]
    return "".join([*turns, "<|im_start|>assistant\n" * add_generation_prompt])
