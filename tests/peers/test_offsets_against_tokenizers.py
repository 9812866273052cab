"""Trimmed offsets: `trim_offsets` of every post-processor, as in Hugging Face `tokenizers`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.formats.huggingface.post_processor import read_post_processor, write_post_processor
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import PostProcessor
from hf_files import added_token, byte_level, bytes_vocab, template, tokenizer_json

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")

pytestmark = pytest.mark.peer

TEXTS = (
    *(" a", "a b", "  a  ", "   ", "\t\ta", "\n\n a", "\xa0a", "a\n", "中文 a", "😀 a", "", "\u3000a", "é a"),
    *("x <s> y", " <s> ", "a <m> b", "\t\xa0<m>\u3000\n", " <m>a", "  b   b", "a\xa0\xa0q b", "a a  ab a"),
)


def post_processors(bos: list[Any], eos: list[Any]) -> Iterator[Any]:
    around = template(bos[0], "$A", eos[0], ids={bos[0]: bos[1:], eos[0]: eos[1:]})
    for keeps in (False, True):
        trims = byte_level(keeps, trim_offsets=True)
        roberta = {"sep": eos, "cls": bos, "trim_offsets": True, "add_prefix_space": keeps}
        roberta["type"] = "RobertaProcessing"
        yield from (trims, roberta, byte_level(keeps))
        for steps in ([trims, around], [around, trims], [trims, roberta]):
            yield {"type": "Sequence", "processors": steps}


def small_document() -> dict[str, Any]:
    merges = [("Ġ", "a"), ("Ġ", "Ġ"), ("Ċ", "Ċ"), ("a", "b")]
    added = [added_token(260, "<s>"), added_token(261, "</s>"), added_token(262, "<m>", lstrip=True)]
    added += [added_token(263, "  ", special=False), added_token(264, "\xa0\xa0q ", special=False)]
    return tokenizer_json(bytes_vocab(*map("".join, merges)), [list(pair) for pair in merges], added=added)


def assert_same_offsets(document: dict[str, Any], directory: Path, is_thorough: bool = True) -> None:
    data = json.dumps(document)
    (directory / "tokenizer.json").write_text(data, "utf-8")
    theirs, ours = tokenizers.Tokenizer.from_str(data), BPETokenizer.load(directory)
    batch: dict[str, Any] = {"allowed_special": "all", "return_offsets_mapping": True}
    for number, text in enumerate(TEXTS):
        words = [text, TEXTS[number - 1], TEXTS[number - 2]]
        for adds in (False, True):
            expected = theirs.encode(text, add_special_tokens=adds)
            spans = ours.encode_with_offsets(text, adds, "all", tile=False)[1]
            assert spans == expected.offsets, text
            tiled = ours.encode_with_offsets(text, allowed_special="all")[1]
            assert [0, *(end for _, end in tiled)] == [*(start for start, _ in tiled), len(text)]
            if text.isascii():  # the characters are the bytes
                assert ours.encode_with_offsets(text, adds, "all", unit="byte", tile=False)[1] == spans
            if not is_thorough:
                continue
            pair = theirs.encode(text, words[1], add_special_tokens=adds).offsets
            assert ours.encode_batch([text], adds, text_pair=[words[1]], **batch)[0].offsets == pair
            row = theirs.encode(words, is_pretokenized=True, add_special_tokens=adds)
            assert (
                ours.encode_batch([words], adds, is_split_into_words=True, **batch)[0].offsets == row.offsets
            )
            theirs.enable_truncation(5, stride=1)
            row = theirs.encode(text * 2, add_special_tokens=adds)
            theirs.no_truncation()
            cut: dict[str, Any] = {
                "truncation": True,
                "max_length": 5,
                "stride": 1,
                "return_overflowing_tokens": True,
            }
            (found,) = ours.encode_batch([text * 2], adds, **cut, **batch)
            rows = [each.offsets for each in (row, *row.overflowing)]
            assert [each.offsets for each in (found, *found.overflowing)] == rows, text


@pytest.mark.parametrize("number", range(12))
def test_trimmed_offsets(number: int, tmp_path: Path) -> None:
    post_processor = list(post_processors(["<s>", 260], ["</s>", 261]))[number]
    for adds_space in (False, True):
        document = small_document() | {"post_processor": post_processor}
        document["pre_tokenizer"] = byte_level(adds_space, trim_offsets=not adds_space)
        assert_same_offsets(document, tmp_path)


@pytest.mark.fixtures
def test_trimmed_offsets_of_gpt2(shared: Path, tmp_path: Path) -> None:
    BPETokenizer.load(shared / "vocab" / "r50k_base.tiktoken").save(tmp_path)
    document = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))
    (tmp_path / "tokenizer_config.json").unlink()
    end = ["<|endoftext|>", 50256]
    assert_same_offsets(document | {"post_processor": list(post_processors(end, end))[7]}, tmp_path)


def test_saved_trims() -> None:
    """A post-processor that is written anew still trims."""
    for around in (PostProcessor(trims=(True, False)), PostProcessor((260,), trims=(True,))):
        written = write_post_processor(around, {260: "<s>"}.__getitem__)
        again = read_post_processor(Field(Path("tokenizer.json"), "post_processor", written), {260})
        assert (again, again.trims) == (around, around.trims)
