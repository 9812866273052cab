"""`bpe-tokenizer encode`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from bpe_tokenizer import BPETokenizer, special_tokens
from bpe_tokenizer.chat.template_selection import select_template, with_control_tokens
from bpe_tokenizer.cli.id_formats import ID_FORMATS, write_ids
from bpe_tokenizer.cli.inputs import check_inputs, read_text, template_source, text_blocks
from bpe_tokenizer.cli.options import (
    FILE,
    AllowedSpecial,
    Debug,
    Download,
    PlainMarkup,
    Quiet,
    TokenizerPath,
    allowed_special_argument,
    choice,
    option,
)
from bpe_tokenizer.cli.streams import binary_output
from bpe_tokenizer.corpus.run_report import RunReport
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.train.progress import ProgressBar
from bpe_tokenizer.view.terminal import print_tokens

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["encode"]


def encode(
    tokenizer: TokenizerPath,
    text: Annotated[str | None, option("TEXT", "Text to encode.")] = None,
    file: Annotated[
        list[str] | None,
        option("FILE...", "Files of UTF-8 text to encode, in order; - is standard input.", names=FILE),
    ] = None,
    messages: Annotated[
        str | None, option("FILE", "A conversation to encode: a JSON list of messages; - is standard input.")
    ] = None,
    template: Annotated[
        str | None,
        option(
            "NAME|FILE",
            "The chat template of --messages: a built-in name or a Jinja file.",
            "the tokenizer's own",
        ),
    ] = None,
    plain_markup: PlainMarkup = False,
    count: Annotated[
        bool, typer.Option("--count", help="Print the number of ids of each text or file, not the ids.")
    ] = False,
    output_format: Annotated[
        Any,
        choice(
            ID_FORMATS, help="Numbers in text, JSON, or little-endian binary numbers.", show_default="text"
        ),
    ] = None,
    show_tokens: Annotated[
        bool, typer.Option("--show-tokens", help="Show the text of the tokens too.")
    ] = False,
    allowed_special: AllowedSpecial = None,
    add_special_tokens: Annotated[
        bool,
        typer.Option(
            "--add-special-tokens",
            help="Add the special tokens that the tokenizer defines for a text, such as BOS and EOS.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --output-format json.")] = False,
    quiet: Quiet = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Turn text into ids.

    Each text or file gives a line of numbers, or with --count the number of its ids. Files and standard input
    are read in blocks, so they may be larger than the memory. Compressed files (gzip, xz, bzip2, Zstandard)
    are decompressed. A conversation is encoded as a model reads it, up to the beginning of its reply.
    """
    if sum(each is not None for each in (text, file, messages)) > 1:
        raise typer.BadParameter("give one of --text, --file and --messages")
    if messages is None and (template is not None or plain_markup):
        raise typer.BadParameter("--template and --plain-markup need --messages")
    if messages is not None and (allowed_special is not None or add_special_tokens):
        raise typer.BadParameter(
            "--messages has the special tokens of the template: leave out --allowed-special and "
            "--add-special-tokens"
        )
    if as_json and output_format not in (None, "json"):
        raise typer.BadParameter("give either --json or --output-format, not both")
    format_ = "json" if as_json else output_format or "text"
    if show_tokens and format_ != "text":
        raise typer.BadParameter("--show-tokens needs --output-format text; JSON has the tokens already")
    if count and (show_tokens or format_ not in ("text", "json")):
        raise typer.BadParameter("--count prints a number: leave out --show-tokens, uint16 and uint32")
    inputs = check_inputs(file) if text is None and messages is None else []
    loaded = BPETokenizer.load(tokenizer, download=download)
    special = allowed_special_argument(allowed_special)
    write = binary_output(format_ in ("uint16", "uint32"))
    progress = _Progress(inputs, wanted=not quiet)
    found: Iterable[Iterable[npt.NDArray[np.uint32]]]
    if messages is not None:
        chat = {"template": template_source(template), **_conversation(messages)}
        ids = loaded.apply_chat_template(**chat, plain_markup=plain_markup)
        if show_tokens or format_ == "json":
            loaded = _with_control_tokens(loaded, **chat)
        found = [[np.array(ids, np.uint32)]]
    else:
        read = partial(text_blocks, on_read=progress.add)
        texts = map(read, inputs) if text is None else [[_argument(text)]]
        found = (_ids(loaded, chunks, special, add_special_tokens) for chunks in texts)
    for blocks in map(progress.of, found):
        if count:
            number = sum(ids.size for ids in blocks)
            write(f"{json.dumps({'count': number}) if format_ == 'json' else number}\n".encode())
        elif show_tokens:
            whole = list(blocks)
            write_ids(format_, whole, write, loaded.convert_ids_to_tokens)
            _show_tokens(loaded, [each for ids in whole for each in ids.tolist()])
        else:
            write_ids(format_, blocks, write, loaded.convert_ids_to_tokens)


