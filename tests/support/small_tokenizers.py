"""Texts that break tokenizers, and tokenizers of a few merges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer, Model, PostProcessor, _core
from bpe_tokenizer.model import AddedToken, Decoder, Prepend, Replace

BYTES = {byte: bytes([byte]) for byte in range(256)}
# Parts of text that break tokenizers: surrogates, combining marks, spaces, line ends, contractions, specials.
awkward = st.sampled_from(
    [
        *("\ud800", "\udc00", "\ud83d\ude00", "e\u0301", "\u0301", "é", "日本", "\U0001f469\u200d\U0001f467"),
        *(" ", "  ", "\n", "\r\n", "\t", "\0", "'s", "'LL", "ſ", "the", " def", "123", "½"),
        *("<|bos|>", "<|eos|>", "<|pad|", "\u2003", "ﬁ", "\u212b"),
    ]
)
hard_texts = st.lists(awkward | st.text(max_size=4) | st.characters(exclude_categories=()), max_size=25).map(
    "".join
)
# Fixtures of a session are the same for every example.
relaxed = settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def with_post_processor(tokenizer: BPETokenizer) -> BPETokenizer:
    """The tokenizer, as if its file recorded a post-processor for BOS and EOS: then `save` writes it."""
    bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
    around = PostProcessor(() if bos is None else (bos,), () if eos is None else (eos,))
    return BPETokenizer.from_model(replace(tokenizer.model, post_processor=around))


def without_surrogates(text: str) -> str:
    """The text as it is encoded: pairs joined, lone surrogates replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def contents(model: Model) -> Any:
    """Everything that a model holds."""
    core = model.core.__getnewargs_ex__()
    return core, dict(model.named_tokens), model.post_processor, dict(model.config)


def bytes_model(
    vocab: Mapping[int, bytes] = {}, merges: Sequence[tuple[bytes, bytes]] | None = (), **settings: Any
) -> Model:
    """The bytes, and these tokens."""
    return Model(_core.Model(BYTES | dict(vocab), merges, **settings))


def parts(merges: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """The merges that are written as "a|b"."""
    return [(left.encode(), right.encode()) for left, _, right in (merge.partition("|") for merge in merges)]


def tiny(*merges: str, special_tokens: Any = None, **options: Any) -> BPETokenizer:
    """A tokenizer of merges like "a|b", whose tokens have the ids 256, 257, ..."""
    pairs = parts(merges)
    vocab = BYTES | {256 + rank: left + right for rank, (left, right) in enumerate(pairs)}
    return BPETokenizer.from_vocab(vocab, pairs, special_tokens, **options)


def characters_model(*more: str, merges: Sequence[str] = ("▁|a", "a|b"), **settings: Any) -> _core.Model:
    """A model in the style of SentencePiece: characters with byte fallback, spaces as `▁`; `more` tokens."""
    tokens = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "▁a", "ab", *more]
    defaults: dict[str, Any] = {
        "normalizers": [Prepend(prepend="▁"), Replace(pattern=" ", content="▁")],
        "alphabet": "characters",
        "byte_fallback": True,
        "unk_id": 0,
        "decoder": Decoder("▁", True, "one"),
        "added_tokens": [AddedToken("<s>", 1)],
    }
    vocab = {token_id: token.encode() for token_id, token in enumerate(tokens)}
    return _core.Model(vocab, parts(merges), **(defaults | settings))
