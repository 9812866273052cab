"""Names of other libraries get an error that names ours, and every name it says exists."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import ArgumentTypeError, BPETokenizer, OptionError, other_names
from small_tokenizers import tiny

NAMES = {name: ours for names, _ in other_names._FACES.values() for name, ours in names.items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_another_library(name: str) -> None:
    tokenizer = tiny("a|b")
    with pytest.raises(AttributeError, match=rf"^BPETokenizer has no attribute '{name}'; use ") as raised:
        getattr(tokenizer, name)
    assert len(str(raised.value)) <= 300
    assert not hasattr(tokenizer, name)
    # Each name in the advice is one of ours.
    known = [*dir(BPETokenizer), "text", "texts", "token", "tokens", "ids", "model"]
    first = re.match(r"(?:BPETokenizer\.|BPETokenizer\([^)]*\)\.)?(\w+)", NAMES[name])
    assert first is not None
    assert first[1] in known


def test_other_unknown_names() -> None:
    tokenizer = tiny("a|b")
    with pytest.raises(AttributeError, match=r"no attribute 'encod'; did you mean 'encode'\?$"):
        _ = tokenizer.encod  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"no attribute 'zzzzz'$"):
        _ = tokenizer.zzzzz  # type: ignore[attr-defined]
    assert getattr(tokenizer, "nothing", None) is None
    assert (
        copy.copy(tokenizer) == pickle.loads(pickle.dumps(tokenizer)) == copy.deepcopy(tokenizer) == tokenizer
    )


def test_roles_are_not_special_tokens() -> None:
    tokenizer: Any = tiny("a|b")
    with pytest.raises(
        ArgumentTypeError, match=r"add_special_tokens\(\['<pad>'\]\); tokenizer.pad_token = '<pad>'"
    ):
        tokenizer.add_special_tokens({"pad_token": "<pad>"})
    with pytest.raises(ArgumentTypeError, match=r"add_special_tokens\(\['<a>', '<b>'\]\)$"):
        tokenizer.add_special_tokens({"additional_special_tokens": ["<a>", "<b>"]})
    assert tokenizer.add_special_tokens({"pad_token": 300}) == 1


def test_positional_arguments_of_other_libraries(tmp_path: Path) -> None:
    tokenizer: Any = tiny("a|b")
    for call, arguments in (
        (tokenizer, ("a", "b")),
        (tokenizer, (["a"], ["b"])),
        (tokenizer.encode, ("a", "all")),
    ):
        with pytest.raises(
            ArgumentTypeError, match=r"True or False, not .*; the second text of a pair is text_pair="
        ):
            call(*arguments)
    with pytest.raises(ArgumentTypeError, match="verbose must be True or False, not str"):
        tokenizer.save(tmp_path / "saved", verbose="no")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OptionError, match="truncation is 'left'"):
        tokenizer(["a"], truncation="left", max_length=3)
