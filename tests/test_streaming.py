"""Streams: the ids of a text however it is cut, the text of ids however they come."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from itertools import repeat
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bpe_tokenizer import (
    ArgumentTypeError,
    BPETokenizer,
    DecodingError,
    NotTrainedError,
    OptionError,
    SpecialTokenError,
    StreamDecoder,
    UnknownIdError,
    _core,
)
from bpe_tokenizer.model import (
    AddedToken,
    Metaspace,
    Model,
    Normalizer,
    PlainNormalizer,
    PrefixSpace,
    PreTokenizer,
    Replace,
    Split,
    Strip,
)
from bpe_tokenizer.patterns import NAMED_PATTERNS, resolve_split_pattern
from bpe_tokenizer.special_tokens import AllowedSpecial
from hostile import hostile_texts, special_token_texts
from linear import assert_linear
from sampling import sample
from small_tokenizers import BYTES, characters_model, parts

SPECIAL = ["<|a|>", "<|a|><|b|>", "b|>", "<|"]
TEXTS = [text for text in hostile_texts(300) if len(text) < 5000]


def cut(text: str, rng: random.Random) -> list[str]:
    """A text in chunks: single characters, or a few of any length, empty ones too."""
    if rng.random() < 0.2:
        return list(text)
    places = sorted(rng.randrange(len(text) + 1) for _ in range(rng.choice([1, 2, 3, 8, 20])))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def streamed(tokenizer: BPETokenizer, chunks: Iterable[str], allowed: AllowedSpecial = "none") -> list[int]:
    return [token_id for ids in tokenizer.encode_streaming(chunks, allowed) for token_id in ids]


def assert_streams(tokenizer: BPETokenizer, texts: Iterable[str], rng: random.Random) -> None:
    """Same ids in one piece and in many."""
    for text in texts:
        for allowed in ("none", "all"):
            chunks = cut(text, rng)
            assert streamed(tokenizer, chunks, allowed) == tokenizer.encode(text, allowed_special=allowed), (
                chunks
            )


def trained(pattern: str, texts: list[str]) -> BPETokenizer:
    return BPETokenizer(pattern).train([*texts[:2], *TEXTS[::7]], 600, special_tokens=SPECIAL, verbose=False)


# -- encoding -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_every_named_pattern_streams(name: str, stdlib_texts: list[str]) -> None:
    tokenizer, rng = trained(name, stdlib_texts), random.Random(name)
    assert_streams(tokenizer, [*rng.sample(TEXTS, 200), *special_token_texts(SPECIAL)], rng)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_100_000_cuttings_of_hostile_text(name: str, stdlib_texts: list[str]) -> None:
    tokenizer, rng = trained(name, stdlib_texts), random.Random(f"slow {name}")
    for _ in range(100):
        parts = rng.choices([*TEXTS, *SPECIAL, *stdlib_texts[0].splitlines(keepends=True)], k=6)
        text = "".join(part[:80] for part in parts)
        every: tuple[AllowedSpecial, ...] = ("none", "all")
        expected = [(allowed, tokenizer.encode(text, allowed_special=allowed)) for allowed in every]
        for allowed, ids in expected * 500:
            chunks = cut(text, rng)
            assert streamed(tokenizer, chunks, allowed) == ids, chunks


PATTERNS = [
    r"\w+|\W",  # the regex engine agrees
    r"(?=a)\w+|.",
    r"a+b?a+|[^a]",
    r"(\w)\1|.",  # only the regex engine can run this
    r"x",  # nearly nothing matches
    r"\s+$|\s+(?!\S)|\S+|\s",
]


NAMED = [resolve_split_pattern(name)[0] for name in NAMED_PATTERNS]
FORMS: list[Any] = ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"]
NORMALIZERS: list[Normalizer] = [
    *(PlainNormalizer(form) for form in FORMS),
    *(Strip(strip_left=left, strip_right=not left) for left in (True, False)),
    Replace("Replace", "x ", "ab"),
]
SCHEMES: list[Any] = ["always", "first", "never"]
FURTHER: list[PreTokenizer] = [
    *(PrefixSpace(), Split(pattern=r"\p{N}", behavior="MergedWithNext"), Split(pattern=r"\s+(?!\S)|\S+")),
    *(Metaspace(prepend_scheme=each) for each in SCHEMES),
]
CONTENTS = ["<m>", "ab", "a b", " x ", "é", "abc", "e\u0301", "中", "\n", "a" * 300, "x" * 9000]
PARTS = [
    *("<m>", "ab", " ", "  ", "a", "b", "c", "é", "\n", "x", "e\u0301", "\u0301", "中", "가", "\u11a8", "ﬁ"),
    *("A", "İ", "'ll", "12", "\r\n", "🙂", "\u2003"),
]


def any_model(rng: random.Random, contents: list[str]) -> BPETokenizer:
    """Added tokens with flags, normalisers, patterns and further steps."""
    flags = ("special", "single_word", "lstrip", "rstrip", "normalized")
    tokens = [
        AddedToken(content, 300 + index, **{flag: rng.random() < 0.3 for flag in flags})
        for index, content in enumerate(rng.sample(contents, rng.choice([0, 1, 3, 5])))
    ]
    merges = ["a|b", "ab|c", " | ", " |a", "b|a", "\n| ", "a|a", "x| "]
    pairs = parts(merges)
    vocab = BYTES | {256 + rank: left + right for rank, (left, right) in enumerate(pairs)}
    further = [rng.choice(FURTHER)] if rng.random() < 0.3 else []
    core = _core.Model(
        vocab | {token.id: token.content.encode() for token in tokens},
        pairs,
        normalizers=rng.sample(NORMALIZERS, rng.choice([0, 0, 1, 1, 2])),
        pre_tokenizers=[Split(pattern=rng.choice([*PATTERNS, *NAMED])), *further],
        added_tokens=tokens,
    )
    return BPETokenizer.from_model(Model(core))


@pytest.mark.parametrize("seed", range(150))
def test_small_chunks_of_any_model_stream(seed: int) -> None:
    rng = random.Random(seed)
    assert_streams(
        any_model(rng, CONTENTS[:-2]), ["".join(rng.choices(PARTS, k=30)) for _ in range(200)], rng
    )


LARGE = [512, 513, 700, 4_000, 16_384, 70_000]


@pytest.mark.sampled(1.0)
@pytest.mark.parametrize("seed", sample(range(200), 0.025, "large chunks"))
def test_large_chunks_of_any_model_stream(seed: int) -> None:
    rng = random.Random(seed)
    tokenizer, few = any_model(rng, CONTENTS), rng.sample(PARTS, 3)
    runs = (rng.choices(rng.choice([few, PARTS]), k=rng.choice([10, 3000, 20_000])) for _ in range(5))
    text = "".join(part for run in [*runs, [rng.choice(PARTS)] * 9000] for part in run)
    for allowed in ("none", "all"):
        expected = tokenizer.encode(text, allowed_special=allowed)
        for _ in range(3):
            size, chunks, at = rng.choice(LARGE), list[str](), 0
            while at < len(text):
                end = at + rng.choice([size, size, rng.randrange(1, 60), rng.randrange(1, 40_000)])
                chunks.append(text[at:end])
                at = end
            assert streamed(tokenizer, chunks, allowed) == expected, [len(chunk) for chunk in chunks]
            arrays = tokenizer._encode_stream(allowed).encode_numpy(chunks)
            assert [token_id for ids in arrays for token_id in ids.tolist()] == expected, len(chunks)


def metaspace(prepend: Any, split: bool, replaced: bool) -> BPETokenizer:
    """A model in the manner of SentencePiece, whose text is cut only before spaces that no merge joins."""
    steps: dict[str, Any] = {} if replaced else {"normalizers": []}
    core = characters_model(
        *("l", "o", "w", "lo", "low", "▁low", "▁▁", "é"),
        merges=["l|o", "lo|w", "▁|low", "▁|▁", "▁|a", "a|b"],
        pre_tokenizers=[] if replaced else [Metaspace("Metaspace", "▁", prepend, split)],
        fuse_unk=True,
        added_tokens=[AddedToken("<s>", 1), AddedToken("low", 301, special=False, normalized=True)],
        **steps,
    )
    return BPETokenizer.from_model(Model(core))


@pytest.mark.parametrize("replaced", [True, False])
@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("prepend", ["always", "first", "never"])
def test_models_that_do_not_split_stream(prepend: str, split: bool, replaced: bool) -> None:
    rng = random.Random(0)
    tokenizer = metaspace(prepend, split, replaced)
    parts = ["low", " ", "  ", "lo", "w", "ab", "é", "日", "<s>", "▁", "\n", "<unk>", "<0x0A>", "x"]
    assert_streams(tokenizer, ["".join(rng.choices(parts, k=20)) for _ in range(300)], rng)
    assert_decodes(tokenizer, rng)


def test_ids_come_while_the_text_does() -> None:
    """For every named pattern, so that a stream holds no long text."""
    for name in NAMED_PATTERNS:
        tokenizer = BPETokenizer(name).train("a b", 260, verbose=False)
        yielded = list(tokenizer.encode_streaming(["low ab "] * 100))
        assert len(yielded) > 95, name


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=6), max_size=12))
@example(["\ud83d", "\ude00", "a\ud83d"])  # a pair that is cut
def test_any_chunks(tokenizer: BPETokenizer, chunks: list[str]) -> None:
    assert streamed(tokenizer, chunks) == tokenizer.encode("".join(chunks))


def test_chunks_are_texts(tokenizer: BPETokenizer) -> None:
    assert streamed(tokenizer, "one text") == tokenizer.encode("one text")
    assert streamed(tokenizer, []) == streamed(tokenizer, ["", ""]) == []
    with pytest.raises(ArgumentTypeError, match="chunk 1 is bytes"):
        streamed(tokenizer, ["a", b"b"])  # type: ignore[list-item]
    with pytest.raises(SpecialTokenError, match="'<x>'"):
        tokenizer.encode_streaming(["a"], {"<x>"})
    with pytest.raises(NotTrainedError):
        BPETokenizer().encode_streaming(["a"])


def test_streams_of_one_tokenizer_are_apart(tokenizer: BPETokenizer) -> None:
    one, two = tokenizer.encode_streaming(["he", "llo"]), tokenizer.encode_streaming(["wor", "ld"])
    ids = [(next(one), next(two))]
    assert ids == [(tokenizer.encode("hello"), tokenizer.encode("world"))]


def test_a_long_piece_in_short_chunks_takes_linear_time(tokenizer: BPETokenizer) -> None:
    """Each chunk is a character of one piece, which must not be scanned again with every chunk."""
    assert_linear(lambda units: [*tokenizer.encode_streaming(repeat("a", units))], 100_000)


MEMORY = """
import sys
from pathlib import Path
from bpe_tokenizer import BPETokenizer
tokenizer = BPETokenizer.load(sys.argv[1])
text = open(sys.argv[2], encoding="utf-8").read()
def run(millions):
    chunks = (text[:100_000] for _ in range(10 * millions))
    total = sum(len(ids) for ids in tokenizer.encode_streaming(chunks))
    # Not `ru_maxrss`, which begins with the peak of the process that started this one.
    return total, int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
