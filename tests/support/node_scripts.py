"""Runs scripts of Node on the page's modules; both sides speak JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

__all__ = ["needs_node", "page_modules", "run_node"]

_PAGE = Path(__file__).parents[2] / "page"
_NODE = shutil.which("node")
needs_node = pytest.mark.skipif(_NODE is None, reason="node is not installed")


def page_modules(directory: Path, *names: str) -> Path:
    """Copy files of the page into a directory from which Node loads them as ES modules, and return it."""
    for name in names:
        shutil.copy(_PAGE / name, directory / name)
    (directory / "package.json").write_text('{"type": "module"}')
    return directory


def run_node(script: Path, given: object) -> Any:
    """Run a script with a value as its input, and return its output."""
    assert _NODE is not None
    done = subprocess.run(
        [_NODE, str(script)],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
