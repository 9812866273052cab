"""Wrong answers to the exercises of chapter 15."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bpe_tokenizer.reference import RegexBPETokenizer


def decode_stream(vocab: dict[int, bytes], ids: list[int]) -> list[str]:
    # Each token is decoded separately.
    return [vocab[token].decode("utf-8", errors="replace") for token in ids]


def label_row(ids: list[int], length: int) -> list[int]:
    # The end token is taken for padding, and it is the last id.
    end = ids[-1] if ids else 0
    row = (ids + [end] * length)[:length]
    return [-100 if token == end else token for token in row]


def bits_per_byte(probabilities: list[float], text: str) -> float:
    # Bits per character.
    return -sum(math.log2(probability) for probability in probabilities) / len(text)


def first_difference(encode: Callable[[str], list[int]], recorded: dict[str, list[int]]) -> str | None:
    # Only the number of ids is compared.
    for text, ids in recorded.items():
        if len(encode(text)) != len(ids):
            return text
    return None


def first_difference_2(encode: Callable[[str], list[int]], recorded: dict[str, list[int]]) -> str | None:
    # The order of the ids is not compared.
    for text, ids in recorded.items():
        if sorted(encode(text)) != sorted(ids):
            return text
    return None


def encode_chat(tokenizer: RegexBPETokenizer, messages: list[dict[str, str]]) -> list[int]:
    # One string with all special tokens allowed: a message can end its turn.
    text = "".join(f"<|im_start|>{each['role']}\n{each['content']}<|im_end|>\n" for each in messages)
    return tokenizer.encode(text, allowed_special="all")


def encode_chat_2(tokenizer: RegexBPETokenizer, messages: list[dict[str, str]]) -> list[int]:
    # The role, the line break and the content are one text: line breaks of the content join with it.
    start, end = tokenizer.special_tokens["<|im_start|>"], tokenizer.special_tokens["<|im_end|>"]
    ids: list[int] = []
    for message in messages:
        ids += [start, *tokenizer.encode(f"{message['role']}\n{message['content']}"), end]
        ids += tokenizer.encode("\n")
    return ids
