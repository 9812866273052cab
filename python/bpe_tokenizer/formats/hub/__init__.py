"""Hugging Face: a tokenizer from a repository of the hub, a local path, or another library's object."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from bpe_tokenizer.errors import ArgumentTypeError, FormatError, HubError, OptionError
from bpe_tokenizer.formats import registry
from bpe_tokenizer.formats.hub.objects import (
    TokenizersTokenizer,
    TransformersTokenizer,
    from_tokenizers,
    from_transformers,
)
from bpe_tokenizer.formats.hub.repository import Repository
from bpe_tokenizer.formats.probe import GPT2_PAIRS
from bpe_tokenizer.model import Model
from bpe_tokenizer.special_tokens import SpecialTokens

__all__ = ["load"]

# What is read beside a file, and has to be fetched with it. The config comes last: where the cache holds it,
# no interrupted load has left anything out.
_SETTINGS = ("special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "tokenizer_config.json")
_COMPANIONS = {
    "tokenizer.json": ("special_tokens_map.json", "chat_template.jinja", "tokenizer_config.json"),
    "vocab.json": ("merges.txt", *_SETTINGS),
    "merges.txt": ("vocab.json", *_SETTINGS),
    "encoder.json": ("vocab.bpe", *_SETTINGS),
    "vocab.bpe": ("encoder.json", *_SETTINGS),
}
# A cache that was filled by other programs need not say that a repository lacks these; most of them do.
_OPTIONAL_FILES = ("special_tokens_map.json", "added_tokens.json", "chat_template.jinja")
# Files that hold a tokenizer, by their ends: what a path into a repository names, if not a folder.
_FILES = (".json", ".gguf", ".tiktoken", ".model", ".txt", ".bpe")
# https://huggingface.co/docs/huggingface_hub/package_reference/utilities#huggingface_hub.utils.validate_repo_id
_NAME = r"(?![.-])[A-Za-z0-9_.-]{1,96}(?<![.-])"
_REPOSITORY = re.compile(rf"(?![^/]*/?[^/]*(?:--|\.\.))({_NAME}(?:/{_NAME})?)((?:/{_NAME})*)")


def load(
    source: str | os.PathLike[str] | TokenizersTokenizer | TransformersTokenizer,
    *,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    local_files_only: bool = False,
    split_pattern: str | Sequence[str] | None = None,
    special_tokens: SpecialTokens | None = None,
) -> Model:
    """Load a tokenizer from the Hugging Face hub, a local path, or an object of another library.

    From the hub only the files of the tokenizer are fetched, into the cache that all Hugging Face libraries
    share: `tokenizer.json` with what stands beside it, or else GPT-2's pair of files, or `tekken.json`, or a
    `.tiktoken` file. They all come from the same commit, and each is read only when it is there as a whole.
    The library behind it, `huggingface_hub`, honours `HF_TOKEN`, `HF_HOME`, `HF_ENDPOINT`, `HF_HUB_OFFLINE`
    and the proxies of the environment, and shows its progress on a terminal unless
    `HF_HUB_DISABLE_PROGRESS_BARS` is set.

    Args:
        source: A local directory or file. A `str` that names neither: a repository, `"owner/name"`; a folder
            of it, `"owner/name/folder"`; or one file of it, `"owner/name/file.gguf"` (which comes as a whole,
            weights included). Or an object: a `tokenizers.Tokenizer` or a fast tokenizer of `transformers`.
        revision: A branch, a tag or a commit; None for the branch `main`. Only for the hub, as all below.
        token: An access token; True for the one that `hf auth login` stored, which must be there; False for
            none; None for the stored one if there is one.
        cache_dir: Where the files are kept; None for where `huggingface_hub` keeps them.
        local_files_only: Take what the cache holds and do not touch the network.
        split_pattern: A name or a pattern, for files that do not hold their own: rank files, GPT-2's pair.
        special_tokens: A dict of text to id, or a list, for the same. Who publishes a rank file keeps these
            in Python, so without them it is taken only where its name is given.

    Returns:
        The model.

    Raises:
        ArgumentTypeError: The source is something else.
        FormatError: A file or an object is broken, or holds what cannot be represented exactly; or there is
            no such file.
        HubError: The hub cannot be reached, there is no such repository, revision or file, it is private or
            gated, or the cache does not hold it.
        MissingDependencyError: `huggingface_hub` is not installed.
        OptionError: A rank file needs a split pattern and special tokens, or the source has its own.

    >>> from bpe_tokenizer import BPETokenizer
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     BPETokenizer().train("low low lower", vocab_size=258, verbose=False).save(directory)
    ...     load(directory).core.merges
    [(b'o', b'w'), (b'l', b'ow')]
    """
    given: dict[str, Any] = {"split_pattern": split_pattern, "special_tokens": special_tokens}
    if isinstance(source, str) and not _exists(Path(source)):
        name, place = _parse_source(source)
        repository = Repository(name, revision or "main", token, cache_dir, local_files_only)
        return registry.load(_fetch(repository, place, None not in given.values()), **given)
    if isinstance(source, str | os.PathLike):
        return registry.load(source, **given)
    if any(value is not None for value in given.values()):
        raise OptionError("an object has its own split pattern and special tokens; leave them out")
    if isinstance(source, TransformersTokenizer):
        return from_transformers(source)
    if isinstance(source, TokenizersTokenizer):
        return from_tokenizers(source)
    raise ArgumentTypeError(
        "source must be the name of a repository, a path, a tokenizers.Tokenizer or a tokenizer of "
        f"transformers, not {type(source).__name__}"
    )


def _exists(path: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):  # a text that cannot be a path here
        return path.exists()
    return False


def _parse_source(source: str) -> tuple[str, PurePosixPath]:
    """Return the repository that a text names, and the place in it."""
    match = _REPOSITORY.fullmatch(source)
    if match is None or (source.endswith(_FILES) and "/" not in source):
        hint = "" if match else ", nor is this the name of a repository like 'owner/name'"
        raise FormatError(f"{source}: there is no such file or directory{hint}")
    return match[1], PurePosixPath(match[2].removeprefix("/"))


def _fetch(repository: Repository, place: PurePosixPath, is_given: bool) -> Path:
    """Return where the file to read is kept, once it and what is read beside it are there."""
    name = place if place.name.endswith(_FILES) else place / "tokenizer.json"
    path = repository.file(name)
    if path is None and name != place:
        repository, names = repository.listed()
        name = _choose_file(repository, [name for name in names if name.parent == place], is_given)
        path = repository.file(name)
    if path is None:
        raise HubError(f"{repository}: holds no file {str(name)!r}; {repository.page} shows what it holds")
    snapshot = path.parents[len(name.parts) - 1]  # .../snapshots/COMMIT
    repository = replace(repository, revision=snapshot.name)
    for other in _COMPANIONS.get(name.name, ()):
        if not (repository.is_offline and other in _OPTIONAL_FILES):
            repository.file(name.with_name(other))
    return path


def _choose_file(repository: Repository, files: Iterable[PurePosixPath], is_given: bool) -> PurePosixPath:
    """Return the file to read of a folder that holds no tokenizer.json."""
    names = {file.name: file for file in files}
    for vocab, merges in GPT2_PAIRS:
        if vocab in names and merges in names:
            return names[vocab]
    if "tekken.json" in names:
        return names["tekken.json"]
    ranks = sorted(name for name in names if name.endswith(".tiktoken"))
    if len(ranks) == 1 and is_given:
        return names[ranks[0]]
    others = ranks or sorted(name for name in names if name.endswith((".gguf", ".model")))
    hint = f"; a file of it can be named, like {repository.id}/{names[others[0]]}" if others else ""
    if ranks:
        hint += ", with the split_pattern and the special_tokens that the code beside it has"
    raise HubError(
        f"{repository}: holds no tokenizer.json, no vocab.json with merges.txt and no tekken.json{hint}"
    )
