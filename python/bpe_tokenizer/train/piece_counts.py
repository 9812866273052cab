"""`PieceCounts`: the distinct pieces of a corpus with their counts, the input of learning merges."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_choice, check_integer, check_path, items_in_turn, thread_count
from bpe_tokenizer.atomic import AtomicFile, remove_abandoned
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    CorpusError,
    FormatError,
    MismatchError,
    OptionError,
    TokenizerError,
    shorten,
)
from bpe_tokenizer.options import CountLimits, MemoryLimits, ReadOptions, check_min_count, pick, takes
from bpe_tokenizer.patterns import resolve_split_pattern
from bpe_tokenizer.readers.detect import input_kind
from bpe_tokenizer.readers.inputs import Input
from bpe_tokenizer.readers.positions import SkippedRows
from bpe_tokenizer.special_tokens import checked_tokens
from bpe_tokenizer.train.corpus import Corpus, count_corpus
from bpe_tokenizer.train.counts_file import SMALL_FILE, read_header, read_header_of, write_header
from bpe_tokenizer.train.options import check_weight
from bpe_tokenizer.train.progress import ProgressBar, say

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from bpe_tokenizer.options import CorpusArguments, CountArguments, MemoryArguments, ReadArguments

__all__ = [
    "Counts",
    "PieceCounts",
    "check_not_empty",
    "check_same_pretokenizer",
    "core_counter",
    "count",
    "counts_header",
    "merged_counts",
    "new_counts",
    "read_counts",
    "save_counts",
]

# Counts, or a file of counts.
Counts: TypeAlias = "PieceCounts | str | os.PathLike[str]"
_UNLIMITED = MemoryLimits()


class PieceCounts:
    """The distinct pieces of a corpus with their counts, and the settings of the pre-tokeniser.

    Training on the counts gives exactly the result of training on the corpus. So counts are the unit of
    resuming and of distribution: count parts of a corpus anywhere, in any order, and add them.

    One call uses the counts at a time. A call meanwhile, from another thread or from a signal handler, is an
    `OptionError`; so each thread needs counts for itself, and `merge` adds them.

    Args:
        split_pattern: A name of `bpe_tokenizer.patterns.NAMED_PATTERNS`, a regular expression, or several.
        normalization: The Unicode normalisation form: `"NFC"`, `"NFD"`, `"NFKC"`, `"NFKD"` or None.
        special_tokens: Texts at which documents are cut; a dict of text to id works too.
        threads: Number of threads; None for one per processor.
        options: `max_memory`, `spill_directory` and `sample`, as in `count`.

    Raises:
        ModelError: A special token is empty or a duplicate.
        OptionError: An option is out of its range.
        PatternError: The pattern is not valid, or an unknown name.

    >>> counts = PieceCounts("gpt2").add(["low low lower", "low"])
    >>> list(counts.items())
    [(b' low', 1), (b' lower', 1), (b'low', 2)]
    >>> counts
    PieceCounts(documents=2, pieces=4, distinct=3)
    """

    @takes(CountLimits)
    def __init__(
        self,
        split_pattern: str | Sequence[str] = "cl100k",
        normalization: str | None = "NFC",
        special_tokens: Iterable[str] = (),
        *,
        threads: int | None = None,
        **options: Unpack[CountArguments],
    ) -> None:
        self._set(split_pattern, normalization, special_tokens, threads, pick(CountLimits, options))

    def _set(
        self,
        split_pattern: str | Sequence[str],
        normalization: str | None,
        special_tokens: Iterable[str],
        threads: int | None,
        limits: MemoryLimits,
    ) -> None:
        self._patterns = resolve_split_pattern(split_pattern)
        self._normalization = normalization
        if isinstance(special_tokens, set | frozenset):
            special_tokens = sorted(special_tokens)  # their order decides nothing here
        self._special = tuple(checked_tokens(special_tokens))
        thread_count(threads)
        self._threads = threads
        self._counter = _core.PieceCounter(
            split_patterns=self._patterns,
            normalization=self._normalization,
            special_tokens=self._special,
            threads=threads or 0,
            **limits.core_options(),
        )

    @property
    def split_patterns(self) -> tuple[str, ...]:
        """The regular expressions that cut texts into pieces, applied in sequence."""
        return self._patterns

    @property
    def normalization(self) -> str | None:
        """The Unicode normalisation form, or None."""
        return self._normalization

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """The texts at which documents were cut."""
        return self._special

    @property
    def documents(self) -> int:
        """The number of documents."""
        return self._counter.documents

    @property
    def pieces(self) -> int:
        """The number of pieces, repetitions included."""
        return self._counter.pieces

    @property
    def distinct(self) -> int:
        """The number of distinct pieces."""
        return self._counter.distinct

    @takes(ReadOptions)
    def add(
        self,
        corpus: Corpus,
        weight: int = 1,
        *,
        verbose: bool = False,
        **options: Unpack[ReadArguments],
    ) -> PieceCounts:
        """Count a corpus.

        Args:
            corpus: As in `BPETokenizer.train`.
            weight: The factor by which its pieces count in a mixture.
            verbose: Show a progress bar on stderr, if that is a terminal.

        Returns:
            These counts; an error leaves them unchanged.

        Raises:
            ArgumentTypeError: The corpus, or an item of it, has another type.
            CorpusError: A file cannot be read, something is not UTF-8, or a count exceeds 64 bits.
            OptionError: The weight is out of its range.

        >>> counts = PieceCounts("gpt2").add("a b").add(["b"], weight=3)
        >>> dict(counts.items())
        {b' b': 1, b'a': 1, b'b': 3}
        """
        added = self._begin()
        read = pick(ReadOptions, options)
        with ProgressBar.shown(verbose) as progress:
            count_corpus(
                added,
                corpus,
                progress,
                weight=check_weight(weight),
                options=read,
                special_tokens=self._special,
            )
        self._take(added)
        return self

    def add_range(
        self,
        path: str | os.PathLike[str],
        start: int,
        end: int,
        weight: int = 1,
        input_format: Literal["text"] | None = None,
    ) -> PieceCounts:
        """Count a range of a file.

        Both ends move to the next position at which a cut does not change the pieces. So ranges that cover a
        file have together exactly the counts of the whole file.

        Args:
            path: The file: plain text in UTF-8, not compressed, not JSON Lines. `add` reads others.
            start: First byte. The range that starts at 0 counts the document.
            end: End byte, exclusive; it may lie after the end of the file.
            weight: As in `add`.
            input_format: `"text"` for a file of text that looks like another format.

        Raises:
            CorpusError: The file cannot be read, is not UTF-8, is not a corpus, or a count exceeds 64 bits.
            OptionError: The range is not valid, or the file is no plain text, whose bytes would be counted.

        >>> from pathlib import Path
        >>> whole, parts = PieceCounts("gpt2").add(Path(__file__)), PieceCounts("gpt2")
        >>> for start in range(0, 100_000, 10_000):
        ...     _ = parts.add_range(__file__, start, start + 10_000)
        >>> parts == whole
        True
        """
        start, end = (min(check_integer(*each), 2**63 - 1) for each in (("start", start), ("end", end)))
        if not 0 <= start <= end:
            raise OptionError(f"the range from {start} to {end} is not valid: give 0 <= start <= end")
        file = check_path("path", path)
        if input_format is None:
            kind = input_kind(Input(str(file), file, 0, 0))
            if kind != ("text", None):
                raise OptionError(
                    f"{shorten(str(file), 120)} holds {kind.compression or kind.format}, and add_range takes "
                    "bytes of plain text: add(path) reads its documents; or say input_format='text' for its "
                    "bytes as they stand"
                )
        else:
            check_choice("input_format", input_format, ["text"])
        added = self._begin()
        added.add_range(file, start, end, check_weight(weight))
        self._take(added)
        return self

    def add_column(self, array: Any, weight: int = 1) -> PieceCounts:
        """Count a column of Arrow, each row a document, without a Python object for each row.

        Args:
            array: A column of strings or of binary values in UTF-8, as in `BPETokenizer.encode_arrow`: of
                pyarrow, Polars, DuckDB, pandas.
            weight: As in `add`.

        Raises:
            ArgumentTypeError: The column holds something else.
            CorpusError: A row is null or not UTF-8; the error names it.
            MissingDependencyError: `pyarrow` is not installed.

        >>> import pyarrow
        >>> PieceCounts("gpt2").add_column(pyarrow.array(["low", "low lower"]))
        PieceCounts(documents=2, pieces=3, distinct=2)
        """
        from bpe_tokenizer.columns.arrow import text_blocks

        added = self._begin()
        for data, offsets in text_blocks(array):
            added.add_rows(data, offsets, check_weight(weight), added.documents)
        self._take(added)
        return self

    def add_arrow(self, batch: Any, documents: int = 0) -> PieceCounts:
        """Add pieces that another process counted.

        Args:
            batch: A `pyarrow.RecordBatch` or `Table` with the columns of `to_arrow`; `n` may be int64.
            documents: Number of their documents.

        Raises:
            ArgumentTypeError: The columns have other types.
            CorpusError: A piece or a count is null or negative, or a sum exceeds 64 bits.
            MissingDependencyError: `pyarrow` is not installed.
            OptionError: `documents` is negative.

        >>> counts = PieceCounts("gpt2").add("low lower")
        >>> PieceCounts("gpt2").add_arrow(counts.to_arrow(), counts.documents) == counts
        True
        """
        from bpe_tokenizer.train.arrow import piece_buffers

        documents = check_integer("documents", documents, 0, maximum=2**63 - 1)
        added = self._begin()
        for data, offsets, counts in piece_buffers(batch):
            added.add_pieces(data, offsets, counts)
        added.add_documents(documents)
        self._take(added)
        return self

    def to_arrow(self) -> Any:
        """Return the pieces, in the order of their bytes, with their counts.

        Returns:
            A `pyarrow.RecordBatch` with the columns `piece` (large_binary) and `n` (uint64).

        Raises:
            MissingDependencyError: `pyarrow` is not installed.

        >>> PieceCounts("gpt2").add("low low").to_arrow().to_pydict()
        {'piece': [b' low', b'low'], 'n': [1, 1]}
        """
        from bpe_tokenizer.train.arrow import to_batch

        return to_batch(*self._counter.arrays())

    def merge(self, other: PieceCounts, weight: int = 1) -> PieceCounts:
        """Add other counts.

        Args:
            other: Counts of another part of the corpus.
            weight: The factor by which they count.

        Raises:
            CorpusError: A sum exceeds 64 bits; these counts are then unchanged.
            MismatchError: The pattern, normalisation or special tokens differ.

        >>> counts = PieceCounts("gpt2").add("low")
        >>> counts.merge(PieceCounts("gpt2").add("low"))
        PieceCounts(documents=2, pieces=2, distinct=1)
        """
        if not isinstance(other, PieceCounts):
            raise ArgumentTypeError(f"other must be PieceCounts, not {type(other).__name__}")
        check_same_pretokenizer(self, other.split_patterns, other.normalization, other.special_tokens)
        self._counter.merge(other._counter, check_weight(weight))
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts to a file, completely or not at all; equal counts give equal files.

        Raises:
            WriteError: The file cannot be written.

        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp(), "part.counts")
        >>> counts = PieceCounts("gpt2").add("low low")
        >>> counts.save(path)
        >>> PieceCounts.load(path) == counts
        True
        """
        save_counts(self, check_path("path", path))

    @classmethod
    @takes(MemoryLimits)
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        threads: int | None = None,
        **options: Unpack[MemoryArguments],
    ) -> PieceCounts:
        """Read a file that `save` wrote.

        A large file is not read into memory. It is checked when it is used for the first time, and read
        piece by piece.

        Args:
            path: The file.
            threads: As in `PieceCounts()`.

        Raises:
            FormatError: The file cannot be read, is not one of piece counts, has another version, or is
                broken; the error names the byte. For a large file, also the first use may raise it.
        """
        # The caller's arguments raise their own errors; every other error is the file's.
        thread_count(threads)
        return _load(path, threads, pick(MemoryLimits, options))

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Yield each piece with its count, in the order of the pieces' bytes."""
        reader = self._counter.reader()
        read = self._counter.arrays if reader is None else reader.read
        while True:
            data, offsets, counts = read()
            content, ends = data.tobytes(), offsets.tolist()
            for (start, end), times in zip(pairwise(ends), counts.tolist(), strict=True):
                yield content[start:end], times
            if reader is None or not len(counts):
                return

    def __len__(self) -> int:
        return self.distinct

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        return self.items()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PieceCounts):
            return NotImplemented
        ours, theirs = (
            (
                counts.split_patterns,
                counts.normalization,
                sorted(counts.special_tokens),
                counts.documents,
            )
            for counts in (self, other)
        )
        return ours == theirs and self._digest() == other._digest()

    __hash__ = None  # type: ignore[assignment]

    def _digest(self) -> bytes:
        """A hash of the pieces with their counts."""
        pieces = hashlib.blake2b()
        self._counter.save(b"", pieces.update)
        return pieces.digest()

    def __repr__(self) -> str:
        numbers = f"documents={self.documents:,}, pieces={self.pieces:,}, distinct={self.distinct:,}"
        return f"PieceCounts({numbers})"

    def __reduce__(self) -> tuple[Any, ...]:
        settings = (self._patterns, self._normalization, self._special)
        parts: list[bytes] = []
        self._counter.save(counts_header(self, normalized=self._counter.normalized), parts.append)
        return _unpickle, (settings, self._threads, b"".join(parts))

    def prune(self, min_count: int) -> PieceCounts:
        """Remove the pieces that occur less often than `min_count` times.

        Counts of parts of a corpus are added first: a piece that is rare in each part may be frequent in all.

        Args:
            min_count: The least count of a piece that stays.

        Raises:
            OptionError: It is negative.

        >>> list(PieceCounts("gpt2").add(["a", "a", "b"]).prune(2))
        [(b'a', 2)]
        """
        self._counter.prune(check_min_count(min_count))
        return self

    def _begin(self) -> _core.PieceCounter:
        """Return an empty counter, which gets the memory that these counts may take."""
        self._counter.make_room()
        return self._counter.empty()

    def _take(self, added: _core.PieceCounter) -> None:
        """Add a counter that nobody else uses, and may be consumed."""
        if added.is_empty:
            return
        if self._counter.is_empty:
            self._counter = added
        else:
            self._counter.merge(added, take=True)


