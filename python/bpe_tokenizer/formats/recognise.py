"""Which format a file or a directory is: by what it holds, never by its name alone.

`FORMATS` is the table of them all. Of a file no more than its first 64 KiB are read, unless it is JSON with a
single field that is longer than that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from bpe_tokenizer.errors import FormatError, OptionError
from bpe_tokenizer.formats import base64_json, gguf, gpt2, huggingface, minbpe, readable, tekken, tiktoken
from bpe_tokenizer.formats._contents import Contents, explanation
from bpe_tokenizer.model import Model

__all__ = ["FORMATS", "Format", "Saved", "load", "named", "recognise", "save"]


@dataclass(frozen=True)
class Format:
    """A format of tokenizer files.

    Args:
        name: What it is called on the command line.
        title: What people call it.
        recognise: Whether a file is of this format; None if nothing is ever loaded from it.
        load: Reads a file or a directory.
        save: Writes a model; returns the files if there are several, or what `load` has to be given along.
        is_given: Whether `load` takes `split_pattern` and `special_tokens`, which its files may not hold.
        is_directory: Whether it is saved as a directory.
    """

    name: str
    title: str
    recognise: Callable[[Contents], bool] | None
    load: Callable[..., Model] | None = None
    save: Callable[[Model, Path], object] | None = None
    is_given: bool = False
    is_directory: bool = False


class Saved(NamedTuple):
    """What was saved.

    Args:
        files: The files, in the order in which they were moved to their places.
        given_along: What `load` has to be given along with them.
    """

    files: list[Path]
    given_along: dict[str, Any]


# The first that recognises a file has it.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            Format(
                "gguf",
                "GGUF",
                lambda file: file.head.startswith(b"GGUF"),
                gguf.load,
                gguf.save,
            ),
            Format(
                "minbpe",
                "minbpe .model",
                lambda file: file.head.startswith(b"minbpe "),
                minbpe.load,
                minbpe.save,
            ),
            Format(
                "base64-json",
                "base64 JSON",
                lambda file: file.kind_of_json == "base64-json",
                base64_json.load,
                base64_json.save,
            ),
            Format(
                "tekken",
                "Mistral tekken.json",
                lambda file: file.kind_of_json == "tekken",
                tekken.load,
            ),
            Format(
                "huggingface",
                "Hugging Face tokenizer.json",
                lambda file: file.kind_of_json == "huggingface",
                huggingface.load,
                huggingface.save,
                is_directory=True,
            ),
            Format(
                "tiktoken",
                ".tiktoken ranks",
                lambda file: file.is_tiktoken,
                tiktoken.load,
                tiktoken.save,
                is_given=True,
            ),
            Format(
                "gpt2",
                "GPT-2 vocab.json and merges.txt",
                lambda file: file.kind_of_json == "gpt2" or file.is_gpt2_merges,
                gpt2.load,
                gpt2.save,
                is_given=True,
                is_directory=True,
            ),
            Format("readable", "listing for people", None, save=readable.save),
        )
    }
)

# The files that a directory is looked through for, in this order, before all others.
_USUAL = ("tokenizer.json", "vocab.json", "encoder.json", "tekken.json")
_MOST_FILES = 1000


def recognise(path: str | os.PathLike[str]) -> tuple[Format, Path]:
    r"""Find out which format a file or a directory is.

    Args:
        path: A file; or a directory that holds a tokenizer.json, a pair of GPT-2 files, a tekken.json, or one
            file of any format.

    Returns:
        The format, and what to load: the path itself, or the file of a directory.

    Raises:
        FormatError: There is no such file, it is of no known format, or a directory holds none or several;
            says what was found instead.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "anything")
    ...     _ = path.write_text("minbpe v1\n\n0\n")
    ...     recognise(path)[0].title
    'minbpe .model'
    """
    path = Path(path)
    if path.is_dir():
        return _in_directory(path)
    contents = _contents(path)
    found = _format_of(contents)
    if found is None:
        raise FormatError(f"{path}: {explanation(contents)}")
    return found, path


def load(path: str | os.PathLike[str], *, kind: str | None = None, **given: Any) -> Model:
    """Load a tokenizer from a file or a directory of any format.

    Args:
        path: The file or directory.
        kind: The name of its format; None to recognise it.
        given: `split_pattern` and `special_tokens`, for formats that do not hold them. None is not given.

    Raises:
        FormatError: It is of no known format, or broken, or holds what cannot be represented exactly.
        OptionError: There is no such format, or it holds itself what is given.
    """
    path = Path(path)
    if kind is None:
        entry, path = recognise(path)
    else:
        entry = named(kind)
    given = {name: value for name, value in given.items() if value is not None}
    if entry.load is None:
        raise OptionError(f"{path}: a {entry.title} cannot be loaded; it is written only")
    if given and not entry.is_given:
        raise OptionError(f"{path}: is a {entry.title}, which holds its own; leave {' and '.join(given)} out")
    return entry.load(path, **given)


def save(model: Model, path: str | os.PathLike[str], kind: str) -> Saved:
    """Save a tokenizer in any format that can be saved.

    Args:
        model: What to save.
        path: The file or directory.
        kind: The name of the format.

    Returns:
        The files, and what `load` has to be given along with them.

    Raises:
        FormatError: The format cannot hold something of the model.
        OptionError: There is no such format, or it cannot be saved.
        OSError: A file cannot be written.
    """
    entry = named(kind)
    if entry.save is None:
        raise OptionError(f"a {entry.title} cannot be saved; it is read only")
    saved = entry.save(model, Path(path))
    return Saved(
        saved if isinstance(saved, list) else [Path(path)], dict(saved) if isinstance(saved, dict) else {}
    )


def named(name: str) -> Format:
    """Return the format of this name.

    Raises:
        OptionError: There is none.
    """
    if name not in FORMATS:
        raise OptionError(f"there is no format {name!r}; the formats are {', '.join(FORMATS)}")
    return FORMATS[name]


def _contents(path: Path) -> Contents:
    if path.exists() and not path.is_file():
        raise FormatError(f"{path}: is no file, but a device or a pipe")
    try:
        return Contents.of(path)
    except FileNotFoundError as error:
        raise FormatError(f"{path}: there is no such file or directory") from error
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror or error}") from error


def _format_of(contents: Contents) -> Format | None:
    entries = (
        entry for entry in FORMATS.values() if entry.recognise is not None and entry.recognise(contents)
    )
    return next(entries, None)


def _in_directory(directory: Path) -> tuple[Format, Path]:
    for name in _USUAL:
        path = directory / name
        if path.is_file():
            found = _format_of(_contents(path))
            # A stray vocab.json is another tokenizer's, like WordPiece's.
            if found is not None and not (found is FORMATS["gpt2"] and not _is_pair(path)):
                return found, path
    found_there = list(_others(directory))
    kinds = {entry.name for entry, _ in found_there}
    if len(found_there) == 1:
        return found_there[0]
    if not found_there:
        raise FormatError(f"{directory}: holds no file of a tokenizer format that is known{_hint(directory)}")
    names = ", ".join(sorted(path.name for _, path in found_there)[:5])
    raise FormatError(
        f"{directory}: holds several tokenizers ({names}; {', '.join(sorted(kinds))}); name one"
    )


def _is_pair(path: Path) -> bool:
    return any(path.name == pair[0] and path.with_name(pair[1]).is_file() for pair in gpt2.PAIRS)


def _others(directory: Path) -> Iterator[tuple[Format, Path]]:
    with os.scandir(directory) as entries:
        files = sorted(Path(entry.path) for entry, _ in zip(entries, range(_MOST_FILES), strict=False))
    for path in files:
        # Half a pair, a file of settings or of weights is no tokenizer alone.
        if path.is_file() and not path.name.startswith("."):
            entry = _format_of(_contents(path))
            if entry is not None and entry is not FORMATS["gpt2"]:
                yield entry, path


def _hint(directory: Path) -> str:
    path = directory / "tokenizer.model"
    return f"; {path.name} {explanation(_contents(path))}" if path.is_file() else ""
