"""llama.cpp's server, by its own way to complete: https://github.com/ggml-org/llama.cpp/tree/master/tools/server.

A streamed answer of it leaves out ids within characters of several tokens. So we ask for a few ids at a time,
and get them all; what was evaluated before stays in its cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bpe_tokenizer.inference.loaded import Cancellation
from bpe_tokenizer.inference.options import GenerationOptions
from bpe_tokenizer.inference.servers.answers import checked_ids
from bpe_tokenizer.inference.servers.connection import Address, Json

__all__ = ["generate"]

# The most ids that are asked for at once. The first requests ask for fewer, so that the first comes soon.
_MOST = 16


def generate(
    address: Address, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
) -> Iterator[int]:
    """Yield the ids that go on from a prompt.

    The server stops at the model's own stop ids too; there is no way to have it go on that leaves the
    probabilities alone.

    Args:
        address: The server.
        ids: The prompt.
        options: How to generate.
        cancellation: Ends the connection, which ends the server's work.

    Raises:
        GenerationError: The server refuses, sends no ids, or loses some.
    """
    known = list(ids)
    left, size = options.max_new_tokens, 1
    while left > 0 and not cancellation.is_cancelled:
        asked = min(size, left)
        answer = address.post(
            "/completion", _body(known, asked, len(known) - len(ids), options), cancellation
        )
        new = checked_ids(address, answer.get("tokens"), "tokens")
        predicted = answer.get("tokens_predicted", len(new))
        if predicted != len(new):
            raise address.error(f"lost ids: {predicted} were generated, and {len(new)} sent")
        has_stopped = answer.get("stop_type") == "eos"
        if has_stopped and new and new[-1] not in options.stop_ids:
            new.pop()  # no part of the answer
        yield from new
        if has_stopped or len(new) < asked:
            return
        known += new
        left -= len(new)
        size = min(2 * size, _MOST)


def _body(prompt: list[int], count: int, done: int, options: GenerationOptions) -> Json:
    body: Json = {
        "prompt": prompt,
        "n_predict": count,
        "stream": False,
        "return_tokens": True,
        "cache_prompt": True,
        "temperature": 0.0 if options.is_greedy else options.temperature,
        "top_p": options.top_p,
        # In this order, and nothing else.
        "samplers": ["temperature", "top_p"],
        "top_k": 0,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "ignore_eos": False,
    }
    if options.seed is not None:
        # The server's random numbers begin anew with each request.
        body["seed"] = (options.seed + done) % 2**32
    return body
