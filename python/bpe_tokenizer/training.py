"""Training: corpora in any form go in, a model comes out."""

from __future__ import annotations

import contextlib
import operator
import os
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from bpe_tokenizer import _core
from bpe_tokenizer.errors import ArgumentTypeError, CorpusError, OptionError
from bpe_tokenizer.model import AddedToken, Model
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN
from bpe_tokenizer.special_tokens import SpecialTokens, assign_ids

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

__all__ = ["Corpus", "TieBreak", "TrainingOptions", "train_bpe", "train_model"]

Document: TypeAlias = str | bytes
Corpus: TypeAlias = Document | os.PathLike[str] | Iterable[Document] | Iterable[os.PathLike[str]]
TieBreak: TypeAlias = Literal["largest", "huggingface"]

# Documents go to the core in batches of about this many characters.
_BATCH_CHARACTERS = 4_000_000
# Longer than any path; no text of this length is looked up in the file system.
_LONGEST_PATH = 4096
_FILE_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}")


@dataclass(frozen=True)
class TrainingOptions:
    """What a training run is asked for; checked when made.

    Args:
        vocab_size: Number of ids to fill: 256 bytes, reserved special tokens, learned tokens.
        min_frequency: Smallest count of a pair that is merged.
        special_tokens: A list, which takes the ids 256, 257, ..., or a dict of text to id.
        tie_break: Which of several pairs of the same count is merged: `"largest"`, the one with the
            greatest bytes, or `"huggingface"`, the one that Hugging Face's `BpeTrainer` takes.
        max_token_length: Longest token to learn, in bytes; None for no limit.
        threads: Number of threads that count; None for as many as there are processors.
        verbose: Show a progress bar (on a terminal) and a summary on stderr.

    Raises:
        ModelError: A special token is empty or there twice, or its id is taken, below 256 or too large.
        OptionError: Another option is out of its range.
    """

    vocab_size: int = 32000
    min_frequency: int = 2
    special_tokens: SpecialTokens | None = None
    tie_break: TieBreak = "largest"
    max_token_length: int | None = None
    threads: int | None = None
    verbose: bool = True
    added_tokens: tuple[AddedToken, ...] = field(init=False)

    def __post_init__(self) -> None:
        _check_integer("vocab_size", self.vocab_size, 257, "the 256 bytes are the first 256 ids")
        if self.vocab_size >= 2**31:
            raise OptionError(f"vocab_size is {self.vocab_size:,}; ask for less than 2**31")
        _check_integer("min_frequency", self.min_frequency, 0)
        if self.tie_break not in ("largest", "huggingface"):
            raise OptionError(f"tie_break is {self.tie_break!r}; it must be 'largest' or 'huggingface'")
        if self.max_token_length is not None:
            _check_integer("max_token_length", self.max_token_length, 1)
        if self.threads is not None:
            _check_integer("threads", self.threads, 1)
        added = assign_ids(self.special_tokens, self.vocab_size)
        object.__setattr__(self, "added_tokens", tuple(added))


def _check_integer(name: str, value: object, least: int, reason: str = "") -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"{name} must be an int, not {type(value).__name__}")
    if operator.index(value) < least:
        raise OptionError(
            f"{name} is {value}; it must be at least {least}" + (f": {reason}" if reason else "")
        )


