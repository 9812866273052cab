"""Jinja's sandbox with taint tracking: text made from content stays content.

A template makes text in few places: output, `~`, operators, filters, calls and attributes. This module
overrides each of them. Known operations keep the provenance of every character. The result of any other
operation on content is content as a whole.

Source of the dialect: https://huggingface.co/docs/transformers/chat_templating_writing
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import wraps
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import BlockReference, Context, LoopContext, Macro
from jinja2.sandbox import (
    ImmutableSandboxedEnvironment,
    SandboxedEscapeFormatter,
    SandboxedFormatter,
)
from jinja2.tests import TESTS
from jinja2.utils import Cycler, Joiner, Namespace, generate_lorem_ipsum
from markupsafe import Markup

from bpe_tokenizer.chat.jinja.compiler import COUNTED, Compiler
from bpe_tokenizer.chat.jinja.filters import escaped, safe, taint_result, taint_tracking_filters
from bpe_tokenizer.chat.jinja.formatting import brace_format, percent_format
from bpe_tokenizer.chat.jinja.limits import (
    charge,
    charge_format,
    charge_operator,
    check_integer,
    counted,
    spend,
    weigh,
    wrapped,
)
from bpe_tokenizer.chat.jinja.loop_tracing import LoopTracing
from bpe_tokenizer.chat.jinja.rope import TEXTS, Rope, join_texts, joined
from bpe_tokenizer.chat.jinja.tainted_str import TaintedStr, as_tainted, concat
from bpe_tokenizer.chat.jinja.values import (
    CONTAINERS,
    TaintedFloat,
    TaintedInt,
    TaintedObject,
    demote_markup,
    holds_content,
    taint,
    to_output,
)

__all__ = ["Generation", "TaintTrackingEnvironment"]

# The string methods through which `TaintedStr` tracks provenance.
_TRACKED_METHODS = frozenset((
    "capitalize", "casefold", "center", "expandtabs", "join", "ljust", "lower", "lstrip", "partition",
    "removeprefix", "removesuffix", "replace", "rjust", "rpartition", "rsplit", "rstrip", "split",
    "splitlines", "strip", "swapcase", "title", "upper", "zfill",
))  # fmt: skip


class TemplateDict:
    """`dict` for templates. An object, because a class would expose its attributes."""

    def __call__(self, *arguments: Any, **named: Any) -> dict[Any, Any]:
        """Make a dict."""
        return dict(*arguments, **named)

    def fromkeys(self, *arguments: Any) -> dict[Any, Any]:
        """Make a dict of the same value for every key."""
        return dict.fromkeys(*arguments)


class TemplateNamespace(Namespace):
    """`namespace` for templates. It rejects private names."""

    def __init__(*arguments: Any, **named: Any) -> None:
        self, given = arguments[0], arguments[1:]
        attributes = dict(*given, **named)
        for name in attributes:
            _reject_private(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _reject_private(name)
        super().__setitem__(name, value)


def _reject_private(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace of a template cannot hold the private name {name!r}")


class _LimitedFields:
    """Charges for the fields of `str.format`."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        charge_format(value, format_spec)
        return super().format_field(value, format_spec)  # type: ignore[misc]


class _LimitedFormatter(_LimitedFields, SandboxedFormatter):
    pass


class _LimitedEscapeFormatter(_LimitedFields, SandboxedEscapeFormatter):
    pass


class StringMethod:
    """A bound method of a string in a template.

    Args:
        environment: Decides which attributes `format` may read.
        text: The string.
        name: The method's name.
    """

    def __init__(self, environment: TaintTrackingEnvironment, text: str, name: str) -> None:
        self._environment, self._text, self._name = environment, text, name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it."""
        text, name = self._text, self._name
        if name == "format":
            return brace_format(text, arguments, named, _LimitedFormatter(self._environment))
        if name == "format_map":
            (mapping,) = arguments
            return brace_format(text, (), mapping, _LimitedFormatter(self._environment), **named)
        if name == "join" and len(arguments) == 1:
            arguments = ([*counted(arguments[0])],)
        charge(name, text, arguments, named)
        given_content = holds_content((arguments, named))
        if name in _TRACKED_METHODS or (name == "translate" and not given_content):
            if given_content or isinstance(text, TaintedStr):
                return getattr(as_tainted(text), name)(*arguments, **named)
            return getattr(text, name)(*arguments, **named)
        result = getattr(text, name)(*arguments, **named)
        if isinstance(result, int):
            # A position or a count is not text, so it is not content.
            return result
        return taint_result(result, (text, arguments, named), f"the method {name}() of a string")


# Callables that return their arguments, or text that was rendered with tracking: by type, by identity, and
# methods by the type of their object.
_TRACKED_CALLABLES = (Macro, BlockReference, LoopContext, Joiner, TemplateDict, StringMethod, TaintedObject)
_TRACKED_CLASSES = (Cycler, Joiner, TemplateNamespace)
_TRACKED_OWNERS = (*CONTAINERS, range, LoopContext, Cycler, TemplateDict, Extension)


class Generation(Extension):
    """`{% generation %}…{% endgeneration %}` marks its text as the assistant's."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        """Parse a block."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_generated"), [], [], body).set_lineno(line)

    def _generated(self, caller: Callable[[], str]) -> str:
        text = as_tainted(caller())
        marked = [provenance._replace(generated=True) for provenance in text.provenances]
        return TaintedStr.from_runs(text, text.ends, marked)


