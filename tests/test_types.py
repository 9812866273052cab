"""The types of the public interface, as a type checker sees them."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import NamedTuple

from bpe_tokenizer.chat.encoding import MessageSpan
from bpe_tokenizer.chat.training_examples import TrainingExamples
from bpe_tokenizer.view.reports.disagreements import Disagreements
from bpe_tokenizer.view.reports.report import Report
from bpe_tokenizer.view.visualization import Visualization

REPOSITORY = Path(__file__).parents[1]
CALLS = REPOSITORY / "tests" / "support" / "typed_calls.py"

# The modules whose `__all__` is public, and the classes that public methods return.
MODULES = [
    *("", "chat", "columns", "compat.tiktoken", "compat.transformers"),
    *("corpus", "distributed", "inference", "patterns"),
]
RETURNED = [Disagreements, MessageSpan, Report, TrainingExamples, Visualization]

# Every `Any` of a public signature: a regular expression of its places, and the reason.
ANY = {
    r"tokenizer\.BPETokenizer\.trim_messages ->": "fields of a message, which the template defines",
    r"tokenizer\.BPETokenizer\.training_examples\(conversations\)": "fields of a conversation of a dataset",
    r"tokenizer\.BPETokenizer\.apply_chat_template ->": "tensors of PyTorch, or message spans beside ids",
    r"tokenizer\.BPETokenizer\.(en|de)code_arrow( ->|\(array\))": "columns of any library of Arrow",
    r"columns\.mapper\.ArrowMapper\.__call__( ->|\(table\))": "tables of pyarrow, which has no types",
    r"tokenizer\.BPETokenizer\.(__call__|encode_batch|pad) ->": "columns of several types; PyTorch",
    r"chat\.session\.ChatSession\.__init__\(options\)": "arguments of `BPETokenizer.chat`",
    r"chat\.session\.ChatSession\.conversation ->": "fields of a message, which the template defines",
    r"chat\.session\.ChatSession\.messages": "fields of a message, which the template defines",
    r"chat\.template\.Template\.render\((tools|documents|variables)\)": "variables of a template",
    r"chat\.training_examples\.TrainingExamples\.__init__\(conversations\)": "fields of a conversation",
    r"compat\.transformers\.auto\.AutoTokenizer\.\w+\((inputs|kwargs)\)": "options of transformers",
    r"distributed\.arrow\.\w+( ->|\(\w+\))": "record batches of pyarrow, which has no types",
    r"distributed\.ray\.\w+( ->|\((source|inputs|dataset)\))": "datasets of Ray, which few programs have",
    r"distributed\.ray\.\w+\(task_options\)": "options of Ray",
    r"distributed\.spark\.\w+( ->|\((source|inputs|frame|session)\))": "frames of Spark, which few have",
    r"model\.Model\.config": "JSON of a tokenizer_config.json",
    r"train\.piece_counts\.PieceCounts\.(add_arrow\(batch\)|add_column\(array\)|to_arrow ->)": "Arrow",
    r"view\.reports\.(report\.Report|disagreements\.Disagreements)\.(to_dict|facts) ->": "JSON of a report",
    r"view\.reports\.report\.Report\.scripts": "JSON of a report",
}


class _Place(NamedTuple):
    """An annotation of a public signature."""

    name: str
    annotation: ast.expr | None


def test_the_calls_that_lint_checks_expect_errors_too() -> None:
    """`make lint` runs strict mypy, which needs each comment that expects an error."""
    assert CALLS.read_text(encoding="utf-8").count("# type: ignore[") > 30


def test_public_signatures_are_annotated_and_every_any_has_a_reason() -> None:
    """A new `Any` needs a type, or a line in `ANY`; a line that fits nothing is removed."""
    annotations = list(public_annotations())
    assert {place.name for place in annotations if place.annotation is None} == set()
    places = {place.name for place in annotations if _has_any(place.annotation)}
    unexplained = {name for name in places if not any(re.fullmatch(pattern, name) for pattern in ANY)}
    assert unexplained == set()
    unused = {pattern for pattern in ANY if not any(re.fullmatch(pattern, name) for name in places)}
    assert unused == set()


def public_annotations() -> Iterator[_Place]:
    """Yield the annotations of all public functions, methods and attributes, those of overloads included."""
    modules = [importlib.import_module(f"bpe_tokenizer.{name}".rstrip(".")) for name in MODULES]
    found = [getattr(module, name) for module in modules for name in module.__all__]
    objects = dict.fromkeys(each for each in found if isinstance(each, type | FunctionType))
    for each in [*objects, *RETURNED]:
        (statement, *_) = _statements(each)
        name = f"{each.__module__}.{each.__name__}".removeprefix("bpe_tokenizer.")
        if isinstance(statement, ast.ClassDef):
            yield from _in_class(name, statement)
        else:
            yield from _in_functions(name, _statements(each))


def _statements(wanted: type | FunctionType) -> list[ast.stmt]:
    return [each for each in _tree(wanted.__module__).body if getattr(each, "name", "") == wanted.__name__]


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def _in_class(name: str, statement: ast.ClassDef) -> Iterator[_Place]:
    methods: dict[str, list[ast.stmt]] = {}
    for each in statement.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            methods.setdefault(each.name, []).append(each)
    for node in ast.walk(statement):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name | ast.Attribute):
            attribute = node.target.id if isinstance(node.target, ast.Name) else node.target.attr
            is_public = node in statement.body or isinstance(node.target, ast.Attribute)
            if is_public and not attribute.startswith("_"):
                yield _Place(f"{name}.{attribute}", node.annotation)
    for method, definitions in methods.items():
        if not method.startswith("_") or method in ("__init__", "__call__", "__getitem__", "__iter__"):
            yield from _in_functions(f"{name}.{method}", definitions)


def _in_functions(name: str, definitions: list[ast.stmt]) -> Iterator[_Place]:
    functions = [each for each in definitions if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    overloads = [
        each
        for each in functions
        if any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in each.decorator_list)
    ]
    for function in overloads or functions:
        arguments = function.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
        for argument in every:
            if argument.arg not in ("self", "cls"):
                yield _Place(f"{name}({argument.arg})", argument.annotation)
        yield _Place(f"{name} ->", function.returns)


def _has_any(annotation: ast.expr | None) -> bool:
    return annotation is not None and re.search(r"\bAny\b", ast.unparse(annotation)) is not None