def new_counts(
    split_pattern: str | Sequence[str],
    normalization: str | None,
    special_tokens: Iterable[str],
    threads: int | None,
    limits: MemoryLimits,
) -> PieceCounts:
    """Return empty counts; the arguments and errors are those of `PieceCounts`."""
    counts = PieceCounts.__new__(PieceCounts)
    counts._set(split_pattern, normalization, special_tokens, threads, limits)
    return counts


def core_counter(counts: PieceCounts) -> _core.PieceCounter:
    """Return the core's counter, which learns merges."""
    return counts._counter


def check_same_pretokenizer(
    counts: PieceCounts,
    split_patterns: Sequence[str],
    normalization: str | None,
    special_tokens: Iterable[str],
) -> None:
    """Check that counts were made with these settings.

    Raises:
        MismatchError: A setting differs; the error names it.
    """
    for name, ours, theirs in [
        ("split pattern", counts.split_patterns, tuple(split_patterns)),
        ("normalisation", counts.normalization, normalization),
        ("special tokens", tuple(sorted(counts.special_tokens)), tuple(sorted(special_tokens))),
    ]:
        if ours != theirs:
            raise MismatchError(
                f"pieces counted with the {name} {_setting_text(ours)} do not match the {name} "
                f"{_setting_text(theirs)}: count the corpus again with one of them"
            )


