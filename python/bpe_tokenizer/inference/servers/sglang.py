"""SGLang's own generation endpoint, which takes and returns token ids.

https://docs.sglang.ai/basic_usage/native_api.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bpe_tokenizer.inference.engine_model import Cancellation
from bpe_tokenizer.inference.options import GenerationOptions
from bpe_tokenizer.inference.servers.http_client import HttpClient, Json
from bpe_tokenizer.inference.servers.protocol import ServerProtocol, checked_ids, positive_integer

__all__ = ["PROTOCOL"]


def _generate(
    client: HttpClient,
    _: str,
    ids: Sequence[int],
    options: GenerationOptions,
    cancellation: Cancellation,
) -> Iterator[int]:
    """Yield the ids that continue a prompt.

    The seed has an effect only if the server runs with `--enable-deterministic-inference`.

    Raises:
        GenerationError: The server rejects the request, sends no ids or too few, or ends the stream early.
    """
    sampling: Json = {
        "max_new_tokens": options.max_new_tokens,
        "temperature": 0.0 if options.is_greedy else options.temperature,
        "top_p": options.top_p,
        "top_k": -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        # `Generation` stops at the stop ids of the options; the server does not stop by itself.
        "ignore_eos": True,
        "skip_special_tokens": False,
    }
    if options.seed is not None:
        sampling["sampling_seed"] = options.seed
    body: Json = {"input_ids": list(ids), "sampling_params": sampling, "stream": True}
    count = 0
    for event in client.events("/generate", body, cancellation):
        meta = event.get("meta_info")
        meta = meta if isinstance(meta, dict) else {}
        found = checked_ids(client, event.get("output_ids"), "output_ids")
        total = meta.get("completion_tokens")
        if not isinstance(total, int):
            raise client.error("sent no meta_info.completion_tokens")
        # `found` has all ids so far, or only the new ones with --incremental-streaming-output.
        new = total - count
        if new > len(found):
            raise client.error(f"lost ids: {total} were generated, and {count + len(found)} sent")
        if new > 0:
            yield from found[-new:]
            count = total
        if meta.get("finish_reason"):
            return
    raise client.error("broke off before the answer was complete")


PROTOCOL = ServerProtocol("sglang", _generate, lambda _, card: positive_integer(card.get("max_model_len")))
