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
from bpe_tokenizer import AddedToken, BPETokenizer, FormatError, Model, OptionError, PostProcessor, _core
from bpe_tokenizer.formats import hub, huggingface
from bpe_tokenizer.formats.huggingface.pre_tokenizer import PUNCTUATION, write_pre_tokenizer
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
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hf_files import (
    BYTE_LEVEL,
    FUSE,
    LLAMA3_REGEX,
    SIZE,
    added_token,
    byte_level,
    bytes_vocab,
    good_characters,
    read,
    round_trip,
    sequence,
    small_model,
    split,
    tokenizer_json,
    write,
)

# -- round trips ----------------------------------------------------------------------------------------


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
    core = plain_tokenizer.model.core
    assert document["model"]["merges"][0] == list(core.printable_merges()[0])
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


NORMALIZERS = [
    *(PlainNormalizer("NFKD"), PlainNormalizer("StripAccents"), PlainNormalizer("Lowercase")),
    Strip(strip_left=True, strip_right=False),
    Replace(pattern=r"\w+", content="$0"),
    Replace(pattern=r"a\.b", content=""),
    Prepend(prepend="▁"),
]
SPLITS = [
    Split(pattern=r"\w", behavior="Removed"),
    Split(pattern=r"\w+|[^\w\s]+", behavior="Removed", invert=True),
    Split(pattern=r"\s", behavior="Removed"),
    Split(pattern="a", behavior="Contiguous", invert=True),
    PrefixSpace(),
    Split("SplitBytes", r"\p{N}", "MergedWithNext", False),
]


@pytest.mark.parametrize(
    "settings",
    [
        *({"split_patterns": named.patterns} for named in NAMED_PATTERNS.values()),
        {"split_patterns": []},
        {"normalization": "NFC"},
        {"normalization": "NFKD"},
        {"ignore_merges": True},
        {"add_prefix_space": True},
        {"add_prefix_space": True, "split_patterns": []},
        {"split_patterns": [r"\w+$|\s+", r"^\d", "(?i)a|b"]},
        {"normalizers": [Prepend(prepend="")]},
        {"normalizers": NORMALIZERS},
        {"pre_tokenizers": SPLITS},
        {"pre_tokenizers": [Metaspace("Metaspace", "_", "first", False), SPLITS[2]]},
        {"keeps_gaps": False},
    ],
)
def test_settings_come_back(settings: dict[str, Any], tmp_path: Path) -> None:
    round_trip(small_model(**settings), tmp_path)


@pytest.mark.parametrize(
    ("step", "written"),
    [
        (Split(pattern=f"[{PUNCTUATION}]"), {"type": "Punctuation", "behavior": "Isolated"}),
        (Split(pattern=f"[{PUNCTUATION}]+"), {"type": "Punctuation", "behavior": "Contiguous"}),
        (Split(pattern=r"\s", behavior="Removed"), {"type": "WhitespaceSplit"}),
        (Split(pattern=r"a\.b"), split("a.b", "String")),
    ],
)
def test_a_step_is_written_in_its_shortest_form(step: Split, written: Any) -> None:
    assert write_pre_tokenizer([step], in_bytes=False) == written


def test_a_step_that_removes_what_no_text_has_is_its_pattern(tmp_path: Path) -> None:
    """As Phi 4's: so the pattern is known by its name."""
    step = split(LLAMA3_REGEX, behavior="Removed", invert=True)
    model = huggingface.load(write(tmp_path, tokenizer_json(bytes_vocab(), pre_tokenizer=sequence(step))))
    assert model.core.split_patterns == [LLAMA3_REGEX]


def characters_model(*added: AddedToken, **settings: Any) -> Model:
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "é", "▁a", "aé", "▁aé"]
    merges = [("▁", "a"), ("▁a", "é"), ("a", "é"), ("▁", "aé")]
    vocab = {index: token.encode() for index, token in enumerate(tokens)}
    pairs = [(left.encode(), right.encode()) for left, right in merges]
    return Model(_core.Model(vocab, pairs, alphabet="characters", added_tokens=added, **settings))


TO_META = [Prepend(prepend="▁"), Replace(pattern=" ", content="▁")]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"byte_fallback": True, "unk_id": 0, "fuse_unk": True, "decoder": Decoder("▁", True, "one")},
        {"byte_fallback": True, "decoder": Decoder("▁", True, "none")},
        {"unk_id": 0, "decoder": Decoder("▁", False, "first")},
        {"decoder": Decoder(" ", True, "one"), "normalizers": TO_META},
        {"decoder": Decoder(" ", False, "one"), "pre_tokenizers": [Metaspace()]},
        {"ignore_merges": True, "pre_tokenizers": [Split(pattern=" ", behavior="MergedWithPrevious")]},
        {"pre_tokenizers": [Split(pattern=r"\w+$|[^\w]+")]},  # the file spells it otherwise
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


def test_the_unknown_token_stays_in_the_vocabulary(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"alphabet": "characters", "unk_id": 7}
    core = _core.Model({0: b"a", 7: b"<unk>"}, [], added_tokens=[AddedToken("<unk>", 7)], **settings)
    round_trip(Model(core), tmp_path)
    assert read(tmp_path / "tokenizer.json")["model"]["unk_token"] == "<unk>"