def save_counts(counts: PieceCounts, path: Path, **extra: Any) -> None:
    """Write a file of counts, with further fields in its header.

    Raises:
        WriteError: The file cannot be written.
    """
    header = counts_header(counts, **extra)
    with AtomicFile(path) as file:
        core_counter(counts).save(header, file.write)
    remove_abandoned(path)


def counts_header(counts: PieceCounts, **extra: Any) -> bytes:
    """Return the header of a file of counts, with further fields."""
    header = {
        "split_patterns": counts.split_patterns,
        "normalization": counts.normalization,
        "special_tokens": counts.special_tokens,
        "documents": counts.documents,
        **extra,
    }
    return write_header(header)


def read_counts(counts: PieceCounts, path: Path) -> dict[str, Any]:
    """Read a file of counts, and return the fields of its header. A large file is read when it is needed.

    Args:
        counts: Empty counts with the wanted settings and limits.
        path: The file.

    Raises:
        FormatError: The file cannot be read, or is broken; the error names the byte.
        MismatchError: The pattern, normalisation or special tokens differ.
    """
    from bpe_tokenizer.formats.files import read_bytes, read_errors

    with read_errors(path):
        is_small = not path.is_file() or path.stat().st_size <= SMALL_FILE
    if is_small:
        return _read_data(counts, read_bytes(path), str(path))
    header, begin = read_header_of(path)
    core_counter(counts).open(path, begin, **_checked(counts, header))
    return header


