"""The four local engines run for real on a tiny model: the same ids, the same meaning of every option.

`make test-inference` installs them. The model and its tokenizer are made here.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import itertools
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.errors import ContextLengthError, GenerationError, MismatchError
from bpe_tokenizer.formats import registry
from bpe_tokenizer.inference import (
    GenerationOptions,
    InferenceBackend,
    LanguageModel,
    ModelCache,
    check_match,
    tokenizer_path,
)
from bpe_tokenizer.inference.options import LoadOptions
from inference.test_options import plain_nucleus
from inference.tiny_model import CONTEXT, VOCAB_SIZE
from inference.tiny_models import (
    BACKENDS,
    GREEDY,
    NAMES,
    PROMPTS,
    Models,
    assert_frequencies,
    generate_for_ever,
    run_in_threads,
)

pytestmark = pytest.mark.inference


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Models]:
    models = Models(tmp_path_factory.mktemp("models"))
    yield models
    models.cache.free_all()


@pytest.fixture(autouse=True, scope="module")
def computes_in_one_thread() -> Iterator[None]:
    """A tiny model does not need more, and engine threads that wait for a busy core are very slow."""
    torch: Any = import_module("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("multiprocessing.cpu_count", lambda: 1)
        yield
    torch.set_num_threads(threads)


@pytest.fixture(params=BACKENDS, ids=NAMES)
def backend(request: pytest.FixtureRequest) -> InferenceBackend:
    found: InferenceBackend = request.param
    return found


@pytest.fixture
def model(models: Models, backend: InferenceBackend) -> LanguageModel:
    return models.load(backend)


@pytest.fixture
def prompt(models: Models) -> list[int]:
    return models.tokenizer.encode(PROMPTS[1])


@pytest.fixture(autouse=True)
def leaves_no_thread(models: Models) -> Iterator[None]:
    """A loaded model may have a thread; nothing else may."""
    yield
    gc.collect()
    # That of a model that is gone takes a moment to end.
    while sum("inference" in thread.name for thread in threading.enumerate()) > len(models.cache.models()):
        time.sleep(0.01)


@pytest.mark.parametrize("text", PROMPTS)
def test_greedy_ids_are_those_of_a_plain_loop(models: Models, model: LanguageModel, text: str) -> None:
    ids = models.tokenizer.encode(text)
    expected = models.greedy(ids, GREEDY.max_new_tokens)
    generation = model.generate(ids, GREEDY)
    assert list(generation) == expected
    assert (generation.finish_reason, generation.stop_id) == ("length", None)
    assert generation.prompt_tokens == len(ids)
    assert generation.new_tokens == GREEDY.max_new_tokens


def test_it_ends_at_a_stop_id(models: Models, model: LanguageModel, prompt: list[int]) -> None:
    expected = models.greedy(prompt, 30)
    for at in (0, 1, 7, 29):
        stop_id = expected[at]
        first = expected.index(stop_id)
        options = GenerationOptions(
            temperature=0, max_new_tokens=30, stop_ids=frozenset({stop_id, VOCAB_SIZE + 5})
        )
        generation = model.generate(prompt, options)
        assert list(generation) == expected[:first]
        assert (generation.finish_reason, generation.stop_id) == ("stop", stop_id)
        assert generation.new_tokens == first


# -- sampling -------------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_ids_again(model: LanguageModel, prompt: list[int]) -> None:
    def run(seed: int | None, count: int = 30) -> list[int]:
        return list(model.generate(prompt, GenerationOptions(count, 1.0, 1.0, seed)))

    by_seed = {seed: run(seed) for seed in (0, 1, 2, 2**32 - 1)}
    assert len({tuple(ids) for ids in by_seed.values()}) == len(by_seed)
    for seed, ids in by_seed.items():
        assert run(seed) == ids
        assert run(seed, 10) == ids[:10]
    assert run(None) != run(None)


@pytest.mark.parametrize(
    "options", [{"top_p": 1e-6, "temperature": 1.0}, {"top_p": 1.0, "temperature": 1e-4}]
)
def test_next_to_nothing_is_greedy(
    models: Models, model: LanguageModel, prompt: list[int], options: dict[str, float]
) -> None:
    generation = model.generate(prompt, GenerationOptions(20, options["temperature"], options["top_p"]))
    assert list(generation) == models.greedy(prompt, 20)


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (2.0, 0.7), (0.5, 0.95), (3.0, 0.9)], ids=str)
@pytest.mark.parametrize("draws", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_ids_are_as_frequent_as_the_softmax_says(
    models: Models, model: LanguageModel, prompt: list[int], temperature: float, top_p: float, draws: int
) -> None:
    drawn: Counter[int] = Counter()
    for seed in range(draws):
        drawn.update(model.generate(prompt, GenerationOptions(1, temperature, top_p, seed)))
    ids, weights = plain_nucleus(models.logits(tuple(prompt)), temperature, top_p)
    assert drawn.keys() <= set(ids)
    assert_frequencies(drawn, dict(zip(ids, weights, strict=True)))


# -- the ends of a generation ---------------------------------------------------------------------------


def test_cancelled_midway_and_used_again(models: Models, model: LanguageModel, prompt: list[int]) -> None:
    expected = models.greedy(prompt, 60)
    for count in (0, 1, 5, 30):
        generation = model.generate(prompt, GREEDY)
        assert list(itertools.islice(generation, count)) == expected[:count]
        generation.cancel()
        assert list(generation) == []
        assert generation.finish_reason == "cancelled"
        assert generation.ids == expected[:count]
    assert list(model.generate(prompt, GREEDY)) == expected


def test_forgotten_midway(models: Models, model: LanguageModel, prompt: list[int]) -> None:
    for new_id in model.generate(prompt, GREEDY):
        assert new_id == models.greedy(prompt, 1)[0]
        break
    gc.collect()
    assert list(model.generate(prompt, GREEDY)) == models.greedy(prompt, 60)


def test_generations_leave_no_thread_of_the_system(model: LanguageModel, prompt: list[int]) -> None:
    """Engines keep threads of their own for each thread that they are called from."""
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        pytest.skip("only Linux lists the threads of a process here")
    options = GenerationOptions(3, 1.0)
    list(model.generate(prompt, options))
    before = len(list(tasks.iterdir()))
    run_in_threads([lambda: list(model.generate(prompt, options)) for _ in range(20)])
    # Those of Python take a moment to be gone.
    while len(list(tasks.iterdir())) >= before + 10:
        time.sleep(0.01)


def test_an_interrupt_ends_the_reply_alone(models: Models, model: LanguageModel, prompt: list[int]) -> None:
    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for microseconds in (500, 3000, 7000, 15000):
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012
                # Again after a while: an interrupt in a finaliser is lost.
                signal.setitimer(signal.ITIMER_REAL, microseconds / 1e6, 20.0)
                generate_for_ever(model, prompt)
            signal.setitimer(signal.ITIMER_REAL, 0)
            gc.collect()
            assert list(model.generate(prompt, GREEDY)) == models.greedy(prompt, 60)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class SignalStack(ctypes.Structure):
    """`stack_t` of Linux: the memory that signal handlers of a thread run in."""

    _fields_ = (("address", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


def signal_stack() -> tuple[int | None, int]:
    """The address and the size of this thread's."""
    stack = SignalStack()
    assert ctypes.CDLL(None).sigaltstack(None, ctypes.byref(stack)) == 0
    return stack.address, stack.size


