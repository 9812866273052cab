"""Special tokens to and from tiktoken's dict of text to id."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.model import AddedToken
from bpe_tokenizer.special_tokens import SpecialTokens, checked_id, checked_tokens, known_or_next_ids

__all__ = ["check_no_prefixes", "to_added_tokens", "to_special_tokens"]

# o200k_harmony has two names for this id; a model has one name for an id, and keeps `<|endofprompt|>`.
_SECOND_NAMES = {"<|reserved_200018|>": 200018}


def to_added_tokens(ranks: _core.RankTable, special_tokens: SpecialTokens) -> list[AddedToken]:
    r"""Return special tokens in the order of their ids.

    Args:
        ranks: The tokens and their ranks.
        special_tokens: A dict of text to id; or a list, whose tokens get the ids after the largest rank
            unless they are in `ranks`.

    Raises:
        ArgumentTypeError: The argument is neither a dict nor a list, or an id is not an integer.
        ModelError: A text is empty or a duplicate, or an id is out of range.

    >>> ranks = _core.RankTable.parse(b"YQ== 0\nYg== 7", "my.tiktoken")
    >>> [token.id for token in to_added_tokens(ranks, ["<|x|>", "<|y|>"])]
    [8, 9]
    """
    wanted = checked_tokens(special_tokens)
    if not isinstance(wanted, Mapping):
        known = {content: ranks[content.encode()] for content in wanted if content.encode() in ranks}
        wanted = known_or_next_ids(wanted, known, ranks.max_rank)
    named = [AddedToken(content, checked_id(content, value)) for content, value in wanted.items()]
    taken = {token.id for token in named if _SECOND_NAMES.get(token.content) != token.id}
    kept = [token for token in named if token.id not in taken or token.content not in _SECOND_NAMES]
    return sorted(kept, key=lambda token: token.id)


def to_special_tokens(core: _core.Model, name: str) -> dict[str, int]:
    """Return the special tokens of a model as tiktoken has them.

    Args:
        core: The model.
        name: The format, for messages.

    Raises:
        FormatError: tiktoken cannot hold an added token; names it.
    """
    tokens = core.added_tokens
    for token in tokens:
        flags = [flag for flag in ("single_word", "lstrip", "rstrip") if getattr(token, flag)]
        if flags:
            raise FormatError(
                f"added_tokens: {name} cannot hold {', '.join(flags)} of {shorten(token.content)}"
            )
        if not token.special:
            raise FormatError(
                f"added_tokens: {name} cannot hold {shorten(token.content)}, which is not special and found "
                "in every text; its readers find allowed special tokens only"
            )
    if len({token.normalized for token in tokens}) > 1:
        raise FormatError(f"added_tokens: {name} cannot hold that only some of them have `normalized`")
    return {token.content: token.id for token in tokens}


def check_no_prefixes(special_tokens: Mapping[str, int]) -> None:
    """Refuse a special token that begins with another one.

    Raises:
        FormatError: A special token begins with another.

    >>> check_no_prefixes({"<|a|>": 300, "<|a|>b": 301})
    Traceback (most recent call last):
    bpe_tokenizer.errors.FormatError: added_tokens: tiktoken cannot hold both '<|a|>' and '<|a|>b': ...
    """
    ordered = sorted(special_tokens)
    for before, after in pairwise(ordered):
        if after.startswith(before):
            raise FormatError(
                f"added_tokens: tiktoken cannot hold both {shorten(before)} and {shorten(after)}: one begins "
                "with the other, and it may take either"
            )
