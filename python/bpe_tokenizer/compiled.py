"""A model made ready to run."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    SupportsIndex,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_flag
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    NotTrainedError,
    OptionError,
    SpecialTokenError,
    did_you_mean,
    shorten,
)
from bpe_tokenizer.model import AddedToken, Model, PostProcessor
from bpe_tokenizer.special_tokens import Role, find_roles

if TYPE_CHECKING:
    from bpe_tokenizer.offsets import OffsetTrimmer

__all__ = ["CompiledModel", "PairIds", "RoleToken", "UntrainedModel"]

# The ids that a post-processor adds before, between and after two texts.
PairIds: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_TextOrId = TypeVar("_TextOrId", bound=str | int)


class ReadOnlyDict(dict[_Key, _Value]):
    """A dict that callers share and cannot change; `dict(it)` is a copy that they can."""

    def _refuse(self, *_: object, **__: object) -> Any:
        raise ArgumentTypeError("this dict belongs to the tokenizer; change a copy: dict(tokenizer.vocab)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[dict[_Key, _Value]], tuple[dict[_Key, _Value]]]:
        """Pickle and copy it as a plain dict."""
        return dict, (dict(self),)


class UntrainedModel(NamedTuple):
    """The settings of a tokenizer without a vocabulary.

    Args:
        split_patterns: Regular expressions that are applied in sequence.
        normalization: A Unicode normalisation form, or None.
    """

    split_patterns: tuple[str, ...]
    normalization: str | None

    @property
    def error(self) -> NotTrainedError:
        """The error of a method that needs a vocabulary."""
        return NotTrainedError(
            "the tokenizer has no vocabulary yet: call train(corpus), or start from "
            "tokenizer = BPETokenizer.load(path or published name) or BPETokenizer.from_vocab(vocab, merges)"
        )

    @property
    def encoder(self) -> _core.Encoder:
        """Raises the error, which spares the fast path of encoding a check."""
        raise self.error


@dataclass(frozen=True)
class CompiledModel:
    """A model with its encoder and the tables that methods look up. Immutable: threads share it.

    Args:
        model: The model.
        cache_limit: The size limit of the encoder's caches; None for the default.
    """

    model: Model
    cache_limit: int | None = None

    @classmethod
    def compile(cls, model: Model, previous: object = None) -> CompiledModel:
        """Compile a model; its caches get the size limit of the `CompiledModel` that it replaces."""
        limit = previous.cache_bytes if isinstance(previous, CompiledModel) else None
        compiled = cls(model, limit)
        compiled._made_encoder()
        return compiled

    @property
    def encoder(self) -> _core.Encoder:
        """Runs the model."""
        made: _core.Encoder | None = self.__dict__.get("_encoder")
        return self._made_encoder() if made is None else made

    def _made_encoder(self) -> _core.Encoder:
        encoder = _core.Encoder(self.model.core)
        if self.cache_limit is not None:
            encoder.limit_cache(self.cache_limit)
        # Without a lock, which a child after a fork might wait for: of two threads, one makes it in vain.
        return cast("_core.Encoder", self.__dict__.setdefault("_encoder", encoder))

    @property
    def cache_bytes(self) -> int | None:
        """The size limit of the caches; None for the default."""
        made: _core.Encoder | None = self.__dict__.get("_encoder")
        return self.cache_limit if made is None else made.cache_bytes

    def with_added_tokens(self, tokens: list[AddedToken]) -> CompiledModel:
        """Return the model with further added tokens; the encoder is made when it is needed.

        Raises:
            ModelError: Another token has the text or the id of one.
        """
        core = self.model.core.adding_tokens(tokens)
        return CompiledModel(dataclasses.replace(self.model, core=core), self.cache_bytes)

    def with_role(self, role: Role, content: str | None) -> CompiledModel:
        """Return the model with another token for a role, such as BOS; None for no token.

        Raises:
            SpecialTokenError: No added token has this text.
        """
        if content is not None and content not in self.added:
            raise SpecialTokenError(
                f"{role}_token cannot be {shorten(content)}: it is not an added token"
                f"{did_you_mean(content, self.added)} add_special_tokens([text]) adds one"
            )
        named = {**self.model.named_tokens, role: content or ""}
        changed = CompiledModel(dataclasses.replace(self.model, named_tokens=named))
        changed.__dict__["_encoder"] = self.encoder
        return changed

    @cached_property
    def split_patterns(self) -> tuple[str, ...]:
        """The split patterns; empty where the model does not simply cut at the matches of patterns."""
        return tuple(self.model.core.split_patterns or ())

    @property
    def normalization(self) -> str | None:
        """The Unicode normalisation form; None for nothing, or where the model does more."""
        return self.model.core.normalization

    @cached_property
    def added(self) -> dict[str, AddedToken]:
        """The added tokens by their text, in the order of the ids."""
        return {token.content: token for token in self.model.core.added_tokens}

    @cached_property
    def special(self) -> dict[str, int]:
        """The ids of the special tokens by their text, in the order of the ids."""
        return {token.content: token.id for token in self.added.values() if token.special}

    @cached_property
    def role_ids(self) -> dict[Role, tuple[str, int]]:
        """Text and id of the token of each role that has one."""
        special = [token for token in self.added.values() if token.special]
        named = cast("Mapping[Role, str]", self.model.named_tokens)
        contents = {**find_roles(special), **named}
        found: dict[Role, tuple[str, int]] = {}
        for role, content in contents.items():
            # An empty text in `named_tokens` says that the role has no token, whatever the tokens' names.
            token_id = self.id_of_content(content) if content else None
            if token_id is not None:
                found[role] = content, token_id
        return found

    @property
    def pad_id(self) -> int | None:
        """The id of the pad token, if there is one."""
        pad = self.role_ids.get("pad")
        return pad and pad[1]

    @cached_property
    def matching_models(self) -> set[object]:
        """Language models on disk whose own tokenizer was compared with this one and is the same."""
        return set()

    @cached_property
    def with_more_tokens(self) -> dict[tuple[AddedToken, ...], CompiledModel]:
        """The models that chat templates need, by the tokens that they have in addition."""
        return {}

    @property
    def n_vocab(self) -> int:
        """The largest id + 1."""
        return self.model.core.n_vocab

    def has_token(self, token: object) -> bool:
        """Return whether a token string, bytes or an id is in the vocabulary."""
        if isinstance(token, str):
            return token in self.token_ids
        if isinstance(token, bytes):
            return token in self.ids_of_bytes
        try:
            return not isinstance(token, bool) and operator.index(cast("SupportsIndex", token)) in self.vocab
        except TypeError:
            return False

    @cached_property
    def ids_of_bytes(self) -> dict[bytes, int]:
        """The id of each token's bytes, the lowest if several have the same."""
        return {data: token_id for token_id, data in reversed(self.vocab.items())}

    def id_of_content(self, content: str) -> int | None:
        """Return the id of the added token with this text, or else of the token."""
        if content in self.added:
            return self.added[content].id
        return self.token_ids.get(self.token_string(content.encode()))

    def id_of_string(self, token: str) -> int | None:
        """Return the id of a token string. That of an added token needs no table of all tokens."""
        added = self.added.get(token)
        return self.token_ids.get(token) if added is None else added.id

    def token_string(self, token: bytes) -> str:
        """Return a token as files write it: in GPT-2's printable characters, or as its own text."""
        if self.model.core.alphabet == "characters":
            return token.decode("utf-8", "replace")
        return _core.to_printable(token)

    @cached_property
    def prefix_suffix_ids(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids that `add_special_tokens=True` adds at the beginning and at the end of a text."""
        return self._post_processor.prefix, self._post_processor.suffix

    @cached_property
    def _post_processor(self) -> PostProcessor:
        """What the model's post-processor adds, or else BOS and EOS."""
        if self.model.post_processor is not None:
            return self.model.post_processor
        bos, eos = self.role_ids.get("bos"), self.role_ids.get("eos")
        return PostProcessor((bos[1],) if bos else (), (eos[1],) if eos else ())

    @cached_property
    def offset_trimmer(self) -> OffsetTrimmer | None:
        """Trims offsets as the model's post-processor says; None if it does not."""
        if not self._post_processor.trims:
            return None
        from bpe_tokenizer.offsets import OffsetTrimmer

        stripping = [token.id for token in self.added.values() if token.lstrip or token.rstrip]
        return OffsetTrimmer(self.token_strings, stripping, self._post_processor.trims)

    def added_ids(self, add_special_tokens: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return `prefix_suffix_ids`, or nothing without `add_special_tokens`."""
        if add_special_tokens is False:
            return (), ()
        if not check_flag("add_special_tokens", add_special_tokens):
            return (), ()
        return self.prefix_suffix_ids

    def pair_ids(self, add_special_tokens: bool) -> PairIds:
        """Return the ids before, between and after the two texts of a pair.

        Raises:
            OptionError: The tokenizer's file orders pairs in a way that is not supported.
        """
        if not check_flag("add_special_tokens", add_special_tokens):
            return (), (), ()
        if not self._post_processor.pair_ids:
            raise OptionError("text_pair: this tokenizer's post-processor orders pairs in an unusual way")
        before, between, after = self._post_processor.pair_ids
        return before, between, after

    @cached_property
    def fingerprint(self) -> bytes:
        """A hash (BLAKE2b) of everything that ids and texts depend on."""
        import hashlib  # with OpenSSL, which few programs need

        core = self.model.core
        others = self.prefix_suffix_ids, self._post_processor.pair_ids, sorted(self.role_ids.items())
        table = hashlib.blake2b(core.table_bytes()).digest()
        return hashlib.blake2b(repr((table, core.settings, others)).encode(), digest_size=32).digest()

    @cached_property
    def vocab(self) -> dict[int, bytes]:
        """The bytes of every id, in the order of the ids."""
        return ReadOnlyDict(self.model.core.vocab)

    @cached_property
    def token_strings(self) -> dict[int, str]:
        """The token string of each id."""
        strings = {token_id: self.token_string(token) for token_id, token in self.model.core.vocab.items()}
        strings.update((token.id, token.content) for token in self.added.values())
        strings.update(self.model.core.normal_forms)
        return strings

    @cached_property
    def token_ids(self) -> dict[str, int]:
        """The id of each token string; the text of an added token is the added token.

        Texts that added tokens have after normalisation are not among them.
        """
        ids: dict[str, int] = {}
        changed = self.model.core.normal_forms
        for token_id, string in self.token_strings.items():
            if token_id not in changed:
                ids.setdefault(string, token_id)
        ids.update((token.content, token.id) for token in self.added.values())
        return ids


class _HasState(Protocol):
    """A tokenizer."""

    _state: CompiledModel | UntrainedModel

    def _compiled(self) -> CompiledModel: ...


class RoleToken(Generic[_TextOrId]):
    """The text or the id of a role's token, such as BOS; None if the role has no token.

    Set it to the text or the id of an added token, or to None for no token.
    """

    def __init__(self, role: Role, field: Literal["content", "id"]) -> None:
        self.role: Role = role
        self.field = field
        what = "text" if field == "content" else "id"
        # What `help` shows.
        self.__doc__ = f"The {what} of the {role.upper()} token; None for no such token. It can be set."

    @overload
    def __get__(self, instance: None, owner: type[_HasState]) -> RoleToken[_TextOrId]: ...
    @overload
    def __get__(self, instance: _HasState, owner: type[_HasState]) -> _TextOrId | None: ...
    def __get__(
        self, instance: _HasState | None, owner: type[_HasState]
    ) -> RoleToken[_TextOrId] | _TextOrId | None:
        """Return the text or the id."""
        if instance is None:
            return self
        state = instance._state
        found = state.role_ids.get(self.role) if isinstance(state, CompiledModel) else None
        return cast("_TextOrId", found[self.field == "id"]) if found else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.role!r}, {self.field!r})"

    def __set__(self, instance: _HasState, value: _TextOrId | None) -> None:
        """Choose the token by its text or its id."""
        compiled = instance._compiled()
        if self.field == "id" and value is not None:
            content = next((token.content for token in compiled.added.values() if token.id == value), None)
            if content is None:
                raise SpecialTokenError(
                    f"{self.role}_token_id cannot be {shorten(value)}: no added token has that id; "
                    "add_special_tokens({text: id}) adds one"
                )
        else:
            content = cast("str | None", value)
        instance._state = compiled.with_role(self.role, content)
