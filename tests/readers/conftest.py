"""Fixtures of the tests of corpora."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer
from token_files import DOCUMENTS


@pytest.fixture
def ids(tokenizer: BPETokenizer) -> list[list[int]]:
    """What `DOCUMENTS` become, with EOS."""
    return [[*tokenizer.encode(text), tokenizer.eos_token_id or 0] for text in DOCUMENTS]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(DOCUMENTS), encoding="utf-8", newline="")
    return path
