"""Optional libraries."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bpe_tokenizer.errors import MissingDependencyError

__all__ = ["import_library"]


def import_library(name: str, extra: str = "corpus") -> Any:
    """Import an optional library.

    Args:
        name: The module.
        extra: The extra of this package that installs it.

    Raises:
        MissingDependencyError: The library is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        library = name if name.startswith("backports.") else name.partition(".")[0]
        raise MissingDependencyError(
            f"this needs the library {library}: pip install 'bpe-tokenizer[{extra}]'"
        ) from None
