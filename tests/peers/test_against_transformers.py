"""What we save, opened by `transformers.AutoTokenizer`; what it saves, opened by us."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bpe_tokenizer import BPETokenizer, FormatError, Model
from hostile import hostile_texts, special_token_texts
from peers.hf_transformers import assert_same_ids_and_text, assert_same_roles, opened
from small_tokenizers import without_surrogates

if TYPE_CHECKING:
    pass


pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("default")]


LAYOUTS: dict[str, dict[str, Any]] = {
    "no specials": {},
    "after the bytes": {"special_tokens": ["<bos>", "<eos>", "<pad>", "<unk>", "<|user|>"]},
    "after the vocabulary": {"special_tokens": {"<|endoftext|>": 400, "<|im_start|>": 401}},
    "far away": {"special_tokens": {"<s>": 100_257, "</s>": 100_260, "[PAD]": 399}},
    "no words": {"special_tokens": {"«café»": 400, "<｜end▁of▁sentence｜>": 402, "日本": 500}},
}


@pytest.mark.sampled(0.1)
@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "deepseek-v3"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_what_we_save_opens_with_the_same_ids_and_text(
    layout: dict[str, Any], pattern: str, stdlib_texts: list[str], mixed_text: str, tmp_path: Path
) -> None:
    ours = BPETokenizer(split_pattern=pattern).train(
        [stdlib_texts[0], mixed_text], vocab_size=400, verbose=False, **layout
    )
    ours.save(tmp_path)
    theirs = opened(tmp_path)
    assert len(theirs) == len(ours)
    texts = [mixed_text, stdlib_texts[2][:3000], "a , b . don 't ?", *hostile_texts(100)]
    assert_same_ids_and_text(theirs, ours, [*texts, *special_token_texts(list(ours.special_tokens))])
    assert_same_roles(theirs, ours)


def from_ranks(trained: BPETokenizer, path: Path) -> BPETokenizer:
    return BPETokenizer.load(path, **trained.export(path, "tiktoken"))


def from_minbpe(trained: BPETokenizer, path: Path) -> BPETokenizer:
    trained.export(path.with_suffix(".model"), "minbpe")
    return BPETokenizer.load(path.with_suffix(".model"))


def from_pair(trained: BPETokenizer, path: Path) -> BPETokenizer:
    trained.export(path, "gpt2")
    return BPETokenizer.load(path)


# Sources that record no post-processor.
SOURCES: dict[str, Callable[[BPETokenizer, Path], BPETokenizer]] = {
    "trained": lambda trained, _: trained,
    "tiktoken": from_ranks,
    "minbpe": from_minbpe,
    "gpt2": from_pair,
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_nothing_is_added_that_the_source_does_not_record(
    source: Callable[[BPETokenizer, Path], BPETokenizer], mixed_text: str, tmp_path: Path
) -> None:
    trained = BPETokenizer("gpt2", None).train(
        mixed_text, 300, special_tokens={"<|bos|>": 300, "<|endoftext|>": 301}, verbose=False
    )
    ours = source(trained, tmp_path / "source")
    added = ours.encode("a", add_special_tokens=True)
    assert added[-1] == 301
    ours.save(tmp_path / "saved")
    texts = [mixed_text, *map(without_surrogates, hostile_texts(10))]
    openings = [opened(tmp_path / "saved"), ours.to_transformers()]
    for theirs in openings:
        assert [theirs(text)["input_ids"] for text in texts] == [ours.encode(text) for text in texts]
        assert (theirs.bos_token, theirs.eos_token) == (ours.bos_token, ours.eos_token)
    alone = ours.to_tokenizers()
    assert [alone.encode(text).ids for text in texts] == [ours.encode(text) for text in texts]
    for again in (BPETokenizer.load(tmp_path / "saved"), BPETokenizer.from_huggingface(openings[1])):
        assert again.encode("a", add_special_tokens=True) == added


def test_what_transformers_adds_is_read_back(
    stdlib_texts: list[str], mixed_text: str, tmp_path: Path
) -> None:
    BPETokenizer().train(stdlib_texts[:1], 400, special_tokens={"<eos>": 400}, verbose=False).save(
        tmp_path / "1"
    )
    theirs = opened(tmp_path / "1")
    theirs.add_special_tokens({"pad_token": "<new pad>"})
    theirs.add_tokens(["word", "日本"])
    theirs.chat_template = "{{ messages }}"
    theirs.save_pretrained(str(tmp_path / "2"))
    ours = BPETokenizer.from_pretrained(tmp_path / "2")
    assert (ours.pad_token, ours.pad_token_id) == ("<new pad>", 401)
    assert ours.model.config["chat_template"] == "{{ messages }}"
    assert_same_ids_and_text(theirs, ours, ["a word, 日本<new pad>words", mixed_text])


def test_ids_that_do_not_survive_in_the_library_are_refused(tmp_path: Path) -> None:
    """After a far token it gives out ids that it does not find again when it reads its own file."""
    BPETokenizer().train("ab ab", 257, special_tokens={"<far>": 500}, verbose=False).save(tmp_path / "1")
    theirs = opened(tmp_path / "1")
    theirs.add_tokens(["<new>"])
    theirs.save_pretrained(str(tmp_path / "2"))
    assert theirs.convert_tokens_to_ids("<new>") == 501
    assert opened(tmp_path / "2").convert_tokens_to_ids("<new>") == 258
    with pytest.raises(FormatError, match=r'501 is not the id that Hugging Face tokenizers gives "<new>"'):
        BPETokenizer.from_pretrained(tmp_path / "2")


@pytest.mark.parametrize("default", ["D", None])
def test_additional_chat_templates(default: str | None, tmp_path: Path) -> None:
    BPETokenizer().train("low low", 258, verbose=False).save(tmp_path / "1")
    (tmp_path / "1" / "additional_chat_templates").mkdir()
    for name in ("tool_use", "rag"):
        (tmp_path / "1" / "additional_chat_templates" / f"{name}.jinja").write_text(name)
    if default is not None:
        (tmp_path / "1" / "chat_template.jinja").write_text(default)
    BPETokenizer.load(tmp_path / "1").save(tmp_path / "2")
    expected = {"tool_use": "tool_use", "rag": "rag"} | ({} if default is None else {"default": default})
    assert opened(tmp_path / "1").chat_template == opened(tmp_path / "2").chat_template == expected
    # The files of an older tokenizer would count instead of the config.
    for again in (tmp_path / "1", tmp_path / "2"):
        core = BPETokenizer.load(again).model.core
        BPETokenizer.from_model(Model(core, config={"chat_template": "new"})).save(again)
        assert opened(again).chat_template == "new"
        assert BPETokenizer.load(again).model.config["chat_template"] == "new"
