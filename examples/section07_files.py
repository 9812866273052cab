"""§7: files: every format that a tokenizer is kept in, written and read again."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bpe_tokenizer import (
    BPETokenizer,
    FormatError,
    HubError,
    MissingDependencyError,
    TokenizerError,
    WriteError,
    load,
)
from bpe_tokenizer.patterns import NAMED_PATTERNS
from shared import heading, library_files, refused, show, without

SAMPLE = "def main() -> None:  # naïve 🙂 <|endoftext|>"


def main() -> None:
    """Save a tokenizer in every format, load it again, and see that it is the same."""
    heading(7, "Files")
    with TemporaryDirectory() as directory:
        here = Path(directory)
        tokenizer = trained()
        hugging_face(tokenizer, here)
        tiktoken(tokenizer, here)
        other_formats(tokenizer, here)
        for_people(tokenizer, here)
        published_names()
        tekken(here)
        sentencepiece(here)
        what_is_refused(tokenizer, here)


def trained() -> BPETokenizer:
    """Return a tokenizer that every format can hold: without normalisation, special tokens at the end."""
    tokenizer = BPETokenizer("gpt2", normalization=None).train(library_files()[:60], 1000, verbose=False)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def same(tokenizer: BPETokenizer, other: BPETokenizer) -> bool:
    """Whether two tokenizers give the same ids and the same text."""
    ids = tokenizer.encode(SAMPLE, allowed_special="all")
    return ids == other.encode(SAMPLE, allowed_special="all") and other.decode(ids) == SAMPLE


def names(directory: Path) -> list[str]:
    """Return the files of a directory."""
    return sorted(path.name for path in directory.iterdir())


def hugging_face(tokenizer: BPETokenizer, here: Path) -> None:
    """Write tokenizer.json, and load it as a directory, as the hub's files, and by its content."""
    tokenizer.save(here / "huggingface")
    assert same(tokenizer, BPETokenizer.from_pretrained(here / "huggingface"))
    assert same(tokenizer, BPETokenizer.from_huggingface(here / "huggingface"))
    assert same(tokenizer, BPETokenizer.load(here / "huggingface" / "tokenizer.json"))
    show("Hugging Face's files", names(here / "huggingface"))
    with refused((HubError, MissingDependencyError), "A repository of the hub, without the network"):
        BPETokenizer.from_huggingface("nobody/nothing", cache_dir=here / "hub", local_files_only=True)
    with without("huggingface_hub"), refused(MissingDependencyError, "... without the hub's library"):
        BPETokenizer.from_huggingface("nobody/nothing")
    with (
        without("tokenizers"),
        refused(MissingDependencyError, "An object of tokenizers, without tokenizers"),
    ):
        tokenizer.to_tokenizers()
    with (
        without("transformers"),
        refused(MissingDependencyError, "... of transformers, without transformers"),
    ):
        tokenizer.to_transformers()


def tiktoken(tokenizer: BPETokenizer, here: Path) -> None:
    """Write ranks, which say nothing of the split pattern and the special tokens."""
    load_kwargs = tokenizer.export(here / "ranks.tiktoken", "tiktoken")
    assert same(tokenizer, BPETokenizer.from_tiktoken(here / "ranks.tiktoken", **load_kwargs))
    show("A .tiktoken file, and the arguments that loading needs", names(here), dict(load_kwargs))
    with refused(TokenizerError, "The same file without arguments"):
        BPETokenizer.from_tiktoken(here / "ranks.tiktoken")
    with refused(HubError, "A published encoding that was never downloaded"):
        BPETokenizer.from_tiktoken("p50k_base", cache_dir=here, local_files_only=True)
    with without("tiktoken"), refused(MissingDependencyError, "An Encoding of tiktoken, without tiktoken"):
        tokenizer.to_tiktoken("ours")


def other_formats(tokenizer: BPETokenizer, here: Path) -> None:
    """Write and read the other formats; `load` detects each by its content."""
    tokenizer.export(here / "gpt2", "gpt2")
    assert same(tokenizer, BPETokenizer.load(here / "gpt2", "gpt2"))
    tokenizer.export(here / "openai" / "encoder.json", "gpt2")
    assert same(tokenizer, BPETokenizer.load(here / "openai", "gpt2"))
    tokenizer.export(here / "vocabulary.gguf", "gguf")
    assert same(tokenizer, BPETokenizer.load(here / "vocabulary.gguf", "gguf"))
    tokenizer.export(here / "small.model", "minbpe")
    assert same(tokenizer, BPETokenizer.load(here / "small.model", "minbpe"))
    tokenizer.export(here / "everything.json", "base64-json")
    assert same(tokenizer, BPETokenizer.load(here / "everything.json", "base64-json"))
    for name in ("gpt2", "openai", "vocabulary.gguf", "small.model", "everything.json"):
        assert same(tokenizer, load(here / name))
    show("GPT-2's two files, under both names", names(here / "gpt2"), names(here / "openai"))
    show("GGUF, minbpe, base64 JSON", [name for name in names(here) if "." in name])


