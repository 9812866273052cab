"""Reads the three kinds of BPE that a GGUF file may hold into models of the core.

`gpt2` is byte-level BPE. `gemma4` and some names of `tokenizer.ggml.pre` are SentencePiece-style BPE with
merges. `llama` is SentencePiece-style BPE with scores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Sequence

import numpy as np

from bpe_tokenizer import _core
from bpe_tokenizer.decoding import is_utf8
from bpe_tokenizer.errors import FormatError, ModelError, shorten
from bpe_tokenizer.formats.capabilities import BYTE_TOKENS, NOT_IN_UTF8, PRINTABLE_BYTES
from bpe_tokenizer.formats.gguf.file import Metadata
from bpe_tokenizer.formats.gguf.patterns import LONG_S_STARTS, split_patterns_for
from bpe_tokenizer.formats.gguf.pre_tokenizers import PreTokenizer
from bpe_tokenizer.formats.gguf.scores import join, merges_from_scores
from bpe_tokenizer.formats.gguf.tokens import TOKENS, Tokens
from bpe_tokenizer.model import AddedToken, Decoder, Prepend, Replace

__all__ = [
    "MERGES",
    "SCORES",
    "SPACE",
    "has_byte_tokens",
    "lacks_bytes",
    "read_byte_level",
    "read_characters",
    "read_scored",
    "unmergeable_newlines",
]

MERGES = "tokenizer.ggml.merges"
SCORES = "tokenizer.ggml.scores"
SPACE = "▁"

Pair = tuple[bytes, bytes]

_BYTE_TOKEN_IN_TOKEN = re.compile("<0x[0-9A-F]{2}>.|.<0x[0-9A-F]{2}>$", re.DOTALL)
# Longer tokens of newlines are refused.
_MAX_NEWLINES = 1000
# The bound on copied characters for tokens that encode no bytes: each character becomes a text that names the
# token.
_MAX_UNREACHABLE = 30_000_000


# -- bytes ----------------------------------------------------------------------------------------------


def read_byte_level(
    metadata: Metadata, tokens: Tokens, added: Sequence[AddedToken], pre_tokenizer: PreTokenizer
) -> _core.Model:
    """Read a model whose tokens are bytes, written as printable characters.

    Raises:
        FormatError: The model cannot be represented; names the problem.
    """
    outside: set[int] = set()
    for token in added:
        data = _core.from_printable(tokens.table.text(token.id))
        if data != token.content.encode():
            _check_spelling(metadata, token, data, pre_tokenizer)
            outside.add(token.id)
    removed = outside | tokens.fillers()
    table = tokens.table
    unprintable = [index for index in table.unprintable() if index not in removed]
    if sum(len(tokens.table.text(index)) ** 2 for index in unprintable) > _MAX_UNREACHABLE:
        raise metadata.error(TOKENS, "the tokens that encode no bytes are too long for a vocabulary")
    unreachable = {index: _unreachable_bytes(tokens.table.text(index)) for index in unprintable}
    same = (table.get(_core.to_printable(data)) for data in unreachable.values())
    if len(set(unreachable.values())) < len(unreachable) or not removed.issuperset(
        index for index in same if index is not None
    ):
        raise metadata.error(TOKENS, "two tokens are the same bytes")
    excluded = removed | unreachable.keys()
    has_merges = MERGES in metadata.values or metadata.values.get("tokenizer.ggml.pre") != "kimi-k2"
    merges = metadata.strings(MERGES) if has_merges else _core.Strings([])
    table, others = table.with_merges(merges, excluded)
    _check_unused(metadata, others, _is_unreachable)
    crossing = [text for start in LONG_S_STARTS for text in table.starting_with(_core.to_printable(start))]
    kept = [text for text in crossing if table.get(text) not in removed]
    single = [text for text, byte in PRINTABLE_BYTES.items() if byte not in NOT_IN_UTF8]
    return _core.Model.from_table(
        table,
        {tokens.table.text(index) for index in excluded},
        unreachable,
        added_tokens=added,
        split_patterns=split_patterns_for(pre_tokenizer, filter(None, map(_core.from_printable, kept))),
        ignore_merges=pre_tokenizer.ignore_merges,
        requires_all_bytes=False,
        keeps_gaps=any(text not in table or table.get(text) in removed for text in single),
    )


def _check_spelling(
    metadata: Metadata, token: AddedToken, data: bytes | None, pre_tokenizer: PreTokenizer
) -> None:
    """Check that ordinary text cannot become an added token through the bytes that its spelling encodes."""
    if data is None or not NOT_IN_UTF8.isdisjoint(data):
        return
    if len(data) == 1 or (pre_tokenizer.ignore_merges and is_utf8(data)):
        raise metadata.error(
            f"{TOKENS}[{token.id}]",
            f"{shorten(token.content)} is an added token, and also the spelling of the bytes {shorten(data)}",
        )


def lacks_bytes(vocab: Iterable[bytes]) -> bool:
    """Return whether a byte that occurs in UTF-8 text has no token.

    >>> lacks_bytes(bytes([byte]) for byte in range(256) if byte != 0xFF)
    False
    """
    return not {bytes([byte]) for byte in range(256) if byte not in NOT_IN_UTF8}.issubset(vocab)


def _unreachable_bytes(text: str) -> bytes:
    """What llama.cpp decodes a token to that encodes no bytes; no text becomes it."""
    parts = []
    for character in text:
        data = _core.from_printable(character)
        parts.append(data or f"[UNK_BYTE_0x{character.encode().hex()}{text}]".encode())
    return b"".join(parts)


def _is_unreachable(part: bytes) -> bool:
    data = _core.from_printable(part.decode("utf-8", "replace"))
    return data is None or not NOT_IN_UTF8.isdisjoint(data)


def _check_unused(
    metadata: Metadata,
    merges: Iterable[tuple[int, bytes, bytes, bytes]],
    is_unreachable: Callable[[bytes], bool],
) -> None:
    """Refuse a merge that does not join tokens to a token, unless no text can become one of its parts.

    Args:
        metadata: The metadata of the file.
        merges: The index of each merge, its left and right part, and the text that is not in the vocabulary.
        is_unreachable: Whether no text can become a part.
    """
    for index, left, right, missing in merges:
        if not (is_unreachable(left) or is_unreachable(right)):
            problem = f"{shorten(missing.decode('utf-8', 'replace'))} is not a token that merging can make"
            raise metadata.error(f"{MERGES}[{index}]", problem)


# -- characters -----------------------------------------------------------------------------------------


def read_characters(
    metadata: Metadata, tokens: Tokens, added: Sequence[AddedToken], pre: str, pre_tokenizer: PreTokenizer
) -> _core.Model:
    """Read a model with merges whose tokens are characters, a space written as "▁".

    Raises:
        FormatError: The model cannot be represented; names the problem.
    """
    has_tokens = has_byte_tokens(tokens.table)
    if any(has_tokens) and not all(has_tokens):
        raise metadata.error(TOKENS, "some of the tokens <0x00> to <0xFF> are missing")
    table, others = tokens.table.with_merges(metadata.strings(MERGES), set())
    _check_unused(metadata, others, lambda part: b" " in part)
    core = _core.Model.from_table(
        table,
        set(),
        added_tokens=added,
        normalizers=[Replace(pattern=" ", content=SPACE)],
        split_patterns=pre_tokenizer.patterns,
        alphabet="characters",
        byte_fallback=True,
        keeps_gaps=True,
        decoder=Decoder(SPACE, byte_fallback=True),
    )
    _check_byte_tokens(metadata, tokens, core.merges)
    if pre != "sarvam-moe":
        # llama.cpp replaces a run of newlines by its token before it merges.
        unmade = unmergeable_newlines(tokens.texts(), core.merges)
        if unmade is not None:
            raise metadata.error(TOKENS, f"merging newlines does not make the token {shorten(unmade)}")
    return core


def read_scored(
    metadata: Metadata, tokens: Tokens, added: Sequence[AddedToken], unk_id: int | None
) -> _core.Model:
    """Read a model with scores whose tokens are characters, a space written as "▁".

    Raises:
        FormatError: The model cannot be represented; names the problem.
    """
    scores = metadata.numbers(SCORES, "if")
    if scores is None:
        scores = np.zeros(len(tokens.table))
    scores = scores[: len(tokens.table)].astype(np.float32)
    if len(scores) < len(tokens.table) or np.isnan(scores).any():
        raise metadata.error(SCORES, f"must be {len(tokens.table)} numbers, one for each token")
    try:
        pairs = merges_from_scores(dict(zip(tokens.texts(), scores.tolist(), strict=True)))
    except FormatError as error:
        raise metadata.error(TOKENS, str(error)) from None
    merges = [(left.encode(), right.encode()) for left, right in pairs]
    _check_byte_tokens(metadata, tokens, merges)
    prefixed = metadata.flag("tokenizer.ggml.add_space_prefix", True)
    replace = Replace(pattern=" ", content=SPACE)
    fillers = tokens.fillers()
    try:
        return _core.Model(
            {index: text.encode() for index, text in enumerate(tokens.texts()) if index not in fillers},
            merges,
            added_tokens=added,
            normalizers=[Prepend(prepend=SPACE), replace] if prefixed else [replace],
            alphabet="characters",
            byte_fallback=True,
            # llama.cpp fails on a character that has neither a token nor byte tokens.
            unk_id=None if all(has_byte_tokens(tokens.table)) else unk_id,
            decoder=Decoder(SPACE, byte_fallback=True, strip="one" if prefixed else "none"),
        )
    except ModelError as error:
        raise metadata.error(TOKENS, str(error)) from error


def has_byte_tokens(texts: Container[str]) -> list[bool]:
    """Return for each byte that occurs in UTF-8 whether its token is among the texts."""
    return [text in texts for text, byte in BYTE_TOKENS.items() if byte not in NOT_IN_UTF8]


def _check_byte_tokens(metadata: Metadata, tokens: Tokens, merges: Sequence[Pair]) -> None:
    """Check that no merge has a byte token as a part, because byte tokens are not merged."""
    suspicious = {text.encode() for text in tokens.texts() if _BYTE_TOKEN_IN_TOKEN.search(text)}
    if suspicious and not suspicious.isdisjoint(left + right for left, right in merges):
        raise metadata.error(TOKENS, "a byte token like <0x0A> is part of another token")


def unmergeable_newlines(texts: Iterable[str], merges: Sequence[Pair]) -> str | None:
    """Return a token of newlines that merging newlines does not make; None if merging makes all."""
    scores = {pair: -rank for rank, pair in enumerate(merges) if not b"".join(pair).strip(b"\n")}
    for text in texts:
        if not text.strip("\n"):
            symbols = [b"\n"] * min(len(text), _MAX_NEWLINES)
            if join(symbols, lambda left, right: scores.get((left, right))) != [text.encode()]:
                return text
    return None
