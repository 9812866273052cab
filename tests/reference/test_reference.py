"""The lesson of `bpe_tokenizer.reference`, and the oracle that the other tests rely on."""

import base64
import copy
import json
import lzma
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer.reference import (
    GPT2_PATTERN,
    GPT4_PATTERN,
    CharBPETokenizer,
    NaiveBPETokenizer,
    RegexBPETokenizer,
    count_pairs,
    merge_all,
    merge_pair,
    origins,
    rank_merges,
)
from bpe_tokenizer.reference.characters import BYTE_CHARACTERS
from bpe_tokenizer.reference.oracle import encode_piece, split, train_merges
from bpe_tokenizer.reference.special import cut_at_special
from bpe_tokenizer.reference.unicode import printable, replace_surrogates

AnyTokenizer: TypeAlias = NaiveBPETokenizer | RegexBPETokenizer | CharBPETokenizer

WORDS = "low lower lowest flow flower"
TABLE = {b"low": 5, b"lower": 2, b"newest": 6, b"widest": 3}
CLASSES = [NaiveBPETokenizer, RegexBPETokenizer, CharBPETokenizer]
# Any str, surrogates included; and text in which pairs repeat.
any_text = st.text(st.characters())
repetitive_text = st.text("ab c", min_size=1, max_size=60)
repetitive_pieces = st.dictionaries(
    st.text("ab", min_size=1, max_size=14).map(str.encode), st.integers(1, 6), min_size=1, max_size=5
)


def pairs(listing: str) -> list[tuple[bytes, bytes]]:
    """Read merges that are written as `e+s es+t`."""
    parts = (merge.encode().split(b"+") for merge in listing.split())
    return [(left, right) for left, right in parts]


every_class = pytest.mark.parametrize("kind", CLASSES)


@pytest.fixture(scope="module")
def fixtures_dir() -> Path:
    directory = os.environ.get("BPE_TOKENIZER_FIXTURES")
    if directory is None:
        pytest.skip("BPE_TOKENIZER_FIXTURES is not set: it names the directory of vocabularies and corpora")
    return Path(directory)


# --- The worked examples, counted by hand -----------------------------------------------------------------


def test_counting_and_merging_a_pair() -> None:
    tokens = list("abracadabra")
    assert count_pairs(tokens)[("a", "b")] == 2
    assert merge_pair(tokens, ("a", "b")) == ["ab", "r", "a", "c", "a", "d", "ab", "r", "a"]
    assert merge_pair(["a"] * 5, ("a", "a")) == ["aa", "aa", "a"]
    assert merge_pair(tokens, ("x", "y")) == tokens


def test_aaabdaaabac() -> None:
    text = "aaabdaaabac"
    tokenizer = NaiveBPETokenizer().train(text, 256 + 3)
    # (a,a) 4 times; then (aa,a) and (a,b) twice each, (aa,a) seen first; then (aaa,b) twice.
    assert tokenizer.merges == [(b"a", b"a"), (b"aa", b"a"), (b"aaa", b"b")]
    assert [tokenizer.vocab[i] for i in (256, 257, 258)] == [b"aa", b"aaa", b"aaab"]
    assert tokenizer.encode(text) == [258, ord("d"), 258, ord("a"), ord("c")]
    assert tokenizer.decode([258, ord("d"), 258, ord("a"), ord("c")]) == text


def test_low_lower_lowest_flow_flower() -> None:
    # lo 5, low 5, lowe 3. Then, each twice: over the whole text "low " is seen first; over pieces, in which
    # the space leads the word, " lowe" is.
    naive = NaiveBPETokenizer().train(WORDS, 260)
    assert naive.merges == [(b"l", b"o"), (b"lo", b"w"), (b"low", b"e"), (b"low", b" ")]
    by_pieces = RegexBPETokenizer().train(WORDS, 260)
    assert by_pieces.merges == [(b"l", b"o"), (b"lo", b"w"), (b"low", b"e"), (b" ", b"lowe")]
    by_characters = CharBPETokenizer().train(WORDS, 260)
    assert by_characters.merges == [("l", "o"), ("lo", "w"), ("low", "e"), ("Ġ", "lowe")]
    assert naive.encode("flow flow") == [ord("f"), 259, ord("f"), 257]
    assert by_pieces.encode("flow flow") == [ord("f"), 257, ord(" "), ord("f"), 257]
    assert by_characters.encode("slower lowest") == [ord("s"), 258, ord("r"), 259, ord("s"), ord("t")]


def test_the_cat_in_the_hat() -> None:
    text = "the cat in the hat"
    naive = NaiveBPETokenizer().train(text, 260)
    assert naive.merges == [(b"t", b"h"), (b"th", b"e"), (b"the", b" "), (b"a", b"t")]
    assert naive.encode(text) == [258, ord("c"), 259, *b" in ", 258, ord("h"), 259]
    by_pieces = RegexBPETokenizer().train(text, 259)
    assert by_pieces.merges == pairs("t+h th+e a+t")
    by_characters = CharBPETokenizer().train(text, 259)
    assert by_characters.merges == [("t", "h"), ("th", "e"), ("a", "t")]
    for tokenizer in (by_pieces, by_characters):
        assert tokenizer.encode("the hat") == [257, ord(" "), ord("h"), 258]


