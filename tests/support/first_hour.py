"""Runs the commands of docs/first-hour.md, and compares what they print with the page."""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
from pathlib import Path

from pages import ROOT, blocks, run_console

PAGE = "docs/first-hour.md"
# Under the SHA-1 of its address, tiktoken's cache holds a file. `fill_cache` of tiktoken_files.py writes one,
# but with the package, which is missing where tests/release.py runs this file.
VOCABULARY = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"


def run(directory: Path, shared: Path, scripts: Path) -> None:
    """Run them in an empty directory, with the commands of an environment and the files of the fixtures."""
    cached = directory / hashlib.sha1(VOCABULARY.encode()).hexdigest()
    shutil.copy(shared / "vocab" / "o200k_base.tiktoken", cached)
    texts = directory / "texts"
    texts.mkdir()
    with lzma.open(shared / "corpora" / "books.txt.xz", "rt", encoding="utf-8") as books:
        for number in range(100):
            text = books.read(10_000).replace("<|endoftext|>", "")
            (texts / f"{number}.txt").write_text(text, encoding="utf-8", newline="")
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    [block] = [each for each in blocks(page) if each.language == "console"]
    os.environ["TIKTOKEN_CACHE_DIR"] = str(directory)
    os.chdir(directory)
    run_console(PAGE, block, scripts, shows_progress=True)
    assert {"train.bin", "val.bin", "meta.pkl"} <= {path.name for path in Path("data").iterdir()}
