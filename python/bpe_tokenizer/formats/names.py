"""Published names: tiktoken's encodings, the models of OpenAI, and repositories of the Hugging Face hub.

A name means an existing path first, then a published tokenizer. Its files come from the caches of tiktoken
and of the Hugging Face libraries. Only `download=True` lets them come from the network, into the same caches.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.errors import (
    FormatError,
    HubError,
    OptionError,
    TokenizerFileNotFoundError,
    did_you_mean,
    shorten,
)
from bpe_tokenizer.formats import registry, tiktoken
from bpe_tokenizer.formats.tiktoken.models import MODEL_NAMES, find_encoding_name
from bpe_tokenizer.formats.tiktoken.published import PUBLISHED
from bpe_tokenizer.model import Model

if TYPE_CHECKING:
    from bpe_tokenizer.formats.tiktoken.cache import Cache

__all__ = ["HUB_PREFIX", "Loaded", "find_encoding", "load"]

HUB_PREFIX = "hf:"

# What to type for a download.
_ALLOW = "download=True (--download on the command line)"
# Longer texts are not taken for names, and no more of a name or a directory is shown.
_MAX_NAME = 64
_MAX_SHOWN = 40


class Loaded(NamedTuple):
    """A tokenizer and where its format is listed.

    Args:
        model: The tokenizer.
        format_name: The name of the format it was loaded from.
    """

    model: Model
    format_name: str


def load(
    source: str | os.PathLike[str],
    format_name: str | None = None,
    *,
    download: bool = False,
    **load_kwargs: Any,
) -> Loaded:
    """Load a tokenizer from a path or by a published name.

    Args:
        source: A path, which takes precedence if it exists; or, as a `str`, the name of an encoding of
            tiktoken (`"o200k_base"`), of a model of OpenAI (`"gpt-4o"`), or of a repository
            (`"hf:owner/name"`, `"hf:owner/name@revision"`). A path object, and a text with a slash like
            `"./gpt2"`, is always a path.
        format_name: The name of the format; None detects it.
        download: Download a published tokenizer that the caches do not hold.
        load_kwargs: As in `registry.load`.

    Raises:
        FormatError: A file is broken or cannot be represented exactly, or a name is not that of a repository.
        HubError: The caches do not hold the published tokenizer, and it may not or cannot be downloaded.
        MissingDependencyError: A repository needs `huggingface_hub`, which is not installed.
        OptionError: As in `registry.load`; or arguments are given for an encoding, which has its own.
        TokenizerFileNotFoundError: The path does not exist, and the name is not a published one.

    >>> load("gpt-4p")
    Traceback (most recent call last):
    bpe_tokenizer.errors.TokenizerFileNotFoundError: gpt-4p: no such file or directory, and not a ...
    """
    path = check_path("path", source)
    if not isinstance(source, str):
        return _load_path(path, format_name, load_kwargs)
    name = source
    if not _is_missing(path):
        return _load_path(path, format_name, load_kwargs)
    if name.startswith(HUB_PREFIX):
        return _load_path(_fetch(name, download), format_name, load_kwargs)
    encoding = find_encoding(name)
    if encoding is not None:
        return _load_encoding(name, encoding, format_name, download, load_kwargs)
    raise TokenizerFileNotFoundError(_unknown(name))


def find_encoding(name: str) -> str | None:
    """Return the encoding that the name of an encoding or of a model means; None if it means none.

    >>> find_encoding("gpt-4o"), find_encoding("cl100k_base"), find_encoding("llama3")
    ('o200k_base', 'cl100k_base', None)
    """
    if name in PUBLISHED:
        return name
    return None if _has_separator(name) else find_encoding_name(name)


def _load_path(path: Path, format_name: str | None, load_kwargs: dict[str, Any]) -> Loaded:
    if format_name is None:
        entry, path = registry.detect(path)
        format_name = entry.name
    return Loaded(registry.load(path, format_name, **load_kwargs), format_name)


def _is_missing(path: Path) -> bool:
    """Whether a path leads to nothing. A dangling link, or a path that nobody may look at, does not."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _has_separator(name: str) -> bool:
    return any(separator in name for separator in ("/", os.sep))


