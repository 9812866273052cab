"""Special tokens and added ids of an encoding call: what the policy of the methods has in common."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

from bpe_tokenizer.compiled import CompiledModel
from bpe_tokenizer.errors import SpecialTokenError, shorten
from bpe_tokenizer.special_tokens import AllowedSpecial, DisallowedSpecial, special_token_names

__all__ = [
    "SpecialSet",
    "raise_if_disallowed",
    "resolve_allowed_special",
    "resolve_special_sets",
]

# Special tokens as the core takes them: none (False), all (True), or these.
SpecialSet: TypeAlias = bool | Collection[str]
# The default arguments. CPython has each of these values once, so `is` finds the default fastest, and never
# calls the `==` of an argument. An equal value takes the longer way to the same result.
_NO_SPECIAL: Final = "none"
_NONE_DISALLOWED: Final[tuple[str, ...]] = ()


def resolve_special_sets(
    compiled: CompiledModel, allowed_special: AllowedSpecial, disallowed_special: DisallowedSpecial
) -> tuple[SpecialSet, SpecialSet]:
    """Return the allowed and the disallowed special tokens as the core takes them.

    Raises:
        OptionError: A value is another `str` than `"all"` or `"none"`.
        SpecialTokenError: A set names an unknown token.
    """
    names_all = isinstance(allowed_special, str) and allowed_special == "all"
    if disallowed_special is _NONE_DISALLOWED and (names_all or allowed_special is _NO_SPECIAL):
        return names_all, False  # without the table of special tokens, which may be large
    allowed = special_token_names("allowed_special", allowed_special, compiled.special)
    special = True if names_all else allowed or False
    disallowed = special_token_names("disallowed_special", disallowed_special, compiled.special)
    if isinstance(disallowed_special, str):
        return special, set(disallowed) - set(allowed) if allowed else True
    return special, disallowed or False


def resolve_allowed_special(
    compiled: CompiledModel,
    texts: Sequence[str | bytes],
    allowed_special: AllowedSpecial,
    disallowed_special: DisallowedSpecial = (),
) -> SpecialSet:
    """Return the special tokens to recognise in texts, as the core takes them.

    Raises:
        OptionError: A value is another `str` than `"all"` or `"none"`.
        SpecialTokenError: A disallowed token occurs in a text, or a set names an unknown token.
    """
    if allowed_special is _NO_SPECIAL and disallowed_special is _NONE_DISALLOWED:
        return False  # the defaults, for which further checks take as long as encoding a short text
    special, disallowed = resolve_special_sets(compiled, allowed_special, disallowed_special)
    raise_if_disallowed(compiled, texts, disallowed)
    return special


def raise_if_disallowed(
    compiled: CompiledModel, texts: Sequence[str | bytes], disallowed: SpecialSet
) -> None:
    """Raise SpecialTokenError if a disallowed special token occurs in one of the texts."""
    if not disallowed:
        return
    for number, text in enumerate(texts):
        found = compiled.encoder.find_special(text, disallowed)
        if found is not None:
            token, position = shorten(found[0], 40), found[1]
            where = f"text {number}" if len(texts) > 1 else "the text"
            unit = "character" if isinstance(text, str) else "byte"
            raise SpecialTokenError(
                f"{where} holds the disallowed special token {token} at {unit} {position}. To encode it as "
                f"that token, pass allowed_special={{{token}}}; to encode it as plain text, leave it out "
                "of disallowed_special (() disallows none)"
            )
