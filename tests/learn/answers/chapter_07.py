"""Answers to the exercises of chapter 7: right ones, and typical mistakes."""

from __future__ import annotations

import codecs
from typing import Any


def decode_ids(ids: list[int], vocab: dict[int, bytes]) -> str:
    return b"".join(vocab[token_id] for token_id in ids).decode("utf-8", "replace")


def complete_prefix(data: bytes) -> bytes:
    for end in range(len(data), -1, -1):
        try:
            data[:end].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return data[:end]
    return b""


def stream_texts(chunks: list[bytes]) -> list[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    texts = [decoder.decode(chunk) for chunk in chunks]
    texts.append(decoder.decode(b"", final=True))
    return texts


def cut_ids(ids: list[int], vocab: dict[int, bytes], limit: int) -> list[int]:
    ids = ids[:limit]
    while ids:
        data = b"".join(vocab[token_id] for token_id in ids)
        if complete_prefix(data) == data:
            break
        ids = ids[:-1]
    return ids


def spellings(text: str, vocab: dict[int, bytes]) -> list[list[int]]:
    if text == "":
        return [[]]
    found = []
    for token_id, token in vocab.items():
        if text.startswith(token.decode()):
            for rest in spellings(text[len(token) :], vocab):
                found.append([token_id, *rest])
    return found


def hold_back_chunks(chunks: list[bytes]) -> list[str]:
    texts = []
    rest = b""
    for chunk in chunks:
        rest += chunk
        try:
            texts.append(rest.decode("utf-8"))
            rest = b""
        except UnicodeDecodeError:  # Also holds back the complete characters of the chunk.
            texts.append("")
    return [*texts, "\ufffd" if rest else ""]


def cut_once(ids: list[int], vocab: dict[int, bytes], limit: int) -> list[int]:
    ids = ids[:limit]
    return ids[:-1] if "\ufffd" in decode_ids(ids, vocab) else ids  # Once is not always enough.


def cut_too_much(ids: list[int], vocab: dict[int, bytes], limit: int) -> list[int]:
    ids = ids[:limit]
    while decode_ids(ids, vocab).endswith("\ufffd"):
        ids = ids[:-1]  # Also leaves out a U+FFFD of the text.
    return ids


WRONG: dict[str, list[Any]] = {
    # Each token alone.
    "decode_ids": [lambda ids, vocab: "".join(vocab[each].decode("utf-8", "replace") for each in ids)],
    "complete_prefix": [
        lambda data: data.rstrip(bytes(range(0x80, 0x100))),  # Removes complete characters, too.
        # Removes a U+FFFD of the text, too.
        lambda data: data.decode("utf-8", "replace").rstrip("\ufffd").encode(),
    ],
    "stream_texts": [hold_back_chunks],
    "cut_ids": [cut_once, cut_too_much],
    "spellings": [lambda text, vocab: spellings(text, vocab)[:1]],  # Only the first that fits.
}
