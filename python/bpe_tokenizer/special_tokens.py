"""Special tokens: well-known sets, the ids they get, the parts they play, which of them a text may hold."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, TypeAlias

from bpe_tokenizer.errors import ArgumentTypeError, ModelError, OptionError, SpecialTokenError
from bpe_tokenizer.model import AddedToken

__all__ = [
    "CHATML_SPECIAL_TOKENS",
    "LLAMA3_SPECIAL_TOKENS",
    "ROLES",
    "AllowedSpecial",
    "DisallowedSpecial",
    "Role",
    "SpecialTokens",
    "assign_ids",
    "checked_id",
    "checked_tokens",
    "find_roles",
    "names_of",
]

SpecialTokens: TypeAlias = Mapping[str, int] | Iterable[str]
AllowedSpecial: TypeAlias = Literal["none", "all"] | Collection[str]
DisallowedSpecial: TypeAlias = Literal["all"] | Collection[str]
Role: TypeAlias = Literal["bos", "eos", "pad", "unk"]

# https://github.com/meta-llama/llama-models/blob/main/models/llama3/tokenizer.py
LLAMA3_SPECIAL_TOKENS: Final[dict[str, int]] = {
    "<|begin_of_text|>": 128000,
    "<|end_of_text|>": 128001,
    "<|reserved_special_token_0|>": 128002,
    "<|reserved_special_token_1|>": 128003,
    "<|finetune_right_pad_id|>": 128004,
    "<|reserved_special_token_2|>": 128005,
    "<|start_header_id|>": 128006,
    "<|end_header_id|>": 128007,
    "<|eom_id|>": 128008,
    "<|eot_id|>": 128009,
    "<|python_tag|>": 128010,
}

# https://github.com/openai/openai-python/blob/release-v0.28.0/chatml.md
CHATML_SPECIAL_TOKENS: Final[dict[str, int]] = {"<|im_start|>": 32001, "<|im_end|>": 32002}

# What the name of a token that plays a part contains, the surest sign first.
_ROLE_NAMES: Final[Mapping[Role, tuple[str, ...]]] = {
    "bos": ("bos", "begin_of_text", "<s>"),
    "eos": ("eos", "end_of_text", "endoftext", "</s>"),
    "pad": ("pad", "padding"),
    "unk": ("unk", "unknown"),
}
ROLES: Final[tuple[Role, ...]] = tuple(_ROLE_NAMES)
_ALL_ROLE_NAMES: Final = tuple(name for names in _ROLE_NAMES.values() for name in names)

_MAX_ID = 2**32 - 1


def checked_tokens(special_tokens: SpecialTokens) -> Mapping[str, int] | list[str]:
    """Return the special tokens as a mapping or a list, each text valid and there once.

    Raises:
        ModelError: A text is empty, there twice, or holds a lone surrogate.
        ArgumentTypeError: The argument is a single `str`, or an item is no `str`.
    """
    if isinstance(special_tokens, str):
        raise ArgumentTypeError(
            f"special_tokens must be a list or a dict, not a str: write [{special_tokens!r}]"
        )
    tokens = special_tokens if isinstance(special_tokens, Mapping) else list(special_tokens)
    seen = set()
    for content in tokens:
        if not isinstance(content, str):
            raise ArgumentTypeError(
                f"a special token must be a str, not {type(content).__name__}: {content!r}"
            )
        if not content:
            raise ModelError("a special token is empty: it would be found everywhere")
        if any("\ud800" <= character <= "\udfff" for character in content):
            raise ModelError(f"the special token {content!r} holds a lone surrogate, which no text can hold")
        if content in seen:
            raise ModelError(f"the special token {content!r} is listed twice")
        seen.add(content)
    return tokens


def checked_id(content: str, value: object) -> int:
    """Return the id of a special token as an `int`.

    Raises:
        ModelError: It is negative or above 2**32 - 1.
        ArgumentTypeError: It is no integer.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(
            f"the id of special token {content!r} must be an int, not {type(value).__name__}"
        )
    token_id = operator.index(value)
    if not 0 <= token_id <= _MAX_ID:
        raise ModelError(f"the id of special token {content!r} is {token_id}; ids are 0 to {_MAX_ID:,}")
    return token_id


