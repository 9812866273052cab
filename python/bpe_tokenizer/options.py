"""Options that many functions take, as values. Each has its default, its docs and its check in one place.

A public function takes them as `**options: Unpack[...]` and is marked with `takes`, which shows them in its
signature and its docs. It makes the values with `pick`, and the functions inside pass the values on. The
command line makes its options from the fields.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, TypeVar, cast, get_args

from bpe_tokenizer.arguments import check_choice, check_flag, check_integer, check_path, thread_count
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, shorten
from bpe_tokenizer.special_tokens import DisallowedSpecial

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "CorpusArguments",
    "CorpusTrainingArguments",
    "CountArguments",
    "CountLimits",
    "CountsTrainingArguments",
    "DocumentEnd",
    "InputFormat",
    "LearningArguments",
    "LearningOptions",
    "MemoryArguments",
    "MemoryLimits",
    "OnError",
    "ReadArguments",
    "ReadOptions",
    "RowArguments",
    "RowOptions",
    "Side",
    "TextArguments",
    "TieBreak",
    "byte_size",
    "check_min_count",
    "field_names",
    "memory_bytes",
    "option_docs",
    "option_field",
    "parse_field",
    "pick",
    "sample_limit",
    "takes",
]

InputFormat: TypeAlias = Literal["text", "jsonl", "parquet", "arrow"]
DocumentEnd: TypeAlias = Literal["line", "file"]
OnError: TypeAlias = Literal["stop", "skip"]
TieBreak: TypeAlias = Literal["largest", "huggingface"]
Side: TypeAlias = Literal["left", "right"]

_Value = TypeVar("_Value")
_Function = TypeVar("_Function", bound=Callable[..., Any])

# An argument in the docs of a class or of a function, and the end of such arguments.
_ENTRY = re.compile(r"^ {4}(\w+): .*(?:\n {8}.*)*", re.MULTILINE)
_ARGS = re.compile(r"^Args:\n(?: {4}.*\n)+", re.MULTILINE)

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?b|b)?\s*", re.IGNORECASE)
# What a process takes besides the pieces: Python and the package 40 MB, pyarrow up to 110 MB, readers and two
# threads the rest; and the smallest limit that leaves memory for pieces.
_BASE_MEMORY = 204 * 10**6
_MIN_MEMORY = 240 * 10**6
# A given stride is checked, also a false one.
_NO_STRIDE = 0
_ROW_FLAGS = ("is_split_into_words", "return_overflowing_tokens", "return_offsets_mapping", "return_dict")


def option_field(default: Any, metavar: str = "NAME", shown: str = "") -> Any:
    """Return a field of options.

    Args:
        default: Its default.
        metavar: What the help of a command shows for its value.
        shown: What the help shows as the default, if that is None.
    """
    return field(default=default, metadata={"metavar": metavar, "shown": shown})


@functools.lru_cache
def parse_field(field: str) -> tuple[tuple[str, str | None], ...]:
    r"""Return what a document is made of: texts, each with the path of the field whose text follows it.

    A field with braces is a template, as of `str.format`; any other is the path of one field.

    Args:
        field: The option.

    Raises:
        OptionError: The template is not valid.

    >>> parse_field("meta.text"), parse_field("{title}\n{meta.text}.")
    ((('', 'meta.text'),), (('', 'title'), ('\n', 'meta.text'), ('.', None)))
    """
    if "{" not in field and "}" not in field:
        return (("", field),)
    try:
        parts = [
            (text, name, bool(rest or conversion))
            for text, name, rest, conversion in Formatter().parse(field)
        ]
    except ValueError as error:
        raise OptionError(f"field is {shorten(field)}, which is not a valid template: {error}") from None
    if not any(name for _, name, _ in parts) or any(name == "" or more for _, name, more in parts):
        raise OptionError(
            f"field is {shorten(field)}; a template names fields in braces, as in '{{title}}: {{text}}', and "
            "nothing else"
        )
    return tuple((text, name) for text, name, _ in parts)


def field_names(field: str) -> list[str]:
    """Return the paths of the fields that a document is made of. Errors: `parse_field`."""
    return [name for _, name in parse_field(field) if name is not None]


class ReadArguments(TypedDict, total=False):
    """The fields of `ReadOptions`."""

    input_format: InputFormat | None
    documents: DocumentEnd
    separator: str | None
    field: str
    on_error: OnError


@dataclass(frozen=True)
class ReadOptions:
    r"""How the documents of a corpus are found in its files.

    Args:
        input_format: The format of all files; `"text"`, `"jsonl"`, `"parquet"` or `"arrow"`. None decides by
            the content of each file.
        documents: Whether a document of a text file is a `"line"` or the `"file"`; with a separator always
            what lies between two of them.
        separator: Text that separates the documents of a text file instead, such as `"<|endoftext|>"`.
        field: The field of JSON Lines or the column of tables that holds the text; or the path to one, as in
            `"meta.text"`, or a template of several, as in `"{title}\n\n{text}"`.
        on_error: `"stop"` at or `"skip"` a row that is not valid UTF-8 or JSON or has no text.

    Raises:
        ArgumentTypeError: A value is of the wrong type.
        OptionError: A value is unknown, or two values contradict each other.

    >>> ReadOptions(separator="<|endoftext|>").separator
    '<|endoftext|>'
    """

    input_format: InputFormat | None = option_field(None, shown="by content")
    documents: DocumentEnd = option_field("file")
    separator: str | None = option_field(None, "TEXT")
    field: str = option_field("text")
    on_error: OnError = option_field("stop")

    # Whether other values than texts give their JSON, and the field of a document's own id: `CorpusFields`.
    as_json = False
    id_field = cast("str | None", None)

    def __post_init__(self) -> None:
        if self.input_format is not None:
            check_choice("input_format", self.input_format, get_args(InputFormat))
        check_choice("documents", self.documents, get_args(DocumentEnd))
        check_choice("on_error", self.on_error, get_args(OnError))
        for name in ("separator", "field", "id_field"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (value is None and name != "field"):
                raise ArgumentTypeError(f"{name} must be a str, not {type(value).__name__}")
            try:
                (value or "").encode()
            except UnicodeEncodeError:
                raise OptionError(f"{name} holds a lone surrogate, which UTF-8 cannot encode") from None
        for each in (self.field, self.id_field or ""):
            field_names(each)
        if self.separator == "":
            raise OptionError("separator is empty; it must be the text between two documents")
        if self.separator is not None:
            object.__setattr__(self, "documents", "line")

    @property
    def is_whole(self) -> bool:
        """Whether a file of text is one document."""
        return self.documents == "file"


class MemoryArguments(TypedDict, total=False):
    """The fields of `MemoryLimits`."""

    max_memory: int | str | None
    spill_directory: str | os.PathLike[str] | None


@dataclass(frozen=True)
class MemoryLimits:
    """What counting and learning may take.

    Args:
        max_memory: Memory limit of this process, as in `"500MB"`, at least `"240MB"`; an `int` is bytes,
            and None no limit. The result is the same: further pieces go to temporary files. If learning needs
            more, an error says how much, and which `min_count` fits.
        spill_directory: Directory of the temporary files, on a disk with room; None for the system's.

    Raises:
        ArgumentTypeError: An option has another type.
        OptionError: An option is out of its range, or the directory does not exist.
    """

    max_memory: int | str | None = option_field(None, "SIZE", "unlimited")
    spill_directory: str | os.PathLike[str] | None = option_field(None, "DIR", "the system's")

    def __post_init__(self) -> None:
        self.core_options()

    @property
    def is_limited(self) -> bool:
        """Whether a limit or a directory is given."""
        return self.max_memory is not None or self.spill_directory is not None

    def core_options(self) -> dict[str, Any]:
        """Return the arguments of the core's counter."""
        return {
            "max_memory": None if self.max_memory is None else memory_bytes(self.max_memory) - _BASE_MEMORY,
            "spill_directory": self._checked_directory(),
        }

    def _checked_directory(self) -> Path | None:
        if self.spill_directory is None:
            return None
        directory = check_path("spill_directory", self.spill_directory)
        if not directory.is_dir():
            raise OptionError(f"spill_directory is {shorten(str(directory), 150)}, which is no directory")
        return directory


