"""Ids equal to llama.cpp's for GGUF files: those that it and others wrote, and those that we write.

It needs llama-cpp-python, whose library opens a file for its vocabulary alone.
`BPE_TOKENIZER_LLAMA_CPP_VOCABS` may name a directory of further files `ggml-vocab-*.gguf` (llama.cpp has some
in its `models/`, with vectors).
"""

from __future__ import annotations

import ctypes
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import gguf_files
from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats import gguf
from bpe_tokenizer.formats.gguf.file import read_metadata
from bpe_tokenizer.formats.gguf.pre_tokenizers import BYTE_LEVEL, FAMILIES
from bpe_tokenizer.model import Metaspace, Model, PostProcessor
from gguf_files import CONTROL, RESPELT, USER_DEFINED, byte_level, gemma, pair_vocabulary, spm
from hostile import hostile_texts, random_mixtures, special_token_texts

llama_cpp: Any = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")

pytestmark = [pytest.mark.peer, pytest.mark.llama_cpp]

CORPORA = ["books", "code", "multi", "zh"]
SAMPLE = 20_000
FIRST_NAMES = [names.split()[0] for names, _ in FAMILIES]
Documents = Callable[[str, int], list[str]]


class LlamaCpp:
    """A vocabulary that llama.cpp has opened."""

    def __init__(self, path: Path) -> None:
        parameters = llama_cpp.llama_model_default_params()
        parameters.vocab_only = True
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), parameters)
        assert self.model, f"llama.cpp cannot open {path}"
        self.vocab = llama_cpp.llama_model_get_vocab(self.model)

    def close(self) -> None:
        llama_cpp.llama_model_free(self.model)

    def encode(self, text: str, *, add_special: bool = False, parse_special: bool = False) -> list[int]:
        data = text.encode()
        count = len(data) + 8
        ids = (llama_cpp.llama_token * count)()
        found = llama_cpp.llama_tokenize(self.vocab, data, len(data), ids, count, add_special, parse_special)
        assert found >= 0
        return list(ids[:found])

    def piece(self, token_id: int) -> bytes:
        buffer = ctypes.create_string_buffer(4096)
        length = llama_cpp.llama_token_to_piece(self.vocab, token_id, buffer, len(buffer), 0, True)
        assert length >= 0
        return buffer.raw[:length]


def _be_quiet(_level: int, _text: bytes, _data: Any) -> None: ...


_CALLBACK = llama_cpp.llama_log_callback(_be_quiet)


