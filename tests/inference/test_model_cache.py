"""The cache of loaded models."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer.errors import GenerationError, OptionError
from bpe_tokenizer.inference import (
    GenerationOptions,
    InferenceBackend,
    LanguageModel,
    LoadOptions,
    Machine,
    ModelCache,
    ModelKind,
    cached_models,
    free_model,
    free_models,
    load_model,
    model_cache,
)
from counting_model import Counting
from sampling import sample_size

Backend = InferenceBackend
ALL = frozenset({"mlx_lm", "llama_cpp", "openvino_genai", "transformers", "torch"})


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

    monkeypatch.setattr(model_cache, "load", load)
    monkeypatch.setattr(Machine, "here", lambda: Machine(libraries=ALL))
    return calls


def gguf(directory: Path, name: str, content: bytes = b"") -> Path:
    path = directory / name
    path.write_bytes(b"GGUF" + content)
    return path


def test_a_model_that_its_own_thread_loads_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loads: list[Any]
) -> None:
    path, refused = gguf(tmp_path, "a.gguf"), []

    def load(path: str, backend: Backend, _: LoadOptions) -> LanguageModel:  # as a signal handler would
        for call in (load_model, free_model):
            with pytest.raises(GenerationError, match="this thread is loading the model") as error:
                call(path)
            refused.append(error)
        return LanguageModel(Counting(), path, backend)

    monkeypatch.setattr(model_cache, "load", load)
    load_model(path).close()
    assert (len(refused), free_models()) == (2, 0)


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
        thread.join(60)
    assert len(loads) == 1
    assert found == [found[0]] * 8


def test_who_has_a_model_that_makes_room_goes_on(tmp_path: Path, loads: list[Any]) -> None:
    cache = ModelCache(1)
    paths = [gguf(tmp_path, f"{name}.gguf") for name in "ab"]
    first, second = map(cache.load, paths)
    assert (cache.models(), cache.free(paths[0])) == ([second], 0)
    assert list(first.generate([1], GenerationOptions(1))) == [2]


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


@pytest.mark.sampled(1.0)
@settings(max_examples=sample_size(30, 0.1))
@given(st.lists(st.sampled_from("abcd"), max_size=12), st.integers(1, 3))
def test_the_cache_is_a_list_of_the_last_used(names: list[str], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_cache, "load", lambda path, *_: LanguageModel(Counting(), path))
        patch.setattr(model_cache, "kind_of", lambda _: ModelKind.SERVER)
        patch.setattr(model_cache, "file_states", lambda _: ())
        cache, expected = ModelCache(size), list[str]()
        for name in names:
            expected = [*(other for other in expected if other != name), name][-size:]
            assert cache.load(f"http://{name}").name == f"http://{name}"
            assert [model.name for model in cache.models()] == [f"http://{other}" for other in expected]


def test_a_cache_of_nothing_is_refused() -> None:
    with pytest.raises(OptionError, match="max_models is 0"):
        ModelCache(0)
