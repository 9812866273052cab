"""Collections that change while they are read, and values without a repr: no panic, no abort."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bpe_tokenizer import ArgumentTypeError, BPETokenizer, SpecialTokenError, TokenizerError, _core


class Clears:
    """An id that empties its list while the list is read."""

    def __init__(self) -> None:
        self.list: list[Any] = [97, self, 98, 99]

    def __index__(self) -> int:
        self.list.clear()
        return 97


class Grows:
    """An id that makes its list longer while the list is read."""

    def __init__(self) -> None:
        self.list: list[Any] = [97, self, 98]

    def __index__(self) -> int:
        self.list.extend([97] * 10_000)
        self.list[1] = 97
        return 97


class Raises:
    def __index__(self) -> int:
        raise ZeroDivisionError


def test_a_list_that_changes_while_it_is_read(tokenizer: BPETokenizer) -> None:
    assert tokenizer.decode(Clears().list) == tokenizer.decode([97, 97])
    assert tokenizer.decode_batch([Clears().list]) == [tokenizer.decode([97, 97])]
    assert tokenizer.decode(Grows().list).startswith(tokenizer.decode([97, 97, 98]))
    with pytest.raises(ZeroDivisionError):
        tokenizer.decode([97, Raises()])


def broken() -> Iterator[Any]:
    yield "low"
    raise ZeroDivisionError


def test_an_iterable_that_fails_says_so_itself(tokenizer: BPETokenizer) -> None:
    calls: list[Callable[[Any], object]] = [
        tokenizer.decode_batch,
        tokenizer.encode_batch,
        lambda values: tokenizer.encode("low", allowed_special=values),
        lambda values: tokenizer.add_special_tokens(values),
    ]
    for call in calls:
        with pytest.raises((ZeroDivisionError, TokenizerError)):
            call(broken())


def nested() -> list[Any]:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    "value",
    [10**5000, [10**5000], nested(), [nested()]],
    ids=["long int", "list of long int", "nested", "list of nested"],
)
def test_a_value_without_a_repr_is_named_by_its_type(tokenizer: BPETokenizer, value: Any) -> None:
    for call in (tokenizer.decode, lambda value: tokenizer.encode("low", allowed_special=[value])):
        with pytest.raises(TokenizerError) as caught:
            call(value)
        assert len(str(caught.value)) <= 300


@pytest.mark.parametrize(
    "value", [5, 1.5, object(), b"all", {5}, [None], range(2**62)], ids=lambda value: type(value).__name__
)
def test_allowed_special_of_a_wrong_type(tokenizer: BPETokenizer, value: Any) -> None:
    for option in ("allowed_special", "disallowed_special"):
        with pytest.raises((ArgumentTypeError, SpecialTokenError), match=option):
            tokenizer.encode("low", **{option: value})


@pytest.mark.parametrize("threads", [2**64, 2**70, -(2**70), 2**63, 0, 65_537])
def test_a_number_of_threads_out_of_range(tokenizer: BPETokenizer, threads: int) -> None:
    calls: list[Callable[[], object]] = [
        lambda: tokenizer.encode("low", threads=threads),
        lambda: tokenizer.encode_to_numpy("low", threads=threads),
        lambda: tokenizer.encode_bytes(b"low", threads=threads),
        lambda: tokenizer.count_tokens("low", threads=threads),
        lambda: tokenizer.encode_ragged(["low"], threads=threads),
        lambda: tokenizer.encode_files(__file__, threads=threads),
        lambda: tokenizer.encode_batch(["low"], threads=threads),
        lambda: tokenizer.decode_batch([[97]], threads=threads),
        lambda: BPETokenizer().train("low", 257, verbose=False, threads=threads),
    ]
    for call in calls:
        with pytest.raises(TokenizerError, match=r"threads is .*; it must be from 1 to 65,536"):
            call()


@pytest.mark.parametrize("pattern", ["\ud800", "(?:\udcff)+|.", "a\udfff"])
def test_a_surrogate_in_a_pattern(pattern: str) -> None:
    for call in (BPETokenizer, _core.SplitPattern, _core.SplitPattern.from_oniguruma):
        with pytest.raises(TokenizerError, match="lone surrogate"):
            call(pattern)
    with pytest.raises(TokenizerError, match="lone surrogate"):
        _core.PieceCounter(split_patterns=[pattern])
