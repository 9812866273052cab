"""Token strings: the tokens of a model as a tokenizer.json writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.formats.capabilities import BYTE_TOKENS, NOT_IN_UTF8
from bpe_tokenizer.formats.huggingface.added_tokens import spells_other_bytes
from bpe_tokenizer.model import AddedToken

__all__ = ["TokenStrings", "Written", "added_token_fields", "write_tokens"]


class TokenStrings:
    """The token strings of a model's ids, computed on use.

    Args:
        core: The model.

    >>> strings = TokenStrings(_core.Model({7: b" a"}, [], requires_all_bytes=False))
    >>> strings[7], 8 in strings
    ('Ġa', False)
    """

    def __init__(self, core: _core.Model) -> None:
        self._core = core
        self.in_bytes = core.alphabet == "bytes"

    def __contains__(self, token_id: object) -> bool:
        """Return whether an id has a token."""
        return isinstance(token_id, int) and self._core.token(token_id) is not None

    def __getitem__(self, token_id: int) -> str:
        """Return the token string of an id."""
        added = self._core.added_token(token_id)
        if added is not None:
            return added.content
        token = self._core.token(token_id)
        if token is None:
            raise KeyError(token_id)
        return _core.to_printable(token) if self.in_bytes else token.decode()


@dataclass(frozen=True)
class Written:
    """The tokens of a model as a tokenizer.json writes them.

    Args:
        vocab: Token strings and their ids, in the order of the ids.
        merges: Pairs of token strings, in the order of their ranks.
        added: The added tokens, in the order of the ids.
        unk: The unknown token.
    """

    vocab: dict[str, int]
    merges: list[tuple[str, str]]
    added: list[AddedToken]
    unk: str | None


def write_tokens(core: _core.Model) -> Written:
    """Return the tokens of a model as a tokenizer.json writes them.

    Raises:
        FormatError: Two ids have the same token string.
        ModelError: Two ids of the vocabulary have the same token string.
    """
    vocab = core.printable_vocab()
    merges = core.printable_merges()
    added = core.added_tokens
    inside = set(core.added_ids_in_vocab)
    outside = [token for token in added if token.id not in inside]
    if [token.id for token in outside] != list(range(len(vocab), len(vocab) + len(outside))):
        for token in outside:
            _add_token(vocab, token)
            _check_is_unused(core, token)
    for token in outside:
        if vocab.get(token.content, token.id) != token.id:
            raise _conflict(vocab, token)
    if core.alphabet == "bytes":
        _check_merged_spellings([token for token in added if token.id in inside], merges)
        _check_byte_spellings(added, vocab, core.ignore_merges)
    unk = None if core.unk_id is None else next(t for t, token_id in vocab.items() if token_id == core.unk_id)
    return Written(dict(sorted(vocab.items(), key=lambda item: item[1])), merges, added, unk)


def _add_token(vocab: dict[str, int], token: AddedToken) -> None:
    if vocab.setdefault(token.content, token.id) != token.id:
        raise _conflict(vocab, token)


def _check_is_unused(core: _core.Model, token: AddedToken) -> None:
    """Refuse an added token that encoding finds in the vocabulary without matching it as an added token."""
    in_bytes = core.alphabet == "bytes"
    spelled = _core.from_printable(token.content) if in_bytes else token.content.encode()
    symbol = len(token.content) == 1 and spelled is not None and not NOT_IN_UTF8.issuperset(spelled)
    byte = core.byte_fallback and not in_bytes and token.content in BYTE_TOKENS
    # One that is not special and may touch any character is always matched.
    piece = core.ignore_merges and token.single_word and not token.special
    if symbol or byte or piece:
        raise FormatError(
            f"added_tokens: {shorten(token.content)} (id {token.id}) needs a place in the vocabulary of "
            "tokenizer.json, where BPE would use it for ordinary text; give it and the other added tokens "
            "the ids that follow the vocabulary"
        )


def _conflict(vocab: Mapping[str, int], token: AddedToken) -> FormatError:
    return FormatError(
        f"added_tokens: {shorten(token.content)} has the id {token.id}, but a token of the vocabulary with "
        f"the same spelling has {vocab[token.content]}; tokenizer.json can give a text only one id"
    )


def _check_merged_spellings(inside: Sequence[AddedToken], merges: Sequence[tuple[str, str]]) -> None:
    """Refuse added tokens that merges make too, under another spelling."""
    written = {_core.to_printable(token.content.encode()): token for token in inside}
    different = {printable for printable, token in written.items() if printable != token.content}
    if not different:
        return
    for left, right in merges:
        for printable in different.intersection((left, right, left + right)):
            raise FormatError(
                f"added_tokens: merges make {shorten(written[printable].content)} (id "
                f"{written[printable].id}) too, as "
                f"{shorten(printable)}; tokenizer.json cannot hold both spellings of an id"
            )


def _check_byte_spellings(added: Sequence[AddedToken], vocab: Mapping[str, int], ignore_merges: bool) -> None:
    """Refuse added tokens of the vocabulary that readers also find for other bytes."""
    for token in added:
        if token.content in vocab and spells_other_bytes(token.content, ignore_merges):
            raise FormatError(
                f"added_tokens: {shorten(token.content)} (id {token.id}) needs a place in the vocabulary of "
                "tokenizer.json, where its text spells other bytes; one id cannot be both"
            )


def added_token_fields(token: AddedToken) -> dict[str, Any]:
    """Return the fields of an added token without its id, for both files."""
    return {
        "content": token.content,
        "single_word": token.single_word,
        "lstrip": token.lstrip,
        "rstrip": token.rstrip,
        "normalized": token.normalized,
        "special": token.special,
    }
