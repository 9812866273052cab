"""`CoreBPE`, which runs an `Encoding`: ranks, special tokens and a pattern on the core.

tiktoken allows two things that a model of the core does not. A special token may share its id with another
token: this alias is left out of the model, and a second model with an unused id for it encodes the texts that
hold it. And a byte may have no token: it gets an unused id, so that it takes part in merges, and encoding
fails if it remains.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from bpe_tokenizer import _core
from bpe_tokenizer.compat.tiktoken._errors import IdOverflowError, UnknownTokenError
from bpe_tokenizer.compat.tiktoken._pieces import PieceEncoder
from bpe_tokenizer.compat.tiktoken._unstable import completions, split_unstable
from bpe_tokenizer.errors import ArgumentTypeError, ModelError, UnknownIdError, shorten
from bpe_tokenizer.formats.tiktoken.patterns import model_settings
from bpe_tokenizer.model import AddedToken
from bpe_tokenizer.special_tokens import checked_id

__all__ = ["Allowed", "CoreBPE"]

# Special tokens to recognise: all, none, or these.
Allowed: TypeAlias = bool | Collection[str]

_T = TypeVar("_T")

# Python decodes this few ids faster than a call of the core.
_MAX_PYTHON_IDS = 4


class CoreBPE:
    """Ids of texts and bytes of ids, as tiktoken's class of this name gives them.

    Args:
        encoder: The tokens and their ranks.
        special_tokens_encoder: The special tokens and their ids.
        pattern: The split pattern.

    Attributes:
        special_tokens: The special tokens.

    Raises:
        ModelError: Two tokens have the same rank, or a rank or a special token is invalid.
        PatternError: The pattern is not valid.
    """

    def __init__(
        self, encoder: Mapping[bytes, int], special_tokens_encoder: Mapping[str, int], pattern: str
    ) -> None:
        self._ranks = encoder
        self._special_tokens = special_tokens_encoder
        self.special_tokens = frozenset(special_tokens_encoder)
        self._tokens = _by_rank(encoder)
        # Of several special tokens with one id, the first gets it; none gets the id of a rank.
        owners: dict[int, str] = {}
        for content, token_id in special_tokens_encoder.items():
            if token_id not in self._tokens:
                owners.setdefault(token_id, content)
        self._special_by_id = owners
        self._aliases = [text for text, id_ in special_tokens_encoder.items() if owners.get(id_) != text]
        lacking = [byte for byte in map(_byte, range(256)) if byte not in encoder]
        self._missing_bytes = dict(zip(self._free_ids(), lacking, strict=False)) if lacking else {}
        self._vocab = self._tokens | self._missing_bytes if self._missing_bytes else self._tokens
        added = [AddedToken(content, checked_id(content, token_id)) for token_id, content in owners.items()]
        model = _core.Model(self._vocab, None, added_tokens=added, **model_settings(pattern))
        self._encoder = _core.Encoder(model)
        self._pieces = PieceEncoder(self._vocab)

    # -- text to ids ------------------------------------------------------------------------------------

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the ids of a text without special tokens."""
        return self._complete(self._encoder.encode(text))

    def encode(self, text: str, allowed_special: Allowed) -> list[int]:
        """Return the ids of a text with these special tokens."""
        if self._alias_in(text, allowed_special):
            encoder, ids = self._alias_encoder
            return self._complete([ids.get(id_, id_) for id_ in encoder.encode(text, allowed_special)])
        return self._complete(self._encoder.encode(text, allowed_special))

    def encode_to_numpy(self, text: str, allowed_special: Allowed) -> npt.NDArray[np.uint32]:
        """Return the ids of a text with these special tokens as an array of uint32."""
        if self._missing_bytes or self._aliases:
            return np.array(self.encode(text, allowed_special), dtype=np.uint32)
        return self._encoder.encode_numpy(text, allowed_special)

    def encode_batch(self, texts: Sequence[str], allowed_special: Allowed, threads: int) -> list[list[int]]:
        """Return the ids of many texts with these special tokens."""
        if self._missing_bytes or any(self._alias_in(text, allowed_special) for text in texts):
            return [self.encode(text, allowed_special) for text in texts]
        return self._encoder.encode_batch(texts, allowed_special, threads)

    def find_special(self, text: str, tokens: Allowed) -> str | None:
        """Return one of these special tokens that a text holds; None if it holds none."""
        found = self._encoder.find_special(text, tokens)
        return found[0] if found else self._alias_in(text, tokens)

    def encode_single_token(self, piece: bytes) -> int:
        """Return the id of a token, special or not."""
        if not isinstance(piece, bytes):
            raise ArgumentTypeError(f"a token must be str or bytes, not {type(piece).__name__}")
        token_id = self._ranks.get(piece)
        if token_id is None:
            token_id = self._special_tokens.get(piece.decode("utf-8", "surrogateescape"))
        if token_id is None:
            raise UnknownTokenError(f"{shorten(piece)} is not a token")
        return token_id

    def encode_single_piece(self, piece: bytes) -> list[int]:
        """Return the ids of bytes as one piece."""
        return self._complete(self._pieces.encode(piece))

    def encode_with_unstable(self, text: str, allowed_special: Allowed) -> tuple[list[int], list[list[int]]]:
        """Return the ids that stay however the text continues, and the possible ids of the rest."""
        ids = self.encode(text, allowed_special)
        stable, unstable = split_unstable(ids, self._last_piece(text, allowed_special), self._tokens)
        ranks, tokens = self._ranks, self._tokens
        found = completions(unstable, ranks, tokens, self._sorted_tokens, self._encode_all, self._merge)
        return stable, found

    def _encode_bytes(self, data: bytes) -> list[int]:
        """Return the ids of bytes that need not be UTF-8."""
        if not isinstance(data, bytes):
            raise ArgumentTypeError(f"expected bytes, not {type(data).__name__}")
        try:
            return self.encode_ordinary(data.decode())
        except UnicodeDecodeError as error:
            whole = error.start
        text = data[:whole].decode()
        stable, rest = split_unstable(self.encode_ordinary(text), self._last_piece(text, False), self._tokens)
        return stable + self.encode_single_piece(rest + data[whole:])

    # -- ids to bytes -----------------------------------------------------------------------------------

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """Return the bytes of ids."""
        if not isinstance(tokens, Iterable):
            raise ArgumentTypeError(f"tokens must be a sequence of int, not {type(tokens).__name__}")
        if self._missing_bytes:
            return b"".join(map(self.decode_single_token_bytes, tokens))
        try:
            if len(tokens) <= _MAX_PYTHON_IDS:
                return b"".join([self._tokens[token_id] for token_id in map(operator.index, tokens)])
        except (KeyError, TypeError):  # a special token, or an invalid id, which the core names
            return _with_named_ids(lambda: self._encoder.decode(tokens), tokens)
        return _with_named_ids(lambda: self._encoder.decode(tokens), tokens)

    def decode_batch(self, batch: Sequence[Sequence[int]], threads: int) -> list[bytes]:
        """Return the bytes of many rows of ids."""
        if self._missing_bytes:
            return [self.decode_bytes(row) for row in batch]
        ids = (token_id for row in batch for token_id in row)
        return _with_named_ids(lambda: self._encoder.decode_batch(batch, threads=threads), ids)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Return the bytes of an id."""
        try:
            token_id = operator.index(token)
        except TypeError:
            raise ArgumentTypeError(f"an id must be an integer, not {type(token).__name__}") from None
        found = self._tokens.get(token_id)
        if found is not None:
            return found
        if token_id in self._special_by_id:
            return self._special_by_id[token_id].encode()
        raise _unknown(token_id)

    def decode_tokens_bytes(self, tokens: Iterable[int]) -> list[bytes]:
        """Return the bytes of each of several ids."""
        try:
            ids = list(map(operator.index, tokens))
        except TypeError as error:
            raise ArgumentTypeError(f"ids must be integers: {error}") from None
        try:
            return list(map(self._tokens.__getitem__, ids))
        except KeyError:  # a special token, or an unknown id
            return list(map(self.decode_single_token_bytes, ids))

    def token_byte_values(self) -> list[bytes]:
        """Return the tokens but the special ones, in the order of their bytes."""
        return list(self._sorted_tokens)

    # -- aliases and missing bytes ----------------------------------------------------------------------

    @cached_property
    def _sorted_tokens(self) -> list[bytes]:
        return sorted(self._ranks)

    @cached_property
    def _alias_encoder(self) -> tuple[_core.Encoder, dict[int, int]]:
        """An encoder that finds the aliases too, and the real ids of the ids that it gives them."""
        ids = dict(zip(self._free_ids(self._missing_bytes), self._aliases, strict=False))
        model = self._encoder.model
        added = [*model.added_tokens, *(AddedToken(content, token_id) for token_id, content in ids.items())]
        real_ids = {token_id: self._special_tokens[content] for token_id, content in ids.items()}
        return _core.Encoder(model.with_added_tokens(added)), real_ids

    def _alias_in(self, text: str, tokens: Allowed) -> str | None:
        if tokens is False or not self._aliases:
            return None
        names = (name for name in self._aliases if tokens is True or name in tokens)
        return next((name for name in names if name in text), None)

    def _free_ids(self, also_taken: Collection[int] = ()) -> Iterator[int]:
        taken = self._tokens.keys() | self._special_by_id.keys() | set(also_taken)
        return (token_id for token_id in count() if token_id not in taken)

    def _complete(self, ids: list[int]) -> list[int]:
        """Return the ids; fail if one is a byte without a token."""
        if self._missing_bytes and not self._missing_bytes.keys().isdisjoint(ids):
            byte = next(self._missing_bytes[token_id] for token_id in ids if token_id in self._missing_bytes)
            raise UnknownTokenError(
                f"the byte {byte!r} has no token in this encoding and is not part of one here"
            )
        return ids

    def _last_piece(self, text: str, allowed_special: Allowed) -> int:
        """The number of ids of the last piece; 0 if there is none, or a special token follows it."""
        second = self._alias_in(text, allowed_special)
        encoder = self._alias_encoder[0] if second else self._encoder
        pieces = encoder.pieces(text, allowed_special)
        if not pieces:
            return 0
        content = pieces[-1].decode("utf-8", "replace")
        if content in self._special_tokens and (
            allowed_special is True or (allowed_special and content in allowed_special)
        ):
            return 0
        return len(self._pieces.encode(pieces[-1]))

    def _encode_all(self, texts: list[bytes]) -> list[list[int]]:
        return [self._complete(ids) for ids in self._encoder.encode_batch(texts)]

    def _merge(self, piece: bytes) -> list[int]:
        return self._complete(self._pieces.merge(piece))


def _by_rank(ranks: Mapping[bytes, int]) -> dict[int, bytes]:
    tokens = {rank: token for token, rank in ranks.items()}
    if len(tokens) < len(ranks):
        first, second = next((token, tokens[rank]) for token, rank in ranks.items() if tokens[rank] != token)
        raise ModelError(f"duplicate rank {ranks[first]}: tokens {shorten(first)} and {shorten(second)}")
    return tokens


def _byte(value: int) -> bytes:
    return bytes([value])


def _with_named_ids(decode: Callable[[], _T], ids: Iterable[Any]) -> _T:
    """Call `decode`, and name an unknown id; an integer out of range is an `OverflowError` too."""
    try:
        return decode()
    except UnknownIdError:
        for token_id in ids:
            if not 0 <= token_id < 2**32:
                raise _unknown(token_id) from None
        raise


def _unknown(token_id: int) -> UnknownIdError:
    if 0 <= token_id < 2**32:
        return UnknownIdError(f"id {token_id} is not in the vocabulary")
    return IdOverflowError(f"{token_id} is not an id; ids are 0 to {2**32 - 1}")
