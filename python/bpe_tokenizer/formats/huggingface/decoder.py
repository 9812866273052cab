"""The `decoder` of a tokenizer.json, which turns tokens into text."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, Literal

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, escaped, shorten
from bpe_tokenizer.formats.huggingface.components import (
    flatten_sequence,
    join_sequence,
    literal_text,
    read_character,
    read_pattern,
)
from bpe_tokenizer.formats.huggingface.regex import regex_escape
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import AddedToken, Decoder

__all__ = [
    "is_decoded_as_bytes",
    "read_byte_level_decoder",
    "read_decoder",
    "write_byte_level_decoder",
    "write_decoder",
]

# The meaning of a file without a decoder.
_JOINED = Decoder(strip="joined")


def read_byte_level_decoder(
    field: Field, added: Sequence[AddedToken], changed: Container[int]
) -> Decoder | None:
    """Read the decoder of a byte-level file.

    Args:
        field: The decoder.
        added: The added tokens with the texts that the library decodes, for which `write_byte_level_decoder`
            may write steps.
        changed: The ids of those whose text normalisation changes.

    Raises:
        FormatError: The decoder is not `ByteLevel`, or it takes such a text for bytes.
    """
    if field.is_null:
        return _JOINED
    if field.value == write_byte_level_decoder(added):
        return None
    steps = flatten_sequence(field, "decoders")
    for step in steps:
        if step.get("type").text() != "ByteLevel":
            raise step.get("type").refused("is not supported in a byte-level file; use ByteLevel")
    if len(steps) != 1:
        raise field.error(f"has {len(steps)} steps; it must be ByteLevel alone")
    for token in added:
        if token.id in changed and is_decoded_as_bytes(token.content):
            raise field.error(
                f"takes {shorten(token.content)}, the normalised text of the added token {token.id}, for "
                "bytes; set its normalized to false"
            )
    return None


def is_decoded_as_bytes(text: str) -> bool:
    """Return whether `ByteLevel` decodes the text of an added token to other bytes than those of the text.

    >>> [is_decoded_as_bytes(text) for text in ("a", "a b", "é", "日")]
    [False, False, True, False]
    """
    # An ASCII character is no byte's, or that of its own byte.
    return not text.isascii() and _core.from_printable(text) not in (None, text.encode())


def write_byte_level_decoder(added: Sequence[AddedToken]) -> dict[str, Any]:
    """Return `ByteLevel`, after a step for each added token that it would take for bytes."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    replaced = [
        {
            "type": "Replace",
            "pattern": {"Regex": rf"\A{regex_escape(token.content)}\z"},
            "content": _core.to_printable(token.content.encode()),
        }
        for token in added
        if not token.content.isascii() and is_decoded_as_bytes(token.content)  # most are ASCII
    ]
    return {"type": "Sequence", "decoders": [*replaced, byte_level]} if replaced else byte_level


def read_decoder(field: Field) -> Decoder | None:
    """Read the decoder of a file whose tokens are characters.

    Args:
        field: The decoder.

    Raises:
        FormatError: The decoder has other steps than to replace a character by a space, to join byte tokens,
            and to drop leading spaces.
    """
    if field.is_null:
        return _JOINED
    steps = flatten_sequence(field, "decoders")
    kinds = [step.get("type").text() for step in steps]
    if kinds == ["Metaspace"]:
        never = steps[0].get("prepend_scheme").value == "never"
        replacement = read_character(steps[0].need("replacement"))
        return Decoder(space=replacement, strip="none" if never else "first")
    decoder = Decoder()
    rest = list(zip(kinds, steps, strict=True))
    if rest and rest[0][0] == "Replace":
        decoder = decoder._replace(space=_read_space(rest.pop(0)[1]))
    elif rest and rest[0][0] == "Metaspace" and rest[0][1].get("prepend_scheme").value == "never":
        decoder = decoder._replace(space=read_character(rest.pop(0)[1].need("replacement")))
    if rest and rest[0][0] == "ByteFallback":
        decoder = decoder._replace(byte_fallback=True)
        rest.pop(0)
    if rest and rest[0][0] == "Fuse":
        rest.pop(0)
        if rest and rest[0][0] == "Strip":
            decoder = decoder._replace(strip=_read_strip(rest.pop(0)[1]))
    if rest:
        kind, step = rest[0]
        raise step.error(
            f"{escaped(kind, 40)} is not supported here; use Metaspace alone, or a Sequence of Replace, "
            "ByteFallback, Fuse and Strip in this order (all optional; Strip needs Fuse)"
        )
    return None if decoder == Decoder() else decoder


def _read_space(step: Field) -> str:
    text = literal_text(read_pattern(step.need("pattern")))
    if text is None or len(text) != 1:
        raise step.get("pattern").refused("is not supported in a decoder; it must be one character")
    if step.need("content").text() != " ":
        raise step.get("content").refused("is not supported in a decoder; it must be a space")
    return text


def _read_strip(step: Field) -> Literal["none", "one"]:
    content, start, stop = step.need("content").text(), step.need("start").id(), step.need("stop").id()
    if (start, stop) == (0, 0):
        return "none"
    if (content, start, stop) != (" ", 1, 0):
        raise step.refused("is not supported; it must strip one space at the start")
    return "one"


def write_decoder(decoder: Decoder | None) -> dict[str, Any] | None:
    """Return the decoder of a file whose tokens are characters.

    Args:
        decoder: The decoder of a `_core.Model`.

    Raises:
        FormatError: The format cannot hold it.

    >>> write_decoder(None)
    {'type': 'Fuse'}
    """
    if decoder == _JOINED:
        return None
    space, byte_fallback, strip = decoder or Decoder()
    if strip == "joined":
        raise FormatError(f"decoder: tokenizer.json cannot hold {shorten(decoder)}")
    if strip == "first":
        if byte_fallback:
            raise FormatError(f"decoder: tokenizer.json cannot hold {shorten(decoder)}")
        return {"type": "Metaspace", "replacement": space, "prepend_scheme": "always", "split": True}
    steps: list[dict[str, Any]] = []
    if space != " ":
        steps.append({"type": "Replace", "pattern": {"String": space}, "content": " "})
    if byte_fallback:
        steps.append({"type": "ByteFallback"})
    steps.append({"type": "Fuse"})
    if strip == "one":
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    written = join_sequence(steps, "decoders")
    assert written is not None
    return written
