"""Jinja's sandbox with provenance: whatever a template does with content, the result is known as content.

Text comes into being in few places: output, `~`, operators, filters, calls, attributes. Each of them is taken
over here. Those that are known carry over who wrote which character; the result of any other, if it was given
content, is content as a whole.

Source of the dialect: https://huggingface.co/docs/transformers/chat_templating_writing
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import BlockReference, Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter
from jinja2.utils import Cycler, Joiner, Namespace
from markupsafe import Markup

from bpe_tokenizer.chat.filters import escaped, followed, safe, tracking_filters
from bpe_tokenizer.chat.formatting import brace_format, percent_format
from bpe_tokenizer.chat.tracked import Tracked, concat, tracked
from bpe_tokenizer.chat.values import (
    CONTAINERS,
    Opaque,
    TrackedFloat,
    TrackedInt,
    as_content,
    holds_content,
    printed,
    unmixed,
)

__all__ = ["Generation", "TrackingEnvironment"]

# The methods of strings that `Tracked` carries provenance through.
_METHODS = frozenset((
    "capitalize", "casefold", "center", "expandtabs", "join", "ljust", "lower", "lstrip", "partition",
    "removeprefix", "removesuffix", "replace", "rjust", "rpartition", "rsplit", "rstrip", "split",
    "splitlines", "strip", "swapcase", "title", "upper", "zfill",
))  # fmt: skip


class TemplateDict:
    """`dict` for templates, without the attributes of a class."""

    def __call__(self, *arguments: Any, **named: Any) -> dict[Any, Any]:
        """Make a dict."""
        return dict(*arguments, **named)

    def fromkeys(self, *arguments: Any) -> dict[Any, Any]:
        """Make a dict of the same value for every key."""
        return dict.fromkeys(*arguments)


class TemplateNamespace(Namespace):
    """`namespace` for templates, which holds no private names."""

    def __init__(*arguments: Any, **named: Any) -> None:
        self, given = arguments[0], arguments[1:]
        attributes = dict(*given, **named)
        for name in attributes:
            _refuse_private(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_private(name)
        super().__setitem__(name, value)


def _refuse_private(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace of a template cannot hold the private name {name!r}")


class StringMethod:
    """A method of a string in a template.

    Args:
        environment: Says which attributes `format` may look at.
        text: The string.
        name: The method's name.
    """

    def __init__(self, environment: TrackingEnvironment, text: str, name: str) -> None:
        self._environment, self._text, self._name = environment, text, name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it."""
        text, name = self._text, self._name
        if name == "format":
            return brace_format(text, arguments, named, SandboxedFormatter(self._environment))
        if name == "format_map":
            (mapping,) = arguments
            return brace_format(text, (), mapping, SandboxedFormatter(self._environment), **named)
        given_content = holds_content((arguments, named))
        if name in _METHODS or (name == "translate" and not given_content):
            if given_content or isinstance(text, Tracked):
                return getattr(tracked(text), name)(*arguments, **named)
            return getattr(text, name)(*arguments, **named)
        result = getattr(text, name)(*arguments, **named)
        if isinstance(result, int):
            # A position or a count is nobody's text.
            return result
        return followed(result, (text, arguments, named), f"the method {name}() of a string")


# What these return are values that they were given, or text that they made by rendering.
_PASSING = (Macro, BlockReference, LoopContext, Joiner, TemplateDict, StringMethod, Opaque)
_PASSING_CLASSES = (Cycler, Joiner, TemplateNamespace)
_PASSING_OWNERS = (*CONTAINERS, range, LoopContext, Cycler, TemplateDict, Extension)


class Generation(Extension):
    """`{% generation %}…{% endgeneration %}`: what stands in it is the assistant's."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        """Parse a block."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_generated"), [], [], body).set_lineno(line)

    def _generated(self, caller: Callable[[], str]) -> str:
        text = tracked(caller())
        return Tracked.of_runs(text, text.ends, [tag._replace(generated=True) for tag in text.tags])


