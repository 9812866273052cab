"""tiktoken's rules for allowed and disallowed special tokens in a text."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any

from bpe_tokenizer.compat.tiktoken._core_bpe import Allowed, CoreBPE
from bpe_tokenizer.errors import ArgumentTypeError, SpecialTokenError, shorten

__all__ = ["check_text", "raise_if_disallowed", "resolve_allowed_special"]


def check_text(text: object) -> None:
    """Raise if a text is not a `str`."""
    if not isinstance(text, str):
        raise ArgumentTypeError(f"expected a str, not {type(text).__name__}")


def resolve_allowed_special(allowed_special: Any) -> Allowed:
    """Return the allowed special tokens as the core takes them.

    Args:
        allowed_special: A set, or `"all"`.

    Raises:
        ArgumentTypeError: It has another type.

    >>> resolve_allowed_special("all"), resolve_allowed_special(set()), resolve_allowed_special({"<|end|>"})
    (True, False, {'<|end|>'})
    """
    if isinstance(allowed_special, (set, frozenset, AbstractSet)):
        return allowed_special or False
    if allowed_special == "all":
        return True
    raise ArgumentTypeError(
        f"allowed_special must be a set of special tokens or 'all', not {shorten(allowed_special)}"
    )


def raise_if_disallowed(
    core: CoreBPE, texts: Iterable[str], allowed: Allowed, disallowed_special: Any
) -> None:
    """Raise if a text holds something disallowed.

    Args:
        core: The encoder that finds special tokens.
        texts: The texts to encode.
        allowed: The allowed special tokens.
        disallowed_special: A collection of special tokens or other texts; `"all"` for the special tokens
            that are not allowed.

    Raises:
        SpecialTokenError: A text holds a disallowed one.
    """
    if isinstance(disallowed_special, str) and disallowed_special == "all":
        if allowed is not True:
            for text in texts:
                _raise_if_not_allowed(core, text, allowed)
    elif disallowed_special:
        names = frozenset(disallowed_special)
        for text in texts:
            found = core.find_special(text, names & core.special_tokens)
            if found is None:
                found = next((other for other in names - core.special_tokens if other in text), None)
            if found is not None:
                raise _disallowed(found)


def _raise_if_not_allowed(core: CoreBPE, text: str, allowed: Allowed) -> None:
    # Most texts hold no special token; one search shows that.
    found = core.find_special(text, True)
    if found is not None and not isinstance(allowed, bool):
        found = core.find_special(text, core.special_tokens.difference(allowed))
    if found is not None:
        raise _disallowed(found)


def _disallowed(token: str) -> SpecialTokenError:
    shown = shorten(token, 40)
    return SpecialTokenError(
        f"the text holds the disallowed special token {shown}. To encode it as a special token, pass "
        f"allowed_special={{{shown}}}; to encode it as plain text, pass "
        f"disallowed_special=enc.special_tokens_set - {{{shown}}}, or disallowed_special=() for all of them"
    )
