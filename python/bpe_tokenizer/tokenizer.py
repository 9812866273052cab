"""`BPETokenizer`: the tokenizer as its users see it. Policy only; the algorithms are in the core."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from bpe_tokenizer import _core
from bpe_tokenizer.chatting import Chatting
from bpe_tokenizer.compiled import Snapshot, with_special_tokens
from bpe_tokenizer.decoded import check_error_handler, decoding_error
from bpe_tokenizer.encoding import checked_limit, recognised, thread_count
from bpe_tokenizer.errors import ArgumentTypeError, ModelError, OptionError
from bpe_tokenizer.model import AddedToken, Model
from bpe_tokenizer.patterns import resolve_split_pattern
from bpe_tokenizer.special_tokens import AllowedSpecial, SpecialTokens, checked_tokens
from bpe_tokenizer.train.corpus import Corpus
from bpe_tokenizer.train.piece_counts import Counts, PieceCounts, count, merged_counts
from bpe_tokenizer.train.resizing import extended, truncated
from bpe_tokenizer.train.trainer import TieBreak, TrainingOptions, train_model, train_model_from_counts
from bpe_tokenizer.view.visualization import Visualization, visualize
from bpe_tokenizer.vocabulary import as_row

__all__ = ["BPETokenizer", "train_from_counts"]

Normalization: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]


class BPETokenizer(Chatting):
    """A byte-level BPE tokenizer: train it or load it, then encode and decode.

    It never changes under its users: training and adding special tokens put a new vocabulary in the place
    of the old one. Threads may share it, it can be pickled, and it works after a fork.

    Everywhere below:

    - `add_special_tokens=True` puts the beginning-of-sequence token before and the end-of-sequence token
      after the text, where they exist, or what the model's file says.
    - `allowed_special` says which special tokens are recognised in the text: `"none"`, `"all"` or a set of
      their texts. The others are plain text, so nobody's text can inject control tokens.
    - `disallowed_special` says which must not stand in the text: `()`, `"all"` (those that are not allowed)
      or a set.

    Args:
        split_pattern: A name of `bpe_tokenizer.patterns.NAMED_PATTERNS`, a regular expression, or several
            of them, applied one after the other.
        normalization: Unicode normalisation of texts before anything else: `"NFC"`, `"NFD"`, `"NFKC"`,
            `"NFKD"`, or None, which keeps every text as it is.

    Raises:
        OptionError: `normalization` is something else.
        PatternError: The pattern is not valid, or a name that is not known.

    >>> tokenizer = BPETokenizer().train("low low low lower lowest", vocab_size=259, verbose=False)
    >>> tokenizer
    BPETokenizer(vocab_size=259, merges=3, special_tokens=0)
    >>> tokenizer.encode("low lower")
    [257, 258, 101, 114]
    >>> tokenizer.decode([257, 258, 101, 114])
    'low lower'
    """

    def __init__(
        self, split_pattern: str | Sequence[str] = "cl100k", normalization: Normalization | None = "NFC"
    ) -> None:
        if normalization not in ("NFC", "NFD", "NFKC", "NFKD", None):
            raise OptionError(
                f"normalization is {normalization!r}; it must be 'NFC', 'NFD', 'NFKC', 'NFKD' or None"
            )
        self._snapshot = None
        self._split_patterns = resolve_split_pattern(split_pattern)
        self._normalization = normalization

    def train(
        self,
        corpus: Corpus,
        vocab_size: int = 32000,
        min_frequency: int = 2,
        special_tokens: SpecialTokens | None = None,
        verbose: bool = True,
        *,
        tie_break: TieBreak = "largest",
        max_token_length: int | None = None,
        threads: int | None = None,
        weights: Iterable[int] | None = None,
        max_memory: int | str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_seconds: float = 30.0,
    ) -> BPETokenizer:
        """Learn a vocabulary from a corpus, in the place of the one there may be.

        The same corpus gives the same vocabulary in any order of the documents and with any number of
        threads; where `max_memory` drops pieces, in the same order of the documents.

        Args:
            corpus: A `Path`; a `str` that names a file, or else is the text itself; an iterable of `str` or
                `bytes` (UTF-8), each a document; an iterable of `Path`, each file a document.
            vocab_size: Number of ids: 256 bytes, special tokens below it, learned tokens.
            min_frequency: Smallest count of a pair that is merged.
            special_tokens: A list, which takes the ids 256, 257, ..., or a dict of text to id. Nothing is
                learned across them.
            verbose: Show a progress bar (on a terminal) and a summary, both on stderr.
            tie_break: Which of several pairs of the same count is merged: `"largest"`, the one with the
                greatest bytes, or `"huggingface"`, the one that Hugging Face's `BpeTrainer` takes.
            max_token_length: Longest token to learn, in bytes; None for no limit.
            threads: Number of threads that count; None for as many as there are processors.
            weights: For a list of files: how often the pieces of each count, what share it has in a mixture.
            max_memory: How much memory this process may take, in bytes or as in `"500MB"`. The rarest pieces
                are dropped for it, and the summary says what was.
            checkpoint: A directory for what the run has come to. The same call, after the run was stopped at
                any moment, goes on from there to the same result. For files only.
            checkpoint_seconds: Work between two times of saving there.

        Returns:
            This tokenizer.

        Raises:
            CorpusError: There is no text, a file cannot be read, or something is not UTF-8.
            FormatError: The checkpoint is broken.
            MismatchError: The checkpoint is of another run.
            ModelError: A special token is empty or there twice, or its id is taken, below 256 or too large.
            OptionError: An option is out of its range, or the special tokens do not fit.

        >>> tokenizer = BPETokenizer().train(["ab ab", "ab"], vocab_size=258, special_tokens=["<|end|>"],
        ...                                  verbose=False)
        >>> tokenizer.vocab[256], tokenizer.vocab[257]
        (b'<|end|>', b'ab')
        """
        options = TrainingOptions(
            vocab_size, min_frequency, special_tokens, tie_break, max_token_length, threads, verbose
        )
        self._check_plain()
        model = train_model(
            corpus,
            self._split_patterns,
            self._normalization,
            options,
            weights=weights,
            max_memory=max_memory,
            checkpoint=checkpoint,
            checkpoint_seconds=checkpoint_seconds,
        )
        self._snapshot = Snapshot.of(model, self._snapshot)
        return self

    def count(
        self,
        corpus: Corpus,
        special_tokens: SpecialTokens | None = None,
        *,
        weights: Iterable[int] | None = None,
        threads: int | None = None,
        max_memory: int | str | None = None,
        verbose: bool = False,
    ) -> PieceCounts:
        """Count the distinct pieces of a corpus, as training would; nothing is learned.

        Args:
            corpus: As `train` takes it.
            special_tokens: Texts at which documents are cut.
            weights: As `train` takes them, with the rest.
            threads: Likewise.
            max_memory: Likewise.
            verbose: Show a progress bar on stderr, where that is a terminal.

        Raises:
            CorpusError: There is no text, a file cannot be read, or something is not UTF-8.
            OptionError: An option is out of its range.

        >>> BPETokenizer("gpt2").count("low low lower")
        PieceCounts(documents=1, pieces=3, distinct=3)
        """
        self._check_plain()
        return count(
            corpus,
            self._split_patterns,
            self._normalization,
            checked_tokens([] if special_tokens is None else special_tokens),
            weights=weights,
            threads=threads,
            max_memory=max_memory,
            verbose=verbose,
        )

    def train_from_counts(
        self,
        counts: Counts | Iterable[Counts],
        vocab_size: int = 32000,
        min_frequency: int = 2,
        special_tokens: SpecialTokens | None = None,
        verbose: bool = True,
        *,
        tie_break: TieBreak = "largest",
        max_token_length: int | None = None,
        threads: int | None = None,
    ) -> BPETokenizer:
        """Learn a vocabulary from counts: exactly the one that `train` learns from the corpus.

        Args:
            counts: Counts or files of them, which are added.
            vocab_size: As `train` takes it, with the other arguments.
            min_frequency: Likewise.
            special_tokens: Likewise; they must be those at which the corpus was cut. None: a list of those.
            verbose: Likewise.
            tie_break: Likewise.
            max_token_length: Likewise.
            threads: Number of threads; None for as many as there are processors.

        Returns:
            This tokenizer.

        Raises:
            CorpusError: There is no piece.
            FormatError: A file is broken.
            MismatchError: The corpus was cut with another pattern, normalisation or at other special tokens.
            ModelError: A special token's id is taken, below 256 or too large.
            OptionError: An option is out of its range.

        >>> counts = [BPETokenizer("gpt2").count("low low"), BPETokenizer("gpt2").count("lower low")]
        >>> BPETokenizer("gpt2").train_from_counts(counts, vocab_size=258, verbose=False).vocab[257]
        b'low'
        """
        self._check_plain()
        merged = merged_counts(counts)
        special = list(merged.special_tokens) if special_tokens is None else special_tokens
        options = TrainingOptions(
            vocab_size, min_frequency, special, tie_break, max_token_length, threads, verbose
        )
        model = train_model_from_counts(merged, self._split_patterns, self._normalization, options)
        self._snapshot = Snapshot.of(model, self._snapshot)
        return self

    def _check_plain(self) -> None:
        if self._snapshot is not None and not self._snapshot.model.core.is_plain:
            raise OptionError(
                "training cuts text with split patterns only, and this tokenizer was loaded from a file that "
                "does more; train a BPETokenizer(split_pattern, normalization) instead"
            )

    def extend(
        self,
        corpus: Corpus,
        new_vocab_size: int,
        min_frequency: int = 2,
        verbose: bool = True,
        *,
        tie_break: TieBreak = "largest",
        max_token_length: int | None = None,
        threads: int | None = None,
    ) -> BPETokenizer:
        """Learn further tokens from a corpus, behind those that there are.

        Every id, merge and special token stays what it is, so a language model's embeddings keep their rows
        and get new ones. Each piece of the corpus begins as the tokens that it is encoded as, and merging
        goes on from there: the new merges come after the old ones. Texts are cut, normalised and split as
        this tokenizer does it, also at added tokens that are not special.

        Args:
            corpus: In any form that `train` takes.
            new_vocab_size: The new tokens get the ids after the largest in use, special tokens included, up
                to `new_vocab_size - 1`.
            min_frequency: Smallest count of a pair that is merged.
            verbose: Show a progress bar (on a terminal) and a summary, both on stderr.
            tie_break: Which of several pairs of the same count is merged, as in `train`. To
                `"huggingface"`, the tokens that there were come in the order of their ids, after the bytes.
            max_token_length: Longest token to learn, in bytes; None for no limit.
            threads: Number of threads; None for as many as there are processors.

        Returns:
            This tokenizer.

        Raises:
            CorpusError: There is no text, a file cannot be read, or something is not UTF-8.
            ModelError: The vocabulary is not byte-level, or the model does more to text than cutting it with
                split patterns and bringing it to a Unicode normal form.
            NotTrainedError: There is no vocabulary yet.
            OptionError: An option is out of its range, or all ids below `new_vocab_size` are in use.

        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> before = tokenizer.encode("low")
        >>> tokenizer.extend("lower lower slow slow", new_vocab_size=260, verbose=False)
        BPETokenizer(vocab_size=260, merges=4, special_tokens=0)
        >>> tokenizer.encode("low") == before, tokenizer.vocab[258], tokenizer.vocab[259]
        (True, b'slow', b'lowe')
        """
        earlier = self._trained()
        # The smallest sizes are refused with what is in use.
        size = max(checked_limit("new_vocab_size", new_vocab_size, 0), 257)
        options = TrainingOptions(size, min_frequency, None, tie_break, max_token_length, threads, verbose)
        self._snapshot = Snapshot.of(extended(earlier.model, corpus, options), earlier)
        return self

    def truncate_vocab(self, n: int) -> BPETokenizer:
        """Keep the learned tokens with ids below `n`, so that one training run serves many sizes.

        The result is that of training with `vocab_size=n` and the same special tokens: what was learned
        first comes first. Special tokens at or above `n` keep their ids, as those do that are named in a dict
        and lie outside `vocab_size`.

        Args:
            n: The first id that no learned token has any more. Where fewer were learned, nothing changes.

        Returns:
            This tokenizer.

        Raises:
            ModelError: The vocabulary is not byte-level, or a token below `n` is made of one that is not.
            NotTrainedError: There is no vocabulary yet.
            OptionError: A byte would have to go, or a special token between the bytes and the learned
                tokens.

        >>> tokenizer = BPETokenizer().train("low low lower lowest", vocab_size=260, verbose=False)
        >>> tokenizer.truncate_vocab(258)
        BPETokenizer(vocab_size=258, merges=2, special_tokens=0)
        >>> tokenizer.encode("low"), tokenizer.encode(" lowest")
        ([257], [32, 257, 101, 115, 116])
        """
        earlier = self._trained()
        size = checked_limit("n", n, 257)
        self._snapshot = Snapshot.of(truncated(earlier.model, size), earlier)
        return self

    @classmethod
    def from_vocab(
        cls,
        vocab: Mapping[int, bytes],
        merges: Sequence[tuple[bytes, bytes]] | None = None,
        special_tokens: SpecialTokens | None = None,
        split_pattern: str | Sequence[str] = "gpt2",
        normalization: Normalization | None = None,
    ) -> BPETokenizer:
        """Return the tokenizer of a vocabulary and its merges, as `train_bpe` returns them.

        Args:
            vocab: The bytes of every id. Special tokens may be among them.
            merges: Pairs of tokens in the order of their merging. None: the ids are the ranks, as in a
                `.tiktoken` file.
            special_tokens: A dict of text to id, or a list: a text that is in `vocab` keeps its id there,
                the others get the ids after the largest.
            split_pattern: A name or a pattern; by default GPT-2's, which is that of `train_bpe`.
            normalization: Unicode normalisation of texts, or None.

        Raises:
            ModelError: The vocabulary is not closed under its merges, lacks a byte, or a special token
                contradicts it.
            PatternError: The pattern is not valid, or a name that is not known.

        >>> vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"he", 257: b"hey"}
        >>> tokenizer = BPETokenizer.from_vocab(vocab, [(b"h", b"e"), (b"he", b"y")], ["<|end|>"])
        >>> tokenizer.encode("hey<|end|>", allowed_special="all")
        [257, 258]
        """
        untrained = cls(split_pattern, normalization)
        special = _ids_in(vocab, special_tokens)
        # An entry of the vocabulary that no merge makes has to be known for a special token from the start.
        inside = [AddedToken(text, token_id) for text, token_id in special.items() if token_id in vocab]
        core = _core.Model(
            vocab,
            merges,
            split_patterns=untrained._split_patterns,
            normalization=normalization,
            added_tokens=inside,
            ignore_merges=merges is None,
        )
        return cls.from_model(with_special_tokens(Model(core), special)[0])

    def add_special_tokens(self, special_tokens: SpecialTokens) -> int:
        """Add special tokens; what was encoded before keeps its ids.

        Args:
            special_tokens: A list, which takes the ids after the largest in use, or a dict of text to id.
                A token that is there already with this id is left alone.

        Returns:
            The number of tokens that were added.

        Raises:
            ModelError: A text or an id is taken by another token, or is invalid.
            NotTrainedError: There is no vocabulary yet; `train` takes special tokens.

        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.add_special_tokens(["<|user|>", "<|end|>"])
        2
        >>> tokenizer.special_tokens
        {'<|user|>': 257, '<|end|>': 258}
        """
        earlier = self._trained()
        model, added = with_special_tokens(earlier.model, special_tokens)
        if added:
            self._snapshot = Snapshot.of(model, earlier)
        return added

    def decode(self, ids: Any, skip_special_tokens: bool = False, errors: str = "replace") -> str:
        """Return the text of ids.

        Args:
            ids: A list, a NumPy array, a PyTorch tensor, or a single id.
            skip_special_tokens: Leave special tokens out.
            errors: What to do about bytes that are not UTF-8: `"replace"` makes them U+FFFD, `"strict"`
                raises; any error handler of `bytes.decode`.

        Raises:
            DecodingError: The bytes are not UTF-8, and `errors` is `"strict"`.
            NotTrainedError: There is no vocabulary yet.
            OptionError: There is no such error handler.
            UnknownIdError: An id is not in the vocabulary.

        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.decode([256, 33])
        'ab!'
        """
        snapshot = self._trained()
        check_error_handler(errors)
        values = as_row(ids)
        row = [values] if isinstance(values, int) else values
        try:
            return snapshot.encoder.decode_text(row, skip_special_tokens, errors)
        except UnicodeDecodeError as error:
            raise decoding_error(error) from None

    def decode_bytes(self, ids: Any, skip_special_tokens: bool = False) -> bytes:
        r"""Return the bytes of ids, which need not be UTF-8; otherwise as `decode`.

        >>> BPETokenizer().train("ab ab", vocab_size=257, verbose=False).decode_bytes([256, 255])
        b'ab\xff'
        """
        snapshot = self._trained()
        values = as_row(ids)
        return snapshot.encoder.decode([values] if isinstance(values, int) else values, skip_special_tokens)

    def decode_batch(
        self,
        batch: Iterable[Any],
        skip_special_tokens: bool = False,
        errors: str = "replace",
        skip_padding: bool = True,
        threads: int | None = None,
    ) -> list[str]:
        """Return the texts of several rows of ids.

        Args:
            batch: Rows of ids: lists, or a matrix.
            skip_special_tokens: Leave special tokens out.
            errors: What to do about bytes that are not UTF-8, as in `decode`.
            skip_padding: Leave the pad token out, if there is one.
            threads: Number of threads; None for as many as there are processors.

        Raises:
            OptionError: There is no such error handler.
            ArgumentTypeError: An item is no row of ids.
            UnknownIdError: An id is not in the vocabulary.

        >>> tokenizer = BPETokenizer().train("ab ab", 258, special_tokens=["<pad>"], verbose=False)
        >>> tokenizer.decode_batch([[257, 33], [257, 256]])
        ['ab!', 'ab']
        """
        snapshot = self._trained()
        check_error_handler(errors)
        rows = []
        for number, row in enumerate(batch):
            ids = as_row(row)
            if isinstance(ids, int):
                raise ArgumentTypeError(
                    f"item {number} of the batch is an id, not a row of ids; decode() takes one row"
                )
            rows.append(ids)
        pad = snapshot.role_ids.get("pad") if skip_padding else None
        try:
            return snapshot.encoder.decode_text_batch(
                rows, skip_special_tokens, errors, thread_count(threads), pad and pad[1]
            )
        except UnicodeDecodeError as error:
            raise decoding_error(error) from None

    def visualize(
        self, text: str, add_special_tokens: bool = False, allowed_special: AllowedSpecial = "none"
    ) -> Visualization:
        """Return a text cut into its tokens, which shows itself in notebooks and terminals.

        Args:
            text: The text.
            add_special_tokens: Put the model's special tokens around it.
            allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.

        Returns:
            The tokens with their ids, bytes and places, and the merges that made them.

        Raises:
            ArgumentTypeError: The text is no `str`.
            NotTrainedError: There is no vocabulary yet.
            SpecialTokenError: A set names an unknown token.

        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> shown = tokenizer.visualize("a low")
        >>> print(shown)
        a| |low
        >>> shown.tokens[2]
        Token(id=257, bytes=b'low', characters=(2, 5), text_bytes=(2, 5), is_added=False)
        """
        snapshot = self._trained()
        special = recognised(snapshot, (), allowed_special)
        around = snapshot.around if add_special_tokens else ((), ())
        return visualize(snapshot, text, special, around)

    def get_cache_stats(self) -> dict[str, float]:
        """Return how the cache of pieces does.

        Returns:
            `hits` and `misses` since it was cleared, `size` in pieces, and `hit_rate_pct`, the hits in per
            cent of the look-ups.

        >>> sorted(BPETokenizer().train("ab ab", vocab_size=257, verbose=False).get_cache_stats())
        ['hit_rate_pct', 'hits', 'misses', 'size']
        """
        counts = self._trained().encoder.cache_statistics()
        hits, misses = counts["hits"], counts["misses"]
        rate = 100 * hits / (hits + misses) if hits + misses else 0.0
        return {"hits": hits, "misses": misses, "size": counts["size"], "hit_rate_pct": rate}

    def clear_cache(self) -> None:
        """Empty the cache of pieces and its counts; ids never depend on it."""
        self._trained().encoder.clear_cache()

    def limit_cache(self, max_bytes: int) -> None:
        """Empty the cache of pieces, and say how large it may become; ids never depend on it.

        Args:
            max_bytes: Bytes for one thread, and half of that for each that encodes at the same time;
                25,165,824 unless said. 0 turns the cache off, and so does what is less than the smallest
                cache, about 190,000.

        Raises:
            NotTrainedError: There is no vocabulary yet.
            OptionError: The number is negative, or no number of bytes.

        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.limit_cache(0)
        >>> tokenizer.encode("ab ab"), tokenizer.get_cache_stats()["size"]
        ([256, 32, 256], 0)
        """
        self._trained().encoder.limit_cache(min(checked_limit("max_bytes", max_bytes, 0), sys.maxsize))

    def __repr__(self) -> str:
        """Show the sizes."""
        name = type(self).__name__
        if self._snapshot is None:
            pattern, form = self.split_pattern, self.normalization
            return f"{name}(untrained, split_pattern={pattern!r}, normalization={form!r})"
        return (
            f"{name}(vocab_size={self.vocab_size:,}, merges={len(self.merges):,}, "
            f"special_tokens={len(self._snapshot.special):,})"
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the model's parts; the rest is made from them."""
        if self._snapshot is None:
            return type(self), (self._split_patterns, self._normalization)
        model = self._snapshot.model
        parts = (model.core, dict(model.named_tokens), model.post_processor, dict(model.config))
        return _from_parts, (type(self), parts)

    def __copy__(self) -> BPETokenizer:
        """Return a tokenizer that shares everything: what is shared never changes."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, object]) -> BPETokenizer:
        """As `__copy__`."""
        return self.__copy__()


def _from_parts(kind: type[BPETokenizer], parts: tuple[Any, ...]) -> BPETokenizer:
    """Make a tokenizer of what `__reduce__` took it apart into."""
    return kind.from_model(Model(*parts))


def _ids_in(vocab: Mapping[int, bytes], special_tokens: SpecialTokens | None) -> dict[str, int]:
    """Return the ids of special tokens, those in the vocabulary and those after it."""
    wanted = checked_tokens(special_tokens or ())
    texts = {text.encode(): text for text in wanted}
    inside = {texts[token]: token_id for token_id, token in vocab.items() if token in texts}
    if not isinstance(wanted, Mapping):
        following = max(vocab, default=-1) + 1
        outside = [text for text in wanted if text not in inside]
        return inside | {text: following + index for index, text in enumerate(outside)}
    for text, token_id in wanted.items():
        if inside.get(text, token_id) != token_id:
            raise ModelError(
                f"special token {text!r} has the id {inside[text]} in vocab; it cannot get {token_id}"
            )
        if token_id in vocab and text not in inside:
            raise ModelError(
                f"special token {text!r} cannot get the id {token_id}: "
                f"it belongs to the token {vocab[token_id]!r}"
            )
    return dict(wanted)


def train_from_counts(
    counts: Counts | Iterable[Counts],
    vocab_size: int = 32000,
    min_frequency: int = 2,
    special_tokens: SpecialTokens | None = None,
    verbose: bool = True,
    *,
    tie_break: TieBreak = "largest",
    max_token_length: int | None = None,
    threads: int | None = None,
) -> BPETokenizer:
    """Return a tokenizer that learned from counts, and that cuts texts as theirs were cut.

    Args:
        counts: Counts or files of them, which are added.
        vocab_size: As `BPETokenizer.train_from_counts` takes it, with the other arguments.
        min_frequency: Likewise.
        special_tokens: Likewise.
        verbose: Likewise.
        tie_break: Likewise.
        max_token_length: Likewise.
        threads: Likewise.

    Raises:
        CorpusError: There is no piece.
        FormatError: A file is broken.
        MismatchError: The counts were cut with different patterns, normalisations or special tokens.
        ModelError: A special token's id is taken, below 256 or too large.
        OptionError: An option is out of its range.

    >>> tokenizer = train_from_counts(count("low low lower", "gpt2"), vocab_size=258, verbose=False)
    >>> tokenizer.split_pattern == BPETokenizer("gpt2").split_pattern, tokenizer.vocab[257]
    (True, b'low')
    """
    merged = merged_counts(counts)
    tokenizer = BPETokenizer(merged.split_patterns, cast("Normalization | None", merged.normalization))
    return tokenizer.train_from_counts(
        merged,
        vocab_size,
        min_frequency,
        special_tokens,
        verbose,
        tie_break=tie_break,
        max_token_length=max_token_length,
        threads=threads,
    )
