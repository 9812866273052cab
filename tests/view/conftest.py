"""The page's core, compiled once for all tests of a process."""

from __future__ import annotations

import pytest

from wasm_core import WasmCore


@pytest.fixture(scope="session")
def core() -> WasmCore:
    """The compiled core."""
    pytest.importorskip("wasmtime", reason="wasmtime is not installed: pip install wasmtime")
    return WasmCore()
