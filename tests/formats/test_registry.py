"""What a file is, by what it holds: every format under a misleading name, and what is none."""

from __future__ import annotations

import errno
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import AddedToken, BPETokenizer, FormatError, Model, OptionError
from bpe_tokenizer.formats import gpt2, huggingface, minbpe, probe
from bpe_tokenizer.formats.registry import FORMATS, detect, get_format, load, save
from bpe_tokenizer.reference import RegexBPETokenizer
from gguf_files import model
from hf_files import bytes_vocab, tokenizer_json
from tekken_files import tekken_document

PACKAGE = Path(probe.__file__).parents[1]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of every format, named after it and nothing else."""
    directory = tmp_path_factory.mktemp("formats")
    tokenizer = BPETokenizer("gpt2", None).train("low low lower lowest", 260, verbose=False)
    tokenizer.export(directory / "x.model", "minbpe")
    (directory / "x.model").rename(directory / "minbpe")
    tokenizer.export(directory / "base64-json", "base64-json")
    RegexBPETokenizer().train("low low lower", 258).save(directory / "base64-json (lesson)")
    tokenizer.export(directory / "tiktoken", "tiktoken")
    (directory / "tekken").write_text(json.dumps(tekken_document()), encoding="utf-8")
    huggingface.save(tokenizer.model, directory / "hf")
    (directory / "hf" / "tokenizer.json").rename(directory / "huggingface")
    gpt2.save(tokenizer.model, directory / "pair")
    (directory / "pair" / "vocab.json").rename(directory / "gpt2 (vocabulary)")
    (directory / "pair" / "merges.txt").rename(directory / "gpt2 (merges)")
    (directory / "gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 0))
    for name in ("hf", "pair"):
        for file in (directory / name).iterdir():
            file.unlink()
        (directory / name).rmdir()
    return directory


NAMES = ["minbpe", "base64-json", "base64-json (lesson)", "tiktoken", "tekken", "huggingface", "gguf"]
NAMES += ["gpt2 (vocabulary)", "gpt2 (merges)"]


def test_every_format_is_here(directory: Path) -> None:
    assert sorted(path.name for path in directory.iterdir()) == sorted(NAMES)
    assert {name.split(" ")[0] for name in NAMES} == FORMATS.keys() - {"readable"}


@pytest.mark.parametrize(
    "called", ["tokenizer.json", "vocab.json", "tokenizer.model", "x.gguf", "x.tiktoken", "x"]
)
@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_recognised_whatever_its_name(
    name: str, called: str, directory: Path, tmp_path: Path
) -> None:
    (tmp_path / called).write_bytes((directory / name).read_bytes())
    found, path = detect(tmp_path / called)
    assert (found.name, path) == (name.split(" ")[0], tmp_path / called)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(("gguf", "gpt2"))])
def test_what_is_recognised_is_loaded(name: str, directory: Path, tmp_path: Path) -> None:
    given: Any = {"split_pattern": "gpt2", "special_tokens": {}} if name == "tiktoken" else {}
    assert len(BPETokenizer.load(directory / name, **given)) >= 258
    (tmp_path / "only").write_bytes((directory / name).read_bytes())
    (tmp_path / "README.md").write_text("# A tokenizer\n")
    assert detect(tmp_path) == (get_format(name.split(" ")[0]), tmp_path / "only")
    assert len(BPETokenizer.load(tmp_path, **given)) >= 258


def test_no_more_is_read_than_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "read_bytes", lambda path: pytest.fail(f"{path} was read whole"))
    vocab = bytes_vocab(*(f"token{number}" for number in range(20_000)))
    contents: dict[str, Any] = {
        "huggingface": tokenizer_json(vocab),
        "gpt2": vocab,
        "tekken": tekken_document([f"token{number}".encode() for number in range(5_000)]),
        "base64-json": {"format": "bpe_tokenizer", "version": 1, "vocab": vocab},
    }
    for name, value in contents.items():
        path = tmp_path / name
        path.write_text(json.dumps(value), encoding="utf-8")
        assert path.stat().st_size > 4 * probe.HEAD_BYTES
        assert detect(path)[0].name == name


def test_a_long_first_field_does_not_hide_the_others(tmp_path: Path) -> None:
    path = tmp_path / "x"
    made: dict[str, Any] = {"version": "1.0" + " " * 100_000, "model": {}, "decoder": None}
    path.write_text(json.dumps(made), encoding="utf-8")
    assert detect(path)[0].name == "huggingface"
    path.write_text('{"a": "' + "\\\\" * 100_000 + '", "truncation": null}', encoding="utf-8")
    assert detect(path)[0].name == "huggingface"
    path.write_text(json.dumps({"text": 'no \\" end, "vocab": [' * 10_000}), encoding="utf-8")
    with pytest.raises(FormatError, match="is JSON, but not of a known tokenizer format"):
        detect(path)


# -- directories ----------------------------------------------------------------------------------------


def test_a_directory_is_what_its_usual_files_are(directory: Path, tmp_path: Path) -> None:
    def put(name: str, called: str) -> None:
        (tmp_path / called).write_bytes((directory / name).read_bytes())

    put("tekken", "tekken.json")
    assert detect(tmp_path) == (get_format("tekken"), tmp_path / "tekken.json")
    put("gpt2 (vocabulary)", "vocab.json")  # half a pair
    assert detect(tmp_path)[0].name == "tekken"
    put("gpt2 (merges)", "merges.txt")
    assert detect(tmp_path) == (get_format("gpt2"), tmp_path / "vocab.json")
    put("huggingface", "tokenizer.json")
    assert detect(tmp_path) == (get_format("huggingface"), tmp_path)
    put("minbpe", "tokenizer.json")
    assert detect(tmp_path) == (get_format("minbpe"), tmp_path / "tokenizer.json")


BLANK_LINES = [b"", b"E X", b"", b"\xc4\xa0 a", b"EX \xc4\xa0a", b""]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\n".join(BLANK_LINES), "gpt2"),
        (b"\r\n".join(BLANK_LINES), "gpt2"),
        (b"AA== 0\n", "tiktoken"),
        (json.dumps(bytes_vocab()).encode(), "gpt2"),
    ],
)
def test_small_files(data: bytes, name: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(data)
    assert detect(tmp_path / "x")[0].name == name


def test_openais_names(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "encoder.json").write_bytes((directory / "gpt2 (vocabulary)").read_bytes())
    (tmp_path / "vocab.bpe").write_bytes((directory / "gpt2 (merges)").read_bytes())
    assert len(BPETokenizer.load(tmp_path)) == 260
    assert len(BPETokenizer.load(tmp_path / "vocab.bpe")) == 260


def test_a_directory_of_several_tokenizers(directory: Path, tmp_path: Path) -> None:
    for name in ("minbpe", "tekken"):
        (tmp_path / name).write_bytes((directory / name).read_bytes())
    message = r"holds several tokenizers \(minbpe, tekken; minbpe, tekken\); give the path of one"
    with pytest.raises(FormatError, match=message):
        detect(tmp_path)


def test_a_directory_without_one(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="holds no file of a known tokenizer format"):
        detect(tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps(bytes_vocab()))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden").write_text("minbpe v1\n\n0\n")
    with pytest.raises(FormatError, match="holds no file of a known tokenizer format"):
        detect(tmp_path)


@pytest.mark.parametrize("names", [("tokenizer.json",), ("vocab.json", "merges.txt"), ("tekken.json",)])
@pytest.mark.parametrize(
    "content", [b"", b'\xef\xbb\xbf{"model": {}}', b'{"model": {', b"version https://git-lfs"]
)
def test_a_broken_tokenizer_is_not_passed_over(
    tmp_path: Path, names: tuple[str, ...], content: bytes
) -> None:
    tokenizer = BPETokenizer(normalization=None).train("low low lower", 258, verbose=False)
    tokenizer.export(tmp_path / "another.gguf", "gguf")
    for name in names:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=re.escape(str(tmp_path / names[0]))):
        BPETokenizer.load(tmp_path)


# -- what is none ---------------------------------------------------------------------------------------

SENTENCEPIECE = (
    b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02\n\x0c\n\x03<s>\x15\x00\x00\x00\x00\x18\x03"
    b"\n\x10\n\x09\xe2\x96\x81the\xe2\x96\x81\x15\x00\x00\x00\xc0"
)
# A piece need not have a score, but its text fits in it, and its second field is a score or a type.
WITHOUT_SCORES = [b"\n\x07\n\x05<unk>\n\x05\n\x03<s>", b"\n\x09\n\x05<unk>\x18\x02\n\x05\n\x03<s>"]
NO_SENTENCEPIECE = [SENTENCEPIECE.replace(b"\x15", b"\x16"), b"\n\x06\n\x05<unk>\n", b"\n2\n1" + b"x" * 99]
MANY_NUMBERS = {f"word{number}": number for number in range(300)}
LONG = {"text": "x" * 100_000}
WEIGHTS = struct.pack("<Q", 60) + b'{"__metadata__":{"format":"pt"},"w":{"dtype":"F32"}}' + bytes(100)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (SENTENCEPIECE, "is a SentencePiece model, which is not supported: load the tokenizer.json"),
        *((content, "is a SentencePiece model") for content in WITHOUT_SCORES),
        *((content, "is not of a known tokenizer format") for content in NO_SENTENCEPIECE),
        (WEIGHTS, r"holds weights \(safetensors\), not a tokenizer"),
        (b"PK\x03\x04" + bytes(100), "is an archive or a PyTorch checkpoint"),
        (b"\x80\x02}q\x00", "is an archive or a PyTorch checkpoint"),
        (b"\x1f\x8b\x08" + bytes(100), "is compressed: unpack it first"),
        (b"{% for message in messages %}", "is a Jinja template, not a tokenizer"),
        (b"\n{{ bos_token }}", "is a Jinja template"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "is a Git LFS pointer"),
        (b"<!DOCTYPE html>\n<html>", "is a web page"),
        (b'\xef\xbb\xbf{"a": 1}', "byte order mark"),
        (b'\xff\xfe{\0"\0', "byte order mark"),
        (b'{"tokenizer_class": "X"}', "only configures a tokenizer.json"),
        (b'{"added_tokens_decoder": {}}', "only configures a tokenizer.json"),
        (b'{"model_type": "gpt2"}', "describes a model, not its tokenizer"),
        (b'{"architectures": ["X"]}', "describes a model, not its tokenizer"),
        (b'{"model": "x", "decoder": "y"}', "is JSON, but not of a known tokenizer format"),
        (json.dumps(MANY_NUMBERS).encode(), "is JSON, but not of a known tokenizer format"),
        (json.dumps({"a": None, **MANY_NUMBERS, **LONG}).encode(), "is JSON, but not of a known"),
        (json.dumps({"text": "vocab: [" * 10_000}).encode(), "is JSON, but not of a known tokenizer format"),
        (b'{"<mask>": 50257, "<pad>": 50258}', "is JSON, but not of a known tokenizer format"),
        (b'{"a": {"b": [1, 2]}}', "is JSON, but not of a known tokenizer format"),
        (b"{", "is JSON, but not of a known tokenizer format"),
        (b"[1, 2]", "is not of a known tokenizer format"),
        (b"null", "is not of a known tokenizer format"),
        (
            b"Hello, this is some text.\nAnother line.\n",
            r"is not of a known tokenizer format \(GGUF, .*, Hugging Face tokenizer.json, .*merges.txt\)$",
        ),
        (b"one word\n\xff\xfe broken\n", "is not of a known tokenizer format"),
        (b"a line\nA text\n", "is not of a known tokenizer format"),
        (b"a b \n", "is not of a known tokenizer format"),
        (b"AA== one\n", "is not of a known tokenizer format"),
        (bytes(range(256)), "is not of a known tokenizer format"),
        (b"[" * 200_000, "is not of a known tokenizer format"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'{"a":1,' * 200_000, "is not valid JSON"),
        (b'{"' + b"a" * 200_000, "is not valid JSON"),
    ],
)
def test_what_is_no_tokenizer_is_get_format(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as error:
        BPETokenizer.load(path)
    assert str(error.value).startswith(str(path))


def test_a_sentencepiece_model_in_a_directory(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(SENTENCEPIECE)
    with pytest.raises(FormatError, match=r"tokenizer\.model is a SentencePiece model"):
        BPETokenizer.load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="is not a regular file, but a device or a pipe"):
        BPETokenizer.load(tmp_path / "pipe")
    with pytest.raises(FormatError, match="holds no file of a known tokenizer format"):
        BPETokenizer.load(tmp_path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no such file or directory"):
        BPETokenizer.load(tmp_path / "nothing")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(FormatError, match=r"loop: cannot be read: [A-Z][a-z ]+$"):
        BPETokenizer.load(tmp_path / "loop")


def test_an_error_of_the_operating_system_names_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> Model:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(minbpe, "load", fail)
    with pytest.raises(FormatError, match=r"^x\.model: cannot be read: Permission denied$"):
        load("x.model", "minbpe")


@pytest.mark.parametrize("name", [None, *(name for name, entry in FORMATS.items() if entry.can_load)])
def test_a_path_that_is_too_long(name: str | None, tmp_path: Path) -> None:
    given: Any = {"split_pattern": "gpt2"} if name in ("tiktoken", "gpt2") else {}
    # Newer Pythons say of such a path that it does not exist.
    with pytest.raises(FormatError, match=r"n{300}.*: (cannot be read: [A-Z][a-z ]+$|no such file)"):
        load(tmp_path / ("n" * 300), name, **given)


# -- the table ------------------------------------------------------------------------------------------


def test_what_is_load_kwargs(directory: Path) -> None:
    tokenizer = BPETokenizer.load(directory / "tiktoken", split_pattern=r"\s+|\S+", special_tokens=["<e>"])
    assert tokenizer.special_tokens == {"<e>": 260}
    assert tokenizer.split_pattern == r"\s+|\S+"
    with pytest.raises(OptionError, match="a rank file does not hold the split pattern"):
        BPETokenizer.load(directory / "tiktoken")
    for name in ("minbpe", "huggingface", "tekken", "base64-json"):
        with pytest.raises(OptionError, match=r"holds its own split pattern .*; leave out split_pattern"):
            BPETokenizer.load(directory / name, split_pattern="gpt2")


def test_a_format_by_name(directory: Path, plain_tokenizer: BPETokenizer, tmp_path: Path) -> None:
    assert len(load(directory / "minbpe", "minbpe").core) == 260
    with pytest.raises(FormatError):
        load(directory / "minbpe", "tekken")
    for call in (lambda: load(directory / "minbpe", "x"), lambda: save(plain_tokenizer.model, tmp_path, "x")):
        with pytest.raises(OptionError, match="unknown format 'x'; choose one of gguf, minbpe"):
            call()
    unhashable: Any = ["gguf"]
    with pytest.raises(OptionError, match=r"unknown format \['gguf'\]"):
        load(directory / "minbpe", unhashable)
    with pytest.raises(OptionError, match="it is written only"):
        load(directory / "minbpe", "readable")
    with pytest.raises(OptionError, match="it is read only"):
        save(plain_tokenizer.model, tmp_path / "x", "tekken")


LONG_WORD = "<" + "x" * 5000 + ">"


@pytest.mark.parametrize(
    "made",
    [
        model(split_patterns=["|".join(["a"] * 2500)]),
        model(added_tokens=[AddedToken(LONG_WORD, 256, lstrip=True)]),
        model(added_tokens=[AddedToken(LONG_WORD, 256, single_word=True)]),
        model(added_tokens=[AddedToken(LONG_WORD, 256, special=False)]),
        model(added_tokens=[AddedToken(LONG_WORD + " ", 256)]),
        model(added_tokens=[AddedToken(LONG_WORD, 256), AddedToken(LONG_WORD + LONG_WORD, 257)]),
    ],
    ids=["pattern", "lstrip", "single_word", "not special", "space", "overlap"],
)
@pytest.mark.parametrize("name", [name for name, entry in FORMATS.items() if entry.can_save])
def test_what_a_format_cannot_hold_is_cut_in_the_message(name: str, made: Model, tmp_path: Path) -> None:
    message = ""
    try:
        save(made, tmp_path / ("saved" if FORMATS[name].is_directory else "saved.model"), name)
    except FormatError as error:
        message = str(error)
    assert len(message) < 300 + len(str(tmp_path))


def test_the_registry_imports_formats_on_use() -> None:
    modules = [f"bpe_tokenizer.formats.{entry.module}" for entry in FORMATS.values()]
    code = (
        "import sys, types; package = types.ModuleType('bpe_tokenizer'); "
        f"package.__path__ = [{str(PACKAGE)!r}]; sys.modules['bpe_tokenizer'] = package; "
        f"import bpe_tokenizer.formats.registry; print([name for name in {modules} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
