"""Inference without any engine: detection, options, the course of a generation, the cache of models.

`tests/inference/` runs the engines, and servers.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    ContextLengthError,
    GenerationError,
    MismatchError,
    MissingDependencyError,
    OptionError,
)
from bpe_tokenizer.formats.gguf.file import ValueType, write_metadata
from bpe_tokenizer.inference import (
    Cancellation,
    Generation,
    GenerationOptions,
    InferenceBackend,
    LanguageModel,
    LoadOptions,
    Machine,
    ModelCache,
    ModelKind,
    cached_models,
    check_match,
    choose_backend,
    config_file,
    detect_best_backend,
    free_model,
    free_models,
    gguf_file,
    install_command,
    kind_of,
    load_model,
    tokenizer_path,
)
from bpe_tokenizer.inference import cache as cache_module
from bpe_tokenizer.inference.callbacks import Worker
from bpe_tokenizer.inference.detection import check_installed, named_backend
from bpe_tokenizer.inference.sampling import Sampler, nucleus
from bpe_tokenizer.inference.turns import Turns

Backend = InferenceBackend
ALL = frozenset({"mlx_lm", "llama_cpp", "openvino_genai", "transformers", "torch"})


class Counting:
    """A model that counts on from the last id, and records what it is used for.

    Args:
        pause: Seconds for each id.
        fails_at: The id at which it fails.
    """

    def __init__(self, pause: float = 0.0, fails_at: int | None = None) -> None:
        self.vocab_size: int | None = 1000
        self.context_length: int | None = 100
        self.pause = pause
        self.fails_at = fails_at
        self.runs = 0
        self.running = 0
        self.most_running = 0
        self.is_closed = False

    def generate(
        self, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
    ) -> Iterator[int]:
        self.runs += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            for new_id in range(ids[-1] + 1, ids[-1] + 1 + options.max_new_tokens):
                if new_id == self.fails_at:
                    raise ZeroDivisionError("a kernel failed")
                time.sleep(self.pause)
                yield new_id
        finally:
            self.running -= 1

    def close(self) -> None:
        self.is_closed = True


# -- backends and machines ------------------------------------------------------------------------------


def test_the_names_of_the_backends() -> None:
    assert [backend.name for backend in Backend] == [
        "APPLE_MLX",
        "NVIDIA_CUDA",
        "AMD_ROCM",
        "INTEL_OPENVINO",
        "CPU_LLAMA_CPP",
        "HUGGINGFACE_TRANSFORMERS",
        "OPENAI_HTTP",
    ]
    assert Backend("nvidia_cuda") is Backend.NVIDIA_CUDA
    assert str(Backend.NVIDIA_CUDA) == f"{Backend.NVIDIA_CUDA}" == Backend.NVIDIA_CUDA.value == "nvidia_cuda"
    assert named_backend("CPU_LLAMA_CPP") is named_backend("cpu_llama_cpp") is Backend.CPU_LLAMA_CPP
    with pytest.raises(OptionError, match="no backend 'gpu'; the backends are apple_mlx, "):
        named_backend("gpu")
    with pytest.raises(ArgumentTypeError):
        named_backend(1)  # type: ignore[arg-type]


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
    lines = dict(line.split(": ", 1) for line in told.err.splitlines())
    assert lines == {
        "APPLE_MLX": "no chip of Apple's",
        "NVIDIA_CUDA": "llama_cpp was installed without CUDA",
        "AMD_ROCM": "no AMD GPU with ROCm",
        "INTEL_OPENVINO": "neither a processor nor a GPU of Intel's",
        "CPU_LLAMA_CPP": "can be used",
        "HUGGINGFACE_TRANSFORMERS": "transformers and torch are not installed",
    }


def test_what_only_some_need_is_not_imported() -> None:
    code = "import sys, bpe_tokenizer; print(sorted({'asyncio', 'jinja2', 'rich'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("[]\n", "")


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


# -- options --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_new_tokens": 0}, OptionError),
        ({"max_new_tokens": 1.5}, ArgumentTypeError),
        ({"max_new_tokens": True}, ArgumentTypeError),
        ({"temperature": -0.1}, OptionError),
        ({"temperature": float("nan")}, OptionError),
        ({"temperature": float("inf")}, OptionError),
        ({"temperature": "hot"}, ArgumentTypeError),
        ({"top_p": 0}, OptionError),
        ({"top_p": 1.01}, OptionError),
        ({"top_p": float("nan")}, OptionError),
        ({"top_p": None}, ArgumentTypeError),
        ({"seed": -1}, OptionError),
        ({"seed": 2**32}, OptionError),
        ({"seed": 0.5}, ArgumentTypeError),
        ({"stop_ids": 5}, ArgumentTypeError),
        ({"stop_ids": "5"}, ArgumentTypeError),
        ({"stop_ids": ["x"]}, ArgumentTypeError),
    ],
)
def test_bad_generation_options(options: dict[str, Any], error: type[Exception]) -> None:
    (name,) = options
    with pytest.raises(error, match=name):
        GenerationOptions(**options)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_gpu_layers": -2}, OptionError),
        ({"n_ctx": -1}, OptionError),
        ({"n_ctx": "8k"}, ArgumentTypeError),
        ({"timeout": 0}, OptionError),
        ({"timeout": float("inf")}, OptionError),
        ({"api_key": 5}, ArgumentTypeError),
        ({"api_key": "a\r\nHost: b"}, OptionError),
    ],
)
def test_bad_load_options(options: dict[str, Any], error: type[Exception]) -> None:
    (name,) = options
    with pytest.raises(error, match=name):
        LoadOptions(**options)


def test_options_are_values() -> None:
    options = GenerationOptions(5, 0, 1, 7, {1, np.int64(2)})  # type: ignore[arg-type]
    assert options == GenerationOptions(5, 0.0, 1.0, 7, frozenset({1, 2}))
    assert hash(options) == hash(GenerationOptions(5, 0.0, 1.0, 7, frozenset({1, 2})))
    assert GenerationOptions() == GenerationOptions(512, 0.7, 0.9, None, frozenset())
    assert "secret" not in repr(LoadOptions(api_key="secret"))


# -- sampling -------------------------------------------------------------------------------------------


def plain_nucleus(logits: Sequence[float], temperature: float, top_p: float) -> list[int]:
    """The definition, one step after the other, in exact enough floats."""
    highest = max(logits)
    powers = [float(np.exp((logit - highest) / temperature)) for logit in logits]
    order = sorted(range(len(logits)), key=lambda index: -powers[index])
    kept: list[int] = []
    total = 0.0
    for index in order:
        if kept and total >= top_p * sum(powers):
            break
        kept.append(index)
        total += powers[index]
    return kept


@given(
    st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=40),
    st.floats(0.05, 20),
    st.floats(0.001, 0.999),
)
def test_the_nucleus_is_what_it_is_defined_as(logits: list[float], temperature: float, top_p: float) -> None:
    ids, weights = nucleus(np.array(logits, np.float32), temperature, top_p)
    expected = plain_nucleus(logits, temperature, top_p)
    # Where a sum meets top_p to the last bit, either is right.
    assert abs(len(ids) - len(expected)) <= 1
    shared = min(len(ids), len(expected))
    assert [logits[i] for i in ids[:shared]] == [logits[i] for i in expected[:shared]]
    assert (np.diff(weights) <= 0).all()


def test_hostile_logits() -> None:
    for temperature in (0, 1e-300, 1e-6, 1e6):
        sampler = Sampler(GenerationOptions(temperature=temperature, top_p=1.0))
        assert sampler.draw(np.array([1e30, -1e30, 3e30])) == 2
        for broken in ([np.nan, 1.0], [1.0, np.nan], [np.inf, 1.0], [-np.inf, -np.inf]):
            with pytest.raises(GenerationError, match="computes no numbers"):
                sampler.draw(np.array(broken, np.float32))
    masked = np.array([-np.inf, 0.0, -np.inf], np.float32)
    for top_p in (0.1, 1.0):
        drawn = {Sampler(GenerationOptions(temperature=5, top_p=top_p)).draw(masked) for _ in range(50)}
        assert drawn == {1}
    half = np.array([1, 2, 3], np.float16)
    assert Sampler(GenerationOptions(temperature=0)).draw(half) == 2
    assert half.tolist() == [1, 2, 3]


def test_draws_are_as_frequent_as_they_should_be() -> None:
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    sampler = Sampler(GenerationOptions(temperature=1.0, top_p=0.85, seed=4))
    counts = np.bincount([sampler.draw(np.log(shares)) for _ in range(20_000)], minlength=4)
    assert counts[3] == 0
    np.testing.assert_allclose(counts[:3] / 20_000, shares[:3] / 0.9, atol=0.015)


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


# -- paths ----------------------------------------------------------------------------------------------


def test_kinds_of_paths(tmp_path: Path) -> None:
    gguf = tmp_path / "model.bin"
    gguf.write_bytes(b"GGUF\x03\x00\x00\x00")
    assert kind_of(gguf) is kind_of(str(gguf)) is ModelKind.GGUF
    assert kind_of("HTTP://localhost:1") is ModelKind.SERVER
    directory = tmp_path / "model"
    directory.mkdir()
    with pytest.raises(OptionError, match="is no model directory; a model is"):
        kind_of(directory)
    (directory / "config.json").write_text("{}")
    with pytest.raises(OptionError, match="no weights in the form of safetensors"):
        kind_of(directory)
    (directory / "model-00001-of-00002.safetensors").touch()
    assert kind_of(directory) is ModelKind.SAFETENSORS
    (directory / "openvino_model.xml").touch()
    assert kind_of(directory) is ModelKind.OPENVINO_IR
    (tmp_path / "quants").mkdir()
    (tmp_path / "quants" / "model-Q4.gguf").touch()
    with pytest.raises(OptionError, match=r"holds model-Q4\.gguf: name that file"):
        kind_of(tmp_path / "quants")


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("missing/model.gguf", OptionError),
        (__file__, OptionError),
        (5, ArgumentTypeError),
        ("", OptionError),
        ("a\0b", OptionError),
    ],
)
def test_what_is_no_model(path: Any, error: type[Exception]) -> None:
    for function in (kind_of, load_model, tokenizer_path):
        with pytest.raises(error, match="model"):
            function(path)


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


# -- the course of a generation -------------------------------------------------------------------------


def test_to_the_end() -> None:
    loaded = Counting()
    generation = LanguageModel(loaded).generate([5, 6], GenerationOptions(3))
    assert (generation.finish_reason, generation.new_tokens, loaded.runs) == (None, 0, 0)
    assert list(generation) == [7, 8, 9]
    assert (generation.finish_reason, generation.stop_id) == ("length", None)
    assert (generation.prompt_tokens, generation.new_tokens, generation.ids) == (2, 3, [7, 8, 9])
    assert list(generation) == []
    assert loaded.running == 0


def test_a_stop_id_is_no_part_of_it() -> None:
    loaded = Counting()
    options = GenerationOptions(50, stop_ids=frozenset({10, 12}))
    generation = LanguageModel(loaded).generate([6], options)
    assert list(generation) == [7, 8, 9]
    assert (generation.finish_reason, generation.stop_id, generation.new_tokens) == ("stop", 10, 3)
    assert loaded.running == 0


def test_an_engine_may_stop_by_itself() -> None:
    class Short(Counting):
        def generate(self, *_: object) -> Iterator[int]:
            return iter([4])

    generation = LanguageModel(Short()).generate([3])
    assert list(generation) == [4]
    assert (generation.finish_reason, generation.stop_id) == ("stop", None)


def test_prompts_are_checked() -> None:
    model = LanguageModel(Counting(), "counting")
    with pytest.raises(OptionError, match=r"ids\[1\] = 1000 is not in the model's vocabulary.*below 1000"):
        model.generate([1, 1000])
    with pytest.raises(OptionError, match=r"ids\[0\] = -1"):
        model.generate([-1])
    with pytest.raises(OptionError, match="the prompt is empty"):
        model.generate([])
    for wrong in ("text", [1, "x"], [1.0], [True], None, 5):
        with pytest.raises(ArgumentTypeError, match="sequence of integers"):
            model.generate(wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="options must be GenerationOptions"):
        model.generate([1], {"temperature": 0})  # type: ignore[arg-type]
    assert list(model.generate(np.array([1, 2], np.uint32), GenerationOptions(1))) == [3]  # type: ignore[arg-type]


def test_prompts_and_the_context() -> None:
    model = LanguageModel(Counting(), "counting")
    assert list(model.generate(range(99))) == [99]
    assert model.generate(range(98), GenerationOptions(1)).max_new_tokens == 1
    assert model.generate(range(90)).max_new_tokens == 10
    for length in (100, 101):
        message = rf"the prompt has {length} ids, and the context of counting holds 100: at most 99"
        with pytest.raises(ContextLengthError, match=message) as caught:
            model.generate(range(length))
        assert (caught.value.length, caught.value.limit) == (length, 100)
        assert isinstance(caught.value, ValueError)


def test_what_a_model_does_not_tell_is_not_checked() -> None:
    loaded = Counting()
    loaded.vocab_size = loaded.context_length = None
    assert list(LanguageModel(loaded).generate(range(2000), GenerationOptions(2))) == [2000, 2001]


def test_an_engine_that_fails() -> None:
    loaded = Counting(fails_at=8)
    model = LanguageModel(loaded)
    generation = model.generate([5])
    assert [next(generation), next(generation)] == [6, 7]
    with pytest.raises(GenerationError, match="the engine failed: a kernel failed"):
        next(generation)
    assert (generation.finish_reason, generation.ids) == ("error", [6, 7])
    assert list(model.generate([10], GenerationOptions(1))) == [11]


@pytest.mark.parametrize("end", ["cancel", "close", "with", "del"])
def test_ended_midway(end: str) -> None:
    loaded = Counting()
    model = LanguageModel(loaded)
    generation: Generation | None = model.generate([5])
    assert generation is not None
    assert next(generation) == 6
    if end == "cancel":
        generation.cancel()
        assert loaded.running == 1
        assert list(generation) == []
        assert generation.finish_reason == "cancelled"
    elif end == "close":
        generation.close()
        generation.close()
    elif end == "with":
        with generation:
            pass
    else:
        generation = None
        gc.collect()
    assert loaded.running == 0
    assert list(model.generate([5], GenerationOptions(2))) == [6, 7]


def test_cancelled_before_it_began() -> None:
    loaded = Counting()
    generation = LanguageModel(loaded).generate([5])
    generation.cancel()
    assert list(generation) == []
    assert (generation.finish_reason, loaded.runs) == ("cancelled", 0)


def test_an_interrupt_within_a_step() -> None:
    class Interrupted(Counting):
        def generate(self, *arguments: Any) -> Iterator[int]:
            yield from itertools.islice(super().generate(*arguments), 2)
            raise KeyboardInterrupt

    loaded = Interrupted()
    generation = LanguageModel(loaded).generate([5])
    assert [next(generation), next(generation)] == [6, 7]
    with pytest.raises(KeyboardInterrupt):
        next(generation)
    assert (generation.finish_reason, loaded.running) == ("cancelled", 0)


def test_closed_within_a_step() -> None:
    """As the handler of a signal may: the step that it came into ends the engine."""

    class Closing(Counting):
        def generate(self, *arguments: Any) -> Iterator[int]:
            for new_id in super().generate(*arguments):
                generation.close()
                assert self.running == 1
                yield new_id

    loaded = Closing()
    model = LanguageModel(loaded)
    generation = model.generate([5])
    assert list(generation) == []
    assert generation.finish_reason == "cancelled"
    gc.collect()
    assert loaded.running == 0
    assert list(LanguageModel(Counting()).generate([5], GenerationOptions(1))) == [6]
    other = model.generate([5])
    other.close()
    assert model._turns.take().done()


# -- taking turns ---------------------------------------------------------------------------------------


def test_threads_wait_in_the_order_of_asking() -> None:
    loaded = Counting(pause=0.002)
    model = LanguageModel(loaded)
    order: list[int] = []
    first = model.generate([0], GenerationOptions(50))
    next(first)

    def work(index: int) -> None:
        generation = model.generate([index], GenerationOptions(5))
        assert list(generation) == list(range(index + 1, index + 6))
        order.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(10, 18)]
    for count, thread in enumerate(threads, start=1):
        thread.start()
        while len(model._turns._waiting) < count:
            time.sleep(0.001)
    assert len(list(first)) == 49
    for thread in threads:
        thread.join(10)
    assert order == list(range(10, 18))
    assert loaded.most_running == 1


def test_a_turn_that_is_lost_is_over() -> None:
    """As when Ctrl-C comes between its coming and its being used."""
    turns = Turns()
    lost, waiting_and_lost, waiting = turns.take(), turns.take(), turns.take()
    assert (lost.done(), waiting_and_lost.done(), waiting.done()) == (True, False, False)
    del waiting_and_lost
    del lost
    gc.collect()
    assert waiting.done()
    last = turns.take()
    turns.leave(waiting)
    turns.leave(waiting)
    assert last.done()
    assert not turns.take().done()


def test_who_would_wait_for_itself_is_told() -> None:
    model = LanguageModel(Counting())
    first, second = model.generate([5]), model.generate([50], GenerationOptions(2))
    assert next(first) == 6
    with pytest.raises(GenerationError, match="begun in this thread and has not ended"):
        next(second)
    first.close()
    assert list(second) == [51, 52]

    async def tasks() -> None:
        outer, inner = model.generate([5]), model.generate([6])
        async for _ in outer:
            with pytest.raises(GenerationError, match="begun in this task"):
                await anext(inner)
            with pytest.raises(GenerationError, match="begun in this thread"):
                next(inner)
            break
        await outer.aclose()
        assert [new_id async for new_id in inner][:1] == [7]

    asyncio.run(tasks())


def test_waiting_can_be_cancelled() -> None:
    model = LanguageModel(Counting())
    first = model.generate([5])
    next(first)
    waiting = model.generate([5])
    found: list[list[int]] = []
    thread = threading.Thread(target=lambda: found.append(list(waiting)))
    thread.start()
    while not model._turns._waiting:
        time.sleep(0.001)
    waiting.cancel()
    thread.join(10)
    assert (found, waiting.finish_reason) == ([[]], "cancelled")
    first.close()
    assert list(model.generate([5], GenerationOptions(1))) == [6]


def test_a_task_that_waits_can_be_cancelled() -> None:
    model = LanguageModel(Counting(pause=0.002))

    async def read(generation: Generation) -> list[int]:
        return [new_id async for new_id in generation]

    async def run() -> None:
        first, second, third = (model.generate([index], GenerationOptions(20)) for index in (0, 100, 200))
        tasks = [asyncio.create_task(read(generation)) for generation in (first, second, third)]
        while first.new_tokens < 2:
            await asyncio.sleep(0.001)
        tasks[1].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert results[0] == list(range(1, 21))
        assert isinstance(results[1], asyncio.CancelledError)
        assert results[2] == list(range(201, 221))

    asyncio.run(asyncio.wait_for(run(), 20))
    assert list(model.generate([5], GenerationOptions(1))) == [6]


def test_more_tasks_than_threads() -> None:
    """Those that wait take no thread: the one that runs finds one."""
    model = LanguageModel(Counting())

    async def read(index: int) -> list[int]:
        return [new_id async for new_id in model.generate([index], GenerationOptions(3))]

    async def run() -> list[list[int]]:
        return list(await asyncio.gather(*map(read, range(200))))

    found = asyncio.run(asyncio.wait_for(run(), 60))
    assert found == [[index + 1, index + 2, index + 3] for index in range(200)]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_threads_do_one_generation_runs(seed: int) -> None:
    loaded = Counting()
    model = LanguageModel(loaded)
    failures: list[BaseException] = []

    def work(random: Random) -> None:
        try:
            for _ in range(60):
                start, count = random.randrange(80), random.randrange(1, 12)
                generation = model.generate([start], GenerationOptions(count))
                taken = list(itertools.islice(generation, random.randrange(13)))
                assert taken == list(range(start + 1, start + 1 + count))[: len(taken)]
                end = random.choice(["cancel", "close", "read", "forget", "thread"])
                if end == "cancel":
                    generation.cancel()
                    assert list(generation) == []
                elif end == "read":
                    assert len(taken) + len(list(generation)) == count
                elif end == "thread":
                    closing = threading.Thread(target=generation.close)
                    closing.start()
                    list(generation)
                    closing.join(10)
                elif end == "close":
                    generation.close()
                del generation
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(Random(10 * seed + index),)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert not any(thread.is_alive() for thread in threads)
    assert (loaded.running, loaded.most_running) == (0, 1)


def test_closing_a_model_ends_its_generations() -> None:
    loaded = Counting()
    model = LanguageModel(loaded, "counting")
    running, waiting = model.generate([5]), model.generate([5])
    next(running)
    model.close()
    assert (running.finish_reason, waiting.finish_reason) == ("cancelled", "cancelled")
    assert list(running) == list(waiting) == []
    assert (loaded.running, loaded.is_closed, model.is_closed) == (0, True, True)
    with pytest.raises(GenerationError, match="counting was closed: load it again"):
        model.generate([5])
    model.close()


def test_closing_a_model_within_a_step() -> None:
    """As the handler of a signal may: an engine that works is not taken its memory."""

    class Closing(Counting):
        def generate(self, *arguments: Any) -> Iterator[int]:
            for new_id in super().generate(*arguments):
                model.close()
                was_closed.append(self.is_closed)
                yield new_id

    was_closed: list[bool] = []
    model = LanguageModel(Closing())
    generation = model.generate([5])
    assert list(generation) == []
    assert (generation.finish_reason, model.is_closed, was_closed) == ("cancelled", True, [False])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_process_loads_its_own() -> None:
    """It has copies of the models, and none of the threads that engines wait for."""
    code = """