@pytest.mark.skipif(sys.platform != "linux", reason="the structure is Linux's")
@pytest.mark.parametrize("closed", [True, False])
def test_the_signals_of_the_program_keep_their_stack(
    models: Models, backend: InferenceBackend, prompt: list[int], closed: bool
) -> None:
    """OpenVINO gives the thread that loads it a stack for signals, and frees it with the model."""
    before = signal_stack()
    for _ in range(2):
        model = ModelCache(1).load(models.path(backend), backend)
        list(model.generate(prompt, GenerationOptions(2, 1.0)))
        assert signal_stack() == before
        if closed:
            model.close()
        del model
        gc.collect()
        assert signal_stack() == before


def test_prompts_around_the_context(models: Models, model: LanguageModel) -> None:
    ids = models.tokenizer.encode("import argparse, textwrap\n" * 100)
    assert (model.context_length, model.vocab_size) == (CONTEXT, VOCAB_SIZE)
    below = model.generate(ids[: CONTEXT - 1], GREEDY)
    assert list(below) == models.greedy(ids[: CONTEXT - 1], 1)
    assert (below.finish_reason, below.max_new_tokens) == ("length", 1)
    for length in (CONTEXT, CONTEXT + 1):
        with pytest.raises(ContextLengthError, match=rf"{length} ids.*holds {CONTEXT}") as caught:
            model.generate(ids[:length], GREEDY)
        assert (caught.value.length, caught.value.limit) == (length, CONTEXT)
    filling = model.generate(ids[: CONTEXT - 30], GREEDY)
    assert list(filling) == models.greedy(ids[: CONTEXT - 30], 30)
    assert filling.finish_reason == "length"