class _Compiler(CodeGenerator):
    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        """Compile `a ~ b`, which Jinja joins without asking the environment."""
        self.write("environment.join_printed((")
        for operand in node.nodes:
            self.visit(operand, frame)
            self.write(", ")
        self.write("))")

    def visit_ScopedEvalContextModifier(  # noqa: N802
        self, node: nodes.ScopedEvalContextModifier, frame: Frame
    ) -> None:
        """Refuse `{% autoescape %}`: it is for HTML, and its text goes ways that are not followed."""
        self.fail("{% autoescape %} has no place in a chat template", node.lineno)


class TrackingEnvironment(ImmutableSandboxedEnvironment):
    """Compiles templates of Hugging Face's dialect to code that keeps track of content."""

    code_generator_class = _Compiler
    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)
    intercepted_unops = frozenset(ImmutableSandboxedEnvironment.default_unop_table)
    concat = staticmethod(concat)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols], finalize=printed
        )
        self.filters = tracking_filters()
        self.globals |= {
            "dict": TemplateDict(),
            "namespace": TemplateNamespace,
            "raise_exception": _raise_exception,
            "strftime_now": _strftime_now,
        }

    def join_printed(self, operands: Iterable[Any]) -> str:
        """Return `a ~ b`."""
        return concat(map(printed, operands))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Return `left operator right`."""
        if operator == "+" and _is_html(left, right):
            return safe(concat(map(escaped, (left, right))))
        left, right = unmixed(left), unmixed(right)
        if isinstance(left, str) and not isinstance(left, Markup) and not isinstance(right, Markup):
            if operator == "%":
                return percent_format(left, right)
            if operator in "+*":
                return super().call_binop(context, operator, left, right)
        # Python asks the left one first, and it is the markup that has to escape the other.
        plain = str.__str__(left) if isinstance(left, Tracked) else _bare(left)
        result = super().call_binop(context, operator, plain, _bare(right))
        if isinstance(result, (list, tuple)):
            return result
        return followed(result, (left, right), f"the operator {operator}")

    def call_unop(self, context: Context, operator: str, arg: Any) -> Any:
        """Return `operator arg`."""
        return followed(super().call_unop(context, operator, arg), arg, f"the operator {operator}")

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Return `obj(*args, **kwargs)`."""
        result = super().call(__context, __obj, *args, **kwargs)
        owner = getattr(__obj, "__self__", None)
        if isinstance(__obj, _PASSING) or isinstance(owner, _PASSING_OWNERS) or __obj in _PASSING_CLASSES:
            return result
        name = getattr(__obj, "__name__", type(__obj).__name__)
        return followed(result, (owner, args, kwargs), f"the function {name}()")

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return `obj.attribute`."""
        obj = unmixed(obj)
        if isinstance(obj, str):
            return self._of_plain(Markup if isinstance(obj, Markup) else str, obj, attribute)
        if isinstance(obj, (TrackedInt, TrackedFloat)):
            kind = int if isinstance(obj, int) else float
            return as_content(self._of_plain(kind, obj, attribute), obj.tag)
        if isinstance(obj, Opaque):
            return as_content(super().getattr(obj._value, attribute), obj._tag)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return `obj[argument]`."""
        if isinstance(obj, Opaque):
            return as_content(super().getitem(obj._value, argument), obj._tag)
        if isinstance(argument, str) and isinstance(obj, (str, TrackedInt, TrackedFloat)):
            return self.getattr(obj, argument)
        return super().getitem(obj, argument)

    def _of_plain(self, kind: type, obj: Any, attribute: str) -> Any:
        """Return an attribute that the plain class has; what a tracked class adds to it is not there."""
        if not hasattr(kind, attribute):
            return self.undefined(obj=obj, name=attribute)
        value = super().getattr(obj, attribute)
        if kind is str and self.is_safe_attribute(obj, attribute, value):
            return StringMethod(self, obj, attribute)
        return value


def _is_html(*texts: Any) -> bool:
    """Whether these are texts, and one of them is said to be HTML: then the others are escaped."""
    return all(isinstance(text, str) for text in texts) and any(hasattr(text, "__html__") for text in texts)


def _bare(value: Any) -> Any:
    return value._value if isinstance(value, Opaque) else value


def _raise_exception(message: Any) -> None:
    raise TemplateError(printed(message))


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)
