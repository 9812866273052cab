"""`PieceCounts`: what a corpus becomes before merges are learned from it, as a value."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import thread_count
from bpe_tokenizer.atomic import write_atomically
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    CorpusError,
    FormatError,
    MismatchError,
    OptionError,
    TokenizerError,
)
from bpe_tokenizer.patterns import resolve_split_pattern
from bpe_tokenizer.special_tokens import checked_tokens
from bpe_tokenizer.train.corpus import Corpus, checked_weight, count_corpus, counter_memory
from bpe_tokenizer.train.progress import ProgressBar

__all__ = [
    "Counts",
    "Dropped",
    "PieceCounts",
    "check_cut_alike",
    "check_not_empty",
    "count",
    "counter_of",
    "loaded_counts",
    "merged_counts",
    "saved_counts",
]

# Counts, or a file of them.
Counts: TypeAlias = "PieceCounts | str | os.PathLike[str]"

_MAGIC = b"bpe-tokenizer piece counts 1\n"
_LENGTH_BYTES = 8


class Dropped(NamedTuple):
    """What was dropped to keep to `max_memory`.

    Args:
        distinct: How often a piece was dropped; one that came back and was dropped again counts again.
        pieces: The sum of their counts.
        most: A piece that occurs more often than this is still there, and no count is lower by more.
    """

    distinct: int = 0
    pieces: int = 0
    most: int = 0

    def said(self) -> str:
        """Return it in words."""
        return (
            f"Dropped rare pieces {self.distinct:,} times to keep to the memory, {self.pieces:,} in all; "
            f"every piece that occurs more than {self.most:,} times is there, and no count is lower by more"
        )


class PieceCounts:
    """The distinct pieces of a corpus and how often each occurs, with what cut the corpus into them.

    Training on the counts gives exactly what training on the corpus gives, so counts are the unit of resuming
    and of distribution: parts of a corpus are counted anywhere, in any order, and added.

    Args:
        split_pattern: A name of `bpe_tokenizer.patterns.NAMED_PATTERNS`, a regular expression, or several.
        normalization: Unicode normalisation before anything else: `"NFC"`, `"NFD"`, `"NFKC"`, `"NFKD"` or
            None.
        special_tokens: Texts at which documents are cut; a dict of text to id will do.
        threads: Number of threads that count; None for as many as there are processors.
        max_memory: How much memory counting, and training after it, may take in this process, in bytes or
            as in `"500MB"`: the rarest pieces are dropped for it, see `dropped`. None for all it takes.

    Raises:
        ModelError: A special token is empty or there twice.
        OptionError: An option is out of its range.
        PatternError: The pattern is not valid, or a name that is not known.

    >>> counts = PieceCounts("gpt2").add(["low low lower", "low"])
    >>> list(counts.items())
    [(b' low', 1), (b' lower', 1), (b'low', 2)]
    >>> counts
    PieceCounts(documents=2, pieces=4, distinct=3)
    """

    def __init__(
        self,
        split_pattern: str | Sequence[str] = "cl100k",
        normalization: str | None = "NFC",
        special_tokens: Iterable[str] = (),
        *,
        threads: int | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        self._patterns = resolve_split_pattern(split_pattern)
        self._normalization = normalization
        self._special = tuple(checked_tokens(list(special_tokens)))
        thread_count(threads)
        self._threads = threads
        self._counter = _core.PieceCounter(
            split_patterns=self._patterns,
            normalization=self._normalization,
            special_tokens=self._special,
            threads=threads or 0,
            max_memory=counter_memory(max_memory),
        )

    @property
    def split_patterns(self) -> tuple[str, ...]:
        """The regular expressions that cut texts into pieces."""
        return self._patterns

    @property
    def normalization(self) -> str | None:
        """The Unicode normal form of the pieces, or None."""
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
        """The number of pieces, each as often as it occurs."""
        return self._counter.pieces

    @property
    def distinct(self) -> int:
        """The number of distinct pieces."""
        return self._counter.distinct

    @property
    def dropped(self) -> Dropped:
        """What was dropped to keep to `max_memory`."""
        return Dropped(*self._counter.dropped)

    def add(self, corpus: Corpus, weight: int = 1, *, verbose: bool = False) -> PieceCounts:
        """Count a corpus.

        Args:
            corpus: A `Path`; a `str` that names a file, or else is the text itself; an iterable of `str` or
                `bytes` (UTF-8), each a document; an iterable of `Path`, each file a document.
            weight: How often each of its pieces counts: what share a source has in a mixture.
            verbose: Show a progress bar on stderr, where that is a terminal.

        Returns:
            These counts. If it fails they are what they were.

        Raises:
            ArgumentTypeError: The corpus, or an item of it, is of no accepted type.
            CorpusError: A file cannot be read, something is not UTF-8, or a count exceeds 64 bits.
            OptionError: The weight is out of its range.

        >>> counts = PieceCounts("gpt2").add("a b").add(["b"], weight=3)
        >>> dict(counts.items())
        {b' b': 1, b'a': 1, b'b': 3}
        """
        added = self._counter.empty()
        with ProgressBar.shown(verbose) as progress:
            count_corpus(added, corpus, progress, weight=checked_weight(weight))
        self._take(added)
        return self

    def add_range(self, path: str | os.PathLike[str], start: int, end: int, weight: int = 1) -> PieceCounts:
        """Count a range of a file.

        The range is moved to the next places where the file can be cut without a change, so ranges that cover
        a file count together exactly what the whole file does.

        Args:
            path: The file, in UTF-8.
            start: A byte. The range that begins with 0 counts the document.
            end: A byte, or anything behind the last one.
            weight: As in `add`.

        Raises:
            CorpusError: The file cannot be read, is not UTF-8, or a count exceeds 64 bits.

        >>> whole, parts = PieceCounts("gpt2").add(Path(__file__)), PieceCounts("gpt2")
        >>> for start in range(0, 100_000, 10_000):
        ...     _ = parts.add_range(__file__, start, start + 10_000)
        >>> parts == whole
        True
        """
        if not 0 <= start <= end:
            raise OptionError(f"a range from {start} to {end} is none: give 0 <= start <= end")
        added = self._counter.empty()
        added.add_range(path, start, end, checked_weight(weight))
        self._take(added)
        return self

    def add_column(self, array: Any, weight: int = 1) -> PieceCounts:
        """Count a column of texts of `pyarrow`, each row a document, without a Python object for each.

        Args:
            array: A `pyarrow.Array` or `ChunkedArray` of strings or binary values in UTF-8.
            weight: As in `add`.

        Raises:
            ArgumentTypeError: The column holds something else.
            CorpusError: A row is null or not UTF-8; says which.
            MissingDependencyError: `pyarrow` is not installed.

        >>> import pyarrow
        >>> PieceCounts("gpt2").add_column(pyarrow.array(["low", "low lower"]))
        PieceCounts(documents=2, pieces=3, distinct=2)
        """
        from bpe_tokenizer.train.arrow import text_buffers

        added = self._counter.empty()
        for data, offsets in text_buffers(array):
            added.add_rows(data, offsets, checked_weight(weight), added.documents)
        self._take(added)
        return self

    def add_arrow(self, batch: Any, documents: int = 0) -> PieceCounts:
        """Add pieces that were counted elsewhere.

        Args:
            batch: A `pyarrow.RecordBatch` or `Table` with the columns of `to_arrow`; `n` may be int64.
            documents: How many documents they are from.

        Raises:
            ArgumentTypeError: The columns are of other types.
            CorpusError: A piece or a count is null or negative, or a sum exceeds 64 bits.
            MissingDependencyError: `pyarrow` is not installed.

        >>> counts = PieceCounts("gpt2").add("low lower")
        >>> PieceCounts("gpt2").add_arrow(counts.to_arrow(), counts.documents) == counts
        True
        """
        from bpe_tokenizer.train.arrow import piece_buffers

        added = self._counter.empty()
        for data, offsets, counts in piece_buffers(batch):
            added.add_pieces(data, offsets, counts)
        added.add_documents(documents)
        self._take(added)
        return self

    def to_arrow(self) -> Any:
        """Return the pieces, in the order of their bytes, and their counts.

        Returns:
            A `pyarrow.RecordBatch` of the columns `piece` (large_binary) and `n` (uint64).

        Raises:
            MissingDependencyError: `pyarrow` is not installed.

        >>> PieceCounts("gpt2").add("low low").to_arrow().to_pydict()
        {'piece': [b' low', b'low'], 'n': [1, 1]}
        """
        from bpe_tokenizer.train.arrow import to_batch

        return to_batch(*self._counter.arrays())

    def merge(self, other: PieceCounts, weight: int = 1) -> PieceCounts:
        """Add all that others counted.

        Args:
            other: Counts of another part of the corpus.
            weight: How often each of them counts.

        Raises:
            CorpusError: A sum exceeds 64 bits; these counts then hold a part of the others.
            MismatchError: Their pattern, normalisation or special tokens differ.

        >>> counts = PieceCounts("gpt2").add("low")
        >>> counts.merge(PieceCounts("gpt2").add("low"))
        PieceCounts(documents=2, pieces=2, distinct=1)
        """
        if not isinstance(other, PieceCounts):
            raise ArgumentTypeError(f"other must be PieceCounts, not {type(other).__name__}")
        check_cut_alike(self, other.split_patterns, other.normalization, other.special_tokens)
        self._counter.merge(other._counter, checked_weight(weight))
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the counts to a file, as a whole or not at all; equal counts are equal files.

        The file holds a line that says what it is, the length of what follows in 8 bytes (the lowest first),
        that in JSON (pattern, normalisation, special tokens, documents, what was dropped), and the sorted
        pieces with their counts, as `crates/core/src/train/counts/saved.rs` describes them.

        Raises:
            OSError: It cannot be written.

        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp(), "part.counts")
        >>> counts = PieceCounts("gpt2").add("low low")
        >>> counts.save(path)
        >>> PieceCounts.load(path) == counts
        True
        """
        write_atomically({Path(path): saved_counts(self)})

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        threads: int | None = None,
        max_memory: int | str | None = None,
    ) -> PieceCounts:
        """Read the counts of a file.

        Args:
            path: What `save` wrote.
            threads: As for new counts.
            max_memory: Likewise.

        Raises:
            FormatError: The file is none of piece counts, of another version, or broken; says where.
            OSError: It cannot be read.
        """
        data = Path(path).read_bytes()
        header, _ = _read_header(data, str(path))
        settings = (header["split_patterns"], header["normalization"], header["special_tokens"])
        # What the caller says is refused as such, and all else is the file's fault.
        thread_count(threads)
        counter_memory(max_memory)
        try:
            counts = cls(*settings, threads=threads, max_memory=max_memory)
        except TokenizerError as error:
            raise FormatError(f"{path}: the header is broken: {error}") from None
        return loaded_counts(counts, data, str(path))[0]

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Return each piece with its count, in the order of the pieces' bytes."""
        data, offsets, counts = self._counter.arrays()
        content, ends = data.tobytes(), offsets.tolist()
        for (start, end), times in zip(pairwise(ends), counts.tolist(), strict=True):
            yield content[start:end], times

    def __len__(self) -> int:
        return self.distinct

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        return self.items()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PieceCounts):
            return NotImplemented
        ours, theirs = (
            saved_counts(counts, special_tokens=sorted(counts.special_tokens)) for counts in (self, other)
        )
        return ours == theirs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        numbers = f"documents={self.documents:,}, pieces={self.pieces:,}, distinct={self.distinct:,}"
        return f"PieceCounts({numbers})"

    def __reduce__(self) -> tuple[Any, ...]:
        settings = (self._patterns, self._normalization, self._special)
        return _unpickle, (settings, self._threads, saved_counts(self))

    def _take(self, added: _core.PieceCounter) -> None:
        """Add what was counted elsewhere, which nobody else has."""
        if added.distinct == added.documents == 0:
            return
        if self._counter.distinct == self._counter.documents == 0:
            self._counter = added
        else:
            self._counter.merge(added, take=True)


