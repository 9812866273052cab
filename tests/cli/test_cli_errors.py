"""The command line: errors, interrupts and readers that go away."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.cli import main
from bpe_tokenizer.cli.streams import wrapped
from bpe_tokenizer.cli.usage import in_options
from bpe_tokenizer.errors import TokenizerError
from bpe_tokenizer.train import progress
from command_line import TEXT, Run, process


@pytest.fixture
def here(directory: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory with a saved tokenizer, a corpus, and files that are none."""
    monkeypatch.chdir(tmp_path)
    Path("saved").symlink_to(directory)
    Path("c.txt").write_bytes(corpus.read_bytes())
    Path("bad.txt").write_bytes(b"good \xff bad")
    Path("empty.txt").touch()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("encode -t missing --text x", "missing"),
        ("encode -t saved --file absent", "absent"),
        ("encode -t saved --file bad.txt", "bad.txt is not UTF-8: byte 0xff at offset 5"),
        ("encode -t saved --text x --allowed-special '<|no|>'", "<|no|>"),
        ("encode -t saved --file .", "is a directory; name its files"),
        ("decode -t saved --ids 999", "999"),
        ("decode -t saved --ids -", "'twelve' is not an id"),
        ("info -t bad.txt", "bad.txt"),
        ("train --corpus absent -o out", "absent"),
        ("train --corpus bad.txt -o out", "bad.txt"),
        ("train --corpus empty.txt -o out", "empty"),
        ("train --corpus c.txt -o out --vocab-size 256", "256"),
        ("train --corpus c.txt -o out --pattern (", "pattern"),
        ("train --corpus c.txt -o bad.txt --vocab-size 260 -q", "bad.txt"),
        ("train --corpus . -o out", "bad.txt: byte 5"),
        ("train --corpus *.none -o out", "no file matches"),
        # Before the corpus is read, which does not exist.
        ("train --corpus absent -o bad.txt/x", "bad.txt' is not a directory"),
        ("count --corpus absent -o bad.txt/x", "Not a directory"),
        ("count --corpus absent -o no/x", "No such file"),
        ("count --corpus absent -o .", "Is a directory"),
        ("report -t saved --corpus absent --html bad.txt/x", "Not a directory"),
        ("demo --sources .", "--sources"),
        ("chat --model /nope.gguf", "/nope.gguf: there is no such file"),
        ("chat -t saved --model /nope.gguf", "/nope.gguf: there is no such file"),
    ],
)
def test_an_expected_error_is_one_line(run: Run, line: str, said: str) -> None:
    result = run(*shlex.split(line), stdin=b"12 twelve")
    assert (result.code, result.out, result.err.count("\n")) == (1, b"", 1), result
    assert result.err.startswith("bpe-tokenizer: ")
    assert said in result.err
    assert not Path("out").exists()