def test_flags_of_added_tokens_come_back(tmp_path: Path) -> None:
    flags = [tuple(bool(bits >> flag & 1) for flag in range(5)) for bits in range(32)]
    added = (AddedToken(f"<{index}>", SIZE + index, *each) for index, each in enumerate(flags))
    round_trip(small_model(*added), tmp_path)


@pytest.mark.parametrize(
    "special_tokens",
    [
        ["<a>", "<b>", "<c>"],  # reserved after the bytes
        {"<far>": 100_257},  # outside, and in model.vocab for its id
        {"<a>": 270, "<far>": 100_257},
        {"<a>": 275, "<b>": 276},  # the last one inside and the first one outside
        {"<a>": 276, "<b>": 277, "<far>": 300},  # two are in model.vocab only because of the third
        {"<a>": 278, "<b>": 280, "<c>": 4_294_967_294},
    ],
)
def test_ids_of_special_tokens_and_the_size_of_the_vocabulary_come_back(
    special_tokens: Any, tmp_path: Path
) -> None:
    text = "the cat in the hat sat on that mat and the rat"
    tokenizer = BPETokenizer().train(text, 276, 1, special_tokens, verbose=False)
    assert tokenizer.vocab_size == 276
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
    document = tokenizer_json(bytes_vocab() | tokens, added=added)
    tokenizer = BPETokenizer.from_pretrained(write(tmp_path, document))
    assert tokenizer.vocab_size == vocab_size
    for token, token_id in tokens.items():
        assert tokenizer.encode(f"a{token}", allowed_special="all") == [97, token_id]


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
    parts: dict[str, Any] = {"added": [added_token(7, token)], "pre_tokenizer": None, "decoder": FUSE}
    write(tmp_path, tokenizer_json({"a": 0, token: 7}, **parts, **settings))
    assert BPETokenizer.from_pretrained(tmp_path).encode(text) == [7]


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


def test_a_text_that_spells_other_bytes_needs_no_place_in_the_vocabulary(tmp_path: Path) -> None:
    round_trip(small_model(AddedToken("éé", SIZE), ignore_merges=True), tmp_path)
    assert len(read(tmp_path / "tokenizer.json")["model"]["vocab"]) == SIZE
    round_trip(small_model(AddedToken("éé", 900)), tmp_path)
    with pytest.raises(FormatError, match=r"^added_tokens: 'éé' \(id 900\) needs a place in the vocabulary"):
        huggingface.to_json(small_model(AddedToken("éé", 900), ignore_merges=True))


# -- what the config says -------------------------------------------------------------------------------


