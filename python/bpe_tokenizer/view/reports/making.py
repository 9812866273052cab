"""`bpe_tokenizer.report` and `compare`: the statistics of tokenizers on the files of a corpus."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from bpe_tokenizer.errors import ArgumentTypeError, OptionError, caller_level
from bpe_tokenizer.options import ReadOptions, takes
from bpe_tokenizer.readers.positions import SkippedRows
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.progress import ProgressBar
from bpe_tokenizer.view.reports.comparison import Comparison, compare_tokenizers
from bpe_tokenizer.view.reports.documents import Document, documents
from bpe_tokenizer.view.reports.languages import find_reference
from bpe_tokenizer.view.reports.report import Report, make_report

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from bpe_tokenizer.options import ReadArguments
    from bpe_tokenizer.readers.inputs import PathLike

__all__ = ["compare", "report"]

# A tokenizer, or what `BPETokenizer.load` takes.
_Tokenizer: TypeAlias = "BPETokenizer | str | os.PathLike[str]"


@takes(ReadOptions)
def report(
    tokenizer: _Tokenizer,
    corpus: PathLike | Iterable[PathLike],
    *,
    name: str | None = None,
    under_used: int = 10,
    reference: str | None = None,
    verbose: bool = False,
    **options: Unpack[ReadArguments],
) -> Report:
    """Return the statistics of a tokenizer on the files of a corpus.

    A text file is one document, encoded incrementally; a row of another file is one. Special tokens in them
    are plain text. Skipped rows give a warning.

    Args:
        tokenizer: A tokenizer, or a path or a name that `load` takes.
        corpus: Files, directories, patterns and URLs.
        name: The tokenizer's name for people; None for that of its path.
        under_used: Tokens that occur, but fewer times than this, are under-used.
        reference: The name of the file with whose cost the others are compared; None for the file in
            English, if a name tells: `en.txt`, `english/news.txt`.
        verbose: Whether to show progress on standard error.

    Raises:
        CorpusError: A file cannot be read, is not a corpus, or is not UTF-8.
        OptionError: The reference is not a file of the corpus.

    Example:
        >>> import pathlib, tempfile
        >>> from bpe_tokenizer import BPETokenizer, report
        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     path = pathlib.Path(directory, "corpus.txt")
        ...     _ = path.write_bytes(b"low lower")
        ...     found = report(tokenizer, path, name="words")
        >>> print(found.facts["summary"][0])
        words encodes 9 bytes as 5 tokens: 1.80 bytes per token.
    """
    label, loaded = _named(tokenizer, name, "tokenizer")
    with _opened(corpus, ReadOptions(**options), reference, 1, verbose) as (files, bar, skipped):
        return make_report(label, loaded, files, under_used, bar.advance, reference, skipped)


@takes(ReadOptions)
def compare(
    tokenizers: Mapping[str, _Tokenizer] | Iterable[_Tokenizer | tuple[str, _Tokenizer]],
    corpus: PathLike | Iterable[PathLike],
    *,
    under_used: int = 10,
    reference: str | None = None,
    verbose: bool = False,
    **options: Unpack[ReadArguments],
) -> Comparison:
    """Compare tokenizers on the files of a corpus: their statistics, and where they cut it differently.

    The corpus is read once for each tokenizer, and once more line by line.

    Args:
        tokenizers: At least two, as for `report`: a dict by name, or a list of them or of pairs with a name.
        corpus: As for `report`.
        under_used: As for `report`.
        reference: As for `report`.
        verbose: As for `report`.

    Raises:
        CorpusError: A file cannot be read, is not a corpus, or is not UTF-8.
        OptionError: There are fewer than two tokenizers, or the reference is not a file of the corpus.

    Example:
        >>> import pathlib, tempfile
        >>> from bpe_tokenizer import BPETokenizer, compare
        >>> made = {text: BPETokenizer().train(text * 9, 258, verbose=False) for text in ("low ", "new ")}
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     path = pathlib.Path(directory, "corpus.txt")
        ...     _ = path.write_bytes(b"low low low")
        ...     found = compare(made, path)
        >>> [each.total.tokens for each in found.reports]
        [5, 11]
    """
    if isinstance(tokenizers, str | os.PathLike | BPETokenizer):
        raise ArgumentTypeError("compare takes a list or a dict of tokenizers, and a report is of one")
    given = tokenizers.items() if isinstance(tokenizers, Mapping) else tokenizers
    pairs = [each if isinstance(each, tuple) else (None, each) for each in given]
    loaded = [_named(each, name, f"tokenizer {number}") for number, (name, each) in enumerate(pairs, 1)]
    if len(loaded) < 2:
        raise OptionError("a comparison needs at least two tokenizers")
    with _opened(corpus, ReadOptions(**options), reference, len(loaded) + 1, verbose) as opened:
        files, bar, skipped = opened
        return compare_tokenizers(loaded, files, under_used, bar.advance, reference, skipped)


def _named(given: _Tokenizer, name: str | None, otherwise: str) -> tuple[str, BPETokenizer]:
    """Return a tokenizer with its name for people: the given one, that of its path, or another."""
    if isinstance(given, BPETokenizer):
        return otherwise if name is None else name, given
    if not isinstance(given, str | os.PathLike):
        raise ArgumentTypeError(
            f"a tokenizer must be a BPETokenizer, or what `load` takes, not {type(given).__name__}"
        )
    return os.fspath(given) if name is None else name, BPETokenizer.load(given)


@contextmanager
def _opened(
    corpus: PathLike | Iterable[PathLike],
    options: ReadOptions,
    reference: str | None,
    times: int,
    verbose: bool,
) -> Iterator[tuple[list[Document], ProgressBar, SkippedRows]]:
    """Open the files of a corpus, which are read some times, and warn of skipped rows."""
    skipped = SkippedRows()
    with documents(corpus, options) as files, ProgressBar.shown(verbose) as bar:
        find_reference([each.name for each in files], reference)  # A wrong name fails before the work.
        bar.start("Reading", sum(each.size for each in files) * times, "MB", 1e6)
        yield files, bar, skipped
    if skipped.count:
        warnings.warn(skipped.summary(), stacklevel=caller_level())
