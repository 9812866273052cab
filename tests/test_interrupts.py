"""Ctrl-C ends every wait and every long call with KeyboardInterrupt, and nothing is half-changed then."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes"),
    pytest.mark.usefixtures("ctrl_c"),
]

PRELUDE = """
import faulthandler, sys
from pathlib import Path
from bpe_tokenizer import BPETokenizer, PieceCounts
from functools import partial
from bpe_tokenizer import corpus as corpora
tokenize_corpus = partial(corpora.tokenize_corpus, documents="line", append_eos=False)
faulthandler.dump_traceback_later(280, exit=True)
tokenizer = BPETokenizer("gpt2", None).train("low lower lowest", 260, verbose=False)
pipe = Path("pipe")

def interrupted(name, call):
    # The signal may come at any moment after the first line.
    try:
        print(name, flush=True)
        call()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""

WAITS = {
    "encode_files": "tokenizer.encode_files(pipe)",
    "encode_files, many threads": "tokenizer.encode_files(['text', pipe, 'text'], threads=2)",
    "train": "BPETokenizer().train(pipe, 300, verbose=False)",
    "train, second file": "BPETokenizer().train([Path('text'), pipe], 300, verbose=False)",
    "add": "counts.add(pipe)",
    "tokenize_corpus": "tokenize_corpus(pipe, 'out', tokenizer, verbose=False)",
}


# After a KeyboardInterrupt inside an `exec` of a string, CPython ends by SIGINT, also if the program caught
# it. The modules that a first call imports have such, for their data classes.
ENDINGS = (0, -signal.SIGINT)


def run(program: str, directory: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(program)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, cwd=directory)


@pytest.mark.parametrize("has_writer", [False, True])
def test_a_pipe_without_bytes_can_be_interrupted(tmp_path: Path, has_writer: bool) -> None:
    (tmp_path / "text").write_text("low lower " * 1000)
    os.mkfifo(tmp_path / "pipe")
    # Opened for both, a pipe has a writer and needs no reader.
    writer = os.open(tmp_path / "pipe", os.O_RDWR) if has_writer else None
    calls = [f"interrupted({name!r}, lambda: {call})" for name, call in WAITS.items()]
    program = ["counts = PieceCounts()", *calls, "assert tokenizer.encode('low')", "print(len(counts))"]
    with run("\n".join(program), tmp_path) as process:
        assert process.stdout is not None
        for name in WAITS:
            assert process.stdout.readline() == f"{name}\n"
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n", name
        assert process.stdout.read() == "0\n"
    assert process.returncode in ENDINGS
    if writer is not None:
        os.close(writer)


LONG_CALLS = {
    "encode": "tokenizer.encode(text)",
    "encode, two threads": "tokenizer.encode(text, threads=2)",
    "encode, one word": "tokenizer.encode(word)",
    "encode_to_numpy": "tokenizer.encode_to_numpy(text)",
    "encode_bytes": "tokenizer.encode_bytes(text.encode())",
    "encode_batch": "tokenizer.encode_batch([text, word])",
    "encode_ragged": "tokenizer.encode_ragged([word, ''], threads=2)",
    "encode_with_offsets": "tokenizer.encode_with_offsets(text)",
    "encode_with_offsets, one word": "tokenizer.encode_with_offsets(word)",
    "encode_streaming": "list(tokenizer.encode_streaming([text]))",
    "encode_files": "tokenizer.encode_files('text', threads=2)",
    "count_tokens": "tokenizer.count_tokens(text)",
    "tokenize": "tokenizer.tokenize(text)",
    "truncate": "tokenizer.truncate(word, 10**6)",
    "split_by_tokens": "tokenizer.split_by_tokens(text, 100)",
    "disallowed": "tokenizer.encode(word, disallowed_special='all')",
    "decode": "tokenizer.decode(ids)",
    "decode, array": "tokenizer.decode(array)",
    "decode_bytes": "tokenizer.decode_bytes(ids)",
    "decode_batch": "tokenizer.decode_batch([ids, ids])",
    "add": "PieceCounts('gpt2').add(text)",
    "train": "BPETokenizer('gpt2').train(text, 400, verbose=False)",
}


def test_long_calls_can_be_interrupted_and_change_nothing(tmp_path: Path) -> None:
    setup = """
        import unicodedata
        tokenizer = BPETokenizer("gpt2").train("low lower", 262, special_tokens=["<|end|>"], verbose=False)
        text = "low lower 日本 e\\u0301<|end|>\\n" * 200_000
        word = "low" * 1_000_000
        Path("text").write_text(text, encoding="utf-8")
        array = tokenizer.encode_to_numpy(text)
        ids = array.tolist()

        def forever(call):
            while True:
                call()
    """
    calls = [f"interrupted({name!r}, lambda: forever(lambda: {call}))" for name, call in LONG_CALLS.items()]
    checks = """
        assert tokenizer.encode(text) == ids
        assert tokenizer.encode_to_numpy(text, threads=2).tolist() == ids
        assert tokenizer.decode(ids) == unicodedata.normalize("NFC", text)
        print("right")
    """
    program = textwrap.dedent(setup) + "\n".join(calls) + textwrap.dedent(checks)
    generator = random.Random(0)
    with run(program, tmp_path) as process:
        assert process.stdout is not None
        for name in LONG_CALLS:
            assert process.stdout.readline() == f"{name}\n"
            time.sleep(generator.uniform(0, 0.2))
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n", name
        assert process.stdout.read() == "right\n"
    assert process.returncode in ENDINGS


