"""The settings of a model have the same names everywhere, and wrong ones are refused in one sentence."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import _core
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, PatternError
from bpe_tokenizer.formats import base64_json
from small_tokenizers import BYTES

# They are short for steps, which a model gives back.
SHORT = {"normalization", "split_patterns", "add_prefix_space"}


def model(**settings: Any) -> _core.Model:
    return _core.Model(BYTES, [], **settings)


def test_the_names_of_settings_are_the_same_everywhere() -> None:
    names = set(model().settings)
    with pytest.raises(OptionError, match="unknown field `no_setting`") as caught:
        model(no_setting=1)
    assert set(re.findall("`(\\w+)`", str(caught.value))) == names | SHORT | {"no_setting"}
    stub = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text(encoding="utf-8"))
    (described,) = (node for node in ast.walk(stub) if getattr(node, "name", "") == "_Settings")
    fields = (node.target for node in ast.walk(described) if isinstance(node, ast.AnnAssign))
    assert {field.id for field in fields if isinstance(field, ast.Name)} == names | SHORT
    assert {*base64_json._SETTINGS, "added_tokens"} == names


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"unk_id": b"a"}, ArgumentTypeError, "the settings of a model: Object of type bytes is not JSON"),
        ({"unk_id": "a"}, OptionError, "the settings of a model: invalid type: string"),
        ({"split_patterns": "ab"}, ArgumentTypeError, "expected a list, not 'ab'"),
        ({"split_patterns": ["\ud800"]}, PatternError, "lone surrogate"),
        ({"alphabet": "runes"}, OptionError, "expected `bytes` or `characters`"),
        ({"normalizers": [("Strip", True, 3)]}, OptionError, r"Strip \(strip_left, strip_right\)"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        model(**settings)
