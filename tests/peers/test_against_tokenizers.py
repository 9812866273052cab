"""Ids, offsets and texts equal to those of Hugging Face `tokenizers`: its files read by us, ours by it."""

from __future__ import annotations

import json
import os
import subprocess
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.errors import FormatError, TokenizerError
from bpe_tokenizer.formats.huggingface.pre_tokenizer import (
    COVERING,
    PUNCTUATION,
    read_pre_tokenizer,
    write_pre_tokenizer,
)
from bpe_tokenizer.formats.huggingface.regex import regex_escape
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hf_files import (
    BYTE_LEVEL,
    LLAMA3_REGEX,
    added_token,
    byte_level,
    bytes_vocab,
    sequence,
    split,
    template,
    tokenizer_json,
    write,
)
from hostile import after_a_letter, code_points, hostile_texts, special_token_texts
from sampling import sample_size

if TYPE_CHECKING:
    from tokenizers import Tokenizer

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")

pytestmark = pytest.mark.peer

CORPORA = ["books", "code", "multi", "zh"]
SAMPLE = 150_000

Documents = Callable[[str, int], list[str]]


def well_formed(text: str) -> str:
    """With U+FFFD for lone surrogates, which the library does not take."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_normalized(form: Any, text: str) -> bool:
    return unicodedata.is_normalized(form, well_formed(text))


def theirs_of(directory: Path) -> Tokenizer:
    theirs: Tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    return theirs


def assert_same(theirs: Tokenizer, ours: BPETokenizer, texts: Iterable[str]) -> None:
    """Same ids and offsets, with and without the post-processor, and the same text back."""
    for text in texts:
        for add_special_tokens in (False, True):
            expected = theirs.encode(well_formed(text), add_special_tokens=add_special_tokens)
            ids, spans = ours.encode_with_offsets(text, add_special_tokens, allowed_special="all", tile=False)
            assert ids == expected.ids, repr(text[:500])
            if len(well_formed(text)) == len(text):  # a pair of surrogates is two characters to us
                assert spans == expected.offsets, repr(text[:500])
            for skip in (False, True):
                assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip), repr(
                    text[:500]
                )


def assert_spans_hold(theirs: Tokenizer, ours: BPETokenizer, texts: Iterable[str]) -> None:
    """Where normalisation makes one character of several, the library's span is that of the first alone;
    ours covers all of them, for the token has bytes of all."""
    for text in filter(lambda text: len(text) == len(well_formed(text)), texts):
        expected = theirs.encode(well_formed(text), add_special_tokens=False).offsets
        _, spans = ours.encode_with_offsets(text, allowed_special="all", tile=False)
        for (start, end), (first, last) in zip(spans, expected, strict=True):
            assert start <= first <= last <= end, repr(text)


def assert_same_ids(theirs: Tokenizer, ours: BPETokenizer, texts: Sequence[str]) -> None:
    ids, offsets = ours.encode_ragged(texts, allowed_special="all")
    expected = theirs.encode_batch_fast([well_formed(text) for text in texts], add_special_tokens=False)
    for text, encoding, start, end in zip(texts, expected, offsets, offsets[1:], strict=False):
        assert ids[start:end].tolist() == encoding.ids, repr(text[:500])


def both(directory: Path, document: dict[str, Any]) -> tuple[Tokenizer, BPETokenizer]:
    write(directory, document)
    return theirs_of(directory), BPETokenizer.from_pretrained(directory)


# -- files of the library's own kind --------------------------------------------------------------------


@pytest.fixture(scope="session")
def gpt2(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, BPETokenizer]:
    """GPT-2, as its first tokenizer.json was: merges as "left right", no type in the model."""
    vocab = json.loads((shared / "vocab/gpt2-vocab.json").read_text(encoding="utf-8"))
    merges = (shared / "vocab/gpt2-merges.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
    document = tokenizer_json(
        vocab,
        merges,  # with the line "#version: 0.2", which is no merge
        added=[added_token(50256, "<|endoftext|>", normalized=True)],
        pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        post_processor=byte_level(add_prefix_space=True),
        unk_token="",
        continuing_subword_prefix="",
        end_of_word_suffix="",
    )
    del document["model"]["type"]
    return both(tmp_path_factory.mktemp("gpt2"), document)


@pytest.fixture(scope="session")
def llama3_like(
    ranks: Callable[[str], dict[bytes, int]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Tokenizer, BPETokenizer]:
    """Llama 3's settings over cl100k's ranks: merges as pairs, `ignore_merges`, specials after a gap-free
    vocabulary, a post-processor in a sequence."""
    tokens = {rank: token for token, rank in ranks("cl100k_base").items()}
    core = _core.Model(tokens, None, split_patterns=[])
    size = len(tokens)
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "«special»", "日本"]
    document = tokenizer_json(
        core.printable_vocab(),
        core.printable_merges(),
        ignore_merges=True,
        added=[added_token(size + index, name, special=name != "日本") for index, name in enumerate(names)],
        pre_tokenizer=sequence(split(LLAMA3_REGEX)),
        post_processor={
            "type": "Sequence",
            "processors": [
                BYTE_LEVEL,
                template("<|begin_of_text|>", "$A", ids={"<|begin_of_text|>": [size]}),
            ],
        },
    )
    document["decoder"] = {"type": "Sequence", "decoders": [BYTE_LEVEL]}
    return both(tmp_path_factory.mktemp("llama3"), document)


@pytest.mark.fixtures
@pytest.mark.parametrize("corpus_name", CORPORA)
def test_gpt2_on_a_sample_of_each_corpus(
    gpt2: tuple[Tokenizer, BPETokenizer], documents: Documents, corpus_name: str
) -> None:
    assert_same(*gpt2, documents(corpus_name, SAMPLE))


@pytest.mark.slow
@pytest.mark.fixtures
@pytest.mark.parametrize("corpus_name", CORPORA)
def test_gpt2_on_each_corpus_whole(
    gpt2: tuple[Tokenizer, BPETokenizer], documents: Documents, corpus_name: str
) -> None:
    assert_same_ids(*gpt2, documents(corpus_name, -1))


@pytest.mark.fixtures
def test_gpt2_on_hostile_texts(gpt2: tuple[Tokenizer, BPETokenizer]) -> None:
    assert_same(*gpt2, chain(hostile_texts(), special_token_texts(["<|endoftext|>"])))
    assert_same_ids(*gpt2, list(code_points(0, 0x10000, 3)))
    assert_same_ids(*gpt2, list(after_a_letter(code_points(0, 0x10000, 3))))


@pytest.mark.slow
@pytest.mark.fixtures
def test_gpt2_on_every_code_point(gpt2: tuple[Tokenizer, BPETokenizer]) -> None:
    for start in range(0, 0x110000, 0x10000):
        stop = start + 0x10000
        assert_same_ids(*gpt2, list(code_points(start, stop)))
        assert_same_ids(*gpt2, list(after_a_letter(code_points(start, stop))))


@pytest.mark.fixtures
@pytest.mark.parametrize("corpus_name", CORPORA)
def test_llama3_like_on_a_sample_of_each_corpus(
    llama3_like: tuple[Tokenizer, BPETokenizer], documents: Documents, corpus_name: str
) -> None:
    assert_same_ids(*llama3_like, documents(corpus_name, SAMPLE))


@pytest.mark.fixtures
def test_llama3_like_on_hostile_texts(llama3_like: tuple[Tokenizer, BPETokenizer]) -> None:
    theirs, ours = llama3_like
    texts = [*hostile_texts(500), *special_token_texts(["<|eot_id|>", "<|begin_of_text|>"])]
    assert_same(theirs, ours, texts)
    assert (
        ours.encode("a日本b«special»", allowed_special="all")
        == theirs.encode("a日本b«special»", add_special_tokens=False).ids
    )


# -- parts ----------------------------------------------------------------------------------------------

VOCAB = bytes_vocab(
    "he", "ll", "hell", "hello", "Ġw", "Ġwor", "or", "Ġworl", "ld", "12", "ĊĊ", "Ã©", "..", "'s"
)
MERGES = [
    ["h", "e"],
    ["l", "l"],
    ["he", "ll"],
    ["hell", "o"],
    ["o", "r"],
    ["Ġ", "w"],
    ["Ġw", "or"],
    ["Ġwor", "l"],
    ["l", "d"],
    ["1", "2"],
    ["Ċ", "Ċ"],
    ["Ã", "©"],
    [".", "."],
    ["'", "s"],
]
SIZE = len(VOCAB)
TEXTS = [
    "",
    "hello world",
    " hello  world ",
    "hello<s>world",
    "<s> hello </s>",
    "1212 ½² hello's it'S\n\n..!?",
    "héllo he\u0301llo ﬁ① 한글 \u1112\u1161\u11ab",
    "hello-world_hello.world",
    "x<s><s>  </s>y\n<s>",
    "<m> hello<m>hello <m>hello",
    "\n\n \n hello\r\nworld\t\t12",
]

PRE_TOKENIZERS = {
    "gpt2": BYTE_LEVEL,
    "prefix space": byte_level(add_prefix_space=True),
    "prefix space alone": byte_level(add_prefix_space=True, use_regex=False),
    "bytes alone": byte_level(use_regex=False),
    "split": sequence(split(LLAMA3_REGEX)),
    "removed and inverted": sequence(split(LLAMA3_REGEX, behavior="Removed", invert=True)),
    "isolated and inverted": sequence(split(r"\p{N}", invert=True)),
    "string": sequence(split("l", "String"), split("w.", "String"), split("[-+]$^#", "String")),
    "then gpt2": {"type": "Sequence", "pretokenizers": [split("hell"), BYTE_LEVEL]},
    "digits": sequence({"type": "Digits", "individual_digits": False}),
    "each digit": {
        "type": "Sequence",
        "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTE_LEVEL],
    },
    "punctuation": sequence({"type": "Punctuation"}),
    "runs of punctuation": sequence({"type": "Punctuation", "behavior": "Contiguous"}, split(r"\s+")),
    "nested": {
        "type": "Sequence",
        "pretokenizers": [{"type": "Sequence", "pretokenizers": [split("o"), split("r")]}, BYTE_LEVEL],
    },
}


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("pre_tokenizer", PRE_TOKENIZERS.values(), ids=PRE_TOKENIZERS)
def test_pre_tokenizers(pre_tokenizer: Any, tmp_path: Path) -> None:
    added = [added_token(SIZE, "<s>"), added_token(SIZE + 1, "</s>")]
    theirs, ours = both(tmp_path, tokenizer_json(VOCAB, MERGES, added=added, pre_tokenizer=pre_tokenizer))
    assert_same(theirs, ours, [*TEXTS, *hostile_texts(300)])


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_normalizers(form: str, tmp_path: Path) -> None:
    for normalizer in ({"type": form}, {"type": "Sequence", "normalizers": [{"type": form}]}):
        added = [added_token(SIZE, "<s>"), added_token(SIZE + 1, "ﬁ", special=False)]
        theirs, ours = both(tmp_path, tokenizer_json(VOCAB, MERGES, added=added, normalizer=normalizer))
        for text in [*TEXTS, *hostile_texts(300)]:
            expected = theirs.encode(well_formed(text), add_special_tokens=False)
            ids = ours.encode(text, allowed_special="all")
            assert ids == expected.ids, repr(text)
            assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=False)


FLAGS = [
    {"single_word": True},
    {"lstrip": True},
    {"rstrip": True},
    {"lstrip": True, "rstrip": True},
    {"normalized": True},
    {"normalized": True, "lstrip": True, "single_word": True},
]


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_flags_of_added_tokens(flags: dict[str, bool], special: bool, tmp_path: Path) -> None:
    added = [
        added_token(SIZE, "<m>", special, **flags),
        added_token(SIZE + 1, "wor", special, **flags),
        added_token(SIZE + 2, "<s>"),
        added_token(SIZE + 3, "<m><s>", special),
    ]
    theirs, ours = both(tmp_path, tokenizer_json(VOCAB, MERGES, added=added))
    texts = [
        "a <m> b",
        "<m><m> <m>",
        "world wor_wor wor  wor\n",
        "<m><s>wor<s>  <m>\u2003wor",
        "éwor woré",
        "<m",
    ]
    assert_same(theirs, ours, [*texts, *TEXTS])


POST_PROCESSORS = {
    "template": template("<s>", "<s>", "$A", "</s>", ids={"<s>": [SIZE], "</s>": [SIZE + 1]}),
    "several ids": template("$A", "end", ids={"end": [SIZE + 1, 104, SIZE]}),
    "roberta": {
        "type": "RobertaProcessing",
        "sep": ["</s>", SIZE + 1],
        "cls": ["<s>", SIZE],
        "trim_offsets": False,
        "add_prefix_space": False,
    },
    "bert": {"type": "BertProcessing", "sep": ["</s>", SIZE + 1], "cls": ["<s>", SIZE]},
    "sequence": {
        "type": "Sequence",
        "processors": [
            BYTE_LEVEL,
            template("<s>", "$A", "</s>", ids={"<s>": [SIZE], "</s>": [SIZE + 1]}),
            BYTE_LEVEL,
        ],
    },
}


@pytest.mark.parametrize("post_processor", POST_PROCESSORS.values(), ids=POST_PROCESSORS)
def test_post_processors(post_processor: Any, tmp_path: Path) -> None:
    added = [added_token(SIZE, "<s>"), added_token(SIZE + 1, "</s>")]
    document = tokenizer_json(VOCAB, MERGES, added=added, post_processor=post_processor)
    theirs, ours = both(tmp_path, document)
    assert_same(theirs, ours, TEXTS)
    ours.save(tmp_path / "again")
    saved = json.loads((tmp_path / "again/tokenizer.json").read_text(encoding="utf-8"))
    assert saved["post_processor"] == post_processor
    assert_same(theirs_of(tmp_path / "again"), BPETokenizer.from_pretrained(tmp_path / "again"), TEXTS)


@pytest.mark.parametrize("ignore_merges", [True, False])
def test_ignore_merges(ignore_merges: bool, tmp_path: Path) -> None:
    vocab = VOCAB | {"world": SIZE, "Ġhello": SIZE + 1}  # made by no merge
    theirs, ours = both(tmp_path, tokenizer_json(vocab, MERGES, ignore_merges=ignore_merges))
    assert (SIZE in ours.encode("world hello")) is ignore_merges
    assert_same(theirs, ours, TEXTS)


def test_a_merge_that_stands_twice(tmp_path: Path) -> None:
    vocab = bytes_vocab("ab", "bc", "abc")
    theirs, ours = both(tmp_path, tokenizer_json(vocab, [["a", "b"], ["b", "c"], ["a", "b"]]))
    assert_same(theirs, ours, ["abc", "ab", "bcab"])


def test_the_library_gives_added_tokens_the_ids_that_we_expect(tmp_path: Path) -> None:
    added = [added_token(SIZE, "<a>"), added_token(7777, "<far>"), added_token(SIZE + 1, "<b>")]
    document = tokenizer_json(VOCAB, MERGES, added=added)
    write(tmp_path, document)
    given = [theirs_of(tmp_path).token_to_id(name) for name in ("<a>", "<far>", "<b>")]
    assert given == [SIZE, SIZE + 1, SIZE + 2]
    with pytest.raises(TokenizerError, match=rf"added_tokens\[1\]\.id: 7777 .* which is {SIZE + 1};"):
        BPETokenizer.from_pretrained(tmp_path)


# -- the regular expressions of both --------------------------------------------------------------------


def assert_splits_alike(regex: str, pattern: str, texts: Iterable[str]) -> None:
    theirs = tokenizers.pre_tokenizers.Split(tokenizers.Regex(regex), "isolated")
    ours = _core.SplitPattern(pattern)
    for text in texts:
        text = well_formed(text)
        expected = [piece for piece, _ in theirs.pre_tokenize_str(text)]
        assert ours.split(text) == expected, (regex, pattern, text[:500])


def all_characters() -> list[str]:
    characters = list(code_points())
    return ["a\n".join(characters[i : i + 997]) for i in range(0, len(characters), 997)]


@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_named_patterns_in_the_librarys_words(name: str) -> None:
    for pattern in NAMED_PATTERNS[name].patterns:
        regex = _core.SplitPattern(pattern).to_oniguruma()
        assert_splits_alike(regex, pattern, hostile_texts(300))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_named_patterns_on_every_code_point(name: str) -> None:
    for pattern in NAMED_PATTERNS[name].patterns:
        regex = _core.SplitPattern(pattern).to_oniguruma()
        assert_splits_alike(regex, pattern, all_characters())


REGEXES = [
    r"\w+|\W",
    r"[\w-]+",
    r"[^\w]",
    r"\d+|\D",
    r"\s+|\S+",
    r"[[:alpha:]]+",
    r"[[:^space:]a]+",
    r"[[:punct:]]",
    r"^.|.$",
    r"\A.|.\z",
    r".\Z",
    r"(?m:.)+",
    r"(?m).",
    r"(?i)straße|k",
    r"(?i:ſ|K)",
    r"a(?-i:b)c",
    r"\p{Han}+|\p{Greek}",
    r"\p{^L}",
    r"\P{Lu}+",
    r"[a-z&&[^aeiou]]+",
    r"[^\n]+",
    r"(?<=a)b",
    r"(?<!a)b",
    r"\bfoo\b|\B.",
    r"(?>a+)b|a",
    r"a{2,3}+|b{,2}c|d{2}",
    r"xd{2}?|a{3}+",
    r"a{2}{2}|b+{2}",
    r"\x61{1,2}+|\u00e9{2}+",
    r"\x{20}?a|\x{3000}+",
    r"$+a",
    r"(?:\z|a)+b",
    r"\pL+",
    r"\p{Word}+",
    r"\p{Script=Han}",
    r"(?i:\p{Lu})",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    r" ?[^(\s|[.,!?…。，、।۔،])]+",  # BLOOM
    r"(?:\r?\n)+(?!\r?\n)",
    r"(?=(\d{3})+(?!\d))",
    r"\<a|a\>",
    r"\xe9",
    r"(?P<name>a)",
    r"(ab)+|(?<name>cd)",
    r"\x41|\x{e9}|\t",
    r"\h+",
    r"\R",
    r"\X",
    r"(a)\1",
    r"(?#comment)ab",
    r"[]a]+",
    r"[a\]b-]+",
    r"\.|\-|\#",
    r"a++|b*+c",
]


WORDS = [
    "foo food_foo aab abab cdcd aaa aaaa bbc cc dd éA\t",
    "straße STRASSE ſk KK",
    "a\nb\r\nc\n",
    "[]a-b].#",
]


def read_pattern(regex: str) -> str | None:
    """What we make of the library's regular expression; None if one of us refuses it."""
    try:
        tokenizers.Regex(regex)
        steps, _ = read_pre_tokenizer(Field(Path("tokenizer.json"), "", sequence(split(regex))))
        pattern: str = steps[0][1]
        return pattern
    except FormatError:
        return None
    except Exception as error:
        if "Oniguruma" not in str(error):
            raise
        return None


