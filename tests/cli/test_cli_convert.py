"""`bpe-tokenizer convert`: what it writes and refuses, and that a refusal leaves no file."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, Model, PostProcessor
from bpe_tokenizer.formats import huggingface, registry, tiktoken
from bpe_tokenizer.formats.verify import differences
from command_line import TextRun

TEXT = "low low low lower lowest newest widest, don't 123 naïve\n" * 5


@pytest.fixture
def run(run_text: TextRun) -> TextRun:
    return partial(run_text, "convert")


@pytest.fixture
def tokenizer() -> BPETokenizer:
    return BPETokenizer("gpt2", None).train(TEXT, 280, special_tokens={"<|end|>": 280}, verbose=False)


@pytest.fixture
def source(tokenizer: BPETokenizer, tmp_path: Path) -> Path:
    tokenizer.save(tmp_path / "source")
    return tmp_path / "source"


def names(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("name", "format_"),
    [("hf", "huggingface"), ("Transformers", "huggingface"), ("llama.cpp", "gguf"), ("TIKTOKEN", "tiktoken")],
)
def test_usual_names_of_formats_work(run: TextRun, tmp_path: Path, name: str, format_: str) -> None:
    source = tmp_path / "source"
    BPETokenizer("gpt2", None).train(TEXT, 270, verbose=False).save(source)
    result = run(source, tmp_path / "out", "--to", name, "--from", "hf", "--json")
    assert (result.code, result.err) == (0, "")
    assert json.loads(result.out)["to"] == format_
    assert json.loads(result.out)["from"] == "huggingface"
    assert BPETokenizer.load(tmp_path / "out", **json.loads(result.out)["load_with"]).vocab_size == 270


def test_the_formats_are_those_of_the_registry(run: TextRun) -> None:
    formats = {
        "--to": [name for name, entry in registry.FORMATS.items() if entry.can_save],
        "--from": [name for name, entry in registry.FORMATS.items() if entry.can_load],
    }
    for option, names_ in formats.items():
        assert f"'x' is not one of {', '.join(map(repr, names_))}" in run("a", "b", option, "x").err


WRITTEN = {
    "huggingface": ["out/tokenizer.json", "out/tokenizer_config.json"],
    "tiktoken": ["out"],
    "gpt2": ["out/merges.txt", "out/tokenizer_config.json", "out/vocab.json"],
    "gguf": ["out"],
    "minbpe": ["out.model"],
    "base64-json": ["out"],
    "readable": ["out"],
}


@pytest.mark.parametrize("to", WRITTEN)
def test_every_format(to: str, run: TextRun, source: Path, tokenizer: BPETokenizer, tmp_path: Path) -> None:
    output = tmp_path / "new" / ("out.model" if to == "minbpe" else "out")
    result = run(source, output, "--to", to, "--json")
    assert (result.code, result.err) == (0, "")
    said = json.loads(result.out)
    assert names(tmp_path / "new") == WRITTEN[to]
    assert sorted(said["files"]) == sorted(str(tmp_path / "new" / name) for name in WRITTEN[to])
    assert (said["from"], said["to"], said["tokens"], said["dropped"]) == ("huggingface", to, 281, [])
    assert said["verified"] is (to != "readable")
    assert not list((tmp_path / "new").glob(".*"))
    if to != "readable":
        given = said["load_with"]
        again = registry.load(output, **given)
        assert differences(tokenizer.model, again) == []
        assert bool(given) is (to == "tiktoken")


def test_what_it_says_to_people(run: TextRun, source: Path, tmp_path: Path) -> None:
    result = run(source, tmp_path / "x.json", "--to", "base64-json")
    assert result == (
        0,
        f"281 tokens saved in {tmp_path}/x.json (base64-json): the same ids and special tokens\n",
        "",
    )
    assert "not meant to be loaded again" in run(source, tmp_path / "x.txt", "--to", "readable").out
    said = run(source, tmp_path / "x.tiktoken", "--to", "tiktoken").out.splitlines()
    assert said[1].startswith('load it with split_pattern=["')
    assert said[1].endswith("and special_tokens={'<|end|>': 280}")


def test_a_rank_file_that_does_not_say_all(run: TextRun, source: Path, tmp_path: Path) -> None:
    run(source, tmp_path / "x.tiktoken", "--to", "tiktoken")
    result = run(tmp_path / "x.tiktoken", tmp_path / "y", "--to", "huggingface")
    assert result.code == 1
    assert "pass --split-pattern" in result.err
    arguments: list[object] = [tmp_path / "x.tiktoken", tmp_path / "y.json"]
    arguments += ["--to", "base64-json", "--split-pattern", "gpt2"]
    assert run(*arguments, "--special", "<|end|>=280").code == 0
    assert BPETokenizer.load(tmp_path / "y.json").special_tokens == {"<|end|>": 280}
    arguments.append("--overwrite")
    assert run(*arguments).code == 0
    assert BPETokenizer.load(tmp_path / "y.json").special_tokens == {}
    assert run(*arguments, "--special", "<a>", "<b=c>").code == 0
    assert BPETokenizer.load(tmp_path / "y.json").special_tokens == {"<a>": 280, "<b=c>": 281}
    assert "write TOKEN=ID for all of them" in run(*arguments, "--special", "<a>", "<b>=300").err
    assert "duplicate special token '<a>'" in run(*arguments, "--special", "<a>=300", "<a>=301").err


# -- refused --------------------------------------------------------------------------------------------


def assert_nothing_new(tmp_path: Path, before: list[str]) -> None:
    assert names(tmp_path) == before
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("nothing y --to base64-json", 1, "bpe-tokenizer: nothing: no such file"),
        ("empty y --to base64-json", 1, "is empty"),
        ("source y --to base64-json --from minbpe", 1, ""),
        ("source y --to base64-json --from readable", 2, ""),
        ("source y --to base64-json --normalization NFD", 2, ""),
        ("source y --to tekken", 2, ""),
        ("source y --to hugingface", 2, "did you mean 'huggingface'?"),
        ("source y --to minbpe", 1, "ends in .model"),
        ("source empty --to huggingface", 1, "is written as a directory"),
        ("source source --to base64-json", 1, "is written as a file"),
    ],
)
def test_what_is_refused(
    run: TextRun, source: Path, line: str, code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(source.parent)
    Path("empty").touch()
    before = names(source.parent)
    result = run(*line.split())
    assert (result.code, result.out) == (code, "")
    assert said in " ".join(result.err.split())
    assert_nothing_new(source.parent, before)


@pytest.mark.parametrize("to", ["tiktoken", "minbpe", "gpt2", "gguf"])
def test_normalisation_is_dropped_on_request(to: str, run: TextRun, tmp_path: Path) -> None:
    original = BPETokenizer("gpt2", "NFC").train("café naïve café naïve", 270, verbose=False)
    original.save(tmp_path / "source")
    before = names(tmp_path)
    output = tmp_path / ("out.model" if to == "minbpe" else "out")
    refused = run(tmp_path / "source", output, "--to", to)
    assert refused.code == 1
    for part in ("--normalization none", "not NFC then get other ids"):
        assert part in refused.err
    assert len(refused.err) < 340  # the message has at most 300
    assert_nothing_new(tmp_path, before)
    done = run(tmp_path / "source", output, "--to", to, "--normalization", "none", "--json")
    assert done.code == 0
    assert done.err.count("\n") == 1
    assert "texts that are not NFC keep their characters and get other ids" in done.err
    result = json.loads(done.out)
    assert result["dropped"][0] == "normalization"
    copy = BPETokenizer.load(output, **result["load_with"])
    assert copy.encode("café naïve") == original.encode("café naïve")
    assert copy.encode("cafe\u0301") != original.encode("cafe\u0301")
    assert copy.decode(copy.encode("cafe\u0301")) == "cafe\u0301"


def test_without_normalisation_there_is_nothing_to_drop(run: TextRun, source: Path, tmp_path: Path) -> None:
    done = run(source, tmp_path / "out.json", "--to", "base64-json", "--normalization", "none", "--json")
    assert (done.code, done.err) == (0, "")
    assert "normalization" not in json.loads(done.out)["dropped"]


@pytest.fixture
def around(tokenizer: BPETokenizer, tmp_path: Path) -> Path:
    """A tokenizer that a rank file cannot tell from one with an end token after each text."""
    model = Model(tokenizer.model.core, {"pad": "<|end|>", "eos": "<|end|>"}, PostProcessor((280,), ()))
    huggingface.save(model, tmp_path / "around")
    return tmp_path / "around"


def test_what_would_be_lost(run: TextRun, around: Path, tmp_path: Path) -> None:
    before = names(tmp_path)
    result = run(around, tmp_path / "x.tiktoken", "--to", "tiktoken")
    assert result.code == 1
    assert result.err == (
        "bpe-tokenizer: tiktoken would not give the same tokenizer: eos_token: was '<|end|>' and is None; "
        "pad_token: was '<|end|>' and is None; post_processor: the ids before and after a text were "
        "((280,), ()) and are ((), ()); to allow that, add --drop eos_token pad_token post_processor. "
        "Nothing was written\n"
    )
    assert_nothing_new(tmp_path, before)
    result = run(around, tmp_path / "x.tiktoken", "--to", "tiktoken", "--drop", "post_processor")
    assert result.code == 1
    assert "add --drop eos_token pad_token." in result.err
    assert_nothing_new(tmp_path, before)


def test_what_may_be_lost(run: TextRun, around: Path, tmp_path: Path) -> None:
    drop = ["--drop", "post_processor", "pad_token", "eos_token"]
    result = run(around, tmp_path / "x.tiktoken", "--to", "tiktoken", *drop)
    assert result.code == 0
    assert "dropped: eos_token, pad_token, post_processor" in result.out
    said = json.loads(run(around, tmp_path / "y.tiktoken", "--to", "tiktoken", "--json", *drop).out)
    assert said["dropped"] == ["eos_token", "pad_token", "post_processor"]
    assert run(around, tmp_path / "x.tiktoken", "--to", "tiktoken", "--drop", "ids").code == 2


def test_settings_of_other_programs_are_not_kept_silently(run: TextRun, source: Path, tmp_path: Path) -> None:
    config = json.loads((source / "tokenizer_config.json").read_bytes())
    (source / "tokenizer_config.json").write_text(json.dumps(config | {"chat_template": "{{ x }}"}))
    result = run(source, tmp_path / "x.model", "--to", "minbpe")
    assert "not kept: chat_template" in result.out
    assert "not kept" not in run(source, tmp_path / "x.json", "--to", "base64-json").out


def test_a_converter_that_is_wrong_is_caught(
    run: TextRun, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = tiktoken.save

    def wrong(model: Model, path: Path) -> Any:
        merges = model.core.merges[:-1]
        vocab = {i: token for i, token in model.core.vocab.items() if i < 279}
        core = type(model.core)(vocab, merges, pre_tokenizers=model.core.pre_tokenizers)
        return save(Model(core), path)

    before = names(tmp_path)
    monkeypatch.setattr(tiktoken, "save", wrong)
    result = run(source, tmp_path / "x.tiktoken", "--to", "tiktoken", "--drop", "post_processor")
    assert result.code == 1
    assert "vocab: the id 279 was b'" in result.err
    assert "--drop" not in result.err
    assert_nothing_new(tmp_path, before)


# -- where it is written --------------------------------------------------------------------------------


def test_a_file_is_replaced(run: TextRun, source: Path, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("old")
    overwriting = ("--to", "base64-json", "--overwrite")
    assert run(source, tmp_path / "x.json", *overwriting).code == 0
    assert len(BPETokenizer.load(tmp_path / "x.json")) == 281
    assert run(tmp_path / "x.json", tmp_path / "x.json", *overwriting).code == 0
    assert len(BPETokenizer.load(tmp_path / "x.json")) == 281


def test_a_directory_is_replaced_if_it_holds_nothing_else(run: TextRun, source: Path, tmp_path: Path) -> None:
    assert run(source, tmp_path / "pair", "--to", "gpt2").code == 0
    assert run(source, tmp_path / "pair", "--to", "gpt2", "--overwrite").code == 0
    before = (tmp_path / "pair" / "vocab.json").read_bytes()
    (tmp_path / "pair" / "special_tokens_map.json").write_text("{}")
    result = run(source, tmp_path / "pair", "--to", "gpt2")
    assert (result.code, (tmp_path / "pair" / "vocab.json").read_bytes()) == (1, before)
    assert "holds other files (special_tokens_map.json)" in result.err
