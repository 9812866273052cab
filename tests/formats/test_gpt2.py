"""GPT-2's pair of files: round trips, where the files are, saving and crashes."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import (
    GPT2_SPLIT_PATTERN,
    AddedToken,
    BPETokenizer,
    FormatError,
    Model,
    ModelError,
    OptionError,
    PatternError,
    PostProcessor,
    _core,
)
from bpe_tokenizer.formats import gpt2
from bpe_tokenizer.patterns import NAMED_PATTERNS
from bpe_tokenizer.reference import CharBPETokenizer
from gpt2_files import VOCAB, write
from hf_files import bytes_vocab
from small_tokenizers import BYTES, bytes_model, contents

# -- round trips ----------------------------------------------------------------------------------------


def core(**changes: Any) -> _core.Model:
    settings: dict[str, Any] = {"added_tokens": [AddedToken("<s>", 257), AddedToken("</s>", 259)]}
    settings["split_patterns"] = [GPT2_SPLIT_PATTERN]
    return _core.Model(BYTES | {256: b"ab", 257: b"<s>"}, [(b"a", b"b")], **(settings | changes))


QWEN2, CL100K = NAMED_PATTERNS["qwen2"].patterns, NAMED_PATTERNS["cl100k"].patterns


@pytest.mark.parametrize(
    "model",
    [
        Model(core()),
        Model(core(add_prefix_space=True)),
        Model(core(split_patterns=QWEN2, normalization="NFC")),
        Model(core(), {"bos": "</s>", "eos": "", "pad": "<s>"}),
        Model(core(), {}, PostProcessor()),
        Model(core(), {}, PostProcessor((257,), ())),
        Model(core(), {}, PostProcessor((257,), (259,))),
        Model(core(), {}, None, {"model_max_length": 1024, "chat_template": "{{ x }}"}),
        Model(core(added_tokens=[AddedToken("<s>", 257, False, True, True, True, True)])),
        Model(core(added_tokens=[AddedToken("a b", 300), AddedToken("日本", 301, special=False)])),
    ],
)
def test_everything_comes_back(model: Model, tmp_path: Path) -> None:
    gpt2.save(model, tmp_path)
    assert contents(gpt2.load(tmp_path)) == contents(model)


def test_the_r50k_spelling_is_gpt2s(tmp_path: Path) -> None:
    gpt2.save(Model(core(split_patterns=NAMED_PATTERNS["r50k"].patterns)), tmp_path)
    assert gpt2.load(tmp_path).core.split_patterns == [GPT2_SPLIT_PATTERN]


def test_ranks_that_merging_makes_can_be_saved(stdlib_texts: list[str], tmp_path: Path) -> None:
    learned = BPETokenizer("gpt2", None).train(stdlib_texts, 500, verbose=False)
    ranks = BPETokenizer.from_vocab(learned.vocab)
    assert ranks.model.core.ignore_merges
    ranks.export(tmp_path, "gpt2")
    again = BPETokenizer.load(tmp_path, "gpt2")
    assert (again.vocab, again.merges) == (learned.vocab, learned.merges)
    unmade = Model(_core.Model({**learned.vocab, 500: b"zzzz"}, None, split_patterns=[GPT2_SPLIT_PATTERN]))
    with pytest.raises(FormatError, match=r"ignore_merges: vocab.json and .* never makes the token b'zzzz'"):
        gpt2.save(unmade, tmp_path)


def test_what_save_writes(plain_tokenizer: BPETokenizer, tmp_path: Path) -> None:
    files = gpt2.save(plain_tokenizer.model, tmp_path)
    assert sorted(file.name for file in files) == ["merges.txt", "tokenizer_config.json", "vocab.json"]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    lines = (tmp_path / "merges.txt").read_text(encoding="utf-8").split("\n")
    assert lines[0] == "#version: 0.2"
    assert lines[-1] == ""
    assert [tuple(line.split(" ")) for line in lines[1:-1]] == plain_tokenizer.model.core.printable_merges()
    vocab = json.loads((tmp_path / "vocab.json").read_text(encoding="utf-8"))
    assert list(vocab.values()) == list(range(600))
    assert vocab["Ġ"] == 32
    config = {"tokenizer_class": "GPT2Tokenizer", "clean_up_tokenization_spaces": False}
    config |= {"bos_token": "</s>", "eos_token": "</s>", "pad_token": None, "unk_token": None}
    config |= {"add_bos_token": True, "add_eos_token": False, "add_prefix_space": False}
    own = {"version": 1, "outside": [259], "roles": ["bos", "pad"], "post_processor": "file"}
    gpt2.save(Model(core(), {"bos": "</s>", "pad": ""}, PostProcessor((259,))), tmp_path)
    written = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert written.pop("added_tokens_decoder").keys() == {"257", "259"}
    assert len(written["bpe_tokenizer"].pop("pair_sha256")) == 64
    assert written == config | {"bpe_tokenizer": own}
    gpt2.save(Model(core()), tmp_path)  # readers add nothing that the source does not record
    written = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert (written["bos_token"], written["add_bos_token"]) == ("<s>", False)
    assert gpt2.load(tmp_path / "vocab.json").post_processor is None
    assert (written["eos_token"], written["add_eos_token"]) == ("</s>", False)
    assert written["bpe_tokenizer"]["post_processor"] == "roles"


def test_the_lesson_reads_what_is_saved(
    plain_tokenizer: BPETokenizer, mixed_text: str, tmp_path: Path
) -> None:
    """Its reader of OpenAI's files is written apart from ours."""
    plain_tokenizer.export(tmp_path / "encoder.json", "gpt2")
    files = tmp_path / "encoder.json", tmp_path / "vocab.bpe"
    lesson = CharBPETokenizer().load_vocab_and_merges_from_openai(*files)
    assert lesson.encode(mixed_text) == plain_tokenizer.encode(mixed_text)


