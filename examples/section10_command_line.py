"""§10: the command line, from training to chatting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bpe_tokenizer import BPETokenizer
from shared import heading, library_files, show

# No server runs at this address, so connections are refused immediately.
NO_SERVER = "http://127.0.0.1:9"


def main() -> None:
    """Run each command in a temporary directory."""
    heading(10, "The command line")
    with TemporaryDirectory() as directory:
        here = Path(directory)
        show("bpe-tokenizer --help", run(here, "--help"))
        train(here)
        encode_and_decode(here)
        look_at_it(here)
        convert(here)
        compare(here)
        token_files(here)
        chat(here)
        demo(here)
        doctor(here)
        what_goes_wrong(here)


def run(here: Path, *arguments: str, stdin: str = "", exit_code: int = 0) -> str:
    """Run a command and return its output, or its error if it should fail."""
    done = subprocess.run(
        [sys.executable, "-m", "bpe_tokenizer", *arguments],
        cwd=here,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1", "NO_COLOR": "1", "COLUMNS": "100"},
        check=False,
    )
    assert done.returncode == exit_code, done.stderr
    return done.stderr if exit_code else done.stdout


def train(here: Path) -> None:
    """Train on two files."""
    corpus = [str(path) for path in library_files()[:2]]
    options = ["--vocab-size", "600", "--special", "<|im_start|>", "<|im_end|>", "--pattern", "gpt2"]
    plain = ["--normalization", "none", "--min-frequency", "2", "--json"]
    report = json.loads(run(here, "train", "--corpus", *corpus, "--output", "small", *options, *plain))
    assert BPETokenizer.load(here / "small").vocab_size == 600
    show("bpe-tokenizer train --corpus FILE FILE --output small", report)
    counted = json.loads(run(here, "count", "--corpus", *corpus, "--output", "two.counts", "--json"))
    assert counted["documents"] == 2
    run(here, "train", "--counts", "two.counts", "--output", "counted", "--vocab-size", "600", "--quiet")
    show("bpe-tokenizer count --corpus FILE FILE --output two.counts", counted)


def encode_and_decode(here: Path) -> None:
    """Encode a text, and decode its ids, also from pipes."""
    text = "import this  # 🙂"
    shown = run(here, "encode", "--tokenizer", "small", "--text", text, "--show-tokens")
    ids = shown.splitlines()[0].split()
    assert list(map(int, ids)) == BPETokenizer.load(here / "small").encode(text)
    assert run(here, "decode", "--tokenizer", "small", "--ids", *ids) == text
    piped = run(here, "encode", "--tokenizer", "small", "--json", stdin=text)
    assert run(here, "decode", "--tokenizer", "small", stdin=piped) == text
    show("bpe-tokenizer encode --show-tokens", shown)


def look_at_it(here: Path) -> None:
    """Show facts about the tokenizer and its tokens."""
    shown = run(here, "info", "--tokenizer", "small", "--sample-text", "import this")
    assert "round trip      exact" in shown
    show("bpe-tokenizer info", shown)
    tokens = run(here, "view", "--tokenizer", "small", "--text", "import this", "--plain")
    run(here, "view", "--tokenizer", "small", "--text", "import this", "--html", "tokens.html")
    assert "<html" in (here / "tokens.html").read_text(encoding="utf-8")
    show("bpe-tokenizer view --plain", tokens)


def convert(here: Path) -> None:
    """Write the same tokenizer in another format."""
    report = run(here, "convert", "small", "small.gguf", "--to", "gguf")
    converted = BPETokenizer.load(here / "small.gguf", "gguf")
    assert converted.vocab == BPETokenizer.load(here / "small").vocab
    show("bpe-tokenizer convert small small.gguf --to gguf", report)


def compare(here: Path) -> None:
    """Show statistics of a tokenizer on a corpus, and of two side by side."""
    corpus = str(library_files()[2])
    report = run(here, "report", "--tokenizer", "small", "--corpus", corpus)
    run(here, "report", "--tokenizer", "small", "--corpus", corpus, "--html", "report.html")
    assert "<svg" in (here / "report.html").read_text(encoding="utf-8")
    show("bpe-tokenizer report", *report.splitlines()[:8])
    run(here, "train", "--corpus", corpus, "--output", "own", "--vocab-size", "600", "--quiet")
    report = run(here, "compare", "small", "own", "--corpus", corpus)
    show("bpe-tokenizer compare small own", *report.splitlines()[:8])


def token_files(here: Path) -> None:
    """Write the token files that training programs read."""
    corpus = str(library_files()[2])
    run(
        here,
        "tokenize-corpus",
        "--tokenizer",
        "small",
        "--corpus",
        corpus,
        "--no-eos",
        "--output",
        "ids",
    )
    files = sorted(path.name for path in (here / "ids").iterdir())
    show("bpe-tokenizer tokenize-corpus", files)
    assert any(name.endswith(".bin") for name in files)
    options = ["--tokenizer", "small", "--corpus", corpus, "--output", "parts", "--unit-size", "1kB"]
    options += ["--documents", "line", "--no-eos"]
    for part in ("1", "0"):  # as two machines would, at the same time
        run(here, "tokenize-corpus", *options, "--part", part, "--of", "2", "--shuffle", "1", "--events")
    merged = json.loads(run(here, "merge-manifests", "parts", "--verify", "--json"))
    show("bpe-tokenizer merge-manifests parts", merged)
    assert merged["documents"] > len(merged["files"]) > 1


def doctor(here: Path) -> None:
    """Show what is installed."""
    installed = json.loads(run(here, "doctor", "--json"))
    show("bpe-tokenizer doctor", {name: installed[name] for name in ("version", "instructions")})


def chat(here: Path) -> None:
    """Send a message to a missing server: an error of one line, and exit code 1."""
    said = ["--template", "chatml", "--message", "Hello?"]
    error = run(here, "chat", "--tokenizer", "small", "--model", NO_SERVER, *said, exit_code=1)
    assert len(error.splitlines()) == 1
    show("bpe-tokenizer chat, without a server", error)


def demo(here: Path) -> None:
    """Run the demo on a part of the library."""
    sources = str(library_files()[0].parent / "email")
    shown = run(here, "demo", "--sources", sources, "--vocab-size", "2000")
    assert "round trip" in shown
    show("bpe-tokenizer demo", shown)


def what_goes_wrong(here: Path) -> None:
    """Show the exit codes: 1 for an expected error, 2 for a wrong command line."""
    error = run(here, "decode", "--tokenizer", "small", "--ids", "99999", exit_code=1)
    show("bpe-tokenizer decode --ids 99999", error)
    assert "Traceback" not in error
    show("bpe-tokenizer decode --idz 1", run(here, "decode", "--idz", "1", exit_code=2))


if __name__ == "__main__":
    main()