def write_pattern(pattern: str) -> str | None:
    """What we write for a pattern of ours; None if we refuse it."""
    try:
        _core.SplitPattern(pattern)
        step = write_pre_tokenizer([("Split", pattern, "Isolated", False)])
    except TokenizerError:
        return None
    assert step is not None
    written: dict[str, str] = step["pretokenizers"][0]["pattern"]
    return written["Regex"] if "Regex" in written else regex_escape(written["String"])


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("regex", REGEXES)
def test_a_regular_expression_of_the_librarys_means_the_same_or_is_refused(regex: str) -> None:
    pattern = read_pattern(regex)
    if pattern is not None:
        assert_splits_alike(regex, pattern, [*WORDS, *hostile_texts(200)])
        assert_splits_alike(regex, pattern, all_characters()[::7])


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("pattern", REGEXES)
def test_a_pattern_of_ours_means_the_same_or_is_refused(pattern: str) -> None:
    regex = write_pattern(pattern)
    if regex is not None:
        assert_splits_alike(regex, pattern, [*WORDS, *hostile_texts(200)])
        assert_splits_alike(regex, pattern, all_characters()[::7])


PROPERTIES = [
    *("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps"),
    *("Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "^L"),
    *(
        "Alphabetic",
        "Han",
        "Hiragana",
        "Katakana",
        "Hangul",
        "Latin",
        "Greek",
        "Cyrillic",
        "Arabic",
        "Hebrew",
    ),
    *("Thai", "Devanagari"),
]


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_hold_the_same_characters(name: str) -> None:
    characters = list(code_points())
    texts = ["".join(characters[i : i + 4096]) for i in range(0, len(characters), 4096)]
    for regex in (rf"\p{{{name}}}+", rf"[^\p{{{name}}}]+"):
        assert read_pattern(regex) == write_pattern(regex) == regex
        assert_splits_alike(regex, regex, texts)


ESCAPES = r"\s \S \d \D \w \W \n \r \t \v \f \. \- \] \{ \b \B \A \z \Z \G \R \X \h \x{61} \x61"
CLASSES = (
    r"\p{L} \P{L} \p{^Lu} \p{N} [ab] [^ab] [a-c] [^\s\p{L}] [a-c&&[^b]] [ab[cd]] [\r\n] [\-a] [a\]] []a] [\w]"
)
GROUPS = (
    r"(?=a) (?!b) (?!\S) (?=\s) (?<=a) (?<!a) (?i:k) (?i:s) (?i:[a-c]) (?i:[^k]) (?i:'s|'re) (?i:ss) (?m:.)"
)
REPEATS = "? * + ?? *? +? ?+ *+ ++ {2} {1,2} {2,} {,2} {0,1} {2}? {1,2}? {1,2}+ {2}+ {2}{2}"
ATOMS = [*"abAks -.^$']{}é日", *f"{ESCAPES} {CLASSES} {GROUPS}".split(), "a{"]
QUANTIFIERS = [""] * 6 + REPEATS.split()

regexes = st.recursive(
    st.tuples(st.sampled_from(ATOMS), st.sampled_from(QUANTIFIERS)).map("".join),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(
            st.sampled_from(["(?:", "(", "(?>"]),
            st.lists(inner, min_size=1, max_size=3).map("|".join),
            st.sampled_from(QUANTIFIERS),
        ).map(lambda parts: f"{parts[0]}{parts[1]}){parts[2]}"),
    ),
    max_leaves=6,
)
short_texts = st.lists(
    st.text(" \n\r\tabcdAksS'.-é日ſK½²1\u2003\u200d_☺\x85]{}", max_size=9), min_size=5, max_size=15
)


