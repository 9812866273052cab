"""What a model directory says about its model: the sizes, and the ids that end a reply."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bpe_tokenizer.errors import FormatError

__all__ = ["positions", "read_config", "read_stop_ids", "smaller", "vocab_size"]

# What the configurations of transformers call the number of positions.
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx")


def read_config(directory: Path, name: str = "config.json") -> dict[str, Any]:
    """Read a file with a configuration; empty if there is none.

    Raises:
        FormatError: It cannot be read, or is no JSON object.
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

    They stand in generation_config.json, or in the config.json of models whose other file leaves them out:
    https://huggingface.co/docs/transformers/main_classes/text_generation

    Raises:
        FormatError: A file cannot be read, or is no JSON object.
    """
    configs = (read_config(directory, "generation_config.json"), read_config(directory))
    values = (part.get("eos_token_id") for config in configs for part in _parts(config))
    found: Any = next((value for value in values if value is not None), [])
    return frozenset(item for item in (found if isinstance(found, list) else [found]) if type(item) is int)


def positions(config: Mapping[str, Any]) -> int | None:
    """Return how many positions a model was made for; None if its configuration does not say.

    >>> positions({"text_config": {"max_position_embeddings": 4096}})
    4096
    """
    return _first(config, _POSITIONS)


def vocab_size(config: Mapping[str, Any]) -> int | None:
    """Return how many rows the embedding has; None if the configuration does not say."""
    return _first(config, ("vocab_size",))


def smaller(*limits: int | None) -> int | None:
    """Return the smallest of the limits that there are; 0 and None are none.

    >>> smaller(8192, None, 256), smaller(0, None)
    (256, None)
    """
    return min((limit for limit in limits if limit), default=None)


def _first(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    values = (part.get(name) for part in _parts(config) for name in names)
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def _parts(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The part for text of a model that sees or hears comes first."""
    for name in ("text_config", "llm_config"):
        if isinstance(config.get(name), dict):
            yield config[name]
    yield config