def train_model(
    corpus: Corpus, split_patterns: Sequence[str], normalization: str | None, options: TrainingOptions
) -> Model:
    """Learn a vocabulary and merges from a corpus.

    Args:
        corpus: A `Path`; a `str` that names a file, or else is the text itself; an iterable of `str` or
            `bytes` (UTF-8), each a document; an iterable of `Path`, each file a document.
        split_patterns: What cuts documents into pieces, applied one after the other.
        normalization: What is done to the text first: a Unicode normalisation form or None.
        options: Everything else.

    Raises:
        CorpusError: There is no text, a file cannot be read, or something is not UTF-8.
        ArgumentTypeError: The corpus, or an item of it, is of no accepted type.

    The counting and merging is that of Sennrich et al. 2016, https://arxiv.org/abs/1508.07909, on bytes.
    """
    began = time.perf_counter()
    contents = [token.content for token in options.added_tokens]
    counter = _core.PieceCounter(
        split_patterns=split_patterns,
        normalization=normalization,
        special_tokens=contents,
        threads=options.threads or 0,
    )
    with _Progress.shown(options.verbose) as progress:
        _count(counter, corpus, progress)
        if counter.pieces == 0:
            raise CorpusError(
                f"the corpus is empty: there is no text to learn from in its {counter.documents} document(s)"
            )
        progress.start("Merging")
        vocab, merges = counter.train(
            vocab_size=options.vocab_size,
            min_frequency=options.min_frequency,
            tie_break=options.tie_break,
            reserved=[token.id for token in options.added_tokens if token.id < options.vocab_size],
            max_token_length=options.max_token_length,
            progress=progress.update if progress.visible else None,
        )
    if options.verbose:
        _print_summary(counter, len(merges), options, time.perf_counter() - began)
    reserved = {t.id: t.content.encode() for t in options.added_tokens if t.id < options.vocab_size}
    return Model(
        _core.Model(
            vocab | reserved,
            merges,
            split_patterns=split_patterns,
            normalization=normalization,
            added_tokens=options.added_tokens,
        )
    )


