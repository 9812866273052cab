"""The commands of docs/first-hour.md print what the page shows."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

import first_hour


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
@pytest.mark.fixtures
def test_the_first_hour(tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path.cwd())  # and the variable below: restored after the test
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    first_hour.run(tmp_path, shared, Path(sysconfig.get_path("scripts")))
