"""The rows of `encode_batch`: truncated and padded, as objects, lists, arrays or tensors."""

from __future__ import annotations

import gc
import importlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, SupportsIndex, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.arguments import TextCollection, check_choice, check_flag, check_integer
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    MissingDependencyError,
    OptionError,
    UnknownColumnError,
    caller_level,
    shorten,
)
from bpe_tokenizer.libraries import install_command
from bpe_tokenizer.options import Side

__all__ = [
    "UNSHAPED",
    "BatchOptions",
    "EncodingResult",
    "Padding",
    "ReturnTensors",
    "Rows",
    "Texts",
    "TokenStrings",
    "Truncation",
    "check_return_tensors",
    "cut_rows",
    "fill_matrix",
    "pad_rows",
    "to_arrays",
    "to_dict",
    "to_results",
    "to_tensors",
]

Padding: TypeAlias = bool | Literal["longest", "max_length"]
Truncation: TypeAlias = bool | Literal["longest_first", "only_first", "only_second"]
ReturnTensors: TypeAlias = Literal["np", "pt"]
# Several texts: every iterable of texts whose type tells it from a single `str`.
Texts: TypeAlias = TextCollection | Iterator[str]
Offsets: TypeAlias = list[tuple[int, int]]
# Returns the token string of each id of a vocabulary, and makes them at the first call.
TokenStrings: TypeAlias = Callable[[], Mapping[int, str]]
# What `pad` takes: a row each, or one dict of columns.
Rows: TypeAlias = "Iterable[EncodingResult | Mapping[str, Any] | Sequence[int]] | Mapping[str, Any]"


# What padding adds to each column of a row, but `input_ids`, which get the pad token's id.
_PADDING: Mapping[str, Any] = {
    "attention_mask": 0,
    "assistant_masks": 0,
    "token_type_ids": 0,
    "special_tokens_mask": 1,
    "offset_mapping": (0, 0),
}


# Items of a column that `repr` shows.
_SHOWN = 8
# A larger one is a mistake, and its rows would not fit into memory.
_MAX_PADDED = 1 << 24
# A notebook keeps its outputs, so it shows the first tokens of a long result.
_HTML_TOKENS = 256


