"""Documents other than texts: conversations, with the tokens that count for the loss, and lists of ids."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from bpe_tokenizer.corpus.checksums import digest
from bpe_tokenizer.corpus.documents import Counts, Ids
from bpe_tokenizer.errors import ChatTemplateError, CorpusError, TokenizerError
from bpe_tokenizer.options import ReadOptions
from bpe_tokenizer.readers import BadRow, DocumentBatch
from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["LOSS_BIT", "Content", "CorpusFields", "ValueEncoder", "template_digest"]

Content: TypeAlias = Literal["text", "messages", "ids"]

# Until a shard is written, an id of a conversation has this bit if it counts for the loss.
LOSS_BIT = np.uint32(1 << 31)

_Encoded: TypeAlias = tuple[Ids, Counts, Counts, tuple[BadRow, ...]]


@dataclass(frozen=True)
class CorpusFields(ReadOptions):
    """Options of rows of which more is read than a text.

    Args:
        as_json: Whether the field may have any value, which is read as its JSON.
        id_field: The field of a document's own id; None to read none.
    """

    as_json: bool = False
    id_field: str | None = None


class ValueEncoder:
    """Encodes batches of documents that are JSON values.

    Args:
        tokenizer: The tokenizer.
        content: What a value is.
        chat_template: The template of conversations; None for the tokenizer's own.
        largest: The largest id that can be written.
        added: The ids before and after each document of ids.
        skips: Whether bad rows are skipped.
    """

    def __init__(
        self, tokenizer: BPETokenizer, content: Content, chat_template: str | None, largest: int,
        added: tuple[tuple[int, ...], tuple[int, ...]], skips: bool,
    ) -> None:  # fmt: skip
        self._tokenizer = tokenizer
        self._template = chat_template
        self._largest = min(largest, int(LOSS_BIT) - 1)
        self._added = added
        self._skips = skips
        self._encode_row: Callable[[Any], Ids] = self._conversation if content == "messages" else self._ids

    def encode(self, batch: DocumentBatch, name: str) -> _Encoded:
        """Return the ids, their offsets, the rows, and those that are bad, of a batch of a file.

        Raises:
            CorpusError: A row is bad, and bad rows are not skipped.
        """
        rows: list[int] = []
        found: list[Ids] = []
        bad = list(batch.bad)
        for text, row in zip(batch.texts(), batch.rows.tolist(), strict=True):
            try:
                ids = self._encode_row(_value_of(text))
            except (TokenizerError, ValueError, RecursionError) as error:
                problem = str(error)[:200]
                if not self._skips:
                    raise CorpusError(
                        f"{name[:100]}, row {row:,}: {problem}; to skip such rows, use on_error='skip' "
                        "(on the command line: --on-error skip)"
                    ) from None
                bad.append(BadRow(batch.input, row, problem))
                continue
            rows.append(row)
            found.append(ids)
        offsets = np.cumsum([0, *map(len, found)], dtype=np.int64)
        ids = np.concatenate([np.zeros(0, np.uint32), *found])
        return ids, offsets, np.array(rows, np.int64), tuple(sorted(bad))

    def _conversation(self, messages: Any) -> Ids:
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
            raise ValueError("the field holds no list of messages")
        # A column of a table has all fields in every message.
        given: Any = [
            {name: value for name, value in message.items() if value is not None or name == "content"}
            for message in messages
        ]
        found = self._tokenizer.apply_chat_template(
            given, self._template, add_generation_prompt=False, return_assistant_mask=True
        )
        counts = np.array(found[1], bool)
        if not counts.any():
            raise ValueError("no turn of the assistant, so nothing counts for the loss")
        ids = self._checked(found[0])
        ids[counts] |= LOSS_BIT
        return ids

    def _ids(self, values: Any) -> Ids:
        if not isinstance(values, list) or not all(type(each) is int for each in values):
            raise ValueError("the field holds no list of ids")
        before, after = self._added
        return self._checked([*before, *values, *after], self._tokenizer.n_vocab - 1)

    def _checked(self, ids: list[int], largest: int | None = None) -> Ids:
        largest = self._largest if largest is None else min(largest, self._largest)
        wrong = next((each for each in ids if not 0 <= each <= largest), None)
        if wrong is not None:
            raise ValueError(f"has the id {wrong}; the ids go up to {largest:,}")
        return np.array(ids, np.uint32)


def _value_of(text: str) -> Any:
    with suppress(json.JSONDecodeError):  # None is neither a conversation nor a list of ids
        return json.loads(text)


def template_digest(tokenizer: BPETokenizer, chat_template: str | None) -> str:
    """Return the SHA-256 of the template of conversations.

    Raises:
        OptionError: The tokenizer has no such template, or lacks its control tokens.
    """
    with suppress(ChatTemplateError):  # which may refuse this conversation and no other
        tokenizer.apply_chat_template([{"role": "user", "content": ""}], chat_template, False)
    return digest([chat_template, tokenizer.model.config.get("chat_template")])
