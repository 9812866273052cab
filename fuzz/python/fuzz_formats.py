"""Tokenizer files of every format, whole or broken: a clear error, or a tokenizer that works."""

from __future__ import annotations

import json
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["bpe_tokenizer"]):
    from bpe_tokenizer import BPETokenizer, Model
    from bpe_tokenizer.formats import (  # noqa: F401 (imported here to be instrumented)
        base64_json,
        gguf,
        gpt2,
        huggingface,
        minbpe,
        readable,
        registry,
        tekken,
        tiktoken,
    )

# It makes the modules of tests/support importable.
from harness import broken, expected_errors, fuzz, put

# isort: split
from hf_files import good, good_characters
from tekken_files import tekken_document

SAMPLE = "Hello, wörld! 日本語 🙂\n\n  it's 12345<|end|> \0 low lower"
TEXT = "low lower lowest, new newer newest. " * 3
ARGUMENTS = {"split_pattern": "gpt2", "special_tokens": {"<|end|>": 300}}


def sound_files() -> list[tuple[str, dict[str, bytes]]]:
    """Formats with the files of a small tokenizer in each."""
    files: list[tuple[str, dict[str, bytes]]] = [
        ("huggingface", {"tokenizer.json": json.dumps(document).encode()})
        for document in (good(), good_characters())
    ]
    files.append(("tekken", {"tekken.json": json.dumps(tekken_document()).encode()}))
    tokenizer = BPETokenizer(split_pattern="gpt2", normalization=None)
    tokenizer.train(TEXT, 280, special_tokens={"<|end|>": 280}, verbose=False)
    plain = BPETokenizer(split_pattern="gpt2", normalization=None).train(TEXT, 270, verbose=False)
    llama = BPETokenizer(split_pattern="llama3", normalization=None)
    llama.train(TEXT, 280, special_tokens=["<|end|>"], verbose=False)
    models = {"huggingface": tokenizer, "gguf": llama, "minbpe": plain, "base64-json": tokenizer}
    for name, each in (models | {"gpt2": plain, "tiktoken": plain}).items():
        entry = registry.get_format(name)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) if entry.is_directory else Path(directory, f"sound{entry.extensions[0]}")
            entry.save(each.model, path)
            files.append((name, {file.name: file.read_bytes() for file in Path(directory).iterdir()}))
    return files


def documents_of(files: dict[str, bytes]) -> dict[str, Any]:
    """The JSON documents among files."""
    documents = {}
    for name, data in files.items():
        try:
            documents[name] = json.loads(data)
        except ValueError:
            documents[name] = None
    return documents


SOUND = [(name, files, documents_of(files)) for name, files in sound_files()]


def content(model: Model) -> dict[str, Any]:
    """Everything that a model is."""
    core = {"core": model.core.__getnewargs_ex__()}
    return {field.name: getattr(model, field.name) for field in fields(model)} | core


def use(tokenizer: BPETokenizer, directory: Path) -> None:
    """Encode and decode, and save in our format, which holds every model, and in another."""
    with expected_errors():
        ids = tokenizer.encode(SAMPLE, allowed_special="all")
        tokenizer.decode(ids)
        tokenizer.encode(SAMPLE, add_special_tokens=True)
    path = directory / "saved.json"
    base64_json.save(tokenizer.model, path)
    assert content(base64_json.load(path)) == content(tokenizer.model), "a saved tokenizer is another one"
    for name in ("gguf", "minbpe", "readable", "tiktoken"):
        with expected_errors():
            extension = registry.get_format(name).extensions[0]
            registry.save(tokenizer.model, directory / f"saved{extension}", name)


def check(provider: atheris.FuzzedDataProvider, directory: Path) -> None:
    """Load a file, sound or broken, with or without its format named."""
    name, files, documents = provider.PickValueInList(SOUND)
    target = provider.PickValueInList(list(files))
    place = directory / name
    place.mkdir(exist_ok=True)
    for path in place.iterdir():
        path.unlink()
    entry = registry.get_format(name)
    detects, raw = provider.ConsumeBool(), provider.ConsumeIntInRange(0, 7) == 0
    arguments = ARGUMENTS if entry.load_kwargs and provider.ConsumeBool() else {}
    for file, data in files.items():
        if file != target:
            put(place / file, data)
        elif raw:
            put(place / file, provider.ConsumeBytes(4096))
        else:
            put(place / file, broken(provider, data, documents[file]))
    path = place if entry.is_directory else place / target
    with expected_errors(place.name):
        model = registry.load(path, None if detects else name, **arguments)
        use(BPETokenizer.from_model(model), directory)


fuzz(check)
