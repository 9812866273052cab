"""Rows of a batch beyond plain ids: offsets, pairs of texts, texts given as words, and overflowing rows.

The results are those of Hugging Face `tokenizers` for the same options:
https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/utils/truncation.rs
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import cast

from bpe_tokenizer.arguments import check_integer, check_texts, items_in_turn, thread_count
from bpe_tokenizer.compiled import CompiledModel, PairIds
from bpe_tokenizer.encoding import resolve_allowed_special
from bpe_tokenizer.errors import ArgumentTypeError, OptionError
from bpe_tokenizer.offsets import Blank, OffsetTrimmer
from bpe_tokenizer.options import RowOptions
from bpe_tokenizer.results import BatchOptions, EncodingResult, Offsets, TokenStrings, Truncation
from bpe_tokenizer.special_tokens import AllowedSpecial

__all__ = ["EncodedText", "RowEncoder", "is_one_text", "to_rows"]


@dataclass(frozen=True)
class EncodedText:
    """The ids of one text, without added ones.

    Args:
        ids: The ids.
        offsets: The span of the text that each id covers, if it was asked for; of words, the span of its
            word.
        word_ids: The word of each id, of a text that was given as words.
        blanks: The white space around each token, if the offsets of rows are without it.
    """

    ids: list[int]
    offsets: Offsets | None = None
    word_ids: list[int] | None = None
    blanks: list[Blank | None] | None = None

    def part(self, kept: slice) -> EncodedText:
        """Return a part of the ids."""
        return EncodedText(
            self.ids[kept],
            self.offsets and self.offsets[kept],
            self.word_ids and self.word_ids[kept],
            self.blanks and self.blanks[kept],
        )


@dataclass(frozen=True)
class RowEncoder:
    """Encodes the texts of a batch, or the second texts of its pairs.

    Args:
        compiled: The model.
        allowed_special: The special tokens to recognise.
        row: What the rows are; offsets take one thread.
    """

    compiled: CompiledModel
    allowed_special: AllowedSpecial
    row: RowOptions

    def encode(self, name: str, texts: Iterable[object]) -> list[EncodedText]:
        """Return the encoded texts.

        Args:
            name: The method or the argument, for messages.
            texts: The texts.

        Raises:
            ArgumentTypeError: A text is not a `str`, or not a list of `str`.
            SpecialTokenError: A text contains a disallowed token.
        """
        if not self.row.is_split_into_words:
            return self._encode(check_texts(name, cast("Iterable[str]", texts)))
        rows = _check_words(name, texts)
        words = self._encode([word for row in rows for word in row])
        ends = [0, *accumulate(map(len, rows))]
        return [self._joined(words[start:end]) for start, end in pairwise(ends)]

    def _encode(self, texts: Sequence[str]) -> list[EncodedText]:
        encoder, row = self.compiled.encoder, self.row
        special = resolve_allowed_special(self.compiled, texts, self.allowed_special, row.disallowed_special)
        if row.return_offsets_mapping:
            encoded = [encoder.encode_with_offsets(text, special, "char", False) for text in texts]
            trimmer = self.compiled.offset_trimmer
            return [
                EncodedText(ids, spans, blanks=trimmer.blanks(text, ids, spans) if trimmer else None)
                for text, (ids, spans) in zip(texts, encoded, strict=True)
            ]
        return [EncodedText(ids) for ids in encoder.encode_batch(texts, special, thread_count(row.threads))]

    def _joined(self, words: Sequence[EncodedText]) -> EncodedText:
        spans = [span for word in words for span in word.offsets or ()]
        return EncodedText(
            [token_id for word in words for token_id in word.ids],
            spans if self.row.return_offsets_mapping else None,
            [number for number, word in enumerate(words) for _ in word.ids],
            [blank for word in words for blank in word.blanks or ()],
        )


def is_one_text(text: object, has_words: bool) -> bool:
    """Return whether an argument is one text: a `str`, or with `has_words` a list of `str`."""
    if not has_words or isinstance(text, str):
        return isinstance(text, str)
    return isinstance(text, list | tuple) and all(isinstance(word, str) for word in text)


def _check_words(name: str, texts: Iterable[object]) -> list[Sequence[str]]:
    if isinstance(texts, str | bytes):
        raise ArgumentTypeError(
            f"{name}: with is_split_into_words=True, a text is a list of words, not a str"
        )
    rows = []
    for number, text in enumerate(items_in_turn(texts)):
        if isinstance(text, str) or not isinstance(text, Iterable):
            raise ArgumentTypeError(
                f"{name}: with is_split_into_words=True, each text is a list of words, but item {number} is "
                f"{type(text).__name__}"
            )
        rows.append(check_texts(name, text))
    return rows


def to_rows(
    firsts: Sequence[EncodedText],
    seconds: Sequence[EncodedText] | None,
    options: BatchOptions,
    pair_ids: PairIds | None,
    token_strings: TokenStrings,
    stride: int,
    with_overflow: bool,
    trimmer: OffsetTrimmer | None = None,
) -> list[EncodingResult]:
    """Shape encoded texts, or pairs of them, into results.

    Args:
        firsts: The texts, or the first text of each pair.
        seconds: The second text of each pair; None for no pairs.
        options: How to shape them; its `prefix` and `suffix` are for rows without a second text.
        pair_ids: The ids around the texts of a pair.
        token_strings: Returns the token string of each id.
        stride: Number of ids that an overflowing row repeats from the previous one.
        with_overflow: Whether to return the rest of truncated texts as `overflowing` rows.
        trimmer: Trims the offsets of rows.

    Raises:
        OptionError: `max_length` has no room for the added ids, or for one id beyond `stride`.
    """
    check_integer("stride", stride, 0)
    if seconds is not None and len(seconds) != len(firsts):
        raise OptionError(f"text_pair has {len(seconds)} texts for {len(firsts)}; each text needs one")
    before, between, after = pair_ids or (options.prefix, (), options.suffix)
    limit = None
    if options.truncation and options.max_length is not None:
        limit = options.max_length - len(before) - len(between) - len(after)
        if limit < 0:
            raise OptionError(
                f"max_length={options.max_length} leaves no room for the ids that "
                "add_special_tokens=True adds"
            )
    added = (before, between, after)
    batch: list[list[_Row]] = []
    for number, first in enumerate(firsts):
        second = None if seconds is None else seconds[number]
        parts = _truncated(first, second, limit, options, stride if with_overflow else None)
        batch.append([_Row.of(*pair, added, trimmer) for pair in parts])
    width = options.width([len(row.ids) for rows in batch for row in rows])
    return [_result(rows, options, width, token_strings) for rows in batch]


@dataclass
class _Row:
    """The columns of a row, before padding."""

    ids: list[int]
    offsets: Offsets | None
    word_ids: list[int | None] | None
    sequence_ids: list[int | None] | None

    @classmethod
    def of(
        cls,
        first: EncodedText,
        second: EncodedText | None,
        added: PairIds,
        trimmer: OffsetTrimmer | None,
    ) -> _Row:
        before, between, after = (list(ids) for ids in added)
        if second is None:
            between = []
        other = second or EncodedText([], first.offsets and [], first.word_ids and [])
        ids = [*before, *first.ids, *between, *other.ids, *after]
        offsets = word_ids = sequence_ids = None
        if first.offsets is not None:
            empty = (0, 0)
            first_spans, other_spans = (
                trimmer.trim(text.offsets or (), text.blanks or ()) if trimmer else text.offsets or []
                for text in (first, other)
            )
            offsets = [empty] * len(before) + first_spans + [empty] * len(between)
            offsets += other_spans + [empty] * len(after)
        if first.word_ids is not None:
            word_ids = [None] * len(before) + first.word_ids + [None] * len(between)
            word_ids += (other.word_ids or []) + [None] * len(after)
        if second is not None:
            sequence_ids = [None] * len(before) + [0] * len(first.ids) + [None] * len(between)
            sequence_ids += [1] * len(second.ids) + [None] * len(after)
        return cls(ids, offsets, word_ids, sequence_ids)


def _result(
    rows: Sequence[_Row], options: BatchOptions, width: int, token_strings: TokenStrings
) -> EncodingResult:
    """The first row, with the others as overflowing ones."""
    results = [
        EncodingResult(
            options.filled(row.ids, width, options.fill_id),
            options.filled([1] * len(row.ids), width, 0),
            token_strings,
            offsets=None if row.offsets is None else options.filled(row.offsets, width, (0, 0)),
            word_ids=None if row.word_ids is None else options.filled(row.word_ids, width, None),
            sequence_ids=None if row.sequence_ids is None else options.filled(row.sequence_ids, width, None),
        )
        for row in rows
    ]
    results[0].overflowing = results[1:]
    return results[0]


def _truncated(
    first: EncodedText,
    second: EncodedText | None,
    limit: int | None,
    options: BatchOptions,
    stride: int | None,
) -> Iterator[tuple[EncodedText, EncodedText | None]]:
    """The parts of a text or a pair that fit: one, or with a stride all that overlap by it."""
    lengths = (len(first.ids), len(second.ids) if second is not None else 0)
    if limit is None or sum(lengths) <= limit:
        yield first, second
        return
    kept = _kept_lengths(lengths, limit, options.truncation, second is not None)
    if second is not None and stride is not None and kept[0] < lengths[0] and kept[1] < lengths[1]:
        raise OptionError(
            "return_overflowing_tokens cannot cut both texts of a pair: pass truncation='only_first' or "
            "'only_second'"
        )
    for start, end in _windows(lengths[0], kept[0], stride, options.truncation_side):
        part = first.part(slice(start, end))
        if second is None:
            yield part, None
            continue
        for begin, stop in _windows(lengths[1], kept[1], stride, options.truncation_side):
            yield part, second.part(slice(begin, stop))


def _kept_lengths(
    lengths: tuple[int, int], limit: int, truncation: Truncation, is_pair: bool
) -> tuple[int, int]:
    """How many ids of each text truncation keeps; together they are more than the limit."""
    if not is_pair:
        if truncation == "only_second":
            raise OptionError(
                "truncation='only_second' cuts text_pair, but there is none; pass truncation=True"
            )
        return limit, 0
    too_many = sum(lengths) - limit
    if truncation in ("only_first", "only_second"):
        index = 0 if truncation == "only_first" else 1
        if lengths[index] <= too_many:
            raise OptionError(
                f"truncation={truncation!r} cannot bring a pair of {lengths[0]} and {lengths[1]} ids to "
                f"{limit}: the other text alone is too long; pass truncation=True"
            )
        return (lengths[0] - too_many, lengths[1]) if index == 0 else (lengths[0], lengths[1] - too_many)
    shorter, longer = sorted(lengths)
    longer = longer if shorter > limit else max(shorter, limit - shorter)
    if shorter + longer > limit:
        shorter, longer = limit // 2, limit - limit // 2
    return (shorter, longer) if lengths[0] <= lengths[1] else (longer, shorter)


def _windows(length: int, kept: int, stride: int | None, side: str) -> Iterator[tuple[int, int]]:
    """The ranges of ids that overlap by a stride; without one, the first of them."""
    is_left = side == "left"
    if stride is None or kept >= length:
        kept = min(kept, length)
        yield (length - kept, length) if is_left else (0, kept)
        return
    if stride >= kept:
        raise OptionError(
            f"stride is {stride}; it must be less than the {kept} ids of a row that max_length leaves for "
            "text"
        )
    done = 0
    while True:
        end = min(done + kept, length)
        yield (length - end, length - done) if is_left else (done, end)
        if end == length:
            return
        done += kept - stride
