"""Hugging Face directories: round trips, configs, post-processors and files edited by hand."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import bpe_tokenizer
import gguf_files
from bpe_tokenizer import (
    AddedToken,
    BPETokenizer,
    FormatError,
    Model,
    OptionError,
    PostProcessor,
    _core,
)
from bpe_tokenizer.formats import hub, huggingface
from bpe_tokenizer.formats.huggingface.decoder import read_decoder, write_decoder
from bpe_tokenizer.formats.huggingface.post_processor import read_post_processor
from bpe_tokenizer.formats.huggingface.pre_tokenizer import (
    PUNCTUATION,
    read_pre_tokenizer,
    write_pre_tokenizer,
)
from bpe_tokenizer.formats.huggingface.token_strings import TokenStrings
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import (
    Decoder,
    Metaspace,
    PlainNormalizer,
    PrefixSpace,
    Prepend,
    Replace,
    Split,
    Strip,
)
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN, NAMED_PATTERNS
from hf_files import (
    BYTE_LEVEL,
    FUSE,
    LLAMA3_REGEX,
    SIZE,
    STRIP,
    TO_SPACE,
    added_token,
    byte_level,
    bytes_vocab,
    contents,
    good_characters,
    read,
    round_trip,
    small_model,
    split,
    template,
    tokenizer_json,
    write,
)
from hostile import hostile_texts

# -- round trips ----------------------------------------------------------------------------------------


def test_a_trained_tokenizer_comes_back(tokenizer: BPETokenizer, mixed_text: str, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    again = BPETokenizer.from_pretrained(tmp_path)
    assert contents(again.model) == contents(tokenizer.model)
    assert repr(again) == repr(tokenizer)
    for text in [mixed_text, *hostile_texts(300)]:
        for allowed in ("none", "all"):
            assert again.encode(text, True, allowed) == tokenizer.encode(text, True, allowed)


def test_what_save_writes(plain_tokenizer: BPETokenizer, tmp_path: Path) -> None:
    files = huggingface.save(plain_tokenizer.model, tmp_path / "new" / "directory")
    assert [file.name for file in files] == ["tokenizer.json", "tokenizer_config.json"]
    assert sorted(tmp_path.glob("new/directory/*")) == files
    document = read(files[0])
    assert list(document) == list(tokenizer_json({}))
    assert list(document["model"]) == list(tokenizer_json({})["model"])
    assert document["pre_tokenizer"] == BYTE_LEVEL
    assert document["decoder"] == byte_level(add_prefix_space=True, trim_offsets=True)
    assert document["post_processor"] is None
    assert document["model"]["merges"][0] == list(plain_tokenizer.model.core.printable_merges()[0])
    assert list(document["model"]["vocab"].values()) == list(range(600))
    config = read(files[1])
    own = config.pop("bpe_tokenizer")
    assert config == {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "added_tokens_decoder": {},
        "tokenizer_name": "tokenizer",
        "split_pattern_name": "gpt2",
        "num_merges": 344,
        "model_max_length": 131_072,
    }
    core = plain_tokenizer.model.core
    assert own == {
        "version": 1,
        "tokenizer_json_sha256": hashlib.sha256(files[0].read_bytes()).hexdigest(),
        "normalizers": [],
        "pre_tokenizers": [list(step) for step in core.pre_tokenizers],
        "vocab_size": 600,
        "post_processor": "roles",
        "max_length": "default",
    }


def test_the_name_is_recorded(plain_tokenizer: BPETokenizer, tmp_path: Path) -> None:
    plain_tokenizer.save(tmp_path, name="demo / 1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokenizer.json", "tokenizer_config.json"]
    assert read(tmp_path / "tokenizer_config.json")["tokenizer_name"] == "demo / 1"
    assert BPETokenizer.from_pretrained(tmp_path) == plain_tokenizer
    with pytest.raises(OptionError, match="name is empty"):
        plain_tokenizer.save(tmp_path, name="")


def test_the_path_of_a_tokenizer_json_is_the_file_alone(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    model = Model(tokenizer.model.core, {"bos": "<|unk|>"}, config={"chat_template": "T"})
    huggingface.save(model, tmp_path)
    (tmp_path / "added_tokens.json").write_text("[")
    path = tmp_path / "tokenizer.json"
    for alone in (huggingface.load(path), BPETokenizer.load(str(path)).model, hub.load(path)):
        assert (alone.named_tokens, alone.config, alone.post_processor) == ({}, {}, PostProcessor())
        assert alone.core.vocab == model.core.vocab
    for whole in (huggingface.load(tmp_path), BPETokenizer.load(tmp_path).model, hub.load(str(tmp_path))):
        assert (whole.named_tokens["bos"], whole.config["chat_template"]) == ("<|unk|>", "T")


def test_a_path_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"x{300}: (cannot be read|no such file)"):
        BPETokenizer.from_pretrained(tmp_path / ("x" * 300))


@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_split_patterns_come_back_as_they_were(name: str, tmp_path: Path) -> None:
    round_trip(small_model(split_patterns=NAMED_PATTERNS[name].patterns), tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {"split_patterns": []},
        {"normalization": "NFC"},
        {"normalization": "NFKD"},
        {"ignore_merges": True},
        {"add_prefix_space": True},
        {"add_prefix_space": True, "split_patterns": []},
        {"split_patterns": [r"\w+$|\s+", r"^\d", "(?i)a|b"]},
        {
            "normalizers": [
                PlainNormalizer("NFKD"),
                PlainNormalizer("StripAccents"),
                PlainNormalizer("Lowercase"),
                Strip(strip_left=True, strip_right=False),
                Replace(pattern=r"\w+", content="$0"),
                Replace(pattern=r"a\.b", content=""),
                Prepend(prepend="▁"),
            ]
        },
        {
            "pre_tokenizers": [
                Split(pattern=r"\w", behavior="Removed"),
                Split(pattern=r"\w+|[^\w\s]+", behavior="Removed", invert=True),
                Split(pattern=r"\s", behavior="Removed"),
                Split(pattern="a", behavior="Contiguous", invert=True),
                PrefixSpace(),
                Split("SplitBytes", r"\p{N}", "MergedWithNext", False),
            ]
        },
        {
            "pre_tokenizers": [
                Metaspace(replacement="_", prepend_scheme="first", split=False),
                Split(pattern="b+", behavior="MergedWithPrevious"),
            ]
        },
    ],
)
def test_settings_come_back(settings: dict[str, Any], tmp_path: Path) -> None:
    round_trip(small_model(**settings), tmp_path)


def characters_model(*added: AddedToken, **settings: Any) -> Model:
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "é", "▁a", "aé", "▁aé"]
    merges = [("▁", "a"), ("▁a", "é"), ("a", "é"), ("▁", "aé")]
    core = _core.Model(
        {index: token.encode() for index, token in enumerate(tokens)},
        [(left.encode(), right.encode()) for left, right in merges],
        alphabet="characters",
        added_tokens=added,
        **settings,
    )
    return Model(core)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"byte_fallback": True, "unk_id": 0, "fuse_unk": True, "decoder": Decoder("▁", True, "one")},
        {"byte_fallback": True, "decoder": Decoder("▁", True, "none")},
        {"unk_id": 0, "decoder": Decoder("▁", False, "first")},
        {
            "decoder": Decoder(" ", True, "one"),
            "normalizers": [Prepend(prepend="▁"), Replace(pattern=" ", content="▁")],
        },
        {
            "decoder": Decoder(" ", False, "one"),
            "pre_tokenizers": [Metaspace(replacement="▁", prepend_scheme="always", split=True)],
        },
        {"ignore_merges": True, "pre_tokenizers": [Split(pattern=" ", behavior="MergedWithPrevious")]},
    ],
)
@pytest.mark.parametrize(
    "added", [(), (AddedToken("<unk>", 0), AddedToken("<s>", 263), AddedToken("é ", 400))]
)
def test_models_of_characters_come_back(
    added: tuple[AddedToken, ...], settings: dict[str, Any], tmp_path: Path
) -> None:
    loaded = round_trip(characters_model(*added, **settings), tmp_path / "1")
    huggingface.save(loaded, tmp_path / "2")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    (tmp_path / "1" / "tokenizer_config.json").unlink()
    alone = huggingface.load(tmp_path / "1")
    assert alone.core.merges == loaded.core.merges
    assert alone.core.pre_tokenizers == loaded.core.pre_tokenizers


def test_a_split_of_characters_comes_back_although_the_file_spells_it_otherwise(tmp_path: Path) -> None:
    round_trip(characters_model(pre_tokenizers=[Split(pattern=r"\w+$|[^\w]+")]), tmp_path)


def test_a_vocabulary_that_lacks_bytes_comes_back(tmp_path: Path) -> None:
    vocab = {byte: bytes([byte]) for byte in range(90)} | {90: b"<unk>"}
    for unk_id, fuse_unk in ((None, False), (90, False), (90, True)):
        core = _core.Model(vocab, [], requires_all_bytes=False, unk_id=unk_id, fuse_unk=fuse_unk)
        round_trip(Model(core), tmp_path)


def test_gaps_are_saved_where_every_byte_has_a_token(tmp_path: Path) -> None:
    """Then there are none, as for the library, which merges across a gap."""
    huggingface.save(small_model(keeps_gaps=True), tmp_path)
    every_byte = {byte: f"<0x{byte:02X}>".encode() for byte in range(256)}
    for vocab in (every_byte, every_byte | {256: b"a"}):
        core = _core.Model(vocab, [], alphabet="characters", byte_fallback=True, keeps_gaps=True)
        huggingface.save(Model(core), tmp_path)
        assert huggingface.load(tmp_path).core.vocab == vocab


def test_prepending_nothing_is_no_step_of_the_file(tmp_path: Path) -> None:
    round_trip(small_model(normalizers=[Prepend(prepend="")]), tmp_path)
    assert read(tmp_path / "tokenizer.json")["normalizer"] is None


def test_the_unknown_token_stays_in_the_vocabulary(tmp_path: Path) -> None:
    core = _core.Model(
        {0: b"a", 7: b"<unk>"},
        [],
        alphabet="characters",
        unk_id=7,
        added_tokens=[AddedToken("<unk>", 7)],
    )
    round_trip(Model(core), tmp_path)
    assert read(tmp_path / "tokenizer.json")["model"]["unk_token"] == "<unk>"


def test_flags_of_added_tokens_come_back(tmp_path: Path) -> None:
    flags = [tuple(bool(bits >> flag & 1) for flag in range(5)) for bits in range(32)]
    round_trip(
        small_model(*(AddedToken(f"<{i}>", SIZE + i, *flag) for i, flag in enumerate(flags))), tmp_path
    )


@pytest.mark.parametrize(
    ("special_tokens", "vocab_size"),
    [
        (["<a>", "<b>", "<c>"], 276),  # reserved after the bytes
        ({"<far>": 100_257}, 276),  # outside, and in model.vocab for its id
        ({"<a>": 270, "<far>": 100_257}, 276),
        ({"<a>": 275, "<b>": 276}, 276),  # the last one inside and the first one outside
        (
            {"<a>": 276, "<b>": 277, "<far>": 300},
            276,
        ),  # these two stand in model.vocab only because of the third
        ({"<a>": 278, "<b>": 280, "<c>": 4_294_967_294}, 276),
    ],
)
def test_ids_of_special_tokens_and_the_size_of_the_vocabulary_come_back(
    special_tokens: Any, vocab_size: int, tmp_path: Path
) -> None:
    tokenizer = BPETokenizer().train(
        "the cat in the hat sat on that mat and the rat", 276, 1, special_tokens, verbose=False
    )
    assert tokenizer.vocab_size == vocab_size
    round_trip(tokenizer.model, tmp_path)


def test_without_its_config_a_file_still_gives_every_id(tmp_path: Path) -> None:
    tokenizer = BPETokenizer(split_pattern="cl100k").train(
        "the cat in the hat", 260, 1, {"<e>": 260, "<far>": 100_257}, verbose=False
    )
    tokenizer.save(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    alone = BPETokenizer.from_pretrained(tmp_path)
    assert (alone.vocab, alone.merges) == (tokenizer.vocab, tokenizer.merges)
    assert alone.special_tokens == tokenizer.special_tokens
    assert alone.vocab_size == 261  # <e> follows the vocabulary, so it counts to it
    assert alone.encode("12345 a's\n\n ") == tokenizer.encode("12345 a's\n\n ")


def test_an_added_token_that_merges_make_stays_in_the_vocabulary(tmp_path: Path) -> None:
    vocab = bytes_vocab() | {"ab": 500}
    write(tmp_path, tokenizer_json(vocab, [["a", "b"]], added=[added_token(500, "ab", special=False)]))
    model = huggingface.load(tmp_path)
    assert (model.core.vocab_size, model.core.merges) == (257, [(b"a", b"b")])
    round_trip(model, tmp_path)


@pytest.mark.parametrize(
    ("tokens", "vocab_size"),
    [
        ({"<b>": 256, "<a>": 257, "<c>": 258}, 259),
        ({"<a>": 256, "<b>": 258}, 257),  # a hole before the second
        ({"<a>": 256, "<b>": 257, "<c>": 300}, 258),
        ({"<a>": 257, "<b>": 258}, 256),
        ({"日": 300}, 256),  # the spelling of no byte
    ],
)
def test_added_tokens_count_to_the_vocabulary_up_to_the_first_hole(
    tokens: dict[str, int], vocab_size: int, tmp_path: Path
) -> None:
    added = [added_token(token_id, token) for token, token_id in tokens.items()]
    tokenizer = BPETokenizer.from_pretrained(
        write(tmp_path, tokenizer_json(bytes_vocab() | tokens, added=added))
    )
    assert tokenizer.vocab_size == vocab_size
    for token, token_id in tokens.items():
        assert tokenizer.encode(f"a{token}", allowed_special="all") == [97, token_id]


def test_a_token_added_by_hand_is_outside_the_vocabulary_that_was_saved(tmp_path: Path) -> None:
    huggingface.save(small_model(), tmp_path)
    document = read(tmp_path / "tokenizer.json")
    document["model"]["vocab"]["<new>"] = SIZE
    document["added_tokens"] = [added_token(SIZE, "<new>")]
    core = huggingface.load(write(tmp_path, document)).core
    assert (core.vocab_size, core.vocab[SIZE]) == (SIZE, b"<new>")


@pytest.mark.parametrize(
    ("token", "text", "settings"),
    [
        ("<0x21>", "!", {"byte_fallback": True}),
        ("<unk>", "b", {"unk_token": "<unk>"}),
        ("日", "日", {}),
        ("é", "é", {}),
        ("aa", "aa", {"merges": ["a a"]}),
    ],
)
def test_what_encoding_gives_stays_in_the_vocabulary_after_a_hole(
    token: str, text: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    """Here an added token is also what encoding makes of a text."""
    vocab = {"a": 0, token: 7}
    document = tokenizer_json(
        vocab, added=[added_token(7, token)], pre_tokenizer=None, decoder=FUSE, **settings
    )
    tokenizer = BPETokenizer.from_pretrained(write(tmp_path, document))
    assert tokenizer.encode(text) == [7]


@pytest.mark.parametrize(("merged", "ids"), [(True, [256]), (False, [230, 151, 165])])
def test_of_two_spellings_the_vocabulary_holds_the_one_that_merges_make(
    merged: bool, ids: list[int], tmp_path: Path
) -> None:
    """The added token `日` is in `model.vocab` for its id; `æĹ¥` spells its bytes."""
    tokens = ["æĹ¥", "æĹ"] if merged else []
    merges = [["æ", "Ĺ"], ["æĹ", "¥"]] if merged else []
    vocab = bytes_vocab(*tokens, "日")
    added = [added_token(vocab["日"], "日")]
    tokenizer = BPETokenizer.from_pretrained(write(tmp_path, tokenizer_json(vocab, merges, added=added)))
    assert tokenizer.encode("日") == ids
    assert tokenizer.encode("日", allowed_special="all") == [vocab["日"]]
    assert tokenizer.vocab_size == (len(vocab) - 1 if merged else len(vocab))


def test_a_token_that_follows_the_vocabulary_is_not_in_it(tmp_path: Path) -> None:
    huggingface.save(small_model(AddedToken("<a>", SIZE), AddedToken("<b>", SIZE + 1)), tmp_path)
    assert len(read(tmp_path / "tokenizer.json")["model"]["vocab"]) == SIZE


def test_a_text_that_spells_other_bytes_needs_no_place_in_the_vocabulary(tmp_path: Path) -> None:
    round_trip(small_model(AddedToken("éé", SIZE), ignore_merges=True), tmp_path)
    round_trip(small_model(AddedToken("éé", 900)), tmp_path)
    with pytest.raises(FormatError, match=r"^added_tokens: 'éé' \(id 900\) needs a place in the vocabulary"):
        huggingface.to_json(small_model(AddedToken("éé", 900), ignore_merges=True))


@pytest.mark.parametrize(
    "merges",
    [
        [["a", "\u3000"], ["ab", "c"], ["a", "b"]],
        ["#version: 0.2", "#version: 0.2 - by hand", "a \u3000", "a b", "ab c", "a b", "ab c"],
        [["a", "b"], ["ab", "c"], ["a", "b"]],
        [],
    ],
)
def test_the_table_of_a_file_has_its_tokens_and_merges(merges: list[Any]) -> None:
    tokens = ["a", "b", "c", "\u3000", "a\u3000", "ab", "abc", "d", "#version:", "0.2", "#version:0.2"]
    vocab = {token: 2 * index for index, token in enumerate(tokens)}
    data = json.dumps(tokenizer_json(vocab, merges)).encode()
    rest, table = _core.TokenTable.parse(data, "tokenizer.json")
    assert table is not None
    emptied = tokenizer_json({}, [])
    assert json.loads(rest) == emptied
    split = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges if "#" not in merge[0]]
    # Of equal merges the last one counts.
    pairs = list(dict.fromkeys((left, right) for left, right in reversed(split)))[::-1]
    settings: Any = {"alphabet": "characters"}
    expected = _core.Model.from_printable(vocab, pairs, **settings)
    core = _core.Model.from_table(table, set(), **settings)
    assert (core.vocab, core.merges) == (expected.vocab, expected.merges)
    assert len(table) == len(vocab)
    for token in (*tokens, "x"):
        assert (token in table, table.get(token)) == (token in vocab, vocab.get(token))
    asked = {"a", "ab", "abc", "d", "x"}
    assert table.merged(asked) == {part for pair in pairs for part in (*pair, "".join(pair)) if part in asked}


def test_added_tokens_are_those_of_both_files(tmp_path: Path) -> None:
    added = [
        AddedToken("<a>", 260),
        AddedToken("日", 261, special=False, single_word=True),
        AddedToken("<b>", 262, lstrip=True, rstrip=True),
        AddedToken("Name", 263, special=False, normalized=True),
    ]
    huggingface.save(small_model(*added), tmp_path)
    path, config_path = tmp_path / "tokenizer.json", tmp_path / "tokenizer_config.json"
    rest, table = _core.TokenTable.parse(path.read_bytes(), "tokenizer.json")
    assert table is not None
    assert json.loads(rest)["added_tokens"] == []
    assert table.added_tokens() == added
    rest, decoder = _core.AddedTokensDecoder.parse(config_path.read_bytes(), "tokenizer_config.json")
    assert decoder is not None
    assert json.loads(rest) == read(config_path) | {"added_tokens_decoder": {}}
    assert decoder.equals(table)
    assert decoder.tokens(set()) == added
    expected = huggingface.load(tmp_path)
    assert expected.core.added_tokens == added
    # A further member means nothing.
    document, config = read(path), read(config_path)
    document["added_tokens"][2]["x"] = config["added_tokens_decoder"]["261"]["x"] = None
    path.write_text(json.dumps(document))
    config["bpe_tokenizer"]["tokenizer_json_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    config_path.write_text(json.dumps(config))
    again = huggingface.load(tmp_path)
    assert again.core.__getnewargs_ex__() == expected.core.__getnewargs_ex__()
    assert again == dataclasses.replace(expected, core=again.core)
    # The flags of the config count, as in transformers: a token that they do not call special is normalised.
    config["added_tokens_decoder"]["261"] = {"content": "日", "rstrip": None}
    config["added_tokens_decoder"]["260"]["special"] = False
    config_path.write_text(json.dumps(config))
    changed = [added[0]._replace(special=False), AddedToken("日", 261, special=False, normalized=True)]
    assert huggingface.load(tmp_path).core.added_tokens[:2] == changed


# -- what the config says -------------------------------------------------------------------------------


def test_roles_and_the_rest_of_the_config_come_back(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    config = {
        "model_max_length": 512,
        "chat_template": "{{ '«' }}",
        "padding_side": "left",
        "x": {"y": [1, None]},
    }
    model = Model(tokenizer.model.core, {"bos": "<|unk|>", "pad": ""}, config=config)
    loaded = round_trip(model, tmp_path)
    assert loaded.named_tokens == {"bos": "<|unk|>", "eos": "<|eos|>", "pad": "", "unk": "<|unk|>"}
    assert read(tmp_path / "tokenizer_config.json")["pad_token"] is None
    assert BPETokenizer.from_model(loaded).pad_token is None


@pytest.mark.parametrize("value", ["<x>", {"content": "<x>", "lstrip": False, "__type": "AddedToken"}])
def test_spellings_of_roles(value: Any, tmp_path: Path) -> None:
    added = [added_token(SIZE, "<x>"), added_token(SIZE + 1, "<bos>")]
    write(tmp_path, tokenizer_json(bytes_vocab(), added=added))
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"eos_token": value, "bos_token": None, "unk_token": ""}), encoding="utf-8")
    tokenizer = BPETokenizer.from_pretrained(tmp_path)
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.unk_token) == (None, "<x>", None)


def test_the_files_beside(tmp_path: Path) -> None:
    write(
        tmp_path,
        tokenizer_json(bytes_vocab(), added=[added_token(SIZE, "<x>"), added_token(SIZE + 1, "<y>")]),
    )
    (tmp_path / "special_tokens_map.json").write_text('{"eos_token": {"content": "<y>"}, "sep_token": "<x>"}')
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<x>", "chat_template": "old"}')
    (tmp_path / "chat_template.jinja").write_text("né\n", encoding="utf-8")
    model = huggingface.load(tmp_path)
    assert model.named_tokens == {"eos": "<y>"}
    assert model.config == {"sep_token": "<x>", "chat_template": "né\n"}
    decoder = {str(SIZE): {"content": "<x>"}, str(SIZE + 1): {"content": "<y>", "special": True}}
    config = {"eos_token": "<x>", "added_tokens_decoder": decoder}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert huggingface.load(tmp_path).named_tokens == {"eos": "<x>"}  # then the map is not looked at


def test_what_is_only_kept_comes_back(tmp_path: Path) -> None:
    added = [added_token(SIZE, "<s>")]
    document = tokenizer_json(bytes_vocab(), added=added, post_processor=byte_level(trim_offsets=True))
    document["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    document["padding"] = {
        "strategy": {"Fixed": 8},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": SIZE,
        "pad_type_id": 0,
        "pad_token": "<s>",
    }
    model = huggingface.load(write(tmp_path / "1", document))
    assert len(BPETokenizer.from_model(model).encode("abcdefghij")) == 10
    round_trip(model, tmp_path / "2")
    saved = read(tmp_path / "2" / "tokenizer.json")
    for name in ("truncation", "padding", "post_processor"):
        assert saved[name] == document[name]


def test_a_post_processor_without_effect_is_kept(tmp_path: Path) -> None:
    document = good_characters() | {"post_processor": byte_level(use_regex=False)}
    model = huggingface.load(write(tmp_path / "1", document))
    round_trip(model, tmp_path / "2")
    assert read(tmp_path / "2" / "tokenizer.json")["post_processor"] == document["post_processor"]
    for name in ("truncation", "padding"):
        document = good_characters() | {name: {"max_length": 4}}
        model = huggingface.load(write(tmp_path / "1", document))
        assert model.config["tokenizer_json"][name] == {"max_length": 4}
        round_trip(model, tmp_path / "2")


def test_a_token_that_the_config_names_becomes_an_added_token(tmp_path: Path) -> None:
    document = tokenizer_json(bytes_vocab("<mask>"), added=[added_token(257, "<x>")])
    write(tmp_path, document)
    config = {"eos_token": "<x>", "pad_token": "", "mask_token": "<mask>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = BPETokenizer.from_pretrained(tmp_path)
    assert tokenizer.special_tokens == {"<x>": 257, "<mask>": 256}
    assert tokenizer.encode("a<mask>", allowed_special="all") == [97, 256]


# -- post-processors ------------------------------------------------------------------------------------


def with_bos_and_eos(**changes: Any) -> Model:
    return dataclasses.replace(small_model(AddedToken("<bos>", SIZE), AddedToken("<eos>", 300)), **changes)


def test_no_post_processor_puts_bos_and_eos_around(tmp_path: Path) -> None:
    loaded = round_trip(with_bos_and_eos(), tmp_path)
    assert loaded.post_processor is None
    document = read(tmp_path / "tokenizer.json")
    assert document["post_processor"] is None  # other programs add nothing that the source does not record
    assert bpe_tokenizer.load(tmp_path).encode("a", add_special_tokens=True) == [SIZE, 97, 300]


@pytest.mark.parametrize(
    "around",
    [
        PostProcessor(),
        PostProcessor((SIZE,)),
        PostProcessor((SIZE,), (300,)),
        PostProcessor((), (300, 97, 300)),
        PostProcessor((300,), (300,)),
    ],
)
def test_post_processors_come_back(around: PostProcessor, tmp_path: Path) -> None:
    model = with_bos_and_eos(post_processor=around)
    again = BPETokenizer.from_model(round_trip(model, tmp_path))
    assert again.encode("b", add_special_tokens=True) == [*around.prefix, 98, *around.suffix]
    assert read(tmp_path / "tokenizer_config.json")["bpe_tokenizer"]["post_processor"] == "file"


@pytest.mark.parametrize(
    ("model", "strings"),
    [
        (small_model(AddedToken("<é >", SIZE)), {"<é >": SIZE, "Ġ": 32, "Ã": 0xC3}),
        (characters_model(AddedToken("<é >", 300)), {"<é >": 300, "aé": 261, "<0x20>": 33}),
    ],
    ids=["bytes", "characters"],
)
def test_a_template_names_tokens_as_the_vocabulary_does(
    model: Model, strings: dict[str, int], tmp_path: Path
) -> None:
    around = PostProcessor(tuple(strings.values()))
    round_trip(dataclasses.replace(model, post_processor=around), tmp_path)
    template = read(tmp_path / "tokenizer.json")["post_processor"]
    assert template["special_tokens"] == {
        token: {"id": token, "ids": [token_id], "tokens": [token]} for token, token_id in strings.items()
    }


def test_an_id_without_a_token_has_no_string() -> None:
    with pytest.raises(KeyError, match="900"):
        TokenStrings(small_model().core)[900]


def test_a_file_of_characters_that_adds_nothing_has_no_post_processor(tmp_path: Path) -> None:
    round_trip(dataclasses.replace(characters_model(), post_processor=PostProcessor()), tmp_path)
    assert read(tmp_path / "tokenizer.json")["post_processor"] is None


def test_a_file_that_adds_nothing_adds_nothing(tmp_path: Path) -> None:
    added = [added_token(SIZE, "<bos>"), added_token(SIZE + 1, "<eos>")]
    for post_processor in (None, BYTE_LEVEL):
        document = tokenizer_json(bytes_vocab(), added=added, post_processor=post_processor)
        tokenizer = BPETokenizer.from_pretrained(write(tmp_path, document))
        assert (tokenizer.bos_token, tokenizer.encode("b", add_special_tokens=True)) == ("<bos>", [98])


# -- steps ----------------------------------------------------------------------------------------------


GPT2_SPLIT = Split(pattern=GPT2_SPLIT_PATTERN)
SPACES = Split(pattern=r"\s", behavior="Removed")
SIGNS = Split(pattern=f"[{PUNCTUATION}]")
FIRST = {"type": "Metaspace", "replacement": "_"}


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"type": "ByteLevel", "add_prefix_space": False}, [GPT2_SPLIT]),
        (byte_level(add_prefix_space=True), [PrefixSpace(), GPT2_SPLIT]),
        (byte_level(use_regex=False), []),
        (FIRST, [Metaspace(replacement="_", prepend_scheme="always", split=True)]),
        (
            FIRST | {"prepend_scheme": "never", "add_prefix_space": False, "split": False, "str_rep": "_"},
            [Metaspace(replacement="_", prepend_scheme="never", split=False)],
        ),
        (
            FIRST | {"prepend_scheme": "first", "add_prefix_space": True},
            [Metaspace(replacement="_", prepend_scheme="first", split=True)],
        ),
        ({"type": "Digits", "individual_digits": True}, [Split(pattern=r"\p{N}")]),
        ({"type": "Digits", "individual_digits": False}, [Split(pattern=r"\p{N}+")]),
        ({"type": "Punctuation"}, [SIGNS]),
        ({"type": "Punctuation", "behavior": "Contiguous"}, [Split(pattern=f"[{PUNCTUATION}]+")]),
        (
            {"type": "Punctuation", "behavior": "MergedWithNext"},
            [SIGNS._replace(behavior="MergedWithNext")],
        ),
        ({"type": "BertPreTokenizer"}, [SPACES, SIGNS]),
        ({"type": "Whitespace"}, [Split(pattern=r"\w+|[^\w\s]+", behavior="Removed", invert=True)]),
        ({"type": "WhitespaceSplit"}, [SPACES]),
        ({"type": "CharDelimiterSplit", "delimiter": "."}, [Split(pattern=r"\.", behavior="Removed")]),
        ({"type": "FixedLength"}, [Split(pattern=r"[\s\S]{5}")]),
        ({"type": "FixedLength", "length": 1}, [Split(pattern=r"[\s\S]{1}")]),
        ({"type": "FixedLength", "length": 1000}, [Split(pattern=r"[\s\S]{1000}")]),
        (split("a+", invert=True), [Split(pattern="a+")]),
        (split("a+", behavior="Removed"), [Split(pattern="a+", behavior="Removed")]),
        (
            split("a+", behavior="Removed", invert=True),
            [Split(pattern="a+", behavior="Removed", invert=True)],
        ),
        (split(LLAMA3_REGEX, behavior="Removed", invert=True), [Split(pattern=LLAMA3_REGEX)]),
        (split(LLAMA3_REGEX, behavior="Removed"), [Split(pattern=LLAMA3_REGEX, behavior="Removed")]),
    ],
)
def test_the_steps_that_split(step: Any, expected: list[Any]) -> None:
    in_bytes = step["type"] == "ByteLevel"
    field = Field(Path("tokenizer.json"), "pre_tokenizer", step)
    assert read_pre_tokenizer(field) == (expected, in_bytes)
    if step["type"] not in ("ByteLevel", "Metaspace"):
        of_bytes = [split._replace(type="SplitBytes") for split in expected]
        assert read_pre_tokenizer(field, in_bytes=True) == (of_bytes, True)
    again = Field(Path("tokenizer.json"), "pre_tokenizer", write_pre_tokenizer(expected, in_bytes))
    assert read_pre_tokenizer(again) == (expected, in_bytes)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([SIGNS], {"type": "Punctuation", "behavior": "Isolated"}),
        (
            [Split(pattern=f"[{PUNCTUATION}]+")],
            {"type": "Punctuation", "behavior": "Contiguous"},
        ),
        ([SPACES], {"type": "WhitespaceSplit"}),
        ([Split(pattern=r"a\.b")], split("a.b", "String")),
    ],
)
def test_a_step_is_written_in_its_shortest_form(steps: list[Any], expected: Any) -> None:
    assert write_pre_tokenizer(steps, in_bytes=False) == expected


@pytest.mark.parametrize(
    ("step", "text", "expected"),
    [
        ({"type": "Strip", "strip_left": True, "strip_right": False}, " a ", "a "),
        ({"type": "Strip", "strip_left": False, "strip_right": True}, " a ", " a"),
        ({"type": "Replace", "pattern": {"String": "."}, "content": "é"}, "a.b", "aéb"),
        ({"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""}, "aab", "b"),
        ({"type": "Nmt"}, "a\x01b\tc\u200bd\u2581", "ab c d "),
    ],
)
def test_the_steps_that_normalise(step: Any, text: str, expected: str, tmp_path: Path) -> None:
    document = tokenizer_json(bytes_vocab(), normalizer=step)
    model = huggingface.load(write(tmp_path / "1", document))
    for loaded in (model, round_trip(model, tmp_path / "2")):
        tokenizer = BPETokenizer.from_model(loaded)
        assert tokenizer.decode(tokenizer.encode(text)) == expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"type": "ByteLevel"}, PostProcessor()),
        ({"type": "BertProcessing", "cls": ["a", 1], "sep": ["b", 2]}, PostProcessor((1,), (2,))),
        ({"type": "RobertaProcessing", "cls": ["a", 3], "sep": ["b", 3]}, PostProcessor((3,), (3,))),
        (template("x", "$A", "y", "x", ids={"x": [1, 2], "y": [3]}), PostProcessor((1, 2), (3, 1, 2))),
        (template("$A", ids={}), PostProcessor()),
        (template("$A", "$A", ids={}), r"^tokenizer\.json: x\.single: holds Sequence A 2 times"),
        ({"type": "BertProcessing", "cls": ["a"], "sep": ["b", 2]}, r"x\.cls: .* must be a token and its id"),
        ({"type": "BertProcessing", "cls": ["a", 1], "sep": ["b", 4]}, r"x\.sep\[1\]: 4 is not the id of"),
        ({"type": "BertProcessing", "cls": [1, 1], "sep": ["b", 2]}, r"x\.cls\[0\]: must be a string"),
        ({"type": "BertProcessing", "sep": ["b", 2]}, r"x\.cls: is missing"),
    ],
)
def test_the_steps_that_add_tokens(step: Any, expected: PostProcessor | str) -> None:
    field = Field(Path("tokenizer.json"), "x", step)
    if isinstance(expected, str):
        with pytest.raises(FormatError, match=expected):
            read_post_processor(field, {1, 2, 3})
        return
    assert read_post_processor(field, {1, 2, 3}) == expected
    steps = [{"type": "ByteLevel"}, step, {"type": "ByteLevel"}]
    several = Field(Path("tokenizer.json"), "x", {"type": "Sequence", "processors": steps})
    assert read_post_processor(several, {1, 2, 3}) == expected


STRIPPED = STRIP | {"start": 0, "stop": 0}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([FUSE], None),
        ([], None),
        ([TO_SPACE], Decoder(space="▁")),
        ([{"type": "ByteFallback"}], Decoder(byte_fallback=True)),
        ([TO_SPACE, {"type": "ByteFallback"}, FUSE], Decoder("▁", True, "none")),
        ([FUSE, STRIP], Decoder(strip="one")),
        ([FUSE, STRIPPED], None),
        ([TO_SPACE, {"type": "ByteFallback"}, FUSE, STRIP], Decoder("▁", True, "one")),
        ([FIRST], Decoder("_", False, "first")),
        ([FIRST | {"prepend_scheme": "never"}], Decoder("_", False, "none")),
        ([FUSE, STRIP | {"stop": 1}], r"x\.decoders\[1\]: .* must strip one space"),
        ([FUSE, STRIP, FUSE], r"x\.decoders\[2\]: Fuse is not supported here"),
        ([TO_SPACE, TO_SPACE], r"x\.decoders\[1\]: Replace is not supported here"),
        ([FIRST | {"replacement": "ab"}], r"replacement: 'ab' must be one character"),
    ],
)
def test_the_steps_that_decode(steps: list[Any], expected: Decoder | str | None) -> None:
    field = Field(Path("tokenizer.json"), "x", {"type": "Sequence", "decoders": steps})
    if isinstance(expected, str):
        with pytest.raises(FormatError, match=expected):
            read_decoder(field)
        return
    assert read_decoder(field) == expected
    again = Field(Path("tokenizer.json"), "x", write_decoder(expected))
    assert read_decoder(again) == expected


@pytest.mark.parametrize(
    ("decoder", "expected"),
    [
        (None, FUSE),
        (Decoder(strip="one"), {"type": "Sequence", "decoders": [FUSE, STRIP]}),
        (Decoder("▁"), {"type": "Sequence", "decoders": [TO_SPACE, FUSE]}),
        (Decoder("_", strip="first"), FIRST | {"prepend_scheme": "always", "split": True}),
    ],
)
def test_what_is_written_of_a_decoder(decoder: Decoder | None, expected: Any) -> None:
    assert write_decoder(decoder) == expected


def test_a_decoder_that_no_step_is() -> None:
    with pytest.raises(FormatError, match=r"^decoder: tokenizer\.json cannot hold"):
        write_decoder(Decoder("▁", byte_fallback=True, strip="first"))


@pytest.mark.parametrize(("merges", "name"), [(["Ċ Ċ", "Ġ Ċ"], "llama3"), (["Ċ Ġ"], None)])
def test_cl100k_is_spelled_as_in_published_files(tmp_path: Path, merges: list[str], name: str | None) -> None:
    """Unless a token crosses a place where Llama 3's pattern splits and cl100k's does not."""
    cl100k = list(NAMED_PATTERNS["cl100k"].patterns)
    core = gguf_files.model(merges, split_patterns=cl100k).core
    BPETokenizer.from_model(Model(core)).save(tmp_path)
    written = read(tmp_path / "tokenizer.json")["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    texts = ["a \n b", "x  ", "\n \n  ", " \r\n \u3000", "a\n\n", "1234 \n\n\t "]
    own = _core.SplitPattern(cl100k[0]).to_oniguruma()
    assert written == (own if name is None else NAMED_PATTERNS[name].patterns[0])
    assert huggingface.load(tmp_path).core.split_patterns == cl100k
    (tmp_path / "tokenizer_config.json").unlink()
    again, encoder = (_core.Encoder(each) for each in (huggingface.load(tmp_path).core, core))
    assert again.encode_batch(texts) == encoder.encode_batch(texts)
    # Only the branch for the white space at the end of a text differs.
    without = cl100k[0].replace(r"|\s++$", "")
    llama3 = _core.SplitPattern(NAMED_PATTERNS["llama3"].patterns[0])
    assert without != cl100k[0]
    assert llama3.is_same(_core.SplitPattern(without))
    assert not llama3.is_same(_core.SplitPattern(cl100k[0]))


# -- files changed by hand ------------------------------------------------------------------------------


def test_a_changed_tokenizer_json_wins(tmp_path: Path) -> None:
    huggingface.save(
        small_model(AddedToken("<eos>", SIZE), split_patterns=NAMED_PATTERNS["cl100k"].patterns), tmp_path
    )
    document = read(tmp_path / "tokenizer.json")
    document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = r"\p{L}+"
    document["added_tokens"][0]["lstrip"] = True  # added_tokens_decoder counts, as in transformers
    document["added_tokens"].append(added_token(SIZE + 1, "<new>"))
    write(tmp_path, document)
    model = huggingface.load(tmp_path)
    assert model.core.split_patterns == [r"\p{L}+"]
    assert [token[0] for token in model.core.added_tokens] == ["<eos>", "<new>"]
    assert not AddedToken(*model.core.added_tokens[0]).lstrip
    assert model.named_tokens == {"eos": "<eos>"}


def test_a_changed_config_wins(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    config = read(tmp_path / "tokenizer_config.json")
    config |= {"eos_token": "<|pad|>", "model_max_length": 9, "bpe_tokenizer": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    again = BPETokenizer.from_pretrained(tmp_path)
    assert (again.eos_token, again.model.config) == ("<|pad|>", {"model_max_length": 9})
    assert again.encode("a", add_special_tokens=True) == again.encode("a")
