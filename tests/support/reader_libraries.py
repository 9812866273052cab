"""Imports the libraries that read token files."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


def library(name: str) -> Any:
    """Import a library, or skip the test."""
    if find_spec(name.partition(".")[0]) is None:
        pytest.skip(f"{name.partition('.')[0]} is not installed; make test-token-readers installs it")
    return import_module(name)
