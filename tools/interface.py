"""Writes docs/api/names.md, the snapshot of the public interface: `make interface`.

The interface is what docs/support.md promises to keep: the names on the pages of docs/api with their
arguments and defaults, and the options of the command line. A test compares the page with the package, so
that a change of the interface is a decision, which the difference of this page shows.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from bpe_tokenizer.cli.app import create_app
from bpe_tokenizer.cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "api" / "names.md"
HEAD = """# Every public name

The interface that [a version number](../support.md) speaks of: each public name with its arguments and their
defaults. `make interface` writes this page, and a test compares it. A line that goes or changes is a break,
which needs a decision; a new line needs none.
"""
# A public name on a page of docs/api.
DIRECTIVE = re.compile(r"^::: (\S+)$", re.MULTILINE)
_PACKAGE = "bpe_tokenizer"


def resolve(name: str) -> Any:
    """Return the object of a dotted name."""
    module = name
    rest: list[str] = []
    while True:
        try:
            found: Any = importlib.import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
        else:
            break
    for part in rest:
        found = getattr(found, part)
    return found


def signature(function: Any) -> str:
    """Return the arguments and their defaults, without types, which differ between versions of Python."""
    found = inspect.signature(function).parameters.values()
    empty = inspect.Parameter.empty
    shown = [each for each in found if each.name not in ("self", "cls")]
    shown = [each for each in shown if each.default is empty or not each.name.startswith("_")]
    text = str(inspect.Signature([each.replace(annotation=empty) for each in shown]))
    return re.sub(r"<(?:function |class ')?([\w.]+).*?>", r"\1", text)  # a default that has no text


def members(kind: type) -> Iterator[str]:
    """Yield the public members of a class, with those that it inherits from classes of this package."""
    names = {
        name: value
        for base in reversed(kind.__mro__)
        if base.__module__.partition(".")[0] == _PACKAGE
        for name, value in vars(base).items()
    }
    for field in getattr(kind, "__annotations__", {}):
        names.setdefault(field, None)
    for name, value in sorted(names.items()):
        if name.startswith("_"):
            continue
        if isinstance(value, classmethod | staticmethod):
            value = value.__func__
        yield f"    .{name}{signature(value) if callable(value) else ''}"


def lines_of(name: str) -> Iterator[str]:
    """Yield the lines of a public name."""
    found = resolve(name)
    if not inspect.isclass(found):
        yield f"{name}{signature(found) if inspect.isroutine(found) else ''}"
        return
    bases = ", ".join(base.__name__ for base in found.__bases__ if base is not object)
    is_made = not issubclass(found, enum.Enum | BaseException) and not getattr(found, "_is_protocol", False)
    try:
        made = signature(found) if is_made else ""
    except ValueError:  # a class of the core that is not made by a call
        made = ""
    yield f"{name}{made}{f': {bases}' if bases else ''}"
    yield from members(found)


def commands() -> Iterator[str]:
    """Yield the commands, with their arguments and options."""
    for name in COMMANDS:
        group: Any = typer.main.get_command(create_app(name))
        command = group.commands[name]
        for parameter in command.params:
            yield f"bpe-tokenizer {name} {' '.join(sorted([*parameter.opts, *parameter.secondary_opts]))}"


def page() -> str:
    """Return the text of the page."""
    text = HEAD
    for path in sorted(PAGE.parent.glob("*.md")):
        names = DIRECTIVE.findall(path.read_text(encoding="utf-8"))
        if names:
            lines = "\n".join(line for name in names for line in lines_of(name))
            text += f"\n## [{path.stem}]({path.name})\n\n```text\n{lines}\n```\n"
    return text + "\n## The command line\n\n```text\n" + "\n".join(commands()) + "\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
