"""The tokens of a text with their spans and merges, for notebooks, terminals and pages."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from bpe_tokenizer.console import count_noun
from bpe_tokenizer.display.chips import COLOURS, chip, direction
from bpe_tokenizer.display.chips import STYLE as CHIPS_STYLE
from bpe_tokenizer.display.text import printable
from bpe_tokenizer.errors import ArgumentTypeError
from bpe_tokenizer.view.terminal import coloured_tokens, tokens_for_console

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from bpe_tokenizer import _core
    from bpe_tokenizer.compiled import CompiledModel

__all__ = ["STYLE", "Merge", "Merging", "Piece", "Token", "Visualization", "visualization_html", "visualize"]

# The style sheet that `visualization_html` needs. It applies to nothing else.
STYLE = CHIPS_STYLE + resources.files(__package__).joinpath("tokens.css").read_text(encoding="utf-8")

# Longer pieces show no merges: each merge is a line with all symbols, so the HTML grows quadratically.
_MAX_STEP_SYMBOLS = 64
# Symbols in the merges of all pieces together.
_MAX_SYMBOLS = 20_000
# Bytes of a token that its label shows.
_MAX_LABEL = 64
# Tokens that a notebook shows: it keeps its outputs.
_NOTEBOOK_TOKENS = 1000

_BYTE_TOKEN = re.compile(rb"<0x([0-9A-F]{2})>")


class Token(NamedTuple):
    """A token and its spans in the text.

    Args:
        id: The id.
        bytes: The token as the vocabulary writes it; SentencePiece's `▁` stays.
        characters: Start and end of the characters that the token covers, whole or in part.
        text_bytes: Start and end of its bytes in the text's UTF-8.
        is_added: Whether it is an added token, which is found in the text instead of merged.
    """

    id: int
    bytes: bytes
    characters: tuple[int, int]
    text_bytes: tuple[int, int]
    is_added: bool = False


class Merge(NamedTuple):
    """One merge of two neighbours.

    Args:
        rank: Index of the merge in the model's list. The lowest possible rank merges first.
        left: Position of the left symbol. Positions count the piece's initial symbols, from 0.
        right: Position of the right symbol.
        token_id: Id of the token that replaces both.
    """

    rank: int
    left: int
    right: int
    token_id: int


class Merging(NamedTuple):
    """How a piece becomes tokens.

    Args:
        symbols: The initial ids; None for a symbol without a token.
        merges: The merges, in order.
        ids: The ids that the encoder returns.
        is_whole: Whether the encoder takes the piece as one token without merging (`ignore_merges`). The
            merges then show what merging would do, which may lead to other ids.
    """

    symbols: tuple[int | None, ...]
    merges: tuple[Merge, ...]
    ids: tuple[int, ...]
    is_whole: bool = False

    def rows(self) -> Iterator[dict[int, int | None]]:
        """Yield the symbols before the first merge and after each merge: ids by position.

        Example:
            >>> list(Merging((97, 98), (Merge(0, 0, 1, 256),), (256,)).rows())
            [{0: 97, 1: 98}, {0: 256}]
        """
        row = dict(enumerate(self.symbols))
        yield dict(row)
        for merge in self.merges:
            row[merge.left] = merge.token_id
            del row[merge.right]
            yield dict(row)


class Piece(NamedTuple):
    """A piece of the text and its tokens.

    Args:
        bytes: The piece, normalised.
        tokens: Its tokens.
        merging: Its merges; None for an added token.
    """

    bytes: bytes
    tokens: tuple[Token, ...]
    merging: Merging | None


@dataclass(frozen=True, repr=False)
class Visualization:
    """The tokens of a text, to look at.

    A notebook shows coloured tokens with ids, bytes and spans under the pointer, and the merges below them.
    `show()` and rich's `print` show coloured tokens in a terminal.

    Args:
        text: The text.
        pieces: Its pieces, with their tokens.
    """

    text: str
    pieces: tuple[Piece, ...]
    _core: _core.Model = field(compare=False)

    @property
    def tokens(self) -> list[Token]:
        """The tokens, in order."""
        return [token for piece in self.pieces for token in piece.tokens]

    @property
    def ids(self) -> list[int]:
        """The ids that `encode` returns."""
        return [token.id for token in self.tokens]

    @property
    def counts(self) -> str:
        """The numbers of tokens, characters and bytes as one line of text."""
        tokens, size = len(self.tokens), _utf8_length(self.text)
        line = ", ".join(
            [count_noun(tokens, "token"), count_noun(len(self.text), "character"), count_noun(size, "byte")]
        )
        return f"{line}; {size / tokens:.2f} bytes per token" if tokens else line

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of a token, as in `Token`."""
        return _token_bytes(self._core, token_id)

    def show(self, console: Console | None = None) -> None:
        """Print the tokens in colour, or with `|` between them on a console without colours.

        Args:
            console: The rich console to print on; None prints to standard output.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> tokenizer.visualize("lower").show()
        low|e|r
        """
        if console is None:
            from bpe_tokenizer.console import new_console

            console = new_console(highlight=False)
        # soft_wrap: the lines are as wide as they should be.
        console.print(self, soft_wrap=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Show coloured tokens."""
        text = tokens_for_console((token.bytes for token in self.tokens), console, options.max_width)
        text.no_wrap, text.overflow = True, "ignore"
        yield text

    def __str__(self) -> str:
        """Return the printable text of the tokens, with `|` between them."""
        return coloured_tokens((token.bytes for token in self.tokens), backgrounds=()).plain

    def __repr__(self) -> str:
        """Show the counts."""
        return f"<{type(self).__name__}: {self.counts}>"

    def _repr_html_(self) -> str:
        return f"<style>{STYLE}</style>{visualization_html(self, max_tokens=_NOTEBOOK_TOKENS)}"


def visualize(
    compiled: CompiledModel,
    text: str,
    special: bool | Collection[str] = False,
    prefix_suffix_ids: tuple[Sequence[int], Sequence[int]] = ((), ()),
) -> Visualization:
    """Cut a text into its tokens, to look at.

    Args:
        compiled: The model that encodes.
        text: The text.
        special: The special tokens to recognise: none (False), all (True), or a collection.
        prefix_suffix_ids: Ids to add at the start and at the end of the text.

    Raises:
        ArgumentTypeError: The text is not a `str`.
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"visualize expects a str, not {type(text).__name__}")
    core, encoder = compiled.model.core, compiled.encoder
    ids, characters = encoder.encode_with_offsets(text, special, "char", False)
    _, text_bytes = encoder.encode_with_offsets(text, special, "byte", False)
    added = {token.id for token in compiled.added.values()}
    tokens = [
        Token(token_id, _token_bytes(core, token_id), character_span, byte_span, token_id in added)
        for token_id, character_span, byte_span in zip(ids, characters, text_bytes, strict=True)
    ]
    pieces = tuple(_pieces(compiled, encoder.pieces(text, special), tokens))
    ends = (0, 0), (len(text), _utf8_length(text))
    prefix, suffix = (
        tuple(_added_piece(Token(i, _token_bytes(core, i), (c, c), (b, b), True)) for i in ids)
        for ids, (c, b) in zip(prefix_suffix_ids, ends, strict=True)
    )
    return Visualization(text, prefix + pieces + suffix, core)


