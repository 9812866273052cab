"""Checks that a tokenizer is the one of a language model, by the model's own files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from bpe_tokenizer.errors import FormatError, MismatchError, shorten
from bpe_tokenizer.formats import registry
from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.language_model import LanguageModel
from bpe_tokenizer.inference.model_cache import load_model
from bpe_tokenizer.inference.model_files import FileStates, ModelKind, file_states, kind_of

__all__ = ["check_match", "load_matching_model", "model_state", "tokenizer_path"]

_Path = str | os.PathLike[str]


class _Own(NamedTuple):
    """A model's own tokenizer.

    Args:
        tokens: The bytes of each id.
        added: The ids of the added tokens.
    """

    tokens: Mapping[int, bytes]
    added: frozenset[int]


def tokenizer_path(model_path: _Path) -> Path | None:
    """Return the path of a model's own tokenizer.

    Args:
        model_path: The path of the model, as for `load_model`.

    Returns:
        A GGUF file, a model directory or a file of it, for `BPETokenizer.load`; None if the model has no
        tokenizer in a known format, as in a server.

    Raises:
        OptionError: The model does not exist.

    >>> tokenizer_path("http://localhost:8000") is None
    True
    """
    if kind_of(model_path) is ModelKind.SERVER:
        return None
    try:
        return registry.detect(model_path)[1]
    except FormatError:
        return None


def check_match(model_path: _Path, tokens: Mapping[int, bytes], vocab_size: int | None = None) -> None:
    """Check that a tokenizer is the one of a model, before any id is generated.

    Its ids must have the same tokens as in the model's own tokenizer, which may have more special tokens. If
    the model's tokenizer is not readable, as in a server, each id must at least be below `vocab_size`. The
    model's own tokenizer is cached until its files change.

    Args:
        model_path: The path of the model, as for `load_model`.
        tokens: The bytes of each id of the tokenizer, with its special tokens.
        vocab_size: `LanguageModel.vocab_size`.

    Raises:
        MismatchError: They differ. The message has the first such id and both tokens.
        OptionError: The model does not exist.

    >>> check_match("http://localhost:8000", {0: b"a", 9: b"b"}, vocab_size=10)
    >>> check_match("http://localhost:8000", {0: b"a", 10: b"b"}, vocab_size=10)
    Traceback (most recent call last):
    bpe_tokenizer.errors.MismatchError: the tokenizer is not that of http://localhost:8000: id 10 (b'b') ...
    """
    path = tokenizer_path(model_path)
    own = None if path is None else _own(path, file_states(model_path))
    if own is not None:
        difference = _difference(tokens, own)
    else:
        beyond = [token_id for token_id in tokens if vocab_size is not None and token_id >= vocab_size]
        difference = (
            f"id {min(beyond)} ({shorten(tokens[min(beyond)], 60)}) is not below the model's {vocab_size}"
            if beyond
            else None
        )
    if difference is not None:
        raise MismatchError(f"the tokenizer is not that of {os.fspath(model_path)}: {difference}")


def load_matching_model(
    model_path: _Path,
    backend: InferenceBackend | str | None,
    tokens: Mapping[int, bytes],
    matched: set[object],
    **options: Any,
) -> LanguageModel:
    """Load a model for a tokenizer, and check that they match.

    Args:
        model_path: The path of the model, as for `load_model`.
        backend: The backend, as for `load_model`.
        tokens: The bytes of each id of the tokenizer.
        matched: The states, from `model_state`, of models that are known to match. This one is added.
        **options: Arguments of `load_model`.

    Raises:
        MismatchError: The tokenizer is not the model's.
    """
    kind_of(model_path)  # raises if the model does not exist
    state = model_state(model_path)
    if state in matched:
        return load_model(model_path, backend, **options)
    check_match(model_path, tokens)  # compares files only, which is faster than loading the model
    model = load_model(model_path, backend, **options)
    check_match(model_path, tokens, model.vocab_size)
    matched.add(state)
    return model


def model_state(model_path: _Path) -> tuple[str, FileStates]:
    """Return a key that changes when the files of a model change."""
    return os.fspath(model_path), file_states(model_path)


@lru_cache(maxsize=4)
def _own(path: Path, states: object) -> _Own | None:
    """Read a tokenizer; None if it cannot be represented. `states` is part of the cache key."""
    try:
        core = registry.load(path).core
    except FormatError:
        return None
    return _Own(core.vocab, frozenset(token.id for token in core.added_tokens))


def _difference(tokens: Mapping[int, bytes], own: _Own) -> str | None:
    """Describe the first difference of two tokenizers; None if they are equal."""
    if tokens == own.tokens:
        return None
    for token_id in sorted(tokens.keys() | own.tokens.keys()):
        ours, theirs = tokens.get(token_id), own.tokens.get(token_id)
        if ours != theirs and (ours is not None or token_id not in own.added):
            return f"id {token_id} is {_shown(ours)}, and {_shown(theirs)} in the model's own tokenizer"
    return None


def _shown(token: bytes | None) -> str:
    return "missing" if token is None else shorten(token, 60)
