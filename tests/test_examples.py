"""The examples run as a newcomer runs them, and use every public name."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import os
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import bpe_tokenizer
from bpe_tokenizer import _core, chat, inference, patterns, reference
from bpe_tokenizer.cli.commands import COMMANDS
from page_core import HAS_CORE, needs_core

EXAMPLES = Path(__file__).parents[1] / "examples"
SECTIONS = sorted(EXAMPLES.glob("section*.py"))
MODULES = (bpe_tokenizer, chat, inference, patterns, reference)
OPTIONAL = (
    *("huggingface_hub", "llama_cpp", "mlx_lm", "openvino_genai", "regex"),
    *("tiktoken", "tokenizers", "torch", "transformers"),
)

# What the examples need not use.
EXCUSED = {
    # Engines and templates have these, and the package calls them.
    "EngineModel": {"close", "context_length", "generate", "vocab_size"},
    "Template": {"render", "source"},
    # `Reply` calls these at a stop string.
    "Generation": {"astop", "stop"},
    # The package makes these, and reads them.
    "Rendered": {"written"},
    "WriteError": {"of"},
    # The steps inside the lesson's `train`.
    "NaiveBPETokenizer": {"become", "check_trained", "initial_words", "learn", "smallest_tokens"},
}

# Runs an example as a program where some libraries cannot be imported, and writes down which functions the
# examples call, if a file for that is named.
RUNNER = """
import json, os, runpy, sys, threading
program, record, *missing = sys.argv[1:]
folder = os.path.dirname(program)
sys.path.insert(0, folder)
sys.modules.update(dict.fromkeys(missing))
called = set()

def note(frame, event, argument):
    caller = frame.f_back
    decorators = os.path.join("bpe_tokenizer", "options.py"), "contextlib.py"
    if caller and caller.f_code.co_filename.endswith(decorators):
        caller = caller.f_back
    if event == "call" and caller and caller.f_code.co_filename.startswith(folder):
        called.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

if record:
    threading.setprofile(note)
    sys.setprofile(note)
runpy.run_path(program, run_name="__main__")
sys.setprofile(None)
if record:
    with open(record, "w", encoding="utf-8") as file:
        json.dump(sorted(called), file)
