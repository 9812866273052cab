"""The work of a stream grows with its text, however long the text is that it must hold back."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, StreamDecoder, _core
from bpe_tokenizer.model import (
    AddedToken,
    Metaspace,
    Model,
    PlainNormalizer,
    PrefixSpace,
    Replace,
    Split,
    Strip,
)
from linear import assert_linear
from small_tokenizers import BYTES, characters_model

GPT2 = Split("Split", r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
MARKS = "\u0301\u0323\u0345\u0327"


def model(
    normalizers: Sequence[Any] = (), pre_tokenizers: Sequence[Any] = (GPT2,), added: Sequence[AddedToken] = ()
) -> BPETokenizer:
    steps: dict[str, Any] = {"normalizers": list(normalizers), "pre_tokenizers": list(pre_tokenizers)}
    tokens = BYTES | {token.id: token.content.encode() for token in added}
    return BPETokenizer.from_model(Model(_core.Model(tokens, [], added_tokens=list(added), **steps)))


def of_characters(*pre_tokenizers: Any) -> BPETokenizer:
    settings: dict[str, Any] = {"normalizers": [], "pre_tokenizers": list(pre_tokenizers), "added_tokens": []}
    return BPETokenizer.from_model(Model(characters_model("▁▁", "é", merges=["▁|▁", "▁|a"], **settings)))


def added(content: str, **flags: bool) -> list[AddedToken]:
    return [AddedToken(content, 256, special=False, **flags)]


FORMS = [PlainNormalizer(form) for form in ("NFC", "NFD", "NFKC", "NFKD")]
ENCODED: dict[str, tuple[Callable[[], BPETokenizer], str]] = {
    **{f"marks {form.type}": (lambda form=form: model([form]), MARKS) for form in FORMS},  # type: ignore[misc]
    **{f"vowels {form.type}": (lambda form=form: model([form]), "\u1161") for form in FORMS},  # type: ignore[misc]
    "marks of two forms": (lambda: model([FORMS[1], PlainNormalizer("Lowercase"), FORMS[0]]), MARKS),
    "spaces of Strip": (lambda: model([Strip()]), "a" + " " * 10_000_000),
    "a match of Replace": (lambda: model([Replace("Replace", "x+y?|a", "-")]), "x"),
    "letters": (model, "a"),
    "digits": (model, "1"),
    "spaces": (model, " "),
    "marks": (model, MARKS),
    "prefixed": (lambda: model((), [PrefixSpace(), GPT2]), "a"),
    "two splits": (lambda: model((), [Split("Split", r"\d+|\s+|a+b?"), GPT2]), "a"),
    "gaps": (lambda: model((), [Split("Split", "x"), Split("Split", "y")]), "a"),
    "matches that join": (lambda: model((), [Split("Split", "a", "Contiguous")]), "a"),
    "a split of bytes": (lambda: model((), [Split("SplitBytes", "a+")]), "a"),
    "no split": (lambda: model((), []), "a"),
    "space after a token": (lambda: model((), [GPT2], added("<m>", rstrip=True)), "<m>" + " " * 10_000_000),
    "space before a token": (lambda: model((), [GPT2], added("<m>", lstrip=True)), " "),
    "a long token": (lambda: model((), [GPT2], added("a" * 4_000 + "b")), "a"),
    "a normalised token": (
        lambda: model([FORMS[0]], [GPT2], added("<m>", rstrip=True, normalized=True)),
        "<m>" + " " * 10_000_000,
    ),
    "spaces that merge": (lambda: of_characters(Metaspace("Metaspace", "▁", "always", False)), " "),
    "a word without an end": (lambda: of_characters(Metaspace("Metaspace", "▁", "first", False)), "é"),
    "a word after a space": (lambda: of_characters(Metaspace("Metaspace", "▁", "always", True)), "a"),
}


@pytest.mark.sampled(0.16)
@pytest.mark.parametrize("name", ENCODED)
def test_encoding_a_held_text_takes_linear_time(name: str) -> None:
    make, unit = ENCODED[name]
    tokenizer = make()

    def encode(units: int) -> None:
        chunks = itertools.islice(itertools.cycle(unit), units)
        assert sum(map(len, tokenizer.encode_streaming(chunks))) > 0

    assert_linear(encode, 40_000)


@pytest.mark.sampled(0.16)
@pytest.mark.parametrize("name", ENCODED)
def test_a_held_text_has_the_ids_of_the_whole(name: str) -> None:
    make, unit = ENCODED[name]
    tokenizer = make()
    for length in (1, 63, 600, 5_000):
        held = "".join(itertools.islice(itertools.cycle(unit), length))
        for text in (held, held + "a b", f"e{held}\u0323 x{held}"):
            for size in (1, 7, 1_000):
                chunks = (text[at : at + size] for at in range(0, len(text), size))
                ids = [token_id for part in tokenizer.encode_streaming(chunks) for token_id in part]
                assert ids == tokenizer.encode(text), (length, size)


@pytest.mark.sampled(0.16)
@pytest.mark.parametrize("row", [[0x80], [0xF0], [0xF0, 0x9F], [0xE2, 0x96], [0xC3]])
@pytest.mark.parametrize("characters", [False, True])
def test_decoding_incomplete_characters_takes_linear_time(row: list[int], characters: bool) -> None:
    tokenizer = of_characters() if characters else model()
    ids = [byte + 2 for byte in row] if characters else row

    def decode(units: int) -> None:
        decoder = StreamDecoder(tokenizer)
        text = "".join(decoder.decode(itertools.islice(itertools.cycle(ids), units)))
        assert text.count("\ufffd") > units // 2 - 1

    assert_linear(decode, 40_000)
