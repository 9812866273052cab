"""What encoding a text returns: `tokenizers.Encoding`, whose costly columns are made when they are read.

The methods are those of
https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/tokenizer/encoding.rs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NoReturn, TypeVar

from bpe_tokenizer.arguments import check_integer
from bpe_tokenizer.compiled import CompiledModel
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.options import RowOptions
from bpe_tokenizer.rows import EncodedText, RowEncoder

__all__ = ["Encoding", "Source", "absent"]

_Item = TypeVar("_Item")
_Span = tuple[int, int]
# A text, or its words.
_Text = str | Sequence[str]


def absent(name: str) -> AttributeError:
    """Return the error for a name of `tokenizers` that this interface does not have.

    Args:
        name: The name, such as `Tokenizer.train`.
    """
    return AttributeError(
        f"compat.tokenizers has no {name}: it reads, encodes and decodes; train and change tokenizers with "
        "BPETokenizer, or use tokenizers itself"
    )


@dataclass(frozen=True, eq=False)
class Source:
    """A text that was encoded, from which the costly columns are made.

    Args:
        compiled: The model.
        text: The text, or its words.
        recognises_special: Whether special tokens in the text become their ids.
    """

    compiled: CompiledModel
    text: _Text
    recognises_special: bool

    @cached_property
    def encoded(self) -> EncodedText:
        """The ids with their spans."""
        row = RowOptions(return_offsets_mapping=True, is_split_into_words=not isinstance(self.text, str))
        allowed: Literal["all", "none"] = "all" if self.recognises_special else "none"
        return RowEncoder(self.compiled, allowed, row).encode("encode", [self.text])[0]

    @cached_property
    def words(self) -> list[int]:
        """The number of the word of each id: of the given words, or of the pieces of the split pattern.

        Raises:
            OptionError: The text is whole, and so is its only piece.
        """
        if not isinstance(self.text, str):
            return self.encoded.word_ids or []
        if self.compiled.model.core.alphabet == "characters":
            raise OptionError("word_ids: this model merges characters of the whole text; it has no words")
        from bpe_tokenizer.view.visualization import visualize

        pieces = visualize(self.compiled, self.text, self.recognises_special).pieces
        return [number for number, piece in enumerate(pieces) for _ in piece.tokens]

    def spans(self, kept: Sequence[int]) -> list[_Span]:
        """Return the characters of some of the ids, trimmed as the model says."""
        offsets, blanks = self.encoded.offsets or [], self.encoded.blanks
        spans = [offsets[index] for index in kept]
        trimmer = self.compiled.offset_trimmer
        return trimmer.trim(spans, [blanks[index] for index in kept]) if trimmer and blanks else spans


@dataclass(eq=False, repr=False)
class Encoding:
    """The ids of a text, or of a pair of texts, with what belongs to each id.

    Args:
        ids: The ids.
        type_ids: The type of each.
        sequence_ids: The text of each id, 0 or 1; None for an id that was added.
        _places: The number of each id among those of its text; None for an id that was added.
        _sources: The texts.
        _overflowing: The rows with what truncation cut off; None if they are not known.

    >>> from bpe_tokenizer import BPETokenizer
    >>> from bpe_tokenizer.compat.tokenizers import Tokenizer
    >>> trained = BPETokenizer("gpt2", None).train("low low lower", 258, verbose=False)
    >>> encoding = Tokenizer.from_tokenizer(trained).encode("a low")
    >>> encoding.tokens, encoding.offsets, encoding.word_ids
    (['a', 'Ġ', 'low'], [(0, 1), (1, 2), (2, 5)], [0, 1, 1])
    """

    ids: list[int]
    type_ids: list[int]
    sequence_ids: list[int | None]
    _places: list[int | None]
    _sources: Sequence[Source]
    _overflowing: list[Encoding] | None
    attention_mask: list[int] = field(init=False)
    special_tokens_mask: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.attention_mask = [1] * len(self.ids)
        self.special_tokens_mask = [int(place is None) for place in self._places]

    @property
    def n_sequences(self) -> int:
        """The number of texts: 1, or 2 for a pair."""
        return len(self._sources)

    @property
    def overflowing(self) -> list[Encoding]:
        """The rows with what truncation cut off.

        Raises:
            OptionError: Truncation cut both texts of a pair, or left no id of the text.
        """
        if self._overflowing is None:
            raise OptionError(
                "the overflowing rows are known if truncation cuts one text, to at least one id: call "
                "enable_truncation with a larger max_length, or with strategy='only_first' or 'only_second'"
            )
        return self._overflowing

    @cached_property
    def tokens(self) -> list[str]:
        """The string of each token; of an added one with white space around it, the text that it matched."""
        compiled = self._sources[0].compiled
        strings = compiled.token_strings
        contents = {token.id: token.content for token in compiled.added.values()}
        tokens = [
            contents.get(token_id, strings[token_id]) if place is None else strings[token_id]
            for token_id, place in zip(self.ids, self._places, strict=True)
        ]
        stripping = {token.id for token in compiled.added.values() if token.lstrip or token.rstrip}
        if not stripping.isdisjoint(self.ids):
            for index, (token_id, place) in enumerate(zip(self.ids, self._places, strict=True)):
                source = self._sources[self.sequence_ids[index] or 0]
                if token_id in stripping and place is not None and isinstance(source.text, str):
                    tokens[index] = source.text[slice(*(source.encoded.offsets or [])[place])]
        return tokens

    @cached_property
    def offsets(self) -> list[_Span]:
        """The characters of the text that each id covers; (0, 0) for added ids."""
        spans = [iter(self._sources[number].spans(self._kept(number))) for number in range(self.n_sequences)]
        return [(0, 0) if number is None else next(spans[number]) for number in self.sequence_ids]

    @cached_property
    def word_ids(self) -> list[int | None]:
        """The number of the word, or of the piece, of each id; None for added ids."""
        numbered = zip(self.sequence_ids, self._places, strict=True)
        return [
            None if number is None or place is None else self._sources[number].words[place]
            for number, place in numbered
        ]

    def _kept(self, sequence: int) -> list[int]:
        numbered = zip(self.sequence_ids, self._places, strict=True)
        return [place for number, place in numbered if number == sequence and place is not None]

    def pad(
        self,
        length: int,
        *,
        direction: str = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
    ) -> None:
        """Fill the columns, and those of the overflowing rows, up to a length.

        Args:
            length: The length; a longer row stays as it is.
            direction: The side to fill, `"right"` or `"left"`.
            pad_id: The id of padding.
            pad_type_id: Its type.
            pad_token: Its string.
        """
        filler = {
            "direction": direction,
            "pad_id": pad_id,
            "pad_type_id": pad_type_id,
            "pad_token": pad_token,
        }
        for row in self._overflowing or ():
            row.pad(length, **filler)  # type: ignore[arg-type]
        missing = check_integer("length", length) - len(self)
        if missing <= 0:
            return

        def filled(column: list[_Item], value: _Item) -> list[_Item]:
            return [value] * missing + column if direction == "left" else column + [value] * missing

        self.tokens = filled(self.tokens, pad_token)
        for name in ("offsets", "word_ids"):  # made again from the columns below
            self.__dict__.pop(name, None)
        self.ids, self.type_ids = filled(self.ids, pad_id), filled(self.type_ids, pad_type_id)
        self.attention_mask = filled(self.attention_mask, 0)
        self.special_tokens_mask = filled(self.special_tokens_mask, 1)
        self.sequence_ids, self._places = filled(self.sequence_ids, None), filled(self._places, None)

    def __len__(self) -> int:
        """Return the number of ids."""
        return len(self.ids)

    def __getattr__(self, name: str) -> NoReturn:
        raise absent(f"Encoding.{name}")

    def __repr__(self) -> str:
        return (
            f"Encoding(num_tokens={len(self)}, attributes=[ids, type_ids, tokens, offsets, attention_mask, "
            "special_tokens_mask, overflowing])"
        )
