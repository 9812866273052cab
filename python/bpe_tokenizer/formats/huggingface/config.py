"""Reads and writes tokenizer_config.json, and reads the other files next to a tokenizer.json."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.atomic import unfinished
from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.formats.files import decode_text, read_bytes
from bpe_tokenizer.formats.huggingface.token_strings import added_token_fields
from bpe_tokenizer.formats.json_file import Field, parse_json, read_json
from bpe_tokenizer.model import AddedToken
from bpe_tokenizer.special_tokens import ROLES

__all__ = [
    "DEFAULT_CONFIG",
    "OWN_KEY",
    "PASSTHROUGH_KEY",
    "Config",
    "added_tokens_decoder",
    "check_roles",
    "config_path",
    "digest",
    "read_config",
    "template_files",
    "token_content",
]

# The key of tokenizer_config.json for fields of this package.
OWN_KEY = "bpe_tokenizer"
# The key of `Model.config` for parts of tokenizer.json that are saved again without interpretation.
PASSTHROUGH_KEY = "tokenizer_json"

# What is saved for a model without a `Model.config`: transformers warns of longer texts.
DEFAULT_CONFIG: Mapping[str, Any] = MappingProxyType({"model_max_length": 131_072})

_DEFAULTS = tuple(DEFAULT_CONFIG.items())

# The further special tokens, by the name of the field today and before `transformers` 5.
_EXTRA = ("extra_special_tokens", "additional_special_tokens")

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
        decoder: The tokens of `added_tokens_decoder`, which the fields lack.
        added_tokens: added_tokens.json. It is read only without `added_tokens_decoder`.
    """

    fields: Field
    own: Field
    matches_document: bool
    chat_template: str | list[dict[str, str]] | None = None
    decoder: _core.AddedTokensDecoder | None = None
    added_tokens: Field | None = None

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
    return path.with_name("tokenizer_config.json")


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
    fields, decoder = _parse(config_file, read_bytes(config_file) if exists else b"{}")
    own = fields.get(OWN_KEY)
    # A crash between moving the two files into place may leave a new and an old one.
    document = None if own.is_null and exists else digest(data)
    if not exists or (not own.is_null and _digest_in(own) != document):
        interrupted = _interrupted_config(config_file, data)
        if interrupted is not None:
            fields, decoder = interrupted
        own = fields.get(OWN_KEY)
    matches_document = not own.is_null and _digest_in(own) == document
    chat_template = added_tokens = None
    if path.name == "tokenizer.json":
        if fields.get("added_tokens_decoder").is_null:
            _merge_special_tokens_map(fields, path.with_name("special_tokens_map.json"))
            older = path.with_name("added_tokens.json")
            added_tokens = read_json(older) if older.exists() else None
        chat_template = _read_chat_templates(path)
    return Config(fields, own, matches_document, chat_template, decoder, added_tokens)


def _parse(path: Path, data: bytes) -> tuple[Field, _core.AddedTokensDecoder | None]:
    rest, decoder = _core.AddedTokensDecoder.parse(data, str(path))
    return parse_json(path, rest), decoder


def _digest_in(own: Field) -> str | None:
    value = own.get("tokenizer_json_sha256")
    return None if value.is_null else value.text()


def _interrupted_config(
    config_file: Path, data: bytes
) -> tuple[Field, _core.AddedTokensDecoder | None] | None:
    """Find the config of this tokenizer.json that a crash left under its temporary name."""
    for path in unfinished(config_file):
        try:
            fields, decoder = _parse(path, read_bytes(path))
            if _digest_in(fields.get(OWN_KEY)) == digest(data):
                return Field(config_file, "", fields.value), decoder
        except FormatError:
            continue  # truncated, or of another save
    return None


def _merge_special_tokens_map(fields: Field, path: Path) -> None:
    """The older file for named tokens; `transformers` reads it if there is no added_tokens_decoder."""
    if not path.exists():
        return
    config = fields.members()
    has_extra = bool(config.keys() & set(_EXTRA))
    extra = list(next((config[name] for name in _EXTRA if isinstance(config.get(name), list)), []))
    for name, value in read_json(path).members().items():
        if name == "extra_special_tokens" and isinstance(value, list):
            config[name] = extra + [token for token in map(_special, value) if token not in extra]
        elif name in _EXTRA:
            if not (has_extra and name == "additional_special_tokens"):
                config[name] = list(map(_special, value)) if isinstance(value, list) else value
        else:
            config[name] = _special(value)


def _special(value: object) -> object:
    """A token of special_tokens_map.json, as tokenizer_config.json writes it."""
    return value | {"special": True, "__type": "AddedToken"} if isinstance(value, dict) else value


def _read_chat_templates(path: Path) -> str | list[dict[str, str]] | None:
    """Read the templates in files, which replace those of tokenizer_config.json, as in `transformers`."""
    first, *others = template_files(path)
    default = _read_text(first)
    if not others:
        return default
    templates = {} if default is None else {"default": default}
    templates |= {other.stem: _read_text(other) or "" for other in others}
    return [{"name": name, "template": template} for name, template in templates.items()]


def template_files(path: Path) -> list[Path]:
    """Return chat_template.jinja, which need not exist, and the templates in additional_chat_templates."""
    others = sorted(path.with_name("additional_chat_templates").glob("*.jinja"))
    return [path.with_name("chat_template.jinja"), *others]


def _read_text(path: Path) -> str | None:
    return decode_text(read_bytes(path), path) if path.exists() else None


def token_content(name: Field) -> str:
    """Return the text of a token that a config names, as a string or as an object."""
    return name.need("content").text() if isinstance(name.value, dict) else name.text()


def added_tokens_decoder(added: Iterable[AddedToken]) -> dict[str, Any]:
    """Return the `added_tokens_decoder` of tokenizer_config.json."""
    return {str(token.id): added_token_fields(token) for token in added}


def check_roles(roles: Mapping[str, str], added: Iterable[AddedToken]) -> None:
    """Refuse to write a role whose token is not an added one.

    Args:
        roles: The token of each role; empty for none.
        added: The added tokens.

    Raises:
        FormatError: There is such a role.
    """
    contents = {token.content for token in added}
    for role, content in roles.items():
        if content and content not in contents:
            raise FormatError(
                f"{role}_token: {shorten(content)} is not an added token, but transformers would make it "
                "one; add it with add_special_tokens()"
            )
