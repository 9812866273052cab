"""The command line: help, version, usage errors and completion."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer, __version__
from bpe_tokenizer.cli.commands import COMMANDS, EXAMPLES
from command_line import Result, Run, process

# The command line itself


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_help_has_a_short_option_and_fits_its_terminal(
    run: Run, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = [command] if command else []
    for columns in (120, 80, 60, 40, 24):
        monkeypatch.setenv("COLUMNS", str(columns))
        result = run(*name, "-h")
        assert result == run(*name, "--help") == run("help", *name)
        assert (result.code, result.err) == (0, "")
        width = min(columns, 80)
        # A line that is too long is one word.
        lines = [line.strip() for line in result.text.splitlines()]
        assert [line for line in lines if len(line) > width and " " in line] == []
        text = " ".join(result.text.split())
        assert f"Example: {EXAMPLES[command]}" in text
        assert "Show this message and exit." in text
        assert not re.search("<(int|str|path|list|float|file)", text)  # the types of Typer
        assert not command or "--debug" in text


def test_the_help_has_a_line_for_each_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("--help").text.splitlines()
    for command, summary in COMMANDS.items():
        assert f"  {command:<15}  {summary}" in lines
        assert f"\n  {summary}\n" in run(command, "--help").text


def test_a_bare_command_shows_the_help_once(run: Run) -> None:
    result = run()
    assert (result.code, result.text) == (2, "")
    assert result.err.rstrip() == run("--help").text.rstrip()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("32k", ""),
        ("0.5k", ""),
        ("3_00", ""),
        ("3,00", ""),
        ("abc", "'abc' is not a whole number, such as 32000 or 32k."),
        ("32K", "'32K' is not a whole number"),
        ("1.5", "'1.5' is not a whole number"),
    ],
)
def test_sizes_of_vocabularies_are_written_as_people_write_them(
    run: Run, corpus: Path, tmp_path: Path, value: str, said: str
) -> None:
    result = run("train", "--corpus", corpus, "--vocab-size", value, "--output", tmp_path / "made", "-q")
    assert (result.code, said in result.err) == (2 if said else 0, True)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--min-frequency abc", "'--min-frequency': 'abc' is not a (whole number|valid integer)\\."),
        ("--checkpoint-every soon", "'--checkpoint-every': 'soon' is not a (number|valid float)\\."),
        ("--port 70000", "'--port': '?70000'? is (greater than 65535|not in the range 0<=x<=65535)\\."),
        ("--port -1", "'--port': '?-1'? is (less than 0|not in the range 0<=x<=65535)\\."),
    ],
)
def test_a_wrong_number_is_named_in_plain_words(run: Run, option: str, said: str) -> None:
    command = ["view"] if "port" in option else ["train", "--corpus", "x", "--output", "y"]
    result = run(*command, *option.split())
    assert result.code == 2
    assert re.search(said, result.err)  # the second form is that of older versions of typer


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("chat", "demo")])
def test_examples_run(
    run: Run, command: str, directory: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(corpus, "corpus.txt")
    words = shlex.split(EXAMPLES[command])[1:]
    if command == "train":
        words += ["--vocab-size", "260", "--quiet"]
    elif command == "decode":
        words = [*words[:-2], "97", "98"]
    elif command == "view":
        words.append("--plain")
    elif command == "merge-manifests":
        made = [*shlex.split(EXAMPLES["tokenize-corpus"])[1:], "--part", "0", "--of", "1"]
        assert run(*(str(directory) if word == "DIR" else word for word in made)).code == 0
    outputs = {"DIR": "made" if command == "train" else directory, "DIR1": directory, "DIR2": directory}
    assert run(*(outputs.get(word, word) for word in words)).code == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("encode --text x", "--tokenizer DIR --text 'Hello'"),
        ("encode --tokenizer x 'low lower'", "--text 'Hello'"),
        ("train corpus.txt", "--corpus corpus.txt --output DIR"),
        ("info DIR", "bpe-tokenizer info --tokenizer DIR"),
        ("convert DIR", "bpe-tokenizer convert DIR out.gguf --to gguf"),
        ("chat", "bpe-tokenizer chat --model model.gguf"),
        ("encode --test x", "--text"),
        ("--tokenizer x encode", "bpe-tokenizer encode --tokenizer DIR"),
        ("encod", "'encode'"),
        ("tokenize low", "No such command 'tokenize'. Did you mean"),
        ("encode gpt2 'low lower'", "write --tokenizer gpt2 --text 'low lower'"),
        ("encode -t gpt2 low lower", "write --text 'low lower'"),
        ("encode -t gpt2 --text low lower newest", "write --text 'low lower newest'"),
        ("encode -t gpt2 corpus.txt corpus.txt", "write --file corpus.txt corpus.txt"),
        ("encode -t gpt2 corpus.txt a.txt b.txt", "write --file corpus.txt; there is no file a.txt\n"),
        ("encode -t gpt2 corpus.txt .", "write --file corpus.txt; there is no file .\n"),
        ("encode -t gpt2 corpus.txt is a file", "write --text 'corpus.txt is a file'\n"),
        ("encode -t gpt2 absent.txt", "write --text absent.txt; there is no file absent.txt\n"),
        ("view -t gpt2 corpus.txt corpus.txt", "write --file corpus.txt\n"),
        ("view -t gpt2 --text a --text b", "--text is one text; run the command once for each\n"),
        ("view -t gpt2 -f a --file b", "--file is one file; run the command once for each\n"),
        ("train --corpus corpus.txt -o a -o b", "--output is one path; run"),
        ("encode -t gpt2 --text low --out_type str", "ids are the default, and --show-tokens"),
        ("encode -t gpt2 --text low --pieces", "--show-tokens shows the tokens too"),
        ("encode -t gpt2 --text a --text b", "--text is one text; run the command once for each\n"),
        ("encode -t gpt2 --text low --truncate", "| cut -d ' ' -f -N"),
        ("encode -t gpt2 --text low --max-length 1", "end the line with | cut -d ' ' -f -N"),
        ("encode -t gpt2 -f corpus.txt --lines", "bpe-tokenizer tokenize-corpus --tokenizer"),
        ("encode gpt2", "write --tokenizer gpt2 or --text gpt2"),
        ("encode gpt2 -f corpus.txt", "write --tokenizer gpt2\n"),
        ("encode -t gpt2 \x1b[2J", "write --text ...\n"),
        (f"encode -t gpt2 {'low' * 1000}", f"write --text {'low' * 13}l...\n"),
        ("decode 1 2 3 --tokenizer gpt2", "write --ids 1 2 3\n"),
        ("decode 1 2 3", "write --ids 1 2 3\n"),
        ("decode gpt2 1 2 3 4 5", "write --tokenizer gpt2 --ids 1 2 3 4 ...\n"),
        ("train corpus.txt -o dir", "write --corpus corpus.txt\n"),
        ("info gpt2", "write --tokenizer gpt2\n"),
        ("info -t gpt2 cl100k_base", "Unexpected argument 'cl100k_base'\n"),
        ("chat model.gguf", "write --model model.gguf\n"),
        ("convert gpt2 out hf", "write --to hf\n"),
        ("report gpt2 a.txt b.txt", "write --tokenizer gpt2 --corpus a.txt b.txt"),
        ("demo now", "Unexpected argument 'now'\n"),
        ("encode -tokenizer gpt2 --text low", "No such option: -tokenizer; write --tokenizer\n"),
        ("train --input corpus.txt", "No such option: --input; write --corpus\n"),
        ("train --corpus corpus.txt -v 300", "No such option: -v; write --vocab-size\n"),
        ("encode --model gpt2", "No such option: --model; write --tokenizer\n"),
        ("encode -t gpt2 --text low -o ids.txt", "with > FILE"),
        ("convert -t gpt2 -o out --to hf", "the two paths IN and OUT without a name"),
        ("count --tokenizer gpt2 --file corpus.txt", "bpe-tokenizer encode --count --tokenizer"),
        ("count gpt2 corpus.txt", "bpe-tokenizer encode --count --tokenizer"),
    ],
)
def test_a_line_as_people_type_it_is_answered_by_what_to_type(
    run: Run, line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("corpus.txt").touch()
    result = run(*shlex.split(line))
    assert (result.code, result.out) == (2, b"")
    assert said in result.err
    assert "\nExample: bpe-tokenizer " in result.err
    assert "\x1b" not in result.err


def test_repetition_that_loses_nothing_is_allowed(run: Run, directory: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("low")
    encode = ("encode", "-t", tmp_path / "unused", "-t", directory)
    assert run(*encode, "-f", text, "-f", text, "--json", "--json").text.count("\n") == 2
    for ids in (["--ids", 108, "--ids", 111, 119], ["--ids=108", 111, 119]):
        assert run("decode", "-t", directory, *ids).out == b"low"


@pytest.mark.parametrize(
    ("command", "said"),
    [("encode", "--text or --file"), ("decode", "--ids or --file"), ("view", "--text or")],
)
def test_a_terminal_without_input_is_told_the_options(
    run: Run, directory: Path, command: str, said: str
) -> None:
    result = run(command, "-t", directory, stdin=None)
    assert (result.code, result.out) == (2, b"")
    assert f"no input: name it with {said}" in result.err


def test_the_output_is_a_directory(run: Run, corpus: Path, directory: Path, tmp_path: Path) -> None:
    for line in (
        ("train", "--corpus", corpus, "--output", tmp_path / "toy.gguf"),
        ("convert", directory, tmp_path / "toy.gguf", "--to", "hf"),
    ):
        result = run(*line)
        assert (result.code, result.out) == (1, b"")
        assert "'toy.gguf' has the name of a file, and this format is a directory; `bpe-" in result.err
    assert list(tmp_path.iterdir()) == []
    converted = run("convert", directory, tmp_path / "toy.gguf", "--to", "gguf")
    assert (converted.code, converted.err) == (0, "")


def test_short_options_and_underscores_work(run: Run, directory: Path, corpus: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    line = ["train", "--corpus", corpus, "-o", made, "--vocab_size", 262, "--special_tokens", "<a>", "<b>"]
    assert run(*line, "-q") == Result(0, b"", "")
    assert BPETokenizer.load(made).special_tokens == {"<a>": 256, "<b>": 257}
    assert BPETokenizer.load(made).vocab_size == 262
    encoded = run("encode", "-t", made, "-f", corpus, corpus)
    assert encoded == run("encode", "--tokenizer", made, "--file", corpus, corpus)
    assert encoded.out.count(b"\n") == 2
    assert run("decode", "-t", made, "-f", "-", stdin=encoded.out).out == corpus.read_bytes() * 2
    assert (
        run("tokenize_corpus", "-t", directory, "--corpus", corpus, "-o", tmp_path / "t", "--no_eos").code
        == 0
    )
    assert run("-v").out == run("-V").out == run("--version").out
    assert run("encode", "-t", made, "--text", "--vocab_size").text.split()[2:4] == ["118", "111"]


def test_no_command_shows_the_help(run: Run) -> None:
    result = run()
    assert result.code in (0, 2)  # Typer changed its mind.
    assert "Usage: bpe-tokenizer" in result.text + result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "No such command 'nonsense'. The commands are train, count,"),
        (["help", "nope"], "No such command 'nope'. The commands are train, count,"),
        (["help", "encod"], "Did you mean 'encode'"),
        (["help", "--nope"], "--nope"),
        (["encode", "--nonsense"], "--nonsense"),
        (["train", "--output", "x"], "--corpus"),
        (["train", "--corpus", "x", "--output", "y", "--vocab-size", "many"], "--vocab-size"),
        (["train", "--corpus", "x", "--output", "y", "--tie-break", "coin"], "coin"),
        (["train", "--corpus", "x", "--output", "y", "--normalization", "NFX"], "NFX"),
        (["encode", "--tokenizer", "x", "--text", "x", "--file", "y"], "give one of"),
        (["decode", "--tokenizer", "x", "--ids", "12", "twelve"], "'twelve' is not an id"),
        (["decode", "--tokenizer", "x", "--ids", "12", "-1"], "-1"),
        (["decode", "--tokenizer", "x", "--ids", "[[12], [13]]"], "not of lists"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(run: Run, arguments: Sequence[str], said: str) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (2, b"")
    assert said in result.err
    assert "Traceback" not in result.err


def test_python_m_runs_the_command_line() -> None:
    with process("--version") as running:
        out, err = running.communicate(timeout=200)
    assert (running.returncode, err) == (0, b"")
    assert out == f"bpe-tokenizer {__version__}\n".encode()


def test_the_help_imports_no_command() -> None:
    code = "import sys; from bpe_tokenizer.cli import main\n"
    code += "try: main(['--help'])\nexcept SystemExit: print('bpe_tokenizer.cli.train' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


# Completion


def completion(words: Sequence[str], shell: str = "bash") -> dict[str, str]:
    """The variables by which a shell asks for what can follow."""
    line = " ".join(["bpe-tokenizer", *words])
    variables = {
        "_BPE_TOKENIZER_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line.replace(" ", "\n"),
        "COMP_CWORD": str(len(words)),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    if shell != "bash":
        variables = {name: value for name, value in variables.items() if not name.startswith("COMP_")}
    return variables


def test_shells_complete_commands_options_and_values(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clean").mkdir()

    def completed(words: Sequence[str], shell: str = "bash") -> list[str]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in completion(words, shell).items():
                patch.setenv(name, value)
            result = run()
        assert (result.code, result.err) == (0, "")
        return result.text.split()

    assert completed(["en"]) == ["encode"]
    assert completed(["co"]) == ["count", "convert", "compare"]
    assert completed(["encode", "--output"]) == ["--output-format"]
    assert completed(["encode", "--output-format", "ui"]) == ["uint16", "uint32"]
    assert completed(["convert", "a", "b", "--to", "g"]) == ["gguf", "gpt2"]
    assert completed(["train", "--split-pattern", "cl"]) == ["cl100k", "cl100k-bounded"]
    assert completed(["chat", "--template", "ll"]) == ["llama3"]
    assert completed(["train", "--corpus", ""]) == []  # the shell then completes files
    assert completed(["encode", "-t", "cl"]) == ["cl100k_base", "clean"]
    assert "gpt-4o" in completed(["view", "--tokenizer", "gpt-4"])
    assert completed(["compare", "o200k_h"]) == ["o200k_harmony"]
    assert completed(["info", "-t", "tests/"]) == []
    for shell in ("zsh", "fish"):
        assert "encode" in "".join(completed(["en"], shell))
        assert "uint16" in "".join(completed(["encode", "--output-format", "ui"], shell))
    with process(env={**os.environ, **completion(["en"])}) as running:
        assert running.communicate(timeout=200) == (b"encode\n", b"")


@pytest.mark.parametrize(
    ("shell", "said"), [("bash", "complete -o default"), ("zsh", "#compdef"), ("fish", "complete ")]
)
def test_the_script_of_a_shell(shell: str, said: str) -> None:
    with process(env={**os.environ, "_BPE_TOKENIZER_COMPLETE": f"source_{shell}"}) as running:
        out, _ = running.communicate(timeout=200)
    assert running.returncode == 0
    assert said in out.decode()
    assert "bpe-tokenizer" in out.decode()
