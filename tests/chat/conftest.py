"""What several tests of chat templates need."""

from __future__ import annotations

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.chat.jinja import template as template_module
from bpe_tokenizer.chat.jinja.environment import TaintTrackingEnvironment
from chat_cases import chat_tokenizer


@pytest.fixture
def new_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates compile in an environment that the test makes."""
    monkeypatch.setattr(template_module, "_ENVIRONMENT", TaintTrackingEnvironment())
    template_module._compile.cache_clear()
    template_module._compile_traced.cache_clear()


@pytest.fixture(scope="session")
def tokenizer() -> BPETokenizer:
    return chat_tokenizer()
