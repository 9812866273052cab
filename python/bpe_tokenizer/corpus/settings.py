"""What the contents of the shards depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bpe_tokenizer.arguments import check_flag, check_integer
from bpe_tokenizer.corpus.checksums import digest
from bpe_tokenizer.corpus.contents import Content, ValueOptions, check_content, template_digest
from bpe_tokenizer.corpus.index import indexed_format
from bpe_tokenizer.corpus.mixture import Source
from bpe_tokenizer.corpus.options import ShardArguments, ShardOptions
from bpe_tokenizer.corpus.packed_shards import check_pack, check_pack_strategy, packed_format
from bpe_tokenizer.corpus.packing import PackStrategy
from bpe_tokenizer.corpus.shards import FORMATS, ShardFormat, ShardFormatName, TokenType, choose_token_type
from bpe_tokenizer.corpus.streaming import INDEX, INDEXED_FORMATS
from bpe_tokenizer.corpus.validation import check_fraction, split_format
from bpe_tokenizer.encoding import resolve_allowed_special
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, SpecialTokenError, shorten
from bpe_tokenizer.options import ReadOptions, pick, takes
from bpe_tokenizer.special_tokens import document_end, special_token_names
from bpe_tokenizer.tokenizer import BPETokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["CorpusSettings"]


@dataclass(frozen=True)
class CorpusSettings:
    """The settings of a run, checked. They can be pickled.

    Args:
        read: How the documents are read.
        format: The format of the shards.
        dtype: The type of an id.
        shard_tokens: Maximum number of ids in a shard with several documents.
        eos_id: The id after each document; None for none.
        allowed_special: The special tokens to recognise in documents.
        tokenizer: The SHA-256 of the tokenizer.
        shuffle: The seed of the order of the documents; None for their own order.
        val_fraction: The part of the documents that is for validation; None for no division.
        pack: The number of ids of a packed sequence; None for no packing.
        pack_strategy: How documents are packed.
        pad_id: Fills packed sequences that are shorter.
        bos_id: The id before each document; None for none.
        min_document_tokens: A document with fewer ids is skipped.
        max_document_tokens: A document with more ids is skipped.
        sample: The part of the documents that is taken; None for all.
        limit: The number of documents that are taken; None for all.
        max_tokens: The number of ids that are taken; None for all.
        index: Whether each shard has an index of its documents.
        content: What a row holds.
        chat_template: The template of conversations; None for the tokenizer's own.
        template: Its SHA-256; None without conversations.
        sources: The corpora of a mixture, in order; empty for another run.

    >>> tokenizer = BPETokenizer().train("low lower", 258, special_tokens=["<|eos|>"], verbose=False)
    >>> settings = CorpusSettings.of(tokenizer, format="llm.c")
    >>> settings.dtype, settings.shard_tokens, settings.eos_id
    ('uint16', 100000000, 256)
    """

    read: ReadOptions
    format: ShardFormatName
    dtype: TokenType
    shard_tokens: int
    eos_id: int | None
    allowed_special: str | tuple[str, ...]
    tokenizer: str
    shuffle: int | None = None
    val_fraction: float | None = None
    pack: int | None = None
    pack_strategy: PackStrategy = "concat"
    pad_id: int = 0
    bos_id: int | None = None
    min_document_tokens: int | None = None
    max_document_tokens: int | None = None
    sample: float | None = None
    limit: int | None = None
    max_tokens: int | None = None
    index: bool = False
    content: Content = "text"
    chat_template: str | None = None
    template: str | None = None
    sources: tuple[Source, ...] = ()

    @classmethod
    @takes(ShardOptions)
    def of(
        cls,
        tokenizer: BPETokenizer,
        read: ReadOptions | None = None,
        format: ShardFormatName = "nanogpt",  # noqa: A002 (the usual name)
        **options: Unpack[ShardArguments],
    ) -> CorpusSettings:
        """Check options and return the settings. Errors: `tokenize_corpus`.

        Args:
            tokenizer: The tokenizer.
            read: How documents are found in files.
            format: The format of the shards.
        """
        chosen = pick(ShardOptions, options)
        shuffle, val_fraction, pack = chosen.shuffle, chosen.val_fraction, chosen.pack
        if not isinstance(tokenizer, BPETokenizer):
            raise ArgumentTypeError(f"tokenizer must be a BPETokenizer, not {type(tokenizer).__name__}")
        if format not in FORMATS:
            raise OptionError(f"format is {format!r}; it must be one of {', '.join(map(repr, FORMATS))}")
        allowed = chosen.allowed_special
        limit = FORMATS[format].max_tokens
        if chosen.shard_tokens is not None:
            limit = check_integer(
                "shard_tokens", chosen.shard_tokens, 1, f"the limit of {format}", maximum=limit
            )
        if shuffle is not None:
            shuffle = check_integer("shuffle", shuffle, 0, maximum=2**64 - 1)
        if val_fraction is not None:
            val_fraction = check_fraction("val_fraction", val_fraction)
            if format in INDEXED_FORMATS:
                raise OptionError(
                    f"{format} lists all shards of a directory in one {INDEX}, so val_fraction cannot divide "
                    "them; tokenize files for training and files for validation into two directories"
                )
        if pack is not None:
            pack = check_pack(format, pack, limit)
        check_pack_strategy(chosen.pack_strategy)
        if pack is None and chosen.pack_strategy != ShardOptions.pack_strategy:
            raise OptionError("pack_strategy has no meaning without pack; give both")
        if chosen.eos_token is not None and not chosen.append_eos:
            raise OptionError("give eos_token or append_eos=False, not both")
        given = {name: value for name, value in vars(chosen).items() if value != getattr(ShardOptions, name)}
        check_content(chosen.content, format, pack, given)
        read = ReadOptions() if read is None else read
        if chosen.content != "text":
            read = ValueOptions(**vars(read))
        is_chat = chosen.content == "messages"
        resolve_allowed_special(tokenizer._compiled(), (), allowed)
        # The template ends a conversation.
        has_end = chosen.append_eos and not is_chat
        eos_id = _eos_id(tokenizer, chosen.eos_token) if has_end else None
        return cls(
            read,
            format,
            choose_token_type(format, tokenizer.n_vocab - 1, chosen.dtype),
            limit,
            eos_id,
            allowed if isinstance(allowed, str) else tuple(sorted(allowed)),
            tokenizer_digest(tokenizer),
            shuffle,
            val_fraction,
            pack,
            chosen.pack_strategy,
            next((each for each in (tokenizer.pad_token_id, eos_id) if each is not None), 0),
            None if chosen.bos_token is None else _special_id(tokenizer, "bos_token", chosen.bos_token),
            *_document_limits(chosen),
            None if chosen.sample in (None, 1) else check_fraction("sample", chosen.sample),
            None if chosen.limit is None else check_integer("limit", chosen.limit, 1),
            None if chosen.max_tokens is None else check_integer("max_tokens", chosen.max_tokens, 1),
            _check_index(chosen),
            chosen.content,
            chosen.chat_template,
            template_digest(tokenizer, chosen.chat_template) if is_chat else None,
        )

    @property
    def shard_format(self) -> ShardFormat:
        """The format of the shards."""
        found = FORMATS[self.format]
        if self.pack is not None:
            has_loss = self.content == "messages"
            found = packed_format(self.format, self.pack, self.pack_strategy, self.pad_id, has_loss)
        if self.index:
            found = indexed_format(found)
        return found if self.val_fraction is None else split_format(found)

    def recognized(self, tokenizer: BPETokenizer) -> Collection[str]:
        """Return the special tokens that are recognised in documents."""
        allowed: Any = self.allowed_special
        return special_token_names("allowed_special", allowed, tokenizer.special_tokens)

    @property
    def dtype_in_memory(self) -> TokenType:
        """The type of an id before it is written, which may have `LOSS_BIT`."""
        return self.dtype if self.content != "messages" else "uint32"

    @property
    def has_meta(self) -> bool:
        """Whether nanoGPT's `meta.pkl` belongs to the shards."""
        return self.format == "nanogpt" and self.val_fraction is not None

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values, without `on_error`, which changes no shard."""
        read = self.read
        return {
            "format": self.format,
            "dtype": self.dtype,
            "shard_tokens": self.shard_tokens,
            "eos_id": self.eos_id,
            "allowed_special": self.allowed_special
            if isinstance(self.allowed_special, str)
            else list(self.allowed_special),
            "input_format": read.input_format,
            "documents": read.documents,
            "separator": read.separator,
            "field": read.field,
            "shuffle": self.shuffle,
            "val_fraction": self.val_fraction,
            "pack": self.pack,
            "pack_strategy": None if self.pack is None else self.pack_strategy,
            "pad_id": None if self.pack is None else self.pad_id,
            "tokenizer": self.tokenizer,
            "bos_id": self.bos_id,
            "min_document_tokens": self.min_document_tokens,
            "max_document_tokens": self.max_document_tokens,
            "sample": self.sample,
            "limit": self.limit,
            "max_tokens": self.max_tokens,
            "index": self.index,
            "content": self.content,
            "template": self.template,
            "sources": [list(source) for source in self.sources],
        }


def tokenizer_digest(tokenizer: BPETokenizer) -> str:
    """Return the SHA-256 of a tokenizer's model."""
    core = tokenizer.model.core
    return digest((hashlib.sha256(core.table_bytes()).hexdigest(), core.settings))


