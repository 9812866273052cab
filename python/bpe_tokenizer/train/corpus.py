"""Counts the pieces of a corpus of any form: texts, files, iterables of either."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_path, items_in_turn, items_of
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    CorpusError,
    CorpusFileNotFoundError,
    OptionError,
    shorten,
)
from bpe_tokenizer.options import ReadOptions
from bpe_tokenizer.readers import positions
from bpe_tokenizer.readers.batches import DocumentBatch, TextPart, read_parts
from bpe_tokenizer.readers.detect import refuse_mixtures
from bpe_tokenizer.readers.inputs import Input, find_inputs
from bpe_tokenizer.readers.opened import ChunkReader
from bpe_tokenizer.readers.positions import SkippedRows
from bpe_tokenizer.readers.remote import is_url
from bpe_tokenizer.readers.separators import warn_of_separators
from bpe_tokenizer.readers.sources import find_sources
from bpe_tokenizer.train.options import check_weights
from bpe_tokenizer.train.progress import ProgressBar

__all__ = [
    "START",
    "WHOLE_FILES",
    "Corpus",
    "FilePosition",
    "count_corpus",
    "count_files",
]

Document: TypeAlias = str | bytes
Corpus: TypeAlias = (
    Document
    | os.PathLike[str]
    | Input
    | Iterable[Document]
    | Iterable[os.PathLike[str]]
    | Iterable[Input]
    | Iterable[os.PathLike[str] | Input]
)
# A position in a list of files: the number of a file, and a byte of a text or a row of what has rows.
FilePosition: TypeAlias = tuple[int, int]
START: FilePosition = (0, 0)
# A text file is one document.
WHOLE_FILES = ReadOptions()

# Characters of a batch of documents, and bytes of a step through files.
_BATCH_CHARACTERS = 4_000_000
_STEP_BYTES = 64 << 20
# Longer than any path: a longer text is not looked up in the file system.
_MAX_PATH_LENGTH = 4096
_FILE_EXTENSION = re.compile(r"\.(?=\d*[A-Za-z])[A-Za-z0-9]{1,5}")
# With one of these suffixes, a name with spaces is one too, and a line of a list of files.
_CORPUS_FILE = re.compile(
    r"[^\n]*\.(?:txt|text|md|json|jsonl|ndjson|csv|tsv|parquet|arrow|feather|gz|xz|zst|zstd|bz2)\n?",
    re.IGNORECASE,
)

# Counts files with a weight each.
CountFiles: TypeAlias = Callable[[Sequence[Input], Sequence[int]], SkippedRows]


def _corpus_files(corpus: Corpus) -> list[Input] | None:
    """Return the files that a corpus names; None if it is text, or an iterable that can be read once.

    Raises:
        CorpusError: A file does not exist, or a directory has none.
        MissingDependencyError: A URL needs a library that is not installed.
    """
    if isinstance(corpus, str):
        return _named_files(corpus)
    if isinstance(corpus, os.PathLike):
        return find_inputs(check_path("corpus", corpus))
    if isinstance(corpus, Input):
        return [corpus]
    if not isinstance(corpus, Sequence) or isinstance(corpus, bytes | bytearray | memoryview):
        return None
    items: Sequence[object] = corpus
    if type(corpus) not in (list, tuple):
        items = items_of(corpus)
    if items and all(isinstance(item, os.PathLike | Input) for item in items):
        return find_inputs([_as_input(item) for item in items])
    if items and _are_paths(items):
        return [file for item in items for file in _named_files(str(item)) or ()]
    return None


def _as_input(item: object) -> Path | Input:
    return item if isinstance(item, Input) else check_path("corpus", item)


def count_corpus(
    counter: _core.PieceCounter,
    corpus: Corpus,
    progress: ProgressBar,
    weights: Iterable[int] | None = None,
    weight: int = 1,
    options: ReadOptions = WHOLE_FILES,
    special_tokens: Collection[str] = (),
    resume: CountFiles | None = None,
) -> SkippedRows:
    """Count the pieces of a corpus of any form.

    Args:
        counter: Counts the pieces.
        corpus: As in `BPETokenizer.train`.
        progress: Shows the progress.
        weights: A weight for each file.
        weight: The weight of everything, without `weights`.
        options: How documents are found in files.
        special_tokens: The texts at which the counter cuts documents, which need no warning.
        resume: Counts the files instead, from a checkpoint on.

    Returns:
        The rows of files that were skipped.

    Raises:
        ArgumentTypeError: The corpus, or an item of it, has another type.
        CorpusError: A file cannot be read, something is not UTF-8, or texts and paths are mixed.
        OptionError: `weights` or a checkpoint are given for something else than a list of files.
    """
    files = _corpus_files(corpus)
    if resume is not None and (files is None or not all(each.is_regular for each in files)):
        raise OptionError(
            "a checkpoint needs files, which can be read again from the position of a checkpoint; "
            "give a list of Path, or count parts of the corpus and save their PieceCounts"
        )
    if files is not None:
        each = check_weights(weights, len(files)) if weights is not None else [weight] * len(files)
        files = find_sources(files, options, special_tokens)
        if resume is not None:
            return resume(files, each)
        return count_files(counter, files, each, progress, options=options)
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
    return _count_items(counter, corpus, progress, weight, options, special_tokens)


def count_files(
    counter: _core.PieceCounter,
    files: Sequence[Input],
    weights: Sequence[int],
    progress: ProgressBar,
    position: FilePosition = START,
    on_step: Callable[[FilePosition], None] | None = None,
    options: ReadOptions = WHOLE_FILES,
    skipped: SkippedRows | None = None,
) -> SkippedRows:
    """Count files, from a position on.

    Args:
        counter: Counts the pieces.
        files: The files, of any kind.
        weights: A weight for each.
        progress: Shows the progress.
        position: Where to start: after so many bytes of a text file, or after a row of another one.
        on_step: Called after each step, with the position up to which everything is counted.
        options: How documents are found in the files.
        skipped: Where to add the rows that are skipped; None for a new list.

    Returns:
        The rows that were skipped.

    Raises:
        CorpusError: A file cannot be read, is not a corpus, or is not UTF-8.
        MissingDependencyError: A library that a file needs is not installed.
    """
    begins = list(accumulate((each.size for each in files), initial=0))
    known = all(each.is_regular for each in files)
    progress.start("Counting pieces", total=begins[-1] if known else None, unit="MB", scale=1e6)
    skipped = SkippedRows() if skipped is None else skipped
    # Placeholders where the core does not read.
    paths = [each.path or Path() for each in files]
    plain_end = position[0]

    def reach(reached: FilePosition) -> None:
        nonlocal position
        position = reached
        if on_step is not None:
            on_step(position)

    def count_plain(least: int = 0) -> None:
        """Count the plain files up to `plain_end`, if at least `least` bytes of them are left."""
        while position[0] < plain_end:
            before = begins[position[0]] + position[1]
            if begins[plain_end] - before < least:
                return

            def report(counted: int, before: int = before) -> None:
                progress.update(before + counted)

            reach(
                counter.add_files(
                    paths[:plain_end],
                    position,
                    most=_STEP_BYTES,
                    weight=weights[position[0]],
                    progress=report if progress.visible else None,
                )
            )

    with contextlib.closing(read_parts(files, options, positions.Position(*position))) as parts:
        for part in parts:
            number = part.input
            is_plain = isinstance(part, TextPart) and part.data is None
            if not is_plain or weights[number] != weights[position[0]]:
                count_plain()
            if plain_end <= position[0] < number:  # the file before has ended, and none waits
                position = (number, 0)
            if isinstance(part, DocumentBatch):
                _add_rows(counter, files, part, weights[number], skipped)
                progress.update(part.bytes_read)
                rows = [part.rows[-1:].max(initial=0), *(row.row for row in part.bad[-1:])]
                reach((number, int(max(rows))))
            elif is_plain:
                plain_end = number + 1
                count_plain(_STEP_BYTES)
            else:
                _add_stream(counter, part, parts, files[number].name, weights[number], progress)
                reach((number + 1, 0))
    count_plain()
    if position[0] < len(files):
        reach((len(files), 0))
    return skipped


def _add_rows(
    counter: _core.PieceCounter,
    files: Sequence[Input],
    batch: DocumentBatch,
    weight: int,
    skipped: SkippedRows,
) -> None:
    skipped.add(files[batch.input].name, batch.bad)
    counter.add_rows(batch.data, batch.offsets, weight, 1)


def _add_stream(
    counter: _core.PieceCounter,
    first: TextPart,
    parts: Iterator[DocumentBatch | TextPart],
    name: str,
    weight: int,
    progress: ProgressBar,
) -> None:
    """Count a text whose first part was read; `parts` begins with its others."""
    done = first.bytes_read

    def chunks() -> Iterator[bytes]:
        nonlocal done
        part: DocumentBatch | TextPart = first
        while isinstance(part, TextPart) and part.data:
            yield part.data
            part = next(parts)
            done = part.bytes_read

    def report(_: int) -> None:
        progress.update(done)

    counter.add_stream(ChunkReader(chunks()), name, weight, report if progress.visible else None)


def _count_items(
    counter: _core.PieceCounter,
    items: Iterable[object],
    progress: ProgressBar,
    weight: int,
    options: ReadOptions,
    special_tokens: Collection[str],
) -> SkippedRows:
    """Count an iterable that can be read once: documents, in batches, or files."""
    skipped = SkippedRows()
    progress.start("Counting documents", unit="documents")
    paths: bool | None = None
    named = False
    batch: list[Document] = []
    size = 0
    for number, item in enumerate(items_in_turn(items)):
        if not isinstance(item, str | bytes | os.PathLike | Input):
            raise ArgumentTypeError(
                f"item {number} of the corpus must be a str, bytes or a Path, not {type(item).__name__}"
            )
        if paths is None:
            paths = isinstance(item, os.PathLike | Input)
            # The first item decides: an iterable that can be read once cannot be looked at before.
            if isinstance(item, str) and not isinstance(items, Sequence):
                named = _is_there(item) or _CORPUS_FILE.fullmatch(item) is not None
            if not (paths or named or options.is_whole):
                raise OptionError(
                    "documents and separator say where documents end in files, and a text in memory is one "
                    "document: split it, as in text.split(separator)"
                )
        if isinstance(item, os.PathLike | Input) != paths:
            raise CorpusError(f"item {number} of the corpus mixes texts and paths: give one kind of item")
        if isinstance(item, os.PathLike | Input) or named:
            found = _named_files(item) if isinstance(item, str) else find_inputs(_as_input(item))
            if found is None:
                raise CorpusError(f"item {number} of the corpus names no file, as the first one does")
            refuse_mixtures(found, options.input_format)
            if number == 0:
                warn_of_separators(found, options, special_tokens)
            each = count_files(counter, found, [weight] * len(found), ProgressBar(None), options=options)
            skipped.merge(each)
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
    return skipped


def _named_files(text: str) -> list[Input] | None:
    """Return the files that a `str` names; None if it is the text itself.

    Raises:
        CorpusFileNotFoundError: It looks like a path, and there is no such file.
    """
    if _is_there(text):
        return find_inputs(text if is_url(text) else Path(text))
    if not _looks_like_path(text):
        return None
    try:
        return find_inputs(text)
    except CorpusFileNotFoundError:
        raise _no_file(text) from None


def _is_there(text: str) -> bool:
    """Whether a text is the name of a file or a directory, or a URL."""
    if not 0 < len(text) <= _MAX_PATH_LENGTH:
        return False
    try:
        return Path(text).exists() or is_url(text)
    except (OSError, ValueError):
        return False


def _looks_like_path(text: str) -> bool:
    """Whether a text without white space has a slash, a `*` or a suffix, or a line the suffix of a corpus."""
    if len(text) > _MAX_PATH_LENGTH or "\0" in text or max(map(len, re.split(r"[/\\]", text))) > 255:
        return False
    if _CORPUS_FILE.fullmatch(text):
        return True
    suffix = _FILE_EXTENSION.fullmatch(text, max(text.rfind("."), 0))
    return (not {*"/\\*"}.isdisjoint(text) or suffix is not None) and not any(map(str.isspace, text))


def _are_paths(items: Iterable[object]) -> bool:
    """Whether all items are a `str` that names a file or looks like a path.

    Raises:
        CorpusError: An item names a file of a corpus, and a later one is text.
    """
    named: str | None = None
    for number, item in enumerate(items):
        is_there = isinstance(item, str) and _is_there(item)
        if not isinstance(item, str) or not (is_there or _looks_like_path(item)):
            if named is not None:
                raise CorpusError(
                    f"the corpus mixes texts and paths: {shorten(named, 120)} names a file, and item "
                    f"{number} does not; give files alone, or all texts as bytes"
                )
            return False
        if named is None and is_there and _CORPUS_FILE.fullmatch(item):
            named = item
    return True


def _no_file(text: str) -> CorpusFileNotFoundError:
    return CorpusFileNotFoundError(
        f"there is no file {shorten(text, 120)}, which looks like a path; if it is the text to learn from, "
        "give it as bytes: text.encode()"
    )
