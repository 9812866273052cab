"""Offsets without white space: what `trim_offsets` of a tokenizer.json does to them.

The rule is `process_offsets` of Hugging Face `tokenizers`:
https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/pre_tokenizers/byte_level.rs
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

__all__ = ["Blank", "OffsetTrimmer"]

# The white space at the beginning and at the end of a token.
Blank: TypeAlias = tuple[str, str]
_Span: TypeAlias = tuple[int, int]

# What Unicode calls white space (`str.isspace` has four more), and GPT-2's printable character of the space.
_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000\u0120"
_BLANKS += "".join(map(chr, range(0x2000, 0x200B)))


def _blank(token: str) -> Blank:
    return token[: len(token) - len(token.lstrip(_BLANKS))], token[len(token.rstrip(_BLANKS)) :]


def _utf8_length(blank: str) -> int:
    return len(blank.replace("\u0120", " ").encode())


class OffsetTrimmer:
    """Trims the white space from the offsets of a tokenizer.

    Args:
        token_strings: The token string of each id.
        stripping: The ids of added tokens that match white space around their text.
        trims: `PostProcessor.trims`.
    """

    def __init__(
        self, token_strings: Mapping[int, str], stripping: Collection[int], trims: Sequence[bool]
    ) -> None:
        found = ((token_id, _blank(token)) for token_id, token in token_strings.items())
        self._blanks = {token_id: blank for token_id, blank in found if any(blank)}
        self._stripping = frozenset(stripping)
        self._trims = trims

    def blanks(self, text: str, ids: Sequence[int], spans: Sequence[_Span]) -> list[Blank | None]:
        """Return the white space around each token of a text, whose spans are in characters."""
        blanks = list(map(self._blanks.get, ids))
        if not self._stripping.isdisjoint(ids):
            for index, token_id in enumerate(ids):
                if token_id in self._stripping:
                    blanks[index] = _blank(text[slice(*spans[index])])
        return blanks

    def trim(
        self, spans: Sequence[_Span], blanks: Sequence[Blank | None], in_bytes: bool = False
    ) -> list[_Span]:
        """Return the spans of a row without the white space around its tokens.

        Args:
            spans: The span of each id.
            blanks: The white space around each token.
            in_bytes: Whether the spans are in bytes instead of characters.
        """
        trimmed, width = list(spans), _utf8_length if in_bytes else len
        for keeps_prefix_space in self._trims:
            for index, blank in enumerate(blanks):
                if blank is None:
                    continue
                (start, end), (before, after) = trimmed[index], blank
                if not (keeps_prefix_space and len(before) == 1 and (index == 0 or start == 0)):
                    start = min(start + width(before), end)
                if end >= width(after):
                    end = max(end - width(after), start)
                trimmed[index] = start, end
        return trimmed
