"""Divides a corpus into units: the work of one task, with shards for itself."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias
from zlib import crc32

from bpe_tokenizer.corpus.input_list import input_names, listed_inputs
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.readers import Input, ReadOptions, input_kind
from bpe_tokenizer.readers.columns import import_pyarrow
from bpe_tokenizer.readers.inputs import open_stored

__all__ = ["PartKind", "Plan", "Unit", "divide", "part_ranges", "plan_units", "unit_stem"]

PartKind: TypeAlias = Literal["bytes", "groups", "rows"]
_VERSION = 1
_MIN_DIGITS = 5
# Parts of a file: more come from a size without its unit, as in "1" for 1GB.
_MAX_PARTS = 1_000_000


class Unit(NamedTuple):
    """A unit: whole files in sequence, a part of one file, or rows of an engine.

    Args:
        number: The number of the unit, from 0.
        first: Index of its first input.
        inputs: Number of its inputs.
        start: The first byte of a part of a file of lines, or the first row group of a part of a Parquet
            file; None for whole files.
        end: The end of the part: a row belongs to the part in which it starts.
        kind: What `start` and `end` count; None for whole files. `"rows"` are those of a partition of an
            engine, without inputs.
    """

    number: int
    first: int
    inputs: int
    start: int | None = None
    end: int | None = None
    kind: PartKind | None = None


@dataclass(frozen=True)
class Plan:
    """The units of a corpus. They depend on the inputs and the options only, so every process makes the same.

    Args:
        inputs: The files, in order.
        settings: What the contents of the shards depend on.
        unit_bytes: The size of a unit: larger files are divided if their format permits it. None for a run
            without parts.
        units: The units, in order.
    """

    inputs: tuple[Input, ...]
    settings: CorpusSettings
    unit_bytes: int | None
    units: tuple[Unit, ...]

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of everything that the shards depend on."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def names(self) -> list[str]:
        """The name of each input."""
        return input_names(self.inputs)

    def inputs_of(self, unit: Unit) -> tuple[Sequence[Input], Sequence[str]]:
        """Return the inputs of a unit and their names; rows have one, which cannot be opened."""
        if unit.kind == "rows":
            name = f"partition {unit.number}"
            return [Input(name, None, 0, 0, False)], [name]
        its = slice(unit.first, unit.first + unit.inputs)
        return self.inputs[its], self.names[its]

    def stem(self, unit: Unit) -> str:
        """Return the number of a unit in the names of files."""
        return unit_stem(unit.number, len(self.units))

    @property
    def is_regular(self) -> bool:
        """Whether all inputs can be read again: none is standard input or a pipe."""
        return all(each.is_regular for each in self.inputs)

    def stored_bytes(self, unit: Unit) -> int:
        """Return the stored bytes of a unit, for progress."""
        inputs = self.inputs[unit.first : unit.first + unit.inputs]
        size = sum(each.size for each in inputs)
        return size if unit.start is None else size // self._parts[unit.first]

    @cached_property
    def _parts(self) -> Counter[int]:
        """Number of units that a file is divided into, by input."""
        return Counter(unit.first for unit in self.units if unit.start is not None)

    @cached_property
    def data(self) -> bytes:
        """The contents of the plan's file."""
        values = {
            "version": _VERSION,
            "unit_bytes": self.unit_bytes,
            "settings": self.settings.to_json(),
            "inputs": listed_inputs(self.inputs),
            "units": [unit[1:] for unit in self.units],
        }
        return (json.dumps(values, separators=(",", ":")) + "\n").encode()


def unit_stem(number: int, units: int) -> str:
    """Return the number of a unit in the names of files, which sort as the units do.

    >>> unit_stem(7, 10), unit_stem(7, 1_000_000)
    ('00007', '000007')
    """
    digits = max(_MIN_DIGITS, len(str(units - 1)))
    return f"{number:0{digits}d}"


