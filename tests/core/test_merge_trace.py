"""`Encoder.trace_merges`: each step is the lowest possible rank, and of equal ranks the leftmost pair."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer import _core


def random_model(seed: int, **options: Any) -> _core.Model:
    """Make a model whose merges join random tokens of a few letters."""
    chance = random.Random(seed)
    symbols = [letter.encode() for letter in "abcé"]
    if options["alphabet"] == "bytes":
        symbols = sorted({bytes([byte]) for symbol in symbols for byte in symbol})
    tokens, merges = list(symbols), []
    for _ in range(30):
        pair = chance.choice(tokens), chance.choice(tokens)
        if len(b"".join(pair)) < 9 and b"".join(pair) not in tokens:
            merges.append(pair)
            tokens.append(b"".join(pair))
    if options.get("byte_fallback"):
        tokens += [b"<0x%02X>" % byte for byte in range(256)]
    if options.pop("has_unk", False):
        tokens.append(b"<unk>")
        options["unk_id"] = len(tokens) - 1
    return _core.Model(dict(enumerate(tokens)), merges, requires_all_bytes=False, **options)


def merge_naively(core: _core.Model, symbols: list[int | None]) -> tuple[list[tuple[int, ...]], list[int]]:
    """Return the steps (rank, left, right, id) and the ids of merging symbols, by scanning for each step."""
    ids = {token: token_id for token_id, token in core.vocab.items()}
    pairs: list[tuple[int | None, int | None]] = [(ids[left], ids[right]) for left, right in core.merges]
    products = [ids[left + right] for left, right in core.merges]
    row = list(enumerate(symbols))
    steps: list[tuple[int, ...]] = []
    while True:
        possible = [
            (pairs.index((left, right)), index)
            for index, ((_, left), (_, right)) in enumerate(itertools.pairwise(row))
            if (left, right) in pairs
        ]
        if not possible:
            return steps, [each for _, each in row if each is not None]
        rank, index = min(possible)
        steps.append((rank, row[index][0], row[index + 1][0], products[rank]))
        row[index : index + 2] = [(row[index][0], products[rank])]


@pytest.mark.parametrize(
    "options",
    [
        {"alphabet": "bytes"},
        {"alphabet": "bytes", "ignore_merges": True},
        {"alphabet": "bytes", "keeps_gaps": True},
        {"alphabet": "bytes", "has_unk": True, "fuse_unk": True},
        {"alphabet": "characters"},
        {"alphabet": "characters", "has_unk": True},
        {"alphabet": "characters", "has_unk": True, "fuse_unk": True},
        {"alphabet": "characters", "byte_fallback": True},
        {"alphabet": "characters", "byte_fallback": True, "has_unk": True, "ignore_merges": True},
    ],
    ids=lambda options: "-".join(map(str, options)),
)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32), text=st.text("aaabbbcccéx🙂", max_size=90))
def test_steps_are_those_of_naive_merging(options: dict[str, Any], seed: int, text: str) -> None:
    core = random_model(seed, **options)
    trace = _core.Encoder(core).trace_merges(text.encode())
    steps, ids = merge_naively(core, trace.symbols)
    assert [(step.rank, step.left, step.right, step.token_id) for step in trace.steps] == steps
    assert trace.ids == _core.Encoder(core).encode(text)
    assert trace.is_whole or trace.ids == ids


@pytest.mark.parametrize(("ignore_merges", "ids"), [(True, [5]), (False, [0, 4])], ids=["whole", "merged"])
def test_a_piece_that_is_a_token_skips_merging_with_ignore_merges(
    ignore_merges: bool, ids: list[int]
) -> None:
    vocab = {0: b"a", 1: b"b", 2: b"c", 3: b"ab", 4: b"bc", 5: b"abc"}
    merges = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]
    core = _core.Model(vocab, merges, requires_all_bytes=False, ignore_merges=ignore_merges)
    trace = _core.Encoder(core).trace_merges(b"abc")
    assert trace.ids == _core.Encoder(core).encode("abc") == ids
    assert (trace.is_whole, [step.rank for step in trace.steps]) == (ignore_merges, [0])