before, small = run(5)
after, large = run(int(sys.argv[3]))
print(after / before, (large - small) / 1024)
"""


def grown(tokenizer: BPETokenizer, directory: str, text: str, millions: int) -> float:
    """MiB by which the memory of a process grows from 5 MB of text to so many."""
    tokenizer.save(directory)
    path = os.path.join(directory, "text.txt")  # noqa: PTH118
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)
    command = [sys.executable, "-c", MEMORY, directory, path, str(millions)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ratio, growth = map(float, output.split())
    assert ratio == pytest.approx(millions / 5, rel=0.01)
    return growth


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the peak")
@pytest.mark.parametrize(
    "millions", [pytest.param(50, id="50 MB"), pytest.param(1000, id="1 GB", marks=pytest.mark.slow)]
)
def test_a_stream_takes_flat_memory(
    millions: int, tokenizer: BPETokenizer, stdlib_texts: list[str], tmp_path: os.PathLike[str]
) -> None:
    text = "".join(stdlib_texts)
    assert len(text) > 100_000
    assert grown(tokenizer, os.fspath(tmp_path), text, millions) < 8


def test_encoding_asynchronously(tokenizer: BPETokenizer, mixed_text: str) -> None:
    async def chunks() -> AsyncIterator[str]:
        for character in mixed_text:
            await asyncio.sleep(0)
            yield character

    async def ids() -> list[int]:
        return [each async for part in tokenizer.encode_streaming_async(chunks()) for each in part]

    assert asyncio.run(ids()) == tokenizer.encode(mixed_text)


# -- decoding -------------------------------------------------------------------------------------------


def assert_decodes(tokenizer: BPETokenizer, rng: random.Random) -> None:
    """Same text from random ids in one row and in many."""
    vocab = list(tokenizer.vocab)
    for _ in range(100):
        ids = rng.choices(vocab, k=30)
        for skip in (False, True):
            for errors in ("replace", "ignore", "backslashreplace"):
                decoder = StreamDecoder(tokenizer, skip, errors)
                text = "".join(decoder.decode(ids)) if rng.random() < 0.5 else ""
                text = text or "".join(decoder.decode(ids[at : at + 4] for at in range(0, 30, 4)))
                assert text == tokenizer.decode(ids, skip, errors)


def test_random_ids_decode(tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer) -> None:
    assert_decodes(tokenizer, random.Random(1))
    assert_decodes(plain_tokenizer, random.Random(2))


@given(st.lists(st.integers(0, 255), max_size=40))
def test_any_bytes_decode(plain_tokenizer: BPETokenizer, data: list[int]) -> None:
    decoder = StreamDecoder(plain_tokenizer)
    steps = [decoder.step(byte) for byte in data]
    assert "".join(steps) + decoder.flush() == bytes(data).decode("utf-8", "replace")


@given(st.text())
def test_a_step_never_holds_a_part_of_a_character(plain_tokenizer: BPETokenizer, text: str) -> None:
    decoder = StreamDecoder(plain_tokenizer)
    steps = [decoder.step(byte) for byte in text.encode()]
    assert "".join(steps) == text  # each character with its last byte
    assert all(len(step) <= 1 for step in steps)
    assert decoder.flush() == ""


def test_a_decoder_can_be_used_again_after_flush(plain_tokenizer: BPETokenizer) -> None:
    decoder = StreamDecoder(plain_tokenizer)
    assert decoder.step([0x61, 0xC3]) + decoder.flush() == "a\ufffd"
    assert decoder.step([0xA9]) + decoder.flush() == "\ufffd"
    spaced = StreamDecoder(metaspace("always", False, False))
    first = [spaced.step(258) + spaced.step(267) + spaced.flush() for _ in range(2)]  # "▁" and "low"
    assert first == ["low", "low"]  # the space before a text is dropped each time


def test_what_cannot_be_decoded(tokenizer: BPETokenizer) -> None:
    decoder = StreamDecoder(tokenizer, errors="strict")
    assert decoder.step([0xC3]) == ""
    with pytest.raises(UnknownIdError, match="1000 at position 1"):
        decoder.step([0xA9, 1000])
    assert decoder.step([0xA9]) == "é"  # nothing was taken
    with pytest.raises(DecodingError):
        decoder.step([0xFF])
    with pytest.raises(OptionError, match="'wrong'"):
        StreamDecoder(tokenizer, errors="wrong")
    with pytest.raises(ArgumentTypeError, match="expected several values, not NoneType"):
        list(StreamDecoder(tokenizer).decode(None))  # type: ignore[arg-type]
    with pytest.raises(NotTrainedError):
        StreamDecoder(BPETokenizer())


def test_a_step_costs_the_same_after_many_tokens(tokenizer: BPETokenizer) -> None:
    ids = tokenizer.encode("some text, some more text; é日🙂" * 20)

    def steps(units: int) -> None:
        decoder = StreamDecoder(tokenizer)
        for _ in range(units):
            for token_id in ids:
                decoder.step(token_id)

    assert_linear(steps, 50_000 // len(ids))


def test_decoding_asynchronously(tokenizer: BPETokenizer, mixed_text: str) -> None:
    async def ids() -> AsyncIterator[int]:
        for token_id in tokenizer.encode(mixed_text):
            yield token_id

    async def text() -> str:
        return "".join([part async for part in StreamDecoder(tokenizer).decode_async(ids())])

    assert asyncio.run(text()) == tokenizer.decode(tokenizer.encode(mixed_text))
