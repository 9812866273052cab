"""Tokens that encoding can never give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bpe_tokenizer import _core
from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["Reachability", "merging_alone", "reachability"]

# First bytes of characters that may stand before continuation bytes, by how many of these follow.
_LEADS = {
    1: [bytes([lead]) for lead in range(0xC2, 0xE0)]
    + [bytes([lead, 0x80 | second]) for lead in range(0xE1, 0xED) for second in range(0, 64, 8)]
    + [b"\xf0\x9f\x98", b"\xf0\x9f\xa4", b"\xf0\x9d\x90"],
    2: [bytes([lead]) for lead in range(0xE0, 0xF0)]
    + [b"\xf0" + bytes([second]) for second in range(0x90, 0xC0)],
    3: [bytes([lead]) for lead in range(0xF0, 0xF5)],
}
# Continuation bytes that complete a character, by how many are missing.
_TAILS = {
    1: [bytes([last]) for last in range(0x80, 0xC0)],
    2: [bytes([second, last]) for second in range(0x80, 0xC0, 4) for last in (0x80, 0xA5)],
    3: [bytes([second, third, 0x80]) for second in (0x80, 0x90, 0x9F, 0xA0) for third in (0x80, 0x98)],
}

# What a token's text is tried behind: a tokenizer may put a space before a text, or keep a piece together.
_BEFORE = ("", "\n", ".", "a")


class Reachability(NamedTuple):
    """Which tokens encoding gives.

    Args:
        unreachable: Ids that no text gives, with the reason.
        undecided: Ids that merging could give, but none of the texts that were tried does.
    """

    unreachable: dict[int, str]
    undecided: list[int]


def reachability(tokenizer: BPETokenizer, ids: Iterable[int]) -> Reachability:
    r"""Tell which tokens encoding can never give.

    A token is reachable if some text gives it: its own, or one in which the characters that it cuts are
    completed. It is unreachable if merging its own bytes, with nothing around them, gives other tokens:
    whatever stands around it, the merges inside of it happen in the same order, so it never comes about.
    (Where a piece that is a token becomes that token without merging, this is no proof.)

    Args:
        tokenizer: The tokenizer.
        ids: The ids to decide about; those of added tokens must not be among them.

    Example:
        >>> vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"bc", 257: b"ab", 258: b"abc"}
        >>> merges = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]
        >>> reachability(BPETokenizer.from_vocab(vocab, merges), [257, 258]).unreachable
        {258: 'merging its bytes gives 97 256'}
    """
    core = tokenizer.model.core
    candidates = [(each, token) for each in ids if (token := core.token(each)) is not None]
    hidden = [(each, token) for each, token in candidates if not _is_given(tokenizer, each, token)]
    merged = merging_alone(core).encode_batch([token for _, token in hidden])
    unreachable: dict[int, str] = {}
    undecided = []
    for (each, token), alone in zip(hidden, merged, strict=True):
        if core.alphabet == "bytes" and not _occurs_in_utf8(token):
            unreachable[each] = "no text in UTF-8 holds its bytes"
        elif alone != [each] and not core.ignore_merges and not _stands_for_a_byte(core, token):
            unreachable[each] = f"merging its bytes gives {' '.join(map(str, alone)) or 'nothing'}"
        else:
            undecided.append(each)
    return Reachability(unreachable, undecided)


def merging_alone(core: _core.Model) -> _core.Encoder:
    """Return an encoder that only merges: no normalisation, no pieces, no added tokens.

    A piece that is a token is merged like any other.
    """
    arguments, settings = core.__getnewargs_ex__()
    alone = {"normalizers": [], "pre_tokenizers": [], "added_tokens": [], "ignore_merges": False}
    return _core.Encoder(_core.Model(*arguments, **{**settings, **alone}))  # type: ignore[arg-type]


def _is_given(tokenizer: BPETokenizer, token_id: int, token: bytes) -> bool:
    return any(
        token_id in tokenizer.encode(before + text) for text in _texts_with(token) for before in _BEFORE
    )


def _texts_with(token: bytes) -> Iterator[str]:
    """Texts that hold these bytes: as they are, or with the characters completed that they cut."""
    missing, body = _continuations(token), _open_end(token)
    for lead in _LEADS.get(missing, []) if missing else [b""]:
        for tail in _TAILS[body] if body else [b""]:
            try:
                yield (lead + token + tail).decode("utf-8")
            except UnicodeDecodeError:
                continue


def _continuations(token: bytes) -> int:
    """Number of continuation bytes at the beginning."""
    return next((at for at, byte in enumerate(token) if byte & 0xC0 != 0x80), len(token))


def _open_end(token: bytes) -> int:
    """Number of bytes that the last character lacks."""
    for back in range(1, min(3, len(token)) + 1):
        byte = token[-back]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return max(length - back, 0)
    return 0


def _occurs_in_utf8(token: bytes) -> bool:
    return next(_texts_with(token), None) is not None


def _stands_for_a_byte(core: _core.Model, token: bytes) -> bool:
    return core.byte_fallback and len(token) == 6 and token.startswith(b"<0x")
