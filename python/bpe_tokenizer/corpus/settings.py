"""What the contents of the shards depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from bpe_tokenizer.arguments import check_choice, check_flag, check_integer
from bpe_tokenizer.corpus.checksums import digest
from bpe_tokenizer.corpus.contents import Content, CorpusFields, template_digest
from bpe_tokenizer.corpus.mixture import Source
from bpe_tokenizer.corpus.options import ShardArguments, ShardOptions
from bpe_tokenizer.corpus.packed_shards import packed_format
from bpe_tokenizer.corpus.packing import PackStrategy
from bpe_tokenizer.corpus.shards import FORMATS, ShardFormatName, TokenType, choose_token_type
from bpe_tokenizer.corpus.sides import INDEX_SUFFIX, MASK_SUFFIX, ShardLayout
from bpe_tokenizer.corpus.streaming import INDEX, INDEXED_FORMATS
from bpe_tokenizer.corpus.validation import check_fraction
from bpe_tokenizer.encoding import resolve_allowed_special
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, SpecialTokenError, shorten
from bpe_tokenizer.options import ReadOptions, pick, takes
from bpe_tokenizer.special_tokens import document_end, special_token_names
from bpe_tokenizer.tokenizer import BPETokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["CorpusSettings"]

# The options of reading that the shards depend on: not `on_error`.
_READ = ("input_format", "documents", "separator", "field", "id_field")
# A template begins and ends a conversation itself, and takes texts as contents, never as markup.
_MEANINGLESS: dict[Content, set[str]] = {
    "text": {"chat_template"},
    "messages": {"bos_token", "eos_token", "allowed_special"},
    "ids": {"chat_template", "allowed_special"},
}


@dataclass(frozen=True)
class CorpusSettings:
    """The settings of a run, checked. They can be pickled.

    Those that `ShardOptions` has too are described there; None is none. Their order is that in `plan.json`.

    Args:
        format: The format of the shards.
        dtype: The type of an id.
        shard_tokens: Maximum number of ids in a shard with several documents.
        eos_id: The id after each document.
        allowed_special: The special tokens to recognise in documents.
        read: How the documents are read.
        shuffle: The seed.
        val_fraction: The part for validation.
        pack: The number of ids of a sequence.
        pack_strategy: How documents are packed.
        pad_id: Fills packed sequences that are shorter.
        tokenizer: The SHA-256 of the tokenizer.
        bos_id: The id before each document.
        min_document_tokens: A document with fewer ids is skipped.
        max_document_tokens: A document with more ids is skipped.
        sample: The part that is taken.
        limit: The number of documents that are taken.
        max_tokens: The number of ids that are taken.
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

    format: ShardFormatName
    dtype: TokenType
    shard_tokens: int
    eos_id: int | None
    allowed_special: str | tuple[str, ...]
    read: ReadOptions
    shuffle: int | None
    val_fraction: float | None
    pack: int | None
    pack_strategy: PackStrategy
    pad_id: int
    tokenizer: str
    bos_id: int | None
    min_document_tokens: int | None
    max_document_tokens: int | None
    sample: float | None
    limit: int | None
    max_tokens: int | None
    index: bool
    content: Content
    chat_template: str | None
    template: str | None
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
        if not isinstance(tokenizer, BPETokenizer):
            raise ArgumentTypeError(f"tokenizer must be a BPETokenizer, not {type(tokenizer).__name__}")
        if format not in FORMATS:
            raise OptionError(f"format is {format!r}; it must be one of {', '.join(map(repr, FORMATS))}")
        chosen = pick(ShardOptions, options)
        values: dict[str, Any] = {**vars(chosen), **_checked(chosen, format)}
        if problem := _problem(format, values):
            raise OptionError(problem)
        allowed, is_chat = chosen.allowed_special, chosen.content == "messages"
        resolve_allowed_special(tokenizer._compiled(), (), allowed)
        read = ReadOptions() if read is None else read
        # The template ends a conversation.
        has_end = chosen.append_eos and not is_chat
        eos_id = _eos_id(tokenizer, chosen.eos_token) if has_end else None
        bos_token = chosen.bos_token
        values |= {
            "format": format,
            "dtype": choose_token_type(format, tokenizer.n_vocab - 1, chosen.dtype),
            "eos_id": eos_id,
            "allowed_special": allowed if isinstance(allowed, str) else tuple(sorted(allowed)),
            "read": CorpusFields(**vars(read), as_json=chosen.content != "text", id_field=chosen.id_field),
            "pad_id": next((each for each in (tokenizer.pad_token_id, eos_id) if each is not None), 0),
            "tokenizer": tokenizer_digest(tokenizer),
            "bos_id": None if bos_token is None else _special_id(tokenizer, "bos_token", bos_token),
            "template": template_digest(tokenizer, chosen.chat_template) if is_chat else None,
            "sources": (),
        }
        return cls(**{each.name: values[each.name] for each in fields(cls)})

    @property
    def shard_format(self) -> ShardLayout:
        """The files of a shard."""
        found, has_loss = FORMATS[self.format], self.content == "messages"
        index = INDEX_SUFFIX if self.index else ""
        mask = MASK_SUFFIX if has_loss and self.pack is None else ""
        if self.pack is not None:
            found = packed_format(self.format, self.pack, self.pack_strategy, self.pad_id, has_loss)
        elif self.index and self.format == "olmo":
            # The index is in the place of OLMo's own, whose columns it begins with.
            found, index = FORMATS["nanogpt"]._replace(suffixes=(".npy",)), ".csv.gz"
        return ShardLayout(found, index, mask, ("",) if self.val_fraction is None else (".train", ".val"))

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
        found: dict[str, Any] = {}
        for name, value in vars(self).items():
            if name == "read":
                found |= {each: getattr(value, each) for each in _READ}
            elif name != "chat_template":  # `template` is its hash
                found[name] = value
        return found if self.pack is not None else {**found, "pack_strategy": None, "pad_id": None}


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
            f"{shorten(list(special), 100)}): name one with eos_token='...', or let documents run together "
            "with append_eos=False (--no-eos)"
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