def assign_ids(special_tokens: SpecialTokens | None, vocab_size: int) -> list[AddedToken]:
    """Give the special tokens of a training run their ids.

    Args:
        special_tokens: A list, which takes the ids after the bytes (256, 257, ...), or a dict of text to
            id. An id below `vocab_size` is reserved there; others lie outside the vocabulary.
        vocab_size: The number of ids that training may fill.

    Returns:
        The tokens in the order of their ids.

    Raises:
        ModelError: A text is empty or there twice; an id is below 256, too large or there twice.
        OptionError: The list does not fit into `vocab_size`.

    >>> assign_ids(["<a>", "<b>"], vocab_size=300)[1].id
    257
    """
    if special_tokens is None:
        return []
    tokens = checked_tokens(special_tokens)
    if not isinstance(tokens, Mapping):
        if 256 + len(tokens) > vocab_size:
            raise OptionError(
                f"{len(tokens)} special tokens after the 256 bytes do not fit into vocab_size={vocab_size}; "
                f"ask for at least {256 + len(tokens)}, or name their ids in a dict"
            )
        return [AddedToken(content, 256 + index) for index, content in enumerate(tokens)]
    owners: dict[int, str] = {}
    for content, value in tokens.items():
        token_id = checked_id(content, value)
        if token_id < 256:
            raise ModelError(
                f"the id of special token {content!r} is {token_id}; ids 0 to 255 are the bytes, "
                "use 256 or more"
            )
        if token_id in owners:
            raise ModelError(
                f"special tokens {owners[token_id]!r} and {content!r} both have the id {token_id}"
            )
        owners[token_id] = content
    return [AddedToken(owners[token_id], token_id) for token_id in sorted(owners)]


def find_roles(tokens: Iterable[AddedToken]) -> dict[Role, str]:
    """Find the tokens that begin, end, fill up and replace, by their names.

    The names are `bos`, `begin_of_text`, `<s>`; `eos`, `end_of_text`, `endoftext`, `</s>`; `pad`; `unk`.
    The first of them that a token's text contains as a word, in either case, decides, and among the tokens
    that do the smallest id. (`<|videos|>` ends no text.)

    Args:
        tokens: Special tokens.

    Returns:
        The text of the token for each role that there is one for.

    >>> find_roles([AddedToken("<|begin_of_text|>", 300), AddedToken("<|right_pad_id|>", 301)])
    {'bos': '<|begin_of_text|>', 'pad': '<|right_pad_id|>'}
    """
    named = [token for token in tokens if _holds_role_name(token.content)]
    contents = [token.content for token in sorted(named, key=lambda token: token.id)]
    roles: dict[Role, str] = {}
    for role, names in _ROLE_NAMES.items():
        for name in names:
            word = re.compile(rf"(?<![a-z]){re.escape(name)}(?![a-z])", re.IGNORECASE)
            match = next((content for content in contents if word.search(content)), None)
            if match is not None:
                roles[role] = match
                break
    return roles


def _holds_role_name(content: str) -> bool:
    """Whether it is worth a closer look; there may be hundreds of thousands of tokens."""
    lowered = content.lower()
    return any([name in lowered for name in _ALL_ROLE_NAMES])  # noqa: C419 (a generator takes twice as long)


def names_of(
    option: str, value: AllowedSpecial | DisallowedSpecial, known: Mapping[str, object]
) -> Collection[str]:
    """Return the special tokens that `allowed_special` or `disallowed_special` names.

    Args:
        option: The argument's name, for messages.
        value: `"all"`, `"none"` (only of `allowed_special`), or a collection of token texts.
        known: The special tokens that there are.

    Raises:
        OptionError: The value is another `str`.
        SpecialTokenError: It names a token that is not there.
    """
    if isinstance(value, str):
        if value == "all":
            return known.keys()
        if value == "none" and option == "allowed_special":
            return ()
        words = "'none', 'all'" if option == "allowed_special" else "(), 'all'"
        raise OptionError(f"{option} is {value!r}; it must be {words} or a set of special tokens")
    names = frozenset(value)
    for name in sorted(names - known.keys(), key=repr):
        close = difflib.get_close_matches(name, known, n=3) if isinstance(name, str) else []
        hint = f"; close to it: {', '.join(map(repr, close))}" if close else ""
        raise SpecialTokenError(
            f"{option} names {name!r}, which is no special token of this tokenizer{hint}. "
            "`special_tokens` lists them; add_special_tokens() adds one"
        )
    return names
