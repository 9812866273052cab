"""llama-server's own completion endpoint: https://github.com/ggml-org/llama.cpp/tree/master/tools/server.

A streamed answer leaves out ids inside characters of several tokens. So this module requests a few ids at a
time without streaming, which returns all of them. The server's cache keeps the ids it has evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bpe_tokenizer.errors import GenerationError
from bpe_tokenizer.inference.engine_model import Cancellation
from bpe_tokenizer.inference.options import GenerationOptions
from bpe_tokenizer.inference.servers.http_client import HttpClient, Json
from bpe_tokenizer.inference.servers.protocol import ServerProtocol, checked_ids, positive_integer

__all__ = ["PROTOCOL"]

# The most ids in one request. The first requests ask for fewer, so that the first ids arrive soon.
_MAX_REQUEST_IDS = 16


def _generate(
    client: HttpClient,
    _: str,
    ids: Sequence[int],
    options: GenerationOptions,
    cancellation: Cancellation,
) -> Iterator[int]:
    """Yield the ids that continue a prompt.

    The server also stops at the model's own stop ids. It has no option against that which keeps the
    probabilities unchanged.

    Raises:
        GenerationError: The server rejects the request, or sends no ids or too few.
    """
    known = list(ids)
    left, size = options.max_new_tokens, 1
    while left > 0 and not cancellation.is_cancelled:
        asked = min(size, left)
        answer = client.post("/completion", _body(known, asked, len(known) - len(ids), options), cancellation)
        new = checked_ids(client, answer.get("tokens"), "tokens")
        predicted = answer.get("tokens_predicted", len(new))
        if predicted != len(new):
            raise client.error(f"lost ids: {predicted} were generated, and {len(new)} sent")
        has_stopped = answer.get("stop_type") == "eos"
        if has_stopped and new and new[-1] not in options.stop_ids:
            new.pop()  # not part of the answer
        yield from new
        if has_stopped or len(new) < asked:
            return
        known += new
        left -= len(new)
        size = min(2 * size, _MAX_REQUEST_IDS)


def _body(prompt: list[int], count: int, done: int, options: GenerationOptions) -> Json:
    body: Json = {
        "prompt": prompt,
        "n_predict": count,
        "stream": False,
        "return_tokens": True,
        "cache_prompt": True,
        "temperature": 0.0 if options.is_greedy else options.temperature,
        "top_p": options.top_p,
        # These samplers only, in this order.
        "samplers": ["temperature", "top_p"],
        "top_k": 0,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "ignore_eos": False,
    }
    if options.seed is not None:
        # Each request restarts the server's random numbers.
        body["seed"] = (options.seed + done) % 2**32
    return body


def _slot_context(client: HttpClient, _: Json) -> int | None:
    """Return the context length of a slot; the slots share the context that the server was started with."""
    try:
        settings = client.get("/props").get("default_generation_settings")
    except GenerationError:  # the server can be configured to hide it
        return None
    return positive_integer(settings.get("n_ctx")) if isinstance(settings, dict) else None


PROTOCOL = ServerProtocol("llamacpp", _generate, _slot_context)
