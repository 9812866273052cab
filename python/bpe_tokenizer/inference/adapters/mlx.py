"""MLX, through mlx-lm: model directories with safetensors, on Apple's chips (and, slowly, elsewhere).

https://github.com/ml-explore/mlx-lm
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bpe_tokenizer.errors import GenerationError
from bpe_tokenizer.inference.callbacks import Callback, Worker
from bpe_tokenizer.inference.config_file import positions, smaller, vocab_size
from bpe_tokenizer.inference.loaded import Cancellation
from bpe_tokenizer.inference.options import GenerationOptions, LoadOptions

__all__ = ["Mlx"]


class Mlx:
    """A model directory that MLX has loaded.

    Args:
        path: The directory.
        options: `n_ctx`.

    Raises:
        GenerationError: MLX cannot load it.
    """

    def __init__(self, path: Path, options: LoadOptions) -> None:
        load_model = import_module("mlx_lm.utils").load_model
        # MLX's streams belong to a thread, and who iterates may come from several.
        self._worker = Worker()
        try:
            self._model, config = self._worker.call(lambda: load_model(path))
        except Exception as error:
            self._worker.close()
            raise GenerationError(f"{path}: MLX cannot load it: {error}") from error
        self.vocab_size = vocab_size(config)
        self.context_length = smaller(options.n_ctx, positions(config))

    def generate(
        self, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
    ) -> Iterator[int]:
        """Yield one id after the other, each as soon as it is sampled."""
        return self._worker.iterate(
            lambda callback: self._run(ids, options, callback, cancellation), cancellation
        )

    def close(self) -> None:
        """Free its memory."""
        self._model = None
        self._worker.call(import_module("mlx.core").clear_cache)
        self._worker.close()

    def _run(
        self,
        ids: Sequence[int],
        options: GenerationOptions,
        callback: Callback,
        cancellation: Cancellation,
    ) -> None:
        mx = import_module("mlx.core")

        def check(*_: int) -> None:
            """Is called between pieces of a long prompt."""
            if cancellation.is_cancelled:
                raise _CancelledError

        steps = import_module("mlx_lm.generate").generate_step(
            mx.array(ids),
            self._model,
            max_tokens=options.max_new_tokens,
            sampler=_sampler(mx, options),
            prompt_progress_callback=check,
        )
        try:
            for new_id, _ in steps:
                if not callback(int(new_id)):
                    break
        except _CancelledError:
            pass
        finally:
            steps.close()


class _CancelledError(Exception):
    """A prompt is not wanted any more."""


def _sampler(mx: Any, options: GenerationOptions) -> Callable[[Any], Any]:
    """Return what draws an id: `sampling.Sampler` in MLX's own operations, to run where the model does.

    mlx-lm's `make_sampler` takes top-p before the temperature, and its random numbers from a global state.
    """
    if options.is_greedy:
        return lambda logprobs: mx.argmax(logprobs, axis=-1)
    key = mx.random.key(secrets.randbits(32) if options.seed is None else options.seed)

    def sample(logprobs: Any) -> Any:
        nonlocal key
        key, drawn_with = mx.random.split(key)
        scaled = logprobs.astype(mx.float32)
        scaled = (scaled - mx.max(scaled, axis=-1, keepdims=True)) / options.temperature
        if options.top_p >= 1:
            return mx.random.categorical(scaled, key=drawn_with)
        order = mx.argsort(-scaled, axis=-1)
        likeliest = mx.take_along_axis(scaled, order, axis=-1)
        shares = mx.softmax(likeliest, axis=-1)
        before = mx.cumsum(shares, axis=-1) - shares
        # The first is always kept: nothing is before it.
        kept = mx.where(before < options.top_p, likeliest, -mx.inf)
        at = mx.random.categorical(kept, key=drawn_with)
        return mx.take_along_axis(order, at[:, None], axis=-1)[:, 0]

    return sample
