"""JSON files whose errors name the file, the field and the problem."""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from bpe_tokenizer.errors import FormatError, escaped
from bpe_tokenizer.formats.files import decode_text, read_bytes
from bpe_tokenizer.model import Decoder, Step

__all__ = [
    "Field",
    "choices",
    "parse_json",
    "read_fields",
    "read_json",
    "read_step",
    "to_bytes",
    "write_json",
]

_Fields = TypeVar("_Fields", Step, Decoder)

_MAX_ID = 2**32 - 2
# The escapes of UTF-16 surrogates, paired ones included.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")

# The most characters of a message, and the least of the value in it.
_MAX_MESSAGE, _MIN_VALUE = 300, 20
# The most characters of a field's path.
_MAX_PATH = 100
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 120
_SHORT.maxdict = _SHORT.maxlist = 4
_SHORT.maxlevel = 3


class Field:
    """A value of a JSON file, with its path for error messages.

    Args:
        file: The file.
        path: The field in it, like `model.merges[3]`; empty for the whole.
        value: The value; None for null and for a missing member.

    >>> config = Field(Path("config.json"), "", {"size": "large"})
    >>> config.get("size").text()
    'large'
    >>> config.get("size").flag()
    Traceback (most recent call last):
    bpe_tokenizer.errors.FormatError: config.json: size: must be true or false, not 'large'
    """

    __slots__ = ("file", "path", "value")

    def __init__(self, file: Path, path: str, value: Any) -> None:
        self.file = file
        self.path = path
        self.value = value

    @property
    def is_null(self) -> bool:
        """Whether the value is null or missing."""
        return self.value is None

    def error(self, problem: str) -> FormatError:
        """Return an error that names the file and the field."""
        path = escaped(self.path, _MAX_PATH)  # a name in it may be any text
        return FormatError(": ".join(filter(None, (str(self.file), path, problem))))

    def refused(self, why: str) -> FormatError:
        """Return an error that names the file, the field and as much of the value as fits."""
        return self.error(f"{self._shown(f' {why}')} {why}")

    def _shown(self, rest: str) -> str:
        """The value, as much of it as a message with the rest has room for."""
        value = _SHORT.repr(self.value)
        room = max(_MAX_MESSAGE - len(str(self.error(rest))), _MIN_VALUE)
        return value if len(value) <= room else f"{value[: room - 4]}...{value[-1]}"

    def get(self, name: str) -> Field:
        """Return a member; null if it is missing."""
        return Field(self.file, f"{self.path}.{name}" if self.path else name, self.members().get(name))

    def need(self, name: str) -> Field:
        """Return a member.

        Raises:
            FormatError: The object has no member of this name.
        """
        if name not in self.members():
            raise self.get(name).error("is missing")
        return self.get(name)

    def members(self) -> dict[str, Any]:
        """Return the object."""
        if isinstance(self.value, dict):
            return self.value
        raise self._wrong("an object")

    def items(self) -> list[Field]:
        """Return the items of the array."""
        return [self.item(index) for index in range(len(self.values()))]

    def item(self, index: int) -> Field:
        """Return one item of the array."""
        return Field(self.file, f"{self.path}[{index}]", self.values()[index])

    def values(self) -> list[Any]:
        """Return the array itself; creating a `Field` for each item of a large array would be slow."""
        if isinstance(self.value, list):
            return self.value
        raise self._wrong("an array")

    def text(self) -> str:
        """Return the string."""
        if isinstance(self.value, str):
            return self.value
        raise self._wrong("a string")

    def one_of(self, names: Sequence[str]) -> Any:
        """Return the string, which is one of these."""
        if self.text() in names:
            return self.value
        raise self.refused(f"must be one of {', '.join(names)}")

    def flag(self, default: bool | None = None) -> bool:
        """Return the boolean, or the default for null."""
        if self.value is None and default is not None:
            return default
        if isinstance(self.value, bool):
            return self.value
        raise self._wrong("true or false")

    def id(self) -> int:
        """Return the id."""
        if type(self.value) is int and 0 <= self.value <= _MAX_ID:
            return self.value
        raise self._wrong(f"an id, an integer from 0 to {_MAX_ID}")

    def _wrong(self, wanted: str) -> FormatError:
        problem = f"must be {wanted}, not "
        return self.error(problem + ("null or missing" if self.value is None else self._shown(problem)))


def read_json(path: Path) -> Field:
    """Read a JSON file whose value is an object.

    Raises:
        FormatError: The file cannot be read, or does not hold a JSON object.
    """
    return parse_json(path, read_bytes(path))


