"""Every step of encoding or decoding, for printing."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Generic

from .merging import lowest_ranked_pair, origins
from .pairs import Pair, Token, merge_pair
from .unicode import printable

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

__all__ = [
    "DecodeStep",
    "DecodeTrace",
    "EncodeTrace",
    "MergeStep",
    "PieceTrace",
    "trace_decoding",
    "trace_encoding",
]


@dataclass(frozen=True)
class MergeStep(Generic[Token]):
    """One merge of one piece.

    Args:
        tokens: The tokens before the merge.
        candidates: The pairs of neighbours that are merges, and their ranks, lowest rank first.
        pair: The pair that is merged: the first candidate.
        rank: Its rank.
        token_id: The id of the token that it makes.
        result: The tokens after the merge.
    """

    tokens: tuple[Token, ...]
    candidates: dict[Pair[Token], int]
    pair: Pair[Token]
    rank: int
    token_id: int
    result: tuple[Token, ...]

    def __str__(self) -> str:
        merged = f" -> {printable(self.pair[0] + self.pair[1])} (id {self.token_id})"
        candidates = "".join(
            f"    rank {rank}: {plus(pair)}{merged if pair == self.pair else ''}\n"
            for pair, rank in self.candidates.items()
        )
        return f"{candidates}  {row(self.result)}"


@dataclass(frozen=True)
class PieceTrace(Generic[Token]):
    """The encoding of one piece.

    Args:
        piece: The text of the piece.
        tokens: Its smallest tokens; none if the piece is a special token.
        steps: The merges, in order.
        ids: The ids of the piece.
    """

    piece: str
    tokens: tuple[Token, ...]
    steps: tuple[MergeStep[Token], ...]
    ids: tuple[int, ...]

    def __str__(self) -> str:
        if not self.tokens:
            return f"  special token -> id {self.ids[0]}"
        steps = "".join(f"{step}\n" for step in self.steps)
        return f"  {row(self.tokens)}\n{steps}    no pair is a merge\n  ids: {list(self.ids)}"


@dataclass(frozen=True)
class EncodeTrace(Generic[Token]):
    """Every step of the encoding of a text.

    In print, each piece shows its tokens, and below them the possible merges, lowest rank first. The first of
    them is applied, and so on:

        piece 2 of 2: 'lowest'
          'l' 'o' 'w' 'e' 's' 't'
            rank 0: 'e' + 's' -> 'es' (id 256)
            rank 2: 'l' + 'o'
          'l' 'o' 'w' 'es' 't'
            rank 1: 'es' + 't' -> 'est' (id 257)
            rank 2: 'l' + 'o'
          ...

    Args:
        text: The text.
        pieces: The encoding of each piece, in order.
    """

    text: str
    pieces: tuple[PieceTrace[Token], ...]

    @property
    def ids(self) -> list[int]:
        """The ids of the whole text."""
        return [token_id for piece in self.pieces for token_id in piece.ids]

    def __str__(self) -> str:
        pieces = "".join(
            f"piece {number} of {len(self.pieces)}: {piece.piece!r}\n{piece}\n\n"
            for number, piece in enumerate(self.pieces, 1)
        )
        return f"text: {self.text!r}\n\n{pieces}ids: {self.ids}"


@dataclass(frozen=True)
class DecodeStep(Generic[Token]):
    """The decoding of one id.

    Args:
        token_id: The id.
        token: Its token; None if it is a special token.
        origin: Each learned token in it with the two tokens that it was made from, the token itself first.
        data: Its bytes.
        text: The text that these bytes complete; empty while a character lacks its last byte.
    """

    token_id: int
    token: Token | None
    origin: tuple[tuple[Token, Pair[Token]], ...]
    data: bytes
    text: str

    def __str__(self) -> str:
        name = f"special token {self.data.decode()!r}" if self.token is None else printable(self.token)
        origin = "".join(f"  {printable(token)} = {plus(pair)}\n" for token, pair in self.origin)
        return f"id {self.token_id}: {name}\n{origin}    bytes {self.data.hex(' ')} -> text {self.text!r}"


@dataclass(frozen=True)
class DecodeTrace(Generic[Token]):
    """Every step of the decoding of ids.

    Args:
        ids: The ids.
        steps: The decoding of each id.
        rest: U+FFFD for an incomplete character at the end, otherwise empty.
    """

    ids: tuple[int, ...]
    steps: tuple[DecodeStep[Token], ...]
    rest: str

    @property
    def text(self) -> str:
        """The text of all ids."""
        return "".join(step.text for step in self.steps) + self.rest

    def __str__(self) -> str:
        steps = "".join(f"{step}\n" for step in self.steps)
        rest = f"incomplete character at the end -> text {self.rest!r}\n" if self.rest else ""
        return f"ids: {list(self.ids)}\n{steps}{rest}text: {self.text!r}"


def row(tokens: Iterable[bytes | str]) -> str:
    """Write tokens side by side."""
    return " ".join(map(printable, tokens))


def plus(pair: tuple[bytes | str, bytes | str]) -> str:
    """Write a pair as a sum."""
    return " + ".join(map(printable, pair))


def trace_encoding(
    tokenizer: Tokenizer[Token], text: str, pieces: Iterable[tuple[str, int | None]]
) -> EncodeTrace[Token]:
    """Encode pieces and record every step.

    Args:
        tokenizer: The tokenizer.
        text: The text.
        pieces: Its pieces, each with its id if it is a special token.
    """
    return EncodeTrace(
        text,
        tuple(
            trace_piece(tokenizer, piece) if special_id is None else PieceTrace(piece, (), (), (special_id,))
            for piece, special_id in pieces
        ),
    )


def trace_piece(tokenizer: Tokenizer[Token], piece: str) -> PieceTrace[Token]:
    """Encode a piece as `merge_all` does, and record every step."""
    ranks = tokenizer.ranks
    smallest = tokens = tuple(tokenizer.initial_tokens(piece))
    steps = []
    while (pair := lowest_ranked_pair(tokens, ranks)) is not None:
        candidates = sorted({other for other in pairwise(tokens) if other in ranks}, key=ranks.__getitem__)
        result = tuple(merge_pair(tokens, pair))
        steps.append(
            MergeStep(
                tokens,
                {other: ranks[other] for other in candidates},
                pair,
                ranks[pair],
                tokenizer.ids[pair[0] + pair[1]],
                result,
            )
        )
        tokens = result
    return PieceTrace(piece, smallest, tuple(steps), tuple(tokenizer.encode_piece(piece)))


def trace_decoding(tokenizer: Tokenizer[Token], ids: Iterable[int]) -> DecodeTrace[Token]:
    """Decode ids and record every step."""
    ids = tuple(ids)
    made = origins(tokenizer.merges)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    steps = []
    for token_id in ids:
        data = tokenizer.id_bytes(token_id)
        token = tokenizer.vocab.get(token_id)
        origin = () if token is None else tuple(trace_origin(token, made))
        steps.append(DecodeStep(token_id, token, origin, data, decoder.decode(data)))
    return DecodeTrace(ids, tuple(steps), decoder.decode(b"", final=True))


def trace_origin(token: Token, made: Mapping[Token, Pair[Token]]) -> Iterator[tuple[Token, Pair[Token]]]:
    """Yield each learned token in a token with its two parts, the token itself first.

    >>> list(trace_origin("low", {"lo": ("l", "o"), "low": ("lo", "w")}))
    [('low', ('lo', 'w')), ('lo', ('l', 'o'))]
    """
    if token in made:
        yield token, made[token]
        for part in made[token]:
            yield from trace_origin(part, made)
