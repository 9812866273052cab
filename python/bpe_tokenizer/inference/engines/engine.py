"""The record of an inference engine: everything that the package has to know about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.engine_model import EngineModel
from bpe_tokenizer.inference.machine import Machine
from bpe_tokenizer.inference.model_files import ModelKind
from bpe_tokenizer.inference.options import LoadOptions

__all__ = ["Engine"]


@dataclass(frozen=True)
class Engine:
    """An inference engine.

    Args:
        backend: Its name, its label and its libraries.
        kinds: The kinds of models that it can load.
        load: Loads a model from a path or an address.
        install_command: Returns the install command for an operating system, as `platform.system()` names it.
        missing_hardware: Returns which hardware the machine lacks; "" if it has all.
        missing_build: Returns what the installed library was built without; "" if nothing is missing.
        partial_kinds: Those of `kinds` of which it loads only some models. Other engines are preferred.
        conversion: The command that converts a model directory with safetensors, with `{0}` for its path; ""
            if none is needed.
        is_server: Whether the model runs in a server, not in this process.
    """

    backend: InferenceBackend
    kinds: tuple[ModelKind, ...]
    load: Callable[[str, LoadOptions], EngineModel]
    install_command: Callable[[str], str]
    missing_hardware: Callable[[Machine], str] = lambda _: ""
    missing_build: Callable[[Machine], str] = lambda _: ""
    partial_kinds: tuple[ModelKind, ...] = ()
    conversion: str = ""
    is_server: bool = False

    def not_installed(self, machine: Machine) -> str:
        """Return which libraries or builds the machine lacks; "" if it has all."""
        missing = [library for library in self.backend.libraries if library not in machine.libraries]
        if missing:
            return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
        return self.missing_build(machine)

    def obstacle(self, machine: Machine) -> str:
        """Return why the engine does not suit the machine; "" if it does."""
        return self.missing_hardware(machine) or self.not_installed(machine)
