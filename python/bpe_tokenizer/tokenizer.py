"""`BPETokenizer`, the public class. Policy only: its methods call functions of the rooms."""

from __future__ import annotations

import io
import operator
import os
import sys
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, overload

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import (
    check_choice,
    check_flag,
    check_integer,
    check_merges,
    check_path,
    check_paths,
    check_text,
    check_texts,
    check_vocab,
    items_in_turn,
    thread_count,
)
from bpe_tokenizer.chunks import split_by_tokens
from bpe_tokenizer.compiled import CompiledModel, RoleToken, UntrainedModel
from bpe_tokenizer.decoding import (
    Ids,
    ResultList,
    check_error_handler,
    decoding_error,
    id_row,
    id_rows,
    row_error,
    to_ids,
    tokens_to_text,
)
from bpe_tokenizer.encoding import resolve_allowed_special, resolve_special_sets
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, shorten
from bpe_tokenizer.model import AddedToken, Model
from bpe_tokenizer.options import (
    CountLimits,
    LearningOptions,
    MemoryLimits,
    ReadOptions,
    RowOptions,
    pick,
    takes,
)
from bpe_tokenizer.patterns import resolve_split_pattern
from bpe_tokenizer.special_tokens import (
    AllowedSpecial,
    DisallowedSpecial,
    SpecialTokens,
    checked_tokens,
    ids_in_vocab,
    new_special_tokens,
)
from bpe_tokenizer.streaming import EncodeStream, StreamDecoder

# Methods import the rooms that not every program needs; tests/test_import.py checks it.
if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    import numpy.typing as npt
    import tiktoken as tiktoken_library
    import tokenizers as tokenizers_library
    from transformers import PreTrainedTokenizerFast
    from typing_extensions import Unpack

    from bpe_tokenizer.chat.encoding import ChatEncoding, ChatTemplateLike, MessageSpan
    from bpe_tokenizer.chat.messages import Conversation
    from bpe_tokenizer.chat.options import ChatArguments, RowChatOptions, TemplateOptions
    from bpe_tokenizer.chat.reply import Reply
    from bpe_tokenizer.chat.segment import Segment
    from bpe_tokenizer.chat.training_examples import TrainingExamples
    from bpe_tokenizer.columns import ArrowMapper
    from bpe_tokenizer.formats.hub.objects import TokenizersTokenizer, TransformersTokenizer
    from bpe_tokenizer.formats.tiktoken import LoadKwargs, TiktokenEncoding
    from bpe_tokenizer.inference import InferenceBackend, LanguageModel
    from bpe_tokenizer.options import (
        CorpusArguments,
        CorpusTrainingArguments,
        CountsTrainingArguments,
        RowArguments,
        Side,
        TextArguments,
    )
    from bpe_tokenizer.results import (
        EncodingResult,
        Padding,
        ReturnTensors,
        Rows,
        Texts,
        Truncation,
    )
    from bpe_tokenizer.train.corpus import Corpus
    from bpe_tokenizer.train.piece_counts import Counts, PieceCounts
    from bpe_tokenizer.view.visualization import Visualization

__all__ = ["BPETokenizer", "load", "train_from_counts"]

_Path: TypeAlias = str | os.PathLike[str]
Normalization: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]
# The options of `RowOptions` that `encode` has too.
_OF_TEXTS = frozenset({"disallowed_special", "threads"})


