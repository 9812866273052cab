"""The names of the inference backends, and the libraries that each imports."""

from __future__ import annotations

from enum import Enum

__all__ = ["InferenceBackend"]


class InferenceBackend(str, Enum):  # noqa: UP042 - its `str()` has the class's name
    """An engine for language models, on the hardware that it is made for, in order of preference.

    `engines/registry.py` has the `Engine` record of each.

    Attributes:
        label: The name for people.
        libraries: The modules that it imports; empty if it needs none.

    >>> InferenceBackend("cpu_llama_cpp").label
    'llama.cpp on the processor'
    """

    label: str
    libraries: tuple[str, ...]

    APPLE_MLX = "apple_mlx", "MLX", "mlx_lm"
    NVIDIA_CUDA = "nvidia_cuda", "llama.cpp with CUDA", "llama_cpp"
    AMD_ROCM = "amd_rocm", "llama.cpp with ROCm", "llama_cpp"
    INTEL_OPENVINO = "intel_openvino", "OpenVINO GenAI", "openvino_genai"
    CPU_LLAMA_CPP = "cpu_llama_cpp", "llama.cpp on the processor", "llama_cpp"
    HUGGINGFACE_TRANSFORMERS = "huggingface_transformers", "Transformers", "transformers", "torch"
    OPENAI_HTTP = "openai_http", "an inference server over HTTP"

    def __new__(cls, value: str, label: str = "", *libraries: str) -> InferenceBackend:
        """Make a member from its value, its label and its libraries."""
        self = str.__new__(cls, value)
        self._value_ = value
        self.label, self.libraries = label, libraries
        return self

    __str__ = str.__str__
