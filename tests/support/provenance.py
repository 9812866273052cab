"""An oracle of provenance that does not depend on taint tracking: content has its own alphabet.

`shifted` writes all of a conversation's texts in rare ideographs, one for each character. Whatever a template
does to them, an ideograph in what it renders came from them, and the rest did not, or was made from them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from bpe_tokenizer.chat.segment import Rendered
from conversations import Conversation

__all__ = ["assert_no_content_is_trusted", "is_shifted", "shifted", "trusted_mask", "unshifted"]

# CJK Extension B: letters without case that Python prints as they are.
_FIRST = 0x20000
_ideographs: dict[str, str] = {}
_characters: dict[str, str] = {}
# What templates compare with: shifted, it would make them take another way.
_COMPARED = ("role", "type")
# Objects whose keys are content.
_NAMED_BY_USERS = ("properties", "arguments")


def shifted(conversation: Conversation) -> Conversation:
    """Write every text in ideographs, except white space and the fields that templates compare."""
    return Conversation(
        _shifted(conversation.messages), _shifted(conversation.tools), _shifted(conversation.documents)
    )


def _shifted(value: Any, key: str = "") -> Any:
    if isinstance(value, str):
        return value if key in _COMPARED else "".join(map(_shifted_character, value))
    if isinstance(value, list):
        return [_shifted(item, key) for item in value]
    if isinstance(value, dict):
        keys = [_shifted(name) if key in _NAMED_BY_USERS else name for name in value]
        return {new: _shifted(item, name) for new, (name, item) in zip(keys, value.items(), strict=True)}
    return value


def _shifted_character(character: str) -> str:
    if character.isspace():
        return character
    if character not in _ideographs:
        ideograph = chr(_FIRST + len(_ideographs))
        _ideographs[character], _characters[ideograph] = ideograph, character
    return _ideographs[character]


def is_shifted(character: str) -> bool:
    return character in _characters


def unshifted(text: str) -> str:
    return "".join(_characters.get(character, character) for character in text)


def trusted_mask(rendered: Rendered) -> list[bool]:
    """Whether each character is trusted."""
    return [segment.trusted for segment in rendered.segments for _ in segment.text]


def assert_no_content_is_trusted(rendered: Rendered) -> None:
    for segment in rendered.segments:
        assert segment.text
        if segment.trusted:
            assert not any(map(is_shifted, segment.text)), segment
    origins = [segment.origin for segment in rendered.segments]
    assert all(first != second for first, second in pairwise(origins))
