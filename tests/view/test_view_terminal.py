"""Tokens as coloured text for a terminal."""

from __future__ import annotations

import io
import itertools
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.panel import Panel

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.display.text import printable
from bpe_tokenizer.view.terminal import coloured_tokens, print_tokens


def _printed(tokens: list[bytes], **options: object) -> str:
    out = io.StringIO()
    print_tokens(tokens, Console(file=out, **options))  # type: ignore[arg-type]
    return out.getvalue()


@given(st.binary())
def test_whatever_the_bytes_only_printable_characters_come_out(token: bytes) -> None:
    assert printable(token).isprintable()


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_printing_text_comes_out_as_it_is(text: str) -> None:
    assert printable(text.encode()) == text


def test_what_does_not_print_is_escaped() -> None:
    assert printable(b"\x1b[31m\t\x00") == r"\x1b[31m\t\x00"
    assert printable("\u200b\u202e".encode()) == r"\u200b\u202e"
    assert printable("🙂".encode()[:2]) == r"\xf0\x9f"
    assert printable("é".encode()[1:] + b"a") == r"\xa9a"


@given(st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1)))
def test_the_result_holds_the_text_of_every_token(tokens: list[str]) -> None:
    shown = coloured_tokens([token.encode() for token in tokens])
    assert shown.plain == "".join(tokens)
    assert [shown.plain[span.start : span.end] for span in shown.spans] == tokens


@pytest.mark.parametrize("colors", ["standard", "256", "truecolor"])
def test_neighbours_differ_in_colour(colors: str) -> None:
    shown = _printed([b"x"] * 20, force_terminal=True, color_system=colors)
    styles = re.findall(r"\x1b\[([\d;]+)mx", shown)
    assert len(styles) == 20
    assert all(one != next_ for one, next_ in itertools.pairwise(styles))


def test_a_line_ends_after_a_token_with_a_line_feed() -> None:
    tokens = [b"a", b"\n", b"b", b"c", b"\n\n"]
    assert coloured_tokens(tokens).plain == "a\\n\nbc\\n\\n"
    assert coloured_tokens(tokens, backgrounds=()).plain == "a|\\n\nb|c|\\n\\n"


def test_a_pipe_and_a_terminal_without_colours_get_boundaries() -> None:
    assert _printed([b"to", b"ken"], force_terminal=False) == "to|ken\n"
    assert _printed([b"to", b"ken"], force_terminal=True, no_color=True) == "to|ken\n"


def test_a_terminal_shows_a_character_that_tokens_share_once() -> None:
    def shown(*tokens: bytes, **options: object) -> str:
        return coloured_tokens(tokens, backgrounds=(), **options).plain  # type: ignore[arg-type]

    assert shown(b"na", b"\xc3", b"\xafve", width=80) == "na|ï|·ve"
    assert shown(b" \xe6", b"\x9d", b"\xb1\xe4\xba", b"\xac", b"!", width=80) == " 東|·|·京|·|!"
    assert shown("🙂".encode()[:2], "🙂".encode()[2:] + b"\n", width=80) == "🙂|·\\n"
    assert shown(b"na", b"\xc3", width=80) == "na|\\xc3"  # no character
    assert shown(b"na", b"\xc3", b"\xafve") == "na|\\xc3|\\xafve"  # for programs: every byte


def test_a_long_line_is_not_broken_in_a_pipe_and_markup_means_nothing() -> None:
    assert _printed([b"[bold]", b"x " * 200 + b"x"], force_terminal=False) == "[bold]|" + "x " * 200 + "x\n"


def _lines(tokens: list[bytes], width: int, **options: object) -> list[str]:
    """Return the lines on a terminal without the codes of colours."""
    shown = _printed(tokens, force_terminal=True, width=width, **options)
    return re.sub(r"\x1b\[[\d;]*m", "", shown).removesuffix("\n").split("\n")


WORDS = st.text(st.characters(categories=["L", "N", "M", "S"]), min_size=1, max_size=12)


@given(st.lists(WORDS, min_size=1, max_size=12), st.sampled_from([1, 2, 5, 20, 80]), st.booleans())
def test_a_terminal_breaks_lines_between_tokens(tokens: list[str], width: int, no_color: bool) -> None:
    marked = "|" if no_color else ""
    lines = _lines([token.encode() for token in tokens], width, color_system="truecolor", no_color=no_color)
    plain = [line.replace("\u2068", "").replace("\u2069", "") for line in lines]
    shown = [
        "\u25cc" * (unicodedata.category(printable(token.encode())[0]) in ("Mn", "Me"))
        + printable(token.encode())
        for token in tokens
    ]
    assert "".join(plain) == marked.join(shown)
    # Only a single character, and the mark after it, may be wider than the terminal.
    for line in plain:
        assert cell_len(line) <= max(width, 3)
    if all(cell_len(token) + len(marked) <= width for token in shown):
        begins = set(itertools.accumulate((len(token) + len(marked) for token in shown), initial=0))
        at = 0
        for line in plain:
            assert at in begins
            at += len(line)


def test_a_narrow_terminal_wraps_words_cjk_and_emoji() -> None:
    tokens = [b"tokens", b" of", b" twenty", b" columns", "日本語".encode(), "🙂🙂".encode(), b"!"]
    assert _lines(tokens, 20, color_system="truecolor") == ["tokens of twenty", " columns日本語🙂🙂!"]
    assert _lines(tokens, 20, color_system=None) == ["tokens| of| twenty|", " columns|日本語|", "🙂🙂|!"]


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    shown = _printed([b"to", b"ken"], force_terminal=True, width=20)
    assert shown == "to|ken\n"


def test_right_to_left_tokens_keep_their_order_on_a_terminal() -> None:
    """Each token is an isolate, so a terminal with the bidirectional algorithm does not reorder tokens."""
    tokens = ["שלום".encode(), " עולם".encode(), b" abc", b" 12", "مرحبا".encode()]
    assert _lines(tokens, 80, color_system="truecolor") == [
        "\u2068שלום\u2069\u2068 עולם\u2069 abc 12\u2068مرحبا\u2069"
    ]
    # A pipe gets the characters of the text alone.
    assert _printed(tokens, force_terminal=False) == "שלום| עולם| abc| 12|مرحبا\n"


def test_a_mark_is_not_drawn_on_the_previous_token() -> None:
    tokens = [b"e", "\u0301".encode(), b"x"]
    assert _lines(tokens, 80, color_system="truecolor") == ["e\u25cc\u0301x"]
    assert _printed(tokens, force_terminal=False) == "e|\u0301|x\n"


def test_sixteen_colours_have_black_text_on_a_background() -> None:
    shown = _printed([b"a", b"b", b"c"], force_terminal=True, color_system="standard")
    assert re.findall(r"\x1b\[30;(\d+)m", shown) == ["43", "42", "46"]


def test_rich_shows_a_visualization_in_the_width_it_has() -> None:
    tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, width=30)
    console.print(Panel(tokenizer.visualize("low " * 20)))
    lines = out.getvalue().splitlines()
    assert len(lines) > 4
    assert all(cell_len(line) == 30 for line in lines)
    assert all(line.strip("│ ").endswith(("|", "low", "─", "╯", "╮")) for line in lines[1:-1])
