"""The third tokenizer: starts from characters, and reads the files that OpenAI published with GPT-2.

A token is a string here. A space is written `Ġ`, so that it is visible, and so that spaces can separate the
columns of files. GPT-2 also writes each of the 256 bytes as a printable character: text becomes bytes, bytes
become characters, and merging works on the characters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from .pairs import Pair
from .splitting import GPT2_PATTERN, compiled, split
from .tokenizer import Tokenizer
from .unicode import printable

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["BYTE_CHARACTERS", "CharBPETokenizer"]

# Swaps the two characters, so that a text with a "Ġ" survives a round trip.
SWAP_SPACE = str.maketrans(" Ġ", "Ġ ")


def byte_characters() -> list[str]:
    r"""Return GPT-2's printable character of each byte.

    A byte that is a visible character in Latin-1 becomes that character. The others (white space, control
    characters, the soft hyphen) become the characters from U+0100, in order.

    Source: `bytes_to_unicode` in https://github.com/openai/gpt-2/blob/master/src/encoder.py

    >>> characters = byte_characters()
    >>> characters[ord("a")], characters[ord(" ")], characters[ord("\n")]
    ('a', 'Ġ', 'Ċ')
    """
    visible = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = iter(range(256, 512))
    return [chr(byte if byte in visible else next(others)) for byte in range(256)]


BYTE_CHARACTERS = byte_characters()
CHARACTER_BYTES = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}


class CharBPETokenizer(Tokenizer[str]):
    """Byte-pair encoding of characters, with `Ġ` for the space.

    The smallest tokens are the first 256 characters of Unicode and the other characters of the training
    text. All other characters cannot be encoded, so real tokenizers start from bytes.

    Args:
        pattern: The split pattern; None is GPT-2's.
        byte_level: Whether to start from bytes, each written as a printable character as in GPT-2's files.
            Then no character is unknown.

    Raises:
        ValueError: The pattern is not a regular expression.

    >>> tokenizer = CharBPETokenizer().train("the cat in the hat", 259)
    >>> tokenizer.merges
    [('t', 'h'), ('th', 'e'), ('a', 't')]
    >>> [tokenizer.vocab[i] for i in tokenizer.encode("the cat")]
    ['the', 'Ġ', 'c', 'at']
    >>> tokenizer.encode("中")
    Traceback (most recent call last):
        ...
    ValueError: the character '中' (U+4E2D) is not in the vocabulary: train on a text that holds it, ...
    """

    settings: ClassVar = {"pattern": str, "byte_level": bool}

    def __init__(self, pattern: str | None = None, byte_level: bool = False) -> None:
        super().__init__()
        self.pattern = GPT2_PATTERN if pattern is None else pattern
        self.byte_level = byte_level
        compiled(self.pattern)

    def split(self, text: str) -> list[str]:
        """Split a text with the split pattern."""
        return split(text, self.pattern)

    def initial_tokens(self, piece: str) -> list[str]:
        """Return the characters of a piece, or the characters of its bytes.

        >>> CharBPETokenizer().initial_tokens(" né")
        ['Ġ', 'n', 'é']
        >>> CharBPETokenizer(byte_level=True).initial_tokens(" né")
        ['Ġ', 'n', 'Ã', '©']
        """
        if self.byte_level:
            return [BYTE_CHARACTERS[byte] for byte in piece.encode()]
        return list(piece.translate(SWAP_SPACE))

    def initial_vocab(self, pieces: Iterable[Sequence[str]]) -> list[str]:
        """Return the first 256 characters of Unicode and the others of the text, or those of the bytes.

        Each group is in the order of the code points. For the bytes this is the order of GPT-2's files, where
        id 0 is "!".
        """
        if self.byte_level:
            return sorted(BYTE_CHARACTERS)
        first = list("".join(map(chr, range(256))).translate(SWAP_SPACE))
        return first + sorted(set(chain.from_iterable(pieces)) - set(first))

    def token_bytes(self, token: str) -> bytes:
        """Return the UTF-8 of a token's text.

        >>> CharBPETokenizer().token_bytes("Ġcat")
        b' cat'
        """
        if self.byte_level:
            return bytes(CHARACTER_BYTES[character] for character in token)
        return token.translate(SWAP_SPACE).encode()

    def parse_token(self, data: bytes) -> str:
        """Return the characters that a file holds as UTF-8."""
        return data.decode()

    def encode_piece(self, piece: str) -> list[int]:
        """Turn a single piece into ids.

        Raises:
            ValueError: A character is not in the vocabulary.
        """
        for token in self.initial_tokens(piece):
            if token not in self.ids:
                character = token.translate(SWAP_SPACE)
                raise ValueError(
                    f"the character {character!r} (U+{ord(character):04X}) is not in the vocabulary: "
                    "train on a text that holds it, or use a tokenizer that starts from bytes"
                )
        return super().encode_piece(piece)

    def load_openai(self, vocab_path: str | PathLike[str], merges_path: str | PathLike[str]) -> Self:
        """Replace this tokenizer by that of GPT-2's files.

        The split pattern becomes GPT-2's. Entries of the vocabulary that are neither bytes nor merged tokens
        become special tokens.

        Args:
            vocab_path: `encoder.json` or `vocab.json`: the id of each token, as JSON.
            merges_path: `vocab.bpe` or `merges.txt`: one merge a line, its two parts separated by a
                space, in the order of the ranks. A first line `#version: ...` is skipped.

        Returns:
            The tokenizer itself.

        Raises:
            ValueError: A file is invalid, or the two do not match: the message says where.
        """
        ids = read_openai_vocab(vocab_path)
        merges = list(read_openai_merges(merges_path))
        tokens = dict.fromkeys(BYTE_CHARACTERS)
        for number, (left, right) in merges:
            for part in (left, right):
                if part not in tokens:
                    raise ValueError(
                        f"{merges_path}, line {number}: {part!r} is neither a byte nor made by a line above"
                    )
            tokens[left + right] = None
        for token in tokens:
            if token not in ids:
                raise ValueError(f"{vocab_path}: no id for {token!r}, a token of {merges_path}")
        special = {text: token_id for text, token_id in ids.items() if text not in tokens}
        self.byte_level = True
        self.pattern = GPT2_PATTERN
        self.become({ids[token]: token for token in tokens}, (pair for _, pair in merges), special)
        return self


def read_openai_vocab(path: str | PathLike[str]) -> dict[str, int]:
    """Read the ids of `encoder.json`.

    Raises:
        ValueError: The file is not a JSON object of ids, or two tokens have the same id.
    """
    try:
        ids = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a JSON file: {error}") from error
    if not isinstance(ids, Mapping):
        raise ValueError(f"{path}: expected a JSON object of tokens and ids, got a {type(ids).__name__}")
    owner: dict[int, str] = {}
    for token, token_id in ids.items():
        if type(token_id) is not int or token_id < 0:
            raise ValueError(f"{path}: the id of {token!r} is {token_id!r}, not an integer from 0")
        if token_id in owner:
            raise ValueError(f"{path}: {owner[token_id]!r} and {token!r} have the same id, {token_id}")
        owner[token_id] = token
    return dict(ids)


def read_openai_merges(path: str | PathLike[str]) -> Iterator[tuple[int, Pair[str]]]:
    """Yield the merges of `vocab.bpe`, each with the number of its line.

    Raises:
        ValueError: A line does not hold two tokens with a space between them.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a UTF-8 file: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        left, space, right = line.partition(" ")
        if not (left and space and right) or " " in right:
            raise ValueError(f"{path}, line {number}: expected two tokens and a space, got {printable(line)}")
        yield number, (left, right)
