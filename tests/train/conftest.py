from __future__ import annotations

from pathlib import Path

import pytest

from training import WORDS


@pytest.fixture
def corpus_files(tmp_path: Path) -> list[Path]:
    files = [tmp_path / "one.txt", tmp_path / "two.txt"]
    files[0].write_text(WORDS, encoding="utf-8", newline="")
    files[1].write_text("wider néwest\r\n\r\nlower  1234", encoding="utf-8", newline="")
    return files
