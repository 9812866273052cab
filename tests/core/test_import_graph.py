"""No import circle in Rust: neither between files nor between the rooms of a crate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CRATES = Path(__file__).parents[2] / "crates"
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"\b(?:crate|self|super)(?:::\w+)+")

Module = tuple[str, ...]  # ("encoder", "spans") is crate::encoder::spans


def leaves(tree: str) -> Iterator[list[str]]:
    """Expand the braces of a use tree: `a::{b, c::d as e}` to [a, b] and [a, c, d]."""
    head, brace, rest = tree.partition("{")
    prefix = [name for name in head.split("::") if name.strip()]
    if not brace:
        yield [name.split(" as ")[0].strip() for name in prefix]
        return
    depth, start, inner = 0, 0, rest.rsplit("}", 1)[0] + ","
    for at, char in enumerate(inner):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            if inner[start:at].strip():
                for leaf in leaves(inner[start:at].strip()):
                    yield [name.strip() for name in prefix] + leaf
            start = at + 1


def code_of(path: Path) -> str:
    """Return a file's code without comments and without its test modules."""
    lines, kept, skipping = path.read_text(encoding="utf-8").splitlines(), [], ""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if skipping:
            skipping = "" if line == skipping else skipping
        elif line.strip() == "#[cfg(test)]" and re.search(r"\bmod \w+ \{$", following):
            skipping = line.replace("#[cfg(test)]", "}")
        else:
            kept.append(line.split("//")[0])
    return "\n".join(kept)


class Crate:
    """The modules of a crate, and what each imports."""

    def __init__(self, root: Path) -> None:
        self.files: dict[Module, str] = {}
        for path in root.rglob("*.rs"):
            parts = path.relative_to(root).with_suffix("").parts
            module = parts[:-1] if parts[-1] in ("mod", "lib") else parts
            self.files[module] = code_of(path)

    def absolute(self, path: list[str], module: Module) -> list[str] | None:
        """Resolve `crate`, `self`, `super` and child modules; None for other crates."""
        if path[0] == "crate":
            return path[1:]
        if path[0] in ("self", "super"):
            base, rest = list(module), path
            while rest and rest[0] in ("self", "super"):
                base = base[:-1] if rest[0] == "super" else base
                rest = rest[1:]
            return base + rest
        return [*module, *path] if (*module, path[0]) in self.files else None

    def uses(self, module: Module) -> Iterator[tuple[bool, list[str]]]:
        """Yield each path that a `use` of the module names, and whether it is exported."""
        for public, tree in USE.findall(self.files[module]):
            for leaf in leaves(re.sub(r"\s+", " ", tree)):
                path = self.absolute(leaf, module)
                if path is not None:
                    yield bool(public), path

    def nearest(self, path: list[str]) -> Module:
        """Return the module at the beginning of a path."""
        length = 0
        while length < len(path) and tuple(path[: length + 1]) in self.files:
            length += 1
        return tuple(path[:length])

    def definer(self, path: list[str]) -> Module:
        """Return the module that defines what a path names. A re-export is not a definition."""
        module = self.nearest(path)
        name, rest = path[len(module) : len(module) + 1], path[len(module) + 1 :]
        for _, used in self.uses(module):
            if used[-1:] == name and self.nearest(used) != module:
                return self.definer(used + rest)
        return module

    def imports(self, module: Module) -> set[Module]:
        """Return the modules that a module imports. A re-export that it does not use itself is none."""
        body = USE.sub("", self.files[module])
        is_used = {path[-1]: re.search(rf"\b{path[-1]}\b", body) for _, path in self.uses(module)}
        paths = [path for public, path in self.uses(module) if not public or is_used[path[-1]]]
        for found in PATH.findall(body):
            path = self.absolute(found.split("::"), module)
            paths += [path] if path else []
        return {self.definer(path) for path in paths} - {module}


@pytest.mark.parametrize("crate", ["core", "python"])
@pytest.mark.parametrize("of", ["files", "rooms"])
def test_the_imports_of_rust_have_no_circle(crate: str, of: str) -> None:
    modules = Crate(CRATES / crate / "src")
    graph: dict[str, set[str]] = {}
    for module in modules.files:
        for imported in modules.imports(module):
            ends = [module[:1], imported[:1]] if of == "rooms" else [module, imported]
            start, end = ("::".join(("crate", *end)) for end in ends)
            if start != end:
                graph.setdefault(start, set()).add(end)
    assert len(graph) > 5
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))
