"""The files of the lesson stay short enough to be read in order."""

import ast
import io
import tokenize
from pathlib import Path

from bpe_tokenizer import reference

MAX_LINES = 700
# Not part of what is read: files and their checks, errors and printing.
MACHINERY = {"saving.py", "text.py"}


def lines_of_code(source: str) -> int:
    """Count the lines with code: no docstrings, comments and blank lines."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped and token.type != tokenize.ENDMARKER:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def test_the_lesson_is_short() -> None:
    directory = Path(reference.__file__).parent
    counts = {path.name: lines_of_code(path.read_text(encoding="utf-8")) for path in directory.glob("*.py")}
    assert counts["smallest.py"] <= 60
    assert sum(counts.values()) - sum(counts[name] for name in MACHINERY) <= MAX_LINES, counts


def test_every_file_is_in_the_plan() -> None:
    directory = Path(reference.__file__).parent
    plan = reference.__doc__ or ""
    assert [path.stem for path in directory.glob("[a-z]*.py") if f"`{path.stem}`" not in plan] == []
