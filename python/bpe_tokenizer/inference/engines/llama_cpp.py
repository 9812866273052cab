"""llama.cpp, through llama-cpp-python: GGUF files on the processor, on CUDA, ROCm or Metal.

https://llama-cpp-python.readthedocs.io
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bpe_tokenizer.errors import GenerationError
from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.engine_model import Cancellation
from bpe_tokenizer.inference.engines.engine import Engine
from bpe_tokenizer.inference.gguf_file import read_sizes
from bpe_tokenizer.inference.machine import Machine
from bpe_tokenizer.inference.model_files import ModelKind
from bpe_tokenizer.inference.options import GenerationOptions, LoadOptions
from bpe_tokenizer.inference.sampling import Sampler

__all__ = ["CPU_ENGINE", "CUDA_ENGINE", "ROCM_ENGINE", "LlamaCppModel"]

# Ids in a batch. A larger batch is hardly faster, and the cache would keep less of a conversation.
_BATCH = 256


class LlamaCppModel:
    """A GGUF file that llama.cpp has loaded.

    The cache keeps the common prefix of two prompts, such as the earlier turns of a conversation. It keeps
    whole batches only, so that the same prompt is always evaluated in the same batches, with the same bits in
    its logits.

    Args:
        path: The file, or the first file of a model in several.
        options: `n_gpu_layers`, `n_ctx`, `verbose`.

    Raises:
        FormatError: The file is not GGUF.
        GenerationError: llama.cpp cannot load it.
    """

    def __init__(self, path: Path, options: LoadOptions) -> None:
        llama_cpp: Any = import_module("llama_cpp")

        sizes = read_sizes(path)
        limits = [length for length in (options.n_ctx, sizes.context_length) if length]
        try:
            self._llama = llama_cpp.Llama(
                str(path),
                n_gpu_layers=options.n_gpu_layers,
                n_ctx=min(limits, default=0),
                n_batch=_BATCH,
                verbose=options.verbose,
            )
        except MemoryError:
            raise
        except Exception as error:
            raise GenerationError(
                f"{path}: llama.cpp cannot load it (verbose=True shows why): {error!s:.150}"
            ) from error
        self._api = llama_cpp
        self.vocab_size = int(self._llama.n_vocab())
        self.context_length = min([int(self._llama.n_ctx()), *limits])
        # The ids of the whole batches in the model's key-value cache.
        self._cached: list[int] = []
        self._can_cache = _can_truncate_cache(llama_cpp, self._llama)

    def generate(
        self, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
    ) -> Iterator[int]:
        """Yield each id as soon as it is sampled."""
        sampler = Sampler(options)
        if not self._evaluate_prompt(list(ids), cancellation):
            return
        for _ in range(options.max_new_tokens - 1):
            new_id = sampler.draw(self._logits())
            yield new_id
            self._llama.eval([new_id])
        yield sampler.draw(self._logits())

    def close(self) -> None:
        """Free its memory."""
        self._llama.close()

    def _evaluate_prompt(self, ids: list[int], cancellation: Cancellation) -> bool:
        """Evaluate a prompt. Returns False if it was cancelled meanwhile."""
        done = self._cached_prefix(ids)
        self._cached = []  # until all ids are evaluated, in case of an interruption
        if done:
            # The next evaluation drops the rest of the cache.
            self._llama.n_tokens = done
        else:
            self._llama.reset()
        while done < len(ids):
            if cancellation.is_cancelled:
                return False
            self._llama.eval(ids[done : done + _BATCH])
            done += _BATCH
        if self._can_cache:
            self._cached = ids[: len(ids) // _BATCH * _BATCH]
        return True

    def _cached_prefix(self, ids: list[int]) -> int:
        """Return how many ids, in whole batches, the cache holds; never the last id."""
        done = 0
        while done + _BATCH < len(ids) and self._cached[done : done + _BATCH] == ids[done : done + _BATCH]:
            done += _BATCH
        return done

    def _logits(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        pointer = self._api.llama_get_logits_ith(self._llama.ctx, -1)
        logits: np.ndarray[Any, np.dtype[np.float32]] = np.ctypeslib.as_array(pointer, (self.vocab_size,))
        return logits


def _can_truncate_cache(api: Any, llama: Any) -> bool:
    """Whether the end of the cache can be dropped: not for recurrent states and sliding windows."""
    model = llama.model
    try:
        return not (
            api.llama_model_is_recurrent(model)
            or api.llama_model_is_hybrid(model)
            or api.llama_model_n_swa(model) > 0
        )
    except AttributeError:  # a version without these functions
        return False


def _load(path: str, options: LoadOptions) -> LlamaCppModel:
    return LlamaCppModel(Path(path), options)


def _load_on_cpu(path: str, options: LoadOptions) -> LlamaCppModel:
    if not Machine.here().llama_cpp_builds.isdisjoint({"cuda", "hip"}):
        # These GPUs have their own backends. A build for Metal, Vulkan or SYCL uses the option.
        options = dataclasses.replace(options, n_gpu_layers=0)
    return _load(path, options)


def _installer(build: str | None) -> Callable[[str], str]:
    """Return a function from the operating system to the install command, for a build of llama.cpp."""

    def command(system: str) -> str:
        option = "METAL" if build is None and system == "Darwin" else build
        if option is None:
            return "pip install llama-cpp-python"
        setting = f'CMAKE_ARGS="-DGGML_{option}=on"'
        # PowerShell does not accept a variable in front of a command.
        return f"{f'$env:{setting};' if system == 'Windows' else setting} pip install llama-cpp-python"

    return command


def _gpu_engine(backend: InferenceBackend, build: str, missing_hardware: Callable[[Machine], str]) -> Engine:
    """Return the engine of a llama.cpp that was built for a kind of GPU."""

    def missing_build(machine: Machine) -> str:
        return "" if build.lower() in machine.llama_cpp_builds else f"llama_cpp was installed without {build}"

    return Engine(backend, (ModelKind.GGUF,), _load, _installer(build), missing_hardware, missing_build)


CUDA_ENGINE = _gpu_engine(
    InferenceBackend.NVIDIA_CUDA, "CUDA", lambda machine: "" if machine.has_nvidia_gpu else "no NVIDIA GPU"
)
ROCM_ENGINE = _gpu_engine(
    InferenceBackend.AMD_ROCM, "HIP", lambda machine: "" if machine.has_amd_gpu else "no AMD GPU with ROCm"
)
CPU_ENGINE = Engine(InferenceBackend.CPU_LLAMA_CPP, (ModelKind.GGUF,), _load_on_cpu, _installer(None))
