"""The cases: package, mode, corpus, vocabulary and threads of each comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import product

from benchmarks.peers import OURS, PEERS
from benchmarks.vocabularies import OPENAI, VOCABULARIES

__all__ = [
    "ALL_LIMITS",
    "BASELINES",
    "CALL_SIZES",
    "CORPORA",
    "LIMITS",
    "MIXED",
    "MODES",
    "Case",
    "declared",
    "select",
]

CORPORA = ("books", "code", "multi", "zh")
# Equal parts of all corpora.
MIXED = "mixed"

_SIZES = {
    "10": 10,
    "100": 100,
    "1k": 1_000,
    "10k": 10_000,
    "100k": 100_000,
    "1M": 1_000_000,
    "10M": 10_000_000,
}
_LIST_CALLS = {f"call-{name}": size for name, size in _SIZES.items() if size <= 1_000_000}
_ARRAY_CALLS = {f"array-{name}": size for name, size in _SIZES.items()}
# The bytes of a text, for each mode of single calls.
CALL_SIZES = _LIST_CALLS | _ARRAY_CALLS

# The description of each mode on the page.
MODES = {
    "list": "documents of about 20 kB, one call each, to `list[int]`",
    "numpy": "the same, to a NumPy array",
    "whole": "the whole text in one call, to a NumPy array",
    "batch": "all documents in one call, to whatever the package returns for a batch",
    "new": "as `batch`, of `str` objects that are new each time",
    "file": "from a file of documents with `<|endoftext|>` between them to ids",
    **{mode: f"texts of {size:,} bytes, one call each, to `list[int]`" for mode, size in _LIST_CALLS.items()},
    **{
        mode: f"texts of {size:,} bytes, one call each, to a NumPy array"
        for mode, size in _ARRAY_CALLS.items()
    },
    "decode-str": "the `list[int]` of each document to `str`",
    "decode-bytes": "the NumPy array of each document to `bytes`",
    "count": "the number of ids of each document",
    "offsets": "the ids of each document and the span of text of each id, as lists",
    "offset-arrays": "the same as arrays",
    "stream": "each document as a stream of parts of 1,000 characters",
    "special": "documents to `list[int]` with special tokens recognised",
}
# Modes that only ours are measured in, and the mode of ours that they are compared with.
BASELINES = {
    "count": "numpy",
    "offsets": "list",
    "offset-arrays": "list",
    "stream": "list",
    "special": "list",
}

# Bytes of a corpus for each package, and for us in the same cases. Slow packages get less.
LIMITS = dict.fromkeys(PEERS, 1_000_000) | {
    "gigatoken": 10_000_000,
    "fastokens": 4_000_000,
    "quicktok": 2_000_000,
    "tokenizers": 200_000,
}
# With --all: the others take all of it.
ALL_LIMITS = {"quicktok": 5_000_000, "tiktoken": 2_000_000, "tokenizers": 500_000}


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


@dataclass(frozen=True)
class _Group:
    """Cases of a package: all combinations of what the fields list. No corpora are all."""

    peer: str
    modes: Sequence[str]
    vocabularies: Sequence[str] = ("cl100k",)
    states: Sequence[str] = ("warm",)
    threads: Sequence[int] = (1,)
    corpora: Sequence[str] | None = None

    def cases(self, corpora: Sequence[str]) -> Iterator[Case]:
        chosen = corpora if self.corpora is None else self.corpora
        for parts in product(self.modes, chosen, self.vocabularies, self.states, self.threads):
            yield Case(self.peer, *parts)


_DECODING = {
    "tiktoken": ("decode-str", "decode-bytes"),
    "tokenizers": ("decode-str",),
    "fastokens": ("decode-str",),
    "quicktok": ("decode-str", "decode-bytes"),
    "gigatoken": ("decode-str", "decode-bytes"),
}
_GROUPS = [
    # Every package once.
    *(_Group(peer, ("list",), corpora=(MIXED,)) for peer in PEERS),
    # The fastest package for arrays, where it is fastest: warm, cold, and in every length.
    _Group("gigatoken", ("numpy",), OPENAI, ("warm", "cold")),
    _Group("gigatoken", tuple(_ARRAY_CALLS), OPENAI),
    _Group("gigatoken", ("list", "whole")),
    _Group("gigatoken", ("batch", "new", "file"), threads=(1, 2)),
    # The fastest for lists.
    _Group("fastokens", ("list",), (*OPENAI, "llama3", "qwen2")),
    _Group("fastokens", tuple(_LIST_CALLS), ("o200k", "llama3")),
    _Group("tiktoken", ("list", "numpy"), OPENAI),
    _Group("tiktoken", ("call-100", "call-1k")),
    _Group("tokenizers", ("list",)),
    _Group("quicktok", ("list",), ("cl100k", "o200k")),
    *(_Group(peer, ("batch",), threads=(2,)) for peer in ("tiktoken", "tokenizers", "fastokens", "quicktok")),
    *(_Group(peer, modes) for peer, modes in _DECODING.items()),
    # Our two threads compared with one, and what more than ids costs.
    _Group(OURS, ("whole", "batch", "file"), threads=(2,)),
    _Group(OURS, tuple(BASELINES)),
]
_ALL_GROUPS = [
    *_GROUPS,
    _Group("gigatoken", ("list", "numpy", "whole"), VOCABULARIES),
    _Group("gigatoken", ("batch", "new", "file"), VOCABULARIES, threads=(1, 2)),
    _Group("gigatoken", ("numpy",), VOCABULARIES, ("cold",)),
    _Group("gigatoken", ("batch",), OPENAI, ("cold",)),
    _Group("fastokens", ("list",), VOCABULARIES, ("warm", "cold")),
    _Group("tiktoken", ("list", "numpy"), VOCABULARIES),
    _Group("tiktoken", ("batch",), VOCABULARIES, threads=(1, 2)),
    _Group("tokenizers", ("list",), VOCABULARIES),
    _Group("quicktok", ("list", "numpy"), VOCABULARIES),
    _Group("quicktok", ("batch",), VOCABULARIES, threads=(1, 2)),
    *(_Group(peer, ("batch",), VOCABULARIES, threads=(2,)) for peer in ("tokenizers", "fastokens")),
    *(_Group(peer, ("call-100", "call-1k", "call-10k"), OPENAI) for peer in _DECODING),
    _Group(OURS, ("whole", "batch", "file"), VOCABULARIES, threads=(2,)),
    _Group(OURS, tuple(BASELINES), VOCABULARIES),
]


def declared(corpora: Sequence[str] = CORPORA, everything: bool = False) -> list[Case]:
    """List the cases, grouped by vocabulary and corpus.

    Args:
        corpora: Names of the corpora.
        everything: More vocabularies and modes of the slow packages.

    Returns:
        The cases.
    """
    groups = _ALL_GROUPS if everything else _GROUPS
    cases = dict.fromkeys(case for group in groups for case in group.cases(corpora))
    order = [*corpora, MIXED]
    return sorted(cases, key=lambda case: (VOCABULARIES.index(case.vocabulary), order.index(case.corpus)))


def select(cases: Iterable[Case], words: Sequence[str]) -> list[Case]:
    """Select the cases whose name contains each word.

    Args:
        cases: The cases.
        words: Parts of names, like `gigatoken` or `cold`; a word may list alternatives, separated by commas.

    Returns:
        The selected cases, in order.
    """
    return [case for case in cases if all(set(word.split(",")) & set(case.parts) for word in words)]
