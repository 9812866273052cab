"""`bpe-tokenizer doctor`."""

from __future__ import annotations

import json
from dataclasses import asdict

from bpe_tokenizer.cli.installation import Installation
from bpe_tokenizer.cli.options import AsJson, Debug

__all__ = ["doctor"]


def doctor(as_json: AsJson = False, debug: Debug = False) -> None:
    """Show versions, extras, caches, and what to install.

    Put its output into a report of a bug. It runs without the libraries of the command line too.
    """
    found = Installation.examined()
    print(json.dumps(asdict(found)) if as_json else found)
