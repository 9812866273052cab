"""Loaded models, kept for the next time that they are wanted."""

from __future__ import annotations

import gc
import os
import threading
from collections import OrderedDict
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from bpe_tokenizer.errors import GenerationError, OptionError
from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.detection import check_installed, choose_backend, named_backend
from bpe_tokenizer.inference.language_model import LanguageModel
from bpe_tokenizer.inference.loading import load
from bpe_tokenizer.inference.options import LoadOptions
from bpe_tokenizer.inference.source import FileStates, file_states, is_address, kind_of

__all__ = ["ModelCache", "cached_models", "free_model", "free_models", "load_model"]

_Path = str | os.PathLike[str]


class _Key(NamedTuple):
    """What makes a loaded model another one.

    Args:
        path: Where it is, resolved.
        states: Of its files; empty for a server.
        backend: What has loaded it.
        options: How it was loaded.
    """

    path: str
    states: FileStates
    backend: InferenceBackend
    options: LoadOptions


class ModelCache:
    """The models that were used last; safe to share between threads.

    A model that is dropped to make room goes on for who still uses it, and its memory is freed after that.
    One that is freed ends at once.

    Args:
        max_models: The most models to keep.
    """

    def __init__(self, max_models: int = 2) -> None:
        if max_models < 1:
            raise OptionError(f"max_models={max_models} must be at least 1")
        self.max_models = max_models
        self._lock = threading.Lock()
        # The one that was used last comes last. A thread that waits for another's loading has its future.
        self._models: OrderedDict[_Key, Future[LanguageModel]] = OrderedDict()

    def load(
        self,
        path: _Path,
        backend: InferenceBackend | str | None = None,
        options: LoadOptions | None = None,
    ) -> LanguageModel:
        """Return a model, loaded if it is not there or has changed; `load_model` says more."""
        key = _key(path, backend, LoadOptions() if options is None else options)
        with self._lock:
            known = self._models.get(key)
            if known is not None and not (known.done() and _is_lost(known)):
                self._models.move_to_end(key)
            else:
                known = None
                loading: Future[LanguageModel] = Future()
                self._models[key] = loading
                self._models.move_to_end(key)
        if known is not None:
            return known.result()
        self._make_room(key)
        try:
            loading.set_result(load(key.path, key.backend, key.options))
        except BaseException as error:
            with self._lock:
                if self._models.get(key) is loading:
                    del self._models[key]
            # Ctrl-C in this thread is none in those that wait.
            failed = isinstance(error, Exception)
            loading.set_exception(
                error if failed else GenerationError(f"{key.path}: loading was interrupted")
            )
            raise
        return loading.result()

    def models(self) -> list[LanguageModel]:
        """Return the models that are loaded, the one that was used last at the end."""
        with self._lock:
            futures = list(self._models.values())
        return [future.result() for future in futures if future.done() and not _is_lost(future)]

    def free(self, path: _Path) -> int:
        """Free every model of this path; returns how many there were."""
        wanted = _resolved(path)
        return self._close([key for key in self._keys() if key.path == wanted])

    def free_all(self) -> int:
        """Free all models; returns how many there were."""
        return self._close(self._keys())

    def _keys(self) -> list[_Key]:
        with self._lock:
            return list(self._models)

    def _make_room(self, key: _Key) -> None:
        """Drop what has changed on disk, and what was not used for the longest time."""
        with self._lock:
            outdated = [
                other for other in self._models if other.path == key.path and other.states != key.states
            ]
            dropped = [self._models.pop(other) for other in outdated]
            while len(self._models) > self.max_models:
                dropped.append(self._models.popitem(last=False)[1])
        if dropped:
            # Engines hold cycles, and the next model may need the memory at once.
            dropped.clear()
            gc.collect()

    def _close(self, keys: list[_Key]) -> int:
        with self._lock:
            futures = [future for key in keys if (future := self._models.pop(key, None)) is not None]
        for future in futures:
            # Waits for a model that is being loaded by another thread.
            if future.exception() is None:
                future.result().close()
        gc.collect()
        return len(futures)


def _is_lost(future: Future[LanguageModel]) -> bool:
    """Whether a model could not be loaded, or was closed by who used it."""
    return future.exception() is not None or future.result().is_closed


def _key(path: _Path, backend: InferenceBackend | str | None, options: LoadOptions) -> _Key:
    kind = kind_of(path)
    if backend is None:
        chosen = choose_backend(kind)
    else:
        chosen = named_backend(backend)
        if chosen not in kind.backends:
            able = " or ".join(other.name for other in kind.backends)
            raise OptionError(
                f"{os.fspath(path)}: is {kind.value}, which {chosen.name} cannot load; {able} can"
            )
        check_installed(chosen)
    return _Key(_resolved(path), file_states(path), chosen, options)


def _resolved(path: _Path) -> str:
    if is_address(path):
        return os.fspath(path).rstrip("/")
    return str(Path(path).resolve())


_cache = ModelCache()


def load_model(
    path: _Path,
    backend: InferenceBackend | str | None = None,
    *,
    n_gpu_layers: int = -1,
    n_ctx: int = 8192,
    verbose: bool = False,
    api_key: str | None = None,
    timeout: float = 600.0,
) -> LanguageModel:
    """Load a language model, or return it if it is loaded already.

    The last two models are kept; `free_model` and `free_models` free their memory before. Two threads that
    load the same one load it once.

    Args:
        path: A GGUF file; a model directory with a config.json and safetensors; an OpenVINO model directory
            with an openvino_model.xml; or the address of a server, `http://host:port` (vLLM, SGLang,
            llama-server).
        backend: An `InferenceBackend` or its name; None for the best that is installed and can load it.
        n_gpu_layers: llama.cpp: how many layers the GPU computes; -1 for all.
        n_ctx: The most ids of a prompt and what is generated together, 0 for as many as the model was made
            for. It is never more than these.
        verbose: Let llama.cpp print its log to stderr.
        api_key: Servers: the key that they ask for.
        timeout: Servers: seconds to wait for a connection, and for each piece of an answer.

    Returns:
        The model.

    Raises:
        GenerationError: The engine cannot load it, or the server does not answer.
        MissingDependencyError: The backend is not installed; holds the command that installs it.
        OptionError: There is no such path, the backend cannot load it, or an option is out of range.

    >>> load_model("no-such-model.gguf")
    Traceback (most recent call last):
    bpe_tokenizer.errors.OptionError: no-such-model.gguf: there is no such file or directory; ...
    """
    options = LoadOptions(n_gpu_layers, n_ctx, verbose, api_key, timeout)
    return _cache.load(path, backend, options)


def free_model(path: _Path) -> int:
    """Free the memory of a model, whatever backend has loaded it; a generation that runs is cancelled.

    Returns:
        How many models were freed: none if it was not loaded, several if it was in several ways.

    >>> free_model("no-such-model.gguf")
    0
    """
    return _cache.free(path)


def free_models() -> int:
    """Free the memory of all models; generations that run are cancelled.

    Returns:
        How many models were freed.
    """
    return _cache.free_all()


def cached_models() -> list[LanguageModel]:
    """Return the models that are loaded, the one that was used last at the end."""
    return _cache.models()
