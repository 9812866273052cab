"""A model behind a server: vLLM, SGLang, llama-server, and what speaks as vLLM does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bpe_tokenizer.errors import GenerationError, OptionError
from bpe_tokenizer.inference.loaded import Cancellation
from bpe_tokenizer.inference.options import GenerationOptions, LoadOptions
from bpe_tokenizer.inference.servers import llama_server, openai, sglang
from bpe_tokenizer.inference.servers.connection import Address, Json

__all__ = ["Server"]


class Server:
    """A model behind a server, which its list of models tells about: `/v1/models`.

    Args:
        url: Its address; of several models the one whose name follows a `#`, or the first.
        options: `api_key`, `timeout`; the context is the server's.

    Raises:
        GenerationError: It does not answer.
        OptionError: It is no address, or there is no model of this name.
    """

    def __init__(self, url: str, options: LoadOptions) -> None:
        self._address = Address(url, options)
        card = self._card()
        self._model = str(card.get("id", ""))
        self._kind = card.get("owned_by")
        meta = card.get("meta")
        # Only llama-server tells it.
        self.vocab_size = _count(meta.get("n_vocab")) if isinstance(meta, dict) else None
        is_llama_server = self._kind == "llamacpp"
        self.context_length = self._slot_context() if is_llama_server else _count(card.get("max_model_len"))

    def generate(
        self, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
    ) -> Iterator[int]:
        """Yield one id after the other, each as soon as it comes."""
        if self._kind == "llamacpp":
            return llama_server.generate(self._address, ids, options, cancellation)
        if self._kind == "sglang":
            return sglang.generate(self._address, ids, options, cancellation)
        return openai.generate(self._address, self._model, ids, options, cancellation)

    def close(self) -> None:
        """Do nothing: each generation has a connection of its own."""

    def _card(self) -> Json:
        """Return what the server says about the model."""
        cards = self._address.get("/v1/models").get("data")
        if not isinstance(cards, list) or not cards or not all(isinstance(card, dict) for card in cards):
            raise self._address.error("lists no models at /v1/models")
        wanted = self._address.model
        found: Json | None = next((card for card in cards if card.get("id") == wanted or not wanted), None)
        if found is None:
            names = ", ".join(str(card.get("id")) for card in cards)
            raise OptionError(f"{self._address}: has no model {wanted!r}; its models are {names}")
        return found

    def _slot_context(self) -> int | None:
        """Return the context of one of llama-server's slots, which share what it was started with."""
        try:
            settings = self._address.get("/props").get("default_generation_settings")
        except GenerationError:  # it can be told not to answer this
            return None
        return _count(settings.get("n_ctx")) if isinstance(settings, dict) else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None