def counter_of(counts: PieceCounts) -> _core.PieceCounter:
    """Return the core's counter, which learns merges."""
    return counts._counter


def check_cut_alike(
    counts: PieceCounts,
    split_patterns: Sequence[str],
    normalization: str | None,
    special_tokens: Iterable[str],
) -> None:
    """Refuse what cuts texts in another way than those of the counts were.

    Raises:
        MismatchError: Says what differs.
    """
    for name, ours, theirs in [
        ("split pattern", counts.split_patterns, tuple(split_patterns)),
        ("normalisation", counts.normalization, normalization),
        ("special tokens", tuple(sorted(counts.special_tokens)), tuple(sorted(special_tokens))),
    ]:
        if ours != theirs:
            raise MismatchError(
                f"pieces counted with the {name} {_shown(ours)} do not go with the {name} "
                f"{_shown(theirs)}: count the corpus again with one of them"
            )


def saved_counts(counts: PieceCounts, **more: Any) -> bytes:
    """Return what `PieceCounts.save` writes, with more in the header."""
    header = {
        "split_patterns": counts.split_patterns,
        "normalization": counts.normalization,
        "special_tokens": counts.special_tokens,
        "documents": counts.documents,
        "dropped": counts.dropped,
        **more,
    }
    text = json.dumps(header, ensure_ascii=False, sort_keys=True).encode()
    return counts._counter.save(_MAGIC + len(text).to_bytes(_LENGTH_BYTES, "little") + text)


