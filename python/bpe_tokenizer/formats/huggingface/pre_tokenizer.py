r"""The `pre_tokenizer` of a tokenizer.json: how text is cut into pieces.

A byte-level file has a `ByteLevel` in it, which turns each byte into its printable character; steps behind
it see those. A file without one merges characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats.huggingface.punctuation import PUNCTUATION
from bpe_tokenizer.formats.huggingface.regex import regex_escape
from bpe_tokenizer.formats.huggingface.steps import (
    Step,
    character,
    flatten,
    read_pattern,
    sequence,
    write_pattern,
)
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN, NAMED_PATTERNS

__all__ = ["COVERING", "read_pre_tokenizer", "write_pre_tokenizer"]

_BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
_SCHEMES = ("always", "first", "never")

# `ByteLevel(use_regex=True)` is GPT-2's pattern; r50k is another spelling of it.
_GPT2_SPLITS = tuple(
    ("Split", pattern, "Isolated", False)
    for pattern in (GPT2_SPLIT_PATTERN, *NAMED_PATTERNS["r50k"].patterns)
)

# In these every character is part of a match: it is a letter, a number, white space or none of them, and
# each pattern has a branch for each that asks nothing of what stands around. So nothing is removed by
# "Removed" with `invert`, which removes what is between the matches.
COVERING = frozenset(
    pattern
    for name in ("gpt2", "r50k", "cl100k", "o200k", "llama3", "qwen2", "qwen3.5", "tekken", "bailing")
    for pattern in NAMED_PATTERNS[name].patterns
)

# Steps that are splits under another name. Rust's `\w` is ours and not Oniguruma's.
_WORDS: Step = (r"\w+|[^\w\s]+", "Removed", True)
_SPACES: Step = (r"\s", "Removed", False)
_LONGEST_FIXED = 1000


def read_pre_tokenizer(field: Field, in_bytes: bool = False) -> tuple[list[Step], bool]:
    """Read the `pre_tokenizer` of a tokenizer.json.

    Args:
        field: It; null does nothing.
        in_bytes: The normaliser has turned bytes into printable characters already.

    Returns:
        The steps in the words of `_core.Model`, and whether what they leave is bytes.

    Raises:
        FormatError: It holds a step that is not supported.
    """
    steps: list[Step] = []
    for step in flatten(field, "pretokenizers"):
        kind = step.get("type").text()
        if kind in ("ByteLevel", "Metaspace") and in_bytes:
            raise step.error(
                f"{kind} behind a ByteLevel would take the characters that stand for bytes for text; "
                "that is not supported"
            )
        if kind == "ByteLevel":
            steps += _read_byte_level(step)
            in_bytes = True
        elif kind == "Metaspace":
            steps.append(_read_metaspace(step))
        else:
            steps += [("SplitBytes" if in_bytes else "Split", *split) for split in _read_splits(step)]
    return steps, in_bytes


def _read_byte_level(step: Field) -> list[Step]:
    add_prefix_space = step.need("add_prefix_space").flag()
    use_regex = step.get("use_regex").flag(default=True)
    return [("PrefixSpace",)] * add_prefix_space + [_GPT2_SPLITS[0]] * use_regex


def _read_metaspace(step: Field) -> Step:
    """`prepend_scheme`, or the older `add_prefix_space`, which may not contradict it."""
    scheme = step.get("prepend_scheme")
    value = "always" if "prepend_scheme" not in step.members() else scheme.text()
    if value not in _SCHEMES:
        raise scheme.refused(f"must be one of {', '.join(_SCHEMES)}")
    if not step.get("add_prefix_space").flag(default=True) and value != "never":
        raise step.get("add_prefix_space").refused(
            f'contradicts the prepend_scheme {value!r}; remove it, and set "prepend_scheme" to "never"'
        )
    if not step.get("str_rep").is_null:
        step.get("str_rep").text()
    return ("Metaspace", character(step.need("replacement")), value, step.get("split").flag(default=True))


def _read_splits(step: Field) -> list[Step]:
    """What a step amounts to: patterns, what is done with their matches, and whether that is inverted."""
    kind = step.get("type").text()
    if kind == "Split":
        return [_read_split(step)]
    if kind == "Digits":
        # `char::is_numeric`: the general category N.
        each = step.need("individual_digits").flag()
        return [(r"\p{N}" if each else r"\p{N}+", "Isolated", False)]
    if kind == "Punctuation":
        behavior = step.get("behavior")
        return [_punctuation("Isolated" if behavior.is_null else _read_behavior(behavior))]
    if kind == "BertPreTokenizer":
        return [_SPACES, _punctuation("Isolated")]
    if kind == "Whitespace":
        return [_WORDS]
    if kind == "WhitespaceSplit":
        return [_SPACES]
    if kind == "CharDelimiterSplit":
        return [(regex_escape(character(step.need("delimiter"))), "Removed", False)]
    if kind == "FixedLength":
        length = 5 if "length" not in step.members() else step.get("length").id()
        if not 0 < length <= _LONGEST_FIXED:
            raise step.get("length").refused(f"is not supported; 1 to {_LONGEST_FIXED} are")
        return [(rf"[\s\S]{{{length}}}", "Isolated", False)]
    raise step.get("type").refused(
        "is not supported; ByteLevel, Metaspace, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, "
        "BertPreTokenizer, CharDelimiterSplit, FixedLength and Sequence are"
    )


def _read_behavior(field: Field) -> str:
    if field.text() not in _BEHAVIORS:
        raise field.refused(f"must be one of {', '.join(_BEHAVIORS)}")
    return field.text()


def _read_split(step: Field) -> Step:
    pattern = read_pattern(step.need("pattern"))
    behavior = _read_behavior(step.need("behavior"))
    inverted = step.need("invert").flag()
    if behavior == "Isolated" or (behavior == "Removed" and inverted and pattern in COVERING):
        # "Isolated" keeps matches and what is between them alike, so `invert` changes nothing.
        return (pattern, "Isolated", False)
    return (pattern, behavior, inverted)


def _punctuation(behavior: str) -> Step:
    if behavior == "Contiguous":
        return (f"[{PUNCTUATION}]+", "Isolated", False)
    return (f"[{PUNCTUATION}]", behavior, False)


def write_pre_tokenizer(steps: Sequence[Step], in_bytes: bool = True) -> dict[str, Any] | None:
    """Return the `pre_tokenizer` of a tokenizer.json.

    Args:
        steps: Those of a `_core.Model`.
        in_bytes: Whether they are to leave bytes.

    Raises:
        FormatError: The format cannot hold a step.

    >>> write_pre_tokenizer([("Split", GPT2_SPLIT_PATTERN, "Isolated", False)])["use_regex"]
    True
    """
    at = next((index for index, step in enumerate(steps) if step[0] == "SplitBytes"), len(steps))
    before, behind = list(steps[:at]), steps[at:]
    byte_level = [_take_byte_level(before)] if in_bytes else []
    written = [
        *[_write_step(steps, "Split", *step) for step in before],
        *byte_level,
        *[_write_step(steps, "SplitBytes", *step) for step in behind],
    ]
    return sequence(written, "pretokenizers")


def _take_byte_level(steps: list[Step]) -> dict[str, Any]:
    """The `ByteLevel` that does what the last steps do, which are taken away."""
    use_regex = bool(steps) and steps[-1] in _GPT2_SPLITS
    del steps[len(steps) - use_regex :]
    add_prefix_space = steps[-1:] == [("PrefixSpace",)]
    del steps[len(steps) - add_prefix_space :]
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": False,
        "use_regex": use_regex,
    }


def _write_step(steps: Sequence[Step], split: str, kind: str, *arguments: Any) -> dict[str, Any]:
    if kind == "Metaspace" and split == "Split":
        replacement, scheme, splits = arguments
        return {"type": kind, "replacement": replacement, "prepend_scheme": scheme, "split": splits}
    if kind == "PrefixSpace":
        patterns = [step[1] for step in steps if step[0] == "Split"]
        with_pattern = (
            f" together with the split pattern {patterns[0]!r}; only with GPT-2's" if patterns else ""
        )
        raise FormatError(f"pre_tokenizer: tokenizer.json cannot hold add_prefix_space{with_pattern}")
    if kind != split:
        raise FormatError(f"pre_tokenizer: tokenizer.json cannot hold the step {kind!r} where it stands")
    return _write_split(*arguments)


def _write_split(pattern: str, behavior: str, inverted: bool) -> dict[str, Any]:
    if (pattern, behavior, inverted) == _WORDS:
        return {"type": "Whitespace"}
    if (pattern, behavior, inverted) == _SPACES:
        return {"type": "WhitespaceSplit"}
    for punctuation in _BEHAVIORS:
        if (pattern, behavior, inverted) == _punctuation(punctuation):
            return {"type": "Punctuation", "behavior": punctuation}
    return {
        "type": "Split",
        "pattern": write_pattern(pattern, "pre_tokenizer"),
        "behavior": behavior,
        "invert": inverted,
    }
