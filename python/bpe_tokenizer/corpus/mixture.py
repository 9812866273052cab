"""Mixtures: several corpora, of each some epochs or a number of ids."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple, SupportsFloat

from bpe_tokenizer.arguments import check_integer
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, shorten
from bpe_tokenizer.readers import Input

__all__ = ["Source", "fractions", "mixed_inputs"]

_KEYS = ("inputs", "epochs", "tokens", "weight")
_MAX_EPOCHS = 1000


class Source(NamedTuple):
    """A corpus of a mixture.

    Args:
        name: Its name.
        inputs: The number of inputs of the run that are of it: its files, once for each epoch.
        epochs: How often its documents are taken. 1.5 takes all of them once, and a sample of half of them a
            second time.
        tokens: The maximum of its ids; None for no maximum.
    """

    name: str
    inputs: int
    epochs: float
    tokens: int | None


def fractions(sources: Sequence[Source]) -> list[float]:
    """Return the part of the documents that is taken of each input.

    >>> fractions([Source("web", 2, 1, None), Source("code", 4, 1.25, None)])
    [1.0, 1.0, 1.0, 1.0, 0.25, 0.25]
    """
    found: list[float] = []
    for source in sources:
        last = math.ceil(source.epochs) - 1
        files = source.inputs // (last + 1)
        found.extend([*repeat(1.0, files * last), *repeat(float(source.epochs - last), files)])
    return found


def mixed_inputs(
    mixture: Mapping[str, Any], max_tokens: int | None, find: Callable[[Any], list[Input]]
) -> tuple[list[Input], tuple[Source, ...]]:
    """Return the inputs of a run, a source after the other, and the sources.

    Args:
        mixture: For each name the inputs, or a mapping with `inputs` and `epochs`, `tokens` or `weight`.
        max_tokens: The ids of the run, which weights divide.
        find: Returns the files of a corpus.

    Raises:
        ArgumentTypeError: A value is of the wrong type.
        CorpusError: A file cannot be found.
        OptionError: A value is unknown or out of range.
    """
    specs = {name: _spec(name, value) for name, value in mixture.items()}
    weights = {name: spec["weight"] for name, spec in specs.items() if "weight" in spec}
    if bool(weights) != (max_tokens is not None) or (weights and len(weights) != len(specs)):
        raise OptionError(
            "the weights of a mixture divide max_tokens: give both, with a weight of every source, or neither"
        )
    inputs: list[Input] = []
    sources: list[Source] = []
    for name, spec in specs.items():
        files = find(spec["inputs"])
        if not all(each.is_regular for each in files):
            raise OptionError(f"{name!r} of the mixture is standard input or a pipe; put it into a file")
        epochs, tokens = spec.get("epochs", 1), spec.get("tokens")
        if max_tokens is not None:
            tokens = int(max_tokens * weights[name] / sum(weights.values()))
        files *= math.ceil(epochs)
        inputs.extend(files)
        sources.append(Source(name, len(files), epochs, tokens))
    return inputs, tuple(sources)


def _spec(name: object, value: Any) -> dict[str, Any]:
    if not isinstance(name, str):
        raise ArgumentTypeError(
            f"a source of a mixture must have a str as its name, not {type(name).__name__}"
        )
    spec = dict(value) if isinstance(value, Mapping) else {"inputs": value}
    where = f"{shorten(name)} of the mixture"
    unknown = [key for key in spec if key not in _KEYS]
    if unknown or "inputs" not in spec or {"tokens", "weight"} <= spec.keys():
        raise OptionError(
            f"{where} has {', '.join(map(str, spec)) or 'nothing'}: it takes inputs, and also epochs, "
            "and tokens or a weight"
        )
    if isinstance(spec["inputs"], Mapping | int | float):
        raise OptionError(f"inputs of {where} must be paths, not {type(spec['inputs']).__name__}")
    for key, largest in (("epochs", _MAX_EPOCHS), ("weight", 10**9)):
        if key in spec:
            spec[key] = _positive(f"{key} of {where}", spec[key], largest)
    if "tokens" in spec:
        spec["tokens"] = check_integer(f"tokens of {where}", spec["tokens"], 1)
    return spec


def _positive(name: str, value: Any, largest: float) -> float:
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        raise ArgumentTypeError(f"{name} must be a number, not {type(value).__name__}")
    if not 0 < float(value) <= largest:
        raise OptionError(f"{name} is {value}; it must be larger than 0, and at most {largest:,}")
    return float(value)
