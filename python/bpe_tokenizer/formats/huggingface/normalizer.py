"""The `normalizer` of a tokenizer.json, which rewrites text before it is split.

The steps of `_core.Model` have the names of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.formats.huggingface.components import (
    flatten_sequence,
    join_sequence,
    read_pattern,
    write_pattern,
)
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import NORMALIZERS, Normalizer, PlainNormalizer, Prepend, Replace, Step, Strip

__all__ = ["read_normalizer", "write_normalizer"]

# `Nmt` cleans text as a machine translation system did: it drops the first characters and makes the others
# spaces.
_NMT = (
    Replace(pattern=r"[\x{1}-\x{8}\x{B}\x{E}-\x{1F}\x{7F}\x{8F}\x{9F}]", content=""),
    Replace(
        pattern=r"[\x{9}\x{A}\x{C}\x{D}\x{1680}\x{200B}-\x{200F}\x{2028}\x{2029}\x{2581}\x{FEFF}\x{FFFD}]",
        content=" ",
    ),
)


def read_normalizer(field: Field) -> tuple[list[Normalizer], bool]:
    """Read the `normalizer` of a tokenizer.json.

    Args:
        field: The normaliser; null for none.

    Returns:
        The steps in order, and whether they end with `ByteLevel`: then the pre-tokeniser sees each byte as
        its printable character.

    Raises:
        FormatError: A step is not supported.
    """
    steps: list[Normalizer] = []
    in_bytes = False
    for step in flatten_sequence(field, "normalizers"):
        if in_bytes:
            raise step.error("follows ByteLevel, which must be the last step")
        in_bytes = step.get("type").text() == "ByteLevel"
        if not in_bytes:
            steps += _read_step(step)
    return steps, in_bytes


def _read_step(step: Field) -> tuple[Normalizer, ...]:
    kind = step.get("type").text()
    plain = NORMALIZERS.get(kind)
    if isinstance(plain, PlainNormalizer):
        return (plain,)
    if kind == "Strip":
        return (
            Strip(strip_left=step.need("strip_left").flag(), strip_right=step.need("strip_right").flag()),
        )
    if kind == "Prepend":
        if not step.need("prepend").text():
            raise step.get("prepend").error("is empty, where Hugging Face tokenizers fails; remove the step")
        return (Prepend(prepend=step.get("prepend").text()),)
    if kind == "Replace":
        pattern = read_pattern(step.need("pattern"))
        return (Replace(pattern=pattern, content=step.need("content").text()),)
    if kind == "Nmt":
        return _NMT
    raise step.get("type").refused(
        f"is not supported; {', '.join(NORMALIZERS)}, Nmt, ByteLevel and Sequence are"
    )


def write_normalizer(steps: Sequence[Step]) -> dict[str, Any] | None:
    """Return the `normalizer` of a tokenizer.json.

    Args:
        steps: The steps of a `_core.Model`.

    Raises:
        FormatError: The format cannot hold a step.

    >>> write_normalizer([Prepend(prepend="_")])
    {'type': 'Prepend', 'prepend': '_'}
    """
    # Prepending an empty text has no effect here; the library fails on it.
    written = [_write_step(step) for step in steps if step != Prepend(prepend="")]
    return join_sequence(written, "normalizers")


def _write_step(step: Step) -> dict[str, Any]:
    if step.type not in NORMALIZERS:
        raise FormatError(f"normalizer: tokenizer.json cannot hold the step {shorten(step.type)}")
    if isinstance(step, Replace):
        return step._asdict() | {"pattern": write_pattern(step.pattern, "normalizer")}
    return step._asdict()
