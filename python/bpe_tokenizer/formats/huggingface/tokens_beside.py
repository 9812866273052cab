"""The added tokens that the files beside a tokenizer.json name, with the precedence of `transformers` 5.

See `_from_pretrained` in its `tokenization_utils_base.py`, and `TokenizersBackend.__init__`:

1. The entries of `added_tokens_decoder` replace the flags that tokenizer.json gives their tokens. Without
   that field, added_tokens.json names further tokens.
2. Texts with a role, other `..._token`s, `extra_special_tokens` and `model_specific_special_tokens` become
   tokens if they are none yet. A token with a role or another name is special, whatever its flags say.

A new token has its id in the vocabulary, or else the next one. `transformers` ignores the ids in the files
beside. Here, another id is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from bpe_tokenizer import _core
from bpe_tokenizer.errors import shorten
from bpe_tokenizer.formats.huggingface.added_tokens import FLAGS
from bpe_tokenizer.formats.huggingface.config import Config, token_content
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import AddedToken

__all__ = ["with_tokens_beside"]

# The roles of `transformers`, in the order in which it adds their tokens.
_ROLES = tuple(f"{role}_token" for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))


class _Ids(Protocol):
    """The ids of a vocabulary's token strings."""

    def __len__(self) -> int: ...

    def get(self, token: str, /) -> int | None: ...


def with_tokens_beside(
    config: Config, added: Sequence[AddedToken], ids: _Ids, main: str = "tokenizer.json"
) -> list[AddedToken]:
    """Return the added tokens of a tokenizer.json and of the files beside it.

    Args:
        config: The files beside it.
        added: The added tokens of tokenizer.json.
        ids: Its vocabulary.
        main: The name of the file of the vocabulary, for messages.

    Raises:
        FormatError: A file beside gives a token another id, or has fields of the wrong type.
    """
    tokens = {token.content: token for token in added}
    next_id = max([len(ids), *(token.id + 1 for token in added)])

    def add(field: Field, token: AddedToken, wanted_id: int | None = None) -> None:
        nonlocal next_id
        known = tokens.get(token.content)
        token_id = ids.get(token.content) if known is None else known.id
        token_id = next_id if token_id is None else token_id
        if wanted_id not in (None, token_id):
            alone = ", or load tokenizer.json by its path: alone" if main == "tokenizer.json" else ""
            raise field.error(
                f"gives {shorten(token.content, 40)} the id {wanted_id}, but by {main}, as in transformers, "
                f"it has {token_id}; correct one of the files{alone}"
            )
        next_id = max(next_id, token_id + 1)
        tokens[token.content] = token._replace(id=token_id)

    named, extra = _named(config.fields), _extra(config.fields)
    special = {token_content(field) for field in named.values()}
    decoder = config.decoder
    if decoder is not None and not (isinstance(ids, _core.TokenTable) and decoder.equals(ids)):
        listed = config.fields.get("added_tokens_decoder")
        entries = [(listed.get(str(token.id)), token) for token in decoder.tokens(special)]
    else:
        for content in special.intersection(tokens):
            tokens[content] = tokens[content]._replace(special=True)
        first = [*(field for name, field in named.items() if name in _ROLES), *extra]
        entries = _added_entries(config.added_tokens, special, set(map(token_content, first)))
        entries = [entry for entry in entries if not _has(tokens, entry[1])]
    for field, token in sorted(entries, key=lambda entry: entry[1].id):
        if token.content:
            add(field, token, token.id)
    for field in (*named.values(), *extra):
        content = token_content(field)
        if content and content not in tokens:
            add(field, _flagged(field, content in special))
    return list(tokens.values())


def _has(tokens: Mapping[str, AddedToken], token: AddedToken) -> bool:
    return token.content in tokens and tokens[token.content].id == token.id


def _named(fields: Field) -> dict[str, Field]:
    """The fields that give a token a role, or another name such as `image_token`."""
    names = [name for name, value in fields.members().items() if name.endswith("_token")]
    found = {name: fields.get(name) for name in (*_ROLES, *names)}
    # `transformers` writes the first under the second name.
    for extra in map(fields.get, ("extra_special_tokens", "model_specific_special_tokens")):
        if isinstance(extra.value, dict):
            found |= {name: extra.get(name) for name in extra.value}
    return {
        name: field
        for name, field in found.items()
        if isinstance(field.value, str | dict) or (name in _ROLES and not field.is_null)
    }


def _extra(fields: Field) -> list[Field]:
    """The further special tokens; `additional_special_tokens` is the older name."""
    extra = fields.get("extra_special_tokens")
    if not extra.value:
        extra = fields.get("additional_special_tokens")
    return [] if extra.is_null or isinstance(extra.value, dict) else extra.items()


def _added_entries(
    document: Field | None, special: Set[str], first: Set[str]
) -> list[tuple[Field, AddedToken]]:
    """The tokens of added_tokens.json, an object of texts and ids.

    Args:
        document: The file, if there is one.
        special: The texts with a role or another name.
        first: The texts with a role, and the further special tokens.
    """
    if document is None:
        return []
    return [
        (
            document.get(content),
            AddedToken(
                content,
                document.get(content).id(),
                special=content in special or content in first,
                normalized=content not in first,
            ),
        )
        for content in document.members()
    ]


def _flagged(field: Field, is_named: bool) -> AddedToken:
    """The token of a text, which is special, or of an object with flags."""
    if not isinstance(field.value, dict):
        return AddedToken(field.text(), 0)
    flags = {flag: field.get(flag).flag(default=False) for flag in FLAGS}
    flags["special"] |= is_named
    flags["normalized"] = field.get("normalized").flag(default=not flags["special"])
    return AddedToken(token_content(field), 0, **flags)
