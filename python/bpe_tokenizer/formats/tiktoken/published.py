"""The encodings that tiktoken publishes: rank files by SHA-256, with split patterns and special tokens.

Facts of tiktoken 0.14, `tiktoken_ext/openai_public.py`: https://github.com/openai/tiktoken
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from bpe_tokenizer.patterns import NAMED_PATTERNS

__all__ = ["ENCODER_JSON", "PUBLISHED", "VOCAB_BPE", "PublishedEncoding", "PublishedFile", "find_published"]

_HOST = "https://openaipublic.blob.core.windows.net"


class PublishedFile(NamedTuple):
    """A published file.

    Args:
        url: Its URL.
        sha256: The SHA-256 of its content, in lower-case hexadecimal digits.
    """

    url: str
    sha256: str


class PublishedEncoding(NamedTuple):
    """A published rank file with its split pattern and special tokens.

    Args:
        ranks: The rank file.
        split_pattern: The split pattern.
        special_tokens: The special tokens; None if models that share the file name them differently.
        explicit_n_vocab: The number of all tokens, if tiktoken checks it.
    """

    ranks: PublishedFile
    split_pattern: str
    special_tokens: Mapping[str, int] | None
    explicit_n_vocab: int | None = None


def _ranks(name: str, sha256: str) -> PublishedFile:
    return PublishedFile(f"{_HOST}/encodings/{name}.tiktoken", sha256)


def _pattern(name: str) -> str:
    (pattern,) = NAMED_PATTERNS[name].patterns
    return pattern


_R50K = _ranks("r50k_base", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930")
_P50K = _ranks("p50k_base", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069")
_CL100K = _ranks("cl100k_base", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7")
_O200K = _ranks("o200k_base", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d")

# The same vocabulary as r50k_base, in the files of GPT-2's release.
VOCAB_BPE = PublishedFile(
    f"{_HOST}/gpt-2/encodings/main/vocab.bpe",
    "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
)
ENCODER_JSON = PublishedFile(
    f"{_HOST}/gpt-2/encodings/main/encoder.json",
    "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
)

_END = {"<|endoftext|>": 50256}
_O200K_SPECIAL = {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}
# The id 200018 has two names here: `<|endofprompt|>` and `<|reserved_200018|>`.
_HARMONY_SPECIAL = (
    _O200K_SPECIAL
    | {"<|startoftext|>": 199998}
    | {
        "<|return|>": 200002,
        "<|constrain|>": 200003,
        "<|channel|>": 200005,
        "<|start|>": 200006,
        "<|end|>": 200007,
        "<|message|>": 200008,
        "<|call|>": 200012,
    }
    | {
        f"<|reserved_{number}|>": number
        for number in (200000, 200001, 200004, 200009, 200010, 200011, *range(200013, 201088))
    }
)

PUBLISHED: Mapping[str, PublishedEncoding] = MappingProxyType(
    {
        "gpt2": PublishedEncoding(_R50K, _pattern("r50k"), _END, 50257),
        "r50k_base": PublishedEncoding(_R50K, _pattern("r50k"), _END, 50257),
        "p50k_base": PublishedEncoding(_P50K, _pattern("r50k"), _END, 50281),
        "p50k_edit": PublishedEncoding(
            _P50K,
            _pattern("r50k"),
            _END | {"<|fim_prefix|>": 50281, "<|fim_middle|>": 50282, "<|fim_suffix|>": 50283},
        ),
        "cl100k_base": PublishedEncoding(
            _CL100K,
            _pattern("cl100k"),
            {
                "<|endoftext|>": 100257,
                "<|fim_prefix|>": 100258,
                "<|fim_middle|>": 100259,
                "<|fim_suffix|>": 100260,
                "<|endofprompt|>": 100276,
            },
        ),
        "o200k_base": PublishedEncoding(_O200K, _pattern("o200k"), _O200K_SPECIAL),
        "o200k_harmony": PublishedEncoding(_O200K, _pattern("o200k"), _HARMONY_SPECIAL),
    }
)

# meta-llama/Llama-3.1-8B, original/tokenizer.model (its Git LFS pointer), and its pattern from
# https://github.com/meta-llama/llama-models/blob/main/models/llama3/tokenizer.py. Llama 3, 3.1 and 3.2 share
# the file, and give its ids 128002 to 128011 different names.
_LLAMA3 = PublishedEncoding(
    PublishedFile(
        "https://huggingface.co/meta-llama/Llama-3.1-8B/resolve/main/original/tokenizer.model",
        "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55",
    ),
    _pattern("llama3"),
    None,
)


def find_published(sha256: str, stem: str) -> PublishedEncoding | None:
    """Return the published encoding of a rank file; None if it is not a published one.

    Args:
        sha256: The SHA-256 of its content.
        stem: Its name without the extension. It chooses between encodings that share the file; any other
            name means the first, which has the fewest special tokens.

    >>> sha256 = PUBLISHED["p50k_edit"].ranks.sha256
    >>> [len(find_published(sha256, name).special_tokens) for name in ("p50k_edit", "x")]
    [4, 1]
    """
    same = {name: encoding for name, encoding in PUBLISHED.items() if encoding.ranks.sha256 == sha256}
    if same:
        return same.get(stem) or next(iter(same.values()))
    return _LLAMA3 if sha256 == _LLAMA3.ranks.sha256 else None
