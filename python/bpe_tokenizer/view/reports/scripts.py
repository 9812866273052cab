"""The scripts of letters."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["OTHER", "SCRIPTS", "SPACE", "UNSPACED", "Characters", "classify_characters", "script_of"]

# The known scripts, by the first word of their letters' Unicode names.
_NAMES = (
    "Latin Greek Cyrillic Armenian Georgian Hebrew Arabic Syriac Thaana Nko Devanagari Bengali Gurmukhi "
    "Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Khmer Mongolian Ethiopic "
    "Tifinagh Cherokee Hangul Hiragana Katakana Bopomofo Javanese Balinese Yi"
)
_BY_NAME = {name.upper(): name for name in _NAMES.split()} | {"CJK": "Han"}

OTHER, SPACE = 0, 1
# The character classes: other characters, white space, and the letters of each script.
SCRIPTS = ("other", "white space", *_BY_NAME.values())
# Scripts without spaces between words.
_UNSPACED = "Han Hiragana Katakana Bopomofo Thai Lao Khmer Myanmar Tibetan Javanese Balinese Yi"
UNSPACED = frozenset(_UNSPACED.split())
_UNSEEN = 255
# The class of each code point, filled on first use: looking up all of Unicode would take a second.
_CLASSES = np.full(0x110000, _UNSEEN, dtype=np.uint8)


def script_of(character: str) -> str:
    """Return the script of a letter or a mark, by its name in the Unicode database.

    A compatibility character (full width, superscript) has the script of its base letter.

    Args:
        character: One character.

    Returns:
        The name of the script; "" for accents, unknown scripts and all other characters.

    Example:
        >>> [script_of(character) for character in "aжक語!"]
        ['Latin', 'Cyrillic', 'Devanagari', 'Han', '']
    """
    if unicodedata.category(character)[0] not in "LM":
        return ""
    for part in unicodedata.normalize("NFKC", character) + character:
        if script := _BY_NAME.get(unicodedata.name(part, "").split(" ")[0]):
            return script
    return ""


class Characters(NamedTuple):
    """The characters of UTF-8 data.

    Args:
        starts: The start of each character, in bytes, int64.
        classes: The class of each character, an index of `SCRIPTS`, uint8.
    """

    starts: npt.NDArray[np.int64]
    classes: npt.NDArray[np.uint8]


def classify_characters(data: bytes) -> Characters:
    """Find the characters of UTF-8 and classify them.

    Args:
        data: UTF-8. In broken data, each byte that is not a continuation byte starts a character.

    Example:
        >>> [SCRIPTS[each] for each in classify_characters("я 1".encode()).classes]
        ['Cyrillic', 'white space', 'other']
    """
    code = np.frombuffer(data + b"\0\0\0", dtype=np.uint8).astype(np.uint32)
    starts = np.flatnonzero((code[:-3] & 0xC0) != 0x80)
    lead, second, third, fourth = code[starts], *(code[starts + k] & 0x3F for k in (1, 2, 3))
    points = np.select(
        [lead < 0x80, lead < 0xE0, lead < 0xF0],
        [lead, (lead & 0x1F) << 6 | second, (lead & 0x0F) << 12 | second << 6 | third],
        (lead & 0x07) << 18 | second << 12 | third << 6 | fourth,
    )
    points = np.minimum(points, 0x10FFFF)
    for point in np.unique(points[_CLASSES[points] == _UNSEEN]).tolist():
        _CLASSES[point] = _class_of(chr(point))
    return Characters(starts, _CLASSES[points])


def _class_of(character: str) -> int:
    if character.isspace():
        return SPACE
    script = script_of(character)
    return SCRIPTS.index(script) if script else OTHER
