"""The `decoder` of a tokenizer.json: how tokens become text again."""

from __future__ import annotations

from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats.huggingface.components import (
    flatten_sequence,
    join_sequence,
    literal_text,
    read_character,
    read_pattern,
)
from bpe_tokenizer.formats.huggingface.regex import regex_escape
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import AddedToken

__all__ = ["Decoder", "read_byte_level_decoder", "read_decoder", "write_byte_level_decoder", "write_decoder"]

# As `_core.Model` has it: what stands for a space; whether `<0xE9>` stands for a byte; which leading spaces
# are dropped. None: the tokens are the text.
Decoder: TypeAlias = tuple[str, bool, str] | None

# What the library takes for a byte, as Rust reads hexadecimal digits, beside `<0x00>` to `<0xFF>`.
_ODD_BYTES = tuple(f"<0x+{digit}>" for digit in "0123456789ABCDEFabcdef")


def read_byte_level_decoder(field: Field, added: Sequence[AddedToken]) -> None:
    """Check the decoder of a byte-level file.

    Args:
        field: It.
        added: The added tokens, for which `write_byte_level_decoder` writes steps of their own.

    Raises:
        FormatError: It is not `ByteLevel`.
    """
    if field.is_null:
        raise field.error("must be there and be ByteLevel; without it tokens are joined with spaces")
    if field.value == write_byte_level_decoder(added):
        return
    steps = flatten_sequence(field, "decoders")
    for step in steps:
        if step.get("type").text() != "ByteLevel":
            raise step.get("type").refused("is not supported in a byte-level file; only ByteLevel is")
    if len(steps) != 1:
        raise field.error(f"has {len(steps)} steps; it must be ByteLevel alone")


def write_byte_level_decoder(added: Sequence[AddedToken]) -> dict[str, Any]:
    """Return `ByteLevel`, and before it a step for each added token that it would take for bytes."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    replaced = [
        {
            "type": "Replace",
            "pattern": {"Regex": rf"\A{regex_escape(token.content)}\z"},
            "content": _core.to_printable(token.content.encode()),
        }
        for token in added
        if _core.from_printable(token.content) not in (None, token.content.encode())
    ]
    return {"type": "Sequence", "decoders": [*replaced, byte_level]} if replaced else byte_level


def read_decoder(field: Field, table: Container[str], added: Sequence[AddedToken]) -> Decoder:
    """Read the decoder of a file whose tokens are characters.

    Args:
        field: It.
        table: The token strings of the vocabulary.
        added: The added tokens.

    Raises:
        FormatError: It does something else than to replace what stands for a space, to take the tokens of
            bytes together, and to drop leading spaces.
    """
    if field.is_null:
        raise field.error("must be there; without it tokens are joined with spaces")
    steps = flatten_sequence(field, "decoders")
    kinds = [step.get("type").text() for step in steps]
    if kinds == ["Metaspace"]:
        never = steps[0].get("prepend_scheme").value == "never"
        return (read_character(steps[0].need("replacement")), False, "none" if never else "first")
    space, byte_fallback, strip = " ", False, "none"
    rest = list(zip(kinds, steps, strict=True))
    if rest and rest[0][0] == "Replace":
        space = _read_space(rest.pop(0)[1])
    if rest and rest[0][0] == "ByteFallback":
        byte_fallback = True
        rest.pop(0)
        _check_bytes(field, table, {token.content for token in added})
    if rest and rest[0][0] == "Fuse":
        rest.pop(0)
        if rest and rest[0][0] == "Strip":
            strip = _read_strip(rest.pop(0)[1])
    if rest:
        kind, step = rest[0]
        raise step.error(
            f"{kind} is not supported there; Metaspace alone is, and a Sequence of Replace, ByteFallback, "
            "Fuse and Strip, in this order, each of which may be absent (Strip needs Fuse)"
        )
    return None if (space, byte_fallback, strip) == (" ", False, "none") else (space, byte_fallback, strip)


def _read_space(step: Field) -> str:
    text = literal_text(read_pattern(step.need("pattern")))
    if text is None or len(text) != 1:
        raise step.get("pattern").refused("is not supported in a decoder; only one character is")
    if step.need("content").text() != " ":
        raise step.get("content").refused("is not supported in a decoder; only a space is")
    return text


def _check_bytes(field: Field, *tokens: Container[str]) -> None:
    for odd in _ODD_BYTES:
        if any(odd in some for some in tokens):
            raise field.error(
                f"ByteFallback takes the token {odd!r} for a byte; only tokens like '<0xE9>' are supported"
            )


def _read_strip(step: Field) -> str:
    content, start, stop = step.need("content").text(), step.need("start").id(), step.need("stop").id()
    if (start, stop) == (0, 0):
        return "none"
    if (content, start, stop) != (" ", 1, 0):
        raise step.refused("is not supported; it must strip one space at the start")
    return "one"


def write_decoder(decoder: Decoder, tokens: Container[str] = ()) -> dict[str, Any]:
    """Return the decoder of a file whose tokens are characters.

    Args:
        decoder: That of a `_core.Model`.
        tokens: The token strings.

    Raises:
        FormatError: The format cannot hold it.

    >>> write_decoder(None)
    {'type': 'Fuse'}
    """
    space, byte_fallback, strip = decoder or (" ", False, "none")
    if strip == "first":
        if byte_fallback:
            raise FormatError(f"decoder: tokenizer.json cannot hold {decoder!r}")
        return {"type": "Metaspace", "replacement": space, "prepend_scheme": "always", "split": True}
    steps: list[dict[str, Any]] = []
    if space != " ":
        steps.append({"type": "Replace", "pattern": {"String": space}, "content": " "})
    if byte_fallback:
        _check_bytes(Field(Path("tokenizer.json"), "decoder", None), tokens)
        steps.append({"type": "ByteFallback"})
    steps.append({"type": "Fuse"})
    if strip == "one":
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    written = join_sequence(steps, "decoders")
    assert written is not None
    return written
