"""What `bpe_tokenizer.reference` saves, read into a model where a model can do the same.

That is so for NaiveBPETokenizer, which does not split, for RegexBPETokenizer, and for a CharBPETokenizer that
starts from bytes. One that starts from characters fails on a character that it does not know; a model would
go on, so it is refused. The patterns are written for Python's `regex` module.
"""

from __future__ import annotations

from bpe_tokenizer import _core
from bpe_tokenizer.errors import TokenizerError
from bpe_tokenizer.formats._python_regex import python_objection
from bpe_tokenizer.formats.base64_json.tokens import read_merges, read_vocab
from bpe_tokenizer.formats.json_file import Field
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
    """Read a tokenizer of the lesson.

    Args:
        document: The file, whose `format` is `FORMAT`.

    Raises:
        FormatError: It is broken, or cannot be represented exactly.
    """
    if document.need("version").value != _VERSION:
        raise document.get("version").refused(f"is not supported; only version {_VERSION} is")
    kind, settings = document.need("class"), document.need("settings")
    if kind.text() not in _SETTINGS:
        raise kind.refused(f"is no tokenizer of bpe_tokenizer.reference; {', '.join(_SETTINGS)} are")
    if sorted(settings.members()) != sorted(_SETTINGS[kind.text()]):
        raise settings.refused(f"must be the settings of a {kind.text()}")
    vocab, merges = read_vocab(document.need("vocab")), read_merges(document.need("merges"))
    if kind.text() == "CharBPETokenizer":
        if not settings.get("byte_level").flag():
            raise kind.refused(
                "starts from characters and fails on those that it does not know, which no model does; "
                "bpe_tokenizer.reference.CharBPETokenizer().load(path) reads it"
            )
        vocab = {token_id: _from_printable(document.get("vocab"), token) for token_id, token in vocab.items()}
        merges = [
            (_from_printable(document.get("merges"), left), _from_printable(document.get("merges"), right))
            for left, right in merges
        ]
    _check_merges(document.get("merges"), set(vocab.values()), merges)
    special = document.need("special_tokens")
    for text in special.members():
        if special.get(text).id() in vocab:
            raise special.get(text).refused("is the id of a token of the vocabulary")
    pattern = _read_pattern(settings.get("pattern")) if "pattern" in settings.members() else ""
    try:
        core = _core.Model(
            vocab,
            merges,
            split_patterns=[pattern] if pattern else [],
            added_tokens=[AddedToken(text, token_id) for text, token_id in special.members().items()],
        )
    except TokenizerError as error:
        raise document.error(str(error)) from error
    return Model(core)


def _from_printable(field: Field, token: bytes) -> bytes:
    """The bytes of a token that is held as UTF-8 of GPT-2's printable characters."""
    decoded = _core.from_printable(token.decode("utf-8", "replace"))
    if not decoded:
        raise field.error(f"{token!r} holds a character that stands for no byte")
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
    """Each merge must make a token of its own from tokens before it, as those that were learned do.

    The lesson merges all places of a pair at once; only then is that the same as one after the other.
    """
    known = {token for token in tokens if len(token) == 1}
    for index, (left, right) in enumerate(merges):
        if left not in known or right not in known:
            raise field.item(index).refused("is made of a token that no merge before makes")
        if left + right in known:
            raise field.item(index).refused("makes a token that is there already")
        known.add(left + right)
    for token in sorted(tokens - known):
        raise field.error(f"none makes the token {token!r} of the vocabulary")
