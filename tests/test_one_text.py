"""The four methods for one text, which are in the binding: every argument, threads, subclasses."""

from __future__ import annotations

import ast
import copy
import doctest
import gc
import inspect
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer, NotTrainedError, TokenizerError, _core

METHODS = ("encode", "encode_to_numpy", "count_tokens", "decode")
OF_TEXTS = METHODS[:3]
END = "<|end|>"


class Text(str):
    """A text of another class."""


def trained(roles: bool) -> BPETokenizer:
    tokenizer = BPETokenizer().train(["low lower lowest naïve"] * 3, 280, special_tokens=[END], verbose=False)
    if roles:
        tokenizer.bos_token = tokenizer.eos_token = END
    return tokenizer


TOKENIZERS = [trained(roles) for roles in (False, True)]


def functions_called(call: Callable[[], object]) -> int:
    calls = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code is not call.__code__

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return calls


def outcome(call: Callable[[], Any]) -> tuple[type, object]:
    """The type and the value of a result; the class and the message of an error."""
    try:
        result = call()
    except Exception as error:
        return type(error), str(error)
    return type(result), result.tolist() if isinstance(result, np.ndarray) else result


SETS: list[object] = [{END}, frozenset([END]), frozenset(), {"<|no|>"}, {END, 7}, [END]]
OPTIONS: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {},
    optional={
        "add_special_tokens": st.sampled_from([True, False, 1, 0, None, "all", 2]),
        "allowed_special": st.sampled_from(["none", "all", "none_raise", None, 7, *SETS]),
        "disallowed_special": st.sampled_from([(), (END,), "all", set(), None]),
        "threads": st.sampled_from([1, 2, None, 0, -1, 1.0, True, 2**80]),
    },
)
WORD = st.sampled_from(["low", " lowest", END, "\ud800", "ï", "😀"]) | st.text(max_size=9)
WORDS = st.lists(WORD, max_size=6)


@given(tokenizer=st.sampled_from(TOKENIZERS), words=WORDS, options=OPTIONS, places=st.integers(0, 2))
@pytest.mark.parametrize("name", OF_TEXTS)
def test_a_text_has_the_result_of_a_batch(
    name: str, tokenizer: BPETokenizer, words: list[str], options: dict[str, Any], places: int
) -> None:
    method = getattr(tokenizer, name)
    text, positional = "".join(words), []
    for option in ("add_special_tokens", "allowed_special")[:places]:
        if option not in options or name == "count_tokens":
            break
        positional.append(options.pop(option))

    def of_a_batch() -> Any:
        ids = [*tokenizer.encode_batch([text], *positional, **options)[0]]
        return len(ids) if name == "count_tokens" else ids

    def of_a_text() -> Any:
        found = method(text, *positional, **options)
        assert method(Text(text), *positional, **options) == pytest.approx(found)
        return found if name == "count_tokens" else [*map(int, found)]

    found, expected = outcome(of_a_text), outcome(of_a_batch)
    if not issubclass(expected[0], TokenizerError):
        assert found == expected
    else:  # of two wrong arguments, either is named
        assert issubclass(found[0], TokenizerError)


@given(
    tokenizer=st.sampled_from(TOKENIZERS),
    ids=st.lists(st.integers(-1, 282) | st.sampled_from([2**32, "low", None, 1.5, True]), max_size=6),
    options=st.fixed_dictionaries(
        {},
        optional={
            "skip_special_tokens": st.sampled_from([True, False, 1, 0, None, 2]),
            "errors": st.sampled_from(["replace", "strict", "ignore", "oops", None]),
        },
    ),
)
def test_lists_decode_as_tuples(tokenizer: BPETokenizer, ids: list[Any], options: dict[str, Any]) -> None:
    expected = outcome(lambda: tokenizer.decode(tuple(ids), **options))
    assert outcome(lambda: tokenizer.decode(ids, **options)) == expected
    if all(type(each) is int and each >= 0 for each in ids):
        array = np.array(ids, dtype=np.int64)
        assert outcome(lambda: tokenizer.decode(array, **options)) == expected


USUAL: dict[str, list[dict[str, Any]]] = {
    "decode": [{}, {"skip_special_tokens": True}],
    **{
        name: [
            *({}, {"add_special_tokens": True}, {"add_special_tokens": False, "allowed_special": "none"}),
            {"allowed_special": "all", "disallowed_special": (), "threads": 1},
        ]
        for name in OF_TEXTS
    },
}


@pytest.mark.parametrize("name", METHODS)
def test_a_usual_call_runs_no_python_function(name: str) -> None:
    method, argument = getattr(TOKENIZERS[1], name), [108] if name == "decode" else Text("low")
    for options in USUAL[name]:
        method(argument, **options)  # finds the ids that it adds
        assert functions_called(lambda options=options: method(argument, **options)) == 0, options  # type: ignore[misc]
    unusual = {"errors": "strict"} if name == "decode" else {"allowed_special": [END]}
    assert functions_called(lambda: method(argument, **unusual)) > 0


@pytest.mark.parametrize("name", METHODS)
def test_calls_keep_no_references(name: str) -> None:
    method = getattr(TOKENIZERS[0], name)
    text = "low naïve" if name != "decode" else [108, 257]
    # Each goes to the encoder, to the function, or fails.
    calls: list[Callable[[], object]] = [
        lambda: method(text),
        lambda: method(Text(text) if isinstance(text, str) else tuple(text)),
        lambda: outcome(lambda: method(["\ud800"] if name == "decode" else "\ud800", oops=text)),
    ]
    encoder = TOKENIZERS[0]._compiled().encoder
    for call in calls:
        call()
        before = sys.getrefcount(text), sys.getrefcount(encoder)
        for _ in range(1000):
            call()
        assert (sys.getrefcount(text), sys.getrefcount(encoder)) == before


