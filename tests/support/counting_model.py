"""A language model that counts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from bpe_tokenizer.inference import Cancellation, GenerationOptions

__all__ = ["Counting"]


class Counting:
    """A model that counts on from the last id, and records its use."""

    def __init__(self, pause: float = 0.0, fails_at: int | None = None) -> None:
        self.vocab_size: int | None = 1000
        self.context_length: int | None = 100
        self.pause, self.fails_at = pause, fails_at
        self.runs = self.running = self.most_running = 0
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
