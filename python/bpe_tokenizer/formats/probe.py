"""Signatures of the formats: what the first bytes of a file say about it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bpe_tokenizer.formats.capabilities import PRINTABLE_BYTES
from bpe_tokenizer.formats.files import read_bytes
from bpe_tokenizer.formats.json_file import parse_json

__all__ = [
    "GPT2_PAIRS",
    "FileProbe",
    "explain",
    "is_base64_json",
    "is_gguf",
    "is_gpt2",
    "is_minbpe",
    "is_sentencepiece",
    "is_tekken",
    "is_tiktoken",
    "is_tokenizer_json",
]

# Enough for the fields of a JSON file that precede a vocabulary, and for many lines of the other formats.
HEAD_BYTES = 2**16
# The names of GPT-2's two files, which may follow a prefix (`gpt2-vocab.json`).
GPT2_PAIRS = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+|"', re.DOTALL)
# Base64 in groups of four characters, and a number.
_RANK = re.compile(rb"(?=(?:[^ ]{4})+ )[A-Za-z0-9+/]+={0,2} [0-9]{1,10}\r?")
_FIRST_CHARACTER = {dict: "{", list: "[", str: '"', int: "0"}
_TOKENIZER_JSON = frozenset(
    ("truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "decoder")
)


@dataclass(frozen=True)
class FileProbe:
    """The beginning of a file.

    Args:
        path: The file.
        head: Its first bytes.
        size: Its size in bytes.
        all_members: The members of the whole JSON object; None before it is parsed.
    """

    path: Path
    head: bytes
    size: int
    all_members: Mapping[str, str] | None = None

    @classmethod
    def open(cls, path: Path) -> FileProbe:
        """Read the first bytes of a file.

        Raises:
            OSError: It cannot be read.
        """
        with path.open("rb") as file:
            return cls(path, file.read(HEAD_BYTES), path.stat().st_size)

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines of the head, without the last one if it may be cut off."""
        lines = self.head.split(b"\n")
        return lines if self.size <= len(self.head) else lines[:-1]

    @cached_property
    def is_json_object(self) -> bool:
        """Whether the file begins like a JSON object."""
        return self.head.lstrip()[:1] == b"{"

    @property
    def is_truncated_json(self) -> bool:
        """Whether the head shows only a part of a JSON object, and the rest has not been read."""
        return self.is_json_object and self.size > len(self.head) and self.all_members is None

    @cached_property
    def members(self) -> Mapping[str, str]:
        """The known members of a JSON object, each with the first character of its value."""
        if self.all_members is not None:
            return self.all_members
        return _members(self.head.decode("utf-8", "replace")) if self.is_json_object else {}

    def with_all_members(self) -> FileProbe:
        """Parse the whole JSON object.

        Raises:
            FormatError: It is not valid JSON.
        """
        values = parse_json(self.path, read_bytes(self.path)).members()
        members = {name: _FIRST_CHARACTER.get(type(value), "t") for name, value in values.items()}
        return replace(self, all_members=members)


def is_gguf(file: FileProbe) -> bool:
    """Whether a file begins with GGUF's magic number."""
    return file.head.startswith(b"GGUF")


def is_minbpe(file: FileProbe) -> bool:
    """Whether a file begins with minbpe's version."""
    return file.head.startswith(b"minbpe ")


def is_base64_json(file: FileProbe) -> bool:
    """Whether a JSON object names its format."""
    return file.members.get("format") == '"'


def is_tekken(file: FileProbe) -> bool:
    """Whether a JSON object has a list as vocabulary; no other format has."""
    return file.members.get("vocab") == "["


def is_tokenizer_json(file: FileProbe) -> bool:
    """Whether a JSON object has fields of a tokenizer.json."""
    return file.members.get("model", "{") == "{" and not _TOKENIZER_JSON.isdisjoint(file.members)


def is_gpt2(file: FileProbe) -> bool:
    """Whether a file is a `vocab.json` or a `merges.txt`."""
    return _is_gpt2_vocab(file) or _is_gpt2_merges(file)


