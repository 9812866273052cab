"""What the formats of byte-level BPE refuse, by name."""

from __future__ import annotations

from typing import Any

import pytest

from bpe_tokenizer import AddedToken, FormatError, Model, _core
from bpe_tokenizer.formats.capabilities import require_byte_level, require_mergeable, unmergeable_token
from bpe_tokenizer.model import Metaspace, PlainNormalizer, Split, Strip

BYTES = {byte: bytes([byte]) for byte in range(256)}


def core(**settings: Any) -> _core.Model:
    return _core.Model(BYTES, [], **settings)


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (_core.Model({0: b"a"}, [], alphabet="characters"), "alphabet: X holds tokens of bytes"),
        (_core.Model({0: b"a"}, [], requires_all_bytes=False), "vocab: X needs a token for each of"),
        (
            core(pre_tokenizers=[Metaspace(), Split(pattern=" ", behavior="Removed")]),
            "pre_tokenizers: X cuts at the matches of a pattern only, not with Metaspace, Split",
        ),
        (
            core(normalizers=[PlainNormalizer("Lowercase"), Strip()]),
            "normalizers: X cannot hold Lowercase, Strip",
        ),
        (core(normalization="NFC"), "normalization: X cannot hold 'NFC'; .* --normalization none"),
        (core(add_prefix_space=True), "add_prefix_space: X cannot hold it"),
    ],
)
def test_what_a_format_cannot_hold_is_named(refused: _core.Model, message: str) -> None:
    for require in (require_byte_level, require_mergeable):
        with pytest.raises(FormatError, match=message):
            require(Model(refused), "X")


def test_what_a_format_can_hold_passes() -> None:
    model = core(normalization="NFC", add_prefix_space=True, split_patterns=[r"\s"])
    for require in (require_byte_level, require_mergeable):
        assert require(Model(model), "X", normalization=True, prefix_space=True) is model
    unmade = _core.Model(BYTES | {256: b"abc"}, [])  # merging never makes the token, there as here
    assert require_mergeable(Model(unmade), "X") is unmade
    ranks = _core.Model(BYTES | {256: b"abc"}, None)
    assert require_byte_level(Model(ranks), "X") is ranks
    with pytest.raises(
        FormatError, match=r"ignore_merges: X cannot hold it; .* never makes the token b'abc' \(id 256\)$"
    ):
        require_mergeable(Model(ranks), "X")


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
    model = _core.Model(BYTES | vocab, merges, added_tokens=added, split_patterns=["b"])
    assert unmergeable_token(model) == expected
