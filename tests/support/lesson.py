"""What the tests of the lesson share: the tokenizer classes, the worked examples and texts."""

from typing import TypeAlias

import pytest
from hypothesis import strategies as st

from bpe_tokenizer.reference import (
    CharBPETokenizer,
    NaiveBPETokenizer,
    RegexBPETokenizer,
)

AnyTokenizer: TypeAlias = NaiveBPETokenizer | RegexBPETokenizer | CharBPETokenizer

WORDS = "low lower lowest flow flower"
TABLE = {b"low": 5, b"lower": 2, b"newest": 6, b"widest": 3}
CLASSES = [NaiveBPETokenizer, RegexBPETokenizer, CharBPETokenizer]
# Any str, surrogates included; and text in which pairs repeat.
any_text = st.text(st.characters())
repetitive_text = st.text("ab c", min_size=1, max_size=60)
repetitive_pieces = st.dictionaries(
    st.text("ab", min_size=1, max_size=14).map(str.encode), st.integers(1, 6), min_size=1, max_size=5
)


def pairs(listing: str) -> list[tuple[bytes, bytes]]:
    """Read merges that are written as `e+s es+t`."""
    parts = (merge.encode().split(b"+") for merge in listing.split())
    return [(left, right) for left, right in parts]


every_class = pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
