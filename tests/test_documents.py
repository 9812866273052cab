"""The interface that the project's source documents print: every call works as printed."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import bpe_tokenizer
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

# Positional order and defaults; None for "anything".
SIGNATURES: dict[str, list[str]] = {
    "train": ["corpus", "vocab_size=32000", "min_frequency=2", "special_tokens=None", "verbose=True"],
    "encode": ["text", "add_special_tokens=False", "allowed_special='none'"],
    "encode_batch": [
        *("texts", "add_special_tokens=False", "allowed_special='none'", "padding=False"),
        *("truncation=False", "max_length=None", "return_tensors=None"),
    ],
    "__call__": [
        *("text", "add_special_tokens=False", "allowed_special='none'", "padding=False"),
        *("truncation=False", "max_length=None", "return_tensors=None"),
    ],
    "decode": ["ids", "skip_special_tokens=False", "errors='replace'"],
    "decode_batch": ["batch_ids", "skip_special_tokens=False", "skip_padding=True"],
    "tokenize": ["text"],
    "count_tokens": ["text"],
    "truncate": ["text", "max_tokens", "add_special_tokens=False"],
    "get_vocab": [],
    "convert_tokens_to_ids": ["tokens"],
    "convert_ids_to_tokens": ["ids"],
    "convert_tokens_to_string": ["tokens"],
    # `verbose` is False here on purpose.
    "save": ["directory", "name='tokenizer'", "verbose=False"],
    "from_pretrained": ["directory", "verbose=False"],
    "from_huggingface": ["model_name_or_path", "cache_dir=None", "token=None", "verbose=False"],
    # The default template is the model's own on purpose, or llama3.
    "apply_chat_template": [
        *("messages", "template=None", "add_generation_prompt=True", "system_prompt=None"),
        *("tokenize=True", "allowed_special='all'"),
    ],
    "chat": [
        *("messages", "model_path", "template=None", "system_prompt=None", "max_new_tokens=512"),
        *("temperature=0.7", "top_p=0.9", "backend=None", "n_gpu_layers=-1", "n_ctx=8192", "verbose=False"),
    ],
    "encode_streaming": ["text_stream", "allowed_special='none'"],
    "get_cache_stats": [],
    "clear_cache": [],
}


@pytest.fixture(scope="module")
def trained() -> BPETokenizer:
    return BPETokenizer("cl100k").train(CORPUS, 275, special_tokens=SPECIAL, verbose=False)


@pytest.mark.parametrize("name", SIGNATURES)
def test_positional_arguments(name: str) -> None:
    parameters = list(inspect.signature(getattr(BPETokenizer, name)).parameters.values())
    positional = [
        parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default!r}"
        for parameter in parameters
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.name != "self"
    ]
    assert positional == SIGNATURES[name]


def rows() -> dict[str, Callable[[BPETokenizer], object]]:
    """The calls of the documents, each with what it must give."""
    return {
        "a padded text": lambda t: isinstance(
            t("Hello, world!", padding=True, truncation=True, max_length=64), EncodingResult
        ),
        "tensors of a text": lambda t: t("low", return_tensors="np")["input_ids"].shape[0] == 1,
        "rows by name": lambda t: t.decode_batch(batch_ids=[t.encode("low")]) == ["low"],
        "a stream by name": lambda t: (
            list(chain(*t.encode_streaming(text_stream=["lo", "west"]))) == t.encode("lowest")
        ),
        "the budget of added tokens": lambda t: (
            len(t.encode(t.truncate("low lower lowest", 4, add_special_tokens=True), True)) <= 4
        ),
        "special tokens count as one": lambda t: (
            (
                t.count_tokens("<|im_end|>", allowed_special="all"),
                t.tokenize("<|im_end|>", allowed_special="all"),
                t.truncate("<|im_end|>low", 1, allowed_special="all"),
            )
            == (1, ["<|im_end|>"], "<|im_end|>")
        ),
        "the representation": lambda t: (
            repr(t) == f"BPETokenizer(vocab_size={t.vocab_size}, merges={len(t.merges)}, special_tokens=5)"
        ),
        "the length": lambda t: len(t) == 271 == len(t.get_vocab()),
        "a chat by position": lambda t: (
            t.apply_chat_template(TALK, "chatml", True, "Hi", False) == ChatTemplate.chatml(TALK, True, "Hi")
        ),
        "a template by name": lambda t: (
            ChatTemplate.get_template("llama3")(TALK)
            == ChatTemplate.llama3(TALK, add_generation_prompt=True, system_prompt=None)
        ),
        "an answered instruction": lambda t: ChatTemplate.alpaca(
            [*TALK, {"role": "assistant", "content": "yo"}], False
        ).endswith("### Response:\nyo"),
        "a result by position": lambda t: EncodingResult([1], [1], ["a"]).tokens == ["a"],
        "a tokenizer by keyword": lambda t: (
            BPETokenizer(split_pattern=SPLIT_PATTERNS["cl100k"]).split_pattern == t.split_pattern
        ),
        "the characters of bytes": lambda t: (
            (
                build_byte_to_char()[0x20],
                build_char_to_byte(build_byte_to_char())["Ġ"],
                len(build_char_to_byte(byte_to_char=build_byte_to_char())),
            )
            == ("Ġ", 0x20, 256)
        ),
    }


@pytest.mark.parametrize("name", rows())
def test_a_printed_call(name: str, trained: BPETokenizer) -> None:
    assert rows()[name](trained) is True


@pytest.mark.parametrize(
    ("call", "kinds"),
    [
        (lambda path: BPETokenizer().encode("a"), (ValueError, RuntimeError, NotTrainedError)),
        (lambda path: BPETokenizer.from_pretrained(path / "no"), (FileNotFoundError, FormatError)),
        (lambda path: BPETokenizer.load(path / "no"), (FileNotFoundError, FormatError)),
        (lambda path: BPETokenizer.load("no.json"), (FileNotFoundError, FormatError)),
        (lambda path: BPETokenizer.load(path / "no.gguf", "gguf"), (FileNotFoundError, FormatError)),
        (lambda path: BPETokenizer.from_tiktoken(path / "no.tiktoken"), (FileNotFoundError, FormatError)),
        (
            lambda path: BPETokenizer.load(path / "a", "gpt2", merges=path / "b"),
            (FileNotFoundError, FormatError),
        ),
        (lambda path: BPETokenizer.from_huggingface(path / "no"), (FileNotFoundError,)),
        (lambda path: BPETokenizer().train(path / "no", 300), (FileNotFoundError, CorpusError)),
        (lambda path: BPETokenizer().train([path / "no"], 300), (FileNotFoundError, CorpusError)),
        (lambda path: train_bpe(path / "no", 300), (FileNotFoundError, CorpusError)),
        (lambda path: BPETokenizer.for_model(path / "no.gguf"), (FileNotFoundError, OptionError)),
        (lambda path: train_bpe(iter(["a"]), 300), (TypeError, ArgumentTypeError)),  # type: ignore[arg-type]
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
    with pytest.raises(ArgumentTypeError, match=r"takes the path of a text file.*BPETokenizer\.train"):
        train_bpe(iter(["a"]), 300)  # type: ignore[arg-type]


def test_the_config_of_a_saved_tokenizer(trained: BPETokenizer, tmp_path: Path) -> None:
    trained.save(tmp_path, name="demo")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tokenizer.json", "tokenizer_config.json"]
    config = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    wanted = {
        "tokenizer_name": "demo",
        "num_merges": len(trained.merges),
        "model_max_length": 131072,
        "split_pattern_name": "cl100k",
    }
    assert {name: config[name] for name in wanted} == wanted
    assert BPETokenizer.from_pretrained(tmp_path, True) == trained


def test_the_training_log_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(f"{number:x}" for number in range(20_000))
    BPETokenizer().train(text, 1000)
    printed = capsys.readouterr()
    assert printed.out == ""
    first, *middle, last = printed.err.splitlines()
    assert first.startswith("Counted 1 document: 66,")
    assert last.startswith("Trained on 1 document: ")
    assert middle
    assert all(line.startswith("Learned ") and line.endswith(" merges") for line in middle)
    BPETokenizer().train(text, 300, verbose=False)
    assert capsys.readouterr().err == ""


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
        (
            {"special_tokens": {"<x>": {"id": 262, "content": "<x>"}}},
            r"id: 262 is also the id of the learned",
        ),
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


def test_every_printed_name_is_at_the_root() -> None:
    for name in ("BPETokenizer", "EncodingResult", "ChatTemplate", "SPLIT_PATTERNS", "InferenceBackend"):
        assert name in bpe_tokenizer.__all__
    assert {"gpt2", "cl100k"} <= SPLIT_PATTERNS.keys()
    assert type(SPLIT_PATTERNS) is dict


def test_the_documents_extras() -> None:
    toml = pytest.importorskip("tomllib", reason="needs Python 3.11")
    settings = toml.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    extras = settings["project"]["optional-dependencies"]
    assert extras["apple"] == ["bpe-tokenizer[mlx]"]
    named = {name for line in extras["full"] for name in line.split("[")[1].split("]")[0].split(",")}
    for_many_machines = {"ray", "spark"}
    assert named == extras.keys() - {"apple", "full"} - for_many_machines
