"""Which backend is the best here, for any model or for a given one."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence

from bpe_tokenizer.errors import ArgumentTypeError, MissingDependencyError, OptionError
from bpe_tokenizer.inference.backend import InferenceBackend, install_command
from bpe_tokenizer.inference.machine import Machine
from bpe_tokenizer.inference.source import ModelKind

__all__ = ["check_installed", "choose_backend", "detect_best_backend", "named_backend"]

_Backend = InferenceBackend
# What llama.cpp has to be built for.
_BUILDS = {_Backend.NVIDIA_CUDA: "cuda", _Backend.AMD_ROCM: "hip"}


def detect_best_backend(verbose: bool = False, *, machine: Machine | None = None) -> InferenceBackend:
    """Return the best backend that this machine has the hardware and the libraries for.

    In this order: MLX on Apple's chips, llama.cpp with CUDA, with ROCm, OpenVINO on Intel's hardware,
    llama.cpp on the processor, Transformers. No library is loaded to find out.

    Args:
        verbose: Print to stderr what each lacks.
        machine: The machine to look at; None for this one.

    Returns:
        The backend; `CPU_LLAMA_CPP` if nothing is installed (loading a model then says what to install).

    >>> from bpe_tokenizer.inference import Machine
    >>> machine = Machine(has_intel_hardware=True, libraries=frozenset({"openvino_genai", "llama_cpp"}))
    >>> detect_best_backend(machine=machine).name
    'INTEL_OPENVINO'
    >>> detect_best_backend(machine=Machine()).name
    'CPU_LLAMA_CPP'
    """
    machine = Machine.here() if machine is None else machine
    obstacles = {
        backend: _obstacle(backend, machine) for backend in _Backend if backend is not _Backend.OPENAI_HTTP
    }
    if verbose:
        for backend, obstacle in obstacles.items():
            print(f"{backend.name}: {obstacle or 'can be used'}", file=sys.stderr)
    fitting = (backend for backend, obstacle in obstacles.items() if not obstacle)
    return next(fitting, _Backend.CPU_LLAMA_CPP)


def choose_backend(kind: ModelKind, *, machine: Machine | None = None) -> InferenceBackend:
    """Return the best backend for a model that this machine has the hardware and the libraries for.

    Of a GGUF file llama.cpp is preferred to OpenVINO, which reads few of their kinds.

    Args:
        kind: What the model's path is.
        machine: The machine to look at; None for this one.

    Raises:
        MissingDependencyError: Nothing that can load it is installed; says what to install here.
    """
    machine = Machine.here() if machine is None else machine
    for backend in kind.backends:
        if not _obstacle(backend, machine):
            return backend
    for backend in kind.backends:
        if not _missing(backend, machine):  # not on the hardware that it is made for, but it runs
            return backend
    backend = _recommended(kind.backends, machine)
    raise MissingDependencyError(
        f"nothing is installed that runs {kind.value}: {install_command(backend, machine.system)}"
    )


def named_backend(backend: InferenceBackend | str) -> InferenceBackend:
    """Return a backend by its name, in capitals or not; or itself.

    Raises:
        ArgumentTypeError: It is no name.
        OptionError: There is none of this name.

    >>> named_backend("CPU_LLAMA_CPP")
    <InferenceBackend.CPU_LLAMA_CPP: 'cpu_llama_cpp'>
    """
    if isinstance(backend, _Backend):
        return backend
    if not isinstance(backend, str):
        raise ArgumentTypeError(f"backend must be an InferenceBackend or its name, not {backend!r}")
    try:
        return _Backend(backend.lower())
    except ValueError:
        names = ", ".join(known.value for known in _Backend)
        raise OptionError(f"there is no backend {backend!r}; the backends are {names}") from None


def check_installed(backend: InferenceBackend, *, machine: Machine | None = None) -> None:
    """Check that what a backend needs is installed.

    Raises:
        MissingDependencyError: It is not; holds the command that installs it.
    """
    machine = Machine.here() if machine is None else machine
    missing = _missing(backend, machine)
    if missing:
        command = install_command(backend, machine.system)
        if machine.libraries.issuperset(backend.libraries):  # built for something else
            command = command.replace("pip install", "pip install --force-reinstall --no-cache-dir")
        raise MissingDependencyError(f"{backend.label}: {missing}: {command}")


def _obstacle(backend: InferenceBackend, machine: Machine) -> str:
    """Return why a backend is no good choice; empty if it is one."""
    if backend is _Backend.APPLE_MLX and not machine.is_apple_silicon:
        return "no chip of Apple's"
    if backend is _Backend.NVIDIA_CUDA and not machine.has_nvidia_gpu:
        return "no NVIDIA GPU"
    if backend is _Backend.AMD_ROCM and not machine.has_amd_gpu:
        return "no AMD GPU with ROCm"
    if backend is _Backend.INTEL_OPENVINO and not machine.has_intel_hardware:
        return "neither a processor nor a GPU of Intel's"
    return _missing(backend, machine)


def _missing(backend: InferenceBackend, machine: Machine) -> str:
    """Return what is not installed; empty if all is."""
    missing = [library for library in backend.libraries if library not in machine.libraries]
    if missing:
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
    build = _BUILDS.get(backend)
    if build is not None and build not in machine.llama_cpp_builds:
        return f"llama_cpp was installed without {build.upper()}"
    return ""


def _recommended(backends: Sequence[InferenceBackend], machine: Machine) -> InferenceBackend:
    """Return the backend to install: the first that the hardware is there for."""
    installed = dataclasses.replace(
        machine,
        libraries=frozenset(library for backend in backends for library in backend.libraries),
        llama_cpp_builds=frozenset(_BUILDS.values()),
    )
    return next((backend for backend in backends if not _obstacle(backend, installed)), backends[0])
