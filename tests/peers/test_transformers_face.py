"""What transformers asks of its own GPT-2 and LLaMA tokenizers, asked of ours that it opened.

The questions are those of its `tests/test_tokenization_common.py` that concern byte-level BPE, and of the
tests of the `tokenizers` binding; whatever we can do ourselves has to come out the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer, Model, OptionError, _core
from bpe_tokenizer.formats import huggingface
from hf_files import added_token, byte_level, tokenizer_json, write
from pages import ROOT, blocks, run_python
from peers.hf_transformers import opened
from small_tokenizers import with_post_processor

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("default")]

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content }}<|im_end|>{% endgeneration %}"
    "{% else %}{{ message.content }}<|im_end|>{% endif %}{{ '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA = ("<|begin_of_text|>", "<|end_of_text|>", "<|right_pad_id|>", "<|im_start|>", "<|im_end|>")
TEXTS = ["A short text", "and one that is quite a bit longer, Grüße 日本語!", "", " x", "  two  spaces\n\n"]


PASSAGES = [
    *TEXTS[:2],
    "word",
    "a longer passage of plain words that truncation has to cut, more than once",
    "日本語 naïve",
]


class Pair(NamedTuple):
    """A tokenizer, and what transformers made of the directory it was saved in."""

    ours: BPETokenizer
    theirs: Any
    directory: Path


@pytest.fixture(scope="module", params=["gpt2", "llama", "prefix"])
def saved(request: pytest.FixtureRequest, stdlib_texts: list[str], tmp_path_factory: Any) -> Path:
    """Like GPT-2 (one special token, after the vocabulary), LLaMA 3 (several, a template, a limit), or
    RoBERTa (a space before a text)."""
    directory: Path = tmp_path_factory.mktemp("saved")
    corpus = [*stdlib_texts[:2], *TEXTS]
    if request.param == "llama":
        ours = BPETokenizer("llama3", normalization=None).train(
            corpus, 600, special_tokens={token: 600 + n for n, token in enumerate(LLAMA)}, verbose=False
        )
        config = MappingProxyType({"chat_template": CHAT_TEMPLATE, "model_max_length": 30})
        around = with_post_processor(ours).model.post_processor
        huggingface.save(Model(ours.model.core, config=config, post_processor=around), directory)
        return directory
    ours = BPETokenizer("gpt2", normalization=None).train(
        corpus, 500, special_tokens={"<|endoftext|>": 500}, verbose=False
    )
    with_post_processor(ours).save(directory)
    if request.param == "prefix":
        vocab = {token: token_id for token, token_id in ours.get_vocab().items() if token_id < 500}
        merges = [[_core.to_printable(half) for half in merge] for merge in ours.merges]
        document = tokenizer_json(
            vocab,
            merges,
            added=[added_token(500, "<|endoftext|>"), added_token(501, "<pad>")],
            pre_tokenizer=byte_level(add_prefix_space=True),
        )
        write(directory, document)
        (directory / "tokenizer_config.json").unlink()
        BPETokenizer.from_pretrained(directory).save(directory)
    return directory


@pytest.fixture
def pair(saved: Path) -> Pair:
    theirs = opened(saved)
    if theirs.pad_token is None:
        theirs.pad_token = theirs.eos_token
    return Pair(BPETokenizer.from_pretrained(saved), theirs, saved)


@pytest.fixture
def padding(pair: Pair) -> Pair:
    """Both with a pad token."""
    pair.ours.pad_token = pair.ours.pad_token or pair.ours.eos_token
    return pair


# -- the vocabulary ---------------------------------------------------------------------------------------


def test_the_vocabulary(pair: Pair) -> None:
    ours, theirs, _ = pair
    assert len(theirs) == len(ours) == len(theirs.get_vocab())
    assert theirs.get_vocab() == ours.get_vocab()
    ids = sorted(ours.get_vocab().values())
    tokens = theirs.convert_ids_to_tokens(ids)
    assert tokens == ours.convert_ids_to_tokens(ids)
    assert theirs.convert_tokens_to_ids(tokens) == ids == ours.convert_tokens_to_ids(tokens)
    for token_id, token in zip(ids, tokens, strict=True):
        assert theirs.convert_ids_to_tokens(token_id) == token
        assert theirs.decode([token_id]) == ours.decode([token_id])


# -- there and back ---------------------------------------------------------------------------------------


def test_training_a_new_one_like_it(pair: Pair, stdlib_texts: list[str], tmp_path: Path) -> None:
    """The settings stay, the vocabulary is learned anew; we read the result."""
    theirs = pair.theirs.train_new_from_iterator([stdlib_texts[3][:30_000]], 450, show_progress=False)
    theirs.save_pretrained(str(tmp_path))
    ours = BPETokenizer.from_pretrained(tmp_path)
    for text in [*TEXTS, stdlib_texts[3][:500]]:
        assert theirs.encode(text) == ours.encode(text, add_special_tokens=True)


# -- text to ids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_options_of_a_batch_in_combination(seed: int, padding: Pair) -> None:
    """Sides, multiples, strides, overflow, offsets, pairs and words: what transformers gives."""
    random = Random(seed)
    ours, theirs, _ = padding
    has_pairs = random.random() < 0.5
    has_words = random.random() < 0.3
    has_overflow = random.random() < 0.4
    strategies = ["only_first", "only_second"] if has_pairs else ["longest_first"]
    truncation = random.choice([False, *strategies] if has_overflow else [False, True, *strategies])
    multiple = random.choice([None, 8])
    lengths = [24, 32, 40] if multiple else [26, 31, 40]  # others make transformers fail
    max_length = random.choice(lengths) if truncation else None
    options: dict[str, Any] = {
        "add_special_tokens": random.random() < 0.7,
        "padding": random.choice([False, True, "max_length"] if max_length else [False, True]),
        "padding_side": random.choice(["left", "right"]),
        "truncation": truncation,
        "max_length": max_length,
        "pad_to_multiple_of": multiple,
        "stride": random.choice([0, 1, 2]) if has_overflow and truncation else 0,
        "return_overflowing_tokens": has_overflow,
        "return_offsets_mapping": random.random() < 0.5,
        "is_split_into_words": has_words,
    }
    if options["padding"] is False:
        options["pad_to_multiple_of"] = None
    side = random.choice(["left", "right"])
    theirs.truncation_side = side
    call: Callable[..., Any] = ours
    texts: list[Any] = [random.choice(PASSAGES) for _ in range(4)]
    seconds: list[Any] | None = [random.choice(PASSAGES) for _ in range(4)] if has_pairs else None
    if has_words:
        texts = [text.split() for text in texts]
        seconds = seconds and [text.split() for text in seconds]
    try:
        expected = theirs(texts, seconds, return_token_type_ids=False, **options)
    except BaseException as error:  # of the tokenizers library, which panics if a stride is too long
        if "too short" not in str(error) and "`stride` must be strictly less" not in str(error):
            raise
        with pytest.raises(OptionError, match=r"the other text alone is too long|stride is"):
            call(texts, text_pair=seconds, return_dict=True, truncation_side=side, **options)
        return
    found = call(texts, text_pair=seconds, return_dict=True, truncation_side=side, **options)
    assert isinstance(found, dict)
    assert found.keys() == expected.keys()
    for name, column in expected.items():
        assert [list(row) if isinstance(row, list) else row for row in found[name]] == column, name


def test_rows_that_are_padded_afterwards(padding: Pair) -> None:
    rows = [{"input_ids": padding.ours.encode(text), "labels": 1} for text in TEXTS]
    for options in ({}, {"pad_to_multiple_of": 8}, {"padding_side": "left"}, {"return_tensors": "np"}):
        expected = padding.theirs.pad([dict(row) for row in rows], **options)
        found = padding.ours.pad(rows, **options)
        for name, column in expected.items():
            assert np.array_equal(found[name], column), name


# -- what is built on tokenizers --------------------------------------------------------------------------


def test_the_blocks_of_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = "docs/hugging-face.md"
    names: dict[str, Any] = {}
    found = list(blocks((ROOT / document).read_text(encoding="utf-8")))
    for block in found:
        run_python(document, block, names)
    assert [block.language for block in found] == ["python"] * 3