def _load(path: str | os.PathLike[str], threads: int | None, limits: MemoryLimits) -> PieceCounts:
    path = check_path("path", path)
    header, _ = read_header_of(path)
    settings = (header["split_patterns"], header["normalization"], header["special_tokens"])
    try:
        counts = new_counts(*settings, threads, limits)
    except TokenizerError as error:
        raise FormatError(f"{path}: the header is broken: {error}") from None
    read_counts(counts, path)
    return counts


def _read_data(counts: PieceCounts, data: bytes, name: str) -> dict[str, Any]:
    header, begin = read_header(data, name)
    try:
        core_counter(counts).load(data, begin, **_checked(counts, header))
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from None
    return header


def _checked(counts: PieceCounts, header: dict[str, Any]) -> dict[str, Any]:
    """Check the settings of a header, and return what else it says of the pieces."""
    settings = (header["split_patterns"], header["normalization"], header["special_tokens"])
    check_same_pretokenizer(counts, *settings)
    return {"documents": header["documents"], "normalized": header.get("normalized") is True}


def _unpickle(settings: Any, threads: int | None, data: bytes) -> PieceCounts:
    counts = PieceCounts(*settings, threads=threads)
    _read_data(counts, data, "pickled counts")
    return counts


def _setting_text(value: object) -> str:
    return shorten(value[0] if isinstance(value, tuple) and len(value) == 1 else value, 60)


