"""MLX, through mlx-lm: model directories with safetensors, on Apple silicon (and slowly on other processors).

https://github.com/ml-explore/mlx-lm
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bpe_tokenizer.errors import GenerationError
from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.config_file import context_length, min_limit, vocab_size
from bpe_tokenizer.inference.engine_model import Cancellation
from bpe_tokenizer.inference.engine_thread import Callback, EngineThread
from bpe_tokenizer.inference.engines.engine import Engine
from bpe_tokenizer.inference.model_files import ModelKind
from bpe_tokenizer.inference.options import GenerationOptions, LoadOptions

__all__ = ["ENGINE", "MlxModel"]


class MlxModel:
    """A model directory that MLX has loaded.

    Args:
        path: The directory.
        options: `n_ctx`.

    Raises:
        GenerationError: MLX cannot load it.
    """

    def __init__(self, path: Path, options: LoadOptions) -> None:
        load_model = import_module("mlx_lm.utils").load_model
        # MLX's streams belong to one thread, but several threads may iterate over the ids.
        self._thread = EngineThread()
        try:
            self._model, config = self._thread.call(lambda: load_model(path))
        except MemoryError:
            raise
        except Exception as error:
            self._thread.close()
            raise GenerationError(f"{path}: MLX cannot load it: {error!s:.150}") from error
        self.vocab_size = vocab_size(config)
        self.context_length = min_limit(options.n_ctx, context_length(config))

    def generate(
        self, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
    ) -> Iterator[int]:
        """Yield each id as soon as it is sampled."""
        return self._thread.iterate(
            lambda callback: self._run(ids, options, callback, cancellation), cancellation
        )

    def close(self) -> None:
        """Free its memory."""
        self._model = None
        self._thread.call(import_module("mlx.core").clear_cache)
        self._thread.close()

    def _run(
        self,
        ids: Sequence[int],
        options: GenerationOptions,
        callback: Callback,
        cancellation: Cancellation,
    ) -> None:
        mx = import_module("mlx.core")

        def check(*_: int) -> None:
            """Stop between two pieces of a long prompt."""
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
    """The generation was cancelled during its prompt."""


def _sampler(mx: Any, options: GenerationOptions) -> Callable[[Any], Any]:
    """Return a function that draws an id: `sampling.Sampler` in MLX's operations, on the model's device.

    mlx-lm's `make_sampler` applies top-p before the temperature, and draws from a global random state.
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
        # The likeliest id is always kept: its sum is 0.
        kept = mx.where(before < options.top_p, likeliest, -mx.inf)
        at = mx.random.categorical(kept, key=drawn_with)
        return mx.take_along_axis(order, at[:, None], axis=-1)[:, 0]

    return sample


ENGINE = Engine(
    InferenceBackend.APPLE_MLX,
    kinds=(ModelKind.SAFETENSORS,),
    load=lambda path, options: MlxModel(Path(path), options),
    install_command=lambda system: f"pip install {'mlx-lm' if system == 'Darwin' else repr('mlx-lm[cpu]')}",
    missing_hardware=lambda machine: "" if machine.is_apple_silicon else "no Apple silicon",
)
