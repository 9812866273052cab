"""What the first bytes of a file say about it: the signs of the formats, and of what is no tokenizer."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bpe_tokenizer import _core
from bpe_tokenizer.formats._json import parse_json, read_bytes

__all__ = ["Contents", "explanation"]

# Enough for the fields of a JSON file that stand before a vocabulary, and for many lines of the others.
PREFIX = 2**16

_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+|"', re.DOTALL)
_BYTES = tuple(_core.to_printable(bytes([byte])) for byte in range(256))
_RANK = re.compile(rb"([A-Za-z0-9+/]+={0,2}) [0-9]{1,10}\r?")
_FIRST = {dict: "{", list: "[", str: '"', int: "0"}
_TOKENIZER_JSON = frozenset(
    ("truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "decoder")
)


@dataclass(frozen=True)
class Contents:
    """A file, of which no more is read than is needed.

    Args:
        path: The file.
        head: Its first bytes.
        size: How many there are.
    """

    path: Path
    head: bytes
    size: int

    @classmethod
    def of(cls, path: Path) -> Contents:
        """Read the first bytes of a file.

        Raises:
            OSError: It cannot be read.
        """
        with path.open("rb") as file:
            return cls(path, file.read(PREFIX), path.stat().st_size)

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines of the first bytes, without the last one if it may go on."""
        lines = self.head.split(b"\n")
        return lines if self.size <= len(self.head) else lines[:-1]

    @cached_property
    def members(self) -> Mapping[str, str]:
        """The members of a JSON object and the first character of each value, as far as they were read."""
        return _members(self.head.decode("utf-8", "replace"))

    @cached_property
    def kind_of_json(self) -> str | None:
        """The format of a JSON file; None if it is no JSON object, or of no known format.

        Raises:
            FormatError: The first bytes do not tell, and the whole is broken.
        """
        if self.head.lstrip()[:1] != b"{":
            return None
        kind = _kind_of_json(self.members)
        if kind is not None or self.size <= len(self.head):
            return kind
        values = parse_json(self.path, read_bytes(self.path)).members()
        return _kind_of_json({name: _FIRST.get(type(value), "t") for name, value in values.items()})

    @property
    def is_gpt2_merges(self) -> bool:
        """Lines of two tokens, each a character that stands for a byte or made by a line above."""
        lines = self.lines[1:] if self.head.startswith(b"#version") else self.lines
        known = set(_BYTES)
        for line in filter(bytes.strip, lines[:100]):
            left, _, right = line.decode("utf-8", "replace").rstrip("\r").partition(" ")
            if not (left in known and right in known):
                return False
            known.add(left + right)
        return len(known) > len(_BYTES) or self.head.startswith(b"#version")

    @property
    def is_tiktoken(self) -> bool:
        """Lines of a token in base64 and its rank."""
        lines = [line for line in self.lines[:100] if line]
        return len(lines) > 0 and all(map(_is_rank, lines))

    @property
    def is_sentencepiece(self) -> bool:
        """A ModelProto begins with its pieces: a text, a score and perhaps a kind each.

        https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
        """
        piece = re.match(rb"\n([\x03-\x7f])\n([\x01-\x7f])", self.head, re.DOTALL)
        if piece is None:
            return False
        rest = self.head[4 + piece[2][0] : 2 + piece[1][0]]
        return piece[2][0] < piece[1][0] and rest[:1] in (b"", b"\x15", b"\x18")


def _kind_of_json(members: Mapping[str, str]) -> str | None:
    if members.get("format") == '"':
        return "base64-json"
    if members.get("vocab") == "[":  # no other format has a list there
        return "tekken"
    if members.get("model", "{") == "{" and not _TOKENIZER_JSON.isdisjoint(members):
        return "huggingface"
    # Many numbers and nothing else, and single characters among the names.
    numbers = len(members) >= 200 and all(value in "0123456789" for value in members.values())
    if numbers and any(len(name) == 1 for name in members):
        return "gpt2"
    return None


def _members(text: str) -> dict[str, str]:
    """The members of the outer object of a JSON text, which may be cut off, and how their values begin."""
    members: dict[str, str] = {}
    depth = 0
    key = before = ""
    for lexeme in _LEXEME.finditer(text):
        found = lexeme[0]
        if found == '"' or (depth == 0 and found != "{"):
            break  # cut off, or behind the object, or no object
        if depth == 1 and before == ":":
            members[key] = found[0]
        elif depth == 1 and found == ":":
            key = _unquoted(before)
        depth += (found in "{[") - (found in "}]")
        before = found
    return members


def _unquoted(lexeme: str) -> str:
    try:
        return str(json.loads(lexeme))
    except ValueError:
        return lexeme


def _is_rank(line: bytes) -> bool:
    found = _RANK.fullmatch(line)
    try:
        return found is not None and len(b64decode(found[1], validate=True)) > 0
    except ValueError:
        return False


# What people take for a tokenizer: a pattern of the first bytes, and what to do.
_OTHERS = (
    (rb"\Z", "is empty"),
    (rb"version https://git-lfs", "is a pointer of Git LFS, not the file itself: run `git lfs pull`"),
    (rb"\s*<(?:!doctype|html|\?xml)", "is a web page; what was to be downloaded is something else"),
    (rb".{6}\0\0\{", "holds weights (safetensors), no tokenizer: load the tokenizer.json of the model"),
    (
        rb"PK\x03\x04|\x80[\x02-\x05]",
        "is an archive or a PyTorch checkpoint, no tokenizer: load the tokenizer.json",
    ),
    (rb"\x1f\x8b|\xfd7zXZ|BZh|\x28\xb5\x2f\xfd", "is compressed: unpack it first"),
    (rb"\xef\xbb\xbf|\xff\xfe|\xfe\xff", "begins with a byte order mark: save it as UTF-8 without one"),
)


def explanation(contents: Contents) -> str:
    """Say what a file is that is no tokenizer of a known format, and what to do about it."""
    for pattern, what in _OTHERS:
        if re.match(pattern, contents.head, re.DOTALL | re.IGNORECASE):
            return what
    if contents.is_sentencepiece:
        return (
            "is a SentencePiece model, which is not read: load the tokenizer.json beside it, or let "
            "transformers write one: AutoTokenizer.from_pretrained(directory).save_pretrained(another)"
        )
    if contents.head.lstrip()[:1] == b"{":
        if "tokenizer_class" in contents.members or "added_tokens_decoder" in contents.members:
            return "only says what goes with a tokenizer.json: load the directory of both"
        if "model_type" in contents.members or "architectures" in contents.members:
            return "describes a model, not its tokenizer: load the tokenizer.json"
        return "is JSON, but of no tokenizer format that is known"
    return "is of no tokenizer format that is known"
