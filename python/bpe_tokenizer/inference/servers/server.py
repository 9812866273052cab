"""A model in a server: vLLM, SGLang, llama-server, or another one with vLLM's protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bpe_tokenizer.errors import OptionError, shorten
from bpe_tokenizer.inference.engine_model import Cancellation
from bpe_tokenizer.inference.options import GenerationOptions, LoadOptions
from bpe_tokenizer.inference.servers import llama_server, openai, sglang
from bpe_tokenizer.inference.servers.http_client import HttpClient, Json
from bpe_tokenizer.inference.servers.protocol import positive_integer

__all__ = ["ServerModel"]

_PROTOCOLS = {protocol.owned_by: protocol for protocol in (llama_server.PROTOCOL, sglang.PROTOCOL)}


class ServerModel:
    """A model in a server. The server's list of models, `/v1/models`, describes it.

    Args:
        url: The server's address. A name after `#` selects one of several models; the default is the first.
        options: `api_key`, `timeout`; the server determines the context length.

    Raises:
        GenerationError: The server does not answer.
        OptionError: The address is invalid, or the server has no model with this name.
    """

    def __init__(self, url: str, options: LoadOptions) -> None:
        self._client = HttpClient(url, options)
        card = self._card()
        self._name = str(card.get("id", ""))
        kind = card.get("owned_by")
        self._protocol = _PROTOCOLS.get(kind, openai.PROTOCOL) if isinstance(kind, str) else openai.PROTOCOL
        meta = card.get("meta")
        # Only llama-server sends the size of the vocabulary.
        self.vocab_size = positive_integer(meta.get("n_vocab")) if isinstance(meta, dict) else None
        self.context_length = self._protocol.context_length(self._client, card)

    def generate(
        self, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
    ) -> Iterator[int]:
        """Yield each id as soon as the server sends it."""
        return self._protocol.generate(self._client, self._name, ids, options, cancellation)

    def close(self) -> None:
        """Do nothing: each generation opens and closes a connection."""

    def _card(self) -> Json:
        """Return the server's entry for the model."""
        cards = self._client.get("/v1/models").get("data")
        if not isinstance(cards, list) or not cards or not all(isinstance(card, dict) for card in cards):
            raise self._client.error("lists no models at /v1/models")
        wanted = self._client.model
        found: Json | None = next((card for card in cards if card.get("id") == wanted or not wanted), None)
        if found is None:
            names = ", ".join(str(card.get("id")) for card in cards)[:150]
            raise OptionError(f"{self._client}: has no model {shorten(wanted)}; its models are {names}")
        return found
