"""Files of `tokenizers`: the same ids, offsets and texts here."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.errors import TokenizerError
from hf_files import (
    BYTE_LEVEL,
    added_token,
    byte_level,
    bytes_vocab,
    template,
    tokenizer_json,
    write,
)
from hostile import after_a_letter, code_points, hostile_texts, special_token_texts

if TYPE_CHECKING:
    from tokenizers import Tokenizer
from peers.hf_compare import assert_same, assert_same_ids, theirs_of

pytestmark = pytest.mark.peer


CORPORA = ["books", "code", "multi", "zh"]


SAMPLE = 150_000


Documents = Callable[[str, int], list[str]]


def both(directory: Path, document: dict[str, Any]) -> tuple[Tokenizer, BPETokenizer]:
    write(directory, document)
    return theirs_of(directory), BPETokenizer.from_pretrained(directory)


# -- files of the library's own kind --------------------------------------------------------------------


@pytest.fixture(scope="session")
def gpt2(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, BPETokenizer]:
    """GPT-2, as its first tokenizer.json was: merges as "left right", no type in the model."""
    vocab = json.loads((shared / "vocab/gpt2-vocab.json").read_text(encoding="utf-8"))
    merges = (shared / "vocab/gpt2-merges.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
    document = tokenizer_json(
        vocab,
        merges,  # with the line "#version: 0.2", which is no merge
        added=[added_token(50256, "<|endoftext|>", normalized=True)],
        pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        post_processor=byte_level(add_prefix_space=True),
        unk_token="",
        continuing_subword_prefix="",
        end_of_word_suffix="",
    )
    del document["model"]["type"]
    return both(tmp_path_factory.mktemp("gpt2"), document)


@pytest.mark.fixtures
@pytest.mark.parametrize("corpus_name", CORPORA)
def test_gpt2_on_a_sample_of_each_corpus(
    gpt2: tuple[Tokenizer, BPETokenizer], documents: Documents, corpus_name: str
) -> None:
    assert_same(*gpt2, documents(corpus_name, SAMPLE))


@pytest.mark.slow
@pytest.mark.fixtures
@pytest.mark.parametrize("corpus_name", CORPORA)
def test_gpt2_on_each_corpus_whole(
    gpt2: tuple[Tokenizer, BPETokenizer], documents: Documents, corpus_name: str
) -> None:
    assert_same_ids(*gpt2, documents(corpus_name, -1))


@pytest.mark.fixtures
def test_gpt2_on_hostile_texts(gpt2: tuple[Tokenizer, BPETokenizer]) -> None:
    assert_same(*gpt2, chain(hostile_texts(), special_token_texts(["<|endoftext|>"])))
    assert_same_ids(*gpt2, list(code_points(0, 0x10000, 3)))
    assert_same_ids(*gpt2, list(after_a_letter(code_points(0, 0x10000, 3))))


@pytest.mark.slow
@pytest.mark.fixtures
def test_gpt2_on_every_code_point(gpt2: tuple[Tokenizer, BPETokenizer]) -> None:
    for start in range(0, 0x110000, 0x10000):
        stop = start + 0x10000
        assert_same_ids(*gpt2, list(code_points(start, stop)))
        assert_same_ids(*gpt2, list(after_a_letter(code_points(start, stop))))


# -- parts ----------------------------------------------------------------------------------------------


VOCAB = bytes_vocab(
    "he", "ll", "hell", "hello", "Ġw", "Ġwor", "or", "Ġworl", "ld", "12", "ĊĊ", "Ã©", "..", "'s"
)


MERGES = [
    ["h", "e"],
    ["l", "l"],
    ["he", "ll"],
    ["hell", "o"],
    ["o", "r"],
    ["Ġ", "w"],
    ["Ġw", "or"],
    ["Ġwor", "l"],
    ["l", "d"],
    ["1", "2"],
    ["Ċ", "Ċ"],
    ["Ã", "©"],
    [".", "."],
    ["'", "s"],
]


SIZE = len(VOCAB)


TEXTS = [
    "",
    "hello world",
    " hello  world ",
    "hello<s>world",
    "<s> hello </s>",
    "1212 ½² hello's it'S\n\n..!?",
    "héllo he\u0301llo ﬁ① 한글 \u1112\u1161\u11ab",
    "hello-world_hello.world",
    "x<s><s>  </s>y\n<s>",
    "<m> hello<m>hello <m>hello",
    "\n\n \n hello\r\nworld\t\t12",
]


POST_PROCESSORS = {
    "template": template("<s>", "<s>", "$A", "</s>", ids={"<s>": [SIZE], "</s>": [SIZE + 1]}),
    "several ids": template("$A", "end", ids={"end": [SIZE + 1, 104, SIZE]}),
    "roberta": {
        "type": "RobertaProcessing",
        "sep": ["</s>", SIZE + 1],
        "cls": ["<s>", SIZE],
        "trim_offsets": False,
        "add_prefix_space": False,
    },
    "bert": {"type": "BertProcessing", "sep": ["</s>", SIZE + 1], "cls": ["<s>", SIZE]},
    "sequence": {
        "type": "Sequence",
        "processors": [
            BYTE_LEVEL,
            template("<s>", "$A", "</s>", ids={"<s>": [SIZE], "</s>": [SIZE + 1]}),
            BYTE_LEVEL,
        ],
    },
}


@pytest.mark.parametrize("post_processor", POST_PROCESSORS.values(), ids=POST_PROCESSORS)
def test_post_processors(post_processor: Any, tmp_path: Path) -> None:
    added = [added_token(SIZE, "<s>"), added_token(SIZE + 1, "</s>")]
    document = tokenizer_json(VOCAB, MERGES, added=added, post_processor=post_processor)
    theirs, ours = both(tmp_path, document)
    assert_same(theirs, ours, TEXTS)
    ours.save(tmp_path / "again")
    saved = json.loads((tmp_path / "again/tokenizer.json").read_text(encoding="utf-8"))
    assert saved["post_processor"] == post_processor
    assert_same(theirs_of(tmp_path / "again"), BPETokenizer.from_pretrained(tmp_path / "again"), TEXTS)


@pytest.mark.parametrize("ignore_merges", [True, False])
def test_ignore_merges(ignore_merges: bool, tmp_path: Path) -> None:
    vocab = VOCAB | {"world": SIZE, "Ġhello": SIZE + 1}  # made by no merge
    theirs, ours = both(tmp_path, tokenizer_json(vocab, MERGES, ignore_merges=ignore_merges))
    assert (SIZE in ours.encode("world hello")) is ignore_merges
    assert_same(theirs, ours, TEXTS)


def test_a_merge_that_stands_twice(tmp_path: Path) -> None:
    vocab = bytes_vocab("ab", "bc", "abc")
    theirs, ours = both(tmp_path, tokenizer_json(vocab, [["a", "b"], ["b", "c"], ["a", "b"]]))
    assert_same(theirs, ours, ["abc", "ab", "bcab"])


def test_characters_that_are_left_out(tmp_path: Path) -> None:
    """Without an unknown token, the characters around an unknown one are neighbours and may merge."""
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    document = tokenizer_json(
        {"▁": 0, "▁▁": 1, "a": 2, "▁a": 3},
        ["▁ ▁", "▁ a"],
        pre_tokenizer=None,
        normalizer=spaces,
        decoder=spaces | {"pattern": {"String": "▁"}, "content": " "},
    )
    theirs, ours = both(tmp_path, document)
    assert ours.encode("▁〇▁") == [1]
    assert_same_ids(theirs, ours, ["▁〇▁", " 〇 a〇 〇〇 〇a", "〇 x a ", "a〇〇〇 " * 40])


def test_the_library_gives_added_tokens_the_ids_that_we_expect(tmp_path: Path) -> None:
    added = [added_token(SIZE, "<a>"), added_token(7777, "<far>"), added_token(SIZE + 1, "<b>")]
    document = tokenizer_json(VOCAB, MERGES, added=added)
    write(tmp_path, document)
    given = [theirs_of(tmp_path).token_to_id(name) for name in ("<a>", "<far>", "<b>")]
    assert given == [SIZE, SIZE + 1, SIZE + 2]
    with pytest.raises(TokenizerError, match=rf"added_tokens\[1\]\.id: 7777 .* which is {SIZE + 1};"):
        BPETokenizer.from_pretrained(tmp_path)