def _is_gpt2_vocab(file: FileProbe) -> bool:
    """Whether all of many values are numbers, and some keys are single characters."""
    members = file.members
    numbers = len(members) >= 200 and all(value in "0123456789" for value in members.values())
    return numbers and any(len(name) == 1 for name in members)


def _is_gpt2_merges(file: FileProbe) -> bool:
    """Whether each line has two tokens, either printable bytes or merged on a line above."""
    has_version = file.head.startswith(b"#version")
    known = set(PRINTABLE_BYTES)
    for line in filter(bytes.strip, file.lines[has_version:][:100]):
        left, _, right = line.decode("utf-8", "replace").rstrip("\r").partition(" ")
        if not (left in known and right in known):
            return False
        known.add(left + right)
    return len(known) > len(PRINTABLE_BYTES) or has_version


def is_tiktoken(file: FileProbe) -> bool:
    """Whether each line has a token in base64 and its rank."""
    lines = [line for line in file.lines[:100] if line]
    return len(lines) > 0 and all(map(_RANK.fullmatch, lines))


def is_sentencepiece(file: FileProbe) -> bool:
    """Whether a file begins like a SentencePiece ModelProto: with a piece that is a text and maybe a score.

    https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
    """
    piece = re.match(rb"\n([\x03-\x7f])\n([\x01-\x7f])", file.head)
    if piece is None:
        return False
    size, text = piece[1][0], piece[2][0]
    rest = file.head[4 + text : 2 + size]
    return 2 + text <= size and rest[:1] in (b"", b"\x15", b"\x18")


def _members(text: str) -> dict[str, str]:
    """The members of the outer JSON object of a text that may be cut off."""
    members: dict[str, str] = {}
    depth = 0
    before = previous = ""
    for match in _JSON_TOKEN.finditer(text):
        token = match[0]
        if token == '"' or (depth == 0 and token != "{"):
            break  # the text is cut off, or the object ends
        if depth == 1 and previous == ":":
            members[_unquote(before)] = token[0]
        depth += (token in "{[") - (token in "}]")
        before, previous = previous, token
    return members


def _unquote(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        return token


# Files that people take for a tokenizer: a pattern of the first bytes, what the file is, and what to do.
_OTHER_FILES = (
    (rb"\Z", "is empty"),
    (rb"version https://git-lfs", "is a Git LFS pointer, not the file itself: run `git lfs pull`"),
    (rb"\s*<(?:!doctype|html|\?xml)", "is a web page, perhaps an error page: download the file again"),
    (rb".{6}\0\0\{", "holds weights (safetensors), not a tokenizer: load the model's tokenizer.json"),
    (
        rb"PK\x03\x04|\x80[\x02-\x05]",
        "is an archive or a PyTorch checkpoint, not a tokenizer: load the tokenizer.json",
    ),
    (rb"\x1f\x8b|\xfd7zXZ|BZh|\x28\xb5\x2f\xfd", "is compressed: unpack it first"),
    (
        rb"\s*\{[{%#]",
        "is a Jinja template, not a tokenizer: pass its text as template= to apply_chat_template",
    ),
    (rb"\xef\xbb\xbf|\xff\xfe|\xfe\xff", "begins with a byte order mark: save it as UTF-8 without one"),
)


def explain(file: FileProbe) -> str:
    """Say what a file of no known format is, and what to do about it."""
    for pattern, explanation in _OTHER_FILES:
        if re.match(pattern, file.head, re.DOTALL | re.IGNORECASE):
            return explanation
    if is_sentencepiece(file):
        return (
            "is a SentencePiece model, which is not supported: load the tokenizer.json next to it, or let "
            "transformers write one: AutoTokenizer.from_pretrained(directory).save_pretrained(another)"
        )
    if file.is_json_object:
        if "tokenizer_class" in file.members or "added_tokens_decoder" in file.members:
            return "only configures a tokenizer.json: load the directory that holds both"
        if "model_type" in file.members or "architectures" in file.members:
            return "describes a model, not its tokenizer: load the tokenizer.json"
        return "is JSON, but not of a known tokenizer format"
    return "is not of a known tokenizer format"
