"""Packed models hold every setting, token and merge. `test_wasm.py` compares what the page makes of them."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

import hf_files
from bpe_tokenizer import AddedToken, BPETokenizer, NotTrainedError
from bpe_tokenizer.formats import huggingface
from bpe_tokenizer.view.packed import pack
from small_tokenizers import BYTES, tiny


class Reader:
    """Reads the parts of a packed model, as `crates/wasm/src/packed.rs` describes them."""

    def __init__(self, data: bytes) -> None:
        assert data[:5] == b"\x89BPE\x02"
        self.data, self.at = data, 5
        self.settings: dict[str, Any]
        self.settings, self.roles = json.loads(self.take(self.number()))
        count = self.number()
        steps, lengths = self.numbers(count), self.numbers(count)
        ids, last = [], -1
        for step in steps:
            last += step + 1
            ids.append(last)
        self.vocab = {token_id: self.take(length) for token_id, length in zip(ids, lengths, strict=True)}
        self.kind = self.number()
        self.merges: list[tuple[bytes, bytes]] = []
        if self.kind == 1:
            count = self.number()
            steps, lengths = self.numbers(count), self.numbers(count)
            product = 0
            for step, length in zip(steps, lengths, strict=True):
                product += step >> 1 if step % 2 == 0 else -(step >> 1) - 1
                token = self.vocab[product]
                self.merges.append((token[:length], token[length:]))
        assert self.at == len(data)

    def take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        assert len(taken) == size
        self.at += size
        return taken

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def numbers(self, count: int) -> list[int]:
        return [self.number() for _ in range(count)]


def test_a_model_of_merges(tokenizer: BPETokenizer) -> None:
    found = Reader(pack(tokenizer))
    assert found.kind == 1
    assert found.vocab == tokenizer.vocab
    assert found.merges == tokenizer.merges
    assert found.roles == {"bos": "<|bos|>", "eos": "<|eos|>", "pad": "<|pad|>", "unk": "<|unk|>"}
    assert found.settings["normalizers"] == [["NFC"]]
    assert found.settings["added_tokens"][0] == ["<|bos|>", 256, True, False, False, False, False]
    (split,) = found.settings["pre_tokenizers"]
    assert split == list(tokenizer.model.core.pre_tokenizers[0])


def test_merges_that_follow_from_ranks_take_one_byte() -> None:
    vocab = BYTES | {256: b"ab", 257: b"abc"}
    found = Reader(pack(BPETokenizer.from_vocab(vocab)))
    assert (found.kind, found.merges) == (0, [])
    assert found.vocab == vocab


def test_merges_that_ranks_do_not_give_are_kept() -> None:
    vocab = BYTES | {256: b"abc", 257: b"ab"}
    merges = [(b"a", b"b"), (b"ab", b"c")]
    found = Reader(pack(BPETokenizer.from_vocab(vocab, merges)))
    assert (found.kind, found.merges) == (1, merges)


def test_ids_may_have_gaps_and_be_large() -> None:
    added = [AddedToken("<|far|>", 2**32 - 2), AddedToken("<|x|>", 70_000)]
    tokenizer = BPETokenizer.from_model(hf_files.small_model(*added))
    found = Reader(pack(tokenizer))
    assert [token[1] for token in found.settings["added_tokens"]] == [70_000, 2**32 - 2]
    vocab = BYTES | {300: b"ab", 4_000_000_000: b"abab"}
    gaps = BPETokenizer.from_vocab(vocab, [(b"a", b"b"), (b"ab", b"ab")])
    assert Reader(pack(gaps)).vocab == vocab


@pytest.mark.parametrize("document", [hf_files.good_characters(), hf_files.spaced_document()])
def test_every_setting_is_there(document: dict[str, Any]) -> None:
    tokenizer = BPETokenizer.from_model(huggingface.loads(json.dumps(document)))
    core, settings = tokenizer.model.core, Reader(pack(tokenizer)).settings
    assert settings["alphabet"] == "characters"
    assert settings["unk_id"] == core.unk_id
    for name in ("byte_fallback", "fuse_unk", "keeps_gaps", "requires_all_bytes", "ignore_merges"):
        assert settings[name] == getattr(core, name), name
    assert core.decoder is not None
    assert settings["decoder"] == list(core.decoder)
    assert settings["normalizers"] == [list(step) for step in core.normalizers]
    assert settings["pre_tokenizers"] == [list(step) for step in core.pre_tokenizers]


def test_a_packed_model_is_small(tokenizer: BPETokenizer) -> None:
    assert len(gzip.compress(pack(tokenizer))) < 6000


def test_an_untrained_tokenizer_is_refused() -> None:
    with pytest.raises(NotTrainedError):
        pack(BPETokenizer())


def test_the_text_of_an_added_token_may_be_anything() -> None:
    tokenizer = tiny(special_tokens=['"\\\n\0é日😀', "<|eos|>"])
    settings = Reader(pack(tokenizer)).settings
    assert [token[0] for token in settings["added_tokens"]] == ['"\\\n\0é日😀', "<|eos|>"]
