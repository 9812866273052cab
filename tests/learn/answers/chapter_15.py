"""Answers to the exercises of chapter 15: right ones, and typical mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bpe_tokenizer.reference import RegexBPETokenizer


def decode_stream(vocab: dict[int, bytes], ids: list[int]) -> list[str]:
    texts = []
    kept = b""
    for token in ids:
        kept += vocab[token]
        try:
            text, kept = kept.decode("utf-8"), b""
        except UnicodeDecodeError as error:
            text, kept = kept[: error.start].decode("utf-8"), kept[error.start :]
        texts.append(text)
    return texts


def label_row(ids: list[int], length: int) -> list[int]:
    return ids[:length] + [-100] * (length - len(ids))


def bits_per_byte(probabilities: list[float], text: str) -> float:
    bits = -sum(math.log2(probability) for probability in probabilities)
    return bits / len(text.encode("utf-8"))


def first_difference(encode: Callable[[str], list[int]], recorded: dict[str, list[int]]) -> str | None:
    for text, ids in recorded.items():
        if encode(text) != ids:
            return text
    return None


def encode_chat(tokenizer: RegexBPETokenizer, messages: list[dict[str, str]]) -> list[int]:
    start = tokenizer.special_tokens["<|im_start|>"]
    end = tokenizer.special_tokens["<|im_end|>"]
    line = tokenizer.encode("\n")
    ids: list[int] = []
    for message in messages:
        ids += [start, *tokenizer.encode(message["role"]), *line]
        ids += [*tokenizer.encode(message["content"]), end, *line]
    return ids


def mask_the_end_token(ids: list[int], length: int) -> list[int]:
    # The end token is taken for padding, and it is the last id.
    end = ids[-1] if ids else 0
    row = (ids + [end] * length)[:length]
    return [-100 if token == end else token for token in row]


def encode_one_text(tokenizer: RegexBPETokenizer, messages: list[dict[str, str]]) -> list[int]:
    # With all special tokens allowed: a message can end its turn.
    text = "".join(f"<|im_start|>{each['role']}\n{each['content']}<|im_end|>\n" for each in messages)
    return tokenizer.encode(text, allowed_special="all")


def encode_whole_messages(tokenizer: RegexBPETokenizer, messages: list[dict[str, str]]) -> list[int]:
    # The role, the line break and the content are one text: line breaks of the content join with it.
    start, end = tokenizer.special_tokens["<|im_start|>"], tokenizer.special_tokens["<|im_end|>"]
    ids: list[int] = []
    for message in messages:
        ids += [start, *tokenizer.encode(f"{message['role']}\n{message['content']}"), end]
        ids += tokenizer.encode("\n")
    return ids


WRONG: dict[str, list[Any]] = {
    # Each token is decoded separately.
    "decode_stream": [lambda vocab, ids: [vocab[token].decode("utf-8", "replace") for token in ids]],
    "label_row": [mask_the_end_token],
    # Bits per character.
    "bits_per_byte": [lambda shares, text: -sum(math.log2(share) for share in shares) / len(text)],
    "first_difference": [
        # Only the number of ids is compared.
        lambda encode, recorded: first_difference(
            lambda text: recorded[text] if len(encode(text)) == len(recorded[text]) else [-1], recorded
        ),
        # The order of the ids is not compared.
        lambda encode, recorded: first_difference(
            lambda text: sorted(encode(text)), {text: sorted(ids) for text, ids in recorded.items()}
        ),
    ],
    "encode_chat": [encode_one_text, encode_whole_messages],
}
