"""Checks of the exercises of chapter 7."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bpe_tokenizer.reference import NaiveBPETokenizer
from course.exercise import WrongAnswer, compared, exercise, expect_function, shortened

_TEXTS = ("low lowest", "é è ê ë", "naïve 🦜 and 中文", "🦜🦜", "a", "日本語テキスト", "a \ufffd é\ufffd")


def _tokenizers() -> list[NaiveBPETokenizer]:
    texts = ("é è ê ë ï ü", "中国 中文 low", "🦜 🦊 🦉 lowest")
    return [NaiveBPETokenizer().train(text, 262) for text in texts]


def _encoded() -> Iterator[tuple[list[int], dict[int, bytes]]]:
    """Yield ids of texts, and the tokens that they use."""
    for tokenizer in _tokenizers():
        for ids in map(tokenizer.encode, _TEXTS):
            yield ids, {token_id: tokenizer.vocab[token_id] for token_id in ids}


def _ids_to_decode() -> Iterator[tuple[list[int], dict[int, bytes]]]:
    for ids, used in _encoded():
        yield from ((ids[:end], used) for end in (len(ids), len(ids) - 1, 1))
    yield from (([], {97: b"a"}), ([7, 3], {3: b"\xa9", 7: b"caf\xc3", 256: b"x"}))


@compared("Join the bytes of all ids first, and decode once.", _ids_to_decode)
def _decode_ids(ids: list[int], vocab: dict[int, bytes]) -> str:
    return b"".join(map(vocab.__getitem__, ids)).decode("utf-8", "replace")


@compared(
    "At most three bytes at the end belong to an incomplete character: try to leave out 0, 1, 2 and 3.",
    [
        (text.encode()[:end],)
        for text in ("", "a", "né", "中文", "x🦜", "🦜🦜é", "a\ufffd", "\x00ÿ\u07ff\u0800\uffff\U00010000")
        for end in range(len(text.encode()) + 1)
    ],
)
def _complete_prefix(data: bytes) -> bytes:
    return data.decode("utf-8", "ignore").encode()


@compared(
    "An incremental decoder of `codecs` keeps the bytes between two chunks; `final=True` ends it.",
    [
        *(([],), ([b"low", b"est"],), ([b"\xc3", b"\xa9"],), ([b" \xc3", b"\xa8 \xc3", b"\xaa"],)),
        *(([b"a\xf0\x9f", b"", b"\xa6", b"\x9c!"],), ([b"ok", b"\xf0\x9f\xa6"],), ([b"\xe4\xb8"],)),
        *(([b"\xff", b"a"],), ([b"\xc3", b"a"],)),
        *(([bytes([byte]) for byte in text.encode()],) for text in _TEXTS),
    ],
)
def _stream_texts(chunks: Sequence[bytes]) -> list[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return [*(decoder.decode(chunk) for chunk in chunks), decoder.decode(b"", final=True)]


def _ids_to_cut() -> Iterator[tuple[list[int], dict[int, bytes], int]]:
    for ids, used in _encoded():
        yield from ((ids, used, limit) for limit in range(len(ids) + 2))
    yield [], {97: b"a"}, 3


@compared(
    "Start with `limit` ids, and leave out the last one until the bytes decode without an error.", _ids_to_cut
)
def _cut_ids(ids: Sequence[int], vocab: Mapping[int, bytes], limit: int) -> list[int]:
    for end in range(min(limit, len(ids)), 0, -1):
        data = b"".join(map(vocab.__getitem__, ids[:end]))
        if data.decode("utf-8", "ignore").encode() == data:
            return list(ids[:end])
    return []


def _spellings(text: str, vocab: Mapping[int, bytes]) -> list[tuple[int, ...]]:
    if not text:
        return [()]
    return [
        (token_id, *rest)
        for token_id, token in vocab.items()
        if text.encode().startswith(token)
        for rest in _spellings(text[len(token) :], vocab)
    ]


@exercise("Take each token that the text starts with, and put it at the front of every spelling of the rest.")
def _check_spellings(answer: Any) -> None:
    expect_function(answer)
    learned = NaiveBPETokenizer().train("low lower lowest", 259).vocab
    cases: list[tuple[str, dict[int, bytes]]] = [
        ("ab", {1: b"a", 2: b"b", 3: b"ab"}),
        ("aaaa", {1: b"a", 2: b"aa", 3: b"aaa"}),
        ("abc", {1: b"ab", 2: b"c"}),
        ("abc", {1: b"ab", 2: b"bc"}),
        ("abab", {1: b"a", 2: b"b", 5: b"ab", 6: b"aba"}),
        ("aa", {4: b"a", 9: b"a"}),
        ("", {1: b"a"}),
        ("low low", {token_id: token for token_id, token in learned.items() if token.isascii()}),
    ]
    for text, vocab in cases:
        call = f"spellings({text!r}, {shortened(vocab, 60)})"
        found = answer(text, dict(vocab))
        if not isinstance(found, (list, tuple, set)) or not all(
            isinstance(ids, (list, tuple)) for ids in found
        ):
            raise WrongAnswer(f"{call} gives {shortened(found)}, expected a list of lists of ids")
        mine, expected = sorted(map(tuple, found)), sorted(_spellings(text, vocab))
        if more := [ids for ids in mine if ids not in expected]:
            wrong = f"contains {shortened(list(more[0]))}, which is not a spelling of {text!r}"
        elif less := [ids for ids in expected if ids not in mine]:
            wrong = f"does not contain {shortened(list(less[0]))}"
        else:
            wrong = "contains a spelling twice" if mine != expected else ""
        if wrong:
            raise WrongAnswer(f"{call} {wrong}")
