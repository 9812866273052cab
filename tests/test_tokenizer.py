from __future__ import annotations

import copy
import dataclasses
import multiprocessing
import pickle
import pickletools
import threading
import types
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from bpe_tokenizer import (
    GPT2_SPLIT_PATTERN,
    BPETokenizer,
    Model,
    ModelError,
    NotTrainedError,
    OptionError,
    PostProcessor,
    TokenizerError,
    _core,
)
from bpe_tokenizer.model import PlainNormalizer
from small_tokenizers import BYTES


def test_repr() -> None:
    pairs = [(bytes([i // 256]), bytes([i % 256])) for i in range(31_744)]
    vocab = BYTES | {256 + rank: left + right for rank, (left, right) in enumerate(pairs)}
    tokenizer = BPETokenizer.from_vocab(vocab, pairs, {"<a>": 32000, "<b>": 32001, "<c>": 40000})
    sizes = "vocab_size=32,000, n_vocab=40,001, merges=31,744, special_tokens=3"
    assert repr(tokenizer) == f"BPETokenizer({sizes})"
    inside = BPETokenizer.from_vocab(vocab, pairs, {"<a>": 32000})
    assert "n_vocab" not in repr(inside.train("low low", 257, verbose=False))
    assert (tokenizer.vocab_size, len(tokenizer)) == (32_000, 32_003)
    assert repr(BPETokenizer("gpt2", None)) == (
        f"BPETokenizer(untrained, split_pattern={GPT2_SPLIT_PATTERN!r}, normalization=None)"
    )


UNTRAINED = """
    encode('a'); encode_to_numpy('a'); encode_bytes(b'a'); encode_batch(['a']); encode_ragged(['a']);
    encode_with_offsets('a'); encode_to_numpy_with_offsets('a'); __call__('a'); __call__(['a']);
    decode([1]); decode_bytes([1]); decode_batch([[1]]); tokenize('a'); count_tokens('a');
    truncate('a', 1); split_by_tokens('a', 1); get_vocab(); vocab; merges; model;
    convert_tokens_to_ids('a'); convert_ids_to_tokens(1);
    convert_tokens_to_string(['a']); add_special_tokens(['<a>']); get_cache_stats(); clear_cache();
    save('directory'); bos_token = '<a>'; pad_token_id = 1
""".split(";")  # noqa: SIM905


@pytest.mark.parametrize("use", UNTRAINED)
def test_an_untrained_tokenizer_says_so(use: str) -> None:
    with pytest.raises(NotTrainedError, match=r"no vocabulary yet.*train") as caught:
        exec(f"tokenizer.{use.strip()}", {"tokenizer": BPETokenizer()})
    assert isinstance(caught.value, TokenizerError)
    assert isinstance(caught.value, RuntimeError)


def test_an_untrained_tokenizer_is_empty() -> None:
    tokenizer = BPETokenizer()
    assert (tokenizer.vocab_size, len(tokenizer), tokenizer.special_tokens) == (0, 0, {})
    assert (tokenizer.bos_token, tokenizer.eos_token_id) == (None, None)
    assert tokenizer


@pytest.mark.parametrize("text", [123, None, ["a"], b"a", 1.5])
def test_a_text_that_is_none_is_a_type_error(tokenizer: BPETokenizer, text: Any) -> None:
    calls: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("encode", "encode_to_numpy", "encode_with_offsets", "count_tokens", "tokenize"), ()),
        **{"truncate": (5,), "split_by_tokens": (5,)},
    }
    for method, limit in calls.items():
        with pytest.raises(TypeError, match=f"expects a str, not {type(text).__name__}"):
            getattr(tokenizer, method)(text, *limit)


# -- from_vocab ----------------------------------------------------------------------------------------


def test_the_properties_of_a_tokenizer_make_it_again(tokenizer: BPETokenizer, mixed_text: str) -> None:
    again = BPETokenizer.from_vocab(
        tokenizer.vocab,
        tokenizer.merges,
        tokenizer.special_tokens,
        split_pattern=tokenizer.split_pattern,
        normalization="NFC",
    )
    assert again == tokenizer
    text = mixed_text + "<|eos|>"
    assert again.encode(text, allowed_special="all") == tokenizer.encode(text, allowed_special="all")


def test_from_vocab_finds_special_tokens_in_the_vocabulary() -> None:
    vocab = BYTES | {256: b"<a>", 257: b"ab"}
    for special_tokens in (["<a>", "<b>"], {"<a>": 256, "<b>": 258}):
        tokenizer = BPETokenizer.from_vocab(vocab, [(b"a", b"b")], special_tokens)
        assert tokenizer.special_tokens == {"<a>": 256, "<b>": 258}
        assert tokenizer.encode("ab<a><b>", allowed_special="all") == [257, 256, 258]
        assert (tokenizer.vocab_size, len(tokenizer)) == (258, 259)


@pytest.mark.parametrize(
    ("special_tokens", "message"),
    [
        ({"<a>": 300}, "'<a>' has the id 256 in vocab"),
        ({"<b>": 257}, "it belongs to the token b'ab'"),
        (["<b>", "<b>"], "listed twice"),
    ],
)
def test_from_vocab_refuses_conflicts(special_tokens: Any, message: str) -> None:
    vocab = BYTES | {256: b"<a>", 257: b"ab"}
    with pytest.raises(ModelError, match=message):
        BPETokenizer.from_vocab(vocab, [(b"a", b"b")], special_tokens)


def changed(token_id: Any, token: Any) -> dict[Any, Any]:
    return {**BYTES, token_id: token}


@pytest.mark.parametrize(
    ("vocab", "merges", "message"),
    [
        ([], [], "vocab must be a dict of ids to bytes, not list"),
        (None, None, "vocab must be a dict .* not NoneType"),
        ({"0": b"a"}, [], "the id '0' of vocab must be an int, not str"),
        (changed(256.5, b"ab"), [], "the id 256.5 of vocab must be an int, not float"),
        (changed(-1, b"ab"), [], "the id -1 of vocab is -1; it must be from 0 to 4,294,967,294"),
        (changed(2**70, b"ab"), [], "it must be from 0 to"),
        (changed(256, "ab"), [], "the token of id 256 in vocab must be bytes, not str: 'ab'"),
        (changed(256, [97]), [], "the token of id 256 in vocab must be bytes, not list"),
        ({}, [], "no token for the byte 0x00"),
        (BYTES, [(b"a", b"b")], 'merge 0 .*: "ab" is not in the vocabulary'),
        (BYTES, 5, "merges must be a list of pairs of bytes, not int"),
        (BYTES, b"ab", "merges must be a list of pairs of bytes, not bytes"),
        (BYTES, {b"a": b"b"}, "merges must be a list of pairs of bytes, not dict"),
        (BYTES, [(b"a",)], r"merge 0 must be a pair of bytes, not \(b'a',\)"),
        (BYTES, [None], "merge 0 must be a pair of bytes, not None"),
        (BYTES, [("a", "b")], "a token of merge 0 must be bytes, not str: 'a'"),
    ],
)
@pytest.mark.parametrize("special_tokens", [None, ["<s>"]])
def test_from_vocab_refuses_other_types(vocab: Any, merges: Any, message: str, special_tokens: Any) -> None:
    with pytest.raises(TokenizerError, match=message):
        BPETokenizer.from_vocab(vocab, merges, special_tokens)


def test_from_vocab_takes_other_buffers_and_integers() -> None:
    vocab: dict[Any, Any] = {np.int64(byte): memoryview(bytes([byte])) for byte in range(256)}
    merges: Any = iter([[b"a", b"b"]])
    assert BPETokenizer.from_vocab(vocab | {256: bytearray(b"ab")}, merges).encode("ab") == [256]


def test_ids_are_ranks_without_merges() -> None:
    ranks = BYTES | {256: b"ab", 257: b"abc", 258: b"bc"}
    tokenizer = BPETokenizer.from_vocab(ranks, special_tokens={"<x>": 260}, split_pattern="cl100k")
    assert tokenizer.encode("abc bc") == [257, 32, 258]
    assert tokenizer.vocab == ranks | {260: b"<x>"}


# -- cache, copies, threads, processes -----------------------------------------------------------------


def test_the_cache_counts(plain_tokenizer: BPETokenizer) -> None:
    tokenizer = BPETokenizer.from_model(plain_tokenizer.model)
    fresh = tokenizer.get_cache_stats()
    assert {"hits": 0, "misses": 0, "hit_rate_pct": 0.0, "size": fresh["size"]} == fresh
    ids = tokenizer.encode("unprecedented unprecedented unprecedented")
    used = tokenizer.get_cache_stats()
    assert used["hits"] >= 1
    assert used["misses"] >= 1
    assert used["hit_rate_pct"] == round(100 * used["hits"] / (used["hits"] + used["misses"]), 1)
    tokenizer.clear_cache()
    cleared = tokenizer.get_cache_stats()
    assert (cleared["hits"], cleared["misses"]) == (0, 0)
    assert tokenizer.encode("unprecedented unprecedented unprecedented") == ids


@pytest.mark.parametrize("limit", [0, 1, 180_000, 190_000, 4 << 20])
def test_a_limited_cache_changes_no_id(plain_tokenizer: BPETokenizer, mixed_text: str, limit: int) -> None:
    tokenizer = BPETokenizer.from_model(plain_tokenizer.model)
    words = [f"{mixed_text} word{number:x} {number * 7919}" for number in range(3000)]
    expected = [tokenizer.encode(word) for word in words]
    tokenizer.limit_cache(limit)
    assert [tokenizer.encode(word) for word in words] == expected
    if limit < 180_001:
        assert tokenizer.get_cache_stats()["size"] == 0
        assert tokenizer.get_cache_stats()["misses"] > len(words)
    else:
        assert 32 * 1000 < 32 * tokenizer.get_cache_stats()["size"] < limit
    for impossible in (-1, 1.5, "1MB"):
        with pytest.raises((OptionError, TypeError), match="max_bytes"):
            tokenizer.limit_cache(impossible)  # type: ignore[arg-type]
    # What is made in its place has the same limit.
    tokenizer.add_special_tokens(["<|limit|>"])
    tokenizer.encode("unprecedented")
    assert (tokenizer.get_cache_stats()["size"] == 0) == (limit < 180_001)


def test_another_normalisation(tokenizer: BPETokenizer, mixed_text: str) -> None:
    class Mine(BPETokenizer):
        pass

    model = dataclasses.replace(tokenizer.model, config={"chat_template": "x"})
    mine = Mine.from_model(model)
    mine.limit_cache(0)
    exact = mine.with_normalization(None)
    assert type(exact) is Mine
    assert (mine.normalization, exact.normalization) == ("NFC", None)
    assert (exact.vocab, exact.merges) == (mine.vocab, mine.merges)
    assert (exact.special_tokens, exact.model.config) == (mine.special_tokens, model.config)
    for form in ("NFD", "NFKC", "NFC"):
        again = exact.with_normalization(form)
        assert again.normalization == form
        assert again.decode(again.encode(mixed_text)) == unicodedata.normalize(form, mixed_text)
    assert exact.decode(exact.encode(mixed_text)) == mixed_text
    assert unicodedata.normalize("NFC", mixed_text) != mixed_text
    composed = unicodedata.normalize("NFC", mixed_text)
    assert exact.encode(composed) == mine.encode(composed)
    assert exact.get_cache_stats()["size"] == 0
    untrained = BPETokenizer("gpt2").with_normalization(None)
    assert repr(untrained) == repr(BPETokenizer("gpt2", None))
    with pytest.raises(OptionError, match="normalization"):
        mine.with_normalization("none")  # type: ignore[arg-type]


def test_a_normaliser_that_is_more_than_a_form_is_kept(tokenizer: BPETokenizer) -> None:
    (vocab, merges), settings = cast("Any", tokenizer.model.core.__getnewargs_ex__())
    steps = [PlainNormalizer("NFC"), PlainNormalizer("Lowercase")]
    lower = BPETokenizer.from_model(Model(_core.Model(vocab, merges, **{**settings, "normalizers": steps})))
    for form in (None, "NFC"):
        with pytest.raises(ModelError, match=r"^normalizers: this model needs NFC, Lowercase, which is more"):
            lower.with_normalization(form)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickling(tokenizer: BPETokenizer, mixed_text: str, protocol: int) -> None:
    for each in (tokenizer, BPETokenizer("deepseek-v3", "NFD")):
        again = pickle.loads(pickle.dumps(each, protocol))
        assert type(again) is BPETokenizer
        assert again == each
        assert repr(again) == repr(each)
    again = pickle.loads(pickle.dumps(tokenizer, protocol))
    assert again.encode(mixed_text, True, "all") == tokenizer.encode(mixed_text, True, "all")


def test_equal_tokenizers_have_equal_pickles_of_few_objects(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    pickled = pickle.dumps(tokenizer)
    assert pickle.dumps(pickle.loads(pickled)) == pickled
    # What pickles in Python, as the hashes of `datasets` do, takes a step for each.
    assert sum(1 for _ in pickletools.genops(pickled)) < 30
    tokenizer.save(tmp_path)
    assert pickle.dumps(BPETokenizer.load(tmp_path)) == pickle.dumps(BPETokenizer.load(tmp_path))


def test_all_of_a_model_is_pickled(tokenizer: BPETokenizer) -> None:
    model = Model(
        tokenizer.model.core,
        named_tokens={"pad": "<|eos|>"},
        post_processor=PostProcessor((258,), ()),
        config=types.MappingProxyType({"model_max_length": 512}),
    )
    again = pickle.loads(pickle.dumps(BPETokenizer.from_model(model)))
    assert (again.pad_token, again.encode("", add_special_tokens=True)) == ("<|eos|>", [258])
    assert dict(again.model.config) == {"model_max_length": 512}


def test_copies_go_their_own_ways(tokenizer: BPETokenizer) -> None:
    for make in (copy.copy, copy.deepcopy):
        copied = make(tokenizer)
        assert copied.encode("hello") == tokenizer.encode("hello")
        assert copied.add_special_tokens(["<|more|>"]) == 1
        copied.bos_token = "<|more|>"
        assert "<|more|>" not in tokenizer.special_tokens
        assert tokenizer.bos_token == "<|bos|>"
    untrained = copy.copy(BPETokenizer())
    assert untrained.train("aa aa", 257, verbose=False).encode("aa") == [256]


def test_threads_share_a_tokenizer(tokenizer: BPETokenizer, stdlib_texts: list[str]) -> None:
    expected = [tokenizer.encode(text) for text in stdlib_texts]
    fresh = BPETokenizer.from_model(tokenizer.model)
    barrier = threading.Barrier(8)

    def work(number: int) -> bool:
        barrier.wait()
        places = [(number + step) % len(stdlib_texts) for step in range(len(stdlib_texts))]
        return all(
            fresh.encode(stdlib_texts[place]) == expected[place]
            and fresh.decode(expected[place]) == tokenizer.decode(expected[place])
            for place in places
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_tokenize_sees_one_state_of_the_tokenizer() -> None:
    class Changing(BPETokenizer):
        def encode(self, *arguments: Any, **options: Any) -> list[int]:
            ids = super().encode(*arguments, **options)
            tokenizer.truncate_vocab(257)  # as another thread may at this moment
            return ids

    tokenizer = Changing().train("low low", 258, verbose=False)
    assert tokenizer.tokenize("low") == ["low"]


def test_special_tokens_can_be_added_while_others_encode(tokenizer: BPETokenizer) -> None:
    shared = copy.copy(tokenizer)
    expected = tokenizer.encode("some text")
    with ThreadPoolExecutor(4) as pool:
        encodings = [pool.submit(shared.encode, "some text") for _ in range(200)]
        for number in range(20):
            shared.add_special_tokens([f"<|{number}|>"])
        assert all(encoding.result() == expected for encoding in encodings)
    assert len(shared.special_tokens) == len(tokenizer.special_tokens) + 20


def work_in_child(tokenizer: BPETokenizer, texts: list[str]) -> tuple[list[list[int]], int]:
    trained = BPETokenizer().train(texts[:2], 300, verbose=False)
    return [result.input_ids for result in tokenizer.encode_batch(texts)], len(trained.merges)


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_processes_encode_and_train(tokenizer: BPETokenizer, stdlib_texts: list[str], method: str) -> None:
    texts = [text[:5000] for text in stdlib_texts]
    # Used before the fork, so that the cache and the threads of the core are there.
    expected = work_in_child(tokenizer, texts)
    assert expected[1] == 44
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.starmap(work_in_child, [(tokenizer, texts)] * 2) == [expected] * 2


# -- files ---------------------------------------------------------------------------------------------


def test_a_saved_tokenizer_comes_back(
    tokenizer: BPETokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for verbose in (False, True):
        tokenizer.save(tmp_path / "saved", verbose=verbose)
        again = BPETokenizer.from_pretrained(str(tmp_path / "saved"), verbose=verbose)
        assert again == tokenizer
        out, err = capsys.readouterr()
        assert (out, "Saved BPETokenizer(" in err, "Loaded BPETokenizer(" in err) == ("", verbose, verbose)
        assert verbose or not err
    again.bos_token, again.unk_token = None, "<|eos|>"
    again.save(tmp_path / "other")
    other = BPETokenizer.from_pretrained(tmp_path / "other")
    assert (other.bos_token, other.eos_token_id, other.unk_token_id) == (None, 257, 257)
