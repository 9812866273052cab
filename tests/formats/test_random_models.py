"""Small random models, saved and loaded in each format: the same ids, or an error that says why not."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Literal

import pytest

from bpe_tokenizer import AddedToken, BPETokenizer, FormatError, Model, _core
from bpe_tokenizer.errors import ModelError
from bpe_tokenizer.formats import registry

CHARACTERS = ["a", "b", "é", "▁", "1"]
TOKENS = ["a", "c", "ab", "ba", "é", "<s>", "<0x41>", "Ġ", "日", "x1"]


def random_model(rng: random.Random) -> Model | None:
    """A model of characters or of some bytes, with merges, added tokens and holes in the ids."""
    alphabet: Literal["bytes", "characters"] = rng.choice(("bytes", "characters"))
    letters = rng.sample(CHARACTERS, rng.randint(1, 5))
    if alphabet == "bytes":
        letters = [letter for letter in letters if letter.isascii()] or ["b"]
    tokens = [letter.encode() for letter in letters]
    merges: list[tuple[bytes, bytes]] = []
    for _ in range(rng.randint(0, 3)):
        pair = rng.choice(tokens), rng.choice(tokens)
        if b"".join(pair) not in tokens:
            merges.append(pair)
            tokens.append(b"".join(pair))
    first = rng.choice([0, 0, 2])
    vocab = {first + index: token for index, token in enumerate(tokens)}
    free = first + len(tokens) + rng.choice([0, 0, 0, 3])
    added = [
        AddedToken(content, free + index, *(rng.random() < 0.3 for _ in range(5)))
        for index, content in enumerate(rng.sample(TOKENS, rng.randint(0, 3)))
    ]
    with contextlib.suppress(ModelError):
        return Model(
            _core.Model(
                vocab,
                merges,
                added_tokens=added,
                alphabet=alphabet,
                requires_all_bytes=False,
                ignore_merges=rng.random() < 0.3,
                split_patterns=rng.choice([[], [r"\d|[a-z]"]]),
            )
        )
    return None


@pytest.mark.parametrize("name", ["huggingface", "base64-json", "gguf", "gpt2"])
def test_a_saved_model_gives_the_same_ids(name: str, tmp_path: Path) -> None:
    rng = random.Random(41)
    saved = 0
    for _ in range(150):
        model = random_model(rng)
        if model is None:
            continue
        try:
            registry.save(model, tmp_path / name, name)
        except FormatError:
            continue
        saved += 1
        ours, again = (
            BPETokenizer.from_model(model),
            BPETokenizer.from_model(registry.load(tmp_path / name, name)),
        )
        for _ in range(12):
            text = "".join(rng.choices([*CHARACTERS, *TOKENS, " "], k=rng.randint(1, 6)))
            for allowed in ("none", "all"):
                ids = ours.encode(text, allowed_special=allowed)
                assert again.encode(text, allowed_special=allowed) == ids, (text, model.core)
                assert again.decode(ids) == ours.decode(ids)
    assert saved > 10 or name in ("gguf", "gpt2")  # they hold models of all bytes only
