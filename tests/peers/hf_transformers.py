"""`transformers` and `tokenizers`, without network and advice; without them, what imports this is skipped."""

from __future__ import annotations

import os
import warnings

import pytest

__all__ = ["tokenizers", "transformers"]

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed", minversion="5")
tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
