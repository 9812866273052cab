"""The filters of Jinja, with taint tracking.

Most filters keep the provenance of every character. The result of any other, if given content, is content.

Source: https://jinja.palletsprojects.com/en/stable/templates/#list-of-builtin-filters
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

from jinja2.environment import Environment
from jinja2.exceptions import FilterArgumentError
from jinja2.filters import FILTERS, do_truncate, make_attrgetter
from jinja2.utils import pass_environment
from markupsafe import Markup, escape

from bpe_tokenizer.chat.jinja.formatting import percent_format
from bpe_tokenizer.chat.jinja.limits import charge, check_integer, counted
from bpe_tokenizer.chat.jinja.rope import joined
from bpe_tokenizer.chat.jinja.tainted_json import to_json
from bpe_tokenizer.chat.jinja.tainted_str import TaintedStr, as_tainted, concat, merge_provenances
from bpe_tokenizer.chat.jinja.values import TaintedMarkup, demote_markup, provenances_of, taint, to_output

__all__ = ["escaped", "safe", "taint_result", "taint_tracking_filters"]

# These return their input or items of it, and make no text.
_SELECTING = (
    "attr", "batch", "d", "default", "dictsort", "first", "groupby", "items", "last", "list", "map", "max",
    "min", "random", "reject", "rejectattr", "reverse", "select", "selectattr", "slice", "sort", "unique",
)  # fmt: skip
# These convert their input to text and call a method of the string.
_BY_METHODS = ("capitalize", "center", "lower", "trim", "upper")
# These visit their whole input. The sizes of the values of an iterator are not known.
_CONSUMING = frozenset((
    "batch", "dictsort", "groupby", "join", "list", "max", "min", "pprint", "slice", "sort", "string", "sum",
    "tojson", "unique",
))  # fmt: skip
# These visit an item of their input when an item of their result is taken.
_LAZY = frozenset(("map", "reject", "rejectattr", "select", "selectattr"))
# These count; a count is not text, so it is not content.
_COUNTING = ("count", "length", "wordcount")


def taint_tracking_filters() -> dict[str, Callable[..., Any]]:
    """Return all filters of Jinja by name, each with taint tracking."""
    own: dict[str, Callable[..., Any]] = {
        "e": escaped,
        "escape": escaped,
        "forceescape": _force_escape,
        "format": _format,
        "indent": _indent,
        "join": _join,
        "replace": _replace,
        "safe": safe,
        "string": to_output,
        "title": _title,
        "tojson": to_json,
        "truncate": _truncate,
        "wordwrap": _wordwrap,
    }
    kept = {name: FILTERS[name] for name in (*_SELECTING, *_COUNTING)}
    by_methods = {name: _on_output(FILTERS[name]) for name in _BY_METHODS}
    others = {name: _tainting(name, function) for name, function in FILTERS.items()}
    every = others | kept | by_methods | own
    return {name: _limited(name, function) for name, function in every.items()}


def taint_result(result: Any, inputs: Any, what: str) -> Any:
    """Return the result of a function that does not track provenance.

    Args:
        result: The return value of the function.
        inputs: All arguments of the function.
        what: The function, as in "the filter 'urlize'".

    Returns:
        The result unchanged if no input holds content, else tainted as a whole.
    """
    provenances = tuple(provenances_of(inputs))
    if not provenances:
        return result
    return taint(
        result, merge_provenances(provenances, f"{what} was given content, so its result is untrusted")
    )


def _limited(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that is charged before it starts, and takes texts instead of ropes."""
    if name in ("count", "length"):
        # The length of a rope is known.
        return function
    # The first argument of some filters is the context or the environment.
    place = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def filtered(*arguments: Any, **named: Any) -> Any:
        given = [*map(joined, arguments)]
        if isinstance(given[place], Iterator):
            if name in _CONSUMING:
                given[place] = [*counted(given[place])]
            elif name in _LAZY:
                given[place] = counted(given[place])
        named = {key: joined(value) for key, value in named.items()}
        operands = [to_output(each) for each in given[place:]] if name == "replace" else given[place:]
        if name in ("format", "replace"):
            operands[:1] = [to_output(operands[0])]
        charge(name, operands[0], tuple(operands[1:]), named)
        result = function(*given, **named)
        check_integer(result)
        return result

    return filtered


