"""The results of `encode_batch`: truncated and padded rows, as objects, arrays or tensors."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.arguments import check_choice, check_flag, check_integer
from bpe_tokenizer.errors import MissingDependencyError, OptionError

__all__ = [
    "BatchOptions",
    "EncodingResult",
    "Padding",
    "check_return_tensors",
    "to_arrays",
    "to_results",
    "to_tensors",
]

Padding: TypeAlias = bool | Literal["longest", "max_length"]


class EncodingResult:
    """The encoding of one text of a batch.

    Args:
        input_ids: The ids, with the padding.
        attention_mask: 1 for a token, 0 for padding; as long as `input_ids`.
        tokens: The token strings, one an id.

    >>> result = EncodingResult([104, 105], [1, 1], ["h", "i"])
    >>> len(result), result.tokens, result.token_type_ids
    (2, ['h', 'i'], None)
    """

    __slots__ = ("_tokens", "attention_mask", "input_ids")

    def __init__(
        self, input_ids: list[int], attention_mask: list[int], tokens: list[str] | Mapping[int, str]
    ) -> None:
        self.input_ids = input_ids
        self.attention_mask = attention_mask
        # The mapping id -> token string, until somebody asks for the strings: building them costs more than
        # encoding.
        self._tokens = tokens

    @property
    def tokens(self) -> list[str]:
        """The token strings, bytes written as GPT-2's printable characters."""
        if isinstance(self._tokens, Mapping):
            self._tokens = [self._tokens.get(token_id, "") for token_id in self.input_ids]
        return self._tokens

    @property
    def token_type_ids(self) -> None:
        """None: byte-level BPE models do not have segments."""
        return None

    def __len__(self) -> int:
        """The number of ids, padding included."""
        return len(self.input_ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EncodingResult):
            return NotImplemented
        return (self.input_ids, self.attention_mask, self.tokens) == (
            other.input_ids,
            other.attention_mask,
            other.tokens,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"EncodingResult(input_ids={self.input_ids}, attention_mask={self.attention_mask})"

    def __reduce__(self) -> tuple[object, ...]:
        return EncodingResult, (self.input_ids, self.attention_mask, self.tokens)


@dataclass(frozen=True)
class BatchOptions:
    """Padding and truncation of the rows of a batch.

    Args:
        padding: True or `"longest"` fills up to the longest row (at most `max_length`), `"max_length"` to
            `max_length`.
        truncation: Cut rows to `max_length`.
        max_length: In ids, the added ones included.
        prefix: Ids added at the beginning of each row.
        suffix: Ids added at the end of each row.
        pad_id: The id of padding.

    Raises:
        OptionError: The options contradict each other.
        ArgumentTypeError: `max_length` is not an integer.
    """

    padding: Padding = False
    truncation: bool = False
    max_length: int | None = None
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    pad_id: int = 0

    def __post_init__(self) -> None:
        check_flag("truncation", self.truncation)
        check_choice("padding", self.padding, (True, False, "longest", "max_length"))
        if self.max_length is None:
            if self.truncation:
                raise OptionError("truncation=True needs max_length, the number of ids to cut to")
            if self.padding == "max_length":
                raise OptionError("padding='max_length' needs max_length, the number of ids to fill up to")
            return
        check_integer("max_length", self.max_length, 1)
        if self.truncation and self.max_length < self.added:
            raise OptionError(
                f"max_length={self.max_length} leaves no room for the {self.added} ids that "
                "add_special_tokens=True adds"
            )

    @property
    def added(self) -> int:
        """Number of ids added to each row."""
        return len(self.prefix) + len(self.suffix)

    def body(self, length: int) -> int:
        """Number of ids that truncation keeps of a text with `length` ids."""
        if self.truncation and self.max_length is not None:
            return min(length, self.max_length - self.added)
        return length

    def width(self, longest: int) -> int:
        """Length to which rows are padded if the longest has `longest` ids; 0 for no padding."""
        if not self.padding:
            return 0
        if self.max_length is None:
            return longest
        return self.max_length if self.padding == "max_length" else min(longest, self.max_length)


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
    rows: Sequence[list[int]], options: BatchOptions, token_strings: Mapping[int, str]
) -> list[EncodingResult]:
    """Shape rows of ids into results.

    Args:
        rows: The ids of each text.
        options: How to shape them.
        token_strings: The token string of each id.
    """
    prefix, suffix = list(options.prefix), list(options.suffix)
    if options.added or options.truncation:
        rows = [prefix + row[: options.body(len(row))] + suffix for row in rows]
    width = options.width(max(map(len, rows), default=0))
    results = []
    for row in rows:
        mask = [1] * len(row)
        missing = width - len(row)
        if missing > 0:
            mask += [0] * missing
            row = row + [options.pad_id] * missing
        results.append(EncodingResult(row, mask, token_strings))
    return results


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
    >>> to_arrays(flat, offsets, BatchOptions(padding=True))["input_ids"].tolist()
    [[1, 0], [2, 3]]
    """
    bodies = [options.body(int(length)) for length in np.diff(offsets)]
    lengths = [body + options.added for body in bodies]
    longest = max(lengths, default=0)
    filled = options.width(longest)
    if filled < longest and any(length != longest for length in lengths):
        raise OptionError(
            f"return_tensors needs rows of one length, and these have {min(lengths)} to {longest} ids: "
            "pass padding=True, and truncation=True if max_length is to shorten the longest"
        )
    width = max(filled, longest)
    input_ids = np.full((len(lengths), width), options.pad_id, dtype=np.int64)
    before = len(options.prefix)
    for row, start, body in zip(input_ids, offsets, bodies, strict=False):
        row[:before] = options.prefix
        row[before : before + body] = ids[start : start + body]
        row[before + body : body + options.added] = options.suffix
    mask = np.arange(width) < np.array(lengths, dtype=np.int64)[:, None]
    return {"input_ids": input_ids, "attention_mask": mask.astype(np.int64)}


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
            "return_tensors='pt' needs PyTorch, which is not installed: pip install 'bpe-tokenizer[torch]'"
        ) from error