def _pieces(compiled: CompiledModel, pieces: Sequence[bytes], tokens: Sequence[Token]) -> Iterator[Piece]:
    """Assign tokens to pieces. An added token is a piece without merges."""
    contents = {token.id: token.content.encode() for token in compiled.added.values()}
    mergings: dict[bytes, Merging] = {}
    at = 0
    for piece in pieces:
        merging = mergings.get(piece) or mergings.setdefault(piece, _merging(compiled.encoder, piece))
        end = at + len(merging.ids)
        is_merged = tuple(token.id for token in tokens[at:end]) == merging.ids
        if is_merged and len(merging.ids) > 1 and tokens[at].is_added:
            # An added token with the white space that it strips covers all of the piece.
            begin, stop = tokens[at].text_bytes
            is_merged = stop - begin < len(piece)
        if not merging.ids and at < len(tokens):
            # The model drops every character of the piece, unless the piece is an added token.
            is_merged = tokens[at].id not in contents or contents[tokens[at].id] not in piece
        if is_merged:
            yield Piece(piece, tuple(tokens[at:end]), merging)
            at = end
        else:
            yield _added_piece(tokens[at], piece)
            at += 1


def _merging(encoder: _core.Encoder, piece: bytes) -> Merging:
    trace = encoder.trace_merges(piece)
    merges = tuple(Merge(step.rank, step.left, step.right, step.token_id) for step in trace.steps)
    return Merging(tuple(trace.symbols), merges, tuple(trace.ids), trace.is_whole)


