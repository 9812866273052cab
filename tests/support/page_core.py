"""Whether the page's core in WebAssembly is built; a machine without its Rust target has none."""

from __future__ import annotations

from importlib import resources

import pytest

__all__ = ["HAS_CORE", "needs_core"]

HAS_CORE = resources.files("bpe_tokenizer.view").joinpath("page", "core.wasm").is_file()
needs_core = pytest.mark.skipif(not HAS_CORE, reason="core.wasm is missing: run `make wasm`")
