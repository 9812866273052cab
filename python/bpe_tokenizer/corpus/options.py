"""The options of shards, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from bpe_tokenizer.corpus.contents import Content
from bpe_tokenizer.corpus.packing import PackStrategy
from bpe_tokenizer.corpus.shards import TokenType
from bpe_tokenizer.options import ReadArguments, option_field
from bpe_tokenizer.special_tokens import AllowedSpecial

__all__ = ["CorpusFileArguments", "ShardArguments", "ShardOptions", "UnitArguments", "UnitOptions"]


class UnitArguments(TypedDict, total=False):
    """The fields of `UnitOptions`."""

    append_eos: bool
    eos_token: str | None
    shard_tokens: int | None
    dtype: TokenType | None
    allowed_special: AllowedSpecial
    shuffle: int | None
    bos_token: str | None
    min_document_tokens: int | None
    max_document_tokens: int | None
    sample: float | None
    index: bool
    id_field: str | None
    val_fraction: float | None
    pack: int | None
    pack_strategy: PackStrategy


class _WholeArguments(TypedDict, total=False):
    content: Content
    chat_template: str | None
    limit: int | None
    max_tokens: int | None


class ShardArguments(UnitArguments, _WholeArguments, total=False):
    """The fields of `ShardOptions`."""


class CorpusFileArguments(UnitArguments, _WholeArguments, ReadArguments, total=False):
    """The fields of `ShardOptions` and of `ReadOptions`."""


@dataclass(frozen=True)
class UnitOptions:
    """What the documents become in the shards of every engine. `CorpusSettings.of` checks the values.

    Args:
        append_eos: Whether to add a token after each document.
        eos_token: Special token to add after each document; None for the EOS token, or a special token that
            is plainly the end of a document where EOS ends a turn.
        shard_tokens: Maximum number of ids in a shard; None for the maximum of the format. Documents are not
            split, so a longer document gets a larger shard.
        dtype: Type of an id; None for the smallest that holds all ids. `"megatron"`, `"mds"` and `"litdata"`
            have `"int32"` for `"uint32"`.
        allowed_special: The special tokens to recognise in documents: `"none"`, `"all"` or a set.
        shuffle: Seed, from 0, to write the documents in a random order: of all, or in parts and on engines of
            each unit. None keeps their order.
        bos_token: Special token to add before each document; None for none.
        min_document_tokens: Skip documents with fewer tokens, without those that are added; like bad rows
            they are counted, and listed in `skipped.jsonl`.
        max_document_tokens: Skip documents with more tokens.
        sample: Part of the documents to take, on average, such as 0.01; a hash of the text decides.
        index: Whether to write `start,end,id,src,loc` of each document to `.index.csv.gz` beside a shard.
        id_field: Field of JSON Lines or column of tables with the id of a document, for the index; a string
            or an integer, named as `field`. None leaves it empty.
        val_fraction: Part of the documents for validation, on average, such as 0.0005; a hash of the text
            decides. The shards are `tokens-00000.train.bin` and `tokens-00000.val.bin`. nanoGPT gets
            `train.bin`, `val.bin` and `meta.pkl` too, and llm.c gets `val.bin`. None divides nothing.
        pack: Number of ids of packed sequences, in `"npy"`, `"parquet"` and `"mds"`; see `PackedSequences`.
            None packs nothing.
        pack_strategy: Cut the concatenated documents every `pack` ids, or keep them whole where they fit; no
            id is lost.
    """

    append_eos: bool = True
    eos_token: str | None = option_field(None, "TOKEN", "the one that is plainly an end of documents")
    shard_tokens: int | None = 100_000_000
    dtype: TokenType | None = option_field(None, shown="the smallest that holds all ids")
    allowed_special: AllowedSpecial = "none"
    shuffle: int | None = option_field(None, "SEED")
    bos_token: str | None = option_field(None, "TOKEN")
    min_document_tokens: int | None = option_field(None, "N")
    max_document_tokens: int | None = option_field(None, "N")
    sample: float | None = option_field(None, "X")
    index: bool = option_field(False)
    id_field: str | None = option_field(None)
    val_fraction: float | None = option_field(None, "X")
    pack: int | None = option_field(None, "N")
    pack_strategy: PackStrategy = option_field("concat")


@dataclass(frozen=True)
class ShardOptions(UnitOptions):
    """What the documents become in shards. `CorpusSettings.of` checks the values.

    Args:
        content: What the field of a row holds, a text, a conversation, or ids; a conversation is a list of
            messages, which the chat template renders, with masks of what the assistant writes.
        chat_template: Name or Jinja source of the template of conversations; None for the tokenizer's own.
        limit: Take the first documents, at most this number, before they are shuffled.
        max_tokens: Take the first documents, with at most this number of ids, before they are shuffled.

    >>> ShardOptions(pack=2048).pack_strategy
    'concat'
    """

    content: Content = option_field("text")
    chat_template: str | None = option_field(None, shown="the tokenizer's")
    limit: int | None = option_field(None, "N")
    max_tokens: int | None = option_field(None, "N")
