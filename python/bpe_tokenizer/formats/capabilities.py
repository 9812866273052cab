"""Checks that a format can hold a model, shared by the formats of byte-level BPE."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.model import Model, Split

__all__ = [
    "BYTE_TOKENS",
    "NOT_IN_UTF8",
    "PRINTABLE_BYTES",
    "crosses_trailing_space",
    "drop_normalization",
    "keeping_matches",
    "require_byte_level",
    "require_mergeable",
    "unmergeable_token",
]

# The bytes that never occur in UTF-8. A token may have the printable character of such a byte as its text.
NOT_IN_UTF8 = frozenset((0xC0, 0xC1, *range(0xF5, 0x100)))
# The byte of each of GPT-2's printable characters, and of each token of byte fallback.
PRINTABLE_BYTES: Mapping[str, int] = {_core.to_printable(bytes([byte])): byte for byte in range(256)}
BYTE_TOKENS: Mapping[str, int] = {f"<0x{byte:02X}>": byte for byte in range(256)}

# llama3's pattern splits trailing white space after its last newline, cl100k's does not: this matches a token
# of the bytes of white space that crosses the place.
_TRAILING_SPACE = re.compile(
    rb"[\t-\r \x80-\x8a\x9a\x9f-\xa0\xa8\xa9\xaf\xc2\xe1-\xe3]*[\r\n]"
    rb"[\t\x0b\x0c \xc2\xe1-\xe3][\t\x0b\x0c \x80-\x8a\x9a\x9f-\xa0\xa8\xa9\xaf\xc2\xe1-\xe3]*\Z"
)


def crosses_trailing_space(vocab: Iterable[bytes]) -> bytes | None:
    r"""Return a token for which the patterns llama3 and cl100k give different ids.

    >>> crosses_trailing_space([b"\n\n", b" \n "])
    b' \n '
    """
    return next(filter(_TRAILING_SPACE.match, vocab), None)


def keeping_matches(pattern: str) -> Split:
    r"""Return the step that keeps the matches of a pattern and drops the text between them.

    Raises:
        PatternError: The pattern is not supported.

    >>> keeping_matches(r"\w+").behavior, keeping_matches(r"\w+|\W").behavior
    ('Removed', 'Isolated')
    """
    if _core.SplitPattern(pattern).covers_every_text:
        return Split(pattern=pattern)
    return Split(pattern=pattern, behavior="Removed", invert=True)


def drop_normalization(form: str) -> str:
    """Say how to drop a normal form that a format cannot hold, and what that changes."""
    return (
        "with_normalization(None), or `convert --normalization none`, drops it: texts that are not "
        f"{form} then get other ids"
    )


def require_byte_level(
    model: Model,
    name: str,
    *,
    normalization: bool = False,
    prefix_space: bool = False,
) -> _core.Model:
    """Return the core of a model if a format can hold how the model treats text.

    A model that takes a piece that is a token for that token passes: see `require_mergeable`.

    Args:
        model: The model to save.
        name: The format, for messages, like `.tiktoken`.
        normalization: The format, or a file saved with it, can hold a normal form.
        prefix_space: The format can hold a space before the text.

    Raises:
        FormatError: The format cannot hold something of the model; names it.
    """
    core = model.core
    if core.alphabet == "bytes" and core.decoder is not None:
        raise FormatError(f"decoder: {name} decodes tokens to their bytes only, without spaces between them")
    if core.alphabet != "bytes":
        raise FormatError(
            f"alphabet: {name} holds tokens of bytes; this model's are text (SentencePiece-style)"
        )
    if not core.requires_all_bytes:
        raise FormatError(f"vocab: {name} needs a token for each of the 256 bytes; this model lacks some")
    if core.split_patterns is None:
        steps = ", ".join(step.type for step in core.pre_tokenizers)
        raise FormatError(f"pre_tokenizers: {name} cuts at the matches of a pattern only, not with {steps}")
    if core.normalizers and core.normalization is None:
        steps = ", ".join(step.type for step in core.normalizers)
        raise FormatError(f"normalizers: {name} cannot hold {steps}")
    if core.normalization is not None and not normalization:
        raise FormatError(
            f"normalization: {name} cannot hold {core.normalization!r}; its readers would not normalise. "
            f"{drop_normalization(core.normalization)}"
        )
    if core.add_prefix_space and not prefix_space:
        raise FormatError(f"add_prefix_space: {name} cannot hold it; its readers put no space before a text")
    return core


def require_mergeable(
    model: Model, name: str, *, normalization: bool = False, prefix_space: bool = False
) -> _core.Model:
    """Return the core of a model if readers that only merge make the same ids.

    A model whose ids are ranks (a `.tiktoken` file's) takes a piece that is a token for that token. The rule
    changes nothing where merging the bytes of each token gives that token. Such a model fits a format whose
    readers only merge.

    Args:
        model: The model to save.
        name: The format, for messages.
        normalization: The format can hold a normal form.
        prefix_space: The format can hold a space before the text.

    Raises:
        FormatError: The format cannot hold something of the model; names it.
    """
    core = require_byte_level(model, name, normalization=normalization, prefix_space=prefix_space)
    found = unmergeable_token(core) if core.ignore_merges else None
    if found is not None:
        raise FormatError(
            f"ignore_merges: {name} cannot hold it; its readers would merge every piece step by step, "
            f"which never makes the token {shorten(found[1])} (id {found[0]})"
        )
    return core


def unmergeable_token(core: _core.Model) -> tuple[int, bytes] | None:
    """Return a token that merging its own bytes does not make, other than an added token."""
    added = {token.id for token in core.added_tokens}
    outside = added.difference(core.added_ids_in_vocab)
    vocab = {token_id: token for token_id, token in core.vocab.items() if token_id not in outside}
    # Encoding gives the lower of two ids with the same bytes.
    ids = {token: token_id for token_id, token in reversed(vocab.items())}
    tokens = [token for token, token_id in ids.items() if token and token_id not in added]
    merging = _core.Model(vocab, core.merges, requires_all_bytes=False)
    rows = _core.Encoder(merging).encode_batch(tokens)
    return next(
        ((ids[token], token) for token, row in zip(tokens, rows, strict=True) if row != [ids[token]]), None
    )
