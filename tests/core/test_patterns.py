from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import unicodedata
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

import bpe_tokenizer
import oracle
from bpe_tokenizer import BPETokenizer, PatternError, _core
from bpe_tokenizer.patterns import NAMED_PATTERNS, resolve_split_pattern

# Patterns with texts and their pieces, which the core's tests in Rust check.
VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "split_patterns.json").read_text("utf-8"))

# The patterns that bound the runs of scripts without spaces, and the patterns that they change.
BOUNDED = {"cl100k-bounded": "cl100k", "o200k-bounded": "o200k"}
MARKED = r"\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
UNSPACED = rf"\p{{Han}}\p{{Hiragana}}\p{{Katakana}}\u30fc\uff70\uff9e\uff9f{MARKED}"
# The most characters of a piece that match each of these; a leading vowel comes before the four letters.
LONGEST_RUNS = {
    r"\p{Han}": 2,
    r"\p{Hiragana}": 8,
    r"\p{Katakana}": 8,
    rf"(?![\p{{M}}\p{{N}}\p{{P}}])[{MARKED}]": 5,
}


compiled = cache(_core.SplitPattern)


def pieces(name: str, text: str) -> list[str]:
    """The pieces of a named pattern, from the core."""
    cut = [text]
    for pattern in NAMED_PATTERNS[name].patterns:
        cut = [piece for part in cut for piece in compiled(pattern).split(part)]
    return cut


def pieces_of_the_regex_module(name: str, text: str) -> list[str]:
    cut = [text]
    for pattern in NAMED_PATTERNS[name].patterns:
        cut = [piece for part in cut for piece in oracle.split(part, pattern)]
    return cut


def test_the_vectors_of_the_core_have_every_named_pattern() -> None:
    named = {name: list(pattern.patterns) for name, pattern in NAMED_PATTERNS.items() if pattern.source}
    assert [*named.items()] == [(vector["name"], vector["patterns"]) for vector in VECTORS]


def test_the_exported_patterns() -> None:
    assert bpe_tokenizer.GPT2_SPLIT_PATTERN == (
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    )
    assert resolve_split_pattern("gpt2") == (bpe_tokenizer.GPT2_SPLIT_PATTERN,)
    assert resolve_split_pattern("cl100k") == (bpe_tokenizer.CL100K_SPLIT_PATTERN,)
    assert resolve_split_pattern("o200k") == (bpe_tokenizer.O200K_SPLIT_PATTERN,)


@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_a_named_pattern_gives_the_pieces_of_the_regex_module(
    name: str, stdlib_texts: list[str], mixed_text: str
) -> None:
    for text in (mixed_text, mixed_text.swapcase(), "a \n b \n\n", "   ", stdlib_texts[0][:20_000]):
        assert pieces(name, text) == pieces_of_the_regex_module(name, text)
        assert "".join(pieces(name, text)) == text


@given(
    st.text(max_size=40) | st.text(st.sampled_from(["a", "É", "'", "s", " ", "\n", "1", "\u0301", "한", "—"]))
)
def test_the_bounded_patterns_change_no_text_of_other_scripts(text: str) -> None:
    other = regex.sub(f"[{UNSPACED}]", "", text)
    for name, base in BOUNDED.items():
        assert pieces(name, other) == pieces(base, other)


@given(
    st.text(
        st.sampled_from([*"漢字々〇ひらがーカナｶﾞ กเแ่ัຂະເ់ក្ខမြန်a1 ,।\n", "\U00020000", "\u0e50"]), max_size=80
    )
)
def test_the_bounded_patterns_bound_every_run(text: str) -> None:
    for name in BOUNDED:
        cut = pieces(name, text)
        assert "".join(cut) == text
        for piece in cut:
            for script, most in LONGEST_RUNS.items():
                assert len(regex.findall(script, piece)) <= most, (name, text, piece)
        for before, after in pairwise(cut):
            is_letter = regex.search(rf"(?![\p{{M}}\p{{N}}\p{{P}}])[{MARKED}]\p{{M}}*\Z", before)
            assert not is_letter or not regex.match(r"\p{M}", after), (name, text, before)


@pytest.mark.parametrize("name", BOUNDED)
def test_the_bounded_patterns_are_small_automata(name: str) -> None:
    (pattern,) = NAMED_PATTERNS[name].patterns
    automaton = _core.SplitPattern(pattern)
    assert automaton.is_compiled
    # The table of two classes at once, which the fast path needs, has 65,536 entries.
    assert automaton.states * (automaton.classes + 2) ** 2 // 2 < 1 << 16


def test_no_tool_has_normalised_the_letters_of_deepseek() -> None:
    letters = NAMED_PATTERNS["deepseek-llm"].patterns[1].removeprefix(r"\s?[").removesuffix("]+")
    ranges = []
    rest = letters
    while rest:
        width = 3 if rest[1:2] == "-" else 1
        ranges.append((ord(rest[0]), ord(rest[width - 1])))
        rest = rest[width:]
    cased = {"Lu", "Ll", "Lt", "Cn"}  # Cn: younger than the Unicode of this Python
    for first, last in ranges:
        codes = set(range(first, last + 1)) - {0x295}  # not cased since Unicode 17
        assert all(unicodedata.category(chr(code)) in cased for code in codes)
    # U+1FBE, U+2126 (Ohm) and U+212A (Kelvin) are those that NFC would replace.
    assert {(0x1FBE, 0x1FBE), (0x2126, 0x2126), (0x212A, 0x212D)} <= set(ranges)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("gpt-2", "did you mean 'gpt2'"),
        ("CL100K", "did you mean 'cl100k'"),
        ("nonsense.name", "The names are gpt2, r50k, cl100k"),
        ("(", r"\("),
        (r"[a-", r"\[a-"),
        ("", "empty"),
        ([], "no split pattern"),
        ([r"\w+", "("], r"\("),
        (["gpt2"], r"'gpt2' in a list is a regular expression: .* or write \(\?:gpt2\)"),
    ],
)
def test_a_bad_pattern_is_refused(pattern: str | list[str], message: str) -> None:
    with pytest.raises(PatternError, match=message) as caught:
        BPETokenizer(split_pattern=pattern)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("pattern", [5, None, [r"\w+", 5]])
