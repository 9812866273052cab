"""The face for transformers gives what transformers gives: fields, types, warnings and errors."""

from __future__ import annotations

import copy
import itertools
import json
import logging
import pickle
import random
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.compat import transformers as compat
from bpe_tokenizer.errors import ArgumentTypeError, FormatError, MismatchError
from hf_files import byte_level, template, write
from hostile import hostile_texts, special_token_texts
from peers.hf_kinds import CHARACTER_MODELS, REAL_MODELS
from peers.hf_parts import parts, random_file
from peers.hf_transformers import tokenizers, transformers
from small_tokenizers import with_post_processor, without_surrogates

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("default")]

TEXTS = [
    "A short text",
    "and one that is quite a bit longer, Grüße 日本語!",
    "",
    " x",
    "  two  spaces\n\n",
    "é",
]
HOSTILE = [text for text in hostile_texts(500) if len(text) < 300]
CHAT_TEMPLATE = (
    "{% for message in messages %}<s>{{ message.role }}\n{% if message.role == 'assistant' %}{% generation %}"
    "{{ message.content }}</s>{% endgeneration %}{% else %}{{ message.content }}</s>{% endif %}"
    "{% endfor %}"
)


def test_the_rest_of_transformers_is_here_too() -> None:
    assert compat.set_seed is transformers.set_seed
    assert compat.BatchEncoding is transformers.BatchEncoding
    assert compat.DataCollatorWithPadding is transformers.DataCollatorWithPadding


def opened(document: Any, directory: Path) -> tuple[Any, Any]:
    """What transformers makes of a tokenizer.json, and the face of the same file."""
    write(directory, document)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(str(directory))
    ours = compat.PreTrainedTokenizerFast.from_pretrained(str(directory))
    return theirs, ours


def trained() -> Any:
    """A tokenizer.json with special tokens around a text."""
    tokenizer = BPETokenizer("gpt2", normalization=None)
    special = {"<s>": 400, "</s>": 401, "<pad>": 402}
    tokenizer.train([*TEXTS * 9, *map(str, range(3000))], 400, special_tokens=special, verbose=False)
    assert sorted(tokenizer.vocab) == list(range(403))  # tokens that are added get the next ids
    return json.loads(tokenizer.to_tokenizers().to_str())


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Any, Any]:
    theirs, ours = opened(trained(), tmp_path / "saved")
    for tokenizer in (theirs, ours):
        tokenizer.pad_token, tokenizer.bos_token, tokenizer.eos_token = "<pad>", "<s>", "</s>"
    return theirs, ours