def parse_json(path: Path, data: bytes) -> Field:
    """Parse the bytes of a JSON file whose value is an object.

    Args:
        path: The file's name, for messages.
        data: Its bytes.

    Raises:
        FormatError: The bytes are not UTF-8 or not valid JSON, are nested too deeply, repeat a key in an
            object, or hold a number or a text that cannot be represented.
    """
    text = decode_text(data, path)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique_keys(path),
            parse_constant=lambda name: _not_finite(path, name),
            parse_float=lambda digits: _finite(path, digits),
        )
    except FormatError:
        raise
    except RecursionError as error:
        raise FormatError(f"{path}: is nested too deeply to be a tokenizer file") from error
    except ValueError as error:
        raise FormatError(f"{path}: is not valid JSON: {error}") from error
    if _SURROGATE_ESCAPE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            before = _SHORT.repr(error.object[max(error.start - 20, 0) : error.start])
            raise FormatError(
                f"{path}: holds a lone surrogate, which UTF-8 cannot encode, after {before}"
            ) from error
    field = Field(path, "", value)
    field.members()
    return field


def _unique_keys(path: Path) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            key = counts.most_common(1)[0][0]
            raise FormatError(f"{path}: duplicate key {_SHORT.repr(key)} in an object")
        return members

    return to_dict


def _finite(path: Path, digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _not_finite(path, digits)


def _not_finite(path: Path, name: str) -> NoReturn:
    raise FormatError(f"{path}: holds the number {name}, which is not finite")


def to_bytes(value: Mapping[str, Any], name: str) -> bytes:
    """Return the bytes of a JSON file.

    Args:
        value: An object.
        name: The file or its part, for the message.

    Raises:
        FormatError: The object holds what JSON cannot.
    """
    try:
        return (write_json(value) + "\n").encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"{name}: the model's config cannot be written as JSON: {error}") from error


def write_json(value: Any, indent: str = "") -> str:
    r"""Return a value as JSON, with one line for each object or array that holds no other.

    `json.dumps` with an indent takes seconds for a large vocabulary, and writes six lines for each merge.

    Raises:
        TypeError: JSON has no type for a value.
        ValueError: A number is not finite.

    >>> print(write_json({"a": [1, 2], "b": {"c": [[1, 2], []]}}))
    {
      "a": [1, 2],
      "b": {
        "c": [
          [1, 2],
          []
        ]
      }
    }
    """
    deeper = indent + "  "
    if isinstance(value, dict) and (indent == "" or len(value) > 16 or _is_deep(value.values())):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a key is not a string")
        members = [f"{deeper}{_dumps(key)}: {write_json(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, list | tuple) and _is_deep(value):
        return "[\n" + ",\n".join(deeper + write_json(item, deeper) for item in value) + f"\n{indent}]"
    return _dumps(value)


def _is_deep(items: Iterable[Any]) -> bool:
    return any(isinstance(item, dict | list | tuple) for item in items)


_dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def read_step(field: Field, known: Mapping[str, Step]) -> Step:
    """Read a step of a model that is recorded as an array.

    Args:
        field: The array.
        known: An example of each step that it may be, by type.

    Raises:
        FormatError: It is not one of these steps, or its values have other types.

    >>> from bpe_tokenizer.model import NORMALIZERS
    >>> read_step(Field(Path("tokenizer_config.json"), "normalizers[0]", ["Prepend", "_"]), NORMALIZERS)
    Prepend(type='Prepend', prepend='_')
    """
    kind, *_ = field.values() or [None]
    if not isinstance(kind, str) or kind not in known:
        raise field.refused(f"is not a step; use one of {', '.join(known)}")
    return read_fields(field, known[kind], 1)


def read_fields(field: Field, example: _Fields, checked: int = 0) -> _Fields:
    """Read a named tuple that is recorded as an array.

    Args:
        field: The array.
        example: A named tuple of the same class.
        checked: The values at the beginning that the error does not mention.

    Raises:
        FormatError: Its values have other types than those of the example, or a value is not one that its
            field lists.
    """
    types = [type(value) for value in example]
    if [type(value) for value in field.values()] != types:
        names = " and ".join(kind.__name__ for kind in types[checked:])
        raise field.refused(f"must hold {names or 'nothing else'}")
    for index, name in enumerate(example._fields):
        if known := choices(type(example), name):
            field.item(index).one_of(known)
    return type(example)(*field.values())


def choices(step: type, name: str) -> tuple[str, ...]:
    """Return the values that a field of a named tuple may have; none if its type does not list them.

    >>> from bpe_tokenizer.model import Metaspace
    >>> choices(Metaspace, "prepend_scheme")
    ('always', 'first', 'never')
    """
    hint = get_type_hints(step)[name]
    return get_args(hint) if get_origin(hint) is Literal else ()
