"""Options are values: each is defined once, and signatures, docs and commands show it with its default."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest
from typer.main import get_command

from bpe_tokenizer import BPETokenizer, PieceCounts, count, options, train_from_counts
from bpe_tokenizer.cli.app import create_app

FIELDS = {
    kind: {each.name: each for each in dataclasses.fields(kind)}
    for kind in (
        options.ReadOptions,
        options.MemoryLimits,
        options.CountLimits,
        options.LearningOptions,
        options.RowOptions,
    )
}
READ, MEMORY, COUNT, LEARN, ROW = FIELDS
TRAINED = BPETokenizer().train("ab ab", 257, verbose=False)
TAKERS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "train": (BPETokenizer.train, [LEARN, COUNT, READ]),
    "extend": (BPETokenizer.extend, [LEARN, COUNT, READ]),
    "BPETokenizer.count": (BPETokenizer.count, [COUNT, READ]),
    "train_from_counts": (train_from_counts, [LEARN, MEMORY]),
    "BPETokenizer.train_from_counts": (BPETokenizer.train_from_counts, [LEARN, MEMORY]),
    "count": (count, [COUNT, READ]),
    "PieceCounts": (PieceCounts, [COUNT]),
    "add": (PieceCounts.add, [READ]),
    "load": (PieceCounts.load, [MEMORY]),
    "encode_batch": (TRAINED.encode_batch, [ROW]),
    "__call__": (TRAINED.__call__, [ROW]),
}


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (READ, options.ReadArguments),
        (MEMORY, options.MemoryArguments),
        (COUNT, options.CountArguments),
        (LEARN, options.LearningArguments),
    ],
)
def test_the_arguments_of_a_type_checker_are_the_fields(kind: Any, arguments: Any) -> None:
    assert get_type_hints(arguments) == get_type_hints(kind)
    assert get_type_hints(options.CorpusTrainingArguments).items() >= get_type_hints(arguments).items()
    docs = options.option_docs(kind)
    assert list(docs) == list(FIELDS[kind])
    assert all(len(text.split()) > 5 for text in docs.values())


@pytest.mark.parametrize("name", TAKERS)
def test_a_function_shows_its_options_and_takes_no_others(name: str) -> None:
    function, kinds = TAKERS[name]
    parameters = inspect.signature(function).parameters
    for kind in kinds:
        for each in FIELDS[kind].values():
            assert parameters[each.name].default == each.default
    assert not any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    with pytest.raises(TypeError, match=r"\(\) got an unexpected keyword argument 'seperator'$"):
        function(*["x"] * (name != "PieceCounts"), seperator="x")


def test_the_docs_of_a_function_hold_those_of_its_options() -> None:
    for name in ("train", "count", "encode_batch"):
        function, kinds = TAKERS[name]
        text = inspect.getdoc(function) or ""
        for kind in kinds:
            assert [each for each in options.option_docs(kind).values() if each not in text] == []


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("train", [LEARN, COUNT, READ]),
        ("count", [COUNT, READ]),
        ("report", [READ]),
        ("compare", [READ]),
        ("tokenize-corpus", [READ]),
    ],
)
def test_a_command_has_the_fields(command: str, kinds: list[Any]) -> None:
    group: Any = get_command(create_app(command))
    made = {each.name: each for each in group.commands[command].params}
    for kind in kinds:
        for name, each in FIELDS[kind].items():
            option = made[name]
            assert option.opts == [f"--{name.replace('_', '-')}"]
            assert option.default == each.default
            assert option.help.endswith(".")
