"""What transformers asks of its own GPT-2 and LLaMA tokenizers, asked of ours that it opened.

The questions are those of its `tests/test_tokenization_common.py` that concern byte-level BPE, and of the
tests of the `tokenizers` binding; whatever we can do ourselves has to come out the same.
"""

from __future__ import annotations

import copy
import pickle
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
from hostile import hostile_texts, special_token_texts
from pages import ROOT, blocks, run_python
from peers.hf_transformers import tokenizers, transformers
from small_tokenizers import with_post_processor, without_surrogates

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


def opened(directory: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(str(directory))


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


def test_it_is_a_fast_tokenizer_of_their_own_class(pair: Pair) -> None:
    theirs = pair.theirs
    assert isinstance(theirs, transformers.PreTrainedTokenizerFast)
    assert theirs.is_fast
    assert isinstance(theirs.backend_tokenizer, tokenizers.Tokenizer)


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


def test_special_tokens(pair: Pair) -> None:
    ours, theirs, directory = pair
    untouched = opened(directory)
    for role in ("bos", "eos", "pad", "unk"):
        assert getattr(untouched, f"{role}_token") == getattr(ours, f"{role}_token")
    assert set(theirs.all_special_tokens) <= set(ours.special_tokens)
    assert {str(token): at for at, token in theirs.added_tokens_decoder.items()} == ours.special_tokens
    assert [
        theirs.convert_tokens_to_ids(token) for token in theirs.all_special_tokens
    ] == theirs.all_special_ids


# -- there and back ---------------------------------------------------------------------------------------


def same(pair: Pair, theirs: Any) -> bool:
    texts = [*TEXTS, *special_token_texts(list(pair.ours.special_tokens))]
    return len(theirs) == len(pair.theirs) and all(
        theirs(text)["input_ids"] == pair.theirs(text)["input_ids"]
        and theirs.decode(theirs.encode(text)) == pair.theirs.decode(pair.theirs.encode(text))
        for text in texts
    )


def test_saving_and_opening_again_and_again(pair: Pair, tmp_path: Path) -> None:
    theirs = pair.theirs
    for number in range(3):
        theirs.save_pretrained(str(tmp_path / str(number)))
        theirs = opened(tmp_path / str(number))
        assert same(pair, theirs)
        assert theirs.special_tokens_map == pair.theirs.special_tokens_map
        assert theirs.model_max_length == pair.theirs.model_max_length
        assert theirs.chat_template == pair.theirs.chat_template
    ours = BPETokenizer.from_pretrained(tmp_path / "2")
    for text in TEXTS:
        assert ours.encode(text, True, "all") == pair.ours.encode(text, True, "all")


def test_pickling_and_copying(pair: Pair) -> None:
    for theirs in (pickle.loads(pickle.dumps(pair.theirs)), copy.deepcopy(pair.theirs)):
        assert same(pair, theirs)
        assert theirs.all_special_tokens == pair.theirs.all_special_tokens


def test_options_while_opening(pair: Pair) -> None:
    theirs = transformers.AutoTokenizer.from_pretrained(
        str(pair.directory),
        padding_side="left",
        truncation_side="left",
        model_max_length=7,
        eos_token="<end>",
    )
    assert (theirs.padding_side, theirs.truncation_side, theirs.model_max_length) == ("left", "left", 7)
    assert theirs.eos_token == "<end>"
    assert theirs.eos_token_id == len(theirs) - 1 == len(pair.theirs)


def test_training_a_new_one_like_it(pair: Pair, stdlib_texts: list[str], tmp_path: Path) -> None:
    """The settings stay, the vocabulary is learned anew; we read the result."""
    theirs = pair.theirs.train_new_from_iterator([stdlib_texts[3][:30_000]], 450, show_progress=False)
    theirs.save_pretrained(str(tmp_path))
    ours = BPETokenizer.from_pretrained(tmp_path)
    for text in [*TEXTS, stdlib_texts[3][:500]]:
        assert theirs.encode(text) == ours.encode(text, add_special_tokens=True)


# -- text to ids ------------------------------------------------------------------------------------------


@pytest.mark.sampled(0.33)
def test_texts(pair: Pair) -> None:
    ours, theirs, _ = pair
    for text in [*TEXTS, *hostile_texts(50)]:
        text = without_surrogates(text)
        ids = ours.encode(text, allowed_special="all")
        assert theirs.encode(text, add_special_tokens=False) == ids
        assert theirs.tokenize(text) == ours.tokenize(text) == ours.convert_ids_to_tokens(ids)
        assert theirs.encode(text) == ours.encode(text, add_special_tokens=True, allowed_special="all")
        assert theirs.decode(ids) == ours.decode(ids)
        assert theirs.convert_tokens_to_string(theirs.tokenize(text)) == ours.decode(ids)


def test_special_tokens_in_a_text_as_plain_text(pair: Pair) -> None:
    """Their `split_special_tokens=True` is our default."""
    ours, theirs, _ = pair
    for text in special_token_texts(list(ours.special_tokens)):
        assert theirs(text, add_special_tokens=False, split_special_tokens=True)["input_ids"] == ours.encode(
            text
        )
        assert theirs(text, add_special_tokens=False)["input_ids"] == ours.encode(text, allowed_special="all")


def test_a_batch_is_its_texts(pair: Pair) -> None:
    ours, theirs, _ = pair
    batch = theirs(TEXTS)
    assert batch["input_ids"] == [theirs(text)["input_ids"] for text in TEXTS]
    assert batch["input_ids"] == [
        result.input_ids for result in ours.encode_batch(TEXTS, add_special_tokens=True)
    ]
    assert batch["attention_mask"] == [[1] * len(row) for row in batch["input_ids"]]
    for skip in (False, True):
        texts = theirs.batch_decode(batch["input_ids"], skip_special_tokens=skip)
        assert texts == [theirs.decode(row, skip_special_tokens=skip) for row in batch["input_ids"]]
        assert texts == ours.decode_batch(batch["input_ids"], skip, skip_padding=False)


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


@pytest.mark.parametrize("length", [4, 5, 9])
def test_truncation(length: int, pair: Pair) -> None:
    ours, theirs, _ = pair
    theirs.truncation_side = "right"
    batch = theirs(TEXTS, truncation=True, max_length=length)
    results = ours.encode_batch(TEXTS, add_special_tokens=True, truncation=True, max_length=length)
    assert batch["input_ids"] == [result.input_ids for result in results]
    theirs.truncation_side = "left"
    around = theirs.num_special_tokens_to_add()
    for text, row in zip(TEXTS, theirs(TEXTS, truncation=True, max_length=length)["input_ids"], strict=True):
        ids = ours.encode(text)
        assert [i for i in row if i in ids] == ids[-(length - around) :]


def test_the_limit_of_the_model(pair: Pair) -> None:
    long = "a long text " * 100
    limit = min(pair.theirs.model_max_length, 30)
    pair.theirs.model_max_length = limit
    assert len(pair.theirs(long, truncation=True)["input_ids"]) == limit


def test_overflowing_tokens(pair: Pair) -> None:
    """Windows of five ids, of which two are those of the window before."""
    ours, theirs, _ = pair
    text = "one two three four five six seven eight nine ten"
    ids = ours.encode(text)
    batch = theirs(
        text,
        truncation=True,
        max_length=5 + theirs.num_special_tokens_to_add(),
        stride=2,
        return_overflowing_tokens=True,
        return_special_tokens_mask=True,
    )
    windows = [
        [i for i, m in zip(row, mask, strict=True) if not m]
        for row, mask in zip(batch["input_ids"], batch["special_tokens_mask"], strict=True)
    ]
    assert windows == [ids[start : start + 5] for start in range(0, len(ids) - 2, 3)]
    assert set(batch["overflow_to_sample_mapping"]) == {0}


def test_special_tokens_mask(pair: Pair) -> None:
    ours, theirs, _ = pair
    for text in TEXTS:
        before, after = pair.ours.encode("x", True), pair.ours.encode("x")
        batch = theirs(text, return_special_tokens_mask=True)
        plain = ours.encode(text)
        added = len(before) - len(after)
        assert sum(batch["special_tokens_mask"]) == added == theirs.num_special_tokens_to_add()
        kept = [i for i, m in zip(batch["input_ids"], batch["special_tokens_mask"], strict=True) if not m]
        assert kept == plain
        assert batch["special_tokens_mask"] == theirs.get_special_tokens_mask(
            batch["input_ids"], already_has_special_tokens=True
        )


def test_pairs_of_texts(pair: Pair) -> None:
    ours, theirs, _ = pair
    batch = theirs("first text", "second", return_special_tokens_mask=True)
    kept = [i for i, m in zip(batch["input_ids"], batch["special_tokens_mask"], strict=True) if not m]
    assert kept == [*ours.encode("first text"), *ours.encode("second")]
    assert set(batch.sequence_ids()) - {None} == {0, 1}


def test_texts_in_words(pair: Pair) -> None:
    words = ["Hello", " world", "日本"]
    batch = pair.theirs(words, is_split_into_words=True, add_special_tokens=False)
    assert batch["input_ids"] == [token for word in words for token in pair.ours.encode(word)]
    ids = [len(pair.ours.encode(word)) for word in words]
    assert batch.word_ids() == [number for number, count in enumerate(ids) for _ in range(count)]


def test_arrays(padding: Pair) -> None:
    batch = padding.theirs(TEXTS, padding=True, return_tensors="np")
    ours = padding.ours.encode_batch(TEXTS, add_special_tokens=True, padding=True, return_tensors="np")
    assert batch["input_ids"].shape == ours["input_ids"].shape
    assert (batch["attention_mask"] == ours["attention_mask"]).all()
    assert ((batch["input_ids"] == ours["input_ids"]) | (batch["attention_mask"] == 0)).all()


# -- positions --------------------------------------------------------------------------------------------


def test_offsets(pair: Pair) -> None:
    ours, theirs, _ = pair
    for text in [text for text in TEXTS if not text.startswith(" ")]:
        batch = theirs(text, return_offsets_mapping=True, add_special_tokens=False)
        ids, spans = ours.encode_with_offsets(text, tile=False)
        assert (batch["input_ids"], batch["offset_mapping"]) == (ids, spans)
        for token, (start, end) in enumerate(batch["offset_mapping"]):
            assert batch.token_to_chars(token) == (start, end)
            for place in range(start, end):
                first, last = batch["offset_mapping"][batch.char_to_token(place)]
                assert first <= place < last
        assert batch.encodings[0].tokens == batch.tokens() == ours.convert_ids_to_tokens(ids)


def test_what_stands_around_a_text_has_no_place_in_it(pair: Pair) -> None:
    batch = pair.theirs("a text", return_offsets_mapping=True, return_special_tokens_mask=True)
    for span, special in zip(batch["offset_mapping"], batch["special_tokens_mask"], strict=True):
        assert (span == (0, 0)) == bool(special)


# -- tokens that are added --------------------------------------------------------------------------------


def test_adding_tokens(pair: Pair, tmp_path: Path) -> None:
    theirs, size = pair.theirs, len(pair.theirs)
    assert theirs.add_tokens(["aaaaa bbbbbb", "low cccccccccdddddddd l"]) == 2
    assert theirs.add_special_tokens({"eos_token": ">>>>|||<||<<|<<"}) == 1
    assert theirs.add_tokens(["low cccccccccdddddddd l"]) == 0
    assert len(theirs) == size + 3
    ids = theirs.encode(">>>>|||<||<<|<< aaaaa bbbbbb low cccccccccdddddddd l", add_special_tokens=False)
    assert ids[0] == theirs.eos_token_id == size + 2
    assert [i for i in ids if i >= size] == [size + 2, size, size + 1]
    assert "aaaaa" in theirs.decode(ids, skip_special_tokens=True)
    assert ">>>>" not in theirs.decode(ids, skip_special_tokens=True)
    theirs.save_pretrained(str(tmp_path))
    ours = BPETokenizer.from_pretrained(tmp_path)
    text = ">>>>|||<||<<|<< aaaaa bbbbbb low cccccccccdddddddd l aaaaa"
    assert ours.encode(text, allowed_special="all") == theirs.encode(text, add_special_tokens=False)
    assert (ours.eos_token, len(ours)) == (theirs.eos_token, len(theirs))


def test_the_longest_added_token_wins(pair: Pair, tmp_path: Path) -> None:
    theirs = pair.theirs
    theirs.add_tokens(["extra_id_1"])
    theirs.add_tokens(["extra_id_100"])
    assert theirs.tokenize("This is some extra_id_100")[-1] == "extra_id_100"
    theirs.save_pretrained(str(tmp_path))
    ours = BPETokenizer.from_pretrained(tmp_path)
    assert ours.tokenize("This is some extra_id_100")[-1] == "extra_id_100"


def test_flags_of_added_tokens(pair: Pair, tmp_path: Path) -> None:
    theirs = pair.theirs
    flagged = [
        tokenizers.AddedToken("[L]", lstrip=True, normalized=False),
        tokenizers.AddedToken("[R]", rstrip=True, normalized=False),
        tokenizers.AddedToken("[W]", single_word=True, normalized=False),
    ]
    theirs.add_tokens(flagged, special_tokens=True)
    theirs.save_pretrained(str(tmp_path))
    ours = BPETokenizer.from_pretrained(tmp_path)
    for text in ("a [L] b", "a  [L]b", "a [R] b", "a[R]  b", "a[W]b", "a [W] b", "[L][R][W]", " [L] "):
        ids = ours.encode(text, allowed_special="all")
        assert ids == theirs.encode(text, add_special_tokens=False), text
        assert ours.decode(ids) == theirs.decode(ids)


# -- ids to text ------------------------------------------------------------------------------------------


def test_cleaning_up_does_not_touch_our_texts(pair: Pair) -> None:
    text = "Don ' t , please ! I ' m ok . Isn 't it ?"
    ids = pair.theirs.encode(text, add_special_tokens=False)
    for clean in (None, False, True):
        decoded = pair.theirs.decode(ids, clean_up_tokenization_spaces=clean)
        assert decoded == pair.ours.decode(ids)
        assert decoded.strip() == text


def test_a_stream_of_ids(pair: Pair) -> None:
    """As servers decode: one id at a time, never half a character."""
    text = TEXTS[1] + " 👩‍👩‍👧 é"
    ids = pair.ours.encode(text)
    stream = tokenizers.decoders.DecodeStream(skip_special_tokens=False)
    steps = [stream.step(pair.theirs.backend_tokenizer, token_id) for token_id in ids]
    assert "".join(step for step in steps if step) == pair.ours.decode(ids)
    assert not any("\ufffd" in step for step in steps if step)


def test_the_space_before_a_text(pair: Pair) -> None:
    ours, theirs, _ = pair
    has_space = ours.model.core.add_prefix_space
    assert theirs.add_prefix_space == has_space
    assert (
        theirs.encode("low", add_special_tokens=False) == theirs.encode(" low", add_special_tokens=False)
    ) == has_space
    assert theirs.decode(theirs.encode("low", add_special_tokens=False)) == (" low" if has_space else "low")


# -- what is built on tokenizers --------------------------------------------------------------------------


def test_collators(pair: Pair) -> None:
    features = [pair.theirs(text) for text in TEXTS]
    own_rows = [{"input_ids": pair.ours.encode(text, add_special_tokens=True)} for text in TEXTS]
    expected = pair.theirs(TEXTS, padding=True, return_tensors="np")
    for rows in (features, own_rows):
        batch = transformers.DataCollatorWithPadding(pair.theirs, return_tensors="np")(rows)
        assert (batch["input_ids"] == expected["input_ids"]).all()
        assert (batch["attention_mask"] == expected["attention_mask"]).all()
    collator = transformers.DataCollatorForLanguageModeling(pair.theirs, mlm=False, return_tensors="np")
    batch = collator(features)
    assert ((batch["labels"] == batch["input_ids"]) | (batch["labels"] == -100)).all()


def test_chats(pair: Pair) -> None:
    ours, theirs, _ = pair
    theirs.chat_template = CHAT_TEMPLATE
    chat = [
        {"role": "user", "content": "Grüße <|im_end|>"},
        {"role": "assistant", "content": "Hello there"},
        {"role": "user", "content": "日本語"},
    ]
    text = theirs.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert text.startswith((theirs.bos_token or "") + "<|im_start|>user\nGrüße <|im_end|><|im_end|>\n")
    assert text.endswith("<|im_start|>assistant\n")
    encoded = theirs.apply_chat_template(
        chat, tokenize=True, add_generation_prompt=True, return_dict=True, return_assistant_tokens_mask=True
    )
    assert encoded["input_ids"] == ours.encode(text, allowed_special="all")
    mask = encoded["assistant_masks"]
    reply = [i for i, m in zip(encoded["input_ids"], mask, strict=True) if m]
    assert theirs.decode(reply).strip() == "Hello there<|im_end|>"


def test_the_chat_template_travels(pair: Pair, tmp_path: Path) -> None:
    pair.theirs.chat_template = CHAT_TEMPLATE
    pair.theirs.save_pretrained(str(tmp_path / "theirs"))
    BPETokenizer.from_pretrained(tmp_path / "theirs").save(tmp_path / "ours")
    assert opened(tmp_path / "ours").chat_template == CHAT_TEMPLATE


def test_the_blocks_of_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = "docs/hugging-face.md"
    names: dict[str, Any] = {}
    found = list(blocks((ROOT / document).read_text(encoding="utf-8")))
    for block in found:
        run_python(document, block, names)
    assert [block.language for block in found] == ["python"] * 3
