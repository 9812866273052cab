"""The limits of rendering a template, because a template is untrusted code that comes with a model's files.

Rounds of loops and macros, and characters that operations read or write, are limited in proportion to the
input. Integers and the depth of nested values have fixed limits, and Python's recursion limit holds. An
operation is charged before it starts: for its operands, and for what it may write more than once.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Sized, ValuesView
from contextlib import contextmanager
from typing import Any

from jinja2.utils import Namespace

from bpe_tokenizer.chat.template_budget import scaled
from bpe_tokenizer.errors import ChatTemplateError

__all__ = [
    "MAX_SOURCE",
    "charge",
    "charge_format",
    "charge_operator",
    "check_integer",
    "counted",
    "limited",
    "over_limit",
    "spend",
    "weigh",
    "wrapped",
]

# Without any input, a rendering may do this much: about two seconds, and 250 MB at most. Each value in the
# input (a message has about five, with its keys) and each of its characters adds to it: templates read a
# content several times, and a few compare each message with each other one.
_ROUNDS, _ROUNDS_PER_VALUE, _ROUNDS_PER_CHARACTER = 1_000_000, 300, 4
_CHARACTERS, _CHARACTERS_PER_VALUE, _CHARACTERS_PER_CHARACTER = 64_000_000, 600, 64
# The longest published template has 50,000 characters. Compiling takes 2 KB for each.
MAX_SOURCE = 400_000
# Hashing a tuple recurs in C without a check of the stack.
_MAX_DEPTH = 200
# Python multiplies and divides in quadratic time.
_MAX_BITS = 4096
# Python's hash of an integer is the integer modulo this number: many with one hash make a dict quadratic.
_HASH_MODULUS = 2**61 - 1
_HOLDERS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)
# Python makes an object of each part of a text, with its provenance.
_PART = 60
_WIDTHS = re.compile(r"%(?:\(\w*\))?[-#0 +]*(\d*)(?:\.(\d*))?")
_NUMBERS = re.compile(r"\d+")
_LINE_ENDS, _SPACES = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " \t\n\r\xa0\u3000"


class _Left:
    __slots__ = ("characters", "rounds")

    def __init__(self, rounds: float = math.inf, characters: float = math.inf) -> None:
        self.rounds, self.characters = rounds, characters


class _State(threading.local):
    """What is left for the rendering that runs in this thread; infinite outside of one."""

    left = _Left()


_STATE = _State()


@contextmanager
def limited(values: Mapping[str, Any], source: str) -> Iterator[None]:
    """Limit what is rendered inside the block, in proportion to an input.

    Args:
        values: The context of the template.
        source: The source of the template.
    """
    previous = _STATE.left
    _STATE.left = _Left()
    nodes, characters, _ = weigh(values)
    characters += len(source)
    _STATE.left = _Left(
        scaled(_ROUNDS + _ROUNDS_PER_VALUE * nodes + _ROUNDS_PER_CHARACTER * characters),
        scaled(_CHARACTERS + _CHARACTERS_PER_VALUE * nodes + _CHARACTERS_PER_CHARACTER * characters),
    )
    try:
        yield
    finally:
        _STATE.left = previous


def spend(rounds: float, characters: float = 0) -> None:
    """Charge for what is about to start; outside of a rendering, do nothing.

    Raises:
        ChatTemplateError: A limit is exceeded.
    """
    left = _STATE.left
    left.rounds -= rounds
    left.characters -= characters
    if left.rounds < 0 or left.characters < 0:
        raise over_limit("does or writes too much for its input")


def over_limit(what: str) -> ChatTemplateError:
    """Return the error for a template that wants too much.

    Args:
        what: What the template does.
    """
    return ChatTemplateError(
        f"{what}: it exceeds the limits of a rendering. If you trust the template, pass template_budget=10 "
        "for ten times as much"
    )


def weigh(value: Any) -> tuple[int, int, int]:
    """Charge for a visit of all values in a value, at every depth, as often as they occur.

    Printing, comparing and hashing do that. A list that holds another twice, which holds another twice, is
    small in memory, but takes exponential time.

    Returns:
        The number of values, of characters and of levels.

    Raises:
        ChatTemplateError: A limit is exceeded, or the value is nested too deeply.
    """
    nodes = characters = depth = large = 0
    level: list[Any] = [value]
    while level:
        following: list[Any] = []
        for item in level:
            if isinstance(item, (str, bytes)):
                characters += len(item)
            elif isinstance(item, dict):
                spend(len(item), 4 * len(item))
                following += item
                following += item.values()
            elif isinstance(item, _HOLDERS):
                spend(len(item) / 2, 2 * len(item))
                following += item
            elif isinstance(item, int):
                large += abs(item) >= _HASH_MODULUS
            elif isinstance(item, range):
                spend(len(item) / 2)
                large += len(item) if max(abs(item.start), abs(item.stop)) >= _HASH_MODULUS else 0
            elif isinstance(item, Namespace):
                # A namespace may hold itself. Then the depth ends this.
                spend(5)
                following += object.__getattribute__(item, "_Namespace__attrs").values()
            elif (inner := wrapped(item)) is not item:
                following.append(inner)
        spend(1, characters / 16 + large * large / 8)
        nodes += len(level)
        level = following
        depth += 1
        if depth > _MAX_DEPTH:
            raise ChatTemplateError(f"builds a value that is nested more than {_MAX_DEPTH} levels deep")
    return nodes, characters, depth


def wrapped(value: Any) -> Any:
    """Return the object in a `TaintedObject`, and other values unchanged."""
    return getattr(value, "__dict__", {}).get("_value", value)


def counted(items: Iterable[Any]) -> Iterator[Any]:
    """Iterate over items, each of which is a round."""
    for item in items:
        spend(1)
        yield item


def check_integer(value: Any) -> None:
    """Reject an integer with very many digits."""
    if isinstance(value, int) and value.bit_length() > scaled(_MAX_BITS):
        raise over_limit("calculates with very long integers")


def charge_operator(operator: str, left: Any, right: Any) -> None:
    """Charge for `left operator right`."""
    spend(1)
    if isinstance(left, int) and isinstance(right, int):
        check_integer(left)
        check_integer(right)
        bits = left.bit_length() + right.bit_length()
        if operator == "**" and right > 0 and left not in (-1, 0, 1):
            bits = left.bit_length() * right
        if operator in ("*", "**") and bits > scaled(_MAX_BITS):
            raise over_limit("calculates with very long integers")
        return
    left, right = wrapped(left), wrapped(right)
    if operator == "*":
        times, repeated = (left, right) if isinstance(left, int) else (right, left)
        size = max(times, 0) * _length(repeated) if isinstance(times, int) else 0
        spend(0, 2 * size if isinstance(repeated, (str, bytes)) else 10 * size)
    elif operator == "%" and isinstance(left, (str, bytes)):
        charge("format", left, right if isinstance(right, tuple) else (right,), {})
    else:
        spend(0, 2 * (_length(left) + _length(right)))
        if operator == "-":
            # The difference of the keys of a dict hashes all items.
            weigh((left, right))


def charge_format(value: Any, form: str) -> None:
    """Charge for a field of `str.format`, whose form is complete."""
    spend(1, _size(value) + sum(int(number[:12]) for number in _NUMBERS.findall(form)))


# These only look up, or return items of their input.
_CHEAP = frozenset((
    "attr", "d", "default", "first", "get", "items", "keys", "last", "random", "values",
))  # fmt: skip
# These print, compare or hash the items of their input; others read a text, or copy a list.
_DEEP = frozenset((
    "count", "dictsort", "groupby", "index", "join", "max", "min", "pprint", "sort", "string", "sum",
    "tojson", "unique", "urlencode", "urlize", "xmlattr",
))  # fmt: skip
# The integers among their arguments are numbers of characters, or of items, for each line.
_PADDING = frozenset((
    "batch", "center", "expandtabs", "indent", "ljust", "rjust", "slice", "to_bytes", "tojson", "zfill",
))  # fmt: skip
_READING = frozenset(("count", "endswith", "find", "index", "startswith"))
# These search each place for all of their argument.
_SEARCHING = frozenset((
    "lstrip", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "strip", "trim",
))  # fmt: skip
_SPLITTING = frozenset(("indent", "list", "reverse", "rsplit", "split", "splitlines", "wordwrap"))
# These may write their arguments at each place.
_EVERYWHERE = frozenset(("maketrans", "translate", "urlize", "wordwrap"))
_QUADRATIC = frozenset(("int", "striptags", "urlize", "wordwrap"))
_CODECS = frozenset(("ascii", "cp1252", "iso88591", "latin1", "utf16", "utf32", "utf8", "utf8sig"))


def charge(name: str, value: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Charge for a filter, a method or a function: for its operands, and for the most that it may write.

    Args:
        name: Its name.
        value: The value that is filtered, or that the method belongs to; None for a function.
        arguments: The other arguments.
        named: Those with names.
    """
    spend(2 + len(arguments) + len(named))
    given = (*arguments, *named.values())
    for each in (value, *given):
        check_integer(each)
    read = sum(map(_size, given))
    spend(0, read)
    if name in _CHEAP:
        return
    size = _size(value) if name in _DEEP else _length(value)
    # Rewriting a text visits each of its runs.
    runs = len(getattr(value, "ends", ())) if isinstance(value, str) else 0
    spend(runs, size / 16 if name in _READING else 4 * size)
    if name in _QUADRATIC:
        spend(0, size * size / 256)
    if name in _SEARCHING:
        spend(0, size * read / 16)
    if name in _SPLITTING and isinstance(value, (str, bytes)):
        spend(0, _PART * _parts(name, value, given))
    spend(0, _written(name, value, given, size, read, bool(named)))