@pytest.mark.sampled(1.0)
@settings(max_examples=sample_size(1500, 0.2), deadline=None)
@given(st.lists(regexes, min_size=1, max_size=3).map("|".join), short_texts)
def test_generated_patterns_mean_the_same_or_are_refused(text: str, texts: list[str]) -> None:
    pattern = read_pattern(text)
    if pattern is not None:
        assert_splits_alike(text, pattern, texts)
    regex = write_pattern(text)
    if regex is not None:
        assert_splits_alike(regex, text, texts)


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("pattern", sorted(COVERING))
def test_known_patterns_leave_nothing_between_their_matches(pattern: str) -> None:
    """So `Removed` with `invert`, which removes what is between them, removes nothing."""
    regex = tokenizers.Regex(_core.SplitPattern(pattern).to_oniguruma())
    isolated = tokenizers.pre_tokenizers.Split(regex, "isolated")
    removed = tokenizers.pre_tokenizers.Split(regex, "removed", invert=True)
    for text in [*map(well_formed, hostile_texts(300)), *all_characters()[::5]]:
        assert removed.pre_tokenize_str(text) == isolated.pre_tokenize_str(text)


@pytest.mark.parametrize("name", NAMED_PATTERNS)
def test_empty_matches_are_what_sets_the_engines_apart(name: str) -> None:
    steps = [("Split", pattern, "Isolated", False) for pattern in NAMED_PATTERNS[name].patterns]
    assert write_pre_tokenizer(steps) is not None  # none of them has any
    theirs = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"(?=b)"), "isolated")
    assert len(theirs.pre_tokenize_str("abab")) == 3
    assert len(_core.SplitPattern(r"(?=b)").split("abab")) == 1


