"""Checks of the exercises of chapter 7."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from typing import Any

from bpe_tokenizer.reference import NaiveBPETokenizer
from course.exercise import WrongAnswer, exercise, expect_call, expect_function, shortened

_TEXTS = ("low lowest", "é è ê ë", "naïve 🦜 and 中文", "🦜🦜", "a", "日本語テキスト", "a \ufffd é\ufffd")


def _tokenizers() -> list[NaiveBPETokenizer]:
    return [
        NaiveBPETokenizer().train(text, 262) for text in ("é è ê ë ï ü", "中国 中文 low", "🦜 🦊 🦉 lowest")
    ]


@exercise("Join the bytes of all ids first, and decode once.")
def _check_decode_ids(answer: Any) -> None:
    for tokenizer in _tokenizers():
        for text in _TEXTS:
            ids = tokenizer.encode(text)
            used = {token_id: tokenizer.vocab[token_id] for token_id in ids}
            for end in (len(ids), len(ids) - 1, 1):
                expect_call(answer, (ids[:end], used), tokenizer.decode(ids[:end]))
        expect_call(answer, ([], tokenizer.vocab), "")
    expect_call(answer, ([7, 3], {3: b"\xa9", 7: b"caf\xc3", 256: b"x"}), "café")


@exercise("At most three bytes at the end belong to an incomplete character: try to leave out 0, 1, 2 and 3.")
def _check_complete_prefix(answer: Any) -> None:
    for text in ("", "a", "né", "中文", "x🦜", "🦜🦜é", "a\ufffd", "\x00ÿ\u07ff\u0800\uffff\U00010000"):
        data = text.encode()
        for end in range(len(data) + 1):
            expect_call(answer, (data[:end],), data[:end].decode("utf-8", "ignore").encode())


def _streamed(chunks: Sequence[bytes]) -> list[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return [*(decoder.decode(chunk) for chunk in chunks), decoder.decode(b"", final=True)]


@exercise("An incremental decoder of `codecs` keeps the bytes between two chunks; `final=True` ends it.")
def _check_stream_texts(answer: Any) -> None:
    cases: list[list[bytes]] = [
        [],
        [b"low", b"est"],
        [b"\xc3", b"\xa9"],
        [b" \xc3", b"\xa8 \xc3", b"\xaa"],
        [b"a\xf0\x9f", b"", b"\xa6", b"\x9c!"],
        [b"ok", b"\xf0\x9f\xa6"],
        [b"\xe4\xb8"],
        [b"\xff", b"a"],
        [b"\xc3", b"a"],
        *([bytes([byte]) for byte in text.encode()] for text in _TEXTS),
    ]
    for chunks in cases:
        expect_call(answer, (chunks,), _streamed(chunks))


def _cut(ids: Sequence[int], vocab: Mapping[int, bytes], limit: int) -> list[int]:
    for end in range(min(limit, len(ids)), 0, -1):
        try:
            b"".join(vocab[token_id] for token_id in ids[:end]).decode("utf-8")
        except UnicodeDecodeError:
            continue
        return list(ids[:end])
    return []


@exercise("Start with `limit` ids, and leave out the last one until the bytes decode without an error.")
def _check_cut_ids(answer: Any) -> None:
    for tokenizer in _tokenizers():
        for text in _TEXTS:
            ids = tokenizer.encode(text)
            used = {token_id: tokenizer.vocab[token_id] for token_id in ids}
            for limit in range(len(ids) + 2):
                expect_call(answer, (ids, used, limit), _cut(ids, used, limit))
    expect_call(answer, ([], {97: b"a"}, 3), [])


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
        mine = sorted(tuple(ids) for ids in found)
        expected = sorted(_spellings(text, vocab))
        if more := [ids for ids in mine if ids not in expected]:
            raise WrongAnswer(
                f"{call} contains {shortened(list(more[0]))}, which is not a spelling of {text!r}"
            )
        if less := [ids for ids in expected if ids not in mine]:
            raise WrongAnswer(f"{call} does not contain {shortened(list(less[0]))}")
        if mine != expected:
            raise WrongAnswer(f"{call} contains a spelling twice")
