"""Makes the manifest of a run whose parts are finished."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from bpe_tokenizer.arguments import check_flag, check_integer, check_path
from bpe_tokenizer.atomic import AtomicFile, write_atomically, write_errors
from bpe_tokenizer.corpus.checksums import checksum
from bpe_tokenizer.corpus.input_list import inputs_digest
from bpe_tokenizer.corpus.manifest import MANIFEST, Manifest, count_of, read_json
from bpe_tokenizer.corpus.plan import unit_stem
from bpe_tokenizer.corpus.result import PathLike, TokenizedCorpus
from bpe_tokenizer.corpus.skipped_rows import SKIPPED
from bpe_tokenizer.corpus.unit_directory import PLAN, UnitRecord
from bpe_tokenizer.errors import CorpusError, OptionError

__all__ = ["merge_manifests"]

_SHOWN = 8


def merge_manifests(
    output: PathLike,
    *,
    of: int | None = None,
    verify: bool = False,
) -> TokenizedCorpus:
    """Write the manifest of a run in parts, after all parts are finished.

    It lists the shards of all units in order. Any process may write it, also again: the bytes are the same.

    Args:
        output: The output directory of the parts.
        of: The number of parts, to name the parts that are missing.
        verify: Compare the hashes of all files too, not only their sizes and times.

    Returns:
        The files, with the numbers of documents and tokens.

    Raises:
        CorpusError: A unit is missing or was damaged, or the corpus has no text.
        OptionError: The directory does not hold a run in parts.
        WriteError: The manifest cannot be written.

    `tokenize_corpus` has an example.
    """
    directory = check_path("output", output)
    count = None if of is None else check_integer("of", of, 1)
    check_flag("verify", verify)
    plan, plan_digest = _read_plan(directory)
    records, missing, damaged = _records(directory, len(plan["units"]), plan_digest, verify)
    if missing or damaged:
        raise CorpusError(_unfinished(directory, len(plan["units"]), missing, damaged, count))
    settings = {
        **plan["settings"],
        "unit_bytes": plan["unit_bytes"],
        "inputs": inputs_digest(plan["inputs"]),
    }
    shards = [shard for record in records for shard in record.shards]
    manifest = Manifest(settings, shards, sum(record.skipped for record in records))
    if manifest.tokens == 0:
        raise CorpusError("the corpus is empty: its documents have no text")
    _join_skipped(directory, records)
    write_atomically({directory / MANIFEST: manifest.to_bytes()})
    return TokenizedCorpus.of(directory, manifest, kept=len(shards))


def _read_plan(directory: Path) -> tuple[Any, str]:
    """Return the plan of a directory, and its SHA-256."""
    path = directory / PLAN
    if not os.path.exists(path):  # noqa: PTH110 (False for a name that no file can have)
        raise OptionError(
            f"{directory} holds no {PLAN}, which a run in parts writes (tokenize-corpus --part I --of N)"
        )
    plan = read_json(path)
    try:
        count_of(plan["unit_bytes"])
        list(plan["units"]), list(plan["inputs"]), dict(plan["settings"])
    except (KeyError, TypeError, ValueError):
        raise CorpusError(
            f"{path} is not the plan of a run of this version; write to a new directory"
        ) from None
    return plan, checksum(path)


def _records(
    directory: Path, units: int, plan_digest: str, verify: bool
) -> tuple[list[UnitRecord], list[int], list[tuple[int, str]]]:
    """Return the records of all units, the units without one, and the first damaged file of each unit."""
    records: list[UnitRecord] = []
    missing: list[int] = []
    damaged: list[tuple[int, str]] = []
    for number in range(units):
        path = directory / f"unit-{unit_stem(number, units)}.json"
        record = UnitRecord.read(path, number, plan_digest)
        if record is None:
            missing.append(number)
        else:
            records.append(record)
            broken = record.damaged(path, verify)
            if broken:
                damaged.append((number, broken[0]))
    return records, missing, damaged


def _unfinished(
    directory: Path, units: int, missing: list[int], damaged: list[tuple[int, str]], of: int | None
) -> str:
    """Return the message for units that are missing or damaged."""
    numbers = missing or [number for number, _ in damaged]
    problem = "missing" if missing else f"damaged ({damaged[0][1]} is not as it was written)"
    which = "unit u belongs to part u % N of N"
    if of is not None:
        which = f"these are of the parts {_listed(sorted({number % of for number in numbers}))} of {of}"
    return (
        f"{directory}: {len(numbers)} of {units} units are {problem}: {_listed(numbers)}; run their parts "
        f"again ({which})"
    )


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    return shown if len(numbers) <= _SHOWN else f"{shown}, ..."


def _join_skipped(directory: Path, records: list[UnitRecord]) -> None:
    """Write the list of the skipped rows of all units; without such rows there is none."""
    names = [record.skipped_file[0] for record in records if record.skipped_file is not None]
    path = directory / SKIPPED
    if not names:
        with write_errors(path):
            path.unlink(missing_ok=True)
        return
    with AtomicFile(path) as file, write_errors(path):
        for name in names:
            with (directory / name).open("rb") as lines:
                shutil.copyfileobj(lines, file.stream)
