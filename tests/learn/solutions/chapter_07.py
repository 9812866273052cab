"""Right answers to the exercises of chapter 7."""

from __future__ import annotations

import codecs


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