import os, sys
from bpe_tokenizer.errors import GenerationError
from bpe_tokenizer.inference import InferenceBackend, LoadOptions, ModelCache, loading
from bpe_tokenizer.inference.callbacks import Worker

class Engine:
    vocab_size = context_length = 1000
    def __init__(self): self.worker = Worker()
    def generate(self, ids, options, cancellation):
        run = lambda callback: all(callback(new_id) for new_id in range(1000))
        return self.worker.iterate(run, cancellation)
    def close(self):
        self.worker.call(int)
        self.worker.close()

loading._adapter = lambda *_: Engine()
models = ModelCache()
model = models.load("http://a")
def load_engine(): loading.load("b.gguf", InferenceBackend.CPU_LLAMA_CPP, LoadOptions())
loading._stop_ids = lambda *_: ()
load_engine()
generation = model.generate([1])
next(generation), next(generation)
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
    print(next(generation), model.is_closed)
else:
    try:
        model.generate([1])
    except GenerationError as error:
        print(error)
    generation.close()
    del generation
    model.close()
    print(model.is_closed, next(models.load("http://a").generate([1])))
    try:
        load_engine()
    except GenerationError as error:
        print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stderr.replace("DeprecationWarning", "")) == (0, "")
    told = "http://a was loaded before this process was forked: load it again in here"
    refused = (
        "b.gguf: this process was forked from one that has loaded a model, and engines do not work in it"
    )
    lines = run.stdout.splitlines()
    assert [*lines[:2], *lines[3:]] == [told, "True 0", "2 False"]
    assert lines[2].startswith(refused)


