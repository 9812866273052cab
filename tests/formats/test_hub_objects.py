"""Tokenizers taken from objects that stand for those of `tokenizers` and `transformers`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, ClassVar

import pytest

from bpe_tokenizer import AddedToken, ArgumentTypeError, BPETokenizer, FormatError, OptionError
from bpe_tokenizer.formats import hub, huggingface
from hf_files import small_model


@pytest.mark.parametrize("source", [3, None, b"owner/name", ["owner/name"], object()])
def test_what_is_no_source(source: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="source must be the name of a repository, a path, a token"):
        hub.load(source)


class Tokenizer:
    """Replaces a `tokenizers.Tokenizer`."""

    __module__ = "tokenizers.implementations"

    def __init__(self, text: str | Exception) -> None:
        self.text = text

    def to_str(self) -> str:
        if isinstance(self.text, Exception):
            raise self.text
        return self.text


class FastTokenizer:
    """Replaces a tokenizer of `transformers`, which saves roles without a token as missing ones."""

    __module__ = "transformers.models.gpt2"
    is_fast = True
    templates: ClassVar[list[dict[str, str]]] = [{"name": "é", "template": "x"}]
    config: ClassVar[dict[str, Any]] = {"chat_template": templates, "model_max_length": 5}

    def __init__(self, text: str | None) -> None:
        self.text = text

    def save_pretrained(self, save_directory: str, **options: Any) -> None:
        assert options["save_jinja_files"] is False
        config = json.dumps(self.config, ensure_ascii=False)
        (Path(save_directory) / "tokenizer_config.json").write_text(config, encoding="utf-8")
        if self.text is not None:
            (Path(save_directory) / "tokenizer.json").write_text(self.text, encoding="utf-8")


class SlowTokenizer(FastTokenizer):
    __module__ = "transformers.models.gpt2"
    is_fast = False


def test_objects_of_other_libraries() -> None:
    model = small_model(AddedToken("<eos>", 256), AddedToken("<é日>", 257))
    text = huggingface.to_json(model).decode()
    loaded = hub.load(Tokenizer(text))
    assert loaded.core.added_tokens == model.core.added_tokens
    assert BPETokenizer.from_model(loaded).eos_token == "<eos>"
    loaded = hub.load(FastTokenizer(text))
    assert loaded.core.added_tokens == model.core.added_tokens
    assert loaded.config == FastTokenizer.config
    assert BPETokenizer.from_model(loaded).eos_token is None


NOT_FAST = (
    "is not a fast tokenizer of transformers, so no tokenizer.json defines it; give the fast one, from "
    "AutoTokenizer.from_pretrained(...), or its files"
)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Tokenizer(ValueError("Python")), "tokenizers.Tokenizer: cannot be saved: Python"),
        (Tokenizer("{}"), "tokenizers.Tokenizer: tokenizer.json: model: is missing"),
        (FastTokenizer("{}"), "transformers.FastTokenizer: tokenizer.json: model: is missing"),
        (FastTokenizer(None), "transformers.FastTokenizer: holds no tokenizer.json"),
        (SlowTokenizer("{}"), f"transformers.SlowTokenizer: {NOT_FAST}"),
    ],
)
def test_objects_that_cannot_be_loaded(source: Any, message: str) -> None:
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        hub.load(source)


@pytest.mark.parametrize("given", [{"split_pattern": "gpt2"}, {"special_tokens": ["<eos>"]}])
def test_an_object_holds_what_is_given(given: Any) -> None:
    with pytest.raises(
        OptionError, match="an object has its own split pattern and special tokens; leave out"
    ):
        hub.load(Tokenizer("{}"), **given)
