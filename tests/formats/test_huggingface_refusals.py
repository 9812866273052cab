"""What a Hugging Face directory may not hold is refused, and the error names it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import AddedToken, BPETokenizer, FormatError, Model, PostProcessor, TokenizerError, _core
from bpe_tokenizer.formats import huggingface
from bpe_tokenizer.model import Decoder, Metaspace, PrefixSpace, Replace, Split
from hf_files import (
    BYTE_LEVEL,
    FUSE,
    METASPACE,
    SIZE,
    STRIP,
    TO_SPACE,
    Change,
    added_token,
    at,
    bytes_vocab,
    good,
    good_characters,
    round_trip,
    small_model,
    template,
    tokenizer_json,
    without,
    write,
)
from small_tokenizers import characters_model


def without_bytes(**changes: Any) -> dict[str, Any]:
    """A model that lacks a byte; an integer is a further token."""
    tokens = {name: value for name, value in changes.items() if type(value) is int}
    settings = {name: value for name, value in changes.items() if name not in tokens}
    vocab = dict(list(bytes_vocab().items())[:255]) | {"<byte>": 255, "he": 256, "<eos>": 257, "hel": 258}
    vocab = {token: index for token, index in vocab.items() if index not in tokens.values()} | tokens
    model: dict[str, Any] = tokenizer_json(vocab, **settings)["model"]
    return model


PRE = ("pre_tokenizer", "pretokenizers")
POST = ("post_processor", "processors", 1)
DECODER = ("decoder", "decoders")


def vocab(token: str, token_id: Any) -> Change:
    return at("model", "vocab", token, to=token_id)


def merge(index: int, value: Any) -> Change:
    return at("model", "merges", index, to=value)


def added(*tokens: Any) -> Change:
    return at("added_tokens", to=list(tokens))


def normalizer(kind: str, **fields: Any) -> Change:
    return at("normalizer", to={"type": kind} | fields)


def first_step(kind: str, **fields: Any) -> Change:
    return at(*PRE, 0, to={"type": kind} | fields)


def metaspace(**fields: Any) -> Change:
    return at(*PRE, 0, to=METASPACE | fields)


def bert(**fields: Any) -> Change:
    step = {"type": "BertProcessing", "cls": ["<eos>", 257], "sep": ["<eos>", 257]}
    return at("post_processor", to=step | fields)


def regex(pattern: str) -> Change:
    return at(*PRE, 0, "pattern", "Regex", to=pattern)


VERSION = "#version: 0.2 - Trained by `huggingface/tokenizers`"
AN_ID = "expected an id, an integer from 0 to 4294967294 at line"
STRIPPED = r"added_tokens: ' x' \(id 260\) begins with white space, which another token strips"
EMPTY = "can match the empty text"
OF_NO_BYTE = {token.replace("Ā", "▁the"): index for token, index in good()["model"]["vocab"].items()}
TWO_BYTES = r"pretokenizers\[3\]: ByteLevel after ByteLevel is not supported"

REFUSED: list[tuple[Change, str]] = [
    (at("version", to="2.0"), r"version: '2\.0' is not supported"),
    (at("version", to=None), "version: must be a string"),
    (at("extra", to=1), "unknown field 'extra' in tokenizer.json"),
    (without("model"), "model: is missing"),
    (at("model", "type", to="WordPiece"), "model.type: 'WordPiece' is not supported; only BPE models are"),
    (at("model", "max_chars", to=1), "model: unknown field 'max_chars' in a BPE model"),
    (at("model", "dropout", to=0.1), "model.dropout: 0.1 makes encoding random"),
    (at("model", "dropout", to=True), "model.dropout: True makes encoding random"),
    (at("model", "continuing_subword_prefix", to="##"), "continuing_subword_prefix: '##' is not supported"),
    (at("model", "end_of_word_suffix", to="</w>"), "model.end_of_word_suffix: '</w>' is not supported"),
    (at("model", "ignore_merges", to="yes"), "model.ignore_merges: must be true or false, not 'yes'"),
    (without("model", "vocab"), "model.vocab: is missing"),
    (without("model", "merges"), "model.merges: is missing"),
    (at("model", "vocab", to=[["a", 0]]), "model.vocab: must be an object, not \\[\\]"),
    (vocab("he", "256"), f'model.vocab.he: invalid type: string "256", {AN_ID}'),
    (vocab("he", -1), f"model.vocab.he: invalid type: integer `-1`, {AN_ID}"),
    (vocab("he", 2**32), f"model.vocab.he: invalid value: integer `4294967296`, {AN_ID}"),
    (vocab("he", True), f"model.vocab.he: invalid type: boolean `true`, {AN_ID}"),
    (vocab("he", 97), 'model.vocab: duplicate id 97: tokens "a" and "he"'),
    (at("model", "vocab", to=OF_NO_BYTE), 'model: the token "▁the" holds a character that has no byte value'),
    (merge(1, "he l"), r"model.merges\[1\]: is of another kind: all must be pairs"),
    (at("model", "merges", to=["h e", "he l x"]), r'model.merges\[1\]: invalid value: string "he l x"'),
    (at("model", "merges", to=[VERSION, "h e", "h  e"]), r'model.merges\[2\]: invalid value: string "h  e"'),
    (merge(0, ["h", "e", "l"]), r"model.merges\[0\]: invalid length 3, expected a merge"),
    (merge(0, ["h", 5]), r"model.merges\[0\]: invalid type: integer `5`"),
    (merge(0, ["x", "y"]), r'model.merges\[0\]: "xy" is not a token of model.vocab'),
    (at("added_tokens", 1, "id", to=2**32 - 1), r"added_tokens\[1\].id: invalid value: integer `4294967295`"),
    (at("added_tokens", 1, "id", to=300), r"added_tokens\[1\].id: 300 is not the id .* which is 259"),
    (at("added_tokens", 0, "id", to=258), r'added_tokens\[0\].id: 258 is not .* "<eos>", which is 257'),
    (at("added_tokens", 1, "content", to=""), r"added_tokens\[1\].content: is empty"),
    (at("added_tokens", 1, "content", to="<eos>"), r'added_tokens\[1\]: duplicate token "<eos>"'),
    (without("added_tokens", 1, "lstrip"), r"added_tokens\[1\].lstrip: is missing"),
    (at("added_tokens", 1, "special", to=1), r"added_tokens\[1\].special: invalid type: integer"),
    (
        at("model", to=without_bytes(byte_fallback=True, **{"<0x0A>": 255})),
        "model.byte_fallback: True is not supported in a byte-level file that lacks bytes",
    ),
    (
        at("model", to=without_bytes(unk_token="<nowhere>")),
        "model.unk_token: '<nowhere>' is not in model.vocab, where Hugging Face tokenizers needs it",
    ),
    (added(added_token(233, "é")), r"'é' \(id 233\) is in model.vocab, where its text spells other bytes"),
    (added(added_token(259, "RR", rstrip=True), added_token(260, " x")), STRIPPED),
    (
        added(added_token(259, "RR", rstrip=True, normalized=True), added_token(260, " x", normalized=True)),
        STRIPPED,
    ),
    (
        added(added_token(259, "<é>", normalized=True), added_token(260, "<e\u0301>", normalized=True)),
        "is the same as '<é>' after normalisation",
    ),
    *(
        (normalizer(kind), f"normalizer.type: '{kind}' is not supported; NFC, NFD,")
        for kind in ("BertNormalizer", "Precompiled", "Magic")
    ),
    (
        at("normalizer", "normalizers", to=[{"type": "ByteLevel"}, {"type": "NFC"}]),
        r"normalizers\[1\]: follows ByteLevel, which must be the last step",
    ),
    (normalizer("ByteLevel"), TWO_BYTES),
    (normalizer("Strip", strip_left=True), "normalizer.strip_right: is missing"),
    (normalizer("Prepend", prepend=""), "normalizer.prepend: is empty"),
    (normalizer("Replace", pattern={"Regex": "a*"}, content=""), f"normalizer.pattern.Regex: .* {EMPTY}"),
    (normalizer("Replace", pattern={"String": ""}, content=""), "normalizer.pattern.String: is empty"),
    (normalizer("Replace", pattern={"Regex": r"\Gx"}, content=""), r"pattern.Regex: .* holds \\G, which may"),
    (at(*PRE, 0, to=BYTE_LEVEL), TWO_BYTES),
    (at(*PRE, to=[BYTE_LEVEL, METASPACE]), r"pretokenizers\[1\]: Metaspace after ByteLevel is not supported"),
    (first_step("UnicodeScripts"), r"pretokenizers\[0\].type: 'UnicodeScripts' is not supported"),
    (first_step("Delimiter"), r"pretokenizers\[0\].type: 'Delimiter' is not supported"),
    (first_step("FixedLength", length=1001), r"\[0\].length: 1001 is not supported; it must be 1 to 1000"),
    (first_step("FixedLength", length=0), r"pretokenizers\[0\].length: 0 is not supported"),
    (first_step("CharDelimiterSplit", delimiter="ab"), r"\[0\].delimiter: 'ab' must be one"),
    (metaspace(str_rep=5), r"\[0\].str_rep: must be a string"),
    (metaspace(replacement="ab"), r"\[0\].replacement: 'ab' must be one character"),
    (metaspace(prepend_scheme="x"), r"\[0\].prepend_scheme: 'x' must be one of"),
    (metaspace(prepend_scheme=None), r"\[0\].prepend_scheme: must be a string"),
    (metaspace(add_prefix_space=False), r"add_prefix_space: False contradicts the prepend_scheme 'always'"),
    (without(*PRE, 3, "add_prefix_space"), r"pretokenizers\[3\].add_prefix_space: is missing"),
    (at(*PRE, 0, "behavior", to="Shuffled"), r"pretokenizers\[0\].behavior: 'Shuffled' must be one of"),
    (at(*PRE, 0, "pattern", to={"Glob": "*"}), r"\.pattern: \{'Glob': '\*'\} must be \{\"Regex\": pattern\}"),
    (at(*PRE, 0, "pattern", to={"String": ""}), r"\.pattern.String: is empty"),
    (regex("(a"), r"\.pattern.Regex: '\(a' is not supported: it holds \("),
    (regex(r"[\W]+"), r"\.pattern.Regex: .* is not supported: it holds \\W, which"),
    (regex("[z-a]"), r"\.pattern.Regex: '\[z-a\]' is not supported: split patt"),
    (regex(r"(?=\d)|a"), rf"\.pattern.Regex: .* {EMPTY}"),
    (regex("a*"), rf"\.pattern.Regex: 'a\*' is not supported: it {EMPTY}"),
    (at(*PRE, 2, "behavior", to="Kept"), r"pretokenizers\[2\].behavior: 'Kept' must be one of"),
    (at("decoder", to={"type": "Metaspace"}), "decoder.type: 'Metaspace' is not supported"),
    (at(*DECODER, to=[BYTE_LEVEL, BYTE_LEVEL]), "decoder: has 2 steps"),
    (at(*POST, "type", to="Magic"), r"post_processor.processors\[1\].type: 'Magic' is not supported"),
    (at(*POST, "single", to=[]), r"processors\[1\].single: holds Sequence A 0 times"),
    (at("post_processor", to=template("$A", "$A", ids={})), r"\.single: holds Sequence A 2 times"),
    (bert(cls=["a"]), r"cls: .* must be a token and its id"),
    (bert(cls=[1, 1]), r"cls\[0\]: must be a string"),
    (bert(sep=["b", 999]), r"sep\[1\]: 999 is not the id of"),
    (without(*POST, "single"), r"single: is missing"),
    (at(*POST, "single", 1, "Sequence", "id", to="B"), r"single\[1\].Sequence.id: 'B' must be A, the only"),
    (at(*POST, "single", 0, to={"Other": 1}), r"single\[0\]: \{'Other': 1\} must be a Sequence or a Spec"),
    (at(*POST, "special_tokens", to={}), r"processors\[1\].special_tokens.<bos>: is missing"),
    (at(*POST, "special_tokens", "<bos>", "ids", 0, to=999), r"<bos>.ids\[0\]: 999 is not the id of a token"),
    (at(*POST[:2], 0, to=template("x", "$A", ids={"x": [5]})), "is the second step that adds"),
]

REFUSED_CHARACTERS: list[tuple[Change, str]] = [
    (at("decoder", to=BYTE_LEVEL), "decoder: ByteLevel is not supported here; use Metaspace alone, or a Seq"),
    (at("decoder", to={"type": "BPEDecoder"}), "decoder: BPEDecoder is not supported here"),
    (at(*DECODER, to=[FUSE, TO_SPACE]), r"decoders\[1\]: Replace is not supported here"),
    (at(*DECODER, to=[TO_SPACE, STRIP]), r"decoders\[1\]: Strip is not supported here"),
    (at(*DECODER, to=[TO_SPACE, METASPACE]), r"decoders\[1\]: Metaspace is not supported here"),
    (at(*DECODER, to=[TO_SPACE, TO_SPACE]), r"decoders\[1\]: Replace is not supported here"),
    (at(*DECODER, to=[FUSE, STRIP, FUSE]), r"decoders\[2\]: Fuse is not supported here"),
    (at("decoder", to=METASPACE | {"replacement": "ab"}), r"replacement: 'ab' must be one character"),
    (at(*DECODER, 0, "content", to="_"), r"decoders\[0\].content: '_' is not supported in a decoder"),
    (at(*DECODER, 0, "pattern", "String", to="▁▁"), r"decoders\[0\].pattern: .* is not supported in a dec"),
    (at(*DECODER, 0, "pattern", to={"Regex": "a+"}), r"decoders\[0\].pattern: .* is not supported in a dec"),
    (at(*DECODER, 3, "start", to=2), r"decoders\[3\]: .* is not supported; it must strip one space"),
    (at(*DECODER, 3, "content", to="a"), r"decoders\[3\]: .* is not supported; it must strip one space"),
    (at("added_tokens", 2, "content", to=" "), "added_tokens: ' ' \\(id 11\\) is empty after normalisation"),
    (at("model", "unk_token", to="?"), "model.unk_token: '\\?' is not in model.vocab"),
    (vocab("h", 3), 'model.vocab: duplicate id 3: tokens "▁" and "h"'),
    (without("model", "vocab", "▁he"), r'model.merges\[1\]: "▁he" is not a token of model.vocab'),
    (merge(0, ["▁", "l"]), r'model.merges\[0\]: "▁l" is not a token of model.vocab'),
    (merge(0, ["x", "l"]), r'model.merges\[0\]: "x" is not a token of model.vocab'),
    (at(*PRE, 2, to={"type": "UnicodeScripts"}), r"pretokenizers\[2\].type: 'UnicodeScripts' is not supp"),
]


def refused(document: dict[str, Any], change: Change, message: str, directory: Path) -> None:
    change(document)
    with pytest.raises(FormatError, match=message) as caught:
        huggingface.load(write(directory, document))
    assert str(caught.value).startswith(str(directory / "tokenizer.json"))


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_cannot_be_represented_is_refused_by_name(change: Change, message: str, tmp_path: Path) -> None:
    refused(good(), change, message, tmp_path)


@pytest.mark.parametrize(("change", "message"), REFUSED_CHARACTERS)
def test_what_cannot_be_represented_of_characters(change: Change, message: str, tmp_path: Path) -> None:
    refused(good_characters(), change, message, tmp_path)


def test_the_good_file_of_characters_is_good(tmp_path: Path) -> None:
    model = huggingface.load(write(tmp_path / "1", good_characters()))
    tokenizer = BPETokenizer.from_model(model)
    ids = tokenizer.encode("hel 2!ö1<s> ", add_special_tokens=True, allowed_special="all")
    assert [tokenizer.vocab[token_id].decode() for token_id in ids] == (
        ["<s>", "▁he", "l", "▁", "<0x21>", "<unk>", "1", "<s>"]
    )
    assert tokenizer.decode(ids) == "<s> hel !<unk>1<s>"
    assert tokenizer.decode(ids[1:-1]) == "hel !<unk>1"
    round_trip(model, tmp_path / "2")


@pytest.mark.parametrize("ignore_merges", [True, False])
def test_a_text_that_spells_other_bytes_only_where_pieces_are_looked_up(
    ignore_merges: bool, tmp_path: Path
) -> None:
    added = [added_token(97, "a"), added_token(256, "éé"), added_token(257, "日")]
    document = tokenizer_json(bytes_vocab("éé", "日"), added=added, ignore_merges=ignore_merges)
    if ignore_merges:
        with pytest.raises(FormatError, match=r"'éé' \(id 256\) is in model.vocab, where its text spells"):
            huggingface.load(write(tmp_path, document))
    else:
        assert len(huggingface.load(write(tmp_path, document)).core.added_tokens) == 3


def test_the_good_file_is_good(tmp_path: Path) -> None:
    model = huggingface.load(write(tmp_path / "1", good()))
    assert BPETokenizer.from_model(model).encode("hel 12", add_special_tokens=True) == [259, 258, 32, 49, 50]
    round_trip(model, tmp_path / "2")


ACCEPTED: list[Change] = [
    without("version"),
    without("truncation"),
    without("model", "type"),
    without("model", "dropout"),
    at("model", "dropout", to=0.0),
    at("model", "unk_token", to="<unk>"),
    at("model", "byte_fallback", to=True),
    at("model", "fuse_unk", to=True),
    at("model", "end_of_word_suffix", to=""),
    at("model", "merges", to=["#version: 0.2", "h e", "he l"]),
    at("normalizer", to=None),
    at("normalizer", "normalizers", to=[]),
    at("decoder", to=BYTE_LEVEL),
    at("post_processor", to=None),
]


@pytest.mark.parametrize("change", ACCEPTED)
def test_what_changes_nothing_is_accepted(change: Change, tmp_path: Path) -> None:
    document = good()
    change(document)
    loaded = huggingface.load(write(tmp_path / "1", document))
    expected = huggingface.load(write(tmp_path / "2", good()))
    assert loaded.core.merges == expected.core.merges
    tokenizers = [BPETokenizer.from_model(model) for model in (loaded, expected)]
    assert tokenizers[0].encode("hel <bos> 12!") == tokenizers[1].encode("hel <bos> 12!")


def test_a_setting_that_is_missing_is_off(tmp_path: Path) -> None:
    """Files of older versions of the library lack some."""
    document = good_characters()
    for name in ("ignore_merges", "fuse_unk", "byte_fallback"):
        del document["model"][name]
    core = huggingface.load(write(tmp_path, document)).core
    assert (core.ignore_merges, core.fuse_unk, core.byte_fallback) == (False, False, False)


def test_a_vocabulary_with_every_byte_has_no_unknown_token(tmp_path: Path) -> None:
    document = tokenizer_json(bytes_vocab("<unk>"), unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    core = huggingface.load(write(tmp_path, document)).core
    assert (core.unk_id, core.fuse_unk, core.byte_fallback) == (None, False, False)


def test_byte_fallback_without_byte_tokens_has_no_effect(tmp_path: Path) -> None:
    document = good()
    document["model"] = without_bytes(byte_fallback=True)
    core = huggingface.load(write(tmp_path, document)).core
    assert (core.byte_fallback, core.requires_all_bytes) == (False, False)


THE_ID = "added_tokens_decoder.{0}: gives '{1}' the id {0}, "
IS_ID_7 = THE_ID.format(7, "<bos>") + ".* or load tokenizer.json by its path: alone"
IS_ID_999 = THE_ID.format(999, "<x>") + "but by tokenizer.json, as in transformers, it has 2.*; correct"


def decoder(token_id: str, **entry: Any) -> dict[str, Any]:
    return {"added_tokens_decoder": {token_id: entry}}


def own(name: str, value: Any) -> dict[str, Any]:
    return {"bpe_tokenizer": {name: value}}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"eos_token": 5}, "eos_token: must be a string, not 5"),
        ({"eos_token": {"text": "x"}}, "eos_token.content: is missing"),
        ({"additional_special_tokens": [5]}, r"additional_special_tokens\[0\]: must be a string, not 5"),
        (decoder("999", content="<x>"), IS_ID_999),
        (decoder("7", content="<bos>"), IS_ID_7),
        (decoder("x", content="<bos>"), 'added_tokens_decoder: "x" is not an id'),
        (decoder("259", content="<bos>", lstrip=1), "lstrip: invalid type: integer"),
        ({"bpe_tokenizer": "x"}, "bpe_tokenizer: must be an object, not 'x'"),
        (own("pre_tokenizers", 5), "bpe_tokenizer.pre_tokenizers: must be an array, not 5"),
        (own("normalizers", [["X"]]), r"bpe_tokenizer.normalizers\[0\]: \['X'\] is not a step"),
        (own("normalizers", [[]]), r"bpe_tokenizer.normalizers\[0\]: \[\] is not a step"),
        ([], "invalid type: sequence, expected an object"),
    ],
)
def test_configs_that_are_refused_by_name(config: Any, message: str, tmp_path: Path) -> None:
    write(tmp_path, good())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(FormatError, match=rf"tokenizer_config\.json: .*{message}"):
        huggingface.load(tmp_path)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], r"holds no tokenizer\.json"),
        (["vocab.json", "merges.txt"], r"GPT-2's vocab\.json and merges\.txt; load them with"),
        (["encoder.json", "merges.txt"], r"holds no tokenizer\.json$"),
        (["encoder.json", "vocab.bpe"], r"GPT-2's encoder\.json and vocab\.bpe; load them with"),
    ],
)
def test_directories_without_a_tokenizer(names: list[str], message: str, tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(FormatError, match=message):
        huggingface.load(tmp_path)


def test_places_that_are_no_directory_or_no_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file or directory"):
        huggingface.load(tmp_path / "nowhere")
    (tmp_path / "tokenizer.json").mkdir()
    with pytest.raises(FormatError, match=r"tokenizer\.json: cannot be read: Is a directory"):
        huggingface.load(tmp_path)


BYTE_TOKENS = {byte: f"<0x{byte:02X}>".encode() for byte in range(256)}
KEEPING_GAPS = [
    _core.Model({97: b"a"}, [], requires_all_bytes=False, keeps_gaps=True),
    _core.Model(BYTE_TOKENS, [], alphabet="characters", keeps_gaps=True),
    _core.Model({**BYTE_TOKENS, 255: b"a"}, [], alphabet="characters", byte_fallback=True, keeps_gaps=True),
]


def steps(*pre_tokenizers: Any) -> Model:
    return small_model(split_patterns=[], pre_tokenizers=[*pre_tokenizers])


def changed(**fields: Any) -> Model:
    return dataclasses.replace(small_model(), **fields)


OF_BYTES, METASPACES, SPLIT = Split("SplitBytes", "a"), Metaspace(), Split(pattern="a")
ANY_SPACES = Replace(pattern=r"\s*", content="")
NO_PREFIX_SPACE = "^pre_tokenizer: tokenizer.json cannot hold add_prefix_space$"
ONLY_GPT2 = "cannot hold add_prefix_space together with the split pattern 'a'; only with GPT-2's$"
AT_THIS_POSITION = "^pre_tokenizer: tokenizer.json cannot hold the step '{}' at this position"
OF_CHARACTERS = "^decoder: tokenizer.json cannot hold a decoder of characters for byte-level tokens"
NO_JSON = "the model's config cannot be written"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (small_model(split_patterns=[r"\s*"]), rf"^pre_tokenizer: the pattern '\\\\s\*' {EMPTY}"),
        (small_model(normalizers=[ANY_SPACES]), rf"^normalizer: the pattern '\\\\s\*' {EMPTY}"),
        (small_model(split_patterns=["a(?i)b|c"]), r"'a\(\?i\)b\|c' holds \(\?i\)\.\.\., which may mean"),
        (small_model(add_prefix_space=True, split_patterns=["a"]), ONLY_GPT2),
        (steps(PrefixSpace(), METASPACES, OF_BYTES), NO_PREFIX_SPACE),
        (steps(OF_BYTES, PrefixSpace()), NO_PREFIX_SPACE),
        (steps(OF_BYTES, SPLIT), AT_THIS_POSITION.format("Split")),
        (steps(OF_BYTES, METASPACES), AT_THIS_POSITION.format("Metaspace")),
        (small_model(decoder=Decoder("_")), OF_CHARACTERS),
        (Model(characters_model(decoder=Decoder("▁", True, "first"))), "^decoder: tokenizer.json cannot"),
        *((Model(core), "^keeps_gaps: tokenizer.json cannot hold it") for core in KEEPING_GAPS),
        (small_model(AddedToken("a", 900)), "'a' has the id 900, but a token .* same spelling has 97"),
        (small_model(AddedToken("é", SIZE)), "'é' has the id 256, but a token .* same spelling has 233"),
        (changed(named_tokens={"eos": "a"}), "eos_token: 'a' is not an added"),
        (changed(post_processor=PostProcessor((900,))), "900 is not the id of a token"),
        (changed(config={"x": object()}), "^tokenizer_config.json: the model's"),
        (changed(config={"tokenizer_json": {"padding": {1}}}), f"^tokenizer.json: {NO_JSON}"),
        (changed(config={"x": float("nan")}), NO_JSON),
    ],
)
def test_what_a_file_cannot_hold_is_refused_before_it_is_written(
    model: Model, message: str, tmp_path: Path
) -> None:
    with pytest.raises(FormatError, match=message):
        huggingface.save(model, tmp_path)
    assert not list(tmp_path.iterdir())


def test_tokens_that_a_file_cannot_tell_apart(tmp_path: Path) -> None:
    vocab = {byte: bytes([byte]) for byte in range(SIZE)} | {SIZE: b"a"}
    twice = Model(_core.Model(vocab, [], split_patterns=[]))
    with pytest.raises(TokenizerError, match="the same token"):
        huggingface.save(twice, tmp_path)
    vocab |= {SIZE: "é".encode()}
    made = _core.Model(vocab, [(b"\xc3", b"\xa9")], split_patterns=[], added_tokens=[AddedToken("é", SIZE)])
    with pytest.raises(TokenizerError, match="é"):
        huggingface.save(Model(made), tmp_path)
    vocab |= {SIZE: "日".encode(), SIZE + 1: "日".encode()[:2]}
    merges = [(b"\xe6", b"\x97"), (b"\xe6\x97", b"\xa5")]
    made = _core.Model(vocab, merges, split_patterns=[], added_tokens=[AddedToken("日", SIZE)])
    with pytest.raises(FormatError, match=r"merges make '日' .* too"):
        huggingface.save(Model(made), tmp_path)
