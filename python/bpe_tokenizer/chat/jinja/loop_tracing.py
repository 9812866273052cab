"""Traces which message a template is at while it writes: the loops over messages, for assistant masks.

A template writes a turn in one pass of a loop, `{% for message in messages %}`. So the markup that it writes
in this pass belongs to this message. `trace_loops` adds calls to the tree of a template that keep the current
message and note it in the provenance of the text that the template outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from jinja2 import nodes
from jinja2.environment import Environment
from jinja2.ext import Extension
from jinja2.visitor import NodeTransformer

from bpe_tokenizer.chat.jinja.rope import Rope
from bpe_tokenizer.chat.jinja.tainted_str import TEMPLATE, Provenance, TaintedStr, as_tainted
from bpe_tokenizer.chat.jinja.values import provenances_of, to_output

__all__ = ["LoopTracing", "trace_loops", "tracing"]


class _Loop:
    """A running loop.

    Args:
        outer: The messages that the loop around it is at.
        number: The number that it is at, for a loop over `range(...)`.
    """

    __slots__ = ("bound", "number", "outer", "writers")

    def __init__(self, outer: tuple[int, ...] = (), number: int | None = None) -> None:
        self.outer = self.writers = outer
        self.number = number
        self.bound = False

    def enter(self, writers: tuple[int, ...]) -> bool:
        """Set the messages that the loop is at.

        A loop inside a message's turn can search the earlier messages. It still writes this turn.
        """
        later = bool(writers) and (not self.outer or max(writers) > max(self.outer))
        if later:
            self.writers = writers
        return later


_LOOPS: ContextVar[list[_Loop]] = ContextVar("loops")


@contextmanager
def tracing() -> Iterator[None]:
    """Start without loops."""
    token = _LOOPS.set([_Loop()])
    try:
        yield
    finally:
        _LOOPS.reset(token)


class LoopTracing(Extension):
    """The calls that `trace_loops` adds to a template."""

    def _begin(self) -> None:
        loops = _LOOPS.get()
        loops.append(_Loop(loops[-1].writers))

    def _end(self) -> None:
        _LOOPS.get().pop()

    def _enter(self, *targets: Any) -> None:
        """Start a pass of the innermost loop, with the values of its targets."""
        loops = _LOOPS.get()
        number = next((int(target) for target in targets if isinstance(target, int)), None)
        loops[-1] = _Loop(loops[-2].writers, number)
        any(loops[-1].enter(_messages_of(target)) for target in targets)

    def _bind(self, value: Any) -> Any:
        """Read a message. In a loop over numbers, `messages[i]` chooses the message."""
        loop = _LOOPS.get()[-1]
        if loop.number is not None and isinstance(value, dict):
            writers = _messages_of(value)
            if not loop.bound or writers == (loop.number,):
                loop.bound = loop.enter(writers) or loop.bound
        return value

    def _store(self, value: Any) -> Any:
        """Set an attribute of a namespace, which outlives the pass: its new text is of this pass."""
        writers = _LOOPS.get()[-1].writers
        if not writers:
            return value
        if type(value) is list:
            # New items are at the end of a list that grows.
            new: list[Any] = []
            while len(new) < len(value):
                item = value[-1 - len(new)]
                marked = _mark_ends(item, writers)
                if marked is item:
                    break
                new.append(marked)
            return value[: len(value) - len(new)] + new[::-1]
        return _mark_ends(value, writers)

    def _write(self, value: Any) -> str:
        """Output a value."""
        text = to_output(value)
        writers = _LOOPS.get()[-1].writers
        if not text or not writers:
            return text
        if not isinstance(text, TaintedStr):
            return TaintedStr(str(text), TEMPLATE._replace(writers=writers))
        markup = _author(text.provenances, writers)
        marked = [
            known if known.writers else known._replace(writers=markup if known.origin is None else writers)
            for known in text.provenances
        ]
        return TaintedStr.from_runs(text, text.ends, marked)


def _mark_ends(value: Any, writers: tuple[int, ...]) -> Any:
    """Return a text with marks on its new markup. New text is at an end of a text that grows."""
    if isinstance(value, Rope):
        return value.with_marks(lambda text: _mark_ends(text, writers))
    if not isinstance(value, str) or not value or hasattr(value, "__html__"):
        return value
    text = as_tainted(value)
    known = list(text.provenances)
    for order in (range(len(known)), range(len(known) - 1, -1, -1)):
        for place in order:
            if known[place].writers:
                break
            if known[place].origin is None:
                known[place] = known[place]._replace(writers=writers)
    return value if known == list(text.provenances) else TaintedStr.from_runs(text, text.ends, known)


def _author(provenances: Any, writers: tuple[int, ...]) -> tuple[int, ...]:
    """Return the message that the markup in an expression belongs to.

    A template can write a later message in advance, as Gemma 4's writes the results of tools. The markup
    around its content is not of the current message.
    """
    messages = {
        known.origin.index
        for known in provenances
        if known.origin is not None and known.origin.source == "messages"
    }
    later = [index for index in messages if index is not None and index > max(writers)]
    return tuple(later) if len(later) == len(messages) == 1 else writers


def _messages_of(value: Any) -> tuple[int, ...]:
    """Return the indices of the messages that a value holds content of."""
    known: Iterator[Provenance] = provenances_of(value)
    origins = {provenance.origin for provenance in known}
    return tuple(
        sorted(
            {
                origin.index
                for origin in origins
                if origin is not None and origin.source == "messages" and origin.index is not None
            }
        )
    )


class _Tracer(NodeTransformer):
    def __init__(self, extension: Extension) -> None:
        self._extension = extension

    def _call(self, method: str, *arguments: Any, line: int) -> nodes.Call:
        return self._extension.call_method(method, list(arguments), lineno=line)

    def visit_For(self, node: nodes.For) -> list[nodes.Node]:  # noqa: N802
        self.generic_visit(node)
        line = node.lineno
        names = [node.target, *node.target.find_all(nodes.Name)]
        targets = [
            nodes.Name(name.name, "load", lineno=line) for name in names if isinstance(name, nodes.Name)
        ]
        node.body.insert(0, nodes.ExprStmt(self._call("_enter", *targets, line=line), lineno=line))
        begin, end = (
            nodes.ExprStmt(self._call(method, line=line), lineno=line) for method in ("_begin", "_end")
        )
        return [begin, node, end]

    def visit_Output(self, node: nodes.Output) -> nodes.Output:  # noqa: N802
        self.generic_visit(node)
        node.nodes = [self._call("_write", text, line=node.lineno) for text in node.nodes]
        return node

    def visit_Assign(self, node: nodes.Assign) -> nodes.Assign:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.target, nodes.NSRef):
            node.node = self._call("_store", node.node, line=node.lineno)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        fixed = isinstance(node.arg, (nodes.Const, nodes.Slice))
        return node if fixed else self._call("_bind", node, line=node.lineno)


def trace_loops(tree: nodes.Template, environment: Environment) -> nodes.Template:
    """Add the calls that trace the loops to the tree of a template."""
    traced: nodes.Template = _Tracer(environment.extensions[LoopTracing.identifier]).visit(tree)
    return traced
