"""The first tokenizer: merges over the whole byte stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .tokenizer import Tokenizer

__all__ = ["NaiveBPETokenizer"]


class NaiveBPETokenizer(Tokenizer[bytes]):
    """Byte-pair encoding of the whole text, in one piece.

    The smallest tokens are the 256 bytes, so every text can be encoded. Merges cross words and punctuation:
    such a tokenizer learns "e " and "dog." and "dog!".

    The example of https://en.wikipedia.org/wiki/Byte-pair_encoding: in `aaabdaaabac`, first "aa" is the
    most frequent pair. Then ("aa", "a") and ("a", "b") both occur twice, and the first seen is merged. The
    last merge is ("aaa", "b").

    >>> tokenizer = NaiveBPETokenizer().train("aaabdaaabac", 259)
    >>> tokenizer.merges
    [(b'a', b'a'), (b'aa', b'a'), (b'aaa', b'b')]
    >>> ids = tokenizer.encode("aaabdaaabac")
    >>> ids
    [258, 100, 258, 97, 99]
    >>> tokenizer.decode(ids)
    'aaabdaaabac'
    """

    def split(self, text: str) -> list[str]:
        """Return the text as one piece."""
        return [text] if text else []

    def initial_tokens(self, piece: str) -> list[bytes]:
        r"""Return the bytes of the UTF-8 of a piece.

        >>> NaiveBPETokenizer().initial_tokens("né")
        [b'n', b'\xc3', b'\xa9']
        """
        return [bytes([byte]) for byte in piece.encode()]

    def initial_vocab(self, pieces: Iterable[Sequence[bytes]]) -> list[bytes]:
        """Return all bytes, whatever the text: ids 0 to 255."""
        return [bytes([byte]) for byte in range(256)]

    def token_bytes(self, token: bytes) -> bytes:
        """Return the token: it is its bytes."""
        return token

    def parse_token(self, data: bytes) -> bytes:
        """Return the token: a file holds its bytes."""
        return data