@pytest.fixture(scope="session", autouse=True)
def _backend() -> None:
    llama_cpp.llama_log_set(_CALLBACK, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()


@pytest.fixture
def opened() -> Iterator[Callable[[Path], LlamaCpp]]:
    """Opens files, and closes them after the test."""
    models: list[LlamaCpp] = []

    def open_path(path: Path) -> LlamaCpp:
        models.append(LlamaCpp(path))
        return models[-1]

    yield open_path
    for model in models:
        model.close()


Opened = Callable[[Path], LlamaCpp]


def without_surrogates(texts: Sequence[str]) -> list[str]:
    return [text for text in texts if not any("\ud800" <= character <= "\udfff" for character in text)]


HOSTILE = without_surrogates(hostile_texts(0))
MIXTURES = list(random_mixtures(1000, seed=3))


def digits_and_spaces(count: int) -> list[str]:
    """Where the pre-tokenizers differ most."""
    parts = [*"12a!\n\t²٣中É。", "123", "4567", " ", "  ", "\u3000", "'s"]
    generator = random.Random(7)
    return ["".join(generator.choices(parts, k=generator.randint(1, 15))) for _ in range(count)]


def assert_same_ids(
    theirs: LlamaCpp, ours: _core.Encoder, texts: Sequence[str], *, special: bool = False
) -> None:
    for text, row in zip(texts, ours.encode_batch(texts, special), strict=True):
        assert list(row) == theirs.encode(text, parse_special=special), repr(text[:1000])


def assert_same(theirs: LlamaCpp, model: Model, texts: Sequence[str]) -> None:
    """The same ids with and without special tokens, and around a text."""
    encoder = _core.Encoder(model.core)
    contents = [token[0] for token in model.core.added_tokens]
    texts = [*texts, *special_token_texts([*contents[:20], *contents[-5:]])]
    for special in (False, True):
        assert_same_ids(theirs, encoder, texts, special=special)
    tokenizer = BPETokenizer.from_model(model)
    for text in ("", "a", " a b\n"):
        assert tokenizer.encode(text, add_special_tokens=True) == theirs.encode(text, add_special=True)


# -- pre-tokenizers -------------------------------------------------------------------------------------


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("pre", FIRST_NAMES)
def test_pre_tokenizers_cut_alike(tmp_path: Path, opened: Opened, pre: str, seed: int) -> None:
    path = tmp_path / "pairs.gguf"
    core = pair_vocabulary(path, pre, seed)
    patterns, ignore_merges = BYTE_LEVEL[pre].patterns, BYTE_LEVEL[pre].ignore_merges
    core = _core.Model(core.vocab, core.merges, split_patterns=patterns, ignore_merges=ignore_merges)
    texts = [*MIXTURES, *digits_and_spaces(1000), *(HOSTILE if seed == 0 else ())]
    assert_same_ids(opened(path), _core.Encoder(core), texts)


@pytest.mark.parametrize("pre", [None, *BYTE_LEVEL])
def test_every_name(tmp_path: Path, opened: Opened, pre: str | None) -> None:
    path = byte_level(tmp_path / "small.gguf", ["a b", "ab c", "Ġ abc"], [("<a>", CONTROL)], pre=pre)
    assert_same(opened(path), gguf.load(path), ["abc abc", "ab", *MIXTURES[:200]])


@pytest.mark.fixtures
@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("pre", FIRST_NAMES)
def test_a_real_vocabulary_under_another_name(
    tmp_path: Path, opened: Opened, shared: Path, documents: Documents, pre: str
) -> None:
    source = shared / "vocab" / "ggml-vocab-qwen2.gguf"
    values = read_metadata(source, lambda key: "template" not in key).values
    lists = {key: value.tolist() for key, value in values.items() if hasattr(value, "tolist")}
    path = gguf_files.write(tmp_path / "renamed.gguf", values | lists | {"tokenizer.ggml.pre": pre})
    texts = [document for name in CORPORA for document in documents(name, SAMPLE)]
    assert_same(opened(path), gguf.load(path), [*texts, *MIXTURES[:300]])


# -- real files -----------------------------------------------------------------------------------------


def real_files() -> list[Path]:
    fixtures = os.environ.get("BPE_TOKENIZER_FIXTURES")
    more = os.environ.get("BPE_TOKENIZER_LLAMA_CPP_VOCABS")
    directories = [Path(fixtures, "vocab")] if fixtures else []
    directories += [Path(more)] if more else []
    found = [path for directory in directories for path in sorted(directory.glob("ggml-vocab-*.gguf"))]
    return list({path.name: path for path in found if "bert" not in path.name}.values())


@pytest.mark.fixtures
@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.stem)
def test_real_files(tmp_path: Path, opened: Opened, documents: Documents, path: Path) -> None:
    model = gguf.load(path)
    texts = [document for name in CORPORA for document in documents(name, SAMPLE)]
    texts += [*MIXTURES, *HOSTILE]
    theirs = opened(path)
    assert_same(theirs, model, texts)
    for token_id, token in model.core.vocab.items():
        shown = token.replace("▁".encode(), b" ") if model.core.decoder else token
        if not (model.core.decoder and token.startswith(b"<0x")):
            assert theirs.piece(token_id) == shown, token_id
    gguf.save(model, tmp_path / "saved.gguf")
    assert_same(opened(tmp_path / "saved.gguf"), model, texts[::3])


@pytest.mark.parametrize("name", RESPELT)
def test_patterns_in_other_words(tmp_path: Path, opened: Opened, name: str) -> None:
    tokenizer = BPETokenizer(split_pattern=RESPELT[name], normalization=None)
    tokenizer.train(
        [text for text in MIXTURES[:300] if "ſ" not in text],
        700,
        special_tokens={"<|eos|>": 256},
        verbose=False,
    )
    gguf.save(tokenizer.model, tmp_path / "respelt.gguf")
    assert_same(opened(tmp_path / "respelt.gguf"), tokenizer.model, [*MIXTURES, *digits_and_spaces(200)])


# -- SentencePiece-style --------------------------------------------------------------------------------


