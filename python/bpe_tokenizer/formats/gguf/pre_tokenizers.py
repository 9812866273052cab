r"""The names of `tokenizer.ggml.pre`: the split patterns and settings that llama.cpp uses for each.

The rules are those of llama.cpp's `llama-vocab.cpp` and `unicode.cpp` (as vendored by llama-cpp-python
0.3.36). llama.cpp does not run its regular expressions exactly; the table holds what it really does:

- Upper and lower case exist for ASCII only: `\p{Lu}`, `\p{Ll}`, ... are all `\p{L}`.
- A pattern without a category sees white space beyond ASCII as a vertical tab, so a range of characters
  never holds such white space.
- `(?i:'s)` is written out, so an apostrophe and a long s (`'ſ`) are not a contraction.
- Its categories are those of Unicode 15.1. The 5,185 letters, marks, digits and signs that Unicode 16 added
  have no category in llama.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from bpe_tokenizer.patterns import NAMED_PATTERNS

__all__ = ["BYTE_LEVEL", "CHARACTERS", "FAMILIES", "LINES", "PreTokenizer"]


@dataclass(frozen=True)
class PreTokenizer:
    """The pre-tokenizer of a name.

    Args:
        patterns: The split patterns, each applied to the pieces of the previous one.
        ignore_merges: Whether a piece that is a token becomes that token without merging.
        add_bos: Whether BOS is added if the file has no `add_bos_token`.
        published: A name of `NAMED_PATTERNS` that differs only in taking `'ſ` for a contraction.
    """

    patterns: tuple[str, ...]
    ignore_merges: bool = False
    add_bos: bool = False
    published: str | None = None


# 's 't 'm 'd 're 've 'll, in either case.
_CONTRACTION = "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_MARKED_WORD = r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+"
_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_ASCII_SIGN_AND_WORD = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
_UNSIGNED_WORD = r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
_HAN_OR_KANA = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
LINES = r"[^\n]+|\n+"


def _cased_words(letters: str, suffix: str = "") -> str:
    """Words of upper-case, then lower-case letters; a letter beyond ASCII is either."""
    upper, lower = f"[[{letters}]&&[^a-z]]", f"[[{letters}]&&[^A-Z]]"
    prefix = r"[^\r\n\p{L}\p{N}]?"
    return f"{prefix}{upper}*{lower}+{suffix}|{prefix}{upper}+{lower}*{suffix}"


_GPT2 = PreTokenizer(NAMED_PATTERNS["gpt2"].patterns)
_STARCODER = PreTokenizer(NAMED_PATTERNS["starcoder"].patterns)
_DEEPSEEK_V3 = PreTokenizer(NAMED_PATTERNS["deepseek-v3"].patterns)
_LLAMA3 = PreTokenizer((rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|{_SPACES}",), published="llama3")
_LLAMA_BPE = replace(_LLAMA3, ignore_merges=True, add_bos=True)
_QWEN2 = PreTokenizer((rf"{_CONTRACTION}|{_WORD}|\p{{N}}|{_SIGNS}|{_SPACES}",), published="qwen2")
_QWEN35 = PreTokenizer(
    (rf"{_CONTRACTION}|{_MARKED_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}",),
    published="qwen3.5",
)
_DEFAULT = PreTokenizer(
    (r"[\p{P}\$\+<=>\^~\|]+", *NAMED_PATTERNS["gpt2"].patterns, r"\p{N}+", "[0-9][0-9][0-9]")
)

# U+0800 to U+9FA5 and Hangul without white space, which llama.cpp never finds in a range.
_DEEPSEEK_CJK = (
    r"[\x{800}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}"
    r"\x{3001}-\x{9fa5}\x{ac00}-\x{d7ff}]+"
)
_DEEPSEEK_LLM = PreTokenizer(
    (
        r"[\r\n]",
        NAMED_PATTERNS["deepseek-llm"].patterns[1],
        "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3001\u3002]+",
        r"\s+$",
        _DEEPSEEK_CJK,
        r"\p{N}+",
    )
)
_DEEPSEEK_CODER = PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _DEEPSEEK_CJK, r"\p{N}"))

_CODE_SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"
_CODE_ENDING = rf"{_CODE_SIGNS}|{_SPACES}"
_TEKKEN = PreTokenizer(
    (_cased_words(r"\p{L}") + rf"|\p{{N}}|{_CODE_ENDING}",), ignore_merges=True, add_bos=True
)
_CONTRACTED = f"(?:{_CONTRACTION})?"
_GPT_4O = PreTokenizer((_cased_words(r"\p{L}", _CONTRACTED) + rf"|\p{{N}}{{1,3}}|{_CODE_ENDING}",))
_GRANITE_97M = PreTokenizer(
    (_cased_words(r"\p{L}\p{M}", _CONTRACTED) + rf"|\p{{N}}{{1,3}}|{_CODE_ENDING}",), ignore_merges=True
)

# Digits in threes from the right. The text before them stays with the first group; a later pattern splits
# it off.
_DIGITS_FROM_THE_RIGHT = (
    r"\P{N}*\p{N}+|\P{N}+",
    r"\P{N}*\p{N}{1,2}(?=(?:\p{N}{3})*$)|[\s\S]+",
    r"\P{N}*\p{N}{1,3}|\P{N}+",
)
_TINY_AYA = PreTokenizer(
    (
        *_DIGITS_FROM_THE_RIGHT,
        rf"{_MARKED_WORD}{_CONTRACTED}|\p{{N}}{{1,3}}|{_CODE_ENDING}",
    )
)
_AFMOE = PreTokenizer(
    (
        *_DIGITS_FROM_THE_RIGHT,
        # From U+8C48, not from its look-alike U+F900.
        r"[\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{8c48}-\x{faff}\x{3040}-\x{30ff}\x{ff65}-\x{ff9f}"
        r"\x{2f00}-\x{2fdf}\x{e40}-\x{eff}\x{1780}-\x{17ff}\x{1000}-\x{109f}\x{aa60}-\x{aa7f}"
        r"\x{a9e0}-\x{a9ff}\x{1100}-\x{11ff}]+",
        rf"{_ASCII_SIGN_AND_WORD}|{_UNSIGNED_WORD}| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}",
    )
)
# Splits where the number of ASCII digits that follow is a multiple of three.
_SUPERBPE = PreTokenizer((r"\p{N}+", r"[\s\S](?:[^0-9]|[0-9](?=[0-9]?(?:[0-9]{3})*(?:[^0-9]|$)))*"))

_HAN = (
    r"\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{f900}-\x{faff}\x{20000}-\x{2a6df}\x{2a700}-\x{2ebef}"
    r"\x{2f800}-\x{2fa1f}"
)
_KIMI_K2 = PreTokenizer(
    (
        rf"[{_HAN}]+|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}&&[^{_HAN}]]+{_CONTRACTED}|\p{{N}}{{1,3}}"
        rf"|{_SIGNS}|{_SPACES}",
    )
)
_BLOOM = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"
_SPACES_IN_POWERS = "|".join(
    rf"\s{{{count}}}(?!\S)" for count in ("512", "256", "128", "64", "32", "16", "8", "4")
)

# The names of each pre-tokenizer, the best known first.
FAMILIES: tuple[tuple[str, PreTokenizer], ...] = (
    ("default", _DEFAULT),
    (
        "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert jina-v1-en "
        "jina-v2-code roberta-bpe mpt olmo jais trillion granite-docling exaone4",
        _GPT2,
    ),
    (
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        _LLAMA_BPE,
    ),
    ("dbrx smaug-bpe chatglm-bpe", _LLAMA3),
    ("glm4 glm5", replace(_LLAMA3, ignore_merges=True)),
    ("qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2", _QWEN2),
    ("qwen35", _QWEN35),
    ("laguna", PreTokenizer((LINES, *_QWEN2.patterns))),
    ("ufakzeka", PreTokenizer((rf"{_WORD}|\p{{N}}|{_SIGNS}|{_SPACES}",))),
    ("deepseek-llm", _DEEPSEEK_LLM),
    ("deepseek-coder", _DEEPSEEK_CODER),
    ("deepseek-v3 hunyuan-dense joyai-llm hy_v4", _DEEPSEEK_V3),
    (
        "spark2_5",
        PreTokenizer(
            (
                r"\p{N}{1,3}",
                _HAN_OR_KANA,
                rf"{_ASCII_SIGN_AND_WORD}|{_UNSIGNED_WORD}| ?[\p{{P}}\p{{S}}]+|[\r\n]|\s+(?!\S)|\s+",
                r"\p{N}",
            )
        ),
    ),
    (
        "youtu",
        PreTokenizer(
            (
                "[\uac00-\ud7a3\u3131-\u318e]+"
                "|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+"
                f"|[\u3105-\u312f]+|{_HAN_OR_KANA}",
                rf"{_MARKED_WORD}{_CONTRACTED}|\p{{N}}|{_CODE_ENDING}",
            ),
            ignore_merges=True,
        ),
    ),
    ("falcon", PreTokenizer(NAMED_PATTERNS["falcon"].patterns)),
    (
        "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2",
        _STARCODER,
    ),
    ("bloom poro-chat gpt3-finnish", PreTokenizer((_BLOOM,))),
    ("viking", PreTokenizer((_BLOOM, r"\p{N}"))),
    ("tekken", _TEKKEN),
    ("gpt-4o llama4 kanana2 talkie minimax-m2", _GPT_4O),
    ("granite-embed-multi-97m", _GRANITE_97M),
    ("tiny_aya cohere2moe", _TINY_AYA),
    ("afmoe", _AFMOE),
    ("superbpe", _SUPERBPE),
    ("kimi-k2", _KIMI_K2),
    (
        "chameleon",
        PreTokenizer(
            (
                "<sentinel:[0-9]+>",
                "IMGIMG[A-I]{1,4}Z",
                r"[\t\n]|    |  ",
                r"\p{N}",
                r"[\p{P}!-/:-@\[-`{-~]",
                *_GPT2.patterns,
            ),
            add_bos=True,
        ),
    ),
    (
        "bailingmoe bailingmoe2 llada-moe",
        PreTokenizer(
            (rf"{_CONTRACTION}|{_WORD}|\p{{N}}|{_SIGNS}|\s*[\r\n]|\s+(?!\S)|\s+",), published="bailing"
        ),
    ),
    (
        "seed-coder",
        PreTokenizer(
            (rf"{_CONTRACTION}|{_WORD}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}",),
            published="seed-coder",
        ),
    ),
    (
        "exaone-moe",
        PreTokenizer(
            (
                rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
                r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
            )
        ),
    ),
    (
        "minicpm5",
        PreTokenizer(
            (r"\p{N}{1,3}", rf"{_CONTRACTION}|{_WORD}|\p{{N}}+|{_SIGNS}|{_SPACES}"), ignore_merges=True
        ),
    ),
    (
        "jais-2",
        PreTokenizer(
            (
                rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}|{_SIGNS}|\s*[\r\n]+|{_SPACES_IN_POWERS}"
                r"|\s{1,2}(?!\S)|\s",
            )
        ),
    ),
)

# The pre-tokenizers of byte-level BPE.
BYTE_LEVEL: Mapping[str, PreTokenizer] = MappingProxyType(
    {name: pre_tokenizer for names, pre_tokenizer in FAMILIES for name in names.split()}
)
# The pre-tokenizers of SentencePiece-style BPE; llama.cpp always adds BOS for the first two.
CHARACTERS: Mapping[str, PreTokenizer] = MappingProxyType(
    {
        "gemma4": PreTokenizer((LINES,), add_bos=True),
        "granite-embed-multi-311m": PreTokenizer((LINES,), add_bos=True),
        "sarvam-moe": PreTokenizer((LINES,)),
    }
)
