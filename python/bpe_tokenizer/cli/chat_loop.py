"""The loop of `bpe-tokenizer chat`: messages and slash commands."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from bpe_tokenizer.cli.usage import in_options
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.display.text import printable
from bpe_tokenizer.errors import TokenizerError

if TYPE_CHECKING:
    from bpe_tokenizer.chat.session import ChatSession

__all__ = ["ChatLoop"]

# The parameters of `bpe-tokenizer chat` that errors of a turn name.
_OPTIONS = ("template", "plain_markup", "template_budget")
# Each alone on a line ends a chat at a terminal; in a pipe it is a message.
_END_WORDS = ("quit", "exit", "q")
_HELP = """\
/system TEXT  set the system prompt; without TEXT show it, with - remove it
/undo         remove the last turn
/reset        remove all messages
/history      show all messages
/tokens       show the segments of the conversation and their ids
/save FILE    write the conversation to a file, as JSON
/load FILE    continue a saved conversation
/quit         end (or quit, exit, q, Ctrl-C or Ctrl-D at the prompt)
//TEXT        send a message that starts with a slash
A line that ends with \\ continues on the next line. Ctrl-C stops a reply."""


class ChatLoop:
    """A conversation at a terminal or in a pipe.

    Replies go to stdout; everything else, such as their speed, goes to stderr.

    Args:
        session: The conversation.
        as_json: Print replies as lines of JSON.
    """

    def __init__(self, session: ChatSession, as_json: bool = False) -> None:
        self._session = session
        self._as_json = as_json
        self._commands: dict[str, Callable[[str], object]] = {
            "help": lambda _: _tell(_HELP),
            "system": self._system,
            "undo": lambda _: _tell("removed the last turn" if session.undo() else "no messages yet"),
            "reset": self._reset,
            "history": lambda _: self._history(),
            "tokens": lambda _: self._tokens(),
            "save": self._save,
            "load": self._load,
        }

    def run(self) -> None:
        """Read lines until the user ends the chat. Expected errors do not end it."""
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  (adds history and line editing to `input`)
        _tell("/help lists the commands; quit or Ctrl-C ends")
        while True:
            try:
                line = _read_message()
            except (EOFError, KeyboardInterrupt):
                _tell()
                return
            except UnicodeDecodeError as error:
                _tell(f"error: the input is not UTF-8: {error}")
                continue
            if line.strip().lower() in _END_WORDS:
                return
            count = len(self._session.messages)
            try:
                if not self.handle(line):
                    return
            except KeyboardInterrupt:
                # A reply that was stopped before its first word leaves no turn.
                has_begun = len(self._session.messages) > count
                _tell("\nstopped; /undo removes the turn" if has_begun else "\nstopped")
            except (TokenizerError, OSError) as error:
                # The session has removed the failed turn, so the user can send it again.
                _tell(f"error: {in_options(' '.join(str(error).splitlines()), _OPTIONS)}")

    def handle(self, line: str) -> bool:
        """Handle a line: a slash command or a message.

        Returns:
            Whether the conversation continues; False after `/quit`.

        Raises:
            OSError: A file cannot be read or written.
            TokenizerError: The model cannot reply.
        """
        if line.startswith("//"):
            self.send(line[1:])
        elif line.startswith("/"):
            name, _, argument = line[1:].rstrip().partition(" ")
            if name == "quit":
                return False
            command = self._commands.get(name)
            if command is None:
                _tell(f"unknown command /{name}; /help lists the commands, //{name} sends it as a message")
            else:
                command(argument.strip())
        elif line.strip():
            self.send(line)
        return True

    def send(self, text: str) -> None:
        """Send a message and print the reply as it arrives.

        Raises:
            KeyboardInterrupt: The user stopped the reply; its beginning stays in the conversation.
            TokenizerError: The model cannot reply.
        """
        with contextlib.closing(self._session.send(text)) as reply:
            if self._as_json:
                for _ in reply:
                    pass
                self._print_json()
                return
            has_line = False
            try:
                for part in _show_waiting(reply):
                    print(_shown(part, sys.stdout), end="", flush=True)
                    has_line = has_line or part != ""
                has_line = True  # An empty reply is a line too.
            finally:
                if has_line:
                    print(flush=True)
        if self._session.reply is not None and sys.stderr.isatty():
            _tell(self._session.reply.summary())

    def _print_json(self) -> None:
        reply = self._session.reply
        if reply is None:
            return
        line = {
            "reply": reply.text,
            "prompt_tokens": reply.prompt_tokens,
            "new_tokens": reply.new_tokens,
            "finish_reason": reply.finish_reason,
            "seconds_to_first_token": reply.seconds_to_first_token,
            "tokens_per_second": reply.tokens_per_second,
        }
        print(json.dumps(line), flush=True)

    def _system(self, text: str) -> None:
        if text:
            self._session.system_prompt = None if text == "-" else text
        prompt = self._session.system_prompt
        _tell(f"system prompt: {'none' if prompt is None else prompt}")

    def _reset(self, _: str) -> None:
        self._session.reset()
        _tell("removed all messages")

    def _history(self) -> None:
        for message in self._session.conversation():
            _tell(f"{message['role']}: {message['content']}")

    def _tokens(self) -> None:
        if not self._session.conversation():
            _tell("no messages yet")
            return
        total = 0
        for segment, ids in self._session.segments():
            origin = segment.origin
            source = "markup" if origin is None else f"{origin.source} {origin.index} {origin.field}"
            _tell(f"{source:>20}  {printable(segment.text.encode('utf-8', 'replace'))}")
            _tell(f"{'':>20}  {' '.join(map(str, ids))}")
            total += len(ids)
        _tell(count_noun(total, "token"))

    def _save(self, path: str) -> None:
        if not path:
            _tell("/save needs the name of a file")
            return
        self._session.save(Path(path).expanduser())
        _tell(f"saved in {path}")

    def _load(self, path: str) -> None:
        if not path:
            _tell("/load needs the name of a file")
            return
        self._session.load(Path(path).expanduser())
        _tell(f"{count_noun(len(self._session.messages), 'message')} from {path}")


def _read_message() -> str:
    """Read a line, and the next line as long as lines end with a backslash."""
    line = _read_line("> ")
    while line.endswith("\\"):
        line = f"{line[:-1]}\n{_read_line('. ')}"
    return line


def _read_line(prompt: str) -> str:
    if sys.stdout.isatty():
        return input(prompt)
    # `input` would write the prompt to stdout, among the replies.
    print(prompt, end="", file=sys.stderr, flush=True)
    return input()


def _tell(text: str = "") -> None:
    print(_shown(text, sys.stderr), file=sys.stderr, flush=True)


def _shown(text: str, stream: TextIO) -> str:
    """Escape control characters for a terminal; a pipe gets the text unchanged."""
    if not stream.isatty():
        return text
    return "".join(
        character if character in "\n\t" else printable(character.encode("utf-8", "replace"))
        for character in text
    )


def _show_waiting(texts: Iterator[str]) -> Iterator[str]:
    """Yield texts; a terminal shows a spinner until the first arrives."""
    from bpe_tokenizer.console import can_start_thread, new_console

    if sys.stderr.isatty() and can_start_thread():
        with new_console(stderr=True).status("…"):
            first = next(texts, "")
        yield first
    yield from texts
