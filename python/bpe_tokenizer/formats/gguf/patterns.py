"""Maps split patterns to names of `tokenizer.ggml.pre`, and names to patterns."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.formats.capabilities import crosses_trailing_space
from bpe_tokenizer.formats.gguf.pre_tokenizers import BYTE_LEVEL, FAMILIES, PreTokenizer
from bpe_tokenizer.patterns import NAMED_PATTERNS, pattern_name, split_alike

_AreSame: TypeAlias = Callable[[tuple[str, ...], tuple[str, ...]], bool]

__all__ = ["LONG_S_STARTS", "matching_names", "split_patterns_for"]

# Two patterns that split differently at a place give the same ids if no token crosses the place. A published
# `(?i:'s)` splits after an apostrophe and a long s (ſ), llama.cpp does not: this matches a token that
# crosses the place, from the last bytes of "'ſ" to the first byte of a letter.
_LONG_S = re.compile(rb"(?:'?\xc5)?\xbf[A-Za-z\xc2-\xf4]")
# What such a token begins with.
LONG_S_STARTS = (b"'\xc5\xbf", b"\xc5\xbf", b"\xbf")


def split_patterns_for(pre_tokenizer: PreTokenizer, vocab: Iterable[bytes]) -> tuple[str, ...]:
    r"""Return the patterns for a vocabulary: the published ones if they give the same ids.

    >>> split_patterns_for(BYTE_LEVEL["qwen2"], [b"a"]) == NAMED_PATTERNS["qwen2"].patterns
    True
    >>> split_patterns_for(BYTE_LEVEL["qwen2"], [b"\xbfs"]) == BYTE_LEVEL["qwen2"].patterns
    True
    """
    if pre_tokenizer.published is None or _first_crossing(_LONG_S, vocab) is not None:
        return pre_tokenizer.patterns
    return NAMED_PATTERNS[pre_tokenizer.published].patterns


def matching_names(patterns: Sequence[str], vocab: Collection[bytes]) -> dict[str, PreTokenizer]:
    """Return the names that split text like these patterns, the best known of each family.

    Args:
        patterns: The split patterns of a model.
        vocab: Its tokens; two patterns are equivalent if no token crosses the places where they differ.

    Raises:
        FormatError: There is no such name; the message names similar ones.

    >>> list(matching_names(NAMED_PATTERNS["llama3"].patterns, [b"a"]))
    ['llama-bpe', 'dbrx', 'glm4']
    """
    wanted = tuple(patterns)
    found, obstacles = _compared(wanted, vocab, operator.eq)
    if not found and not obstacles:
        found, obstacles = _compared(wanted, vocab, split_alike)  # this takes longer
    if found:
        return found
    if obstacles:
        raise FormatError(obstacles[0])
    name = pattern_name(wanted)
    usable = [name for name, named in NAMED_PATTERNS.items() if _is_known(named.patterns)]
    raise FormatError(
        "split_patterns: no tokenizer.ggml.pre of llama.cpp splits text like "
        f"{shorten(list(wanted) if name == 'custom' else name)}; train with one of {', '.join(usable)}"
    )


def _compared(
    wanted: tuple[str, ...], vocab: Collection[bytes], are_same: _AreSame
) -> tuple[dict[str, PreTokenizer], list[str]]:
    """The names that split text like these patterns, and why similar ones do not."""
    found: dict[str, PreTokenizer] = {}
    obstacles: list[str] = []
    for names, pre_tokenizer in FAMILIES:
        token = _difference(wanted, pre_tokenizer, vocab, are_same)
        if token is None:
            found[names.split()[0]] = pre_tokenizer
        elif token:
            fitting = " or ".join(map(repr, filter(None, (pre_tokenizer.published, *pre_tokenizer.patterns))))
            obstacles.append(
                f"split_patterns: llama.cpp's {names.split()[0]!r} splits text like them except in a few "
                "places, "
                f"and the token {shorten(token)} crosses such a place; train with split_pattern={fitting}"
            )
    return found, obstacles


def _difference(
    wanted: tuple[str, ...],
    pre_tokenizer: PreTokenizer,
    vocab: Collection[bytes],
    are_same: _AreSame = operator.eq,
) -> bytes | None:
    """A token that crosses a difference; None if no token does, empty if the patterns differ everywhere."""
    if are_same(wanted, pre_tokenizer.patterns):
        return None
    published = pre_tokenizer.published
    if wanted == NAMED_PATTERNS["r50k"].patterns and pre_tokenizer == BYTE_LEVEL["gpt-2"]:
        return None
    if published is not None and are_same(wanted, NAMED_PATTERNS[published].patterns):
        return _first_crossing(_LONG_S, vocab)
    if published == "llama3" and are_same(wanted, NAMED_PATTERNS["cl100k"].patterns):
        return _first_crossing(_LONG_S, vocab) or crosses_trailing_space(vocab)
    return b""


def _first_crossing(place: re.Pattern[bytes], vocab: Iterable[bytes]) -> bytes | None:
    return next(filter(place.match, vocab), None)


def _is_known(patterns: tuple[str, ...]) -> bool:
    return any(_difference(patterns, pre_tokenizer, ()) is None for _, pre_tokenizer in FAMILIES)