# -- engines that call back -----------------------------------------------------------------------------


def test_an_engine_that_calls_back_keeps_in_step() -> None:
    made: list[int] = []

    def engine(callback: Any) -> None:
        for new_id in range(100):
            made.append(new_id)
            if not callback(new_id):
                break

    worker = Worker()
    ids = worker.iterate(engine, Cancellation())
    assert list(itertools.islice(ids, 5)) == [0, 1, 2, 3, 4]
    time.sleep(0.05)
    assert len(made) <= 7
    ids.close()  # type: ignore[attr-defined]
    assert len(made) <= 7
    assert list(worker.iterate(engine, Cancellation())) == list(range(100))
    worker.close()


def test_an_engine_that_fails_in_its_thread() -> None:
    def engine(callback: Any) -> None:
        callback(1)
        raise ZeroDivisionError

    worker = Worker()
    ids = worker.iterate(engine, Cancellation())
    assert next(ids) == 1
    with pytest.raises(ZeroDivisionError):
        next(ids)
    with pytest.raises(ZeroDivisionError):
        worker.call(lambda: 1 // 0)
    assert worker.call(lambda: 7) == 7
    worker.close()


def test_a_forgotten_worker_ends() -> None:
    worker = Worker()
    thread = worker._thread
    list(worker.iterate(lambda callback: callback(1), Cancellation()))
    del worker
    gc.collect()
    thread.join(5)
    assert not thread.is_alive()


def test_a_program_can_end_midway() -> None:
    code = (
        "from bpe_tokenizer.inference.callbacks import Worker\n"
        "from bpe_tokenizer.inference import Cancellation\n"
        "def engine(callback):\n    while callback(1): pass\n    print('ended')\n"
        "ids = Worker().iterate(engine, Cancellation()); next(ids); print('leaving')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert (run.stdout, run.stderr) == ("leaving\nended\n", "")


# -- the cache ------------------------------------------------------------------------------------------


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Backend, LoadOptions]]:
    """What was loaded, by an engine that needs nothing."""
    calls: list[tuple[str, Backend, LoadOptions]] = []

    def load(path: str, backend: Backend, options: LoadOptions) -> LanguageModel:
        calls.append((path, backend, options))
        time.sleep(0.02)
        if b"broken" in Path(path).read_bytes():
            raise GenerationError("broken")
        return LanguageModel(Counting(), path, backend)

    monkeypatch.setattr(cache_module, "load", load)
    monkeypatch.setattr(Machine, "here", lambda: Machine(libraries=ALL))
    return calls


