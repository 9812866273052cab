"""Added tokens with `normalized`: ids, texts and token strings as in Hugging Face `tokenizers` 0.23."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import AddedToken, BPETokenizer, FormatError, Model
from hf_files import BYTE_LEVEL, added_token, bytes_vocab, split, tokenizer_json, write

NFD, ACCENTS, LOWERCASE = {"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}
STRIP = {"type": "Strip", "strip_left": True, "strip_right": True}
TO_BYTES = {"type": "ByteLevel"}
TOKEN, OTHER = 257, 258


def document(content: str, *normalizers: Any, **flags: bool) -> dict[str, Any]:
    """A byte-level file with the tokens `lo`, the added token, and `<s>`."""
    in_bytes = TO_BYTES in normalizers
    return tokenizer_json(
        bytes_vocab("lo"),
        [["l", "o"]],
        added=[
            added_token(TOKEN, content, **{"special": False, "normalized": True} | flags),
            added_token(OTHER, "<s>"),
        ],
        normalizer={"type": "Sequence", "normalizers": list(normalizers)},
        pre_tokenizer=split("[^ ]+| +") if in_bytes else BYTE_LEVEL,
    )


def load(directory: Path, file: dict[str, Any]) -> BPETokenizer:
    write(directory, file)
    return BPETokenizer.from_pretrained(directory)


@pytest.mark.parametrize("to_bytes", [[], [TO_BYTES]])
def test_a_token_that_loses_its_space(to_bytes: list[Any], tmp_path: Path) -> None:
    """It is found without the space, and decodes to the text without it."""
    tokenizer = load(tmp_path, document("low ", NFD, ACCENTS, STRIP, *to_bytes))
    assert tokenizer.encode("slow lowlo") == [ord("s"), TOKEN, ord(" "), TOKEN, 256]
    assert tokenizer.encode(" lów ") == [TOKEN]
    assert tokenizer.decode([TOKEN, TOKEN]) == "lowlow"
    assert tokenizer.convert_ids_to_tokens([TOKEN]) == ["low"]
    assert tokenizer.convert_tokens_to_ids(["low ", "low"]) == [TOKEN, -1]


def test_a_normal_form_that_spells_other_bytes_is_saved(tmp_path: Path) -> None:
    """A step of the saved decoder keeps the library from taking it for bytes."""
    file = document("ÉT", LOWERCASE)
    with pytest.raises(FormatError, match=r"takes 'ét', the normalised text of .* 257, for bytes"):
        load(tmp_path, file)
    replaced = {"type": "Replace", "pattern": {"Regex": r"\Aét\z"}, "content": "Ã©t"}
    decoder = BYTE_LEVEL | {"add_prefix_space": True, "trim_offsets": True}
    file["decoder"] = {"type": "Sequence", "decoders": [replaced, decoder]}
    tokenizer = load(tmp_path, file)
    assert tokenizer.decode([TOKEN]) == "ét"
    tokenizer.save(tmp_path / "saved")
    assert BPETokenizer.load(tmp_path / "saved").decode([TOKEN]) == "ét"


def test_a_normal_form_that_the_file_has_for_other_bytes_is_refused(tmp_path: Path) -> None:
    refusal = "id 257 is 'É' after normalisation, which spells other bytes"
    with pytest.raises(FormatError, match=refusal):
        load(tmp_path, document("E\u0301", {"type": "NFC"}))
    core = BPETokenizer(normalization="NFC").train("lo lo", 257, verbose=False).model.core
    core = core.with_added_tokens([AddedToken("E\u0301", TOKEN, normalized=True)])
    with pytest.raises(FormatError, match=refusal):
        BPETokenizer.from_model(Model(core)).save(tmp_path / "refused")


@pytest.mark.parametrize(
    ("content", "flags", "why"),
    [
        ("low", {"single_word": True}, "has single_word"),
        ("low", {"lstrip": True}, "has lstrip"),
        ("low", {"rstrip": True}, "has rstrip"),
        ("low er", {}, "has characters that are not printable ASCII"),
        ("lów", {}, "has characters that are not printable ASCII"),
    ],
)
def test_what_bytes_in_the_normaliser_change_is_refused(
    content: str, flags: dict[str, bool], why: str, tmp_path: Path
) -> None:
    """`tokenizers` looks for the token among printable characters, none of which is white space."""
    message = rf"'{content}' \(id 257\) {why}, which is not supported after the normalizer ByteLevel"
    with pytest.raises(FormatError, match=message):
        load(tmp_path, document(content, LOWERCASE, TO_BYTES, **flags))
    tokenizer = load(tmp_path, document(content, LOWERCASE, TO_BYTES, **flags, normalized=False))
    assert tokenizer.decode([TOKEN]) == content
