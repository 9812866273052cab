"""Names and arguments that do not exist are Python's own errors; a directory is never named like a file."""

from __future__ import annotations

import copy
import inspect
import pickle
import weakref
from pathlib import Path
from typing import Any

import pytest

import bpe_tokenizer
from bpe_tokenizer import ArgumentTypeError, BPETokenizer, OptionError, TokenizerFileNotFoundError
from small_tokenizers import tiny

PUBLIC = [name for name in dir(BPETokenizer) if not name.startswith("_")]
CALLS = [name for name in [*PUBLIC, "__call__", "__init__"] if callable(getattr(BPETokenizer, name))]


class Own(BPETokenizer):
    padding_side = "right"

    def encode_ordinary(self, text: str) -> list[int]:
        return self.encode(text)


def test_a_tokenizer_lists_what_it_has() -> None:
    tokenizer = tiny("a|b")
    assert {"encode", "train", "vocab", "eos_token"} <= {*PUBLIC}
    for name in PUBLIC:
        getattr(tokenizer, name)


@pytest.mark.parametrize("call", [name for name in CALLS if name != "chat_async"])  # which calls `chat`
def test_an_argument_that_a_call_does_not_have(call: str) -> None:
    method = getattr(tiny("a|b"), call)
    parameters = inspect.signature(method).parameters.values()
    required = {
        each.name: 5
        for each in parameters
        if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    }
    with pytest.raises(TypeError, match=r"(unexpected keyword|has no) argument 'qqqq'"):
        method(**required, qqqq=1)


@pytest.mark.parametrize(
    "name", ["encode_ordinary", "save_pretrained", "encode_as_ids", "padding_side", "chat_template", "zzzzz"]
)
def test_a_name_that_a_tokenizer_does_not_have(name: str) -> None:
    tokenizer: Any = tiny("a|b")
    assert not hasattr(tokenizer, name)
    # A setting of another library would have no effect, so it cannot be set.
    with pytest.raises(AttributeError, match=rf"'BPETokenizer' object has no attribute '{name}'"):
        setattr(tokenizer, name, "left")


def test_a_class_derived_from_the_tokenizer_has_attributes() -> None:
    own = Own().train("low low", 257, verbose=False)
    own.padding_side = "left"
    assert own.encode_ordinary("a") == [97]
    assert {"padding_side", "encode_ordinary"} <= {*dir(own)}
    assert (copy.copy(own).padding_side, Own.padding_side) == ("left", "right")
    assert pickle.loads(pickle.dumps(own)).padding_side == "left"
    tokenizer = tiny("a|b")
    assert weakref.ref(tokenizer)() is tokenizer
    assert (
        copy.copy(tokenizer) == pickle.loads(pickle.dumps(tokenizer)) == copy.deepcopy(tokenizer) == tokenizer
    )


def test_no_method_is_found_through_getattr() -> None:
    """It would add a tenth to the time of a short call."""
    assert not hasattr(BPETokenizer, "__getattr__")
    assert BPETokenizer.__getattribute__ is object.__getattribute__


@pytest.mark.parametrize("name", ["Tokenizer", "get_encoding", "AutoTokenizer", "zzzzz"])
def test_a_name_that_the_package_does_not_have(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"^module 'bpe_tokenizer' has no attribute '{name}'$"):
        getattr(bpe_tokenizer, name)
    with pytest.raises(ImportError, match=f"cannot import name '{name}' from 'bpe_tokenizer'"):
        exec(f"from bpe_tokenizer import {name}", {})


def test_the_interfaces_of_other_packages_are_attributes() -> None:
    root: Any = bpe_tokenizer
    assert root.compat.tiktoken.get_encoding.__module__.startswith("bpe_tokenizer.compat.tiktoken")
    assert root.compat.transformers.AutoTokenizer.__name__ == "AutoTokenizer"
    assert not hasattr(root.compat, "sentencepiece")


def test_arguments_of_other_libraries_of_the_wrong_type(tmp_path: Path) -> None:
    tokenizer: Any = tiny("a|b")
    for call, arguments in (
        (tokenizer, ("a", "b")),
        (tokenizer, (["a"], ["b"])),
        (tokenizer.encode, ("a", "all")),
    ):
        with pytest.raises(ArgumentTypeError, match=r"^add_special_tokens must be True or False, not "):
            call(*arguments)
    for roles in ({"pad_token": "<pad>"}, {"additional_special_tokens": ["<a>", "<b>"]}):
        with pytest.raises(ArgumentTypeError, match=r"the id of special token '.*' must be an int, not "):
            tokenizer.add_special_tokens(roles)
    with pytest.raises(ArgumentTypeError, match="verbose must be True or False, not str"):
        tokenizer.save(tmp_path / "saved", verbose="no")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OptionError, match="truncation is 'left'"):
        tokenizer(["a"], truncation="left", max_length=3)


def test_a_directory_with_the_name_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(OptionError, match=r"save writes a directory.*to_tokenizers\(\)\.save\(path\)"):
        tiny("a|b").save(path)
    assert list(tmp_path.iterdir()) == []
    path.mkdir()
    tiny("a|b").save(path)
    assert BPETokenizer.from_pretrained(path) == tiny("a|b")


FORMS = {"model": "minbpe", "gguf": "gguf", "GGUF": "gguf", "tiktoken": "tiktoken", "txt": "readable"}


@pytest.mark.parametrize(("suffix", "form"), FORMS.items())
def test_a_directory_with_the_name_of_another_file(
    suffix: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, tokenizer = f"a.{suffix}", BPETokenizer(normalization=None).train("low low", 258, verbose=False)
    with pytest.raises(
        OptionError, match=rf"'{name}' has the name of a file.*: export\(path, '{form}'\) writes a \."
    ):
        tokenizer.save(name)
    assert list(tmp_path.iterdir()) == []
    tokenizer.export(name, form)
    assert Path(name).is_file()


def test_a_directory_may_have_a_dot_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tiny("a|b").save("v1.2")
    with pytest.raises(TokenizerFileNotFoundError, match=r"no such file .*; did you mean 'v1\.2'\?$"):
        BPETokenizer.load("v1.2.model")
    assert BPETokenizer.load("v1.2") == tiny("a|b")