@pytest.mark.fixtures
@pytest.mark.parametrize("distinct", [True, False])
def test_a_vocabulary_of_substrings(
    tmp_path: Path, opened: Opened, corpus: Callable[[str, int], str], distinct: bool
) -> None:
    """No merging ever made this one, so every rule about scores takes part."""
    text = "".join(corpus(name, SAMPLE) for name in CORPORA)
    marked = text.replace(" ", "▁").replace("\n", "")
    counts = Counter(marked[at : at + size] for size in range(2, 7) for at in range(0, len(marked), 3))
    substrings = [substring for substring, _ in counts.most_common(6000)]
    characters = sorted(set("".join(substrings)))
    scores = dict.fromkeys(characters, -1.0)
    scores |= {substring: -2.0 - rank for rank, substring in enumerate(substrings)}
    if not distinct:  # the rare ones share their scores by twos
        scores |= {substring: -9000.0 - rank // 2 for rank, substring in enumerate(substrings[5900:])}
    path = tmp_path / "substrings.gguf"
    spm(path, scores, [("<x>", USER_DEFINED), ("<|im_end|>", CONTROL)])
    try:
        model = gguf.load(path)
    except FormatError as error:
        if distinct or "have the same score" not in str(error):
            raise
        return
    theirs = opened(path)
    assert_same(
        theirs, model, [*(text[at : at + 997] for at in range(0, len(text), 997)), *MIXTURES, *HOSTILE]
    )


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("bos", [False, True])
def test_metaspace_that_only_replaces_spaces(tmp_path: Path, opened: Opened, split: bool, bos: bool) -> None:
    merges = ["a b", "▁ ab", "▁ a", "b ▁", "ab ▁a"]
    merges = merges[: 3 if split else 5]
    tokens = [*"▁ab\n", *(merge.replace(" ", "") for merge in merges)]
    made = gguf.load(gemma(tmp_path / "made.gguf", merges, tokens))
    steps = {"normalizers": [], "pre_tokenizers": [Metaspace(prepend_scheme="never", split=split)]}
    core = _core.Model(made.core.vocab, made.core.merges, **made.core.settings | steps)
    model = Model(core, made.named_tokens, made.post_processor if bos else PostProcessor())
    gguf.save(model, tmp_path / "saved.gguf")
    texts = ["".join(random.Random(seed).choices("ab é\n▁", k=seed % 15)) for seed in range(200)]
    assert_same(opened(tmp_path / "saved.gguf"), model, texts)


@pytest.mark.parametrize("name", ["phi-3", "Phi3 mini", "modern-bert", "other"])
def test_names_of_models(tmp_path: Path, opened: Opened, name: str) -> None:
    more = [
        ("<|user|>", CONTROL),
        ("<|endoftext|>", CONTROL),
        ("[MASK]", USER_DEFINED),
        ("</x>", USER_DEFINED),
    ]
    path = spm(tmp_path / "named.gguf", {"▁": -1.0, "a": -2.0, "▁a": -3.0}, more, general__name=name)
    texts = ["<|user|> \n a", "a [MASK] a", "a </s>  a", "<s> a", "<|endoftext|>\n a<x> a"]
    assert_same(opened(path), gguf.load(path), texts)


# -- what we write --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern", ["gpt2", "r50k", "cl100k", "llama3", "qwen2", "qwen3.5", "deepseek-v3", "falcon", "starcoder"]
)
@pytest.mark.fixtures
def test_trained_tokenizers(tmp_path: Path, opened: Opened, documents: Documents, pattern: str) -> None:
    texts = [document for name in CORPORA for document in documents(name, SAMPLE)]
    special = {"<|bos|>": 256, "<|eos|>": 257, "<|im_end|>": 3000}
    tokenizer = BPETokenizer(split_pattern=pattern, normalization=None)
    tokenizer.train(texts, 2000, special_tokens=special, verbose=False)
    gguf.save(tokenizer.model, tmp_path / "trained.gguf")
    assert_same(opened(tmp_path / "trained.gguf"), tokenizer.model, [*texts, *MIXTURES, *HOSTILE])


@pytest.mark.fixtures
@pytest.mark.parametrize("name", ["r50k_base", "p50k_base", "cl100k_base"])
def test_published_ranks(
    tmp_path: Path, opened: Opened, shared: Path, documents: Documents, name: str
) -> None:
    """cl100k's tokens never lie across the place where llama3's pattern cuts and its own does not."""
    tokenizer = BPETokenizer.load(shared / "vocab" / f"{name}.tiktoken")
    gguf.save(tokenizer.model, tmp_path / "ranks.gguf")
    texts = [document for corpus_name in CORPORA for document in documents(corpus_name, SAMPLE)]
    assert_same(opened(tmp_path / "ranks.gguf"), tokenizer.model, [*texts, *MIXTURES, *HOSTILE])
