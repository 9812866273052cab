"""The face for transformers after a caller has changed, copied, subclassed or shared it."""

from __future__ import annotations

import copy
import itertools
import json
import logging
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.compat import transformers as compat
from peers.hf_transformers import tokenizers, transformers
from peers.test_compat_against_transformers import TEXTS, opened_trained, plain

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("default")]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Any, Any]:
    return opened_trained(tmp_path / "saved")


def other_merges(tokenizer: Any) -> None:
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    tokenizer.backend_tokenizer.model = tokenizers.models.BPE(model["vocab"], merges[:40])


def new_backend(tokenizer: Any) -> None:
    backend = tokenizers.Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    backend.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer._tokenizer = backend


CHANGES: dict[str, Callable[[Any], object]] = {
    "add_tokens": lambda t: t.add_tokens(["low", "text", "new one"]),
    "add_tokens with flags": lambda t: t.add_tokens([tokenizers.AddedToken("quite", lstrip=True)]),
    "add_special_tokens": lambda t: t.add_special_tokens({"mask_token": "<mask>", "eos_token": "short"}),
    "again with other flags": lambda t: (
        t.add_tokens([tokenizers.AddedToken("text", lstrip=True)]),
        t(TEXTS),
        t.add_tokens([tokenizers.AddedToken("text", lstrip=False)]),
    ),
    "pad_token": lambda t: setattr(t, "pad_token", "</s>"),
    "pad_token_id": lambda t: setattr(t, "pad_token_id", 65),
    "padding_side": lambda t: setattr(t, "padding_side", "left"),
    "model_input_names": lambda t: setattr(t, "model_input_names", ["input_ids", "token_type_ids"]),
    "add_bos_token": lambda t: setattr(t, "add_bos_token", True),
    "add_eos_token": lambda t: setattr(t, "add_eos_token", True),
    "backend add_tokens": lambda t: t.backend_tokenizer.add_tokens(["longer"]),
    "backend token of the vocabulary": lambda t: t._tokenizer.add_special_tokens(["te"]),
    "backend normalizer": lambda t: setattr(
        t.backend_tokenizer, "normalizer", tokenizers.normalizers.Lowercase()
    ),
    "backend pre_tokenizer": lambda t: setattr(
        t.backend_tokenizer, "pre_tokenizer", tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    ),
    "backend post_processor": lambda t: setattr(
        t.backend_tokenizer,
        "post_processor",
        tokenizers.processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 401)]),
    ),
    "backend decoder": lambda t: setattr(t.backend_tokenizer, "decoder", tokenizers.decoders.Fuse()),
    "backend model": lambda t: setattr(
        t.backend_tokenizer,
        "model",
        tokenizers.models.BPE({c: n for n, c in enumerate(sorted(t.get_vocab(), reverse=True)[3:])}, []),
    ),
    "backend merges": other_merges,
    "new backend": new_backend,
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes(name: str, pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    other = copy.copy(ours)
    assert ours.encode(TEXTS[1]) == theirs.encode(TEXTS[1])
    for tokenizer in pair:
        CHANGES[name](tokenizer)
    texts = [*TEXTS, "a quite longer text", "<mask> te </s>"]
    assert (ours._core() is None) == (name in ("backend decoder", "backend model"))
    for options in ({}, {"padding": True}, {"padding": True, "return_tensors": "np"}):
        assert plain(ours(texts, **options)) == plain(theirs(texts, **options))
    for row in theirs(texts)["input_ids"]:
        assert ours.decode(row) == theirs.decode(row)
        assert ours.decode(row, skip_special_tokens=True) == theirs.decode(row, skip_special_tokens=True)
    assert [ours.tokenize(text) for text in texts] == [theirs.tokenize(text) for text in texts]
    assert len(ours) == len(theirs)
    if "backend" in name and name != "new backend":  # a shallow copy has the same tokenizer in both
        assert other.encode(texts[1]) == theirs.encode(texts[1])


DEMOTED = ["<s>", "</s>", "<x>", "text"]


@pytest.mark.parametrize("flags", [{}, {"lstrip": True}, {"normalized": True}])
def test_tokens_that_are_no_longer_special(
    flags: dict[str, bool], pair: tuple[Any, Any], tmp_path: Path
) -> None:
    """transformers leaves them out with the special tokens; after saving only those with a role."""
    texts = [f"a {each}low{each} {other}" for each in DEMOTED for other in ("b<s>", "</s>", " text<x>")]
    for tokenizer in pair:
        tokenizer.add_tokens([tokenizers.AddedToken("text", special=False)])
        tokenizer(texts)
        tokenizer.add_special_tokens({"extra_special_tokens": ["<x>", "text"]})
        tokenizer.add_tokens([tokenizers.AddedToken(each, special=False, **flags) for each in DEMOTED])
        tokenizer.save_pretrained(tmp_path / type(tokenizer).__module__)
    theirs, ours = pair
    saved = tmp_path / type(theirs).__module__
    again = transformers.AutoTokenizer.from_pretrained(saved)
    assert ours._core() is not None
    for text in texts:
        ids = theirs(text).input_ids
        assert ours(text)["input_ids"] == ids
        for skip in (True, False):
            assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)
            assert ours.decode([ids, ids], skip_special_tokens=skip) == [theirs.decode(ids, skip)] * 2
            for tokenizer in (BPETokenizer.load(saved), BPETokenizer.from_huggingface(theirs)):
                assert tokenizer.decode(ids, skip) == again.decode(ids, skip_special_tokens=skip)
    assert not {"<s>", "</s>"} - BPETokenizer.load(saved).special_tokens.keys()


