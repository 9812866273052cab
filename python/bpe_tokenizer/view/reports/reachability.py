"""Tokens that encoding can never produce."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from bpe_tokenizer import _core

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["Reachability", "merge_only_encoder", "reachability"]

# First bytes of characters, by the number of continuation bytes that complete them.
_LEADS = {
    1: [bytes([lead]) for lead in range(0xC2, 0xE0)]
    + [bytes([lead, 0x80 | second]) for lead in range(0xE1, 0xED) for second in range(0, 64, 8)]
    + [b"\xf0\x9f\x98", b"\xf0\x9f\xa4", b"\xf0\x9d\x90"],
    2: [bytes([lead]) for lead in range(0xE0, 0xF0)]
    + [b"\xf0" + bytes([second]) for second in range(0x90, 0xC0)],
    3: [bytes([lead]) for lead in range(0xF0, 0xF5)],
}
# Continuation bytes that complete a character, by the number that are missing.
_TAILS = {
    1: [bytes([last]) for last in range(0x80, 0xC0)],
    2: [bytes([second, last]) for second in range(0x80, 0xC0, 4) for last in (0x80, 0xA5)],
    3: [bytes([second, third, 0x80]) for second in (0x80, 0x90, 0x9F, 0xA0) for third in (0x80, 0x98)],
}

# Contexts in which a token's text is tried: a tokenizer may add a space before a text, or keep a piece whole.
_PREFIXES = ("", "\n", ".", "a")


class Reachability(NamedTuple):
    """Which tokens encoding cannot produce.

    Args:
        unreachable: Ids that no text produces, with the reason.
        undecided: Ids that merging could produce, but none of the tried texts does.
    """

    unreachable: dict[int, str]
    undecided: list[int]


def reachability(tokenizer: BPETokenizer, ids: Iterable[int]) -> Reachability:
    r"""Find the tokens that encoding can never produce.

    A token is reachable if a text produces it: its own text, or one that completes its partial characters.
    It is unreachable if merging its own bytes alone gives other tokens: in any context, the merges inside the
    token apply in the same order. (With `ignore_merges` a whole piece skips merging, so this proves nothing.)

    Args:
        tokenizer: The tokenizer.
        ids: The ids to test, without those of added tokens.

    Example:
        >>> vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"bc", 257: b"ab", 258: b"abc"}
        >>> merges = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]
        >>> from bpe_tokenizer import BPETokenizer
        >>> reachability(BPETokenizer.from_vocab(vocab, merges), [257, 258]).unreachable
        {258: 'merging its bytes gives 97 256'}
    """
    core = tokenizer.model.core
    candidates = [(each, token) for each in ids if (token := core.token(each)) is not None]
    unseen = [(each, token) for each, token in candidates if not _is_reached(tokenizer, each, token)]
    merged = merge_only_encoder(core).encode_batch([token for _, token in unseen])
    unreachable: dict[int, str] = {}
    undecided = []
    for (each, token), alone in zip(unseen, merged, strict=True):
        if core.alphabet == "bytes" and not _occurs_in_utf8(token):
            unreachable[each] = "no text in UTF-8 holds its bytes"
        elif alone != [each] and not core.ignore_merges and not _is_byte_token(core, token):
            unreachable[each] = f"merging its bytes gives {' '.join(map(str, alone)) or 'nothing'}"
        else:
            undecided.append(each)
    return Reachability(unreachable, undecided)


def merge_only_encoder(core: _core.Model) -> _core.Encoder:
    """Return an encoder that only merges: no normalisation, splitting, added tokens or `ignore_merges`."""
    arguments, settings = core.__getnewargs_ex__()
    alone = {"normalizers": [], "pre_tokenizers": [], "added_tokens": [], "ignore_merges": False}
    return _core.Encoder(_core.Model(*arguments, **{**settings, **alone}))  # type: ignore[arg-type]


def _is_reached(tokenizer: BPETokenizer, token_id: int, token: bytes) -> bool:
    return any(
        token_id in tokenizer.encode(prefix + text) for text in _texts_with(token) for prefix in _PREFIXES
    )


def _texts_with(token: bytes) -> Iterator[str]:
    """Yield texts with these bytes, their partial characters at both ends completed."""
    leading, missing = _leading_continuations(token), _missing_continuations(token)
    for lead in _LEADS.get(leading, []) if leading else [b""]:
        for tail in _TAILS[missing] if missing else [b""]:
            try:
                yield (lead + token + tail).decode("utf-8")
            except UnicodeDecodeError:
                continue


def _leading_continuations(token: bytes) -> int:
    """Return the number of continuation bytes at the start."""
    return next((at for at, byte in enumerate(token) if byte & 0xC0 != 0x80), len(token))


def _missing_continuations(token: bytes) -> int:
    """Return the number of bytes that the last character lacks."""
    for back in range(1, min(3, len(token)) + 1):
        byte = token[-back]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return max(length - back, 0)
    return 0


def _occurs_in_utf8(token: bytes) -> bool:
    return next(_texts_with(token), None) is not None


def _is_byte_token(core: _core.Model, token: bytes) -> bool:
    return core.byte_fallback and len(token) == 6 and token.startswith(b"<0x")
