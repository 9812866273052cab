r"""The `pre_tokenizer` of a tokenizer.json, which splits text into pieces.

In a byte-level file `ByteLevel` replaces each byte by its printable character, which later steps see. A file
without `ByteLevel` merges characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.formats.capabilities import keeping_matches
from bpe_tokenizer.formats.huggingface.components import (
    flatten_sequence,
    join_sequence,
    read_character,
    read_pattern,
    write_pattern,
)
from bpe_tokenizer.formats.huggingface.regex import regex_escape
from bpe_tokenizer.formats.json_file import Field, choices
from bpe_tokenizer.model import Metaspace, PrefixSpace, PreTokenizer, Split, Step
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN, NAMED_PATTERNS

__all__ = ["PUNCTUATION", "published_spelling", "read_pre_tokenizer", "write_pre_tokenizer"]

_BEHAVIORS: tuple[Any, ...] = choices(Split, "behavior")
_SCHEMES = choices(Metaspace, "prepend_scheme")

# `ByteLevel(use_regex=True)` splits with GPT-2's pattern, of which r50k is another spelling.
_GPT2_SPLITS = tuple(
    Split(pattern=pattern) for pattern in (GPT2_SPLIT_PATTERN, *NAMED_PATTERNS["r50k"].patterns)
)

# Steps that are splits under another name, with Rust's `\w`, which differs from Oniguruma's.
_WORDS = Split(pattern=r"\w+|[^\w\s]+", behavior="Removed", invert=True)
_SPACES = Split(pattern=r"\s", behavior="Removed")
_MAX_FIXED_LENGTH = 1000

# The code points that the `Punctuation` step of `tokenizers` 0.23 takes for punctuation: ASCII's, and the
# general category P of Unicode 8, which is where the crate `unicode_categories` 0.1.1 stopped. So it differs
# from `\p{P}`. tests/peers compares every code point with the library.
PUNCTUATION = (
    r"\x{21}-\x{2F}\x{3A}-\x{40}\x{5B}-\x{60}\x{7B}-\x{7E}\x{A1}\x{A7}\x{AB}\x{B6}\x{B7}\x{BB}\x{BF}"
    r"\x{37E}\x{387}\x{55A}-\x{55F}\x{589}\x{58A}\x{5BE}\x{5C0}\x{5C3}\x{5C6}\x{5F3}\x{5F4}"
    r"\x{609}\x{60A}\x{60C}\x{60D}\x{61B}\x{61E}\x{61F}\x{66A}-\x{66D}\x{6D4}\x{700}-\x{70D}"
    r"\x{7F7}-\x{7F9}\x{830}-\x{83E}\x{85E}\x{964}\x{965}\x{970}\x{AF0}\x{DF4}\x{E4F}\x{E5A}\x{E5B}"
    r"\x{F04}-\x{F12}\x{F14}\x{F3A}-\x{F3D}\x{F85}\x{FD0}-\x{FD4}\x{FD9}\x{FDA}\x{104A}-\x{104F}"
    r"\x{10FB}\x{1360}-\x{1368}\x{1400}\x{166D}\x{166E}\x{169B}\x{169C}\x{16EB}-\x{16ED}"
    r"\x{1735}\x{1736}\x{17D4}-\x{17D6}\x{17D8}-\x{17DA}\x{1800}-\x{180A}\x{1944}\x{1945}"
    r"\x{1A1E}\x{1A1F}\x{1AA0}-\x{1AA6}\x{1AA8}-\x{1AAD}\x{1B5A}-\x{1B60}\x{1BFC}-\x{1BFF}"
    r"\x{1C3B}-\x{1C3F}\x{1C7E}\x{1C7F}\x{1CC0}-\x{1CC7}\x{1CD3}\x{2010}-\x{2027}\x{2030}-\x{2043}"
    r"\x{2045}-\x{2051}\x{2053}-\x{205E}\x{207D}\x{207E}\x{208D}\x{208E}\x{2308}-\x{230B}"
    r"\x{2329}\x{232A}\x{2768}-\x{2775}\x{27C5}\x{27C6}\x{27E6}-\x{27EF}\x{2983}-\x{2998}"
    r"\x{29D8}-\x{29DB}\x{29FC}\x{29FD}\x{2CF9}-\x{2CFC}\x{2CFE}\x{2CFF}\x{2D70}\x{2E00}-\x{2E2E}"
    r"\x{2E30}-\x{2E42}\x{3001}-\x{3003}\x{3008}-\x{3011}\x{3014}-\x{301F}\x{3030}\x{303D}\x{30A0}"
    r"\x{30FB}\x{A4FE}\x{A4FF}\x{A60D}-\x{A60F}\x{A673}\x{A67E}\x{A6F2}-\x{A6F7}\x{A874}-\x{A877}"
    r"\x{A8CE}\x{A8CF}\x{A8F8}-\x{A8FA}\x{A8FC}\x{A92E}\x{A92F}\x{A95F}\x{A9C1}-\x{A9CD}"
    r"\x{A9DE}\x{A9DF}\x{AA5C}-\x{AA5F}\x{AADE}\x{AADF}\x{AAF0}\x{AAF1}\x{ABEB}\x{FD3E}\x{FD3F}"
    r"\x{FE10}-\x{FE19}\x{FE30}-\x{FE52}\x{FE54}-\x{FE61}\x{FE63}\x{FE68}\x{FE6A}\x{FE6B}"
    r"\x{FF01}-\x{FF03}\x{FF05}-\x{FF0A}\x{FF0C}-\x{FF0F}\x{FF1A}\x{FF1B}\x{FF1F}\x{FF20}"
    r"\x{FF3B}-\x{FF3D}\x{FF3F}\x{FF5B}\x{FF5D}\x{FF5F}-\x{FF65}\x{10100}-\x{10102}\x{1039F}\x{103D0}"
    r"\x{1056F}\x{10857}\x{1091F}\x{1093F}\x{10A50}-\x{10A58}\x{10A7F}\x{10AF0}-\x{10AF6}"
    r"\x{10B39}-\x{10B3F}\x{10B99}-\x{10B9C}\x{11047}-\x{1104D}\x{110BB}\x{110BC}\x{110BE}-\x{110C1}"
    r"\x{11140}-\x{11143}\x{11174}\x{11175}\x{111C5}-\x{111C9}\x{111CD}\x{111DB}\x{111DD}-\x{111DF}"
    r"\x{11238}-\x{1123D}\x{112A9}\x{114C6}\x{115C1}-\x{115D7}\x{11641}-\x{11643}\x{1173C}-\x{1173E}"
    r"\x{12470}-\x{12474}\x{16A6E}\x{16A6F}\x{16AF5}\x{16B37}-\x{16B3B}\x{16B44}\x{1BC9F}"
    r"\x{1DA87}-\x{1DA8B}"
)


def read_pre_tokenizer(field: Field, in_bytes: bool = False) -> tuple[list[PreTokenizer], bool]:
    """Read the `pre_tokenizer` of a tokenizer.json.

    Args:
        field: The pre-tokeniser; null for none.
        in_bytes: Whether the normaliser has already replaced bytes by printable characters.

    Returns:
        The steps of `_core.Model`, and whether the pieces are bytes.

    Raises:
        FormatError: A step is not supported.
    """
    steps: list[PreTokenizer] = []
    for step in flatten_sequence(field, "pretokenizers"):
        kind = step.get("type").text()
        if kind in ("ByteLevel", "Metaspace") and in_bytes:
            raise step.error(
                f"{kind} after ByteLevel is not supported; it would take printable bytes for text"
            )
        if kind == "ByteLevel":
            steps += _read_byte_level(step)
            in_bytes = True
        elif kind == "Metaspace":
            steps.append(_read_metaspace(step))
        else:
            splits = _read_splits(step)
            steps += [split._replace(type="SplitBytes") for split in splits] if in_bytes else splits
    return steps, in_bytes


def _read_byte_level(step: Field) -> list[PreTokenizer]:
    add_prefix_space = step.need("add_prefix_space").flag()
    use_regex = step.get("use_regex").flag(default=True)
    return [*[PrefixSpace()] * add_prefix_space, *[_GPT2_SPLITS[0]] * use_regex]


def _read_metaspace(step: Field) -> Metaspace:
    """Read `prepend_scheme`, or the older `add_prefix_space`, which must not contradict it."""
    scheme = step.get("prepend_scheme")
    value: Any = "always" if "prepend_scheme" not in step.members() else scheme.one_of(_SCHEMES)
    if not step.get("add_prefix_space").flag(default=True) and value != "never":
        raise step.get("add_prefix_space").refused(
            f'contradicts the prepend_scheme {value!r}; remove it, and set "prepend_scheme" to "never"'
        )
    if not step.get("str_rep").is_null:
        step.get("str_rep").text()
    return Metaspace(
        replacement=read_character(step.need("replacement")),
        prepend_scheme=value,
        split=step.get("split").flag(default=True),
    )


def _read_splits(step: Field) -> list[Split]:
    """The splits of a step: patterns with their behaviour and whether it is inverted."""
    kind = step.get("type").text()
    if kind == "Split":
        return [_read_split(step)]
    if kind == "Digits":
        # `char::is_numeric`: the general category N.
        each = step.need("individual_digits").flag()
        return [Split(pattern=r"\p{N}" if each else r"\p{N}+")]
    if kind == "Punctuation":
        behavior = step.get("behavior")
        return [_punctuation("Isolated" if behavior.is_null else behavior.one_of(_BEHAVIORS))]
    if kind == "BertPreTokenizer":
        return [_SPACES, _punctuation("Isolated")]
    if kind == "Whitespace":
        return [_WORDS]
    if kind == "WhitespaceSplit":
        return [_SPACES]
    if kind == "CharDelimiterSplit":
        delimiter = regex_escape(read_character(step.need("delimiter")))
        return [Split(pattern=delimiter, behavior="Removed")]
    if kind == "FixedLength":
        length = 5 if "length" not in step.members() else step.get("length").id()
        if not 0 < length <= _MAX_FIXED_LENGTH:
            raise step.get("length").refused(f"is not supported; it must be 1 to {_MAX_FIXED_LENGTH}")
        return [Split(pattern=rf"[\s\S]{{{length}}}")]
    raise step.get("type").refused(
        "is not supported; ByteLevel, Metaspace, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, "
        "BertPreTokenizer, CharDelimiterSplit, FixedLength and Sequence are"
    )


def _read_split(step: Field) -> Split:
    pattern = read_pattern(step.need("pattern"))
    behavior = step.need("behavior").one_of(_BEHAVIORS)
    inverted = step.need("invert").flag()
    if behavior == "Isolated":  # it keeps matches and the text between them, so `invert` has no effect
        return Split(pattern=pattern)
    if behavior == "Removed" and inverted:
        return keeping_matches(pattern)
    return Split(pattern=pattern, behavior=behavior, invert=inverted)


def _punctuation(behavior: Any) -> Split:
    if behavior == "Contiguous":
        return Split(pattern=f"[{PUNCTUATION}]+")
    return Split(pattern=f"[{PUNCTUATION}]", behavior=behavior)


def published_spelling(steps: Sequence[Step]) -> list[Step]:
    """Return the steps with Llama 3's pattern for cl100k's, as published files spell it.

    Oniguruma cannot read cl100k's own text. The two differ only in white space at the end of a text: see
    `crosses_trailing_space`.
    """
    cl100k, llama3 = (Split(pattern=NAMED_PATTERNS[name].patterns[0]) for name in ("cl100k", "llama3"))
    return [llama3] if list(steps) == [cl100k] else list(steps)


def write_pre_tokenizer(steps: Sequence[Step], in_bytes: bool = True) -> dict[str, Any] | None:
    """Return the `pre_tokenizer` of a tokenizer.json.

    Args:
        steps: The steps of a `_core.Model`.
        in_bytes: Whether the pieces are bytes.

    Raises:
        FormatError: The format cannot hold a step.

    >>> write_pre_tokenizer([Split(pattern=GPT2_SPLIT_PATTERN)])["use_regex"]
    True
    """
    at = next((index for index, step in enumerate(steps) if step.type == "SplitBytes"), len(steps))
    on_text, on_bytes = list(steps[:at]), steps[at:]
    byte_level = [_take_byte_level(on_text)] if in_bytes else []
    written = [
        *[_write_step(steps, "Split", step) for step in on_text],
        *byte_level,
        *[_write_step(steps, "SplitBytes", step) for step in on_bytes],
    ]
    return join_sequence(written, "pretokenizers")


def _take_byte_level(steps: list[Step]) -> dict[str, Any]:
    """Remove the last steps that `ByteLevel` does too, and return that `ByteLevel`."""
    use_regex = bool(steps) and steps[-1] in _GPT2_SPLITS
    del steps[len(steps) - use_regex :]
    add_prefix_space = steps[-1:] == [PrefixSpace()]
    del steps[len(steps) - add_prefix_space :]
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": False,
        "use_regex": use_regex,
    }


def _write_step(steps: Sequence[Step], split: str, step: Step) -> dict[str, Any]:
    if isinstance(step, Metaspace) and split == "Split":
        return step._asdict()
    if isinstance(step, PrefixSpace):
        patterns = [step.pattern for step in steps if isinstance(step, Split) and step.type == "Split"]
        with_pattern = (
            f" together with the split pattern {shorten(patterns[0])}; only with GPT-2's" if patterns else ""
        )
        raise FormatError(f"pre_tokenizer: tokenizer.json cannot hold add_prefix_space{with_pattern}")
    if not isinstance(step, Split) or step.type != split:
        raise FormatError(
            f"pre_tokenizer: tokenizer.json cannot hold the step {shorten(step.type)} at this position"
        )
    return _write_split(step._replace(type="Split"))


def _write_split(split: Split) -> dict[str, Any]:
    if split == _WORDS:
        return {"type": "Whitespace"}
    if split == _SPACES:
        return {"type": "WhitespaceSplit"}
    for behavior in _BEHAVIORS:
        if split == _punctuation(behavior):
            return {"type": "Punctuation", "behavior": behavior}
    return split._asdict() | {"pattern": write_pattern(split.pattern, "pre_tokenizer")}
