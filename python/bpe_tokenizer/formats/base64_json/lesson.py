"""Reads the files of `bpe_tokenizer.reference` where a model gives the same ids.

A model can represent a NaiveBPETokenizer, a RegexBPETokenizer, and a CharBPETokenizer that starts from bytes.
A CharBPETokenizer that starts from characters fails on unknown characters, which a model does not, so it is
refused. The patterns are written for Python's `regex` module.
"""

from __future__ import annotations

from bpe_tokenizer import _core
from bpe_tokenizer.errors import TokenizerError, shorten
from bpe_tokenizer.formats.base64_json.tokens import read_merges, read_vocab
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.formats.python_regex import python_objection
from bpe_tokenizer.model import AddedToken, Model

__all__ = ["FORMAT", "read"]

FORMAT = "bpe_tokenizer.reference"
_VERSION = 1
_SETTINGS = {
    "NaiveBPETokenizer": (),
    "RegexBPETokenizer": ("pattern",),
    "CharBPETokenizer": ("pattern", "byte_level"),
}


def read(document: Field) -> Model:
    """Read a tokenizer of `bpe_tokenizer.reference`.

    Args:
        document: The file, whose `format` is `FORMAT`.

    Raises:
        FormatError: The file is broken, or cannot be represented exactly.
    """
    if document.need("version").value != _VERSION:
        raise document.get("version").refused(f"is not supported; only version {_VERSION} is")
    kind, settings = document.need("class"), document.need("settings")
    if kind.text() not in _SETTINGS:
        raise kind.refused(f"is not a class of bpe_tokenizer.reference; use {', '.join(_SETTINGS)}")
    if sorted(settings.members()) != sorted(_SETTINGS[kind.text()]):
        raise settings.refused(f"must be the settings of a {kind.text()}")
    vocab_field, merges_field = document.need("vocab"), document.need("merges")
    vocab, merges = read_vocab(vocab_field), read_merges(merges_field)
    if kind.text() == "CharBPETokenizer":
        if not settings.get("byte_level").flag():
            raise kind.refused(
                "fails on unknown characters, which a model cannot represent; "
                "read it with bpe_tokenizer.reference.CharBPETokenizer().load(path)"
            )
        vocab = {token_id: _from_printable(vocab_field, token) for token_id, token in vocab.items()}
        merges = [
            (_from_printable(merges_field, left), _from_printable(merges_field, right))
            for left, right in merges
        ]
    _check_merges(merges_field, set(vocab.values()), merges)
    special = document.need("special_tokens")
    for text in special.members():
        if special.get(text).id() in vocab:
            raise special.get(text).refused("is already the id of a token of the vocabulary")
    pattern = _read_pattern(settings.get("pattern")) if "pattern" in settings.members() else ""
    added_tokens = [AddedToken(text, token_id) for text, token_id in special.members().items()]
    try:
        core = _core.Model(
            vocab, merges, split_patterns=[pattern] if pattern else [], added_tokens=added_tokens
        )
    except TokenizerError as error:
        raise document.error(str(error)) from error
    return Model(core)


def _from_printable(field: Field, token: bytes) -> bytes:
    """The bytes of a token that is stored as GPT-2's printable characters in UTF-8."""
    decoded = _core.from_printable(token.decode("utf-8", "replace"))
    if not decoded:
        raise field.error(f"{shorten(token)} has a character outside the 256 printable bytes")
    return decoded


def _read_pattern(field: Field) -> str:
    pattern = field.text()
    if not pattern:
        return ""
    try:
        _core.SplitPattern(pattern)
    except TokenizerError as error:
        raise field.error(f"is not supported: {error}") from error
    problem = python_objection(pattern)
    if problem is not None:
        raise field.refused(f"is not supported: it {problem}")
    return pattern


def _check_merges(field: Field, tokens: set[bytes], merges: list[tuple[bytes, bytes]]) -> None:
    """Check that each merge makes a new token from earlier tokens, as learned merges do.

    The reference applies a merge to all places of a pair in one pass. Only under this condition does that
    give the same ids as merging place by place.
    """
    known = {token for token in tokens if len(token) == 1}
    for index, (left, right) in enumerate(merges):
        if left not in known or right not in known:
            raise field.item(index).refused("uses a token that no earlier merge makes")
        if left + right in known:
            raise field.item(index).refused("makes a token that already exists")
        known.add(left + right)
    for token in sorted(tokens - known):
        raise field.error(f"no merge makes the token {shorten(token)} of the vocabulary")
