"""The fields of a `BatchEncoding`: rows of ids, truncated and padded as transformers does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.compat.transformers.mirror import CoreTokenizer
from bpe_tokenizer.errors import MismatchError
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.results import cut_rows, fill_matrix

__all__ = ["BatchOptions", "batch_fields", "changed_error", "lazy_batch", "rows_with_spans", "tensor_fields"]

_Fields = dict[str, Any]


@dataclass(frozen=True)
class BatchOptions:
    """What to make of the ids of texts.

    Args:
        prefix: Ids before each text.
        suffix: Ids after each text.
        limit: Largest number of ids of a text, without prefix and suffix; None for no limit.
        truncates_left: Drop the first ids of a text that is too long, not the last.
        pads: Pad to one length.
        width: The length to pad to; None for that of the longest row.
        multiple: The length is a multiple of this; 0 for any.
        pads_left: Pad at the beginning of rows.
        pad_id: The id of padding.
        pad_type_id: The type id of padding.
    """

    prefix: list[int]
    suffix: list[int]
    limit: int | None = None
    truncates_left: bool = False
    pads: bool = False
    width: int | None = None
    multiple: int = 0
    pads_left: bool = False
    pad_id: int = 0
    pad_type_id: int = 0

    def padded_width(self, longest: int) -> int:
        """Return the length that rows are padded to; 0 for no padding."""
        if not self.pads:
            return 0
        width = longest if self.width is None else self.width
        return width + -width % self.multiple if self.multiple else width

    def around(self, row: list[Any], filler: Any = None) -> list[Any]:
        """Truncate a row, and put the prefix and the suffix around it, or `filler` for each of their ids."""
        if self.limit is not None and len(row) > self.limit:
            row = row[len(row) - self.limit :] if self.truncates_left else row[: self.limit]
        if not self.prefix and not self.suffix:
            return row
        if filler is None:
            return self.prefix + row + self.suffix
        return [filler] * len(self.prefix) + row + [filler] * len(self.suffix)

    def pad(self, rows: list[list[Any]], filler: Any) -> list[list[Any]]:
        """Pad rows with `filler`."""
        width = self.padded_width(max(map(len, rows)))
        if not width:
            return rows
        if self.pads_left:
            return [[filler] * (width - len(row)) + row for row in rows]
        return [row + [filler] * (width - len(row)) for row in rows]


def batch_fields(
    bodies: Sequence[list[int]],
    spans: Sequence[list[tuple[int, int]]] | None,
    names: Mapping[str, bool],
    options: BatchOptions,
) -> _Fields:
    """Return the fields of a batch as lists, in the order of transformers.

    Args:
        bodies: The ids of each text.
        spans: The characters of each id, for `offset_mapping`.
        names: Which fields are wanted beside `input_ids`.
        options: How to shape them.
    """
    rows = [options.around(body) for body in bodies]
    fields = {"input_ids": options.pad(rows, options.pad_id)}
    if names["token_type_ids"]:
        fields["token_type_ids"] = options.pad([[0] * len(row) for row in rows], options.pad_type_id)
    if names["attention_mask"]:
        fields["attention_mask"] = options.pad([[1] * len(row) for row in rows], 0)
    if names["special_tokens_mask"]:
        fields["special_tokens_mask"] = options.pad([options.around([0] * len(row), 1) for row in bodies], 1)
    if spans is not None:
        fields["offset_mapping"] = options.pad([options.around(row, (0, 0)) for row in spans], (0, 0))
    if names["length"]:
        fields["length"] = [len(row) for row in fields["input_ids"]]  # type: ignore[misc]
    return fields


def rows_with_spans(
    core: CoreTokenizer, texts: Sequence[str], threads: int
) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
    """Return the ids of texts and the characters that each id covers.

    Args:
        core: Encodes the texts; `has_same_offsets`.
        texts: The texts.
        threads: Number of threads.
    """
    ids, offsets = core.encoder.encode_ragged(texts, True, threads)
    data = "".join(texts).encode("utf-8", "surrogatepass")
    lengths = core.token_lengths[ids]
    ends = np.cumsum(lengths)
    text_ends = np.cumsum([len(text.encode("utf-8", "surrogatepass")) for text in texts])
    ends_of_rows = np.concatenate(([0], ends))[offsets[1:]]
    if not lengths.all() or not np.array_equal(ends_of_rows, text_ends):
        # The core joins the two halves of a pair of surrogates.
        encoded = [core.encoder.encode_with_offsets(text, True, "char", False) for text in texts]
        return [row for row, _ in encoded], [spans for _, spans in encoded]
    # The number of the character of each byte; continuation bytes belong to the character before.
    characters = np.cumsum((np.frombuffer(data, dtype=np.uint8) & 0xC0) != 0x80) - 1
    text_begins = np.cumsum([0, *map(len, texts[:-1])])
    before = np.repeat(text_begins, np.diff(offsets))
    begins = characters[ends - lengths] - before if len(ids) else ends
    finishes = characters[ends - 1] + 1 - before if len(ids) else ends
    spans = _pairs(begins, finishes)
    flat, places = ids.tolist(), offsets.tolist()
    cuts = list(pairwise(places))
    return [flat[start:end] for start, end in cuts], [spans[start:end] for start, end in cuts]


def _pairs(firsts: npt.NDArray[np.int64], seconds: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the pairs of two rows of numbers from 0, the second not below the first.

    Pairs of small numbers are made once: a tuple costs more than the rest of an encoding.
    """
    differences = seconds - firsts
    width = int(differences.max(initial=0)) + 1
    size = (int(firsts.max(initial=0)) + 1) * width
    if size > len(firsts):
        return list(zip(firsts.tolist(), seconds.tolist(), strict=True))
    keys = firsts * width + differences
    is_used = np.zeros(size, bool)
    is_used[keys] = True
    used = np.flatnonzero(is_used)
    begins, lengths = np.divmod(used, width)
    table = np.empty(size, object)
    table[used] = np.fromiter(
        zip(begins.tolist(), (begins + lengths).tolist(), strict=True), object, len(used)
    )
    pairs: list[tuple[int, int]] = table[keys].tolist()
    return pairs


