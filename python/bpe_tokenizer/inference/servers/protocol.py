"""The record of a server's protocol, and the check of the ids that a server sends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from bpe_tokenizer.inference.engine_model import Cancellation
from bpe_tokenizer.inference.options import GenerationOptions
from bpe_tokenizer.inference.servers.http_client import HttpClient, Json

__all__ = ["ServerProtocol", "checked_ids", "positive_integer"]


class ServerProtocol(NamedTuple):
    """How to talk to a kind of server.

    Args:
        owned_by: The server's name in its list of models; "" for servers without a protocol of their own.
        generate: Yields the ids that continue a prompt, for a client, the name of the model, the prompt, the
            options and the cancellation, which closes the connection and so ends the server's work.
        context_length: Returns the context length in ids, for a client and the server's entry for the model;
            None if unknown.
    """

    owned_by: str
    generate: Callable[[HttpClient, str, Sequence[int], GenerationOptions, Cancellation], Iterator[int]]
    context_length: Callable[[HttpClient, Json], int | None]


def positive_integer(value: Any) -> int | None:
    """Return a value if it is a positive integer, else None."""
    return value if type(value) is int and value > 0 else None


def checked_ids(client: HttpClient, found: Any, field: str) -> list[int]:
    """Return the ids that a server sent.

    Args:
        client: The server.
        found: The value of the field.
        field: The name of the field, for errors.

    Raises:
        GenerationError: The field is missing, or is not a list of ids.
    """
    if found is None:
        raise client.error(
            f"sends no token ids ({field} is missing), only text, which cannot be turned back into ids; "
            "vLLM from 0.10.2 on, SGLang and llama-server send them"
        )
    if not isinstance(found, list) or not all(type(item) is int and item >= 0 for item in found):
        raise client.error(f"{field} must be a list of ids, and is {str(found)[:100]}")
    return found