def test_punctuation_is_the_librarys(tmp_path: Path) -> None:
    pattern = _core.SplitPattern(f"[{PUNCTUATION}]")
    theirs = tokenizers.pre_tokenizers.Punctuation("isolated")
    for text in all_characters():
        assert pattern.split(text) == [piece for piece, _ in theirs.pre_tokenize_str(text)]


def test_digits_are_numbers_of_unicode_16() -> None:
    """The library's `Digits` asks the Rust it was built with, which may know a newer Unicode than its
    regular expressions and ours do. Code points that Unicode 16 does not assign are left out."""
    pattern, letter = _core.SplitPattern(r"\p{N}"), _core.SplitPattern(r"\p{Cn}")
    theirs = tokenizers.pre_tokenizers.Digits(individual_digits=True)
    for start in range(0, 0x110000, 0x1000):
        assigned = [c for c in code_points(start, start + 0x1000) if len(letter.split(f"{c}a")) == 1]
        text = "a".join(assigned)
        assert pattern.split(text) == [piece for piece, _ in theirs.pre_tokenize_str(text)]


# -- our files ------------------------------------------------------------------------------------------

TRAINED: dict[str, dict[str, Any]] = {
    "default": {},
    "gpt2": {"split_pattern": "gpt2", "normalization": None},
    "r50k": {"split_pattern": "r50k", "normalization": None, "special_tokens": ["<|endoftext|>"]},
    "o200k": {"split_pattern": "o200k", "special_tokens": {"<|x|>": 100257}},
    "llama3": {"split_pattern": "llama3", "normalization": "NFD", "special_tokens": ["<s>", "</s>", "<pad>"]},
    "qwen2": {"split_pattern": "qwen2", "normalization": "NFKC", "special_tokens": {"<a>": 300, "<b>": 459}},
    "tekken": {"split_pattern": "tekken", "normalization": "NFKD"},
    "starcoder": {"split_pattern": "starcoder", "special_tokens": {"<eos>": 460, "<bos>": 461}},
    "deepseek-v3": {
        "split_pattern": "deepseek-v3",
        "normalization": None,
        "special_tokens": {
            "<｜begin▁of▁sentence｜>": 460,
            "«café»": 256,
            "écrit": 400,
            "日本": 100_000,
            " ": 70_000,
        },
    },
    "deepseek-llm": {"split_pattern": "deepseek-llm", "special_tokens": {"<a>": 460, "<b>": 462}},
    "words": {"split_pattern": r"\\w+|\\s|[^\\w\\s]+$|'", "special_tokens": {"<eos>": 459}},
    "lines": {"split_pattern": r"[^\\n]*\\n|.+", "special_tokens": {"far": 1_000_000}},
}