def test_a_pattern_that_is_no_text_is_a_type_error(pattern: object) -> None:
    with pytest.raises(TypeError):
        BPETokenizer(split_pattern=pattern)  # type: ignore[arg-type]


def test_a_name_like_pattern_can_be_written_as_a_group() -> None:
    with pytest.raises(PatternError, match=r"\(\?:abc\)"):
        resolve_split_pattern("abc")
    assert resolve_split_pattern("(?:abc)") == ("(?:abc)",)
    assert resolve_split_pattern(".") == (".",)


def test_what_a_pattern_leaves_unmatched_is_a_piece(mixed_text: str) -> None:
    assert _core.SplitPattern(r"\w+").split("ab, cd!") == ["ab", ", ", "cd", "!"]
    tokenizer = BPETokenizer(r"\w+", normalization=None).train("ab, cd! ab, cd!", 270, verbose=False)
    assert tokenizer.decode(tokenizer.encode(mixed_text)) == mixed_text


def test_a_tokenizer_reports_its_pattern_and_takes_it_back() -> None:
    assert BPETokenizer().split_pattern == bpe_tokenizer.CL100K_SPLIT_PATTERN
    assert BPETokenizer(r"\w+|\W+").split_pattern == r"\w+|\W+"
    pipeline = BPETokenizer("deepseek-v3").split_pattern
    assert pipeline == NAMED_PATTERNS["deepseek-v3"].patterns
    assert BPETokenizer(pipeline).split_pattern == pipeline


@pytest.mark.parametrize("name", ["deepseek-v3", "starcoder", "falcon"])
def test_a_pipeline_of_patterns_trains_and_encodes(
    name: str, stdlib_texts: list[str], mixed_text: str
) -> None:
    tokenizer = BPETokenizer(name, normalization=None).train(stdlib_texts[:2], 400, verbose=False)
    assert tokenizer.model.core.split_patterns == list(NAMED_PATTERNS[name].patterns)
    assert tokenizer.decode(tokenizer.encode(mixed_text)) == mixed_text
    cut = _core.Encoder(tokenizer.model.core).pieces(mixed_text)
    assert [piece.decode() for piece in cut] == pieces(name, mixed_text)


PORTABLE = """
import sys
from bpe_tokenizer import BPETokenizer
text = sys.stdin.buffer.read().decode()
tokenizer = BPETokenizer().train([text], 400, verbose=False)
print(tokenizer.merges, tokenizer.encode(text * 9))
"""


def test_the_portable_instructions_give_the_same_ids(mixed_text: str) -> None:
    """The core's tests in Rust run some of its parts with the best instructions only."""
    outputs = set()
    for instructions in ("", "portable"):
        environment = os.environ | {"BPE_TOKENIZER_SIMD": instructions}
        command = [sys.executable, "-c", PORTABLE]
        outputs.add(subprocess.check_output(command, input=mixed_text.encode(), env=environment))
    assert len(outputs) == 1


@pytest.mark.peer
def test_the_patterns_of_tiktoken_are_tiktokens() -> None:
    public = pytest.importorskip("tiktoken_ext.openai_public")
    source = inspect.getsource(public)
    assert resolve_split_pattern("r50k") == (public.r50k_pat_str,)
    assert bpe_tokenizer.CL100K_SPLIT_PATTERN in source
    for alternative in ("[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}", "\\p{N}{1,3}", " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"):
        assert alternative in source
        assert alternative in bpe_tokenizer.O200K_SPLIT_PATTERN


@pytest.mark.peer
@pytest.mark.parametrize(
    "name", ["gpt2", "llama3", "qwen2", "qwen3.5", "deepseek-llm", "deepseek-coder", "starcoder"]
)
def test_the_pieces_of_hugging_face(name: str, stdlib_texts: list[str], mixed_text: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    steps = tokenizers.pre_tokenizers

    def split(pattern: str) -> object:
        return steps.Split(tokenizers.Regex(pattern), "isolated")

    patterns = NAMED_PATTERNS[name].patterns
    byte_level = steps.ByteLevel(add_prefix_space=False, use_regex=True)
    published = {
        "gpt2": [byte_level],
        "starcoder": [steps.Digits(individual_digits=True), byte_level],
        "deepseek-llm": [*map(split, patterns[:-1]), steps.Digits(individual_digits=True)],
        "deepseek-coder": [*map(split, patterns[:-1]), steps.Digits(individual_digits=True)],
    }.get(name, [*map(split, patterns)])
    pre_tokenizer = steps.Sequence(published)
    # Hugging Face classifies by an older Unicode, so only text that is not newer is compared.
    for text in (mixed_text, *stdlib_texts[:2]):
        spans = [span for _, span in pre_tokenizer.pre_tokenize_str(text)]
        assert pieces(name, text) == [text[start:end] for start, end in spans]
