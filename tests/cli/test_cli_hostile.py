"""The command line in hostile surroundings: every option, any environment, closed and full outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.cli.commands import COMMANDS
from command_line import TEXT, Run

SUPPORT = Path(__file__).parents[1] / "support"
posix = pytest.mark.skipif(os.name == "nt", reason="POSIX shells")


@posix
@pytest.mark.sampled(0.14)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_with_hostile_values(command: str) -> None:
    child = [sys.executable, str(SUPPORT / "hostile_options.py"), command]
    done = subprocess.run(child, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    *wrong, count = done.stdout.splitlines()
    assert wrong == []
    assert int(count) > 10 or command == "doctor"  # whose options take no values


def test_names_of_strangers_print_escaped_and_short(run: Run, tmp_path: Path) -> None:
    """Names of tokens, files, directories and fields."""
    evil = "\x1b]0;x\x07\u202e"
    tokenizer = BPETokenizer("gpt2", None).train(
        TEXT, 262, special_tokens=[f"<{evil}>", f"<{evil}{'k' * 100_000}>"], verbose=False
    )
    tokenizer.save(tmp_path / "hf")
    config = tmp_path / "hf" / "tokenizer_config.json"
    templates = [{"name": f"{evil}a", "template": "x"}, {"name": f"{evil}b", "template": "x"}]
    own = {**json.loads(config.read_bytes()), f"key {evil}": 1, "chat_template": templates}
    config.write_text(json.dumps(own))
    tokenizer.export(tmp_path / "a.gguf", "gguf")
    corpus = tmp_path / f"corpus{evil}"
    corpus.mkdir()
    (corpus / f"a{evil}.txt").write_text("low lower\n")
    (corpus / f"b{evil}.jsonl").write_text('{"text": "low"}\n' + json.dumps({evil: 1}) + "\n")
    hf, gguf = tmp_path / "hf", tmp_path / "a.gguf"
    with_corpus = ("--corpus", corpus)
    skipping = (*with_corpus, "--on-error", "skip")
    for command in (
        ("info", "--tokenizer", hf),
        ("encode", "--tokenizer", gguf, "--text", f"<{evil}>", "--show-tokens", "--allowed-special", "all"),
        ("encode", "--tokenizer", hf, "--file", corpus / f"{evil}"),
        ("view", "--tokenizer", hf, "--tokenizer", gguf, "--text", evil, "--plain"),
        ("convert", hf, tmp_path / "out.tiktoken", "--to", "tiktoken"),
        ("report", "--tokenizer", hf, *skipping),
        ("report", "--tokenizer", hf, *with_corpus),
        ("compare", hf, gguf, *skipping),
        ("train", *skipping, "--output", tmp_path / "out", "--vocab-size", "258"),
        ("tokenize-corpus", "--tokenizer", hf, *with_corpus, "--output", tmp_path / "ids", "--no-eos"),
        ("info", "--tokenizer", corpus),
        (f"encode{evil}",),
    ):
        result = run(*command)
        shown = (result.text + result.err).replace("\n", "")
        assert shown.isprintable(), command
        assert len(shown) < 20_000, command
        assert "Traceback" not in shown


def test_a_sample_without_text_has_no_rate(run: Run, directory: Path) -> None:
    lines = run("info", "--tokenizer", directory, "--sample-text", "").text.splitlines()
    assert "sample          0 tokens" in lines


SIZES = ["0", "1", "-5", "abc", "²", "99999999999", "9" * 5000, "", "\udcff"]


@pytest.mark.parametrize("variable", ["COLUMNS", "LINES"])
def test_the_size_of_the_terminal_hides_nothing(
    run: Run, directory: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    commands = (
        ("view", "--tokenizer", directory, "--text", "low", "--plain"),
        ("encode", "--tokenizer", directory, "--text", "low", "--show-tokens"),
    )
    monkeypatch.delenv(variable, raising=False)
    expected = [run(*each).out for each in commands]
    assert all(expected)
    for size in SIZES:
        monkeypatch.setenv(variable, size)
        assert [run(*each)[:2] for each in commands] == [(0, out) for out in expected], size
        monkeypatch.setenv(variable, size)
        assert len(run("info", "--tokenizer", directory).out) > 100
        monkeypatch.setenv(variable, size)
        assert b"--tokenizer" in run("encode", "--help").out


def shell(line: str) -> tuple[int, bytes, bytes]:
    """Run a line of a shell, in which $B is the command line."""
    done = subprocess.run(
        ["bash", "-c", line],
        env={**os.environ, "B": f"{sys.executable} -m bpe_tokenizer"},
        capture_output=True,
        check=False,
        timeout=200,
    )
    return done.returncode, done.stdout, done.stderr


@posix
@pytest.mark.sampled(0.33)
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("$B encode --tokenizer {} --text low >&-", b"standard output is closed"),
        ("$B --help >&-", b"standard output is closed"),
        ("$B --version >&-", b"standard output is closed"),
        ("$B decode --tokenizer {} <&-", b"standard input is closed"),
        ("$B report --tokenizer {} --corpus - <&-", b"standard input is closed"),
        ("$B --help >/dev/full", b""),
        ("$B info --tokenizer {} >/dev/full", b""),
    ],
)
def test_closed_and_full_streams_are_an_error_of_one_line(directory: Path, line: str, said: bytes) -> None:
    if "/dev/full" in line and not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    ended, out, err = shell(line.format(directory))
    assert (ended, out, err.count(b"\n")) == (1, b"", 1), err
    assert err.startswith(b"bpe-tokenizer: ")
    assert said in err


@posix
def test_without_any_stream_or_variable_or_directory(directory: Path, tmp_path: Path) -> None:
    assert shell(f"$B encode --tokenizer {directory} --text low 2>&- <&-")[0] == 0
    assert shell(f"$B encode --tokenizer {directory} --text low <&- >&- 2>&-") == (1, b"", b"")
    gone = tmp_path / "gone"
    poor = f"mkdir {gone}; cd {gone}; rmdir {gone}; env -i PYTHONPATH=$PYTHONPATH "
    poor += "TERM=dumb LC_ALL=C PYTHONUTF8=0"
    poor += f" $B encode --tokenizer {directory} --text"
    ids = BPETokenizer.load(directory).encode("löw")
    assert shell(f"{poor} 'löw'") == (0, f"{' '.join(map(str, ids))}\n".encode(), b"")
    assert b"--text is not UTF-8" in shell(f"{poor} $'l\\xf6w'")[2]


@pytest.mark.parametrize("filters", ["", "error", "ignore"])
def test_a_warning_is_one_line_and_no_error(directory: Path, tmp_path: Path, filters: str) -> None:
    text = tmp_path / "a.txt"
    text.write_text("low <|endoftext|> lower")
    done = subprocess.run(
        [sys.executable, "-m", "bpe_tokenizer", "report", "-t", str(directory), "--corpus", str(text)],
        env={**os.environ, "PYTHONWARNINGS": filters},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (0, filters != "ignore"), done.stderr
    if filters != "ignore":
        assert done.stderr.startswith(f"warning: {text} contains '<|endoftext|>', ")
        assert done.stderr.endswith("say --separator '<|endoftext|>'\n")
