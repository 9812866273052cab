"""The face for transformers gives what transformers gives: fields, types, warnings and errors."""

from __future__ import annotations

import copy
import json
import pickle
import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.compat import transformers as compat
from bpe_tokenizer.errors import ArgumentTypeError, FormatError, MismatchError
from hf_files import template, write
from hostile import hostile_texts, special_token_texts
from peers.hf_kinds import CHARACTER_MODELS, REAL_MODELS
from peers.hf_parts import COLUMNS, parts, post_processors, random_file
from peers.hf_transformers import tokenizers, transformers
from peers.hf_vocabularies import small_file
from small_tokenizers import without_surrogates

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


def opened_trained(directory: Path) -> tuple[Any, Any]:
    """Both of a small file, with special tokens by role."""
    theirs, ours = opened(small_file(TEXTS), directory)
    for tokenizer in (theirs, ours):
        tokenizer.pad_token, tokenizer.bos_token, tokenizer.eos_token = "<pad>", "<s>", "</s>"
    return theirs, ours


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Any, Any]:
    return opened_trained(tmp_path / "saved")


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
    found = tokenizer(argument, **options).encodings
    return [[getattr(encoding, name) for name in COLUMNS] for encoding in found]


def random_options(rng: random.Random) -> dict[str, Any]:
    """Arguments of a call, of which some make no sense."""
    flags = "add_special_tokens return_overflowing_tokens return_special_tokens_mask return_offsets_mapping"
    flags += " return_length split_special_tokens verbose is_split_into_words"
    choices: dict[str, Any] = dict.fromkeys(flags.split(), (True, False)) | {
        "padding": (True, False, "longest", "max_length", "do_not_pad"),
        "truncation": (True, False, "longest_first", "only_first", "only_second", "do_not_truncate"),
        "max_length": (None, 1, 2, 3, 4, 8, 16, 40, 0, -1),
        "stride": (0, 1, 2),
        "pad_to_multiple_of": (None, 1, 4, 8),
        "padding_side": (None, "left", "right"),
        "return_tensors": (None, "np"),
        "return_token_type_ids": (None, True, False),
        "return_attention_mask": (None, True, False),
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
OTHER_TYPE = json.dumps(template("<s>", "$A", ids=IDS)).replace('"type_id": 0', '"type_id": 1', 1)
POST_PROCESSORS = post_processors(["<s>", 400], ["</s>", 401]) | {"other type": json.loads(OTHER_TYPE)}


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
    theirs, ours = opened(small_file(TEXTS) | {"post_processor": POST_PROCESSORS[name]}, tmp_path)
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
        theirs, ours = (
            collator(tokenizer, return_tensors="np", **options)([tokenizer(text) for text in TEXTS])
            for tokenizer in pair
        )
        assert [(name, plain(ours[name])) for name in ours] == [
            (name, plain(theirs[name])) for name in theirs
        ]