def _tainting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    # `wraps` also copies the attribute that tells Jinja which filters take the context.
    @wraps(function)
    def filtered(*arguments: Any, **named: Any) -> Any:
        result = function(*arguments, **named)
        return taint_result(result, (arguments, named), f"the filter {name!r}")

    return filtered


def _on_output(function: Callable[..., str]) -> Callable[..., str]:
    @wraps(function)
    def filtered(value: Any, *arguments: Any, **named: Any) -> str:
        text: str = function(to_output(value), *arguments, **named)
        return safe(text) if isinstance(value, TaintedMarkup) else text

    return filtered


def _format(value: Any, *arguments: Any, **named: Any) -> str:
    if arguments and named:
        raise FilterArgumentError("can't handle positional and keyword arguments at the same time")
    value = demote_markup(value)
    if isinstance(value, Markup):
        inputs = (value, arguments, named)
        text: str = taint_result(value % (named or arguments), inputs, "the filter 'format'")
        return text
    return percent_format(to_output(value), named or arguments)


@pass_environment
def _join(
    environment: Environment, value: Iterable[Any], d: Any = "", attribute: str | int | None = None
) -> str:
    if attribute is not None:
        value = map(make_attrgetter(environment, attribute), value)
    return as_tainted(to_output(d)).join(map(to_output, value))


def _replace(value: Any, old: Any, new: Any, count: int | None = None) -> str:
    return as_tainted(to_output(value)).replace(
        to_output(old), to_output(new), -1 if count is None else count
    )


def _indent(value: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    indention = width if isinstance(width, str) else " " * width
    # As in Jinja, a final line break starts another line.
    lines: list[str] = [*as_tainted(value + "\n").splitlines()]
    indented = [indention + line if line or blank else line for line in lines[1:]]
    start = indention if first else ""
    text = concat([start, as_tainted("\n").join([*lines[:1], *indented])])
    return safe(text) if isinstance(value, TaintedMarkup) else text


def escaped(value: Any) -> str:
    """Return a value as text that is escaped for HTML; escaped text stays unchanged."""
    return value if isinstance(value, (Markup, TaintedMarkup)) else _force_escape(value)


def _force_escape(value: Any) -> str:
    text = to_output(value)
    if not isinstance(text, TaintedStr):
        return escape(str(text))
    return safe(text.map_runs(lambda part: str(escape(str.__str__(part)))))


def safe(value: Any) -> str:
    """Return a value as text that is marked as escaped for HTML."""
    text = to_output(value)
    return (
        TaintedMarkup.from_runs(text, text.ends, text.provenances)
        if isinstance(text, TaintedStr)
        else Markup(text)
    )


@pass_environment
def _truncate(environment: Environment, value: str, *arguments: Any, **named: Any) -> str:
    result: str = do_truncate(environment, demote_markup(value), *arguments, **named)
    return result


def _title(value: Any) -> str:
    # The case of a letter depends only on the character to its left.
    return as_tainted(to_output(value)).map_runs(FILTERS["title"])


@pass_environment
def _wordwrap(
    environment: Environment,
    value: str,
    width: int = 79,
    break_long_words: bool = True,
    wrapstring: str | None = None,
    break_on_hyphens: bool = True,
) -> str:
    newline = as_tainted(environment.newline_sequence if wrapstring is None else wrapstring)
    wrapper = textwrap.TextWrapper(
        width=width,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=break_long_words,
        break_on_hyphens=break_on_hyphens,
    )
    lines = as_tainted(value).splitlines()
    return newline.join(newline.join(line.locate(wrapper.wrap(str.__str__(line)))) for line in lines)
