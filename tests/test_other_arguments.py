"""Keyword arguments of other libraries get an error that says what to type, and every name it says exists."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import bpe_tokenizer
from bpe_tokenizer import ArgumentTypeError, BPETokenizer, TokenizerError
from bpe_tokenizer.other_libraries.arguments import _ARGUMENTS
from small_tokenizers import tiny

TOKENIZER = BPETokenizer().train("ab ab", 258, special_tokens=["<pad>"], verbose=False)
# What an advice begins with.
BEGINNINGS = ("use ", "leave it out", "pass its ", "reverse the result")
# Functions in an advice that are not ours.
OTHERS = {
    "Path",
    "len",
    "ranks.items",
    "text.lower",
    "to_tokenizers().save",
    "tokenizer.special_tokens.values",
}


class Row(NamedTuple):
    """An argument of another library (or of another call of ours, with the library ""), and the advice."""

    call: str
    library: str
    name: str
    advice: str


ROWS = [
    Row(call, library, name, advice)
    for call, libraries in _ARGUMENTS.items()
    for library, arguments in libraries.items()
    for name, advice in arguments.items()
]


def target(call: str) -> Callable[..., Any]:
    """The call, as a program makes it."""
    if call == "__init__":
        return BPETokenizer
    return TOKENIZER if call == "__call__" else getattr(TOKENIZER, call)


def parameters(call: str) -> set[str]:
    """The names of our arguments."""
    return set(inspect.signature(target(call)).parameters) - {"variables"}


def refused(call: str, **arguments: object) -> str:
    """The message of the error of a call with an unknown argument."""
    with pytest.raises(ArgumentTypeError) as raised:
        target(call)(**arguments)
    assert isinstance(raised.value, TypeError)
    return str(raised.value)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.call}-{row.library}-{row.name}")
def test_an_argument_of_another_library(row: Row) -> None:
    assert row.name not in parameters(row.call)
    shown = {"__init__": "BPETokenizer", "__call__": "tokenizer"}.get(row.call, row.call)
    message = refused(row.call, **{row.name: None})
    start, _, end = message.partition("; ")
    assert start.startswith(f"{shown}() has no argument '{row.name}'")
    assert row.library in start
    # Of several libraries with such an argument, the first one's advice.
    first = next(each for each in ROWS if (each.call, each.name) == (row.call, row.name))
    assert end == first.advice.replace("{name}", row.name)
    assert len(message) <= 300


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.call}-{row.library}-{row.name}")
def test_an_advice_says_what_exists(row: Row) -> None:
    advice = row.advice.replace("{name}", row.name)
    assert advice.startswith(BEGINNINGS)
    rest = advice
    for code in calls_in(advice):
        check_call(ast.parse(code, mode="eval").body, row)
        rest = rest.replace(code, "")
    for name in re.findall(r"(?<!the )tokenizer\.(\w+)", rest):
        assert hasattr(BPETokenizer, name)
    for name in re.findall(r"\b(\w+)=", rest):  # an argument of this call
        assert name in parameters(row.call)
    if row.advice.startswith("use "):
        assert rest != advice or "=" in rest


def calls_in(advice: str) -> Iterator[str]:
    """The outermost calls in a text."""
    end = 0
    for match in re.finditer(r"[A-Za-z_][\w.]*\(|\[\w+ ", advice):
        for after in range(match.end() + 1, len(advice) + 1):
            if match.start() >= end and is_expression(advice[match.start() : after]):
                end = after
                while advice[end : end + 1] == ".":  # a method of the result
                    longer = re.match(r"\.\w+\([^()]*\)", advice[end:])
                    if longer is None:
                        break
                    end += longer.end()
                yield advice[match.start() : end]
                break


def is_expression(code: str) -> bool:
    try:
        ast.parse(code, mode="eval")
    except SyntaxError:
        return False
    return True


def check_call(code: ast.expr, row: Row) -> None:
    """Check each call in an expression: the function exists and takes such arguments."""
    for node in ast.walk(code):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "tokenizer":
            assert hasattr(BPETokenizer, node.attr)
        if isinstance(node, ast.Call):
            function = named(node.func)
            if function is not None:
                names = {each.arg: None for each in node.keywords if each.arg}
                inspect.signature(function).bind(*node.args, **names)
                assert names.keys() <= inspect.signature(function).parameters.keys()


def named(code: ast.expr) -> Callable[..., Any] | None:
    """What an expression in front of parentheses is; None for what is not ours."""
    name = ast.unparse(code)
    if name in OTHERS:
        return None
    if name.startswith("bpe_tokenizer.compat"):
        module, _, function = name.rpartition(".")
        return getattr(importlib.import_module(module), function)  # type: ignore[no-any-return]
    if isinstance(code, ast.Attribute):
        assert re.match(r"BPETokenizer\b|tokenizer$|train\(corpus\)$", ast.unparse(code.value))
        return getattr(TOKENIZER, code.attr)  # type: ignore[no-any-return]
    return target({"BPETokenizer": "__init__", "tokenizer": "__call__"}.get(name, name))


@pytest.mark.parametrize("call", [*_ARGUMENTS, "load"])
def test_an_argument_that_nobody_has(call: str) -> None:
    name = next(iter(parameters(call)), "")
    if name:
        assert f"has no argument '{name}_'; did you mean '{name}'?" in refused(call, **{f"{name}_": 1})
    advice = "a variable of the template" if call == "apply_chat_template" else r"help\(BPETokenizer"
    assert re.search(rf"has no argument 'qqqq'; {advice}", refused(call, qqqq=1))
    # Of several, the one with an advice.
    known = next(iter(next(iter(_ARGUMENTS[call].values()))))
    assert f"'{known}'" in refused(call, **{"qqqq": 1, known: 1})


def test_load_of_the_package() -> None:
    arguments: dict[str, Any] = {"model_file": "m.model"}
    with pytest.raises(ArgumentTypeError, match=r"^load\(\) has no argument 'model_file', which sent"):
        bpe_tokenizer.load(**arguments)


@pytest.mark.parametrize("call", [call for call in _ARGUMENTS if call not in ("__init__", "get_vocab")])
def test_a_call_without_its_argument(call: str) -> None:
    with pytest.raises(TokenizerError, match="nothing") as raised:
        target(call)()
    assert isinstance(raised.value, TypeError)


def test_variables_of_a_template() -> None:
    tokenizer: Any = tiny("a|b")
    template = "{{ enable_thinking }}{{ messages[0].content }}"
    variables = {"enable_thinking": "b"}
    assert (
        tokenizer.apply_chat_template(
            [{"role": "user", "content": "a"}],
            template,
            template_variables=variables,
            tokenize=False,
        )
        == "ba"
    )
    with pytest.raises(ArgumentTypeError, match="use template="):
        tokenizer.chat([{"role": "user", "content": "a"}], "m.gguf", chat_template=template)


@pytest.mark.parametrize("call", _ARGUMENTS)
def test_signatures_are_clean(call: str) -> None:
    method = getattr(BPETokenizer, call)
    for each in inspect.signature(method).parameters.values():
        assert each.name != "unknown"
        assert "nothing" not in repr(each.default)
    assert inspect.getfullargspec(method).varkw is None


def test_own_classes() -> None:
    class Own(BPETokenizer):
        def encode(self, text: str, *arguments: Any, **options: Any) -> list[int]:
            return [len(text), *super().encode(text, *arguments, **options)]

    own: Any = Own("a|b").train("ab", 257, verbose=False)
    assert own("abc")[0] == own.encode("abc", add_special_tokens=True)[0] == 3
    with pytest.raises(TypeError, match=r"encode\(\) got an unexpected keyword argument 'pair'"):
        own.encode("abc", pair="b")


class Text(str):
    """A text of another class."""


def test_texts_of_other_classes() -> None:
    tokenizer = tiny("a|b")
    assert tokenizer.encode(Text("ab")) == tokenizer("ab") == tokenizer(Text("ab")) == tokenizer.encode("ab")


# The arguments of the libraries themselves.


def missing(call: str, library: str, theirs: object) -> list[str]:
    """Those arguments of their function that ours does not have, and the table does not know."""
    found = inspect.signature(theirs).parameters.values()  # type: ignore[arg-type]
    named = [each.name for each in found if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    return unanswered(call, library, named)


def unanswered(call: str, library: str, names: list[str]) -> list[str]:
    known = parameters(call) | _ARGUMENTS[call].get(library, {}).keys()
    return [name for name in names if name not in known and name not in ("self", "cls")]


@pytest.mark.peer
def test_arguments_of_tiktoken() -> None:
    encoding = pytest.importorskip("tiktoken").Encoding
    for call in ("__init__", "encode_batch", "decode_bytes", "decode_batch"):
        assert missing(call, "tiktoken", getattr(encoding, call)) == []
    assert set(inspect.signature(encoding.encode).parameters) - {"self"} <= parameters("encode")
    assert set(inspect.signature(encoding.encode_to_numpy).parameters) - {"self"} <= parameters("encode")


@pytest.mark.peer
def test_arguments_of_tokenizers() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.Tokenizer
    calls = {
        "train_from_iterator": "train",
        **{name: name for name in ("train", "encode_batch", "decode_batch", "save")},
        **{name: name for name in ("from_pretrained", "add_special_tokens", "get_vocab", "id_to_token")},
    }
    for name, call in calls.items():
        assert missing(call, "tokenizers", getattr(theirs, name)) == []
    assert set(inspect.signature(theirs.decode).parameters) - {"self"} <= parameters("decode")
    byte_level = tokenizers.ByteLevelBPETokenizer
    for call in ("__init__", "train", "encode_batch", "save"):
        assert missing(call, "tokenizers", getattr(byte_level, call)) == []
    for call, kind in (("__init__", tokenizers.models.BPE), ("train", tokenizers.trainers.BpeTrainer)):
        fields = [name for name, value in vars(kind).items() if inspect.isgetsetdescriptor(value)]
        assert len(fields) > 5
        assert unanswered(call, "tokenizers", fields) == []


@pytest.mark.peer
def test_arguments_of_transformers() -> None:
    theirs = pytest.importorskip("transformers").PreTrainedTokenizerFast
    calls = [
        *[(name, name) for name in ("__call__", "pad", "tokenize", "from_pretrained")],
        *[(name, name) for name in ("apply_chat_template", "add_special_tokens", "convert_ids_to_tokens")],
        *[("__call__", "encode_batch"), ("batch_decode", "decode_batch")],
        *[("save_pretrained", "save"), ("train_new_from_iterator", "train"), ("from_pretrained", "load")],
        ("from_pretrained", "from_huggingface"),
    ]
    for name, call in calls:
        assert missing(call, "transformers", getattr(theirs, name)) == []
    settings = [*theirs.SPECIAL_TOKENS_ATTRIBUTES, "chat_template", "model_max_length", "padding_side"]
    for call in ("__init__", "from_pretrained", "load"):
        assert unanswered(call, "transformers", settings) == []


@pytest.mark.peer
def test_arguments_of_sentencepiece() -> None:
    processor = pytest.importorskip("sentencepiece").SentencePieceProcessor
    for call in ("__init__", "load", "tokenize"):
        assert missing(call, "sentencepiece", getattr(processor, call)) == []


@pytest.mark.peer
def test_arguments_of_sentencepieces_trainer() -> None:
    pytest.importorskip("google.protobuf")
    specification = pytest.importorskip("sentencepiece.sentencepiece_model_pb2").TrainerSpec
    fields = [field.name for field in specification.DESCRIPTOR.fields]
    assert len(fields) > 40
    assert unanswered("train", "sentencepiece", fields) == []


def test_arguments_of_minbpe() -> None:
    """minbpe is not on PyPI; these are the arguments of its classes that ours name otherwise."""
    theirs = {"__init__": ["pattern"], "train": ["text"], "save": ["file_prefix"], "load": ["model_file"]}
    assert {call: [*_ARGUMENTS[call]["minbpe"]][:1] for call in theirs} == theirs
