"""The `normalizer` of a tokenizer.json, which rewrites text before it is split.

The steps of `_core.Model` have the names of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats.huggingface.components import (
    Step,
    flatten_sequence,
    join_sequence,
    read_pattern,
    write_pattern,
)
from bpe_tokenizer.formats.json_file import Field

__all__ = ["read_normalizer", "write_normalizer"]

_PLAIN = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents")
# `Nmt` cleans text as a machine translation system did: it drops the first characters and makes the others
# spaces.
_NMT: tuple[Step, ...] = (
    ("Replace", r"[\x{1}-\x{8}\x{B}\x{E}-\x{1F}\x{7F}\x{8F}\x{9F}]", ""),
    (
        "Replace",
        r"[\x{9}\x{A}\x{C}\x{D}\x{1680}\x{200B}-\x{200F}\x{2028}\x{2029}\x{2581}\x{FEFF}\x{FFFD}]",
        " ",
    ),
)


def read_normalizer(field: Field) -> tuple[list[Step], bool]:
    """Read the `normalizer` of a tokenizer.json.

    Args:
        field: The normaliser; null for none.

    Returns:
        The steps in order, and whether they end with `ByteLevel`: then the pre-tokeniser sees each byte as
        its printable character.

    Raises:
        FormatError: A step is not supported.
    """
    steps: list[Step] = []
    in_bytes = False
    for step in flatten_sequence(field, "normalizers"):
        if in_bytes:
            raise step.error("follows ByteLevel, which must be the last step")
        in_bytes = step.get("type").text() == "ByteLevel"
        if not in_bytes:
            steps += _read_step(step)
    return steps, in_bytes


def _read_step(step: Field) -> tuple[Step, ...]:
    kind = step.get("type").text()
    if kind in _PLAIN:
        return ((kind,),)
    if kind == "Strip":
        return ((kind, step.need("strip_left").flag(), step.need("strip_right").flag()),)
    if kind == "Prepend":
        if not step.need("prepend").text():
            raise step.get("prepend").error("is empty, where Hugging Face tokenizers fails; remove the step")
        return ((kind, step.get("prepend").text()),)
    if kind == "Replace":
        return ((kind, read_pattern(step.need("pattern")), step.need("content").text()),)
    if kind == "Nmt":
        return _NMT
    raise step.get("type").refused(
        f"is not supported; {', '.join(_PLAIN)}, Strip, Prepend, Replace, Nmt, ByteLevel and Sequence are"
    )


def write_normalizer(steps: Sequence[Step]) -> dict[str, Any] | None:
    """Return the `normalizer` of a tokenizer.json.

    Args:
        steps: The steps of a `_core.Model`.

    Raises:
        FormatError: The format cannot hold a step.

    >>> write_normalizer([("Prepend", "_")])
    {'type': 'Prepend', 'prepend': '_'}
    """
    # Prepending an empty text has no effect here; the library fails on it.
    written = [_write_step(*step) for step in steps if tuple(step) != ("Prepend", "")]
    return join_sequence(written, "normalizers")


def _write_step(kind: str, *arguments: Any) -> dict[str, Any]:
    if kind in _PLAIN:
        return {"type": kind}
    if kind == "Strip":
        return {"type": kind, "strip_left": arguments[0], "strip_right": arguments[1]}
    if kind == "Prepend":
        return {"type": kind, "prepend": arguments[0]}
    if kind == "Replace":
        return {"type": kind, "pattern": write_pattern(arguments[0], "normalizer"), "content": arguments[1]}
    raise FormatError(f"normalizer: tokenizer.json cannot hold the step {kind!r}")
