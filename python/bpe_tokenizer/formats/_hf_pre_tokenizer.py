r"""The `pre_tokenizer` of a tokenizer.json, and split patterns.

A byte-level file ends its pre-tokenisation with `ByteLevel`, which turns what is left into bytes; before it
stand the steps that cut the text. Their regular expressions are Oniguruma's; `_core` translates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, PatternError
from bpe_tokenizer.formats._json import Field
from bpe_tokenizer.formats._punctuation import PUNCTUATION
from bpe_tokenizer.formats._regex import objection, regex_escape
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN, NAMED_PATTERNS

__all__ = ["COVERING", "flatten", "read_pre_tokenizer", "write_pre_tokenizer"]

# `ByteLevel(use_regex=True)` is GPT-2's pattern; r50k is another spelling of it.
_GPT2_SPELLINGS = (GPT2_SPLIT_PATTERN, *NAMED_PATTERNS["r50k"].patterns)

# In these every character is part of a match: it is a letter, a number, white space or none of them, and
# each pattern has a branch for each that asks nothing of what stands around. So nothing is removed by
# "Removed" with `invert`, which removes what is between the matches.
COVERING = frozenset(
    pattern
    for name in ("gpt2", "r50k", "cl100k", "o200k", "llama3", "qwen2", "qwen3.5", "tekken", "bailing")
    for pattern in NAMED_PATTERNS[name].patterns
)


def read_pre_tokenizer(field: Field) -> tuple[tuple[str, ...], bool]:
    """Read the `pre_tokenizer` of a tokenizer.json.

    Args:
        field: It.

    Returns:
        The split patterns in the order of their application, and whether a space is put before a text.

    Raises:
        FormatError: It cuts texts in a way that split patterns cannot express.
    """
    if field.is_null:
        raise field.error("must be there and end with ByteLevel; without it the file is not byte-level")
    *splits, last = flatten(field, "pretokenizers") or [field]
    if _type(last) != "ByteLevel":
        raise last.error("the last step must be ByteLevel, which turns the text into bytes")
    patterns = [_split_pattern(step) for step in splits]
    add_prefix_space = last.need("add_prefix_space").flag()
    if add_prefix_space and patterns:
        raise last.get("add_prefix_space").refused(
            "after other steps puts a space before each of their pieces, which is not supported"
        )
    if last.get("use_regex").flag(default=True):
        patterns.append(GPT2_SPLIT_PATTERN)
    return tuple(patterns), add_prefix_space


def flatten(field: Field, members: str) -> list[Field]:
    """Return the steps of a component, those of a `Sequence` within a `Sequence` included, in order.

    Args:
        field: A component.
        members: The name of a `Sequence`'s list of steps.
    """
    steps: list[Field] = []
    rest = [field]
    while rest:
        step = rest.pop()
        if _type(step) == "Sequence":
            rest.extend(reversed(step.need(members).items()))
        else:
            steps.append(step)
    return steps


def _type(step: Field) -> str:
    return step.need("type").text()


def _split_pattern(step: Field) -> str:
    kind = _type(step)
    if kind == "Split":
        return _read_split(step)
    if kind == "Digits":
        # `char::is_numeric`: the general category N.
        return r"\p{N}" if step.need("individual_digits").flag() else r"\p{N}+"
    if kind == "Punctuation":
        behavior = step.get("behavior")
        repeat = {"Isolated": "", "Contiguous": "+"}.get("Isolated" if behavior.is_null else behavior.text())
        if repeat is None:
            raise behavior.refused("is not supported for Punctuation; only Isolated and Contiguous are")
        return f"[{PUNCTUATION}]{repeat}"
    if kind == "ByteLevel":
        raise step.error("ByteLevel is not supported before the last step: what follows would cut bytes")
    raise step.get("type").refused("is not supported; Split, Digits, Punctuation and a last ByteLevel are")


def _read_split(step: Field) -> str:
    pattern = _read_pattern(step.need("pattern"))
    behavior = step.need("behavior")
    inverted = step.need("invert").flag()
    if behavior.text() == "Removed" and inverted and pattern not in COVERING:
        raise behavior.refused(
            "with invert drops the text between the matches, and it cannot be shown that this pattern leaves "
            "none; only known patterns are accepted"
        )
    # "Isolated" keeps matches and what is between them alike, so `invert` changes nothing.
    if behavior.text() != "Isolated" and not (behavior.text() == "Removed" and inverted):
        raise behavior.refused("is not supported; only Isolated is, and Removed with invert")
    return pattern


def _read_pattern(field: Field) -> str:
    if set(field.members()) == {"String"}:
        text = field.get("String").text()
        if not text:
            raise field.get("String").error("is empty, which cuts between all characters: not supported")
        return regex_escape(text)
    if set(field.members()) != {"Regex"}:
        raise field.refused('must be {"Regex": pattern} or {"String": text}')
    regex = field.get("Regex")
    problem = objection(regex.text(), oniguruma=True)
    if problem is not None:
        raise regex.refused(f"is not supported: it {problem}")
    try:
        pattern = _core.SplitPattern.from_oniguruma(regex.text())
        _core.SplitPattern(pattern)
    except PatternError as error:
        raise regex.refused(f"is not supported: {error}") from error
    return pattern


def write_pre_tokenizer(patterns: Sequence[str], add_prefix_space: bool) -> dict[str, Any]:
    """Return the `pre_tokenizer` of a tokenizer.json.

    Args:
        patterns: The split patterns in the order of their application.
        add_prefix_space: Whether a space is put before a text.

    Raises:
        FormatError: The format cannot express them.

    >>> write_pre_tokenizer([GPT2_SPLIT_PATTERN], add_prefix_space=False)["use_regex"]
    True
    """
    is_gpt2 = len(patterns) == 1 and patterns[0] in _GPT2_SPELLINGS
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": False,
        "use_regex": is_gpt2,
    }
    if is_gpt2 or not patterns:
        return byte_level
    if add_prefix_space:
        raise FormatError(
            "pre_tokenizer: tokenizer.json cannot hold add_prefix_space together with the split pattern "
            f"{patterns[0]!r}; only with GPT-2's"
        )
    return {"type": "Sequence", "pretokenizers": [*map(_write_split, patterns), byte_level]}


def _write_split(pattern: str) -> dict[str, Any]:
    problem = objection(pattern, oniguruma=False)
    if problem is not None:
        raise FormatError(
            f"pre_tokenizer: the split pattern {pattern!r} {problem}: tokenizer.json cannot hold it"
        )
    try:
        regex = _core.SplitPattern(pattern).to_oniguruma()
    except PatternError as error:
        raise FormatError(f"pre_tokenizer: tokenizer.json cannot hold a split pattern: {error}") from error
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
