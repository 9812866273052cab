"""Counting and encoding as functions of Arrow record batches, for every engine.

Counts are rows of `piece` and `n`: a piece and its count. The empty piece, which no text has, counts the
documents. An engine only has to add up the rows of each piece, in any order and grouping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpe_tokenizer.columns.mapper import check_column, with_column
from bpe_tokenizer.columns.texts import holds_texts
from bpe_tokenizer.errors import ArgumentTypeError, CorpusError, OptionError, shorten
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.options import MemoryArguments, MemoryLimits, takes
from bpe_tokenizer.patterns import resolve_split_pattern
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.train.arrow import piece_buffers
from bpe_tokenizer.train.piece_counts import PieceCounts, core_counter

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = [
    "CountSettings",
    "add_texts",
    "collect_counts",
    "count_texts",
    "counts_to_batch",
    "encode_texts",
    "sum_counts",
]

_DOCUMENTS = b""
# A stream of counts is emitted at this number of distinct pieces: about a gigabyte.
_MAX_DISTINCT = 10_000_000
_TOO_MANY = f"a piece was counted {2**63:,} times or more; count fewer documents in one batch"


@dataclass(frozen=True)
class CountSettings:
    """How documents are split into pieces. Small and picklable.

    Args:
        split_pattern: A name of `bpe_tokenizer.patterns`, a pattern, or several to apply in sequence.
        normalization: `"NFC"`, `"NFD"`, `"NFKC"`, `"NFKD"` or None.
        special_tokens: Texts at which documents are cut first.

    Raises:
        PatternError: The split pattern is not valid.
        OptionError: The normalization is something else.

    >>> CountSettings("gpt2", None, ("<|end|>",)).normalization is None
    True
    """

    split_pattern: str | Sequence[str] = "cl100k"
    normalization: str | None = "NFC"
    special_tokens: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "split_pattern", resolve_split_pattern(self.split_pattern))
        object.__setattr__(self, "special_tokens", tuple(self.special_tokens))
        self.counts()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(split_pattern={shorten(self.split_pattern)}, "
            f"normalization={self.normalization!r}, special_tokens={shorten(self.special_tokens)})"
        )

    @classmethod
    def of(cls, tokenizer: BPETokenizer) -> CountSettings:
        """Return a tokenizer's patterns, normalisation and special tokens.

        Raises:
            OptionError: The tokenizer transforms texts in other ways too.

        >>> from bpe_tokenizer import BPETokenizer
        >>> CountSettings.of(BPETokenizer("gpt2", "NFD")).normalization
        'NFD'
        """
        if len(tokenizer) and not tokenizer.model.core.is_plain:
            raise OptionError(
                "counting uses split patterns only, but this tokenizer's file has other steps too; "
                "give CountSettings(split_pattern, normalization, special_tokens) instead"
            )
        return cls(tokenizer.split_pattern, tokenizer.normalization, tuple(tokenizer.special_tokens))

    def counts(self, threads: int | None = None, **limits: Unpack[MemoryArguments]) -> PieceCounts:
        """Return empty counts. Arguments: `PieceCounts`."""
        return PieceCounts(
            self.split_pattern, self.normalization, self.special_tokens, threads=threads, **limits
        )


def count_texts(batch: Any, settings: CountSettings, column: str = "text") -> Any:
    """Count the pieces of a batch of documents.

    Args:
        batch: A `pyarrow.RecordBatch`.
        settings: How to split documents.
        column: The column of documents: strings, or binary in UTF-8.

    Returns:
        A `pyarrow.RecordBatch` of counts: `piece` large_binary, `n` int64, sorted distinct pieces.

    Raises:
        CorpusError: The column does not exist, or a row is null or not UTF-8.

    >>> import pyarrow as pa
    >>> batch = pa.RecordBatch.from_pydict({"text": ["low low", "low"]})
    >>> count_texts(batch, CountSettings("gpt2")).to_pydict()
    {'piece': [b'', b' low', b'low'], 'n': [2, 1, 2]}
    """
    # One thread: an engine runs a task on each processor.
    counts = settings.counts(threads=1)
    add_texts(counts, batch, column)
    return counts_to_batch(counts)


def add_texts(counts: PieceCounts, batch: Any, column: str) -> None:
    """Count the documents of a batch. Arguments and errors: `count_texts`."""
    texts = _texts(batch, column)
    try:
        counts.add_column(texts)
    except CorpusError as error:
        raise CorpusError(f"column {column!r} of a batch: {error}") from None


def sum_counts(batches: Iterable[Any], most_distinct: int = _MAX_DISTINCT) -> Iterator[Any]:
    """Add up the counts of a stream of batches, in bounded memory.

    Args:
        batches: `pyarrow.RecordBatch`es of counts.
        most_distinct: Emit the sums at this number of distinct pieces.

    Yields:
        `pyarrow.RecordBatch`es of counts: one with distinct pieces, or several if there are too many pieces.

    Raises:
        CorpusError: A count exceeds 63 bits.

    >>> import pyarrow as pa
    >>> batch = pa.RecordBatch.from_pydict({"piece": [b"low", b"er", b"low"], "n": [1, 2, 3]})
    >>> [total.to_pydict() for total in sum_counts([batch, batch])]
    [{'piece': [b'', b'er', b'low'], 'n': [0, 4, 8]}]
    """
    # No text is split here, so the settings do not matter.
    counts = PieceCounts()
    for batch in batches:
        _add(counts, batch)
        if counts.distinct >= most_distinct:
            yield counts_to_batch(counts)
            counts = PieceCounts()
    yield counts_to_batch(counts)


@takes(MemoryLimits)
def collect_counts(
    batches: Iterable[Any], settings: CountSettings, **limits: Unpack[MemoryArguments]
) -> PieceCounts:
    """Add up the counts of a stream of batches into one `PieceCounts`.

    Args:
        batches: `pyarrow.RecordBatch`es of counts; a piece may occur in several.
        settings: How the documents were split.

    Raises:
        CorpusError: A count exceeds 63 bits.

    >>> import pyarrow as pa
    >>> settings = CountSettings()
    >>> texts = pa.RecordBatch.from_pydict({"text": ["low low", "low"]})
    >>> counts = collect_counts([count_texts(texts, settings)] * 2, settings)
    >>> counts.documents, list(counts.items())
    (4, [(b' low', 2), (b'low', 4)])
    """
    counts = settings.counts(**limits)
    for batch in batches:
        _add(counts, batch)
    return counts


def encode_texts(
    batch: Any,
    tokenizer: BPETokenizer,
    column: str = "text",
    ids_column: str = "input_ids",
    add_special_tokens: bool = False,
    allowed_special: AllowedSpecial = "none",
) -> Any:
    """Encode a batch of documents.

    Args:
        batch: A `pyarrow.RecordBatch`.
        tokenizer: The tokenizer.
        column: The column of documents: strings, or binary in UTF-8.
        ids_column: The column to add or replace: list<uint32>.
        add_special_tokens: Whether to add the model's special tokens to each document.
        allowed_special: The special tokens to recognise: `"none"`, `"all"` or a set.

    Returns:
        The `pyarrow.RecordBatch` with the ids.

    Raises:
        CorpusError: The column does not exist, or a row is null or not UTF-8.
        SpecialTokenError: A set names an unknown token.

    >>> import pyarrow as pa
    >>> from bpe_tokenizer import BPETokenizer
    >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
    >>> batch = pa.RecordBatch.from_pydict({"text": ["abc", ""]})
    >>> encode_texts(batch, tokenizer).column("input_ids").to_pylist()
    [[256, 99], []]
    """
    texts = _texts(batch, column)
    try:
        ids = tokenizer.encode_arrow(texts, add_special_tokens, allowed_special, threads=1)
    except CorpusError as error:
        raise CorpusError(f"column {column!r} of a batch: {error}") from None
    if ids.null_count:
        row = ids.is_null().index(True).as_py()
        raise CorpusError(f"column {column!r} of a batch: row {row} is null: filter such rows out")
    return with_column(batch, ids_column, ids)


def _texts(batch: Any, column: str) -> Any:
    """Return a column of documents as an array of strings or bytes."""
    check_column(column, batch.schema.names)
    array = batch.column(column)
    if not holds_texts(array.type):
        raise ArgumentTypeError(f"the column {column!r} holds {array.type}; documents are strings or binary")
    return array


def counts_to_batch(counts: PieceCounts) -> Any:
    """Return counts as a record batch whose first row is the number of documents."""
    pyarrow = import_library("pyarrow")
    rows = counts.to_arrow()
    piece = pyarrow.array([_DOCUMENTS], pyarrow.large_binary())
    documents = pyarrow.array([counts.documents], pyarrow.uint64())
    pieces = pyarrow.concat_arrays([piece, rows.column("piece")])
    try:  # Every engine has signed numbers.
        n = pyarrow.concat_arrays([documents, rows.column("n")]).cast(pyarrow.int64())
    except pyarrow.ArrowInvalid:
        raise CorpusError(_TOO_MANY) from None
    return pyarrow.RecordBatch.from_arrays([pieces, n], names=["piece", "n"])


def _add(counts: PieceCounts, batch: Any) -> None:
    compute = import_library("pyarrow.compute")
    if batch.column("n").null_count:
        raise CorpusError(_TOO_MANY)
    are_documents = compute.equal(compute.binary_length(batch.column("piece")), 0)
    documents = sum(batch.column("n").filter(are_documents).to_pylist())
    # Adds to the core's counter directly: `add_arrow` copies it first, so that it can fail as a whole.
    counter = core_counter(counts)
    for pieces in piece_buffers(batch.filter(compute.invert(are_documents))):
        counter.add_pieces(*pieces)
    counter.add_documents(documents)