class TaintTrackingEnvironment(ImmutableSandboxedEnvironment):
    """Compiles templates in Hugging Face's dialect to code that tracks content."""

    code_generator_class = Compiler
    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)
    intercepted_unops = frozenset(ImmutableSandboxedEnvironment.default_unop_table)
    concat = staticmethod(concat)
    counted = staticmethod(counted)
    joined = staticmethod(joined)
    spend = staticmethod(spend)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[Generation, LoopTracing, loopcontrols],
            finalize=to_output,
            optimized=False,
        )
        self.filters = {**taint_tracking_filters(), COUNTED: counted}
        tests: Mapping[str, Any] = TESTS
        self.tests = {name: _limited_test(name, test) for name, test in tests.items()}
        self.globals |= {
            "lipsum": lipsum,
            "dict": TemplateDict(),
            "namespace": TemplateNamespace,
            "raise_exception": raise_exception,
            "strftime_now": strftime_now,
        }

    def concat_outputs(self, operands: Iterable[Any]) -> str | Rope:
        """Return `a ~ b`."""
        text: str | Rope = ""
        for operand in operands:
            text = join_texts(text, operand if type(operand) in TEXTS else to_output(operand))
        return text

    def compared(self, value: Any) -> Any:
        """Return a value that is compared, searched, or hashed."""
        if isinstance(value, (str, bytes)):
            spend(0, len(value) / 16)
        elif isinstance(value, Rope):
            return value.joined()
        elif value is not None and not isinstance(value, (bool, int, float)):
            weigh(value)
        return value

    def sliced(self, value: Any, start: Any, stop: Any, step: Any) -> Any:
        """Return `value[start:stop:step]`."""
        part = slice(start, stop, step)
        value = joined(value)
        try:
            size = len(range(*part.indices(len(value))))
        except TypeError:
            size = 1  # not a container; Python says so
        if isinstance(value, TaintedStr) and step not in (None, 1) and len(value.provenances) > 1:
            spend(size, 60 * size)
        else:
            spend(1, size if isinstance(value, str) else 2 * size)
        return value[part]

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Return `left operator right`."""
        if operator == "+" and type(left) in TEXTS and type(right) in TEXTS:
            return join_texts(left, right)
        left, right = joined(left), joined(right)
        if operator == "-" and isinstance(right, Iterator):
            right = [*counted(right)]
        charge_operator(operator, left, right)
        if operator == "+" and _is_html(left, right):
            return safe(concat(map(escaped, (left, right))))
        left, right = demote_markup(left), demote_markup(right)
        if isinstance(left, str) and not isinstance(left, Markup) and not isinstance(right, Markup):
            if operator == "%":
                return percent_format(left, right)
            if operator in "+*":
                return super().call_binop(context, operator, left, right)
        # Python calls the left operand first. A plain one leaves the operation to Markup, which escapes it.
        plain = str.__str__(left) if isinstance(left, TaintedStr) else _unwrap(left)
        result = super().call_binop(context, operator, plain, _unwrap(right))
        if isinstance(result, (list, tuple)):
            return result
        return taint_result(result, (left, right), f"the operator {operator}")

    def call_unop(self, context: Context, operator: str, arg: Any) -> Any:
        """Return `operator arg`."""
        arg = joined(arg)
        check_integer(arg)
        return taint_result(super().call_unop(context, operator, arg), arg, f"the operator {operator}")

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Return `obj(*args, **kwargs)`."""
        if isinstance(__obj, Macro):
            spend(10 + len(args) + len(kwargs))
            return super().call(__context, __obj, *args, **kwargs)
        if isinstance(getattr(__obj, "__self__", None), Extension):
            # The tags of the dialect, not of the template; they take ropes.
            spend(2)
            return super().call(__context, __obj, *args, **kwargs)
        args = tuple(map(joined, args))
        kwargs = {name: joined(value) for name, value in kwargs.items()}
        if _consumes(__obj):
            args = tuple([*counted(value)] if isinstance(value, Iterator) else value for value in args)
        if isinstance(__obj, (StringMethod, BlockReference)) or __obj in _TRACKED_CLASSES:
            spend(5 + len(args) + len(kwargs))
        else:
            _charge_call(__obj, args, kwargs)
        result = super().call(__context, __obj, *args, **kwargs)
        check_integer(result)
        owner = getattr(__obj, "__self__", None)
        is_tracked = isinstance(__obj, _TRACKED_CALLABLES) or isinstance(owner, _TRACKED_OWNERS)
        if is_tracked or __obj in _TRACKED_CLASSES:
            return result
        name = getattr(__obj, "__name__", type(__obj).__name__)
        return taint_result(result, (owner, args, kwargs), f"the function {name}()")

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return `obj.attribute`."""
        if type(obj) is Rope:
            obj = obj.joined()
        obj = demote_markup(obj)
        if isinstance(obj, str):
            return self._plain_attribute(Markup if isinstance(obj, Markup) else str, obj, attribute)
        if isinstance(obj, (TaintedInt, TaintedFloat)):
            kind = int if isinstance(obj, int) else float
            return taint(self._plain_attribute(kind, obj, attribute), obj.provenance)
        if isinstance(obj, TaintedObject):
            return taint(super().getattr(obj._value, attribute), obj._provenance)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return `obj[argument]`."""
        if type(obj) is Rope:
            obj = obj.joined()
        if type(argument) is not str and type(argument) is not int:
            argument = self.compared(argument)
        if isinstance(obj, TaintedObject):
            return taint(super().getitem(obj._value, argument), obj._provenance)
        if isinstance(argument, str) and isinstance(obj, (str, TaintedInt, TaintedFloat)):
            return self.getattr(obj, argument)
        return super().getitem(obj, argument)

    def _plain_attribute(self, kind: type, obj: Any, attribute: str) -> Any:
        """Return an attribute of the plain class; attributes that a tainted class adds are undefined."""
        if not hasattr(kind, attribute):
            return self.undefined(obj=kind(), name=attribute)  # the message names the plain class
        value = super().getattr(obj, attribute)
        if kind is str and self.is_safe_attribute(obj, attribute, value):
            return StringMethod(self, obj, attribute)
        return value

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return a method `format` of escaped text with limits; None for other values."""
        owner = getattr(value, "__self__", None)
        name = getattr(value, "__name__", "")
        if not isinstance(owner, Markup) or name not in ("format", "format_map"):
            return super().wrap_str_format(value)
        formatter = _LimitedEscapeFormatter(self, escape=owner.escape)

        def limited(*arguments: Any, **named: Any) -> str:
            if name == "format":
                return type(owner)(formatter.vformat(owner, arguments, named))
            (mapping,) = arguments
            return type(owner)(formatter.vformat(owner, (), mapping))

        limited.__name__ = name
        return limited


# Tests that only look at the type or the identity of a value.
_CHEAP_TESTS = frozenset((
    "boolean", "callable", "defined", "false", "float", "integer", "mapping", "none", "number", "sameas",
    "true", "undefined",
))  # fmt: skip


def _limited_test(name: str, test: Callable[..., Any]) -> Callable[..., Any]:
    """Return a test that charges for its values."""
    if name in _CHEAP_TESTS:
        return test
    if name in ("iterable", "sequence"):
        return lambda value: test(joined(value))
    if name == "string":
        return lambda value: isinstance(value, (str, Rope))

    @wraps(test)
    def limited(*values: Any) -> Any:
        values = tuple(map(joined, values))
        spend(2)
        if name in ("divisibleby", "even", "odd"):
            # They are `value % number`, also of a text.
            charge_operator("%", values[0], values[1] if name == "divisibleby" else 2)
        for value in values:
            check_integer(value)
            if isinstance(value, str):
                spend(1, len(value) / 4)
            elif not isinstance(value, (bool, int, float, type(None))):
                weigh(value)
        return test(*values)

    return limited


def lipsum(n: int = 5, html: bool = True, min: int = 20, max: int = 100) -> str:  # noqa: A002
    words = n * (100 + max)
    spend(2 * words if words > 0 else 1, 0)
    return generate_lorem_ipsum(n, html, min, max)


def _charge_call(function: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    function = wrapped(function)
    owner = getattr(function, "__self__", None)
    is_plain = isinstance(owner, (str, bytes, int, float, *CONTAINERS, range))
    charge(
        getattr(function, "__name__", "") if is_plain else "", owner if is_plain else None, arguments, named
    )


def _consumes(function: Any) -> bool:
    """Whether a function visits all items of its arguments, and keeps them."""
    function = wrapped(function)
    owner = getattr(function, "__self__", function)
    is_join = isinstance(owner, (str, bytes)) and getattr(function, "__name__", "") == "join"
    return is_join or isinstance(owner, TemplateDict)


def _is_html(*texts: Any) -> bool:
    """Whether all are texts and one is marked as HTML, so that the others have to be escaped."""
    return all(isinstance(text, str) for text in texts) and any(hasattr(text, "__html__") for text in texts)


def _unwrap(value: Any) -> Any:
    return value._value if isinstance(value, TaintedObject) else value


def raise_exception(message: Any) -> None:
    raise TemplateError(to_output(message))


def strftime_now(form: str) -> str:
    # The C library pads numbers to any width.
    if len(form) > 200 or any(int(number[:9]) > 100 for number in re.findall(r"[0-9]+", form)):
        raise TemplateError("the format of strftime_now() is too long")
    return datetime.now().strftime(form)
