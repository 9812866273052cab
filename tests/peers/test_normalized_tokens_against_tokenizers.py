"""Random added tokens under random normalisers: ids, spans and texts as in `tokenizers`, or a refusal."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, FormatError
from hf_files import BYTE_LEVEL, bytes_vocab, sequence, split, tokenizer_json, write

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")

from peers.hf_kinds import FALLBACK, FUSE, STRIP_ONE, TO_META, TO_SPACE, metaspace, of_characters, steps  # noqa: E402
from peers.hf_parts import prepend, replace, strip  # noqa: E402
from peers.hf_vocabularies import characters  # noqa: E402

pytestmark = pytest.mark.peer

NORMALIZERS = [
    *({"type": kind} for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents")),
    *(strip(left, right) for left, right in ((True, True), (True, False), (False, True))),
    prepend("▁"),
    prepend("x"),
    TO_META,
    replace("lo", "l"),
    replace("[er]+", "", "Regex"),
    replace("w", "w w"),
]
# Normalisers make tokens of each other, of parts of texts, and of nothing.
TOKENS = [
    *("low ", "low", " low", "LOW", "lo", "low er", "l", "w", "er", "▁low", "ｌｏｗ", "he", "H"),
    *("e\u0301", "ḀT", "\u0301", "ﬁ", "fi", "ﬁn", "Ⅳ", "iv", "日", "x", "ab", "a b", "\u00a0"),
    *("<s>", "<S>", " <s>", "<s> "),
]
PARTS = [*TOKENS, " ", "  ", "a", "z", "\n", "LoW", "é ", "lowé", "Ｌ", "o", "e\u0323\u0301"]
KINDS = ("bytes", "split", "normalized bytes", "characters", "metaspace")
COMPOSING = ("NFC", "NFKC")


def document(kind: str, rng: random.Random) -> dict[str, Any]:
    chosen = [rng.choice(NORMALIZERS) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4]))]
    parts: dict[str, Any] = {}
    if kind in ("characters", "metaspace"):
        vocab = characters()[0]
        if kind == "metaspace":
            parts["pre_tokenizer"] = metaspace(rng.choice(["always", "first", "never"]), rng.random() < 0.5)
            parts["decoder"] = metaspace("always")
        else:
            parts["decoder"] = steps("d", TO_SPACE, FALLBACK, FUSE, STRIP_ONE)
    else:
        vocab = bytes_vocab("lo", "low", "Ġl", "he")
        parts["pre_tokenizer"] = (
            BYTE_LEVEL if kind == "bytes" else sequence(split(r" ?\p{L}+|\s+|[^\p{L}\s]+"))
        )
        if kind == "normalized bytes":
            chosen.append({"type": "ByteLevel"})
            parts["pre_tokenizer"] = split("Ġ?[a-z]+|[^a-z]")
    added, next_id = [], len(vocab)
    few = kind == "normalized bytes"  # which refuses most flags
    for content in rng.sample(TOKENS, rng.randrange(1, 3 if few else 6)):
        flags = {name: rng.random() < (0.04 if few else 0.2) for name in ("single_word", "lstrip", "rstrip")}
        flags |= {"normalized": rng.random() < 0.75, "special": rng.random() < 0.5}
        added.append({"id": vocab.get(content, next_id), "content": content} | flags)
        next_id += content not in vocab
    parts |= {"added": added, "normalizer": steps("n", *chosen) if chosen else None}
    if kind in ("characters", "metaspace"):
        return of_characters(None, **parts | {"post_processor": None})
    merges = [["l", "o"], ["lo", "w"], ["Ġ", "l"], ["h", "e"]]
    return tokenizer_json(vocab, merges, **parts)


def assert_same(theirs: Any, ours: BPETokenizer, file: dict[str, Any], rng: random.Random) -> None:
    tokens = {token["id"]: token["content"] for token in file["added_tokens"]}
    composes = any(kind in str(file["normalizer"]) for kind in COMPOSING)
    for _ in range(20):
        text = "".join(rng.choices([*PARTS, *tokens.values()], k=rng.randrange(1, 8)))
        expected = theirs.encode(text, add_special_tokens=False)
        ids, spans = ours.encode_with_offsets(text, allowed_special="all", tile=False)
        assert ids == expected.ids == ours.encode(text, allowed_special="all"), repr(text)
        if not composes and "\u0323\u0301" not in text:  # spans of what moves or composes are wider
            found = [span for token_id, span in zip(ids, spans, strict=True) if token_id in tokens]
            known = zip(expected.ids, expected.offsets, strict=True)
            assert found == [span for token_id, span in known if token_id in tokens], repr(text)
        assert [each for part in ours.encode_streaming(text, "all") for each in part] == ids, repr(text)
    some = [*tokens, *tokens, *rng.sample(sorted(ours.vocab), 30)]
    for _ in range(20):
        ids = rng.choices(some, k=rng.randrange(1, 6))
        for skip in (False, True):
            assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip), ids
    assert ours.convert_ids_to_tokens(list(tokens)) == [theirs.id_to_token(token_id) for token_id in tokens]
    unknown = [-1 if theirs.token_to_id(text) is None else theirs.token_to_id(text) for text in TOKENS]
    assert ours.convert_tokens_to_ids(TOKENS) == unknown


@pytest.mark.sampled(0.12)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_random_added_tokens(kind: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"{kind} {seed}")
    compared = 0
    for number in range(20):
        file = document(kind, rng)
        path = tmp_path / str(number)
        write(path, file)
        try:
            ours = BPETokenizer.from_pretrained(path)
        except FormatError as refusal:
            refused = str(refusal)
            if any(why in refused for why in ("added_tokens", "normalised text", "spells other bytes")):
                continue
            raise
        compared += 1
        theirs = tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
        assert_same(theirs, ours, file, rng)
        ours.save(path / "saved")
        saved = tokenizers.Tokenizer.from_file(str(path / "saved" / "tokenizer.json"))
        assert_same(saved, ours, file, rng)
    assert compared > 4
