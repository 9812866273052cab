"""2. A tokenizer to work with: it counts equal pieces once, checks its input, and shows its steps.

The algorithm is that of `smallest`. The idea is that a text becomes *pieces*, and that no merge crosses the
end of a piece. Here the whole text is a single piece; the next file changes this. Skip special tokens at
first: file 6 explains them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from . import saving, tracing
from .smallest import Pair, PairTable, count_pairs, merge_pair
from .special import AllowedSpecial, SpecialTokens, allowed_tokens, check_special_tokens, split_at_special
from .text import FilePath, TokenizerError, replace_surrogates

if TYPE_CHECKING:
    from typing import Self


class Merge(NamedTuple):
    """One step of training.

    Args:
        pair: The most frequent pair, which becomes a token.
        new_id: The id of the token.
        counts: How often each pair occurred before the merge.
        words: The pieces after the merge as ids, each with the number of its occurrences.
    """

    pair: Pair
    new_id: int
    counts: PairTable
    words: list[tuple[list[int], int]]


def learn_merges(words: Sequence[tuple[Sequence[int], int]], new_ids: Iterable[int]) -> Iterator[Merge]:
    """Yield the merges that training learns, until no id or no pair is left.

    Args:
        words: The distinct pieces of the training text as ids, each with the number of its occurrences.
        new_ids: The ids of the tokens to learn, in order.

    The table of the paper: low 5 times, lower 2, newest 6, widest 3. Both ("e", "s") and ("s", "t") occur 9
    times, and ("e", "s") was seen first.

    >>> words = [(b"low", 5), (b"lower", 2), (b"newest", 6), (b"widest", 3)]
    >>> merges = list(learn_merges(words, range(256, 260)))
    >>> [(merge.pair, merge.counts[merge.pair]) for merge in merges]
    [((101, 115), 9), ((256, 116), 9), ((108, 111), 7), ((258, 119), 7)]
    """
    for new_id in new_ids:
        counts: PairTable = {}
        for ids, times in words:
            count_pairs(ids, counts, times)
        if not counts:
            return
        pair = max(counts, key=counts.__getitem__)
        merged = [(merge_pair(ids, pair, new_id), times) for ids, times in words]
        yield Merge(pair, new_id, counts, merged)
        words = merged


def apply_merges(ids: Sequence[int], merges: PairTable, ranks: PairTable) -> list[int]:
    """Apply merges to the ids of a piece until none applies, the lowest rank first.

    The order matters: "flow" below has both "l" + "o" and "o" + "w", but only one of them can use the "o".

    >>> merges = {(108, 111): 256, (111, 119): 257, (102, 256): 258}
    >>> apply_merges(b"flow", merges, {(108, 111): 0, (111, 119): 1, (102, 256): 2})
    [258, 119]
    """
    ids = list(ids)
    while found := [pair for pair in pairwise(ids) if pair in ranks]:
        pair = min(found, key=ranks.__getitem__)
        ids = merge_pair(ids, pair, merges[pair])
    return ids


class NaiveBPETokenizer:
    """Byte-pair encoding of the whole text in one piece.

    Merges cross words and punctuation: such a tokenizer learns "e " and "dog." and "dog!".

    Attributes:
        merges: The id that each merged pair became, in the order of learning.
        vocab: The bytes of each id, without special tokens. `inverse_vocab` is the id of each token.
        special_tokens: The id of each special token; none at first.

    >>> tokenizer = NaiveBPETokenizer().train("the cat in the hat", 260)
    >>> [tokenizer.vocab[token_id] for token_id in tokenizer.merges.values()]
    [b'th', b'the', b'the ', b'at']
    >>> tokenizer.encode("the hat")
    [258, 104, 259]
    >>> tokenizer.decode([258, 104, 259])
    'the hat'
    """

    def __init__(self) -> None:
        self.special_tokens: dict[str, int] = {}
        self.become({}, {})

    def __repr__(self) -> str:
        sizes = f"merges={len(self.merges)}, special_tokens={len(self.special_tokens)}"
        return f"{type(self).__name__}(vocab_size={len(self.vocab)}, {sizes})"

    def become(self, vocab: Mapping[int, bytes], merges: PairTable) -> None:
        """Replace the vocabulary and the merges."""
        self.vocab = dict(vocab)
        self.merges = dict(merges)
        self.inverse_vocab = {token: token_id for token_id, token in self.vocab.items()}
        self.ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        self.origins = {new_id: pair for pair, new_id in reversed(self.merges.items())}

    # What the next tokenizers change: the pieces of a text, and the tokens that merging starts from.

    def split(self, text: str) -> list[str]:
        """Split a text into pieces: here, the text in one piece."""
        return [text] if text else []

    def initial_tokens(self, piece: str) -> list[bytes]:
        """Return the tokens from which merging starts: the bytes of a piece."""
        return [bytes([byte]) for byte in piece.encode()]

    def smallest_tokens(self, text: str) -> list[bytes]:
        """Return all tokens that a training starts from, in the order of their ids: the 256 bytes."""
        return [bytes([byte]) for byte in range(256)]

    def token_bytes(self, token: bytes) -> bytes:
        """Return the UTF-8 of a token."""
        return token

    # Training

    def train(
        self, text: str, vocab_size: int, *, special_tokens: SpecialTokens = None, verbose: bool = False
    ) -> Self:
        """Learn a vocabulary from a text.

        Args:
            text: The text to learn from. It is cut at the special tokens; they are not learned from.
            vocab_size: The number of ids: 256 for the bytes, and one for each token to learn. Ids of special
                tokens below it are skipped.
            special_tokens: The id of each special token; None keeps those that are registered.
            verbose: Print each merge.

        Returns:
            The tokenizer itself.

        Raises:
            TokenizerError: The text is empty, `vocab_size` is too small for the smallest tokens, or a special
                token is empty or has their id.

        >>> tokenizer = NaiveBPETokenizer().train("low lower", 258, verbose=True)
        merge 1: 'l' + 'o' -> 'lo' (id 256), seen 2 times
        merge 2: 'lo' + 'w' -> 'low' (id 257), seen 2 times
        """
        for number, merge in self.learn(text, vocab_size, special_tokens):
            if verbose:
                print(tracing.training_step(number, merge, self.vocab).merge)
        return self

    def learn(self, text: str, vocab_size: int, special: SpecialTokens = None) -> Iterator[tuple[int, Merge]]:
        """Train, and yield each merge with its number, from 1, when it is learned."""
        if not (text := replace_surrogates(text)):
            raise TokenizerError("the training text is empty: there is nothing to learn from")
        smallest = dict(enumerate(self.smallest_tokens(text)))
        if vocab_size < len(smallest):
            raise TokenizerError(f"vocab_size={vocab_size} is too small: {len(smallest)} tokens need an id")
        special = self.special_tokens if special is None else special
        self.special_tokens = check_special_tokens(special, smallest)
        taken = self.special_tokens.values()
        self.become(smallest, {})
        new_ids = [token_id for token_id in range(len(smallest), vocab_size) if token_id not in taken]
        merges: PairTable = {}
        for merge in learn_merges(self.initial_words(text), new_ids):
            merges[merge.pair] = merge.new_id
            self.vocab[merge.new_id] = self.vocab[merge.pair[0]] + self.vocab[merge.pair[1]]
            yield len(merges), merge
        self.become(self.vocab, merges)

    def initial_words(self, text: str) -> list[tuple[list[int], int]]:
        """Return the distinct pieces of a training text as ids, each with the number of its occurrences."""
        parts = split_at_special(replace_surrogates(text), self.special_tokens)
        texts = [part for part in parts if part not in self.special_tokens]
        pieces = Counter(piece for part in texts for piece in self.split(part))
        return [(self.initial_ids(piece), times) for piece, times in pieces.items()]

    def initial_ids(self, piece: str) -> list[int]:
        """Return the ids from which the merging of a piece starts."""
        try:
            return [self.inverse_vocab[token] for token in self.initial_tokens(piece)]
        except KeyError as error:
            raise TokenizerError(
                f"the token {error} is not in the vocabulary: train on a text with it"
            ) from error

    # Encoding and decoding

    def encode(self, text: str, allowed_special: AllowedSpecial = "none") -> list[int]:
        """Turn a text into ids.

        Args:
            text: The text. Lone surrogates become U+FFFD.
            allowed_special: The special tokens to recognise: see `allowed_tokens`.

        Raises:
            TokenizerError: The tokenizer is not trained; the text is not a `str`, or holds a special token
                that is refused.
        """
        ids: list[int] = []
        for piece, special_id in self.pieces(text, allowed_special):
            ids += self.encode_piece(piece) if special_id is None else [special_id]
        return ids

    def pieces(self, text: str, allowed_special: AllowedSpecial) -> list[tuple[str, int | None]]:
        """Split a text into pieces, each with its id if it is a special token."""
        self.check_trained()
        text = replace_surrogates(text)
        special = allowed_tokens(text, self.special_tokens, allowed_special)
        return [
            (piece, special.get(part))
            for part in split_at_special(text, special)
            for piece in ([part] if part in special else self.split(part))
        ]

    def encode_piece(self, piece: str) -> list[int]:
        """Turn a single piece into ids."""
        return apply_merges(self.initial_ids(piece), self.merges, self.ranks)

    def decode(self, token_ids: Iterable[int]) -> str:
        """Turn ids into text. Bytes that are not UTF-8 become U+FFFD: a token may end inside a character.

        Raises:
            TokenizerError: The tokenizer is not trained, or an id is not in the vocabulary.
        """
        return self.decode_bytes(token_ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Turn ids into bytes."""
        self.check_trained()
        return b"".join(map(self.id_bytes, ids))

    def id_bytes(self, token_id: int) -> bytes:
        """Return the bytes of a single id."""
        if token_id in self.inverse_special_tokens:
            return self.inverse_special_tokens[token_id].encode()
        if token_id not in self.vocab:
            raise TokenizerError(
                f"id {token_id} is not in the vocabulary, whose highest id is {max(self.vocab)}"
            )
        return self.token_bytes(self.vocab[token_id])

    def check_trained(self) -> None:
        """Raise a `TokenizerError` if the tokenizer is not trained."""
        if not self.vocab:
            raise TokenizerError(f"this {type(self).__name__} is not trained: call train(...) or load(...)")

    # Special tokens: see `special`.

    @property
    def inverse_special_tokens(self) -> dict[int, str]:
        """The special token of each id."""
        return {token_id: text for text, token_id in self.special_tokens.items()}

    def register_special_tokens(self, special_tokens: SpecialTokens = None) -> None:
        """Replace the special tokens.

        Args:
            special_tokens: The id of each special token; None is `{"<|endoftext|>": 100257}`, as in GPT-4.

        Raises:
            TokenizerError: A special token is empty, or its id is in use.

        >>> tokenizer = NaiveBPETokenizer().train("low lower", 258)
        >>> tokenizer.register_special_tokens({"<|end|>": 258})
        >>> tokenizer.encode("low<|end|>", allowed_special="all")
        [257, 258]
        """
        special_tokens = {"<|endoftext|>": 100257} if special_tokens is None else special_tokens
        old = self.inverse_special_tokens
        vocab = {token_id: token for token_id, token in self.vocab.items() if token_id not in old}
        self.special_tokens = check_special_tokens(special_tokens, vocab)
        self.become(vocab, self.merges)

    # Every step, for people: see `tracing`.

    def trace_training(self, text: str, vocab_size: int) -> tracing.TrainingTrace:
        """Train, and return every step: the table of pairs, and the pieces after each merge.

        >>> print(NaiveBPETokenizer().trace_training("low lower", 257))
        'l' 'o' 'w' ' ' 'l' 'o' 'w' 'e' 'r'
        <BLANKLINE>
        pairs: 'l' + 'o' 2, 'o' + 'w' 2, 'w' + ' ' 1, ' ' + 'l' 1, 'w' + 'e' 1, 'e' + 'r' 1
        merge 1: 'l' + 'o' -> 'lo' (id 256), seen 2 times
        'lo' 'w' ' ' 'lo' 'w' 'e' 'r'
        """
        steps = [tracing.training_step(*step, self.vocab) for step in self.learn(text, vocab_size)]
        return tracing.TrainingTrace(tracing.name_words(self.initial_words(text), self.vocab), tuple(steps))

    def trace(self, text: str, allowed_special: AllowedSpecial = "none") -> tracing.EncodeTrace:
        """Encode a text, and return every step. The arguments are those of `encode`.

        >>> print(NaiveBPETokenizer().train("low lower", 258).trace("slow"))
        text: 'slow'
        <BLANKLINE>
        piece 1 of 1: 'slow'
          's' 'l' 'o' 'w'
            rank 0: 'l' + 'o' -> 'lo' (id 256)
          's' 'lo' 'w'
            rank 1: 'lo' + 'w' -> 'low' (id 257)
          's' 'low'
            no pair is a merge
          ids: [115, 257]
        <BLANKLINE>
        ids: [115, 257]
        """
        pieces = [tracing.trace_piece(self, *piece) for piece in self.pieces(text, allowed_special)]
        return tracing.EncodeTrace(replace_surrogates(text), tuple(pieces))

    def trace_decode(self, ids: Iterable[int]) -> tracing.DecodeTrace:
        """Decode ids, and return every step.

        >>> print(NaiveBPETokenizer().train("low lower", 258).trace_decode([115, 257]))
        ids: [115, 257]
        id 115: 's'
            bytes 73 -> text 's'
        id 257: 'low'
          'low' = 'lo' + 'w'
          'lo' = 'l' + 'o'
            bytes 6c 6f 77 -> text 'low'
        text: 'slow'
        """
        self.check_trained()
        return tracing.trace_decoding(self, ids)

    def merge_tree(self, token_id: int) -> tracing.MergeTree:
        """Return the two tokens that a token was made from, the tokens that those were made from, and so on.

        >>> print(NaiveBPETokenizer().train("low lower", 258).merge_tree(257))
        'low' (id 257)
        ├── 'lo' (id 256)
        │   ├── 'l' (id 108)
        │   └── 'o' (id 111)
        └── 'w' (id 119)
        """
        token = self.vocab.get(token_id, self.decode_bytes([token_id]))
        return tracing.MergeTree(token_id, token, *map(self.merge_tree, self.origins.get(token_id, ())))

    # Files: see `saving`.

    def save(self, path: FilePath) -> None:
        """Write the tokenizer to a JSON file."""
        self.check_trained()
        saving.write_tokenizer(self, path)

    def load(self, path: FilePath) -> Self:
        """Replace this tokenizer by one that `save` of the same class wrote, and return it.

        Raises:
            TokenizerError: The file is of another kind or invalid: the message names the file and the field.
        """
        vars(self).update(vars(saving.read_tokenizer(type(self), path)))
        return self

    def save_readable(self, path: FilePath) -> None:
        """Write a listing for people: each token, its id, and the two tokens that it was made from."""
        self.check_trained()
        saving.write_listing(self, path)
