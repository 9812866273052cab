"""The page's core gives what the package gives, on wasmtime: `make wasm` builds it."""

from __future__ import annotations

import base64
import contextlib
import json
import random
import shutil
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hf_files
from bpe_tokenizer import AddedToken, BPETokenizer
from bpe_tokenizer.errors import TokenizerError
from bpe_tokenizer.formats import huggingface
from bpe_tokenizer.patterns import NAMED_PATTERNS
from bpe_tokenizer.view.packed import pack
from hostile import hostile_texts
from mutations import break_bytes, break_json, break_numbers, hopeless
from small_tokenizers import BYTES, hard_texts, relaxed, tiny, without_surrogates
from view.report_corpus import sentencepiece_style
from wasm_core import WASM, WasmCore, WasmError, WasmTokenizer

ADDED, SPECIAL, PIECE_START, STARTS_INSIDE, ENDS_INSIDE = 1, 2, 4, 8, 16

pytestmark = pytest.mark.skipif(not WASM.exists(), reason="core.wasm is missing: make wasm builds it")


def packed(core: WasmCore, tokenizer: BPETokenizer) -> WasmTokenizer:
    return core.load_packed(pack(tokenizer))


def from_document(document: dict[str, Any]) -> BPETokenizer:
    """The tokenizer of a tokenizer.json."""
    return BPETokenizer.from_model(huggingface.loads(json.dumps(document)))


def utf16_positions(text: str) -> list[int]:
    """The position in UTF-16 of each character and of the end."""
    positions = [0]
    for character in text:
        positions.append(positions[-1] + 1 + (character > "\uffff"))
    return positions


def assert_same(theirs: WasmTokenizer, ours: BPETokenizer, texts: Sequence[str]) -> None:
    """Compare everything that encoding gives."""
    special = sorted(ours.special_tokens)
    for number, text in enumerate(texts):
        text = without_surrogates(text)
        choice: Any = (False, True, special[: number % 3])[number % 3]
        allowed: Any = {False: "none", True: "all"}[choice] if isinstance(choice, bool) else set(choice)
        ids, spans = ours.encode_with_offsets(text, allowed_special=allowed, tile=False)
        found = theirs.encode(text, choice)
        assert found.ids.tolist() == ids, text
        assert theirs.ids(text, choice) == ids, text
        assert theirs.count(text, choice) == len(ids), text
        units = utf16_positions(text)
        assert found.starts.tolist() == [units[start] for start, _ in spans], text
        assert found.ends.tolist() == [units[end] for _, end in spans], text
        _, byte_spans = ours.encode_with_offsets(text, allowed_special=allowed, tile=False, unit="byte")
        assert found.byte_starts.tolist() == [start for start, _ in byte_spans], text
        assert found.byte_ends.tolist() == [end for _, end in byte_spans], text
        assert_flags(found.flags.tolist(), ours, text, ids, byte_spans)
        firsts = [index for index, flags in enumerate(found.flags.tolist()) if flags & PIECE_START]
        assert found.pieces.tolist() == firsts, text
        assert len(found.piece_bytes) == len(firsts), text


def assert_flags(
    flags: list[int], ours: BPETokenizer, text: str, ids: list[int], spans: list[tuple[int, int]]
) -> None:
    data, added = text.encode(), {token.id: token for token in ours.model.core.added_tokens}
    for flag, token_id, (start, end) in zip(flags, ids, spans, strict=True):
        assert bool(flag & STARTS_INSIDE) == (
            data[start : start + 1] not in (b"",) and is_inside(data, start)
        )
        assert bool(flag & ENDS_INSIDE) == is_inside(data, end)
        if flag & ADDED:
            assert flag & PIECE_START
            assert bool(flag & SPECIAL) == added[token_id].special
        assert not flag & SPECIAL or flag & ADDED


def is_inside(data: bytes, at: int) -> bool:
    return at < len(data) and data[at] & 0xC0 == 0x80


# -- encoding ---------------------------------------------------------------------------------------------


