"""Reads a model directory's configuration: the sizes, and the ids that end a reply."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bpe_tokenizer.errors import FormatError

__all__ = ["context_length", "min_limit", "read_config", "read_stop_ids", "vocab_size"]

# The names of the context length in the configurations of transformers.
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx")


def read_config(directory: Path, name: str = "config.json") -> dict[str, Any]:
    """Read a configuration file; an absent file is an empty configuration.

    Raises:
        FormatError: The file cannot be read, or does not hold a JSON object.
    """
    path = directory / name
    try:
        config = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"{path}: cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise FormatError(f"{path}: must hold a JSON object")
    return config


def read_stop_ids(directory: Path) -> frozenset[int]:
    """Read the ids that end a reply: `eos_token_id`, one id or several.

    They are in generation_config.json, or else in config.json:
    https://huggingface.co/docs/transformers/main_classes/text_generation

    Raises:
        FormatError: A file cannot be read, or does not hold a JSON object.
    """
    configs = (read_config(directory, "generation_config.json"), read_config(directory))
    values = (part.get("eos_token_id") for config in configs for part in _parts(config))
    found: Any = next((value for value in values if value is not None), [])
    return frozenset(item for item in (found if isinstance(found, list) else [found]) if type(item) is int)


def context_length(config: Mapping[str, Any]) -> int | None:
    """Return the context length of a model in ids; None if its configuration does not state it.

    >>> context_length({"text_config": {"max_position_embeddings": 4096}})
    4096
    """
    return _first(config, _POSITIONS)


def vocab_size(config: Mapping[str, Any]) -> int | None:
    """Return the number of rows of the embedding; None if the configuration does not state it."""
    return _first(config, ("vocab_size",))


def min_limit(*limits: int | None) -> int | None:
    """Return the smallest limit; 0 and None mean no limit.

    >>> min_limit(8192, None, 256), min_limit(0, None)
    (256, None)
    """
    return min((limit for limit in limits if limit), default=None)


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    values = (part.get(name) for part in _parts(config) for name in names)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def _parts(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the text part of a multimodal model's configuration first."""
    for name in ("text_config", "llm_config"):
        if isinstance(config.get(name), dict):
            yield config[name]
    yield config
