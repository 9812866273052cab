"""A model made ready to run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import cast

from bpe_tokenizer import _core
from bpe_tokenizer.errors import ModelError
from bpe_tokenizer.model import AddedToken, Model
from bpe_tokenizer.special_tokens import Role, SpecialTokens, checked_id, checked_tokens, find_roles

__all__ = ["Snapshot", "with_special_tokens"]


@dataclass(frozen=True)
class Snapshot:
    """A model made ready to run, with what is looked up often; never changed, only replaced as a whole.

    Args:
        model: The model.
        encoder: Runs the model.
    """

    model: Model
    encoder: _core.Encoder

    @classmethod
    def of(cls, model: Model, earlier: Snapshot | None = None) -> Snapshot:
        """Make a model ready to run, with caches as large as those of the earlier one in its place."""
        encoder = _core.Encoder(model.core)
        if earlier is not None:
            encoder.limit_cache(earlier.encoder.cache_bytes)
        return cls(model, encoder)

    @cached_property
    def added(self) -> dict[str, AddedToken]:
        """The added tokens by their text, in the order of the ids."""
        return {token[0]: AddedToken(*token) for token in self.model.core.added_tokens}

    @cached_property
    def special(self) -> dict[str, int]:
        """The ids of the special tokens by their text, in the order of the ids."""
        return {token.content: token.id for token in self.added.values() if token.special}

    @cached_property
    def role_ids(self) -> dict[Role, tuple[str, int]]:
        """Text and id of the token of each role that there is one for."""
        special = [token for token in self.added.values() if token.special]
        named = cast("Mapping[Role, str]", self.model.named_tokens)
        contents = {**find_roles(special), **named}
        found: dict[Role, tuple[str, int]] = {}
        for role, content in contents.items():
            # An empty text in `named_tokens` is a role that no token plays, whatever the tokens' names.
            token_id = self.id_of_content(content) if content else None
            if token_id is not None:
                found[role] = content, token_id
        return found

    @cached_property
    def matching_models(self) -> set[object]:
        """The language models that were found to be made for this tokenizer."""
        return set()

    def id_of_content(self, content: str) -> int | None:
        """Return the id of the added token, or else of the vocabulary's token, with this text."""
        if content in self.added:
            return self.added[content].id
        return self.token_ids.get(self.written(content.encode()))

    def written(self, token: bytes) -> str:
        """Return a token as files write it: GPT-2's printable characters, or the text of a text's token."""
        if self.model.core.alphabet == "characters":
            return token.decode("utf-8", "replace")
        return _core.to_printable(token)

    @cached_property
    def around(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids that `add_special_tokens=True` puts before and after a text."""
        post_processor = self.model.post_processor
        if post_processor is not None:
            return post_processor.prefix, post_processor.suffix
        before, after = self.role_ids.get("bos"), self.role_ids.get("eos")
        return (before[1],) if before else (), (after[1],) if after else ()

    @cached_property
    def token_strings(self) -> dict[int, str]:
        """The token string of each id."""
        strings = {token_id: self.written(token) for token_id, token in self.model.core.vocab.items()}
        strings.update((token.id, token.content) for token in self.added.values())
        return strings

    @cached_property
    def token_ids(self) -> dict[str, int]:
        """The id of each token string; an added token's text is the added token."""
        ids: dict[str, int] = {}
        for token_id, string in self.token_strings.items():
            ids.setdefault(string, token_id)
        ids.update((token.content, token.id) for token in self.added.values())
        return ids


def with_special_tokens(model: Model, special_tokens: SpecialTokens) -> tuple[Model, int]:
    """Return a model with further special tokens, and how many are new.

    Args:
        model: The model.
        special_tokens: A list, which takes the ids after the largest in use, or a dict of text to id.

    Raises:
        ModelError: A text or an id is taken, invalid, or there twice.
    """
    tokens = {token[0]: AddedToken(*token) for token in model.core.added_tokens}
    wanted = checked_tokens(special_tokens)
    vocab = model.core.vocab
    if not isinstance(wanted, Mapping):
        fresh = [content for content in wanted if content not in tokens]
        following = max(vocab, default=-1) + 1
        known = {content: tokens[content].id for content in wanted if content in tokens}
        wanted = known | {content: following + index for index, content in enumerate(fresh)}
    added = 0
    for content, value in wanted.items():
        token_id = checked_id(content, value)
        old = tokens.get(content)
        if old is not None and old.id != token_id:
            raise ModelError(
                f"special token {content!r} has the id {old.id} already; it cannot get {token_id}"
            )
        if vocab.get(token_id, content.encode()) != content.encode():
            raise ModelError(
                f"special token {content!r} cannot get the id {token_id}: "
                f"it belongs to the token {vocab[token_id]!r}"
            )
        if old is None or not old.special:
            tokens[content] = old._replace(special=True) if old else AddedToken(content, token_id)
            vocab[token_id] = content.encode()
            added += 1
    core = model.core.with_added_tokens(sorted(tokens.values(), key=itemgetter(1)))
    return dataclasses.replace(model, core=core), added
