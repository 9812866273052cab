"""`bpe-tokenizer demo`."""

from __future__ import annotations

import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.cli.options import Debug, option
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.view.terminal import print_tokens

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["demo"]

_HELD_OUT = 5
_EXPECTED_BYTES = 5_000_000
_OTHER_TEXT = "Bytes below every word: naïve, 你好, привет, 🙂"


def demo(
    output: Annotated[Path, typer.Option(metavar="DIR", help="Directory to save the tokenizer in.")] = Path(
        "demo-output"
    ),
    sources: Annotated[
        Path | None, option("DIR", "Directory of Python files to train on.", "the standard library")
    ] = None,
    vocab_size: Annotated[int, typer.Option(metavar="N", help="Number of ids.")] = 16384,
    debug: Debug = False,
) -> None:
    """Train on Python's own library, and encode unseen files."""
    from bpe_tokenizer.console import new_console

    console = new_console(highlight=False)
    root = Path(sysconfig.get_path("stdlib")) if sources is None else sources
    seen, unseen = _hold_out(_python_files(root))
    _show_corpus(console, root, seen, unseen)

    tokenizer = BPETokenizer(normalization=None)
    begin = time.perf_counter()
    tokenizer.train(seen, vocab_size=vocab_size, special_tokens=["<|endoftext|>"], verbose=False)
    seconds = time.perf_counter() - begin
    _step(console, "training", f"{tokenizer.vocab_size:,} tokens in {seconds:.1f} s")

    tokenizer.save(output)
    reloaded = BPETokenizer.from_pretrained(output)
    _step(console, "saved", f"and reloaded: {', '.join(sorted(str(each) for each in output.iterdir()))}")

    texts = [path.read_bytes().decode("utf-8") for path in unseen]
    _show_encoding(console, reloaded, texts)
    for name, line in (("a line of it", _line_to_show(texts)), ("other text", _OTHER_TEXT)):
        _show_line(console, reloaded, name, line)
    _check_round_trip(console, tokenizer, reloaded, texts)


def _python_files(root: Path) -> list[Path]:
    """Return the UTF-8 Python files below a directory in a fixed order, without installed packages."""
    files = []
    for path in sorted(root.rglob("*.py"), key=lambda each: each.relative_to(root).as_posix()):
        if {"site-packages", "dist-packages"}.isdisjoint(path.relative_to(root).parts) and _is_utf8(path):
            files.append(path)
    if len(files) <= _HELD_OUT:
        raise CorpusError(
            f"{len(files)} Python files found below {root}, but the demo needs more than {_HELD_OUT}; "
            "name another directory with --sources"
        )
    return files


def _is_utf8(path: Path) -> bool:
    """Return whether a file is non-empty UTF-8; some files of Python's own tests are not UTF-8."""
    try:
        return bool(path.read_bytes().decode("utf-8"))
    except (UnicodeDecodeError, OSError):
        return False


def _hold_out(files: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Split off some of the larger files, evenly spread by size, from the training corpus."""
    by_size = sorted(files, key=lambda path: (path.stat().st_size, path.as_posix()))
    larger = by_size[-max(_HELD_OUT, len(by_size) // 4) :]
    unseen = {larger[(2 * each + 1) * len(larger) // (2 * _HELD_OUT)] for each in range(_HELD_OUT)}
    return [path for path in files if path not in unseen], [path for path in files if path in unseen]


def _show_corpus(console: Console, root: Path, seen: Sequence[Path], unseen: Sequence[Path]) -> None:
    size = sum(path.stat().st_size for path in seen)
    _step(console, "corpus", f"{len(seen):,} Python files of {root}: {size / 1e6:.1f} MB")
    if size < _EXPECTED_BYTES:
        _step(console, "", "a small corpus: there is little to learn")
    _step(console, "held out", ", ".join(path.relative_to(root).as_posix() for path in unseen))


def _show_encoding(console: Console, tokenizer: BPETokenizer, texts: Sequence[str]) -> None:
    size = sum(len(text.encode("utf-8")) for text in texts)
    begin = time.perf_counter()
    count = sum(len(tokenizer.encode(text)) for text in texts)
    seconds = time.perf_counter() - begin
    _step(
        console,
        "encoding",
        f"the {len(texts)} held-out files: {size:,} bytes -> {count:,} tokens, "
        f"{size / count:.2f} bytes per token, {seconds * 1e3:.1f} ms, {size / seconds / 1e6:.1f} MB/s",
    )


def _line_to_show(texts: Sequence[str]) -> str:
    lines = [line.strip() for text in texts for line in text.splitlines()]
    return max(
        (line for line in lines if len(line) <= 80), key=lambda line: (line.startswith("def "), len(line))
    )


def _show_line(console: Console, tokenizer: BPETokenizer, name: str, line: str) -> None:
    ids = tokenizer.encode(line)
    _step(
        console, name, f"{count_noun(len(line.encode('utf-8')), 'byte')} in {count_noun(len(ids), 'token')}"
    )
    print_tokens((tokenizer.decode_bytes([each]) for each in ids), console)
    console.print(*ids, soft_wrap=True)


def _check_round_trip(
    console: Console, trained: BPETokenizer, reloaded: BPETokenizer, texts: Sequence[str]
) -> None:
    for text in [*texts, _OTHER_TEXT]:
        ids = reloaded.encode(text)
        if ids != trained.encode(text):
            raise RuntimeError("the reloaded tokenizer gives other ids than the trained one")
        if reloaded.decode(ids) != text:
            raise RuntimeError("decoding does not give the text back")
    _step(console, "round trip", "decode(encode(text)) == text for every text above")
    _step(console, "", "ids of the reloaded tokenizer == ids of the trained one")


def _step(console: Console, name: str, text: str) -> None:
    from rich.text import Text

    console.print(Text.assemble((f"{name:<14}", "bold cyan"), text), soft_wrap=not console.is_terminal)