def test_roles_and_the_rest_of_the_config_come_back(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    config = {"model_max_length": 512, "chat_template": "{{ '«' }}", "padding_side": "left", "x": {"y": [1]}}
    model = Model(tokenizer.model.core, {"bos": "<|unk|>", "pad": ""}, config=config)
    loaded = round_trip(model, tmp_path)
    assert loaded.named_tokens == {"bos": "<|unk|>", "eos": "<|eos|>", "pad": "", "unk": "<|unk|>"}
    assert read(tmp_path / "tokenizer_config.json")["pad_token"] is None
    assert BPETokenizer.from_model(loaded).pad_token is None


def test_a_further_member_of_an_added_token_means_nothing(tmp_path: Path) -> None:
    huggingface.save(small_model(AddedToken("<a>", SIZE), AddedToken("日", 261, special=False)), tmp_path)
    expected = huggingface.load(tmp_path)
    path, config_path = tmp_path / "tokenizer.json", tmp_path / "tokenizer_config.json"
    document, config = read(path), read(config_path)
    document["added_tokens"][1]["x"] = config["added_tokens_decoder"]["261"]["x"] = None
    path.write_text(json.dumps(document))
    config["bpe_tokenizer"]["tokenizer_json_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    config_path.write_text(json.dumps(config))
    again = huggingface.load(tmp_path)
    assert again.core.__getnewargs_ex__() == expected.core.__getnewargs_ex__()
    assert again == dataclasses.replace(expected, core=again.core)


def test_the_map_and_the_template_beside(tmp_path: Path) -> None:
    added = [added_token(SIZE, "<x>"), added_token(SIZE + 1, "<y>")]
    write(tmp_path, tokenizer_json(bytes_vocab(), added=added))
    (tmp_path / "special_tokens_map.json").write_text('{"eos_token": {"content": "<y>"}, "sep_token": "<x>"}')
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "<x>", "chat_template": "old"}')
    (tmp_path / "chat_template.jinja").write_text("né\n", encoding="utf-8")
    model = huggingface.load(tmp_path)
    assert model.named_tokens == {"eos": "<y>"}
    assert model.config == {"sep_token": "<x>", "chat_template": "né\n"}


@pytest.mark.parametrize(
    "kept",
    [
        {"truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}},
        {"padding": {"strategy": {"Fixed": 8}, "direction": "Right", "pad_id": 1, "pad_token": "<s>"}},
        {"post_processor": byte_level(use_regex=False)},
        {"post_processor": byte_level(trim_offsets=True)},
    ],
)
def test_what_is_only_kept_comes_back(kept: dict[str, Any], tmp_path: Path) -> None:
    bytes_file = tokenizer_json(bytes_vocab("<s>"), added=[added_token(SIZE, "<s>")])
    for number, document in enumerate((bytes_file, good_characters())):
        model = huggingface.load(write(tmp_path / f"{number}", document | kept))
        assert len(BPETokenizer.from_model(model).encode("1!1!1!1!1!")) >= 10
        round_trip(model, tmp_path / f"again {number}")
        assert read(tmp_path / f"again {number}" / "tokenizer.json").items() >= kept.items()


# -- post-processors ------------------------------------------------------------------------------------


def with_bos_and_eos(**changes: Any) -> Model:
    return dataclasses.replace(small_model(AddedToken("<bos>", SIZE), AddedToken("<eos>", 300)), **changes)


def test_no_post_processor_puts_bos_and_eos_around(tmp_path: Path) -> None:
    assert round_trip(with_bos_and_eos(), tmp_path).post_processor is None
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
    again = BPETokenizer.from_model(round_trip(with_bos_and_eos(post_processor=around), tmp_path))
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
    assert read(tmp_path / "tokenizer.json")["post_processor"]["special_tokens"] == {
        token: {"id": token, "ids": [token_id], "tokens": [token]} for token, token_id in strings.items()
    }


def test_a_file_of_characters_that_adds_nothing_has_no_post_processor(tmp_path: Path) -> None:
    round_trip(dataclasses.replace(characters_model(), post_processor=PostProcessor()), tmp_path)
    assert read(tmp_path / "tokenizer.json")["post_processor"] is None


def test_a_file_that_adds_nothing_adds_nothing(tmp_path: Path) -> None:
    added = [added_token(SIZE, "<bos>"), added_token(SIZE + 1, "<eos>")]
    for post_processor in (None, BYTE_LEVEL):
        document = tokenizer_json(bytes_vocab(), added=added, post_processor=post_processor)
        tokenizer = BPETokenizer.from_pretrained(write(tmp_path, document))
        assert (tokenizer.bos_token, tokenizer.encode("b", add_special_tokens=True)) == ("<bos>", [98])


# -- patterns, and files changed by hand ----------------------------------------------------------------


@pytest.mark.parametrize(("merges", "name"), [(["Ċ Ċ", "Ġ Ċ"], "llama3"), (["Ċ Ġ"], None)])
def test_cl100k_is_spelled_as_in_published_files(tmp_path: Path, merges: list[str], name: str | None) -> None:
    """Unless a token crosses a place where Llama 3's pattern splits and cl100k's does not."""
    cl100k = list(NAMED_PATTERNS["cl100k"].patterns)
    core = gguf_files.model(merges, split_patterns=cl100k).core
    huggingface.save(Model(core), tmp_path)
    written = read(tmp_path / "tokenizer.json")["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    texts = ["a \n b", "x  ", "\n \n  ", " \r\n \u3000", "a\n\n", "1234 \n\n\t "]
    own = _core.SplitPattern(cl100k[0]).to_oniguruma()
    assert written == (own if name is None else NAMED_PATTERNS[name].patterns[0])
    assert huggingface.load(tmp_path).core.split_patterns == cl100k
    (tmp_path / "tokenizer_config.json").unlink()
    again, encoder = (_core.Encoder(each) for each in (huggingface.load(tmp_path).core, core))
    assert again.encode_batch(texts) == encoder.encode_batch(texts)


def test_a_changed_tokenizer_json_wins(tmp_path: Path) -> None:
    made = small_model(AddedToken("<eos>", SIZE), split_patterns=NAMED_PATTERNS["cl100k"].patterns)
    huggingface.save(made, tmp_path)
    document = read(tmp_path / "tokenizer.json")
    document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = r"\p{L}+"
    document["added_tokens"][0]["lstrip"] = True  # added_tokens_decoder counts, as in transformers
    document["added_tokens"].append(added_token(SIZE + 1, "<new>"))
    model = huggingface.load(write(tmp_path, document))
    assert model.core.split_patterns == [r"\p{L}+"]
    assert [token[0] for token in model.core.added_tokens] == ["<eos>", "<new>"]
    assert not AddedToken(*model.core.added_tokens[0]).lstrip
    assert model.named_tokens == {"eos": "<eos>"}
    assert (model.core.vocab_size, model.core.vocab[SIZE + 1]) == (SIZE, b"<new>")  # as it was saved


def test_a_changed_config_wins(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path)
    config = read(tmp_path / "tokenizer_config.json")
    config |= {"eos_token": "<|pad|>", "model_max_length": 9, "bpe_tokenizer": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    again = BPETokenizer.from_pretrained(tmp_path)
    assert (again.eos_token, again.model.config) == ("<|pad|>", {"model_max_length": 9})
    assert again.encode("a", add_special_tokens=True) == again.encode("a")
