"""What a run writes down of its inputs, and how it says that those of another run differ."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from bpe_tokenizer.corpus.checksums import digest
from bpe_tokenizer.errors import shorten
from bpe_tokenizer.readers import Input

__all__ = ["directory_before", "input_names", "inputs_digest", "listed_inputs", "run_changes"]

# Directories that are tried, of a file whose name is everywhere.
_MAX_PLACES = 20


def input_names(inputs: Sequence[Input]) -> list[str]:
    """Return the names of files without the directory that they have in common.

    So the names are the same wherever a machine has the corpus.

    >>> input_names([Input("/data/en/a.txt", None, 1, 1), Input("/data/de/a.txt", None, 1, 1)])
    ['en/a.txt', 'de/a.txt']
    """
    names = [each.name.replace(os.sep, "/") for each in inputs]
    directories = [name.split("/")[:-1] for name in names]
    common = 0
    for level in zip(*directories, strict=False):
        if len(set(level)) > 1:
            break
        common += 1
    return ["/".join(name.split("/")[common:]) for name in names]


def listed_inputs(inputs: Sequence[Input]) -> list[dict[str, Any]]:
    """Return what a run writes down of its inputs, as JSON values."""
    return [
        {"name": name, "size": each.size, "modified": each.modified}
        for name, each in zip(input_names(inputs), inputs, strict=True)
    ]


def inputs_digest(listed: Sequence[Mapping[str, Any]]) -> str:
    """Return the SHA-256 of the `listed_inputs` of a run."""
    return digest([(each["name"], each["size"], each["modified"]) for each in listed])


def _input_changes(earlier: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> str:
    """Return which inputs of a run are not those of an earlier one, for messages.

    Args:
        earlier: The `listed_inputs` of the earlier run.
        now: Those of this run.

    Raises:
        KeyError, TypeError, AttributeError: A list is not one of inputs.
    """
    # Another file may change the directory that all have in common.
    before, before_now = directory_before(earlier, now), directory_before(now, earlier)
    there = {f"{before}{each['name']}": each for each in earlier}
    here = {f"{before_now}{each['name']}": each for each in now}
    kinds = {
        "added": [name for name in here if name not in there],
        "removed": [name for name in there if name not in here],
        "changed": [name for name in here if name in there and _differ(here[name], there[name])],
    }
    said = "; ".join(f"{kind}: {_first(names)}" for kind, names in kinds.items() if names)
    return f"inputs ({said or 'their order'})"


def run_changes(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return which settings of a run are not those of an earlier one, for messages; "" for none.

    Args:
        earlier: The settings of the earlier run, perhaps with the `listed_inputs` as `"inputs"`.
        now: Those of this run.

    >>> run_changes({"dtype": "uint16", "inputs": "a1"}, {"dtype": "uint32", "inputs": "a2"})
    'dtype, inputs'
    """
    differing = [key for key in now if earlier.get(key) != now[key]]
    if "inputs" in differing:
        # A list that is not one of inputs, in a file that was changed or of another version, names none.
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            differing[differing.index("inputs")] = _input_changes(earlier["inputs"], now["inputs"])
    return ", ".join(differing)


def directory_before(inputs: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> str:
    """Return the directory that, before the names of inputs, makes most of them inputs of another run.

    Args:
        inputs: The `listed_inputs` of a run.
        others: Those of the other run.

    Raises:
        KeyError, TypeError, AttributeError: A list is not one of inputs.

    >>> directory_before([{"name": "a.txt", "size": 1}], [{"name": "x/a.txt", "size": 1}, {"name": "y/b"}])
    'x/'
    """
    found = {each["name"]: each for each in others}
    first = inputs[0]["name"] if inputs else ""
    places = (each[: -len(first)] for each in found if each.endswith(f"/{first}"))
    directories = ["", *islice(places, _MAX_PLACES)]

    def common(directory: str) -> int:
        return sum(not _differ(found.get(f"{directory}{each['name']}", {}), each) for each in inputs)

    return str(max(directories, key=common))


def _differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return any(one.get(key) != other.get(key) for key in ("size", "modified"))


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"{shorten(names[0], 40)}{more}"