def test_a_saved_tokenizer_is_replaced_only_with_overwrite(
    run: Run, directory: Path, tmp_path: Path, corpus: Path
) -> None:
    single = tmp_path / "x.tiktoken"
    BPETokenizer("gpt2", None).train("low low", 258, verbose=False).export(single, "tiktoken")
    ranks, pair = ("--split-pattern", "gpt2"), tmp_path / "pair"
    assert run("convert", single, pair, "--to", "gpt2", *ranks).code == 0
    for path, line in (
        (directory, ("train", "--corpus", tmp_path / "absent", "--output", directory)),
        (pair, ("train", "--corpus", tmp_path / "absent", "--output", pair)),
        (pair, ("convert", single, pair, "--to", "gpt2", *ranks)),
        (single, ("convert", directory, single, "--to", "tiktoken")),
    ):
        files = {each: each.read_bytes() for each in ([path] if path.is_file() else path.iterdir())}
        result = run(*line)
        assert (result.code, result.out) == (1, b"")
        assert "exists already; write to another path, or replace the saved tokenizer with --overwrite" in (
            result.err
        )
        assert {each: each.read_bytes() for each in files} == files
    assert run("train", "--corpus", corpus, "-o", pair, "--vocab-size", 258, "--overwrite", "-q").code == 0
    assert (
        run("convert", pair, single, "--to", "tiktoken", "--normalization", "none", "--overwrite").code == 0
    )
    BPETokenizer.load(directory).save(directory)  # Python replaces, as it says


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("train --corpus c.txt --output out --vocab-size 300", "Counting pieces: MB(, MB/s)?"),
        ("train --corpus c.txt --output out --vocab-size 300", r"Learning merges: \d+ of 44 merges"),
        ("count --corpus c.txt --output out", "Counting pieces: MB(, MB/s)?"),
        ("tokenize-corpus -t saved --corpus c.txt --output out", "Tokenizing: MB(, MB/s)?, TOKENS"),
        ("encode -t saved --count --file c.txt", "Tokenizing: MB, MB/s, TOKENS"),
        ("encode -t saved --count --file -", r"Tokenizing: 0\.4\d MB, MB/s, TOKENS"),
        ("report -t saved --corpus c.txt", "Reading: MB, MB/s"),
        ("compare saved saved --corpus c.txt", "Reading: MB, MB/s"),
    ],
)
@pytest.mark.usefixtures("here")
def test_long_work_prints_lines_where_there_is_no_terminal(
    line: str, said: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = TEXT.encode() * 5000
    Path("c.txt").write_bytes(data)
    times = itertools.count()
    monkeypatch.setattr(progress, "clock", lambda: 31.0 * next(times))
    shown = run(*line.split(), stdin=data).err
    for name, pattern in (
        ("MB/s", r"\d+\.\d\d M_/s"),
        ("TOKENS", r"[\d.]+k tokens, [\d.]+[kM]? tokens/s"),
        (": MB", r": 0\.\d\d of [01]\.\d\d M_"),
    ):
        said = said.replace(name, pattern)
    said = said.replace("M_", "MB")
    assert re.search(rf"^{said}, [\d,]+ s$", shown, re.MULTILINE), shown
    quiet = line.replace(" out", " quiet").split()
    assert run(*quiet, "--quiet", stdin=data).err == ""


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("train --corpus c.txt -o x --vocab-size 5", ": --vocab-size is 5; it must"),
        (
            "train --corpus c.txt -o x --vocab-size 257 --special <a> <b>",
            "do not fit into --vocab-size 257; ask",
        ),
        ("train --corpus c.txt -o x --max-token-length 0", ": --max-token-length is 0"),
        ("train --corpus c.txt -o x --max-memory 5XB", ": --max-memory is '5XB'"),
        ("train --corpus c.txt -o x --threads 0", ": --threads is 0"),
        (
            "train --corpus c.txt -o x --checkpoint ck --checkpoint-every -1",
            ": --checkpoint-every is -1",
        ),
        (
            "train --corpus c.txt -o x --split-pattern gpt-4o",
            ": a published tokenizer is --tokenizer gpt-4o.",
        ),
        (
            "encode -t saved --text x --allowed-special all none",
            "--allowed-special takes 'all', 'none' or special tokens, not a mixture",
        ),
        (
            "encode -t saved --text x --allowed-special '<|no|>'",
            ": --allowed-special names '<|no|>', which is not a special token of this tokenizer; did you "
            "mean '<|end|>'? `bpe-tokenizer info` lists them\n",
        ),
        ("encode -t p50k_base --text x", "; for a download pass --download, or give its path"),
        ("info -t vocab_size/small.tiktoken", "vocab_size/small.tiktoken: a rank file"),
        ("info -t vocab_size/small.tiktoken", "; `bpe-tokenizer convert` takes it as --split-pattern"),
        ("convert vocab_size/small.tiktoken x --to hf", "; pass --split-pattern\n"),
        ("convert nfc x --to gguf", " --normalization none drops it: texts"),
        ("convert saved x --to hf --special <a>", "; leave out --special\n"),
        ("convert saved x --to minbpe", ": path is 'x'; minbpe only loads"),
        ("tokenize-corpus -t saved --corpus c.txt -o x --eos-token a", ": --eos-token is 'a', which is not"),
    ],
)
def test_errors_name_options_and_not_python(
    run: Run, line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    Path("vocab_size").mkdir()
    BPETokenizer("gpt2", None).train("low low", 258, verbose=False).export(
        "vocab_size/small.tiktoken", "tiktoken"
    )
    BPETokenizer().train("low low", 258, verbose=False).save("nfc")
    result = run(*shlex.split(line))
    assert (result.code, result.out) == (1, b"")
    assert said in result.err


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("use on_error='skip' (on the command line: --on-error skip)", "use --on-error skip"),
        ("pass template= with 'a'", "pass --template with 'a'"),
        ("the ids that add_special_tokens=True adds", "the ids that --add-special-tokens adds"),
        (
            "/tmp/vocab_size/x: vocab_size.json, 'vocab_size'",
            "/tmp/vocab_size/x: vocab_size.json, 'vocab_size'",
        ),
        (
            "`vocab_size` and vocab_size() and my_vocab_size",
            "`vocab_size` and vocab_size() and my_vocab_size",
        ),
        ("a template is 1", "a template is 1"),
        ("too small for this val_fraction; or", "too small for this --val-fraction; or"),
    ],
)
def test_only_the_names_of_arguments_become_options(message: str, said: str) -> None:
    assert in_options(message, ["vocab_size", "template", "add_special_tokens", "on_error"]) == said


