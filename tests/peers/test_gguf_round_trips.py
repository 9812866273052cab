"""GGUF vocabularies through every format that can hold them: the same ids from us and from `tokenizers`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer, FormatError
from bpe_tokenizer.errors import ModelError
from bpe_tokenizer.formats import gguf, registry
from bpe_tokenizer.formats.verify import differences
from gguf_files import CONTROL, USER_DEFINED, byte_level
from hostile import hostile_texts, special_token_texts
from peers.hf_compare import assert_same, assert_same_ids, opened
from small_tokenizers import without_surrogates

pytestmark = pytest.mark.peer

# DeepSeek's added tokens for letters whose printable character spells a byte that UTF-8 never holds.
LETTERS = "õ÷ÁýÀÿøúþüùöû"
SPELLED = [0xF5, 0xF7, 0xC1, 0xFD, 0xC0, 0xFF, 0xF8, 0xFA, 0xFE, 0xFC, 0xF9, 0xF6, 0xFB]
FORMATS = ("huggingface", "tiktoken", "gpt2", "gguf", "minbpe", "base64-json")
# The fields that a format of plain ranks or of two files does not hold.
ROLES = {"bos_token", "eos_token", "pad_token", "unk_token", "post_processor"}


def vocabularies() -> list[Path]:
    directory = os.environ.get("BPE_TOKENIZER_FIXTURES")
    return sorted(Path(directory, "vocab").glob("*.gguf")) if directory else []


def deepseek(path: Path, *, holes: bool) -> Path:
    more = [(letter, USER_DEFINED) for letter in LETTERS] + [("<|end|>", CONTROL)]
    if holes:
        # llama.cpp's converter pads a vocabulary like this, which puts all added tokens inside it.
        more += [(f"[PAD{number}]", USER_DEFINED) for number in range(5)] + [("zz", 1)]
    return byte_level(path, ["h e", "Ġ he"], more, missing=SPELLED)


@pytest.mark.parametrize("holes", [False, True])
def test_letters_that_spell_bytes_of_no_text(holes: bool, tmp_path: Path) -> None:
    tokenizer = BPETokenizer.load(deepseek(tmp_path / "x.gguf", holes=holes), "gguf")
    tokenizer.save(tmp_path / "hf")
    again = BPETokenizer.from_pretrained(tmp_path / "hf")
    assert differences(tokenizer.model, again.model) == []
    texts = [*special_token_texts([*LETTERS, "<|end|>", "[PAD1]"]), *hostile_texts(100)[::5]]
    assert_same(opened(tmp_path / "hf"), list(map(without_surrogates, texts)))
    # The bytes alone are not letters: they have no token, as in the GGUF file.
    for byte in SPELLED:
        raw = b"he" + bytes([byte]) + b"x"
        assert again.encode_bytes(raw) == tokenizer.encode_bytes(raw) == again.encode("hex")


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("path", vocabularies(), ids=lambda path: path.stem)
def test_through_every_format_that_holds_it(path: Path, tmp_path: Path) -> None:
    model = gguf.load(path)
    ours = BPETokenizer.from_model(model)
    added = [token.content for token in model.core.added_tokens]
    texts = [*hostile_texts(100)[::5], *special_token_texts([*added[:3], *added[-3:]])]
    expected = [ours.encode(text, allowed_special="all") for text in texts]
    held = 0
    for kind in FORMATS:
        place = tmp_path / f"{kind}.model"
        try:
            saved = registry.save(model, place, kind)
        except (FormatError, ModelError):
            assert not place.exists()
            continue
        held += 1
        again = registry.load(place, kind, **saved.load_kwargs)
        lost = {each.field for each in differences(model, again)}
        assert lost <= (ROLES if kind == "tiktoken" else set()), kind
        copy = BPETokenizer.from_model(again)
        assert [copy.encode(text, allowed_special="all") for text in texts] == expected, kind
        if kind == "huggingface":
            assert_same_ids(opened(place).theirs, copy, [without_surrogates(text) for text in texts])
    assert held >= 2