class BPETokenizer(_core.Tokenizer):
    """A byte-level BPE tokenizer: train it or load it, then encode and decode.

    Threads may share a tokenizer: training and adding special tokens replace its whole state in one step.
    It can be pickled and works after a fork.

    These arguments mean the same in every method:

    - `add_special_tokens=True` adds the beginning-of-sequence token at the beginning and the
      end-of-sequence token at the end, where they exist, or what the model's file says.
    - `allowed_special` names the special tokens that the method recognises in a text: `"none"`, `"all"` or
      a set of their texts. It treats all others as plain text, so no text can inject control tokens.
    - `disallowed_special` names the special tokens that a text must not contain: `()`, `"all"` (all that
      are not allowed) or a set.
    - `threads` is the number of threads; None for one per processor (one in a worker process).

    An argument of the wrong type raises `ArgumentTypeError`, and one whose value is out of its range, unknown
    or contradicts another `OptionError`. A set that names an unknown special token, and a text that contains
    a disallowed one, raise `SpecialTokenError`. An id outside the vocabulary raises `UnknownIdError`. Methods
    that need a vocabulary raise `NotTrainedError` before training.

    Chat methods render messages with a template, which yields segments: markup, which the template wrote,
    and content, which a message brought. They recognise special tokens in markup only, so no message can end
    its turn or forge another's:

    - `messages` is a list of dicts with a `role`, a `content`, and other fields that the template reads.
    - `template` is a name of `ChatTemplate.names()` or of the model's own templates, the source of a Jinja
      template, or an object like `chat.Template`. None: the model's own (with tools, the one named
      `"tool_use"`, if there is one), or `"llama3"` if it has none.
    - `plain_markup=True` accepts a named template (or the default) although the vocabulary lacks its control
      tokens. Its markup is then plain text, which a message can forge; without the option it is an error.
    - `template_budget` is a factor of the work and memory that a Jinja template may take; None for that of
      the surrounding `chat.template_budget`, or 1. A template that takes more is an error, because it is code
      of whoever made the model's files.
    - `system_prompt` is a system message for conversations that do not have one.
    - `tools` and `documents` are lists of dicts for templates that know them. `template_variables` is a dict
      of other variables of the template, such as `{"enable_thinking": False}`; `chat_template_kwargs`, its
      name in vLLM and transformers, is the same.

    Methods that load files check everything. A file that is broken, or holds what cannot be represented
    exactly, is a `FormatError`. Methods that save write each file next to its place and then move it there,
    so a crash leaves the old file or the new one. A tokenizer that the format cannot represent is a
    `FormatError` that names the field. A library that is not installed is a `MissingDependencyError`.

    Args:
        split_pattern: A name of `bpe_tokenizer.patterns.NAMED_PATTERNS`, a regular expression, or several
            of them, which are applied in sequence.
        normalization: The Unicode normalisation form of texts: `"NFC"`, `"NFD"`, `"NFKC"`, `"NFKD"`, or
            None, which keeps every text unchanged.

    Raises:
        OptionError: `normalization` is something else.
        PatternError: The pattern is not valid, or an unknown name.

    >>> tokenizer = BPETokenizer().train("low low low lower lowest", vocab_size=259, verbose=False)
    >>> tokenizer
    BPETokenizer(vocab_size=259, merges=3, special_tokens=0)
    >>> tokenizer.encode("low lower")
    [257, 258, 101, 114]
    >>> tokenizer.decode([257, 258, 101, 114])
    'low lower'
    """

    # No `__dict__`: setting another library's name, such as `padding_side`, is Python's AttributeError.
    __slots__ = ("__weakref__",)

    bos_token = RoleToken[str]("bos", "content")
    eos_token = RoleToken[str]("eos", "content")
    pad_token = RoleToken[str]("pad", "content")
    unk_token = RoleToken[str]("unk", "content")
    bos_token_id = RoleToken[int]("bos", "id")
    eos_token_id = RoleToken[int]("eos", "id")
    pad_token_id = RoleToken[int]("pad", "id")
    unk_token_id = RoleToken[int]("unk", "id")

    def __init__(
        self,
        split_pattern: str | Sequence[str] = "cl100k",
        normalization: Normalization | None = "NFC",
    ) -> None:
        check_choice("normalization", normalization, ("NFC", "NFD", "NFKC", "NFKD", None))
        self._state: CompiledModel | UntrainedModel = UntrainedModel(
            resolve_split_pattern(split_pattern), normalization
        )

    def _compiled(self) -> CompiledModel:
        state = self._state
        if isinstance(state, CompiledModel):
            return state
        raise state.error

    def _compiled_or_none(self) -> CompiledModel | None:
        return self._state if isinstance(self._state, CompiledModel) else None

    # Training

    @takes(LearningOptions, CountLimits, ReadOptions)
    def train(
        self,
        corpus: Corpus,
        vocab_size: int = 32000,
        min_frequency: int = 2,
        special_tokens: SpecialTokens | None = None,
        verbose: bool = True,
        *,
        weights: Iterable[int] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_seconds: float = 30.0,
        **options: Unpack[CorpusTrainingArguments],
    ) -> Self:
        """Learn a vocabulary from a corpus; it replaces the present one.

        The same corpus gives the same vocabulary in any order of the documents and with any number of
        threads.

        Args:
            corpus: A `Path`, of a file or a directory; a `str` that names one, is a pattern such as
                `"data/*.jsonl.gz"`, or a URL such as `"s3://bucket/data"`, or else is the text itself; an
                iterable of `str` or `bytes` (UTF-8), each a document; an iterable of `Path`.
                Files are text, JSON Lines, Parquet or Arrow, each plain or compressed.
            vocab_size: Number of ids: 256 bytes, special tokens below it, learned tokens.
            min_frequency: Smallest count of a pair that is merged.
            special_tokens: A list, which takes the ids 256, 257, ..., or a dict of text to id. No learned
                token crosses them.
            verbose: Show a progress bar (on a terminal) and a summary, both on stderr.
            weights: For files: the factor by which each file's pieces count in a mixture, also each file of a
                directory or a pattern.
            checkpoint: Directory for checkpoints, for files only. The same call resumes from it after a run
                was stopped at any moment, and gives the same result.
            checkpoint_seconds: Seconds of work between two checkpoints.

        Raises:
            CorpusError: The corpus holds no text, a file cannot be read, or something is not UTF-8.
            MismatchError: The checkpoint belongs to another run.
            ModelError: A special token is empty or a duplicate, or its id is taken, below 256 or too large.

        >>> tokenizer = BPETokenizer().train(["ab ab", "ab"], vocab_size=258, special_tokens=["<|end|>"],
        ...                                  verbose=False)
        >>> tokenizer.vocab[256], tokenizer.vocab[257]
        (b'<|end|>', b'ab')
        """
        from bpe_tokenizer.train.options import TrainingOptions
        from bpe_tokenizer.train.trainer import train_model

        training = pick(TrainingOptions, options, vocab_size, min_frequency, special_tokens, verbose)
        patterns, normalization = self._training_settings()
        model = train_model(
            corpus,
            patterns,
            normalization,
            training,
            weights=weights,
            limits=pick(CountLimits, options),
            checkpoint=checkpoint,
            checkpoint_seconds=checkpoint_seconds,
            read=pick(ReadOptions, options),
        )
        self._state = CompiledModel.compile(model, self._state)
        return self

    @takes(CountLimits, ReadOptions)
    def count(
        self,
        corpus: Corpus,
        special_tokens: SpecialTokens | None = None,
        *,
        weights: Iterable[int] | None = None,
        threads: int | None = None,
        min_count: int | None = None,
        verbose: bool = False,
        **options: Unpack[CorpusArguments],
    ) -> PieceCounts:
        """Count the distinct pieces of a corpus, the first step of training.

        The arguments and errors are those of `train`; `special_tokens` are the texts at which documents are
        cut. `count_tokens(text)` returns the number of tokens of a text.

        >>> BPETokenizer("gpt2").count("low low lower")
        PieceCounts(documents=1, pieces=3, distinct=3)
        """
        from bpe_tokenizer.train.piece_counts import count

        patterns, normalization = self._training_settings()
        return count(
            corpus,
            patterns,
            normalization,
            checked_tokens([] if special_tokens is None else special_tokens),
            weights=weights,
            threads=threads,
            min_count=min_count,
            verbose=verbose,
            **options,
        )

    @takes(LearningOptions, MemoryLimits)
    def train_from_counts(
        self,
        counts: Counts | Iterable[Counts],
        vocab_size: int = 32000,
        min_frequency: int = 2,
        special_tokens: SpecialTokens | None = None,
        verbose: bool = True,
        **options: Unpack[CountsTrainingArguments],
    ) -> Self:
        """Learn a vocabulary from piece counts: exactly the one that `train` learns from the corpus.

        `counts` are counts or files of counts; several are added. The other arguments and errors are those of
        `train`, but `special_tokens`, the texts at which the corpus was cut, and `max_memory` are by default
        those of the counts.

        Raises:
            MismatchError: The corpus was cut with another pattern, normalisation or other special tokens.

        >>> counts = [BPETokenizer("gpt2").count("low low"), BPETokenizer("gpt2").count("lower low")]
        >>> BPETokenizer("gpt2").train_from_counts(counts, vocab_size=258, verbose=False).vocab[257]
        b'low'
        """
        from bpe_tokenizer.train.options import TrainingOptions
        from bpe_tokenizer.train.piece_counts import merged_counts
        from bpe_tokenizer.train.trainer import train_model_from_counts

        patterns, normalization = self._training_settings()
        merged = merged_counts(counts, pick(MemoryLimits, options))
        special = list(merged.special_tokens) if special_tokens is None else special_tokens
        training = pick(TrainingOptions, options, vocab_size, min_frequency, special, verbose)
        model = train_model_from_counts(merged, patterns, normalization, training)
        self._state = CompiledModel.compile(model, self._state)
        return self

    def _training_settings(self) -> tuple[tuple[str, ...], str | None]:
        state = self._state
        if isinstance(state, CompiledModel) and not state.model.core.is_plain:
            raise OptionError(
                "training cuts text with split patterns only, and this tokenizer was loaded from a file that "
                "does more; train a BPETokenizer(split_pattern, normalization) instead"
            )
        return state.split_patterns, state.normalization

    @takes(LearningOptions, CountLimits, ReadOptions)
    def extend(
        self,
        corpus: Corpus,
        new_vocab_size: int,
        min_frequency: int = 2,
        verbose: bool = True,
        **options: Unpack[CorpusTrainingArguments],
    ) -> Self:
        """Learn further tokens from a corpus; every id, merge and special token keeps its meaning.

        So the embeddings of a language model keep their rows and get new ones. Each piece of the corpus
        starts as the tokens that encode it, and merging continues from there. The tokenizer normalises and
        cuts texts as in encoding, also at added tokens that are not special. A vocabulary may lack bytes, as
        Falcon's does; a piece that holds one of them teaches nothing.

        `new_vocab_size` is the number of ids to reach: `vocab_size` is this afterwards, unless no pair is
        left. New tokens get the ids after the largest in use, so special tokens outside the vocabulary are
        then in it: `new_vocab_size - len(tokenizer)` tokens are learned. The other arguments are those of
        `train`. With `tie_break="huggingface"`, existing tokens rank in the order of their ids, after the
        bytes.

        Raises:
            CorpusError: The corpus holds no text, a file cannot be read, or something is not UTF-8.
            ModelError: The vocabulary is not byte-level, or the model does more to text than cutting it with
                split patterns and bringing it to a Unicode normal form.

        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> before = tokenizer.encode("low")
        >>> tokenizer.extend("lower lower slow slow", new_vocab_size=260, verbose=False)
        BPETokenizer(vocab_size=260, merges=4, special_tokens=0)
        >>> tokenizer.encode("low") == before, tokenizer.vocab[258], tokenizer.vocab[259]
        (True, b'slow', b'lowe')
        """
        from bpe_tokenizer.train.options import TrainingOptions
        from bpe_tokenizer.train.resizing import extend_model

        compiled = self._compiled()
        size = check_integer("new_vocab_size", new_vocab_size, 0, maximum=2**31 - 1)
        training = pick(TrainingOptions, {**options, "min_frequency": min_frequency, "verbose": verbose})
        limits, read = pick(CountLimits, options), pick(ReadOptions, options)
        model = extend_model(compiled.model, corpus, size, training, limits, read)
        self._state = CompiledModel.compile(model, compiled)
        return self

    def truncate_vocab(self, n: int) -> Self:
        """Remove the learned tokens with ids from `n` on, so that one training run serves many sizes.

        The result equals training with `vocab_size=n` and the same special tokens. Special tokens at or
        above `n` keep their ids.

        Args:
            n: The first id to remove. If fewer ids were learned, nothing changes.

        Raises:
            ModelError: The vocabulary is not byte-level, or a token below `n` is merged from one above it.
            OptionError: A byte or a special token between the bytes and the learned tokens would be removed.

        >>> tokenizer = BPETokenizer().train("low low lower lowest", vocab_size=260, verbose=False)
        >>> tokenizer.truncate_vocab(258)
        BPETokenizer(vocab_size=258, merges=2, special_tokens=0)
        >>> tokenizer.encode("low"), tokenizer.encode(" lowest")
        ([257], [32, 257, 101, 115, 116])
        """
        from bpe_tokenizer.train.resizing import truncate_model

        compiled = self._compiled()
        size = check_integer("n", n, 257)
        self._state = CompiledModel.compile(truncate_model(compiled.model, size), compiled)
        return self

    def with_normalization(self, normalization: Normalization | None) -> Self:
        """Return a tokenizer with the same vocabulary and another normalisation; this one stays as it is.

        With None every text decodes to itself, and formats without normalisation can hold the tokenizer.
        Texts that the old form leaves unchanged keep their ids. Other texts get other ids: their
        characters stay as they are written, and the vocabulary was not learned for them.

        Raises:
            ModelError: The model does more to text than to normalise it.

        >>> tokenizer = BPETokenizer().train("café café", vocab_size=260, verbose=False)
        >>> exact = tokenizer.with_normalization(None)
        >>> tokenizer.decode(tokenizer.encode("cafe\u0301")) == "café", exact.encode("café")
        (True, [259])
        >>> exact.decode(exact.encode("cafe\u0301")) == "cafe\u0301"
        True
        """
        check_choice("normalization", normalization, ("NFC", "NFD", "NFKC", "NFKD", None))
        tokenizer = self.__copy__()
        state = self._state
        if isinstance(state, CompiledModel):
            tokenizer._state = CompiledModel.compile(state.model.with_normalization(normalization), state)
        else:
            tokenizer._state = UntrainedModel(state.split_patterns, normalization)
        return tokenizer

    # Models and files

    @classmethod
    def from_model(cls, model: Model) -> Self:
        """Return a tokenizer that runs a model."""
        if not isinstance(model, Model):
            raise ArgumentTypeError(f"from_model expects a Model, not {type(model).__name__}")
        tokenizer = cls.__new__(cls)
        tokenizer._state = CompiledModel.compile(model)
        return tokenizer

    @classmethod
    def from_vocab(
        cls,
        vocab: Mapping[int, bytes],
        merges: Sequence[tuple[bytes, bytes]] | None = None,
        special_tokens: SpecialTokens | None = None,
        split_pattern: str | Sequence[str] = "gpt2",
        normalization: Normalization | None = None,
    ) -> Self:
        """Return the tokenizer of a vocabulary and its merges, as `train_bpe` returns them.

        Args:
            vocab: The bytes of every id, with or without special tokens.
            merges: Pairs of tokens in the order of their merging. None: the ids are the ranks, as in a
                `.tiktoken` file.
            special_tokens: A dict of text to id, or a list: a text that occurs in `vocab` keeps its id, the
                others get the ids after the largest.

        Raises:
            ModelError: The vocabulary is not closed under its merges, lacks a byte, or a special token
                contradicts it.

        >>> vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"he", 257: b"hey"}
        >>> tokenizer = BPETokenizer.from_vocab(vocab, [(b"h", b"e"), (b"he", b"y")], ["<|end|>"])
        >>> tokenizer.encode("hey<|end|>", allowed_special="all")
        [257, 258]
        """
        settings = cls(split_pattern, normalization)._state
        vocab = check_vocab(vocab)
        merges = None if merges is None else check_merges(merges)
        special = ids_in_vocab(vocab, special_tokens)
        # A special token inside the vocabulary is not the result of a merge, which `_core.Model` checks.
        inside = [AddedToken(text, token_id) for text, token_id in special.items() if token_id in vocab]
        core = _core.Model(
            vocab,
            merges,
            split_patterns=settings.split_patterns,
            normalization=normalization,
            added_tokens=inside,
            ignore_merges=merges is None,
        )
        return cls.from_model(Model(core.adding_tokens(new_special_tokens(core, special))))

    @classmethod
    def load(
        cls,
        path: _Path,
        format: str | None = None,  # noqa: A002
        *,
        split_pattern: str | Sequence[str] | None = None,
        special_tokens: SpecialTokens | None = None,
        merges: _Path | None = None,
        download: bool = False,
    ) -> Self:
        """Load a tokenizer from a file or a directory, or by its name.

        Args:
            path: A Hugging Face directory or `tokenizer.json`; GPT-2's `vocab.json` and `merges.txt`; a
                `.tiktoken` file, a GGUF file, a `tekken.json`, a minbpe `.model` or base64 JSON. If there is
                no such path, a `str` may be a published name: an encoding of tiktoken (`"o200k_base"`), a
                model of OpenAI (`"gpt-4o"`), or a repository of the Hugging Face hub (`"hf:owner/name"`,
                `"hf:owner/name@revision"`). `"./gpt2"` is always a path.
            format: The format, as in `export`, or `"tekken"`; None: the content tells it.
            split_pattern: A name or a pattern, for a `.tiktoken` file that OpenAI did not publish, or to
                replace GPT-2's.
            special_tokens: A dict of text to id, or a list, for the same files.
            merges: GPT-2's file of merges, if it has another directory or name.
            download: Download a published tokenizer that is not in the caches of tiktoken and of the Hugging
                Face libraries. Without it nothing touches the network.

        Raises:
            FormatError: The format is unknown, the file is broken, or it holds what cannot be represented.
            HubError: A published tokenizer is not on this machine, and may not or cannot be downloaded.
            OptionError: A `.tiktoken` file needs arguments that are missing, or another format does not.
            TokenizerFileNotFoundError: The path does not exist, and the name is not a published one.

        >>> import tempfile
        >>> tokenizer = BPETokenizer(normalization=None).train("low low", 258, verbose=False)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     exported = tokenizer.export(f"{directory}/small.model", "minbpe")
        ...     BPETokenizer.load(f"{directory}/small.model")
        BPETokenizer(vocab_size=258, merges=2, special_tokens=0)
        """
        from bpe_tokenizer.formats import names

        loaded = names.load(
            path,
            format,
            download=check_flag("download", download),
            split_pattern=split_pattern,
            special_tokens=special_tokens,
            merges=None if merges is None else check_path("merges", merges),
        )
        return cls.from_model(loaded.model)

    def export(self, path: _Path, format: str) -> LoadKwargs:  # noqa: A002
        """Save in a format of another program; `save` writes a Hugging Face directory.

        Args:
            path: The file; for `"gpt2"` the directory, or the path of its `vocab.json` or `encoder.json`. Its
                directory is created if it does not exist.
            format: `"gguf"`, a file of llama.cpp without weights; `"tiktoken"`, ranks; `"gpt2"`, `vocab.json`
                and `merges.txt` (or OpenAI's `encoder.json` and `vocab.bpe`), with a `tokenizer_config.json`
                for what they cannot hold; `"minbpe"`, a `.model`;
                `"base64-json"`, which holds every tokenizer completely; `"huggingface"`; `"readable"`.

        Returns:
            What the file does not hold: `load(path, **exported)` gives the same ids.

        Raises:
            OptionError: The format is unknown, the file's name does not fit it, or a directory holds a
                tokenizer.json, which readers would load instead.

        >>> import tempfile
        >>> tokenizer = BPETokenizer("gpt2", None).train("low low", 258, verbose=False)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     exported = tokenizer.export(f"{directory}/small.tiktoken", "tiktoken")
        ...     again = BPETokenizer.load(f"{directory}/small.tiktoken", **exported)
        >>> again.encode("low") == tokenizer.encode("low")
        True
        """
        from bpe_tokenizer.formats import registry

        entry, path = registry.get_format(format), check_path("path", path)
        if entry.is_directory and path.name not in entry.companions:
            registry.check_directory(path)
        return cast("LoadKwargs", registry.save(self.model, path, entry.name).load_kwargs)

    @classmethod
    def from_pretrained(cls, directory: _Path, verbose: bool = False) -> Self:
        """Load a tokenizer from a Hugging Face directory.

        Args:
            directory: Holds `tokenizer.json` and perhaps `tokenizer_config.json`, or the same under another
                name that was given to `save`.
            verbose: Say on stderr what was loaded.
        """
        from bpe_tokenizer.formats import huggingface

        tokenizer = cls.from_model(huggingface.load(directory))
        if check_flag("verbose", verbose):
            from bpe_tokenizer.train.progress import say

            say(f"Loaded {tokenizer} from {directory}")
        return tokenizer

    def save(self, directory: _Path, name: str = "tokenizer", verbose: bool = False) -> None:
        """Save as a Hugging Face directory: `tokenizer.json` and `tokenizer_config.json`.

        Args:
            directory: Created if it does not exist.
            name: First part of the files' names.
            verbose: Say on stderr what was saved.

        Raises:
            OptionError: The directory does not exist, and its name is that of a file, such as `toy.gguf`.
        """
        from bpe_tokenizer.formats import huggingface, registry

        if not isinstance(name, str):
            raise ArgumentTypeError(f"name must be a str, not {type(name).__name__}")
        check_path("name", name)
        path, verbose = check_path("directory", directory), check_flag("verbose", verbose)
        registry.check_directory(path)
        huggingface.save(self.model, path, name=name)
        if verbose:
            from bpe_tokenizer.train.progress import say

            say(f"Saved {self} to {directory}")

    @classmethod
    def from_huggingface(
        cls,
        model_name_or_path: _Path | TokenizersTokenizer | TransformersTokenizer,
        cache_dir: _Path | None = None,
        token: str | bool | None = None,
        verbose: bool = False,
        *,
        revision: str | None = None,
        local_files_only: bool = False,
        split_pattern: str | Sequence[str] | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Self:
        """Load a tokenizer from the Hugging Face hub, a local path, or another library's object.

        Args:
            model_name_or_path: The name of a repository, `"owner/name"`; a path; a `tokenizers.Tokenizer`; or
                a fast tokenizer of `transformers`.
            cache_dir: Directory of downloads; None for that of `huggingface_hub`.
            token: An access token for private or gated repositories; None for the stored one, if any.
            verbose: Say on stderr what was loaded.
            revision: A branch, a tag or a commit of the repository; None for its main branch.
            local_files_only: Use downloaded files only.
            split_pattern: The split pattern, for a repository that holds only a rank file.
            special_tokens: Text to id, for the same.

        Raises:
            HubError: The repository or a file of it is not available.
        """
        from bpe_tokenizer.formats import hub

        model = hub.load(
            model_name_or_path,
            revision=revision,
            token=token,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
            split_pattern=split_pattern,
            special_tokens=special_tokens,
        )
        tokenizer = cls.from_model(model)
        if check_flag("verbose", verbose):
            from bpe_tokenizer.train.progress import say

            say(f"Loaded {tokenizer} from {shorten(model_name_or_path)}")
        return tokenizer

    @classmethod
    def from_tiktoken(
        cls,
        source: _Path | TiktokenEncoding,
        split_pattern: str | Sequence[str] | None = None,
        special_tokens: SpecialTokens | None = None,
        *,
        cache_dir: _Path | None = None,
        local_files_only: bool = False,
    ) -> Self:
        """Load a tokenizer of tiktoken: a rank file, a published encoding, or a `tiktoken.Encoding`.

        Args:
            source: The path of a `.tiktoken` file; the name of a published encoding, like `"cl100k_base"`;
                or an `Encoding`.
            split_pattern: A name or a pattern, for a file; None for that of the published file.
            special_tokens: A dict of text to id, or a list, for a file; None for those of the published file.
            cache_dir: Directory of published files; None for tiktoken's.
            local_files_only: Never download a published file.

        Raises:
            FormatError: The file is broken, or does not have the published SHA-256.
            HubError: A published file is not available.
            OptionError: A file is not a published one, and the pattern or the special tokens are missing; or
                they are given for an encoding.
        """
        from bpe_tokenizer.formats import tiktoken

        model = tiktoken.load_any(
            source, split_pattern, special_tokens, cache_dir=cache_dir, local_files_only=local_files_only
        )
        return cls.from_model(model)

    def to_tokenizers(self) -> tokenizers_library.Tokenizer:
        """Return a `tokenizers.Tokenizer` that gives the same ids.

        >>> tokenizer = BPETokenizer("gpt2", None).train("low low lower", 258, verbose=False)
        >>> tokenizer.to_tokenizers().encode("a low").ids
        [97, 32, 257]
        """
        from bpe_tokenizer.formats.huggingface.objects import to_tokenizers

        return to_tokenizers(self.model)

    def to_transformers(self) -> PreTrainedTokenizerFast:
        """Return a `PreTrainedTokenizerFast` of `transformers` that gives the same ids.

        It is transformers' own object. `bpe_tokenizer.compat.transformers.from_tokenizer` returns one that
        runs on this package's core.
        """
        from bpe_tokenizer.formats.huggingface.objects import to_transformers

        return to_transformers(self.model)

    def to_tiktoken(self, name: str = "bpe_tokenizer") -> tiktoken_library.Encoding:
        """Return a `tiktoken.Encoding` with this name that gives the same ids."""
        from bpe_tokenizer.formats import tiktoken

        return tiktoken.to_encoding(self.model, name)

    def save_readable(self, path: _Path) -> None:
        """Write a listing for people: each token with its id and the two tokens that it is merged from.

        >>> import tempfile
        >>> from pathlib import Path
        >>> tokenizer = BPETokenizer().train("low low", 258, verbose=False)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     tokenizer.save_readable(f"{directory}/small.txt")
        ...     Path(f"{directory}/small.txt").read_text().splitlines()[-1].strip()
        "257  'low' = 'l' + 'ow'"
        """
        self.export(path, "readable")

    # Vocabulary

    def add_special_tokens(self, special_tokens: SpecialTokens) -> int:
        """Add special tokens; every other token keeps its id.

        Args:
            special_tokens: A list, which takes the ids after the largest in use, or a dict of text to id.
                Tokens that exist with this id are skipped. A name like `<s>`, `<|endoftext|>`, `<pad>` or
                `<unk>` gives a token its role (`eos_token`, ...), unless the role was set or a file names it.

        Returns:
            The number of tokens that were added.

        Raises:
            ModelError: Another token has the text or the id, or one of them is invalid.
            NotTrainedError: There is no vocabulary yet; `train` takes special tokens.

        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.add_special_tokens(["<|user|>", "<|end|>"])
        2
        >>> tokenizer.special_tokens
        {'<|user|>': 257, '<|end|>': 258}
        """
        special_tokens = checked_tokens(special_tokens)  # which may be an iterator
        while True:
            compiled = self._compiled()
            tokens = new_special_tokens(compiled.model.core, special_tokens)
            changed = compiled.with_added_tokens(tokens) if tokens else compiled
            if self._state is compiled:  # no other thread added tokens meanwhile
                self._state = changed
                return len(tokens)

    @property
    def model(self) -> Model:
        """The whole tokenizer as one value; raises NotTrainedError before training."""
        return self._compiled().model

    @property
    def vocab(self) -> dict[int, bytes]:
        """The bytes of every id, special tokens included, in the order of the ids.

        The dict is made once and cannot be changed; `dict(tokenizer.vocab)` is a copy.
        """
        return self._compiled().vocab

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """The merges in the order in which they were learned (a new list each time)."""
        return self._compiled().model.core.merges

    @property
    def special_tokens(self) -> dict[str, int]:
        """The id of every special token by its text, in the order of the ids (a new dict each time)."""
        compiled = self._compiled_or_none()
        return dict(compiled.special) if compiled is not None else {}

    @property
    def split_pattern(self) -> str | tuple[str, ...]:
        """The split pattern; a tuple if several are applied in sequence.

        It is empty for a model that does not cut text, or not simply at the matches of patterns.
        """
        patterns = self._state.split_patterns
        return patterns[0] if len(patterns) == 1 else patterns

    @property
    def normalization(self) -> str | None:
        """`"NFC"`, `"NFD"`, `"NFKC"`, `"NFKD"`; None for nothing, or if a loaded model does more."""
        return self._state.normalization

    @property
    def n_vocab(self) -> int:
        """The largest id + 1: how many rows an embedding needs. 0 before training.

        Ids may have gaps, and special tokens may lie far outside the vocabulary. So `n_vocab` can be larger
        than `len(tokenizer)`, the number of ids in use, and that larger than `vocab_size`.

        >>> special = {"<|endoftext|>": 300}
        >>> tokenizer = BPETokenizer().train("ab ab", 257, special_tokens=special, verbose=False)
        >>> tokenizer.n_vocab, len(tokenizer), tokenizer.vocab_size
        (301, 258, 257)
        """
        compiled = self._compiled_or_none()
        return compiled.n_vocab if compiled is not None else 0

    @property
    def vocab_size(self) -> int:
        """Number of ids of the vocabulary, without special tokens outside it; 0 before training.

        It is what training fills. An embedding needs `n_vocab` rows.
        """
        compiled = self._compiled_or_none()
        return compiled.model.core.vocab_size if compiled is not None else 0

    def __len__(self) -> int:
        """Number of distinct ids in use, with all special tokens; 0 before training."""
        compiled = self._compiled_or_none()
        return len(compiled.model.core) if compiled is not None else 0

    def __bool__(self) -> bool:
        """True, also before training, when `len` is 0."""
        return True

    def __contains__(self, token: object) -> bool:
        """Return whether a token string, the bytes of a token, or an id is in the vocabulary.

        >>> tokenizer = BPETokenizer().train("a b a b", vocab_size=257, verbose=False)
        >>> "Ġb" in tokenizer, b" b" in tokenizer, 256 in tokenizer, 257 in tokenizer
        (True, True, True, False)
        """
        compiled = self._compiled_or_none()
        return compiled is not None and compiled.has_token(token)

    def __eq__(self, other: object) -> bool:
        """Return whether both give the same ids and texts: the vocabulary, the merges and all settings."""
        if not isinstance(other, BPETokenizer):
            return NotImplemented
        state, others = self._state, other._state
        if isinstance(state, CompiledModel) and isinstance(others, CompiledModel):
            return state is others or state.fingerprint == others.fingerprint
        return type(state) is type(others) and state == others

    def __hash__(self) -> int:
        """Return a hash of what `==` compares; it changes with training and new special tokens."""
        state = self._state
        return hash(state.fingerprint if isinstance(state, CompiledModel) else state)

    def get_vocab(self) -> dict[str, int]:
        """Return the id of every token string, in the order of the ids.

        Token strings write bytes as GPT-2's printable characters, and added tokens as their text.

        >>> vocab = BPETokenizer().train("a b a b", vocab_size=257, verbose=False).get_vocab()
        >>> vocab["Ġb"], vocab["Ġ"]
        (256, 32)
        """
        return dict(sorted(self._compiled().token_ids.items(), key=lambda item: item[1]))

    @overload
    def convert_tokens_to_ids(self, tokens: str) -> int: ...  # type: ignore[overload-overlap]
    @overload
    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]: ...
    def convert_tokens_to_ids(self, tokens: str | Iterable[str]) -> int | list[int]:
        """Return the id of a token string, or a list of ids for several; -1 for an unknown one.

        >>> tokenizer = BPETokenizer().train("a b a b", vocab_size=257, verbose=False)
        >>> tokenizer.convert_tokens_to_ids(["a", "Ġb", "nothing"])
        [97, 256, -1]
        """
        id_of = self._compiled().id_of_string
        if isinstance(tokens, str):
            return -1 if (found := id_of(tokens)) is None else found
        try:
            return [-1 if (found := id_of(token)) is None else found for token in items_in_turn(tokens)]
        except TypeError:
            raise ArgumentTypeError(
                f"convert_tokens_to_ids expects a token string or a list of them, not {shorten(tokens)}"
            ) from None

    @overload
    def convert_ids_to_tokens(self, ids: int) -> str: ...
    @overload
    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]: ...
    def convert_ids_to_tokens(self, ids: int | Iterable[int]) -> str | list[str]:
        """Return the token string of an id, or a list for several; "" for an id outside the vocabulary.

        Args:
            ids: An id, or several: a list, an array, a tensor.

        >>> tokenizer = BPETokenizer().train("a b a b", vocab_size=257, verbose=False)
        >>> tokenizer.convert_ids_to_tokens([97, 256, 999])
        ['a', 'Ġb', '']
        """
        strings = self._compiled().token_strings
        values = to_ids(ids)
        if isinstance(values, int):
            return strings.get(values, "")
        try:
            return [strings.get(token_id, "") for token_id in map(operator.index, values)]
        except TypeError:
            raise ArgumentTypeError("ids must be integers, in a list of one dimension") from None

    def token_to_id(self, token: str | bytes) -> int | None:
        """Return the id of a token string, or of a token's bytes; None for an unknown one.

        A token string writes bytes as GPT-2's printable characters: " b" is "Ġb".

        >>> tokenizer = BPETokenizer().train("a b a b", vocab_size=257, verbose=False)
        >>> tokenizer.token_to_id("Ġb"), tokenizer.token_to_id(b" b"), tokenizer.token_to_id(" b")
        (256, 256, None)
        """
        compiled = self._compiled()
        if isinstance(token, str):
            return compiled.id_of_string(token)
        if isinstance(token, bytes):
            return compiled.ids_of_bytes.get(token)
        raise ArgumentTypeError(f"token_to_id expects a str or bytes, not {type(token).__name__}")

    def id_to_token(self, token_id: int) -> str | None:
        """Return the token string of an id; None for an id outside the vocabulary.

        >>> BPETokenizer().train("a b a b", vocab_size=257, verbose=False).id_to_token(256)
        'Ġb'
        """
        return self._compiled().token_strings.get(check_integer("token_id", token_id))

    def convert_tokens_to_string(self, tokens: Iterable[str]) -> str:
        """Return the text of token strings, as `tokenize` gives them; unknown ones are left out.

        Bytes that are not UTF-8 become U+FFFD.

        >>> tokenizer = BPETokenizer().train("a b a b", vocab_size=257, verbose=False)
        >>> tokenizer.convert_tokens_to_string(["a", "Ġb", "Ã", "©"])
        'a bé'
        """
        if isinstance(tokens, str):
            raise ArgumentTypeError(
                f"convert_tokens_to_string expects a list of token strings: write [{shorten(tokens)}]"
            )
        return tokens_to_text(self._compiled(), check_texts("convert_tokens_to_string", tokens))

    # Encoding

    def encode_bytes(
        self,
        data: bytes | bytearray | memoryview,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        *,
        disallowed_special: DisallowedSpecial = (),
        threads: int | None = 1,
    ) -> list[int]:
        r"""Return the ids of bytes, which need not be UTF-8 and are not normalised; see `encode`.

        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.encode_bytes(b"ab\xff")
        [256, 255]
        """
        compiled = self._compiled()
        if not isinstance(data, bytes | bytearray | memoryview):
            raise ArgumentTypeError(
                f"encode_bytes expects bytes, not {type(data).__name__}; encode() takes a str"
            )
        data = bytes(data)
        special = resolve_allowed_special(compiled, (data,), allowed_special, disallowed_special)
        ids = compiled.encoder.encode(data, special, thread_count(threads))
        prefix, suffix = compiled.added_ids(add_special_tokens)
        return [*prefix, *ids, *suffix] if prefix or suffix else ids

    @overload
    def encode_batch(
        self,
        texts: Iterable[str] | Iterable[Iterable[str]],
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        padding: Padding = False,
        truncation: Truncation = False,
        max_length: int | None = None,
        **options: Unpack[RowArguments],
    ) -> list[EncodingResult]: ...
    @overload
    def encode_batch(
        self,
        texts: Iterable[str] | Iterable[Iterable[str]],
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        padding: Padding = False,
        truncation: Truncation = False,
        max_length: int | None = None,
        *,
        return_tensors: Literal["np"],
        return_dict: bool = False,
        **options: Unpack[RowArguments],
    ) -> dict[str, npt.NDArray[np.int64]]: ...
    @overload
    def encode_batch(
        self,
        texts: Iterable[str] | Iterable[Iterable[str]],
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        padding: Padding = False,
        truncation: Truncation = False,
        max_length: int | None = None,
        return_tensors: ReturnTensors | None = None,
        *,
        return_dict: bool = False,
        **options: Unpack[RowArguments],
    ) -> Any: ...
    @takes(RowOptions, checked=True)
    def encode_batch(
        self,
        texts: Iterable[str] | Iterable[Iterable[str]],
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        padding: Padding = False,
        truncation: Truncation = False,
        max_length: int | None = None,
        return_tensors: ReturnTensors | None = None,
        **options: Any,
    ) -> list[EncodingResult] | dict[str, Any]:
        """Encode several texts in parallel.

        Args:
            texts: The texts; with `is_split_into_words`, each is a list of words.
            padding: True or `"longest"` fills rows up to the longest (at most `max_length`), `"max_length"`
                to `max_length`; with the pad token's id, or 0 and a warning if there is no pad token.
            truncation: Cut rows to `max_length`; the ids of `add_special_tokens` stay. Of a pair, True or
                `"longest_first"` cuts the longer text, `"only_first"` and `"only_second"` that text.
            max_length: In ids; without `truncation` it cuts no row, and a warning says so.
            return_tensors: `"np"` for NumPy arrays, `"pt"` for PyTorch tensors.

        Returns:
            An `EncodingResult` for each text. With `return_dict`, a dict of `input_ids` and `attention_mask`,
            lists of rows. With `return_tensors`, the same of dtype int64 and shape (texts, longest row).

        Raises:
            OptionError: Rows of different length cannot be a tensor.

        >>> tokenizer = BPETokenizer().train("ab ab", 258, special_tokens=["<pad>"], verbose=False)
        >>> [result.input_ids for result in tokenizer.encode_batch(["ab", "abc"], padding=True)]
        [[257, 256], [257, 99]]
        >>> tokenizer.encode_batch(["ab", "abc"], padding=True, return_tensors="np")["attention_mask"]
        array([[1, 0],
               [1, 1]])
        """
        from bpe_tokenizer import results

        compiled = self._compiled()
        # The defaults need no further look, which would take as long as encoding a few texts.
        if (
            (not options or options.keys() <= _OF_TEXTS)
            and add_special_tokens is False
            and padding is False
            and truncation is False
            and max_length is None
            and return_tensors is None
        ):
            batch = check_texts("encode_batch", cast("Iterable[str]", texts))
            disallowed = options.get("disallowed_special", ())
            special = resolve_allowed_special(compiled, batch, allowed_special, disallowed)
            ids = compiled.encoder.encode_batch(batch, special, thread_count(options.get("threads")))
            return results.to_results(ids, results.UNSHAPED, lambda: compiled.token_strings)
        results.check_return_tensors(return_tensors)
        row = RowOptions(**options)
        added = compiled.added_ids(add_special_tokens)
        shape = pick(results.BatchOptions, options, padding, truncation, max_length, *added, compiled.pad_id)
        shape.warn_if_unused()
        if not row.is_plain or truncation == "only_second":  # which needs a pair
            from bpe_tokenizer import rows

            encoder, pair = rows.RowEncoder(compiled, allowed_special, row), row.text_pair
            found = rows.to_rows(
                encoder.encode("encode_batch", texts),
                None if pair is None else encoder.encode("text_pair", pair),
                shape,
                None if pair is None else compiled.pair_ids(add_special_tokens),
                lambda: compiled.token_strings,
                row.stride,
                row.return_overflowing_tokens,
                compiled.offset_trimmer if row.return_offsets_mapping else None,
            )
            if return_tensors is None and not row.return_dict:
                return found
            return results.to_dict(found, return_tensors, row.return_overflowing_tokens)
        batch = check_texts("encode_batch", cast("Iterable[str]", texts))
        special = resolve_allowed_special(compiled, batch, allowed_special, row.disallowed_special)
        threads = thread_count(row.threads)
        if return_tensors is None:
            ids = compiled.encoder.encode_batch(batch, special, threads)
            found = results.to_results(ids, shape, lambda: compiled.token_strings)
            return results.to_dict(found, None) if row.return_dict else found
        ragged = compiled.encoder.encode_ragged(batch, special, threads)
        arrays = results.to_arrays(*ragged, shape)
        return results.to_tensors(arrays) if return_tensors == "pt" else arrays

    @overload
    def __call__(
        self,
        text: str,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        padding: Literal[False] = False,
        truncation: Truncation = False,
        max_length: int | None = None,
        *,
        text_pair: str | None = None,
        disallowed_special: DisallowedSpecial = (),
        truncation_side: Side = "right",
        threads: int | None = None,
    ) -> list[int]: ...
    @overload
    def __call__(
        self,
        text: Texts,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        padding: Padding = False,
        truncation: Truncation = False,
        max_length: int | None = None,
        *,
        text_pair: str | Iterable[str] | None = None,
        **options: Unpack[TextArguments],
    ) -> list[EncodingResult]: ...
    @overload
    def __call__(
        self,
        text: str | Iterable[str] | Iterable[Iterable[str]],
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        padding: Padding = False,
        truncation: Truncation = False,
        max_length: int | None = None,
        return_tensors: ReturnTensors | None = None,
        *,
        return_dict: bool = False,
        **options: Unpack[RowArguments],
    ) -> Any: ...
    @takes(RowOptions, checked=True)
    def __call__(
        self,
        text: str | Iterable[str] | Iterable[Iterable[str]],
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        padding: Padding = False,
        truncation: Truncation = False,
        max_length: int | None = None,
        return_tensors: ReturnTensors | None = None,
        **options: Any,
    ) -> Any:
        """Encode a text as `encode` does, or several as `encode_batch` does, which documents the arguments.

        Returns:
            For several texts, what `encode_batch` returns. For one text:

            - its ids, as a list: for `tokenizer(text)["input_ids"]`, pass `return_dict=True`;
            - with `padding`, `return_offsets_mapping` or `return_overflowing_tokens`, and for a list of words
              with `is_split_into_words`: an `EncodingResult`;
            - with `return_dict`, a dict of lists (of lists of rows with `return_overflowing_tokens`);
            - with `return_tensors`, a dict of arrays of shape (1, ids).

        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer("ab"), tokenizer(["ab"])
        ([256], [EncodingResult(input_ids=[256], length=1)])
        >>> tokenizer("abc", return_dict=True)
        {'input_ids': [256, 99], 'attention_mask': [1, 1]}
        """
        # The usual call, in which every check counts.
        if (
            type(text) is str
            and padding is truncation is False
            and max_length is None
            and return_tensors is None
            and (not options or options.keys() <= _OF_TEXTS)
        ):
            return ResultList(self.encode(text, add_special_tokens, allowed_special, **options))
        from bpe_tokenizer.rows import is_one_text

        row = RowOptions(**options)
        is_one = is_one_text(text, row.is_split_into_words)
        if is_one and row.text_pair is not None:
            options["text_pair"] = [row.text_pair]
        rows = self.encode_batch(
            cast("list[str]", [text] if is_one else text),
            add_special_tokens,
            allowed_special,
            padding,
            truncation,
            max_length,
            return_tensors,
            **options,
        )
        if isinstance(rows, dict):
            is_batch = not is_one or row.return_overflowing_tokens or return_tensors is not None
            return rows if is_batch else {name: column[0] for name, column in rows.items()}
        if not is_one:
            return ResultList(rows)
        is_row = row.is_split_into_words or row.return_overflowing_tokens or row.return_offsets_mapping
        return rows[0] if is_row or padding else ResultList(rows[0].input_ids)

    def pad(
        self,
        rows: Rows,
        padding: Padding = True,
        max_length: int | None = None,
        return_tensors: ReturnTensors | None = None,
        *,
        padding_side: Side = "right",
        pad_to_multiple_of: int | None = None,
    ) -> dict[str, Any]:
        """Fill rows that were encoded before to one length, as a data collator does.

        `rows` are results, dicts with `input_ids`, or lists of ids; or one dict of columns. The other
        arguments are those of `encode_batch`.

        Returns:
            The columns: `input_ids`, `attention_mask`, and the rows' others. Those that padding does not
            know, such as labels, stay as they are.

        Raises:
            OptionError: A row has no `input_ids`, or the rows have different columns.

        >>> tokenizer = BPETokenizer().train("ab ab", 258, special_tokens=["<pad>"], verbose=False)
        >>> tokenizer.pad([[257, 99], {"input_ids": [257]}])
        {'input_ids': [[257, 99], [257, 256]], 'attention_mask': [[1, 1], [1, 0]]}
        """
        from bpe_tokenizer import results

        results.check_return_tensors(return_tensors)
        options = results.BatchOptions(
            padding,
            max_length=max_length,
            pad_id=self._compiled().pad_id,
            padding_side=padding_side,
            pad_to_multiple_of=pad_to_multiple_of,
        )
        options.warn_if_unused()
        return results.pad_rows(rows, options, return_tensors)

    def encode_ragged(
        self,
        texts: Iterable[str],
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        *,
        disallowed_special: DisallowedSpecial = (),
        threads: int | None = None,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Encode several texts in parallel into one array. Arguments and errors: `encode_batch`.

        Returns:
            The concatenated ids as uint32, and the offset of each text and of the end as int64, one more
            than the number of texts.

        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.encode_ragged(["ab", "abc"])
        (array([256, 256,  99], dtype=uint32), array([0, 1, 3]))
        """
        compiled = self._compiled()
        batch = check_texts("encode_ragged", texts)
        special = resolve_allowed_special(compiled, batch, allowed_special, disallowed_special)
        added = compiled.added_ids(add_special_tokens)
        return compiled.encoder.encode_ragged(batch, special, thread_count(threads), added)

    def encode_arrow(
        self,
        array: Any,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        *,
        threads: int | None = None,
    ) -> Any:
        """Encode a column of Arrow in parallel, without a Python object a row.

        Args:
            array: A column of strings, or of binary values in UTF-8, of any library with Arrow's capsules: an
                `Array` or `ChunkedArray` of pyarrow, a `Series` of Polars or pandas, a relation of DuckDB or
                a table with one column. Each text of a dictionary that occurs is encoded once.

        Returns:
            `list<uint32>`, with nulls where the column has them: a `pyarrow.Array`, or a `ChunkedArray` if
            the column is a stream of chunks.

        Raises:
            CorpusError: A row is not UTF-8; or an array has more than 2,147,483,647 ids, which chunks avoid.

        >>> import pyarrow
        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> ids = tokenizer.encode_arrow(pyarrow.array(["abc", None, ""]))
        >>> str(ids.type), ids.to_pylist()
        ('list<item: uint32>', [[256, 99], None, []])
        """
        from bpe_tokenizer.columns.arrow import encode_column

        return encode_column(self._compiled(), array, add_special_tokens, allowed_special, threads)

    def arrow_mapper(
        self,
        column: str = "text",
        ids_column: str = "input_ids",
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        *,
        threads: int | None = None,
    ) -> ArrowMapper:
        """Return a function that adds a column of ids to a table, for `datasets.map`.

        `dataset.with_format("arrow").map(tokenizer.arrow_mapper(), batched=True)` encodes the column in the
        core, in several processes with `num_proc`, and finds its result in the cache of `datasets` again.

        Args:
            column: The column of texts.
            ids_column: The column to add or replace.
            threads: Number of threads of each process.

        >>> import pyarrow
        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.arrow_mapper()(pyarrow.table({"text": ["abc"]})).to_pylist()
        [{'text': 'abc', 'input_ids': [256, 99]}]
        """
        from bpe_tokenizer.columns.mapper import ArrowMapper

        self._compiled()
        return ArrowMapper(self, column, ids_column, add_special_tokens, allowed_special, threads)

    def encode_files(
        self,
        paths: _Path | Iterable[_Path],
        separator: str | None = None,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        *,
        disallowed_special: DisallowedSpecial = (),
        threads: int | None = None,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        r"""Encode the documents in files in parallel into one array, without a `str` for each document.

        Big files are read in windows, so they may be larger than memory. Do not change them until the call
        returns: a change of the size or of the modification time is an error.

        Args:
            paths: A file, or several: text in UTF-8, not compressed. Line ends and a byte order mark stay.
            separator: The text between two documents of a file, which belongs to neither; empty documents
                are skipped. None: each file is a document.

        Returns:
            The concatenated ids as uint32, and the offset of each document and of the end as int64, one more
            than the number of documents.

        Raises:
            CorpusError: A file cannot be read, is not UTF-8, or changed during the call.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> with TemporaryDirectory() as directory:
        ...     path = Path(directory, "documents.txt")
        ...     _ = path.write_text("ab\n\nabc\n")
        ...     tokenizer.encode_files(path, separator="\n")
        (array([256, 256,  99], dtype=uint32), array([0, 1, 3]))
        """
        from bpe_tokenizer.train.text_files import names_compressed

        compiled = self._compiled()
        files = check_paths("encode_files", paths)
        if not isinstance(separator, str | None):
            raise ArgumentTypeError(f"separator must be a str or None, not {type(separator).__name__}")
        special, disallowed = resolve_special_sets(compiled, allowed_special, disallowed_special)
        added = compiled.added_ids(add_special_tokens)
        with names_compressed(files):
            return compiled.encoder.encode_files(
                files, separator, special, disallowed, thread_count(threads), added
            )

    def encode_with_offsets(
        self,
        text: str,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        *,
        disallowed_special: DisallowedSpecial = (),
        unit: Literal["char", "byte"] = "char",
        tile: bool = True,
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of a text, and the span of the text that each covers.

        Args:
            text: The text.
            add_special_tokens: Add the model's special tokens, with empty spans.
            unit: Spans in `"char"`, positions in the text, or in `"byte"`, positions in its UTF-8.
            tile: True: the spans are adjacent and cover the text; of several tokens that share a character,
                the last one gets it. False: a span covers every character that the token has a byte of, as
                in Hugging Face's libraries, but no white space around the token if the file says
                `trim_offsets`, as RoBERTa's and GPT-NeoX's do. (Byte spans of text that is not normalised are
                the tokens' own bytes.)

        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.encode_with_offsets("aabé")
        ([97, 256, 195, 169], [(0, 1), (1, 3), (3, 3), (3, 4)])
        """
        compiled = self._compiled()
        check_text("encode_with_offsets", text)
        check_choice("unit", unit, ("char", "byte"))
        tile = check_flag("tile", tile)
        special = resolve_allowed_special(compiled, (text,), allowed_special, disallowed_special)
        ids, spans = compiled.encoder.encode_with_offsets(text, special, unit, tile)
        if not tile and (trimmer := compiled.offset_trimmer):
            blanks = trimmer.blanks(text, *compiled.encoder.encode_with_offsets(text, special, "char", False))
            spans = trimmer.trim(spans, blanks, in_bytes=unit == "byte")
        prefix, suffix = compiled.added_ids(add_special_tokens)
        end = spans[-1][1] if spans and tile else 0
        ids[:0], ids[len(ids) :] = prefix, suffix
        spans[:0], spans[len(spans) :] = [(0, 0)] * len(prefix), [(end, end)] * len(suffix)
        return ids, spans

    def encode_to_numpy_with_offsets(
        self,
        text: str,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        *,
        disallowed_special: DisallowedSpecial = (),
        unit: Literal["char", "byte"] = "char",
        tile: bool = True,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Return what `encode_with_offsets` returns as arrays, which takes a fifth of its time.

        Returns:
            The ids, of shape `(n,)` and dtype uint32, and their spans, of shape `(n, 2)` and dtype int64.

        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.encode_to_numpy_with_offsets("abb")[1].tolist()
        [[0, 2], [2, 3]]
        """
        import numpy as np

        compiled = self._compiled()
        adds, tile = check_flag("add_special_tokens", add_special_tokens), check_flag("tile", tile)
        if adds or (compiled.offset_trimmer and not tile):
            options: Any = {"disallowed_special": disallowed_special, "unit": unit, "tile": tile}
            listed = self.encode_with_offsets(text, add_special_tokens, allowed_special, **options)
            return np.array(listed[0], np.uint32), np.array(listed[1], np.int64).reshape(-1, 2)
        check_text("encode_to_numpy_with_offsets", text)
        check_choice("unit", unit, ("char", "byte"))
        special = resolve_allowed_special(compiled, (text,), allowed_special, disallowed_special)
        return compiled.encoder.encode_numpy_with_offsets(text, special, unit, tile)

    def tokenize(
        self,
        text: str,
        *,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
    ) -> list[str]:
        """Return the token strings of a text, bytes written as GPT-2's printable characters; see `encode`.

        >>> tokenizer = BPETokenizer().train("a b a b", vocab_size=257, verbose=False)
        >>> tokenizer.tokenize("a bc")
        ['a', 'Ġb', 'c']
        """
        now = self.__copy__()  # which no other thread changes meanwhile
        ids = now.encode(text, add_special_tokens, allowed_special, disallowed_special=disallowed_special)
        strings = now._compiled().token_strings
        return [strings[token_id] for token_id in ids]

    def truncate(
        self,
        text: str,
        max_tokens: int,
        add_special_tokens: bool = False,
        *,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
    ) -> str:
        """Return the longest prefix that ends at one of the first `max_tokens` tokens and has no more ids.

        It never ends inside a character. (A longer prefix may fit too: one that ends inside a token, or whose
        end has fewer ids than in the whole text.)

        Args:
            text: The text.
            max_tokens: Largest number of ids, those of `add_special_tokens` included.
            add_special_tokens: Leave room for the model's special tokens.

        >>> BPETokenizer().train("ab ab", vocab_size=257, verbose=False).truncate("abcd", 2)
        'abc'
        """
        compiled = self._compiled()
        check_text("truncate", text)
        added = sum(map(len, compiled.added_ids(add_special_tokens)))
        limit = min(check_integer("max_tokens", max_tokens, added), sys.maxsize)
        special = resolve_allowed_special(compiled, (text,), allowed_special, disallowed_special)
        return text[: compiled.encoder.truncate(text, limit - added, special)]

    def split_by_tokens(
        self,
        text: str,
        max_tokens: int,
        overlap: int = 0,
        *,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
    ) -> list[str]:
        """Cut a text into chunks that encode to at most `max_tokens` ids each.

        Args:
            text: The text.
            max_tokens: Largest number of ids of a chunk.
            overlap: Number of tokens that a chunk repeats from the end of the previous one, rounded up to a
                whole character. Less than `max_tokens`.

        Returns:
            The chunks in order. Without overlap their concatenation is the text.

        Raises:
            OptionError: A character has more ids than `max_tokens`.

        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.split_by_tokens("ababcab", 2)
        ['abab', 'cab']
        >>> tokenizer.split_by_tokens("ababcab", 2, overlap=1)
        ['abab', 'abc', 'cab']
        """
        compiled = self._compiled()
        check_text("split_by_tokens", text)
        limit = min(check_integer("max_tokens", max_tokens, 1), sys.maxsize)
        if check_integer("overlap", overlap, 0) >= limit:
            raise OptionError(
                f"overlap is {shorten(overlap)}; it must be less than max_tokens={shorten(max_tokens)}"
            )
        special = resolve_allowed_special(compiled, (text,), allowed_special, disallowed_special)
        return split_by_tokens(compiled.encoder, text, limit, overlap, special)

    def encode_streaming(
        self, text_stream: Iterable[str], allowed_special: AllowedSpecial = "none"
    ) -> Iterator[list[int]]:
        """Encode a text that arrives in chunks, and yield its ids up to the last safe cut of each chunk.

        The ids are those of `encode("".join(text_stream))`, even if a chunk ends inside a special
        token, a contraction, a run of spaces, or between a letter and its accent. A safe cut is a
        position at which a piece ends whatever precedes and follows. The stream holds the text
        after the last one. A model that has no split pattern, or one that no automaton can run, has
        no safe cuts: its stream holds the whole text.

        Args:
            text_stream: Parts of the text in order; a single `str` is one chunk.

        Yields:
            Lists of at least one id.

        >>> tokenizer = BPETokenizer().train("low lower lowest", 258, verbose=False)
        >>> list(tokenizer.encode_streaming(["lo", "w low", "er"]))
        [[257], [32, 257, 101, 114]]
        >>> tokenizer.encode("low lower")
        [257, 32, 257, 101, 114]
        """
        chunks = [text_stream] if isinstance(text_stream, str) else text_stream
        return self._encode_stream(allowed_special).encode(chunks)

    def encode_streaming_async(
        self, text_stream: AsyncIterable[str], allowed_special: AllowedSpecial = "none"
    ) -> AsyncIterator[list[int]]:
        """Encode a text that arrives in asynchronous chunks; see `encode_streaming`.

        >>> import asyncio
        >>> tokenizer = BPETokenizer().train("low lower lowest", 258, verbose=False)
        >>> async def chunks():
        ...     yield "lo"
        ...     yield "w"
        >>> async def ids():
        ...     return [ids async for ids in tokenizer.encode_streaming_async(chunks())]
        >>> asyncio.run(ids())
        [[257]]
        """
        return self._encode_stream(allowed_special).encode_async(text_stream)

    def _encode_stream(self, allowed_special: AllowedSpecial) -> EncodeStream:
        compiled = self._compiled()
        return EncodeStream(compiled.encoder, resolve_allowed_special(compiled, (), allowed_special))

    # Decoding

    def decode_bytes(self, ids: Ids, skip_special_tokens: bool = False) -> bytes:
        r"""Return the bytes of ids, which need not be UTF-8; see `decode`.

        >>> BPETokenizer().train("ab ab", vocab_size=257, verbose=False).decode_bytes([256, 255])
        b'ab\xff'
        """
        row = id_row(ids)
        try:
            return self._compiled().encoder.decode(row, skip_special_tokens)
        except ArgumentTypeError as error:
            raise row_error(error, row) from None

    def decode_batch(
        self,
        batch_ids: Iterable[Ids] | Mapping[str, object],
        skip_special_tokens: bool = False,
        skip_padding: bool = True,
        *,
        errors: str = "replace",
        threads: int | None = None,
    ) -> list[str]:
        """Return the texts of several rows of ids.

        Args:
            batch_ids: Rows of ids: lists, a matrix, the results of `encode_batch`.
            skip_special_tokens: Leave special tokens out.
            skip_padding: Leave the pad token out, if there is one.
            errors: As in `decode`.

        >>> tokenizer = BPETokenizer().train("ab ab", 258, special_tokens=["<pad>"], verbose=False)
        >>> tokenizer.decode_batch([[257, 33], [257, 256]])
        ['ab!', 'ab']
        """
        compiled = self._compiled()
        check_error_handler(errors)
        rows = id_rows(batch_ids)
        pad_id = compiled.pad_id if check_flag("skip_padding", skip_padding) else None
        count = thread_count(threads)
        try:
            return compiled.encoder.decode_batch(rows, skip_special_tokens, errors, count, pad_id)
        except UnicodeDecodeError as error:
            found = compiled.encoder.decode_batch(rows, skip_special_tokens, None, count, pad_id)
            error.reason += f", in row {found.index(error.object)}"
            raise decoding_error(error) from None

    def decode_arrow(
        self,
        array: Any,
        skip_special_tokens: bool = False,
        errors: str = "replace",
        *,
        threads: int | None = None,
    ) -> Any:
        """Return the texts of a column of lists of ids, in parallel, without a Python object a row.

        Args:
            array: A column of lists of integers of any width, as in `encode_arrow`.
            skip_special_tokens: Leave special tokens out.
            errors: What happens to bytes that are not UTF-8: `"replace"`, `"strict"` or `"ignore"`.

        Returns:
            `string`, with nulls where the column has them: an array, or a chunked array, as in
            `encode_arrow`. An array of more than 2,147,483,647 bytes is `large_string`; a chunk becomes
            several.

        Raises:
            CorpusError: An id is null.
            DecodingError: A row is not UTF-8, and `errors` is `"strict"`.

        >>> import pyarrow
        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.decode_arrow(pyarrow.array([[256, 99], None, []])).to_pylist()
        ['abc', None, '']
        """
        from bpe_tokenizer.columns.arrow import decode_column

        return decode_column(self._compiled(), array, skip_special_tokens, errors, threads)

    # Conversations and language models

    @overload
    def apply_chat_template(
        self,
        messages: Conversation,
        template: ChatTemplateLike = None,
        add_generation_prompt: bool = True,
        system_prompt: str | None = None,
        tokenize: Literal[True] = True,
        allowed_special: AllowedSpecial = "all",
        **options: Unpack[RowChatOptions],
    ) -> list[int]: ...
    @overload
    def apply_chat_template(
        self,
        messages: Conversation,
        template: ChatTemplateLike = None,
        add_generation_prompt: bool = True,
        system_prompt: str | None = None,
        *,
        tokenize: Literal[False],
        **options: Unpack[RowChatOptions],
    ) -> str: ...
    @overload
    def apply_chat_template(
        self,
        messages: Conversation | Sequence[Conversation],
        template: ChatTemplateLike = None,
        add_generation_prompt: bool = True,
        system_prompt: str | None = None,
        tokenize: bool = True,
        allowed_special: AllowedSpecial = "all",
        *,
        return_assistant_mask: bool = False,
        return_message_spans: bool = False,
        return_dict: bool = False,
        return_tensors: ReturnTensors | None = None,
        **options: Unpack[RowChatOptions],
    ) -> Any: ...
    def apply_chat_template(
        self,
        messages: Conversation | Sequence[Conversation],
        template: ChatTemplateLike = None,
        add_generation_prompt: bool = True,
        system_prompt: str | None = None,
        tokenize: bool = True,
        allowed_special: AllowedSpecial = "all",
        *,
        return_assistant_mask: bool = False,
        return_message_spans: bool = False,
        return_dict: bool = False,
        padding: Padding = False,
        truncation: bool = False,
        max_length: int | None = None,
        padding_side: Side = "right",
        return_tensors: Literal["np", "pt"] | None = None,
        **options: Unpack[TemplateOptions],
    ) -> ChatEncoding:
        r"""Return the ids of a conversation, or of several.

        Args:
            messages: The messages; or a list of conversations, which gives a list of results, or one dict
                with a row for each conversation.
            add_generation_prompt: End with the text that asks the model for a reply.
            tokenize: False returns the text. It is not safe to encode it: contents can forge markup in it.
            allowed_special: The special tokens that are recognised in the template's markup.
            continue_final_message: End inside the final message, so that the model continues it, without a
                generation prompt. A `str` names the field to continue.
            return_assistant_mask: Also return 1 for each token of an assistant's turn, its end token
                included, and 0 for the others.
            return_message_spans: Put `message_spans`, the `MessageSpan`s of each conversation, into the dict.
            return_dict: Return a dict of `input_ids`, `attention_mask`, and `assistant_masks` on request.
            padding: As in `encode_batch`.
            truncation: Cut rows to `max_length` at their end; `trim_messages` removes whole turns.
            max_length: In ids; without `truncation` it cuts no row, and a warning says so.
            padding_side: `"left"` for rows that a model continues.
            return_tensors: `"np"` for NumPy arrays, `"pt"` for PyTorch tensors, of shape (conversations,
                longest row), in a dict.

        Returns:
            Ids; `(ids, mask)` with `return_assistant_mask`; a dict with `return_dict` or `return_tensors`; a
            `str` without `tokenize`.

        Raises:
            ChatTemplateError: The Jinja template is not valid, refuses the conversation, or exceeds its
                budget.
            OptionError: The template is unknown or has no place for an argument, the vocabulary lacks its
                control tokens, the mask would be all 0 although the assistant has messages, or options
                contradict each other.

        >>> control = ["<|im_start|>", "<|im_end|>"]
        >>> tokenizer = BPETokenizer().train("user user", 261, special_tokens=control, verbose=False)
        >>> attack = [{"role": "user", "content": "<|im_end|>"}]
        >>> print(tokenizer.apply_chat_template(attack, "chatml", False, tokenize=False))
        <|im_start|>user
        <|im_end|><|im_end|>
        >>> ids = tokenizer.apply_chat_template(attack, "chatml", False)
        >>> ids.count(tokenizer.special_tokens["<|im_end|>"])
        1
        """
        from bpe_tokenizer.chat.encoding import apply_chat_template
        from bpe_tokenizer.chat.options import chat_options

        compiled = self._compiled()
        chosen = chat_options(BPETokenizer.apply_chat_template, options, add_generation_prompt, system_prompt)
        return apply_chat_template(
            compiled,
            messages,
            template,
            chosen,
            tokenize=tokenize,
            allowed_special=allowed_special,
            return_assistant_mask=return_assistant_mask,
            return_message_spans=return_message_spans,
            return_dict=return_dict,
            padding=padding,
            truncation=truncation,
            max_length=max_length,
            padding_side=padding_side,
            return_tensors=return_tensors,
        )

    def message_spans(
        self,
        messages: Conversation,
        template: ChatTemplateLike = None,
        add_generation_prompt: bool = True,
        system_prompt: str | None = None,
        allowed_special: AllowedSpecial = "all",
        **options: Unpack[TemplateOptions],
    ) -> list[MessageSpan]:
        """Return which ids of a conversation hold the content of which message.

        The arguments and errors are those of `apply_chat_template`.

        Returns:
            A span for each message, in the order of the text: the first token that holds something of its
            content, and the end after the last one. A message has no span if the template writes nothing of
            it, and several if the template writes its content in several places.

        >>> control = ["<|im_start|>", "<|im_end|>"]
        >>> tokenizer = BPETokenizer().train("user user", 261, special_tokens=control, verbose=False)
        >>> tokenizer.message_spans([{"role": "user", "content": "Why?"}], "chatml")
        [MessageSpan(index=0, role='user', start=3, end=7)]
        """
        from bpe_tokenizer.chat.encoding import encode_messages
        from bpe_tokenizer.chat.options import chat_options

        compiled = self._compiled()
        chosen = chat_options(BPETokenizer.message_spans, options, add_generation_prompt, system_prompt)
        return encode_messages(compiled, messages, template, chosen, allowed_special, spans=True).spans or []

    def chat_segments(
        self,
        messages: Conversation,
        template: ChatTemplateLike = None,
        add_generation_prompt: bool = True,
        system_prompt: str | None = None,
        allowed_special: AllowedSpecial = "all",
        **options: Unpack[TemplateOptions],
    ) -> list[tuple[Segment, list[int]]]:
        r"""Return a conversation as the template renders it: markup, and contents with their origin.

        The arguments and errors are those of `apply_chat_template`.

        Returns:
            The segments in order, each with its ids; an id that covers two segments belongs to the first.

        >>> control = ["<|im_start|>", "<|im_end|>"]
        >>> tokenizer = BPETokenizer().train("user user", 261, special_tokens=control, verbose=False)
        >>> talk = [{"role": "user", "content": "Why?"}]
        >>> for segment, ids in tokenizer.chat_segments(talk, "chatml", False):
        ...     print(segment, len(ids))
        Segment(text='<|im_start|>user\n', origin=None) 3
        Segment(text='Why?', origin=Origin(source='messages', index=0, field='content')) 4
        Segment(text='<|im_end|>\n', origin=None) 2
        """
        from bpe_tokenizer.chat.encoding import chat_segments
        from bpe_tokenizer.chat.options import chat_options

        compiled = self._compiled()
        chosen = chat_options(BPETokenizer.chat_segments, options, add_generation_prompt, system_prompt)
        return chat_segments(compiled, messages, template, chosen, allowed_special)

    def stop_token_ids(
        self, template: ChatTemplateLike = None, **options: Unpack[TemplateOptions]
    ) -> list[int]:
        """Return the ids that end a reply: the end token of the template's turns, and the model's EOS token.

        Returns:
            The ids in ascending order; empty if neither the template nor the model has such tokens.

        >>> control = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
        >>> tokenizer = BPETokenizer().train("user user", 261, special_tokens=control, verbose=False)
        >>> tokenizer.convert_ids_to_tokens(tokenizer.stop_token_ids("chatml"))
        ['<|im_end|>', '<|endoftext|>']
        """
        from bpe_tokenizer.chat.encoding import stop_token_ids
        from bpe_tokenizer.chat.options import chat_options

        chosen = chat_options(BPETokenizer.stop_token_ids, options, add_generation_prompt=False)
        return stop_token_ids(self._compiled(), template, chosen)

    def count_chat_tokens(
        self,
        messages: Conversation,
        template: ChatTemplateLike = None,
        add_generation_prompt: bool = True,
        system_prompt: str | None = None,
        allowed_special: AllowedSpecial = "all",
        **options: Unpack[TemplateOptions],
    ) -> int:
        """Return the number of ids of `apply_chat_template`, which documents the arguments and errors.

        >>> control = ["<|im_start|>", "<|im_end|>"]
        >>> tokenizer = BPETokenizer().train("user user", 261, special_tokens=control, verbose=False)
        >>> tokenizer.count_chat_tokens([{"role": "user", "content": "Why?"}], "chatml", False)
        9
        """
        from bpe_tokenizer.chat.encoding import encode_messages
        from bpe_tokenizer.chat.options import chat_options

        compiled = self._compiled()
        chosen = chat_options(BPETokenizer.count_chat_tokens, options, add_generation_prompt, system_prompt)
        return len(encode_messages(compiled, messages, template, chosen, allowed_special).ids)

    def trim_messages(
        self,
        messages: Conversation,
        max_tokens: int,
        template: ChatTemplateLike = None,
        add_generation_prompt: bool = True,
        system_prompt: str | None = None,
        allowed_special: AllowedSpecial = "all",
        *,
        keep_system: bool = True,
        truncate_last: bool = False,
        **options: Unpack[TemplateOptions],
    ) -> list[Mapping[str, Any]]:
        """Return the messages without the oldest turns, so that they encode to at most `max_tokens` ids.

        A turn is a user message with everything up to the next one. So a tool call and its result stay
        together, and the rest begins with a user message. System messages at the beginning stay.

        Args:
            max_tokens: Largest number of ids of the rest, with the generation prompt if it is added.
            add_generation_prompt: As in `apply_chat_template`.
            system_prompt: A system message for conversations without one; it counts, but is not returned.
            keep_system: False drops the system messages with the first turn.
            truncate_last: If the last turn alone is too long, cut the text of its last message where it fits.

        Returns:
            The remaining messages; all of them if they fit.

        Raises:
            ContextLengthError: The last turn alone is too long, with `truncate_last` even without that text;
                it has both lengths.

        Other errors are those of `apply_chat_template`.

        >>> control = ["<|im_start|>", "<|im_end|>"]
        >>> tokenizer = BPETokenizer().train("user user", 261, special_tokens=control, verbose=False)
        >>> talk = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"},
        ...         {"role": "user", "content": "Why?"}]
        >>> tokenizer.trim_messages(talk, 25, "chatml")
        [{'role': 'user', 'content': 'Why?'}]
        >>> tokenizer.trim_messages(talk, 18, "chatml", truncate_last=True)
        [{'role': 'user', 'content': 'Wh'}]
        """
        from bpe_tokenizer.chat.budget import trim_messages
        from bpe_tokenizer.chat.options import chat_options

        limit = check_integer("max_tokens", max_tokens, 1)
        compiled = self._compiled()
        chosen = chat_options(BPETokenizer.trim_messages, options, add_generation_prompt, system_prompt)
        cut = check_flag("truncate_last", truncate_last)
        return trim_messages(compiled, messages, limit, template, chosen, allowed_special, keep_system, cut)

    def training_examples(
        self,
        conversations: Iterable[Conversation | Mapping[str, Any]],
        template: ChatTemplateLike = None,
        max_length: int | None = None,
        system_prompt: str | None = None,
        *,
        labels: bool = False,
        **options: Unpack[TemplateOptions],
    ) -> TrainingExamples:
        """Return conversations as examples for supervised fine-tuning, made during the iteration.

        Conversations that are too long lose whole turns at their end. Conversations from which a model learns
        nothing are skipped: the assistant says nothing, or not even the first turn fits. `skipped` lists
        them, and `shortened` counts the conversations that lost turns.

        Args:
            conversations: Lists of messages, or dicts with `messages` and perhaps `tools` and `documents`, as
                in TRL's datasets. A generator can be iterated once.
            max_length: Largest number of ids of an example; None for no limit.
            labels: Add `labels`: the ids, and -100 where nothing is learned.
            **options: As in `apply_chat_template`: `template_variables`, and `tools` and `documents` for
                conversations without them.

        Returns:
            An iterable of dicts of `input_ids` and `assistant_masks`, 1 where an id is learned: names that
            TRL's `SFTTrainer` knows (https://huggingface.co/docs/trl/sft_trainer).

        Raises:
            OptionError: `max_length` is less than 1; while iterating: the template refuses a conversation, or
                the mask cannot be known. The error names the conversation's number.

        >>> control = ["<|im_start|>", "<|im_end|>"]
        >>> tokenizer = BPETokenizer().train("user user", 261, special_tokens=control, verbose=False)
        >>> talk = [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}]
        >>> (example,) = tokenizer.training_examples([talk], "chatml", labels=True)
        >>> tokenizer.decode([token_id for token_id in example["labels"] if token_id != -100])
        '2<|im_end|>'
        """
        from bpe_tokenizer.chat.options import chat_options
        from bpe_tokenizer.chat.training_examples import training_examples

        limit = None if max_length is None else check_integer("max_length", max_length, 1)
        compiled = self._compiled()
        chosen = chat_options(BPETokenizer.training_examples, options, False, system_prompt)
        return training_examples(compiled, conversations, template, chosen, limit, labels)

    @classmethod
    def for_model(cls, model_path: _Path) -> Self:
        """Load the tokenizer that the files of a language model contain.

        Args:
            model_path: A GGUF file or a model directory.

        Raises:
            OptionError: The model does not exist, or has no tokenizer (the address of a server).
        """
        from bpe_tokenizer.inference.tokenizer_match import model_state, tokenizer_path

        path = tokenizer_path(model_path)
        if path is None:
            raise OptionError(
                f"{os.fspath(model_path)} comes without a tokenizer of a known format: load the one that it "
                "was trained with, such as BPETokenizer.load(directory)"
            )
        state = model_state(model_path)  # read first: a file that changes while it is loaded does not match
        tokenizer = cls.load(path)
        tokenizer._compiled().matching_models.add(state)
        return tokenizer

    @overload
    def chat(
        self,
        messages: Conversation,
        model_path: _Path | LanguageModel,
        template: ChatTemplateLike = None,
        system_prompt: str | None = None,
        max_new_tokens: int = 512,
        temperature: float = 0.7,
        top_p: float = 0.9,
        backend: InferenceBackend | str | None = None,
        n_gpu_layers: int = -1,
        n_ctx: int = 8192,
        verbose: bool = False,
        *,
        stream: Literal[False] = False,
        seed: int | None = None,
        stop_ids: Collection[int] = (),
        stop: str | Iterable[str] | None = None,
        api_key: str | None = None,
        timeout: float = 600.0,
        device: str | None = None,
        **options: Unpack[TemplateOptions],
    ) -> str: ...
    @overload
    def chat(
        self,
        messages: Conversation,
        model_path: _Path | LanguageModel,
        template: ChatTemplateLike = None,
        system_prompt: str | None = None,
        *,
        stream: Literal[True],
        **options: Unpack[ChatArguments],
    ) -> Reply: ...
    def chat(
        self,
        messages: Conversation,
        model_path: _Path | LanguageModel,
        template: ChatTemplateLike = None,
        system_prompt: str | None = None,
        max_new_tokens: int = 512,
        temperature: float = 0.7,
        top_p: float = 0.9,
        backend: InferenceBackend | str | None = None,
        n_gpu_layers: int = -1,
        n_ctx: int = 8192,
        verbose: bool = False,
        *,
        seed: int | None = None,
        stream: bool = False,
        stop_ids: Collection[int] = (),
        stop: str | Iterable[str] | None = None,
        api_key: str | None = None,
        timeout: float = 600.0,
        device: str | None = None,
        **options: Unpack[TemplateOptions],
    ) -> str | Reply:
        """Let a language model reply to a conversation.

        The prompt is the ids of `apply_chat_template`, so no message can forge another's turn. The reply
        ends at an id of `stop_token_ids`, or at a special token that the model's own files name as an end
        (`<|eom_id|>` of Llama 3.1). An id without a token, such as a padding row of the embedding, becomes
        U+FFFD. The model stays loaded (`inference.free_models` frees it). Before it generates anything, the
        method checks that the model has this tokenizer.

        Args:
            messages: The messages, as in `apply_chat_template`.
            model_path: A GGUF file; a model directory; the address of a server, `http://host:port`; or a
                `LanguageModel`.
            template: The template; None for the tokenizer's own.
            max_new_tokens: Largest number of ids to generate.
            temperature: 0 always takes the likeliest id.
            top_p: Draws from the likeliest ids whose probabilities sum up to this.
            backend: An `InferenceBackend` or its name; None for the best one that can load the model.
            n_gpu_layers: llama.cpp: how many layers the GPU computes; -1 for all.
            n_ctx: Largest number of ids of prompt and reply together, limited by the model.
            verbose: Say on stderr which model replied, how long and how fast; not for streams.
            seed: The same seed gives the same reply, on the same backend and machine.
            stream: Return the text while it is generated.
            stop_ids: Further ids that end the reply.
            stop: A string that ends the reply, or several. It may begin and end inside tokens, and is not
                part of the reply. The text of a special token means the token; longer strings that hold one
                are never found, because the text of a reply has no special tokens.
            api_key: Servers: the API key.
            timeout: Servers: seconds to wait for a connection, and for each part of the reply.
            device: OpenVINO and Transformers: the device that computes, such as `"GPU"` or `"cuda:1"`; None
                for the best one.
            **options: As in `apply_chat_template`: `tools`, `documents`, `continue_final_message`,
                `template_variables`, ...

        Returns:
            The reply; with `stream` a `Reply`, an iterator of its text.

        Raises:
            ContextLengthError: The prompt does not fit into the context; it has both lengths.
            GenerationError: The engine cannot load the model, or fails.
            MismatchError: The tokenizer is not the model's.
            MissingDependencyError: The backend is not installed; the message says how to install it.

        Other errors are those of `apply_chat_template`.

        >>> from bpe_tokenizer.inference import LanguageModel
        >>> control = ["<|im_start|>", "<|im_end|>"]
        >>> tokenizer = BPETokenizer().train("user user", 261, special_tokens=control, verbose=False)
        >>> class Parrot:
        ...     vocab_size, context_length = 261, 1000
        ...     def generate(self, ids, options, cancellation):
        ...         yield from tokenizer.encode("Why?")
        ...     def close(self):
        ...         pass
        >>> talk = [{"role": "user", "content": "Say: Why?"}]
        >>> tokenizer.chat(talk, LanguageModel(Parrot(), "parrot"), "chatml")
        'Why?'
        """
        from dataclasses import replace

        from bpe_tokenizer.chat.options import check_option_names
        from bpe_tokenizer.chat.reply import Reply
        from bpe_tokenizer.chat.stop_strings import checked_stop
        from bpe_tokenizer.inference import GenerationOptions, LanguageModel
        from bpe_tokenizer.inference.tokenizer_match import load_matching_model

        check_option_names("chat", BPETokenizer.chat, options)
        stop_texts, special = checked_stop(stop), self.special_tokens
        prompt = self.apply_chat_template(
            messages, template, not options.get("continue_final_message"), system_prompt, **options
        )
        stops = {*self.stop_token_ids(template, **options), *stop_ids}
        stops |= {special[text] for text in stop_texts if text in special}
        chosen = GenerationOptions(max_new_tokens, temperature, top_p, seed, frozenset(stops))
        compiled = self._compiled()
        if isinstance(model_path, LanguageModel):
            model = model_path
        else:
            loading: dict[str, Any] = {"n_gpu_layers": n_gpu_layers, "n_ctx": n_ctx, "device": device}
            loading |= {"api_key": api_key, "timeout": timeout}
            tokens, matched = compiled.model.core.vocab, compiled.matching_models
            model = load_matching_model(model_path, backend, tokens, matched, **loading)
        # Special tokens only: no file can make a word end every reply.
        stops |= model.stop_ids.intersection(compiled.special.values())
        generation = model.generate(prompt, replace(chosen, stop_ids=frozenset(stops)))
        reply = Reply(generation, StreamDecoder(self, skip_special_tokens=True), stop_texts)
        if stream:
            return reply
        with reply:
            text = "".join(reply)
        if verbose:
            from bpe_tokenizer.train.progress import say

            say(f"{model}: {reply.summary()}")
        return text

    @overload
    async def chat_async(
        self,
        messages: Conversation,
        model_path: _Path | LanguageModel,
        template: ChatTemplateLike = None,
        system_prompt: str | None = None,
        *,
        stream: Literal[False] = False,
        **options: Unpack[ChatArguments],
    ) -> str: ...
    @overload
    async def chat_async(
        self,
        messages: Conversation,
        model_path: _Path | LanguageModel,
        template: ChatTemplateLike = None,
        system_prompt: str | None = None,
        *,
        stream: Literal[True],
        **options: Unpack[ChatArguments],
    ) -> Reply: ...
    async def chat_async(
        self, messages: Conversation, model_path: _Path | LanguageModel, *args: Any, **options: Any
    ) -> str | Reply:
        """Let a language model reply without blocking the event loop; see `chat`.

        Returns:
            The reply; with `stream` a `Reply` for `async for`.
        """
        import asyncio

        streams, verbose = options.pop("stream", False), options.pop("verbose", False)
        reply = cast(
            "Reply",
            await asyncio.to_thread(self.chat, messages, model_path, *args, **{**options, "stream": True}),
        )
        if streams:
            return reply
        try:
            async for _ in reply:
                pass
        finally:
            await reply.aclose()
        if verbose:
            from bpe_tokenizer.train.progress import say

            say(f"{model_path}: {reply.summary()}")
        return reply.text

    # Pictures, caches, copies

    def visualize(
        self, text: str, add_special_tokens: bool = False, allowed_special: AllowedSpecial = "none"
    ) -> Visualization:
        """Return a text cut into its tokens, which notebooks and terminals display.

        Args:
            text: The text.

        Returns:
            The tokens with their ids, bytes and positions, and the merges that made them.

        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> shown = tokenizer.visualize("a low")
        >>> print(shown)
        a| |low
        >>> shown.tokens[2]
        Token(id=257, bytes=b'low', characters=(2, 5), text_bytes=(2, 5), is_added=False)
        """
        from bpe_tokenizer.view.visualization import visualize

        compiled = self._compiled()
        special = resolve_allowed_special(compiled, (), allowed_special)
        return visualize(compiled, text, special, compiled.added_ids(add_special_tokens))

    def get_cache_stats(self) -> dict[str, float]:
        """Return statistics of the piece cache.

        Returns:
            `hits` and `misses` since it was cleared, `size` in pieces, and `hit_rate_pct`, the percentage of
            look-ups that were hits, to one decimal place.

        >>> sorted(BPETokenizer().train("ab ab", vocab_size=257, verbose=False).get_cache_stats())
        ['hit_rate_pct', 'hits', 'misses', 'size']
        """
        counts = self._compiled().encoder.cache_statistics()
        hits, misses = counts["hits"], counts["misses"]
        rate = 100 * hits / (hits + misses) if hits + misses else 0.0
        return {"hits": hits, "misses": misses, "size": counts["size"], "hit_rate_pct": round(rate, 1)}

    def clear_cache(self) -> None:
        """Empty the piece cache and its statistics, and free the memory that is kept for arrays of ids.

        Ids never depend on either.
        """
        self._compiled().encoder.clear_cache()

    def limit_cache(self, max_bytes: int) -> None:
        """Empty the piece cache and limit its size; ids never depend on it. Frees what `clear_cache` frees.

        Args:
            max_bytes: Bytes for one thread, and three eighths of that for each further concurrent thread;
                33,554,432 by default. 0, or less than the smallest cache (about 190,000), turns the cache
                off.

        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.limit_cache(0)
        >>> tokenizer.encode("ab ab"), tokenizer.get_cache_stats()["size"]
        ([256, 32, 256], 0)
        """
        self._compiled().encoder.limit_cache(min(check_integer("max_bytes", max_bytes, 0), sys.maxsize))

    def __repr__(self) -> str:
        """Show the sizes."""
        name = type(self).__name__
        compiled = self._compiled_or_none()
        if compiled is None:
            pattern = shorten(self.split_pattern, 200)
            return f"{name}(untrained, split_pattern={pattern}, normalization={self.normalization!r})"
        n_vocab = f"n_vocab={self.n_vocab:,}, " if self.n_vocab != self.vocab_size else ""
        return (
            f"{name}(vocab_size={self.vocab_size:,}, {n_vocab}merges={len(self.merges):,}, "
            f"special_tokens={len(compiled.special):,})"
        )

    def _repr_html_(self) -> str:
        from bpe_tokenizer.view.tokenizer_card import tokenizer_html

        return tokenizer_html(self)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the settings, or the parts of the model as bytes; unpickling compiles it.

        Equal tokenizers have equal bytes. `datasets`, which pickles in Python to find results in its cache,
        hashes bytes a hundred times faster than the parts.
        """
        state = self._state
        attributes = getattr(self, "__dict__", None)  # of a class derived from this one
        if not isinstance(state, CompiledModel):
            return type(self), tuple(state), attributes
        model = state.model
        parts = (model.core, dict(model.named_tokens), model.post_processor, dict(model.config))
        return _from_parts, (type(self), _pickled(parts)), attributes

    def __copy__(self) -> Self:
        """Return a tokenizer that shares the state, which is immutable."""
        copied = type(self).__new__(type(self))
        copied._state = self._state
        if hasattr(self, "__dict__"):  # of a class derived from this one
            copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """As `__copy__`."""
        return self.__copy__()


