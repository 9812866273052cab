"""Compares a tokenizer with the copy that was saved and loaded again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bpe_tokenizer.compiled import CompiledModel
from bpe_tokenizer.errors import shorten
from bpe_tokenizer.formats.sample import sample_texts
from bpe_tokenizer.model import Model
from bpe_tokenizer.special_tokens import ROLES

__all__ = ["Difference", "differences"]


class Difference(NamedTuple):
    """A difference between two tokenizers.

    Args:
        field: The part that differs: `vocab`, `added_tokens`, `bos_token`, ..., `post_processor`, `ids` or
            `decoding`.
        message: The old value and the new one.
    """

    field: str
    message: str


def differences(original: Model, copy: Model) -> list[Difference]:
    """Compare two tokenizers: vocabulary, added tokens, roles, post-processor, ids and decoded text.

    Ids are compared on `sample_texts` and on every token of the vocabulary, with special tokens allowed and
    with special tokens as text.

    Args:
        original: The tokenizer that was saved.
        copy: The tokenizer that was loaded again.

    Returns:
        The differences, at most one for each field.

    >>> from bpe_tokenizer import _core
    >>> vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"ab"}
    >>> models = [Model(_core.Model(vocab, [(b"a", b"b")], split_patterns=[p])) for p in ("[a-z]+", "[a-z]")]
    >>> differences(*models)[0].field
    'ids'
    """
    before, after = CompiledModel.compile(original), CompiledModel.compile(copy)
    found = [
        *_compare_vocabularies(before, after),
        *_compare_added_tokens(before, after),
        *_compare_roles(before, after),
    ]
    # If the vocabularies differ, different ids say nothing new.
    return found if any(each.field == "vocab" for each in found) else [*found, *_compare_ids(before, after)]


def _compare_vocabularies(before: CompiledModel, after: CompiledModel) -> Iterator[Difference]:
    old, new = before.model.core.vocab, after.model.core.vocab
    different = [token_id for token_id in old.keys() | new.keys() if old.get(token_id) != new.get(token_id)]
    if different:
        token_id = min(different)
        yield Difference(
            "vocab", f"the id {token_id} was {_shown(old.get(token_id))} and is {_shown(new.get(token_id))}"
        )


def _shown(token: bytes | None) -> str:
    return "missing" if token is None else repr(token)


def _compare_added_tokens(before: CompiledModel, after: CompiledModel) -> Iterator[Difference]:
    normalises = bool(before.model.core.normalizers or after.model.core.normalizers)
    for content in sorted(before.added.keys() | after.added.keys()):
        old, new = before.added.get(content), after.added.get(content)
        if old is None or new is None:
            lost = (
                "was an added token, and is not any more" if new is None else "is an added token, and was not"
            )
            yield Difference("added_tokens", f"{shorten(content)} {lost}")
            return
        if not normalises:  # then `normalized` has no effect
            old, new = old._replace(normalized=False), new._replace(normalized=False)
        if old != new:
            yield Difference("added_tokens", f"{shorten(content)} was {old} and is {new}")
            return


def _compare_roles(before: CompiledModel, after: CompiledModel) -> Iterator[Difference]:
    for role in ROLES:
        old, new = before.role_ids.get(role), after.role_ids.get(role)
        if old != new:
            yield Difference(f"{role}_token", f"was {old and old[0]!r} and is {new and new[0]!r}")
    if before.prefix_suffix_ids != after.prefix_suffix_ids:
        yield Difference(
            "post_processor",
            "the ids before and after a text were "
            f"{before.prefix_suffix_ids} and are {after.prefix_suffix_ids}",
        )


def _compare_ids(before: CompiledModel, after: CompiledModel) -> Iterator[Difference]:
    tokens = list(before.model.core.vocab.values())
    texts: list[str | bytes] = [*sample_texts(before.special), *map(_as_text, tokens)]
    for special in (False, True):
        old, new = before.encoder.encode_batch(texts, special), after.encoder.encode_batch(texts, special)
        for text, was, became in zip(texts, old, new, strict=True):
            if was != became:
                yield Difference(
                    "ids",
                    f"{shorten(text)} was {was[:20]} and is {became[:20]}{_changed_settings(before, after)}",
                )
                return
        decoded = before.encoder.decode_batch(old), after.encoder.decode_batch(new)
        for ids, was_text, became_text in zip(old, *decoded, strict=True):
            if was_text != became_text:
                yield Difference(
                    "decoding", f"{ids[:20]} was {shorten(was_text)} and is {shorten(became_text)}"
                )
                return


def _as_text(token: bytes) -> str | bytes:
    """The token as text where possible: only text is normalised."""
    try:
        return token.decode("utf-8")
    except UnicodeDecodeError:
        return token


def _changed_settings(before: CompiledModel, after: CompiledModel) -> str:
    old, new = before.model.core, after.model.core
    became = new.settings
    different = [
        f"{name} was {value!r} and is {became[name]!r}"
        for name, value in old.settings.items()
        # The tokens are compared before; the other one changes no id.
        if name not in ("added_tokens", "requires_all_bytes") and value != became[name]
    ]
    if old.merges != new.merges:
        different.append("the merges differ")
    return "; ".join(["", *different])
