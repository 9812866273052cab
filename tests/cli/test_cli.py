"""The command line: what it prints, what it reads, how it ends."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.cli import main, repeat_options
from bpe_tokenizer.cli.commands import COMMANDS
from bpe_tokenizer.cli.decode import parse_ids
from bpe_tokenizer.cli.demo import _hold_out, _python_files
from bpe_tokenizer.errors import OptionError, TokenizerError

TEXT = "low low low low low lower lower newest newest newest newest newest newest widest widest widest\n"
HOSTILE = "Grüße,\r\n\tdu 🙂!\x00 <|end|> ﬁn\n\n  e\u0301"


class Result(NamedTuple):
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode("utf-8")


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


Run = Callable[..., Result]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in this process, with `stdin` piped in; None: the keyboard of a terminal."""

    def run_it(*arguments: object, stdin: bytes | None = b"") -> Result:
        keyboard = _Terminal(io.BytesIO())
        monkeypatch.setattr(sys, "stdin", keyboard if stdin is None else io.TextIOWrapper(io.BytesIO(stdin)))
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main([str(each) for each in arguments])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        assert isinstance(exit_.value.code, int)
        return Result(exit_.value.code, out, err.decode("utf-8"))

    return run_it


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8", newline="")
    return path


@pytest.fixture(scope="module")
def directory(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a tokenizer without normalisation, with two special tokens."""
    path = tmp_path_factory.mktemp("tokenizer") / "saved"
    tokenizer = BPETokenizer(normalization=None)
    tokenizer.train(corpus, vocab_size=270, special_tokens=["<|end|>", "<|other|>"], verbose=False)
    tokenizer.save(path)
    return path


@pytest.fixture(scope="module")
def tokenizer(directory: Path) -> BPETokenizer:
    return BPETokenizer.from_pretrained(directory)


def process(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start the command line as a process with pipes on all sides."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "bpe_tokenizer", *map(str, arguments)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env)


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


# train


def test_train_saves_what_training_in_python_gives(run: Run, corpus: Path, tmp_path: Path) -> None:
    options = ["--vocab-size", 266, "--special", "<a>", "<b>", "--quiet"]
    result = run("train", "--corpus", corpus, "--output", tmp_path / "out", *options)
    assert result == Result(0, b"", "")
    trained = BPETokenizer().train(corpus, vocab_size=266, special_tokens=["<a>", "<b>"], verbose=False)
    saved = BPETokenizer.from_pretrained(tmp_path / "out")
    assert saved.vocab == trained.vocab
    assert saved.merges == trained.merges
    assert saved.special_tokens == {"<a>": 256, "<b>": 257}
    assert saved.normalization == "NFC"


def test_train_takes_every_option(run: Run, corpus: Path, tmp_path: Path) -> None:
    options = [
        "--pattern",
        "gpt2",
        "--normalization",
        "NFKC",
        "--tie-break",
        "huggingface",
        "--min-frequency",
        "4",
    ]
    options += ["--max-token-length", "3", "--threads", "1", "--quiet"]
    assert run("train", "--corpus", corpus, "--output", tmp_path, "--vocab-size", 300, *options).code == 0
    saved = BPETokenizer.from_pretrained(tmp_path)
    trained = BPETokenizer(split_pattern="gpt2", normalization="NFKC").train(
        corpus,
        vocab_size=300,
        min_frequency=4,
        tie_break="huggingface",
        max_token_length=3,
        threads=1,
        verbose=False,
    )
    assert saved.merges == trained.merges
    assert max(len(token) for token in saved.vocab.values()) == 3
    assert saved.normalization == "NFKC"


def test_train_without_normalization(run: Run, corpus: Path, tmp_path: Path) -> None:
    arguments = ("--output", tmp_path, "--vocab-size", 258, "--normalization", "none", "--quiet")
    assert run("train", "--corpus", corpus, *arguments).code == 0
    assert BPETokenizer.from_pretrained(tmp_path).normalization is None


def test_train_reads_several_files_and_standard_input(run: Run, corpus: Path, tmp_path: Path) -> None:
    arguments = ("--vocab-size", 280, "--quiet", "--output")
    other = "wider lowest wider lowest\n"
    piped = run("train", "--corpus", corpus, "-", *arguments, tmp_path / "piped", stdin=other.encode())
    assert piped == Result(0, b"", "")
    (tmp_path / "other.txt").write_text(other, encoding="utf-8", newline="")
    assert run("train", "--corpus", corpus, tmp_path / "other.txt", *arguments, tmp_path / "files").code == 0
    merges = BPETokenizer.from_pretrained(tmp_path / "piped").merges
    assert merges == BPETokenizer.from_pretrained(tmp_path / "files").merges
    assert merges != BPETokenizer().train(corpus, vocab_size=280, verbose=False).merges


def test_train_says_where_it_saved_and_json_says_what(run: Run, corpus: Path, tmp_path: Path) -> None:
    arguments = ("train", "--corpus", corpus, "--output", tmp_path, "--vocab-size", "260")
    assert run(*arguments).text == f"260 tokens saved in {tmp_path}\n"
    result = json.loads(run(*arguments, "--json").text)
    assert result.pop("seconds") >= 0
    assert result == {"output": str(tmp_path), "vocab_size": 260, "merges": 4}


# encode


def ids_of(result: Result) -> list[int]:
    assert (result.code, result.err) == (0, "")
    assert result.out.endswith(b"\n")
    assert result.out.count(b"\n") == 1
    return [int(each) for each in result.text.split()]


def test_encode_prints_the_ids_of_a_text(run: Run, directory: Path, tokenizer: BPETokenizer) -> None:
    result = run("encode", "--tokenizer", directory, "--text", "newest lowest")
    assert ids_of(result) == tokenizer.encode("newest lowest")
    assert ids_of(run("encode", "--tokenizer", directory, "--text", "")) == []


def test_encode_reads_a_file_or_standard_input_untouched(
    run: Run, directory: Path, tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    data = HOSTILE.encode()
    (tmp_path / "text").write_bytes(data)
    expected = tokenizer.encode(HOSTILE)
    assert ids_of(run("encode", "--tokenizer", directory, "--file", tmp_path / "text")) == expected
    assert ids_of(run("encode", "--tokenizer", directory, "--file", "-", stdin=data)) == expected
    assert ids_of(run("encode", "--tokenizer", directory, stdin=data)) == expected


def test_encode_recognises_the_special_tokens_that_it_is_told(
    run: Run, directory: Path, tokenizer: BPETokenizer
) -> None:
    text = "low<|end|>er<|other|>"
    plain = tokenizer.encode(text)

    def encode(*options: str) -> list[int]:
        return ids_of(run("encode", "--tokenizer", directory, "--text", text, *options))

    assert encode() == encode("--allowed-special", "none") == plain
    assert 256 not in plain
    assert encode("--allowed-special", "all") == tokenizer.encode(text, allowed_special="all")
    assert encode("--allowed-special", "<|end|>") == tokenizer.encode(text, allowed_special={"<|end|>"})
    assert encode("--allowed-special", "<|end|>", "<|other|>") == encode("--allowed-special", "all")


def test_encode_as_json(run: Run, directory: Path, tokenizer: BPETokenizer) -> None:
    result = json.loads(run("encode", "--tokenizer", directory, "--text", HOSTILE, "--json").text)
    assert result["ids"] == tokenizer.encode(HOSTILE)
    assert result["tokens"] == tokenizer.convert_ids_to_tokens(result["ids"])


def test_encode_shows_the_tokens(run: Run, directory: Path) -> None:
    result = run("encode", "--tokenizer", directory, "--text", "low newest", "--show-tokens")
    ids, tokens = result.text.splitlines()
    assert tokens.replace("|", "") == "low newest"
    assert len(tokens.split("|")) == len(ids.split())


def test_encode_shows_tokens_on_a_terminal_that_lacks_their_characters(directory: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    with process(
        "encode",
        "--tokenizer",
        directory,
        "--text",
        "中",
        "--allowed-special",
        "all",
        "--show-tokens",
        env=environment,
    ) as running:
        out, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (0, b"")
    assert out.endswith(b"\\xe4|\\xb8|\\xad\n")


@pytest.mark.parametrize("command", ["encode", "decode"])
def test_with_no_input_named_and_none_piped_in_there_is_nothing_to_do(
    run: Run, directory: Path, command: str
) -> None:
    result = run(command, "--tokenizer", directory, stdin=None)
    assert result.code == 2
    assert "no input" in result.err


# decode


def test_decode_takes_any_number_of_ids(run: Run, directory: Path, tokenizer: BPETokenizer) -> None:
    ids = tokenizer.encode("lower newest, wider")
    assert run("decode", "--tokenizer", directory, "--ids", *ids) == Result(0, b"lower newest, wider", "")
    assert run("decode", "--ids", *ids, "--tokenizer", directory).out == b"lower newest, wider"
    assert run("decode", "--tokenizer", directory, "--ids", json.dumps(ids)).out == b"lower newest, wider"
    assert run("decode", "--tokenizer", directory, "--ids", 256, 108, 257).out == b"<|end|>l<|other|>"


def test_decode_gives_a_file_back_byte_for_byte(run: Run, directory: Path) -> None:
    for options in ([], ["--json"]):
        encoded = run("encode", "--tokenizer", directory, *options, stdin=HOSTILE.encode())
        for source in ([], ["--ids", "-"]):
            decoded = run("decode", "--tokenizer", directory, *source, stdin=encoded.out)
            assert decoded == Result(0, HOSTILE.encode(), "")


def test_decode_writes_bytes_that_are_no_text(run: Run, directory: Path) -> None:
    assert run("decode", "--tokenizer", directory, "--ids", 255, 0, 128).out == b"\xff\x00\x80"


def test_decode_of_no_ids_is_nothing(run: Run, directory: Path) -> None:
    assert run("decode", "--tokenizer", directory, stdin=b"\n") == Result(0, b"", "")


def test_decode_leaves_special_tokens_out_when_told(run: Run, directory: Path) -> None:
    result = run("decode", "--tokenizer", directory, "--ids", 256, 108, 257, "--skip-special-tokens")
    assert result.out == b"l"


@pytest.mark.parametrize(
    "text", ["1 2 x", "1.5", "-1", "[1, 2", "[1, -2]", "[true]", '["1"]', '{"id": [1]}', "٣"]
)
def test_what_is_not_a_list_of_ids(text: str) -> None:
    with pytest.raises(OptionError, match=r"\bids?\b"):
        parse_ids(text)


def test_ids_are_separated_by_white_space_or_commas() -> None:
    assert parse_ids(" 1 2,3,\n\t4 ") == [1, 2, 3, 4]
    assert parse_ids("") == []


# info


def test_info_as_json(run: Run, directory: Path, tokenizer: BPETokenizer) -> None:
    facts = json.loads(run("info", "--tokenizer", directory, "--json", "--sample-text", "low 🙂").text)
    assert facts["vocab_size"] == tokenizer.vocab_size == 270
    assert facts["merges"] == len(tokenizer.merges)
    assert facts["special_tokens"] == {"<|end|>": 256, "<|other|>": 257}
    assert facts["normalization"] is None
    assert [each["id"] for each in facts["first_tokens"]] == list(range(10))
    assert facts["last_tokens"][-1] == {"id": 269, "token": tokenizer.convert_ids_to_tokens([269])[0]}
    assert facts["sample"]["ids"] == tokenizer.encode("low 🙂")
    assert facts["sample"]["bytes_per_token"] == round(8 / len(facts["sample"]["ids"]), 3)
    assert facts["sample"]["round_trip"] is True


def test_info_for_people(run: Run, directory: Path) -> None:
    text = run("info", "--tokenizer", directory, "--sample-text", "low").text
    assert "vocabulary size 270\n" in text
    assert "special tokens  <|end|> 256, <|other|> 257\n" in text
    assert "round trip      exact\n" in text
    assert "\x1b" not in text


def test_info_of_a_tokenizer_that_normalises(run: Run, corpus: Path, tmp_path: Path) -> None:
    BPETokenizer(normalization="NFC").train(corpus, vocab_size=258, verbose=False).save(tmp_path)
    for text in ("e\u0301", ""):
        facts = json.loads(run("info", "--tokenizer", tmp_path, "--json", "--sample-text", text).text)
        assert facts["sample"]["round_trip"] is True


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


# demo


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    (root / "site-packages").mkdir(parents=True)
    (root / "site-packages" / "installed.py").write_text("installed = 1\n")
    (root / "latin.py").write_bytes(b"# \xe9\n")
    (root / "notes.txt").write_text("not Python")
    for number in range(20):
        lines = [
            f"def function_{number}_{line}(argument):\n    return argument + {line}\n"
            for line in range(number + 1)
        ]
        (root / f"module_{number:02}.py").write_text("\n".join(lines))
    return root


def test_demo_trains_saves_reloads_encodes_and_proves(run: Run, sources: Path, tmp_path: Path) -> None:
    output = tmp_path / "demo"
    result = run("demo", "--sources", sources, "--output", output, "--vocab-size", 280)
    assert (result.code, result.err) == (0, "")
    assert "15 Python files" in result.text
    assert "bytes per token" in result.text
    assert "decode(encode(text)) == text" in result.text
    assert "\x1b" not in result.text
    assert "|" in result.text
    assert len(BPETokenizer.from_pretrained(output)) == 280


def test_demo_says_that_a_corpus_is_small(run: Run, sources: Path, tmp_path: Path) -> None:
    result = run("demo", "--sources", sources, "--output", tmp_path / "demo", "--vocab-size", 300)
    assert "a small corpus" in result.text


def test_demo_files_are_in_a_fixed_order_and_the_held_out_ones_are_not_seen(sources: Path) -> None:
    files = _python_files(sources)
    assert [path.name for path in files] == [f"module_{number:02}.py" for number in range(20)]
    seen, unseen = _hold_out(files)
    assert len(unseen) == 5
    assert sorted([*seen, *unseen]) == files
    assert _hold_out(files[::-1]) == (seen[::-1], unseen[::-1])