def trained(options: dict[str, Any], texts: Sequence[str]) -> BPETokenizer:
    init = {name: options[name] for name in ("split_pattern", "normalization") if name in options}
    return BPETokenizer(**init).train(
        texts, vocab_size=460, special_tokens=options.get("special_tokens"), verbose=False
    )


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("options", TRAINED.values(), ids=TRAINED)
def test_what_we_save_means_the_same_to_the_library(
    options: dict[str, Any], stdlib_texts: list[str], mixed_text: str, tmp_path: Path
) -> None:
    ours = trained(options, [*stdlib_texts[:2], mixed_text])
    ours.save(tmp_path)
    theirs = theirs_of(tmp_path)
    again = BPETokenizer.from_pretrained(tmp_path)
    names = list(ours.special_tokens)
    assert again.special_tokens == ours.special_tokens
    assert {name: theirs.token_to_id(name) for name in names} == ours.special_tokens
    assert (again.vocab_size, again.vocab, again.merges) == (ours.vocab_size, ours.vocab, ours.merges)
    texts = [*hostile_texts(300), *special_token_texts(names)]
    form = ours.normalization
    unchanged = [text for text in texts if form is None or is_normalized(form, text)]
    assert_same(theirs, ours, [stdlib_texts[3][:5000], *unchanged])
    if form is not None:
        assert_same_ids(theirs, ours, [mixed_text, stdlib_texts[3], *texts])
        assert_spans_hold(theirs, ours, [mixed_text, *texts])
    assert [again.encode(text, allowed_special="all") for text in texts] == [
        ours.encode(text, allowed_special="all") for text in texts
    ]


