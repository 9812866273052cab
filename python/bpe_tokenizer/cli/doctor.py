"""`bpe-tokenizer doctor`."""

from __future__ import annotations

from bpe_tokenizer.cli.installation import Installation
from bpe_tokenizer.cli.options import AsJson, Debug

__all__ = ["doctor"]


def doctor(as_json: AsJson = False, debug: Debug = False) -> None:
    """Show versions, extras, caches, and what to install.

    Put its output into a report of a bug. It runs without the libraries of the command line too.
    """
    found = Installation.examined()
    print(found.to_json() if as_json else found)
