"""The commands of docs/first-hour.md print what the page shows."""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import sys
from pathlib import Path

import pytest

from bpe_tokenizer.formats.tiktoken.published import PUBLISHED
from pages import ROOT, blocks, run_console

PAGE = "docs/first-hour.md"


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
@pytest.mark.fixtures
def test_the_first_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = Path(os.environ["BPE_TOKENIZER_FIXTURES"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    cached = hashlib.sha1(PUBLISHED["o200k_base"].ranks.url.encode()).hexdigest()
    shutil.copy(shared / "vocab" / "o200k_base.tiktoken", cached)
    Path("texts").mkdir()
    with lzma.open(shared / "corpora" / "books.txt.xz", "rt", encoding="utf-8") as books:
        for number in range(100):
            text = books.read(10_000).replace("<|endoftext|>", "")
            Path("texts", f"{number}.txt").write_text(text, encoding="utf-8", newline="")
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    [block] = [each for each in blocks(page) if each.language == "console"]
    run_console(PAGE, block, shows_progress=True)
    assert {"train.bin", "val.bin", "meta.pkl"} <= {path.name for path in Path("data").iterdir()}
