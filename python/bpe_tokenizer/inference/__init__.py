"""Runs language models: token ids in, token ids out, the same on every engine.

`load_model` takes a GGUF file, a model directory or the address of a server, and selects the backend. It
returns a `LanguageModel`, which does not handle tokenizers, templates or text.
"""

from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.detection import choose_backend, detect_best_backend, install_command
from bpe_tokenizer.inference.engine_model import Cancellation, EngineModel
from bpe_tokenizer.inference.engines.registry import backends_for
from bpe_tokenizer.inference.generation import FinishReason, Generation
from bpe_tokenizer.inference.language_model import LanguageModel
from bpe_tokenizer.inference.machine import Machine
from bpe_tokenizer.inference.model_cache import ModelCache, cached_models, free_model, free_models, load_model
from bpe_tokenizer.inference.model_files import ModelKind, kind_of
from bpe_tokenizer.inference.options import GenerationOptions, LoadOptions
from bpe_tokenizer.inference.tokenizer_match import check_match, tokenizer_path

__all__ = [
    "Cancellation",
    "EngineModel",
    "FinishReason",
    "Generation",
    "GenerationOptions",
    "InferenceBackend",
    "LanguageModel",
    "LoadOptions",
    "Machine",
    "ModelCache",
    "ModelKind",
    "backends_for",
    "cached_models",
    "check_match",
    "choose_backend",
    "detect_best_backend",
    "free_model",
    "free_models",
    "install_command",
    "kind_of",
    "load_model",
    "tokenizer_path",
]
