"""The tiny model on every local engine, and the plain computations that its tests compare with."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer.inference import GenerationOptions, InferenceBackend, LanguageModel, ModelCache
from inference.tiny_model import save_directory, save_gguf, tiny_tokenizer

for library in ("torch", "transformers", "llama_cpp", "gguf", "mlx_lm", "openvino_genai"):
    pytest.importorskip(library, reason=f"{library} is not installed; `make test-inference` does it")

__all__ = [
    *("BACKENDS", "GREEDY", "NAMES", "PROMPTS", "Models"),
    *("assert_frequencies", "generate_for_ever", "run_in_threads"),
]

BACKENDS = [
    InferenceBackend.CPU_LLAMA_CPP,
    InferenceBackend.HUGGINGFACE_TRANSFORMERS,
    InferenceBackend.APPLE_MLX,
    InferenceBackend.INTEL_OPENVINO,
]
NAMES = [backend.name for backend in BACKENDS]
GREEDY = GenerationOptions(temperature=0, max_new_tokens=60)
# In each reply to these, the likeliest id leads by a logit of 0.025 or more. Engines differ by a few
# thousandths, and by processor: a smaller lead would make a greedy reply depend on the machine.
PROMPTS = ["x", "def parse(self, arguments):\n    ", "naïve café 日本語 👩‍👩‍👧!", "class Namespace:\n" * 8]


class Models:
    """The tiny model on every backend."""

    def __init__(self, directory: Path) -> None:
        self.tokenizer = tiny_tokenizer()
        self.directory = save_directory(directory / "model", self.tokenizer)
        self.gguf = save_gguf(directory / "model.gguf", self.directory, self.tokenizer)
        self.cache = ModelCache(len(BACKENDS))

    def path(self, backend: InferenceBackend) -> Path:
        is_gguf = backend in (InferenceBackend.CPU_LLAMA_CPP, InferenceBackend.INTEL_OPENVINO)
        return self.gguf if is_gguf else self.directory

    def load(self, backend: InferenceBackend) -> LanguageModel:
        return self.cache.load(self.path(backend), backend)

    @cache  # noqa: B019
    def logits(self, ids: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """The logits of the next id, from Transformers without a cache of keys and values."""
        torch, model = import_module("torch"), self._reference()
        with torch.no_grad():
            return np.asarray(model(torch.tensor([ids])).logits[0, -1])

    def greedy(self, prompt: Sequence[int], count: int) -> list[int]:
        """The expected ids: always the likeliest, each computed from the whole text so far."""
        ids = tuple(prompt)
        for _ in range(count):
            ids = (*ids, self._likeliest(ids))
        return list(ids[len(prompt) :])

    @cache  # noqa: B019
    def _likeliest(self, ids: tuple[int, ...]) -> int:
        return int(self.logits(ids).argmax())

    @cache  # noqa: B019
    def _reference(self) -> Any:
        transformers: Any = import_module("transformers")
        transformers.utils.logging.disable_progress_bar()
        return transformers.AutoModelForCausalLM.from_pretrained(self.directory)


def assert_frequencies(drawn: Counter[int], shares: dict[int, float]) -> None:
    """Pearson's chi-squared test; rare ids count together. Fails by chance less than once in 10**5 times."""
    total = drawn.total()
    rare = {token_id for token_id, share in shares.items() if share * total < 5}
    cells = [(drawn[token_id], share * total) for token_id, share in shares.items() if token_id not in rare]
    if rare:
        cells.append((sum(drawn[i] for i in rare), max(sum(shares[i] for i in rare) * total, 1e-9)))
    cells = [(seen, expected) for seen, expected in cells if expected > 0.5 or seen > 3]
    chi_squared = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    freedom = max(len(cells) - 1, 1)
    assert chi_squared < freedom + 5 * (2 * freedom) ** 0.5 + 8


def run_in_threads(work: Sequence[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    assert not any(thread.is_alive() for thread in threads)


def generate_for_ever(model: LanguageModel, prompt: list[int]) -> None:
    while True:
        list(model.generate(prompt, GREEDY))
