"""A tokenizer as a file: JSON for loading, and a listing for people.

JSON holds text, but a token may be a part of a character, so tokens are in base64:

    {"format": "bpe_tokenizer.reference", "version": 1, "class": "RegexBPETokenizer",
     "settings": {"pattern": "..."}, "special_tokens": {"<|endoftext|>": 100257},
     "vocab": {"0": "AA==", ..., "256": "bG8="}, "merges": [["bA==", "bw=="]]}
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .merging import origins
from .pairs import Pair, Token
from .unicode import printable

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

__all__ = ["read_tokenizer", "write_listing", "write_tokenizer"]

FORMAT = "bpe_tokenizer.reference"
VERSION = 1


def write_tokenizer(tokenizer: Tokenizer[Token], path: str | PathLike[str]) -> None:
    """Write a tokenizer to a JSON file."""
    saved = {
        "format": FORMAT,
        "version": VERSION,
        "class": type(tokenizer).__name__,
        "settings": {name: getattr(tokenizer, name) for name in tokenizer.settings},
        "special_tokens": tokenizer.special_tokens,
        "vocab": {str(token_id): to_base64(token) for token_id, token in tokenizer.vocab.items()},
        "merges": [[to_base64(left), to_base64(right)] for left, right in tokenizer.merges],
    }
    Path(path).write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")


def to_base64(token: bytes | str) -> str:
    """Write a token in base64.

    >>> to_base64(b"lo"), to_base64("Ġ")
    ('bG8=', 'xKA=')
    """
    return b64encode(token.encode() if isinstance(token, str) else token).decode("ascii")


def read_tokenizer(kind: type[Tokenizer[Token]], path: str | PathLike[str]) -> Tokenizer[Token]:
    """Read a tokenizer from a JSON file.

    Args:
        kind: The class of the tokenizer that the file must hold.
        path: The file.

    Raises:
        ValueError: The file is of another kind or invalid: the message names the file and the field.
    """
    try:
        saved = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not a JSON file: {error}") from error
    try:
        return parse_tokenizer(kind, saved)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse_tokenizer(kind: type[Tokenizer[Token]], saved: object) -> Tokenizer[Token]:
    """Return the tokenizer that the contents of a file describe.

    Raises:
        ValueError: A field is missing or wrong: the message names it.
    """
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise ValueError(f"field 'format' is not {FORMAT!r}: this file was not written by save(...)")
    if saved.get("version") != VERSION:
        raise ValueError(f"field 'version' is {saved.get('version')!r}, but must be {VERSION}")
    if saved.get("class") != kind.__name__:
        raise ValueError(f"field 'class' is {saved.get('class')!r}, but this is a {kind.__name__}")
    settings = field(saved, "settings", dict)
    for name, value_type in kind.settings.items():
        field(settings, name, value_type)
    try:
        tokenizer = kind(**{name: settings[name] for name in kind.settings})
    except ValueError as error:
        raise ValueError(f"field 'settings': {error}") from error
    vocab = parse_vocab(tokenizer, field(saved, "vocab", dict))
    merges = parse_merges(tokenizer, field(saved, "merges", list))
    check_vocab(tokenizer, vocab, merges)
    tokenizer.become(vocab, merges, {})
    special_tokens = field(saved, "special_tokens", dict)
    for text, token_id in special_tokens.items():
        if type(token_id) is not int:
            raise ValueError(f"field 'special_tokens': the id of {text!r} is {token_id!r}, not an integer")
    try:
        tokenizer.register_special_tokens(special_tokens)
    except ValueError as error:
        raise ValueError(f"field 'special_tokens': {error}") from error
    return tokenizer


def field(values: Mapping[str, Any], name: str, value_type: type) -> Any:
    """Return a field of a JSON object, after checking its presence and type."""
    if name not in values:
        raise ValueError(f"field {name!r} is missing")
    value = values[name]
    if not isinstance(value, value_type):
        raise ValueError(f"field {name!r} is a {type(value).__name__}, not a {value_type.__name__}")
    return value


def parse_vocab(tokenizer: Tokenizer[Token], saved: Mapping[str, object]) -> dict[int, Token]:
    """Return the token of each id."""
    vocab: dict[int, Token] = {}
    owner: dict[Token, int] = {}
    for key, value in saved.items():
        if not (key.isascii() and key.isdecimal()) or str(int(key)) != key:
            raise ValueError(f"field 'vocab': {key!r} is not an id")
        token = parse_token(tokenizer, value, f"field 'vocab', id {key}")
        if token in owner:
            raise ValueError(f"field 'vocab': ids {owner[token]} and {key} are both {printable(token)}")
        vocab[int(key)] = token
        owner[token] = int(key)
    return vocab


def parse_merges(tokenizer: Tokenizer[Token], saved: list[object]) -> list[Pair[Token]]:
    """Return the merges, in the order of their ranks."""
    merges = []
    for rank, pair in enumerate(saved):
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(f"field 'merges', rank {rank}: expected two tokens, got {pair!r}")
        left, right = (parse_token(tokenizer, value, f"field 'merges', rank {rank}") for value in pair)
        merges.append((left, right))
    return merges


def parse_token(tokenizer: Tokenizer[Token], value: object, where: str) -> Token:
    """Return the token that a base64 string holds."""
    try:
        if not isinstance(value, str) or not value:
            raise ValueError("a token is a string and not empty")
        return tokenizer.parse_token(b64decode(value, validate=True))
    except ValueError as error:
        raise ValueError(f"{where}: {value!r} is not a token in base64: {error}") from error


def check_vocab(tokenizer: Tokenizer[Token], vocab: Mapping[int, Token], merges: list[Pair[Token]]) -> None:
    """Check that the smallest tokens and the results of merges are exactly the vocabulary."""
    tokens = set(vocab.values())
    smallest = tokenizer.initial_vocab([[token] for token in tokens if len(token) == 1])
    known = set(smallest)
    for rank, (left, right) in enumerate(merges):
        for part in (left, right):
            if part not in known:
                raise ValueError(
                    f"field 'merges', rank {rank}: {printable(part)} is neither one of the smallest tokens "
                    "nor made by an earlier merge"
                )
        known.add(left + right)
    for token in sorted(tokens ^ known):
        problem = "is missing" if token in known else "is made by no merge"
        raise ValueError(f"field 'vocab': the token {printable(token)} {problem}")


def write_listing(tokenizer: Tokenizer[Token], path: str | PathLike[str]) -> None:
    """Write a text file with a line for each token and the two tokens that it was made from."""
    made = origins(tokenizer.merges)
    lines: dict[int, str] = {}
    for token_id, token in tokenizer.vocab.items():
        parts = " = " + " + ".join(map(printable, made[token])) if token in made else ""
        lines[token_id] = f"{token_id:>7}  {printable(token)}{parts}"
    for text, token_id in tokenizer.special_tokens.items():
        lines[token_id] = f"{token_id:>7}  {printable(text)} special token"
    listing = [f"{tokenizer!r}", *(lines[token_id] for token_id in sorted(lines))]
    Path(path).write_text("\n".join(listing) + "\n", encoding="utf-8")
