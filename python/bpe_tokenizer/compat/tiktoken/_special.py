"""Which special tokens a text may hold, and which must not stand in it: tiktoken's rules."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any

from bpe_tokenizer.compat.tiktoken._core_bpe import Allowed, CoreBPE
from bpe_tokenizer.errors import ArgumentTypeError, SpecialTokenError

__all__ = ["check_text", "raise_if_disallowed", "resolve_allowed_special"]


def check_text(text: object) -> None:
    """Refuse what is no `str`.

    Raises:
        ArgumentTypeError: It is something else.
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"expected a str, not {type(text).__name__}")


def resolve_allowed_special(allowed_special: Any) -> Allowed:
    """Return the special tokens to recognise.

    Args:
        allowed_special: A set, or `"all"`.

    Raises:
        ArgumentTypeError: It is something else.

    >>> resolve_allowed_special("all"), resolve_allowed_special(set()), resolve_allowed_special({"<|end|>"})
    (True, False, {'<|end|>'})
    """
    if isinstance(allowed_special, (set, frozenset, AbstractSet)):
        return allowed_special or False
    if allowed_special == "all":
        return True
    raise ArgumentTypeError(
        f"allowed_special must be a set of special tokens or 'all', not {allowed_special!r}"
    )


def raise_if_disallowed(
    core: CoreBPE, texts: Iterable[str], allowed: Allowed, disallowed_special: Any
) -> None:
    """Refuse texts that hold what is disallowed.

    Args:
        core: Finds special tokens.
        texts: What is to be encoded.
        allowed: The special tokens that are recognised.
        disallowed_special: A collection of special tokens, or of any other texts; `"all"` for the special
            tokens that are not allowed.

    Raises:
        SpecialTokenError: A text holds one.
    """
    if isinstance(disallowed_special, str) and disallowed_special == "all":
        if allowed is not True:
            for text in texts:
                _refuse_not_allowed(core, text, allowed)
    elif disallowed_special:
        names = frozenset(disallowed_special)
        for text in texts:
            found = core.find_special(text, names & core.special_tokens)
            if found is None:
                found = next((other for other in names - core.special_tokens if other in text), None)
            if found is not None:
                raise _disallowed(found)


def _refuse_not_allowed(core: CoreBPE, text: str, allowed: Allowed) -> None:
    # Most texts hold no special token at all, which is seen at once.
    found = core.find_special(text, True)
    if found is not None and not isinstance(allowed, bool):
        found = core.find_special(text, core.special_tokens.difference(allowed))
    if found is not None:
        raise _disallowed(found)


def _disallowed(token: str) -> SpecialTokenError:
    return SpecialTokenError(
        f"the text holds the disallowed special token {token!r}. To encode it as a special token, "
        f"pass allowed_special={{{token!r}}}; to encode it as plain text, "
        f"disallowed_special=enc.special_tokens_set - {{{token!r}}}, or disallowed_special=() for all of them"
    )
