"""What the examples share: a corpus that every machine has, its tokenizer, and functions that print."""

from __future__ import annotations

import io
import sys
import sysconfig
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from bpe_tokenizer import BPETokenizer

__all__ = ["heading", "library_files", "library_tokenizer", "refused", "show", "without"]

_WIDTH = 110


def library_files() -> list[Path]:
    """Return the top-level modules of Python's own library, sorted by name."""
    return sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))


@lru_cache
def library_tokenizer() -> BPETokenizer:
    """Return a tokenizer of Python's own library, with ChatML's control tokens. Do not modify it."""
    control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"]
    return BPETokenizer().train(library_files(), 4096, special_tokens=control, verbose=False)


def heading(section: int, title: str) -> None:
    """Print the title of a section."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Escapes characters that the terminal's encoding lacks, instead of failing.
        sys.stdout.reconfigure(errors="backslashreplace")
    line = f"§{section}  {title}"
    print(f"\n{line}\n{'=' * len(line)}")


def show(what: str, *results: object) -> None:
    """Print a step, and its results below it."""
    print(f"\n- {what}")
    for result in results:
        for line in str(result).splitlines():
            print(textwrap.fill(line, _WIDTH, initial_indent="    ", subsequent_indent="      "))


@contextmanager
def refused(error: type[Exception] | tuple[type[Exception], ...], what: str) -> Iterator[list[Any]]:
    """Print the error that a step raises.

    Args:
        error: One or more error classes.
        what: The step.

    Yields:
        A list that receives the error.

    Raises:
        AssertionError: The step raised no error.
    """
    errors: list[Any] = []
    try:
        yield errors
    except error as caught:
        errors.append(caught)
        show(f"{what}: {type(caught).__name__}", caught)
        return
    raise AssertionError(f"{what}: this should have been refused")


@contextmanager
def without(library: str) -> Iterator[None]:
    """Hide a library from imports, as if it were not installed."""
    hidden = {name: sys.modules[name] for name in sys.modules if name.split(".")[0] == library}
    for name in hidden:
        del sys.modules[name]
    sys.modules[library] = None  # type: ignore[assignment]  # Python then raises ImportError.
    try:
        yield
    finally:
        del sys.modules[library]
        sys.modules.update(hidden)