def test_learning_merges_can_be_interrupted(tmp_path: Path) -> None:
    # One call of many seconds: no Python runs until all merges are learned.
    program = """
    import random
    letters = random.Random(0).choices("abcdefghij", k=12 * 400_000)
    words = " ".join("".join(letters[at : at + 12]) for at in range(0, len(letters), 12))
    counts = PieceCounts("gpt2").add(words)
    learner = BPETokenizer("gpt2", "NFC")

    import signal, time
    def learn():
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.5)
        learner.train_from_counts(counts, 4_000_000, 1, verbose=False)

    signal.signal(signal.SIGVTALRM, signal.default_int_handler)
    begin = time.process_time()
    interrupted("learn", learn)
    print(time.process_time() - begin)
    """
    output, _ = run(program, tmp_path).communicate()
    learning, interrupted, seconds = output.splitlines()
    assert (learning, interrupted) == ("learn", "interrupted")
    assert float(seconds) < 3  # CPU time of the process, which the whole call takes more of


COMMANDS = [
    "encode --tokenizer tokenizer --file pipe",
    "train --corpus pipe --vocab-size 300 --output new",
    "count --corpus pipe --output counts",
    "report --corpus pipe --tokenizer tokenizer",
    "compare tokenizer tokenizer --corpus pipe",
    "tokenize-corpus --corpus pipe --tokenizer tokenizer --output out --no-eos",
    "view --tokenizer tokenizer --file pipe",
]


def test_a_command_that_waits_for_a_pipe_ends_with_130(tmp_path: Path) -> None:
    from bpe_tokenizer import BPETokenizer

    BPETokenizer("gpt2", None).train("low lower lowest", 260, verbose=False).save(tmp_path / "tokenizer")
    running = {}
    for name, *arguments in map(str.split, COMMANDS):
        os.mkfifo(tmp_path / name)
        given = [name if argument == "pipe" else argument for argument in arguments]
        running[name] = subprocess.Popen(
            [sys.executable, "-m", "bpe_tokenizer", name, *given],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
        )  # fmt: skip
    for name, process in running.items():
        writer = None
        while writer is None:
            assert process.poll() is None, process.communicate()
            with contextlib.suppress(OSError):  # until the command opens it
                writer = os.open(tmp_path / name, os.O_WRONLY | os.O_NONBLOCK)
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
        os.close(writer)
        assert (process.returncode, output) == (130, ""), (name, errors)
        assert "Traceback" not in errors, name


def test_many_short_calls_from_c_can_be_interrupted(tmp_path: Path) -> None:
    # No bytecode runs between them, so only the calls can look for signals.
    program = """
    import signal
    from collections import deque
    from itertools import repeat
    text = "low lower " * 20_000
    texts = repeat(text, 20_000)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        deque(map(tokenizer.count_tokens, texts), maxlen=0)
    except KeyboardInterrupt:
        print(texts.__length_hint__())
    """
    left, _ = run(program, tmp_path).communicate()
    assert int(left) > 10_000


# Python code that a call runs, and that uses the same object.
INSIDE = {
    "counts.distinct": "train_from_counts(counts, 2000, verbose=False)",
    "counts.add('low')": "train_from_counts(counts, 2000, verbose=False)",
    "counts.merge(counts)": "train_from_counts(counts, 2000, verbose=False)",
    "tokenizer.encode('low')": "tokenizer.encode(text)",
    "tokenizer.count_tokens(text[:100])": "tokenizer.encode_batch([text, text], threads=2)",
    "stream.step([101])": "stream.step(ids)",
    "next(texts)": "sum(map(len, texts))",
    "batches.close()": "list(batches)",
}


def test_a_signal_handler_that_uses_the_same_object_gets_an_answer_or_an_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("low lower lowest\n" * 200_000)
    program = """
        import signal
        from bpe_tokenizer import StreamDecoder, TokenizerError, train_from_counts
        from bpe_tokenizer.readers import ReadOptions, find_inputs, read_batches
        text = "low lower lowest\\n" * 300_000
        counts = PieceCounts("gpt2").add(" ".join(map(str, range(300_000))))
        ids = tokenizer.encode(text[:2_000_000])

        def use(call, inner):
            def handler(*_):
                try:
                    eval(inner, globals())
                except (TokenizerError, ValueError, RuntimeError) as error:  # a generator's own, and PyO3's
                    errors.append(error)
                calls.append(inner)
                signal.setitimer(signal.ITIMER_REAL, 0.02 * (not errors))

            global stream, texts, batches
            calls, errors, stream = [], [], StreamDecoder(tokenizer)
            signal.signal(signal.SIGALRM, handler)
            for _ in range(3):  # the signal may come before or after the core's work
                texts = iter(tokenizer.encode_streaming(text[at : at + 999] for at in range(0, 10**6, 999)))
                batches = read_batches(find_inputs(["text"]), ReadOptions(documents="line"), threads=2)
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                try:
                    eval(call, globals())
                except TokenizerError as error:
                    assert "changed" in str(error), error
                signal.setitimer(signal.ITIMER_REAL, 0)
                if calls and (errors or "counts" not in call):
                    break
            print(inner, *{type(each).__name__ for each in errors})
            for error in errors:
                assert not isinstance(error, TokenizerError) or "in use by another call" in str(error), error
    """
    uses = [f"use({call!r}, {inner!r})" for inner, call in INSIDE.items()]
    with run("\n".join([textwrap.dedent(program), *uses]), tmp_path) as process:
        output, _ = process.communicate()
    answers = dict(zip(INSIDE, output.splitlines(), strict=True))
    assert all(answer.startswith(inner) for inner, answer in answers.items())
    assert answers["counts.distinct"] == "counts.distinct OptionError"
    assert process.returncode in ENDINGS