@pytest.mark.sampled(0.25, "long tests")
def test_texts_that_break_tokenizers(
    core: WasmCore, tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer
) -> None:
    texts = hostile_texts(mixtures=500)
    for ours in (tokenizer, plain_tokenizer):
        assert_same(packed(core, ours), ours, texts)


MERGES = ("h|e", "t|he", " |t", " t|he", "a|a", "aa|aa", "l|o", "lo|w")


@pytest.fixture(scope="module")
def small(core: WasmCore) -> list[tuple[WasmTokenizer, BPETokenizer]]:
    """Tokenizers of a few merges, with every setting that changes ids or places."""
    models = [
        tiny(*MERGES),
        tiny(*MERGES, special_tokens={"<|bos|>": 300, "<|eos|>": 264}),
        tiny(*MERGES, special_tokens=["<|pad|>"], normalization="NFKC"),
        tiny(*MERGES, split_pattern="o200k", normalization="NFD"),
        tiny(*MERGES, split_pattern="deepseek-v3"),
        tiny(*MERGES, split_pattern=r"(?<=\s)\S+|\s+|\S"),
        tiny(*MERGES, split_pattern="(?s).+"),
        # Merges that the ranks do not give, ids with gaps, and a merge with the id 0.
        BPETokenizer.from_vocab(
            {0: b"th"} | {1 + byte: bytes([byte]) for byte in range(256)}, [(b"t", b"h")]
        ),
        BPETokenizer.from_vocab(BYTES | {256: b"the", 257: b"th"}, [(b"t", b"h"), (b"th", b"e")]),
        BPETokenizer.from_vocab(BYTES | {300: b"th", 70_000: b"the"}, [(b"t", b"h"), (b"th", b"e")]),
        BPETokenizer.from_model(hf_files.small_model(AddedToken('"\\\n\0é日😀', 2**32 - 2))),
    ]
    models += [sentencepiece_style(), *map(from_document, documents())]
    return [(packed(core, ours), ours) for ours in models]


@relaxed
@given(data=st.data())
def test_every_setting_gives_the_same(
    small: list[tuple[WasmTokenizer, BPETokenizer]], data: st.DataObject
) -> None:
    text = data.draw(hard_texts)
    for theirs, ours in data.draw(st.lists(st.sampled_from(small), min_size=1, max_size=4)):
        assert_same(theirs, ours, [text, text, text])


def test_pieces_are_those_of_the_pattern(core: WasmCore) -> None:
    text = "the naïve 日本, 1234!\n"
    starts = packed(core, tiny(*MERGES, split_pattern="cl100k")).encode(text).piece_bytes.tolist()
    pieces = [text.encode()[start:end].decode() for start, end in pairwise([*starts, None])]
    assert pieces == ["the", " naïve", " 日本", ",", " ", "123", "4", "!\n"]


def test_a_long_text_and_a_long_piece(
    core: WasmCore, plain_tokenizer: BPETokenizer, stdlib_texts: list[str]
) -> None:
    theirs = packed(core, plain_tokenizer)
    for text in ("".join(stdlib_texts), "ab" * 200_000, "日本" * 50_000):
        assert theirs.ids(text) == plain_tokenizer.encode(text)
        assert theirs.encode(text).ids.tolist() == plain_tokenizer.encode(text)


def test_tokens_are_their_bytes(core: WasmCore, tokenizer: BPETokenizer) -> None:
    theirs = packed(core, tokenizer)
    vocab = tokenizer.vocab
    assert theirs.tokens(list(vocab)) == list(vocab.values())
    with pytest.raises(WasmError, match="1000 at position 1 is not in the vocabulary"):
        theirs.tokens([0, 1000])
    spaced = packed(core, sentencepiece_style())
    assert spaced.tokens([2 + 0x0A, 2 + 256]) == [b"\n", "▁".encode()]


