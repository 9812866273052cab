"""What every engine has to count as one machine does, and its example."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import bpe_tokenizer
from bpe_tokenizer.distributed import CountSettings

SETTINGS = {
    "gpt2": CountSettings("gpt2", None),
    "cl100k": CountSettings(),
    "special": CountSettings("cl100k", "NFC", ("<|end|>", "def ")),
    "special plain": CountSettings("gpt2", None, ("<|end|>",)),
}


def documents(texts: list[str]) -> list[str]:
    """Documents of every kind: long and short, empty, with special tokens, with line ends of every kind."""
    short = [part for text in texts for part in text.split("\n\n")]
    odd = [
        "",
        "<|end|>",
        "a<|end|><|end|> b\r\n\r\n",
        "cafe\u0301 \u00e9\r",
        "\0",
        "日本語" * 500,
        " " * 1000,
    ]
    return [*odd, *texts, *short, "<|end|>".join(short[:100])]


def write_files(directory: Path, texts: list[str]) -> list[Path]:
    """The same as files, with an empty one."""
    paths = [directory / f"{number}.txt" for number in range(len(texts) + 1)]
    for path, text in zip(paths, [*texts, ""], strict=True):
        path.write_bytes(text.encode())
    return paths


def run_example(name: str, directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run an example as a newcomer does, in a directory, with environment variables."""
    package = str(Path(bpe_tokenizer.__file__).parents[1])
    return subprocess.run(
        [sys.executable, str(Path(__file__).parents[2] / "examples" / name)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": package, **variables},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
