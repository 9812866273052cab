"""Reads and writes tokenizer_config.json, and reads the other files next to a tokenizer.json."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.atomic import unfinished
from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.formats.files import read_bytes
from bpe_tokenizer.formats.huggingface.added_tokens import FLAGS
from bpe_tokenizer.formats.huggingface.token_strings import added_token_fields
from bpe_tokenizer.formats.huggingface.token_table import Table
from bpe_tokenizer.formats.json_file import Field, parse_json, read_json
from bpe_tokenizer.model import AddedToken
from bpe_tokenizer.special_tokens import ROLES

__all__ = [
    "DEFAULT_CONFIG",
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

# The key of tokenizer_config.json for fields of this package.
OWN_KEY = "bpe_tokenizer"
# The key of `Model.config` for parts of tokenizer.json that are saved again without interpretation.
PASSTHROUGH_KEY = "tokenizer_json"

# What is saved for a model without a `Model.config`: transformers warns of longer texts.
DEFAULT_CONFIG: Mapping[str, Any] = MappingProxyType({"model_max_length": 131_072})

_DEFAULTS = tuple(DEFAULT_CONFIG.items())

_MEMBERS = itemgetter("content", *FLAGS)

_INTERPRETED = frozenset(
    (
        *(f"{role}_token" for role in ROLES),
        "added_tokens_decoder",
        "add_prefix_space",
        "auto_map",
        "clean_up_tokenization_spaces",
        "num_merges",
        "split_pattern_name",
        "tokenizer_name",
        "tokenizer_class",
        PASSTHROUGH_KEY,
        OWN_KEY,
    )
)


@dataclass(frozen=True)
class Config:
    """The files next to a tokenizer.json.

    Args:
        fields: tokenizer_config.json, with special_tokens_map.json merged into it.
        own: The fields of this package in it.
        matches_document: Whether this package saved it together with this tokenizer.json.
        chat_template: The content of chat_template.jinja; with files of `additional_chat_templates`, the list
            of names and templates that tokenizer_config.json would hold.
        decoder: The tokens of `added_tokens_decoder`, if the core could read them; the fields then lack them.
        data: The bytes of tokenizer_config.json, if `decoder` has a value.
    """

    fields: Field
    own: Field
    matches_document: bool
    chat_template: str | list[dict[str, str]] | None = None
    decoder: _core.AddedTokensDecoder | None = None
    data: bytes = b""

    def role_tokens(self) -> dict[str, str]:
        """Return the tokens with a role; an explicit null is an empty text."""
        named: dict[str, str] = {}
        for role in ROLES:
            name = self.fields.get(f"{role}_token")
            if name.path in self.fields.members():
                named[role] = "" if name.is_null else token_content(name)
        return named

    def uninterpreted(self) -> dict[str, Any]:
        """Return the fields that this package does not interpret."""
        others = {name: value for name, value in self.fields.members().items() if name not in _INTERPRETED}
        if self.chat_template is not None:
            others["chat_template"] = self.chat_template
        if not self.own.is_null and self.own.get("max_length").value == "default":
            others = {name: value for name, value in others.items() if (name, value) not in _DEFAULTS}
        return others


def digest(data: bytes) -> str:
    """Return the SHA-256 of a tokenizer.json."""
    return hashlib.sha256(data).hexdigest()


def config_path(path: Path) -> Path:
    """Return the path of the tokenizer_config.json of a tokenizer.json."""
    return path.with_name(f"{path.stem}_config.json")


def read_config(path: Path, data: bytes) -> Config:
    """Read the files next to a tokenizer.json.

    Args:
        path: The tokenizer.json.
        data: Its bytes; empty if there is none.

    Raises:
        FormatError: A file cannot be read, is not JSON, or has fields of the wrong type.
    """
    config_file = config_path(path)
    exists = config_file.exists()
    config = read_bytes(config_file) if exists else b"{}"
    # Without a tokenizer.json, nobody compares the decoder with it.
    rest, decoder = (data and _core.AddedTokensDecoder.parse(config)) or (config, None)
    fields = parse_json(config_file, rest)
    own = fields.get(OWN_KEY)
    # A crash between moving the two files into place may leave a new and an old one.
    document = None if own.is_null and exists else digest(data)
    if not exists or (not own.is_null and _digest_in(own) != document):
        interrupted = _interrupted_config(config_file, data)
        if interrupted is not None:
            fields, decoder = interrupted, None
        own = fields.get(OWN_KEY)
    matches_document = not own.is_null and _digest_in(own) == document
    chat_template = None
    if path.name == "tokenizer.json":
        if fields.get("added_tokens_decoder").is_null:
            _merge_special_tokens_map(fields, path.with_name("special_tokens_map.json"))
        chat_template = _read_chat_templates(path)
    return Config(fields, own, matches_document, chat_template, decoder, config)


def _digest_in(own: Field) -> str | None:
    value = own.get("tokenizer_json_sha256")
    return None if value.is_null else value.text()


def _interrupted_config(config_file: Path, data: bytes) -> Field | None:
    """Find the config of this tokenizer.json that a crash left under its temporary name."""
    for path in unfinished(config_file):
        try:
            fields = read_json(path)
            if _digest_in(fields.get(OWN_KEY)) == digest(data):
                return Field(config_file, "", fields.value)
        except FormatError:
            continue  # truncated, or of another save
    return None


def _merge_special_tokens_map(fields: Field, path: Path) -> None:
    """The older file for named tokens; `transformers` reads it if there is no added_tokens_decoder."""
    if path.exists():
        fields.members().update(parse_json(path, read_bytes(path)).members())


def _read_chat_templates(path: Path) -> str | list[dict[str, str]] | None:
    """Read the templates in files, which replace those of tokenizer_config.json, as in `transformers`."""
    default = _read_text(path.with_name("chat_template.jinja"))
    others = sorted(path.with_name("additional_chat_templates").glob("*.jinja"))
    if not others:
        return default
    templates = {} if default is None else {"default": default}
    templates |= {other.stem: _read_text(other) or "" for other in others}
    return [{"name": name, "template": template} for name, template in templates.items()]


def _read_text(path: Path) -> str | None:
    if not path.exists():
        return None
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: is not UTF-8 at offset {error.start}") from error


def with_named_tokens(config: Config, added: Sequence[AddedToken], vocab: Table) -> list[AddedToken]:
    """Check the tokens that a config names, and make ordinary ones special, as `transformers` does.

    Args:
        config: The config.
        added: The added tokens of tokenizer.json.
        vocab: The vocabulary of tokenizer.json.

    Returns:
        The added tokens.

    Raises:
        FormatError: The config names a token that does not exist, or contradicts tokenizer.json.
    """
    tokens = {token.content: token for token in added}
    # A tokenizer.json that was edited after it was saved takes precedence over the config.
    if config.own.is_null or config.matches_document:
        _check_added_tokens_decoder(config, tokens, vocab)
    for name in named_token_fields(config.fields):
        content = token_content(name)
        if not content or content in tokens:
            continue
        token_id = vocab.get(content)
        if token_id is None:
            raise name.refused(
                "is not a token of tokenizer.json; add it to its added_tokens, or set this to null"
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


def _check_added_tokens_decoder(config: Config, tokens: Mapping[str, AddedToken], table: Table) -> None:
    decoder = config.fields.get("added_tokens_decoder")
    if config.decoder is not None:
        if isinstance(table, _core.TokenTable) and config.decoder.equals(table):
            return
        decoder = parse_json(decoder.file, config.data).get("added_tokens_decoder")
    if decoder.is_null or _is_identical(decoder, tokens.values()):
        return
    for token_id in decoder.members():
        entry = decoder.get(token_id)
        token = tokens.get(entry.need("content").text())
        if token is None or str(token.id) != token_id:
            raise entry.refused(
                "is not an added token of tokenizer.json with this id; correct one of the files"
            )
        for flag in FLAGS:
            if entry.get(flag).flag(default=getattr(token, flag)) != getattr(token, flag):
                raise entry.get(flag).refused(f"contradicts tokenizer.json about {shorten(token.content)}")


def _is_identical(decoder: Field, tokens: Iterable[AddedToken]) -> bool:
    """Whether all entries are equal: the fast path, for hundreds of thousands of tokens."""
    try:
        found = {token_id: _MEMBERS(entry) for token_id, entry in decoder.members().items()}
    except (KeyError, TypeError):
        return False
    return found == {str(token.id): (token.content, *token[2:]) for token in tokens}


def added_tokens_decoder(added: Iterable[AddedToken]) -> dict[str, Any]:
    """Return the `added_tokens_decoder` of tokenizer_config.json."""
    return {str(token.id): added_token_fields(token) for token in added}
