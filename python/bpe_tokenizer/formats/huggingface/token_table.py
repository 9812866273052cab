"""Reads `model.vocab` and `model.merges` of a tokenizer.json, and names what is wrong.

The core's `TokenTable` reads valid ones much faster.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.formats.json_file import Field

__all__ = ["StringTable", "Table", "read_string_table"]

_MAX_ID = 2**32 - 2


@dataclass(frozen=True)
class StringTable:
    """`model.vocab` and `model.merges` of a file that the core's `TokenTable` cannot read.

    It has the methods of `TokenTable`.

    Args:
        vocab: Token strings and their ids.
        merges: Pairs of token strings, in the order of their ranks.
    """

    vocab: dict[str, int]
    merges: list[tuple[str, str]]

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.vocab)

    def __contains__(self, token: object) -> bool:
        """Return whether the vocabulary has a token string."""
        return token in self.vocab

    def get(self, token: str) -> int | None:
        """Return the id of a token string, if it has one."""
        return self.vocab.get(token)

    def ids(self, tokens: Sequence[str]) -> list[int | None]:
        """Return the id of each of these token strings, if it has one."""
        return list(map(self.vocab.get, tokens))

    def merged(self, tokens: Set[str]) -> set[str]:
        """Return those of these tokens that a merge joins or makes."""
        return {part for pair in self.merges for part in (*pair, "".join(pair)) if part in tokens}


Table: TypeAlias = _core.TokenTable | StringTable


def read_string_table(model: Field) -> StringTable:
    """Read the vocabulary and the merges.

    Args:
        model: The `model` of a tokenizer.json.

    Raises:
        FormatError: The vocabulary or the merges are broken.
    """
    return StringTable(_read_vocab(model.need("vocab")), _read_merges(model.need("merges")))


def _read_vocab(field: Field) -> dict[str, int]:
    vocab = field.members()
    ids = vocab.values()
    are_ids = set(map(type, ids)) <= {int} and len(set(ids)) == len(ids)
    if are_ids and (not ids or (min(ids) >= 0 and max(ids) <= _MAX_ID)):
        return vocab
    tokens: dict[int, str] = {}
    for token in vocab:
        token_id = field.get(token).id()
        if token_id in tokens:
            raise field.error(
                f"duplicate id {token_id}: tokens {shorten(tokens[token_id])} and {shorten(token)}"
            )
        tokens[token_id] = token
    return vocab


def _read_merges(field: Field) -> list[tuple[str, str]]:
    """Read pairs of strings, or the older "left right"; of duplicate pairs the last counts."""
    values = field.values()
    kinds = set(map(type, values))
    if kinds == {str}:
        values = [merge.split(" ") for merge in values if not merge.startswith("#version")]
    is_valid = kinds <= {str} or kinds == {list}
    if not (
        is_valid
        and set(map(len, values)) <= {2}
        and set(map(type, itertools.chain.from_iterable(values))) <= {str}
    ):
        raise _no_merge(field)
    merges: list[tuple[str, str]] = list(map(tuple, values))
    if len(set(merges)) < len(merges):
        return list(dict.fromkeys(reversed(merges)))[::-1]
    return merges


def _no_merge(field: Field) -> FormatError:
    """Return the error for the first item that is not a merge."""
    paired = any(type(merge) is not str for merge in field.values())

    def is_merge(merge: Any) -> bool:
        if not paired and merge.startswith("#version"):
            return True
        pair = merge if paired else merge.split(" ")
        return type(pair) is list and list(map(type, pair)) == [str, str]

    index = next(index for index, merge in enumerate(field.values()) if not is_merge(merge))
    return field.item(index).refused("is not a merge: all must be pairs of strings, or all 'left right'")
