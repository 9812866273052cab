"""8. Every step of training, encoding and decoding, as data and for printing."""

from __future__ import annotations

import codecs
import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from .smallest import merge_pair
from .text import printable

if TYPE_CHECKING:
    from .naive import Merge, NaiveBPETokenizer


# Bytes, or the characters of a `CharBPETokenizer`.
Token: TypeAlias = bytes | str
Pair: TypeAlias = tuple[Token, Token]
Tokens: TypeAlias = tuple[Token, ...]
Words: TypeAlias = tuple[tuple[Tokens, int], ...]  # With the number of occurrences.
MAX_PRINTED = 8  # How many pairs and pieces of a training step are printed.


class Printed:
    """What a notebook shows as `print` does."""

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True)
class TrainingStep(Printed):
    """One merge of training.

    Args:
        number: The number of the merge, from 1.
        table: All pairs and their counts before the merge, the most frequent first; of equal counts, the
            pair that was seen first.
        pair: The pair that is merged: the first of the table.
        count: How often it occurred.
        token: The token that it becomes.
        token_id: The id of this token.
        words: The distinct pieces after the merge as tokens, each with the number of its occurrences.
    """

    number: int
    table: tuple[tuple[Pair, int], ...]
    pair: Pair
    count: int
    token: Token
    token_id: int
    words: Words

    @property
    def merge(self) -> str:
        """The merge as one line."""
        token = f"{printable(self.token)} (id {self.token_id})"
        return f"merge {self.number}: {show(self.pair, ' + ')} -> {token}, seen {self.count} times"

    def __str__(self) -> str:
        pairs = [f"{show(pair, ' + ')} {count}" for pair, count in self.table[:MAX_PRINTED]]
        pairs += [f"and {len(self.table) - MAX_PRINTED} more"] * (len(self.table) > MAX_PRINTED)
        return f"pairs: {', '.join(pairs)}\n{self.merge}\n{show_words(self.words)}"


@dataclass(frozen=True)
class TrainingTrace(Printed):
    """Every step of a training.

    Args:
        words: The distinct pieces of the text as the smallest tokens, each with how often it occurs.
        steps: The merges, in order.
    """

    words: Words
    steps: tuple[TrainingStep, ...]

    def __str__(self) -> str:
        return "\n\n".join([show_words(self.words), *map(str, self.steps)])


@dataclass(frozen=True)
class MergeStep(Printed):
    """One merge of one piece.

    Args:
        tokens: The tokens before the merge.
        candidates: The pairs of neighbours that are merges, and their ranks, lowest rank first.
        pair: The pair that is merged: the first candidate.
        rank: Its rank.
        token_id: The id of the token that it makes.
        result: The tokens after the merge.
    """

    tokens: Tokens
    candidates: dict[Pair, int]
    pair: Pair
    rank: int
    token_id: int
    result: Tokens

    def __str__(self) -> str:
        token = self.pair[0] + self.pair[1]  # type: ignore[operator]  # Both are bytes, or both strings.
        merged = f" -> {printable(token)} (id {self.token_id})"
        lines = [f"    rank {rank}: {show(pair, ' + ')}" for pair, rank in self.candidates.items()]
        return "\n".join([lines[0] + merged, *lines[1:], f"  {show(self.result)}"])


@dataclass(frozen=True)
class PieceTrace(Printed):
    """The encoding of one piece.

    Args:
        piece: The text of the piece.
        tokens: Its smallest tokens; none if the piece is a special token.
        steps: The merges, in order.
        ids: The ids of the piece.
    """

    piece: str
    tokens: Tokens
    steps: tuple[MergeStep, ...]
    ids: tuple[int, ...]

    def __str__(self) -> str:
        if not self.tokens:
            return f"  special token -> id {self.ids[0]}"
        lines = [f"  {show(self.tokens)}", *map(str, self.steps), "    no pair is a merge"]
        return "\n".join([*lines, f"  ids: {list(self.ids)}"])


@dataclass(frozen=True)
class EncodeTrace(Printed):
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
    pieces: tuple[PieceTrace, ...]

    @property
    def ids(self) -> list[int]:
        """The ids of the whole text."""
        return [token_id for piece in self.pieces for token_id in piece.ids]

    def __str__(self) -> str:
        parts = [f"text: {self.text!r}"]
        for number, piece in enumerate(self.pieces, 1):
            parts.append(f"piece {number} of {len(self.pieces)}: {piece.piece!r}\n{piece}")
        return "\n\n".join([*parts, f"ids: {self.ids}"])


@dataclass(frozen=True)
class MergeTree(Printed):
    """A token, and the two tokens that it was made from.

    Args:
        token_id: The id of the token.
        token: The token.
        left: The tree of the left part; None for a byte, a character or a special token.
        right: The tree of the right part.
    """

    token_id: int
    token: Token
    left: MergeTree | None = None
    right: MergeTree | None = None

    @property
    def parts(self) -> list[MergeTree]:
        """The trees of the two parts, if there are any."""
        return [part for part in (self.left, self.right) if part is not None]

    def origins(self) -> list[MergeTree]:
        """Return each learned token of the tree, the token itself first."""
        return [self, *(tree for part in self.parts for tree in part.origins())] if self.parts else []

    def __str__(self) -> str:
        lines = [f"{printable(self.token)} (id {self.token_id})"]
        for part, first, others in zip(self.parts, ("├── ", "└── "), ("│   ", "    "), strict=False):
            head, *rest = str(part).split("\n")
            lines += [first + head, *(others + line for line in rest)]
        return "\n".join(lines)


