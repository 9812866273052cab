"""Training, encoding and decoding, for all tokenizers of the lesson.

    text -> cut at special tokens -> pieces -> smallest tokens -> merges -> ids
    ids  -> tokens -> bytes -> text

The three tokenizers differ in only two of these steps: how text is split into pieces (`split`), and what the
smallest tokens are (`initial_tokens`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, ClassVar, Generic

from .merging import learn_merges, merge_all, rank_merges
from .pairs import Pair, Token
from .saving import read_tokenizer, write_listing, write_tokenizer
from .special import (
    AllowedSpecial,
    DisallowedSpecial,
    SpecialTokens,
    assign_ids,
    choose_special,
    cut_at_special,
    special_texts,
)
from .tracing import DecodeTrace, EncodeTrace, trace_decoding, trace_encoding
from .unicode import printable, replace_surrogates

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Tokenizer"]


class Tokenizer(ABC, Generic[Token]):
    """A tokenizer, except for its way to split text and its smallest tokens.

    Attributes:
        vocab: The token of each id, without special tokens.
        merges: The merged pairs, in the order in which they were learned.
        special_tokens: The id of each special token.
        ids: The id of each token: the inverse of `vocab`.
        ranks: The rank of each merge.
    """

    vocab: dict[int, Token]
    merges: list[Pair[Token]]
    special_tokens: dict[str, int]
    ids: dict[Token, int]
    ranks: dict[Pair[Token], int]
    # The arguments of the constructor, which are also attributes, with their types.
    settings: ClassVar[Mapping[str, type]] = {}

    def __init__(self) -> None:
        self.become({}, [], {})

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(tokens={len(self.vocab)}, merges={len(self.merges)}, "
            f"special_tokens={len(self.special_tokens)})"
        )

    def become(
        self, vocab: Mapping[int, Token], merges: Iterable[Pair[Token]], special_tokens: Mapping[str, int]
    ) -> None:
        """Replace the vocabulary, the merges and the special tokens."""
        self.vocab = dict(vocab)
        self.merges = list(merges)
        self.special_tokens = dict(special_tokens)
        self.ids = {token: token_id for token_id, token in self.vocab.items()}
        self.ranks = rank_merges(self.merges)

    @abstractmethod
    def split(self, text: str) -> list[str]:
        """Split a text into pieces. No merge crosses the end of a piece."""

    @abstractmethod
    def initial_tokens(self, piece: str) -> list[Token]:
        """Return the smallest tokens of a piece. Merging starts from them."""

    @abstractmethod
    def initial_vocab(self, pieces: Iterable[Sequence[Token]]) -> list[Token]:
        """Return all smallest tokens, in the order of their ids, which start at 0.

        Args:
            pieces: The pieces of the training text, as their smallest tokens.
        """

    @abstractmethod
    def token_bytes(self, token: Token) -> bytes:
        """Return the UTF-8 of a token's text."""

    @abstractmethod
    def parse_token(self, data: bytes) -> Token:
        """Return the token that these bytes of a file describe.

        Raises:
            ValueError: The bytes are not a token.
        """

    def train(
        self,
        text: str,
        vocab_size: int,
        *,
        special_tokens: SpecialTokens | None = None,
        verbose: bool = False,
    ) -> Self:
        """Learn a vocabulary from a text.

        Args:
            text: The text to learn from. It is cut at its special tokens; they are not learned from.
            vocab_size: The number of ids to fill: the smallest tokens, reserved ids and learned tokens.
            special_tokens: A list takes the ids right after the smallest tokens. A dict names the ids: those
                below `vocab_size` are reserved and skipped by learned tokens, others lie outside. None keeps
                those that are registered.
            verbose: Print each merge.

        Returns:
            The tokenizer itself.

        Raises:
            ValueError: The text is empty; `vocab_size` is too small for the smallest tokens; the id of a
                special token is in use.

        >>> from bpe_tokenizer.reference import NaiveBPETokenizer
        >>> tokenizer = NaiveBPETokenizer().train("low lower", 259, special_tokens=["<|end|>"], verbose=True)
        merge 1 of 2: 'l' + 'o' -> 'lo' (id 257), seen 2 times
        merge 2 of 2: 'lo' + 'w' -> 'low' (id 258), seen 2 times
        """
        text = replace_surrogates(text)
        if not text:
            raise ValueError("the training text is empty: there is nothing to learn from")
        special_tokens = self.special_tokens if special_tokens is None else special_tokens
        if not isinstance(special_tokens, Mapping):
            special_tokens = special_texts(special_tokens)
        parts = [part for part in cut_at_special(text, special_tokens) if part not in special_tokens]
        pieces = Counter(chain.from_iterable(map(self.split, parts)))
        words = {tuple(self.initial_tokens(piece)): times for piece, times in pieces.items()}
        tokens = self.initial_vocab(words)
        if vocab_size < len(tokens):
            raise ValueError(
                f"vocab_size={vocab_size} is too small: the {len(tokens)} smallest tokens need an id each"
            )
        special_ids = assign_ids(special_tokens, first_id=len(tokens))
        taken = set(special_ids.values())
        free_ids = [token_id for token_id in range(len(tokens), vocab_size) if token_id not in taken]
        vocab, merges = dict(enumerate(tokens)), []
        for token_id, (pair, count) in zip(free_ids, learn_merges(words, len(free_ids)), strict=False):
            left, right = pair
            vocab[token_id] = left + right
            merges.append(pair)
            if verbose:
                print(
                    f"merge {len(merges)} of {len(free_ids)}: {printable(left)} + {printable(right)} -> "
                    f"{printable(left + right)} (id {token_id}), seen {count} times"
                )
        self.become(vocab, merges, special_ids)
        return self

    def register_special_tokens(self, special_tokens: Mapping[str, int]) -> None:
        """Replace the special tokens of the tokenizer.

        Args:
            special_tokens: The id of each special token.

        Raises:
            ValueError: A special token is empty, or its id is in use.

        >>> from bpe_tokenizer.reference import RegexBPETokenizer
        >>> tokenizer = RegexBPETokenizer().train("low lower", 258)
        >>> tokenizer.register_special_tokens({"<|end|>": 258})
        >>> tokenizer.encode("low<|end|>", allowed_special="all")
        [257, 258]
        """
        special_ids = assign_ids(special_tokens, first_id=0)
        for text, token_id in special_ids.items():
            if token_id in self.vocab:
                raise ValueError(
                    f"special token {text!r} cannot have id {token_id}, which belongs to "
                    f"{printable(self.vocab[token_id])}"
                )
        self.become(self.vocab, self.merges, special_ids)

    def encode(
        self,
        text: str,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
    ) -> list[int]:
        """Turn a text into ids.

        Args:
            text: The text. Lone surrogates become U+FFFD.
            allowed_special: The special tokens to recognise: `"none"`, `"all"`, or a set of them. The others
                are plain text. `"none_raise"` recognises none and forbids all.
            disallowed_special: The special tokens to forbid: a set of them, or `"all"` that are not allowed.

        Raises:
            RuntimeError: The tokenizer is not trained.
            ValueError: The text holds a forbidden special token, or a name is not a special token.

        >>> from bpe_tokenizer.reference import RegexBPETokenizer
        >>> tokenizer = RegexBPETokenizer().train("low lower", 258)
        >>> tokenizer.encode("slow<|endoftext|>", allowed_special={"<|endoftext|>"})
        [115, 257, 100257]
        >>> len(tokenizer.encode("slow<|endoftext|>"))
        15
        """
        ids: list[int] = []
        for piece, special_id in self.pieces(text, allowed_special, disallowed_special):
            ids.extend(self.encode_piece(piece) if special_id is None else [special_id])
        return ids

    def pieces(
        self, text: str, allowed_special: AllowedSpecial, disallowed_special: DisallowedSpecial
    ) -> Iterator[tuple[str, int | None]]:
        """Yield pairs of a piece and, if it is a special token, its id."""
        self._require_trained()
        text = replace_surrogates(text)
        special = choose_special(text, self.special_tokens, allowed_special, disallowed_special)
        for part in cut_at_special(text, special):
            if part in special:
                yield part, special[part]
            else:
                yield from ((piece, None) for piece in self.split(part))

    def encode_piece(self, piece: str) -> list[int]:
        """Turn a single piece into ids."""
        return [self.ids[token] for token in merge_all(self.initial_tokens(piece), self.ranks)]

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Turn ids into bytes.

        Raises:
            RuntimeError: The tokenizer is not trained.
            ValueError: An id is not in the vocabulary.
        """
        self._require_trained()
        return b"".join(map(self.id_bytes, ids))

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into text. Bytes that are not UTF-8 become U+FFFD: a token may end inside a character.

        Raises:
            RuntimeError: The tokenizer is not trained.
            ValueError: An id is not in the vocabulary.

        >>> from bpe_tokenizer.reference import NaiveBPETokenizer
        >>> NaiveBPETokenizer().train("low lower", 258).decode([115, 257])
        'slow'
        """
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def id_bytes(self, token_id: int) -> bytes:
        """Return the bytes of a single id."""
        if token_id in self.vocab:
            return self.token_bytes(self.vocab[token_id])
        for text, special_id in self.special_tokens.items():
            if special_id == token_id:
                return text.encode()
        raise ValueError(
            f"id {token_id} is not in the vocabulary, which has {len(self.vocab)} tokens "
            f"(the highest id is {max(self.vocab)}) and {len(self.special_tokens)} special tokens"
        )

    def trace(
        self,
        text: str,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
    ) -> EncodeTrace[Token]:
        """Encode a text and return every step, for printing.

        The arguments and the errors are those of `encode`.

        >>> from bpe_tokenizer.reference import NaiveBPETokenizer
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
        pieces = self.pieces(text, allowed_special, disallowed_special)
        return trace_encoding(self, replace_surrogates(text), pieces)

    def trace_decode(self, ids: Iterable[int]) -> DecodeTrace[Token]:
        """Decode ids and return every step, for printing.

        The argument and the errors are those of `decode`.

        >>> from bpe_tokenizer.reference import NaiveBPETokenizer
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
        self._require_trained()
        return trace_decoding(self, ids)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tokenizer to a JSON file, with tokens in base64, because not every token is text.

        Raises:
            RuntimeError: The tokenizer is not trained.
        """
        self._require_trained()
        write_tokenizer(self, path)

    def load(self, path: str | PathLike[str]) -> Self:
        """Replace this tokenizer by one that `save` wrote.

        Args:
            path: The file. It must have been written by the same class.

        Returns:
            The tokenizer itself.

        Raises:
            ValueError: The file is of another kind or invalid: the message names the file and the field.
        """
        vars(self).update(vars(read_tokenizer(type(self), path)))
        return self

    def save_readable(self, path: str | PathLike[str]) -> None:
        """Write a listing for people: each token, its id, and the two tokens that it was made from.

        Raises:
            RuntimeError: The tokenizer is not trained.
        """
        self._require_trained()
        write_listing(self, path)

    def _require_trained(self) -> None:
        if not self.vocab:
            raise RuntimeError(f"this {type(self).__name__} is not trained: call train(...) or load(...)")
