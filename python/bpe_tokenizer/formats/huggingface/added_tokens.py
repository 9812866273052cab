"""Checks the `added_tokens` of a tokenizer.json, which `_core.TokenTable` reads."""

from __future__ import annotations

from collections.abc import Sequence

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.formats.capabilities import NOT_IN_UTF8
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import AddedToken, Normalizer

__all__ = [
    "FLAGS",
    "check_byte_spellings",
    "check_matching",
    "spells_other_bytes",
]

FLAGS = AddedToken._fields[2:]


def spells_other_bytes(content: str, ignore_merges: bool) -> bool:
    """Return whether encoding may also give an added token of `model.vocab` for other bytes than its text.

    In a byte-level vocabulary the text is the spelling of these bytes, as `é` is of the byte 0xE9. Merging
    starts from single bytes, so a longer text matters only if pieces can become tokens without merging. The
    bytes 0xC0, 0xC1 and 0xF5 to 0xFF do not occur in UTF-8, so no text gives a token that they spell.

    Args:
        content: The text of the added token.
        ignore_merges: Whether a piece that is a token becomes that token without merging.

    >>> [spells_other_bytes(content, False) for content in ("a", "é", "õ", "éé")]
    [False, True, False, False]
    """
    if content.isascii() or not (len(content) == 1 or ignore_merges):
        return False
    spelled = _core.from_printable(content)
    return spelled is not None and NOT_IN_UTF8.isdisjoint(spelled)


def check_byte_spellings(
    field: Field, added: Sequence[AddedToken], table: _core.TokenTable, ignore_merges: bool
) -> None:
    """Refuse added tokens whose text is also the spelling of other bytes in a byte-level vocabulary.

    The core refuses those that merges make.

    Args:
        field: The `added_tokens` of a tokenizer.json.
        added: The added tokens.
        table: The vocabulary of the file.
        ignore_merges: Whether a piece that is a token becomes that token without merging.

    Raises:
        FormatError: There is such a token.
    """
    for token in added:
        if token.content in table and spells_other_bytes(token.content, ignore_merges):
            raise _refused(
                field,
                token,
                "is in model.vocab, where its text spells other bytes; one id cannot be both",
            )


def check_matching(
    field: Field, added: Sequence[AddedToken], normalizers: Sequence[Normalizer], to_bytes: bool
) -> dict[int, str]:
    """Refuse added tokens that the library finds at other places than this package.

    Args:
        field: The `added_tokens` of a tokenizer.json.
        added: The added tokens.
        normalizers: The steps of normalisation, which also apply to `normalized` tokens.
        to_bytes: Whether a step `ByteLevel` follows them.

    Returns:
        The texts of the tokens that normalisation changes, by id.

    Raises:
        FormatError: Two tokens have the same normalised text, one is empty, or one may begin in the white
            space that another strips; or `ByteLevel` changes where a token is found, or its text.
    """
    _check_overlaps(field, [(token, token.content) for token in added if not token.normalized])
    normalized = [(token, token.content) for token in added if token.normalized]
    if normalizers and normalized:
        vocab = {byte: bytes([byte]) for byte in range(256)}
        encoder = _core.Encoder(_core.Model(vocab, [], normalizers=normalizers))
        normalized = [(token, bytes(encoder.encode(text)).decode()) for token, text in normalized]
        _check_normal_forms(field, normalized)
    _check_overlaps(field, normalized)
    if to_bytes:
        _check_printable(field, normalized)
    return {token.id: text for token, text in normalized if text != token.content}


def _check_normal_forms(field: Field, normalized: Sequence[tuple[AddedToken, str]]) -> None:
    found: dict[str, AddedToken] = {}
    for token, text in normalized:
        if not text:
            raise _refused(field, token, "is empty after normalisation; set its normalized to false")
        if text in found:
            raise _refused(field, token, f"is the same as {shorten(found[text].content)} after normalisation")
        found[text] = token


def _check_printable(field: Field, normalized: Sequence[tuple[AddedToken, str]]) -> None:
    """Refuse tokens that mean something else among the printable characters of bytes.

    There, no character is white space, and spaces and all bytes that are not ASCII are letters to
    `single_word`.
    """
    for token, text in normalized:
        for flag in ("single_word", "lstrip", "rstrip"):
            if getattr(token, flag):
                raise _refused(field, token, f"has {flag}, which {_AFTER_BYTE_LEVEL}")
        if _core.to_printable(text.encode()) != text:
            raise _refused(
                field, token, f"has characters that are not printable ASCII, which {_AFTER_BYTE_LEVEL}"
            )


_AFTER_BYTE_LEVEL = "is not supported after the normalizer ByteLevel; set its normalized to false"


def _check_overlaps(field: Field, texts: Sequence[tuple[AddedToken, str]]) -> None:
    if not any(token.rstrip for token, _ in texts):
        return
    for token, text in texts:
        if text[0].isspace():
            raise _refused(
                field,
                token,
                "begins with white space, which another token strips (rstrip); this is not supported",
            )


def _refused(field: Field, token: AddedToken, why: str) -> FormatError:
    return field.error(f"{shorten(token.content)} (id {token.id}) {why}")
