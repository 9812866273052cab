"""`visualize`: tokens with their spans, pieces with their merges."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

import hf_files
from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.errors import ArgumentTypeError, NotTrainedError, SpecialTokenError
from bpe_tokenizer.model import AddedToken, Model
from bpe_tokenizer.view.visualization import Visualization, visualization_html
from hostile import hostile_texts
from html_tree import ATTACKS
from view.report_corpus import sentencepiece_style

CORPUS = "low low low lower lowest newer newer newest wider widest </script> \"'&<b>é🙂" * 3


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    made = BPETokenizer(normalization=None)
    return made.train(CORPUS, vocab_size=300, special_tokens=["<|end|>", "<|other|>"], verbose=False)


def test_rows_show_the_symbols_after_each_merge() -> None:
    vocab = {0: b"a", 1: b"b", 2: b"ab", 3: b"ba", 4: b"abab"}
    merges = [(b"a", b"b"), (b"b", b"a"), (b"ab", b"ab")]
    tokenizer = BPETokenizer.from_model(Model(_core.Model(vocab, merges, requires_all_bytes=False)))
    (piece,) = tokenizer.visualize("babab").pieces
    assert piece.merging is not None
    assert [merge[:3] for merge in piece.merging.merges] == [(0, 1, 2), (0, 3, 4), (2, 1, 3)]
    assert [list(row.values()) for row in piece.merging.rows()] == [
        [1, 0, 1, 0, 1],
        [1, 2, 0, 1],
        [1, 2, 2],
        [1, 4],
    ]
    assert piece.merging.ids == (1, 4)


def test_every_piece_has_its_tokens_and_merges(tokenizer: BPETokenizer) -> None:
    for text in [*hostile_texts(50), *ATTACKS, "low<|end|><|other|>er<|end|>"]:
        for special in ("none", "all"):
            shown = tokenizer.visualize(text[:500], allowed_special=special)
            expected = tokenizer.encode(text[:500], allowed_special=special)
            assert shown.ids == expected
            for piece in shown.pieces:
                ids = tuple(token.id for token in piece.tokens)
                if piece.merging is not None:
                    assert piece.merging.ids == ids
                    assert b"".join(token.bytes for token in piece.tokens) == piece.bytes
                else:
                    assert ids[0] in (256, 257)
                    assert len(ids) == 1


def test_tokens_say_where_they_stand(tokenizer: BPETokenizer) -> None:
    text = "ß<|end|>lower"
    shown = tokenizer.visualize(text, allowed_special={"<|end|>"})
    for token in shown.tokens:
        start, end = token.text_bytes
        assert text.encode()[start:end] == token.bytes
        start, end = token.characters
        assert token.bytes in text[start:end].encode()
    # Both bytes of the ß have it.
    assert [token.characters for token in shown.tokens[:3]] == [(0, 1), (0, 1), (1, 8)]
    assert [token.is_added for token in shown.tokens].count(True) == 1
    assert shown.counts.startswith(f"{len(shown.ids)} tokens, 13 characters, 14 bytes; ")


def test_offsets_are_those_of_the_text_as_given_where_it_is_normalised() -> None:
    tokenizer = BPETokenizer(normalization="NFC").train("é é é", vocab_size=258, verbose=False)
    shown = tokenizer.visualize("e\u0301!")
    assert [(token.bytes, token.characters) for token in shown.tokens] == [
        ("é".encode(), (0, 2)),
        (b"!", (2, 3)),
    ]


def test_an_added_token_that_is_found_after_normalisation(tmp_path: Path) -> None:
    added = [hf_files.added_token(256, "<x>", special=False, normalized=True)]
    document = hf_files.tokenizer_json(hf_files.bytes_vocab(), added=added, normalizer={"type": "NFC"})
    shown = BPETokenizer.load(hf_files.write(tmp_path, document)).visualize("\u0344<x>")  # grows by a byte
    assert [piece.bytes for piece in shown.pieces][-1] == b"<x>"
    assert shown.tokens[-1].characters == (1, 4)


def test_an_added_token_that_strips_the_space_that_follows(tmp_path: Path) -> None:
    added = [hf_files.added_token(97, "a", special=False, rstrip=True)]
    spaced = {**hf_files.BYTE_LEVEL, "add_prefix_space": True}
    document = hf_files.tokenizer_json(hf_files.bytes_vocab(), added=added, pre_tokenizer=spaced)
    shown = BPETokenizer.load(hf_files.write(tmp_path, document)).visualize("a b")
    pieces = [(piece.bytes, [token.bytes for token in piece.tokens]) for piece in shown.pieces]
    assert pieces == [(b"a ", [b"a"]), (b" b", [b" ", b"b"])]


def test_special_tokens_around_the_text(tmp_path: Path) -> None:
    added = [hf_files.added_token(256, "<s>"), hf_files.added_token(257, "</s>")]
    post_processor = hf_files.template("<s>", "$A", "</s>", ids={"<s>": [256], "</s>": [257]})
    document = hf_files.tokenizer_json(hf_files.bytes_vocab(), added=added, post_processor=post_processor)
    tokenizer = BPETokenizer.load(hf_files.write(tmp_path, document))
    shown = tokenizer.visualize("hé", add_special_tokens=True)
    assert shown.ids == tokenizer.encode("hé", add_special_tokens=True)
    assert (shown.tokens[0].characters, shown.tokens[-1].characters) == ((0, 0), (2, 2))
    assert shown.tokens[-1].text_bytes == (3, 3)
    assert "before character 2" in visualization_html(shown)


def test_a_byte_token_stands_for_its_byte() -> None:
    tokenizer = sentencepiece_style()
    shown = tokenizer.visualize("a\né")
    assert shown.ids == tokenizer.encode("a\né")
    assert [token.bytes for token in shown.tokens] == ["▁a".encode(), b"\n", b"\xc3", b"\xa9"]
    assert str(shown) == "▁a|\\n\n\\xc3|\\xa9"


def test_what_the_model_drops_is_no_added_token() -> None:
    vocab = {0: b"a", 1: b"b", 2: b"ab"}
    added = [AddedToken("<s>", 3), AddedToken("<t>", 4, lstrip=True, rstrip=True)]
    core = _core.Model(vocab, [(b"a", b"b")], added_tokens=added, requires_all_bytes=False)
    tokenizer = BPETokenizer.from_model(Model(core))
    shown = tokenizer.visualize("xx<s>ab<s><s> <t> xx", allowed_special="all")
    assert shown.ids == tokenizer.encode(shown.text, allowed_special="all") == [3, 2, 3, 3, 4]
    assert [piece.bytes for piece in shown.pieces] == [b"xx", b"<s>", b"ab", b"<s>", b"<s>", b" <t> ", b"xx"]
    assert [piece.merging is None for piece in shown.pieces] == [False, True, False, True, True, True, False]


def test_it_refuses_what_encode_refuses(tokenizer: BPETokenizer) -> None:
    with pytest.raises(NotTrainedError):
        BPETokenizer().visualize("a")
    with pytest.raises(ArgumentTypeError, match="visualize expects a str, not bytes"):
        tokenizer.visualize(b"a")  # type: ignore[arg-type]
    with pytest.raises(SpecialTokenError):
        tokenizer.visualize("a", allowed_special={"<|no|>"})


def test_a_terminal_shows_colours_and_a_pipe_none(tokenizer: BPETokenizer) -> None:
    shown = tokenizer.visualize("lower newest")
    for system in ("truecolor", None):
        out = io.StringIO()
        shown.show(Console(file=out, force_terminal=system is not None, color_system=system))
        assert ("\x1b[" in out.getvalue()) == (system is not None)
        assert ("|" in out.getvalue()) == (system is None)
    assert str(shown).replace("|", "") == "lower newest"
    assert repr(shown) == f"<Visualization: {shown.counts}>"


def test_equal_visualizations_are_equal(tokenizer: BPETokenizer) -> None:
    first, second = tokenizer.visualize("low"), tokenizer.visualize("low")
    assert isinstance(first, Visualization)
    assert first == second != tokenizer.visualize("lower")
