"""Every kind of tokenizer.json: ids, offsets and texts equal to those of Hugging Face `tokenizers`, and what
we save of it read to the same by both."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bpe_tokenizer import BPETokenizer, FormatError, _core
from hf_files import added_token, bytes_vocab, tokenizer_json, write
from hostile import code_points, hostile_texts, special_token_texts
from small_tokenizers import without_surrogates

if TYPE_CHECKING:
    pass

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")

from peers.hf_compare import (  # noqa: E402
    Pair,
    assert_same,
    assert_same_ids,
    assert_same_text,
    both,
    decodes_alike,
    opened,
)
from peers.hf_kinds import CHARACTER_MODELS, NO_REGEX, REAL_MODELS, metaspace, steps  # noqa: E402
from peers.hf_parts import (  # noqa: E402
    BYTE_LEVELS,
    NORMALIZERS,
    PRE_TOKENIZERS,
    of_bytes,
    parts,
    random_file,
    replace,
)
from peers.hf_vocabularies import MIXED, sample, trained  # noqa: E402

pytestmark = pytest.mark.peer

CORPORA = ["books", "code", "multi", "zh"]
PARTS = parts()


@lru_cache
def texts(mixtures: int, longest: int) -> list[str]:
    """The hostile set."""
    return [text for text in map(without_surrogates, hostile_texts(mixtures)) if len(text) <= longest]


def specials(pair: Pair) -> list[str]:
    """Some of the added tokens, in texts."""
    contents = [token["content"] for token in pair.document["added_tokens"]]
    return [without_surrogates(text) for text in special_token_texts([*contents[:5], *contents[-3:]])]


# -- comparisons ----------------------------------------------------------------------------------------


def random_rows(pair: Pair, count: int) -> Iterator[list[int]]:
    """Ids in any order, and bytes of characters: whole, cut, and with an added token between them."""
    generator = random.Random(0)
    vocab = pair.document["model"]["vocab"]
    added = [token["id"] for token in pair.document["added_tokens"]]
    known = [*vocab.values(), *added]
    for _ in range(count):
        row = generator.choices(known, k=15)
        if "<0xE9>" in vocab:
            data = generator.choice(["é日x", "🙂", "▁é", "日本"]).encode()[generator.randrange(2) :]
            row[3:3] = [vocab.get(f"<0x{byte:02X}>", known[0]) for byte in data]
            row[4:4] = generator.choices(added, k=generator.randrange(2)) if added else []
        yield row


def assert_saved_means_the_same(
    pair: Pair, directory: Path, texts: Sequence[str], saves_again: bool = True
) -> None:
    """What we save is read to the same ids by both, and saving it again writes the same."""
    pair.ours.save(directory / "1")
    _, theirs, again = opened(directory / "1")
    for text, expected in zip(texts, pair.theirs.encode_batch(list(texts)), strict=True):
        found = theirs.encode(text)
        assert found.ids == expected.ids, repr(text[:500])
        assert again.encode(text, True, allowed_special="all") == expected.ids, repr(text[:500])
        if decodes_alike(pair):
            assert theirs.decode(found.ids, False) == again.decode(found.ids), repr(text[:500])
    if not saves_again:
        return
    again.save(directory / "2")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (directory / "1" / name).read_bytes() == (directory / "2" / name).read_bytes()


# -- models ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def excerpts(corpus: Callable[[str, int], str]) -> list[str]:
    """The beginnings of the corpora, in paragraphs."""
    return [part for name in CORPORA for part in paragraphs(corpus(name, 6_000))]


def paragraphs(text: str) -> list[str]:
    return [text[start : start + 2000] for start in range(0, len(text), 2000)]


def check_model(pair: Pair, texts_: list[str], directory: Path) -> None:
    hostile = [*texts(200, 1000), *specials(pair)]
    assert_same(pair, [*texts_, *hostile])
    assert_same(pair, [*texts_[::10], *hostile[::5]], add_special_tokens=False)
    if decodes_alike(pair):
        assert_same_text(pair, random_rows(pair, 100))
    saves_again = len(pair.ours) < 60_000
    assert_saved_means_the_same(pair, directory, [*texts_[::5], *hostile[::10]], saves_again)


@pytest.mark.sampled(0.12)
@pytest.mark.fixtures
@pytest.mark.parametrize("name", REAL_MODELS)
def test_byte_level_models(name: str, shared: Path, excerpts: list[str], tmp_path: Path) -> None:
    check_model(both(tmp_path, REAL_MODELS[name](shared)), excerpts, tmp_path)


@pytest.mark.sampled(0.12)
@pytest.mark.fixtures
@pytest.mark.parametrize("name", CHARACTER_MODELS)
def test_models_of_characters_on_corpora(name: str, excerpts: list[str], tmp_path: Path) -> None:
    check_model(both(tmp_path, CHARACTER_MODELS[name]()), excerpts, tmp_path)


@pytest.mark.sampled(0.12)
@pytest.mark.parametrize("name", CHARACTER_MODELS)
def test_models_of_characters(name: str, tmp_path: Path) -> None:
    check_model(both(tmp_path, CHARACTER_MODELS[name]()), paragraphs(sample()[0][:20_000]), tmp_path)


# Of each corpus; -1 takes all of it, which is half an hour's work for the library.
CHARACTERS = int(os.environ.get("BPE_TOKENIZER_CHARACTERS", "400000"))


@pytest.mark.slow
@pytest.mark.fixtures
@pytest.mark.parametrize("name", [*REAL_MODELS, *CHARACTER_MODELS])
def test_models_on_each_corpus(
    name: str, shared: Path, documents: Callable[[str, int], list[str]], tmp_path: Path
) -> None:
    document = REAL_MODELS[name](shared) if name in REAL_MODELS else CHARACTER_MODELS[name]()
    _, theirs, ours = both(tmp_path, document)
    for corpus_name in CORPORA:
        assert_same_ids(theirs, ours, documents(corpus_name, CHARACTERS))


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_parts_on_all_hostile_texts(name: str, tmp_path: Path) -> None:
    assert_same(both(tmp_path, PARTS[name]()), texts(2000, 10_000))


# -- parts ----------------------------------------------------------------------------------------------

SHORT = [
    "",
    " ",
    "Hello, world! it's 1234 ½ wor",
    "  two  wor worth\n\n\r\n x ",
    "[A b] a [a b]  [A b]\t",
    "<M> a<M>\n<M> <M><s>wor <s> ET éET ET 12  12",
    "日本 café e\u0301\u0323 ǅ ﬁ İ ẞ \u2003 ▁ ▁▁a a▁",
    "don't WE'RE <0x0A> <unk> 3.14, (x)  [y];e",
    "1234567x a1234567 1234\n½1234½ 5678_9 1,234,567 1234\u200d ٣٤٥٦٧ pi is 3.14159265358979",
    MIXED,
]


@pytest.mark.sampled(0.12)
@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str, tmp_path: Path) -> None:
    pair = both(tmp_path, PARTS[name]())
    some = [*SHORT, sample()[0][3000:4500], *specials(pair)[::2], *texts(40, 60)[::3]]
    assert_same(pair, some)
    if decodes_alike(pair):
        assert_same_text(pair, random_rows(pair, 10))
    assert_saved_means_the_same(pair, tmp_path, some[::3])


# Every day, for a sample may not have what is read as something else.
def test_every_step_cuts_as_in_the_library(tmp_path: Path) -> None:
    cuts = [steps("p", step, NO_REGEX) for step in PRE_TOKENIZERS.values()] + [*BYTE_LEVELS.values()]
    for step in cuts:
        _, theirs, ours = both(tmp_path, of_bytes(added=[], pre_tokenizer=step))
        encoder = _core.Encoder(ours.model.core)
        for text in SHORT:
            expected = [piece for piece, _ in theirs.pre_tokenizer.pre_tokenize_str(text)]
            assert [_core.to_printable(piece) for piece in encoder.pieces(text)] == expected, (step, text)


def test_every_other_part_on_a_few_texts(tmp_path: Path) -> None:
    kinds = "normalizer|metaspace|decoder|post-processor"
    builds = [build for name, build in PARTS.items() if re.search(kinds, name)]
    for build in (*builds, CHARACTER_MODELS["old tinyllama"]):
        assert_same(both(tmp_path, build()), SHORT)


@pytest.mark.sampled(0.16)
@pytest.mark.parametrize("name", [*PARTS, *CHARACTER_MODELS])
def test_streams(name: str, tmp_path: Path) -> None:
    """Text that comes some at a time has the ids of the whole, whatever the steps."""
    write(tmp_path, (PARTS | CHARACTER_MODELS)[name]())
    ours, rng = BPETokenizer.from_pretrained(tmp_path), random.Random(name)
    for text in [*SHORT, *texts(40, 60)[::9]]:
        places = sorted(rng.choices(range(len(text) + 1), k=6))
        chunks = [text[start:end] for start, end in zip([0, *places], [*places, None], strict=True)]
        ids = [token_id for part in ours.encode_streaming(chunks, "all") for token_id in part]
        assert ids == ours.encode(text, allowed_special="all"), chunks


def check_random_file(seed: int, directory: Path) -> None:
    try:
        pair = both(directory, random_file(seed))
    except FormatError as error:
        if re.search("which another token strips|after normalisation", str(error)):
            return
        raise
    assert_same(pair, [*SHORT, *texts(60, 60)[::2]])
    assert_saved_means_the_same(pair, directory, SHORT)


@pytest.mark.sampled(0.12)
@pytest.mark.parametrize("seed", range(60))
def test_random_files(seed: int, tmp_path: Path) -> None:
    check_random_file(seed, tmp_path)


@pytest.mark.slow
def test_many_random_files(tmp_path: Path) -> None:
    for seed in range(60, 600):
        check_random_file(seed, tmp_path)


# -- every character ------------------------------------------------------------------------------------

# What changes characters by properties that Unicode adds to.
BY_PROPERTY = ["Lowercase", "Nmt", "strip left right"]
SPLIT_BY_PROPERTY = ["Whitespace", "WhitespaceSplit", "BertPreTokenizer", "Punctuation"]


def assert_same_on_every_character(pair: Pair) -> None:
    texts = [f"a{character}B" for character in code_points()]
    assert_same_ids(pair.theirs, pair.ours, texts)


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_PROPERTY)
def test_normalizers_on_every_character(name: str, tmp_path: Path) -> None:
    assert_same_on_every_character(
        both(tmp_path, tokenizer_json(bytes_vocab(), normalizer=NORMALIZERS[name]))
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", SPLIT_BY_PROPERTY)
def test_pre_tokenizers_on_every_character(kind: str, tmp_path: Path) -> None:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    steps = {"type": "Sequence", "pretokenizers": [{"type": kind}, byte_level]}
    document = tokenizer_json(bytes_vocab("aB"), [["a", "B"]], pre_tokenizer=steps)
    assert_same_on_every_character(both(tmp_path, document))


def test_the_library_gives_added_tokens_the_ids_that_we_expect(tmp_path: Path) -> None:
    ids, merges = trained()
    added = [added_token(700, "<a>"), added_token(7777, "<far>"), added_token(701, "<b>")]
    write(tmp_path, tokenizer_json(ids, merges, added=added))
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert [theirs.token_to_id(name) for name in ("<a>", "<far>", "<b>")] == [700, 701, 702]
    with pytest.raises(FormatError, match=r"added_tokens\[1\]\.id: 7777 .* which is 701;"):
        BPETokenizer.from_pretrained(tmp_path)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", CHARACTER_MODELS)
def test_transformers_opens_what_we_save(name: str, tmp_path: Path) -> None:
    from peers.hf_transformers import transformers

    pair = both(tmp_path / "1", CHARACTER_MODELS[name]())
    pair.ours.save(tmp_path / "2")
    opened = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "2"))
    for text in [*SHORT, *specials(pair)[::4]]:
        ids = pair.ours.encode(text, True, allowed_special="all")
        assert opened.encode(text) == ids, repr(text)
        if decodes_alike(pair):
            assert opened.decode(ids) == pair.ours.decode(ids), repr(text)


@pytest.mark.parametrize(
    ("normalizer", "text"),
    [
        (replace("ab", "é", "Regex"), "ab"),
        (replace("a|bb", "é", "Regex"), "ab"),
        (replace("bb", "é", "Regex"), "abb"),
        (replace("a+", "", "Regex"), "aab"),
        (replace("a", "xb", "Regex"), "a"),
        ({"type": "StripAccents"}, "\u0301a"),
        ({"type": "Prepend", "prepend": "x"}, "ab"),
        ({"type": "NFD"}, "\u0340\u0301a"),
    ],
)
def test_the_first_piece_begins_at_the_first_character(
    normalizer: dict[str, Any], text: str, tmp_path: Path
) -> None:
    # The naive stages of fuzz/src/models.rs have the same cases.
    ids = {token: index for index, token in enumerate(["a", "b", "é", "\u0301", "▁"])}
    document = tokenizer_json(
        ids,
        [],
        added=[added_token(5, "x", special=False, normalized=True)],
        normalizer=normalizer,
        pre_tokenizer=metaspace("first"),
        decoder=metaspace("first"),
    )
    assert_same(both(tmp_path, document), [text])
