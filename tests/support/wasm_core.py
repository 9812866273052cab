"""The page's core on wasmtime, called as `core.js` calls it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["WASM", "Encoded", "TrapError", "WasmCore", "WasmError", "WasmTokenizer"]

WASM = Path(__file__).parents[2] / "page" / "core.wasm"

Numbers = npt.NDArray[np.uint32]


class WasmError(Exception):
    """An error result of the core."""


class TrapError(Exception):
    """The core stopped in the middle of a call."""


class Encoded(NamedTuple):
    """The tokens of a text, in columns, as `core.js` documents them."""

    ids: Numbers
    starts: Numbers
    ends: Numbers
    byte_starts: Numbers
    byte_ends: Numbers
    flags: npt.NDArray[np.uint8]
    pieces: Numbers
    piece_bytes: Numbers


class WasmCore:
    """The compiled module."""

    def __init__(self) -> None:
        import wasmtime

        self._engine = wasmtime.Engine()
        self._module = wasmtime.Module.from_file(self._engine, str(WASM))

    def load_packed(self, data: bytes) -> WasmTokenizer:
        """Load a packed model."""
        return WasmTokenizer(self._engine, self._module, "load_packed", None, data)

    def load_ranks(
        self, data: bytes, patterns: Sequence[str], special_tokens: Mapping[str, int] | None = None
    ) -> WasmTokenizer:
        """Load a rank file."""
        options = {"patterns": patterns, "specialTokens": special_tokens or {}}
        return WasmTokenizer(self._engine, self._module, "load_ranks", options, data)

    def train(self, text: str, **options: Any) -> WasmTokenizer:
        """Train a tokenizer; `pieces` and `merges` have what `core.js` gives."""
        return WasmTokenizer(self._engine, self._module, "train", options, text.encode())


class WasmTokenizer:
    """One instance of the module with a tokenizer."""

    def __init__(
        self, engine: Any, module: Any, call: str, options: Mapping[str, Any] | None, data: bytes
    ) -> None:
        import wasmtime

        self._store = wasmtime.Store(engine)
        exports: Any = wasmtime.Instance(self._store, module, []).exports(self._store)
        self._exports, self._memory = exports, exports["memory"]
        self._exports["start"](self._store)
        sizes = [] if options is None else [self._write(0, json.dumps(options).encode())]
        parts = self._call(call, *sizes, self._write(1, data))
        self.info: dict[str, Any] = json.loads(parts.pop())
        self._parts = parts

    @property
    def pieces(self) -> list[tuple[bytes, int]]:
        """The distinct pieces of a training text, with their counts."""
        offsets, data, counts = _numbers(self._parts[0]).tolist(), self._parts[1], _numbers(self._parts[2])
        ends = zip(pairwise(offsets), counts.tolist(), strict=True)
        return [(data[start:end], count) for (start, end), count in ends]

    @property
    def merges(self) -> list[tuple[int, int, int, int]]:
        """The left id, the right id, the new id and the count of each learned merge."""
        rows = _numbers(self._parts[3]).reshape(-1, 4).tolist()
        return [(left, right, token_id, count) for left, right, token_id, count in rows]

    def _write(self, index: int, data: bytes) -> int:
        address = self._exports["buffer"](self._store, index, len(data)) & 0xFFFFFFFF
        self._memory.write(self._store, data, address)
        return len(data)

    def _special(self, special: bool | Sequence[str]) -> int:
        if isinstance(special, bool):
            return int(special)
        return 2 + self._write(0, json.dumps(list(special)).encode())

    def _call(self, name: str, *numbers: int) -> list[bytes]:
        import wasmtime

        try:
            address = self._exports[name](self._store, *numbers)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            message = self._parts_at(self._exports["trap_message"](self._store))[1][0].decode()
            raise TrapError(message or str(error)) from error
        status, parts = self._parts_at(address)
        if status:
            raise WasmError(parts[0].decode())
        return parts

    def _parts_at(self, address: int) -> tuple[int, list[bytes]]:
        address &= 0xFFFFFFFF
        status, count = _numbers(self._read(address, 8))
        places = _numbers(self._read(address + 8, 8 * int(count))).reshape(-1, 2)
        return int(status), [self._read(int(start), int(size)) for start, size in places]

    def _read(self, address: int, size: int) -> bytes:
        return bytes(self._memory.read(self._store, address, address + size))

    def encode(self, text: str, special: bool | Sequence[str] = False) -> Encoded:
        """Return the tokens of a text without lone surrogates."""
        code = self._special(special)
        units = len(text.encode("utf-16-le")) // 2
        return _encoded(self._call("encode", self._write(1, text.encode()), units, code))

    def ids(self, text: str, special: bool | Sequence[str] = False) -> list[int]:
        """Return the ids of a text."""
        code = self._special(special)
        ids: list[int] = _numbers(self._call("ids", self._write(1, text.encode()), code)[0]).tolist()
        return ids

    def count(self, text: str, special: bool | Sequence[str] = False) -> int:
        """Return the number of ids of a text."""
        code = self._special(special)
        return int(_numbers(self._call("count", self._write(1, text.encode()), code)[0])[0])

    def tokens(self, ids: Sequence[int]) -> list[bytes]:
        """Return the bytes of ids."""
        table = self._call("token_table", self._write(1, np.array(ids, dtype="<u4").tobytes()))
        offsets = _numbers(table[0]).tolist()
        return [table[1][start:end] for start, end in pairwise(offsets)]

    def trace(self, piece: bytes) -> tuple[list[int | None], list[tuple[int, ...]], list[int], bool]:
        """Return the symbols, the merges, the ids, and whether the piece is a token without merging."""
        symbols, merges, ids, is_whole = map(_numbers, self._call("trace", self._write(1, piece)))
        return (
            [None if symbol == 0xFFFFFFFF else symbol for symbol in symbols.tolist()],
            [tuple(row) for row in merges.reshape(-1, 6).tolist()],
            ids.tolist(),
            bool(is_whole[0]),
        )

    def encode_segments(self, segments: Sequence[tuple[str, bool]]) -> tuple[Encoded, list[int]]:
        """Return the tokens of the segments of a chat, and the segment of each."""
        sizes = [[len(text.encode()), trusted] for text, trusted in segments]
        options = json.dumps({"segments": sizes, "source": "", "added": []}).encode()
        data = "".join(text for text, _ in segments).encode()
        *parts, places, _ = self._call("encode_segments", self._write(0, options), self._write(1, data))
        return _encoded(parts), _numbers(places).tolist()


def _numbers(data: bytes) -> Numbers:
    return np.frombuffer(data, dtype="<u4")


def _encoded(parts: list[bytes]) -> Encoded:
    ids, starts, ends, byte_starts, byte_ends = map(_numbers, parts[:5])
    flags = np.frombuffer(parts[5], dtype=np.uint8)
    pieces, piece_bytes = map(_numbers, parts[6:8])
    return Encoded(ids, starts, ends, byte_starts, byte_ends, flags, pieces, piece_bytes)
