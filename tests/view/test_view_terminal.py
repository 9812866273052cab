"""Tokens as coloured text for a terminal."""

from __future__ import annotations

import io
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bpe_tokenizer.view.terminal import coloured_tokens, print_tokens
from bpe_tokenizer.view.text import printable


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


def test_a_terminal_gets_colours() -> None:
    shown = _printed([b"to", b"ken"], force_terminal=True, color_system="truecolor")
    assert shown.count("\x1b[30;48;") == 2
    assert "|" not in shown


def test_a_pipe_and_a_terminal_without_colours_get_boundaries() -> None:
    assert _printed([b"to", b"ken"], force_terminal=False) == "to|ken\n"
    assert _printed([b"to", b"ken"], force_terminal=True, no_color=True) == "to|ken\n"


def test_a_long_line_is_not_broken_in_a_pipe_and_markup_means_nothing() -> None:
    assert _printed([b"[bold]", b"x " * 200 + b"x"], force_terminal=False) == "[bold]|" + "x " * 200 + "x\n"
