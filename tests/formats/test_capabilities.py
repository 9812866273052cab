"""Which tokens merging does not make: formats whose readers only merge refuse them."""

from __future__ import annotations

import pytest

from bpe_tokenizer import AddedToken, _core
from bpe_tokenizer.formats.capabilities import unmergeable_token


@pytest.mark.parametrize(
    ("vocab", "added", "expected"),
    [
        ({256: b"ab", 257: b"abc"}, [], None),
        ({256: b"ab", 257: b"bcd"}, [], (257, b"bcd")),
        # Two ids with the same bytes: encoding gives the lower one.
        ({256: b"ab", 257: b"ab"}, [], None),
        ({256: b"ab", 257: b""}, [], None),
        ({256: b"ab", 257: b"<s>"}, [AddedToken("<s>", 257)], None),
        ({256: b"ab"}, [AddedToken("<s>", 300)], None),
    ],
)
def test_tokens_that_merging_does_not_make(
    vocab: dict[int, bytes], added: list[AddedToken], expected: tuple[int, bytes] | None
) -> None:
    merges = [(b"a", b"b"), *([(b"ab", b"c")] if b"abc" in vocab.values() else [])]
    tokens = {byte: bytes([byte]) for byte in range(256)} | vocab
    model = _core.Model(tokens, merges, added_tokens=added, split_patterns=["b"])
    assert unmergeable_token(model) == expected
