"""A text cut into its tokens, as a value that notebooks and terminals can show."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from bpe_tokenizer import _core
from bpe_tokenizer.compiled import Snapshot
from bpe_tokenizer.errors import ArgumentTypeError
from bpe_tokenizer.view.chips import backgrounds_of, token_chips
from bpe_tokenizer.view.merging import Merging, merge_table

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

__all__ = ["Piece", "Token", "Visualization", "counted", "visualize"]

_BYTE_TOKEN = re.compile(rb"<0x([0-9A-F]{2})>")


class Token(NamedTuple):
    """A token and where it stands.

    Args:
        id: Its id.
        bytes: What it stands for, in the words of the vocabulary: SentencePiece's `▁` stays what it is.
        characters: Which characters of the text it has a byte of: the first, and the one behind the last.
        text_bytes: The same in bytes of the text's UTF-8.
        is_added: It is an added token, which is found in the text and not merged.
    """

    id: int
    bytes: bytes
    characters: tuple[int, int]
    text_bytes: tuple[int, int]
    is_added: bool = False


class Piece(NamedTuple):
    """A piece of the text, and how it became tokens.

    Args:
        bytes: The piece, normalised.
        tokens: Its tokens.
        merging: The merges; None for an added token.
    """

    bytes: bytes
    tokens: tuple[Token, ...]
    merging: Merging | None


@dataclass(frozen=True, repr=False)
class Visualization:
    """A text cut into its tokens, to look at.

    The last expression of a notebook's cell shows itself: coloured tokens, with ids, bytes and places under
    the pointer, and the merges below. `show()` and rich's `print` show the tokens in colour in a terminal.

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
        """The ids, as `encode` gives them."""
        return [token.id for token in self.tokens]

    @property
    def counts(self) -> str:
        """How many tokens, characters and bytes there are, as a line for people."""
        tokens, size = len(self.tokens), _size(self.text)
        line = f"{counted(tokens, 'token')}, {counted(len(self.text), 'character')}, {counted(size, 'byte')}"
        return f"{line}; {size / tokens:.2f} bytes per token" if tokens else line

    def token_bytes(self, token_id: int) -> bytes:
        """Return what a token stands for, as in `Token`."""
        return _token_bytes(self._core, token_id)

    def show(self, console: Console | None = None) -> None:
        """Print the tokens: in colour where there is colour, else with `|` between them.

        Args:
            console: Where to print; None is standard output.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> tokenizer.visualize("lower").show()
        low|e|r
        """
        if console is None:
            from rich.console import Console

            console = Console(highlight=False)
        # soft_wrap: a long line is broken by the terminal, never in a pipe.
        console.print(self, soft_wrap=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Show the tokens as chips."""
        yield token_chips((token.bytes for token in self.tokens), backgrounds_of(console))

    def __str__(self) -> str:
        """Return the printable text of the tokens, with `|` between them."""
        return token_chips((token.bytes for token in self.tokens), backgrounds=()).plain

    def __repr__(self) -> str:
        """Show the counts."""
        return f"<{type(self).__name__}: {self.counts}>"

    def _repr_html_(self) -> str:
        from bpe_tokenizer.view.fragment import STYLE, fragment

        return f"<style>{STYLE}</style>{fragment(self)}"


def visualize(
    snapshot: Snapshot,
    text: str,
    special: bool | Collection[str] = False,
    around: tuple[Sequence[int], Sequence[int]] = ((), ()),
) -> Visualization:
    """Cut a text into its tokens, to look at.

    Args:
        snapshot: What encodes.
        text: The text.
        special: Which special tokens are recognised: none (False), all (True), or these.
        around: Ids before and after those of the text.

    Raises:
        ArgumentTypeError: The text is no `str`.
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"visualize expects a str, not {type(text).__name__}")
    core = snapshot.model.core
    ids, characters = snapshot.encoder.encode_with_offsets(text, special, "char", False)
    _, text_bytes = snapshot.encoder.encode_with_offsets(text, special, "byte", False)
    added = {token.id for token in snapshot.added.values()}
    tokens = [
        Token(token_id, _token_bytes(core, token_id), place, byte_place, token_id in added)
        for token_id, place, byte_place in zip(ids, characters, text_bytes, strict=True)
    ]
    pieces = tuple(_pieces(snapshot, snapshot.encoder.pieces(text, special), tokens))
    ends = (0, 0), (len(text), _size(text))
    before, after = (
        tuple(_alone(Token(i, _token_bytes(core, i), (c, c), (b, b), True)) for i in each)
        for each, (c, b) in zip(around, ends, strict=True)
    )
    return Visualization(text, before + pieces + after, core)


def _pieces(snapshot: Snapshot, pieces: Sequence[bytes], tokens: Sequence[Token]) -> Iterator[Piece]:
    """Say which tokens are of which piece: an added token is a piece of its own, which is not merged."""
    table = merge_table(snapshot.model.core)
    contents = {token.id: token.content.encode() for token in snapshot.added.values()}
    known: dict[bytes, Merging] = {}
    at = 0
    for piece in pieces:
        merging = known.get(piece) or known.setdefault(piece, table.merge(piece))
        end = at + len(merging.ids)
        ids = tuple(token.id for token in tokens[at:end])
        is_merged = ids == merging.ids
        if not merging.ids and at < len(tokens):
            # The model drops every character of the piece, unless it is an added token.
            is_merged = tokens[at].id not in contents or contents[tokens[at].id] not in piece
        if not is_merged:
            yield _alone(tokens[at], piece)
            at += 1
        else:
            yield Piece(piece, tuple(tokens[at:end]), merging)
            at = end


def _alone(token: Token, piece: bytes | None = None) -> Piece:
    return Piece(token.bytes if piece is None else piece, (token,), None)


def _token_bytes(core: _core.Model, token_id: int) -> bytes:
    token = core.token(token_id) or b""
    byte = _BYTE_TOKEN.fullmatch(token) if core.byte_fallback else None
    return bytes.fromhex(byte[1].decode()) if byte else token


def _size(text: str) -> int:
    # A lone surrogate is encoded as U+FFFD, which is as long.
    return len(text.encode("utf-8", errors="surrogatepass"))


def counted(count: int, noun: str) -> str:
    """Return a number and what it counts: `1 merge`, `2 merges`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
