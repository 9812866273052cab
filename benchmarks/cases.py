"""The cases: package, mode, corpus, vocabulary and threads of each comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import product

from benchmarks.peers import OURS
from benchmarks.vocabularies import VOCABULARIES

__all__ = ["CALL_SIZES", "CORPORA", "LIMITS", "MODES", "Case", "declared", "select"]

CORPORA = ("books", "code", "multi", "zh")

# The description of each mode on the page.
MODES = {
    "list": "documents of about 20 kB, one call each, to `list[int]`",
    "numpy": "documents of about 20 kB, one call each, to a NumPy array",
    "whole": "the whole text in one call, to a NumPy array",
    "batch": "all documents in one call, to whatever the package returns for a batch",
    "file": "from a file of documents with `<|endoftext|>` between them to ids",
    "call-100": "texts of 100 bytes, one call each, to `list[int]`",
    "call-1k": "texts of 1 kB, one call each, to `list[int]`",
    "call-10k": "texts of 10 kB, one call each, to `list[int]`",
    "decode-str": "the `list[int]` of each document to `str`",
    "decode-bytes": "the NumPy array of each document to `bytes`",
}
CALL_SIZES = {"call-100": 100, "call-1k": 1_000, "call-10k": 10_000}

# Bytes of a corpus for the slow packages, and for us in the same cases.
LIMITS = {"tokenizers": 500_000, "tiktoken": 2_000_000, "quicktok": 5_000_000}

# The encoding modes of each package, with the numbers of threads that it can use.
_ENCODING: dict[str, dict[str, tuple[int, ...]]] = {
    "tiktoken": {"list": (1,), "numpy": (1,), "batch": (1, 2)},
    "tokenizers": {"list": (1,), "batch": (2,)},
    "fastokens": {"list": (1,), "batch": (2,)},
    "quicktok": {"list": (1,), "numpy": (1,), "batch": (1, 2)},
    "gigatoken": {"list": (1,), "numpy": (1,), "whole": (1,), "batch": (1, 2), "file": (1, 2)},
    # Our two threads compared with one.
    OURS: {"whole": (2,), "batch": (2,), "file": (2,)},
}
# Packages that cache encoded text, in their fastest modes.
_COLD = {"fastokens": ("list",), "gigatoken": ("numpy", "batch")}
_DECODING = {
    "tiktoken": ("decode-str", "decode-bytes"),
    "tokenizers": ("decode-str",),
    "fastokens": ("decode-str",),
    "quicktok": ("decode-str", "decode-bytes"),
    "gigatoken": ("decode-str", "decode-bytes"),
}
# Vocabularies that most packages read have more cases.
_OPENAI = ("gpt2", "cl100k", "o200k")
_QUICK_VOCABULARIES = ("cl100k", "invented")


@dataclass(frozen=True)
class Case:
    """One comparison; its name joins its parts with slashes."""

    peer: str
    mode: str
    corpus: str
    vocabulary: str
    state: str
    threads: int

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the name."""
        *words, threads = astuple(self)
        return (*words, f"{threads}t")

    @property
    def name(self) -> str:
        """The name."""
        return "/".join(self.parts)


def declared(corpora: Sequence[str] = CORPORA, quick: bool = False) -> list[Case]:
    """List the cases, grouped by vocabulary and corpus.

    Args:
        corpora: Names of the corpora.
        quick: Two vocabularies, and only one cold mode.

    Returns:
        The cases.
    """
    vocabularies = _QUICK_VOCABULARIES if quick else VOCABULARIES
    return [
        case
        for vocabulary, corpus in product(vocabularies, corpora)
        for case in _of(corpus, vocabulary, quick)
    ]


def _of(corpus: str, vocabulary: str, quick: bool) -> Iterator[Case]:
    for peer, modes in _ENCODING.items():
        for mode, threads in modes.items():
            for count in threads:
                yield Case(peer, mode, corpus, vocabulary, "warm", count)
    for peer, names in _COLD.items():
        for mode in names:
            if mode != "batch" or (vocabulary in _OPENAI and not quick):
                yield Case(peer, mode, corpus, vocabulary, "cold", 1)
    for peer in _DECODING:
        for mode in CALL_SIZES:
            if vocabulary in _OPENAI:
                yield Case(peer, mode, corpus, vocabulary, "warm", 1)
    for peer, names in _DECODING.items():
        for mode in names:
            if vocabulary == "cl100k":
                yield Case(peer, mode, corpus, vocabulary, "warm", 1)


def select(cases: Iterable[Case], words: Sequence[str]) -> list[Case]:
    """Select the cases whose name contains each word.

    Args:
        cases: The cases.
        words: Parts of names, like `gigatoken` or `cold`; a word may list alternatives, separated by commas.

    Returns:
        The selected cases, in order.
    """
    return [case for case in cases if all(set(word.split(",")) & set(case.parts) for word in words)]
