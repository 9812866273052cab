"""A Griffe extension: what mkdocstrings shows of our docstrings; `mkdocs.yml` names this file.

The package is read, not imported, so the site is built without the Rust extension. Our docstrings write an
example as a doctest without a heading. In Markdown, `>>>` would be a quotation, so this extension puts such
lines into a block of code.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import griffe

PACKAGE = Path(__file__).parents[2] / "python" / "bpe_tokenizer"
OPTIONS = [
    PACKAGE / name
    for name in ("options.py", "corpus/options.py", "distributed/count_files.py", "distributed/shards.py")
]
_TAKES = re.compile(r"takes\(([\w, ]+?)(?:, \w+=\w+)?\)")
_ENTRY = re.compile(r"^ {4}(\w+): .*(?:\n {8}.*)*", re.MULTILINE)
_ARGS = re.compile(r"^Args:\n(?: {4}.*\n)+", re.MULTILINE)
_PROMPT = re.compile(r"^ *>>> ")
_DIRECTIVE = re.compile(r"  # doctest: .*$")
_ROLE = re.compile(r"(bos|eos|pad|unk)_token(_id)?$")


class Doctests(griffe.Extension):
    """Puts doctests into blocks of code, and shows some objects as a user sees them."""

    def on_instance(self, *, node: ast.AST | griffe.ObjectNode, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object when it has been read."""
        role = _ROLE.match(obj.name)
        if role and obj.docstring is None and obj.parent and obj.parent.name == "BPETokenizer":
            # `RoleToken` writes this docstring when the class is made.
            what = "id" if role[2] else "text"
            obj.docstring = griffe.Docstring(
                f"The {what} of the {role[1].upper()} token; None for no such token. It can be set.",
                parent=obj,
            )
        if isinstance(obj, griffe.Function):
            for decorator in obj.decorators:
                found = _TAKES.fullmatch(str(decorator.value))
                if found:
                    _show_options(obj, found[1].split(", "))
        if isinstance(obj, griffe.Attribute) and isinstance(node, ast.Assign):
            _show_raw(node, obj)
        if obj.docstring is not None:
            obj.docstring.value = fence_doctests(obj.docstring.value)


def _show_options(function: griffe.Function, kinds: list[str]) -> None:
    """Show the fields of classes of options instead of `**options`, as the decorator `takes` does."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in OPTIONS]
    classes = {each.name: each for tree in trees for each in tree.body if isinstance(each, ast.ClassDef)}
    (rest,) = (each.name for each in function.parameters if each.kind is griffe.ParameterKind.var_keyword)
    del function.parameters[rest]
    docs = ""
    for kind in kinds:
        bases = [each.id for each in classes[kind].bases if isinstance(each, ast.Name)]
        for name in (*bases, kind):
            text = ast.get_docstring(classes[name]) or ""
            entries = {found[1]: found[0] for found in _ENTRY.finditer(text)}
            for each in classes[name].body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    default = each.value.args[0] if isinstance(each.value, ast.Call) else each.value
                    function.parameters.add(
                        griffe.Parameter(
                            each.target.id,
                            annotation=ast.unparse(each.annotation),
                            kind=griffe.ParameterKind.keyword_only,
                            default=ast.unparse(default) if default else None,
                        )
                    )
                    docs += f"{entries[each.target.id]}\n"
    if function.docstring is not None:
        function.docstring.value = _ARGS.sub(lambda found: found[0] + docs, function.docstring.value, count=1)


def _show_raw(node: ast.Assign, attribute: griffe.Attribute) -> None:
    """Show a split pattern as a raw string, as the source writes it."""
    value = node.value.value if isinstance(node.value, ast.Constant) else None
    if isinstance(value, str) and "\\" in value and '"' not in value:
        attribute.value = f'r"{value}"'


def fence_doctests(docstring: str) -> str:
    """Put each example of a docstring, from its first prompt to the next empty line, into a block of code."""
    lines: list[str] = []
    indent: str | None = None
    for line in docstring.split("\n"):
        if indent is None and _PROMPT.match(line):
            indent = line[: len(line) - len(line.lstrip())]
            if lines and lines[-1].strip():
                lines.append("")
            lines.append(f"{indent}```pycon")
        elif indent is not None and not line.strip():
            lines.append(f"{indent}```")
            indent = None
        lines.append(_DIRECTIVE.sub("", line) if indent is not None else line)
    if indent is not None:
        lines.append(f"{indent}```")
    return "\n".join(lines)