def _from_parts(kind: type[BPETokenizer], parts: bytes) -> BPETokenizer:
    """Unpickle a tokenizer from the parts of its model."""
    import pickle

    return kind.from_model(Model(*pickle.loads(parts)))


def _pickled(parts: tuple[object, ...]) -> bytes:
    """Pickle without a memo: equal strings are written alike, whether or not they are one object."""
    import pickle

    written = io.BytesIO()
    pickler = pickle.Pickler(written, protocol=5)
    pickler.fast = True
    pickler.dump(parts)
    return written.getvalue()


def load(
    path: _Path,
    format: str | None = None,  # noqa: A002
    *,
    split_pattern: str | Sequence[str] | None = None,
    special_tokens: SpecialTokens | None = None,
    merges: _Path | None = None,
    download: bool = False,
) -> BPETokenizer:
    """Load a tokenizer from a file, a directory, or by its published name.

    The arguments and errors are those of `BPETokenizer.load`.
    """
    return BPETokenizer.load(
        path,
        format,
        split_pattern=split_pattern,
        special_tokens=special_tokens,
        merges=merges,
        download=download,
    )


@takes(LearningOptions, MemoryLimits)
def train_from_counts(
    counts: Counts | Iterable[Counts],
    vocab_size: int = 32000,
    min_frequency: int = 2,
    special_tokens: SpecialTokens | None = None,
    verbose: bool = True,
    **options: Unpack[CountsTrainingArguments],
) -> BPETokenizer:
    """Return a tokenizer trained from piece counts, with the split patterns that made the counts.

    The arguments and errors are those of `BPETokenizer.train_from_counts`.

    >>> from bpe_tokenizer import count
    >>> tokenizer = train_from_counts(count("low low lower", "gpt2"), vocab_size=258, verbose=False)
    >>> tokenizer.split_pattern == BPETokenizer("gpt2").split_pattern, tokenizer.vocab[257]
    (True, b'low')
    """
    from bpe_tokenizer.train.piece_counts import merged_counts

    merged = merged_counts(counts, pick(MemoryLimits, options))
    tokenizer = BPETokenizer(merged.split_patterns, cast("Normalization | None", merged.normalization))
    return tokenizer.train_from_counts(
        merged, vocab_size, min_frequency, special_tokens, verbose, **vars(pick(LearningOptions, options))
    )
