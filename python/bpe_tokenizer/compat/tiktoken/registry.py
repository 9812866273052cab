"""Encodings by name, each created once: `tiktoken.registry`.

tiktoken's plugins add encodings: modules in the namespace package `tiktoken_ext` with a dict
`ENCODING_CONSTRUCTORS` of names and functions that return the arguments of `Encoding`.
"""

from __future__ import annotations

import copyreg
import functools
import importlib
import pkgutil
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from bpe_tokenizer.compat.tiktoken.core import Encoding
from bpe_tokenizer.errors import FormatError, OptionError
from bpe_tokenizer.formats.tiktoken import published_ranks
from bpe_tokenizer.formats.tiktoken.published import PUBLISHED

__all__ = ["ENCODINGS", "ENCODING_CONSTRUCTORS", "get_encoding", "list_encoding_names"]

_lock = threading.RLock()
# The encodings created so far.
ENCODINGS: dict[str, Encoding] = {}
# None before the first use.
ENCODING_CONSTRUCTORS: dict[str, Callable[[], dict[str, Any]]] | None = None

# tiktoken's own plugin, which this module replaces.
_OWN_PLUGIN = "tiktoken_ext.openai_public"


def get_encoding(encoding_name: str) -> Encoding:
    """Return an encoding by its name; always the same object.

    A published rank file comes from tiktoken's cache or is downloaded into it; see
    `bpe_tokenizer.formats.tiktoken.load_named`.

    Raises:
        OptionError: There is no such encoding; it is a `ValueError`.
        FormatError: The downloaded file does not have the published SHA-256; it is a `ValueError`.
        HubError: The download fails; it is an `OSError`.
    """
    if not isinstance(encoding_name, str):
        raise OptionError(f"get_encoding expects a str, not {type(encoding_name).__name__}")
    if encoding_name in ENCODINGS:
        return ENCODINGS[encoding_name]
    with _lock:
        if encoding_name not in ENCODINGS:
            constructors = _constructors()
            if encoding_name not in constructors:
                raise OptionError(
                    f"unknown encoding {encoding_name!r}; choose one of {', '.join(constructors)} "
                    f"(plugins found: {list(_available_plugin_modules())})"
                )
            ENCODINGS[encoding_name] = Encoding(**constructors[encoding_name]())
        return ENCODINGS[encoding_name]


def list_encoding_names() -> list[str]:
    """Return the names of all encodings.

    >>> list_encoding_names()[:3]
    ['gpt2', 'r50k_base', 'p50k_base']
    """
    with _lock:
        return list(_constructors())


def _constructors() -> dict[str, Callable[[], dict[str, Any]]]:
    global ENCODING_CONSTRUCTORS
    if ENCODING_CONSTRUCTORS is None:
        found: dict[str, Callable[[], dict[str, Any]]] = {
            name: functools.partial(_published, name) for name in PUBLISHED
        }
        for module_name in _available_plugin_modules():
            for name, constructor in _constructors_of(importlib.import_module(module_name)).items():
                if name in found:
                    raise FormatError(
                        f"the tiktoken plugin {module_name} defines {name!r}, which already exists"
                    )
                found[name] = constructor
        ENCODING_CONSTRUCTORS = found
    return ENCODING_CONSTRUCTORS


def _constructors_of(module: ModuleType) -> dict[str, Callable[[], dict[str, Any]]]:
    try:
        constructors: dict[str, Callable[[], dict[str, Any]]] = module.ENCODING_CONSTRUCTORS
    except AttributeError as error:
        raise FormatError(
            f"the tiktoken plugin {module.__name__} does not define ENCODING_CONSTRUCTORS"
        ) from error
    return constructors


@functools.lru_cache
def _available_plugin_modules() -> Sequence[str]:
    try:
        plugins = importlib.import_module("tiktoken_ext")
    except ImportError:
        return ()
    names = (name for _, name, _ in pkgutil.iter_modules(plugins.__path__, "tiktoken_ext."))
    return tuple(name for name in names if name != _OWN_PLUGIN)


def _published(name: str) -> dict[str, Any]:
    encoding = PUBLISHED[name]
    arguments: dict[str, Any] = {
        "name": name,
        "pat_str": encoding.split_pattern,
        "mergeable_ranks": published_ranks(name).to_dict(),
        "special_tokens": dict(encoding.special_tokens or {}),
    }
    if encoding.explicit_n_vocab is not None:
        arguments["explicit_n_vocab"] = encoding.explicit_n_vocab
    return arguments


def _reduce(encoding: Encoding) -> tuple[Any, ...]:
    """Pickle a registered encoding by its name, and any other by its arguments."""
    if encoding is ENCODINGS.get(encoding.name):
        return get_encoding, (encoding.name,)
    return copyreg.__newobj__, (Encoding,), encoding.__getstate__()  # type: ignore[attr-defined]


copyreg.pickle(Encoding, _reduce)