def plan_units(inputs: Sequence[Input], settings: CorpusSettings, unit_bytes: int | None) -> Plan:
    """Divide a corpus into units.

    Small files in sequence are one unit. Some begin a unit wherever they are, so another file changes few of
    the units around it. A large file of lines without compression is divided into ranges of
    bytes, and a large Parquet file into ranges of row groups. Other files are not divided.

    Args:
        inputs: The files, from `find_inputs`.
        settings: What the contents of the shards depend on.
        unit_bytes: The size of a unit in stored bytes. None makes one unit of all files, for a run without
            parts.

    Raises:
        CorpusError: A file cannot be read.
        MissingDependencyError: `pyarrow`, which a Parquet file needs, is not installed.
        OptionError: Standard input or a pipe is an input, or a file would have more than a million units.

    >>> from bpe_tokenizer.tokenizer import BPETokenizer
    >>> settings = CorpusSettings.of(BPETokenizer().train("low lower", 258, verbose=False), append_eos=False)
    >>> files = [Input(name, name, 10, 0) for name in "abcde"]
    >>> [unit.inputs for unit in plan_units(files, settings, 20).units]
    [2, 2, 1]
    """
    if unit_bytes is None:
        return Plan(tuple(inputs), settings, None, (Unit(0, 0, len(inputs)),))
    ranges = partial(part_ranges, options=settings.read, unit_bytes=unit_bytes)
    return Plan(tuple(inputs), settings, unit_bytes, tuple(divide(inputs, unit_bytes, ranges)))


def divide(
    inputs: Sequence[Input],
    unit_bytes: int,
    ranges_of: Callable[[Input], Sequence[tuple[int, int, PartKind]]],
) -> list[Unit]:
    """Return the units of files.

    Args:
        inputs: The files.
        unit_bytes: The size of a unit.
        ranges_of: Returns the parts of a larger file, as `part_ranges`.

    Raises:
        OptionError: Standard input or a pipe is an input.
    """
    if not all(each.is_regular for each in inputs):
        raise OptionError("standard input and pipes cannot be divided into parts; put the corpus into files")
    units: list[Unit] = []
    first = held = 0
    for index, source in enumerate(inputs):
        ranges = [] if source.size <= unit_bytes else ranges_of(source)
        if first < index and (held + source.size > unit_bytes or ranges or _is_border(source, unit_bytes)):
            units.append(Unit(len(units), first, index - first))
            first, held = index, 0
        held += source.size
        if ranges:
            for part in ranges:
                units.append(Unit(len(units), index, 1, *part))
            first, held = index + 1, 0
    if first < len(inputs):
        units.append(Unit(len(units), first, len(inputs) - first))
    return units


def _is_border(source: Input, unit_bytes: int) -> bool:
    """Return whether a file begins a unit, wherever it is.

    A hash of its name and size decides (content-defined chunks). The probability is in proportion to its
    size: there is such a file in every second unit or so.
    """
    name = f"{source.name.replace(os.sep, '/').rpartition('/')[2]} {source.size}"
    return crc32(name.encode("utf-8", errors="surrogatepass")) * 2 * unit_bytes < source.size << 32


def part_ranges(source: Input, options: ReadOptions, unit_bytes: int) -> list[tuple[int, int, PartKind]]:
    """Return the parts of a large file: start, end, and what they count. Empty if it cannot be divided.

    Raises:
        CorpusError: The file cannot be read.
        MissingDependencyError: `pyarrow`, which a Parquet file needs, is not installed.
        OptionError: The file would have more than a million parts.
    """
    kind = input_kind(source, options.input_format)
    if kind == ("parquet", None):
        return [(first, end, "groups") for first, end in _row_groups(source, unit_bytes)]
    if not kind.has_lines(options):
        return []
    count = -(-source.size // unit_bytes)
    if count > _MAX_PARTS:
        raise OptionError(
            f"unit_bytes is {unit_bytes:,}, which makes {count:,} units of {source.name}, more than "
            f"{_MAX_PARTS:,}; say it with its unit, as in '1GB'"
        )
    borders = [source.size * each // count for each in range(count + 1)]
    return [(start, end, "bytes") for start, end in pairwise(borders)]


def _row_groups(source: Input, unit_bytes: int) -> Iterator[tuple[int, int]]:
    pyarrow = import_pyarrow()
    sizes: list[int] = []
    # A broken file is one unit, whose run reports it.
    with suppress(pyarrow.ArrowException, OSError, ValueError), open_stored(source) as stored:
        metadata = pyarrow.parquet.ParquetFile(stored.random_access).metadata
        # Not the stored sizes of the columns: pyarrow 26 ends the process where those are broken.
        sizes = [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]
        unit_bytes = max(unit_bytes * sum(sizes) // max(source.size, 1), 1)
    first = held = 0
    for index, size in enumerate(sizes):
        if index > first and held + size > unit_bytes:
            yield first, index
            first, held = index, 0
        held += size
    if first:
        yield first, len(sizes)