def test_a_trace_is_that_of_the_package(
    core: WasmCore, small: list[tuple[WasmTokenizer, BPETokenizer]]
) -> None:
    generator = random.Random(1)
    parts = [*" theaé日本x", "the", " the", "aaaa", "é", "\0"]
    for theirs, ours in small:
        for _ in range(100):
            piece = "".join(generator.choices(parts, k=generator.randrange(12))).encode()
            trace = ours._compiled().encoder.trace_merges(piece)
            steps = [
                (step.rank, step.left, step.right, step.left_id, step.right_id, step.token_id)
                for step in trace.steps
            ]
            assert theirs.trace(piece) == (trace.symbols, steps, trace.ids, trace.is_whole)


# -- files ------------------------------------------------------------------------------------------------


def documents() -> list[dict[str, Any]]:
    """Files of tokenizer.json with every kind of step."""
    found = [
        hf_files.good(),
        hf_files.good_characters(),
    ]
    patterns: list[Any] = [
        [hf_files.split(NAMED_PATTERNS["cl100k"].patterns[0], behavior="Removed", invert=True)],
        [hf_files.split("[0-9]", behavior="MergedWithNext")],
        [{"type": "Digits", "individual_digits": False}, {"type": "Punctuation", "behavior": "Contiguous"}],
        [{"type": "Whitespace"}],
        [{"type": "WhitespaceSplit"}],
        [{"type": "BertPreTokenizer"}],
    ]
    for steps in patterns:
        found.append(hf_files.good() | {"pre_tokenizer": hf_files.sequence(*steps)})
    found.append(hf_files.good() | {"pre_tokenizer": hf_files.byte_level(add_prefix_space=True)})
    found.append(hf_files.good() | {"normalizer": {"type": "Nmt"}})
    found.append(hf_files.good() | {"normalizer": {"type": "Lowercase"}})
    for scheme in ("always", "first", "never"):
        metaspace = hf_files.METASPACE | {"prepend_scheme": scheme, "split": True}
        found.append(
            hf_files.good_characters()
            | {"normalizer": None, "pre_tokenizer": metaspace, "decoder": metaspace}
        )
    return found


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("index", range(len(documents())))
def test_a_tokenizer_json(core: WasmCore, index: int) -> None:
    ours = from_document(documents()[index])
    theirs = packed(core, ours)
    assert_info(theirs, ours)
    assert_same(
        theirs, ours, [*hostile_texts(mixtures=20)[::4], "hello <eos> hel 12!? <bos>\n", " low ▁low\n  lo"]
    )


def assert_info(theirs: WasmTokenizer, ours: BPETokenizer) -> None:
    core = ours.model.core
    info = theirs.info
    assert info["vocabSize"] == len(core)
    assert [token["id"] for token in info["addedTokens"]] == [token.id for token in core.added_tokens]
    assert [token["special"] for token in info["addedTokens"]] == [it.special for it in core.added_tokens]
    roles = {role: getattr(ours, f"{role}_token") for role in ("bos", "eos", "pad", "unk")}
    assert info["roles"] == {role: text for role, text in roles.items() if text}
    if core.split_patterns is not None:
        assert info["patterns"] == core.split_patterns
    ids = list(ours.vocab)
    if core.decoder is None:
        assert theirs.tokens(ids) == list(ours.vocab.values())


@pytest.mark.sampled(0.25, "long tests")
def test_a_changed_tokenizer_json_gives_the_same(core: WasmCore) -> None:
    """Whatever the package reads, the page has with the same ids."""
    compared = 0
    for document in (hf_files.good(), hf_files.good_characters()):
        for data in break_json(document, 225, seed=3):
            with contextlib.suppress(TokenizerError, UnicodeDecodeError):
                ours = BPETokenizer.from_model(huggingface.loads(data.decode()))
                assert_same(packed(core, ours), ours, ["hello <eos> ▁hel 1!é low <|end|>  lo"])
                compared += 1
    assert compared > 60


def ranks_of(*tokens: bytes) -> bytes:
    ranks = enumerate([*(bytes([byte]) for byte in range(256)), *tokens])
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in ranks)


