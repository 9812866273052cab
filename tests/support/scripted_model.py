"""A language model with scripted replies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bpe_tokenizer.inference import Cancellation, GenerationOptions, LanguageModel

__all__ = ["ScriptedModel", "scripted"]


@dataclass
class ScriptedModel:
    """An `inference.EngineModel` with scripted replies; keeps what it receives."""

    script: list[list[int | Exception]]  # the ids of each reply in sequence; an exception is raised
    vocab_size: int | None = None
    context_length: int | None = None
    pause: float = 0.0  # seconds before each id
    prompts: list[list[int]] = field(default_factory=list)
    options: list[GenerationOptions] = field(default_factory=list)
    before_each: Callable[[int], object] = lambda count: None

    def generate(
        self, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
    ) -> Iterator[int]:
        self.prompts.append(list(ids))
        self.options.append(options)
        for count, each in enumerate(self.script[len(self.prompts) - 1]):
            time.sleep(self.pause)
            self.before_each(count)
            if cancellation.is_cancelled:
                return
            if isinstance(each, Exception):
                raise each
            yield each

    def close(self) -> None:
        pass


def scripted(*replies: Sequence[int | Exception], **settings: object) -> tuple[ScriptedModel, LanguageModel]:
    """Return a scripted model, and the `LanguageModel` for it."""
    model = ScriptedModel([list(reply) for reply in replies], **settings)  # type: ignore[arg-type]
    return model, LanguageModel(model, "scripted")
