"""A repository of the Hugging Face hub: its files, and errors that say why a file is missing.

For requests and the cache see https://huggingface.co/docs/huggingface_hub/guides/download and
https://huggingface.co/docs/huggingface_hub/guides/manage-cache.
"""

from __future__ import annotations

import importlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.errors import HubError, MissingDependencyError
from bpe_tokenizer.libraries import install_command

__all__ = ["Repository", "cache_directory", "is_offline"]

_LIBRARY = {"library_name": "bpe-tokenizer", "library_version": _core.__version__}
_TIMEOUT = 10  # seconds until the hub counts as unreachable
_LOG_IN = "log in with `hf auth login`, set HF_TOKEN or pass token="


@dataclass(frozen=True)
class Repository:
    """A repository of the hub at one revision, reached through `huggingface_hub` and its cache.

    Args:
        id: Its name, `owner/name`.
        revision: A branch, a tag or a commit.
        token: An access token; True for the stored one, False for none, None for the stored one if any.
        cache_dir: The cache directory; None for that of `huggingface_hub`.
        local_files_only: Whether to use the cache only, without the network.
        local_reason: Why only the cache is used, and the way out, for the error about a missing file.

    Raises:
        MissingDependencyError: `huggingface_hub` is not installed.
    """

    id: str
    revision: str
    token: str | bool | None = None
    cache_dir: str | os.PathLike[str] | None = None
    local_files_only: bool = False
    local_reason: str = "local_files_only is True; load the tokenizer once with the network"

    def __post_init__(self) -> None:
        _library()

    def __str__(self) -> str:
        return self.id if self.revision == "main" else f"{self.id} at {self.revision!r}"

    @property
    def page(self) -> str:
        """The URL of its page."""
        return f"{_endpoint()}/{self.id}"

    @property
    def is_offline(self) -> bool:
        """Whether only the cache is used."""
        return self.local_files_only or is_offline()

    @property
    def is_pinned(self) -> bool:
        """Whether the revision is a commit, whose files never change."""
        return re.fullmatch("[0-9a-f]{40}", self.revision) is not None

    def file(self, name: PurePosixPath) -> Path | None:
        """Return the local path of a file; fetch it if the cache does not hold it.

        Returns:
            `.../snapshots/COMMIT/NAME`; None if the repository has no such file.

        Raises:
            HubError: The file cannot be fetched, or the cache does not know it and the network is off.
        """
        library = _library()
        location = {"revision": self.revision, "cache_dir": self.cache_dir}
        if self.is_offline or self.is_pinned:
            cached = self._cached(name)
            if cached is not None:
                return Path(cached) if isinstance(cached, str) else None
        access = {"token": self.token, "endpoint": _endpoint(), "local_files_only": self.is_offline}
        try:
            return Path(library.hf_hub_download(self.id, str(name), **location, **access, **_LIBRARY))
        except library.errors.LocalEntryNotFoundError as error:
            raise self._error(error, str(name)) from error
        except library.errors.EntryNotFoundError:
            return None
        except MemoryError:
            raise
        except Exception as error:  # the class depends on the HTTP library of this huggingface_hub
            raise self._error(error, str(name)) from error

    def knows(self, name: PurePosixPath) -> bool:
        """Return whether the cache has a file, or knows that the repository lacks it."""
        return self._cached(name) is not None

    def _cached(self, name: PurePosixPath) -> object:
        location = {"revision": self.revision, "cache_dir": self.cache_dir}
        return _library().try_to_load_from_cache(self.id, str(name), **location)

    def check_reachable(self) -> None:
        """Ask the hub for anything, once: `huggingface_hub` repeats a request for 20 seconds.

        Raises:
            HubError: It cannot be reached. Nothing is asked where the network is off.
        """
        if self.is_offline:
            return
        try:
            _library().get_session().head(_endpoint(), timeout=_TIMEOUT)
        except MemoryError:
            raise
        except Exception as error:  # the class depends on the HTTP library of this huggingface_hub
            raise self._error(error, "its tokenizer") from error

    def listed(self) -> tuple[Repository, list[PurePosixPath]]:
        """Return the repository at the current commit of the revision, and the names of its files.

        Raises:
            HubError: The list cannot be fetched.
        """
        library = _library()
        try:
            if self.is_offline:
                return self._listed_in_cache()
            api = library.HfApi(endpoint=_endpoint(), token=self.token, **_LIBRARY)
            found = api.model_info(self.id, revision=self.revision)
            names = [PurePosixPath(file.rfilename) for file in found.siblings]
            return replace(self, revision=found.sha), names
        except MemoryError:
            raise
        except Exception as error:
            raise self._error(error, "the list of its files") from error

    def _listed_in_cache(self) -> tuple[Repository, list[PurePosixPath]]:
        snapshot = Path(
            _library().snapshot_download(
                self.id,
                revision=self.revision,
                cache_dir=self.cache_dir,
                local_files_only=True,
                allow_patterns=[],  # list the cached files, fetch none
            )
        )
        files = [file.relative_to(snapshot) for file in snapshot.rglob("*") if file.is_file()]
        return replace(self, revision=snapshot.name), [PurePosixPath(*file.parts) for file in files]

    def _error(self, error: Exception, wanted: str) -> HubError:
        """Translate an error of `huggingface_hub`, and say what to do about it."""
        errors = _library().errors
        if isinstance(error, errors.GatedRepoError):
            problem = f"is gated: request access on {self.page}, then {_LOG_IN}"
        elif isinstance(error, errors.RepositoryNotFoundError):
            problem = (
                f"no such repository at {_endpoint()}, and no local file or directory of this name; "
                f"if it is private, {_LOG_IN}"
            )
        elif isinstance(error, errors.RevisionNotFoundError):
            problem = f"no such branch, tag or commit; see {self.page} for the revisions"
        elif isinstance(error, errors.LocalTokenNotFoundError):
            problem = f"token=True needs a stored token, but there is none; {_LOG_IN}"
        elif self.is_offline and isinstance(error, errors.LocalEntryNotFoundError):
            offline = "HF_HUB_OFFLINE is set; load the tokenizer once with the network"
            reason = offline if is_offline() else self.local_reason
            problem = f"{wanted} is not in the cache, and {reason}, or give the path of a local copy"
        else:
            is_wrapped = isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None
            reason = " ".join(str(error.__cause__ if is_wrapped else error).split())
            problem = (
                f"{wanted} cannot be fetched from {_endpoint()}: {reason.rstrip('.')}. Check the connection "
                "and try again, or set HF_HUB_OFFLINE=1 to use what the cache holds"
            )
        return HubError(f"{self}: {problem}")


def cache_directory() -> Path:
    """Return the cache of `huggingface_hub`.

    Raises:
        MissingDependencyError: It is not installed.
    """
    return Path(_library().constants.HF_HUB_CACHE)


def is_offline() -> bool:
    """Whether `HF_HUB_OFFLINE` or `TRANSFORMERS_OFFLINE` turns the network off."""
    try:
        return bool(_library().constants.HF_HUB_OFFLINE)
    except MissingDependencyError:
        value = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
        return value.upper() in ("1", "ON", "YES", "TRUE")


def _endpoint() -> str:
    return (os.environ.get("HF_ENDPOINT") or str(_library().constants.ENDPOINT)).rstrip("/")


def _library() -> Any:
    try:
        for part in ("constants", "errors"):
            importlib.import_module(f"huggingface_hub.{part}")
        return importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise MissingDependencyError(
            "a tokenizer of the Hugging Face hub needs huggingface_hub, which is not installed: "
            + install_command("hub")
        ) from error
