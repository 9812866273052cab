"""Regular expressions of a tokenizer.json."""

from __future__ import annotations

import re

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import _core
from bpe_tokenizer.formats.huggingface.regex import objection
from bpe_tokenizer.patterns import NAMED_PATTERNS

EMPTY = "can match the empty text"


@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_named_patterns_can_be_carried_over(name: str) -> None:
    for pattern in NAMED_PATTERNS[name].patterns:
        assert objection(pattern, oniguruma=False) is None
        assert objection(_core.SplitPattern(pattern).to_oniguruma(), oniguruma=True) is None


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        (r"a|\p{L}+\.\n|[^\s\d]{2,3}?|(?:b++|c{2}+)(?=d)|(?<!e)f$", None),
        ("", EMPTY),
        ("a|", EMPTY),
        ("a?", EMPTY),
        ("a{0,3}", EMPTY),
        ("a{,3}", EMPTY),
        ("a{00}", EMPTY),
        (r"\x{41}*", EMPTY),
        (r"\p{L}*+", EMPTY),
        ("(?:a|b*)", EMPTY),
        ("(?=a)", None),
        ("(?i)", EMPTY),
        ("^$", EMPTY),
        ("[^^]*", EMPTY),
        ("{", None),
        ("a{b}", None),
        ("(?:a|b*)c", None),
        ("(?i:'s|'ll)|(?>a*)b", None),
        ("[]a]+|[^]a*]|[a[b]c&&[^a]]", None),
        ("(" * 40 + "a" + ")" * 40, None),
        ("(" * 90 + "a" + ")" * 90, "groups nested too deeply"),
        ("a{2}{2}", "two quantifiers in a row"),
        ("a+*", "two quantifiers in a row"),
        ("(?:a*)+", "a quantifier of something that can match the empty text"),
        (r"\z?a", "a quantifier of something that can match the empty text"),
        ("*a", "\\* with nothing before it"),
        (r"\x61+", r"a quantifier of \\x without braces"),
        (r"\xe9", r"\\xe9"),
        (r"\u12", r"\\u"),
        (r"\x{110000}", r"\\x\{110000\}"),
        (r"\x{" + "1" * 5000 + "}", r"\\x"),
        (r"\pL", r"\\pL"),
        (r"\p{Script=Han}", r"\\p\{Script=Han\}"),
        (r"a\G", r"\\G"),
        (r"(a)\1", r"\\1"),
        (r"\R|\X", r"\\R"),
        (r"\<a", r"\\<"),
        ("a\\", r"\\"),
        ("(?<name>a)", r"\(\?<n"),
        ("(?#x)a", r"\(\?#x"),
        ("a(?i)b", r"\(\?i\)"),
        ("(?-i:a)", r"\(\?-i"),
        ("(?:a", r"\("),
        ("a)b", r"\)"),
        ("[a", r"\["),
        ("[[:alpha:]]", r"\[: in a class"),
        ("[a--b]", "-- in a class"),
        ("(?i:ß)", "'ß' with its case ignored"),
        ("(?i:[ß])", "'ß' with its case ignored"),
        ("(?i:Ss)", "'ss' with its case ignored"),
        ("(?i)first", "'fi' with its case ignored"),
        ("(?i:s+)", "a quantifier of a letter whose case is ignored"),
        (r"(?i:\p{Lu})", r"\\p with its case ignored"),
        (r"(?i:\x{df})", r"\\x\{df\}"),
    ],
)
def test_what_the_engines_do_not_read_alike(pattern: str, problem: str | None) -> None:
    for oniguruma in (False, True):
        found = objection(pattern, oniguruma=oniguruma)
        assert found is None if problem is None else re.match(f"(holds )?{problem}", str(found)), found


def test_what_is_translated_from_one_of_the_two_only() -> None:
    assert objection(r"\w+|[^\w]", oniguruma=False) is None
    assert objection("^a|^b", oniguruma=True) is objection("a^b", oniguruma=False) is None
    assert "holds ^ inside, which" in str(objection(r"\n^", oniguruma=True))
    assert "holds ^ inside, which" in str(objection(r"(?:^a)b", oniguruma=True))
    assert objection("a{2}?", oniguruma=False) is None
    assert EMPTY in str(objection("a{2}?", oniguruma=True))
    assert objection("(?:a{2}|b{1,2})+?c{1,2}?d{2}+", oniguruma=True) is None
    assert objection(r"a\Z", oniguruma=True) is objection("(?m:.)|(?mi:a)", oniguruma=True) is None
    assert "holds \\Z, which" in str(objection(r"a\Z", oniguruma=False))
    assert "holds (?m:..., which" in str(objection("(?m:.)", oniguruma=False))


atoms = st.sampled_from(["a", "b", r"\s", r"\p{L}", "[ab]", "[^a]", ".", "(?=a)", "(?!b)", "$", r"\{"])


patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map("|".join).map("(?:{})".format),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{0,2}", "{1,2}", "*?", "++"])).map("".join),
        inner.map("(?>{})".format),
    ),
    max_leaves=8,
)


@given(patterns, st.text(alphabet="ab \n{1", max_size=8))
def test_a_pattern_that_passes_matches_no_empty_text(pattern: str, text: str) -> None:
    if objection(pattern, oniguruma=False) is None:
        matches = [match.group() for match in regex.finditer(pattern, text, flags=regex.V1)]
        assert all(matches) or not any(matches)  # a look-around alone marks places, in both engines
