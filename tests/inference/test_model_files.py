"""A model's files: its kind, its stop ids, its tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.errors import ArgumentTypeError, MismatchError, OptionError
from bpe_tokenizer.formats.gguf.file import ValueType, write_metadata
from bpe_tokenizer.inference import (
    ModelKind,
    check_match,
    config_file,
    gguf_file,
    kind_of,
    load_model,
    tokenizer_path,
)


def test_kinds_of_paths(tmp_path: Path) -> None:
    gguf = tmp_path / "model.bin"
    gguf.write_bytes(b"GGUF\x03\x00\x00\x00")
    assert kind_of(gguf) is kind_of(str(gguf)) is ModelKind.GGUF
    assert kind_of("HTTP://localhost:1") is ModelKind.SERVER
    directory = tmp_path / "model"
    directory.mkdir()
    with pytest.raises(OptionError, match="is not a model directory; a model is"):
        kind_of(directory)
    (directory / "config.json").write_text("{}")
    with pytest.raises(OptionError, match="no weights as safetensors"):
        kind_of(directory)
    (directory / "model-00001-of-00002.safetensors").touch()
    assert kind_of(directory) is ModelKind.SAFETENSORS
    (directory / "openvino_model.xml").touch()
    assert kind_of(directory) is ModelKind.OPENVINO_IR
    (tmp_path / "quants").mkdir()
    (tmp_path / "quants" / "model-Q4.gguf").touch()
    with pytest.raises(OptionError, match=r"holds model-Q4\.gguf: pass the path of that file"):
        kind_of(tmp_path / "quants")


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("missing/model.gguf", OptionError, "model"),
        (__file__, OptionError, "model"),
        (5, ArgumentTypeError, "model"),
        ("", OptionError, "path is empty"),
        ("a\0b", OptionError, "a path cannot hold a NUL"),
    ],
)
def test_what_is_no_model(path: Any, error: type[Exception], message: str) -> None:
    for function in (kind_of, load_model, tokenizer_path):
        with pytest.raises(error, match=message):
            function(path)


@pytest.mark.parametrize(
    ("files", "stop_ids"),
    [
        ({"config": {}}, set()),
        ({"config": {"eos_token_id": 2}}, {2}),
        ({"config": {"text_config": {"eos_token_id": [2, 3]}}}, {2, 3}),
        ({"config": {"eos_token_id": 2}, "generation_config": {"eos_token_id": [7, 8, 9]}}, {7, 8, 9}),
        ({"config": {"eos_token_id": 0}, "generation_config": {"top_k": 50}}, {0}),
        ({"config": {"eos_token_id": "</s>"}, "generation_config": {"eos_token_id": [True, None, 4]}}, {4}),
    ],
)
def test_the_stop_ids_of_a_directory(tmp_path: Path, files: dict[str, Any], stop_ids: set[int]) -> None:
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    assert config_file.read_stop_ids(tmp_path) == stop_ids


def test_the_stop_ids_of_a_gguf_file(tmp_path: Path) -> None:
    pairs = [
        (f"tokenizer.ggml.{name}_token_id", ValueType.UINT32, at) for at, name in enumerate(["eos", "eom"], 5)
    ]
    (tmp_path / "pairs.gguf").write_bytes(write_metadata(pairs))
    assert gguf_file.read_stop_ids(tmp_path / "pairs.gguf") == {5, 6}


def test_a_tokenizer_is_compared_with_the_models_own(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    directory = tmp_path / "model"
    tokenizer.save(directory)
    (directory / "config.json").write_text('{"vocab_size": 2000}')
    (directory / "model.safetensors").touch()
    assert tokenizer_path(directory) == directory
    check_match(directory, tokenizer.vocab, 2000)
    with pytest.raises(MismatchError, match=r"id 400 is b'\?', and b'.+' in the model's own tokenizer"):
        check_match(directory, {**tokenizer.vocab, 400: b"?"})
    with pytest.raises(MismatchError, match=r"id 1000 is b'new', and missing in"):
        check_match(directory, {**tokenizer.vocab, 1000: b"new"})
    # A further special token of the model does no harm, a missing ordinary one does.
    check_match(
        directory, {token_id: token for token_id, token in tokenizer.vocab.items() if token_id != 257}
    )
    with pytest.raises(MismatchError, match=r"id 999 is missing, and"):
        check_match(
            directory, {token_id: token for token_id, token in tokenizer.vocab.items() if token_id != 999}
        )
    # A change of its files is seen.
    BPETokenizer().train("other text, other text", 260, verbose=False).save(directory)
    with pytest.raises(MismatchError, match="id 256 is"):
        check_match(directory, tokenizer.vocab)


def test_without_a_tokenizer_of_its_own_there_are_rows(tmp_path: Path) -> None:
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "config.json").write_text("{}")
    (directory / "model.safetensors").touch()
    assert tokenizer_path(directory) is None
    check_match(directory, {0: b"a", 9: b"b"}, 10)
    check_match(directory, {0: b"a", 9: b"b"}, None)
    with pytest.raises(MismatchError, match=r"id 9 \(b'b'\) is not below the model's 9"):
        check_match(directory, {0: b"a", 9: b"b"}, 9)