def test_special_tokens_of_every_layout_keep_their_ids(tmp_path: Path) -> None:
    base = BPETokenizer(split_pattern="gpt2").train("ab ab abab", vocab_size=260, verbose=False)
    size = base.vocab_size
    for layout in (
        [size],
        [size, size + 1, size + 2],
        [size + 1],
        [size + 2, size, size + 1],
        [size, size + 2],
        [100_257, size],
        [100_257, size, size + 1, 200_000],
    ):
        ours = BPETokenizer.from_vocab(base.vocab, base.merges, split_pattern="gpt2")
        ours.add_special_tokens({f"<{index}>": token_id for index, token_id in enumerate(layout)})
        ours.save(tmp_path)
        theirs = theirs_of(tmp_path)
        text = "ab".join(ours.special_tokens)
        assert theirs.encode(text, add_special_tokens=False).ids == ours.encode(text, allowed_special="all")
        again = BPETokenizer.from_pretrained(tmp_path)
        assert again.special_tokens == ours.special_tokens
        assert again.vocab_size == size
        theirs.save(str(tmp_path / "tokenizer.json"))  # and after the library has written it
        rewritten = BPETokenizer.from_pretrained(tmp_path)
        assert (rewritten.special_tokens, rewritten.vocab_size) == (ours.special_tokens, size)


