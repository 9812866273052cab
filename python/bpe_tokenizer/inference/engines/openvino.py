"""OpenVINO GenAI: F16 GGUF files and OpenVINO model directories, on Intel's processors and GPUs.

https://docs.openvino.ai/2026/openvino-workflow-generative/inference-with-genai.html
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bpe_tokenizer.errors import GenerationError
from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.config_file import context_length, min_limit, read_config, vocab_size
from bpe_tokenizer.inference.engine_model import Cancellation
from bpe_tokenizer.inference.engine_thread import Callback, EngineThread
from bpe_tokenizer.inference.engines.engine import Engine
from bpe_tokenizer.inference.gguf_file import read_sizes
from bpe_tokenizer.inference.model_files import ModelKind
from bpe_tokenizer.inference.options import GenerationOptions, LoadOptions

__all__ = ["ENGINE", "OpenVinoModel"]

# The processor computes in 32 bits. With fewer (the default of the key-value cache is 8) the likeliest ids
# differ from those of the other engines.
_EXACT = {
    "ATTENTION_BACKEND": "SDPA",
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
}


class OpenVinoModel:
    """A model that OpenVINO GenAI has loaded.

    Args:
        path: A GGUF file, or a directory with an openvino_model.xml.
        options: `n_ctx` and `device`.

    Raises:
        FormatError: A GGUF file or config.json is damaged.
        GenerationError: OpenVINO cannot load it.
    """

    def __init__(self, path: Path, options: LoadOptions) -> None:
        # OpenVINO gives the thread that loads a model another stack for signals, and frees it with the model.
        # A thread that lives on, such as the main one, would crash at its next signal.
        self._thread = EngineThread()
        try:
            config = read_config(path) if path.is_dir() else None
            if config is None:
                self.vocab_size, limit = read_sizes(path)
            else:
                self.vocab_size = vocab_size(config) or self._thread.call(lambda: _rows(path))
                limit = context_length(config)
            self.context_length = min_limit(options.n_ctx, limit)
            self._pipeline = self._thread.call(lambda: _load(path, options.device))
        except BaseException:
            self._thread.close()
            raise
        self._free = weakref.finalize(self, self._thread.post, self._pipeline.clear)
        self._free.atexit = False

    def generate(
        self, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
    ) -> Iterator[int]:
        """Yield each id as soon as it is sampled."""
        return self._thread.iterate(lambda callback: self._run(ids, options, callback), cancellation)

    def close(self) -> None:
        """Free its memory."""
        self._free()
        self._thread.close()

    def _run(self, ids: Sequence[int], options: GenerationOptions, callback: Callback) -> None:
        openvino_genai: Any = import_module("openvino_genai")
        status = openvino_genai.StreamingStatus

        class Streamer(openvino_genai.StreamerBase):  # type: ignore[misc]
            def write(self, token: Any) -> Any:
                new_ids = [token] if isinstance(token, int) else token
                goes_on = all(callback(new_id) for new_id in new_ids)
                return status.RUNNING if goes_on else status.CANCEL

            def end(self) -> None:
                pass

        prompt = import_module("openvino").Tensor(np.array([ids], dtype=np.int64))
        self._pipeline[0].generate(prompt, _config(openvino_genai, options), Streamer())


def _load(path: Path, device: str | None) -> list[Any]:
    """Return a list of the pipeline alone: clearing it frees the pipeline in the thread that clears it."""
    core: Any = import_module("openvino").Core()
    has_gpu = any(name.startswith("GPU") for name in core.available_devices)
    device = device or ("GPU" if has_gpu else "CPU")
    settings = _EXACT if device == "CPU" else {}
    try:
        return [import_module("openvino_genai").LLMPipeline(str(path), device, **settings)]
    except MemoryError:
        raise
    except Exception as error:
        raise GenerationError(f"{path}: OpenVINO cannot load it: {error!s:.150}") from error


def _rows(path: Path) -> int | None:
    """Return the number of a model's logits; None if its file does not state it."""
    core: Any = import_module("openvino").Core()
    last = core.read_model(path / "openvino_model.xml").output(0).partial_shape[-1]
    return int(last.get_length()) if last.is_static else None


def _config(openvino_genai: Any, options: GenerationOptions) -> Any:
    """Return a configuration that ignores the model's generation_config.json."""
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = options.max_new_tokens
    config.ignore_eos = True
    config.do_sample = not options.is_greedy
    if config.do_sample:
        config.temperature = options.temperature
        config.top_p = options.top_p
        config.top_k = 2**63 - 1
        config.rng_seed = secrets.randbits(32) if options.seed is None else options.seed
    return config


ENGINE = Engine(
    InferenceBackend.INTEL_OPENVINO,
    kinds=(ModelKind.OPENVINO_IR, ModelKind.GGUF),
    # Few types of weights in a GGUF file.
    partial_kinds=(ModelKind.GGUF,),
    load=lambda path, options: OpenVinoModel(Path(path), options),
    # Not run here: optimum-intel conflicts with Transformers 5.
    conversion='optimum-cli export openvino --task text-generation-with-past --model "{0}" "{0}-openvino"',
    install_command=lambda _: "pip install openvino-genai",
    missing_hardware=lambda machine: "" if machine.has_intel_hardware else "no Intel processor or GPU",
)
