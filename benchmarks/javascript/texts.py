"""Writes the beginnings of the corpora, and the published encodings, for the benchmark in JavaScript."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.inputs import chunks, fixture

from bpe_tokenizer.view.page import published_names

__all__ = ["main"]

_CORPORA = ("books", "code", "multi", "zh")


def main(directory: Path, size: int = 4_000_000) -> None:
    """Write `NAME.txt` for each corpus, of at most `size` bytes, and `published.json`.

    Args:
        directory: Where the files go.
        size: The bytes of each.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "published.json").write_text(json.dumps(published_names()), encoding="utf-8")
    for name in _CORPORA:
        data = bytearray()
        for chunk in chunks(fixture("corpora", f"{name}.txt.xz")):
            data += chunk
            if len(data) >= size:
                break
        # The size may cut a character in two.
        text = bytes(data[:size]).decode("utf-8", "ignore")
        (directory / f"{name}.txt").write_text(text, encoding="utf-8", newline="")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