def test_a_rank_file(core: WasmCore, tmp_path: Path) -> None:
    data = ranks_of(b"he", b"hel", b"lo", b"hello")
    path = tmp_path / "mine.tiktoken"
    path.write_bytes(data)
    special = {"<|end|>": 300, "<|hole|>": 260}
    ours = BPETokenizer.from_tiktoken(path, split_pattern="cl100k", special_tokens=special)
    pattern = NAMED_PATTERNS["cl100k"].patterns[0]
    for changed in (data, data.replace(b"\n", b"\r\n"), data.removesuffix(b"\n"), data + b"\n\n"):
        theirs = core.load_ranks(changed, [pattern], special)
        assert_info(theirs, ours)
        assert_same(theirs, ours, ["hello hell <|end|> <|hole|>", *hostile_texts(mixtures=20)[::4]])


def test_a_rank_file_with_several_patterns(core: WasmCore, tmp_path: Path) -> None:
    data = ranks_of(b"he", b"hel", b"12", b"34")
    path = tmp_path / "mine.tiktoken"
    path.write_bytes(data)
    ours = BPETokenizer.from_tiktoken(path, split_pattern="deepseek-v3", special_tokens={})
    theirs = core.load_ranks(data, NAMED_PATTERNS["deepseek-v3"].patterns)
    assert_info(theirs, ours)
    assert_same(theirs, ours, ["hello 1234 日本語", *hostile_texts(mixtures=20)[::4]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"YQ== 0\nYWI= x\n", "line 2: the rank is not a non-negative integer"),
        (b"YQ== 0\nYQ== 1\n", 'duplicate token "a"'),
        (b"YQ== 0\nYg== 0\n", "duplicate rank 0"),
        (b"YQ== 0\n", "no token for the byte 0x00"),
    ],
)
def test_a_broken_rank_file(core: WasmCore, data: bytes, message: str) -> None:
    with pytest.raises(WasmError, match=message):
        core.load_ranks(data, [r"\w+|\W+"])


@pytest.mark.parametrize("data", list(hopeless()), ids=lambda data: repr(data[:12]))
def test_what_is_no_tokenizer_is_refused(core: WasmCore, data: bytes) -> None:
    with pytest.raises(WasmError):
        core.load_packed(data)
    with pytest.raises(WasmError):
        core.load_ranks(data, ["."])


@pytest.mark.sampled(0.25, "long tests")
def test_a_broken_packed_model_is_refused_or_works(core: WasmCore) -> None:
    ours = tiny(*MERGES, special_tokens=["<|end|>"], normalization="NFC")
    data = pack(ours)
    refused = 0
    for broken in [
        *break_bytes(data, 1500),
        *break_numbers(data, 1500),
        *(data[:end] for end in range(len(data))),
    ]:
        try:
            theirs = core.load_packed(broken)
            theirs.encode("the end<|end|> é aaaa 日本", special=True)
            theirs.trace(b" the")
        except WasmError:
            refused += 1
    assert refused > 1000


@pytest.mark.sampled(0.25, "long tests")
def test_a_broken_rank_file_is_refused_or_works(core: WasmCore) -> None:
    ranks = ranks_of(b"he", b"hel")
    for seed in range(600):
        with contextlib.suppress(WasmError):
            broken = next(break_bytes(ranks, 1 + seed % 12, seed))
            core.load_ranks(broken, [r"\w+|\W+"]).encode("hello def")


# -- the boundary -----------------------------------------------------------------------------------------


def test_wrong_arguments_are_errors(core: WasmCore) -> None:
    theirs = packed(core, tiny())
    with pytest.raises(WasmError, match="not valid UTF-8"):
        theirs._call("ids", theirs._write(1, b"\xff"), 0)
    with pytest.raises(WasmError, match="longer than its buffer"):
        theirs._call("ids", 1 << 30, 0)
    with pytest.raises(WasmError, match="the special tokens"):
        theirs._call("ids", 0, 2 + theirs._write(0, b"{}"))
    assert theirs.ids("abc") == [97, 98, 99]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_core_js() -> None:
    script = Path(__file__).with_name("core_check.mjs")
    done = subprocess.run(
        ["node", "--test", str(script)], capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
