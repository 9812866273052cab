"""The only list of inference engines. Detection, loading and error messages derive from it."""

from __future__ import annotations

from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.engines import llama_cpp, mlx, openvino, transformers
from bpe_tokenizer.inference.engines.engine import Engine
from bpe_tokenizer.inference.model_files import ModelKind
from bpe_tokenizer.inference.servers import engine as server

__all__ = ["ENGINES", "backends_for", "engines_for"]

# By backend, in order of preference.
ENGINES: dict[InferenceBackend, Engine] = {
    engine.backend: engine
    for engine in (
        mlx.ENGINE,
        llama_cpp.CUDA_ENGINE,
        llama_cpp.ROCM_ENGINE,
        openvino.ENGINE,
        llama_cpp.CPU_ENGINE,
        transformers.ENGINE,
        server.ENGINE,
    )
}


def engines_for(kind: ModelKind) -> list[Engine]:
    """Return the engines that can load a kind of model, the preferred one first."""
    able = [engine for engine in ENGINES.values() if kind in engine.kinds]
    return sorted(able, key=lambda engine: kind in engine.partial_kinds)


def backends_for(kind: ModelKind) -> list[InferenceBackend]:
    """Return the backends that can load a kind of model, the preferred one first.

    >>> backends_for(ModelKind.GGUF)[0]
    <InferenceBackend.NVIDIA_CUDA: 'nvidia_cuda'>
    """
    return [engine.backend for engine in engines_for(kind)]
