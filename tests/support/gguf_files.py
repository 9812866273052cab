"""GGUF files made from parts, and llama.cpp's way from text to tokens by scores in plain Python."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats import gguf
from bpe_tokenizer.formats.gguf.file import Metadata, ValueType, read_metadata, write_metadata
from bpe_tokenizer.model import Model
from bpe_tokenizer.patterns import NAMED_PATTERNS

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
# The merges of "hello" and " w".
HELLO = ["h e", "l l", "he ll", "hell o", "Ġ w"]
# The printable characters of the 256 bytes, in their order.
BYTES = [_core.to_printable(bytes([byte])) for byte in range(256)]

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\pL++| ?\pN+| ?[^\s\pL\pN]+|\s+(?!\S)|\s"
_WORDS = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\pL\pN]?+\pL++|\pN"
_SIGNS = r" ?[^\s\pL\pN]++[\r\n]*+"
# Named patterns in other words: the pieces are the same.
RESPELT = {
    "gpt2": (_GPT2,),
    "cl100k": (rf"{_WORDS}\pN?\pN?|{_SIGNS}|\s+$|\s*[\r\n]|\s+(?!\S)|\s",),
    "llama3": (rf"{_WORDS}{{1,3}}+|{_SIGNS}|\s*[\r\n]|\s+(?!\S)|\s",),
    "qwen2": (rf"{_WORDS}|{_SIGNS}|\s*[\r\n]|\s+(?!\S)|\s",),
    "seed-coder": (rf"{_WORDS}| ?[^\s\pL\pN]++|\s*[\r\n]++|\s+(?!\S)|\s",),
    "falcon": (r"[`\p{P}$+<=>^~|]+", _GPT2, "[0-9]{3}"),
    "deepseek-v3": (
        r"\p{N}\p{N}{0,2}",
        r"[\x{3040}-\x{30ff}\x{4e00}-\x{9fa5}]+",
        r"[!-/:-@\[-`{-~][A-Za-z]+|[^\r\n\pL\pP\pS]?[\pL\pM]++| ?[\pP\pS]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s",
    ),
}

Tokens = Sequence[tuple[str | bytes, int]]


def write(path: Path, pairs: Mapping[str, Any]) -> Path:
    """Write a file whose values have the types that llama.cpp wants; None leaves a key out."""
    kinds = {bool: ValueType.BOOL, int: ValueType.UINT32, float: ValueType.FLOAT32}
    rows = []
    for key, value in pairs.items():
        first = value[0] if isinstance(value, list) and value else value
        kind = kinds.get(type(first), ValueType.STRING)
        if key.endswith("token_type") and kind is ValueType.UINT32:
            kind = ValueType.INT32
        if value is not None:
            rows.append((key, kind, value))
    path.write_bytes(write_metadata(rows))
    return path


def byte_level(
    path: Path,
    merges: Sequence[str] = (),
    more: Tokens = (),
    *,
    pre: str | None = "gpt-2",
    missing: Sequence[int] = (),
    **others: Any,
) -> Path:
    """Write byte-level BPE: the bytes, the products of the merges, then `more`."""
    texts: list[str | bytes] = [text for byte, text in enumerate(BYTES) if byte not in missing]
    texts += [merge.replace(" ", "") for merge in merges]
    types = [NORMAL] * len(texts) + [kind for _, kind in more]
    texts += [text for text, _ in more]
    return write(
        path,
        {
            "general.architecture": "llama",
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": pre,
            "tokenizer.ggml.tokens": texts,
            "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.merges": list(merges),
            **{key.replace("__", "."): value for key, value in others.items()},
        },
    )


def pair_vocabulary(path: Path, pre: str | None, seed: int = 0) -> _core.Model:
    """Write a vocabulary that tells cuts apart: every two bytes are a token, their merges in random order.

    Returns:
        The model of the same vocabulary, without split patterns.
    """
    pairs = [(left, right) for left in range(256) for right in range(256)]
    random.Random(seed).shuffle(pairs)
    byte_level(path, [f"{BYTES[left]} {BYTES[right]}" for left, right in pairs], pre=pre)
    vocab = {byte: bytes([byte]) for byte in range(256)}
    vocab.update((index, bytes(pair)) for index, pair in enumerate(pairs, 256))
    return _core.Model(vocab, [(bytes([left]), bytes([right])) for left, right in pairs], split_patterns=[])


def spm(
    path: Path, scores: Mapping[str, float], more: Tokens = (), *, byte_tokens: bool = True, **others: Any
) -> Path:
    """Write SentencePiece-style BPE: `<unk>`, BOS, EOS, the bytes, the tokens with scores, then `more`."""
    rows: list[tuple[str | bytes, float, int]] = [("<unk>", 0.0, UNKNOWN)]
    rows += [("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL)]
    if byte_tokens:
        rows += [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    rows += [(text, float(score), NORMAL) for text, score in scores.items()]
    rows += [(text, -1000.0, kind) for text, kind in more]
    return write(
        path,
        {
            "general.architecture": "llama",
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": [text for text, _, _ in rows],
            "tokenizer.ggml.scores": [score for _, score, _ in rows],
            "tokenizer.ggml.token_type": [kind for _, _, kind in rows],
            **{key.replace("__", "."): value for key, value in others.items()},
        },
    )


def spm_ids(
    text: str, scores: Mapping[str, float], ids: Mapping[str, int], *, prefix: bool = True
) -> list[int]:
    """The ids of a text without added tokens: join the two neighbours with the best score, leftmost first."""
    symbols = list((" " * prefix * bool(text) + text).replace(" ", "▁"))
    while True:
        best = None
        for index in range(len(symbols) - 1):
            score = scores.get(symbols[index] + symbols[index + 1])
            if score is not None and (best is None or score > best[0]):
                best = (score, index)
        if best is None:
            break
        index = best[1]
        symbols[index : index + 2] = [symbols[index] + symbols[index + 1]]
    found: list[int] = []
    for symbol in symbols:
        if symbol in ids:
            found.append(ids[symbol])
        else:
            found += [ids[f"<0x{byte:02X}>"] for byte in symbol.encode()]
    return found


def read(path: Path) -> Metadata:
    """All metadata of a file."""
    return read_metadata(path, lambda _: True)


def load(path: Path) -> BPETokenizer:
    return BPETokenizer.from_model(gguf.load(path))


def refusal(path: Path) -> str:
    with pytest.raises(FormatError) as caught:
        gguf.load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


WORDS: dict[str, float] = {"▁": -9, "▁a": -1, "a": -10, "b": -10, "ab": -2, "▁ab": -3, "ba": -4, "é": -11}
WORDS |= {"▁▁": -5, "<": -12}


def spm_tokenizer(path: Path, scores: dict[str, float], **others: Any) -> tuple[BPETokenizer, dict[str, int]]:
    tokenizer = load(spm(path, scores, **others))
    return tokenizer, {text.decode(): index for index, text in tokenizer.model.core.vocab.items()}


def gemma(path: Path, merges: list[str], texts: list[str], **others: Any) -> Path:
    pieces = [("<pad>", CONTROL), ("<eos>", CONTROL), ("<bos>", CONTROL)]
    pieces += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    pieces += [(text, NORMAL) for text in texts]
    return write(
        path,
        {
            "general.architecture": "gemma4",
            "tokenizer.ggml.model": "gemma4",
            "tokenizer.ggml.tokens": [text for text, _ in pieces],
            "tokenizer.ggml.token_type": [kind for _, kind in pieces],
            "tokenizer.ggml.merges": merges,
            "tokenizer.ggml.bos_token_id": 2,
            "tokenizer.ggml.add_bos_token": False,
        }
        | others,
    )


def model(merges: list[str] | None = None, **settings: Any) -> Model:
    vocab = {byte: bytes([byte]) for byte in range(256)}
    pairs = [tuple(map(_core.from_printable, merge.split(" "))) for merge in merges or []]
    vocab |= {index: left + right for index, (left, right) in enumerate(pairs, 256)}  # type: ignore[operator]
    settings.setdefault("split_patterns", NAMED_PATTERNS["llama3"].patterns)
    return Model(_core.Model(vocab, pairs, **settings))  # type: ignore[arg-type]
