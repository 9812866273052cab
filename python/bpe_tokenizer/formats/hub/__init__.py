"""Loads a tokenizer from a repository of the Hugging Face hub, a local path, or another library's object."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.errors import ArgumentTypeError, HubError, OptionError, TokenizerFileNotFoundError, shorten
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

__all__ = ["fetch", "load", "parse_name"]

# The files that are fetched with a file. The config is the last: if the cache holds it, it holds the others.
_SETTINGS = ("special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "tokenizer_config.json")
_COMPANIONS = {
    "tokenizer.json": _SETTINGS,
    **{name: (other, *_SETTINGS) for pair in GPT2_PAIRS for name, other in (pair, pair[::-1])},
}
# Most repositories lack these. A cache filled by other programs may not record that.
_OPTIONAL_FILES = ("special_tokens_map.json", "added_tokens.json", "chat_template.jinja")
# The extensions of tokenizer files. A path into a repository without one of them names a folder.
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

    From the hub, only the files of the tokenizer are fetched, into the shared cache of the Hugging Face
    libraries: the first found of `tokenizer.json` with its config, GPT-2's pair of files, `tekken.json` and a
    `.tiktoken` file. All come from the same commit. The library `huggingface_hub` fetches them; it honours
    `HF_TOKEN`, `HF_HOME`, `HF_ENDPOINT`, `HF_HUB_OFFLINE` and proxies, and shows its progress on a terminal
    unless `HF_HUB_DISABLE_PROGRESS_BARS` is set.

    Args:
        source: A local directory or file; a repository, `"owner/name"`; a folder of it,
            `"owner/name/folder"`; a file of it, `"owner/name/file.gguf"` (fetched with its weights); a
            `tokenizers.Tokenizer`; or a fast tokenizer of `transformers`. A local path takes precedence.
        revision: A branch, a tag or a commit; None for the branch `main`. Only for the hub, like the next
            three arguments.
        token: An access token; True for the one that `hf auth login` stored; False for none; None for the
            stored one, if any.
        cache_dir: The cache directory; None for that of `huggingface_hub`.
        local_files_only: Use the cache only, without the network.
        split_pattern: A name or a pattern, for rank files and GPT-2's pair, which hold none.
        special_tokens: A dict of text to id, or a list, for the same files. Without them a rank file of a
            repository is loaded only if `source` names the file.

    Returns:
        The model.

    Raises:
        ArgumentTypeError: The source has another type.
        FormatError: A file or an object is broken or cannot be represented exactly, or the path does not
            exist.
        HubError: The hub cannot be reached; the repository, revision or file does not exist, or is private
            or gated; or the cache does not hold it.
        MissingDependencyError: `huggingface_hub` is not installed.
        OptionError: A rank file needs `split_pattern` and `special_tokens`, or the source has its own.

    >>> from bpe_tokenizer import BPETokenizer
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     BPETokenizer().train("low low lower", vocab_size=258, verbose=False).save(directory)
    ...     load(directory).core.merges
    [(b'o', b'w'), (b'l', b'ow')]
    """
    given: dict[str, Any] = {"split_pattern": split_pattern, "special_tokens": special_tokens}
    if isinstance(source, str | os.PathLike):
        check_path("source", source)
    if isinstance(source, str) and not _exists(Path(source)):
        name, folder = _parse_source(source)
        repository = Repository(name, revision or "main", token, cache_dir, local_files_only)
        return registry.load(fetch(repository, folder, None not in given.values()), **given)
    if isinstance(source, str | os.PathLike):
        return registry.load(source, **given)
    if any(value is not None for value in given.values()):
        raise OptionError("an object has its own split pattern and special tokens; leave out these arguments")
    if isinstance(source, TransformersTokenizer):
        return from_transformers(source)
    if isinstance(source, TokenizersTokenizer):
        return from_tokenizers(source)
    raise ArgumentTypeError(
        "source must be the name of a repository, a path, a tokenizers.Tokenizer or a tokenizer of "
        f"transformers, not {type(source).__name__}"
    )


def _exists(path: Path) -> bool:
    with contextlib.suppress(OSError):  # the text cannot be a path on this system
        return path.exists()
    return False


def _parse_source(source: str) -> tuple[str, PurePosixPath]:
    """Return the repository that a text names, and the path in it."""
    found = parse_name(source)
    if found is None or (source.endswith(_FILES) and "/" not in source):
        hint = "" if found else ", and not the name of a repository like 'owner/name'"
        raise TokenizerFileNotFoundError(f"{source}: no such file or directory{hint}")
    return found


def parse_name(name: str) -> tuple[str, PurePosixPath] | None:
    """Return the repository and the path in it that a name means; None if it is not such a name.

    >>> parse_name("owner/name/folder"), parse_name("https://huggingface.co/owner/name")
    (('owner/name', PurePosixPath('folder')), None)
    """
    match = _REPOSITORY.fullmatch(name)
    return match and (match[1], PurePosixPath(match[2].removeprefix("/")))


def fetch(repository: Repository, folder: PurePosixPath, is_given: bool = False) -> Path:
    """Fetch the file of a tokenizer and its companions, and return the local path to load.

    Args:
        repository: The repository.
        folder: A folder of it, or a file.
        is_given: Whether the caller has the split pattern and the special tokens, which a rank file lacks.

    Raises:
        HubError: As in `load`.
    """
    name = folder if folder.name.endswith(_FILES) else folder / "tokenizer.json"
    path = repository.file(name)
    names: list[PurePosixPath] | None = None
    if path is None and name != folder:
        repository, names = repository.listed()
        name = _choose_file(repository, [name for name in names if name.parent == folder], is_given)
        path = repository.file(name)
    if path is None:
        raise HubError(
            f"{repository}: holds no file {shorten(str(name))}; see {repository.page} for its files"
        )
    snapshot = path.parents[len(name.parts) - 1]  # .../snapshots/COMMIT
    repository = replace(repository, revision=snapshot.name)
    if name.name == "tokenizer.json" and name == folder:
        return path  # it is read alone
    for other in _companions(repository, name, names):
        if not (repository.is_offline and other.name in _OPTIONAL_FILES):
            repository.file(other)
    return path.parent if name.name == "tokenizer.json" else path


def _companions(
    repository: Repository, name: PurePosixPath, names: list[PurePosixPath] | None
) -> list[PurePosixPath]:
    """Return the files that are fetched with a file; the templates only if the config is not cached yet.

    Args:
        repository: The repository.
        name: The file.
        names: The files of the repository; None if they have not been listed.
    """
    others = [name.with_name(other) for other in _COMPANIONS.get(name.name, ())]
    if not others or repository.is_offline or repository.knows(others[-1]):
        return others
    templates = name.with_name("additional_chat_templates")
    names = repository.listed()[1] if names is None else names
    return [*(file for file in names if file.match("*.jinja") and file.parent == templates), *others]


def _choose_file(repository: Repository, files: Iterable[PurePosixPath], is_given: bool) -> PurePosixPath:
    """Return the file to load from a folder without tokenizer.json."""
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
    hint = f"; name a file of it, like {repository.id}/{names[others[0]]}" if others else ""
    if ranks:
        hint += ", with the split_pattern and special_tokens from the repository's code"
    raise HubError(
        f"{repository}: holds no tokenizer.json, no vocab.json with merges.txt and no tekken.json{hint}"
    )
