"""OpenAI's completions API with token ids, as in vLLM since 0.10.2: `return_token_ids`.

https://docs.vllm.ai/en/latest/serving/online_serving/openai_compatible_server/
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bpe_tokenizer.inference.engine_model import Cancellation
from bpe_tokenizer.inference.options import GenerationOptions
from bpe_tokenizer.inference.servers.http_client import HttpClient, Json
from bpe_tokenizer.inference.servers.protocol import ServerProtocol, checked_ids, positive_integer

__all__ = ["PROTOCOL"]


def _generate(
    client: HttpClient, model: str, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
) -> Iterator[int]:
    """Yield the ids that continue a prompt.

    Raises:
        GenerationError: The server rejects the request, sends no ids, or ends the stream too early.
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
        # Only the stop ids of the options end the generation, not the model's own.
        "ignore_eos": True,
        "stop_token_ids": sorted(options.stop_ids),
        "skip_special_tokens": False,
    }
    if options.seed is not None:
        body["seed"] = options.seed
    last = None
    for event in client.events("/v1/completions", body, cancellation):
        choices = event.get("choices")
        if not choices:  # the last event may hold only counts
            continue
        choice = choices[0] if isinstance(choices, list) and isinstance(choices[0], dict) else {}
        found = choice.get("token_ids")
        if found is None and not choice.get("text") and choice.get("finish_reason"):
            found = []
        for last in checked_ids(client, found, "choices[0].token_ids"):
            yield last
        if choice.get("finish_reason"):
            stop_id = choice.get("stop_reason")
            if isinstance(stop_id, int) and stop_id != last:
                yield stop_id
            return
    raise client.error("broke off before the answer was complete")


PROTOCOL = ServerProtocol("", _generate, lambda _, card: positive_integer(card.get("max_model_len")))
