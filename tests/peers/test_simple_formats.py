"""GPT-2's pair against transformers, and tekken.json against mistral-common."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import AddedToken, BPETokenizer, Model, PostProcessor
from bpe_tokenizer.formats import gpt2
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hostile import hostile_texts, special_token_texts
from peers.hf_transformers import assert_same_ids_and_text, assert_same_roles, opened, tokenizers
from small_tokenizers import with_post_processor, without_surrogates
from tekken_files import tekken_document

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("default")]

CORPORA = ["books", "code", "multi", "zh"]
TEKKEN = NAMED_PATTERNS["tekken"].patterns[0]

Corpus = Callable[[str, int], str]


@pytest.mark.sampled(0.16)
@pytest.mark.parametrize("pattern", ["gpt2", "qwen2"])
@pytest.mark.parametrize(
    "special",
    [
        None,
        ["<bos>", "<eos>", "<pad>", "<unk>"],
        {"<|endoftext|>": 400, "<|im_start|>": 401},
        {"<s>": 100_257, "</s>": 100_260, "[PAD]": 399, "日本": 500},
    ],
)
def test_transformers_opens_what_we_save(
    pattern: str, special: Any, stdlib_texts: list[str], mixed_text: str, tmp_path: Path
) -> None:
    tokenizer = BPETokenizer(pattern, "NFC" if pattern == "qwen2" else None)
    tokenizer.train([*stdlib_texts, mixed_text], 400, special_tokens=special, verbose=False)
    tokenizer = with_post_processor(tokenizer)
    tokenizer.export(tmp_path, "gpt2")
    theirs = opened(tmp_path)
    assert type(theirs).__name__ == ("Qwen2Tokenizer" if pattern == "qwen2" else "GPT2Tokenizer")
    assert len(theirs.get_vocab()) == len(tokenizer)
    texts = [mixed_text, *hostile_texts(300), *special_token_texts(list(tokenizer.special_tokens))]
    assert_same_ids_and_text(theirs, tokenizer, texts)
    assert_same_roles(theirs, tokenizer)


def test_transformers_reads_the_rest_of_the_config(stdlib_texts: list[str], tmp_path: Path) -> None:
    core = (
        BPETokenizer("gpt2", None)
        .train(stdlib_texts, 300, special_tokens=["<a>", "<b>"], verbose=False)
        .model.core
    )
    added = [
        AddedToken("<a>", 256, lstrip=True),
        AddedToken("<b>", 257, rstrip=True),
        AddedToken("word", 300, False),
    ]
    model = Model(
        core.with_added_tokens(added), {"bos": "<b>", "eos": "", "pad": "<a>"}, PostProcessor((257,), ())
    )
    gpt2.save(model, tmp_path)
    theirs = opened(tmp_path)
    texts = ["x  <a>  y <b>  z word words", "", *hostile_texts(100)]
    assert_same_ids_and_text(theirs, BPETokenizer.from_model(model), texts)
    assert (theirs.bos_token, theirs.eos_token, theirs.pad_token) == ("<b>", None, "<a>")


def test_we_open_the_pair_of_another(stdlib_texts: list[str], tmp_path: Path) -> None:
    """A vocab.json and merges.txt of `tokenizers`, with the older files of `transformers` beside them."""
    learned = tokenizers.ByteLevelBPETokenizer(add_prefix_space=False)
    learned.train_from_iterator(
        stdlib_texts, 500, special_tokens=["<s>", "<|endoftext|>"], show_progress=False
    )
    learned.save_model(str(tmp_path))
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"pad_token": "<p>", "bos_token": "<s>"}))
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<p>": 500, "plain": 501}))
    config = {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "add_prefix_space": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    theirs = opened(tmp_path)
    ours = BPETokenizer.load(tmp_path, "gpt2")
    assert ours.special_tokens == {"<s>": 0, "<|endoftext|>": 1, "<p>": 500}
    texts = [*stdlib_texts[:1], *hostile_texts(300), "a<s>b<p>c plain <|endoftext|>", " a", "a"]
    assert_same_ids_and_text(theirs, ours, texts)
    assert_same_roles(theirs, ours)


# -- tekken.json ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tekken_json(ranks: Callable[[str], dict[bytes, int]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tekken.json of o200k's ranks, with the sizes of Mistral's: 131,072 ids, 1,000 of them special.

    (The tokens behind those ids are cut off.)
    """
    tokens = [token for token in ranks("o200k_base") if len(token) > 1]
    special = ["<unk>", "<s>", "</s>", "<pad>", "[INST]", "[THINK]"]
    sizes = {"pattern": TEKKEN, "default_vocab_size": 131_072}
    document = tekken_document(tokens, special, 1000, **sizes)
    path = tmp_path_factory.mktemp("tekken") / "tekken.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.fixtures
def test_tekken_against_mistral_common(tekken_json: Path, corpus: Corpus) -> None:
    """Its own files come with it: the newest and the oldest kind are compared too."""
    library = pytest.importorskip("mistral_common", reason="mistral-common is not installed")
    from mistral_common.tokens.tokenizers.tekken import SpecialTokenPolicy, Tekkenizer  # type: ignore[import-not-found, unused-ignore]

    data = Path(str(library.__file__)).parent / "data"
    texts = [corpus(name, 50_000) for name in CORPORA] + list(map(without_surrogates, hostile_texts(500)))
    texts += special_token_texts(["<s>", "[INST]", "<SPECIAL_30>"])
    for path in [tekken_json, *sorted(data.glob("tekken*.json"))]:
        ours, theirs = BPETokenizer.load(path, "tekken"), Tekkenizer.from_file(path)
        assert list(ours.vocab) == list(range(theirs.n_words))
        for token_id, token in ours.vocab.items():
            assert theirs.id_to_byte_piece(token_id, SpecialTokenPolicy.KEEP) == token
        for text in texts:
            assert ours.encode(text) == theirs.encode(text, bos=False, eos=False)
            assert ours.encode(text, add_special_tokens=True) == theirs.encode(text, bos=True, eos=True)
    assert "mistral_common" in sys.modules