def test_debug_shows_the_traceback(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TokenizerError, match="999"):
        main(["decode", "--tokenizer", str(directory), "--ids", "999", "--debug"])
    with process("decode", "--tokenizer", directory, "--ids", 999, "--debug") as running:
        _, err = running.communicate(timeout=200)
    assert running.returncode == 1
    assert err.startswith(b"Traceback (most recent call last):")


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_with_130_and_nothing_said(directory: Path) -> None:
    with process("encode", "--tokenizer", directory, "--file", "-") as running:
        _wait_until_it_reads(running)
        assert _interrupt(running) == 130
        assert running.stderr is not None
        assert running.stderr.read() == b""


def _wait_until_it_reads(running: subprocess.Popen[bytes]) -> None:
    """Fill the pipe: writing more than it holds returns only once the other side reads."""
    assert running.stdin is not None
    running.stdin.write(b"x" * (1 << 20))
    running.stdin.flush()


def _interrupt(running: subprocess.Popen[bytes]) -> int:
    """Send Ctrl-C until the process ends.

    Python sees one that comes just before it reads after the read only. One that comes while the process
    ends would kill it, so the next waits for long.
    """
    for _ in range(5):
        running.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return running.wait(timeout=50)
    raise AssertionError("Ctrl-C does not end the process")


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize(
    ("command", "content"), [("encode", "lower newest " * 100_000), ("decode", "97 " * 1_000_000)]
)
def test_a_reader_that_goes_away_is_no_error(
    command: str, content: str, directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "long.txt").write_text(content)
    with process(command, "--tokenizer", directory, "--file", tmp_path / "long.txt") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(1)
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(timeout=200) == 141


def test_summaries_count_one_document(run: Run, corpus: Path, tmp_path: Path) -> None:
    for files, said in ((["*.txt"], "1 document:"), (["one.txt", corpus], "2 documents:")):
        (tmp_path / "one.txt").write_text("low lower")
        names = [str(tmp_path / str(name)) for name in files]
        result = run("train", "--corpus", *names, "--output", tmp_path / said, "--vocab-size", 258)
        assert said in result.err, result


@pytest.mark.parametrize(("is_terminal", "lines"), [(True, 3), (False, 1)])
def test_errors_wrap_at_words_in_terminals_only(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, lines: int
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    text = "bpe-tokenizer: an error with a-long-word of-20-and-more-characters"
    shown = wrapped(text, stream)
    assert " ".join(shown.split()) == text
    assert (shown.count("\n") + 1 >= lines) if is_terminal else "\n" not in shown
