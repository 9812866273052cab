"""`transformers` and `tokenizers`, without network and advice, and how they are compared with this package.

Without them, what imports this is skipped.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from small_tokenizers import without_surrogates

__all__ = ["assert_same_ids_and_text", "assert_same_roles", "opened", "tokenizers", "transformers"]

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed", minversion="5")
tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")


def opened(directory: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(str(directory))


def assert_same_ids_and_text(theirs: Any, ours: BPETokenizer, texts: Iterable[str]) -> None:
    is_recorded = ours.model.post_processor is not None
    for text in map(without_surrogates, texts):
        for add_special_tokens in (False, True):
            ids = ours.encode(text, add_special_tokens and is_recorded, allowed_special="all")
            assert theirs.encode(text, add_special_tokens=add_special_tokens) == ids, repr(text[:500])
            assert theirs.convert_ids_to_tokens(ids) == ours.convert_ids_to_tokens(ids)
            for skip in (False, True):
                assert theirs.decode(ids, skip_special_tokens=skip) == ours.decode(ids, skip)


def assert_same_roles(theirs: Any, ours: BPETokenizer) -> None:
    for role in ("bos", "eos", "pad", "unk"):
        assert getattr(theirs, f"{role}_token") == getattr(ours, f"{role}_token"), role
        assert getattr(theirs, f"{role}_token_id") == getattr(ours, f"{role}_token_id"), role
