"""The list of all formats, and recognition of a file's format by its content.

`FORMATS` is the only list: `load`, `save`, the command line and the documentation derive from it. A format's
module is imported when the format is used. To add a format, write its module and add its record here.

The name of a file never decides. Recognition reads the first 64 KiB of a file; it reads more only of a JSON
file whose first fields are longer than that.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.atomic import check_writable
from bpe_tokenizer.errors import FormatError, OptionError, TokenizerFileNotFoundError, shorten
from bpe_tokenizer.formats import probe
from bpe_tokenizer.formats.files import check_regular, read_errors
from bpe_tokenizer.formats.probe import FileProbe
from bpe_tokenizer.model import Model

__all__ = [
    "FORMATS",
    "Format",
    "Saved",
    "check_directory",
    "check_unused",
    "detect",
    "get_format",
    "load",
    "save",
]


@dataclass(frozen=True)
class Format:
    """A format of tokenizer files.

    Args:
        name: The name on the command line.
        title: What people call it.
        description: What the format holds, in one sentence.
        extensions: The usual ends of the files' names.
        matches: Whether a file is of this format; None for a format that is never loaded.
        can_load: Whether the module has `load(path, **load_kwargs) -> Model`.
        can_save: Whether the module has `save(model, path)`. It returns the files it wrote, or the keyword
            arguments that `load` needs, or nothing.
        load_kwargs: The keyword arguments of `load`: `split_pattern`, `special_tokens` and others that a file
            may lack.
        is_directory: Whether `save` writes a directory.
        companions: Pairs of file names that are a tokenizer only together.
        aliases: Other names that the command line accepts, in lower case.
    """

    name: str
    title: str
    description: str
    extensions: tuple[str, ...]
    matches: Callable[[FileProbe], bool] | None = None
    can_load: bool = True
    can_save: bool = True
    load_kwargs: tuple[str, ...] = ()
    is_directory: bool = False
    companions: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """The name of its module in this package."""
        return self.name.replace("-", "_")

    def load(self, path: Path, **load_kwargs: Any) -> Model:
        """Load a file or a directory of this format."""
        if not self.can_load:
            raise OptionError(f"{path}: a {self.title} cannot be loaded; it is written only")
        if unknown := [name for name in load_kwargs if name not in self.load_kwargs]:
            what = "no merges" if unknown == ["merges"] else "its own split pattern and special tokens"
            raise OptionError(f"{path}: a {self.title} holds {what}; leave out {' and '.join(unknown)}")
        with read_errors(path):
            model: Model = self._module().load(path, **load_kwargs)
        return model

    def save(self, model: Model, path: Path) -> Saved:
        """Save a model as a file or a directory of this format."""
        if not self.can_save:
            raise OptionError(f"a {self.title} cannot be saved; it is read only")
        result = self._module().save(model, path)
        return Saved(
            result if isinstance(result, list) else [path], dict(result) if isinstance(result, dict) else {}
        )

    def _module(self) -> Any:
        return importlib.import_module(f"bpe_tokenizer.formats.{self.module}")


class Saved(NamedTuple):
    """The result of `save`.

    Args:
        files: The files, in the order in which they were moved into place.
        load_kwargs: The keyword arguments that `load` needs for them.
    """

    files: list[Path]
    load_kwargs: dict[str, Any]


# The first format that matches a file is the file's format.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            Format(
                "gguf",
                "GGUF",
                "llama.cpp's container: the tokenizer in the metadata of a model, or alone",
                extensions=(".gguf",),
                matches=probe.is_gguf,
                aliases=("llama.cpp", "llamacpp", "llama-cpp"),
            ),
            Format(
                "minbpe",
                "minbpe .model",
                "split pattern, special tokens, and merges as pairs of ids",
                extensions=(".model",),
                matches=probe.is_minbpe,
            ),
            Format(
                "base64-json",
                "base64 JSON",
                "everything that a model is, with tokens in base64",
                extensions=(".json",),
                matches=probe.is_base64_json,
                aliases=("base64",),
            ),
            Format(
                "tekken",
                "Mistral tekken.json",
                "ranks of byte-level tokens, split pattern and special tokens",
                extensions=("tekken.json",),
                matches=probe.is_tekken,
                can_save=False,
                aliases=("mistral", "tekken.json"),
            ),
            Format(
                "huggingface",
                "Hugging Face tokenizer.json",
                "the file of `tokenizers`, with `tokenizer_config.json` for `transformers`",
                extensions=("tokenizer.json",),
                matches=probe.is_tokenizer_json,
                is_directory=True,
                aliases=("hf", "transformers", "tokenizers", "tokenizer.json", "hugging-face"),
            ),
            Format(
                "tiktoken",
                ".tiktoken ranks",
                "tokens in base64 with their ranks; no split pattern, no special tokens",
                extensions=(".tiktoken",),
                matches=probe.is_tiktoken,
                load_kwargs=("split_pattern", "special_tokens"),
                aliases=("openai",),
            ),
            Format(
                "gpt2",
                "GPT-2 vocab.json and merges.txt",
                "token strings with ids, and merges in a second file",
                extensions=tuple(name for pair in probe.GPT2_PAIRS for name in pair),
                matches=probe.is_gpt2,
                load_kwargs=("split_pattern", "special_tokens", "merges"),
                is_directory=True,
                companions=dict(probe.GPT2_PAIRS),
                aliases=("gpt-2", "vocab.json", "merges.txt"),
            ),
            Format(
                "readable",
                "listing for people",
                "each token with its id and the two tokens it is merged from",
                extensions=(".txt",),
                can_load=False,
                aliases=("text", "txt", "vocab"),
            ),
        )
    }
)

# In a directory these files come first, in this order.
_PREFERRED_NAMES = ("tokenizer.json", "vocab.json", "encoder.json", "tekken.json")
_MAX_FILES = 1000


def detect(path: str | os.PathLike[str]) -> tuple[Format, Path]:
    r"""Return the format of a file or a directory.

    Args:
        path: A file; or a directory that holds a tokenizer.json, a pair of GPT-2 files, a tekken.json, or one
            file of any format.

    Returns:
        The format, and the path to load: the path itself, or the file in the directory; the directory for a
        tokenizer.json, which counts together with the files beside it.

    Raises:
        FormatError: The file does not exist or is of no known format, or a directory holds no tokenizer or
            several. The message says what was found instead.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "anything")
    ...     _ = path.write_text("minbpe v1\n\n0\n")
    ...     detect(path)[0].title
    'minbpe .model'
    """
    path = check_path("path", path)
    with read_errors(path):
        if path.is_dir():
            return _detect_in_directory(path)
        file = _open_probe(path)
    found = _match(file)
    if found is None:
        raise FormatError(f"{path}: {_unknown_format(file)}")
    return found, path


def load(path: str | os.PathLike[str], format_name: str | None = None, **load_kwargs: Any) -> Model:
    """Load a tokenizer from a file or a directory of any format.

    Args:
        path: The file or directory.
        format_name: The name of its format; None detects it.
        load_kwargs: Those of the format (`split_pattern`, `special_tokens`, ...); None counts as absent.

    Raises:
        FormatError: The format is unknown, or the file is broken or cannot be represented exactly.
        OptionError: No format has this name, or the format takes no such keyword argument.
    """
    if format_name is None:
        entry, path = detect(path)
    else:
        entry, path = get_format(format_name), check_path("path", path)
        with read_errors(path):
            if path.is_dir():
                # From Python 3.14 on, Path.exists() is false for a file in a directory without permission.
                os.scandir(path).close()
    return entry.load(path, **{name: value for name, value in load_kwargs.items() if value is not None})


def save(model: Model, path: str | os.PathLike[str], format_name: str) -> Saved:
    """Save a tokenizer in a format.

    Args:
        model: The model to save.
        path: The file or directory.
        format_name: The name of the format.

    Raises:
        FormatError: The format cannot hold something of the model.
        OptionError: There is no such format, or it is read only.
        WriteError: A file cannot be written.
    """
    return get_format(format_name).save(model, check_path("path", path))


def check_directory(path: Path) -> None:
    """Check that a directory for a tokenizer can be written, and does not have the name of a file.

    Raises:
        OptionError: It has, and the message names the call that writes such a file; or it is a URL.
        WriteError: It cannot be written.

    >>> check_directory(Path("toy.gguf"))
    Traceback (most recent call last):
    bpe_tokenizer.errors.OptionError: 'toy.gguf' has the name of a file, and save writes a directory: ...
    """
    check_writable(path, is_directory=True)
    if path.is_dir():
        return
    suffix = path.suffix.lower()
    if suffix == ".json":
        advice = (
            "save(directory) writes tokenizer.json into it, to_tokenizers().save(path) writes that file alone"
        )
    else:
        known = [each for each in FORMATS.values() if each.can_save and suffix in each.extensions]
        if not known:
            return
        advice = f"export(path, {known[0].name!r}) writes a {suffix} file"
    raise OptionError(f"{shorten(path.name)} has the name of a file, and save writes a directory: {advice}")


def check_unused(files: Iterable[Path]) -> None:
    """Check that no file of a saved tokenizer would be replaced, for a command without `--overwrite`.

    Args:
        files: The files that a command writes. Of a directory, the files of a tokenizer in it are checked.

    Raises:
        OptionError: One exists.
    """
    for file in files:
        names = (*_PREFERRED_NAMES, "tokenizer_config.json") if file.is_dir() else ("",)
        for path in (file / name for name in names):
            if path.is_file():
                raise OptionError(
                    f"{shorten(str(path), 150)} exists already; write to another path, or replace the saved "
                    "tokenizer with --overwrite"
                )


def get_format(name: str) -> Format:
    """Return the format of this name.

    Raises:
        OptionError: There is no such format.
    """
    if not isinstance(name, str) or name not in FORMATS:
        raise OptionError(f"unknown format {shorten(name)}; choose one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _open_probe(path: Path) -> FileProbe:
    with read_errors(path):
        try:
            check_regular(path)
            return FileProbe.open(path)
        except FileNotFoundError as error:
            raise TokenizerFileNotFoundError(f"{path}: no such file or directory") from error


def _match(file: FileProbe) -> Format | None:
    for entry in FORMATS.values():
        if entry.matches is not None and entry.matches(file):
            return entry
    return _match(file.with_all_members()) if file.is_truncated_json else None


def _detect_in_directory(directory: Path) -> tuple[Format, Path]:
    for name in _PREFERRED_NAMES:
        path = directory / name
        if path.is_file():
            found = _match(_open_probe(path))
            if found is None and path.with_name(FORMATS["gpt2"].companions.get(name, name)).is_file():
                return detect(path)  # says what is wrong with it; another file may be another tokenizer
            # A vocab.json without its merges.txt belongs to another tokenizer, like WordPiece.
            if found is not None and (not found.companions or _has_companion(path, found)):
                return found, directory if found.name == "huggingface" else path
    candidates = list(_candidates(directory))
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise FormatError(f"{directory}: holds no file of a known tokenizer format{_hint(directory)}")
    names = ", ".join(sorted(path.name for _, path in candidates)[:5])
    kinds = ", ".join(sorted({entry.name for entry, _ in candidates}))
    raise FormatError(f"{directory}: holds several tokenizers ({names}; {kinds}); give the path of one")


def _unknown_format(file: FileProbe) -> str:
    """Say what a file is, and if nothing is known about it, which formats are."""
    explanation = probe.explain(file)
    if not explanation.endswith("known tokenizer format"):
        return explanation
    return f"{explanation} ({', '.join(entry.title for entry in FORMATS.values() if entry.can_load)})"


def _has_companion(path: Path, entry: Format) -> bool:
    return path.name in entry.companions and path.with_name(entry.companions[path.name]).is_file()


def _candidates(directory: Path) -> Iterator[tuple[Format, Path]]:
    with os.scandir(directory) as entries:
        files = sorted(Path(entry.path) for entry, _ in zip(entries, range(_MAX_FILES), strict=False))
    for path in files:
        if path.is_file() and not path.name.startswith("."):
            entry = _match(_open_probe(path))
            if entry is not None and not entry.companions:  # half a pair is not a tokenizer
                yield entry, path


def _hint(directory: Path) -> str:
    path = directory / "tokenizer.model"
    return f"; {path.name} {probe.explain(_open_probe(path))}" if path.is_file() else ""
