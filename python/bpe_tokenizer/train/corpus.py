"""Corpora in any form go into a counter of pieces."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeAlias, cast

from bpe_tokenizer import _core
from bpe_tokenizer.errors import ArgumentTypeError, CorpusError, OptionError, shorten
from bpe_tokenizer.train.progress import ProgressBar

__all__ = [
    "START",
    "Corpus",
    "Position",
    "checked_weight",
    "checked_weights",
    "count_corpus",
    "count_files",
    "counter_memory",
    "files_of",
    "memory_bytes",
]

Document: TypeAlias = str | bytes
Corpus: TypeAlias = Document | os.PathLike[str] | Iterable[Document] | Iterable[os.PathLike[str]]
# How far a list of files was counted: the number of a file, and a byte of it.
Position: TypeAlias = tuple[int, int]
START: Position = (0, 0)

# Documents go to the core in batches of about this many characters, files in steps of this many bytes. What
# is dropped for `max_memory` depends on the steps, so they are the same in every run.
_BATCH_CHARACTERS = 4_000_000
_STEP_BYTES = 64 << 20
# Longer than any path; no text of this length is looked up in the file system.
_LONGEST_PATH = 4096
_FILE_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}")

_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_MEMORY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?b)?\s*", re.IGNORECASE)
# What Python, the libraries and the buffers take; and what is worth it at all.
_OTHER_MEMORY = 64 * 10**6
_LEAST_MEMORY = 100 * 10**6


def memory_bytes(max_memory: int | str) -> int:
    """Return a limit of memory in bytes.

    Args:
        max_memory: Bytes, or a text like `"500MB"` or `"2GiB"`.

    Raises:
        ArgumentTypeError: It is something else.
        OptionError: It is not such a text, or less than 100 MB.

    >>> memory_bytes("1.5GB")
    1500000000
    """
    if isinstance(max_memory, bool) or not isinstance(max_memory, int | str):
        raise ArgumentTypeError(f"max_memory must be an int or a str, not {type(max_memory).__name__}")
    if isinstance(max_memory, str):
        match = _MEMORY.fullmatch(max_memory)
        if match is None:
            raise OptionError(f"max_memory is {shorten(max_memory)}; say it as '500MB', '2GB' or in bytes")
        max_memory = int(float(match[1]) * _UNITS[(match[2] or "").lower()])
    if max_memory < _LEAST_MEMORY:
        raise OptionError(
            f"max_memory is {max_memory:,} bytes; give it at least 100MB, half of which Python takes"
        )
    return max_memory


def counter_memory(max_memory: int | str | None) -> int | None:
    """Return the bytes that the pieces may take, where a whole process may take so many."""
    return None if max_memory is None else memory_bytes(max_memory) - _OTHER_MEMORY


def checked_weight(weight: object) -> int:
    """Return the weight of a source, which is a positive `int`.

    Raises:
        ArgumentTypeError: It is no `int`.
        OptionError: It is 0 or less, or more than 64 bits.
    """
    if isinstance(weight, bool) or not isinstance(weight, int):
        raise ArgumentTypeError(
            f"a weight must be an int, not {type(weight).__name__}, so that counts are exact; for 0.7 to 0.3 "
            "say 7 and 3"
        )
    if not 0 < weight < 2**64:
        raise OptionError(f"a weight is {weight}; it must be from 1 to 2**64 - 1")
    return weight


def checked_weights(weights: Iterable[int] | None, sources: int) -> list[int]:
    """Return a weight for each source, 1 by default.

    Raises:
        ArgumentTypeError: One is no `int`.
        OptionError: There are more or fewer than sources, or one is out of range.
    """
    if weights is None:
        return [1] * sources
    checked = [checked_weight(weight) for weight in weights]
    if len(checked) != sources:
        raise OptionError(f"there are {len(checked)} weights for {sources} files: give one each")
    return checked


def files_of(corpus: Corpus) -> list[Path] | None:
    """Return the files that a corpus names, or None where it is text or is read only once."""
    if isinstance(corpus, str):
        path = _named_file(corpus)
        return None if path is None else [path]
    if isinstance(corpus, os.PathLike):
        return [Path(corpus)]
    is_list = isinstance(corpus, Sequence) and not isinstance(corpus, bytes) and len(corpus) > 0
    if is_list and all(isinstance(item, os.PathLike) for item in corpus):
        return [Path(cast("os.PathLike[str]", item)) for item in corpus]
    return None


def count_corpus(
    counter: _core.PieceCounter,
    corpus: Corpus,
    progress: ProgressBar,
    weights: Iterable[int] | None = None,
    weight: int = 1,
) -> None:
    """Count the pieces of a corpus of any form.

    Args:
        counter: Counts them.
        corpus: As `BPETokenizer.train` takes it.
        progress: Gets to know how far it is.
        weights: A weight for each file.
        weight: The weight of all else.

    Raises:
        ArgumentTypeError: The corpus, or an item of it, is of no accepted type.
        CorpusError: A file cannot be read, something is not UTF-8, or kinds of items are mixed.
        OptionError: There are weights, but no list of files.
    """
    files = files_of(corpus)
    if files is not None:
        each = checked_weights(weights, len(files)) if weights is not None else [weight] * len(files)
        count_files(counter, files, each, progress)
        return
    if weights is not None:
        raise OptionError("weights are for a list of files, one each; PieceCounts.add weighs any corpus")
    if isinstance(corpus, bytes | bytearray | memoryview):
        corpus = [bytes(corpus)]
    elif isinstance(corpus, str):
        corpus = [corpus]
    if isinstance(corpus, Mapping) or not isinstance(corpus, Iterable):
        raise ArgumentTypeError(
            "a corpus must be a str, a Path or an iterable of str, bytes or Path, "
            f"not {type(corpus).__name__}"
        )
    _count_items(counter, corpus, progress, weight)


def count_files(
    counter: _core.PieceCounter,
    files: Sequence[Path],
    weights: Sequence[int],
    progress: ProgressBar,
    position: Position = START,
    reached: Callable[[Position], None] | None = None,
) -> None:
    """Count files, each a document, from a position on.

    Args:
        counter: Counts them.
        files: The files.
        weights: A weight for each.
        progress: Gets to know how far it is.
        position: What was counted before.
        reached: Called with every position that is reached, when the counter holds all before it.

    Raises:
        CorpusError: A file cannot be read, or is not UTF-8.
    """
    for path in files:
        _check_file(path)
    sizes = [path.stat().st_size for path in files]
    progress.start("Counting pieces", total=sum(sizes), unit="MB", scale=1e6)
    for weight, numbers in groupby(range(len(files)), key=weights.__getitem__):
        end = max(numbers) + 1
        while position[0] < end:
            before = sum(sizes[: position[0]]) + position[1]

            def report(counted: int, before: int = before) -> None:
                progress.update(before + counted)

            position = counter.add_files(
                files[:end],
                position,
                most=_STEP_BYTES,
                weight=weight,
                progress=report if progress.visible else None,
            )
            if reached is not None:
                reached(position)


def _count_items(
    counter: _core.PieceCounter, items: Iterable[object], progress: ProgressBar, weight: int
) -> None:
    """Count an iterable that is read once: documents, in batches, or files."""
    progress.start("Counting documents", unit="documents")
    paths: bool | None = None
    batch: list[Document] = []
    size = 0
    for number, item in enumerate(items):
        if not isinstance(item, str | bytes | os.PathLike):
            raise ArgumentTypeError(
                f"item {number} of the corpus must be a str, bytes or a Path, not {type(item).__name__}"
            )
        if paths is None:
            paths = isinstance(item, os.PathLike)
            _warn_of_path(item)
        if isinstance(item, os.PathLike) != paths:
            raise CorpusError(f"item {number} of the corpus mixes texts and paths: give one kind of item")
        if isinstance(item, os.PathLike):
            count_files(counter, [Path(item)], [weight], ProgressBar(None))
            progress.update(number + 1)
            continue
        batch.append(item)
        size += len(item)
        if size >= _BATCH_CHARACTERS:
            counter.add_texts(batch, weight)
            progress.update(number + 1)
            batch, size = [], 0
    if batch:
        counter.add_texts(batch, weight)


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise CorpusError(
            f"{path} is a directory; give its files, such as sorted(Path({str(path)!r}).rglob('*.txt'))"
        )
    if not path.exists():
        raise CorpusError(f"there is no file {path}")


def _named_file(text: str) -> Path | None:
    """Return the file that a `str` names, or None where it is the text itself."""
    try:
        path = Path(text)
        exists = 0 < len(text) <= _LONGEST_PATH and path.exists()
    except (OSError, ValueError):
        return None
    if exists:
        return path
    if _looks_like_path(text):
        warnings.warn(
            f"{text!r} looks like a path but names no file, so it is taken as the text to train on; "
            "a Path(...) is never taken as text",
            UserWarning,
            stacklevel=_caller_level(),
        )
    return None


def _looks_like_path(text: str) -> bool:
    """Tell whether a text is short, in one line, and has a separator without a space, or an extension."""
    if not text or len(text) > 255 or "\n" in text:
        return False
    separated = ("/" in text or "\\" in text) and not any(map(str.isspace, text))
    dot = text.rfind(".")
    return separated or (dot > 0 and _FILE_EXTENSION.fullmatch(text, dot) is not None)


def _warn_of_path(item: object) -> None:
    """Warn where the first document of an iterable is the name of a file."""
    if not isinstance(item, str) or not _looks_like_path(item):
        return
    with contextlib.suppress(OSError, ValueError):
        if Path(item).is_file():
            warnings.warn(
                f"the first document of the corpus is {item!r}, the name of a file; the strings of an "
                "iterable are texts, give Path objects to train on the files",
                UserWarning,
                stacklevel=_caller_level(),
            )


def _caller_level() -> int:
    """Return the `stacklevel` of the first frame outside this package, seen from our caller."""
    package = str(Path(__file__).parents[1])
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    return level
