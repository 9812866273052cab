"""`ArrowMapper`: adds a column of ids to tables, for `datasets.map` and for others that pass tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpe_tokenizer.arguments import check_flag, thread_count
from bpe_tokenizer.errors import ArgumentTypeError, CorpusError, shorten
from bpe_tokenizer.special_tokens import special_token_names

if TYPE_CHECKING:
    from bpe_tokenizer.special_tokens import AllowedSpecial
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["ArrowMapper", "check_column", "with_column"]


@dataclass(frozen=True)
class ArrowMapper:
    """Adds the ids of a column to a table. `BPETokenizer.arrow_mapper` returns one.

    Can be pickled. Equal tokenizers and options pickle to the same bytes, by which `datasets` finds results
    in its cache.

    Args:
        tokenizer: The tokenizer.
        column: The column of texts.
        ids_column: The column to add or replace.
        add_special_tokens: As in `BPETokenizer.encode_arrow`.
        allowed_special: As in `BPETokenizer.encode_arrow`.
        threads: As in `BPETokenizer.encode_arrow`.

    Raises:
        ArgumentTypeError: The name of a column is not a `str`.
        SpecialTokenError: A set names an unknown token.

    >>> import pyarrow
    >>> from bpe_tokenizer import BPETokenizer
    >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
    >>> table = pyarrow.table({"text": ["abc", None]})
    >>> ArrowMapper(tokenizer)(table).column("input_ids").to_pylist()
    [[256, 99], None]
    """

    tokenizer: BPETokenizer
    column: str = "text"
    ids_column: str = "input_ids"
    add_special_tokens: bool = False
    allowed_special: AllowedSpecial = "none"
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in ("column", "ids_column"):
            if not isinstance(getattr(self, name), str):
                kind = type(getattr(self, name)).__name__
                raise ArgumentTypeError(f"{name} must be the name of a column, not {kind}")
        known = self.tokenizer.special_tokens
        names = special_token_names("allowed_special", self.allowed_special, known)
        if not isinstance(self.allowed_special, str):
            # A set has another order in each process.
            object.__setattr__(self, "allowed_special", tuple(sorted(names)))
        added = check_flag("add_special_tokens", self.add_special_tokens)
        object.__setattr__(self, "add_special_tokens", added)
        thread_count(self.threads)

    def __call__(self, table: Any) -> Any:
        """Return the table, or record batch, with the ids.

        Args:
            table: A `pyarrow.Table` or `RecordBatch`.

        Raises:
            ArgumentTypeError: It is not a table.
            CorpusError: The column does not exist.

        Other errors are those of `BPETokenizer.encode_arrow`.
        """
        if not hasattr(table, "schema"):
            raise ArgumentTypeError(
                f"arrow_mapper takes tables of pyarrow, not {type(table).__name__}: map a data set with "
                'dataset.with_format("arrow").map(..., batched=True)'
            )
        check_column(self.column, table.schema.names)
        ids = self.tokenizer.encode_arrow(
            table.column(self.column), self.add_special_tokens, self.allowed_special, threads=self.threads
        )
        return with_column(table, self.ids_column, ids)


def check_column(column: str, names: Sequence[str]) -> None:
    """Check that a table has a column, and only one of its name.

    Raises:
        CorpusError: It has not.
    """
    if column not in names:
        shown = ", ".join(map(repr, names[:10])) or "none"
        raise CorpusError(f"no column {shorten(column)}; the columns are {shown[:150]}")
    if (count := names.count(column)) > 1:
        raise CorpusError(f"{count} columns are named {shorten(column)}: rename all but one")


def with_column(table: Any, name: str, column: Any) -> Any:
    """Return a table or record batch of pyarrow with a column added or replaced."""
    names = table.schema.names
    if name in names:
        return table.set_column(names.index(name), name, column)
    return table.append_column(name, column)
