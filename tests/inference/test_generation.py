"""A generation from its first id to its end, and the end of its model."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer.errors import ArgumentTypeError, ContextLengthError, GenerationError, OptionError
from bpe_tokenizer.inference import Generation, GenerationOptions, LanguageModel
from counting_model import Counting


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
    assert model._fair_lock.acquire().done()


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
import dataclasses, os, sys
from bpe_tokenizer.errors import GenerationError
from bpe_tokenizer.inference import InferenceBackend, LoadOptions, ModelCache, loading
from bpe_tokenizer.inference.engines import registry
from bpe_tokenizer.inference.engine_thread import EngineThread

class Engine:
    vocab_size = context_length = 1000
    def __init__(self): self.thread = EngineThread()
    def generate(self, ids, options, cancellation):
        run = lambda callback: all(callback(new_id) for new_id in range(1000))
        return self.thread.iterate(run, cancellation)
    def close(self):
        self.thread.call(int)
        self.thread.close()

for backend, record in registry.ENGINES.items():
    registry.ENGINES[backend] = dataclasses.replace(record, load=lambda *_: Engine())
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
    # Python 3.12 and later warn of forks beside threads.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    told = "http://a was loaded before this process was forked: load it again in here"
    refused = (
        "b.gguf: this process was forked from one that has loaded a model, and engines do not work in it"
    )
    lines = run.stdout.splitlines()
    assert [*lines[:2], *lines[3:]] == [told, "True 0", "2 False"]
    assert lines[2].startswith(refused)