class EncodingResult:
    """The encoding of one text of a batch, or of a pair of texts.

    It is a sequence of its ids: `result[0]`, `for token_id in result`, `result == [104, 105]`. It reads like
    a dict as well: `result["input_ids"]`, `dict(result)`.

    Args:
        input_ids: The ids, with the padding.
        attention_mask: 1 for a token, 0 for padding; as long as `input_ids`. None without padding.
        tokens: The token strings, one an id.
        offsets: The span of the text that each id covers, if it was asked for; `(0, 0)` for added ids.
        word_ids: Of a text that was given as words: the word of each id; None for added ids.
        sequence_ids: Of a pair: 0 for the ids of the first text, 1 for those of the second, None for added
            ids.
        overflowing: With `return_overflowing_tokens`: the rows with the rest of a truncated text.

    >>> result = EncodingResult([104, 105], [1, 1], ["h", "i"])
    >>> len(result), result.tokens, result.token_type_ids
    (2, ['h', 'i'], None)
    >>> result.ids == result["input_ids"] == list(result)
    True
    """

    __slots__ = (
        "_attention_mask",
        "_tokens",
        "input_ids",
        "offsets",
        "overflowing",
        "sequence_ids",
        "word_ids",
    )

    def __init__(
        self,
        input_ids: list[int],
        attention_mask: list[int] | None,
        tokens: list[str] | TokenStrings,
        *,
        offsets: Offsets | None = None,
        word_ids: list[int | None] | None = None,
        sequence_ids: list[int | None] | None = None,
        overflowing: Sequence[EncodingResult] = (),
    ) -> None:
        self.input_ids = input_ids
        # None for ones, until somebody asks for them: the mask of a row costs as much as its ids.
        self._attention_mask = attention_mask
        # What returns the strings of all ids, until somebody asks for those of the row: making either costs
        # more than encoding.
        self._tokens = tokens
        self.offsets = offsets
        self.word_ids = word_ids
        self.sequence_ids = sequence_ids
        self.overflowing = list(overflowing)

    @property
    def ids(self) -> list[int]:
        """`input_ids`."""
        return self.input_ids

    @property
    def attention_mask(self) -> list[int]:
        """1 for a token, 0 for padding; as long as `input_ids`."""
        if self._attention_mask is None:
            self._attention_mask = [1] * len(self.input_ids)
        return self._attention_mask

    @property
    def tokens(self) -> list[str]:
        """The token strings, bytes written as GPT-2's printable characters."""
        if not isinstance(self._tokens, list):
            strings = self._tokens()
            self._tokens = [strings.get(token_id, "") for token_id in self.input_ids]
        return self._tokens

    @property
    def token_type_ids(self) -> None:
        """None: byte-level BPE models do not have segments."""
        return None

    def keys(self) -> list[str]:
        """The names of the columns: `input_ids`, `attention_mask`, and `offset_mapping` if it is known."""
        return ["input_ids", "attention_mask"] + ["offset_mapping"] * (self.offsets is not None)

    @overload
    def __getitem__(self, name: Literal["input_ids", "attention_mask"]) -> list[int]: ...
    @overload
    def __getitem__(self, name: Literal["offset_mapping"]) -> Offsets: ...
    @overload
    def __getitem__(self, name: str) -> list[int] | Offsets: ...
    @overload
    def __getitem__(self, name: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, name: slice) -> list[int]: ...
    def __getitem__(self, name: str | SupportsIndex | slice) -> int | list[int] | Offsets:
        """Return a column by its name, or ids by their positions."""
        if isinstance(name, slice | SupportsIndex):
            return self.input_ids[name]
        if name == "offset_mapping":
            if self.offsets is not None:
                return self.offsets
            raise UnknownColumnError(
                "no offset_mapping was asked for: pass return_offsets_mapping=True when you encode"
            )
        if isinstance(name, str) and name in self.keys():
            return self.input_ids if name == "input_ids" else self.attention_mask
        raise UnknownColumnError(
            f"a result has the columns {', '.join(map(repr, self.keys()))}, not {shorten(name)}"
        )

    def __iter__(self) -> Iterator[int]:
        """Return the ids in turn; `keys()` are the names of the columns."""
        return iter(self.input_ids)

    def __contains__(self, item: object) -> bool:
        """Whether it has this id, or a column of this name."""
        return item in (self.keys() if isinstance(item, str) else self.input_ids)

    def __len__(self) -> int:
        """The number of ids, padding included."""
        return len(self.input_ids)

    def _parts(self) -> tuple[Any, ...]:
        return (self.offsets, self.word_ids, self.sequence_ids, self.overflowing)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list):
            return self.input_ids == other
        if not isinstance(other, EncodingResult):
            return NotImplemented
        return (self.input_ids, self.attention_mask, self.tokens, *self._parts()) == (
            other.input_ids,
            other.attention_mask,
            other.tokens,
            *other._parts(),
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        dots = "..." if len(self) > _SHOWN else ""
        shown = f"input_ids={self.input_ids[:_SHOWN]}{dots}, length={len(self)}"
        if self.offsets is not None:
            shown += f", offsets={self.offsets[:_SHOWN]}{dots}"
        if self.overflowing:
            shown += f", overflowing={len(self.overflowing)}"
        return f"EncodingResult({shown})"

    def _repr_html_(self) -> str:
        return _html(self)

    def __reduce__(self) -> tuple[object, ...]:
        return _result, (self.input_ids, self.attention_mask, self.tokens, *self._parts())


def _html(result: EncodingResult) -> str:
    """Return the first tokens with their ids and their style, as HTML that loads nothing."""
    from bpe_tokenizer.console import count_noun
    from bpe_tokenizer.display.chips import STYLE

    ids, mask = result.input_ids, result.attention_mask
    padding = len(mask) - sum(map(bool, mask))
    facts = [count_noun(len(ids) - padding, "token")]
    if padding:
        facts.append(f"{padding:,} of padding")
    if result.overflowing:
        facts.append(f"{count_noun(len(result.overflowing), 'more row')} of the text's rest")
    chips = "".join(_chip(result, index) for index in range(min(len(ids), _HTML_TOKENS)))
    rest = len(ids) - _HTML_TOKENS
    note = f'<p class="bpe-note">and {rest:,} more</p>' if rest > 0 else ""
    return (
        f'<style>{STYLE}</style><div class="bpe-card"><p class="bpe-title">{type(result).__name__}'
        f'<span>{", ".join(facts)}</span></p><div class="bpe-row">{chips}</div>{note}</div>'
    )


def _chip(result: EncodingResult, index: int) -> str:
    from bpe_tokenizer.display.chips import COLOURS, chip_with_id
    from bpe_tokenizer.display.text import printable_bytes

    token = printable_bytes(result.tokens[index])
    about = [f"token {index}"]
    if result.offsets is not None:
        start, end = result.offsets[index]
        about.append(f"characters {start} to {end}")
    if result.word_ids is not None and result.word_ids[index] is not None:
        about.append(f"word {result.word_ids[index]}")
    if result.sequence_ids is not None and result.sequence_ids[index] is not None:
        about.append(f"text {result.sequence_ids[index]}")
    kind = f"bpe-{index % COLOURS}" if result.attention_mask[index] else "bpe-padding"
    return chip_with_id(token, str(result.input_ids[index]), kind, f'title="{escape(", ".join(about))}"')


def _result(
    input_ids: list[int],
    attention_mask: list[int],
    tokens: list[str],
    offsets: Offsets | None,
    word_ids: list[int | None] | None,
    sequence_ids: list[int | None] | None,
    overflowing: list[EncodingResult],
) -> EncodingResult:
    """Unpickle a result."""
    return EncodingResult(
        input_ids,
        attention_mask,
        tokens,
        offsets=offsets,
        word_ids=word_ids,
        sequence_ids=sequence_ids,
        overflowing=overflowing,
    )


@dataclass(frozen=True)
class BatchOptions:
    """Padding and truncation of the rows of a batch.

    Args:
        padding: True or `"longest"` fills up to the longest row (at most `max_length`), `"max_length"` to
            `max_length`.
        truncation: Cut rows to `max_length`. Of a pair of texts, True or `"longest_first"` cuts the longer
            one, `"only_first"` and `"only_second"` that one.
        max_length: In ids, the added ones included.
        prefix: Ids added at the beginning of each row.
        suffix: Ids added at the end of each row.
        pad_id: The id of padding; None if there is no pad token: then it is 0, with a warning.
        padding_side: The side on which rows are filled.
        truncation_side: The side on which rows are cut.
        pad_to_multiple_of: Fill rows up to a multiple of this.

    Raises:
        OptionError: The options contradict each other.
        ArgumentTypeError: `max_length` is not an integer.
    """

    padding: Padding = False
    truncation: Truncation = False
    max_length: int | None = None
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    pad_id: int | None = None
    padding_side: Side = "right"
    truncation_side: Side = "right"
    pad_to_multiple_of: int | None = None

    def __post_init__(self) -> None:
        _check_flag_or("truncation", self.truncation, ("longest_first", "only_first", "only_second"))
        check_choice("padding", self.padding, (True, False, "longest", "max_length"))
        check_choice("padding_side", self.padding_side, ("right", "left"))
        check_choice("truncation_side", self.truncation_side, ("right", "left"))
        if self.pad_to_multiple_of is not None:
            check_integer("pad_to_multiple_of", self.pad_to_multiple_of, 1, maximum=_MAX_PADDED)
        if self.max_length is None:
            if self.truncation:
                raise OptionError("truncation=True needs max_length, the number of ids to cut to")
            if self.padding == "max_length":
                raise OptionError("padding='max_length' needs max_length, the number of ids to fill up to")
            return
        most = _MAX_PADDED if self.padding == "max_length" else None
        check_integer("max_length", self.max_length, 1, maximum=most)
        if self.truncation and self.max_length < self.added:
            raise OptionError(
                f"max_length={shorten(self.max_length)} leaves no room for the {self.added} ids that "
                "add_special_tokens=True adds"
            )

    def warn_if_unused(self) -> None:
        """Warn if `max_length` has no effect."""
        if self.max_length is not None and not self.truncation and not self.padding:
            warnings.warn(
                f"max_length={shorten(self.max_length)} has no effect: pass truncation=True to cut rows to "
                "it, or padding='max_length' to fill them up to it",
                stacklevel=caller_level(),
            )

    @property
    def added(self) -> int:
        """Number of ids added to each row."""
        return len(self.prefix) + len(self.suffix)

    @property
    def fill_id(self) -> int:
        """The id of padding, also for rows that need none."""
        return 0 if self.pad_id is None else self.pad_id

    def body(self, length: int) -> slice:
        """The ids that truncation keeps of a text with `length` ids."""
        if not self.truncation or self.max_length is None or length <= self.max_length - self.added:
            return slice(0, length)
        kept = self.max_length - self.added
        return slice(0, kept) if self.truncation_side == "right" else slice(length - kept, length)

    def width(self, lengths: Sequence[int]) -> int:
        """Length to which rows of these lengths are padded; 0 for no padding.

        Warns if `max_length` should cut a row and does not, and if rows are filled without a pad token. Each
        warning is given once for all rows.
        """
        if not self.padding:
            return 0
        width = max(lengths, default=0)
        if self.max_length is not None:
            if width > self.max_length and not self.truncation and self.padding != "max_length":
                warnings.warn(
                    f"a row has {width} ids, and max_length={self.max_length} cuts none without "
                    "truncation=True",
                    stacklevel=caller_level(),
                )
            width = self.max_length if self.padding == "max_length" else min(width, self.max_length)
        multiple = self.pad_to_multiple_of or 1
        width = -(-width // multiple) * multiple
        if self.pad_id is None and min(lengths, default=width) < width:
            warnings.warn(
                "rows are filled with the id 0, because this tokenizer has no pad token: choose one of its "
                "special tokens, such as tokenizer.pad_token = tokenizer.eos_token, or add one with "
                "tokenizer.add_special_tokens(['<|pad|>'])",
                UserWarning,
                stacklevel=caller_level(),
            )
        return width

    def filled(self, column: list[Any], width: int, value: Any) -> list[Any]:
        """Fill a column of a row up to a width."""
        missing = [value] * (width - len(column))
        if not missing:
            return column
        return missing + column if self.padding_side == "left" else column + missing


def _check_flag_or(name: str, value: object, choices: tuple[str, ...]) -> None:
    if isinstance(value, str):
        check_choice(name, value, (True, False, *choices))
    else:
        check_flag(name, value)


# The defaults, checked once.
UNSHAPED = BatchOptions()


def check_return_tensors(return_tensors: str | None) -> None:
    """Check `return_tensors` before anything is encoded.

    Raises:
        MissingDependencyError: It is `"pt"`, and PyTorch is not installed.
        OptionError: It is none of None, `"np"` and `"pt"`.
    """
    check_choice("return_tensors", return_tensors, (None, "np", "pt"))
    if return_tensors == "pt":
        _import_torch()


def to_results(
    rows: Sequence[list[int]], options: BatchOptions, token_strings: TokenStrings
) -> list[EncodingResult]:
    """Shape rows of ids into results.

    Args:
        rows: The ids of each text.
        options: How to shape them.
        token_strings: Returns the token string of each id.
    """
    prefix, suffix = list(options.prefix), list(options.suffix)
    if options.added or options.truncation:
        rows = [prefix + row[options.body(len(row))] + suffix for row in rows]
    width = options.width([*map(len, rows)]) if options.padding else 0
    with _collection_paused():
        if not width:
            return [EncodingResult(row, None, token_strings) for row in rows]
        return [
            EncodingResult(
                options.filled(row, width, options.fill_id),
                options.filled([1] * len(row), width, 0) if width > len(row) else None,
                token_strings,
            )
            for row in rows
        ]


@contextmanager
def _collection_paused() -> Iterator[None]:
    """Pause the garbage collector while many objects are made that all stay.

    It would visit all ids of all rows several times, which takes longer than to encode them.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def to_arrays(
    ids: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64], options: BatchOptions
) -> dict[str, npt.NDArray[np.int64]]:
    """Shape ids into matrices.

    Args:
        ids: uint32, the concatenated ids of all texts.
        offsets: int64, the offset of each text in `ids` and of the end: one more than the number of texts.
        options: How to shape them.

    Returns:
        `input_ids` and `attention_mask`, both int64 of shape (texts, width).

    Raises:
        OptionError: The rows have different lengths, and padding does not make them equal.

    >>> flat, offsets = np.array([1, 2, 3], np.uint32), np.array([0, 1, 3])
    >>> to_arrays(flat, offsets, BatchOptions(padding=True, pad_id=0))["input_ids"].tolist()
    [[1, 0], [2, 3]]
    """
    limit = None
    if options.truncation and options.max_length is not None:
        limit = options.max_length - options.added
    ids, lengths = cut_rows(ids, offsets, limit, options.truncation_side)
    totals = lengths + options.added
    width = _common_width(totals, options.width(np.unique(totals).tolist()))
    input_ids, mask = fill_matrix(
        ids, lengths, options.prefix, options.suffix, width, options.fill_id, options.padding_side
    )
    return {"input_ids": input_ids, "attention_mask": mask.astype(np.int64)}


def cut_rows(
    ids: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64], limit: int | None, side: Side
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Truncate rows of ids.

    Args:
        ids: uint32, the concatenated ids of all rows.
        offsets: int64, the offset of each row in `ids` and of the end.
        limit: Largest number of ids of a row; None for no limit.
        side: The side that is cut.

    Returns:
        The concatenated ids that are kept, and the number of them in each row.

    >>> cut_rows(np.array([1, 2, 3], np.uint32), np.array([0, 1, 3]), 1, "left")
    (array([1, 3], dtype=uint32), array([1, 1]))
    """
    lengths = np.diff(offsets)
    if limit is None or lengths.max(initial=0) <= limit:
        return ids, lengths
    kept = np.minimum(lengths, limit)
    place = np.arange(len(ids)) - np.repeat(offsets[:-1], lengths)
    skipped = np.repeat(lengths - kept, lengths) if side == "left" else 0
    return ids[(place >= skipped) & (place < skipped + np.repeat(kept, lengths))], kept


def fill_matrix(
    ids: npt.NDArray[np.uint32],
    lengths: npt.NDArray[np.int64],
    prefix: Sequence[int],
    suffix: Sequence[int],
    width: int,
    pad_id: int,
    side: Side,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Put rows of ids into a matrix.

    Args:
        ids: uint32, the concatenated ids of all rows.
        lengths: int64, the number of ids of each row.
        prefix: Ids before each row.
        suffix: Ids after each row.
        width: The number of columns, at least that of the longest row with prefix and suffix.
        pad_id: The id of padding.
        side: The side that is padded.

    Returns:
        The ids, int64 of shape (rows, width), and which of them are not padding.

    >>> fill_matrix(np.array([5, 6, 7], np.uint32), np.array([1, 2]), [1], [], 3, 0, "left")[0].tolist()
    [[0, 1, 5], [1, 6, 7]]
    """
    before, after = len(prefix), len(suffix)
    totals = (lengths + before + after)[:, None]
    starts = width - totals if side == "left" else np.zeros_like(totals)
    # Columns from the beginning of each row's ids.
    columns = np.arange(width) - starts
    matrix = np.full((len(lengths), width), pad_id, dtype=np.int64)
    matrix[(columns >= before) & (columns < totals - after)] = ids
    rows = np.arange(len(lengths))[:, None]
    matrix[rows, starts + np.arange(before)] = prefix
    matrix[rows, starts + totals - after + np.arange(after)] = suffix
    return matrix, (columns >= 0) & (columns < totals)


def _common_width(lengths: npt.NDArray[np.int64], filled: int) -> int:
    """The width of a matrix of rows of these lengths, which are filled up to a width."""
    longest = int(lengths.max(initial=0))
    if filled < longest and lengths.min() != longest:
        raise OptionError(
            f"return_tensors needs rows of one length, and these have {lengths.min()} to {longest} ids: "
            "pass padding=True, and truncation=True if max_length is to shorten the longest"
        )
    return max(filled, longest)


def to_dict(
    results: Sequence[EncodingResult], return_tensors: ReturnTensors | None, with_overflow: bool = False
) -> dict[str, Any]:
    """Return the columns of results.

    Args:
        results: The rows.
        return_tensors: The class of the columns: None for lists.
        with_overflow: Put the rows of a text's rest after it, and add `overflow_to_sample_mapping`, the
            number of each row's text.

    Raises:
        OptionError: Tensors are asked for, and the rows have different lengths.
    """
    rows = list(results)
    extra: dict[str, Any] = {}
    if with_overflow:
        texts = [text for text, result in enumerate(results) for _ in range(1 + len(result.overflowing))]
        rows = [row for result in results for row in (result, *result.overflowing)]
        extra["overflow_to_sample_mapping"] = texts
    names = rows[0].keys() if rows else ["input_ids", "attention_mask"]
    return to_columns({name: [row[name] for row in rows] for name in names} | extra, return_tensors)


def to_columns(columns: Mapping[str, list[Any]], return_tensors: ReturnTensors | None) -> dict[str, Any]:
    """Return columns as lists, arrays or tensors."""
    if return_tensors is None:
        return dict(columns)
    _common_width(np.array([len(row) for row in columns["input_ids"]], dtype=np.int64), 0)
    arrays: dict[str, npt.NDArray[np.int64]] = {}
    for name, rows in columns.items():
        try:
            array = np.array(rows)
            # "safe": numbers with a fraction do not lose it.
            arrays[name] = array.astype(np.int64, casting="safe" if array.size else "unsafe", copy=False)
        except (TypeError, ValueError, OverflowError):
            raise OptionError(
                f"return_tensors needs columns of integers with rows of one length, and {shorten(name)} is "
                "another; leave it out"
            ) from None
    return to_tensors(arrays) if return_tensors == "pt" else arrays


def to_tensors(arrays: Mapping[str, npt.NDArray[np.int64]]) -> dict[str, Any]:
    """Turn arrays into PyTorch tensors of dtype int64 that share their memory.

    Raises:
        MissingDependencyError: PyTorch is not installed.
    """
    torch = _import_torch()
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def _import_torch() -> Any:
    """Return the module `torch`.

    Raises:
        MissingDependencyError: It is not installed.
    """
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise MissingDependencyError(
            f"return_tensors='pt' needs PyTorch, which is not installed: {install_command('torch')}"
        ) from error


# Padding of rows that exist


def pad_rows(rows: object, options: BatchOptions, return_tensors: ReturnTensors | None) -> dict[str, Any]:
    """Pad rows that were encoded before, and return their columns.

    Args:
        rows: Results, dicts of columns, or lists of ids; or one dict of columns, each with all rows.
        options: How to pad them.
        return_tensors: The class of the columns: None for lists.

    Raises:
        ArgumentTypeError: The rows are something else.
        OptionError: A row has no `input_ids`, or a column is not as long as they are.
    """
    columns = _columns(rows)
    lengths = [len(row) for row in columns["input_ids"]]
    columns.setdefault("attention_mask", [[1] * length for length in lengths])
    width = options.width(lengths)
    for name, column in columns.items():
        fill = options.fill_id if name == "input_ids" else _PADDING.get(name)
        if fill is None:
            continue  # a label, or what else belongs to a row
        if [len(row) for row in column] != lengths:
            raise OptionError(f"{name} and input_ids must have a value for each id of each row")
        columns[name] = [options.filled(row, width, fill) for row in column]
    return to_columns(columns, return_tensors)


def _columns(rows: object) -> dict[str, list[Any]]:
    if isinstance(rows, Mapping):
        columns = {str(name): _to_list(column) for name, column in rows.items()}
        for name, column in columns.items():
            if not isinstance(column, list):
                raise ArgumentTypeError(f"pad: {name} must be a list of rows, not {type(column).__name__}")
        named = {name: [_to_list(row) for row in column] for name, column in columns.items()}
    else:
        rows = _to_list(rows)
        if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
            raise ArgumentTypeError(f"pad expects a list of rows, not {type(rows).__name__}")
        dicts = [_row_columns(number, row) for number, row in enumerate(rows)]
        names = dicts[0] if dicts else {"input_ids": []}
        for number, row in enumerate(dicts):
            if row.keys() != names.keys():
                raise OptionError(
                    f"row {number} has the columns {shorten(list(row))}, and row 0 {shorten(list(names))}"
                )
        named = {name: [row[name] for row in dicts] for name in names}
    if "input_ids" not in named:
        raise OptionError(f"pad needs input_ids, and the rows have {shorten(list(named))}")
    if not all(isinstance(row, list) for row in named["input_ids"]):
        raise ArgumentTypeError("input_ids must be a list of rows of ids; for one row, pass [row]")
    return named


def _row_columns(number: int, row: object) -> dict[str, Any]:
    if isinstance(row, EncodingResult | Mapping):
        return {str(name): _to_list(column) for name, column in dict(row).items()}
    ids = _to_list(row)
    if isinstance(ids, list):
        return {"input_ids": ids}
    raise ArgumentTypeError(
        f"pad expects rows of ids or dicts with input_ids, but item {number} is {type(row).__name__}"
    )


def _to_list(values: Any) -> Any:
    """An array, a tensor or a tuple as a list; anything else unchanged."""
    if hasattr(values, "tolist"):
        return values.tolist()
    return list(values) if isinstance(values, tuple) else values
