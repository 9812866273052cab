"""Names of other libraries get an error that names ours, and every name it says exists."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bpe_tokenizer
from bpe_tokenizer import (
    ArgumentTypeError,
    BPETokenizer,
    OptionError,
    TokenizerFileNotFoundError,
)
from bpe_tokenizer.other_libraries import names as other_names
from small_tokenizers import tiny

NAMES = {name: ours for names, _ in other_names._FACES.values() for name, ours in names.items()}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_another_library(name: str) -> None:
    tokenizer = tiny("a|b")
    with pytest.raises(AttributeError, match=rf"^BPETokenizer has no attribute '{name}'; use ") as raised:
        getattr(tokenizer, name)
    assert len(str(raised.value)) <= 300
    assert raised.value.name == name
    assert not hasattr(tokenizer, name)
    with pytest.raises(AttributeError, match=rf"^BPETokenizer has no attribute '{name}'; use "):
        getattr(BPETokenizer, name)
    assert name not in dir(tokenizer)
    # Each name in the advice is one of ours.
    known = [*dir(tokenizer), "StreamDecoder", "text", "texts", "token", "tokens", "ids", "model"]
    first = re.match(r"(?:BPETokenizer\.|BPETokenizer\([^)]*\)\.|bpe_tokenizer\.)?(\w+)", NAMES[name])
    assert first is not None
    assert first[1] in known


def test_other_unknown_names() -> None:
    tokenizer = tiny("a|b")
    with pytest.raises(AttributeError, match=r"no attribute 'zzzzz'$"):
        _ = tokenizer.zzzzz  # type: ignore[attr-defined]
    assert getattr(tokenizer, "nothing", None) is None
    assert (
        copy.copy(tokenizer) == pickle.loads(pickle.dumps(tokenizer)) == copy.deepcopy(tokenizer) == tokenizer
    )


def test_python_suggests_the_name_that_was_meant() -> None:
    script = "import bpe_tokenizer; bpe_tokenizer.BPETokenizer().encod('a')"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.stderr.rstrip().endswith("has no attribute 'encod'. Did you mean: 'encode'?")


def test_a_subclass_may_have_the_name_of_another_library() -> None:
    class Own(BPETokenizer):
        padding_side = "right"

        def encode_ordinary(self, text: str) -> list[int]:
            return self.encode(text)

    own = Own().train("low low", 257, verbose=False)
    own.padding_side = "left"
    assert own.encode_ordinary("a") == [97]
    assert {"padding_side", "encode_ordinary"} <= {*dir(own)}
    with pytest.raises(AttributeError, match=r"^Own has no attribute 'encode_as_ids'; use encode\(text\)$"):
        own.encode_as_ids("a")  # type: ignore[attr-defined]


def test_a_class_beside_the_tokenizer_may_have_the_name_of_another_library() -> None:
    class Mixin:
        padding_side = "right"

        def push_to_hub(self) -> str:
            return f"pushed {type(self).__name__}"

        @classmethod
        def from_file(cls) -> str:
            return cls.__name__

    class Both(BPETokenizer, Mixin):
        pass

    both = Both()
    assert both.push_to_hub() == "pushed Both"
    assert Both.from_file() == both.from_file() == "Both"
    assert both.padding_side == "right"
    both.padding_side = "left"
    assert (both.padding_side, copy.copy(both).padding_side, Both().padding_side) == ("left", "left", "right")
    del both.padding_side
    assert both.padding_side == "right"
    with pytest.raises(AttributeError, match=r"^Both has no attribute 'truncation_side'; use "):
        both.truncation_side = "left"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"^Both has no attribute 'truncation_side'; use "):
        del both.truncation_side  # type: ignore[attr-defined]


def test_no_method_is_found_through_getattr() -> None:
    """It would add a tenth to the time of a short call."""
    assert not hasattr(BPETokenizer, "__getattr__")
    assert BPETokenizer.__getattribute__ is object.__getattribute__


@pytest.mark.parametrize("name", ["padding_side", "chat_template", "model_max_length"])
def test_a_setting_of_another_library_cannot_be_set(name: str) -> None:
    tokenizer: Any = tiny("a|b")
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'; use "):
        setattr(tokenizer, name, "left")
    for own in ("note", "name", "_special_tokens"):
        setattr(tokenizer, own, "a program's own attribute")
        assert getattr(copy.copy(tokenizer), own) == getattr(tokenizer, own)
        assert own in dir(tokenizer)


@pytest.mark.parametrize("name", other_names._OF_ROOTS)
def test_a_name_of_another_package(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'; use ") as raised:
        getattr(bpe_tokenizer, name)
    ours = re.match(r".*; use (?:bpe_tokenizer\.)?(\w+)", str(raised.value))
    assert ours is not None
    assert ours[1] in [*dir(bpe_tokenizer), "compat"]


@pytest.mark.parametrize("name", other_names._OF_ROOTS)
def test_an_import_of_a_name_of_another_package(name: str) -> None:
    with pytest.raises(ImportError, match=rf"has no attribute '{name}'; use "):
        exec(f"from bpe_tokenizer import {name}", {})
    assert not hasattr(bpe_tokenizer, name)


def test_the_interfaces_of_other_packages_are_attributes() -> None:
    root: Any = bpe_tokenizer
    assert root.compat.tiktoken.get_encoding.__module__.startswith("bpe_tokenizer.compat.tiktoken")
    assert root.compat.transformers.AutoTokenizer.__name__ == "AutoTokenizer"
    assert not hasattr(root.compat, "sentencepiece")


def test_other_names_of_the_package() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'zzzzz'$"):
        _ = bpe_tokenizer.zzzzz


def test_a_directory_with_the_name_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(OptionError, match=r"save writes a directory.*to_tokenizers\(\)\.save\(path\)"):
        tiny("a|b").save(path)
    assert list(tmp_path.iterdir()) == []
    path.mkdir()
    tiny("a|b").save(path)
    assert BPETokenizer.from_pretrained(path) == tiny("a|b")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("toy.model", "save_minbpe"),
        ("toy.vocab", "save_minbpe"),
        ("toy.gguf", "save_gguf"),
        ("toy.GGUF", "save_gguf"),
        ("toy.tiktoken", "save_tiktoken"),
        ("toy.txt", "save_readable"),
    ],
)
def test_a_directory_with_the_name_of_another_file(
    name: str, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tokenizer = BPETokenizer(normalization=None).train("low low", 258, verbose=False)
    with pytest.raises(OptionError, match=rf"'{name}' has the name of a file.*: {call}\(path\) writes a \."):
        tokenizer.save(name)
    assert list(tmp_path.iterdir()) == []
    getattr(tokenizer, call)(name.replace("vocab", "model"))
    assert Path(name).is_file()
    tokenizer.save("v1.2")
    with pytest.raises(
        TokenizerFileNotFoundError, match=r"no such file or directory; did you mean 'v1\.2'\?$"
    ):
        BPETokenizer.load("v1.2.model")
    assert BPETokenizer.load("v1.2") == tokenizer


def test_from_pretrained_names_the_way_to_published_tokenizers() -> None:
    with pytest.raises(TokenizerFileNotFoundError, match=r"no such file.*; BPETokenizer\.load takes"):
        BPETokenizer.from_pretrained("no-such-name")


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
        (tokenizer.encode, ("a", "b")),
    ):
        with pytest.raises(
            ArgumentTypeError, match=r"True or False, not .*; the second text of a pair is text_pair="
        ):
            call(*arguments)
    with pytest.raises(
        ArgumentTypeError, match="not str; allowed_special='all' is the argument for such values"
    ):
        tokenizer.encode("a", "all")
    with pytest.raises(ArgumentTypeError, match="verbose must be True or False, not str"):
        tokenizer.save(tmp_path / "saved", verbose="no")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OptionError, match="truncation is 'left'"):
        tokenizer(["a"], truncation="left", max_length=3)


def test_training_needs_a_tokenizer() -> None:
    with pytest.raises(ArgumentTypeError, match=r"write BPETokenizer\(\)\.train\(corpus, vocab_size\)"):
        BPETokenizer.train("corpus.txt", 300)  # type: ignore[type-var,arg-type]