def loaded_counts(like: PieceCounts, data: bytes, name: str) -> tuple[PieceCounts, dict[str, Any]]:
    """Return the counts that were saved, with the options of others, and all that the header says.

    Args:
        like: Counts with these options.
        data: What `saved_counts` returned.
        name: What errors call it.

    Raises:
        FormatError: It is broken; says where.
        MismatchError: Its pattern, normalisation or special tokens are others.
    """
    header, begin = _read_header(data, name)
    check_cut_alike(like, header["split_patterns"], header["normalization"], header["special_tokens"])
    counts = object.__new__(PieceCounts)
    vars(counts).update(vars(like), _counter=like._counter.empty())
    try:
        counts._counter.load(data, begin, header["documents"], tuple(header["dropped"]))
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from None
    return counts, header


def _unpickle(settings: Any, threads: int | None, data: bytes) -> PieceCounts:
    return loaded_counts(PieceCounts(*settings, threads=threads), data, "pickled counts")[0]


def _shown(value: object) -> str:
    text = repr(value[0] if isinstance(value, tuple) and len(value) == 1 else value)
    return text if len(text) < 60 else f"{text[:57]}..."


def _read_header(data: bytes, name: str) -> tuple[dict[str, Any], int]:
    """Return what the header says, and where the pieces begin."""
    kind, version = _MAGIC.rsplit(b" ", 1)
    if not data.startswith(_MAGIC):
        if data.startswith(kind):
            line = data[len(kind) : len(kind) + 20].split(b"\n")[0].decode("ascii", "replace").strip()
            raise FormatError(
                f"{name}: piece counts of version {line}; this package reads version "
                f"{version.decode().strip()}"
            )
        raise FormatError(f"{name}: byte 0: no file of piece counts, as PieceCounts.save writes it")
    start = len(_MAGIC) + _LENGTH_BYTES
    begin = start + int.from_bytes(data[len(_MAGIC) : start], "little")
    try:
        header = json.loads(data[start:begin])
        integers = [header["documents"], *header["dropped"]]
        texts = [*header["split_patterns"], *header["special_tokens"], header["normalization"] or ""]
        is_right = (
            begin < len(data)
            and len(integers) == 1 + len(Dropped._fields)
            and all(isinstance(value, int) and 0 <= value < 2**64 for value in integers)
            and all(isinstance(text, str) for text in texts)
        )
    except (ValueError, KeyError, TypeError):
        is_right = False
    if not is_right:
        raise FormatError(f"{name}: byte {start}: the header is broken")
    return header, begin


