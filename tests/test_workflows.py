"""The workflows of GitHub call targets that exist, for the systems and Pythons of pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS: dict[str, Any] = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
CLASSIFIERS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
PYTHONS = [line.split()[-1] for line in CLASSIFIERS if re.search(r"Python :: 3\.\d+$", line)]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
# Official actions, and those of the tools that are used.
OWNERS = {"actions", "Swatinem", "PyO3", "pypa"}


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the jobs that have steps; the others are those of another workflow."""
    for workflow in WORKFLOWS.values():
        yield from ((name, job) for name, job in workflow["jobs"].items() if "steps" in job)


def commands(job: dict[str, Any]) -> Iterator[str]:
    """Yield the commands of a job, with each value of its matrix."""
    values = job.get("strategy", {}).get("matrix", {})
    for step in job["steps"]:
        run = step.get("run", "")
        if "${{ matrix.target }}" in run:
            yield from (run.replace("${{ matrix.target }}", target) for target in values["target"])
        else:
            yield run


def test_they_run_targets_of_the_makefile() -> None:
    called = {
        word
        for _, job in jobs()
        for command in commands(job)
        for line in re.findall(r"^make (.*)$", command, re.MULTILINE)
        for word in line.split()
        if "=" not in word
    }
    assert called <= TARGETS
    kinds = ("audit", "crates", "docs", "fuzz", "javascript", "lint", "release", "sanitize", "test")
    checks = {target for target in TARGETS if target.startswith(kinds)}
    # macOS for ARM tests NEON, and the matrix all Pythons.
    assert called >= checks - {"docs-serve", "test-rust", "test-python", "test-neon", "test-pythons"}
    assert called >= {"instructions", "wasm"}


def test_they_cover_the_pythons_and_systems() -> None:
    matrix = WORKFLOWS["tests"]["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == PYTHONS
    assert [name.split("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]
    wheels = WORKFLOWS["release"]["jobs"]["wheels"]
    (build,) = (step for step in wheels["steps"] if step.get("uses", "").startswith("PyO3/"))
    assert build["with"]["args"].endswith("--interpreter ${{ env.PYTHONS }}")
    built = WORKFLOWS["release"]["env"]["PYTHONS"].split()
    assert sorted(built) == sorted([*PYTHONS, "3.14t"])
    (setup,) = (step for step in wheels["steps"] if step.get("uses", "").startswith("actions/setup-python"))
    assert sorted(setup["with"]["python-version"].split()) == sorted(built)
    systems = [(each["os"].split("-")[0], each["target"]) for each in wheels["strategy"]["matrix"]["include"]]
    assert len(systems) == len(set(systems)) + 2 == 8  # Linux with glibc and with musl


def system(runner: str) -> tuple[str, str]:
    """Return the system and the processor of a runner, as the page on support names them."""
    name = {"ubuntu": "Linux", "macos": "macOS", "windows": "Windows"}[runner.split("-")[0]]
    is_arm = runner.endswith("-arm") or runner == "macos-15"
    arm, intel = {"Linux": ("aarch64", "x86-64"), "Windows": ("arm64", "x64")}.get(name, ("arm64", "x86-64"))
    return name, arm if is_arm else intel


def test_the_page_on_support_names_what_is_built_and_tested() -> None:
    page = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| Systems \| (.+) \|$", page, re.MULTILINE)
    said = [
        {
            (name, each)
            for name, listed in re.findall(r"(\w+) \(([^);]+)", part)
            for each in listed.split(", ")
        }
        for part in row.split("Each change is tested on")
    ]
    wheels = WORKFLOWS["release"]["jobs"]["wheels"]["strategy"]["matrix"]["include"]
    tested = WORKFLOWS["tests"]["jobs"]["tests"]["strategy"]["matrix"]["os"]
    assert said == [{system(each["os"]) for each in wheels}, set(map(system, tested))]


def test_jobs_have_limits_and_few_rights() -> None:
    for name, workflow in WORKFLOWS.items():
        assert workflow["permissions"] == {"contents": "read"}, name
        for job, settings in workflow["jobs"].items():
            if "uses" in settings:
                assert settings == {"uses": "./.github/workflows/tests.yml"}
                continue
            assert settings["timeout-minutes"] <= 330, job
            assert "latest" not in settings["runs-on"], job
            # Only what publishes may write, and it runs no code of a pull request.
            if "permissions" in settings:
                assert settings["environment"]["name"] in ("pypi", "github-pages"), job
                triggers = workflow[True]  # `on` is a boolean of YAML 1.1
                assert "pull_request" not in triggers
    assert not any("pull_request_target" in path.read_text(encoding="utf-8") for path in FILES)


def test_no_expression_of_a_stranger_is_in_a_command() -> None:
    # A branch name or a title in `run:` is code: https://docs.github.com/actions/security-for-github-actions
    for name, job in jobs():
        for step in job["steps"]:
            for expression in re.findall(r"\$\{\{ *([^}]+?) *\}\}", step.get("run", "")):
                assert expression.startswith("matrix."), (name, expression)


def test_a_step_runs_or_uses_and_needs_exist() -> None:
    for workflow in WORKFLOWS.values():
        for name, job in workflow["jobs"].items():
            needs = job.get("needs", [])
            assert ({needs} if isinstance(needs, str) else {*needs}) <= workflow["jobs"].keys(), name
            assert all(("run" in step) != ("uses" in step) for step in job.get("steps", [])), name


def test_actions_have_a_version() -> None:
    used = {step["uses"] for _, job in jobs() for step in job["steps"] if "uses" in step}
    assert len(used) > 8
    for action in used:
        name, _, version = action.partition("@")
        assert name.split("/")[0] in OWNERS, action
        assert re.fullmatch(r"v\d+|release/v\d+|[0-9a-f]{40}", version), action