def gguf(directory: Path, name: str, content: bytes = b"") -> Path:
    path = directory / name
    path.write_bytes(b"GGUF" + content)
    return path


def test_loaded_once(tmp_path: Path, loads: list[Any]) -> None:
    path = gguf(tmp_path, "a.gguf")
    try:
        model = load_model(path)
        assert load_model(str(path)) is model
        assert load_model(tmp_path / "." / "a.gguf", "CPU_LLAMA_CPP") is model
        assert cached_models() == [model]
        assert loads == [(str(path), Backend.CPU_LLAMA_CPP, LoadOptions())]
        assert load_model(path, n_ctx=100) is not model
        assert loads[1][2] == LoadOptions(n_ctx=100)
        assert load_model(path, verbose=True) is model
        assert free_model(path) == 2
        assert model.is_closed
        assert load_model(path) is not model
    finally:
        assert free_models() == 1
    assert cached_models() == []


def test_threads_load_a_model_once(tmp_path: Path, loads: list[Any]) -> None:
    cache, path = ModelCache(), gguf(tmp_path, "a.gguf")
    found: list[LanguageModel] = []
    threads = [threading.Thread(target=lambda: found.append(cache.load(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(loads) == 1
    assert found == [found[0]] * 8


def test_the_least_used_makes_room(tmp_path: Path, loads: list[Any]) -> None:
    cache = ModelCache(2)
    paths = [gguf(tmp_path, f"{name}.gguf") for name in "abc"]
    first, second = cache.load(paths[0]), cache.load(paths[1])
    assert cache.load(paths[0]) is first
    third = cache.load(paths[2])
    assert cache.models() == [first, third]
    # Whoever still has it goes on.
    assert list(second.generate([1], GenerationOptions(1))) == [2]
    assert cache.load(paths[1]) is not second
    assert cache.free(paths[0]) == 0
    assert cache.free_all() == 2


def test_a_file_that_changes_is_loaded_again(tmp_path: Path, loads: list[Any]) -> None:
    cache = ModelCache(2)
    path = gguf(tmp_path, "a.gguf")
    model = cache.load(path)
    gguf(tmp_path, "a.gguf", b"more")
    again = cache.load(path)
    assert again is not model
    assert cache.models() == [again]


def test_a_failure_is_not_kept(tmp_path: Path, loads: list[Any]) -> None:
    cache = ModelCache()
    path = gguf(tmp_path, "a.gguf", b"broken")
    for _ in range(2):
        with pytest.raises(GenerationError, match="broken"):
            cache.load(path)
    assert (len(loads), cache.models(), cache.free_all()) == (2, [], 0)


def test_a_model_that_was_closed_is_loaded_again(tmp_path: Path, loads: list[Any]) -> None:
    cache, path = ModelCache(), gguf(tmp_path, "a.gguf")
    cache.load(path).close()
    assert cache.models() == []
    assert not cache.load(path).is_closed


@settings(max_examples=30)
@given(st.lists(st.sampled_from("abcd"), max_size=12), st.integers(1, 3))
def test_the_cache_is_a_list_of_the_last_used(names: list[str], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache_module, "load", lambda path, *_: LanguageModel(Counting(), path))
        patch.setattr(cache_module, "kind_of", lambda _: ModelKind.SERVER)
        patch.setattr(cache_module, "file_states", lambda _: ())
        cache, expected = ModelCache(size), list[str]()
        for name in names:
            expected = [*(other for other in expected if other != name), name][-size:]
            assert cache.load(f"http://{name}").name == f"http://{name}"
            assert [model.name for model in cache.models()] == [f"http://{other}" for other in expected]


def test_a_cache_of_nothing_is_refused() -> None:
    with pytest.raises(OptionError, match="max_models=0"):
        ModelCache(0)


# -- what a model's files say ends a reply ------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "stop_ids"),
    [
        ({"config": {}}, set()),
        ({"config": {"eos_token_id": 2}}, {2}),
        ({"config": {"text_config": {"eos_token_id": [2, 3]}}}, {2, 3}),
        ({"config": {"eos_token_id": 2}, "generation_config": {"eos_token_id": [7, 8, 9]}}, {7, 8, 9}),
        ({"config": {"eos_token_id": 0}, "generation_config": {"top_k": 50}}, {0}),
        ({"config": {"eos_token_id": "</s>"}, "generation_config": {"eos_token_id": [True, None, 4]}}, {4}),
    ],
)
def test_the_stop_ids_of_a_directory(tmp_path: Path, files: dict[str, Any], stop_ids: set[int]) -> None:
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    assert config_file.read_stop_ids(tmp_path) == stop_ids


def test_the_stop_ids_of_a_gguf_file(tmp_path: Path) -> None:
    pairs = [
        (f"tokenizer.ggml.{name}_token_id", ValueType.UINT32, at) for at, name in enumerate(["eos", "eom"], 5)
    ]
    (tmp_path / "pairs.gguf").write_bytes(write_metadata(pairs))
    assert gguf_file.read_stop_ids(tmp_path / "pairs.gguf") == {5, 6}


# -- tokenizer and model --------------------------------------------------------------------------------


def test_a_tokenizer_is_compared_with_the_models_own(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    directory = tmp_path / "model"
    tokenizer.save(directory)
    (directory / "config.json").write_text('{"vocab_size": 2000}')
    (directory / "model.safetensors").touch()
    assert tokenizer_path(directory) == directory / "tokenizer.json"
    check_match(directory, tokenizer.vocab, 2000)
    with pytest.raises(MismatchError, match=r"id 400 is b'\?', and b'.+' in the model's own tokenizer"):
        check_match(directory, {**tokenizer.vocab, 400: b"?"})
    with pytest.raises(MismatchError, match=r"id 1000 is b'new', and no token in"):
        check_match(directory, {**tokenizer.vocab, 1000: b"new"})
    # A further special token of the model does no harm, a missing ordinary one does.
    check_match(
        directory, {token_id: token for token_id, token in tokenizer.vocab.items() if token_id != 257}
    )
    with pytest.raises(MismatchError, match=r"id 999 is no token, and"):
        check_match(
            directory, {token_id: token for token_id, token in tokenizer.vocab.items() if token_id != 999}
        )
    # A change of its files is seen.
    BPETokenizer().train("other text, other text", 260, verbose=False).save(directory)
    with pytest.raises(MismatchError, match="id 256 is"):
        check_match(directory, tokenizer.vocab)


def test_without_a_tokenizer_of_its_own_there_are_rows(tmp_path: Path) -> None:
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_text("{}")
    (directory / "model.safetensors").touch()
    assert tokenizer_path(directory) is None
    check_match(directory, {0: b"a", 9: b"b"}, 10)
    check_match(directory, {0: b"a", 9: b"b"}, None)
    with pytest.raises(MismatchError, match=r"id 9 \(b'b'\) is not below the model's 9"):
        check_match(directory, {0: b"a", 9: b"b"}, 9)
