"""Which models have ids that are ranks."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from bpe_tokenizer import AddedToken, FormatError, Model, _core
from bpe_tokenizer.formats import tiktoken as format_
from bpe_tokenizer.formats.tiktoken.merges import ranks_from_model
from bpe_tokenizer.formats.tiktoken.patterns import MATCH_ALL
from bpe_tokenizer.model import PlainNormalizer, Split
from tiktoken_files import TEXTS, core, ids, merged


def test_a_model_that_does_not_split_is_saved(tmp_path: Path) -> None:
    model = Model(core({256: b"ab"}, [(b"a", b"b")], split_patterns=[]))
    load_kwargs = format_.save(model, tmp_path / "my.tiktoken")
    assert load_kwargs["split_pattern"] == [MATCH_ALL]
    assert ids(format_.load(tmp_path / "my.tiktoken", **load_kwargs), TEXTS) == ids(model, TEXTS)


A, B = b"a", b"b"
ABC = {256: b"ab", 257: b"bc", 258: b"abc"}


END = AddedToken("<|end|>", 999)


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (core({}, [], normalization="NFC"), "^normalization: "),
        (core({}, [], normalizers=[PlainNormalizer("Lowercase")]), "^normalizers: "),
        (core({}, [], add_prefix_space=True), "^add_prefix_space: "),
        (core({}, [], pre_tokenizers=[Split(pattern="a", behavior="Contiguous")]), "^pre_tokenizers: "),
        (core({}, [], [END._replace(lstrip=True)]), r"^added_tokens: .*lstrip of '<\|end\|>'"),
        (core({}, [], [END._replace(single_word=True)]), "^added_tokens: .*single_word"),
        (core({}, [], [END._replace(special=False)]), "^added_tokens: .*which is not special and"),
        (core({}, [], [END, AddedToken("x", 5, normalized=True)._replace(id=998)]), "normalized"),
        (core({256: b"ab", 257: b"ab"}, []), "^vocab: duplicate token b'ab': ids 256 and 257"),
        (core({256: b"bc", 257: b"ab"}, [(A, B), (B, b"c")]), r"^merges: .*b'ab' \(id 257\) .* b'bc' \("),
        (core({256: b"ab"}, []), "^merges: .*b'a' and b'b' are not merged"),
        (core({256: b"bc", 257: b"ab"}, []), "^merges: .*b'b' and b'c' are not merged"),
        (core({256: b"ab", 257: b"xyz"}, [(A, B)]), "^ignore_merges: no merges make the token b'xyz'"),
        (core({256: b"ab"}, [], ignore_merges=True), "^merges: .*b'a' and b'b' are not merged"),
        (core({256: b"abc"}, []), "^ignore_merges: no merges make the token b'abc'"),
        (core(ABC, [(A, B), (B, b"c"), (A, b"bc")]), "^merges: .*b'ab' and b'c' are not merged"),
        (core({256: b"ab"}, [(A, B)], [AddedToken("ab", 256)]), "^merges: .*makes the special token b'ab'"),
        (_core.Model({0: b"a"}, [], alphabet="characters"), "^alphabet: "),
        (_core.Model({0: b"a"}, [], requires_all_bytes=False), "^vocab: "),
        (core({}, [], [AddedToken("a", 97)]), "^vocab: .*no token for the byte 0x61"),
    ],
)
def test_a_model_that_ranks_cannot_hold_is_refused_by_name(
    tmp_path: Path, model: _core.Model, problem: str
) -> None:
    with pytest.raises(FormatError, match=problem) as caught:
        format_.save(Model(model), tmp_path / "my.tiktoken")
    assert " .tiktoken " in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_merges_that_never_matter_are_accepted() -> None:
    # Llama 3's tokenizer.json lists every pair that could make a token; only one of them ever does.
    model = core(ABC, [(A, B), (B, b"c"), (b"ab", b"c"), (A, b"bc")])
    assert ranks_from_model(model, "x")[b"abc"] == 258
    # A token that merging does not make is no matter where pieces are looked up.
    assert ranks_from_model(core({256: b"abc"}, [], ignore_merges=True), "x")[b"abc"] == 256


def test_special_tokens_between_the_ranks_are_left_out() -> None:
    model = core({258: b"ab"}, [(A, B)], [AddedToken("<x>", 256), AddedToken("<y>", 257)])
    assert ranks_from_model(model, "x") == {bytes([byte]): byte for byte in range(256)} | {b"ab": 258}


def random_model(generator: random.Random) -> _core.Model:
    """Tokens of few letters, merges more or less in the order of the ids, some missing, some too many."""
    found = {"".join(generator.choices("abc", k=generator.randint(2, 4))) for _ in range(8)}
    tokens = sorted(found, key=lambda token: (len(token), token))
    if generator.random() < 0.3:
        generator.shuffle(tokens)
    vocab = {256 + 3 * index: token.encode() for index, token in enumerate(tokens)}
    known = {*"abc", *tokens}
    merges = []
    for token in tokens:
        pairs = [(token[:at], token[at:]) for at in range(1, len(token))]
        pairs = [pair for pair in pairs if known.issuperset(pair)]
        generator.shuffle(pairs)
        merges += pairs[: generator.choice([1, 1, 2, 3]) if generator.random() < 0.95 else 0]
    if generator.random() < 0.2 and len(merges) > 1:
        at = generator.randrange(len(merges) - 1)
        merges[at : at + 2] = reversed(merges[at : at + 2])
    pairs_of_bytes = [(left.encode(), right.encode()) for left, right in merges]
    return core(vocab, pairs_of_bytes, split_patterns=[], ignore_merges=generator.random() < 0.5)


def test_accepted_models_give_the_ids_of_their_ranks() -> None:
    generator = random.Random(0)
    pieces = [
        "".join(letters) for length in range(1, 7) for letters in itertools.product("abc", repeat=length)
    ]
    accepted = 0
    for _ in range(400):
        model = random_model(generator)
        try:
            ranks = ranks_from_model(model, "x")
        except FormatError:
            continue
        accepted += 1
        for piece in [*pieces[:39], *generator.sample(pieces, 100)]:
            data = piece.encode()
            parts = [data] if data in ranks else merged(ranks, data)
            found = _core.Encoder(model).encode(piece)
            assert found == [ranks[part] for part in parts], (model.merges, piece)
    assert 50 < accepted < 350