@dataclass(frozen=True)
class DecodeStep(Printed):
    """The decoding of one id.

    Args:
        token_id: The id.
        tree: What its token was made from; None if it is a special token.
        data: Its bytes.
        text: The text that these bytes complete; empty while a character lacks its last byte.
    """

    token_id: int
    tree: MergeTree | None
    data: bytes
    text: str

    def __str__(self) -> str:
        name = printable(self.tree.token) if self.tree else f"special token {self.data.decode()!r}"
        lines = [f"id {self.token_id}: {name}"]
        for tree in self.tree.origins() if self.tree else []:
            lines.append(f"  {printable(tree.token)} = {show([part.token for part in tree.parts], ' + ')}")
        return "\n".join([*lines, f"    bytes {self.data.hex(' ')} -> text {self.text!r}"])


@dataclass(frozen=True)
class DecodeTrace(Printed):
    """Every step of the decoding of ids.

    Args:
        ids: The ids.
        steps: The decoding of each id.
        rest: U+FFFD for an incomplete character at the end, otherwise empty.
    """

    ids: tuple[int, ...]
    steps: tuple[DecodeStep, ...]
    rest: str

    @property
    def text(self) -> str:
        """The text of all ids."""
        return "".join(step.text for step in self.steps) + self.rest

    def __str__(self) -> str:
        rest = [f"incomplete character at the end -> text {self.rest!r}"] * bool(self.rest)
        return "\n".join([f"ids: {list(self.ids)}", *map(str, self.steps), *rest, f"text: {self.text!r}"])


def show(tokens: Iterable[Token], between: str = " ") -> str:
    """Write tokens side by side."""
    return between.join(map(printable, tokens))


def show_words(words: Words) -> str:
    """Write pieces, one a line, with the number of their occurrences if any occurs more than once."""
    counted = any(times > 1 for _, times in words)
    lines = [f"{times} times  " * counted + show(tokens) for tokens, times in words[:MAX_PRINTED]]
    lines += [f"... and {len(words) - MAX_PRINTED} more pieces"] * (len(words) > MAX_PRINTED)
    return "\n".join(lines)


def name_tokens(ids: Iterable[int], vocab: Mapping[int, Token]) -> Tokens:
    """Return the tokens of ids."""
    return tuple(vocab[token_id] for token_id in ids)


def name_words(words: Iterable[tuple[Sequence[int], int]], vocab: Mapping[int, Token]) -> Words:
    """Return the tokens of pieces."""
    return tuple((name_tokens(ids, vocab), times) for ids, times in words)


def training_step(number: int, merge: Merge, vocab: Mapping[int, Token]) -> TrainingStep:
    """Describe a merge that training learned."""
    most_frequent_first = sorted(merge.counts.items(), key=lambda entry: -entry[1])
    table = tuple(((vocab[left], vocab[right]), count) for (left, right), count in most_frequent_first)
    words = name_words(merge.words, vocab)
    return TrainingStep(number, table, *table[0], vocab[merge.new_id], merge.new_id, words)


def trace_piece(tokenizer: NaiveBPETokenizer, piece: str, special_id: int | None) -> PieceTrace:
    """Encode a piece as `apply_merges` does, and record every step."""
    if special_id is not None:
        return PieceTrace(piece, (), (), (special_id,))
    vocab, ranks = tokenizer.vocab, tokenizer.ranks
    ids = tokenizer.initial_ids(piece)
    smallest = tokens = name_tokens(ids, vocab)
    steps = []
    while found := sorted({pair for pair in pairwise(ids) if pair in ranks}, key=ranks.__getitem__):
        new_id = tokenizer.merges[found[0]]
        ids = merge_pair(ids, found[0], new_id)
        candidates: dict[Pair, int] = {(vocab[a], vocab[b]): ranks[a, b] for a, b in found}
        result = name_tokens(ids, vocab)
        steps.append(MergeStep(tokens, candidates, *next(iter(candidates.items())), new_id, result))
        tokens = result
    return PieceTrace(piece, smallest, tuple(steps), tuple(ids))


def trace_decoding(tokenizer: NaiveBPETokenizer, ids: Iterable[int]) -> DecodeTrace:
    """Decode ids, and record every step."""
    ids, decoder = tuple(ids), codecs.getincrementaldecoder("utf-8")("replace")
    steps = []
    for token_id in ids:
        data = tokenizer.id_bytes(token_id)
        tree = None if token_id in tokenizer.inverse_special_tokens else tokenizer.merge_tree(token_id)
        steps.append(DecodeStep(token_id, tree, data, decoder.decode(data)))
    return DecodeTrace(ids, tuple(steps), decoder.decode(b"", final=True))
