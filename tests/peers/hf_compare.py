"""Compares this package with `tokenizers`: ids, offsets and text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from bpe_tokenizer import BPETokenizer, _core
from hf_files import read, write
from small_tokenizers import without_surrogates

if TYPE_CHECKING:
    from tokenizers import Tokenizer


tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")


class Pair(NamedTuple):
    document: dict[str, Any]
    theirs: Tokenizer
    ours: BPETokenizer


def both(directory: Path, document: dict[str, Any]) -> Pair:
    return opened(write(directory, document))


def opened(directory: Path) -> Pair:
    path = directory / "tokenizer.json"
    theirs: Tokenizer = tokenizers.Tokenizer.from_file(str(path))
    return Pair(read(path), theirs, BPETokenizer.from_pretrained(directory))


# -- what the library does knowingly otherwise ----------------------------------------------------------


def steps_of(component: Any) -> Iterator[Any]:
    for name in ("normalizers", "pretokenizers"):
        if component and name in component:
            for step in component[name]:
                yield from steps_of(step)
            return
    if component:
        yield component


def composes(pair: Pair) -> bool:
    """Whether characters become one, or one several, so that a span of the library's may be the first's."""
    return any(step["type"].startswith("NF") for step in steps_of(pair.document["normalizer"]))


def drops(pair: Pair) -> bool:
    """Whether encoding drops characters without a token.

    The spans after such a character are wrong by its length: those of the library up to the end of the text,
    ours up to the next place where a piece can be cut.
    """
    core = pair.ours.model.core
    return core.unk_id is None and not (core.alphabet == "bytes" and core.requires_all_bytes)


def decodes_alike(pair: Pair) -> bool:
    """Whether the library decodes added tokens to their texts: not where it takes them for bytes, and not
    where it decodes what normalisation makes of them."""
    tokens = pair.document["added_tokens"]
    normalized = [token["content"] for token in tokens if token["normalized"]]
    normalizer = pair.theirs.normalizer
    if normalizer is not None and any(normalizer.normalize_str(text) != text for text in normalized):
        return False
    decoder = pair.document["decoder"] or {}
    if pair.ours.model.core.alphabet == "characters" or len(decoder.get("decoders", ())) > 1:
        return True  # of bytes, a decoder of ours has a step for each such token
    return all(_core.from_printable(t["content"]) in (None, t["content"].encode()) for t in tokens)


# -- comparisons ----------------------------------------------------------------------------------------


def assert_same(pair: Pair, texts: Sequence[str], add_special_tokens: bool = True) -> None:
    """Same ids and offsets, and the same text back."""
    _, theirs, ours = pair
    expected = theirs.encode_batch(list(texts), add_special_tokens=add_special_tokens)
    exactly, decoded = not composes(pair), decodes_alike(pair)
    with_spans = not drops(pair)
    for text, encoding in zip(texts, expected, strict=True):
        ids, spans = ours.encode_with_offsets(text, add_special_tokens, allowed_special="all", tile=False)
        assert ids == encoding.ids, repr(text[:500])
        if exactly and with_spans:
            assert spans == encoding.offsets, repr(text[:500])
        elif with_spans:
            for (start, end), (first, last) in zip(spans, encoding.offsets, strict=True):
                assert start <= first <= last <= end, repr(text[:500])
        if decoded:
            assert_same_text(pair, [ids])
    batch = ours.encode_batch(list(texts), add_special_tokens, allowed_special="all")
    assert [row.input_ids for row in batch] == [encoding.ids for encoding in expected]


def assert_same_text(pair: Pair, rows: Iterable[Sequence[int]]) -> None:
    for ids in rows:
        for skip in (False, True):
            assert pair.ours.decode(ids, skip_special_tokens=skip) == pair.theirs.decode(ids, skip), ids


def assert_same_ids(theirs: Tokenizer, ours: BPETokenizer, texts: Sequence[str]) -> None:
    ids, offsets = ours.encode_ragged(texts, allowed_special="all")
    expected = theirs.encode_batch_fast(
        [without_surrogates(text) for text in texts], add_special_tokens=False
    )
    for text, encoding, start, end in zip(texts, expected, offsets, offsets[1:], strict=False):
        assert ids[start:end].tolist() == encoding.ids, repr(text[:500])
