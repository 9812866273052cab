from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer, OptionError
from linear import assert_linear
from small_tokenizers import hard_texts, relaxed, tiny


@given(text=hard_texts, limit=st.integers(0, 12), add=st.booleans())
@relaxed
def test_a_truncated_text_fits(tokenizer: BPETokenizer, text: str, limit: int, add: bool) -> None:
    limit += 2 * add
    cut = tokenizer.truncate(text, limit, add_special_tokens=add, allowed_special="all")
    assert text.startswith(cut)
    assert tokenizer.count_tokens(cut, add_special_tokens=add, allowed_special="all") <= limit
    if tokenizer.count_tokens(text, add_special_tokens=add, allowed_special="all") <= limit:
        assert cut == text


def test_truncate_never_ends_inside_a_character() -> None:
    tokenizer = tiny("a|b")
    assert [tokenizer.truncate("abé!", limit) for limit in range(5)] == ["", "ab", "ab", "abé", "abé!"]


@pytest.mark.parametrize(("limit", "error"), [(-1, OptionError), (1.5, TypeError), ("5", TypeError)])
def test_an_impossible_limit_is_refused(tokenizer: BPETokenizer, limit: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="max_tokens"):
        tokenizer.truncate("a", limit)
    with pytest.raises(OptionError, match="max_tokens is 1; it must be at least 2"):
        tokenizer.truncate("a", 1, add_special_tokens=True)


@given(text=hard_texts, limit=st.integers(4, 12), data=st.data())
@relaxed
def test_chunks_fit_and_cover_all(
    tokenizer: BPETokenizer, text: str, limit: int, data: st.DataObject
) -> None:
    chunks = tokenizer.split_by_tokens(text, limit, allowed_special="all")
    assert "".join(chunks) == text
    assert all(1 <= tokenizer.count_tokens(chunk, allowed_special="all") <= limit for chunk in chunks)
    overlap = data.draw(st.integers(1, limit - 1))
    overlapping = tokenizer.split_by_tokens(text, limit, overlap, allowed_special="all")
    assert all(tokenizer.count_tokens(chunk, allowed_special="all") <= limit for chunk in overlapping)
    covered = 0
    for chunk in overlapping:
        start = text.find(chunk)
        # Repeated text may stand in several places: the latest that leaves no gap is as good as any.
        while (later := text.find(chunk, start + 1)) != -1 and later <= covered:
            start = later
        assert 0 <= start <= covered
        covered = max(covered, start + len(chunk))
    assert covered == len(text)


def test_chunks_share_exactly_the_overlap() -> None:
    tokenizer = tiny("a|b")
    assert tokenizer.split_by_tokens("ab c ab!é", 3) == ["ab c", " ab!", "é"]
    assert tokenizer.split_by_tokens("ababab", 2, 1) == ["abab", "abab"]
    assert tokenizer.split_by_tokens("0123456789", 4, 2) == ["0123", "2345", "4567", "6789"]
    assert tokenizer.split_by_tokens("0123456", 4, 3) == ["0123", "1234", "2345", "3456"]
    # A token boundary inside a character moves to its start.
    assert tokenizer.split_by_tokens("12é34", 4, 1) == ["12é", "é34"]


def test_chunks_of_real_text_are_full(tokenizer: BPETokenizer, stdlib_texts: list[str]) -> None:
    text = stdlib_texts[0]
    chunks = tokenizer.split_by_tokens(text, 100)
    assert "".join(chunks) == text
    counts = [tokenizer.count_tokens(chunk) for chunk in chunks]
    assert max(counts) <= 100
    assert len(chunks) <= 1.05 * tokenizer.count_tokens(text) / 100 + 1


def test_a_long_text_is_cut_in_linear_time(tokenizer: BPETokenizer) -> None:
    for part in ("xx", "  ", "a\n"):
        assert_linear(lambda units, part=part: tokenizer.split_by_tokens(part * units, 16), 20_000)  # type: ignore[misc]


def test_a_character_that_does_not_fit_is_named(tokenizer: BPETokenizer) -> None:
    with pytest.raises(
        OptionError, match="max_tokens=2 is less than the 4 ids of the character '𝔸' at position 1"
    ):
        tokenizer.split_by_tokens("a𝔸", 2)


@pytest.mark.parametrize(
    ("limit", "overlap", "message"),
    [
        (0, 0, "max_tokens is 0; it must be at least 1"),
        (-5, 0, "max_tokens is -5"),
        (5, -1, "overlap is -1; it must be at least 0"),
        (5, 5, "overlap is 5; it must be less than max_tokens=5"),
        (5, 9, "overlap is 9"),
        pytest.param(3, 10**5000, r"overlap is .* must be less than max_tokens=3", id="too many digits"),
    ],
)
def test_impossible_chunks_fail(tokenizer: BPETokenizer, limit: int, overlap: int, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        tokenizer.split_by_tokens("some text", limit, overlap)
