"""What is installed: versions, the processor's instructions, extras and caches. Needs no optional library."""

from __future__ import annotations

import json
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from bpe_tokenizer import __version__, _core
from bpe_tokenizer.errors import MissingDependencyError, escaped
from bpe_tokenizer.formats.hub.repository import cache_directory
from bpe_tokenizer.formats.tiktoken.cache import Cache
from bpe_tokenizer.libraries import install_command
from bpe_tokenizer.view.page import has_page

__all__ = ["Installation"]

_NAME = "bpe-tokenizer"
# A requirement's name, and the parts of its marker.
_REQUIREMENT = re.compile(r"[\w.-]+")
_EXTRA = re.compile(r"""extra == ["']([\w-]+)["']""")
_OLDER_PYTHON = re.compile(r"""python_(?:full_)?version < ["'](\d+)\.(\d+)["']""")
# The libraries that come with the package, among the extras.
_PACKAGE = "the package"


@dataclass(frozen=True)
class Installation:
    """What is installed here.

    Args:
        version: Of the package.
        place: Its directory.
        python: The Python, with its version.
        system: The system and its processor.
        instructions: The vector instructions that the core uses.
        has_page: Whether the page of `view` was built.
        extras: The libraries of each extra with their versions, None for what is missing; first those that
            come with the package. Empty if the package was not installed by an installer.
        caches: The directory of each cache, with the number of its files and their bytes.
    """

    version: str
    place: str
    python: str
    system: str
    instructions: str
    has_page: bool
    extras: dict[str, dict[str, str | None]]
    caches: dict[str, tuple[str, int, int]]

    @classmethod
    def examined(cls) -> Installation:
        """Return what is installed here."""
        try:
            requirements = metadata.requires(_NAME) or []
        except metadata.PackageNotFoundError:
            requirements = []
        return cls(
            version=__version__,
            place=str(Path(__file__).parents[1]),
            python=f"{platform.python_implementation()} {platform.python_version()}",
            system=platform.platform(),
            instructions=_core.instruction_set(),
            has_page=has_page(),
            extras=_extras(requirements),
            caches={name: (str(place), *_size(place)) for name, place in _caches()},
        )

    def to_json(self) -> str:
        """Return the report for programs."""
        return json.dumps(asdict(self))

    def __str__(self) -> str:
        """Return the report for people."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{_NAME} {self.version} in {escaped(self.place)}"
        yield f"{self.python} on {self.system}; instructions of the core: {self.instructions}"
        yield f"page of `view`: {'built' if self.has_page else 'missing; run `make wasm` in the repository'}"
        yield ""
        if not self.extras:
            yield "extras: unknown, because no installer installed this copy"
        for extra, libraries in self.extras.items():
            shown = [f"{name} {version or '(missing)'}" for name, version in libraries.items()]
            yield f"{extra:<13} {', '.join(shown)}"
        if any(None in libraries.values() for libraries in self.extras.values()):
            yield f"What is missing is needed by its extra only. To install one: {install_command('EXTRA')}"
        yield ""
        for name, (place, files, size) in self.caches.items():
            yield f"{name}: {files:,} files, {size / 1e6:,.1f} MB in {escaped(place)}"


def _extras(requirements: Iterable[str]) -> dict[str, dict[str, str | None]]:
    extras: dict[str, dict[str, str | None]] = {_PACKAGE: {}}
    for requirement in requirements:
        name = _REQUIREMENT.findall(requirement)[0]
        extra, older = _EXTRA.search(requirement), _OLDER_PYTHON.search(requirement)
        is_needed = older is None or sys.version_info < (int(older[1]), int(older[2]))
        if name != _NAME and is_needed:
            extras.setdefault(extra[1] if extra else _PACKAGE, {})[name] = _version(name)
    return extras if extras[_PACKAGE] else {}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _caches() -> Iterator[tuple[str, Path]]:
    ranks = Cache.at().directory
    if ranks is not None:
        yield "tiktoken's ranks", ranks
    with suppress(MissingDependencyError):  # the line of its extra says so
        yield "the Hugging Face hub", cache_directory()


def _size(place: Path) -> tuple[int, int]:
    """Return the number of files below a directory, and their bytes; links count as what they are."""
    sizes = [path.lstat().st_size for path in place.rglob("*") if path.is_file() and not path.is_symlink()]
    return len(sizes), sum(sizes)
