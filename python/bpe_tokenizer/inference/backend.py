"""The inference backends: their names, what each needs, and how it is installed."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

__all__ = ["InferenceBackend", "install_command"]


class InferenceBackend(str, Enum):
    """An engine that runs a language model, on the hardware that it is made for.

    The order is that of preference.

    >>> InferenceBackend("cpu_llama_cpp").label
    'llama.cpp on the processor'
    """

    APPLE_MLX = "apple_mlx"
    NVIDIA_CUDA = "nvidia_cuda"
    AMD_ROCM = "amd_rocm"
    INTEL_OPENVINO = "intel_openvino"
    CPU_LLAMA_CPP = "cpu_llama_cpp"
    HUGGINGFACE_TRANSFORMERS = "huggingface_transformers"
    OPENAI_HTTP = "openai_http"

    __str__ = str.__str__

    @property
    def label(self) -> str:
        """What people call it."""
        return _NEEDS[self].label

    @property
    def libraries(self) -> tuple[str, ...]:
        """The names of the modules that it imports; empty if it needs none."""
        return _NEEDS[self].libraries


class _Needs(NamedTuple):
    label: str
    libraries: tuple[str, ...]
    command: str


_LLAMA_CPP = "pip install llama-cpp-python"
_NEEDS = {
    InferenceBackend.APPLE_MLX: _Needs("MLX", ("mlx_lm",), "pip install mlx-lm"),
    InferenceBackend.NVIDIA_CUDA: _Needs(
        "llama.cpp with CUDA", ("llama_cpp",), f'CMAKE_ARGS="-DGGML_CUDA=on" {_LLAMA_CPP}'
    ),
    InferenceBackend.AMD_ROCM: _Needs(
        "llama.cpp with ROCm", ("llama_cpp",), f'CMAKE_ARGS="-DGGML_HIP=on" {_LLAMA_CPP}'
    ),
    InferenceBackend.INTEL_OPENVINO: _Needs(
        "OpenVINO GenAI", ("openvino_genai",), "pip install openvino-genai"
    ),
    InferenceBackend.CPU_LLAMA_CPP: _Needs("llama.cpp on the processor", ("llama_cpp",), _LLAMA_CPP),
    InferenceBackend.HUGGINGFACE_TRANSFORMERS: _Needs(
        "Transformers", ("transformers", "torch"), "pip install torch transformers"
    ),
    InferenceBackend.OPENAI_HTTP: _Needs("an inference server over HTTP", (), ""),
}


def install_command(backend: InferenceBackend, system: str = "Linux") -> str:
    """Return the command that installs what a backend needs; empty if it needs nothing.

    Args:
        backend: The backend.
        system: The operating system, as `platform.system()` calls it.

    >>> install_command(InferenceBackend.NVIDIA_CUDA)
    'CMAKE_ARGS="-DGGML_CUDA=on" pip install llama-cpp-python'
    >>> install_command(InferenceBackend.APPLE_MLX)
    "pip install 'mlx-lm[cpu]'"
    """
    command = _NEEDS[backend].command
    if backend is InferenceBackend.APPLE_MLX and system != "Darwin":
        return "pip install 'mlx-lm[cpu]'"
    if backend is InferenceBackend.CPU_LLAMA_CPP and system == "Darwin":
        return f'CMAKE_ARGS="-DGGML_METAL=on" {command}'
    if system == "Windows" and command.startswith("CMAKE_ARGS="):
        # The form of PowerShell, where a variable cannot stand before a command.
        setting, _, rest = command.partition('" ')
        return f'$env:{setting}"; {rest}'
    return command
