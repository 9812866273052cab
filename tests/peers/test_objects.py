"""Tokenizers taken from objects of `tokenizers` and `transformers`: the same ids, offsets, text and roles."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from bpe_tokenizer import BPETokenizer, FormatError
from bpe_tokenizer.formats import hub
from hostile import hostile_texts, special_token_texts
from peers.hf_compare import Pair, assert_same
from peers.hf_transformers import assert_same_roles, tokenizers, transformers

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase


pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("default")]

TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


def taken(source: Any) -> BPETokenizer:
    return BPETokenizer.from_model(hub.load(source))


def texts_for(ours: BPETokenizer, mixed_text: str) -> list[str]:
    texts = [mixed_text, *hostile_texts(100), *special_token_texts(list(ours.special_tokens)[:5])]
    return [text for text in texts if text.isascii() or text == text.encode("utf-8", "replace").decode()]


def is_changed(theirs: Tokenizer, text: str) -> bool:
    """Whether normalisation changes a text; then spans may differ by the characters that are combined."""
    return theirs.normalizer is not None and theirs.normalizer.normalize_str(text) != text


def assert_same_as_tokenizers(ours: BPETokenizer, theirs: Tokenizer, texts: Iterable[str]) -> None:
    for around in (False, True):
        assert_same(Pair(json.loads(theirs.to_str()), theirs, ours), list(texts), around)


def assert_same_as_transformers(
    ours: BPETokenizer, theirs: PreTrainedTokenizerBase, texts: Iterable[str]
) -> None:
    for text in texts:
        for around in (False, True):
            expected = theirs(text, add_special_tokens=around, return_offsets_mapping=True)
            around = around and ours.model.post_processor is not None
            ids, spans = ours.encode_with_offsets(text, around, allowed_special="all", tile=False)
            assert ids == expected["input_ids"], repr(text[:300])
            assert spans == expected["offset_mapping"] or is_changed(theirs.backend_tokenizer, text)
            for skip in (False, True):
                assert ours.decode(ids, skip) == theirs.decode(ids, skip_special_tokens=skip)
    assert len(ours) == len(theirs)
    assert_same_roles(theirs, ours)
    special = {str(token) for token in theirs.added_tokens_decoder.values() if token.special}
    assert set(ours.special_tokens) == special
    assert ours.model.config.get("chat_template") == theirs.chat_template
    assert ours.model.config.get("model_max_length", 131_072) == theirs.model_max_length


# -- tokenizers -------------------------------------------------------------------------------------------


@pytest.fixture
def trained(stdlib_texts: list[str]) -> Tokenizer:
    """Built and trained as the library's own documentation does it."""
    theirs: Tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.normalizer = tokenizers.normalizers.NFC()
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500,
        show_progress=False,
        special_tokens=["<s>", "</s>", "<pad>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    theirs.train_from_iterator(stdlib_texts[:1], trainer)
    return theirs


def test_a_tokenizer_that_the_library_trained(trained: Tokenizer, mixed_text: str) -> None:
    ours = taken(trained)
    assert (ours.bos_token, ours.eos_token, ours.pad_token) == ("<s>", "</s>", "<pad>")
    assert ours.encode("a", add_special_tokens=True) == trained.encode("a").ids == ours.encode("a")
    assert_same_as_tokenizers(ours, trained, texts_for(ours, mixed_text))


def test_the_object_is_only_read(trained: Tokenizer) -> None:
    trained.enable_truncation(3)
    trained.enable_padding(length=8, pad_id=2, pad_token="<pad>")
    before = trained.to_str()
    ours = taken(trained)
    assert trained.to_str() == before
    assert ours.decode(ours.encode("a text that is longer")) == "a text that is longer"


def test_an_object_with_parts_in_python_cannot_be_saved(trained: Tokenizer) -> None:
    class Words:
        def pre_tokenize(self, text: Any) -> None:
            text.split(lambda number, part: [part])

    trained.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(Words())
    with pytest.raises(FormatError, match=r"^tokenizers\.Tokenizer: cannot be saved: .*[Cc]ustom"):
        taken(trained)


# -- transformers -----------------------------------------------------------------------------------------


@pytest.fixture
def built(trained: Tokenizer) -> PreTrainedTokenizerBase:
    theirs: PreTrainedTokenizerBase = transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained,
        bos_token="<|im_start|>",
        pad_token="<pad>",
        unk_token="<unk>",
        additional_special_tokens=["<|im_end|>", "<|tool|>"],
        chat_template=TEMPLATE,
        model_max_length=123,
        padding_side="left",
    )
    return theirs


def test_a_tokenizer_that_was_built_in_python(built: PreTrainedTokenizerBase, mixed_text: str) -> None:
    ours = taken(built)
    assert_same_as_transformers(ours, built, texts_for(ours, mixed_text))
    assert ours.eos_token is None  # although there is a </s>
    assert ours.model.config["padding_side"] == "left"


def test_what_was_added_and_changed_since(built: PreTrainedTokenizerBase) -> None:
    built.add_tokens(["word", "日本"])
    built.add_special_tokens({"eos_token": "<|new|>"})
    built.add_bos_token = True
    built.chat_template = {"default": TEMPLATE, "tool_use": "{{ tools }}"}
    ours = taken(built)
    assert ours.eos_token == "<|new|>"
    assert ours.encode("a word", add_special_tokens=True) == built.encode("a word")
    assert ours.encode("日本<|new|>", allowed_special="all") == built.encode("日本<|new|>")[1:]
    assert ours.model.config["chat_template"] == [
        {"name": "default", "template": TEMPLATE},
        {"name": "tool_use", "template": "{{ tools }}"},
    ]