# -- where the files are --------------------------------------------------------------------------------


def test_a_pair_is_found_by_either_file(tmp_path: Path) -> None:
    directory = write(tmp_path / "x")
    expected = contents(gpt2.load(directory))
    names = ("vocab.json", "merges.txt")
    assert [contents(gpt2.load(directory / name)) for name in names] == [expected] * 2
    for name in names:
        (directory / name).rename(tmp_path / f"gpt2-{name}")
    assert [contents(gpt2.load(tmp_path / f"gpt2-{name}")) for name in names] == [expected] * 2
    (tmp_path / "gpt2-vocab.json").rename(tmp_path / "a")
    (tmp_path / "gpt2-merges.txt").rename(tmp_path / "b")
    assert contents(gpt2.load(tmp_path / "a", tmp_path / "b")) == expected
    with pytest.raises(FormatError, match="pass the merges file too"):
        gpt2.load(tmp_path / "a")


def test_half_a_pair(tmp_path: Path) -> None:
    directory = write(tmp_path / "x")
    (directory / "merges.txt").unlink()
    with pytest.raises(FormatError, match="holds neither"):
        gpt2.load(directory)
    with pytest.raises(FormatError, match=r"merges\.txt is missing from its directory"):
        gpt2.load(directory / "vocab.json")
    with pytest.raises(FormatError, match="no such file or directory"):
        gpt2.load(directory / "merges.txt")
    write(tmp_path / "x")
    (directory / "vocab.json").unlink()
    with pytest.raises(FormatError, match=r"merges\.txt: vocab\.json is missing from its directory"):
        gpt2.load(directory / "merges.txt")


def test_two_pairs(tmp_path: Path) -> None:
    directory = write(tmp_path / "x")
    for old, new in (("vocab.json", "encoder.json"), ("merges.txt", "vocab.bpe")):
        (directory / new).write_bytes((directory / old).read_bytes())
    with pytest.raises(FormatError, match=r"holds both vocab\.json and encoder\.json"):
        gpt2.load(directory)
    assert contents(gpt2.load(directory / "encoder.json")) == contents(gpt2.load(directory / "vocab.json"))


def test_a_tokenizer_json_would_hide_them(plain_tokenizer: BPETokenizer, tmp_path: Path) -> None:
    plain_tokenizer.save(tmp_path)
    with pytest.raises(OptionError, match=r"holds a tokenizer\.json"):
        plain_tokenizer.export(tmp_path, "gpt2")


def test_other_names(plain_tokenizer: BPETokenizer, tmp_path: Path) -> None:
    for name in ("merges.txt", "words.json"):
        with pytest.raises(OptionError, match=f"'{name}' has the name of a file"):
            plain_tokenizer.export(tmp_path / name, "gpt2")


# -- alone ----------------------------------------------------------------------------------------------


def test_what_looks_like_a_control_token_is_special(tmp_path: Path) -> None:
    tokens = ["<s>", "<pad>", "[MASK]", "<|im_start|>", "madeupword0000", "<", "low>", "<a b>", "lo"]
    vocab = bytes_vocab(*(token for token in tokens if token not in ("<", "<a b>")))
    model = gpt2.load(write(tmp_path, vocab, ["l o"]))
    assert [token[0] for token in model.core.added_tokens] == ["<s>", "<pad>", "[MASK]", "<|im_start|>"]
    assert model.core.vocab == {value: _core.from_printable(key) for key, value in vocab.items()}
    assert BPETokenizer.from_model(model).encode("madeupword0000<s>", allowed_special="all")[-1] == 256


def test_given_special_tokens(tmp_path: Path) -> None:
    directory = write(tmp_path, VOCAB)
    load = partial(BPETokenizer.load, format="gpt2")
    assert load(directory).special_tokens == {"<|endoftext|>": 259}
    assert load(directory, special_tokens=[]).special_tokens == {}
    given = load(directory, special_tokens=["<a>", "<|endoftext|>", "low"])
    assert given.special_tokens == {"low": 257, "<|endoftext|>": 259, "<a>": 260}
    assert load(directory, special_tokens={"<a>": 999}).special_tokens == {"<a>": 999}
    for wrong, message in (
        ({"<|endoftext|>": 5}, "has the id 259 in the vocabulary, not 5"),
        ({"<a>": 256}, "duplicate id 256: special token '<a>' and token 'lo'"),
        ({"<a>": -1}, "'<a>' is -1"),
    ):
        with pytest.raises(ModelError, match=message):
            load(directory, special_tokens=wrong)