def test_n_ctx_makes_the_context_smaller(models: Models, backend: InferenceBackend) -> None:
    cache = ModelCache()
    model = cache.load(models.path(backend), backend, LoadOptions(n_ctx=40))
    ids = models.tokenizer.encode(PROMPTS[3])
    assert model.context_length == 40
    assert list(model.generate(ids[:30], GREEDY)) == models.greedy(ids[:30], 10)
    with pytest.raises(ContextLengthError):
        model.generate(ids[:40], GREEDY)
    assert cache.load(models.path(backend), backend, LoadOptions(n_ctx=0)).context_length == CONTEXT
    assert cache.free_all() == 2


def test_every_id_can_be_in_a_prompt(models: Models, model: LanguageModel) -> None:
    for ids in (range(0, 250), range(250, 500), range(VOCAB_SIZE - 30, VOCAB_SIZE)):
        assert list(model.generate(ids, GenerationOptions(5, 0))) == models.greedy(list(ids), 5)


# -- sharing --------------------------------------------------------------------------------------------


def test_threads_take_turns(models: Models, model: LanguageModel) -> None:
    prompts = [models.tokenizer.encode(text) for text in PROMPTS]
    results: dict[int, list[list[int]]] = {}

    def work(index: int) -> None:
        results[index] = [list(model.generate(prompts[index], GREEDY)) for _ in range(3)]

    run_in_threads([lambda index=index: work(index) for index in range(len(prompts))])  # type: ignore[misc]
    for index, ids in enumerate(prompts):
        assert results[index] == [models.greedy(ids, 60)] * 3


def test_tasks_take_turns_and_do_not_block_the_loop(models: Models, model: LanguageModel) -> None:
    prompts = [models.tokenizer.encode(text) for text in PROMPTS[:3]]
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async def collect(ids: list[int]) -> list[int]:
        return [new_id async for new_id in model.generate(ids, GREEDY)]

    async def run() -> list[list[int]]:
        ticker = asyncio.create_task(tick())
        found = await asyncio.gather(*map(collect, prompts))
        ticker.cancel()
        return found

    assert asyncio.run(run()) == [models.greedy(ids, 60) for ids in prompts]
    assert ticks > 100


# -- loading --------------------------------------------------------------------------------------------


def test_two_models_and_one_is_freed(models: Models, prompt: list[int]) -> None:
    cache = ModelCache(2)
    first = cache.load(models.gguf, "cpu_llama_cpp")
    second = cache.load(models.directory, "huggingface_transformers")
    assert cache.models() == [first, second]
    assert cache.load(models.gguf, "cpu_llama_cpp") is first
    assert cache.models() == [second, first]
    running = first.generate(prompt, GREEDY)
    assert next(running) == models.greedy(prompt, 1)[0]
    assert cache.free(models.gguf) == 1
    assert list(running) == []
    assert running.finish_reason == "cancelled"
    with pytest.raises(GenerationError, match="closed"):
        first.generate(prompt, GREEDY)
    assert cache.models() == [second]
    assert list(second.generate(prompt, GREEDY)) == models.greedy(prompt, 60)
    again = cache.load(models.gguf, "cpu_llama_cpp")
    assert list(again.generate(prompt, GREEDY)) == models.greedy(prompt, 60)
    assert cache.free_all() == 2


def test_a_model_that_makes_room_goes_on(
    models: Models, prompt: list[int], backend: InferenceBackend
) -> None:
    cache = ModelCache(1)
    running = cache.load(models.path(backend), backend).generate(prompt, GREEDY)
    first = next(running)
    cache.load(models.path(backend), backend, LoadOptions(n_ctx=100))
    gc.collect()
    assert [first, *running] == models.greedy(prompt, 60)
    assert cache.free_all() == 1


def test_nothing_is_printed(
    models: Models, backend: InferenceBackend, prompt: list[int], capfd: pytest.CaptureFixture[str]
) -> None:
    cache = ModelCache()
    model = cache.load(models.path(backend), backend)
    assert list(model.generate(prompt, GREEDY)) == models.greedy(prompt, 60)
    list(model.generate(prompt, GenerationOptions(20)))
    cache.free_all()
    assert capfd.readouterr() == ("", "")


