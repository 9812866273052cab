"""What the tests of the lesson share: the tokenizer classes, the worked examples and texts."""

from typing import Any, TypeAlias, TypeVar

import pytest
from hypothesis import strategies as st

from bpe_tokenizer.reference import CharBPETokenizer, NaiveBPETokenizer, RegexBPETokenizer

AnyTokenizer: TypeAlias = NaiveBPETokenizer | RegexBPETokenizer | CharBPETokenizer

Kind = TypeVar("Kind", bound=NaiveBPETokenizer)

WORDS = "low lower lowest flow flower"
TABLE = {b"low": 5, b"lower": 2, b"newest": 6, b"widest": 3}
CLASSES = [NaiveBPETokenizer, RegexBPETokenizer, CharBPETokenizer]
# Any str, surrogates included; and text in which pairs repeat.
any_text = st.text(st.characters())
repetitive_text = st.text("ab c", min_size=1, max_size=60)
repetitive_pieces = st.dictionaries(
    st.text("ab", min_size=1, max_size=14).map(str.encode), st.integers(1, 6), min_size=1, max_size=5
)


def merges_of(tokenizer: NaiveBPETokenizer) -> list[tuple[Any, Any]]:
    """Return the merges of a tokenizer as pairs of tokens."""
    return [(tokenizer.vocab[left], tokenizer.vocab[right]) for left, right in tokenizer.merges]


def trained_on(kind: type[Kind], text: str, vocab_size: int, special: dict[str, int] | None = None) -> Kind:
    """Train any of the tokenizers, with these special tokens and ids."""
    tokenizer = kind()
    if isinstance(tokenizer, CharBPETokenizer):
        tokenizer.train(text, vocab_size, allowed_special=[])
        tokenizer.register_special_tokens(special or {})
        return tokenizer
    tokenizer.register_special_tokens(special or {})
    return tokenizer.train(text, vocab_size)


def pairs(listing: str) -> list[tuple[bytes, bytes]]:
    """Read merges that are written as `e+s es+t`."""
    parts = (merge.encode().split(b"+") for merge in listing.split())
    return [(left, right) for left, right in parts]


every_class = pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