"""


def run(directory: Path, *arguments: str) -> str:
    """Run Python in an empty directory and return what it prints; see that it leaves nothing behind."""
    work, temporary = directory / "work", directory / "temporary"
    work.mkdir()
    temporary.mkdir()
    # A way to the network that leads nowhere.
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    switches = {"no_proxy": "127.0.0.1", "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=work,
        env={**os.environ, **proxies, **places, **switches},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [*work.iterdir(), *temporary.iterdir()] == []
    return done.stdout


@pytest.mark.sampled(0.25, "long tests")
@needs_core
def test_the_tour(tmp_path: Path) -> None:
    record = tmp_path / "called.json"
    (tmp_path / "tour").mkdir()
    lines = run(tmp_path / "tour", "-c", RUNNER, str(EXAMPLES / "tour.py"), str(record)).splitlines()
    assert lines[0] == f"bpe-tokenizer {bpe_tokenizer.__version__}"
    titles = [line for line in lines if line.startswith("§")]
    assert [title.split()[0] for title in titles] == [f"§{number}" for number in range(1, len(SECTIONS) + 1)]
    for line in (
        "    BPETokenizer(vocab_size=2,000, merges=1,744, special_tokens=0)",
        "    I| can|'t| say| |123|45| words|!        cl100k, llama3, deepseek-v3, cl100k-bounded",
        "- Disallowed: SpecialTokenError",
        "    Command-line parsing library",
        "    turns that begin in our ids: 1",
        "    round trip      exact",
        "    ['low', 'est']",
    ):
        assert line in lines
    assert lines[-1] == "The tour is complete; every check passed."
    # A name in the sources could be another class's: here the functions themselves are seen running.
    called = {(name, line) for name, line in json.loads(record.read_text(encoding="utf-8"))}
    wanted = functions()
    assert len(wanted) > 150
    assert sorted(name for name, place in wanted.items() if place not in called) == []


@pytest.mark.sampled(0.16)
@pytest.mark.parametrize("section", SECTIONS, ids=lambda path: path.stem)
def test_a_section_without_optional_libraries(section: Path, tmp_path: Path) -> None:
    if section.stem == "section10_command_line" and not HAS_CORE:
        pytest.skip("core.wasm is missing: run `make wasm`")
    printed = run(tmp_path, "-c", RUNNER, str(section), "", *OPTIONAL)
    assert f"\n§{int(section.stem[7:9])}  " in printed
    if "reference" in section.stem:
        assert "pip install regex" in printed


@cache
def trees() -> tuple[ast.AST, ...]:
    return tuple(ast.parse(path.read_text(encoding="utf-8")) for path in sorted(EXAMPLES.glob("*.py")))


def used_names() -> set[str]:
    """The names that the examples read; an import alone is no use."""
    nodes = (node for tree in trees() for node in ast.walk(tree))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


@cache
def used_attributes() -> set[str]:
    """The attributes that the examples name, and the arguments that fields are given by."""
    nodes = [node for tree in trees() for node in ast.walk(tree)]
    given = {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg}
    return given | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def public_classes() -> dict[str, type]:
    found = (getattr(module, name) for module in MODULES for name in module.__all__)
    return {each.__name__: each for each in found if isinstance(each, type)}


def own_bases(kind: type) -> list[type]:
    """The classes of the package that a class is made of, itself among them."""
    ours = [base for base in kind.__mro__ if base.__module__.startswith("bpe_tokenizer")]
    return [base for base in ours if base is not _core.Tokenizer]


def attributes_of(kind: type) -> set[str]:
    """The public attributes of a class: of its namespace, its fields, and what `__init__` sets."""
    # The names of other libraries are there to raise errors.
    names = {name for base in own_bases(kind) for name in vars(base) if hasattr(base, name)}
    if dataclasses.is_dataclass(kind):
        names |= {field.name for field in dataclasses.fields(kind)}
    for base in own_bases(kind):
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            ):
                names.add(node.attr)
    return {name for name in names if not name.startswith("_")}


def is_excused(kind: type, name: str) -> bool:
    return any(name in EXCUSED.get(base.__name__, ()) for base in own_bases(kind))


def test_what_is_excused_exists() -> None:
    for name, excused in EXCUSED.items():
        assert excused - attributes_of(public_classes()[name]) == set()


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_name_is_used(module: ModuleType) -> None:
    assert sorted(set(module.__all__) - used_names()) == []


@pytest.mark.parametrize("kind", public_classes().values(), ids=public_classes())
def test_every_public_attribute_is_used(kind: type) -> None:
    missing = attributes_of(kind) - used_attributes()
    assert sorted(name for name in missing if not is_excused(kind, name)) == []


def test_every_command_is_used() -> None:
    nodes = (node for tree in trees() for node in ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    run = [call.args[1] for call in calls if call.func.id == "run" and len(call.args) > 1]  # type: ignore[attr-defined]
    assert set(COMMANDS) - {node.value for node in run if isinstance(node, ast.Constant)} == set()


def code_of(member: Any) -> tuple[str, int] | None:
    """Where the function begins that a call of a member runs; None if it runs none, or none of ours."""
    if getattr(member, "__isabstractmethod__", False):
        return None
    member = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    code = getattr(inspect.unwrap(member), "__code__", None) if callable(member) else None
    ours = code is not None and Path(code.co_filename).is_relative_to(Path(bpe_tokenizer.__file__).parent)
    return (code.co_filename, code.co_firstlineno) if code is not None and ours else None


def functions() -> dict[str, tuple[str, int]]:
    """Every public function, method and property, and where it begins."""
    found: dict[str, tuple[str, int]] = {}
    for module in MODULES:
        for name in module.__all__:
            code = code_of(getattr(module, name))
            if code is not None and not isinstance(getattr(module, name), type):
                found[name] = code
    for kind in public_classes().values():
        for name in attributes_of(kind):
            code = code_of(inspect.getattr_static(kind, name, None))
            if code is not None and not is_excused(kind, name):
                found[f"{kind.__name__}.{name}"] = code
    return found