class CountArguments(TypedDict, total=False):
    """The fields of `CountLimits`."""

    max_memory: int | str | None
    spill_directory: str | os.PathLike[str] | None
    sample: float | str | None


class CorpusArguments(CountArguments, ReadArguments, total=False):
    """The fields of `CountLimits` and of `ReadOptions`."""


@dataclass(frozen=True)
class CountLimits(MemoryLimits):
    """What counting may take, and what it counts.

    Args:
        sample: Count a sample of the documents, by its rate, such as 0.1 or `"1/10"`; None for all. A
            document is in the sample if the XXH64 hash of its UTF-8 is below the rate: the same documents on
            every machine, in any order and any format, and those of a smaller sample are in a larger one.
    """

    sample: float | str | None = option_field(None, "RATE", "all")

    def core_options(self) -> dict[str, Any]:
        """Return the arguments of the core's counter."""
        sample = None if self.sample is None else sample_limit(self.sample)
        return {**super().core_options(), "sample": sample}


class LearningArguments(TypedDict, total=False):
    """The fields of `LearningOptions`."""

    tie_break: TieBreak
    max_token_length: int | None
    min_count: int | None
    threads: int | None


class CorpusTrainingArguments(LearningArguments, CountArguments, ReadArguments, total=False):
    """The arguments of learning from a corpus."""


