"""Vocabularies to make tokenizer.json files of: real ones, and some that are trained here."""

from __future__ import annotations

import base64
import json
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.formats.gguf.file import read_metadata

# Token strings with their ids, and merges.
Vocab: TypeAlias = tuple[dict[str, int], list[list[str]]]

SPACE = "▁"
# Characters that the standard library has few of.
MIXED = (
    "Grüße, naïve café! cafe\u0301 Ελληνικά Привет мир 日本語のテキスト 한국어 עברית हिन्दी\n"
    "emoji 👩\u200d👧 🇫🇷 ✓ 1234567 ½ ٣٤٥  two  spaces\t\ttabs\r\n\r\nI'll don't WE'RE it'S ſ K\u2003\u3000."
)


@cache
def gguf(path: Path) -> Vocab:
    """The tokens and merges of a GGUF file."""
    metadata = read_metadata(path, lambda key: key.startswith("tokenizer.ggml."))
    lists = (metadata.strings(f"tokenizer.ggml.{name}").tolist() for name in ("tokens", "merges"))
    tokens, merges = ([each.decode() for each in some] for some in lists)
    return {token: index for index, token in enumerate(tokens)}, [merge.split(" ") for merge in merges]


@cache
def ranks(path: Path) -> Vocab:
    """A .tiktoken file's."""
    lines = map(bytes.split, path.read_bytes().splitlines())
    core = _core.Model({int(rank): base64.b64decode(token) for token, rank in lines}, None, split_patterns=[])
    return core.printable_vocab(), [list(merge) for merge in core.printable_merges()]


@cache
def gpt2(shared: Path) -> Vocab:
    vocab = json.loads((shared / "vocab/gpt2-vocab.json").read_text(encoding="utf-8"))
    merges = (shared / "vocab/gpt2-merges.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
    return vocab, [merge.split(" ") for merge in merges[1:]]


def sample() -> list[str]:
    """Text to train on: some of the standard library, and characters of every kind."""
    library = Path(sysconfig.get_paths()["stdlib"])
    names = ("argparse.py", "ast.py", "datetime.py", "difflib.py", "inspect.py", "textwrap.py")
    return [*((library / name).read_text(encoding="utf-8") for name in names), *[MIXED] * 5]


def train(size: int, pre_tokenizer: Any, alphabet: Sequence[str] = ()) -> Vocab:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=list(alphabet), show_progress=False, min_frequency=2
    )
    tokenizer.train_from_iterator(sample(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], model["merges"]


def small_file(texts: Sequence[str]) -> dict[str, Any]:
    """A tokenizer.json of ours with special tokens, whose further tokens get the ids from 403."""
    tokenizer = BPETokenizer("gpt2", normalization=None)
    special = {"<s>": 400, "</s>": 401, "<pad>": 402}
    tokenizer.train([*texts] * 9 + [*map(str, range(3000))], 400, special_tokens=special, verbose=False)
    assert sorted(tokenizer.vocab) == list(range(403))
    document: dict[str, Any] = json.loads(tokenizer.to_tokenizers().to_str())
    return document


@cache
def trained(size: int = 700) -> Vocab:
    """Byte-level, with all 256 bytes."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return train(size, byte_level, pre_tokenizers.ByteLevel.alphabet())


@cache
def characters(size: int = 1500) -> Vocab:
    """As the conversion of a SentencePiece model makes them: <unk>, <s>, </s>, the bytes, learned tokens,
    characters; and a merge for every way to make a token of two others, in the order of what they make."""
    vocab, _ = train(size, pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always"))
    first = ["<unk>", "<s>", "</s>", *byte_tokens()]
    learned = [token for token in vocab if len(token) > 1]
    single = [token for token in vocab if len(token) == 1]
    ids = {token: index for index, token in enumerate([*first, *learned, *single])}
    return ids, merges_of(ids, learned)


def byte_tokens() -> list[str]:
    return [f"<0x{byte:02X}>" for byte in range(256)]


def merges_of(ids: Mapping[str, int], learned: Iterable[str]) -> list[list[str]]:
    merges = []
    for token in learned:
        cuts = [(token[:at], token[at:]) for at in range(1, len(token))]
        made = [(ids[left], ids[right], left, right) for left, right in cuts if left in ids and right in ids]
        merges += [[left, right] for _, _, left, right in sorted(made)]
    return merges


def with_first(vocab: Vocab, *first: str) -> Vocab:
    """The same with some tokens before all others."""
    tokens = [*first, *sorted(vocab[0], key=vocab[0].__getitem__)]
    return {token: index for index, token in enumerate(tokens)}, vocab[1]


def without(vocab: Vocab, *tokens: str) -> Vocab:
    """The same without some tokens, the ids behind them moved up."""
    rest = [token for token in sorted(vocab[0], key=vocab[0].__getitem__) if token not in tokens]
    merges = [merge for merge in vocab[1] if not {*merge, "".join(merge)} & set(tokens)]
    return {token: index for index, token in enumerate(rest)}, merges
