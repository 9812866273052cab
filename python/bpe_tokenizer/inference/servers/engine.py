"""The record of the servers among the engines."""

from __future__ import annotations

from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.engine_model import EngineModel
from bpe_tokenizer.inference.engines.engine import Engine
from bpe_tokenizer.inference.model_files import ModelKind
from bpe_tokenizer.inference.options import LoadOptions

__all__ = ["ENGINE"]


def _load(url: str, options: LoadOptions) -> EngineModel:
    from bpe_tokenizer.inference.servers.server import ServerModel  # imports http.client and ssl

    return ServerModel(url, options)


ENGINE = Engine(
    InferenceBackend.OPENAI_HTTP,
    kinds=(ModelKind.SERVER,),
    load=_load,
    install_command=lambda _: "",
    is_server=True,
)
