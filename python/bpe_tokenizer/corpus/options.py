"""The options of shards, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from bpe_tokenizer.corpus.contents import Content
from bpe_tokenizer.corpus.packing import PackStrategy
from bpe_tokenizer.corpus.shards import TokenType
from bpe_tokenizer.options import ReadArguments
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
        append_eos: Whether to add a token after each document: the tokenizer's EOS token, or else a special
            token that is plainly the end of a document, such as `"<|end|>"`.
        eos_token: Another special token to add instead.
        shard_tokens: Maximum number of ids in a shard; None for the maximum of the format. Documents are not
            split, so a longer document gets a larger shard.
        dtype: `"uint16"` or `"uint32"` (`"megatron"`: `"int32"`); None for the smallest that holds all ids.
        allowed_special: The special tokens to recognise in documents: `"none"`, `"all"` or a set.
        shuffle: A seed, from 0, to write the documents in a random order: of the whole corpus, or with `part`
            and on engines of each unit. None keeps their order.
        bos_token: A special token to add before each document; None for none.
        min_document_tokens: Documents with fewer tokens, without those that are added, are skipped as bad
            rows are: counted, and listed in `skipped.jsonl`.
        max_document_tokens: The same for documents with more tokens.
        sample: The part of the documents to take, on average, such as 0.01. A hash of the text decides.
        index: Whether to write `start,end,id,src,loc` of each document to `.index.csv.gz` beside a shard.
        id_field: The field of JSON Lines or the column of tables that holds the `id` of a document, a string
            or an integer; named as `field`. None leaves it empty.
        val_fraction: The part of the documents that is for validation, on average, such as 0.0005. A hash of
            the text decides. The shards are `tokens-00000.train.bin` and `tokens-00000.val.bin`. nanoGPT
            gets `train.bin`, `val.bin` and `meta.pkl` too, and llm.c gets `val.bin`. None divides nothing.
        pack: The number of ids of a packed sequence, for `"npy"`, `"parquet"` and `"mds"`: see
            `PackedSequences`. None packs nothing.
        pack_strategy: `"concat"` concatenates the documents and cuts every `pack` ids; `"best-fit"` keeps
            documents whole where they fit.
    """

    append_eos: bool = True
    eos_token: str | None = None
    shard_tokens: int | None = 100_000_000
    dtype: TokenType | None = None
    allowed_special: AllowedSpecial = "none"
    shuffle: int | None = None
    bos_token: str | None = None
    min_document_tokens: int | None = None
    max_document_tokens: int | None = None
    sample: float | None = None
    index: bool = False
    id_field: str | None = None
    val_fraction: float | None = None
    pack: int | None = None
    pack_strategy: PackStrategy = "concat"


@dataclass(frozen=True)
class ShardOptions(UnitOptions):
    """What the documents become in shards. `CorpusSettings.of` checks the values.

    Args:
        content: What the field of a row holds: `"text"`; `"messages"`, a conversation, which the chat
            template renders, with masks of what the assistant writes; or `"ids"`, a list of integers.
        chat_template: The name or the source of the template; None for the tokenizer's own.
        limit: Take only the first documents, at most this number, before they are shuffled.
        max_tokens: Take only the first documents, with at most this number of ids, before they are shuffled.

    >>> ShardOptions(pack=2048).pack_strategy
    'concat'
    """

    content: Content = "text"
    chat_template: str | None = None
    limit: int | None = None
    max_tokens: int | None = None
