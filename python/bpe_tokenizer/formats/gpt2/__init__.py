"""GPT-2's pair of files: `vocab.json` and `merges.txt`, which OpenAI called `encoder.json` and `vocab.bpe`.

    {"!": 0, ..., "\u0120": 220, ..., "<|endoftext|>": 50256}       token strings and their ids

    #version: 0.2                                                    merges in the order of their ranks
    \u0120 t
    h e

Bytes are written as printable characters, as in https://github.com/openai/gpt-2/blob/master/src/encoder.py.
A first line `#version` is not a merge. Of duplicate merges the last counts. Every merge must make a token of
the vocabulary.

The two files do not define the split pattern. `tokenizer_config.json`, `special_tokens_map.json` and
`added_tokens.json` in the same directory do, and are read as `transformers` reads them for GPT2Tokenizer,
CodeGenTokenizer and Qwen2Tokenizer. Without them the pattern is GPT-2's, because the published pairs are
GPT-2's. A token that no merge makes is then a special token if it looks like one (`<...>` or `[...]`, like
`<|endoftext|>`); any other is never used.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.atomic import make_directory, write_atomically, write_errors
from bpe_tokenizer.errors import FormatError, ModelError, OptionError, shorten
from bpe_tokenizer.formats.capabilities import drop_normalization, require_mergeable
from bpe_tokenizer.formats.files import read_errors, read_together
from bpe_tokenizer.formats.gpt2.config import (
    CLASSES,
    ConfigFiles,
    TokenizerClass,
    read_config_files,
    write_config,
)
from bpe_tokenizer.formats.gpt2.pair import (
    DIGEST,
    digest,
    find_pair,
    read_merges,
    read_pair,
    read_vocab,
)
from bpe_tokenizer.formats.huggingface.config import OWN_KEY, PASSTHROUGH_KEY
from bpe_tokenizer.formats.json_file import parse_json, to_bytes
from bpe_tokenizer.formats.probe import GPT2_PAIRS
from bpe_tokenizer.model import AddedToken, Model, PostProcessor
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN, NAMED_PATTERNS, resolve_split_pattern
from bpe_tokenizer.special_tokens import (
    ROLES,
    SpecialTokens,
    checked_id,
    checked_tokens,
    find_roles,
    known_or_next_ids,
)

__all__ = ["load", "save"]

_NAME = "vocab.json and merges.txt"
_CONTROL_TOKEN = re.compile(r"<[^<>\s]+>|<\|[^\s]+\|>|\[[^\[\]\s]+\]")
_GPT2_SPELLINGS = (GPT2_SPLIT_PATTERN, *NAMED_PATTERNS["r50k"].patterns)


def load(
    path: str | Path,
    merges: str | Path | None = None,
    *,
    split_pattern: str | Sequence[str] | None = None,
    special_tokens: SpecialTokens | None = None,
) -> Model:
    """Load a pair of GPT-2 files.

    Args:
        path: The directory of the two files, or one of them if the other has its usual name next to it.
        merges: The file of the merges, if it has another name.
        split_pattern: A name or a pattern that replaces the one of the files.
        special_tokens: A dict of text to id, or a list: a text of the vocabulary keeps its id, the others get
            ids after the largest. They replace those of the files.

    Raises:
        FormatError: A file is missing or broken, or cannot be represented exactly.
        ModelError: A special token contradicts the vocabulary.
        PatternError: The pattern is invalid, or its name is unknown.
    """
    with read_errors(path):
        vocab_path, merges_path = find_pair(
            check_path("path", path), None if merges is None else check_path("merges", merges)
        )
    vocab, merges_data, config = read_together(
        lambda: _read_files(vocab_path, merges_path),
        (vocab_path, merges_path, vocab_path.with_name("tokenizer_config.json")),
    )
    pairs, complete = read_merges(merges_path, merges_data, vocab)
    merged = {left + right for left, right in pairs}
    unmerged = [token for token in vocab if token not in merged and len(token) > 1]
    config = config or _default_config(vocab, unmerged)
    added = config.added if special_tokens is None else _given(vocab, special_tokens)
    contents = {token.content for token in added}
    unused = [token for token in unmerged if token not in contents]
    if unused and not complete:
        raise FormatError(
            f"{merges_path}: the last line has no newline, and no merge makes {shorten(unused[0])}; "
            "the file may be cut off"
        )
    patterns = NAMED_PATTERNS[config.splitting.pattern].patterns
    if split_pattern is not None:
        patterns = resolve_split_pattern(split_pattern)
    try:
        core = _core.Model.from_printable(
            _inside(vocab_path, vocab, added, config.outside, merged, unused),
            pairs,
            split_patterns=patterns,
            normalization=config.splitting.normalization,
            add_prefix_space=config.add_prefix_space,
            added_tokens=added,
        )
    except ModelError as error:
        raise FormatError(f"{vocab_path}: {error}") from error
    named = {role: content for role, content in config.named.items() if not content or content in contents}
    return Model(core, named, config.post_processor, config.others)


def save(model: Model, path: str | Path) -> list[Path]:
    """Save a tokenizer as a pair of GPT-2 files, with a tokenizer_config.json.

    `transformers.AutoTokenizer.from_pretrained(directory)` opens it. The vocabulary file has all added
    tokens, so every reader gives them their ids. A crash leaves the old tokenizer or the new one.

    Args:
        model: The model to save.
        path: The directory, created if necessary, of `vocab.json` and `merges.txt`; or the path of that
            `vocab.json`, or of an `encoder.json`, with `vocab.bpe` next to it.

    Returns:
        The files.

    Raises:
        FormatError: The format cannot hold something of the model.
        OptionError: A tokenizer.json in the directory would hide the files.
        WriteError: A file cannot be written.
    """
    path, pairs = check_path("path", path), dict(GPT2_PAIRS)
    if path.name not in pairs:
        path /= "vocab.json"
    directory = path.parent
    with write_errors(directory):
        is_hidden = (directory / "tokenizer.json").exists()
    if is_hidden:
        raise OptionError(
            f"{directory} holds a tokenizer.json, which readers would load instead; save to another directory"
        )
    core = require_mergeable(model, _NAME, normalization=True, prefix_space=True)
    added = core.added_tokens
    vocab = to_bytes(_write_vocab(core, added), path.name)
    lines = ["#version: 0.2", *map(" ".join, core.printable_merges())]
    merges = "".join(f"{line}\n" for line in lines).encode("utf-8")
    files = {
        directory / "tokenizer_config.json": to_bytes(
            _config(model, added, digest(vocab, merges)), "tokenizer_config.json"
        ),
        path: vocab,
        directory / pairs[path.name]: merges,
    }
    make_directory(directory)
    write_atomically(files)
    return list(files)


# -- reading --------------------------------------------------------------------------------------------


def _read_files(vocab_path: Path, merges_path: Path) -> tuple[dict[str, int], bytes, ConfigFiles | None]:
    """Return the vocabulary, the bytes of the merges, and the settings of the config files."""
    vocab_data, merges_data = read_pair(vocab_path, merges_path)
    vocab = read_vocab(parse_json(vocab_path, vocab_data))
    has_config = vocab_path.name in dict(GPT2_PAIRS)
    return vocab, merges_data, read_config_files(vocab_path, vocab) if has_config else None


def _default_config(vocab: Mapping[str, int], unmerged: Iterable[str]) -> ConfigFiles:
    """The settings of a pair without config files."""
    added = [AddedToken(token, vocab[token]) for token in unmerged if _CONTROL_TOKEN.fullmatch(token)]
    return ConfigFiles(TokenizerClass("gpt2", None, ()), False, added, {}, None, (), {})


def _given(vocab: Mapping[str, int], special_tokens: SpecialTokens) -> list[AddedToken]:
    wanted = checked_tokens(special_tokens)
    if not isinstance(wanted, Mapping):
        wanted = known_or_next_ids(wanted, vocab, max(vocab.values()))
    owners = {token_id: token for token, token_id in vocab.items()}
    added = []
    for content, value in wanted.items():
        token_id = checked_id(content, value)
        if vocab.get(content, token_id) != token_id:
            raise ModelError(
                f"special token {shorten(content)} has the id {vocab[content]} in the vocabulary, not "
                f"{token_id}"
            )
        if owners.setdefault(token_id, content) != content:
            raise ModelError(
                f"duplicate id {token_id}: special token {shorten(content)} and token "
                f"{shorten(owners[token_id])}"
            )
        added.append(AddedToken(content, token_id))
    return added


def _inside(
    vocab_path: Path,
    vocab: Mapping[str, int],
    added: Iterable[AddedToken],
    outside: Collection[int],
    merged: Collection[str],
    unused: Iterable[str],
) -> dict[str, int]:
    """Return the tokens of the file that belong to the core's vocabulary.

    Args:
        vocab_path: The file, for messages.
        vocab: Its tokens and ids.
        added: The added tokens.
        outside: The ids of added tokens that are in the file only to have an id.
        merged: The tokens that merges make.
        unused: The tokens that are neither made by merges nor added.
    """
    foreign = next((text for text in unused if _core.from_printable(text) is None), None)
    if foreign is not None:
        raise FormatError(
            f"{vocab_path}: {shorten(foreign)} has a character outside the 256 printable bytes, and is not "
            "an added token; if it is a special token, pass it in special_tokens"
        )
    inside = dict(vocab)
    for token in added:
        # Of two tokens with the same bytes, encoding would find only the lower id.
        written = _core.to_printable(token.content.encode())
        if token.content not in merged and (
            token.id in outside or (written != token.content and written in vocab)
        ):
            inside.pop(token.content, None)
    return inside


# -- writing --------------------------------------------------------------------------------------------


def _write_vocab(core: _core.Model, added: Iterable[AddedToken]) -> dict[str, int]:
    try:
        vocab = core.printable_vocab()
    except ModelError as error:
        raise FormatError(f"vocab: {error}") from error
    for token in added:
        if vocab.setdefault(token.content, token.id) != token.id:
            raise FormatError(
                f"added_tokens: {shorten(token.content)} has the id {token.id}, but a token with the same "
                f"spelling has {vocab[token.content]}; {_NAME} can give a text only one id"
            )
    merged = {part for left, right in core.printable_merges() for part in (left, right, left + right)}
    for part in sorted(merged.difference(vocab)):
        raise FormatError(
            f"added_tokens: the token {shorten(part)} of the merges is an added token with another spelling"
        )
    return dict(sorted(vocab.items(), key=lambda item: item[1]))


def _config(model: Model, added: list[AddedToken], pair_sha256: str) -> dict[str, Any]:
    found = find_roles(token for token in added if token.special)
    roles: dict[str, str] = {role: model.named_tokens.get(role, found.get(role, "")) for role in ROLES}
    around = model.post_processor or PostProcessor()
    own = {
        "version": 1,
        DIGEST: pair_sha256,
        "outside": sorted({token.id for token in added}.difference(model.core.added_ids_in_vocab)),
        "roles": sorted(role for role in ROLES if role in model.named_tokens),
        "post_processor": "roles" if model.post_processor is None else "file",
    }
    config = write_config(_class_name(model.core), added, roles, around)
    others = {name: value for name, value in model.config.items() if name != PASSTHROUGH_KEY}
    return {**others, **config, "add_prefix_space": model.core.add_prefix_space, OWN_KEY: own}


def _class_name(core: _core.Model) -> str:
    """The class of `transformers` with the model's split pattern and normalisation."""
    patterns = tuple(core.split_patterns or ())
    if patterns in [(spelling,) for spelling in _GPT2_SPELLINGS]:
        patterns = (GPT2_SPLIT_PATTERN,)
    for name, splitting in CLASSES.items():
        if (patterns, core.normalization) == (
            NAMED_PATTERNS[splitting.pattern].patterns,
            splitting.normalization,
        ):
            return name
    is_gpt2 = patterns == (GPT2_SPLIT_PATTERN,) and core.normalization is not None
    hint = f". {drop_normalization(core.normalization or '')}" if is_gpt2 else ""
    raise FormatError(
        f"split_patterns: {_NAME} can hold GPT-2's pattern without normalisation, or Qwen 2's with NFC; "
        f"not {shorten(list(patterns), 40)} with {core.normalization}{hint}"
    )
