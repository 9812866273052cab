"""The `added_tokens` of a tokenizer.json.

Hugging Face `tokenizers` does not read their ids: a token that stands in `model.vocab` has its id there, and
the others get the ids from `len(model.vocab)` on, in the order of the file (`AddedVocabulary::add_tokens`,
version 0.23). So a token whose id would come out differently has to stand in `model.vocab`, though it is none
of the tokens that merges make; holes between the ids are allowed there.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats.huggingface.components import Step
from bpe_tokenizer.formats.huggingface.token_table import Table
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import AddedToken

__all__ = ["FLAGS", "check_byte_spellings", "check_matching", "read_added_tokens"]

FLAGS = ("special", "single_word", "lstrip", "rstrip", "normalized")
_MEMBERS = itemgetter("content", "id", *FLAGS)
_TYPES = (str, int, bool, bool, bool, bool, bool)


def read_added_tokens(field: Field, table: Table) -> list[AddedToken]:
    """Read the added tokens.

    Args:
        field: The `added_tokens` of a tokenizer.json; null has none.
        table: Its vocabulary.

    Raises:
        FormatError: One is broken, or has another id than the library gives it.
    """
    if field.is_null:
        return []
    tokens: dict[str, AddedToken] = {}
    following = len(table)
    for index, value in enumerate(field.values()):
        token = _plain_added_token(value) or _read_added_token(field.item(index))
        if token.content in tokens:
            raise field.item(index).get("content").refused("stands twice")
        given = table.get(token.content)
        if given is None:
            given = following
            following += 1
        if token.id != given:
            raise (
                field.item(index)
                .get("id")
                .refused(
                    f"is not the id that Hugging Face tokenizers give {token.content!r}, which is {given}; "
                    "correct it, or put the token into model.vocab with the id that it is to have"
                )
            )
        tokens[token.content] = token
    return list(tokens.values())


def _plain_added_token(value: Any) -> AddedToken | None:
    """Return the token if nothing is wrong with it; there may be hundreds of thousands."""
    try:
        token = AddedToken(*_MEMBERS(value))
    except (KeyError, TypeError):
        return None
    if tuple(map(type, token)) == _TYPES and token.content and 0 <= token.id < 2**32 - 1:
        return token
    return None


def _read_added_token(item: Field) -> AddedToken:
    """Read a token with care for what is wrong."""
    content = item.need("content").text()
    if not content:
        raise item.get("content").error("is empty")
    flags = {flag: item.need(flag).flag() for flag in FLAGS}
    return AddedToken(content, item.need("id").id(), **flags)


def check_byte_spellings(
    field: Field, added: Sequence[AddedToken], table: Table, ignore_merges: bool
) -> None:
    """Refuse tokens whose text is also how a byte-level vocabulary writes other bytes, which text may hold.

    (Where merges come to them, the core refuses.)

    Args:
        field: The `added_tokens` of a tokenizer.json.
        added: What was read there.
        table: Its vocabulary.
        ignore_merges: Whether a piece that is a token is that token.

    Raises:
        FormatError: There is one.
    """
    for token in added:
        content = token.content
        if content.isascii() or content not in table:
            continue
        if _core.from_printable(content) is not None and (len(content) == 1 or ignore_merges):
            raise _refused(
                field,
                token,
                "is in model.vocab, where its text stands for other bytes; one id cannot be both",
            )


def check_matching(field: Field, added: Sequence[AddedToken], normalizers: Sequence[Step]) -> None:
    """Refuse tokens that the library looks for in a way of its own.

    Args:
        field: The `added_tokens` of a tokenizer.json.
        added: What was read there.
        normalizers: What is done to text, and to the tokens that are found in the normalised text.

    Raises:
        FormatError: Two tokens are the same text there, one is none, or one may begin in the white space
            that another takes along.
    """
    _check_overlaps(field, [(token, token.content) for token in added if not token.normalized])
    normalized = [(token, token.content) for token in added if token.normalized]
    if normalizers and normalized:
        vocab = {byte: bytes([byte]) for byte in range(256)}
        encoder = _core.Encoder(_core.Model(vocab, [], normalizers=normalizers))
        normalized = [(token, bytes(encoder.encode(text)).decode()) for token, text in normalized]
        _check_normal_forms(field, normalized)
    _check_overlaps(field, normalized)


def _check_normal_forms(field: Field, normalized: Sequence[tuple[AddedToken, str]]) -> None:
    found: dict[str, AddedToken] = {}
    for token, text in normalized:
        if not text:
            raise _refused(field, token, "is empty once it is normalised; set its normalized to false")
        if text in found:
            raise _refused(field, token, f"is the same as {found[text].content!r} once both are normalised")
        found[text] = token


def _check_overlaps(field: Field, texts: Sequence[tuple[AddedToken, str]]) -> None:
    if not any(token.rstrip for token, _ in texts):
        return
    for token, text in texts:
        if text[0].isspace():
            raise _refused(
                field,
                token,
                "begins with white space, which another token takes along (rstrip); this is not supported",
            )


def _refused(field: Field, token: AddedToken, why: str) -> FormatError:
    return field.error(f"{token.content!r} (id {token.id}) {why}")