def test_the_table_of_the_paper() -> None:
    text = " ".join(word.decode() for word, times in TABLE.items() for _ in range(times))
    tokenizer = RegexBPETokenizer(r"\S+").train(text, 256 + 12)
    assert tokenizer.merges == pairs(
        "e+s es+t"  # 9 times each
        " l+o lo+w"  # 7
        " n+e ne+w new+est"  # 6
        " w+i wi+d wid+est"  # 3
        " low+e lowe+r"  # 2
    )
    assert train_merges(TABLE, 12) == tokenizer.merges
    assert train_merges(TABLE, 100) == tokenizer.merges, "no pair is left after 12 merges"
    tokens = [tokenizer.vocab[i] for i in tokenizer.encode("lowest newer")]
    assert tokens == [b"low", b"est", b" ", b"new", b"e", b"r"]


# --- Training ---------------------------------------------------------------------------------------------


@every_class
def test_training_stops_when_no_pair_is_left(kind: type[AnyTokenizer]) -> None:
    tokenizer = kind().train("abc", 300)
    assert len(tokenizer.merges) == 2
    assert tokenizer.encode("abc") == [257]
    assert kind().train("abc", 256).merges == []


def test_nothing_is_learned_across_pieces_or_special_tokens() -> None:
    assert RegexBPETokenizer(r"[ab]").train("abababab", 300).merges == []
    for kind in CLASSES:
        tokenizer = kind().train("a<s>b<s>a<s>b", 300, special_tokens=["<s>"])
        assert tokenizer.merges == []
        assert tokenizer.special_tokens == {"<s>": 256}


@every_class
def test_ids_of_special_tokens(kind: type[AnyTokenizer]) -> None:
    text = WORDS * 3 + " and many other words to learn from"
    listed = kind().train(text, 276, special_tokens=["<a>", "<b>", "<c>"])
    assert listed.special_tokens == {"<a>": 256, "<b>": 257, "<c>": 258}
    assert sorted(listed.vocab) == [*range(256), *range(259, 276)]
    named = kind().train(text, 276, special_tokens={"<a>": 260, "<b>": 300})
    assert named.special_tokens == {"<a>": 260, "<b>": 300}
    assert sorted(named.vocab) == [i for i in range(276) if i != 260]
    assert named.decode([300, 260]) == "<b><a>"
    outside = kind().train(text, 276, special_tokens={"<|endoftext|>": 100257})
    assert len(outside.merges) == 20


def test_special_tokens_of_the_regex_tokenizer_by_default() -> None:
    tokenizer = RegexBPETokenizer().train(WORDS, 257)
    assert tokenizer.special_tokens == {"<|endoftext|>": 100257}
    tokenizer.register_special_tokens({"<|end|>": 300})
    assert tokenizer.encode("low<|end|>", "all") == [256, ord("w"), 300]
    assert tokenizer.train(WORDS, 301).special_tokens == {"<|end|>": 300}, "kept by the next training"


def test_new_ids_of_characters_come_after_the_characters() -> None:
    tokenizer = CharBPETokenizer().train("中文中文 Ġ", 300)
    assert tokenizer.vocab[ord("a")] == "a"
    assert tokenizer.vocab[ord(" ")] == "Ġ"
    # Then come the other characters of the text in their order; "Ġ" has changed places with the space.
    assert [tokenizer.vocab[i] for i in (256, 257, 258)] == [" ", "中", "文"]
    assert tokenizer.vocab[259] == "中文"
    assert tokenizer.decode(tokenizer.encode("文 Ġ中文")) == "文 Ġ中文"


@every_class
def test_verbose_training_prints_each_merge(
    kind: type[AnyTokenizer], capsys: pytest.CaptureFixture[str]
) -> None:
    kind().train(WORDS, 258, verbose=True)
    assert capsys.readouterr().out == (
        "merge 1 of 2: 'l' + 'o' -> 'lo' (id 256), seen 5 times\n"
        "merge 2 of 2: 'lo' + 'w' -> 'low' (id 257), seen 5 times\n"
    )
    kind().train(WORDS, 258)
    assert capsys.readouterr().out == ""


@given(repetitive_text)
def test_lesson_and_oracle_learn_the_same_merges(text: str) -> None:
    naive = NaiveBPETokenizer().train(text, 290)
    assert naive.merges == train_merges({text.encode(): 1}, 290 - 256)
    by_pieces = RegexBPETokenizer().train(text, 290)
    counts = Counter(piece.encode() for piece in split(text, GPT4_PATTERN))
    assert by_pieces.merges == train_merges(counts, 290 - 256)
    made = [left + right for left, right in by_pieces.merges]
    assert len(set(made)) == len(made), "every merge makes a new token"


# --- Round trips ------------------------------------------------------------------------------------------


@given(training=repetitive_text | any_text.filter(bool), text=any_text)
def test_byte_tokenizers_encode_any_text(training: str, text: str) -> None:
    tokenizers = (
        NaiveBPETokenizer().train(training, 280),
        RegexBPETokenizer().train(training, 280),
        CharBPETokenizer(byte_level=True).train(training, 280),
    )
    for tokenizer in tokenizers:
        for example in (text, training, training + text):
            assert tokenizer.decode(tokenizer.encode(example)) == replace_surrogates(example)


