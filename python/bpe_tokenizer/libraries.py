"""Optional libraries, and how to install them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bpe_tokenizer.errors import MissingDependencyError

__all__ = ["import_library", "install_command"]

# How to install this package with extras. Change this line after the first upload to the package index, to
# "pip install 'bpe-tokenizer[{}]'"; a test then names the line of docs/install.md.
INSTALL = "pip install '.[{}]' in the repository of bpe-tokenizer"


def install_command(extra: str) -> str:
    """Return what installs the libraries of an extra, to end an error.

    Args:
        extra: The extra.
    """
    return INSTALL.format(extra)


def import_library(name: str, extra: str = "corpus") -> Any:
    """Import an optional library.

    Args:
        name: The module.
        extra: The extra of this package that installs it; "" for a library that comes with the package.

    Raises:
        MissingDependencyError: The library is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        library = name if name.startswith("backports.") else name.partition(".")[0]
        command = install_command(extra) if extra else f"pip install {library}"
        raise MissingDependencyError(f"this needs the library {library}: {command}") from None
