"""A small language model that is trained on the first lines of Python's library.

It shows all that `bpe_tokenizer.inference` asks of a model: ids in, ids out.
"""

from __future__ import annotations

import ast
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from bpe_tokenizer.inference import Cancellation, EngineModel, GenerationOptions, LanguageModel
from bpe_tokenizer.inference.sampling import Sampler
from shared import library_files, library_tokenizer

__all__ = ["NextIds", "asked", "expert", "first_lines"]


class NextIds:
    """An n-gram model with backoff: it predicts the next id from the longest known sequence of last ids.

    It implements the protocol `bpe_tokenizer.inference.EngineModel`, like the model of an engine.
    """

    longest = 24

    def __init__(self, rows: Sequence[Sequence[int]], vocab_size: int, context_length: int) -> None:
        self.vocab_size = vocab_size
        self.context_length = context_length
        self._followers: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for row in rows:
            for at in range(1, len(row)):
                for length in range(min(at, self.longest) + 1):
                    self._followers[tuple(row[at - length : at])][row[at]] += 1

    def generate(
        self, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
    ) -> Iterator[int]:
        """Yield ids in sequence."""
        sampler = Sampler(options)
        context = list(ids)
        while not cancellation.is_cancelled:
            context.append(sampler.draw(self._logits(context)))
            yield context[-1]

    def close(self) -> None:
        """Release the counts."""
        self._followers.clear()

    def _logits(self, context: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        known = next(
            tail
            for length in range(min(self.longest, len(context)), -1, -1)
            if (tail := tuple(context[len(context) - length :])) in self._followers
        )
        logits = np.full(self.vocab_size, -30.0)
        for token_id, count in self._followers[known].items():
            logits[token_id] = math.log(count)
        return logits


@lru_cache
def first_lines() -> dict[str, str]:
    """Return the first line of the documentation of some modules."""
    found = {}
    for path in library_files()[:80]:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        if text and text.strip():
            found[path.stem] = text.strip().splitlines()[0]
    return found


def asked(module: str) -> list[dict[str, str]]:
    """Return a conversation that asks about a module."""
    return [{"role": "user", "content": f"What is {module}?"}]


def expert() -> LanguageModel:
    """Return a model that describes the library's modules."""
    tokenizer = library_tokenizer()
    talks = [[*asked(name), {"role": "assistant", "content": text}] for name, text in first_lines().items()]
    rows = [example["input_ids"] for example in tokenizer.training_examples(talks, "chatml")]
    loaded: EngineModel = NextIds(rows, tokenizer.n_vocab, context_length=200)
    return LanguageModel(loaded, "library expert")
