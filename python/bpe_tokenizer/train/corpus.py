"""Counts the pieces of a corpus of any form: texts, files, iterables of either."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_path, items_in_turn, items_of
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    CorpusError,
    CorpusFileNotFoundError,
    OptionError,
    caller_level,
    shorten,
)
from bpe_tokenizer.train.options import check_weights
from bpe_tokenizer.train.progress import ProgressBar
from bpe_tokenizer.train.text_files import names_compressed

__all__ = [
    "START",
    "Corpus",
    "Position",
    "corpus_files",
    "count_corpus",
    "count_files",
]

Document: TypeAlias = str | bytes
Corpus: TypeAlias = Document | os.PathLike[str] | Iterable[Document] | Iterable[os.PathLike[str]]
# A position in a list of files: the number of a file, and a byte of it.
Position: TypeAlias = tuple[int, int]
START: Position = (0, 0)

# Characters of a batch of documents, and bytes of a step through files. `max_memory` drops pieces between
# steps, so results depend on these sizes: they are constant.
_BATCH_CHARACTERS = 4_000_000
_STEP_BYTES = 64 << 20
# Longer than any path: a longer text is not looked up in the file system.
_MAX_PATH_LENGTH = 4096
_FILE_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}")


def corpus_files(corpus: Corpus) -> list[Path] | None:
    """Return the files that a corpus names; None if it is text, or an iterable that can be read once."""
    if isinstance(corpus, str):
        path = _named_file(corpus)
        return None if path is None else [path]
    if isinstance(corpus, os.PathLike):
        return [check_path("corpus", corpus)]
    if not isinstance(corpus, Sequence) or isinstance(corpus, bytes | bytearray | memoryview):
        return None
    if type(corpus) not in (list, tuple):
        corpus = items_of(corpus)
    if corpus and all(isinstance(item, os.PathLike) for item in corpus):
        return [check_path("corpus", item) for item in corpus]
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
        counter: Counts the pieces.
        corpus: As in `BPETokenizer.train`.
        progress: Shows the progress.
        weights: A weight for each file.
        weight: The weight of everything, without `weights`.

    Raises:
        ArgumentTypeError: The corpus, or an item of it, has another type.
        CorpusError: A file cannot be read, something is not UTF-8, or texts and paths are mixed.
        OptionError: `weights` are given for something else than a list of files.
    """
    files = corpus_files(corpus)
    if files is not None:
        each = check_weights(weights, len(files)) if weights is not None else [weight] * len(files)
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
    on_step: Callable[[Position], None] | None = None,
) -> None:
    """Count files, each a document, from a position on.

    Args:
        counter: Counts the pieces.
        files: The files.
        weights: A weight for each.
        progress: Shows the progress.
        position: Where to start.
        on_step: Called after each step, with the position up to which everything is counted.

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

            with names_compressed(files[:end]):
                position = counter.add_files(
                    files[:end],
                    position,
                    most=_STEP_BYTES,
                    weight=weight,
                    progress=report if progress.visible else None,
                )
            if on_step is not None:
                on_step(position)


def _count_items(
    counter: _core.PieceCounter, items: Iterable[object], progress: ProgressBar, weight: int
) -> None:
    """Count an iterable that can be read once: documents, in batches, or files."""
    progress.start("Counting documents", unit="documents")
    paths: bool | None = None
    batch: list[Document] = []
    size = 0
    for number, item in enumerate(items_in_turn(items)):
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
            count_files(counter, [check_path("corpus", item)], [weight], ProgressBar(None))
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
            f"{path} is a directory; give its files, such as sorted(Path(directory).rglob('*.txt'))"
        )
    if not path.exists():
        raise CorpusFileNotFoundError(f"there is no file {path}")


def _named_file(text: str) -> Path | None:
    """Return the file that a `str` names; None if it is the text itself."""
    try:
        path = Path(text)
        exists = 0 < len(text) <= _MAX_PATH_LENGTH and path.exists()
    except (OSError, ValueError):
        return None
    if exists:
        return path
    if _looks_like_path(text):
        warnings.warn(
            f"{shorten(text, 120)} looks like a path but names no file, so it is taken as the text to "
            "train on; a Path(...) is never taken as text",
            UserWarning,
            stacklevel=caller_level(),
        )
    return None


def _looks_like_path(text: str) -> bool:
    """Whether a text is one short line with a file extension, or with a path separator and without spaces."""
    if not text or len(text) > 255 or "\n" in text:
        return False
    separated = ("/" in text or "\\" in text) and not any(map(str.isspace, text))
    dot = text.rfind(".")
    return separated or (dot > 0 and _FILE_EXTENSION.fullmatch(text, dot) is not None)


def _warn_of_path(item: object) -> None:
    """Warn if the first document of an iterable is the name of a file."""
    if not isinstance(item, str) or not _looks_like_path(item):
        return
    with contextlib.suppress(OSError, ValueError):
        if Path(item).is_file():
            warnings.warn(
                f"the first document of the corpus is {shorten(item)}, the name of a file; the strings of an "
                "iterable are texts, give Path objects to train on the files",
                UserWarning,
                stacklevel=caller_level(),
            )
