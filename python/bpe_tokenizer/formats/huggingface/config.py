"""What stands beside a tokenizer.json: tokenizer_config.json and the files that go with it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from bpe_tokenizer.atomic import unfinished
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats.huggingface.added_tokens import FLAGS
from bpe_tokenizer.formats.huggingface.token_strings import added_token_fields
from bpe_tokenizer.formats.huggingface.token_table import Table
from bpe_tokenizer.formats.json_file import Field, parse_json, read_bytes, read_json
from bpe_tokenizer.model import AddedToken
from bpe_tokenizer.special_tokens import ROLES

__all__ = [
    "OWN_KEY",
    "PASSTHROUGH_KEY",
    "Config",
    "added_tokens_decoder",
    "config_path",
    "digest",
    "named_token_fields",
    "read_config",
    "token_content",
    "with_named_tokens",
]

# Our key of tokenizer_config.json.
OWN_KEY = "bpe_tokenizer"
# The key of `Model.config` for the parts of tokenizer.json that are only given back.
PASSTHROUGH_KEY = "tokenizer_json"

_MEMBERS = itemgetter("content", *FLAGS)

_INTERPRETED = frozenset(
    (
        *(f"{role}_token" for role in ROLES),
        "added_tokens_decoder",
        "add_prefix_space",
        "auto_map",
        "clean_up_tokenization_spaces",
        "tokenizer_class",
        PASSTHROUGH_KEY,
        OWN_KEY,
    )
)


@dataclass(frozen=True)
class Config:
    """What the files beside a tokenizer.json say.

    Args:
        fields: The whole of tokenizer_config.json, special_tokens_map.json merged into it.
        own: Our key in it.
        matches_document: Whether it was written together with the tokenizer.json, which has not been
            changed since.
        chat_template: What chat_template.jinja holds.
    """

    fields: Field
    own: Field
    matches_document: bool
    chat_template: str | None = None

    def role_tokens(self) -> dict[str, str]:
        """Return the tokens that play a part, by role; an explicit null is an empty text: none does."""
        named: dict[str, str] = {}
        for role in ROLES:
            name = self.fields.get(f"{role}_token")
            if name.path in self.fields.members():
                named[role] = "" if name.is_null else token_content(name)
        return named

    def uninterpreted(self) -> dict[str, Any]:
        """Return what we do not interpret."""
        others = {name: value for name, value in self.fields.members().items() if name not in _INTERPRETED}
        if self.chat_template is not None:
            others["chat_template"] = self.chat_template
        return others


def digest(data: bytes) -> str:
    """Return what tells one tokenizer.json from another."""
    return hashlib.sha256(data).hexdigest()


def config_path(path: Path) -> Path:
    """Return the place of the tokenizer_config.json of a tokenizer.json."""
    return path.with_name(f"{path.stem}_config.json")


def read_config(path: Path, data: bytes) -> Config:
    """Read what stands beside a tokenizer.json.

    Args:
        path: The tokenizer.json.
        data: What it holds.

    Raises:
        FormatError: A file cannot be read, is no JSON, or holds fields of the wrong type.
    """
    place = config_path(path)
    fields = read_json(place) if place.exists() else Field(place, "", {})
    own = fields.get(OWN_KEY)
    # Of two files that are saved together a crash may have left one new and the other old.
    if not place.exists() or (not own.is_null and _digest_in(own) != digest(data)):
        fields = _interrupted_config(place, data) or fields
        own = fields.get(OWN_KEY)
    matches_document = not own.is_null and _digest_in(own) == digest(data)
    chat_template = None
    if path.name == "tokenizer.json":
        if fields.get("added_tokens_decoder").is_null:
            _merge_special_tokens_map(fields, path.with_name("special_tokens_map.json"))
        chat_template = _read_text(path.with_name("chat_template.jinja"))
    return Config(fields, own, matches_document, chat_template)


def _digest_in(own: Field) -> str | None:
    value = own.get("tokenizer_json_sha256")
    return None if value.is_null else value.text()


def _interrupted_config(place: Path, data: bytes) -> Field | None:
    """Find the config that a crash kept from getting to its place beside this tokenizer.json."""
    for path in unfinished(place):
        try:
            fields = read_json(path)
            if _digest_in(fields.get(OWN_KEY)) == digest(data):
                return Field(place, "", fields.value)
        except FormatError:
            continue  # cut off, or another's
    return None


def _merge_special_tokens_map(fields: Field, path: Path) -> None:
    """The older place of the named tokens; `transformers` reads it where there is no added_tokens_decoder."""
    if path.exists():
        fields.members().update(parse_json(path, read_bytes(path)).members())


def _read_text(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: is not UTF-8 at offset {error.start}") from error


def with_named_tokens(config: Config, added: Sequence[AddedToken], vocab: Table) -> list[AddedToken]:
    """Check the tokens that a config names, and make those of the vocabulary special, as `transformers` does.

    Args:
        config: The config.
        added: The added tokens of tokenizer.json.
        vocab: Its vocabulary.

    Returns:
        The added tokens.

    Raises:
        FormatError: The config names a token that is not there, or says other things about one.
    """
    tokens = {token.content: token for token in added}
    # A changed tokenizer.json counts more than what was written beside the one before it.
    if config.own.is_null or config.matches_document:
        _check_added_tokens_decoder(config.fields.get("added_tokens_decoder"), tokens)
    for name in named_token_fields(config.fields):
        content = token_content(name)
        if not content or content in tokens:
            continue
        token_id = vocab.get(content)
        if token_id is None:
            raise name.refused(
                "is no token of tokenizer.json; add it to its added_tokens, or set this to null"
            )
        tokens[content] = AddedToken(content, token_id)
    return list(tokens.values())


def named_token_fields(fields: Field) -> Iterator[Field]:
    """Yield the fields of a config that name a token."""
    for name, value in fields.members().items():
        if name.endswith("_token") and isinstance(value, str | dict):
            yield fields.get(name)
    for name in ("additional_special_tokens", "extra_special_tokens"):
        names = fields.get(name)
        if isinstance(names.value, dict):
            yield from map(names.get, names.value)
        elif not names.is_null:
            yield from names.items()


def token_content(name: Field) -> str:
    """Return the text of a token that a config names, as a string or as an object."""
    return name.need("content").text() if isinstance(name.value, dict) else name.text()


def _check_added_tokens_decoder(decoder: Field, tokens: Mapping[str, AddedToken]) -> None:
    if decoder.is_null or _is_identical(decoder, tokens.values()):
        return
    for token_id in decoder.members():
        entry = decoder.get(token_id)
        token = tokens.get(entry.need("content").text())
        if token is None or str(token.id) != token_id:
            raise entry.refused("is no added token of tokenizer.json with this id; one of the files is wrong")
        for flag in FLAGS:
            if entry.get(flag).flag(default=getattr(token, flag)) != getattr(token, flag):
                raise entry.get(flag).refused(f"contradicts tokenizer.json about {token.content!r}")


def _is_identical(decoder: Field, tokens: Iterable[AddedToken]) -> bool:
    """Whether the two are the same to the letter; there may be hundreds of thousands."""
    try:
        found = {token_id: _MEMBERS(entry) for token_id, entry in decoder.members().items()}
    except (KeyError, TypeError):
        return False
    return found == {str(token.id): (token.content, *token[2:]) for token in tokens}


def added_tokens_decoder(added: Iterable[AddedToken]) -> dict[str, Any]:
    """Return the added tokens as tokenizer_config.json holds them."""
    return {str(token.id): added_token_fields(token) for token in added}
