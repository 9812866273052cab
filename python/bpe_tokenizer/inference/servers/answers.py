"""What is in an answer, checked before it is believed."""

from __future__ import annotations

from typing import Any

from bpe_tokenizer.inference.servers.connection import Address

__all__ = ["checked_ids"]


def checked_ids(address: Address, found: Any, field: str) -> list[int]:
    """Return the ids that a server sent.

    Args:
        address: The server.
        found: What it sent.
        field: Where, for messages.

    Raises:
        GenerationError: It sent none, or something else.
    """
    if found is None:
        raise address.error(
            f"sends no token ids ({field} is missing), only text, which cannot be turned back into ids; "
            "vLLM from 0.10.2 on, SGLang and llama-server send them"
        )
    if not isinstance(found, list) or not all(type(item) is int and item >= 0 for item in found):
        raise address.error(f"{field} must be a list of ids, and is {str(found)[:200]}")
    return found