def train_bpe(
    input_path: str | os.PathLike[str], vocab_size: int, special_tokens: SpecialTokens | None = None
) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Learn a vocabulary and merges from a file, with GPT-2's split pattern and every default plain.

    No normalisation, no minimum frequency; of pairs with the same count the one with the lexicographically
    greatest bytes is merged first.

    Args:
        input_path: A UTF-8 text file.
        vocab_size: Number of ids: 256 bytes, special tokens, learned tokens.
        special_tokens: A list, which takes the ids 256, 257, ..., or a dict of text to id. Nothing is
            learned across them.

    Returns:
        The bytes of every id, special tokens included, and the merges in the order they were learned.

    Raises:
        CorpusError: There is no such file, it holds no text, or it is not UTF-8.
        ModelError: A special token is invalid.
        OptionError: `vocab_size` is 256 or less, or too small for the special tokens.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "corpus.txt")
    >>> _ = path.write_text("low low low lower<|end|>", encoding="utf-8")
    >>> vocab, merges = train_bpe(path, 260, ["<|end|>"])
    >>> merges
    [(b'o', b'w'), (b'l', b'ow'), (b' ', b'low')]
    >>> vocab[256], vocab[259]
    (b'<|end|>', b' low')
    """
    options = TrainingOptions(vocab_size, min_frequency=1, special_tokens=special_tokens, verbose=False)
    model = train_model(Path(input_path), (GPT2_SPLIT_PATTERN,), None, options)
    return model.core.vocab, model.core.merges


def _count(counter: _core.PieceCounter, corpus: Corpus, progress: _Progress) -> None:
    """Count the pieces of a corpus of any form."""
    if isinstance(corpus, str):
        path = _named_file(corpus)
        corpus = [corpus] if path is None else path
    elif isinstance(corpus, bytes | bytearray | memoryview):
        corpus = [bytes(corpus)]
    if isinstance(corpus, os.PathLike):
        corpus = [corpus]
    if isinstance(corpus, Mapping) or not isinstance(corpus, Iterable):
        raise ArgumentTypeError(
            "a corpus must be a str, a Path or an iterable of str, bytes or Path, "
            f"not {type(corpus).__name__}"
        )
    if isinstance(corpus, Sequence) and corpus and all(isinstance(item, os.PathLike) for item in corpus):
        _count_files(counter, [Path(cast("os.PathLike[str]", item)) for item in corpus], progress)
    else:
        _count_items(counter, corpus, progress)


def _count_files(counter: _core.PieceCounter, paths: Sequence[Path], progress: _Progress) -> None:
    for path in paths:
        _check_file(path)
    progress.start("Counting bytes", total=sum(path.stat().st_size for path in paths))
    counter.add_files(paths, progress=progress.update if progress.visible else None)


def _count_items(counter: _core.PieceCounter, items: Iterable[object], progress: _Progress) -> None:
    """Count an iterable that is read once: documents, in batches, or files."""
    progress.start("Counting documents")
    paths: bool | None = None
    batch: list[Document] = []
    size = 0
    for number, item in enumerate(items):
        if not isinstance(item, str | bytes | os.PathLike):
            raise ArgumentTypeError(
                f"item {number} of the corpus must be a str, bytes or a Path, not {type(item).__name__}"
            )
        if paths is None:
            paths = isinstance(item, os.PathLike)
            _warn_of_path(item)
        if isinstance(item, os.PathLike) != paths:
            raise CorpusError(f"item {number} of the corpus mixes texts and paths: give one kind of item")
        if isinstance(item, os.PathLike):
            _check_file(Path(item))
            counter.add_files([Path(item)])
            progress.update(number + 1)
            continue
        batch.append(item)
        size += len(item)
        if size >= _BATCH_CHARACTERS:
            counter.add_texts(batch)
            progress.update(number + 1)
            batch, size = [], 0
    if batch:
        counter.add_texts(batch)


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise CorpusError(
            f"{path} is a directory; give its files, such as sorted(Path({str(path)!r}).rglob('*.txt'))"
        )
    if not path.exists():
        raise CorpusError(f"there is no file {path}")


def _named_file(text: str) -> Path | None:
    """Return the file that a `str` names, or None where it is the text itself."""
    try:
        path = Path(text)
        exists = 0 < len(text) <= _LONGEST_PATH and path.exists()
    except (OSError, ValueError):
        return None
    if exists:
        return path
    if _looks_like_path(text):
        warnings.warn(
            f"{text!r} looks like a path but names no file, so it is taken as the text to train on; "
            "a Path(...) is never taken as text",
            UserWarning,
            stacklevel=_caller_level(),
        )
    return None


def _looks_like_path(text: str) -> bool:
    """Tell whether a text is short, in one line, and has a separator without a space, or an extension."""
    if not text or len(text) > 255 or "\n" in text:
        return False
    separated = ("/" in text or "\\" in text) and not any(map(str.isspace, text))
    dot = text.rfind(".")
    return separated or (dot > 0 and _FILE_EXTENSION.fullmatch(text, dot) is not None)


def _warn_of_path(item: object) -> None:
    """Warn where the first document of an iterable is the name of a file."""
    if not isinstance(item, str) or not _looks_like_path(item):
        return
    with contextlib.suppress(OSError, ValueError):
        if Path(item).is_file():
            warnings.warn(
                f"the first document of the corpus is {item!r}, the name of a file; the strings of an "
                "iterable are texts, give Path objects to train on the files",
                UserWarning,
                stacklevel=_caller_level(),
            )


def _caller_level() -> int:
    """Return the `stacklevel` of the first frame outside this package, seen from our caller."""
    package = str(Path(__file__).parent)
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    return level


class _Progress:
    """A bar on stderr where that is a terminal, otherwise nothing."""

    def __init__(self, bars: RichProgress | None) -> None:
        self._bars = bars

    @classmethod
    @contextlib.contextmanager
    def shown(cls, wanted: bool) -> Iterator[_Progress]:
        """Show progress, if wanted, while the context lasts."""
        if not wanted or not sys.stderr.isatty():
            yield cls(None)
            return
        from rich.console import Console
        from rich.progress import Progress, TimeElapsedColumn

        columns = (*Progress.get_default_columns(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
            yield cls(bars)

    @property
    def visible(self) -> bool:
        return self._bars is not None

    def start(self, description: str, total: int | None = None) -> None:
        """Begin the next stage."""
        if self._bars is None:
            return
        for task in self._bars.task_ids:
            self._bars.remove_task(task)
        self._bars.add_task(description, total=total)

    def update(self, done: int, total: int | None = None) -> None:
        """Report how much of the stage is done, and how much there is to do if that is known by now."""
        if self._bars is not None:
            self._bars.update(self._bars.task_ids[-1], completed=done, total=total)


def _print_summary(
    counter: _core.PieceCounter, merges: int, options: TrainingOptions, seconds: float
) -> None:
    reserved = sum(token.id < options.vocab_size for token in options.added_tokens)
    wanted = options.vocab_size - 256 - reserved
    print(
        f"Trained on {counter.documents:,} documents: {counter.pieces:,} pieces, {counter.distinct:,} of "
        f"them distinct; learned {merges:,} merges in {seconds:.1f} s",
        file=sys.stderr,
    )
    if merges < wanted:
        print(
            f"Stopped {wanted - merges:,} merges short of vocab_size={options.vocab_size:,}: no pair is left "
            f"with a count of at least {options.min_frequency}",
            file=sys.stderr,
        )
