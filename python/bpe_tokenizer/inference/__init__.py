"""Language models that run: token ids in, token ids out, the same on every engine.

`load_model` takes a GGUF file, a model directory or the address of a server and picks the backend, or takes
the one it is told. What it gives, a `LanguageModel`, knows nothing of tokenizers, templates or text.
"""

from bpe_tokenizer.inference.backend import InferenceBackend, install_command
from bpe_tokenizer.inference.cache import ModelCache, cached_models, free_model, free_models, load_model
from bpe_tokenizer.inference.detection import choose_backend, detect_best_backend
from bpe_tokenizer.inference.generation import FinishReason, Generation
from bpe_tokenizer.inference.language_model import LanguageModel
from bpe_tokenizer.inference.loaded import Cancellation, LoadedModel
from bpe_tokenizer.inference.machine import Machine
from bpe_tokenizer.inference.matching import check_match, tokenizer_path
from bpe_tokenizer.inference.options import GenerationOptions, LoadOptions
from bpe_tokenizer.inference.source import ModelKind, kind_of

__all__ = [
    "Cancellation",
    "FinishReason",
    "Generation",
    "GenerationOptions",
    "InferenceBackend",
    "LanguageModel",
    "LoadOptions",
    "LoadedModel",
    "Machine",
    "ModelCache",
    "ModelKind",
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
