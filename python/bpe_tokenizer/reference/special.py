"""Special tokens: where they cut the text, which ids they get, and whether a text may hold them.

A special token such as `<|endoftext|>` marks something that is not text: the end of a document, the turn of a
speaker. It is never split or merged with a neighbour, so the text is cut at special tokens first. Anyone can
type these characters, so encoding reads them as plain text by default.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, TypeAlias

__all__ = [
    "AllowedSpecial",
    "DisallowedSpecial",
    "SpecialTokens",
    "assign_ids",
    "choose_special",
    "cut_at_special",
    "special_texts",
]

SpecialTokens: TypeAlias = Mapping[str, int] | Iterable[str]
AllowedSpecial: TypeAlias = Literal["none", "all", "none_raise"] | Collection[str]
DisallowedSpecial: TypeAlias = Literal["all"] | Collection[str]


def cut_at_special(text: str, special_tokens: Collection[str]) -> list[str]:
    """Cut a text at its special tokens, each of which becomes a separate part.

    Of two special tokens that start at the same position, the longer one matches.

    >>> cut_at_special("one<|end|>two<|end|>", ["<|end|>"])
    ['one', '<|end|>', 'two', '<|end|>']
    >>> cut_at_special("a<s>>b", ["<s>", "<s>>"])
    ['a', '<s>>', 'b']
    """
    if not special_tokens:
        return [text] if text else []
    longest_first = sorted(special_tokens, key=len, reverse=True)
    pattern = "(" + "|".join(re.escape(token) for token in longest_first) + ")"
    return [part for part in re.split(pattern, text) if part]


def special_texts(special_tokens: SpecialTokens) -> list[str]:
    """Return the texts of special tokens, given as a list or as a dict of text to id.

    Raises:
        TypeError: The argument is a single `str`.
        ValueError: A special token is empty or duplicate.

    >>> special_texts({"<|end|>": 300})
    ['<|end|>']
    """
    if isinstance(special_tokens, str):
        raise TypeError(f"special_tokens must be a list or a dict, not a str: write [{special_tokens!r}]")
    texts = list(special_tokens)
    for i, text in enumerate(texts):
        if not text:
            raise ValueError("a special token is empty: it would match everywhere")
        if text in texts[:i]:
            raise ValueError(f"the special token {text!r} is listed twice")
    return texts


def assign_ids(special_tokens: SpecialTokens, first_id: int) -> dict[str, int]:
    """Assign ids to special tokens.

    Args:
        special_tokens: A list takes the ids from `first_id`; a dict names the ids.
        first_id: The first id after the bytes or characters.

    Returns:
        The id of each special token.

    Raises:
        ValueError: A special token is empty or duplicate; an id is below `first_id` or duplicate.

    >>> assign_ids(["<|start|>", "<|end|>"], first_id=256)
    {'<|start|>': 256, '<|end|>': 257}
    >>> assign_ids({"<|end|>": 65}, first_id=256)
    Traceback (most recent call last):
        ...
    ValueError: special token '<|end|>' has id 65, but ids below 256 are bytes or characters: give it ...
    """
    texts = special_texts(special_tokens)
    if not isinstance(special_tokens, Mapping):
        return {text: first_id + i for i, text in enumerate(texts)}
    owner: dict[int, str] = {}
    for text, token_id in special_tokens.items():
        if token_id < 0:
            raise ValueError(f"special token {text!r} has id {token_id}: an id is not negative")
        if token_id < first_id:
            raise ValueError(
                f"special token {text!r} has id {token_id}, but ids below {first_id} are bytes or "
                f"characters: give it {first_id} or more"
            )
        if token_id in owner:
            raise ValueError(f"special tokens {owner[token_id]!r} and {text!r} have the same id, {token_id}")
        owner[token_id] = text
    return dict(special_tokens)


def choose_special(
    text: str,
    special_tokens: Mapping[str, int],
    allowed_special: AllowedSpecial,
    disallowed_special: DisallowedSpecial,
) -> dict[str, int]:
    """Return the special tokens to recognise in a text, after checking that it holds no forbidden one.

    Args:
        text: The text to encode.
        special_tokens: All special tokens and their ids.
        allowed_special: The ones to recognise: `"none"`, `"all"`, or a set of them. The others are plain
            text. `"none_raise"` recognises none and forbids all, which is what tiktoken does by default.
        disallowed_special: The ones to forbid: a set of them, or `"all"` that are not allowed.

    Raises:
        ValueError: The text holds a forbidden special token; or a name is not a special token.

    The arguments mean the same as in tiktoken: https://github.com/openai/tiktoken/blob/main/tiktoken/core.py

    >>> ids = {"<|end|>": 256, "<|user|>": 257}
    >>> choose_special("so<|end|>", ids, "none", ())
    {}
    >>> choose_special("so<|end|>", ids, {"<|end|>"}, "all")
    {'<|end|>': 256}
    >>> choose_special("so<|end|>", ids, "none", "all")
    Traceback (most recent call last):
        ...
    ValueError: the text holds the special token '<|end|>' at character 2, which is disallowed: add it ...
    """
    if allowed_special == "none_raise":
        allowed_special, disallowed_special = "none", "all"
    allowed = _named("allowed_special", allowed_special, special_tokens)
    disallowed = _named("disallowed_special", disallowed_special, special_tokens) - allowed
    parts = cut_at_special(text, disallowed)
    for i, part in enumerate(parts):
        if part in disallowed:
            raise ValueError(
                f"the text holds the special token {part!r} at character {len(''.join(parts[:i]))}, which is "
                "disallowed: add it to allowed_special to encode it as a special token, or pass "
                "disallowed_special=() to encode it as plain text"
            )
    return {token: token_id for token, token_id in special_tokens.items() if token in allowed}


def _named(option: str, choice: str | Collection[str], special_tokens: Mapping[str, int]) -> set[str]:
    """Return the special tokens that `"none"`, `"all"` or a set of them means."""
    if choice == "all":
        return set(special_tokens)
    if choice == "none" and option == "allowed_special":
        return set()
    if isinstance(choice, str):
        raise ValueError(f"{option}={choice!r} is unknown: for one special token, write {{{choice!r}}}")
    unknown = sorted(set(choice) - set(special_tokens))
    if unknown:
        known = ", ".join(map(repr, special_tokens)) or "none"
        raise ValueError(f"{option}: {unknown[0]!r} is not a special token; the tokenizer has: {known}")
    return set(choice)
