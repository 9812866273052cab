"""SGLang's own way to generate, which takes and gives token ids.

https://docs.sglang.ai/basic_usage/native_api.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bpe_tokenizer.inference.loaded import Cancellation
from bpe_tokenizer.inference.options import GenerationOptions
from bpe_tokenizer.inference.servers.answers import checked_ids
from bpe_tokenizer.inference.servers.connection import Address, Json

__all__ = ["generate"]


def generate(
    address: Address, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
) -> Iterator[int]:
    """Yield the ids that go on from a prompt.

    Args:
        address: The server.
        ids: The prompt.
        options: How to generate. The seed counts where the server was started with
            `--enable-deterministic-inference`.
        cancellation: Ends the connection, which ends the server's work.

    Raises:
        GenerationError: The server refuses, sends no ids, loses some, or breaks off.
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
        # Nothing stops the server but us, at the stop ids of the options.
        "ignore_eos": True,
        "skip_special_tokens": False,
    }
    if options.seed is not None:
        sampling["sampling_seed"] = options.seed
    body: Json = {"input_ids": list(ids), "sampling_params": sampling, "stream": True}
    count = 0
    for event in address.events("/generate", body, cancellation):
        meta = event.get("meta_info")
        meta = meta if isinstance(meta, dict) else {}
        found = checked_ids(address, event.get("output_ids"), "output_ids")
        total = meta.get("completion_tokens")
        if not isinstance(total, int):
            raise address.error("sent no meta_info.completion_tokens")
        # All ids so far, or with --incremental-streaming-output the new ones.
        new = total - count
        if new > len(found):
            raise address.error(f"lost ids: {total} were generated, and {count + len(found)} sent")
        if new > 0:
            yield from found[-new:]
            count = total
        if meta.get("finish_reason"):
            return
    raise address.error("broke off before the answer was complete")
