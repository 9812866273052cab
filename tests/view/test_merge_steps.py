"""The steps of a piece in the page against merging by hand: symbols, possible merges and their ranks."""

from __future__ import annotations

import base64
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.view.packed import pack
from node_scripts import needs_node, page_modules, run_node
from page_core import needs_core

pytestmark = [needs_node, needs_core]

TEXT = (
    "the cat sat on the mat, \u05e9\u05dc\u05d5\u05dd aaaa aaaaa babab \u20ac\u20ac \U0001f600 "
    "\U0001f600 internationalisation " * 3
)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the page's modules that node loads as ES modules."""
    names = ("core.js", "core.wasm", "ascending.js", "merge_steps.js")
    return page_modules(tmp_path_factory.mktemp("page"), *names)


def page_states(modules: Path, tokenizer: BPETokenizer, pieces: list[bytes]) -> list[dict[str, Any]]:
    """Return the states that the page shows for each piece."""
    data = {
        "directory": str(modules),
        "model": base64.b64encode(pack(tokenizer)).decode(),
        "pieces": [piece.hex() for piece in pieces],
    }
    script = Path(__file__).with_name("merge_steps_check.mjs")
    answers: list[dict[str, Any]] = run_node(script, data)
    return answers


def states_by_hand(piece: bytes, ranks: dict[tuple[bytes, bytes], int]) -> list[dict[str, Any]]:
    """Merge a piece as the definition says, and list all states."""
    symbols = [bytes([byte]) for byte in piece]
    states = []
    while True:
        found = {pair: ranks[pair] for pair in pairwise(symbols) if pair in ranks}
        candidates = sorted(found.items(), key=lambda entry: entry[1])
        states.append(
            {
                "symbols": [symbol.hex() for symbol in symbols],
                "candidates": [[left.hex(), right.hex(), rank] for (left, right), rank in candidates],
            }
        )
        if not candidates:
            return states
        best = candidates[0][0]
        at = next(index for index, pair in enumerate(pairwise(symbols)) if pair == best)
        symbols[at : at + 2] = [best[0] + best[1]]


def check(modules: Path, tokenizer: BPETokenizer, pieces: list[bytes]) -> int:
    ranks = {pair: rank for rank, pair in enumerate(tokenizer.merges)}
    answers = page_states(modules, tokenizer, pieces)
    for piece, answer in zip(pieces, answers, strict=True):
        assert answer["isExact"]
        assert answer["states"] == states_by_hand(piece, ranks)
    return sum(len(answer["states"]) for answer in answers)


def test_symbols_and_possible_merges_of_every_step(modules: Path) -> None:
    tokenizer = BPETokenizer("cl100k", None).train(TEXT, 420, verbose=False)
    random_ = random.Random(19)
    pieces = [
        b"",
        b"a",
        b" internationalisation",
        "\u05e9\u05dc\u05d5\u05dd".encode(),
        b"aaaaaaaaa",
        bytes(range(256)),
    ]
    for _ in range(400):
        words = random_.choices([*TEXT.split(), "\0", "zq", "\xff"], k=random_.randint(1, 4))
        pieces.append("".join(words).encode()[random_.randint(0, 3) :])
    assert check(modules, tokenizer, pieces) > 3000


@pytest.mark.fixtures
@pytest.mark.parametrize("name", ["cl100k_base", "r50k_base"])
def test_published_vocabularies(modules: Path, name: str, shared: Path) -> None:
    path = shared / "vocab" / f"{name}.tiktoken"
    tokenizer = BPETokenizer.load(path)
    words = (TEXT + "Donaudampfschifffahrtsgesellschaft  \u4eca\u65e5\u306f supercalifragilistic").split(" ")
    pieces = [(" " + word).encode() for word in dict.fromkeys(words)]
    assert check(modules, tokenizer, pieces) > 100