# tiktoken's encodings


def _load_encoding(
    name: str, encoding: str, format_name: str | None, download: bool, load_kwargs: dict[str, Any]
) -> Loaded:
    from bpe_tokenizer.formats.hub.repository import is_offline
    from bpe_tokenizer.formats.tiktoken.cache import Cache

    if any(value is not None for value in load_kwargs.values()):
        raise OptionError(f"{name}: a published encoding has its own split pattern and special tokens")
    if format_name not in (None, "tiktoken"):
        raise OptionError(f"{name}: a published encoding is of the format tiktoken, not {format_name}")
    cache = Cache.at()
    ranks = tiktoken.cached_ranks(encoding, cache)
    if ranks is None:
        if not download or is_offline():
            raise HubError(_not_here(name, encoding, cache, download))
        ranks = tiktoken.published_ranks(encoding)
    return Loaded(tiktoken.named_model(encoding, ranks), "tiktoken")


def _not_here(name: str, encoding: str, cache: Cache, download: bool) -> str:
    file = PUBLISHED[encoding].ranks
    path = cache.path(file.url)
    if path is None:
        where = "no cache, as TIKTOKEN_CACHE_DIR is empty"
    else:
        where = f"looked in {_shown(path.parent)}, also for {path.name}"
    way_out = "HF_HUB_OFFLINE forbids a download;" if download else f"for a download pass {_ALLOW}, or"
    name, url = shorten(name, _MAX_SHOWN)[1:-1], file.url
    return f"{name}: no intact {url.rpartition('/')[2]} is on this machine ({where}); {way_out} give its path"


def _shown(directory: Path) -> str:
    name = os.fsdecode(directory)
    return name if len(name) <= _MAX_SHOWN else f"...{name[3 - _MAX_SHOWN :]}"


# Repositories of the hub


def _fetch(name: str, download: bool) -> Path:
    """Return the path of the tokenizer of a repository in the cache; download it if it may be downloaded."""
    from bpe_tokenizer.formats import hub
    from bpe_tokenizer.formats.hub.repository import Repository, cache_directory

    repository, at, revision = name.removeprefix(HUB_PREFIX).partition("@")
    found = hub.parse_name(repository)
    if found is None or (at and not revision):
        raise FormatError(
            f"{name[:_MAX_SHOWN]}: not the name of a repository of the Hugging Face hub; write "
            f"{HUB_PREFIX}owner/name or {HUB_PREFIX}owner/name@revision"
        )
    owner_and_name, folder = found
    remote = Repository(owner_and_name, revision or "main")
    local = Repository(
        owner_and_name,
        revision or "main",
        local_files_only=True,
        local_reason=f"no download is allowed (looked in {_shown(cache_directory())}); pass {_ALLOW}",
    )
    try:
        return hub.fetch(local, folder)
    except HubError:
        if not download:
            raise
    remote.check_reachable()
    return hub.fetch(remote, folder)


# Names that are not known


def _unknown(name: str) -> str:
    """Say that there is neither such a path nor such a name, and which names there are."""
    from bpe_tokenizer.formats import hub

    problem = f"{name}: no such file or directory"
    stem = name.removesuffix(Path(name).suffix)
    if stem not in ("", name) and Path(stem).exists():
        return f"{problem}; did you mean {shorten(stem)}?"
    if _has_separator(name):
        is_repository = name.count("/") == 1 and hub.parse_name(name) is not None
        return problem + (f"; a repository of the hub is {HUB_PREFIX}{name}" if is_repository else "")
    if len(name) > _MAX_NAME:
        return problem
    near = did_you_mean(name.lower(), [*PUBLISHED, *MODEL_NAMES])
    return (
        f"{problem}, and not a published name{near} Names are {', '.join(PUBLISHED)}; models of "
        f"OpenAI, like gpt-4o; and {HUB_PREFIX}owner/name for the Hugging Face hub"
    )
