"""Checks of arguments that several rooms take: integers, texts, batches, paths, numbers of threads."""

from __future__ import annotations

import operator
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, SupportsIndex, TypeVar, cast

from bpe_tokenizer.errors import ArgumentTypeError, ModelError, OptionError, TokenizerError, shorten

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "TextCollection",
    "check_choice",
    "check_flag",
    "check_integer",
    "check_merges",
    "check_path",
    "check_paths",
    "check_text",
    "check_texts",
    "check_vocab",
    "is_worker",
    "items_in_turn",
    "items_of",
    "processors_for",
    "thread_count",
]

_Item = TypeVar("_Item")
# Longer than any system accepts.
_MAX_PATH = 4096
# Paths that `check_path` returns unchanged.
_PLAIN_PATH = r"(?=.{1,4096}\Z)/?[\w-][\w.-]*(?:/[\w-][\w.-]*)*" if os.sep == "/" else r"(?!)"
# More than any computer runs; a larger number is a mistake.
_MAX_THREADS = 1 << 16

_MAX_ID = 2**32 - 2

_forked = False


class TextCollection(Protocol):
    """A type of a collection of texts. A `str` does not have it: `in` of a `str` takes a `str` only."""

    def __contains__(self, value: object, /) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def __len__(self) -> int: ...


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def check_integer(
    name: str,
    value: object,
    minimum: int | None = None,
    reason: str = "",
    *,
    maximum: int | None = None,
    error: type[TokenizerError] = OptionError,
) -> int:
    """Return an integer argument as an `int`.

    Args:
        name: The argument, for messages.
        value: Anything with `__index__`, but not a bool.
        minimum: The smallest value that is allowed; None for no limit.
        reason: Why, for the message.
        maximum: The largest value that is allowed; None for no limit.
        error: The class of the error for a value out of range.

    Raises:
        ArgumentTypeError: The value is not an integer.
        OptionError: The value is out of range (or `error`).

    >>> check_integer("max_tokens", 0, 1)
    Traceback (most recent call last):
    bpe_tokenizer.errors.OptionError: max_tokens is 0; it must be at least 1
    """
    try:
        number = operator.index(cast("SupportsIndex", value))
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be an int, not {type(value).__name__}")
    if (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
        allowed = f"at least {minimum}" if maximum is None else f"from {minimum} to {maximum:,}"
        because = f": {reason}" if reason else ""
        raise error(f"{name} is {shorten(number)}; it must be {allowed}{because}")
    return number


def check_flag(name: str, value: object) -> bool:
    """Return a yes-or-no argument as a `bool`.

    Args:
        name: The argument, for messages.
        value: A value that is true or false, as in an `if`.

    Raises:
        ArgumentTypeError: It is neither, such as an array, a text or a set.

    >>> check_flag("padding", 1)
    True
    """
    try:
        if not isinstance(value, Collection):
            return bool(value)
    except (TypeError, ValueError):
        pass
    raise ArgumentTypeError(f"{name} must be True or False, not {type(value).__name__}")


def items_of(values: Iterable[_Item]) -> list[_Item]:
    """Return the items of a collection as a list.

    Raises:
        ArgumentTypeError: It has none: it is a number or an array without dimensions.

    >>> items_of({"a": 1})
    ['a']
    """
    return list(items_in_turn(values))


def items_in_turn(values: Iterable[_Item]) -> Iterator[_Item]:
    """Return an iterator over the items of a collection.

    Raises:
        ArgumentTypeError: It has none: it is a number or an array without dimensions.

    >>> items_in_turn(5)
    Traceback (most recent call last):
    bpe_tokenizer.errors.ArgumentTypeError: expected several values, not int
    """
    try:
        return iter(values)
    except TypeError:
        raise ArgumentTypeError(f"expected several values, not {type(values).__name__}") from None


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Check an argument that has a few possible values.

    Raises:
        OptionError: The value is another one.

    >>> check_choice("unit", "word", ("char", "byte"))
    Traceback (most recent call last):
    bpe_tokenizer.errors.OptionError: unit is 'word'; it must be 'char' or 'byte'
    """
    try:
        known = value in choices
    except (TypeError, ValueError):  # an array compares each of its items
        known = False
    if not known:
        *others, last = map(repr, choices)
        raise OptionError(f"{name} is {shorten(value)}; it must be {', '.join(others)} or {last}")


def check_text(method: str, text: object) -> None:
    """Check that an argument is a `str`.

    Raises:
        ArgumentTypeError: It is not.
    """
    if not isinstance(text, str):
        hint = "; encode_bytes() takes bytes" if isinstance(text, bytes | bytearray | memoryview) else ""
        if isinstance(text, list | tuple):
            hint = "; encode_batch() takes several texts"
        raise ArgumentTypeError(f"{method} expects a str, not {type(text).__name__}{hint}")


def check_texts(method: str, texts: Iterable[str]) -> Sequence[str]:
    """Return the texts of a batch as a sequence.

    Raises:
        ArgumentTypeError: It is not an iterable of `str`.
    """
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise ArgumentTypeError(
            f"{method} expects a list of str, not {type(texts).__name__}; encode() takes one str"
        )
    batch = items_of(texts)
    for number, text in enumerate(batch):
        if not isinstance(text, str):
            raise ArgumentTypeError(
                f"{method} expects a list of str, but item {number} is {type(text).__name__}"
            )
    return batch


def check_paths(method: str, paths: object) -> list[str]:
    """Return one path or several as a list of `str`.

    Raises:
        ArgumentTypeError: An item is not a path.
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    if isinstance(several, bytes) or not isinstance(several, Iterable):
        raise ArgumentTypeError(f"{method} expects paths, not {type(paths).__name__}")
    files = items_of(several)
    for number, path in enumerate(files):
        if not isinstance(path, str | os.PathLike):
            raise ArgumentTypeError(f"{method} expects paths, but item {number} is {type(path).__name__}")
    from pathlib import Path

    plain, names = type(Path()), []
    for number, path in enumerate(files):
        name = str(path) if type(path) is plain or type(path) is str else ""
        if not re.fullmatch(
            _PLAIN_PATH, name, re.ASCII
        ):  # nearly all are, and thousands are checked before a thread starts
            name = str(check_path(f"path {number} of {method}", path))
        names.append(name)
    return names


def check_path(name: str, path: object) -> Path:
    r"""Return a path that the operating system can take, whether or not there is such a file.

    Args:
        name: The argument, for messages.
        path: A `str` or a path object.

    Raises:
        ArgumentTypeError: It is neither.
        OptionError: It is empty, or holds a NUL or a surrogate that is no byte.

    >>> check_path("path", "a\0b")
    Traceback (most recent call last):
    bpe_tokenizer.errors.OptionError: path is 'a\x00b'; a path cannot hold a NUL
    """
    if isinstance(path, bytes) or not isinstance(path, str | os.PathLike):
        raise ArgumentTypeError(f"{name} must be a str or a path object, not {type(path).__name__}")
    try:
        text = os.fsdecode(path)
        encoded = os.fsencode(text)
    except TypeError:
        raise ArgumentTypeError(f"{name} must be a str or a path object, not {type(path).__name__}") from None
    except UnicodeError:
        raise OptionError(
            f"{name} is {shorten(path)}; a path cannot hold a lone surrogate, which is no byte"
        ) from None
    if len(encoded) > _MAX_PATH:
        raise OptionError(
            f"{name} has {len(encoded):,} bytes; a path holds at most {_MAX_PATH:,}: {shorten(text)}"
        )
    if b"\0" in encoded:
        raise OptionError(f"{name} is {shorten(text)}; a path cannot hold a NUL")
    if not encoded:
        raise OptionError(f"{name} is empty; write '.' for the current directory")
    from pathlib import Path  # with `urllib`, a tenth of the time of importing this package

    return Path(text)


def thread_count(threads: int | None) -> int:
    """Return a number of threads for the core, which takes 0 for one thread per processor.

    None means 0, but 1 in a worker process: the processes share the processors already.

    Raises:
        ArgumentTypeError: `threads` is not an integer.
        OptionError: `threads` is less than 1 or more than 65,536.
    """
    if type(threads) is int and threads == 1:
        return 1  # the default for a short text, where every check counts
    if threads is None:
        return 1 if is_worker() else 0
    return check_integer("threads", threads, 1, maximum=_MAX_THREADS)


def processors_for(threads: int | None) -> int:
    """Return a number of threads: this one, or one per processor that this process may use.

    Raises:
        ArgumentTypeError, OptionError: As in `thread_count`.
    """
    count = thread_count(threads)
    if not count:
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return count


def check_vocab(vocab: object) -> dict[int, bytes]:
    """Return the bytes of every id as a dict.

    Raises:
        ArgumentTypeError: `vocab` is not a dict, an id is not an int, or a token is not bytes.
        ModelError: An id is out of range.

    >>> check_vocab([])
    Traceback (most recent call last):
    bpe_tokenizer.errors.ArgumentTypeError: vocab must be a dict of ids to bytes, not list
    """
    if not isinstance(vocab, Mapping):
        raise ArgumentTypeError(f"vocab must be a dict of ids to bytes, not {type(vocab).__name__}")
    tokens = dict(vocab)
    # The fast path, for hundreds of thousands of tokens.
    if set(map(type, tokens)) == {int} and set(map(type, tokens.values())) == {bytes}:
        in_range = min(tokens) >= 0 and max(tokens) <= _MAX_ID
        if in_range:
            return tokens
    checked: dict[int, bytes] = {}
    for key, token in tokens.items():
        name = f"the id {shorten(key, 40)} of vocab"
        token_id = check_integer(name, key, 0, maximum=_MAX_ID, error=ModelError)
        checked[token_id] = _check_token(f"the token of id {token_id} in vocab", token)
    return checked


def check_merges(merges: object) -> list[tuple[bytes, bytes]]:
    """Return merges as a list of pairs of bytes.

    Raises:
        ArgumentTypeError: `merges` is not a list of pairs of bytes.

    >>> check_merges([(b"a",)])
    Traceback (most recent call last):
    bpe_tokenizer.errors.ArgumentTypeError: merge 0 must be a pair of bytes, not (b'a',)
    """
    if isinstance(merges, str | bytes | bytearray | memoryview | Mapping) or not isinstance(merges, Iterable):
        raise ArgumentTypeError(f"merges must be a list of pairs of bytes, not {type(merges).__name__}")
    pairs: list[tuple[bytes, bytes]] = []
    for rank, pair in enumerate(items_in_turn(merges)):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ArgumentTypeError(f"merge {rank} must be a pair of bytes, not {shorten(pair)}")
        left, right = pair
        if type(left) is not bytes or type(right) is not bytes:
            left, right = (_check_token(f"a token of merge {rank}", part) for part in pair)
        pairs.append((left, right))
    return pairs


def _check_token(name: str, token: object) -> bytes:
    if isinstance(token, bytes | bytearray | memoryview):
        return bytes(token)
    raise ArgumentTypeError(f"{name} must be bytes, not {type(token).__name__}: {shorten(token)}")


def is_worker() -> bool:
    """Return whether this process is a forked child or a worker of `multiprocessing`.

    >>> is_worker()
    False
    """
    process = sys.modules.get("multiprocessing.process")  # a worker has imported it
    return _forked or (process is not None and process.parent_process() is not None)