@given(any_text.filter(bool), st.data())
def test_character_tokenizer_encodes_text_of_known_characters(training: str, data: st.DataObject) -> None:
    tokenizer = CharBPETokenizer().train(training, 400)
    known = replace_surrogates(training)
    text = data.draw(st.text(st.sampled_from(sorted({*known, *" aé"}))))
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.decode(tokenizer.encode(training)) == known


def test_character_tokenizer_names_an_unknown_character() -> None:
    tokenizer = CharBPETokenizer().train("abc", 300)
    with pytest.raises(ValueError, match=r"'中' \(U\+4E2D\) is not in the vocabulary"):
        tokenizer.encode("ab中")
    from_bytes = CharBPETokenizer(byte_level=True).train("abc", 300)
    assert from_bytes.decode(from_bytes.encode("ab中")) == "ab中"


@every_class
def test_empty_text(kind: type[AnyTokenizer]) -> None:
    tokenizer = kind().train(WORDS, 258)
    assert tokenizer.encode("") == []
    assert tokenizer.decode([]) == ""
    assert tokenizer.decode_bytes([]) == b""


def test_lone_surrogates_become_replacement_characters() -> None:
    tokenizer = RegexBPETokenizer().train(WORDS, 258)
    assert tokenizer.encode("\ud83d\ude00") == tokenizer.encode("😀")
    assert tokenizer.encode("a\ud800b\udc00") == tokenizer.encode("a\ufffdb\ufffd")


def test_bytes_that_are_no_text() -> None:
    tokenizer = NaiveBPETokenizer().train(WORDS, 258)
    assert tokenizer.decode([0xC3, 0xA9, 0xC3]) == "é\ufffd"
    assert tokenizer.decode_bytes([0xC3, 257]) == b"\xc3low"


# --- Special tokens in a text -----------------------------------------------------------------------------


@every_class
def test_allowed_special(kind: type[AnyTokenizer]) -> None:
    special = {"<|end|>": 300, "<|user|>": 301}
    tokenizer = kind().train(WORDS, 258, special_tokens=special)
    text = "low<|user|>flow<|end|>"
    low, flow = [257], [ord("f"), 257]
    plain = tokenizer.encode(text)
    assert set(plain).isdisjoint(special.values())
    assert tokenizer.decode(plain) == text
    assert tokenizer.encode(text, "all") == [*low, 301, *flow, 300]
    assert tokenizer.encode(text, {"<|user|>"}) == [*low, 301, *flow, *map(ord, "<|end|>")]
    assert tokenizer.encode(text, {"<|user|>"}, disallowed_special={"<|user|>"})[1] == 301, "allowed wins"
    assert tokenizer.decode([*low, 301, *flow, 300]) == text
    assert tokenizer.encode("low", "none_raise") == low
    with pytest.raises(ValueError, match=r"'<\|user\|>' at character 3.*disallowed_special=\(\)"):
        tokenizer.encode(text, "none_raise")
    with pytest.raises(ValueError, match=r"'<\|end\|>' at character 15"):
        tokenizer.encode(text, {"<|user|>"}, disallowed_special="all")
    with pytest.raises(ValueError, match=r"'<\|end\|>' at character 15"):
        tokenizer.encode(text, disallowed_special=["<|end|>"])


def test_the_longest_special_token_is_found_first() -> None:
    assert cut_at_special("x<s>><s>y", ["<s>", "<s>>"]) == ["x", "<s>>", "<s>", "y"]
    tokenizer = NaiveBPETokenizer().train("ab", 257, special_tokens={"<s>": 300, "<s>>": 301, "[.*]": 302})
    assert tokenizer.encode("<s>><s>[.*].", "all") == [301, 300, 302, ord(".")]


def test_mistaken_names_of_special_tokens() -> None:
    tokenizer = RegexBPETokenizer().train(WORDS, 258)
    with pytest.raises(ValueError, match=r"'<\|no\|>' is not a special token.*'<\|endoftext\|>'"):
        tokenizer.encode("low", {"<|no|>"})
    with pytest.raises(ValueError, match=r"write \{'<\|endoftext\|>'\}"):
        tokenizer.encode("low", "<|endoftext|>")
    with pytest.raises(ValueError, match="disallowed_special='none' is unknown"):
        tokenizer.encode("low", disallowed_special="none")


# --- Errors -----------------------------------------------------------------------------------------------


@every_class
def test_bad_arguments_of_train(kind: type[AnyTokenizer]) -> None:
    with pytest.raises(ValueError, match="training text is empty"):
        kind().train("", 300)
    with pytest.raises(ValueError, match="vocab_size=255 is too small: the 256 smallest tokens"):
        kind().train("abc", 255)
    with pytest.raises(TypeError, match="the text must be a str, not bytes"):
        kind().train(b"abc", 300)  # type: ignore[arg-type]
    cases: list[tuple[Any, str]] = [
        ([""], "is empty"),
        (["<s>", "<s>"], "'<s>' is listed twice"),
        ({"<s>": 255}, "'<s>' has id 255.*give it 256 or more"),
        ({"<s>": -1}, "'<s>' has id -1"),
        ({"<s>": 300, "<t>": 300}, "'<s>' and '<t>' have the same id, 300"),
    ]
    for special_tokens, message in cases:
        with pytest.raises(ValueError, match=message):
            kind().train("abc", 300, special_tokens=special_tokens)
    with pytest.raises(TypeError, match=r"write \['<s>'\]"):
        kind().train("abc", 300, special_tokens="<s>")