def _eos_id(tokenizer: BPETokenizer, eos_token: str | None) -> int | None:
    special = tokenizer.special_tokens
    if eos_token is None:
        eos_token = document_end(special, tokenizer.eos_token)
    if eos_token is None:
        raise OptionError(
            f"no special token of the tokenizer is plainly the end of a document (it has "
            f"{', '.join(shorten(token, 30) for token in list(special)[:3]) or 'none'}"
            f"{', ...' if len(special) > 3 else ''}): name one with eos_token='...', or let documents "
            "run together with append_eos=False (--no-eos)"
        )
    return _special_id(tokenizer, "eos_token", eos_token)


def _special_id(tokenizer: BPETokenizer, argument: str, token: str) -> int:
    special = tokenizer.special_tokens
    if token not in special:
        raise SpecialTokenError(
            f"{argument} is {token!r}, which is not a special token of the tokenizer; it has "
            f"{', '.join(map(repr, special)) or 'none'}"
        )
    return special[token]


def _document_limits(chosen: ShardOptions) -> tuple[int | None, int | None]:
    least, most = chosen.min_document_tokens, chosen.max_document_tokens
    if least is not None:
        least = check_integer("min_document_tokens", least, 0)
    if most is not None:
        most = check_integer("max_document_tokens", most, least or 1, "the least is min_document_tokens")
    return least, most


def _check_index(chosen: ShardOptions) -> bool:
    if check_flag("index", chosen.index) and chosen.pack is not None:
        raise OptionError(
            "packed sequences have no index of documents, which are cut there; write the index without pack"
        )
    return chosen.index