def tensor_fields(
    core: CoreTokenizer, texts: Sequence[str], names: Mapping[str, bool], options: BatchOptions, threads: int
) -> dict[str, npt.NDArray[np.int64]] | None:
    """Return the fields of a batch as matrices; None if the rows are empty or have different lengths.

    Args:
        core: Encodes the texts.
        texts: The texts.
        names: As in `batch_fields`; neither `special_tokens_mask` nor `length`.
        options: As in `batch_fields`.
        threads: Number of threads.
    """
    ids, offsets = core.encoder.encode_ragged(texts, True, threads)
    ids, lengths = cut_rows(ids, offsets, options.limit, "left" if options.truncates_left else "right")
    totals = lengths + len(options.prefix) + len(options.suffix)
    longest = int(totals.max())
    padded = options.padded_width(longest)
    # transformers makes other arrays of empty rows and of rows of different lengths.
    if not longest or (padded < longest and totals.min() != longest):
        return None
    input_ids, mask = fill_matrix(
        ids,
        lengths,
        options.prefix,
        options.suffix,
        max(padded, longest),
        options.pad_id,
        "left" if options.pads_left else "right",
    )
    fields = {"input_ids": input_ids}
    if names["token_type_ids"]:
        fields["token_type_ids"] = np.where(mask, 0, options.pad_type_id)
    if names["attention_mask"]:
        fields["attention_mask"] = mask.astype(np.int64)
    return fields


@cache
def _lazy_batch_class() -> Any:
    """The subclass of transformers' `BatchEncoding` whose `encodings` are made when they are asked for."""
    base: Any = import_library("transformers", "transformers").BatchEncoding

    class BatchEncoding(base):  # type: ignore[misc]
        """transformers' `BatchEncoding`; the encodings of `tokenizers` are made at their first use."""

        @property
        def _encodings(self) -> Any:
            make = self.__dict__.pop("_make", None)
            if make is not None:
                self.__dict__["_made"] = make()
            return self.__dict__.get("_made")

        @_encodings.setter
        def _encodings(self, encodings: Any) -> None:
            self.__dict__.pop("_make", None)
            self.__dict__["_made"] = encodings

        @property
        def is_fast(self) -> bool:
            return "_make" in self.__dict__ or self._encodings is not None

        def __reduce__(self) -> tuple[object, ...]:
            return _unpickled_batch, (self.data, self._encodings)

    return BatchEncoding


def _unpickled_batch(data: _Fields, encodings: Any) -> Any:
    return import_library("transformers", "transformers").BatchEncoding(data, encodings)


def lazy_batch(fields: Mapping[str, Any], make: Callable[[], Any], tensor_type: Any = None) -> Any:
    """Return a `BatchEncoding` whose encodings `make` returns when they are asked for."""
    batch = _lazy_batch_class()(fields, None, tensor_type, n_sequences=1)
    batch.__dict__["_make"] = make
    return batch


def changed_error() -> MismatchError:
    """The error of a batch whose encodings are asked for after its tokenizer was changed."""
    return MismatchError(
        "the tokenizer was changed after it encoded this batch: encode the texts again to get their encodings"
    )
