"""Whether the page is built; a machine without the Rust target of WebAssembly has none."""

from __future__ import annotations

from importlib import resources

import pytest

__all__ = ["HAS_CORE", "needs_core"]

HAS_CORE = resources.files("bpe_tokenizer.view").joinpath("page.html").is_file()
needs_core = pytest.mark.skipif(not HAS_CORE, reason="page.html is missing: run `make wasm`")
