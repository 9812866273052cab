"""Broken files, made from sound ones: what a mutator does to bytes, to numbers and to JSON.

Everything is made from a seed, so a failure can be made again.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

__all__ = [
    *("HOSTILE", "INSERTED", "NUMBERS", "VALUES", "break_bytes"),
    *("break_json", "break_numbers", "hopeless"),
]

# A name that sets a terminal's title, turns the text around, begins a line and fills the screen.
HOSTILE = "\x1b]0;x\x07\u202e\n\x9b" + "k" * 20_000

# Not UTF-8, a byte order mark, zero bytes, line ends, quotes, too large a number, a lone surrogate.
INSERTED = (
    *(b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\0\0\0\0", b"\r\n\r\n", b'"', b"{[", b" "),
    *(b"9" * 400, b"-1", b"\\ud800", b"1e999", HOSTILE.encode()),
)

# In the place of a count or a length.
NUMBERS = (0, 1, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63, 2**64 - 1)

# In the place of any value.
VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1.5, 2**31, 2**32 - 1, 2**32, 2**64, 10**400),
    *("", " ", "a", "a b", "\0", "\ufffe", "日本", "(", "(?<a>x)+", HOSTILE),
    *([], {}, [[]], [None], [1, 2, 3]),
    *({"": None}, {"type": "Sequence"}, {"type": "Unheard"}, {HOSTILE: HOSTILE}),
)


def hopeless() -> Iterator[bytes]:
    """What is no tokenizer file in any format."""
    yield from (
        *(b"", b"\0", b"\n", b"{", b"[]", b"null", b"{}"),
        *(b'{"version":"1.0"}', b"\xff\xfe{\0}\0", b"GGUF"),
    )
    yield b"[" * 200_000
    yield b'{"a":' * 200_000
    yield b'{"model":' * 50_000 + b"1" + b"}" * 50_000
    yield bytes(range(256)) * 16
    yield b"a" * 100_000


def break_bytes(data: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """Cut, changed, doubled, swapped and inserted bytes."""
    generator = random.Random(seed)
    # Headers are where the harm is done: half of all changes fall into the first 200 bytes.
    for number in range(count):
        limit = len(data) if number % 2 else min(len(data), 200)
        at = generator.randrange(limit)
        length = generator.choice((1, 1, 2, 8, 100))
        kind = number // 2 % 6
        if kind == 0:
            yield data[:at]
        elif kind == 1:
            yield data[:at] + bytes([data[at] ^ (1 << generator.randrange(8))]) + data[at + 1 :]
        elif kind == 2:
            yield data[:at] + data[at + length :]
        elif kind == 3:
            yield data[: at + length] + data[at:]
        elif kind == 4:
            yield data[:at] + generator.choice(INSERTED) + data[at:]
        else:
            yield data[:at] + generator.randbytes(length) + data[at + length :]


def break_numbers(data: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """Counts and lengths of a binary file that promise more than there is, or nothing."""
    generator = random.Random(seed)
    for number in range(count):
        limit = len(data) if number % 4 == 0 else min(len(data), 400)
        width = generator.choice((1, 4, 8))
        at = generator.randrange(limit)
        value = generator.choice(NUMBERS) % 256**width
        yield data[:at] + value.to_bytes(width, "little") + data[at + width :]


def break_json(document: Any, count: int, seed: int = 0) -> Iterator[bytes]:
    """A value replaced, dropped, doubled or renamed, anywhere; of long lists and objects, a few members."""
    generator = random.Random(seed)
    paths = list(_paths(document))
    for _ in range(count):
        broken = copy.deepcopy(document)
        *parents, last = generator.choice(paths)
        owner = broken
        for key in parents:
            owner = owner[key]
        kind = generator.randrange(6)
        if kind == 0:
            del owner[last]
        elif kind == 1 and isinstance(owner, dict):
            owner[generator.choice(("", "type", f"{last}s", "\0", HOSTILE))] = owner.pop(last)
        elif kind == 1:
            owner.append(owner[last])
        elif kind == 2 and len(owner) > 1:
            other = generator.choice(list(owner) if isinstance(owner, dict) else range(len(owner)))
            owner[last] = copy.deepcopy(owner[other])
        else:
            owner[last] = copy.deepcopy(generator.choice(VALUES))
        yield _dumps(broken)
    yield from _twice(document)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = list(range(len(value)))
    for key in keys if len(keys) <= 12 else [*keys[:3], *keys[254:258], *keys[-3:]]:
        yield (*path, key)
        yield from _paths(value[key], (*path, key))


def _twice(document: Any) -> Iterator[bytes]:
    """Each member of the top stands twice."""
    if isinstance(document, dict):
        for key, value in document.items():
            member = json.dumps(key).encode() + b":" + json.dumps(value).encode()
            yield b"{" + member + b"," + _dumps(document)[1:]


def _dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
