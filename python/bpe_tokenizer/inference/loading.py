"""From a path and a backend to a loaded model."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from bpe_tokenizer.errors import GenerationError, MissingDependencyError
from bpe_tokenizer.inference import config_file, gguf_file
from bpe_tokenizer.inference.backend import InferenceBackend, install_command
from bpe_tokenizer.inference.language_model import LanguageModel
from bpe_tokenizer.inference.loaded import LoadedModel
from bpe_tokenizer.inference.machine import Machine
from bpe_tokenizer.inference.options import LoadOptions

__all__ = ["load"]

_Backend = InferenceBackend
# The processes that engines were loaded in: this one, or those that it was forked from.
_processes: set[int] = set()


def load(path: str, backend: InferenceBackend, options: LoadOptions) -> LanguageModel:
    """Load a model with a backend that can load it.

    Args:
        path: The resolved path, or the address of a server.
        backend: The backend.
        options: How to load it.

    Raises:
        FormatError: A file of the model, such as its config.json, is broken.
        GenerationError: The engine cannot load it, or the server does not answer.
        MissingDependencyError: A library that the backend needs cannot be imported.
    """
    is_engine = backend is not _Backend.OPENAI_HTTP
    if is_engine and _processes - {os.getpid()}:
        # It would wait for ever: the threads of OpenMP do not come along into a forked process.
        raise GenerationError(
            f"{path}: this process was forked from one that has loaded a model, and engines do not work in "
            'it: start it with multiprocessing.get_context("spawn"), or load models only in it'
        )
    try:
        loaded = _adapter(path, backend, options)
    except ImportError as error:
        if isinstance(error, MissingDependencyError):
            raise
        raise MissingDependencyError(
            f"{backend.label} cannot be imported ({error}): {install_command(backend, Machine.here().system)}"
        ) from error
    if is_engine:
        _processes.add(os.getpid())
    return LanguageModel(loaded, path, backend, _stop_ids(path, backend))


def _stop_ids(path: str, backend: InferenceBackend) -> frozenset[int]:
    if backend is _Backend.OPENAI_HTTP:
        return frozenset()
    model = Path(path)
    return config_file.read_stop_ids(model) if model.is_dir() else gguf_file.read_stop_ids(model)


def _adapter(path: str, backend: InferenceBackend, options: LoadOptions) -> LoadedModel:
    if backend is _Backend.OPENAI_HTTP:
        from bpe_tokenizer.inference.servers import Server

        return Server(path, options)
    if backend is _Backend.APPLE_MLX:
        from bpe_tokenizer.inference.adapters.mlx import Mlx

        return Mlx(Path(path), options)
    if backend is _Backend.INTEL_OPENVINO:
        from bpe_tokenizer.inference.adapters.openvino import OpenVino

        return OpenVino(Path(path), options)
    if backend is _Backend.HUGGINGFACE_TRANSFORMERS:
        from bpe_tokenizer.inference.adapters.transformers import Transformers

        return Transformers(Path(path), options)
    from bpe_tokenizer.inference.adapters.llama_cpp import LlamaCpp

    if backend is _Backend.CPU_LLAMA_CPP and not Machine.here().llama_cpp_builds.isdisjoint({"cuda", "hip"}):
        # These GPUs have backends of their own; a build for Metal, Vulkan or SYCL takes the layers as told.
        options = dataclasses.replace(options, n_gpu_layers=0)
    return LlamaCpp(Path(path), options)