def _written(name: str, value: Any, given: tuple[Any, ...], size: int, read: int, is_named: bool) -> float:
    """Return how much an operation may write of its arguments."""
    integers = [each for each in given if isinstance(each, int)]
    text = value if isinstance(value, (str, bytes)) else ""
    if name in _EVERYWHERE:
        return (size + 1) * read
    if name == "join":
        items, separator = (given[0] if given else (), value) if text else (value, given[0] if given else "")
        return _length(items) * (1 + _length(separator))
    if name == "replace":
        old, new = (*given, "", "")[:2]
        fits = not is_named and isinstance(old, str if isinstance(text, str) else bytes)
        return (text.count(old) if fits else size + 1) * (_PART / 2 + (_length(new) if fits else read))
    if name == "format":
        form = text.decode("latin-1") if isinstance(text, bytes) else str.__str__(text)
        widths = sum(int(number[:12]) for pair in _WIDTHS.findall(form) for number in pair if number)
        return widths + form.count("%") * (read + 10) + form.count("*") * sum(map(abs, integers))
    if name in ("encode", "decode") and given:
        is_known = re.sub(r"[-_ ]", "", str(given[0]).lower()) in _CODECS
        # Handlers of errors write the name of a character, of up to 100 characters.
        return size * (100 if is_known else size)
    if name == "round":
        places = max(map(abs, integers), default=0)
        if places > _MAX_BITS // 4:
            raise over_limit("calculates with very long integers")
        # `round(2, "floor")` multiplies anything, also a text, by 100.
        return float(size * 10 ** min(places, 9))
    if name == "pprint":
        # Each container is printed at each depth.
        nodes, characters, depth = weigh(value)
        spend(nodes * depth)
        return depth * characters
    if name == "sum":
        # Each step copies a sum of lists.
        return size * _length(value) if any(isinstance(each, (list, tuple)) for each in given) else 0
    if name not in _PADDING:
        return 0
    padding = read + sum(max(each, 0) for each in integers)
    if name in ("batch", "slice"):
        return _PART * padding
    if name == "tojson":
        nodes, _, depth = weigh(value)
        return nodes * (read + depth * padding)
    return (1 + _found(text, _LINE_ENDS + "\t")) * padding


def _parts(name: str, text: str | bytes, given: tuple[Any, ...]) -> int:
    """Return about how many parts a text is split into."""
    if name in ("list", "reverse"):
        return len(text)
    if name in ("indent", "splitlines", "wordwrap"):
        return 1 + _found(text, _LINE_ENDS)
    separator = given[0] if given else None
    if (
        separator
        and isinstance(separator, (str, bytes))
        and isinstance(separator, str) == isinstance(text, str)
    ):
        return 1 + text.count(separator)  # type: ignore[arg-type]
    return 1 + _found(text, _SPACES) + len(text) // 16


def _found(text: str | bytes, characters: str) -> int:
    return sum(map(text.count, characters)) if isinstance(text, str) else len(text)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, Sized) else 0


def _size(value: Any) -> int:
    """Return about how many characters a value has when it is printed; charge for a visit of its items."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if value is None or isinstance(value, (bool, int, float)):
        return 10
    nodes, characters, _ = weigh(value)
    return 10 * nodes + characters
