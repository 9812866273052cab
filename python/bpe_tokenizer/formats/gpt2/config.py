"""The files next to a `vocab.json`: tokenizer_config.json, special_tokens_map.json, added_tokens.json.

They are read as `transformers` 5 reads them for the classes of `CLASSES` (`_from_pretrained` in its
`tokenization_utils_base.py`, and `TokenizersBackend.__init__`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats.huggingface.config import (
    Config,
    added_tokens_decoder,
    check_roles,
    read_config,
)
from bpe_tokenizer.formats.huggingface.tokens_beside import with_tokens_beside
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import AddedToken, PostProcessor

__all__ = ["CLASSES", "ConfigFiles", "TokenizerClass", "read_config_files", "write_config"]


@dataclass(frozen=True)
class TokenizerClass:
    """The defaults of a class of `transformers` that loads a pair.

    Args:
        pattern: The name of the split pattern.
        normalization: The normal form.
        roles: The roles whose token is `<|endoftext|>` by default.
    """

    pattern: str
    normalization: str | None
    roles: tuple[str, ...]


# https://github.com/huggingface/transformers: models/gpt2, models/codegen, models/qwen2 (tokenization_*.py).
CLASSES: Mapping[str, TokenizerClass] = {
    "GPT2Tokenizer": TokenizerClass("gpt2", None, ("bos", "eos", "unk")),
    "CodeGenTokenizer": TokenizerClass("gpt2", None, ("bos", "eos", "unk")),
    "Qwen2Tokenizer": TokenizerClass("qwen2", "NFC", ("eos", "pad", "unk")),
}
_DEFAULT_TOKEN = "<|endoftext|>"
_ADD_FLAGS = ("add_bos_token", "add_eos_token")


@dataclass(frozen=True)
class ConfigFiles:
    """The settings of a pair.

    Args:
        splitting: The split pattern and the normal form.
        add_prefix_space: Whether a space is added before a text.
        added: The added tokens.
        named: The tokens with a role, or those that it has by default, which need not exist.
        post_processor: The ids added to a text; None if the roles decide.
        outside: The ids of added tokens that are in the vocabulary file only to have an id.
        others: The fields that are not interpreted.
    """

    splitting: TokenizerClass
    add_prefix_space: bool
    added: list[AddedToken]
    named: dict[str, str]
    post_processor: PostProcessor | None
    outside: Collection[int]
    others: dict[str, Any]


def read_config_files(vocab_path: Path, vocab: Mapping[str, int]) -> ConfigFiles | None:
    """Read the files next to a `vocab.json`.

    Args:
        vocab_path: The `vocab.json`.
        vocab: Its tokens and ids.

    Returns:
        The settings; None if there are no such files.

    Raises:
        FormatError: A file is broken, contradicts the vocabulary, or names an unsupported tokenizer class.
    """
    names = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
    if not any(vocab_path.with_name(name).exists() for name in names):
        return None
    # `read_config` takes the path of a tokenizer.json, which need not exist.
    config = read_config(vocab_path.with_name("tokenizer.json"), b"")
    splitting = _read_class(config.fields.get("tokenizer_class"))
    added = {token.content: token for token in with_tokens_beside(config, [], vocab, "vocab.json")}
    named = config.role_tokens()
    for role in splitting.roles:
        named.setdefault(role, _DEFAULT_TOKEN)
    for content in named.values():
        if content in vocab:
            added.setdefault(content, AddedToken(content, vocab[content]))
    ids = {content: token.id for content, token in added.items()}
    others = {name: value for name, value in config.uninterpreted().items() if name not in _ADD_FLAGS}
    return ConfigFiles(
        splitting,
        config.fields.get("add_prefix_space").flag(default=False),
        list(added.values()),
        _read_named(config, named),
        _read_post_processor(config, named, ids),
        _read_outside(config),
        others,
    )


def _read_class(field: Field) -> TokenizerClass:
    name = "GPT2Tokenizer" if field.is_null else field.text()
    splitting = CLASSES.get(name.removesuffix("Fast"))
    if splitting is None:
        raise field.refused(
            f"is not supported for a vocab.json and merges.txt; supported: {', '.join(CLASSES)}. "
            "Load the model's tokenizer.json instead"
        )
    return splitting


def _read_named(config: Config, named: Mapping[str, str]) -> dict[str, str]:
    """The named tokens; without those that `save` recorded as found by their text."""
    if config.own.is_null or config.own.get("roles").is_null:
        return dict(named)
    given = {role.text() for role in config.own.get("roles").items()}
    return {role: content for role, content in named.items() if role in given}


def _read_outside(config: Config) -> frozenset[int]:
    if config.own.is_null or config.own.get("outside").is_null:
        return frozenset()
    return frozenset(item.id() for item in config.own.get("outside").items())


def _read_post_processor(
    config: Config, named: Mapping[str, str], ids: Mapping[str, int]
) -> PostProcessor | None:
    if not config.own.is_null and config.own.get("post_processor").value == "roles":
        return None
    around: list[tuple[int, ...]] = []
    for name, role in zip(_ADD_FLAGS, ("bos", "eos"), strict=True):
        field = config.fields.get(name)
        wanted = field.flag(default=False)
        if wanted and named.get(role) not in ids:
            raise field.error(f"is true, but there is no {role}_token")
        around.append((ids[named[role]],) if wanted else ())
    return PostProcessor(*around)


def write_config(
    class_name: str, added: Sequence[AddedToken], roles: Mapping[str, str], around: PostProcessor
) -> dict[str, Any]:
    """Return the tokenizer_config.json of a pair.

    Args:
        class_name: One of `CLASSES`.
        added: The added tokens.
        roles: The token of each role; empty for none.
        around: The ids before and after a text.

    Raises:
        FormatError: A role's token is not an added token, or the added ids are not those of BOS and EOS.
    """
    ids = {token.content: token.id for token in added}
    check_roles(roles, added)
    flags = {}
    for name, role, wanted in zip(_ADD_FLAGS, ("bos", "eos"), (around.prefix, around.suffix), strict=True):
        if wanted and wanted != (ids.get(roles.get(role, "")),):
            raise FormatError(
                f"post_processor: tokenizer_config.json can only add {role}_token, not {wanted}"
            )
        flags[name] = bool(wanted)
    # A missing role would mean `<|endoftext|>`.
    names = {f"{role}_token": roles.get(role) or None for role in ("bos", "eos", "pad", "unk")}
    return {
        "tokenizer_class": class_name,
        **names,
        **flags,
        "clean_up_tokenization_spaces": False,
        "added_tokens_decoder": added_tokens_decoder(added),
    }
