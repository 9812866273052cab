r"""The named split patterns, as data.

A split pattern cuts a text into pieces before merging: no token crosses the end of a piece. Some models
apply several patterns in sequence, and each cuts the pieces of the previous one, so a named pattern is a
tuple of one or more patterns. Text between two matches is a piece too.

The dialect is that of Rust's `fancy-regex`: `$` is the end of the text (not of a line), and `\s`, `\p{L}`,
`\p{N}`, ... are Unicode classes. `ByteLevel(use_regex=True)` of a Hugging Face file is GPT-2's pattern,
`Digits(individual_digits=True)` is `\p{N}`.

`cl100k-bounded` and `o200k-bounded` are this package's: `cl100k` and `o200k` with short pieces in scripts
that are written without spaces. A text without Han, Kana, Thai, Lao, Khmer and Burmese has the same pieces.
docs/training.md tells what they gain and lose.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import items_of
from bpe_tokenizer.errors import ArgumentTypeError, PatternError, did_you_mean, shorten

__all__ = [
    "CL100K_SPLIT_PATTERN",
    "GPT2_SPLIT_PATTERN",
    "NAMED_PATTERNS",
    "O200K_SPLIT_PATTERN",
    "SPLIT_PATTERNS",
    "NamedPattern",
    "pattern_name",
    "resolve_split_pattern",
    "split_alike",
]


class NamedPattern(NamedTuple):
    """A pre-tokenisation with a name.

    Args:
        patterns: The split patterns, in the order of their application.
        source: Where it is published, or how it was made.
    """

    patterns: tuple[str, ...]
    source: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}(patterns={shorten(self.patterns, 120)}, source={self.source!r})"


GPT2_SPLIT_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

CL100K_SPLIT_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)

O200K_SPLIT_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_BAILING = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)

_SEED_CODER = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_DEEPSEEK_V3 = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# The letters of deepseek-llm, as the file lists them. Escaped, because an editor or a tool that normalises
# text would change U+1FBE, U+2126 and U+212A, and with them what the pattern matches.
_DEEPSEEK_LLM_LETTERS = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af"
    "\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5"
    "\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf"
    "\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d"
    "\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc"
    "\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115"
    "\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e"
    "\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f"
    "\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"
    "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
)

# Han, the planes before it and Hangul, exactly as written: 一-龥 ࠀ-一 가-퟿.
_DEEPSEEK_CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"

# Scripts that are written without spaces between words. Katakana's mark for long vowels and its half-width
# marks are in none of Unicode's scripts.
_HAN = r"\p{Han}"
_HIRAGANA = r"\p{Hiragana}\u30fc"
_KATAKANA = r"\p{Katakana}\u30fc\uff70\uff9e\uff9f"
_SOUTH_EAST_ASIAN = r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc\uff70\uff9e\uff9f" + _SOUTH_EAST_ASIAN
# The vowels of Thai and Lao that are written before their consonant: a syllable begins there.
_LEADING_VOWELS = r"\u0e40-\u0e44\u0ec0-\u0ec4"
# A letter with its marks. The scripts' digits and punctuation are left to the other branches.
_LETTER = rf"(?![\p{{M}}\p{{N}}\p{{P}}{_LEADING_VOWELS}])[{_SOUTH_EAST_ASIAN}]\p{{M}}*"

# A piece of a run. docs/training.md, "Scripts without spaces", has the measurements that decide the numbers.
_RUN = (
    rf"(?:[{_HAN}]{{1,2}}|[{_HIRAGANA}]{{1,8}}|[{_KATAKANA}]{{1,8}}"
    rf"|[{_LEADING_VOWELS}]?(?:{_LETTER}){{1,4}}|[{_LEADING_VOWELS}]\p{{M}}*)"
)

_CL100K_BOUNDED = CL100K_SPLIT_PATTERN.replace(
    r"|[^\r\n\p{L}\p{N}]?+\p{L}++",
    rf"|[^\r\n\p{{L}}\p{{N}}]?+{_RUN}|[^\r\n\p{{L}}\p{{N}}]?+[^\P{{L}}{_UNSPACED}]++",
)

_O200K_BOUNDED = rf"[^\r\n\p{{L}}\p{{N}}]?{_RUN}|" + O200K_SPLIT_PATTERN.replace(
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", rf"(?:[^\P{{L}}\p{{Ll}}{_UNSPACED}]|[^\P{{M}}{_UNSPACED}])"
).replace(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", rf"(?:[^\P{{L}}\p{{Lu}}\p{{Lt}}{_UNSPACED}]|[^\P{{M}}{_UNSPACED}])")

NAMED_PATTERNS: Mapping[str, NamedPattern] = MappingProxyType(
    {
        "gpt2": NamedPattern(
            (GPT2_SPLIT_PATTERN,),
            "https://github.com/openai/gpt-2/blob/master/src/encoder.py (contractions factored out)",
        ),
        # GPT-2's pieces exactly, in a spelling that backtracks less.
        "r50k": NamedPattern((_R50K,), "tiktoken 0.14, tiktoken_ext/openai_public.py: r50k_pat_str"),
        "cl100k": NamedPattern(
            (CL100K_SPLIT_PATTERN,), "tiktoken 0.14, tiktoken_ext/openai_public.py: cl100k_base"
        ),
        "o200k": NamedPattern(
            (O200K_SPLIT_PATTERN,), "tiktoken 0.14, tiktoken_ext/openai_public.py: o200k_base"
        ),
        "llama3": NamedPattern((_LLAMA3,), "meta-llama/Meta-Llama-3-8B, tokenizer.json"),
        "qwen2": NamedPattern((_QWEN2,), "Qwen/Qwen2-7B, tokenizer.json (and Qwen2.5, Qwen3)"),
        "qwen3.5": NamedPattern((_QWEN35,), "Qwen/Qwen3.5-9B, tokenizer.json"),
        "deepseek-llm": NamedPattern(
            (
                r"[\r\n]",
                rf"\s?[{_DEEPSEEK_LLM_LETTERS}]+",
                "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
                r"\s+$",
                _DEEPSEEK_CJK,
                r"\p{N}",
            ),
            "deepseek-ai/deepseek-llm-7b-base, tokenizer.json (and DeepSeek-V2, DeepSeek-Coder-V2)",
        ),
        "deepseek-coder": NamedPattern(
            (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _DEEPSEEK_CJK, r"\p{N}"),
            "deepseek-ai/deepseek-coder-6.7b-instruct, tokenizer.json",
        ),
        "deepseek-v3": NamedPattern(
            (r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", _DEEPSEEK_V3),
            "deepseek-ai/DeepSeek-V3, tokenizer.json (and DeepSeek-R1)",
        ),
        # The file's `Digits` step cuts once more, between bytes; no token of its vocabulary crosses those
        # cuts, so the ids are the same without it.
        "falcon": NamedPattern(
            (r"[\p{P}\$\+<=>\^~\|`]+", GPT2_SPLIT_PATTERN, r"[0-9][0-9][0-9]"),
            "llama.cpp, src/llama-vocab.cpp: LLAMA_VOCAB_PRE_TYPE_FALCON, for tiiuae/falcon-7b",
        ),
        "starcoder": NamedPattern(
            (r"\p{N}", GPT2_SPLIT_PATTERN),
            "bigcode/starcoder2-7b, tokenizer.json (and SmolLM, Command-R, Refact)",
        ),
        "tekken": NamedPattern((_TEKKEN,), "mistralai/Mistral-Nemo-Instruct-2407, tekken.json"),
        "bailing": NamedPattern(
            (_BAILING,), "GSAI-ML/LLaDA-8B-Instruct and inclusionAI/Ling, tokenizer.json"
        ),
        "seed-coder": NamedPattern((_SEED_CODER,), "ByteDance-Seed/Seed-Coder-8B, tokenizer.json"),
        # For corpora in which the distinct pieces of Chinese, Japanese, Thai, ... are too many.
        "cl100k-bounded": NamedPattern(
            (_CL100K_BOUNDED,), "this package: cl100k, with short runs of scripts without spaces"
        ),
        "o200k-bounded": NamedPattern(
            (_O200K_BOUNDED,), "this package: o200k, with short runs of scripts without spaces"
        ),
    }
)

# A text that patterns split differently.
_PROBE = "it's IT'S a'\u017fs Ab aB \u65e5\u672c \u00e9\u0301 1234 \u00bd !? \n\n\t x`y <a>/\r\n  z  "

# The same names with the patterns alone, as `BPETokenizer(split_pattern=...)` takes them.
SPLIT_PATTERNS: dict[str, str | tuple[str, ...]] = {
    name: named.patterns[0] if len(named.patterns) == 1 else named.patterns
    for name, named in NAMED_PATTERNS.items()
}

# `re` compiles these when they are needed, not at the import. A mistyped name; anything else, even a single
# letter, is a pattern.
_NAME = r"[A-Za-z][A-Za-z0-9._-]+"
# Names of published tokenizers: OpenAI's models and encodings; and repositories of the Hugging Face hub.
_PUBLISHED = r"(chat)?gpt-.+|o[0-9](-.+)?|[a-z0-9]+_(base|edit|harmony)|(text|code)-.+"
_REPOSITORY = r"(hf:)?[A-Za-z][\w.-]+/[A-Za-z][\w.-]+(@[\w./-]+)?"


def resolve_split_pattern(split_pattern: str | Sequence[str]) -> tuple[str, ...]:
    r"""Return the split patterns of a name, or check and return the given ones.

    Args:
        split_pattern: A name of `NAMED_PATTERNS`, a pattern, or several patterns to apply in sequence.

    Returns:
        One or more patterns, each of which compiles.

    Raises:
        PatternError: The pattern is not a valid regular expression, or an unknown name.
        ArgumentTypeError: It is neither a `str` nor a sequence of `str`.

    >>> resolve_split_pattern("starcoder")[0]
    '\\p{N}'
    >>> resolve_split_pattern(r"\w+|\W+")
    ('\\w+|\\W+',)
    >>> resolve_split_pattern("gpt4")
    Traceback (most recent call last):
    bpe_tokenizer.errors.PatternError: unknown split pattern 'gpt4'; did you mean 'gpt2'? ...
    """
    if isinstance(split_pattern, str):
        if split_pattern in NAMED_PATTERNS:
            return NAMED_PATTERNS[split_pattern].patterns
        if re.fullmatch(_NAME, split_pattern) or re.fullmatch(_REPOSITORY, split_pattern):
            raise PatternError(_unknown_name(split_pattern))
        patterns: tuple[str, ...] = (split_pattern,)
    else:
        if isinstance(split_pattern, bytes) or not isinstance(split_pattern, Iterable):
            raise ArgumentTypeError(
                f"split_pattern must be a str or a list of str, not {type(split_pattern).__name__}"
            )
        patterns = tuple(items_of(split_pattern))
        if not patterns:
            raise PatternError("no split pattern given; to leave texts whole use r'[\\s\\S]+'")
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise ArgumentTypeError(f"a split pattern must be a str, not {type(pattern).__name__}")
        if pattern in NAMED_PATTERNS:
            raise PatternError(
                f"{pattern!r} in a list is a regular expression: give the name alone, or write (?:{pattern})"
            )
        if not pattern:
            raise PatternError("the split pattern is empty; to leave texts whole use r'[\\s\\S]+'")
        try:
            _core.SplitPattern(pattern)
        except PatternError as error:
            raise PatternError(f"{error}; in the split pattern {shorten(pattern)}") from None
    return patterns


def _unknown_name(name: str) -> str:
    is_pattern = name.replace("-", "") in NAMED_PATTERNS  # "gpt-2"
    if not is_pattern and (re.fullmatch(_PUBLISHED, name) or re.fullmatch(_REPOSITORY, name)):
        source = name if re.fullmatch(_PUBLISHED, name) or name.startswith("hf:") else f"hf:{name}"
        return (
            f"unknown split pattern {shorten(name, 30)}: bpe_tokenizer.load({shorten(source, 40)}) loads a "
            f"published tokenizer. The names of patterns are {', '.join(NAMED_PATTERNS)}"
        )
    hint = did_you_mean(name.lower(), NAMED_PATTERNS)
    return (
        f"unknown split pattern {shorten(name, 40)}{hint} The names are "
        f"{', '.join(NAMED_PATTERNS)}. As a regular expression, write (?:{name[:40]})"
    )


def pattern_name(patterns: Sequence[str] | None) -> str:
    r"""Return the name of split patterns, however they are spelled; `"custom"` for others.

    >>> pattern_name([GPT2_SPLIT_PATTERN]), pattern_name([r"\pN", GPT2_SPLIT_PATTERN]), pattern_name(["a+"])
    ('gpt2', 'starcoder', 'custom')
    """
    wanted = tuple(patterns or ())
    for are_same in (operator.eq, split_alike):
        for name, named in NAMED_PATTERNS.items():
            if are_same(wanted, named.patterns):
                return name
    return "custom"


def split_alike(patterns: Sequence[str], others: Sequence[str]) -> bool:
    r"""Whether patterns provably find the same matches in every text, one by one: their automata do.

    Args:
        patterns: Split patterns that compile.
        others: The patterns to compare with them.

    >>> split_alike([r"\s+|a"], ["[a]|\\s\\s*"]), split_alike([r"\s+"], [r"\s"])
    (True, False)
    """
    return len(patterns) == len(others) and all(map(_are_alike, patterns, others))


@functools.lru_cache(maxsize=1024)
def _are_alike(one: str, other: str) -> bool:
    if one == other:
        return True
    first, second = _compiled(one), _compiled(other)
    # Most patterns differ here already; the comparison of automata takes 20 ms.
    return first.split(_PROBE) == second.split(_PROBE) and first.is_same(second)


_compiled = functools.lru_cache(maxsize=128)(_core.SplitPattern)
