"""A typical mistake in each exercise of chapter 7."""

from __future__ import annotations


def decode_ids(ids: list[int], vocab: dict[int, bytes]) -> str:
    return "".join(vocab[token_id].decode("utf-8", "replace") for token_id in ids)  # Each token alone.


def complete_prefix(data: bytes) -> bytes:
    while data and data[-1] >= 0x80:  # Removes complete characters, too.
        data = data[:-1]
    return data


def complete_prefix_2(data: bytes) -> bytes:
    return data.decode("utf-8", "replace").rstrip("\ufffd").encode()  # Removes a U+FFFD of the text, too.


def stream_texts(chunks: list[bytes]) -> list[str]:
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


def cut_ids(ids: list[int], vocab: dict[int, bytes], limit: int) -> list[int]:
    ids = ids[:limit]
    if "\ufffd" in b"".join(vocab[token_id] for token_id in ids).decode("utf-8", "replace"):
        ids = ids[:-1]  # Once is not always enough.
    return ids


def cut_ids_2(ids: list[int], vocab: dict[int, bytes], limit: int) -> list[int]:
    ids = ids[:limit]
    while b"".join(vocab[token_id] for token_id in ids).decode("utf-8", "replace").endswith("\ufffd"):
        ids = ids[:-1]  # Also leaves out a U+FFFD of the text.
    return ids


def spellings(text: str, vocab: dict[int, bytes]) -> list[list[int]]:
    if text == "":
        return [[]]
    for token_id, token in vocab.items():
        if text.startswith(token.decode()):  # Only the first token that fits.
            return [[token_id, *rest] for rest in spellings(text[len(token) :], vocab)]
    return []
