"""Detection of backends, and their install commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer.errors import ArgumentTypeError, MissingDependencyError, OptionError
from bpe_tokenizer.inference import (
    InferenceBackend,
    Machine,
    ModelKind,
    choose_backend,
    detect_best_backend,
    install_command,
    load_model,
)
from bpe_tokenizer.inference.detection import check_installed, named_backend
from bpe_tokenizer.inference.engines.registry import ENGINES, backends_for

Backend = InferenceBackend
ALL = frozenset({"mlx_lm", "llama_cpp", "openvino_genai", "transformers", "torch"})


def test_the_names_of_the_backends() -> None:
    assert Backend("nvidia_cuda") is Backend.NVIDIA_CUDA
    assert str(Backend.NVIDIA_CUDA) == f"{Backend.NVIDIA_CUDA}" == Backend.NVIDIA_CUDA.value == "nvidia_cuda"
    assert named_backend("CPU_LLAMA_CPP") is named_backend("cpu_llama_cpp") is Backend.CPU_LLAMA_CPP
    with pytest.raises(OptionError, match="no backend 'gpu'; the backends are apple_mlx, "):
        named_backend("gpu")
    with pytest.raises(ArgumentTypeError):
        named_backend(1)  # type: ignore[arg-type]


def test_every_backend_has_an_engine_and_every_kind_a_backend() -> None:
    assert list(ENGINES) == list(Backend)
    assert {kind: backends_for(kind) for kind in ModelKind} == {
        ModelKind.GGUF: [
            Backend.NVIDIA_CUDA,
            Backend.AMD_ROCM,
            Backend.CPU_LLAMA_CPP,
            Backend.INTEL_OPENVINO,
        ],
        ModelKind.SAFETENSORS: [Backend.APPLE_MLX, Backend.HUGGINGFACE_TRANSFORMERS],
        ModelKind.OPENVINO_IR: [Backend.INTEL_OPENVINO],
        ModelKind.SERVER: [Backend.OPENAI_HTTP],
    }


MAC = {"system": "Darwin", "architecture": "arm64"}
MACHINES: list[tuple[dict[str, Any], Backend]] = [
    ({}, Backend.CPU_LLAMA_CPP),
    ({"libraries": ALL}, Backend.CPU_LLAMA_CPP),
    ({"libraries": ALL, **MAC}, Backend.APPLE_MLX),
    ({"libraries": ALL - {"mlx_lm"}, **MAC}, Backend.CPU_LLAMA_CPP),
    ({"libraries": ALL, "system": "Darwin"}, Backend.CPU_LLAMA_CPP),
    (
        {"libraries": ALL, "has_nvidia_gpu": True, "llama_cpp_builds": frozenset({"cuda"})},
        Backend.NVIDIA_CUDA,
    ),
    ({"libraries": ALL, "llama_cpp_builds": frozenset({"cuda"})}, Backend.CPU_LLAMA_CPP),
    ({"libraries": ALL, "has_nvidia_gpu": True}, Backend.CPU_LLAMA_CPP),
    ({"libraries": ALL, "has_amd_gpu": True, "llama_cpp_builds": frozenset({"hip"})}, Backend.AMD_ROCM),
    ({"libraries": ALL, "has_intel_hardware": True}, Backend.INTEL_OPENVINO),
    ({"libraries": frozenset({"openvino_genai"})}, Backend.CPU_LLAMA_CPP),
    ({"libraries": frozenset({"torch", "transformers"})}, Backend.HUGGINGFACE_TRANSFORMERS),
    ({"libraries": frozenset({"transformers"})}, Backend.CPU_LLAMA_CPP),
]


@pytest.mark.parametrize(("facts", "best"), MACHINES)
def test_the_best_backend_of_a_machine(facts: dict[str, Any], best: Backend) -> None:
    assert detect_best_backend(machine=Machine(**facts)) is best


def test_detection_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    detect_best_backend(
        verbose=True, machine=Machine(has_nvidia_gpu=True, libraries=frozenset({"llama_cpp"}))
    )
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "APPLE_MLX: no Apple silicon",
        "NVIDIA_CUDA: llama_cpp was installed without CUDA",
        "AMD_ROCM: no AMD GPU with ROCm",
        "INTEL_OPENVINO: no Intel processor or GPU",
        "CPU_LLAMA_CPP: can be used",
        "HUGGINGFACE_TRANSFORMERS: transformers and torch are not installed",
    ]


def test_detection_loads_nothing() -> None:
    code = (
        "import sys, bpe_tokenizer.inference as i; i.detect_best_backend(); i.Machine.here();"
        "heavy = {'torch', 'transformers', 'llama_cpp', 'mlx', 'mlx_lm', 'openvino', 'openvino_genai'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("[]\n", "")


@pytest.mark.parametrize(
    ("kind", "facts", "best"),
    [
        (ModelKind.GGUF, {"libraries": ALL, "has_intel_hardware": True}, Backend.CPU_LLAMA_CPP),
        (ModelKind.GGUF, {"libraries": frozenset({"openvino_genai"})}, Backend.INTEL_OPENVINO),
        (ModelKind.GGUF, {"libraries": ALL, **MAC}, Backend.CPU_LLAMA_CPP),
        (ModelKind.SAFETENSORS, {"libraries": ALL, **MAC}, Backend.APPLE_MLX),
        (ModelKind.SAFETENSORS, {"libraries": ALL}, Backend.HUGGINGFACE_TRANSFORMERS),
        (ModelKind.SAFETENSORS, {"libraries": frozenset({"mlx_lm"})}, Backend.APPLE_MLX),
        (ModelKind.OPENVINO_IR, {"libraries": ALL}, Backend.INTEL_OPENVINO),
        (ModelKind.SERVER, {}, Backend.OPENAI_HTTP),
    ],
)
def test_the_best_backend_for_a_model(kind: ModelKind, facts: dict[str, Any], best: Backend) -> None:
    assert choose_backend(kind, machine=Machine(**facts)) is best


CUDA_COMMAND = 'CMAKE_ARGS="-DGGML_CUDA=on" pip install llama-cpp-python'


@pytest.mark.parametrize(
    ("kind", "facts", "command"),
    [
        (ModelKind.GGUF, {}, "pip install llama-cpp-python"),
        (ModelKind.GGUF, {"has_nvidia_gpu": True}, CUDA_COMMAND),
        (ModelKind.GGUF, {"has_amd_gpu": True}, CUDA_COMMAND.replace("CUDA", "HIP")),
        (ModelKind.GGUF, MAC, CUDA_COMMAND.replace("CUDA", "METAL")),
        (
            ModelKind.GGUF,
            {"has_nvidia_gpu": True, "system": "Windows"},
            '$env:CMAKE_ARGS="-DGGML_CUDA=on"; pip install llama-cpp-python',
        ),
        (ModelKind.SAFETENSORS, MAC, "pip install mlx-lm"),
        (ModelKind.SAFETENSORS, {"has_nvidia_gpu": True}, "pip install torch transformers"),
        (ModelKind.OPENVINO_IR, {}, "pip install openvino-genai"),
    ],
)
def test_what_to_install(kind: ModelKind, facts: dict[str, Any], command: str) -> None:
    with pytest.raises(MissingDependencyError) as caught:
        choose_backend(kind, machine=Machine(**facts))
    assert str(caught.value) == f"nothing is installed that runs {kind.value}: {command}"
    assert isinstance(caught.value, ImportError)


def test_what_to_install_for_a_backend() -> None:
    for backend in Backend:
        if backend is Backend.OPENAI_HTTP:
            check_installed(backend, machine=Machine())
            continue
        with pytest.raises(MissingDependencyError, match="not installed: ") as caught:
            check_installed(backend, machine=Machine())
        assert str(caught.value).endswith(": " + install_command(backend))
    with pytest.raises(MissingDependencyError, match="without CUDA") as caught:
        check_installed(Backend.NVIDIA_CUDA, machine=Machine(libraries=ALL))
    assert str(caught.value).endswith(
        'CMAKE_ARGS="-DGGML_CUDA=on" pip install --force-reinstall --no-cache-dir llama-cpp-python'
    )


def test_builds_of_llama_cpp_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "llama_cpp"
    (package / "lib").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('not to be loaded')")
    for name in ("libggml-base.so", "libggml-cpu.so.0", "libggml-cuda.so", "ggml-hip.dll", "libllama.so"):
        (package / "lib" / name).touch()
    monkeypatch.syspath_prepend(tmp_path)
    machine = Machine.here()
    assert "llama_cpp" in machine.libraries
    assert machine.llama_cpp_builds == {"cuda", "hip"}


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        (
            "apple_mlx",
            "is a GGUF file, which APPLE_MLX cannot load; NVIDIA_CUDA or AMD_ROCM or CPU_LLAMA_CPP",
        ),
        (Backend.HUGGINGFACE_TRANSFORMERS, "which HUGGINGFACE_TRANSFORMERS cannot load"),
        (Backend.OPENAI_HTTP, "which OPENAI_HTTP cannot load"),
    ],
)
def test_a_backend_that_cannot_load_the_path(tmp_path: Path, backend: Any, message: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    with pytest.raises(OptionError, match=message):
        load_model(path, backend)


def test_a_model_directory_must_be_converted_for_openvino(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).touch()
    command = f'--task text-generation-with-past --model "{tmp_path}" "{tmp_path}-openvino"'
    with pytest.raises(OptionError, match=re.escape(command)):
        load_model(f"{tmp_path}/", "intel_openvino")


def test_a_library_that_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    nothing = Machine(has_nvidia_gpu=True)
    monkeypatch.setattr(Machine, "here", lambda: nothing)
    with pytest.raises(MissingDependencyError, match=r"a GGUF file: CMAKE_ARGS=.-DGGML_CUDA=on. pip install"):
        load_model(path)
    with pytest.raises(
        MissingDependencyError, match="llama_cpp is not installed: pip install llama-cpp-python"
    ):
        load_model(path, "cpu_llama_cpp")
    # Found, and still not to be imported.
    broken = Machine(libraries=ALL)
    monkeypatch.setattr(Machine, "here", lambda: broken)
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(MissingDependencyError, match=r"cannot be imported .*: pip install llama-cpp-python"):
        load_model(path, "cpu_llama_cpp")
