"""Loads a model with a backend."""

from __future__ import annotations

import os
from pathlib import Path

from bpe_tokenizer.errors import GenerationError, MissingDependencyError
from bpe_tokenizer.inference import config_file, gguf_file
from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.engines.registry import ENGINES
from bpe_tokenizer.inference.language_model import LanguageModel
from bpe_tokenizer.inference.machine import Machine
from bpe_tokenizer.inference.options import LoadOptions

__all__ = ["load"]

# The ids of the processes that loaded engines: this one, or those that it was forked from.
_processes: set[int] = set()


def load(path: str, backend: InferenceBackend, options: LoadOptions) -> LanguageModel:
    """Load a model with a backend that can load it.

    Args:
        path: The resolved path, or the address of a server.
        backend: The backend.
        options: How to load it.

    Raises:
        FormatError: A file of the model, such as its config.json, is damaged.
        GenerationError: The engine cannot load it, or the server does not answer.
        MissingDependencyError: A library of the backend cannot be imported.
    """
    engine = ENGINES[backend]
    if not engine.is_server and _processes - {os.getpid()}:
        # The engine would wait for ever: a forked process has none of the threads of OpenMP.
        raise GenerationError(
            f"{path}: this process was forked from one that has loaded a model, and engines do not work in "
            'it: start it with multiprocessing.get_context("spawn"), or load models only in it'
        )
    try:
        model = engine.load(path, options)
    except ImportError as error:
        if isinstance(error, MissingDependencyError):
            raise
        command = engine.install_command(Machine.here().system)
        raise MissingDependencyError(
            f"{backend.label} cannot be imported ({error!s:.120}): {command}"
        ) from error
    if engine.is_server:
        return LanguageModel(model, path, backend)
    _processes.add(os.getpid())
    return LanguageModel(model, path, backend, _stop_ids(Path(path)))


def _stop_ids(path: Path) -> frozenset[int]:
    return config_file.read_stop_ids(path) if path.is_dir() else gguf_file.read_stop_ids(path)
