"""A corpus of files as a list of sources."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from bpe_tokenizer.errors import caller_level
from bpe_tokenizer.options import ReadOptions
from bpe_tokenizer.readers.detect import refuse_mixtures
from bpe_tokenizer.readers.inputs import Input, PathLike, find_inputs
from bpe_tokenizer.readers.separators import warn_of_separators

__all__ = ["find_sources"]


def find_sources(
    corpus: PathLike | Input | Iterable[PathLike | Input],
    options: ReadOptions,
    recognized: Collection[str] = (),
) -> list[Input]:
    """Return the files of a corpus, as `find_inputs`; warn of doubles, and of separators that nobody named.

    Args:
        corpus: As in `find_inputs`.
        options: How documents are found in the files.
        recognized: Special tokens that the caller finds in the text anyway.

    Raises:
        CorpusError: A file does not exist, or a directory or a pattern has no file, or a directory has
            files of rows and others.
        OptionError: Standard input is named twice, nothing is named, or a path cannot be one.

    >>> [source.name == __file__ for source in find_sources(__file__, ReadOptions())]
    [True]
    """
    sources = find_inputs(corpus)
    refuse_mixtures(sources, options.input_format)
    _warn_of_doubles(sources)
    warn_of_separators(sources, options, recognized)
    return sources


def _warn_of_doubles(sources: Sequence[Input]) -> None:
    """Warn, once, if two inputs are one file, which would be read twice."""
    # Following links takes long, and only files of one size and time can be the same.
    alike = Counter((each.size, each.modified) for each in sources)
    names: dict[Path | str | None, str] = {}
    for each in sources:
        if alike[each.size, each.modified] > 1:
            place = each.location.resolve() if isinstance(each.location, Path) else each.location
            if place in names:
                pair = f"{names[place][-100:]} and {each.name[-100:]}"
                problem = f"{pair} are one file, which is read twice; if that is not meant, name it once"
                warnings.warn(problem, UserWarning, stacklevel=caller_level())
                return
            names[place] = each.name