def count(
    corpus: Corpus,
    split_pattern: str | Sequence[str] = "cl100k",
    normalization: str | None = "NFC",
    special_tokens: Iterable[str] = (),
    *,
    weights: Iterable[int] | None = None,
    threads: int | None = None,
    max_memory: int | str | None = None,
    verbose: bool = False,
) -> PieceCounts:
    """Count the distinct pieces of a corpus.

    Args:
        corpus: As `BPETokenizer.train` takes it.
        split_pattern: As for `PieceCounts`, with the other arguments.
        normalization: Likewise.
        special_tokens: Likewise.
        weights: For a list of files: how often the pieces of each count.
        threads: Likewise.
        max_memory: Likewise.
        verbose: Show a progress bar on stderr, where that is a terminal.

    Raises:
        ArgumentTypeError: The corpus, or an item of it, is of no accepted type.
        CorpusError: There is no text, a file cannot be read, or something is not UTF-8.
        OptionError: An option is out of its range.

    >>> count(["low low", "lower"], "gpt2")
    PieceCounts(documents=2, pieces=3, distinct=3)
    """
    counts = PieceCounts(split_pattern, normalization, special_tokens, threads=threads, max_memory=max_memory)
    with ProgressBar.shown(verbose) as progress:
        count_corpus(counter_of(counts), corpus, progress, weights)
    check_not_empty(counts)
    return counts


def check_not_empty(counts: PieceCounts | _core.PieceCounter) -> None:
    """Refuse counts of nothing.

    Raises:
        CorpusError: There is no piece.
    """
    if counts.distinct == 0:
        raise CorpusError(
            f"the corpus is empty: there is no text to learn from in its {counts.documents} document(s)"
        )


def merged_counts(counts: Counts | Iterable[Counts]) -> PieceCounts:
    """Return the sum of counts and of files of them, which stay what they are.

    Raises:
        ArgumentTypeError: Something is neither.
        CorpusError: There are none, or a sum exceeds 64 bits.
        FormatError: A file is broken.
        MismatchError: Their pattern, normalisation or special tokens differ.
    """
    if isinstance(counts, PieceCounts):
        return counts
    if isinstance(counts, str | os.PathLike):
        return PieceCounts.load(counts)
    merged: PieceCounts | None = None
    for part in counts:
        if not isinstance(part, PieceCounts | str | os.PathLike):
            raise ArgumentTypeError(f"counts must be PieceCounts or their files, not {type(part).__name__}")
        added = part if isinstance(part, PieceCounts) else PieceCounts.load(part)
        if merged is None:
            merged = PieceCounts(added.split_patterns, added.normalization, added.special_tokens)
        merged.merge(added)
    if merged is None:
        raise CorpusError("there are no counts to learn from")
    return merged
