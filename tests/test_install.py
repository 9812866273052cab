"""Libraries that are missing: what works without them, and the one sentence that says what to install."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from bpe_tokenizer import _core, libraries
from bpe_tokenizer.cli.installation import Installation
from command_line import Run, in_process

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Programs run with NumPy alone.
NUMPY_ALONE = """
import sys
from importlib.abc import MetaPathFinder
class Alone(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in sys.stdlib_module_names | {"numpy", "bpe_tokenizer"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Alone())
from bpe_tokenizer import BPETokenizer
tokenizer = BPETokenizer().train("low low lower <|im_start|> <|im_end|>", 258, verbose=True,
    special_tokens=["<|im_start|>", "<|im_end|>"])
assert tokenizer.decode(tokenizer.encode("low")) == "low"
talk = [{"role": "user", "content": "low"}]
"""


def alone(code: str) -> str:
    """Run a program with NumPy alone, and return the last line of its error, or of its output."""
    done = subprocess.run(
        [sys.executable, "-c", NUMPY_ALONE + code], capture_output=True, text=True, check=False, timeout=120
    )
    return (done.stderr if done.returncode else done.stdout).strip().splitlines()[-1]


def test_the_library_works_with_numpy_alone() -> None:
    code = "print(len(tokenizer.apply_chat_template(talk, 'chatml')), tokenizer.encode_to_numpy('low'))"
    assert re.fullmatch(r"\d+ \[\d.*\]", alone(code))


def test_training_in_a_terminal_needs_no_library() -> None:
    code = "sys.stderr.isatty = lambda: True; tokenizer.train(['low low'], 257, verbose=True); print('done')"
    assert alone(code) == "done"
    failing = """sys.stderr.isatty = lambda: True
try: tokenizer.train([''], 257, verbose=True)
except ValueError as error: print(type(error).__name__, error.__context__)"""
    assert alone(failing) == "CorpusError None"


@pytest.mark.parametrize(
    ("code", "library", "command"),
    [
        ("tokenizer.save('saved')", "filelock", "pip install filelock"),
        ("tokenizer.apply_chat_template(talk, '{{ messages }}')", "jinja2", "pip install jinja2"),
        ("tokenizer.visualize('low').show()", "rich", libraries.install_command("cli")),
        (
            "import bpe_tokenizer.train.arrow as a; a.import_library('fsspec', 'remote')",
            "fsspec",
            libraries.install_command("remote"),
        ),
    ],
)
def test_a_missing_library_is_one_sentence(code: str, library: str, command: str, tmp_path: Path) -> None:
    code = f"import os; os.chdir({str(tmp_path)!r}); {code}"
    needed = f"this needs the library {library}: {command}"
    assert alone(code) == f"bpe_tokenizer.errors.MissingDependencyError: {needed}"


def test_the_command_line_says_what_it_needs() -> None:
    run = "from bpe_tokenizer.cli import main; main({!r})"
    needed = f"bpe-tokenizer: this needs the library typer: {libraries.install_command('cli')}"
    assert alone(run.format(["encode", "--help"])) == needed
    assert re.fullmatch(r"bpe-tokenizer \d+\.\d+\.\d+", alone(run.format(["--version"])))
    assert "MB in" in alone(run.format(["doctor"]))
    assert json.loads(alone(run.format(["doctor", "--json"])))["version"]


def test_documents_say_how_to_install_in_one_place() -> None:
    command = libraries.install_command("cli").partition(" in the ")[0]
    assert command in (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    ours = re.compile(r"""pip install (?:-\S+ )*["'`]?(?:\.(?=[\s\["'`])|bpe.tokenizer\b)""")
    # The row of the source documents' names, and the constant with its comment.
    elsewhere = {"docs/install.md", "docs/differences.md", "python/bpe_tokenizer/libraries.py"}
    sources = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    sources += [
        path for room in ("python", "examples", "course", "page") for path in (ROOT / room).rglob("*.py")
    ]
    found = {
        path.relative_to(ROOT).as_posix() for path in sources if ours.search(path.read_text(encoding="utf-8"))
    }
    assert found == elsewhere


def test_the_extras_are_described() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").partition("## Extras")[2]
    described = [
        name for row in re.findall(r"^\| (`[^|]+`) \|", page, re.MULTILINE) for name in row.split(", ")
    ]
    assert sorted(described) == sorted(f"`{extra}`" for extra in PROJECT["optional-dependencies"])


def test_the_package_brings_at_most_five_packages() -> None:
    # None of the four needs another one; NumPy has no dependencies, and MarkupSafe is Jinja's.
    assert len(PROJECT["dependencies"]) + 1 <= 5
    for requirement in PROJECT["dependencies"]:
        name = re.split("[<>=]", requirement)[0]
        needed = {
            re.split(r"[\W]", each)[0].lower()
            for each in metadata.requires(name) or []
            if "extra ==" not in each
        }
        assert needed <= {"markupsafe"}, name


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    return in_process(capfdbinary, monkeypatch)


def test_doctor_shows_what_is_installed(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    (tmp_path / "ranks").write_bytes(bytes(1_500_000))
    requirements = [
        "numpy>=1",
        "typer>=0.26; extra == 'cli'",
        'missing-one; python_full_version < "3.10" and extra == "cli"',
        "missing-two>=3; python_version < '4.0' and extra == 'corpus'",
        'bpe-tokenizer[cli]; extra == "full"',
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: requirements)
    found = json.loads(run("doctor", "--json").text)
    versions = {name: metadata.version(name) for name in ("numpy", "typer")}
    assert found["extras"] == {
        "the package": {"numpy": versions["numpy"]},
        "cli": {"typer": versions["typer"]},
        "corpus": {"missing-two": None},
    }
    assert found["instructions"] == _core.instruction_set()
    assert found["caches"]["tiktoken's ranks"] == [str(tmp_path), 1, 1_500_000]
    shown = run("doctor").text.splitlines()
    assert "corpus        missing-two (missing)" in shown
    assert any(libraries.install_command("EXTRA") in line for line in shown)
    assert f"tiktoken's ranks: 1 files, 1.5 MB in {tmp_path}" in shown


def test_doctor_of_a_copy_that_was_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    assert "extras: unknown, because no installer installed this copy" in str(Installation.examined())
