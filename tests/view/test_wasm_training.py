"""The page's core learns the merges and encodes the chats that the package does."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hf_files
from bpe_tokenizer import AddedToken, BPETokenizer
from bpe_tokenizer.formats import huggingface
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hostile import hostile_texts
from small_tokenizers import relaxed, tiny
from view.test_wasm import MERGES, assert_info, assert_same, packed
from wasm_core import WASM, WasmCore, WasmError, WasmTokenizer

pytestmark = pytest.mark.skipif(not WASM.exists(), reason="core.wasm is missing: make wasm builds it")


@pytest.mark.sampled(0.33)
@pytest.mark.parametrize("name", ["gpt2", "cl100k", "o200k"])
@pytest.mark.parametrize("special", [{}, {"<|eos|>": 256, "<|far|>": 5000}])
def test_training_gives_the_same(
    core: WasmCore, stdlib_texts: list[str], mixed_text: str, name: str, special: dict[str, int]
) -> None:
    text = "<|eos|>".join([*stdlib_texts[:3], mixed_text])
    pattern = NAMED_PATTERNS[name].patterns[0]
    ours = BPETokenizer(pattern, normalization=None)
    ours = ours.train(text, vocab_size=800, special_tokens=special, verbose=False)
    theirs = core.train(text, vocabSize=800, pattern=pattern, specialTokens=special)
    vocab = ours.vocab
    merges = [(vocab[left], vocab[right]) for left, right, _, _ in theirs.merges]
    assert merges == ours.merges
    assert [vocab[token_id] for *_, token_id, _ in theirs.merges] == [left + right for left, right in merges]
    assert_info(theirs, ours)
    assert_same(theirs, ours, [text[:2000], *hostile_texts(mixtures=20)[::4]])


def test_training_tells_the_pieces_and_counts(core: WasmCore) -> None:
    theirs = core.train("low low lower lowest low", vocabSize=300, pattern=r" ?\p{L}+")
    assert theirs.pieces == [(b" low", 2), (b" lower", 1), (b" lowest", 1), (b"low", 1)]
    vocab = theirs.tokens(list(range(theirs.info["vocabSize"])))
    counts = [(vocab[left], vocab[right], count) for left, right, _, count in theirs.merges]
    assert counts == [(b"o", b"w", 5), (b"l", b"ow", 5), (b" ", b"low", 4), (b" low", b"e", 2)]
    assert counts == pair_counts(theirs.pieces, len(counts))


def pair_counts(pieces: list[tuple[bytes, int]], steps: int) -> list[tuple[bytes, bytes, int]]:
    """What training does, in few lines."""
    words = [([bytes([byte]) for byte in piece], count) for piece, count in pieces]
    found = []
    for _ in range(steps):
        counts: dict[tuple[bytes, bytes], int] = {}
        for symbols, count in words:
            for pair in pairwise(symbols):
                counts[pair] = counts.get(pair, 0) + count
        left, right = max(counts, key=lambda pair: (counts[pair], pair))
        found.append((left, right, counts[left, right]))
        for symbols, _ in words:
            for at in range(len(symbols) - 2, -1, -1):
                if symbols[at : at + 2] == [left, right]:
                    symbols[at : at + 2] = [left + right]
    return found


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabSize": 256}, "the vocabulary size is 256; use 257 to 200000"),
        ({"vocabSize": 10**6}, "use 257 to 200000"),
        ({"pattern": "("}, "split pattern, character"),
        ({"specialTokens": {"a": 255}}, "use 256 or more"),
        ({"specialTokens": {"a": 256, "b": 256}}, "same id"),
        ({"specialTokens": {"": 256}}, "empty"),
        ({"text": ""}, "no text to train on"),
        ({"text": "ab " * 7_000_000}, "trains on 20000000 at most"),
    ],
)
def test_training_refuses(core: WasmCore, options: dict[str, Any], message: str) -> None:
    options = {"text": "a b c", "vocabSize": 300, "pattern": r"\w+|\W+", **options}
    with pytest.raises(WasmError, match=message):
        core.train(options.pop("text"), **options)


# -- chats


def chat_tokenizers() -> list[BPETokenizer]:
    added = [
        AddedToken("<|bos|>", 300),
        AddedToken("<|eos|>", 257),
        AddedToken("<tool>", 302, special=False),
        AddedToken("  ", 303, special=False),
        AddedToken("<strip>", 304, lstrip=True, rstrip=True),
    ]
    lower = hf_files.good() | {"normalizer": {"type": "Lowercase"}}
    models = [hf_files.small_model(*added), huggingface.loads(json.dumps(lower))]
    return [*map(BPETokenizer.from_model, models), tiny(*MERGES, special_tokens={"the": 257, "<|eos|>": 300})]


PARTS = (
    "<|bos|>",
    "<|eos|>",
    "<tool>",
    "<TOOL>",
    "<strip>",
    "<eos>",
    "the",
    " the",
    "  ",
    " ",
    "a",
    "é",
    "<",
)
segment_texts = st.lists(st.sampled_from([*PARTS, "日", ""]), max_size=5).map("".join)


@pytest.fixture(scope="module")
def chats(core: WasmCore) -> list[tuple[WasmTokenizer, BPETokenizer]]:
    return [(packed(core, ours), ours) for ours in chat_tokenizers()]


@relaxed
@given(segments=st.lists(st.tuples(segment_texts, st.booleans()), max_size=6))
def test_contents_never_become_control_tokens(
    chats: list[tuple[WasmTokenizer, BPETokenizer]], segments: list[tuple[str, bool]]
) -> None:
    for theirs, ours in chats:
        encoder = ours._compiled().encoder
        markup = encoder.markup_tokens(segments, lambda _: False)
        ids, covered = encoder.encode_segments(segments, True, markup)
        found, places = theirs.encode_segments(segments)
        assert found.ids.tolist() == ids, segments
        assert places == [first for first, _ in covered], segments


def test_segments_must_fit(core: WasmCore) -> None:
    theirs = packed(core, tiny())
    with pytest.raises(WasmError, match="inside a character"):
        theirs._call(
            "encode_segments",
            theirs._write(0, b'{"segments":[[1,true]],"source":"","added":[]}'),
            theirs._write(1, "é".encode()),
        )