def outcome(call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """A result as plain values with their types, or the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call(*arguments, **options)
    except Exception as error:
        return type(error), str(error)
    return plain(result)


def plain(value: Any) -> Any:
    if isinstance(value, transformers.BatchEncoding):
        fields = {name: plain(field) for name, field in value.items()}
        return "BatchEncoding", list(fields), fields, value.n_sequences, value.is_fast
    if isinstance(value, np.ndarray):
        return "array", value.dtype, value.shape, plain(value.tolist())
    if isinstance(value, list | tuple):
        return type(value), [plain(item) for item in value]
    return type(value), value


def encodings(tokenizer: Any, argument: Any, **options: Any) -> list[Any]:
    names = (
        "ids",
        "type_ids",
        "tokens",
        "offsets",
        "attention_mask",
        "special_tokens_mask",
        "word_ids",
        "sequence_ids",
    )
    return [
        [getattr(encoding, name) for name in names] for encoding in tokenizer(argument, **options).encodings
    ]


def random_options(rng: random.Random) -> dict[str, Any]:
    """Arguments of a call, of which some make no sense."""
    choices = {
        "add_special_tokens": (True, False),
        "padding": (True, False, "longest", "max_length", "do_not_pad"),
        "truncation": (True, False, "longest_first", "only_first", "only_second", "do_not_truncate"),
        "max_length": (None, 1, 2, 3, 4, 8, 16, 40, 0, -1),
        "stride": (0, 1, 2),
        "pad_to_multiple_of": (None, 1, 4, 8),
        "padding_side": (None, "left", "right"),
        "return_tensors": (None, "np"),
        "return_token_type_ids": (None, True, False),
        "return_attention_mask": (None, True, False),
        "return_overflowing_tokens": (True, False),
        "return_special_tokens_mask": (True, False),
        "return_offsets_mapping": (True, False),
        "return_length": (True, False),
        "split_special_tokens": (True, False),
        "verbose": (True, False),
        "is_split_into_words": (True, False),
    }
    names = rng.sample(sorted(choices), rng.choice((0, 1, 2, 3, 5, 8)))
    rare = {"is_split_into_words", "return_overflowing_tokens", "split_special_tokens", "stride"}
    options = {name: rng.choice(choices[name]) for name in names if name not in rare or rng.random() < 0.3}
    if "stride" in options:
        options["max_length"] = 12  # tokenizers panics if the stride is as long as a row
    return options


def compare(theirs: Any, ours: Any, rng: random.Random, texts: list[str], rounds: int) -> None:
    """Call both alike."""
    for _ in range(rounds):
        batch = rng.sample(texts, rng.randrange(1, 5))
        argument: Any = rng.choice((batch, batch, tuple(batch), batch[0], batch[0], batch[0]))
        options = random_options(rng)
        theirs.truncation_side = ours.truncation_side = rng.choice(("left", "right"))
        expected = outcome(theirs, argument, **options)
        assert outcome(ours, argument, **options) == expected, (argument, options)
        if rng.random() < 0.3 and expected[0] == "BatchEncoding":
            options.pop("return_tensors", None)
            expected = outcome(encodings, theirs, argument, **options)
            assert outcome(encodings, ours, argument, **options) == expected, (argument, options)
        if rng.random() < 0.2 and isinstance(argument, str):
            second = rng.choice(texts)
            expected = outcome(theirs, argument, second, **options)
            assert outcome(ours, argument, second, **options) == expected, (argument, second, options)
    for text in texts:
        for options in ({}, {"add_special_tokens": False}, {"max_length": 5, "truncation": True}):
            ids = theirs.encode(text, **options)
            assert ours.encode(text, **options) == ids
            assert ours.tokenize(text, **options) == theirs.tokenize(text, **options), (text, options)
            for skip in (False, True):
                assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip), (text, ids)


def documents() -> Iterator[Any]:
    """The files of the comparisons with `tokenizers`."""
    for name, build in {**CHARACTER_MODELS, **parts()}.items():
        yield pytest.param(build, id=name)
    for seed in range(20):
        yield pytest.param(lambda seed=seed: random_file(seed), id=f"random-{seed}")


def check(theirs: Any, ours: Any, rounds: int = 60) -> None:
    """Compare the two on texts that tokenizers get wrong."""
    try:
        assert ours.to_bpe_tokenizer().vocab
    except FormatError as error:
        # Two of the random files have added tokens that the core cannot represent.
        assert "added_tokens" in str(error)  # noqa: PT017
    special = [token.content for token in theirs.added_tokens_decoder.values()]
    if special and theirs.pad_token is None:
        theirs.pad_token = ours.pad_token = special[0]
    rng = random.Random(0)
    texts = [*TEXTS, *special_token_texts(special[:3] or ["<x>"]), *rng.sample(HOSTILE, 60)]
    texts = [without_surrogates(text) for text in texts]
    compare(theirs, ours, rng, texts, rounds)


@pytest.mark.sampled(0.15)
@pytest.mark.parametrize("build", list(documents()))
def test_every_kind_of_file(build: Callable[[], Any], tmp_path: Path) -> None:
    check(*opened(build(), tmp_path))


@pytest.mark.sampled(0.15)
@pytest.mark.fixtures
@pytest.mark.parametrize("name", REAL_MODELS)
def test_byte_level_models(name: str, shared: Path, tmp_path: Path) -> None:
    check(*opened(REAL_MODELS[name](shared), tmp_path), rounds=150)


IDS = {"<s>": [400], "</s>": [401]}
POST_PROCESSORS = {
    "none": None,
    "trims": byte_level(trim_offsets=True),
    "bos": template("<s>", "$A", ids=IDS),
    "bos and eos": template("<s>", "$A", "</s>", ids=IDS),
    "several": template("<s>", "<s>", "$A", "</s>", "<s>", ids=IDS),
    "other type": json.loads(
        json.dumps(template("<s>", "$A", ids=IDS)).replace('"type_id": 0', '"type_id": 1', 1)
    ),
    "trims and bos": {
        "type": "Sequence",
        "processors": [byte_level(trim_offsets=True), template("<s>", "$A", ids=IDS)],
    },
    "roberta": {
        "type": "RobertaProcessing",
        "sep": ["</s>", 401],
        "cls": ["<s>", 400],
        "trim_offsets": True,
        "add_prefix_space": False,
    },
    "bert": {"type": "BertProcessing", "sep": ["</s>", 401], "cls": ["<s>", 400]},
}


def test_what_this_package_saved(tmp_path: Path) -> None:
    """A tokenizer_config.json with our own key, saved by the face once more."""
    tokenizer = BPETokenizer("llama3").train(TEXTS * 9, 300, special_tokens=["<s>", "</s>"], verbose=False)
    tokenizer.save(tmp_path / "1")
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "1"))
    ours = compat.AutoTokenizer.from_pretrained(str(tmp_path / "1"))
    theirs.save_pretrained(str(tmp_path / "2"))
    ours.save_pretrained(str(tmp_path / "3"))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "2" / name).read_bytes() == (tmp_path / "3" / name).read_bytes()
    assert BPETokenizer.from_pretrained(tmp_path / "3").encode(TEXTS[1]) == tokenizer.encode(TEXTS[1])
    check(theirs, compat.PreTrainedTokenizerFast.from_pretrained(str(tmp_path / "3")), rounds=20)


@pytest.mark.parametrize("name", POST_PROCESSORS)
def test_special_tokens_around_a_text(name: str, tmp_path: Path) -> None:
    theirs, ours = opened({**trained(), "post_processor": POST_PROCESSORS[name]}, tmp_path)
    check(theirs, ours, rounds=400)


# -- the core does the work, and transformers' code the rest --------------------------------------------


def test_the_core_encodes_and_decodes(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    assert ours.encode("x") == theirs.encode("x")
    assert ours.pad_token_id == 402
    ours.__dict__["_tokenizer"] = None  # what asks for it fails
    assert ours.encode(TEXTS[1]) == theirs.encode(TEXTS[1])
    assert ours.tokenize(TEXTS[1]) == theirs.tokenize(TEXTS[1])
    assert ours(TEXTS)["input_ids"] == theirs(TEXTS)["input_ids"]
    assert ours(TEXTS, return_tensors="np", max_length=1, truncation=True, add_special_tokens=False)
    rows = theirs(TEXTS)["input_ids"]
    assert ours.batch_decode(rows) == theirs.batch_decode(rows)


def test_a_tokenizer_that_the_core_cannot_represent(tmp_path: Path) -> None:
    model = tokenizers.models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2}, unk_token="[UNK]")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(model))
    ours = compat.from_tokenizer(theirs)
    assert ours("ab")["input_ids"] == theirs("ab")["input_ids"] == [1, 2]
    with pytest.raises(FormatError, match="not a BPE tokenizer"):
        ours.to_bpe_tokenizer()
    theirs.save_pretrained(tmp_path)
    assert type(compat.AutoTokenizer.from_pretrained(tmp_path)) is type(theirs)
    with pytest.raises(ArgumentTypeError, match="expected a BPETokenizer or a fast tokenizer"):
        compat.from_tokenizer("gpt2")  # type: ignore[arg-type]


def test_a_change_to_what_the_core_cannot_represent(pair: tuple[Any, Any]) -> None:
    for tokenizer in pair:
        tokenizer.backend_tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    theirs, ours = pair
    assert ours(TEXTS)["input_ids"] == theirs(TEXTS)["input_ids"]
    with pytest.raises(FormatError, match="normalizer"):
        ours.to_bpe_tokenizer()


def test_encodings_are_made_when_they_are_asked_for(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    expected, found = theirs(TEXTS[:3]), ours(TEXTS[:3])
    assert isinstance(found, transformers.BatchEncoding)
    assert found.is_fast
    assert found.tokens(1) == expected.tokens(1)
    assert found.word_ids(1) == expected.word_ids(1)
    assert found.char_to_token(0, 3) == expected.char_to_token(0, 3)
    assert found.token_to_chars(1, 2) == expected.token_to_chars(1, 2)
    assert found[0].ids == expected[0].ids
    again = pickle.loads(pickle.dumps(ours(TEXTS[:3])))
    assert type(again) is transformers.BatchEncoding
    assert (again.data, again[1].ids) == (expected.data, expected[1].ids)
    copied = copy.deepcopy(found)
    assert (copied.data, copied[1].ids) == (expected.data, expected[1].ids)
    late = ours("a text")
    ours.add_tokens(["text"])
    with pytest.raises(MismatchError, match="encode the texts again"):
        late.tokens()
    late = ours(TEXTS[:2], padding=True)
    ours.padding_side = "left"
    with pytest.raises(MismatchError, match="encode the texts again"):
        late.tokens()


def test_arrays_of_empty_texts(pair: tuple[Any, Any]) -> None:
    theirs, ours = pair
    for texts in ("", [""], ["", ""], ["", "a"]):
        for options in ({}, {"padding": True}, {"padding": True, "pad_to_multiple_of": 4}):
            arguments: dict[str, Any] = {**options, "add_special_tokens": False, "return_tensors": "np"}
            assert outcome(ours, texts, **arguments) == outcome(theirs, texts, **arguments), (texts, options)


# -- changes --------------------------------------------------------------------------------------------


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


# -- files, names, other libraries ----------------------------------------------------------------------


def test_saves_the_same_files(pair: tuple[Any, Any], tmp_path: Path) -> None:
    for name, tokenizer in zip(("theirs", "ours"), pair, strict=True):
        tokenizer.chat_template = CHAT_TEMPLATE
        tokenizer.add_tokens(["longer"])
        tokenizer(TEXTS, padding=True)
        tokenizer.backend_tokenizer.no_padding()
        tokenizer.save_pretrained(str(tmp_path / name))
    files = sorted(path.name for path in (tmp_path / "theirs").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "ours").iterdir())
    for file in files:
        assert (tmp_path / "ours" / file).read_bytes() == (tmp_path / "theirs" / file).read_bytes()
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "ours"))
    ours = compat.AutoTokenizer.from_pretrained(str(tmp_path / "ours"))
    assert type(theirs) in type(ours).__mro__
    assert repr(ours) == repr(theirs)
    check(theirs, ours, rounds=30)


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


def test_a_class_that_builds_its_tokenizer(tmp_path: Path) -> None:
    tokenizer = BPETokenizer("gpt2", normalization=None).train(TEXTS * 9, 400, verbose=False)
    tokenizer.add_special_tokens({"<|endoftext|>": 400})
    tokenizer.export(tmp_path, "gpt2")
    theirs = transformers.GPT2TokenizerFast.from_pretrained(str(tmp_path))
    ours = compat.GPT2TokenizerFast.from_pretrained(str(tmp_path))
    assert isinstance(ours, type(theirs))
    theirs.pad_token = ours.pad_token = "<|endoftext|>"
    check(theirs, ours)
    again = pickle.loads(pickle.dumps(ours))
    assert (type(again), again.encode("text")) == (type(ours), theirs.encode("text"))


def test_objects_of_other_libraries() -> None:
    ours = BPETokenizer("gpt2", normalization=None)
    ours.train(TEXTS * 9, 400, special_tokens={"<s>": 400, "</s>": 401}, verbose=False)
    ours = with_post_processor(ours)
    theirs, backend, face = ours.to_transformers(), ours.to_tokenizers(), compat.from_tokenizer(ours)
    assert type(theirs) is transformers.PreTrainedTokenizerFast
    assert type(backend) is tokenizers.Tokenizer
    assert (theirs.bos_token, theirs.name_or_path) == ("<s>", "")
    assert type(face) is compat.PreTrainedTokenizerFast
    for text in TEXTS:
        ids = ours.encode(text, add_special_tokens=True)
        assert theirs.encode(text) == backend.encode(text).ids == face.encode(text) == ids
    assert face.to_bpe_tokenizer().encode("text") == ours.encode("text")
    assert ours.to_tiktoken().name == "bpe_tokenizer"


def test_chat_templates(pair: tuple[Any, Any]) -> None:
    chat = [{"role": "user", "content": "Grüße"}, {"role": "assistant", "content": "a text"}]
    options = {"return_dict": True, "return_assistant_tokens_mask": True, "tokenize": True}
    for tokenizer in pair:
        tokenizer.chat_template = CHAT_TEMPLATE
    theirs, ours = (tokenizer.apply_chat_template(chat, **options) for tokenizer in pair)
    assert plain(ours) == plain(theirs)
    assert 1 in ours["assistant_masks"]
    theirs, ours = (tokenizer.apply_chat_template([chat, chat[:1]], padding=True) for tokenizer in pair)
    assert plain(ours) == plain(theirs)


def test_collators(pair: tuple[Any, Any]) -> None:
    for collator in (transformers.DataCollatorWithPadding, transformers.DataCollatorForLanguageModeling):
        options = {} if collator is transformers.DataCollatorWithPadding else {"mlm": False}
        results = [
            collator(tokenizer, return_tensors="np", **options)([tokenizer(text) for text in TEXTS])
            for tokenizer in pair
        ]
        assert {name: plain(field) for name, field in results[0].items()} == {
            name: plain(field) for name, field in results[1].items()
        }


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
