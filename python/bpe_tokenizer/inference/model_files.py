"""The kinds of models: recognises what a path or an address refers to."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path

from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.errors import ArgumentTypeError, ModelFileNotFoundError, OptionError

__all__ = ["FileStates", "ModelKind", "file_states", "is_address", "kind_of"]

# The name, modification time in nanoseconds and size in bytes of each file.
FileStates = tuple[tuple[str, int, int], ...]


class ModelKind(Enum):
    """The kinds of models that can be loaded. `backends_for` returns the backends for each."""

    GGUF = "a GGUF file"
    SAFETENSORS = "a model directory with safetensors"
    OPENVINO_IR = "an OpenVINO model directory"
    SERVER = "the address of a server"


_IR = "openvino_model.xml"


def kind_of(path: str | os.PathLike[str]) -> ModelKind:
    """Return the kind of the model at a path.

    Args:
        path: A GGUF file; a directory with a config.json and safetensors, or with an openvino_model.xml; or
            the address of a server, `http://host:port` or `https://...`.

    Raises:
        ArgumentTypeError: The argument is not a path.
        OptionError: The path does not exist, or its kind is unknown. The message lists the known kinds.

    >>> kind_of("http://localhost:8000").value
    'the address of a server'
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(f"a model's path must be a str or a path, not {type(path).__name__}")
    if is_address(path):
        return ModelKind.SERVER
    file = check_path("path", path)
    try:
        return _kind_of_directory(file) if file.is_dir() else _kind_of_file(file)
    except (FileNotFoundError, NotADirectoryError):
        raise ModelFileNotFoundError(
            f"{file}: there is no such file or directory; models are not downloaded: a model is {_kinds()}"
        ) from None
    except OptionError:
        raise
    except (OSError, ValueError) as error:
        raise OptionError(f"{file}: cannot be read as a model: {error}") from error


def _kind_of_file(file: Path) -> ModelKind:
    with file.open("rb") as opened:
        if opened.read(4) == b"GGUF":
            return ModelKind.GGUF
    raise OptionError(f"{file}: is not a GGUF file; a model is {_kinds()}")


def _kind_of_directory(file: Path) -> ModelKind:
    names = {entry.name for entry in file.iterdir()}
    if _IR in names:
        return ModelKind.OPENVINO_IR
    if "config.json" in names and any(name.endswith(".safetensors") for name in names):
        return ModelKind.SAFETENSORS
    raise OptionError(f"{file}: is not a model directory{_hint(names)}; a model is {_kinds()}")


def is_address(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the address of a server."""
    return isinstance(path, str) and path.lower().startswith(("http://", "https://"))


def file_states(path: str | os.PathLike[str]) -> FileStates:
    """Return a value that differs after a model or tokenizer changed on disk; empty for a server.

    Raises:
        OSError: The file does not exist any more.
    """
    if is_address(path):
        return ()
    file = check_path("path", path)
    files = sorted(entry for entry in file.iterdir() if entry.is_file()) if file.is_dir() else [file]
    states = ((entry.name, entry.stat()) for entry in files)
    return tuple((name, state.st_mtime_ns, state.st_size) for name, state in states)


def _kinds() -> str:
    return (
        "a GGUF file, a directory with config.json and safetensors, "
        f"a directory with {_IR}, or the address of a server (http://host:port)"
    )


def _hint(names: set[str]) -> str:
    ggufs = sorted(name for name in names if name.endswith(".gguf"))
    if ggufs:
        return f", but holds {ggufs[0]}: pass the path of that file"
    if "config.json" in names:
        return ": it has a config.json, but no weights as safetensors"
    return ""
