"""The lists of the rows that a run skipped."""

from __future__ import annotations

import json

from bpe_tokenizer.readers import BadRow

__all__ = ["SKIPPED", "skipped_line"]

SKIPPED = "skipped.jsonl"


def skipped_line(name: str, row: BadRow, start: int | None = None) -> bytes:
    r"""Return the line of a row.

    Args:
        name: The name of the file.
        row: The row.
        start: The byte from which the rows of a part of the file are counted, if it is a part.

    >>> skipped_line("a.jsonl", BadRow(0, 3, "is null"))
    b'{"file": "a.jsonl", "row": 3, "problem": "is null"}\n'
    """
    value: dict[str, object] = {"file": name, "row": row.row, "problem": row.problem}
    if start is not None:
        value["start"] = start
    return (json.dumps(value) + "\n").encode()
