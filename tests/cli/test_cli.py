"""The command line: help, version, errors and exit codes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bpe_tokenizer.cli import main, repeat_options
from bpe_tokenizer.cli.commands import COMMANDS
from bpe_tokenizer.errors import TokenizerError
from command_line import Run, process

# The command line itself


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert (result.code, result.err) == (0, "")
    assert f"bpe-tokenizer {command}" in result.text
    assert "--debug" in result.text


def test_help_names_every_command(run: Run) -> None:
    text = run("--help").text
    assert all(f"\n  {command}" in text for command in COMMANDS)


def test_no_command_shows_the_help(run: Run) -> None:
    result = run()
    assert result.code in (0, 2)  # Typer changed its mind.
    assert "Usage: bpe-tokenizer" in result.text + result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "nonsense"),
        (["encode", "--nonsense"], "--nonsense"),
        (["encode", "--text", "x"], "--tokenizer"),
        (["train", "--output", "x"], "--corpus"),
        (["train", "--corpus", "x", "--output", "y", "--vocab-size", "many"], "--vocab-size"),
        (["train", "--corpus", "x", "--output", "y", "--tie-break", "coin"], "coin"),
        (["train", "--corpus", "x", "--output", "y", "--normalization", "NFX"], "NFX"),
        (["encode", "--tokenizer", "x", "--text", "x", "--file", "y"], "not both"),
        (["decode", "--tokenizer", "x", "--ids", "12", "twelve"], "'twelve' is not an id"),
        (["decode", "--tokenizer", "x", "--ids", "12", "-1"], "-1"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(run: Run, arguments: Sequence[str], said: str) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (2, b"")
    assert said in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("arguments", "repeated"),
    [
        ([], []),
        (["--ids", "1", "2", "3"], ["--ids", "1", "--ids", "2", "--ids", "3"]),
        (["--ids=1", "2"], ["--ids=1", "--ids", "2"]),
        (["--ids", "-", "--debug"], ["--ids", "-", "--debug"]),
        (["--corpus", "a", "-", "b"], ["--corpus", "a", "--corpus", "-", "--corpus", "b"]),
        (["--special", "a", "b", "--output", "x"], ["--special", "a", "--special", "b", "--output", "x"]),
        (["--text", "a", "b"], ["--text", "a", "b"]),
        (["--ids", "1", "--ids", "2"], ["--ids", "1", "--ids", "2"]),
    ],
)
def test_options_that_take_several_values(arguments: Sequence[str], repeated: Sequence[str]) -> None:
    assert repeat_options(arguments) == repeated


def test_python_m_runs_the_command_line() -> None:
    with process("--version") as running:
        out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, b"")
    assert out.startswith(b"bpe-tokenizer 0.")


def test_starting_up_imports_no_library_that_only_some_commands_need() -> None:
    code = "import sys, typer; before = set(sys.modules); import bpe_tokenizer.cli; "
    code += "print(*{'rich', 'jinja2', 'regex', 'tokenizers', 'torch'} & (set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize(
    ("option", "absent"),
    [("--version", "typer"), ("--help", "bpe_tokenizer.cli.train")],
    ids=["version", "help"],
)
def test_version_and_help_import_no_command(option: str, absent: str) -> None:
    code = "import sys; from bpe_tokenizer.cli import main\n"
    code += f"try: main([{option!r}])\nexcept SystemExit: print({absent!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_the_help_says_of_each_command_what_its_own_help_says(run: Run) -> None:
    text = run("--help").text
    for name, summary in COMMANDS.items():
        assert summary[:40] in text, name


# Errors


def test_an_expected_error_is_one_line(run: Run, directory: Path, tmp_path: Path, corpus: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"good \xff bad")
    empty = tmp_path / "empty.txt"
    empty.touch()
    out = ("--output", tmp_path / "out")
    for arguments, said in (
        (("encode", "--tokenizer", tmp_path / "missing", "--text", "x"), "missing"),
        (("encode", "--tokenizer", directory, "--file", tmp_path / "absent"), "absent"),
        (("encode", "--tokenizer", directory, "--file", bad), "bad.txt is not UTF-8: byte 0xff at offset 5"),
        (("encode", "--tokenizer", directory, "--text", "x", "--allowed-special", "<|no|>"), "<|no|>"),
        (("decode", "--tokenizer", directory, "--ids", 999), "999"),
        (("info", "--tokenizer", bad), "bad.txt"),
        (("train", "--corpus", tmp_path / "absent", *out), "absent"),
        (("train", "--corpus", bad, *out), "bad.txt"),
        (("train", "--corpus", empty, *out), "empty"),
        (("train", "--corpus", corpus, *out, "--vocab-size", 256), "256"),
        (("train", "--corpus", corpus, *out, "--pattern", "("), "pattern"),
        (("train", "--corpus", corpus, "--output", bad, "--vocab-size", 260, "--quiet"), "bad.txt"),
        (("demo", "--sources", tmp_path), "--sources"),
    ):
        result = run(*arguments)
        assert (result.code, result.out) == (1, b""), result
        assert result.err.startswith("bpe-tokenizer: "), result
        assert said in result.err, result
        assert result.err.count("\n") == 1, result
    assert not (tmp_path / "out").exists()


def test_ids_that_are_piped_in_and_wrong_are_an_expected_error(run: Run, directory: Path) -> None:
    result = run("decode", "--tokenizer", directory, stdin=b"12 twelve")
    assert (result.code, result.out) == (1, b"")
    assert "'twelve' is not an id" in result.err


def test_debug_shows_the_traceback(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(TokenizerError, match="999"):
        main(["decode", "--tokenizer", str(directory), "--ids", "999", "--debug"])
    with process("decode", "--tokenizer", directory, "--ids", 999, "--debug") as running:
        _, err = running.communicate(timeout=60)
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
            return running.wait(timeout=10)
    raise AssertionError("Ctrl-C does not end the process")


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_reader_that_goes_away_is_no_error(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("lower newest " * 100_000)
    with process("encode", "--tokenizer", directory, "--file", tmp_path / "long.txt") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(1)
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(timeout=60) == 141