def for_people(tokenizer: BPETokenizer, here: Path) -> None:
    """Write a listing that can be read."""
    tokenizer.save_readable(here / "listing.txt")
    lines = (here / "listing.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) >= len(tokenizer)
    show("A listing for people", *lines[-4:])


def published_names() -> None:
    """Load by name: what caches hold, or with `download=True` what is downloaded."""
    with refused(FormatError, "A name that nobody publishes"):
        load("gpt4o")
    with refused((HubError, MissingDependencyError), "A repository that was never downloaded"):
        load("hf:nobody/nothing")


def tekken(here: Path) -> None:
    """Read a file of Mistral's form."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"lo", b"low"]
    special = ["<unk>", "<s>", "</s>"]
    content: dict[str, Any] = {
        "config": {
            "pattern": NAMED_PATTERNS["tekken"].patterns[0],
            "num_vocab_tokens": len(tokens),
            "default_vocab_size": len(tokens) + len(special),
            "default_num_special_tokens": len(special),
            "version": "v13",
        },
        "vocab": [
            {"rank": rank, "token_bytes": b64encode(token).decode(), "token_str": None}
            for rank, token in enumerate(tokens)
        ],
        "special_tokens": [
            {"rank": rank, "token_str": text, "is_control": True} for rank, text in enumerate(special)
        ],
    }
    (here / "tekken.json").write_text(json.dumps(content), encoding="utf-8")
    tokenizer = BPETokenizer.load(here / "tekken.json", "tekken")
    assert tokenizer.tokenize("lowly") == ["low", "l", "y"]
    show("Mistral's tekken.json", tokenizer, tokenizer.encode("lowly", add_special_tokens=True))


def sentencepiece(here: Path) -> None:
    """Read a tokenizer.json of SentencePiece's kind: characters first, and bytes for those it lacks."""
    characters = ["▁", "l", "o", "w", "lo", "low", "▁low"]
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *characters]
    model: dict[str, Any] = {
        "type": "BPE",
        "unk_token": "<unk>",
        "fuse_unk": True,
        "byte_fallback": True,
        "vocab": {token: token_id for token_id, token in enumerate(tokens)},
        "merges": ["l o", "lo w", "▁ low"],
    }
    steps = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]
    prepend = {"type": "Prepend", "prepend": "▁"}
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    content: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": [prepend, replace]},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": steps},
        "model": model,
    }
    (here / "sentencepiece").mkdir()
    (here / "sentencepiece" / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    tokenizer = BPETokenizer.from_pretrained(here / "sentencepiece")
    assert tokenizer.decode(tokenizer.encode("low 🙂")) == "low 🙂"
    show("A tokenizer.json of SentencePiece's kind", tokenizer.tokenize("low 🙂"))


def what_is_refused(tokenizer: BPETokenizer, here: Path) -> None:
    """See that a format refuses what it cannot hold, and a broken file is not guessed at."""
    normalising = BPETokenizer(normalization="NFC").train("low lower", 258, verbose=False)
    with refused(FormatError, "A minbpe file of a tokenizer that normalises"):
        normalising.export(here / "normalising.model", "minbpe")
    assert not (here / "normalising.model").exists()
    whole = (here / "vocabulary.gguf").read_bytes()
    (here / "half.gguf").write_bytes(whole[: len(whole) // 2])
    (here / "file").touch()
    with refused(WriteError, "A directory whose parent is a file") as errors:
        tokenizer.save(here / "file" / "tokenizer")
    assert errors[0].errno
    assert errors[0].filename
    with refused(FormatError, "Half a GGUF file"):
        BPETokenizer.load(here / "half.gguf")
    (here / "huggingface" / "tokenizer.json").write_text('{"model": {"type": "WordPiece"}}', encoding="utf-8")
    with refused(FormatError, "A tokenizer.json of another kind"):
        BPETokenizer.from_pretrained(here / "huggingface")
    assert same(tokenizer, BPETokenizer.load(here / "everything.json"))


if __name__ == "__main__":
    main()
