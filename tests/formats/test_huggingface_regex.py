"""Regular expressions of a tokenizer.json."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import _core
from bpe_tokenizer.formats.huggingface.regex import objection
from bpe_tokenizer.patterns import NAMED_PATTERNS


@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_named_patterns_can_be_carried_over(name: str) -> None:
    for pattern in NAMED_PATTERNS[name].patterns:
        assert objection(pattern, oniguruma=False) is None
        assert objection(_core.SplitPattern(pattern).to_oniguruma(), oniguruma=True) is None


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
