"""6. Special tokens: where they cut a text, and which of them a text may hold.

A special token such as `<|endoftext|>` marks something that is not text: the end of a document, the turn of a
speaker. It is never split or merged with a neighbour, so the text is cut at special tokens first. Anyone can
type these characters, so encoding reads them as plain text by default.
"""

import re
from collections.abc import Collection, Mapping
from typing import TypeAlias

from .text import TokenizerError, checked_dict

# "none", "all", "none_raise", or a set of special tokens; None is "none".
AllowedSpecial: TypeAlias = str | Collection[str] | None
SpecialTokens: TypeAlias = Mapping[str, int] | None  # The id of each special token.


def split_at_special(text: str, special_tokens: Collection[str]) -> list[str]:
    """Cut a text at its special tokens, each of which becomes a separate part.

    Of two special tokens that start at the same position, the longer one matches.

    >>> split_at_special("one<|end|>two<|end|>", ["<|end|>"])
    ['one', '<|end|>', 'two', '<|end|>']
    >>> split_at_special("a<s>>b", ["<s>", "<s>>"])
    ['a', '<s>>', 'b']
    """
    longest_first = sorted(special_tokens, key=len, reverse=True)
    pattern = "(" + "|".join(map(re.escape, longest_first)) + ")"
    return [part for part in re.split(pattern, text) if part] if longest_first else [text] if text else []


def allowed_tokens(text: str, special_tokens: Mapping[str, int], allowed: AllowedSpecial) -> dict[str, int]:
    """Return the special tokens to recognise in a text.

    Args:
        text: The text to encode.
        special_tokens: All special tokens and their ids.
        allowed: The ones to recognise: `"none"`, `"all"`, or a set of them. The others are plain text.
            `"none_raise"` recognises none, and refuses a text that holds one, as tiktoken does by default.

    Raises:
        TokenizerError: The text holds a special token that is refused, or a name is not a special token.

    >>> ids = {"<|end|>": 256, "<|user|>": 257}
    >>> allowed_tokens("so<|end|>", ids, "none")
    {}
    >>> allowed_tokens("so<|end|>", ids, {"<|end|>"})
    {'<|end|>': 256}
    >>> allowed_tokens("so<|end|>", ids, "none_raise")
    Traceback (most recent call last):
        ...
    bpe_tokenizer.reference.text.TokenizerError: the text holds the special token '<|end|>': add it to ...
    """
    if allowed == "all":
        return dict(special_tokens)
    if allowed == "none_raise":
        for part in split_at_special(text, special_tokens):
            if part in special_tokens:
                advice = 'add it to allowed_special, or read it as plain text with allowed_special="none"'
                raise TokenizerError(f"the text holds the special token {part!r}: {advice}")
    if allowed in (None, "none", "none_raise"):
        return {}
    if isinstance(allowed, str):
        raise TokenizerError(f"allowed_special={allowed!r} is unknown: for one token, write {{{allowed!r}}}")
    names = set(allowed or ())
    for name in sorted(names - set(special_tokens)):
        known = ", ".join(map(repr, special_tokens)) or "none"
        raise TokenizerError(f"{name!r} is not a special token of this tokenizer, which has: {known}")
    return {text: token_id for text, token_id in special_tokens.items() if text in names}


def check_special_tokens(special_tokens: Mapping[str, int], vocab: Collection[int]) -> dict[str, int]:
    """Return special tokens, after checking their texts and ids.

    Args:
        special_tokens: The id of each special token.
        vocab: The ids that are in use.

    Raises:
        TokenizerError: They are not in a dict, or one is empty, or its id is negative or in use.

    >>> check_special_tokens({"<|end|>": 65}, range(256))
    Traceback (most recent call last):
        ...
    bpe_tokenizer.reference.text.TokenizerError: special token '<|end|>' cannot have id 65: it is negative or
    in use
    """
    used = set(vocab)
    for text, token_id in checked_dict(special_tokens).items():
        if not text:
            raise TokenizerError("a special token is empty: it would match everywhere")
        if token_id < 0 or token_id in used:
            raise TokenizerError(
                f"special token {text!r} cannot have id {token_id}: it is negative or in use"
            )
        used.add(token_id)
    return dict(special_tokens)
