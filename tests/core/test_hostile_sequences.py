"""Collections that change while they are read, and values without a repr: no panic, no abort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, TokenizerError, _core


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
