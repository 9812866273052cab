"""§6: streams: encode and decode incrementally."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from bpe_tokenizer import DecodingError, StreamDecoder
from shared import heading, library_files, library_tokenizer, refused, show

Item = TypeVar("Item")

TEXT = "We'll see <|im_end|>   cafe\u0301 🙂🙂\n\n\n1234567"


def main() -> None:
    """Stream texts and ids, cut wherever it hurts."""
    heading(6, "Streams")
    a_text_in_chunks()
    a_whole_file()
    ids_one_by_one()
    asyncio.run(waiting())


def a_text_in_chunks() -> None:
    """Cut a text into every chunk size; the ids are those of the whole text."""
    tokenizer = library_tokenizer()
    expected = tokenizer.encode(TEXT, allowed_special="all")
    for size in range(1, len(TEXT) + 1):
        chunks = [TEXT[at : at + size] for at in range(0, len(TEXT), size)]
        assert _joined(tokenizer.encode_streaming(chunks, allowed_special="all")) == expected
    parts = tokenizer.encode_streaming(["We'", "ll see <|im", "_end|>  ", " x"], allowed_special="all")
    show("Ids as soon as they are certain", *parts)


def a_whole_file() -> None:
    """Encode a file while it is read, in chunks of random lengths."""
    tokenizer = library_tokenizer()
    source = max(library_files(), key=lambda path: path.stat().st_size).read_text(encoding="utf-8")
    dice = random.Random(6)
    chunks, at = [], 0
    while at < len(source):
        chunks.append(source[at : at + dice.randint(1, 4000)])
        at += len(chunks[-1])
    ids = _joined(tokenizer.encode_streaming(chunks))
    assert ids == tokenizer.encode(source)
    show(
        f"A file of {len(source):,} characters in {len(chunks)} random chunks", f"{len(ids):,} ids, the same"
    )


def ids_one_by_one() -> None:
    """Turn ids into text one by one; a character comes when its last byte is there."""
    tokenizer = library_tokenizer()
    ids = tokenizer.encode(TEXT)
    decoder = StreamDecoder(tokenizer)
    steps = [decoder.step(token_id) for token_id in ids]
    assert "".join(steps) + decoder.flush() == tokenizer.decode(ids)
    assert list(decoder.decode(ids)) == [text for text in steps if text]
    show("Text as soon as it is whole", "|".join(steps))

    half = tokenizer.encode_bytes("🙂".encode()[:3])
    assert decoder.step(half) == ""
    assert decoder.flush() == "\ufffd"
    strict = StreamDecoder(tokenizer, errors="strict")
    strict.step(half)
    with refused(DecodingError, "The end of a stream inside a character, strictly"):
        strict.flush()


async def waiting() -> None:
    """Do both with what has to be waited for, such as a network's chunks."""
    tokenizer = library_tokenizer()
    ids = [part async for part in tokenizer.encode_streaming_async(_arriving(["We'", "ll ", "see"]))]
    assert _joined(ids) == tokenizer.encode("We'll see")
    texts = [text async for text in StreamDecoder(tokenizer).decode_async(_arriving(_joined(ids)))]
    assert "".join(texts) == "We'll see"
    show("The same in asyncio", ids, texts)


async def _arriving(items: Iterable[Item]) -> AsyncIterator[Item]:
    for item in items:
        await asyncio.sleep(0)
        yield item


def _joined(parts: Iterable[list[int]]) -> list[int]:
    return [token_id for part in parts for token_id in part]


if __name__ == "__main__":
    main()