def test_calls_run_while_other_threads_replace_the_state() -> None:
    tokenizer, stop = trained(True), threading.Event()
    known = tokenizer.encode("low", True)[:-1], tokenizer.encode("low", True)

    def replace() -> None:
        while not stop.is_set():
            tokenizer.eos_token = None
            tokenizer.eos_token = END

    def encode() -> bool:
        return all(tokenizer.encode("low", True) in known for _ in range(3000))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            writers = [pool.submit(replace) for _ in range(2)]
            readers = [pool.submit(encode) for _ in range(2)]
            try:
                assert [reader.result() for reader in readers] == [True, True]
            finally:
                stop.set()
            assert [writer.result() for writer in writers] == [None, None]
    finally:
        sys.setswitchinterval(interval)


def test_a_subclass_has_the_methods_and_the_state() -> None:
    class Named(BPETokenizer):
        def __init__(self, name: str, *, pattern: str) -> None:
            super().__init__(pattern)
            self.name, self.itself = name, self

    named = Named("low", pattern="gpt2").train(["low lower"] * 3, 260, verbose=False)
    assert len(named.encode("low")) == 1
    copied = copy.copy(named)
    named.train(["other"] * 3, 257, verbose=False)
    assert copied.name == "low"
    assert copied.encode("low") != named.encode("low")  # the copy keeps the state
    gone = weakref.ref(named)
    del named, copied
    gc.collect()  # it refers to itself
    assert gone() is None


@pytest.mark.parametrize("name", METHODS)
def test_what_is_missing_or_too_much_is_an_error(name: str) -> None:
    tokenizer = TOKENIZERS[0]
    method = getattr(tokenizer, name)
    unbound = getattr(BPETokenizer, name)
    argument: Any = [108] if name == "decode" else "low"
    first = next(iter(inspect.signature(method).parameters))
    assert outcome(lambda: method(**{first: argument})) == outcome(lambda: method(argument))
    # The names of these arguments are not the interpreter's own strings.
    option = "".join(["add", "_special_tokens"]) if name != "decode" else "".join(["skip_", "special_tokens"])
    assert outcome(lambda: method(argument, **{option: True})) == outcome(
        lambda: unbound(tokenizer, argument, **{option: True})
    )
    with pytest.raises(TypeError):
        method(argument, **{first: argument})
    with pytest.raises(TypeError):
        method(argument, False, "none", (), 1, 1)
    with pytest.raises(TypeError, match="'oops'"):
        method(argument, oops=1)
    with pytest.raises(TypeError):
        method()
    with pytest.raises(TypeError):
        unbound(object(), argument)
    with pytest.raises(NotTrainedError):
        getattr(BPETokenizer(), name)(argument)
    with pytest.raises(AttributeError, match="_state"):  # before __init__
        getattr(BPETokenizer.__new__(BPETokenizer), name)(argument)


@pytest.mark.parametrize("name", METHODS)
def test_the_methods_look_like_functions(name: str) -> None:
    method, bound = getattr(BPETokenizer, name), getattr(TOKENIZERS[0], name)
    assert (method.__name__, method.__qualname__) == (name, f"Tokenizer.{name}")
    assert (method.__doc__ or "").startswith("Return ")
    parameters = inspect.signature(method).parameters
    assert list(parameters) == ["self", *inspect.signature(bound).parameters]
    assert "unknown" not in parameters
    defaults = [each.default for each in parameters.values()][2:]
    assert defaults in ([False, "none", (), 1], [False, "replace"])
    argument: Any = [108] if name == "decode" else "low"
    again = pickle.loads(pickle.dumps(bound))
    assert outcome(lambda: again(argument)) == outcome(lambda: bound(argument))


@pytest.mark.parametrize("name", METHODS)
def test_the_documentation_is_that_of_the_stub_and_its_examples_run(name: str) -> None:
    stub = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text(encoding="utf-8"))
    (written,) = (
        ast.get_docstring(function)
        for part in stub.body
        if isinstance(part, ast.ClassDef) and part.name == "Tokenizer"
        for function in part.body
        if isinstance(function, ast.FunctionDef) and function.name == name
    )
    shown = inspect.getdoc(getattr(BPETokenizer, name))
    assert shown == written
    examples = doctest.DocTestParser().get_doctest(shown or "", {"BPETokenizer": BPETokenizer}, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    assert runner.run(examples).attempted > 0
    assert runner.failures == 0


def test_a_call_while_python_shuts_down() -> None:
    code = """
from bpe_tokenizer import BPETokenizer
class Last:
    def __init__(self):
        self.tokenizer = BPETokenizer().train("low lower", 258, verbose=False)
    def __del__(self):
        print(self.tokenizer.encode("low"), self.tokenizer.count_tokens("low", add_special_tokens=False))
last = Last()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert (run.returncode, run.stdout) == (0, "[257] 1\n"), run.stderr


def test_a_subclass_may_change_a_method() -> None:
    class Shouting(BPETokenizer):
        def encode(self, text: str, *arguments: Any, **options: Any) -> list[int]:
            return super().encode(text.upper(), *arguments, **options)

    tokenizer = Shouting().train("low lower LOW", 260, verbose=False)
    assert tokenizer.encode("low") == tokenizer.encode("LOW")
    assert tokenizer.encode("low", allowed_special="all") == tokenizer.encode("LOW")
    assert tokenizer.encode_to_numpy("low").tolist() != tokenizer.encode("low")