def _argument(text: str) -> str:
    """A text of the command line, in which surrogates are bytes that the locale does not know."""
    if not re.search("[\udc80-\udcff]", text):
        return text
    try:
        return os.fsencode(text).decode()
    except UnicodeError:
        raise typer.BadParameter("--text is not UTF-8; convert it to UTF-8 first") from None


class _Progress:
    """Counts what is read and encoded, for lines of progress: the output may be the terminal of a bar.

    Args:
        inputs: Files, or `-`.
        wanted: Whether to show it.
    """

    def __init__(self, inputs: Sequence[str], *, wanted: bool) -> None:
        total = None if "-" in inputs else sum(os.stat(each).st_size for each in inputs)  # noqa: PTH116
        self._report = RunReport(ProgressBar.without_terminal(wanted), total=total or None)  # 0 of a pipe
        self._read = self._tokens = 0

    def add(self, size: int) -> None:
        """Count stored bytes that were read."""
        self._read += size

    def of(self, blocks: Iterable[npt.NDArray[np.uint32]]) -> Iterator[npt.NDArray[np.uint32]]:
        """Yield ids, and report them."""
        for ids in blocks:
            self._tokens += ids.size
            self._report.progress(0, self._read, 0, self._tokens)
            yield ids


def _ids(
    tokenizer: BPETokenizer,
    chunks: Iterable[str],
    special: special_tokens.AllowedSpecial,
    adds_special_tokens: bool,
) -> Iterator[npt.NDArray[np.uint32]]:
    """Yield the ids of a text in arrays."""
    prefix, suffix = tokenizer._compiled().added_ids(adds_special_tokens)
    if prefix:
        yield np.array(prefix, np.uint32)
    yield from tokenizer._encode_stream(special).encode_numpy(chunks)
    if suffix:
        yield np.array(suffix, np.uint32)


def _with_control_tokens(tokenizer: BPETokenizer, template: str | None, **chat: object) -> BPETokenizer:
    """Return the tokenizer with the control tokens that the template brings, to show all ids."""
    compiled = tokenizer._compiled()
    selected = select_template(compiled, template, "tools" in chat)
    return BPETokenizer.from_model(with_control_tokens(compiled, selected).model)


def _conversation(source: str) -> dict[str, Any]:
    """Return the arguments `messages` and `tools`. The file has a list of messages, or an object of both."""
    try:
        found = json.loads(read_text(source).removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise OptionError(f"--messages {source} is not JSON, as one list of messages is: {error}") from None
    except RecursionError:
        raise OptionError(f"--messages {source} is nested too deeply") from None
    given = found if isinstance(found, dict) else {"messages": found}
    messages = given.get("messages")
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        raise OptionError(
            f"--messages {source} must hold a list of messages, such as "
            '[{"role": "user", "content": "text"}], or an object whose item "messages" is one; of several '
            "conversations, each needs a file"
        )
    return {"messages": messages} | ({"tools": given["tools"]} if given.get("tools") else {})


def _show_tokens(tokenizer: BPETokenizer, ids: list[int]) -> None:
    from bpe_tokenizer.console import new_console

    print_tokens((tokenizer.decode_bytes([each]) for each in ids), new_console())
