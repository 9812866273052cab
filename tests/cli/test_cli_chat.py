"""`bpe-tokenizer chat`: a conversation at a terminal or in a pipe."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from bpe_tokenizer import BPETokenizer, ChatSession
from bpe_tokenizer.cli.chat_loop import ChatLoop
from bpe_tokenizer.display.text import printable
from bpe_tokenizer.errors import TokenizerError
from bpe_tokenizer.inference import free_models
from command_line import TextResult, TextRun
from inference.local_server import LocalServer, continuation, running
from scripted_model import scripted


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chat") / "tokenizer"
    control = ["<|im_start|>", "<|im_end|>"]
    BPETokenizer(normalization=None).train("abab", 259, special_tokens=control, verbose=False).save(path)
    return path


@pytest.fixture(scope="module")
def tokenizer(directory: Path) -> BPETokenizer:
    return BPETokenizer.from_pretrained(directory)


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with running() as local:
        yield local
    free_models()


def replies(tokenizer: BPETokenizer, *said: str, length: int = 12) -> list[str]:
    """What the server's model answers, each time with all that was said before."""
    messages: list[dict[str, str]] = []
    for text in said:
        messages.append({"role": "user", "content": text})
        ids = continuation(tokenizer.apply_chat_template(messages, "chatml"), length)
        messages.append({"role": "assistant", "content": bytes(ids).decode("ascii")})
    return [message["content"] for message in messages[1::2]]


def arguments(server: LocalServer, directory: Path, *more: str) -> list[str]:
    common = ["chat", "--model", server.address, "--tokenizer", str(directory), "--template", "chatml"]
    return [*common, "--max-tokens", "12", *more]


# -- in a pipe ------------------------------------------------------------------------------------------


@pytest.fixture
def say(run_text: TextRun, server: LocalServer, directory: Path) -> TextRun:
    """Run `chat` with the server's model, with what is said piped in."""

    def run(*more: object, stdin: bytes = b"") -> TextResult:
        return run_text(*arguments(server, directory), *more, stdin=stdin)

    return run


def test_each_line_of_a_pipe_is_said(say: TextRun, tokenizer: BPETokenizer) -> None:
    expected = "".join(f"{reply}\n" for reply in replies(tokenizer, "One?", "Two?"))
    assert say(stdin=b"One?\n\nTwo?\n") == (0, expected, "")


def test_stop_strings_and_variables_of_a_template(
    say: TextRun, tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    (whole,) = replies(tokenizer, "One?")
    stopped = say("--message", "One?", "--stop", "\u20ac", whole[3:6])
    assert stopped[:2] == (0, f"{whole[: whole.index(whole[3:6])]}\n")
    source = tmp_path / "variables.jinja"
    source.write_text("{{ greeting }}{{ messages[0].content }}")
    given = ("--message", "One?", "--template", source)
    expected = bytes(continuation(tokenizer.encode("Hi!One?"), 12)).decode("ascii")
    for name in ("--template-variables", "--chat-template-kwargs"):
        assert say(*given, name, '{"greeting": "Hi!"}')[:2] == (0, f"{expected}\n")
    for value, message in (("{", "is not JSON"), ("[1]", "must be a JSON object")):
        refused = say(*given, "--template-variables", value)
        assert (refused.code, message in refused.err) == (1, True)


def test_a_pipe_gets_each_reply_before_it_sends_more(
    server: LocalServer, directory: Path, tokenizer: BPETokenizer
) -> None:
    command = [sys.executable, "-m", "bpe_tokenizer", *arguments(server, directory)]
    said = ("One?", "Two\u2028or three?")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        give_up = threading.Timer(200, process.kill)
        give_up.start()
        assert process.stdin is not None
        assert process.stdout is not None
        for text, reply in zip(said, replies(tokenizer, *said), strict=True):
            process.stdin.write(f"{text}\n".encode())
            process.stdin.flush()
            expected = f"{reply}\n".encode()
            assert process.stdout.read(len(expected)) == expected
        process.stdin.write(b"/quit\nFour?\n")
        process.stdin.close()
        assert process.stdout.read() == b""
        assert process.wait() == 0
        give_up.cancel()
    assert len(server.requests) == 2


def test_a_pipe_that_is_no_text(say: TextRun) -> None:
    refused = say(stdin=b"One?\n\xff\n")
    assert refused.code == 1
    assert "line 2 of standard input is not UTF-8" in refused.err


def test_replies_as_json(say: TextRun, tokenizer: BPETokenizer) -> None:
    code, out, err = say("--json", "--message", "One?", "//Two?")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [line["reply"] for line in lines] == replies(tokenizer, "One?", "//Two?")
    assert [(line["new_tokens"], line["finish_reason"]) for line in lines] == [(12, "length")] * 2
    assert all(line["tokens_per_second"] > 0 for line in lines)


def test_how_to_generate_reaches_the_server(say: TextRun, server: LocalServer) -> None:
    options = ("--system", "Be brief.", "--temperature", "0.3", "--top-p", "0.8", "--seed", "9")
    assert say(*options, stdin=b"One?").code == 0
    body = server.requests[-1]
    assert (body["temperature"], body["top_p"], body["seed"], body["max_tokens"]) == (0.3, 0.8, 9, 12)
    assert b"system\nBe brief." in bytes(token_id for token_id in body["prompt"] if token_id < 256)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--model", "nowhere.gguf"], "no such file"),
        (["--template", "nonsense"], "nonsense"),
        (["--temperature", "-1"], "temperature"),
        (["--backend", "nonsense"], "nonsense"),
        (["--tokenizer", "nowhere"], "nowhere"),
        (["--template", "llama3"], "--plain-markup"),
    ],
)
def test_an_error_is_one_line(say: TextRun, options: list[str], said: str) -> None:
    refused = say(*options, stdin=b"One?")
    assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert said in refused.err


