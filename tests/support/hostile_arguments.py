"""Calls every public method with hostile values of each argument, in one process; prints what ends wrongly.

The methods and their arguments come from the class itself, so a new method is covered without a change here.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import os
import resource
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bpe_tokenizer import BPETokenizer, TokenizerError

pyarrow: Any = import_module("pyarrow")


class RaisedError(Exception):
    """What a hostile object itself raises: it reaches the caller."""


class Late(BaseException):
    """A call took too long."""


def fail(*_: object, **__: object) -> Any:
    raise RaisedError


class Nasty:
    __bool__ = __len__ = __iter__ = __getitem__ = __index__ = __float__ = __fspath__ = fail
    __repr__ = __str__ = __format__ = fail


class Pathlike:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __fspath__(self) -> Any:
        return self.value


def nested() -> list[Any]:
    deep: list[Any] = []
    for _ in range(50_000):
        deep = [deep]
    return deep


def values() -> dict[str, Any]:
    """The hostile values by name, made anew: some can be used once."""
    integers = (-1, 2**32, 2**63, 2**64, 2**70, -(2**70), True, 1.5)
    texts = ("\ud800", "a\0b", "", "(")
    lists: tuple[Any, ...] = (["\ud800"], ["a\0b"], [2**70], [None], [b"a"], [(b"a", b"b")], [None, 97])
    mappings: tuple[Any, ...] = ({5: 5}, {5, None}, {"\ud800": 300}, range(97, 99), b"\xff", None)
    messages = [{"role": "user", "content": "\ud800"}], [{"role": 5, "content": 5}]
    return {
        **{repr(value): value for value in (*integers, *texts, *lists, *mappings, *messages)},
        **{"10**5000": 10**5000, "nan": float("nan"), "inf": float("inf"), "long": "x" * 5000},
        **{"object": object(), "nested": nested(), "[nested]": [nested()], "iterator": iter([97])},
        **{"nasty": Nasty(), "[nasty]": [Nasty()]},
        "0-d": np.array(5),
        "2-d": np.zeros((2, 2), int),
        "big-endian": np.array([97], ">u4"),
        "int64": np.int64(97),
        "strided": np.arange(97, 107)[::-2],
        "objects": np.array([97, None]),
        "strings": np.array(["a", "b"]),
        "broadcast": np.broadcast_to(np.uint32(97), 500),
        "negative array": np.array([-1]),
        "record": np.zeros(2, "i4,i4"),
        "path nul": Path("a\0b"),
        "path surrogate": Path("\ud800"),
        "path bytes": Pathlike(b"x"),
        "no path": Pathlike(5),
    }


def arguments(tokenizer: BPETokenizer) -> dict[str, Any]:
    """A good value of each argument that has no default."""
    talk = [{"role": "user", "content": "ab"}]
    return {
        **{"array": pyarrow.array(["ab"]), "text": "ab", "texts": ["ab"], "data": b"ab", "ids": [97]},
        **{"batch_ids": [[97]], "rows": [[97]], "token": "a", "token_id": 97, "tokens": ["a"], "name": "n"},
        **{"corpus": ["ab ab"], "new_vocab_size": 262, "text_stream": ["ab"], "max_tokens": 3},
        **{"messages": talk, "conversations": [talk], "paths": ["text"], "path": "saved.json"},
        **{"format": "base64-json", "directory": "saved", "n": 258, "normalization": None},
        **{"special_tokens": ["<x>"], "max_bytes": 100, "model": tokenizer.model},
        **{"counts": tokenizer.count("ab"), "source": "saved.json", "model_name_or_path": "saved.json"},
        **{"model_path": "missing", "vocab": {byte: bytes([byte]) for byte in range(256)}},
    }


def methods() -> Iterator[tuple[str, list[inspect.Parameter]]]:
    """The public methods with their arguments."""
    for name in dir(BPETokenizer):
        method = getattr(BPETokenizer, name)
        if (name == "__call__" or not name.startswith("_")) and callable(method) and name != "chat_async":
            parameters = inspect.signature(method).parameters.values()
            named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
            yield name, [each for each in parameters if each.name != "self" and each.kind in named]


async def items(stream: Any) -> list[Any]:
    return [each async for each in stream]


def wrong(tokenizer: BPETokenizer, name: str, given: dict[str, Any]) -> str:
    """How a call ends wrongly; "" if it returns, or raises an error of the package or of the object."""
    signal.setitimer(signal.ITIMER_REAL, 20)
    try:
        result = getattr(copy.copy(tokenizer), name)(**given)
        if inspect.isasyncgen(result):
            asyncio.run(items(result))
        elif inspect.isgenerator(result):
            list(result)
    except TokenizerError as error:
        return "" if len(str(error)) <= 400 else f"{len(str(error))} characters: {str(error)[:100]}"
    except (RaisedError, OSError):  # a file that cannot be written
        return ""
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return ""


def late(*_: object) -> None:
    raise Late


def run(part: int, parts: int) -> None:
    """Print each call of a part of the methods that ends wrongly, and the number of calls."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    signal.signal(signal.SIGALRM, late)
    count = 0
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        Path("text").write_text("ab ab")
        tokenizer = BPETokenizer("gpt2").train(["ab ab user"], 260, special_tokens=["<s>"], verbose=False)
        tokenizer.save("saved")
        tokenizer.export("saved.json", "base64-json")
        good = arguments(tokenizer)
        for name, parameters in list(methods())[part::parts]:
            usual = {each.name: good[each.name] for each in parameters if each.default is each.empty}
            if name == "decode_arrow":
                usual["array"] = pyarrow.array([[97]])
            quiet = {"verbose": False, "local_files_only": True}
            usual |= {each.name: quiet[each.name] for each in parameters if each.name in quiet}
            for parameter in parameters:
                for label, value in values().items():
                    count += 1
                    if problem := wrong(tokenizer, name, {**usual, parameter.name: value}):
                        print(json.dumps([name, parameter.name, label, problem]))
        os.chdir("/")
    print(count)


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))
