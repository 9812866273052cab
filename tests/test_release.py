"""What a release says of itself: its address, licences, dependencies and versions agree in all files."""

from __future__ import annotations

import re
import runpy
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import bpe_tokenizer

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = PYPROJECT["project"]
ADDRESS: str = PROJECT["urls"]["Repository"]
# Where the index and others find a page, and a picture, of the repository.
PAGES = f"{ADDRESS}/blob/main/"
PICTURES = f"{ADDRESS.replace('https://github.com/', 'https://raw.githubusercontent.com/')}/main/"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_renders_on_an_index() -> None:
    linked = re.findall(r"\]\(([^)]+)\)", README)
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', README)
    assert [link for link in linked + pictures if not link.startswith("https://")] == []
    ours = [link.removeprefix(PAGES) for link in linked if link.startswith(ADDRESS)]
    ours += [link.removeprefix(PICTURES) for link in pictures]
    assert len(ours) > 30
    assert [link for link in ours if not (ROOT / link.partition("#")[0]).is_file()] == []


def test_all_files_name_one_address() -> None:
    assert CARGO["workspace"]["package"]["repository"] == ADDRESS
    named = [
        ROOT / "CITATION.cff",
        *(ROOT / ".github").rglob("*.yml"),
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
    ]
    owner, name = ADDRESS.split("/")[-2:]
    for path in named:
        text = path.read_text(encoding="utf-8")
        found = re.findall(rf"github(?:usercontent)?\.com/([\w-]+)/{name}\b", text)
        assert set(found) <= {owner}, path.name
    assert f"repository-code: {ADDRESS}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_all_files_name_one_version() -> None:
    version = CARGO["workspace"]["package"]["version"]
    assert bpe_tokenizer.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_licences_are_those_of_what_a_wheel_contains() -> None:
    licences = runpy.run_path(str(ROOT / "tools" / "licences.py"))
    assert PROJECT["license-files"] == ["LICENSE", licences["PLACE"].name]
    text = licences["PLACE"].read_text(encoding="utf-8")
    listed = set(re.findall(r"^([\w-]+) (\d[\w.+-]*) \(", text, re.MULTILINE))
    assert listed == set(licences["contained"]()), "run `make licences`"
    assert len(listed) > 20
    assert "Rust's standard library: all but" in text


def names(requirements: Iterable[Any]) -> set[str]:
    """Return the names of requirements, without groups and this package's own extras."""
    found = {re.split(r"[\[<>=;!~ ]", each)[0] for each in requirements if isinstance(each, str)}
    return found - {PROJECT["name"]}


@pytest.mark.parametrize("part", ["package", "developers", "crates"])
def test_every_dependency_has_a_reason(part: str) -> None:
    extras = PROJECT["optional-dependencies"]
    used = names(PROJECT["dependencies"]).union(*map(names, extras.values()))
    groups = PYPROJECT["dependency-groups"].values()
    expected = {
        "package": used,
        "developers": names(PYPROJECT["build-system"]["requires"]).union(*map(names, groups)) - used,
        "crates": set(CARGO["workspace"]["dependencies"]),
    }[part]
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    heading = {"package": "what the package", "developers": "what developers", "crates": "Rust\n"}[part]
    table = page.partition(heading)[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([\w.-]+) \|(?: ([^|]+) \|)?", table, re.MULTILINE)[1:]
    assert Counter(name for name, _ in rows) == Counter(expected)
    if part == "package":
        for name, installed_by in rows:
            own = {extra for extra, listed in extras.items() if name in names(listed)}
            assert set(re.findall("`([^`]+)`", installed_by)) == own, name
            assert (installed_by == "the package") == (name in names(PROJECT["dependencies"])), name


def test_the_crates_depend_on_nothing_else() -> None:
    for path in ROOT.glob("crates/*/Cargo.toml"):
        manifest = tomllib.loads(path.read_text(encoding="utf-8"))
        for table in (manifest, *manifest.get("target", {}).values()):
            for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
                for name, value in table.get(kind, {}).items():
                    shared = {"workspace": True, "optional": True}
                    assert name.startswith("bpe-tokenizer-") or value.items() <= shared.items(), (path, name)
