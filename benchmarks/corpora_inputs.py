"""Writes the corpora of `python -m benchmarks.corpora`, each in a process that ends.

    python -m benchmarks.corpora_inputs KIND BYTES FILE
    python -m benchmarks.corpora_inputs vocabulary NAME DIRECTORY

The text is that of the fixtures, in documents whose order is shuffled anew for each repetition. The file's
name decides its format: `.jsonl`, `.jsonl.zst`, `.parquet` or `.txt`. In `.txt`, a blank line separates the
documents, and the file is one document for commands that take files of text.
"""

from __future__ import annotations

import argparse
import io
import json
import random
from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.inputs import SEPARATOR, chunks, cut_at_lines, fixture
from benchmarks.vocabularies import prepare

__all__ = ["KINDS", "documents", "mixed_words", "write_corpus"]

_CORPORA = ("books", "code", "multi", "zh")
# The bytes of a document of each kind; a corpus of the kind `single` is one document.
_DOCUMENT_BYTES = {"small": 4_000, "large": 1_000_000, "single": 4_000, "words": 4_000}
KINDS = tuple(_DOCUMENT_BYTES)
# Rows of a Parquet file are written in groups of about so many bytes.
_GROUP_BYTES = 64_000_000
# Of the rare words, this share is new; the others repeat an earlier one.
_NEW_WORDS = 0.62
# Rare words in a document of 4 kB: 2.5 GB then have five million distinct pieces.
_RARE_WORDS = 12


def documents(kind: str, size: int, corpora: Iterable[str] = _CORPORA) -> Iterator[str]:
    """Yield documents of a kind until they have so many bytes.

    Args:
        kind: One of `KINDS`.
        size: UTF-8 bytes of all documents, approximately.
        corpora: Names of fixtures.

    Yields:
        The documents, always the same ones for the same arguments.
    """
    texts = _shuffled(_DOCUMENT_BYTES[kind], corpora)
    if kind == "words":
        texts = mixed_words(texts)
    if kind == "single":
        yield "\n".join(_until(texts, size))
    else:
        yield from _until(texts, size)


def mixed_words(texts: Iterable[str], seed: int = 1) -> Iterator[str]:
    r"""Add rare words to documents: the more text, the more distinct words, by a power law.

    Each added word is new or repeats one of those added before, so that their frequencies follow Simon's
    model of texts ("On a class of skew distribution functions", 1955).

    Args:
        texts: The documents.
        seed: Of the random numbers.

    Yields:
        The documents with a line of rare words at the end.

    >>> [text] = mixed_words(["A text."])
    >>> text.startswith("A text.\n"), len(text.split())
    (True, 14)
    """
    chance = random.Random(seed)
    added = array("I")
    new = count()
    for text in texts:
        words = []
        for _ in range(_RARE_WORDS):
            is_new = not added or chance.random() < _NEW_WORDS
            word = next(new) if is_new else added[int(chance.random() * len(added))]
            added.append(word)
            words.append(_word(word))
        yield f"{text}\n{' '.join(words)}"


_SYLLABLES = [
    start + vowel + end for start in "bdfgklmnprstvz" for vowel in "aeiou" for end in ("", "n", "r", "s")
]


def _word(number: int) -> str:
    """A word that only this number has."""
    # A multiplication by an odd number modulo a power of two is a permutation.
    number = (number + 1) * 2654435761 % (1 << 32)
    syllables = []
    while number:
        number, at = divmod(number, len(_SYLLABLES))
        syllables.append(_SYLLABLES[at])
    return "".join(syllables)


def _shuffled(size: int, corpora: Iterable[str]) -> Iterator[str]:
    """The documents of fixtures, over and over, in a new order each time."""
    every: list[str] = []
    for corpus in corpora:
        text = b"".join(chunks(fixture("corpora", f"{corpus}.txt.xz"))).decode()
        every += cut_at_lines(text.replace(SEPARATOR, "\n"), size)
    chance = random.Random(1)
    while True:
        chance.shuffle(every)
        yield from every


def _until(texts: Iterable[str], size: int) -> Iterator[str]:
    written = 0
    for text in texts:
        yield text
        written += len(text.encode())
        if written >= size:
            return


def write_corpus(texts: Iterable[str], path: Path) -> None:
    """Write documents in the format of the file's name.

    Args:
        texts: The documents.
        path: The file.

    Raises:
        SystemExit: The name ends in no format that is known.
    """
    part = path.with_name(f"{path.name}.part")
    if path.name.endswith(".parquet"):
        _write_parquet(texts, part)
    elif path.name.endswith((".jsonl", ".jsonl.zst")):
        _write(({"text": text} for text in texts), part, path.suffix == ".zst")
    elif path.suffix == ".txt":
        with part.open("w", encoding="utf-8", newline="") as file:
            file.writelines(f"{text}\n\n" for text in texts)
    else:
        raise SystemExit(f"{path}: the format of this name is unknown")
    part.rename(path)


def _write(rows: Iterable[dict[str, str]], path: Path, compress: bool) -> None:
    with ExitStack() as stack:
        file: Any = stack.enter_context(path.open("wb"))
        if compress:
            compressor = import_module("zstandard").ZstdCompressor(threads=2)
            file = stack.enter_context(compressor.stream_writer(file))
        buffered = stack.enter_context(io.BufferedWriter(file, 1 << 20)) if compress else file
        for row in rows:
            buffered.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")


def _write_parquet(texts: Iterable[str], path: Path) -> None:
    pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    schema = pyarrow.schema([("text", pyarrow.large_string())])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        group: list[str] = []
        held = 0
        for text in texts:
            group.append(text)
            held += len(text)
            if held >= _GROUP_BYTES:
                writer.write_table(pyarrow.table({"text": group}, schema=schema))
                group, held = [], 0
        if group:
            writer.write_table(pyarrow.table({"text": group}, schema=schema))


def main() -> None:
    """Write a corpus, or a vocabulary, unless it exists."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=[*KINDS, "vocabulary"])
    parser.add_argument("size", metavar="BYTES|NAME")
    parser.add_argument("path", type=Path, metavar="FILE|DIRECTORY")
    options = parser.parse_args()
    options.path.parent.mkdir(parents=True, exist_ok=True)
    if options.kind == "vocabulary":
        prepare(options.size, options.path)
    elif not options.path.exists():
        write_corpus(documents(options.kind, int(options.size)), options.path)


if __name__ == "__main__":
    main()
