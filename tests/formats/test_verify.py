"""What `differences` sees, by which all conversions are judged, and the texts that it compares."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from bpe_tokenizer import AddedToken, Model, PostProcessor, _core
from bpe_tokenizer.formats.sample import SAMPLE, sample_texts
from bpe_tokenizer.formats.verify import differences
from bpe_tokenizer.model import Decoder, Metaspace, PlainNormalizer

VOCAB = {byte: bytes([byte]) for byte in range(256)} | {256: b"ab", 257: b"<s>"}
LOWERCASE = [PlainNormalizer("Lowercase")]
NORMALIZED = [AddedToken("<s>", 257, normalized=True)]


def core(
    vocab: Mapping[int, bytes] = VOCAB,
    merges: Sequence[tuple[bytes, bytes]] = ((b"a", b"b"),),
    **changes: Any,
) -> _core.Model:
    settings: dict[str, Any] = {
        "added_tokens": [AddedToken("<s>", 257)],
        "split_patterns": ["[a-z]+|[^a-z]+"],
    }
    if "pre_tokenizers" in changes:
        del settings["split_patterns"]
    return _core.Model(vocab, merges, **(settings | changes))


def spaced(scheme: Any) -> _core.Model:
    return core(pre_tokenizers=[Metaspace(replacement="▁", prepend_scheme=scheme, split=True)])


def marked(*merges: tuple[bytes, bytes]) -> _core.Model:
    """`<|>` is an added token, and the merges of its text."""
    tokens = VOCAB | {258: b"<|", 259: b"|>", 260: b"<|>"}
    return core(tokens, merges, added_tokens=[AddedToken("<s>", 257), AddedToken("<|>", 260)])


def characters(**changes: Any) -> _core.Model:
    tokens = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "▁a"]
    settings: dict[str, Any] = {"alphabet": "characters", "byte_fallback": True, "unk_id": 0}
    return _core.Model(
        {token_id: token.encode() for token_id, token in enumerate(tokens)},
        [("▁".encode(), b"a")],
        **(settings | {"decoder": Decoder("▁", True)} | changes),
    )


STRIPPING, FOUND_IN_BOTH = [AddedToken("<s>", 257, lstrip=True)], "normalized=False) and is "
GONE = {
    "added_tokens": "'<s>' was an added token, and is not any more",
    "bos_token": "was '<s>' and is None",
    "post_processor": "were ((257,), ()) and are ((), ())",
    "ids": "'<s>' was [257] and is [60, 115, 62]",
}
COME = {
    "added_tokens": "'<s>' is an added token, and was not",
    "bos_token": "was None and is '<s>'",
    "post_processor": "were ((), ()) and are ((257,), ())",
    "ids": "'<s>' was [60, 115, 62] and is [257]",
}
STRIPS = {"added_tokens": "'<s>' was AddedToken(", "ids": "' <s> ' was [32, 257, 32] and is [257, 32]"}
LOWERED = {"added_tokens": FOUND_IN_BOTH, "ids": "'<S>' was [60, 115, 62] and is [257]"}
NORMALIZES = "; normalizers was [] and is [PlainNormalizer(type='Lowercase')]"
MORE = VOCAB | {300: b"x1", 258: b"x"}
AROUND = "the ids before and after a text"
LEFT, RIGHT = (b"<", b"|"), (b"|", b">")


@pytest.mark.parametrize(
    ("original", "copy", "expected"),
    [
        # Different ids of a different vocabulary say nothing new.
        (core(), core(VOCAB | {256: b"ba"}, [(b"b", b"a")]), {"vocab": "the id 256 was b'ab' and is b'ba'"}),
        (core(), core(MORE), {"vocab": "the id 258 was missing and is b'x'"}),
        (core(MORE), core(), {"vocab": "the id 258 was b'x' and is missing"}),
        (core(), core(added_tokens=[]), GONE),
        (core(added_tokens=[]), core(), COME),
        (core(), core(added_tokens=STRIPPING), STRIPS),
        # Without a normaliser, it makes no difference whether an added token is found in normalised text.
        (core(), core(added_tokens=NORMALIZED), {}),
        (core(normalizers=LOWERCASE), core(normalizers=LOWERCASE, added_tokens=NORMALIZED), LOWERED),
        (
            core(),
            core(normalizers=LOWERCASE, added_tokens=NORMALIZED),
            {"added_tokens": FOUND_IN_BOTH, "ids": NORMALIZES},
        ),
        (core(), core(merges=[]), {"ids": "; the merges differ"}),
        # Seen only where special tokens are found, and only where they are text.
        (spaced("first"), spaced("always"), {"ids": "'a<s>b' was "}),
        (
            marked(LEFT, RIGHT),
            marked(RIGHT, LEFT),
            {"ids": "'<|>' was [258, 62] and is [60, 259]; the merges differ"},
        ),
        (characters(), characters(decoder=None), {"decoding": "[34] was b' ' and is b'<0x20>'"}),
        (characters(), characters(fuse_unk=True), {}),
    ],
)
def test_each_difference_is_found(original: _core.Model, copy: _core.Model, expected: dict[str, str]) -> None:
    found = dict(differences(Model(original), Model(copy)))
    assert found.keys() == expected.keys()
    for field, message in expected.items():
        assert message in found[field]
    assert dict(differences(Model(copy), Model(original))).keys() == expected.keys()
    assert differences(Model(original), Model(original)) == []


@pytest.mark.parametrize(
    ("roles", "around", "expected"),
    [
        ({"bos": ""}, PostProcessor(), {"bos_token": "was '<s>' and is None"}),
        ({"pad": "<s>"}, PostProcessor(), {"pad_token": "was None and is '<s>'"}),
        (
            {},
            PostProcessor((257,), (257,)),
            {"post_processor": f"{AROUND} were ((), ()) and are ((257,), (257,))"},
        ),
    ],
)
def test_what_is_no_part_of_the_core_is_compared(
    roles: dict[str, str], around: PostProcessor, expected: dict[str, str]
) -> None:
    plain = Model(core(), {}, PostProcessor())
    assert dict(differences(plain, Model(core(), roles, around))) == expected


# -- the sample -----------------------------------------------------------------------------------------


def test_the_sample_holds_characters_of_every_block_alone_and_between_others() -> None:
    texts = sample_texts()
    alone = {ord(text) for text in texts[len(SAMPLE) :] if len(text) == 1}
    assert alone >= set(range(0x100))
    places = [*sorted(alone), 0x20000]
    gaps = [(before, after) for before, after in itertools.pairwise(places) if after - before > 0x100]
    assert gaps == [(0xD780, 0xE000)]  # the surrogates
    assert {unicodedata.category(chr(place)) for place in alone} >= {"Lu", "Ll", "Lo", "Mn", "Nd", "Zs", "So"}