def test_a_given_split_pattern(tmp_path: Path) -> None:
    directory = write(tmp_path)
    assert gpt2.load(directory).core.split_patterns == [GPT2_SPLIT_PATTERN]
    assert gpt2.load(directory, split_pattern="qwen2").core.split_patterns == list(QWEN2)
    with pytest.raises(PatternError):
        gpt2.load(directory, split_pattern="(")


def test_an_added_token_with_the_bytes_of_another(tmp_path: Path) -> None:
    """`" low"` as a special token must not stand in the way of the token `Ġlow`."""
    vocab = {" low": 0} | {token: token_id + 1 for token, token_id in VOCAB.items()}
    tokenizer = BPETokenizer.load(write(tmp_path, vocab), "gpt2", special_tokens={" low": 0})
    assert tokenizer.encode("a low") == [98, 259]
    assert tokenizer.encode("a low", allowed_special="all") == [98, 0]


# -- refused when saved ---------------------------------------------------------------------------------


DAY = bytes_model(
    {256: "日".encode(), 257: b"\xe6\x97"},
    [(b"\xe6", b"\x97"), (b"\xe6\x97", b"\xa5")],
    added_tokens=[AddedToken("日", 256)],
    split_patterns=[GPT2_SPLIT_PATTERN],
)
ADDS = "post_processor: .* can only add "


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Model(core(split_patterns=[])), r"split_patterns: .* not \[\] with None"),
        (Model(core(split_patterns=CL100K)), "split_patterns: vocab.json and merges.* with None$"),
        (Model(core(split_patterns=CL100K, normalization="NFC")), "split_patterns: .* with NFC$"),
        (
            Model(core(normalization="NFC")),
            r"split_patterns: .* with NFC\. with_normalization\(None\), .* not NFC then get other ids$",
        ),
        (Model(core(), {"bos": "ab"}), "bos_token: 'ab' is not an added token"),
        (Model(core(), {}, PostProcessor((), (257,))), f"{ADDS}eos_token, not"),
        (Model(core(), {}, PostProcessor((97,), ())), f"{ADDS}bos_token, not"),
        (Model(core(), {}, PostProcessor((257, 257), ())), "post_processor"),
        (Model(core(), {}, None, {"x": {1, 2}}), "tokenizer_config.json: .* cannot be written as JSON"),
        (Model(core(added_tokens=[AddedToken("Ġ", 300)])), "'Ġ' has the id 300, but .* spelling has 32"),
        (
            bytes_model({256: b"a"}, split_patterns=[GPT2_SPLIT_PATTERN]),
            "vocab: the ids 97 and 256 are the same token",
        ),
        (DAY, "added_tokens: the token 'æĹ¥' of the merges is an added token with another spelling"),
    ],
)
def test_what_cannot_be_held_is_refused_by_name(model: Model, message: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=message):
        gpt2.save(model, tmp_path)
    assert not list(tmp_path.iterdir())


# -- crashes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crash_after", range(4))
def test_a_crash_leaves_the_old_one_or_the_new_one(
    crash_after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = BPETokenizer("gpt2", None).train("low low lower", 258, verbose=False)
    new = BPETokenizer("gpt2", None).train("new new newer", 260, special_tokens=["<e>"], verbose=False)
    old.export(tmp_path, "gpt2")
    moved = 0

    def replace(self: Path, target: Path) -> Path:
        nonlocal moved
        if moved == crash_after:
            raise KeyboardInterrupt
        moved += 1
        return Path(rename(self, target))

    rename = Path.rename
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace)
        if crash_after < 3:
            with pytest.raises(KeyboardInterrupt):
                new.export(tmp_path, "gpt2")
        else:
            new.export(tmp_path, "gpt2")
    expected = new if crash_after else old
    assert contents(gpt2.load(tmp_path)) == contents(expected.model)


def test_a_file_that_was_replaced_alone_is_noticed(tmp_path: Path) -> None:
    BPETokenizer("gpt2", None).train("low low lower", 258, verbose=False).export(tmp_path, "gpt2")
    (tmp_path / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    with pytest.raises(FormatError, match="were not saved together"):
        gpt2.load(tmp_path)
    # The settings belong to files with the usual names.
    (tmp_path / "my-vocab.json").write_bytes((tmp_path / "vocab.json").read_bytes())
    assert gpt2.load(tmp_path / "my-vocab.json", tmp_path / "merges.txt").core.merges == []
    config = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    del config["bpe_tokenizer"]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    assert gpt2.load(tmp_path).core.merges == []