def test_character_vocabulary_must_hold_the_characters() -> None:
    with pytest.raises(ValueError, match="vocab_size=257 is too small: the 258 smallest tokens"):
        CharBPETokenizer().train("中文", 257)
    with pytest.raises(ValueError, match=r"'<s>' has id 257.*give it 258 or more"):
        CharBPETokenizer().train("中文", 300, special_tokens={"<s>": 257})


@every_class
def test_a_failed_training_changes_nothing(kind: type[AnyTokenizer]) -> None:
    tokenizer = kind().train(WORDS, 258)
    before = copy.deepcopy(vars(tokenizer))
    with pytest.raises(ValueError, match="too small"):
        tokenizer.train("other words", 3)
    assert vars(tokenizer) == before


@every_class
def test_unknown_ids(kind: type[AnyTokenizer]) -> None:
    tokenizer = kind().train(WORDS, 258, special_tokens={})
    for token_id in (258, -1, 100257):
        with pytest.raises(ValueError, match=f"id {token_id} is not in the vocabulary.*highest id is 257"):
            tokenizer.decode([97, token_id])
        with pytest.raises(ValueError, match=f"id {token_id} is not in the vocabulary"):
            tokenizer.trace_decode([token_id])


@every_class
def test_untrained(kind: type[AnyTokenizer], tmp_path: Path) -> None:
    tokenizer = kind()
    uses: list[Callable[[], object]] = [
        lambda: tokenizer.encode("low"),
        lambda: tokenizer.decode([97]),
        lambda: tokenizer.trace("low"),
        lambda: tokenizer.trace_decode([97]),
        lambda: tokenizer.save(tmp_path / "a"),
        lambda: tokenizer.save_readable(tmp_path / "a"),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match=rf"this {kind.__name__} is not trained: call train\(...\)"):
            use()
    assert not (tmp_path / "a").exists()


def test_registering_an_id_that_is_taken() -> None:
    tokenizer = RegexBPETokenizer().train(WORDS, 258)
    with pytest.raises(ValueError, match="'<s>' cannot have id 257, which belongs to 'low'"):
        tokenizer.register_special_tokens({"<s>": 257})
    with pytest.raises(ValueError, match="'<s>' has id -5: an id is not negative"):
        tokenizer.register_special_tokens({"<s>": -5})
    assert tokenizer.special_tokens == {"<|endoftext|>": 100257}


def test_a_pattern_that_is_no_regular_expression() -> None:
    for kind in (RegexBPETokenizer, CharBPETokenizer):
        with pytest.raises(ValueError, match=r"split pattern '\(' is not a regular expression"):
            kind("(")