# -- the release candidates of version 1 ----------------------------------------------------------------

READ_WITH_VERSION_1 = """
import json, sys
from tokenizers import Tokenizer
task = json.load(sys.stdin)
results = {}
for name, path in task["files"].items():
    try:
        tokenizer = Tokenizer.from_file(path)
        rows = [list(tokenizer.encode(text).ids) for text in task["texts"]]
    except ValueError as error:
        results[name] = str(error)
        continue
    results[name] = [rows, [tokenizer.decode(row, skip_special_tokens=False) for row in rows]]
json.dump(results, sys.stdout)
"""


def test_version_1_reads_our_files(stdlib_texts: list[str], mixed_text: str, tmp_path: Path) -> None:
    """It has no regular expressions: it knows some published patterns by their text and refuses the rest."""
    python = os.environ.get("BPE_TOKENIZER_TOKENIZERS1")
    if not python:
        pytest.skip("BPE_TOKENIZER_TOKENIZERS1 names no python that has tokenizers 1.0")
    ours = {name: trained(options, [*stdlib_texts[:2], mixed_text]) for name, options in TRAINED.items()}
    for name, tokenizer in ours.items():
        tokenizer.save(tmp_path / name)
    texts = [mixed_text, stdlib_texts[3][:20_000], *map(well_formed, hostile_texts(300))]
    files = {name: str(tmp_path / name / "tokenizer.json") for name in ours}
    task = json.dumps({"files": files, "texts": texts})
    run = subprocess.run([python, "-c", READ_WITH_VERSION_1], input=task, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    results = json.loads(run.stdout)
    refused = {name for name, result in results.items() if isinstance(result, str)}
    assert refused == {"default", "starcoder", "deepseek-v3", "deepseek-llm", "words", "lines"}
    assert all("system-regex backend" in results[name] for name in refused)
    for name in ours.keys() - refused:
        rows, decoded = results[name]
        expected = [ours[name].encode(text, add_special_tokens=True, allowed_special="all") for text in texts]
        assert rows == expected, name
        assert decoded == [ours[name].decode(row) for row in rows], name
