"""The library that reads and writes Zstandard."""

from __future__ import annotations

import sys
from typing import Any

import pytest

__all__ = ["ZSTD", "zstd"]

ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def zstd() -> Any:
    """Return the library; skip the test without it."""
    return pytest.importorskip(ZSTD)
