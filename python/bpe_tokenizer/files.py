"""From files and to files: every format that tokenizers are kept in."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from bpe_tokenizer.atomic import unfinished
from bpe_tokenizer.compiled import Snapshot
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.formats import (
    base64_json,
    gguf,
    gpt2,
    hub,
    huggingface,
    minbpe,
    readable,
    registry,
    tekken,
    tiktoken,
)
from bpe_tokenizer.model import Model
from bpe_tokenizer.special_tokens import SpecialTokens
from bpe_tokenizer.streaming import Streaming

if TYPE_CHECKING:
    import tiktoken as tiktoken_library
    from typing_extensions import Self

__all__ = ["Files"]

_Path: TypeAlias = str | os.PathLike[str]


class Files(Streaming):
    """The part of `BPETokenizer` that reads and writes files; see there.

    Whatever is read is checked, and refused if it cannot be represented exactly. Whatever is written is
    written beside its place and then moved there, so a crash leaves the old file or the new one; a tokenizer
    that a format cannot hold is refused, and the error names what is in the way.
    """

    @classmethod
    def from_model(cls, model: Model) -> Self:
        """Return the tokenizer that runs a model."""
        tokenizer = cls.__new__(cls)
        tokenizer._snapshot = Snapshot.of(model)
        tokenizer._split_patterns = tuple(model.core.split_patterns or ())
        tokenizer._normalization = model.core.normalization
        return tokenizer

    @classmethod
    def load(
        cls,
        path: _Path,
        *,
        split_pattern: str | Sequence[str] | None = None,
        special_tokens: SpecialTokens | None = None,
    ) -> Self:
        """Load a tokenizer from a file or a directory of any format, which is recognised by what it holds.

        Args:
            path: A Hugging Face directory or `tokenizer.json`; GPT-2's `vocab.json` and `merges.txt`; a
                `.tiktoken` file, a GGUF file, a `tekken.json`, a minbpe `.model` or base64 JSON.
            split_pattern: A name or a pattern, for a `.tiktoken` file, which does not hold its own (only
                those that tiktoken publishes are known), or in the place of GPT-2's.
            special_tokens: A dict of text to id, or a list, for the same.

        Raises:
            FormatError: The file is of no known format, or broken, or holds what cannot be represented.
            OptionError: A `.tiktoken` file needs arguments that are not given, or another format does not.

        >>> import tempfile
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer(normalization=None).train("low low", 258, verbose=False)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     tokenizer.save_minbpe(f"{directory}/small.model")
        ...     BPETokenizer.load(f"{directory}/small.model")
        BPETokenizer(vocab_size=258, merges=2, special_tokens=0)
        """
        return cls.from_model(registry.load(path, split_pattern=split_pattern, special_tokens=special_tokens))

    @classmethod
    def from_pretrained(cls, directory: _Path, verbose: bool = False) -> Self:
        """Load a tokenizer from a Hugging Face directory.

        Args:
            directory: Holds `tokenizer.json`, and `tokenizer_config.json` if there is more to say; or what
                `save` has written there under another name.
            verbose: Say on stderr what was loaded.

        Raises:
            FormatError: A file is missing or broken, or holds what this package cannot represent.
        """
        tokenizer = cls.from_model(huggingface.load(_saved_in(Path(directory))))
        if verbose:
            print(f"Loaded {tokenizer} from {directory}", file=sys.stderr)
        return tokenizer

    def save(self, directory: _Path, name: str = "tokenizer", verbose: bool = False) -> None:
        """Save as a Hugging Face directory: `tokenizer.json` and `tokenizer_config.json`.

        A file is written beside its place and then moved there, so a crash leaves the old file or the new.

        Args:
            directory: Made if it is not there.
            name: First part of the files' names.
            verbose: Say on stderr what was saved.

        Raises:
            FormatError: The format cannot represent something of this tokenizer.
            NotTrainedError: There is nothing to save yet.
        """
        huggingface.save(self._trained().model, Path(directory), name=name)
        if verbose:
            print(f"Saved {self} to {directory}", file=sys.stderr)

    @classmethod
    def from_huggingface(
        cls,
        source: Any,
        cache_dir: _Path | None = None,
        token: str | bool | None = None,
        *,
        revision: str | None = None,
        local_files_only: bool = False,
        split_pattern: str | Sequence[str] | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Self:
        """Load a tokenizer from the Hugging Face hub, a local path, or another library's object.

        Args:
            source: The name of a repository, `"owner/name"`; a path; a `tokenizers.Tokenizer`; or a fast
                tokenizer of `transformers`.
            cache_dir: Where downloads are kept; None for where `huggingface_hub` keeps them.
            token: An access token, for what is private or gated; None for the one that is stored, if any.
            revision: A branch, a tag or a commit of the repository; None for its main branch.
            local_files_only: Take only what has been downloaded before.
            split_pattern: How text is split, for a repository that holds nothing but a rank file.
            special_tokens: The special tokens of one, text to id.

        Raises:
            FormatError: The files are broken, or hold what cannot be represented exactly.
            HubError: The repository or a file of it cannot be had.
            MissingDependencyError: `huggingface_hub` is not installed.
        """
        model = hub.load(
            source,
            revision=revision,
            token=token,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
            split_pattern=split_pattern,
            special_tokens=special_tokens,
        )
        return cls.from_model(model)

    @classmethod
    def from_tiktoken(
        cls,
        source: Any,
        split_pattern: str | Sequence[str] | None = None,
        special_tokens: SpecialTokens | None = None,
        *,
        cache_dir: _Path | None = None,
        local_files_only: bool = False,
    ) -> Self:
        """Load a tokenizer of tiktoken: a rank file, a published encoding, or a `tiktoken.Encoding`.

        Args:
            source: The path of a `.tiktoken` file; the name of a published encoding, like `"cl100k_base"`;
                or an `Encoding`.
            split_pattern: A name or a pattern, for a file; None for that of the published file it is.
            special_tokens: A dict of text to id, or a list, for a file; None for those of the published one.
            cache_dir: Where published files are kept; None for where tiktoken keeps them.
            local_files_only: Take a published file only from there, and never download it.

        Raises:
            FormatError: The file is broken, or does not have the published SHA-256.
            HubError: A published file cannot be had.
            OptionError: A file is not known, and the pattern or the special tokens are not given; or they are
                given for an encoding, which has its own.
        """
        if isinstance(source, os.PathLike) or (isinstance(source, str) and _names_a_file(source)):
            return cls.from_model(
                tiktoken.load(source, split_pattern=split_pattern, special_tokens=special_tokens)
            )
        if split_pattern is not None or special_tokens is not None:
            raise OptionError(
                f"{source!r} is no file, and an encoding has its own split pattern and special tokens"
            )
        if isinstance(source, str):
            model = tiktoken.load_named(source, cache_dir=cache_dir, local_files_only=local_files_only)
            return cls.from_model(model)
        return cls.from_model(tiktoken.from_encoding(source))

    def to_tiktoken(self, name: str) -> tiktoken_library.Encoding:
        """Return a `tiktoken.Encoding` that gives the same ids.

        Args:
            name: What it is to be called.

        Raises:
            FormatError: tiktoken cannot hold something of this tokenizer.
            MissingDependencyError: tiktoken is not installed.
            NotTrainedError: There is no vocabulary yet.
        """
        return tiktoken.to_encoding(self._trained().model, name)

    def save_tiktoken(self, path: _Path) -> tiktoken.LoadKwargs:
        """Save the ranks as a `.tiktoken` file.

        Args:
            path: The file; its directory is made if it is not there.

        Returns:
            What the file does not hold: `from_tiktoken(path, **load_kwargs)` gives the same ids.

        Raises:
            FormatError: The ids are no ranks, or the format cannot hold something else of this tokenizer.
            NotTrainedError: There is nothing to save yet.
        """
        return tiktoken.save(self._trained().model, path)

    @classmethod
    def from_gguf(cls, path: _Path) -> Self:
        """Load the tokenizer of a GGUF file (llama.cpp), a model's or a vocabulary's alone.

        Raises:
            FormatError: The file is broken, or its tokenizer is none that can be represented exactly.
        """
        return cls.from_model(gguf.load(Path(path)))

    def save_gguf(self, path: _Path) -> None:
        """Save as a GGUF file that holds a tokenizer and no weights.

        Args:
            path: The file.

        Raises:
            FormatError: The format cannot hold something of this tokenizer.
            NotTrainedError: There is nothing to save yet.
        """
        gguf.save(self._trained().model, Path(path))

    @classmethod
    def from_gpt2(
        cls,
        path: _Path,
        merges: _Path | None = None,
        *,
        split_pattern: str | Sequence[str] | None = None,
        special_tokens: SpecialTokens | None = None,
    ) -> Self:
        """Load GPT-2's `vocab.json` and `merges.txt`, or `encoder.json` and `vocab.bpe`.

        Args:
            path: The directory of the two, or one of them.
            merges: The file of the merges, if it does not stand beside the other under its usual name.
            split_pattern: A name or a pattern; None for what the files beside say, or else GPT-2's.
            special_tokens: A dict of text to id, or a list; None for what the files beside say, or else the
                tokens that look like it and that no merge makes (`<|endoftext|>`).

        Raises:
            FormatError: A file is missing or broken, or holds what cannot be represented exactly.
        """
        model = gpt2.load(
            Path(path),
            None if merges is None else Path(merges),
            split_pattern=split_pattern,
            special_tokens=special_tokens,
        )
        return cls.from_model(model)

    def save_gpt2(
        self, directory: _Path, names: Literal["vocab.json", "encoder.json"] = "vocab.json"
    ) -> None:
        """Save as `vocab.json` and `merges.txt`, with a `tokenizer_config.json` for what they do not say.

        Args:
            directory: Made if it is not there.
            names: `"encoder.json"` for OpenAI's names, `encoder.json` and `vocab.bpe`.

        Raises:
            FormatError: The format cannot hold something of this tokenizer.
            NotTrainedError: There is nothing to save yet.
            OptionError: `names` is something else, or the directory holds a tokenizer.json.
        """
        gpt2.save(self._trained().model, Path(directory), names)

    @classmethod
    def from_tekken(cls, path: _Path) -> Self:
        """Load Mistral's `tekken.json`.

        Raises:
            FormatError: The file is broken, or of a version that is not known.
        """
        return cls.from_model(tekken.load(Path(path)))

    @classmethod
    def from_minbpe(cls, path: _Path) -> Self:
        """Load a minbpe `.model`.

        Raises:
            FormatError: The file is broken, or holds what cannot be represented exactly.
        """
        return cls.from_model(minbpe.load(Path(path)))

    def save_minbpe(self, path: _Path) -> None:
        """Save as a minbpe `.model`, with the listing that minbpe writes beside (`.vocab`).

        Args:
            path: The file, whose name must end in `.model`.

        Raises:
            FormatError: The format cannot hold something of this tokenizer.
            NotTrainedError: There is nothing to save yet.
            OptionError: The file's name does not end in `.model`.
        """
        minbpe.save(self._trained().model, Path(path))

    @classmethod
    def from_base64_json(cls, path: _Path) -> Self:
        """Load base64 JSON, which this package or `bpe_tokenizer.reference` saved.

        Raises:
            FormatError: The file is broken, or a reference tokenizer that cannot be represented exactly.
        """
        return cls.from_model(base64_json.load(Path(path)))

    def save_base64_json(self, path: _Path) -> None:
        """Save as JSON with tokens in base64, which holds everything that a tokenizer is.

        Args:
            path: The file; its directory is made if it is not there.

        Raises:
            NotTrainedError: There is nothing to save yet.
        """
        base64_json.save(self._trained().model, Path(path))

    def save_readable(self, path: _Path) -> None:
        """Write a listing for people: each token with its id and the two tokens that it came from.

        Args:
            path: The file; its directory is made if it is not there.

        Raises:
            NotTrainedError: There is nothing to list yet.

        >>> import tempfile
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low low", 258, verbose=False)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     tokenizer.save_readable(f"{directory}/small.txt")
        ...     Path(f"{directory}/small.txt").read_text().splitlines()[-1].strip()
        "257  'low' = 'l' + 'ow'"
        """
        readable.save(self._trained().model, Path(path))


def _names_a_file(source: str) -> bool:
    """Whether a text is the path of a file, there or not, rather than the name of an encoding."""
    with contextlib.suppress(OSError, ValueError):  # a text that cannot be a path here
        return Path(source).is_file() or source.endswith(".tiktoken") or len(Path(source).parts) > 1
    return False


def _saved_in(directory: Path) -> Path:
    """Return the directory, or the file in it that was saved under another name, if there is a single one."""
    configs = directory.glob("*_config.json")
    names = [config.name.removesuffix("_config.json") for config in configs]
    files = [directory / f"{name}.json" for name in names if (directory / f"{name}.json").is_file()]
    has_usual = (directory / "tokenizer.json").exists() or unfinished(directory / "tokenizer.json")
    return files[0] if len(files) == 1 and not has_usual else directory