class CountsTrainingArguments(LearningArguments, MemoryArguments, total=False):
    """The arguments of learning from counts."""


@dataclass(frozen=True, kw_only=True)
class LearningOptions:
    """How merges are learned.

    Args:
        tie_break: Which of several pairs of equal count is merged: `"largest"`, the one with the greatest
            bytes, or `"huggingface"`, the one that Hugging Face's `BpeTrainer` merges.
        max_token_length: Longest token to learn, in bytes; None for no limit.
        min_count: Learn only from pieces that occur at least so often.
        threads: Number of threads; None for one per processor.

    Raises:
        ArgumentTypeError: An option has another type.
        OptionError: An option is out of its range.
    """

    tie_break: TieBreak = option_field("largest")
    max_token_length: int | None = option_field(None, "BYTES", "any")
    min_count: int | None = option_field(None, "N", "1")
    threads: int | None = option_field(None, "N", "all processors")

    def __post_init__(self) -> None:
        check_choice("tie_break", self.tie_break, get_args(TieBreak))
        if self.max_token_length is not None:
            length = check_integer("max_token_length", self.max_token_length, 1)
            object.__setattr__(self, "max_token_length", min(length, sys.maxsize))
        thread_count(self.threads)
        check_min_count(self.min_count)

    def core_options(self) -> dict[str, Any]:
        """Return the arguments of the core's training."""
        return {
            "tie_break": self.tie_break,
            "max_token_length": self.max_token_length,
            "min_count": check_min_count(self.min_count),
            "threads": self.threads or 0,
        }


def check_min_count(min_count: object) -> int:
    """Return the least count of a piece that is kept.

    Raises:
        ArgumentTypeError: It is not an `int`.
        OptionError: It is negative.
    """
    return 0 if min_count is None else min(check_integer("min_count", min_count, 0), sys.maxsize)


class TextArguments(TypedDict, total=False):
    """The fields of `RowOptions` that do not change the type of the result."""

    disallowed_special: DisallowedSpecial
    padding_side: Side
    truncation_side: Side
    pad_to_multiple_of: int | None
    stride: int
    return_overflowing_tokens: bool
    return_offsets_mapping: bool
    threads: int | None


class RowArguments(TextArguments, total=False):
    """The fields of `RowOptions` but `return_dict`."""

    text_pair: str | Iterable[str] | Iterable[Iterable[str]] | None
    is_split_into_words: bool


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """What the rows of a batch are, beyond padding and truncation.

    Args:
        text_pair: A second text for each text. The model's post-processor says which ids
            `add_special_tokens` puts around them.
        is_split_into_words: The texts are lists of words. Each word is encoded alone.
        disallowed_special: The special tokens that a text must not contain.
        padding_side: `"right"` fills rows at their end, `"left"` at their beginning.
        truncation_side: `"right"` cuts rows at their end, `"left"` at their beginning.
        pad_to_multiple_of: Fill rows up to a multiple of this.
        stride: How many ids an overflowing row repeats from the previous one.
        return_overflowing_tokens: Keep the rest of truncated texts, as `EncodingResult.overflowing`; in a
            dict as further rows, with `overflow_to_sample_mapping`, the number of each row's text.
        return_offsets_mapping: Also return the span of the text that each id covers, as
            `EncodingResult.offsets` or `offset_mapping`: each character of which the token has a byte. Of a
            list of words, spans count from the beginning of the word.
        return_dict: Return a dict of lists, as `datasets.Dataset.map` needs it.
        threads: Number of threads; None for one per processor.

    Raises:
        ArgumentTypeError: A value is of the wrong type.
    """

    text_pair: str | Iterable[str] | Iterable[Iterable[str]] | None = None
    is_split_into_words: bool = False
    disallowed_special: DisallowedSpecial = ()
    padding_side: Side = "right"
    truncation_side: Side = "right"
    pad_to_multiple_of: int | None = None
    stride: int = 0
    return_overflowing_tokens: bool = False
    return_offsets_mapping: bool = False
    return_dict: bool = False
    threads: int | None = None

    def __post_init__(self) -> None:
        for name in _ROW_FLAGS:
            object.__setattr__(self, name, check_flag(name, getattr(self, name)))

    @property
    def is_plain(self) -> bool:
        """Whether a row is the ids of one text, perhaps cut and filled."""
        return not (
            self.return_overflowing_tokens or self.return_offsets_mapping or self.is_split_into_words
        ) and (self.text_pair is None and self.stride is _NO_STRIDE)


