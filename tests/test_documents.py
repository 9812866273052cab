"""The interface that the project's source documents print: every call works as printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import (
    SPLIT_PATTERNS,
    ArgumentTypeError,
    BPETokenizer,
    ChatTemplate,
    CorpusError,
    EncodingResult,
    FormatError,
    HubError,
    NotTrainedError,
    OptionError,
    build_byte_to_char,
    build_char_to_byte,
    train_bpe,
)

CORPUS = ["low lower lowest the lowest low"] * 4
SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|pad|>", "<|im_start|>", "<|im_end|>"]
TALK = [{"role": "user", "content": "low"}]
REPLY = {"role": "assistant", "content": "yo"}
NO_FILE = (FileNotFoundError, FormatError)


@pytest.fixture(scope="module")
def trained() -> BPETokenizer:
    return BPETokenizer("cl100k").train(CORPUS, 275, special_tokens=SPECIAL, verbose=False)


@pytest.mark.parametrize(
    "gives",
    [
        lambda t: isinstance(t("Hi", padding=True, truncation=True, max_length=64), EncodingResult),
        lambda t: t("low", return_tensors="np")["input_ids"].shape[0] == 1,
        lambda t: t.decode_batch(batch_ids=[t.encode("low")]) == ["low"],
        lambda t: [*chain(*t.encode_streaming(text_stream=["lo", "west"]))] == t.encode("lowest"),
        lambda t: len(t.encode(t.truncate("low lower", 4, add_special_tokens=True), True)) <= 4,
        lambda t: t.count_tokens("<|im_end|>", allowed_special="all") == 1,
        lambda t: t.tokenize("<|im_end|>", allowed_special="all") == ["<|im_end|>"],
        lambda t: t.truncate("<|im_end|>low", 1, allowed_special="all") == "<|im_end|>",
        lambda t: len(t) == 271 == len(t.get_vocab()),
        lambda t: (
            t.apply_chat_template(TALK, "chatml", True, "A", False) == ChatTemplate.chatml(TALK, True, "A")
        ),
        lambda t: (
            ChatTemplate.get_template("llama3")(TALK) == ChatTemplate.llama3(TALK, True, system_prompt=None)
        ),
        lambda t: ChatTemplate.alpaca([*TALK, REPLY], False).endswith("### Response:\nyo"),
        lambda t: EncodingResult([1], [1], ["a"]).tokens == ["a"],
        lambda t: BPETokenizer(split_pattern=SPLIT_PATTERNS["cl100k"]).split_pattern == t.split_pattern,
        lambda t: build_byte_to_char()[0x20] == "Ġ",
        lambda t: build_char_to_byte(build_byte_to_char())["Ġ"] == 0x20,
        lambda t: len(build_char_to_byte(byte_to_char=build_byte_to_char())) == 256,
        lambda t: type(SPLIT_PATTERNS) is dict and {"gpt2", "cl100k"} <= SPLIT_PATTERNS.keys(),
    ],
)
def test_a_printed_call(gives: Callable[[BPETokenizer], bool], trained: BPETokenizer) -> None:
    assert gives(trained) is True


@pytest.mark.parametrize(
    ("call", "kinds"),
    [
        (lambda path: BPETokenizer().encode("a"), (ValueError, RuntimeError, NotTrainedError)),
        (lambda path: BPETokenizer.from_pretrained(path / "no"), NO_FILE),
        (lambda path: BPETokenizer.load(path / "no"), NO_FILE),
        (lambda path: BPETokenizer.load("no.json"), NO_FILE),
        (lambda path: BPETokenizer.load(path / "no.gguf", "gguf"), NO_FILE),
        (lambda path: BPETokenizer.from_tiktoken(path / "no.tiktoken"), NO_FILE),
        (lambda path: BPETokenizer.load(path / "a", "gpt2", merges=path / "b"), NO_FILE),
        (lambda path: BPETokenizer.from_huggingface(path / "no"), (FileNotFoundError,)),
        (lambda path: BPETokenizer().train(path / "no", 300), (FileNotFoundError, CorpusError)),
        (lambda path: BPETokenizer().train([path / "no"], 300), (FileNotFoundError, CorpusError)),
        (lambda path: train_bpe(path / "no", 300), (FileNotFoundError, CorpusError)),
        (lambda path: BPETokenizer.for_model(path / "no.gguf"), (FileNotFoundError, OptionError)),
    ],
)
def test_the_class_of_an_error(
    call: Callable[[Path], object], kinds: tuple[type[BaseException], ...], tmp_path: Path
) -> None:
    for kind in kinds:
        with pytest.raises(kind):
            call(tmp_path)


def test_a_failed_download_is_a_runtime_error() -> None:
    assert issubclass(HubError, RuntimeError)


def test_train_bpe_names_the_method_for_texts() -> None:
    assert issubclass(ArgumentTypeError, TypeError)
    with pytest.raises(ArgumentTypeError, match=r"takes the path of a text file.*BPETokenizer\.train"):
        train_bpe(iter(["a"]), 300)  # type: ignore[arg-type]


# -- the documents' own files ------------------------------------------------------------------------------


def documents_files(tokenizer: BPETokenizer, directory: Path, **changes: Any) -> Path:
    """Write the files that the documents' `save` writes."""
    special = {text: {"id": token_id, "content": text} for text, token_id in tokenizer.special_tokens.items()}
    vocab = tokenizer.get_vocab()
    document = {
        "version": "1.0",
        "type": "BPE",
        "model": {
            "type": "BPE",
            "vocab": vocab,
            "merges": [" ".join(merge) for merge in tokenizer.model.core.printable_merges()],
        },
        "split_pattern": tokenizer.split_pattern,
        "special_tokens": special,
        "added_tokens": [
            {"id": entry["id"], "content": text, "special": True, "single_word": False}
            for text, entry in special.items()
        ],
    } | changes
    config = {
        "tokenizer_name": "demo",
        "num_merges": 5,
        "model_max_length": 131072,
        "split_pattern_name": "cl100k",
        "bos_token": "<|begin_of_text|>",
    }
    directory.mkdir(exist_ok=True)
    (directory / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
    (directory / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return directory


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k"])
def test_the_documents_own_files(pattern: str, tmp_path: Path) -> None:
    wanted = BPETokenizer(pattern).train(CORPUS, 275, special_tokens=SPECIAL, verbose=False)
    for load in (BPETokenizer.from_pretrained, BPETokenizer.load):
        loaded = load(documents_files(wanted, tmp_path / "documents"))
        assert loaded.normalization == "NFC"
        assert loaded.special_tokens == wanted.special_tokens
        assert (loaded.bos_token, loaded.eos_token) == ("<|begin_of_text|>", "<|end_of_text|>")
        for text in ("low lower", "e\u0301 lowest<|im_end|>", "123 the\n\n  low"):
            assert loaded.encode(text, True, "all") == wanted.encode(text, True, "all")
            assert loaded.decode(loaded.encode(text)) == wanted.decode(wanted.encode(text))
    loaded.save(tmp_path / "again")
    assert BPETokenizer.from_pretrained(tmp_path / "again") == loaded


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"special_tokens": {"<x>": {"id": 262, "content": "<x>"}}}, r"id: 262 is also the id of the lear"),
        ({"special_tokens": {"<x>": {"content": "<x>"}}}, r"special_tokens\.<x>\.id: is missing"),
        ({"special_tokens": {"<x>": {"id": 400, "content": "<y>"}}}, "is not the key of its entry"),
        ({"split_pattern": "(a)|b"}, r"split_pattern: holds \(, which may mean something else"),
        ({"split_pattern": 5}, "split_pattern: must be a string"),
        ({"model": {"vocab": {"a": 0}, "merges": ["a"]}}, r"merges\[0\]: invalid value"),
        ({"model": {"vocab": {"a": 0}, "merges": []}}, "model: "),
        ({"model": {"vocab": {"a": 0}}}, "model.merges: is missing"),
    ],
)
def test_what_cannot_be_right_is_refused_by_name(
    changes: dict[str, Any], message: str, trained: BPETokenizer, tmp_path: Path
) -> None:
    with pytest.raises(FormatError, match=message):
        BPETokenizer.load(documents_files(trained, tmp_path, **changes))


def test_the_documents_extras() -> None:
    toml = pytest.importorskip("tomllib", reason="needs Python 3.11")
    settings = toml.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    extras = settings["project"]["optional-dependencies"]
    assert extras["apple"] == ["bpe-tokenizer[mlx]"]
    named = {name for line in extras["full"] for name in line.split("[")[1].split("]")[0].split(",")}
    for_many_machines = {"ray", "spark"}
    assert named == extras.keys() - {"apple", "full"} - for_many_machines
