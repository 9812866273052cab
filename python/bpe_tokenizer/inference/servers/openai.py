"""OpenAI's completions with token ids, as vLLM serves them: `return_token_ids`, since version 0.10.2.

https://docs.vllm.ai/en/latest/serving/online_serving/openai_compatible_server/
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bpe_tokenizer.inference.loaded import Cancellation
from bpe_tokenizer.inference.options import GenerationOptions
from bpe_tokenizer.inference.servers.answers import checked_ids
from bpe_tokenizer.inference.servers.connection import Address, Json

__all__ = ["generate"]


def generate(
    address: Address, model: str, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
) -> Iterator[int]:
    """Yield the ids that go on from a prompt.

    Args:
        address: The server.
        model: The model's name there.
        ids: The prompt.
        options: How to generate.
        cancellation: Ends the connection, which ends the server's work.

    Raises:
        GenerationError: The server refuses, sends no ids, or breaks off.
    """
    body: Json = {
        "model": model,
        "prompt": list(ids),
        "stream": True,
        "return_token_ids": True,
        "max_tokens": options.max_new_tokens,
        "temperature": 0.0 if options.is_greedy else options.temperature,
        "top_p": options.top_p,
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        # The model's own stop ids are none; those of the options are.
        "ignore_eos": True,
        "stop_token_ids": sorted(options.stop_ids),
        "skip_special_tokens": False,
    }
    if options.seed is not None:
        body["seed"] = options.seed
    last = None
    for event in address.events("/v1/completions", body, cancellation):
        choices = event.get("choices")
        if not choices:  # the last event may hold nothing but counts
            continue
        choice = choices[0] if isinstance(choices, list) and isinstance(choices[0], dict) else {}
        found = choice.get("token_ids")
        if found is None and not choice.get("text") and choice.get("finish_reason"):
            found = []
        for last in checked_ids(address, found, "choices[0].token_ids"):
            yield last
        if choice.get("finish_reason"):
            stop_id = choice.get("stop_reason")
            if isinstance(stop_id, int) and stop_id != last:
                yield stop_id
            return
    raise address.error("broke off before the answer was complete")