def byte_size(name: str, value: int | str) -> int:
    """Return a size in bytes, which is at least 1.

    Args:
        name: The argument, for messages.
        value: Bytes, or a text like `"500MB"` or `"2GiB"`.

    Raises:
        ArgumentTypeError: It is neither an `int` nor a `str`.
        OptionError: The text is not a size, or the size is less than 1.

    >>> byte_size("unit_bytes", "1.5GB")
    1500000000
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ArgumentTypeError(f"{name} must be an int or a str, not {type(value).__name__}")
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if match is None:
            raise OptionError(f"{name} is {shorten(value)}; say it as '500MB', '2GB' or in bytes")
        value = int(min(float(match[1]) * _UNITS[(match[2] or "").lower()], sys.maxsize))
    return min(check_integer(name, value, 1), sys.maxsize)


def memory_bytes(max_memory: int | str) -> int:
    """Return a memory limit in bytes. Errors: `byte_size`, and `OptionError` for less than 240 MB.

    >>> memory_bytes("1.5GB")
    1500000000
    """
    size = byte_size("max_memory", max_memory)
    if size < _MIN_MEMORY:
        raise OptionError(
            f"max_memory is {size:,} bytes; give it at least 240MB, most of which Python, its "
            "libraries and the readers take"
        )
    return size


def sample_limit(sample: float | str) -> int | None:
    """Return the number that the 64-bit hash of a document must be below to be in a sample.

    Args:
        sample: The rate, such as 0.1 or `"1/10"`.

    Returns:
        The rate times 2^64, rounded down; None if every document is in the sample.

    Raises:
        ArgumentTypeError: It is neither a number nor a text.
        OptionError: The text is not a number, or the rate is not in the range from 0 to 1.

    >>> sample_limit(0.1) == sample_limit("1/10") == 2**64 // 10
    True
    """
    if isinstance(sample, bool) or not isinstance(sample, int | float | str):
        raise ArgumentTypeError(f"sample must be a float or a str, not {type(sample).__name__}")
    from fractions import Fraction  # a few milliseconds, which only samples need

    try:
        # As a number is written, so that 0.1 is a tenth.
        rate = Fraction(sample if isinstance(sample, str) else repr(sample))
    except (ValueError, ZeroDivisionError):
        raise OptionError(f"sample is {shorten(sample)}; say it as 0.1 or '1/10'") from None
    if not 0 < rate <= 1:
        raise OptionError(f"sample is {shorten(sample)}; it must be more than 0 and at most 1")
    return None if rate == 1 else int(rate * 2**64)


def pick(kind: type[_Value], given: Mapping[str, object], *first: object) -> _Value:
    """Return the value of a class of options, from the keyword arguments of a call and its first values.

    >>> pick(ReadOptions, {"field": "content", "max_memory": None}).field
    'content'
    """
    return kind(*first, **{name: given[name] for name in _fields(kind) if name in given})


def takes(
    *kinds: type,
    annotate: Callable[[type, Field[Any]], Any] = lambda _, each: each.type,
    checked: bool = False,
) -> Callable[[_Function], _Function]:
    """Let a function with `**options` take the fields of classes of options that it does not have itself.

    Its signature gets them with their defaults, and the arguments in its docs their docs.

    Args:
        kinds: The classes.
        annotate: Returns the annotation of a field of a class in the signature.
        checked: Whether the function itself makes a value of all its options, which checks their names.
    """

    def decorate(function: _Function) -> _Function:
        signature = inspect.signature(function)
        explicit = list(signature.parameters.values())[:-1]
        shown = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=each.default,
                annotation=annotate(kind, each),
            )
            for kind in kinds
            for name, each in _fields(kind).items()
            if name not in signature.parameters
        ]
        known = {each.name for each in (*explicit, *shown)}

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            for name in options:
                if name not in known:
                    raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {name!r}")
            return function(*arguments, **options)

        changed: Any = function if checked else call
        changed.__signature__ = signature.replace(parameters=[*explicit, *shown])
        docs = "".join(f"{entry}\n" for kind in kinds for entry in option_docs(kind).values())
        changed.__doc__ = _ARGS.sub(
            lambda found: found[0] + docs, inspect.cleandoc(function.__doc__ or ""), count=1
        )
        return changed  # type: ignore[no-any-return]

    return decorate


def option_docs(kind: type) -> dict[str, str]:
    """Return the docs of the fields of a class of options, as they stand in its docstring."""
    texts = [inspect.cleandoc(base.__doc__ or "") for base in reversed(kind.__mro__[:-1])]
    docs = {found[1]: found[0] for text in texts for found in _ENTRY.finditer(text)}
    return {name: docs.get(name, f"    {name}: ") for name in _fields(kind)}


def _fields(kind: Any) -> dict[str, Field[Any]]:
    return {each.name: each for each in fields(kind)}
