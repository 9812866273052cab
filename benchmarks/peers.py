"""The compared packages: how each loads a vocabulary, and its function for each mode.

Every call is the fastest that the package documents for what comes in and what goes out. Packages are
imported when they are asked for, so one that is not installed is skipped.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.inputs import SEPARATOR, load_ranks
from benchmarks.vocabularies import Vocabulary
from bpe_tokenizer import BPETokenizer

__all__ = ["DISTRIBUTIONS", "OURS", "PEERS", "Side", "SkippedError", "load", "versions"]

Ids: TypeAlias = npt.NDArray[np.uint32]

OURS = "bpe_tokenizer"
# The name of each on PyPI, where `quicktok` is an unrelated package.
DISTRIBUTIONS = {
    "tiktoken": "tiktoken",
    "tokenizers": "tokenizers",
    "fastokens": "fastokens",
    "quicktok": "quicktok-v1",
    "gigatoken": "gigatoken",
    "tokie": "tokie",
    "iree-tokenizer": "iree-tokenizer",
    "kitoken": "kitoken",
    "bpe-openai": "bpe-openai",
    "rs-bpe": "rs-bpe",
    "splintr": "splintr-rs",
    "toktok": "toktok-rs",
}
PEERS = tuple(DISTRIBUTIONS)
# Characters of a part of a stream.
_STREAM_PART = 1_000


class SkippedError(Exception):
    """A package cannot run a case; the message says why."""


@dataclass(frozen=True)
class Side:
    """A package loaded with a vocabulary; None for a function that it lacks.

    Args:
        to_list: A text to a list of ids.
        to_numpy: A text to an array of ids.
        in_threads: A text to an array of ids, with a number of threads.
        batch: Texts, with a number of threads, to the package's own result of a batch.
        files: A file of documents with `SEPARATOR` between them, with a number of threads.
        flat: What `batch` and `files` return, as one array of ids.
        to_str: A list of ids to a text.
        to_bytes: An array of ids to bytes.
        fixed_threads: The package's threads are settled when its process starts.
        ours_alone: A text to the result of a mode that only ours are measured in.
    """

    to_list: Callable[[str], list[int]]
    to_numpy: Callable[[str], Ids] | None = None
    in_threads: Callable[[str, int], Ids] | None = None
    batch: Callable[[list[str], int], Any] | None = None
    files: Callable[[Path, int], Any] | None = None
    flat: Callable[[Any], Ids] = np.asarray
    to_str: Callable[[list[int]], str] | None = None
    to_bytes: Callable[[Ids], bytes] | None = None
    fixed_threads: bool = False
    ours_alone: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)


def load(package: str, vocabulary: Vocabulary) -> Side:
    """Load a vocabulary with a package.

    Args:
        package: `OURS` or one of `PEERS`.
        vocabulary: The vocabulary.

    Returns:
        The package, ready to run.

    Raises:
        SkippedError: The package is not installed, or does not take the vocabulary.
    """
    try:
        return _LOADERS[package](vocabulary)
    except ImportError as error:
        raise SkippedError(f"{package} is not installed ({error})") from error
    except SkippedError:
        raise
    except Exception as error:
        # Packages raise errors of any class for an unknown vocabulary.
        reason = str(error).strip().partition("\n")[0]
        raise SkippedError(f"{package} refuses {vocabulary.name}: {reason[:90]}") from error


def versions() -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    found = {}
    for package, distribution in {**DISTRIBUTIONS, "numpy": "numpy"}.items():
        try:
            found[package] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return found


def _ours(vocabulary: Vocabulary) -> Side:
    tokenizer = BPETokenizer.load(vocabulary.directory)

    @cache
    def with_special_tokens() -> BPETokenizer:
        other = BPETokenizer.load(vocabulary.directory)
        other.add_special_tokens([SEPARATOR, "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|eot_id|>"])
        return other

    encode_files = getattr(tokenizer, "encode_files", None)
    takes_threads = "threads" in inspect.signature(tokenizer.encode_to_numpy).parameters
    # `encode_files` and `threads` are optional, so that older versions can be measured too.
    to_numpy: Callable[..., Ids] = tokenizer.encode_to_numpy
    return Side(
        to_list=tokenizer.encode,
        to_numpy=tokenizer.encode_to_numpy,
        in_threads=(lambda text, threads: to_numpy(text, threads=threads)) if takes_threads else None,
        batch=lambda texts, threads: tokenizer.encode_ragged(texts, threads=threads),
        files=encode_files
        and (lambda path, threads: encode_files([path], separator=SEPARATOR, threads=threads)),
        flat=_first,
        to_str=tokenizer.decode,
        to_bytes=tokenizer.decode_bytes,
        ours_alone={
            "count": tokenizer.count_tokens,
            "offsets": tokenizer.encode_with_offsets,
            "offset-arrays": getattr(
                tokenizer, "encode_to_numpy_with_offsets", tokenizer.encode_with_offsets
            ),
            "stream": lambda text: list(tokenizer.encode_streaming(_parts(text))),
            "special": lambda text: with_special_tokens().encode(text, allowed_special="all"),
        },
    )


def _parts(text: str) -> Iterator[str]:
    return (text[at : at + _STREAM_PART] for at in range(0, len(text), _STREAM_PART))


def _tiktoken(vocabulary: Vocabulary) -> Side:
    encoding = import_module("tiktoken").Encoding(
        vocabulary.name, pat_str=vocabulary.pattern, mergeable_ranks=_ranks(vocabulary), special_tokens={}
    )
    return Side(
        to_list=encoding.encode_ordinary,
        to_numpy=partial(encoding.encode_to_numpy, disallowed_special=()),
        batch=lambda texts, threads: encoding.encode_ordinary_batch(texts, num_threads=threads),
        flat=_joined,
        to_str=encoding.decode,
        to_bytes=encoding.decode_bytes,
    )


def _tokenizers(vocabulary: Vocabulary) -> Side:
    tokenizer = import_module("tokenizers").Tokenizer.from_file(str(vocabulary.json))
    # Version 1 has no offsets that the other could leave out.
    encode_batch = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
    return Side(
        to_list=lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
        batch=lambda texts, _: [each.ids for each in encode_batch(texts, add_special_tokens=False)],
        flat=_joined,
        to_str=lambda ids: tokenizer.decode(ids, skip_special_tokens=False),
        fixed_threads=True,
    )


def _fastokens(vocabulary: Vocabulary) -> Side:
    native = import_module("fastokens._native").Tokenizer
    if vocabulary.ranks is None:
        tokenizer = native.from_file(str(vocabulary.json))
    else:
        tokenizer = native.from_tiktoken(str(vocabulary.ranks), pattern=vocabulary.pattern, special_tokens={})
    return Side(
        to_list=lambda text: tokenizer.encode_ordinary(text).ids,
        batch=lambda texts, _: tokenizer.encode_batch_flat(texts),
        flat=lambda result: np.frombuffer(result[0], dtype=np.uint32),
        to_str=tokenizer.decode,
        fixed_threads=True,
    )


_QUICKTOK_NAMES = {"cl100k": "cl100k_base", "o200k": "o200k_base", "llama3": "llama3", "qwen2": "qwen3"}


def _quicktok(vocabulary: Vocabulary) -> Side:
    if vocabulary.name not in _QUICKTOK_NAMES:
        raise SkippedError(f"quicktok lacks {vocabulary.name}, and accepts known patterns only")
    tokenizer = import_module("quicktok").Tokenizer(_QUICKTOK_NAMES[vocabulary.name], "")
    return Side(
        to_list=tokenizer.encode_ordinary,
        to_numpy=lambda text: tokenizer.encode_batch([text], 1)[0],
        batch=tokenizer.encode_batch,
        flat=_first,
        to_str=tokenizer.decode,
        to_bytes=tokenizer.decode_bytes,
    )


_GIGATOKEN_SCHEMES = {"gpt2": "gpt2", "cl100k": "gpt4", "o200k": "o200k"}


def _gigatoken(vocabulary: Vocabulary) -> Side:
    gigatoken = import_module("gigatoken")
    scheme = _GIGATOKEN_SCHEMES.get(vocabulary.name)
    if scheme is None:
        tokenizer = gigatoken.Tokenizer(str(vocabulary.json)).backend
    else:
        tokenizer = gigatoken.Tokenizer.from_tiktoken(vocabulary.ranks, scheme, {}).backend
    return Side(
        to_list=lambda text: tokenizer.encode(text).tolist(),
        to_numpy=tokenizer.encode,
        batch=lambda texts, threads: tokenizer.encode_batch(texts, parallel=threads > 1),
        files=lambda path, threads: tokenizer.encode_files(
            gigatoken.TextFileSource([path], separator=SEPARATOR), parallel=threads > 1
        ),
        flat=lambda rows: np.asarray(import_module("awkward").flatten(rows)),
        to_str=lambda ids: tokenizer.decode(ids).decode("utf-8", "replace"),
        to_bytes=tokenizer.decode,
    )


_PUBLISHED = {"gpt2": "gpt2", "cl100k": "cl100k_base", "o200k": "o200k_base"}


def _tokie(vocabulary: Vocabulary) -> Side:
    tokenizer = import_module("tokie").Tokenizer.from_json(str(vocabulary.json))
    return Side(to_list=lambda text: tokenizer.encode(text, add_special_tokens=False).ids)


def _iree(vocabulary: Vocabulary) -> Side:
    load = import_module("iree.tokenizer").Tokenizer.from_tiktoken
    # It does not read the patterns of our tokenizer.json.
    return Side(to_list=load(str(vocabulary.ranks), _published(vocabulary)).encode)


def _kitoken(vocabulary: Vocabulary) -> Side:
    return Side(to_list=import_module("kitoken").Kitoken.from_tokenizers_file(str(vocabulary.json)).encode)


def _bpe_openai(vocabulary: Vocabulary) -> Side:
    return Side(to_list=import_module("bpe_openai").get_encoding(_published(vocabulary)).encode_ordinary)


def _rs_bpe(vocabulary: Vocabulary) -> Side:
    return Side(to_list=getattr(import_module("rs_bpe.bpe").openai, _published(vocabulary))().encode)


def _splintr(vocabulary: Vocabulary) -> Side:
    name = _published(vocabulary)
    return Side(to_list=import_module("splintr").Tokenizer.from_pretrained(name).encode_ordinary)


def _toktok(vocabulary: Vocabulary) -> Side:
    # Its documented functions count and cut; this is how its documentation says one gets ids.
    return Side(to_list=import_module("toktok")._encoding(_published(vocabulary)).encode_ordinary)


def _published(vocabulary: Vocabulary) -> str:
    """Return the name of a published vocabulary, for packages that bring it along or know its pattern."""
    if vocabulary.name not in _PUBLISHED:
        raise SkippedError(f"it lacks {vocabulary.name}")
    return _PUBLISHED[vocabulary.name]


def _ranks(vocabulary: Vocabulary) -> dict[bytes, int]:
    """Return the ranks of the rank file, or the ids of the tokens without the added tokens."""
    if vocabulary.ranks is not None:
        return load_ranks(vocabulary.ranks)
    tokenizer = BPETokenizer.load(vocabulary.directory)
    added = set(tokenizer.special_tokens.values())
    return {token: number for number, token in tokenizer.vocab.items() if number not in added}


def _first(result: Sequence[Ids]) -> Ids:
    return result[0]


def _joined(rows: Sequence[Sequence[int]]) -> Ids:
    return np.fromiter((token for row in rows for token in row), dtype=np.uint32)


_LOADERS: dict[str, Callable[[Vocabulary], Side]] = {
    OURS: _ours,
    "tiktoken": _tiktoken,
    "tokenizers": _tokenizers,
    "fastokens": _fastokens,
    "quicktok": _quicktok,
    "gigatoken": _gigatoken,
    "tokie": _tokie,
    "iree-tokenizer": _iree,
    "kitoken": _kitoken,
    "bpe-openai": _bpe_openai,
    "rs-bpe": _rs_bpe,
    "splintr": _splintr,
    "toktok": _toktok,
}
