"""The cache of loaded models: least recently used out first (LRU)."""

from __future__ import annotations

import gc
import os
import threading
from collections import OrderedDict
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from bpe_tokenizer.arguments import check_integer
from bpe_tokenizer.errors import GenerationError, OptionError
from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.detection import check_installed, choose_backend, named_backend
from bpe_tokenizer.inference.engines.registry import ENGINES, backends_for
from bpe_tokenizer.inference.language_model import LanguageModel
from bpe_tokenizer.inference.loading import load
from bpe_tokenizer.inference.model_files import FileStates, ModelKind, file_states, is_address, kind_of
from bpe_tokenizer.inference.options import LoadOptions

__all__ = ["ModelCache", "cached_models", "free_model", "free_models", "load_model"]

_Path = str | os.PathLike[str]


class _Key(NamedTuple):
    """The key of a loaded model.

    Args:
        path: Its resolved path.
        states: The states of its files; empty for a server.
        backend: The backend that loaded it.
        options: How it was loaded.
    """

    path: str
    states: FileStates
    backend: InferenceBackend
    options: LoadOptions


class _Loading(Future[LanguageModel]):
    """A model that a thread loads, or has loaded."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()

    def wait(self) -> _Loading:
        """Refuse a wait of the loading thread for itself, as in a signal handler."""
        if not self.done() and self._thread == threading.get_ident():
            raise GenerationError("this thread is loading the model: use and free it after that")
        return self


class ModelCache:
    """The most recently used models. Threads can share it.

    An evicted model stays usable for its current users, and its memory is freed with the last reference.
    `free` ends a model immediately, and the end of a `with` block ends all.

    Args:
        max_models: The maximum number of models to keep.

    >>> with ModelCache(max_models=1) as cache:
    ...     cache
    ModelCache(models=0, max_models=1)
    """

    def __init__(self, max_models: int = 2) -> None:
        self.max_models = check_integer("max_models", max_models, 1)
        # Re-entrant, because a signal handler can use the cache inside these methods.
        self._lock = threading.RLock()
        # The most recently used is last. Threads wait at the future of a model that another thread loads.
        self._models: OrderedDict[_Key, _Loading] = OrderedDict()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(models={len(self.models())}, max_models={self.max_models})"

    def __enter__(self) -> ModelCache:
        """Return itself; the end of the block frees all models."""
        return self

    def __exit__(self, *_: object) -> None:
        self.free_all()

    def load(
        self,
        path: _Path,
        backend: InferenceBackend | str | None = None,
        options: LoadOptions | None = None,
    ) -> LanguageModel:
        """Return a model. Loads it if it is absent or its files changed; see `load_model`."""
        key = _key(path, backend, LoadOptions() if options is None else options)
        with self._lock:
            known = self._models.get(key)
            if known is not None and not (known.done() and _is_lost(known)):
                self._models.move_to_end(key)
            else:
                known = None
                loading = _Loading()
                self._models[key] = loading
                self._models.move_to_end(key)
        if known is not None:
            return known.wait().result()
        self._make_room(key)
        try:
            loading.set_result(load(key.path, key.backend, key.options))
        except BaseException as error:
            with self._lock:
                if self._models.get(key) is loading:
                    del self._models[key]
            # Ctrl-C interrupts this thread only; the waiting threads get a GenerationError.
            failed = isinstance(error, Exception)
            loading.set_exception(
                error if failed else GenerationError(f"{key.path}: loading was interrupted")
            )
            raise
        return loading.result()

    def models(self) -> list[LanguageModel]:
        """Return the loaded models, the most recently used at the end."""
        with self._lock:
            futures = list(self._models.values())
        return [future.result() for future in futures if future.done() and not _is_lost(future)]

    def free(self, path: _Path) -> int:
        """Free every model of this path. Returns their number."""
        wanted = _resolved(path)
        return self._close([key for key in self._keys() if key.path == wanted])

    def free_all(self) -> int:
        """Free all models. Returns their number."""
        return self._close(self._keys())

    def _keys(self) -> list[_Key]:
        with self._lock:
            return list(self._models)

    def _make_room(self, key: _Key) -> None:
        """Evict the models whose files changed, and the least recently used."""
        with self._lock:
            outdated = [
                other for other in self._models if other.path == key.path and other.states != key.states
            ]
            dropped = [self._models.pop(other) for other in outdated]
            while len(self._models) > self.max_models:
                dropped.append(self._models.popitem(last=False)[1])
        if dropped:
            # Engines hold reference cycles, and the next model may need the memory now.
            dropped.clear()
            gc.collect()

    def _close(self, keys: list[_Key]) -> int:
        with self._lock:
            futures = [future for key in keys if (future := self._models.pop(key, None)) is not None]
        for future in futures:
            # This waits for a model that another thread is loading.
            if future.wait().exception() is None:
                future.result().close()
        gc.collect()
        return len(futures)


def _is_lost(future: _Loading) -> bool:
    """Whether a model could not be loaded, or was closed by its user."""
    return future.exception() is not None or future.result().is_closed


def _key(path: _Path, backend: InferenceBackend | str | None, options: LoadOptions) -> _Key:
    kind = kind_of(path)
    if backend is None:
        chosen = choose_backend(kind)
    else:
        chosen = named_backend(backend)
        conversion = ENGINES[chosen].conversion
        if kind is ModelKind.SAFETENSORS and conversion:
            raise OptionError(
                f"{os.fspath(path)}: is {kind.value}, which {chosen.name} cannot load: convert it with "
                f"{conversion.format(Path(path))} (pip install optimum-intel[openvino])"
            )
        if kind not in ENGINES[chosen].kinds:
            able = " or ".join(other.name for other in backends_for(kind))
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
    device: str | None = None,
) -> LanguageModel:
    """Load a language model, or return it if it is already loaded.

    The cache keeps the last two models; `free_model` and `free_models` free their memory earlier. Threads
    that request the same model load it once.

    Args:
        path: A GGUF file; a model directory with a config.json and safetensors; an OpenVINO model directory
            with an openvino_model.xml; or the address of a server, `http://host:port` (vLLM, SGLang,
            llama-server).
        backend: An `InferenceBackend` or its name; None for the best one that is installed.
        n_gpu_layers: llama.cpp: the number of layers on the GPU; -1 for all.
        n_ctx: The maximum number of ids in a prompt and its continuation together; 0 for the model's own
            context length, which is the upper limit.
        verbose: Let llama.cpp print its log to stderr.
        api_key: Servers: the API key.
        timeout: Servers: seconds to wait for a connection, and for each piece of an answer.
        device: OpenVINO and Transformers: the device that computes, such as `"GPU"` or `"cuda:1"`; None for
            the best one.

    Returns:
        The model.

    Raises:
        GenerationError: The engine cannot load the model, or the server does not answer.
        MissingDependencyError: The backend is not installed. The message has the install command.
        OptionError: The path does not exist, the backend cannot load it, or an option is out of range.

    >>> load_model("no-such-model.gguf")
    Traceback (most recent call last):
    bpe_tokenizer.errors.ModelFileNotFoundError: no-such-model.gguf: there is no such file or directory; ...
    """
    options = LoadOptions(n_gpu_layers, n_ctx, verbose, api_key, timeout, device)
    return _cache.load(path, backend, options)


def free_model(path: _Path) -> int:
    """Free the memory of a model, with any backend, and cancel its running generations.

    Returns:
        The number of models freed: 0 if it was not loaded, several if it was loaded with several options.

    >>> free_model("no-such-model.gguf")
    0
    """
    return _cache.free(path)


def free_models() -> int:
    """Free the memory of all models, and cancel their running generations.

    Returns:
        The number of models freed.
    """
    return _cache.free_all()


def cached_models() -> list[LanguageModel]:
    """Return the loaded models, the most recently used at the end."""
    return _cache.models()
