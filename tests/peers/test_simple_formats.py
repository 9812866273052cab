"""GPT-2's pair and tekken.json against the libraries that read them, on published files and on ours."""

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
from small_tokenizers import with_post_processor, without_surrogates
from tekken_files import tekken_document

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("default")]

CORPORA = ["books", "code", "multi", "zh"]
SAMPLE = 200_000
TEKKEN = NAMED_PATTERNS["tekken"].patterns[0]

Corpus = Callable[[str, int], str]


# -- GPT-2's published files ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def r50k(ranks: Callable[[str], dict[bytes, int]]) -> Any:
    tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is not installed")
    return tiktoken.Encoding(
        "r50k_base",
        pat_str=NAMED_PATTERNS["r50k"].patterns[0],
        mergeable_ranks=ranks("r50k_base"),
        special_tokens={"<|endoftext|>": 50256},
    )


@pytest.fixture(scope="module")
def tokenizers_gpt2(shared: Path) -> Any:
    """`tokenizers` over the same two files, read by its own reader."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    vocab = shared / "vocab"
    files = str(vocab / "gpt2-vocab.json"), str(vocab / "gpt2-merges.txt")
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(*files))
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = tokenizers.decoders.ByteLevel()
    theirs.add_special_tokens(["<|endoftext|>"])
    return theirs


@pytest.mark.fixtures
def test_the_published_pair(shared: Path, r50k: Any, tokenizers_gpt2: Any, corpus: Corpus) -> None:
    published = BPETokenizer.load(shared / "vocab" / "gpt2-vocab.json", "gpt2")
    assert published.special_tokens == {"<|endoftext|>": 50256}
    hostile = [*hostile_texts(1000), *special_token_texts(["<|endoftext|>"])]
    for text in map(without_surrogates, [*(corpus(name, SAMPLE) for name in CORPORA), *hostile]):
        ids = published.encode(text)
        assert ids == r50k.encode_ordinary(text)
        assert published.decode(ids) == text
        ids = published.encode(text, allowed_special="all")
        assert ids == r50k.encode(text, allowed_special="all") == tokenizers_gpt2.encode(text).ids


# -- what we save, opened by transformers ---------------------------------------------------------------


@pytest.fixture(scope="module")
def transformers() -> Any:
    from peers.hf_transformers import transformers

    return transformers


def assert_same(theirs: Any, ours: BPETokenizer, texts: list[str]) -> None:
    for text in map(without_surrogates, texts):
        for add in (False, True):
            ids = ours.encode(text, add, allowed_special="all")
            assert theirs.encode(text, add_special_tokens=add) == ids, repr(text[:500])
            assert theirs.decode(ids) == ours.decode(ids)


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
    pattern: str, special: Any, transformers: Any, stdlib_texts: list[str], mixed_text: str, tmp_path: Path
) -> None:
    tokenizer = BPETokenizer(pattern, "NFC" if pattern == "qwen2" else None)
    tokenizer.train([*stdlib_texts, mixed_text], 400, special_tokens=special, verbose=False)
    tokenizer = with_post_processor(tokenizer)
    tokenizer.export(tmp_path, "gpt2")
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    assert type(theirs).__name__ == ("Qwen2Tokenizer" if pattern == "qwen2" else "GPT2Tokenizer")
    assert len(theirs.get_vocab()) == len(tokenizer)
    tokens = list(tokenizer.special_tokens)
    assert_same(theirs, tokenizer, [mixed_text, *hostile_texts(300), *special_token_texts(tokens)])
    for role in ("bos", "eos", "pad", "unk"):
        assert getattr(theirs, f"{role}_token") == getattr(tokenizer, f"{role}_token")


def test_transformers_reads_the_rest_of_the_config(
    transformers: Any, stdlib_texts: list[str], tmp_path: Path
) -> None:
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
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    texts = ["x  <a>  y <b>  z word words", "", *hostile_texts(100)]
    assert_same(theirs, BPETokenizer.from_model(model), texts)
    assert (theirs.bos_token, theirs.eos_token, theirs.pad_token) == ("<b>", None, "<a>")


def test_we_open_the_pair_of_another(transformers: Any, stdlib_texts: list[str], tmp_path: Path) -> None:
    """A vocab.json and merges.txt of `tokenizers`, with the older files of `transformers` beside them."""
    tokenizers = pytest.importorskip("tokenizers")
    learned = tokenizers.ByteLevelBPETokenizer(add_prefix_space=False)
    learned.train_from_iterator(
        stdlib_texts, 500, special_tokens=["<s>", "<|endoftext|>"], show_progress=False
    )
    learned.save_model(str(tmp_path))
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"pad_token": "<p>", "bos_token": "<s>"}))
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<p>": 500, "plain": 501}))
    config = {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, "add_prefix_space": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    ours = BPETokenizer.load(tmp_path, "gpt2")
    assert ours.special_tokens == {"<s>": 0, "<|endoftext|>": 1, "<p>": 500}
    texts = [*stdlib_texts[:1], *hostile_texts(300), "a<s>b<p>c plain <|endoftext|>", " a", "a"]
    assert_same(theirs, ours, texts)
    for role in ("bos", "eos", "pad", "unk"):
        assert getattr(theirs, f"{role}_token") == getattr(ours, f"{role}_token")


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
