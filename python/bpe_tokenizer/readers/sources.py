"""A corpus of files as a list of sources; `train/corpus.py`, which also takes texts, makes its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from bpe_tokenizer.options import ReadOptions
from bpe_tokenizer.readers.inputs import Input, PathLike, find_inputs
from bpe_tokenizer.readers.separators import warn_of_separators

__all__ = ["find_sources"]


def find_sources(
    corpus: PathLike | Input | Iterable[PathLike | Input],
    options: ReadOptions,
    recognized: Collection[str] = (),
) -> list[Input]:
    """Return the files of a corpus, as `find_inputs`; warn, once, of separators that nobody named.

    Args:
        corpus: As in `find_inputs`.
        options: How documents are found in the files.
        recognized: Special tokens that the caller finds in the text anyway.

    Raises:
        CorpusError: A file does not exist, or a directory or a pattern has no file.
        OptionError: Standard input is named twice, nothing is named, or a path cannot be one.

    >>> [source.name == __file__ for source in find_sources(__file__, ReadOptions())]
    [True]
    """
    sources = find_inputs(corpus)
    warn_of_separators(sources, options, recognized)
    return sources