def test_a_part_that_a_caller_keeps(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    parts = [tokenizer.backend_tokenizer.pre_tokenizer for tokenizer in pair]
    for value in (True, False, True):
        for part in parts:
            part.add_prefix_space = value
        assert ours.encode("text") == theirs.encode("text")


def test_a_copy_is_independent(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    before = ours.encode(TEXTS[1])
    for copied in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), compat.from_tokenizer(ours)):
        assert type(copied) is type(ours)
        assert copied.encode(TEXTS[1]) == before
        copied.add_tokens(["longer"])
        assert copied.encode(TEXTS[1]) != before
        assert (ours.encode(TEXTS[1]), len(ours)) == (before, len(theirs))
        assert (copied.pad_token, copied.name_or_path) == (ours.pad_token, ours.name_or_path)


def test_as_vllm_changes_it(pair: tuple[Any, Any]) -> None:
    """A copy whose class is a new subclass with cached properties."""
    theirs, ours = pair
    vocab, size, special_ids = ours.get_vocab(), len(ours), ours.all_special_ids

    class Cached(type(ours)):  # type: ignore[misc]
        @property
        def all_special_ids(self) -> Any:
            return special_ids

        @property
        def max_token_id(self) -> Any:
            return max(vocab.values())

        def get_vocab(self) -> Any:
            return vocab

        def __len__(self) -> Any:
            return size

        def __reduce__(self) -> Any:
            return list, ((1, 2),)

    cached = copy.copy(ours)
    cached.__class__ = Cached
    assert cached.encode(TEXTS[1], add_special_tokens=False) == theirs.encode(
        TEXTS[1], add_special_tokens=False
    )
    assert (len(cached), cached.max_token_id, cached.all_special_ids) == (
        len(theirs),
        max(theirs.get_vocab().values()),
        theirs.all_special_ids,
    )
    ids = theirs.encode(TEXTS[1])
    assert cached.convert_ids_to_tokens(ids) == theirs.convert_ids_to_tokens(ids)
    assert cached.decode(ids, skip_special_tokens=True) == theirs.decode(ids, skip_special_tokens=True)
    assert pickle.loads(pickle.dumps(cached)) == [1, 2]
    stream = tokenizers.decoders.DecodeStream(skip_special_tokens=True)
    steps = [stream.step(cached._tokenizer, token_id) for token_id in ids]
    assert "".join(filter(None, steps)) == theirs.decode(ids, skip_special_tokens=True)


class Own(compat.PreTrainedTokenizerFast):  # type: ignore[misc]
    """A subclass of a user."""

    marker = 1


def test_subclasses_and_construction(pair: tuple[Any, Any], tmp_path: Path) -> None:
    theirs, ours = pair
    ours.save_pretrained(tmp_path)
    own = Own.from_pretrained(str(tmp_path))
    again = pickle.loads(pickle.dumps(own))
    assert (own.marker, again.marker, type(again)) == (1, 1, Own)
    made = compat.PreTrainedTokenizerFast(tokenizer_object=theirs.backend_tokenizer)
    from_file = compat.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    for tokenizer in (own, again, made, from_file):
        assert tokenizer.encode(TEXTS[1]) == theirs.encode(TEXTS[1])
        assert isinstance(tokenizer, transformers.PreTrainedTokenizerFast)


def test_registering(pair: tuple[Any, Any], tmp_path: Path) -> None:
    pair[0].save_pretrained(str(tmp_path))
    before = vars(transformers.AutoTokenizer)["from_pretrained"]
    compat.register()
    compat.register()
    try:
        found = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
        assert type(found).__module__ == "bpe_tokenizer.compat.transformers"
        assert found.encode(TEXTS[1]) == pair[0].encode(TEXTS[1])
        assert type(compat.AutoTokenizer.from_pretrained(str(tmp_path))) is type(found)
    finally:
        compat.unregister()
    assert vars(transformers.AutoTokenizer)["from_pretrained"] is before
    assert type(transformers.AutoTokenizer.from_pretrained(str(tmp_path))).__module__.startswith(
        "transformers"
    )


def test_classes_by_name() -> None:
    name = transformers.PreTrainedTokenizerFast.__name__  # TokenizersBackend in transformers 5
    assert compat.PreTrainedTokenizerFast is getattr(compat, name)
    assert issubclass(compat.GPT2TokenizerFast, transformers.GPT2TokenizerFast)
    for name in ("PreTrainedTokenizerBase", "nothing", "Nothing", "_x"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(compat, name)


class Messages(logging.Handler):
    """Keeps messages."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def test_warnings(pair: tuple[Any, Any]) -> None:
    logger = logging.getLogger("transformers")
    messages = []
    for tokenizer in pair:
        tokenizer.model_max_length = 3
        handler = Messages()
        logger.addHandler(handler)
        try:
            for call in (tokenizer, tokenizer.encode, lambda text, t=tokenizer: t(text, return_tensors="np")):
                tokenizer.deprecation_warnings.clear()
                call("quite a bit longer than three")
                call("quite a bit longer than three")
            tokenizer("quite a bit longer than three", truncation=True)
        finally:
            logger.removeHandler(handler)
        messages.append(handler.texts)
    assert messages[0] == messages[1]
    assert len(messages[0]) == 3


def test_threads_share_it(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    sets: list[dict[str, Any]] = [
        {},
        {"truncation": True, "max_length": 4},
        {"padding": True},
        {"add_special_tokens": False},
    ]
    expected = [theirs(TEXTS, **options).data for options in sets]
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in itertools.islice(itertools.cycle(range(len(sets))), number, 100):
            if ours(TEXTS, **sets[turn]).data != expected[turn]:
                wrong.append(sets[turn])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