def _added_piece(token: Token, piece: bytes | None = None) -> Piece:
    return Piece(token.bytes if piece is None else piece, (token,), None)


def _token_bytes(core: _core.Model, token_id: int) -> bytes:
    token = core.token(token_id) or b""
    byte = _BYTE_TOKEN.fullmatch(token) if core.byte_fallback else None
    return bytes.fromhex(byte[1].decode()) if byte else token


def _utf8_length(text: str) -> int:
    # The encoder replaces a lone surrogate by U+FFFD, which has the same length.
    return len(text.encode("utf-8", errors="surrogatepass"))


# The page of a notebook: static HTML without a script, all text escaped, its size bounded


def visualization_html(shown: Visualization, max_tokens: int | None = None) -> str:
    """Return coloured tokens, and the merges of each piece below them, as HTML without its `STYLE`.

    Each token has a label with its id, bytes and spans for the pointer, the keyboard focus and screen
    readers. `data-piece` links a token to the merges of its piece.

    Args:
        shown: The tokens.
        max_tokens: How many tokens to show; None for all. A note tells how many follow.

    Example:
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> html = visualization_html(tokenizer.visualize("<b>"))
        >>> "<b>" in html, "&lt;" in html
        (False, True)
    """
    # Equal pieces share one list of merges.
    numbers: dict[bytes, int] = {}
    count = 0
    for piece in shown.pieces:
        if max_tokens is not None and count >= max_tokens:
            break
        count += len(piece.tokens)
        if piece.merging is not None:
            numbers.setdefault(piece.bytes, len(numbers))
    tokens = itertools.islice(_tokens(shown, numbers), max_tokens)
    rest = len(shown.tokens) - (max_tokens or len(shown.tokens))
    note = f'<p class="bpe-note">and {count_noun(rest, "more token")}</p>' if rest > 0 else ""
    return (
        f'<div class="bpe"><p class="bpe-counts">{escape(shown.counts)}</p>'
        f'<div class="bpe-tokens" role="group" aria-label="Tokens" dir="{direction(shown.text)}">'
        f"{''.join(tokens)}</div>{note}"
        f'<details class="bpe-merges"><summary>Merges of {count_noun(len(numbers), "piece")}</summary>'
        f"{''.join(_merges(shown, numbers))}</details></div>"
    )


def _tokens(shown: Visualization, numbers: dict[bytes, int]) -> Iterator[str]:
    index = 0
    count = len(shown.tokens)
    for piece in shown.pieces:
        for position, token in enumerate(piece.tokens):
            number = ""
            if piece.merging is not None and piece.bytes in numbers:
                number = f' data-piece="{numbers[piece.bytes]}"'
            kind = f"bpe-{index % COLOURS}{' bpe-added' * token.is_added}{' bpe-first' * (not position)}"
            label = escape(f"Token {index + 1} of {count}: {_describe(token)}")
            shown_token = chip(token.bytes, kind, f'role="img" tabindex="0"{number} aria-label="{label}"')
            # A line feed ends the line, as in the text.
            yield f"{shown_token}<br>" if b"\n" in token.bytes else shown_token
            index += 1