def test_the_lesson_runs_on_its_own() -> None:
    directory = Path(sys.modules["bpe_tokenizer.reference"].__path__[0]).parent
    code = (
        f"import sys; sys.path.append({str(directory)!r})\n"
        "import reference, reference.oracle\n"
        "assert not any(name.startswith('bpe_tokenizer') for name in sys.modules)\n"
        "print(reference.NaiveBPETokenizer().train('aaabdaaabac', 259).encode('aaab'))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[258]\n"


def test_without_the_regex_module() -> None:
    code = """
import sys
sys.modules["regex"] = None
from bpe_tokenizer.reference import NaiveBPETokenizer, RegexBPETokenizer
tokenizer = NaiveBPETokenizer().train("aaabdaaabac", 259, special_tokens={"<|end|>": 300})
print(tokenizer.encode("aaab<|end|>", allowed_special="all"))
RegexBPETokenizer()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "[258, 300]\n")
    assert 'ImportError: split patterns need the regex module: pip install "bpe-tokenizer[' in result.stderr


# --- Traces -----------------------------------------------------------------------------------------------


def test_trace_of_an_encoding() -> None:
    tokenizer = RegexBPETokenizer().train(WORDS, 260)
    trace = tokenizer.trace("slow<|endoftext|> lower", allowed_special="all")
    assert (
        str(trace)
        == """\
text: 'slow<|endoftext|> lower'

piece 1 of 3: 'slow'
  's' 'l' 'o' 'w'
    rank 0: 'l' + 'o' -> 'lo' (id 256)
  's' 'lo' 'w'
    rank 1: 'lo' + 'w' -> 'low' (id 257)
  's' 'low'
    no pair is a merge
  ids: [115, 257]

piece 2 of 3: '<|endoftext|>'
  special token -> id 100257

piece 3 of 3: ' lower'
  ' ' 'l' 'o' 'w' 'e' 'r'
    rank 0: 'l' + 'o' -> 'lo' (id 256)
  ' ' 'lo' 'w' 'e' 'r'
    rank 1: 'lo' + 'w' -> 'low' (id 257)
  ' ' 'low' 'e' 'r'
    rank 2: 'low' + 'e' -> 'lowe' (id 258)
  ' ' 'lowe' 'r'
    rank 3: ' ' + 'lowe' -> ' lowe' (id 259)
  ' lowe' 'r'
    no pair is a merge
  ids: [259, 114]

ids: [115, 257, 100257, 259, 114]"""
    )


def test_trace_shows_every_candidate() -> None:
    table = " ".join(word.decode() for word, times in TABLE.items() for _ in range(times))
    trace = CharBPETokenizer().train(table, 256 + 3).trace("lowest")
    (piece,) = trace.pieces
    assert piece.steps[0].candidates == {("e", "s"): 0, ("l", "o"): 2}
    assert piece.steps[0].pair == ("e", "s")
    assert [step.token_id for step in piece.steps] == [256, 257, 258]
    assert [step.result for step in piece.steps][-1] == ("lo", "w", "est")
    assert (
        "  'l' 'o' 'w' 'e' 's' 't'\n    rank 0: 'e' + 's' -> 'es' (id 256)\n    rank 2: 'l' + 'o'\n"
        in str(trace)
    )


def test_trace_of_a_decoding() -> None:
    tokenizer = RegexBPETokenizer().train(WORDS, 258)
    assert (
        str(tokenizer.trace_decode([257, 0xC3, 0xA9, 100257, 0xC3]))
        == """\
ids: [257, 195, 169, 100257, 195]
id 257: 'low'
  'low' = 'lo' + 'w'
  'lo' = 'l' + 'o'
    bytes 6c 6f 77 -> text 'low'
id 195: <c3>
    bytes c3 -> text ''
id 169: <a9>
    bytes a9 -> text 'é'
id 100257: special token '<|endoftext|>'
    bytes 3c 7c 65 6e 64 6f 66 74 65 78 74 7c 3e -> text '<|endoftext|>'
id 195: <c3>
    bytes c3 -> text ''
bytes at the end that are no character -> text '\ufffd'
text: 'lowé<|endoftext|>\ufffd'"""
    )


@given(training=repetitive_text, text=repetitive_text | any_text, ids=st.lists(st.integers(0, 259)))
def test_traces_agree_with_encode_and_decode(training: str, text: str, ids: list[int]) -> None:
    for kind in (NaiveBPETokenizer, RegexBPETokenizer):
        tokenizer = kind().train(training * 2, 260)
        trace = tokenizer.trace(text)
        assert trace.ids == tokenizer.encode(text)
        assert "".join(piece.piece for piece in trace.pieces) == replace_surrogates(text)
        for piece in trace.pieces:
            results = [piece.tokens, *(step.result for step in piece.steps)]
            for step, (before, after) in zip(piece.steps, pairwise(results), strict=True):
                assert step.tokens == before
                assert after == tuple(merge_pair(before, step.pair))
                assert step.rank == min(step.candidates.values())
            assert [tokenizer.ids[token] for token in results[-1]] == list(piece.ids)
        known = [token_id for token_id in ids if token_id in tokenizer.vocab]
        assert tokenizer.trace_decode(known).text == tokenizer.decode(known)


# --- Files ------------------------------------------------------------------------------------------------


def trained(kind: type[AnyTokenizer]) -> AnyTokenizer:
    return kind().train(WORDS + ' 中文é "Ġ" \x00\n', 275, special_tokens={"<|end|>": 300, "<é>": 301})


@every_class
def test_save_and_load(kind: type[AnyTokenizer], tmp_path: Path) -> None:
    tokenizer = trained(kind)
    tokenizer.save(tmp_path / "tokenizer.json")
    loaded = kind()
    assert loaded.load(str(tmp_path / "tokenizer.json")) is loaded
    assert vars(loaded) == vars(tokenizer)
    text = WORDS + "<|end|> 中é\n"
    assert loaded.encode(text, "all") == tokenizer.encode(text, "all")


def test_settings_are_saved(tmp_path: Path) -> None:
    RegexBPETokenizer(r"\w+").train(WORDS, 258).save(tmp_path / "a")
    assert RegexBPETokenizer().load(tmp_path / "a").pattern == r"\w+"
    tokenizer = CharBPETokenizer(GPT4_PATTERN, byte_level=True).train(WORDS, 258)
    tokenizer.save(tmp_path / "b")
    loaded = CharBPETokenizer().load(tmp_path / "b")
    assert (loaded.pattern, loaded.byte_level) == (GPT4_PATTERN, True)
    assert loaded.encode("中 low") == tokenizer.encode("中 low")


def test_tokens_are_saved_in_base64(tmp_path: Path) -> None:
    NaiveBPETokenizer().train("éé", 258).save(tmp_path / "a")
    saved = json.loads((tmp_path / "a").read_text(encoding="utf-8"))
    assert saved["vocab"]["256"] == base64.b64encode(b"\xc3\xa9").decode()
    assert saved["merges"] == [["ww==", "qQ=="], ["w6k=", "w6k="]]
    assert saved["special_tokens"] == {}


def no_format(saved: dict[str, Any]) -> None:
    del saved["format"]


def other_class(saved: dict[str, Any]) -> None:
    saved["class"] = "OtherTokenizer"


def newer_version(saved: dict[str, Any]) -> None:
    saved["version"] = 2


def no_merges(saved: dict[str, Any]) -> None:
    del saved["merges"]


def vocab_as_list(saved: dict[str, Any]) -> None:
    saved["vocab"] = []


def bad_id(saved: dict[str, Any]) -> None:
    saved["vocab"]["x"] = "YQ=="


def bad_base64(saved: dict[str, Any]) -> None:
    saved["vocab"]["256"] = "###"


def same_token_twice(saved: dict[str, Any]) -> None:
    saved["vocab"]["999"] = saved["vocab"]["97"]


def missing_byte(saved: dict[str, Any]) -> None:
    del saved["vocab"]["97"]


def unmade_token(saved: dict[str, Any]) -> None:
    saved["vocab"]["999"] = base64.b64encode(b"xyz").decode()


def merge_of_three(saved: dict[str, Any]) -> None:
    saved["merges"][1].append("YQ==")


def unknown_part(saved: dict[str, Any]) -> None:
    saved["merges"][0][0] = base64.b64encode(b"xyz").decode()


def missing_setting(saved: dict[str, Any]) -> None:
    del saved["settings"]["pattern"]


def bad_pattern(saved: dict[str, Any]) -> None:
    saved["settings"]["pattern"] = "("


def special_id_taken(saved: dict[str, Any]) -> None:
    saved["special_tokens"]["<|end|>"] = 97


def special_id_as_text(saved: dict[str, Any]) -> None:
    saved["special_tokens"]["<|end|>"] = "97"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (no_format, "field 'format' is not 'bpe_tokenizer.reference'"),
        (other_class, "field 'class' is 'OtherTokenizer', and this is a RegexBPETokenizer"),
        (newer_version, "field 'version' is 2"),
        (no_merges, "field 'merges' is missing"),
        (vocab_as_list, "field 'vocab' is a list, not a dict"),
        (bad_id, "field 'vocab': 'x' is not an id"),
        (bad_base64, "field 'vocab', id 256: '###' is not a token in base64"),
        (same_token_twice, "field 'vocab': ids 97 and 999 are both 'a'"),
        (missing_byte, "field 'vocab': the token 'a' is missing"),
        (unmade_token, "field 'vocab': the token 'xyz' is made by no merge"),
        (merge_of_three, "field 'merges', rank 1: expected two tokens"),
        (unknown_part, "field 'merges', rank 0: 'xyz' is neither one of the smallest tokens nor made by a"),
        (missing_setting, "field 'pattern' is missing"),
        (bad_pattern, "field 'settings': the split pattern '[(]' is not"),
        (special_id_taken, "field 'special_tokens': .*'<[|]end[|]>' cannot have id 97, which belongs to 'a'"),
        (special_id_as_text, "field 'special_tokens': the id of '<[|]end[|]>' is '97', not an integer"),
    ],
)
def test_broken_files(change: Callable[[dict[str, Any]], None], message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    trained(RegexBPETokenizer).save(path)
    saved = json.loads(path.read_text(encoding="utf-8"))
    change(saved)
    path.write_text(json.dumps(saved), encoding="utf-8")
    tokenizer = RegexBPETokenizer()
    with pytest.raises(ValueError, match=message) as caught:
        tokenizer.load(path)
    assert str(path) in str(caught.value)
    assert vars(tokenizer) == vars(RegexBPETokenizer())


@pytest.mark.parametrize("contents", [b"no JSON", b"[1, 2]", b"\xff\xfe", b""])
def test_files_of_another_kind(contents: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=r"tokenizer\.json: (not a JSON file|field 'format')"):
        NaiveBPETokenizer().load(path)


def test_readable_listing(tmp_path: Path) -> None:
    tokenizer = NaiveBPETokenizer().train("éé low low\n", 262, special_tokens={"<|end|>": 258})
    tokenizer.save_readable(tmp_path / "listing.txt")
    lines = (tmp_path / "listing.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "NaiveBPETokenizer(tokens=261, merges=5, special_tokens=1)"
    assert len(lines) == 1 + 262
    assert lines[1 + 0] == "      0  '\\x00'"
    assert lines[1 + 10] == "     10  '\\n'"
    assert lines[1 + 97] == "     97  'a'"
    assert lines[1 + 195] == "    195  <c3>"
    assert lines[1 + 256 :] == [
        "    256  'é' = <c3> + <a9>",
        "    257  ' l' = ' ' + 'l'",
        "    258  '<|end|>' special token",
        "    259  ' lo' = ' l' + 'o'",
        "    260  ' low' = ' lo' + 'w'",
        "    261  'éé' = 'é' + 'é'",
    ]


@given(st.binary(max_size=4) | st.text(max_size=4).map(str.encode))
def test_printable_tokens_fit_a_line_and_can_be_told_apart(token: bytes) -> None:
    shown = printable(token)
    assert shown.isprintable()
    if shown.startswith("<"):
        assert bytes.fromhex(shown[1:-1]) == token
    else:
        assert eval(shown).encode() == token


# --- OpenAI's files ---------------------------------------------------------------------------------------


def write_openai_files(directory: Path) -> tuple[Path, Path]:
    tokens = [*sorted(BYTE_CHARACTERS), "lo", "low", "Ġlow", "<|endoftext|>"]
    vocab, merges = directory / "encoder.json", directory / "vocab.bpe"
    vocab.write_text(json.dumps({token: token_id for token_id, token in enumerate(tokens)}), encoding="utf-8")
    merges.write_text("#version: 0.2\nl o\nlo w\nĠ low\n", encoding="utf-8")
    return vocab, merges


def test_load_openai(tmp_path: Path) -> None:
    tokenizer = CharBPETokenizer(r"\w+").load_openai(*write_openai_files(tmp_path))
    assert tokenizer.pattern == GPT2_PATTERN
    assert tokenizer.merges == [("l", "o"), ("lo", "w"), ("Ġ", "low")]
    assert tokenizer.special_tokens == {"<|endoftext|>": 259}
    assert tokenizer.encode("low low!<|endoftext|>", "all") == [257, 258, 0, 259]
    assert tokenizer.decode(tokenizer.encode("né 中\n")) == "né 中\n"
    tokenizer.save(tmp_path / "saved")
    assert vars(CharBPETokenizer().load(tmp_path / "saved")) == vars(tokenizer)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("encoder.json", '"lo": 256', '"lo": "256"', r"the id of 'lo' is '256', not an integer"),
        ("encoder.json", '"lo": 256', '"lo": 257', r"'lo' and 'low' have the same id, 257"),
        ("encoder.json", '"lo": 256, ', "", r"there is no id for 'lo', a token of .*vocab\.bpe"),
        ("encoder.json", "{", "", "not a JSON file"),
        ("vocab.bpe", "lo w\n", "low\n", "line 3: expected two tokens and a space, got 'low'"),
        ("vocab.bpe", "lo w\n", "lo w x\n", "line 3: expected two tokens and a space"),
        ("vocab.bpe", "l o\n", "l e\n", "line 3: 'lo' is neither a byte nor made by a line above"),
    ],
)
def test_broken_openai_files(name: str, old: str, new: str, message: str, tmp_path: Path) -> None:
    vocab, merges = write_openai_files(tmp_path)
    path = tmp_path / name
    text = json.dumps(json.loads(vocab.read_text(encoding="utf-8")), ensure_ascii=False)
    vocab.write_text(text, encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        CharBPETokenizer().load_openai(vocab, merges)
    assert str(path) in str(caught.value)


def gpt2(fixtures_dir: Path) -> CharBPETokenizer:
    vocab = fixtures_dir / "vocab"
    return CharBPETokenizer().load_openai(vocab / "gpt2-vocab.json", vocab / "gpt2-merges.txt")


def read_ranks(path: Path) -> dict[bytes, int]:
    """Read a `.tiktoken` file: a token in base64 and its rank on each line."""
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


@pytest.mark.fixtures
def test_gpt2_vocabulary(fixtures_dir: Path) -> None:
    tokenizer = gpt2(fixtures_dir)
    assert len(tokenizer.merges) == 50_000
    assert tokenizer.special_tokens == {"<|endoftext|>": 50256}
    ranks = read_ranks(fixtures_dir / "vocab" / "r50k_base.tiktoken")
    assert {tokenizer.id_bytes(token_id): token_id for token_id in tokenizer.vocab} == ranks
    assert tokenizer.encode("Hello, world!") == [15496, 11, 995, 0]


@pytest.mark.fixtures
@pytest.mark.peer
@pytest.mark.parametrize("corpus", ["books", "code", "multi", "zh"])
def test_gpt2_ids_are_those_of_tiktoken(corpus: str, fixtures_dir: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    peer = tiktoken.Encoding(
        "gpt2",
        pat_str=GPT2_PATTERN,
        mergeable_ranks=read_ranks(fixtures_dir / "vocab" / "r50k_base.tiktoken"),
        special_tokens={"<|endoftext|>": 50256},
    )
    tokenizer = gpt2(fixtures_dir)
    with lzma.open(fixtures_dir / "corpora" / f"{corpus}.txt.xz") as file:
        start = file.read(4_000_000)
    for offset in range(0, 4_000_000, 400_000):
        text = start[offset : offset + 10_000].decode("utf-8", "ignore") + "<|endoftext|>"
        assert len(text) > 2_000
        ids = tokenizer.encode(text, "all")
        assert ids == peer.encode(text, allowed_special="all")
        assert tokenizer.encode(text) == peer.encode(text, disallowed_special=())
        assert tokenizer.decode(ids) == text


# --- The oracle -------------------------------------------------------------------------------------------


def test_split_keeps_what_the_pattern_leaves() -> None:
    assert split("ab, cd!!", r"\w+") == ["ab", ", ", "cd", "!!"]
    assert split("--a-b", r"\w") == ["--", "a", "-", "b"]
    assert split("abc", r"x*") == ["abc"], "empty matches are no pieces"
    assert split("abc", r"(?=b)") == ["abc"]
    assert split("axxb", r"x*") == ["a", "xx", "b"]
    assert split("", r"\w+") == []
    with pytest.raises(ValueError, match=r"'\[' is not a regular expression"):
        split("abc", "[")


@given(any_text, st.sampled_from([GPT2_PATTERN, GPT4_PATTERN, r"\w+", r"a|b?", r"\s*", r"(?i)[a-z]{2}"]))
def test_split_loses_nothing(text: str, pattern: str) -> None:
    pieces = split(text, pattern)
    assert "".join(pieces) == text
    assert all(pieces)


def test_ties() -> None:
    # ("e","s") and ("s","t") both occur 9 times.
    assert train_merges(TABLE, 1) == [(b"e", b"s")]
    assert train_merges(TABLE, 1, tie_break="huggingface") == [(b"e", b"s")]
    assert train_merges(TABLE, 1, tie_break="largest") == [(b"s", b"t")]
    assert train_merges(TABLE, 12, tie_break="largest") == pairs(
        "s+t e+st"  # 9 times each
        " o+w l+ow"  # 7: ("o","w") is greater than ("l","o")
        " w+est n+e ne+west"  # 6: then ("n","e") is greater than ("e","west")
        " w+i wi+d wid+est"  # 3
        " low+e lowe+r"  # 2: ("low","e") is greater than ("e","r")
    )
    assert train_merges(TABLE, 12, tie_break="huggingface") == pairs(
        "e+s es+t"
        " l+o lo+w"
        " e+w n+ew new+est"  # ("e","w") comes before ("n","e") and ("w","est")
        " d+est i+dest w+idest"
        " e+r low+er"  # a byte comes before a learned token
    )


def test_ties_by_printable_characters() -> None:
    # The space is the byte 0x20, less than "a", but its printable character "Ġ" comes after "a", and so do
    # the bytes of "é" (0xC3 0xA9, "Ã" and "©").
    pieces = {b" a": 1, b"b ": 1, b"ab": 1, "é".encode(): 1}
    assert train_merges(pieces, 1, tie_break="largest") == [(b"\xc3", b"\xa9")]
    assert train_merges(pieces, 9, tie_break="huggingface") == [
        (b"a", b"b"),
        (b"b", b" "),
        (b"\xc3", b"\xa9"),
        (b" ", b"a"),
    ]
    # Learned tokens come by age: of the two that stand before an "x", the one that was learned first.
    assert train_merges({b"bc": 5, b"aa": 4, b"aax": 1, b"bcx": 1}, 3, "huggingface") == pairs("b+c a+a bc+x")
    assert train_merges({b"bc": 4, b"aa": 5, b"aax": 1, b"bcx": 1}, 3, "huggingface") == pairs("a+a b+c aa+x")
    assert train_merges({b"bc": 4, b"aa": 5, b"aax": 1, b"bcx": 1}, 3, "largest") == pairs("a+a b+c bc+x")


def test_overlapping_pairs_count() -> None:
    # (a,a) twice in "aaa", against (b,c) once in each "bc".
    assert train_merges({b"aaa": 2, b"bc": 3}, 1) == [(b"a", b"a")]
    assert train_merges({b"aaaaa": 1}, 3) == [(b"a", b"a"), (b"aa", b"aa"), (b"aaaa", b"a")]


def test_min_frequency() -> None:
    assert train_merges(TABLE, 12, min_frequency=7) == train_merges(TABLE, 4)
    assert train_merges(TABLE, 12, min_frequency=10) == []
    assert train_merges({b"ab": 0}, 5) == [], "what does not occur is not merged"
    assert train_merges({b"ab": 1}, 5) == [(b"a", b"b")]


def test_max_token_length() -> None:
    assert train_merges(TABLE, 12, max_token_length=1) == []
    short = train_merges(TABLE, 100, max_token_length=3)
    assert short[:4] == [(b"e", b"s"), (b"es", b"t"), (b"l", b"o"), (b"lo", b"w")]
    assert max(len(left + right) for left, right in short) == 3


@pytest.mark.parametrize("arguments", [(TABLE, 3, "smallest"), (TABLE, -1), ({b"ab": -1}, 3)])
def test_bad_arguments_of_train_merges(arguments: Any) -> None:
    with pytest.raises(ValueError, match=r"tie_break='smallest' is not|must not be negative"):
        train_merges(*arguments)


@given(repetitive_pieces, st.sampled_from(["first", "largest", "huggingface"]), st.integers(0, 12))
def test_encoding_repeats_training(pieces: dict[bytes, int], tie_break: Any, num_new_tokens: int) -> None:
    merges = train_merges(pieces, num_new_tokens, tie_break)
    assert len(merges) <= num_new_tokens
    ranks = rank_merges(merges)
    for piece in pieces:
        # What training made of the piece: all merges, one after the other.
        trained_tokens = [bytes([byte]) for byte in piece]
        for pair in merges:
            trained_tokens = merge_pair(trained_tokens, pair)
        assert encode_piece(piece, merges) == trained_tokens
        assert merge_all([bytes([byte]) for byte in piece], ranks) == trained_tokens
    assert set(origins(merges)) == {left + right for left, right in merges}


def test_encode_piece_merges_one_pair_at_a_time() -> None:
    # The first "ab" takes the "a" of the second at once, since that merge has the lower rank.
    assert encode_piece(b"abab", [(b"ab", b"a"), (b"a", b"b")]) == [b"aba", b"b"]
    assert encode_piece(b"aaa", [(b"a", b"a")]) == [b"aa", b"a"]
    assert encode_piece(b"", []) == []


@pytest.mark.peer
@settings(max_examples=60)
@given(
    st.dictionaries(st.text("abé ", min_size=1, max_size=10), st.integers(1, 6), min_size=1, max_size=5),
    st.integers(0, 3),
)
def test_ties_are_those_of_hugging_face(pieces: dict[str, int], min_frequency: int) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=256 + 12,
        min_frequency=min_frequency,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((piece for piece, times in pieces.items() for _ in range(times)), trainer)
    byte = {character: bytes([i]) for i, character in enumerate(BYTE_CHARACTERS)}
    merges = [
        tuple(b"".join(byte[character] for character in part) for part in pair)
        for pair in json.loads(tokenizer.to_str())["model"]["merges"]
    ]
    counts = {piece.encode(): times for piece, times in pieces.items()}
    assert merges == train_merges(counts, 12, "huggingface", min_frequency)