@takes(CountLimits, ReadOptions)
def count(
    corpus: Corpus,
    split_pattern: str | Sequence[str] = "cl100k",
    normalization: str | None = "NFC",
    special_tokens: Iterable[str] = (),
    *,
    weights: Iterable[int] | None = None,
    threads: int | None = None,
    min_count: int | None = None,
    verbose: bool = False,
    **options: Unpack[CorpusArguments],
) -> PieceCounts:
    """Count the distinct pieces of a corpus, the first step of training.

    `BPETokenizer.load(path).count_tokens(text)` returns the number of tokens of a text.

    Args:
        corpus: As in `BPETokenizer.train`.
        split_pattern: As in `PieceCounts`.
        normalization: As in `PieceCounts`.
        special_tokens: As in `PieceCounts`.
        weights: For a list of files: the factor by which each file's pieces count in a mixture.
        threads: As in `PieceCounts`.
        min_count: Leave out the pieces that occur less often in the corpus.
        verbose: Show a progress bar, if stderr is a terminal, and the number of skipped rows on stderr.

    Raises:
        ArgumentTypeError: The corpus, or an item of it, has another type.
        CorpusError: The corpus holds no text, a file cannot be read, or something is not UTF-8.
        OptionError: An option is out of its range.

    >>> count(["low low", "lower"], "gpt2")
    PieceCounts(documents=2, pieces=3, distinct=3)
    """
    least = check_min_count(min_count)
    limits, read = pick(CountLimits, options), pick(ReadOptions, options)
    counts = new_counts(split_pattern, normalization, special_tokens, threads, limits)
    with ProgressBar.shown(verbose) as progress:
        skipped = count_corpus(
            core_counter(counts),
            corpus,
            progress,
            weights,
            options=read,
            special_tokens=counts.special_tokens,
        )
    if verbose and skipped.count:
        say(skipped.summary())
    check_not_empty(counts, skipped)
    return counts.prune(least)


def check_not_empty(counts: PieceCounts | _core.PieceCounter, skipped: SkippedRows | None = None) -> None:
    """Check that there is something to learn from.

    Raises:
        CorpusError: There are no pieces.
    """
    if counts.distinct == 0:
        also = f". {skipped.summary()}" if skipped is not None and skipped.count else ""
        raise CorpusError(
            f"the corpus is empty: {count_noun(counts.documents, 'document')} without text to learn from"
            f"{also}"
        )


def merged_counts(counts: Counts | Iterable[Counts], limits: MemoryLimits = _UNLIMITED) -> PieceCounts:
    """Return the sum of counts and of files of counts, which stay unchanged.

    Large files are read as streams: the sum needs little memory.

    Args:
        counts: Counts or files of counts.
        limits: For the sum; without any, counts that are the only ones keep theirs.

    Raises:
        ArgumentTypeError: An item is neither.
        CorpusError: The iterable is empty, or a sum exceeds 64 bits.
        FormatError: A file is broken.
        MismatchError: The patterns, normalisation or special tokens differ.
    """
    if isinstance(counts, PieceCounts) and not limits.is_limited:
        return counts
    if isinstance(counts, str | os.PathLike):
        return _load(counts, None, limits)
    merged: PieceCounts | None = None
    for part in items_in_turn([counts] if isinstance(counts, PieceCounts) else counts):
        if not isinstance(part, PieceCounts | str | os.PathLike):
            raise ArgumentTypeError(f"counts must be PieceCounts or their files, not {type(part).__name__}")
        added = part if isinstance(part, PieceCounts) else _load(part, None, limits)
        if merged is None:
            settings = (added.split_patterns, added.normalization, added.special_tokens)
            merged = new_counts(*settings, None, limits)
        check_same_pretokenizer(merged, added.split_patterns, added.normalization, added.special_tokens)
        core_counter(merged).merge(core_counter(added), take=added is not part)
    if merged is None:
        raise CorpusError("there are no counts to learn from")
    return merged
