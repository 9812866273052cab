"""What the commands that read a corpus for training have in common."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["MaxMemory", "Normalization", "Special", "Threads", "Weights", "named_files"]


class Normalization(str, Enum):
    """The Unicode normal forms, and none."""

    NFC = "NFC"
    NFD = "NFD"
    NFKC = "NFKC"
    NFKD = "NFKD"
    NONE = "none"

    @property
    def form(self) -> Literal["NFC", "NFD", "NFKC", "NFKD"] | None:
        """The form, as the package takes it."""
        return None if self is Normalization.NONE else self.value


Special = Annotated[
    list[str] | None,
    typer.Option(metavar="TOKEN...", help="Special tokens: documents are cut at them.", show_default=False),
]
Threads = Annotated[
    int | None, typer.Option(metavar="N", help="Threads to work with.", show_default="all processors")
]
Weights = Annotated[
    list[int] | None,
    typer.Option(
        metavar="N...",
        help="How often the text of each file counts, in the order of the files.",
        show_default="1",
    ),
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory to keep to, as in 500MB: the rarest pieces are dropped for it.",
        show_default="all it takes",
    ),
]


@contextmanager
def named_files(corpus: Sequence[str]) -> Iterator[list[Path]]:
    """Name the corpus as files: what is piped in is written to a temporary one, for the core reads files."""
    with tempfile.TemporaryDirectory() as directory:
        piped = Path(directory) / "standard-input"
        if "-" in corpus:
            with piped.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
        yield [piped if name == "-" else Path(name) for name in corpus]