def _checked(chosen: ShardOptions, name: ShardFormatName) -> dict[str, Any]:
    """Return the options of numbers and flags that are given, each checked for itself."""
    most, least = FORMATS[name].max_tokens, chosen.min_document_tokens or 1
    count = partial(check_integer, minimum=1)
    checks: dict[str, Callable[[str, Any], Any]] = {
        "shard_tokens": partial(count, reason=f"the limit of {name}", maximum=most),
        "shuffle": partial(check_integer, minimum=0, maximum=2**64 - 1),
        "val_fraction": check_fraction,
        "pack": partial(check_integer, minimum=2, maximum=2**31 - 1),
        "min_document_tokens": partial(check_integer, minimum=0),
        "max_document_tokens": partial(count, minimum=least, reason="the least is min_document_tokens"),
        "sample": lambda name, value: None if value == 1 else check_fraction(name, value),
        "limit": count,
        "max_tokens": count,
        "index": check_flag,
    }
    given = {name: getattr(chosen, name) for name in checks}
    found = {name: checks[name](name, value) for name, value in given.items() if value is not None}
    check_choice("pack_strategy", chosen.pack_strategy, get_args(PackStrategy))
    check_choice("content", chosen.content, get_args(Content))
    return {"shard_tokens": most, **found}


def _problem(name: ShardFormatName, values: Mapping[str, Any]) -> str:
    """Return why options have no meaning together, or in a format; "" if they have one."""
    pack, shard_tokens, content = values["pack"], values["shard_tokens"], values["content"]
    given = {name for name, value in values.items() if value != getattr(ShardOptions, name)}
    if {"eos_token", "append_eos"} <= given:
        return "give eos_token or append_eos=False, not both"
    if unused := _MEANINGLESS[content] & given:
        return f"{min(unused)} has no meaning with content={content!r}; leave it out"
    if name in INDEXED_FORMATS and "val_fraction" in given:
        return (
            f"{name} lists all shards of a directory in one {INDEX}, so val_fraction cannot divide them; "
            "tokenize files for training and files for validation into two directories"
        )
    if pack is None and "pack_strategy" in given:
        return "pack_strategy has no meaning without pack=N; give both"
    if "id_field" in given and not values["index"]:
        return "id_field has no meaning without index=True; give both"
    if pack is None and content == "messages" and name != "olmo":
        return (
            "conversations have tokens that do not count for the loss, which only 'olmo' and packed 'npy', "
            "'parquet' and 'mds' can tell; give one of these formats (--format npy --pack N)"
        )
    if pack is None:
        return ""
    if name not in ("npy", "parquet", "mds"):
        return (
            f"{name} has no packed sequences: its readers cut a stream of ids; use 'npy', 'parquet' or 'mds'"
        )
    if shard_tokens < pack:
        return f"pack is {pack:,} and shard_tokens is {shard_tokens:,}; a shard holds at least one sequence"
    if "index" in given:
        return "packed sequences have no index of documents, which are cut; leave out pack=N or index=True"
    return ""
