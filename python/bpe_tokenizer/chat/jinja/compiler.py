"""Compiles templates to Python code in which every loop and macro counts its rounds, and `+` makes ropes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame

__all__ = ["COUNTED", "Compiler"]

# The value of these can be a rope.
_MAY_BE_ROPES = (
    nodes.Add, nodes.And, nodes.Concat, nodes.CondExpr, nodes.Getattr, nodes.Getitem, nodes.Name, nodes.Or,
)  # fmt: skip


class Compiler(CodeGenerator):
    """Jinja's code generator with more hooks in the environment.

    Nothing is computed while a template is compiled, because that would have no limits.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        # The bodies of loops and macros, with the operations of each.
        self._costs: dict[int, int] = {}

    # Text.

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        """Compile `a ~ b`, for which Jinja itself has no hook in the environment."""
        self.write("environment.concat_outputs((")
        for operand in node.nodes:
            self.visit(operand, frame)
            self.write(", ")
        self.write("))")

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if not isinstance(node, (nodes.Const, nodes.TemplateData)):
            raise nodes.Impossible
        return super()._output_child_to_const(node, frame, finalize)

    def visit_ScopedEvalContextModifier(  # noqa: N802
        self, node: nodes.ScopedEvalContextModifier, frame: Frame
    ) -> None:
        """Reject `{% autoescape %}`: it is for HTML, and the tracking does not cover it."""
        self.fail("{% autoescape %} is not supported in a chat template", node.lineno)

    # Values.

    def _visit_hooked(self, hook: str, node: nodes.Expr, frame: Frame) -> None:
        self.write(f"environment.{hook}(")
        self.visit(node, frame)
        self.write(")")

    def _visit_joined(self, node: nodes.Expr, frame: Frame) -> None:
        if isinstance(node, _MAY_BE_ROPES):
            self._visit_hooked("joined", node, frame)
        else:
            self.visit(node, frame)

    def _visit_items(self, items: Sequence[nodes.Expr], frame: Frame) -> None:
        for item in items:
            self._visit_joined(item, frame)
            self.write(", ")

    def visit_List(self, node: nodes.List, frame: Frame) -> None:  # noqa: N802
        """Compile `[a, b]`; no container holds ropes."""
        self.write("[")
        self._visit_items(node.items, frame)
        self.write("]")

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:  # noqa: N802
        """Compile `(a, b)`, also as the target of an assignment."""
        if node.ctx != "load":
            super().visit_Tuple(node, frame)
            return
        self.write("(")
        self._visit_items(node.items, frame)
        self.write(")")

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802
        """Compile `{a: b}`."""
        self.write("{")
        for item in node.items:
            self._visit_compared(item.key, frame)
            self.write(": ")
            self._visit_joined(item.value, frame)
            self.write(", ")
        self.write("}")

    def _visit_compared(self, node: nodes.Expr, frame: Frame) -> None:
        if isinstance(node, nodes.Const):
            self.visit(node, frame)
        else:
            self._visit_hooked("compared", node, frame)

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:  # noqa: N802
        """Compile `a == b` and `a in b`. A comparison with a constant takes constant time."""
        operands = [node.expr, *(operand.expr for operand in node.ops)]
        is_constant = any(isinstance(operand, nodes.Const) for operand in operands)
        contains = any(operand.op in ("in", "notin") for operand in node.ops)
        if is_constant and not contains:
            super().visit_Compare(node, frame)
            return
        self.write("(")
        self._visit_compared(node.expr, frame)
        for operand in node.ops:
            self.write(_OPERATORS[operand.op])
            self._visit_compared(operand.expr, frame)
        self.write(")")

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:  # noqa: N802
        """Compile `a[b]`, and `a[b:c]`, for which Jinja itself has no hook in the environment."""
        if not isinstance(node.arg, nodes.Slice):
            super().visit_Getitem(node, frame)
            return
        self.write("environment.sliced(")
        self.visit(node.node, frame)
        for bound in (node.arg.start, node.arg.stop, node.arg.step):
            self.write(", ")
            if bound is None:
                self.write("None")
            else:
                self.visit(bound, frame)
        self.write(")")

    # Bodies.

    def visit_For(self, node: nodes.For, frame: Frame) -> None:  # noqa: N802
        """Compile a loop."""
        self._charge_body(node.body)
        if node.test is not None:
            # The test runs for each item, outside of the body.
            node.iter = nodes.Filter(node.iter, COUNTED, [], [], None, None, lineno=node.lineno)
            self.filters.setdefault(COUNTED, "environment.counted")
        super().visit_For(node, frame)

    def visit_Macro(self, node: nodes.Macro, frame: Frame) -> None:  # noqa: N802
        """Compile a macro."""
        self._charge_body(node.body)
        super().visit_Macro(node, frame)

    def visit_CallBlock(self, node: nodes.CallBlock, frame: Frame) -> None:  # noqa: N802
        """Compile a `{% call %}`."""
        self._charge_body(node.body)
        super().visit_CallBlock(node, frame)

    def _charge_body(self, body: list[nodes.Node]) -> None:
        inside = sum(1 for statement in body for _ in statement.find_all(nodes.Node))
        self._costs[id(body)] = 2 + inside // 4

    def blockvisit(self, nodes: Any, frame: Frame) -> None:
        """Compile the statements of a body, after a charge for them."""
        cost = self._costs.pop(id(nodes), 0)
        if cost:
            self.writeline(f"environment.spend({cost})")
        super().blockvisit(nodes, frame)


_OPERATORS = {
    "eq": " == ", "ne": " != ", "gt": " > ", "gteq": " >= ", "lt": " < ", "lteq": " <= ",
    "in": " in ", "notin": " not in ",
}  # fmt: skip
# The filter that counts the items of a loop with a test. A template cannot write this name.
COUNTED = "counted items"