def test_a_broken_model_is_one_error(
    models: Models, backend: InferenceBackend, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = models.path(backend)
    if path.is_dir():
        broken = tmp_path / "broken"
        broken.mkdir()
        for file in path.iterdir():
            data = file.read_bytes()
            (broken / file.name).write_bytes(data[:500] if file.suffix == ".safetensors" else data)
    else:
        broken = tmp_path / "broken.gguf"
        if backend is InferenceBackend.INTEL_OPENVINO:  # reads missing weights at the end as zeros
            models.tokenizer.export(broken, "gguf")
        else:
            broken.write_bytes(path.read_bytes()[:-5000])
    with pytest.raises(GenerationError, match="broken"):
        ModelCache().load(broken, backend)
    assert capfd.readouterr() == ("", "")


def test_an_openvino_directory(models: Models, tmp_path: Path, prompt: list[int]) -> None:
    genai: Any = import_module("openvino_genai")
    shutil.copy(models.gguf, tmp_path)
    genai.LLMPipeline(str(tmp_path / models.gguf.name), "CPU", enable_save_ov_model=True)
    cache = ModelCache()
    model = cache.load(tmp_path)
    assert model.backend is InferenceBackend.INTEL_OPENVINO
    assert (model.vocab_size, model.context_length) == (VOCAB_SIZE, 8192)
    assert list(model.generate(prompt, GREEDY)) == models.greedy(prompt, 60)
    shutil.copy(models.directory / "config.json", tmp_path)
    again = cache.load(tmp_path)
    assert (again.vocab_size, again.context_length) == (VOCAB_SIZE, CONTEXT)
    assert cache.free_all() == 1


@pytest.mark.parametrize(
    ("backend", "device"),
    [(InferenceBackend.INTEL_OPENVINO, "CPU"), (InferenceBackend.HUGGINGFACE_TRANSFORMERS, "cpu")],
)
def test_the_device_is_a_choice(
    backend: InferenceBackend, device: str, models: Models, prompt: list[int]
) -> None:
    cache = ModelCache()
    model = cache.load(models.path(backend), backend, LoadOptions(device=device))
    assert list(model.generate(prompt, GREEDY)) == models.greedy(prompt, 60)
    with pytest.raises(GenerationError, match="cannot load it"):
        cache.load(models.path(backend), backend, LoadOptions(device="abacus"))
    cache.free_all()


def test_llama_cpp_evaluates_the_same_whatever_was_before(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A growing conversation keeps its cache, with the same bits in its logits."""
    monkeypatch.setattr("bpe_tokenizer.inference.engines.llama_cpp._BATCH", 16)
    adapter = import_module("bpe_tokenizer.inference.engines.llama_cpp").LlamaCppModel
    text = models.tokenizer.encode("def parse(self, arguments):\n    return textwrap.dedent(arguments)\n" * 8)
    assert len(text) > 150
    kept = adapter(models.gguf, LoadOptions())
    evaluated: list[int] = []
    evaluate = kept._llama.eval

    def count_and_evaluate(ids: list[int]) -> None:
        evaluated[-1] += len(ids)
        evaluate(ids)

    kept._llama.eval = count_and_evaluate
    cancellation = import_module("bpe_tokenizer.inference").Cancellation()
    options = GenerationOptions(10, 1.0, 1.0, seed=3)
    for length in (20, 40, 90, 90, 33, 32, 31, 150, 16, 17):
        prompt = text[:length] if length != 33 else [*text[:30], 5, 6, 7]
        fresh = adapter(models.gguf, LoadOptions())
        evaluated.append(0)
        assert list(fresh.generate(prompt, options, cancellation)) == list(
            kept.generate(prompt, options, cancellation)
        )
        np.testing.assert_array_equal(fresh._logits(), kept._logits())
        fresh.close()
    # The cached batches of each prompt are not evaluated; 9 generated ids are, each time.
    new = [20, 40 - 16, 90 - 32, 90 - 80, 33 - 16, 32 - 16, 31 - 16, 150 - 16, 16, 17 - 16]
    assert evaluated == [count + 9 for count in new]
    kept.close()


# -- the tokenizer --------------------------------------------------------------------------------------


def test_the_models_own_tokenizer(models: Models, backend: InferenceBackend) -> None:
    path = models.path(backend)
    own = tokenizer_path(path)
    assert own == (models.gguf if path == models.gguf else models.directory)
    tokens = models.tokenizer.vocab
    check_match(path, tokens)
    text = "def main():\n    print('<|eot_id|>')"
    assert own is not None
    assert BPETokenizer.from_model(registry.load(own)).encode(text) == models.tokenizer.encode(text)
    with pytest.raises(MismatchError, match=r"id 300 is .*, and .* in the model's own tokenizer"):
        check_match(path, {**tokens, 300: tokens[301], 301: tokens[300]})


def test_the_models_own_stop_ids(models: Models, model: LanguageModel, backend: InferenceBackend) -> None:
    is_directory = models.path(backend).is_dir()
    assert sorted(model.stop_ids) == (list(range(200)) if is_directory else [models.tokenizer.eos_token_id])
