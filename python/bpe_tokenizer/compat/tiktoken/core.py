"""`Encoding`, tiktoken's tokenizer: argument checks and policy; `_core_bpe` computes the ids."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from bpe_tokenizer.compat.tiktoken._core_bpe import CoreBPE
from bpe_tokenizer.compat.tiktoken._special import check_text, raise_if_disallowed, resolve_allowed_special
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    MissingDependencyError,
    ModelError,
    OptionError,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Encoding"]

_CONTINUATION = bytes(range(0x80, 0xC0))


class Encoding:
    r"""A vocabulary of ranks, special tokens and a split pattern, ready to encode and decode.

    In all methods:

    - `allowed_special` is the set of special tokens that are recognised in the text, or `"all"`. Others are
      plain text.
    - `disallowed_special` is a collection of special tokens or other texts that raise a `ValueError` if the
      text holds them; `"all"` (the default) for all special tokens that are not allowed.
    - Pairs of surrogates in a text are joined to characters; lone surrogates become U+FFFD.

    Args:
        name: The name. A registered encoding is pickled by its name.
        pat_str: The split pattern. Text that it does not match is dropped.
        mergeable_ranks: The tokens and their ranks, which are the ids.
        special_tokens: The special tokens and their ids.
        explicit_n_vocab: The expected number of all tokens, which is checked.

    Raises:
        ModelError: Two tokens have the same rank, a rank or a special token is invalid, or the number of
            tokens is not the expected one; it is a `ValueError`.
        PatternError: The pattern is not valid; it is a `ValueError`.

    >>> ranks = {bytes([byte]): byte for byte in range(256)} | {b"hi": 256}
    >>> encoding = Encoding("mine", pat_str=r"\S+|\s+", mergeable_ranks=ranks,
    ...                     special_tokens={"<|end|>": 257})
    >>> encoding.encode("hi<|end|>", allowed_special={"<|end|>"})
    [256, 257]
    >>> encoding.decode([256, 257])
    'hi<|end|>'
    """

    def __init__(
        self,
        name: str,
        *,
        pat_str: str,
        mergeable_ranks: dict[bytes, int],
        special_tokens: dict[str, int],
        explicit_n_vocab: int | None = None,
    ) -> None:
        self.name = name
        self._pat_str = pat_str
        self._mergeable_ranks = mergeable_ranks
        self._special_tokens = special_tokens
        if not mergeable_ranks:
            raise ModelError("mergeable_ranks is empty")
        self.max_token_value = max(max(mergeable_ranks.values()), max(special_tokens.values(), default=0))
        if explicit_n_vocab:
            _check_n_vocab(explicit_n_vocab, len(mergeable_ranks) + len(special_tokens), self.max_token_value)
        self._special_token_values = set(special_tokens.values())
        self._core_bpe = CoreBPE(mergeable_ranks, special_tokens, pat_str)

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    # -- text to ids ------------------------------------------------------------------------------------

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the ids of a text; special tokens are plain text."""
        check_text(text)
        return self._core_bpe.encode_ordinary(text)

    def encode(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[int]:
        """Return the ids of a text.

        Raises:
            SpecialTokenError: The text holds what `disallowed_special` forbids; it is a `ValueError`.
        """
        check_text(text)
        allowed = resolve_allowed_special(allowed_special)
        raise_if_disallowed(self._core_bpe, (text,), allowed, disallowed_special)
        return self._core_bpe.encode(text, allowed)

    def encode_to_numpy(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> npt.NDArray[np.uint32]:
        """Return the ids of a text as `encode` does, but as an array of uint32."""
        check_text(text)
        allowed = resolve_allowed_special(allowed_special)
        raise_if_disallowed(self._core_bpe, (text,), allowed, disallowed_special)
        return self._core_bpe.encode_to_numpy(text, allowed)

    def encode_ordinary_batch(self, text: Iterable[str], *, num_threads: int = 8) -> list[list[int]]:
        """Return the ids of many texts, in parallel, as `encode_ordinary`."""
        threads, texts = _thread_count(num_threads), list(text)
        for each in texts:
            check_text(each)
        return self._core_bpe.encode_batch(texts, False, threads)

    def encode_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int = 8,
        allowed_special: Literal["all"] | AbstractSet[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> list[list[int]]:
        """Return the ids of many texts, in parallel, as `encode`."""
        threads, texts = _thread_count(num_threads), list(text)
        for each in texts:
            check_text(each)
        allowed = resolve_allowed_special(allowed_special)
        raise_if_disallowed(self._core_bpe, texts, allowed, disallowed_special)
        return self._core_bpe.encode_batch(texts, allowed, threads)

    def encode_with_unstable(
        self,
        text: str,
        *,
        allowed_special: Literal["all"] | AbstractSet[str] = frozenset(),
        disallowed_special: Literal["all"] | Collection[str] = "all",
    ) -> tuple[list[int], list[list[int]]]:
        """Return the ids that stay however the text continues, and the possible ids of the rest.

        Returns:
            The stable ids, which decode to a prefix of the text; and rows of ids in no particular order, each
            of which covers the rest.
        """
        check_text(text)
        allowed = resolve_allowed_special(allowed_special)
        raise_if_disallowed(self._core_bpe, (text,), allowed, disallowed_special)
        return self._core_bpe.encode_with_unstable(text, allowed)

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """Return the id of a token, special or not.

        Raises:
            UnknownTokenError: It is not a token; it is a `KeyError`.
        """
        return self._core_bpe.encode_single_token(_as_bytes(text_or_bytes))

    def _encode_single_piece(self, text_or_bytes: str | bytes) -> list[int]:
        """Return the ids of a text as one piece."""
        return self._core_bpe.encode_single_piece(_as_bytes(text_or_bytes))

    def _encode_only_native_bpe(self, text: str) -> list[int]:
        """Return the ids of a text, split by Python's `regex`."""
        try:
            import regex
        except ImportError as error:
            raise MissingDependencyError("regex is not installed: pip install regex") from error
        ids: list[int] = []
        for piece in regex.findall(self._pat_str, text):
            ids += self._core_bpe.encode_single_piece(piece.encode())
        return ids

    def _encode_bytes(self, text: bytes) -> list[int]:
        """Return the ids of bytes that need not be UTF-8."""
        return self._core_bpe._encode_bytes(text)

    # -- ids to text ------------------------------------------------------------------------------------

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """Return the bytes of ids.

        Raises:
            UnknownIdError: An id is not in the vocabulary; it is a `KeyError`, and for an integer out of
                range an `OverflowError` too.
        """
        return self._core_bpe.decode_bytes(tokens)

    def decode(self, tokens: Sequence[int], errors: str = "replace") -> str:
        """Return the text of ids.

        Args:
            tokens: The ids.
            errors: The handling of bytes that are not UTF-8, as for `bytes.decode`.

        Raises:
            UnicodeDecodeError: The bytes are not UTF-8, and `errors` is `"strict"`.
            UnknownIdError: An id is not in the vocabulary; it is a `KeyError`.
        """
        return self._core_bpe.decode_bytes(tokens).decode("utf-8", errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Return the bytes of an id.

        Raises:
            UnknownIdError: It is not in the vocabulary; it is a `KeyError`.
        """
        return self._core_bpe.decode_single_token_bytes(token)

    def decode_tokens_bytes(self, tokens: Sequence[int]) -> list[bytes]:
        """Return the bytes of each of several ids."""
        return self._core_bpe.decode_tokens_bytes(tokens)

    def decode_with_offsets(self, tokens: Sequence[int]) -> tuple[str, list[int]]:
        """Return the text of ids, and the offset of each id.

        Returns:
            The text, and for each id the index of the first character that it has a byte of.

        Raises:
            UnicodeDecodeError: The bytes are not UTF-8.
        """
        parts = self.decode_tokens_bytes(tokens)
        offsets, begun = [], 0
        for part in parts:
            # The offset of a token that begins within a character is that of the character.
            offsets.append(max(0, begun - (0x80 <= part[0] < 0xC0)))
            begun += len(part.translate(None, _CONTINUATION))
        return b"".join(parts).decode("utf-8", "strict"), offsets

    def decode_batch(
        self, batch: Iterable[Sequence[int]], *, errors: str = "replace", num_threads: int = 8
    ) -> list[str]:
        """Return the texts of many rows of ids, in parallel, as `decode`."""
        rows = self.decode_bytes_batch(batch, num_threads=num_threads)
        return [row.decode("utf-8", errors) for row in rows]

    def decode_bytes_batch(self, batch: Iterable[Sequence[int]], *, num_threads: int = 8) -> list[bytes]:
        """Return the bytes of many rows of ids, in parallel."""
        threads = _thread_count(num_threads)
        return self._core_bpe.decode_batch(list(batch), threads)

    # -- the vocabulary ---------------------------------------------------------------------------------

    def token_byte_values(self) -> list[bytes]:
        """Return the tokens without special tokens, sorted by bytes."""
        return self._core_bpe.token_byte_values()

    @property
    def eot_token(self) -> int:
        """The id of `<|endoftext|>`."""
        return self._special_tokens["<|endoftext|>"]

    @cached_property
    def special_tokens_set(self) -> set[str]:
        """The special tokens."""
        return set(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Whether an id is a special token's."""
        if not isinstance(token, int):
            raise ArgumentTypeError(f"an id must be an int, not {type(token).__name__}")
        return token in self._special_token_values

    @property
    def n_vocab(self) -> int:
        """The largest id plus one."""
        return self.max_token_value + 1

    # -- pickling ---------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {
            "name": self.name,
            "pat_str": self._pat_str,
            "mergeable_ranks": self._mergeable_ranks,
            "special_tokens": self._special_tokens,
        }

    def __setstate__(self, arguments: dict[str, Any]) -> None:
        Encoding.__init__(self, **arguments)


def _check_n_vocab(wanted: int, tokens: int, largest: int) -> None:
    if tokens != wanted or largest != wanted - 1:
        raise ModelError(
            f"explicit_n_vocab is {wanted}, but there are {tokens} tokens and the largest id is {largest}"
        )


def _as_bytes(text_or_bytes: str | bytes) -> bytes:
    return text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes


def _thread_count(num_threads: int) -> int:
    threads = operator.index(num_threads)
    if threads <= 0:
        raise OptionError(f"num_threads is {threads}; it must be at least 1")
    return threads
