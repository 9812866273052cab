"""Selects the best backend for this machine, or for a given model on it."""

from __future__ import annotations

import sys

from bpe_tokenizer.errors import ArgumentTypeError, MissingDependencyError, OptionError, shorten
from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.engines.engine import Engine
from bpe_tokenizer.inference.engines.registry import ENGINES, engines_for
from bpe_tokenizer.inference.machine import Machine
from bpe_tokenizer.inference.model_files import ModelKind

__all__ = ["check_installed", "choose_backend", "detect_best_backend", "install_command", "named_backend"]


def detect_best_backend(verbose: bool = False, *, machine: Machine | None = None) -> InferenceBackend:
    """Return the best backend for which this machine has the hardware and the libraries.

    The order is MLX on Apple silicon, llama.cpp with CUDA, with ROCm, OpenVINO on Intel hardware, llama.cpp
    on the processor, Transformers. Detection imports none of these libraries.

    Args:
        verbose: Print to stderr what each backend lacks.
        machine: The machine to examine; None for this one.

    Returns:
        The backend; `CPU_LLAMA_CPP` if none is installed. Loading a model then fails with an install command.

    >>> from bpe_tokenizer.inference import Machine
    >>> machine = Machine(has_intel_hardware=True, libraries=frozenset({"openvino_genai", "llama_cpp"}))
    >>> detect_best_backend(machine=machine).name
    'INTEL_OPENVINO'
    >>> detect_best_backend(machine=Machine()).name
    'CPU_LLAMA_CPP'
    """
    machine = Machine.here() if machine is None else machine
    obstacles = {
        engine.backend: engine.obstacle(machine) for engine in ENGINES.values() if not engine.is_server
    }
    if verbose:
        for backend, obstacle in obstacles.items():
            print(f"{backend.name}: {obstacle or 'can be used'}", file=sys.stderr)
    suitable = (backend for backend, obstacle in obstacles.items() if not obstacle)
    return next(suitable, InferenceBackend.CPU_LLAMA_CPP)


def choose_backend(kind: ModelKind, *, machine: Machine | None = None) -> InferenceBackend:
    """Return the best backend that can load a kind of model and is installed on this machine.

    For a GGUF file, llama.cpp is preferred to OpenVINO, which reads few kinds of GGUF files.

    Args:
        kind: The kind of the model.
        machine: The machine to examine; None for this one.

    Raises:
        MissingDependencyError: No such backend is installed. The message has the install command.
    """
    machine = Machine.here() if machine is None else machine
    engines = engines_for(kind)
    # An installed engine also runs without its hardware, but more slowly.
    for obstacle in (Engine.obstacle, Engine.not_installed):
        for engine in engines:
            if not obstacle(engine, machine):
                return engine.backend
    engine = next((engine for engine in engines if not engine.missing_hardware(machine)), engines[0])
    raise MissingDependencyError(
        f"nothing is installed that runs {kind.value}: {engine.install_command(machine.system)}"
    )


def named_backend(backend: InferenceBackend | str) -> InferenceBackend:
    """Return the backend with a name, in upper or lower case.

    Raises:
        ArgumentTypeError: The name is not a `str`.
        OptionError: The name is unknown.

    >>> named_backend("CPU_LLAMA_CPP")
    <InferenceBackend.CPU_LLAMA_CPP: 'cpu_llama_cpp'>
    """
    if isinstance(backend, InferenceBackend):
        return backend
    if not isinstance(backend, str):
        raise ArgumentTypeError(f"backend must be an InferenceBackend or its name, not {shorten(backend)}")
    try:
        return InferenceBackend(backend.lower())
    except ValueError:
        names = ", ".join(known.value for known in InferenceBackend)
        raise OptionError(f"there is no backend {shorten(backend)}; the backends are {names}") from None


def check_installed(backend: InferenceBackend, *, machine: Machine | None = None) -> None:
    """Check that the libraries of a backend are installed.

    Raises:
        MissingDependencyError: They are not. The message has the install command.
    """
    machine = Machine.here() if machine is None else machine
    missing = ENGINES[backend].not_installed(machine)
    if missing:
        command = install_command(backend, machine.system)
        if machine.libraries.issuperset(backend.libraries):  # installed, but with another build
            command = command.replace("pip install", "pip install --force-reinstall --no-cache-dir")
        raise MissingDependencyError(f"{backend.label}: {missing}: {command}")


def install_command(backend: InferenceBackend, system: str = "Linux") -> str:
    """Return the shell command that installs the libraries of a backend; "" if it needs none.

    Args:
        backend: The backend.
        system: The operating system, as `platform.system()` names it.

    >>> install_command(InferenceBackend.NVIDIA_CUDA)
    'CMAKE_ARGS="-DGGML_CUDA=on" pip install llama-cpp-python'
    >>> install_command(InferenceBackend.APPLE_MLX)
    "pip install 'mlx-lm[cpu]'"
    """
    return ENGINES[backend].install_command(system)