# -- commands -------------------------------------------------------------------------------------------


def loop_of(tokenizer: BPETokenizer, *texts: str) -> tuple[ChatLoop, ChatSession]:
    _, loaded = scripted(*(tokenizer.encode(text) for text in texts))
    session = ChatSession(loaded, tokenizer, template="chatml")
    return ChatLoop(session), session


def test_commands(tokenizer: BPETokenizer, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    loop, session = loop_of(tokenizer, "One.", "Two.", "Three.")

    def told(line: str) -> str:
        loop.handle(line)
        return capsys.readouterr().err

    assert "/undo" in told("/help")
    assert "no messages yet" in told("/undo")
    assert "no messages yet" in told("/tokens")
    assert "none" in told("/system")
    assert "Be brief." in told("/system Be brief.")
    loop.handle("1?")
    assert capsys.readouterr().out == "One.\n"
    assert told("/history") == "system: Be brief.\nuser: 1?\nassistant: One.\n"
    shown = told("/tokens")
    assert "messages 1 content  1?" in shown
    assert "markup  <|im_start|>" in shown
    assert f"{tokenizer.count_chat_tokens(session.conversation(), 'chatml')} tokens" in shown
    path = tmp_path / "talk.json"
    assert str(path) in told(f"/save {path}")
    assert "removed the last turn" in told("/undo")
    assert session.messages == []
    assert "2 messages" in told(f"/load {path}")
    assert "none" in told("/system -")
    assert session.conversation() == session.messages
    assert "removed all messages" in told("/reset")
    assert "unknown command /nonsense" in told("/nonsense")
    assert "name of a file" in told("/save")
    loop.handle("//help")
    assert session.messages[0]["content"] == "/help"
    assert capsys.readouterr().out == "Two.\n"


def test_an_empty_reply_is_a_line_and_an_error_is_none(
    tokenizer: BPETokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    _, loaded = scripted(tokenizer.encode("One."), [], [RuntimeError("broken")], context_length=200)
    loop = ChatLoop(ChatSession(loaded, tokenizer, template="chatml"))
    for line in ("1?", "2?"):
        loop.handle(line)
    for line in ("3?", "x" * 1000):
        with pytest.raises(TokenizerError):
            loop.handle(line)
    assert capsys.readouterr().out == "One.\n\n"


def test_files_in_the_home_directory(
    tokenizer: BPETokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    loop, session = loop_of(tokenizer, "One.")
    loop.handle("1?")
    loop.handle("/save ~/talk.json")
    assert (tmp_path / "talk.json").exists()
    loop.handle("/reset")
    loop.handle("/load ~/talk.json")
    assert len(session.messages) == 2


# -- at a terminal --------------------------------------------------------------------------------------


class Terminal:
    """A process at a terminal of its own."""

    def __init__(self, *command: str, stdout: IO[bytes] | None = None) -> None:
        self._keyboard, there = pty.openpty()
        environment = {**os.environ, "TERM": "dumb", "COLUMNS": "200", "PYTHONIOENCODING": "utf-8:strict"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bpe_tokenizer", *command],
            stdin=there,
            stdout=there if stdout is None else stdout,
            stderr=there,
            env=environment,
            start_new_session=True,
        )
        os.close(there)
        os.set_blocking(self._keyboard, False)
        self.screen = ""

    def type(self, text: str) -> None:
        os.write(self._keyboard, text.encode("utf-8", "surrogateescape"))

    def wait_for(self, text: str, seconds: float = 120) -> None:
        """Wait until something new is on the screen; what is before it is forgotten."""
        end = time.monotonic() + seconds
        while text not in self.screen:
            assert time.monotonic() < end, self.screen
            time.sleep(0.02)
            try:
                self.screen += os.read(self._keyboard, 65536).decode("utf-8", "replace")
            except BlockingIOError:
                continue
            except OSError:
                assert text in self.screen, self.screen
        self.screen = self.screen[self.screen.index(text) + len(text) :]

    def close(self) -> int:
        code = self.process.wait(120)
        os.close(self._keyboard)
        return code


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.usefixtures("ctrl_c")
def test_a_conversation_at_a_terminal(server: LocalServer, directory: Path, tokenizer: BPETokenizer) -> None:
    terminal = Terminal(*arguments(server, directory))
    terminal.wait_for("> ")
    terminal.type("/system\n")
    terminal.wait_for("system prompt: none")
    terminal.type("One\\\n")
    terminal.wait_for(". ")
    terminal.type("more?\n")
    terminal.wait_for("12 tokens after a prompt of")
    terminal.wait_for("> ")
    said = server.requests[-1]["prompt"]
    assert said == tokenizer.apply_chat_template([{"role": "user", "content": "One\nmore?"}], "chatml")
    # Ctrl-C stops a reply, and not the program.
    server.fault = "pause"
    terminal.type("Two?\n")
    while len(server.requests) < 2:
        time.sleep(0.02)
    begun = bytes(continuation(server.requests[-1]["prompt"], 3))
    terminal.wait_for("".join(printable(bytes([each])) for each in begun))
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.wait_for("stopped; /undo removes the turn")
    terminal.wait_for("> ")
    assert server.has_lost_client.wait(60)
    # Before its first word it leaves no turn to take back.
    server.fault = "silence"
    terminal.type("Two and a half?\n")
    while len(server.requests) < 3:
        time.sleep(0.02)
    time.sleep(0.3)
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.wait_for("stopped\r\n")
    terminal.wait_for("> ")
    # Nor does what is no text.
    terminal.type("\udcff\n")
    terminal.wait_for("error: the input is not UTF-8")
    terminal.wait_for("> ")
    # An error ends neither: the turn can be said again.
    server.fault = "bad ids"
    terminal.type("Three?\n")
    terminal.wait_for("error: ")
    terminal.wait_for("> ")
    server.fault = ""
    terminal.type("Three?\n")
    terminal.wait_for("12 tokens after")
    terminal.wait_for("> ")
    assert "half" not in tokenizer.decode(server.requests[-1]["prompt"])
    # Ctrl-C at the prompt ends the chat.
    os.kill(terminal.process.pid, signal.SIGINT)
    assert terminal.close() == 0


@pytest.mark.parametrize("line", ["quit", " Exit ", "q", "/quit"])
def test_a_line_that_ends_the_chat(
    line: str, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, _ = loop_of(tokenizer)
    lines = iter([line])
    monkeypatch.setattr("builtins.input", lambda *_: next(lines))
    loop.run()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_replies_of_a_terminal_in_a_file(
    server: LocalServer, directory: Path, tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    with (tmp_path / "replies").open("wb") as file:
        terminal = Terminal(*arguments(server, directory), stdout=file)
        for _ in range(2):
            terminal.wait_for("> ")
            terminal.type("One?\n")
        terminal.wait_for("> ")
        terminal.type("/quit\n")
        assert terminal.close() == 0
    expected = "".join(f"{reply}\n" for reply in replies(tokenizer, "One?", "One?"))
    assert (tmp_path / "replies").read_bytes() == expected.encode()


def test_what_a_model_says_cannot_move_the_cursor(
    tokenizer: BPETokenizer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, _ = loop_of(tokenizer, "a\x1b[2Jb\tc\nd", "a\x1b[2Jb")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    loop.handle("1?")
    assert capsys.readouterr().out == "a\\x1b[2Jb\tc\nd\n"
    monkeypatch.undo()
    loop.handle("2?")
    assert capsys.readouterr().out == "a\x1b[2Jb\n"  # a pipe gets it as it is
