"""The filters of Jinja, with provenance.

Most are known to carry it on; what any other makes of content is untrusted, as a whole.

Source: https://jinja.palletsprojects.com/en/stable/templates/#list-of-builtin-filters
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from jinja2.environment import Environment
from jinja2.exceptions import FilterArgumentError
from jinja2.filters import FILTERS, do_truncate, make_attrgetter
from jinja2.utils import pass_environment
from markupsafe import Markup, escape

from bpe_tokenizer.chat.formatting import percent_format
from bpe_tokenizer.chat.tracked import Tracked, concat, merge_tags, tracked
from bpe_tokenizer.chat.tracked_json import to_json
from bpe_tokenizer.chat.values import TrackedMarkup, as_content, printed, tags_of, unmixed

__all__ = ["escaped", "followed", "safe", "tracking_filters"]

# These return what they were given, or items of it, and make no text.
_SELECTING = (
    "attr", "batch", "d", "default", "dictsort", "first", "groupby", "items", "last", "list", "map", "max",
    "min", "random", "reject", "rejectattr", "reverse", "select", "selectattr", "slice", "sort", "unique",
)  # fmt: skip
# These print what they are given and call a method of the string.
_BY_METHODS = ("capitalize", "center", "lower", "trim", "upper")
# These count, and a count is nobody's text.
_COUNTING = ("count", "length", "wordcount")


def tracking_filters() -> dict[str, Callable[..., Any]]:
    """Return all filters of Jinja by their names, each so that its result knows what of it is content."""
    own: dict[str, Callable[..., Any]] = {
        "e": escaped,
        "escape": escaped,
        "forceescape": _force_escape,
        "format": _format,
        "indent": _indent,
        "join": _join,
        "replace": _replace,
        "safe": safe,
        "string": printed,
        "title": _title,
        "tojson": to_json,
        "truncate": _truncate,
        "wordwrap": _wordwrap,
    }
    kept = {name: FILTERS[name] for name in (*_SELECTING, *_COUNTING)}
    printing = {name: _printing(FILTERS[name]) for name in _BY_METHODS}
    others = {name: _untracked(name, function) for name, function in FILTERS.items()}
    return others | kept | printing | own


def followed(result: Any, inputs: Any, what: str) -> Any:
    """Return the result of a function that is not known to carry provenance on.

    Args:
        result: What it returned.
        inputs: All that it was given.
        what: The function, as in "the filter 'urlize'".

    Returns:
        The result as it is if no input holds content; otherwise as content, whole.
    """
    tags = tuple(tags_of(inputs))
    if not tags:
        return result
    return as_content(result, merge_tags(tags, f"{what} was given content, and what it returns is untrusted"))


def _untracked(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    # `wraps` also copies the mark by which Jinja knows filters that want the context.
    @wraps(function)
    def filtered(*arguments: Any, **named: Any) -> Any:
        result = function(*arguments, **named)
        return followed(result, (arguments, named), f"the filter {name!r}")

    return filtered


def _printing(function: Callable[..., str]) -> Callable[..., str]:
    @wraps(function)
    def filtered(value: Any, *arguments: Any, **named: Any) -> str:
        text: str = function(printed(value), *arguments, **named)
        return safe(text) if isinstance(value, TrackedMarkup) else text

    return filtered


def _format(value: Any, *arguments: Any, **named: Any) -> str:
    if arguments and named:
        raise FilterArgumentError("can't handle positional and keyword arguments at the same time")
    value = unmixed(value)
    if isinstance(value, Markup):
        inputs = (value, arguments, named)
        text: str = followed(value % (named or arguments), inputs, "the filter 'format'")
        return text
    return percent_format(printed(value), named or arguments)


@pass_environment
def _join(
    environment: Environment, value: Iterable[Any], d: Any = "", attribute: str | int | None = None
) -> str:
    if attribute is not None:
        value = map(make_attrgetter(environment, attribute), value)
    return tracked(printed(d)).join(map(printed, value))


def _replace(value: Any, old: Any, new: Any, count: int | None = None) -> str:
    return tracked(printed(value)).replace(printed(old), printed(new), -1 if count is None else count)


def _indent(value: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    indention = width if isinstance(width, str) else " " * width
    # As Jinja: a last line break counts for a line.
    lines: list[str] = [*tracked(value + "\n").splitlines()]
    indented = [indention + line if line or blank else line for line in lines[1:]]
    start = indention if first else ""
    text = concat([start, tracked("\n").join([*lines[:1], *indented])])
    return safe(text) if isinstance(value, TrackedMarkup) else text


def escaped(value: Any) -> str:
    """Return a value as text that is escaped for HTML; what is already stays as it is."""
    return value if isinstance(value, (Markup, TrackedMarkup)) else _force_escape(value)


def _force_escape(value: Any) -> str:
    text = printed(value)
    if not isinstance(text, Tracked):
        return escape(str(text))
    return safe(text.rewritten(lambda part: str(escape(str.__str__(part)))))


def safe(value: Any) -> str:
    """Return a value as text that counts as escaped for HTML."""
    text = printed(value)
    return TrackedMarkup.of_runs(text, text.ends, text.tags) if isinstance(text, Tracked) else Markup(text)


@pass_environment
def _truncate(environment: Environment, value: str, *arguments: Any, **named: Any) -> str:
    result: str = do_truncate(environment, unmixed(value), *arguments, **named)
    return result


def _title(value: Any) -> str:
    # A letter becomes large or small by what stands before it, so that this works from left to right.
    return tracked(printed(value)).rewritten(FILTERS["title"])


@pass_environment
def _wordwrap(
    environment: Environment,
    value: str,
    width: int = 79,
    break_long_words: bool = True,
    wrapstring: str | None = None,
    break_on_hyphens: bool = True,
) -> str:
    newline = tracked(environment.newline_sequence if wrapstring is None else wrapstring)
    wrapper = textwrap.TextWrapper(
        width=width,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=break_long_words,
        break_on_hyphens=break_on_hyphens,
    )
    lines = tracked(value).splitlines()
    return newline.join(newline.join(line.found(wrapper.wrap(str.__str__(line)))) for line in lines)
