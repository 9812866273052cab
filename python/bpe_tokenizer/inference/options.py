"""The options of generating and of loading a model. Their constructors check them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bpe_tokenizer.arguments import check_integer
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, shorten

__all__ = ["GenerationOptions", "LoadOptions"]

_MAX_SEED = 2**32 - 1
# Engines that compute in 32 bits cannot divide logits by less.
_MIN_TEMPERATURE = 1e-6


@dataclass(frozen=True)
class GenerationOptions:
    """How to generate. The options mean the same on every backend.

    Each id is drawn by temperature and then top-p (nucleus) sampling. Top-k, min-p and penalties are off,
    whatever the defaults of a backend or a model's `generation_config.json` are.

    Args:
        max_new_tokens: The maximum number of ids to generate, at least 1. The context can end earlier.
        temperature: The divisor of the logits. 0, or less than a millionth, always takes the likeliest id.
        top_p: The sum of the probabilities of the ids to draw from, the likeliest first: more than 0, at most
            1, which keeps all.
        seed: From 0 to 2**32 - 1. The same seed gives the same ids on the same backend and machine. None is
            a random seed.
        stop_ids: Ids that end the generation. The last one is reported, but is not part of the result.

    Raises:
        ArgumentTypeError: A value has the wrong type.
        OptionError: A value is out of range.

    >>> GenerationOptions(temperature=0, stop_ids=frozenset({2})).is_greedy
    True
    >>> GenerationOptions(top_p=1.5)
    Traceback (most recent call last):
    bpe_tokenizer.errors.OptionError: top_p=1.5 must be more than 0 and at most 1
    """

    max_new_tokens: int = 512
    temperature: float = 0.7
    top_p: float = 0.9
    seed: int | None = None
    stop_ids: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        """Check the values."""
        _make_plain(self, check_integer, "max_new_tokens", *(() if self.seed is None else ("seed",)))
        _make_plain(self, _number, "temperature", "top_p")
        check_integer("max_new_tokens", self.max_new_tokens, 1)
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise OptionError(f"temperature={self.temperature} must be 0 or more, and finite")
        if not 0 < self.top_p <= 1:
            raise OptionError(f"top_p={self.top_p} must be more than 0 and at most 1")
        if self.seed is not None and not 0 <= self.seed <= _MAX_SEED:
            raise OptionError(f"seed={self.seed} must be from 0 to {_MAX_SEED}, or None")
        if isinstance(self.stop_ids, str) or not isinstance(self.stop_ids, Iterable):
            raise ArgumentTypeError(f"stop_ids={shorten(self.stop_ids)} must be a set of ids")
        object.__setattr__(
            self, "stop_ids", frozenset(check_integer("stop_ids", item) for item in self.stop_ids)
        )

    @property
    def is_greedy(self) -> bool:
        """Whether generation always takes the likeliest id."""
        return self.temperature < _MIN_TEMPERATURE


@dataclass(frozen=True)
class LoadOptions:
    """How to load a model. Each backend uses the options that concern it.

    Args:
        n_gpu_layers: llama.cpp: the number of layers on the GPU; -1 for all.
        n_ctx: The maximum number of ids in a prompt and its continuation together; 0 for the model's own
            context length, which is the upper limit. A server determines its context itself.
        verbose: Let llama.cpp print its log to stderr.
        api_key: Servers: the API key.
        timeout: Servers: seconds to wait for a connection, and between two pieces of an answer.
        device: OpenVINO (`"CPU"`, `"GPU"`, `"NPU"`) and Transformers (a device of PyTorch): where the model
            computes; None for the best device.

    Raises:
        ArgumentTypeError: A value has the wrong type.
        OptionError: A value is out of range.
    """

    n_gpu_layers: int = -1
    n_ctx: int = 8192
    verbose: bool = field(default=False, compare=False)
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 600.0
    device: str | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        _make_plain(self, check_integer, "n_gpu_layers", "n_ctx")
        _make_plain(self, _number, "timeout")
        if self.n_gpu_layers < -1:
            raise OptionError(f"n_gpu_layers={self.n_gpu_layers} must be -1 (all layers), 0 or more")
        if self.n_ctx < 0:
            raise OptionError(f"n_ctx={self.n_ctx} must be a number of ids, or 0 for the model's own context")
        if not (math.isfinite(self.timeout) and self.timeout > 0):
            raise OptionError(f"timeout={self.timeout} must be a number of seconds, more than 0")
        if self.api_key is not None and not isinstance(self.api_key, str):
            raise ArgumentTypeError(f"api_key must be a str, not {type(self.api_key).__name__}")
        if self.device is not None and not isinstance(self.device, str):
            raise ArgumentTypeError(f"device must be a str, not {type(self.device).__name__}")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise OptionError("api_key must be printable ASCII, because it is sent in an HTTP header")


def _make_plain(options: object, plain: Callable[[str, object], float], *names: str) -> None:
    """Convert numbers of numpy and other libraries to Python's, which all engines and JSON accept."""
    for name in names:
        object.__setattr__(options, name, plain(name, getattr(options, name)))


def _number(name: str, value: object) -> float:
    if not isinstance(value, bool | str | bytes) and hasattr(value, "__float__"):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return float(value.__float__())
    raise ArgumentTypeError(f"{name} must be a number, not {shorten(value)}")
