"""Hugging Face Transformers: model directories with safetensors, on CUDA, ROCm, Metal or the processor.

https://huggingface.co/docs/transformers/main_classes/text_generation
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from bpe_tokenizer.errors import GenerationError
from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.config_file import context_length, min_limit
from bpe_tokenizer.inference.engine_model import Cancellation
from bpe_tokenizer.inference.engine_thread import Callback, EngineThread
from bpe_tokenizer.inference.engines.engine import Engine
from bpe_tokenizer.inference.model_files import ModelKind
from bpe_tokenizer.inference.options import GenerationOptions, LoadOptions
from bpe_tokenizer.inference.sampling import Sampler

__all__ = ["ENGINE", "TransformersModel"]


class TransformersModel:
    """A model directory that Transformers has loaded.

    Args:
        path: The directory.
        options: `n_ctx` and `device`.

    Raises:
        GenerationError: Transformers cannot load it.
    """

    def __init__(self, path: Path, options: LoadOptions) -> None:
        torch: Any = import_module("torch")
        transformers: Any = import_module("transformers")
        with _quiet(transformers):
            try:
                model = transformers.AutoModelForCausalLM.from_pretrained(
                    str(path), dtype="auto", local_files_only=True
                )
                self._model: Any = model.to(options.device or _device(torch)).eval()
            except MemoryError:
                raise
            except Exception as error:
                raise GenerationError(f"{path}: Transformers cannot load it: {error!s:.150}") from error
        # Without the penalties, top-k and stop ids of the model's generation_config.json.
        self._model.generation_config = transformers.GenerationConfig()
        self._thread = EngineThread()
        self._torch = torch
        self._transformers = transformers
        self.vocab_size = int(model.get_input_embeddings().weight.shape[0])
        self.context_length = min_limit(options.n_ctx, context_length(model.config.to_dict()))

    def generate(
        self, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
    ) -> Iterator[int]:
        """Yield each id as soon as it is sampled."""
        return self._thread.iterate(lambda callback: self._run(ids, options, callback), cancellation)

    def close(self) -> None:
        """Free its memory."""
        self._model = None
        self._thread.close()
        if self._torch.cuda.is_available():
            self._torch.cuda.empty_cache()

    def _run(self, ids: Sequence[int], options: GenerationOptions, callback: Callback) -> None:
        sampler = Sampler(options)
        is_stopped = False

        def choose(_: Any, scores: Any) -> Any:
            """Mask all ids but the drawn one, so that the greedy search takes it."""
            nonlocal is_stopped
            new_id = sampler.draw(scores[0].float().cpu().numpy())
            is_stopped = not callback(new_id)
            chosen = self._torch.full_like(scores, -self._torch.inf)
            chosen[0, new_id] = 0
            return chosen

        def stops(input_ids: Any, *_: Any, **__: Any) -> Any:
            return self._torch.full((len(input_ids),), is_stopped, device=input_ids.device)

        prompt = self._torch.tensor([ids], device=self._model.device)
        self._model.generate(
            input_ids=prompt,
            attention_mask=self._torch.ones_like(prompt),
            logits_processor=self._transformers.LogitsProcessorList([choose]),
            stopping_criteria=self._transformers.StoppingCriteriaList([stops]),
            max_new_tokens=options.max_new_tokens,
            do_sample=False,
            num_beams=1,
        )


def _device(torch: Any) -> str:
    if torch.cuda.is_available():  # also ROCm
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Hide its progress bars and warnings while it loads."""
    logging = transformers.utils.logging
    level, shows_progress = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.ERROR)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shows_progress:
            logging.enable_progress_bar()


ENGINE = Engine(
    InferenceBackend.HUGGINGFACE_TRANSFORMERS,
    kinds=(ModelKind.SAFETENSORS,),
    load=lambda path, options: TransformersModel(Path(path), options),
    install_command=lambda _: "pip install torch transformers",
)
