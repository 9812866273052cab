"""llama.cpp, through llama-cpp-python: GGUF files on the processor, CUDA, ROCm or Metal.

https://llama-cpp-python.readthedocs.io
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bpe_tokenizer.errors import GenerationError
from bpe_tokenizer.inference.gguf_file import read_sizes
from bpe_tokenizer.inference.loaded import Cancellation
from bpe_tokenizer.inference.options import GenerationOptions, LoadOptions
from bpe_tokenizer.inference.sampling import Sampler

__all__ = ["LlamaCpp"]

# Ids that are evaluated at once: more is hardly faster, and less of a conversation would be kept.
_BATCH = 256


class LlamaCpp:
    """A GGUF file that llama.cpp has loaded.

    What the last prompt has in common with the next, as the turns of a conversation have, is not evaluated
    again. Only whole batches are kept, so that the same prompt is always evaluated in the same pieces, and
    its logits are the same to the last bit.

    Args:
        path: The file; of a model in several files the first.
        options: `n_gpu_layers`, `n_ctx`, `verbose`.

    Raises:
        FormatError: The file is no GGUF.
        GenerationError: llama.cpp cannot load it.
    """

    def __init__(self, path: Path, options: LoadOptions) -> None:
        llama_cpp: Any = import_module("llama_cpp")

        sizes = read_sizes(path)
        limits = [length for length in (options.n_ctx, sizes.context_length) if length]
        try:
            self._llama = llama_cpp.Llama(
                str(path),
                n_gpu_layers=options.n_gpu_layers,
                n_ctx=min(limits, default=0),
                n_batch=_BATCH,
                verbose=options.verbose,
            )
        except Exception as error:
            raise GenerationError(
                f"{path}: llama.cpp cannot load it (verbose=True shows why): {error}"
            ) from error
        self._api = llama_cpp
        self.vocab_size = int(self._llama.n_vocab())
        self.context_length = min([int(self._llama.n_ctx()), *limits])
        # The ids of the whole batches that are in the model's cache.
        self._kept: list[int] = []
        self._can_keep = _can_keep(llama_cpp, self._llama)

    def generate(
        self, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
    ) -> Iterator[int]:
        """Yield one id after the other, each as soon as it is sampled."""
        sampler = Sampler(options)
        if not self._evaluate_prompt(list(ids), cancellation):
            return
        for _ in range(options.max_new_tokens - 1):
            new_id = sampler.draw(self._logits())
            yield new_id
            self._llama.eval([new_id])
        yield sampler.draw(self._logits())

    def close(self) -> None:
        """Free its memory."""
        self._llama.close()

    def _evaluate_prompt(self, ids: list[int], cancellation: Cancellation) -> bool:
        """Evaluate a prompt; returns whether it was not cancelled meanwhile."""
        done = self._common_batches(ids)
        self._kept = []  # until all is evaluated, whatever interrupts it
        if done:
            # What is behind is dropped by the next evaluation.
            self._llama.n_tokens = done
        else:
            self._llama.reset()
        while done < len(ids):
            if cancellation.is_cancelled:
                return False
            self._llama.eval(ids[done : done + _BATCH])
            done += _BATCH
        if self._can_keep:
            self._kept = ids[: len(ids) // _BATCH * _BATCH]
        return True

    def _common_batches(self, ids: list[int]) -> int:
        """Return how many ids of whole batches are evaluated already; the last id never is."""
        common = 0
        while (
            common + _BATCH < len(ids)
            and self._kept[common : common + _BATCH] == ids[common : common + _BATCH]
        ):
            common += _BATCH
        return common

    def _logits(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        pointer = self._api.llama_get_logits_ith(self._llama.ctx, -1)
        logits: np.ndarray[Any, np.dtype[np.float32]] = np.ctypeslib.as_array(pointer, (self.vocab_size,))
        return logits


def _can_keep(api: Any, llama: Any) -> bool:
    """Whether the end of the cache can be dropped: of states and sliding windows it cannot."""
    model = llama.model
    try:
        return not (
            api.llama_model_is_recurrent(model)
            or api.llama_model_is_hybrid(model)
            or api.llama_model_n_swa(model) > 0
        )
    except AttributeError:  # a version that cannot tell
        return False