def _describe(token: Token) -> str:
    kind = "\nadded token, found before merging" if token.is_added else ""
    data = token.bytes[:_MAX_LABEL].hex(" ") or "none"
    more = f" and {len(token.bytes) - _MAX_LABEL} more" if len(token.bytes) > _MAX_LABEL else ""
    return (
        f"{_shortened(token.bytes)}\nid {token.id}\nbytes {data}{more}\n"
        f"{_span('character', token.characters)}, {_span('byte', token.text_bytes)} of the text{kind}"
    )


def _span(noun: str, span: tuple[int, int]) -> str:
    """Name the characters or bytes of a span, counted from 0; an empty span lies between two."""
    start, end = span
    if start == end:
        return f"before {noun} {start}"
    return f"{noun} {start}" if end - start == 1 else f"{noun}s {start} to {end - 1}"


def _quoted(token: bytes) -> str:
    return f"“{printable(token)}”"


def _merges(shown: Visualization, numbers: dict[bytes, int]) -> Iterator[str]:
    done: set[bytes] = set()
    symbols = 0
    for piece in shown.pieces:
        if piece.merging is None or piece.bytes in done or piece.bytes not in numbers:
            continue
        size = len(piece.merging.symbols)
        if symbols and symbols + size * size > _MAX_SYMBOLS:
            yield f'<p class="bpe-note">and {count_noun(len(numbers) - len(done), "more piece")}</p>'
            return
        symbols += size * size if size <= _MAX_STEP_SYMBOLS else 0
        done.add(piece.bytes)
        heading = f"Piece {escape(_shortened(piece.bytes))}"
        body = _steps(shown, piece, piece.merging)
        yield f'<section data-piece="{numbers[piece.bytes]}"><h4>{heading}</h4>{body}</section>'


def _shortened(piece: bytes) -> str:
    limit = 4 * _MAX_STEP_SYMBOLS
    return _quoted(piece) if len(piece) <= limit else f"{_quoted(piece[:limit])}…"


def _steps(shown: Visualization, piece: Piece, merging: Merging) -> str:
    note = f"<p>{escape(_note(piece, merging))}</p>"
    if len(merging.symbols) > _MAX_STEP_SYMBOLS:
        return note
    rows = merging.rows()
    lines = [f"<li>Merging begins: {_row(shown, next(rows), None)}</li>"]
    for merge, before, row in zip(merging.merges, merging.rows(), rows, strict=False):
        left, right = (_symbol(shown, before[position], "i") for position in (merge.left, merge.right))
        lines.append(
            f"<li>rank {merge.rank:,}: {left} + {right} → {_symbol(shown, merge.token_id, 'b')}, "
            f"id {merge.token_id}<br>{_row(shown, row, merge)}</li>"
        )
    return f'{note}<ol start="0">{"".join(lines)}</ol>'


def _note(piece: Piece, merging: Merging) -> str:
    symbols, merges = count_noun(len(merging.symbols), "symbol"), count_noun(len(merging.merges), "merge")
    if len(merging.symbols) > _MAX_STEP_SYMBOLS:
        return (
            f"This piece is too long to be stepped through: {symbols}, {merges}. "
            f"They are shown for pieces of at most {_MAX_STEP_SYMBOLS} symbols."
        )
    if merging.is_whole:
        return "The whole piece is a token, so the encoder skips merging. Merging would do this:"
    return f"{symbols}, {merges}, {count_noun(len(piece.tokens), 'token')}."


def _row(shown: Visualization, row: dict[int, int | None], merge: Merge | None) -> str:
    made = merge.left if merge is not None else None
    return " ".join(
        _symbol(shown, token_id, "b" if position == made else "i") for position, token_id in row.items()
    )


def _symbol(shown: Visualization, token_id: int | None, tag: str) -> str:
    text = "(no token)" if token_id is None else printable(shown.token_bytes(token_id))
    return f"<{tag}>{escape(text)}</{tag}>"
