"""tiktoken: rank files (`.tiktoken`), the published encodings by name, and `tiktoken.Encoding` objects.

A rank file holds only tokens and ranks, and the ranks are the ids. For the files that tiktoken publishes,
this package knows the split pattern and the special tokens by the SHA-256 of the file. For any other file the
caller gives them.

The format is defined by its reader and writer, https://github.com/openai/tiktoken.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    FormatError,
    HubError,
    MissingDependencyError,
    ModelError,
    OptionError,
    PatternError,
    did_you_mean,
    shorten,
)
from bpe_tokenizer.formats.files import read_bytes
from bpe_tokenizer.formats.tiktoken.patterns import MATCH_ALL, model_settings, tiktoken_pattern
from bpe_tokenizer.formats.tiktoken.published import ENCODER_JSON, PUBLISHED, VOCAB_BPE, find_published
from bpe_tokenizer.formats.tiktoken.ranks import write_ranks
from bpe_tokenizer.formats.tiktoken.special_tokens import (
    check_no_prefixes,
    to_added_tokens,
    to_special_tokens,
)
from bpe_tokenizer.model import Model, Split
from bpe_tokenizer.patterns import resolve_split_pattern
from bpe_tokenizer.special_tokens import SpecialTokens

if TYPE_CHECKING:
    import tiktoken

    from bpe_tokenizer.formats.tiktoken.cache import Cache

__all__ = [
    "LoadKwargs",
    "TiktokenEncoding",
    "cached_ranks",
    "from_encoding",
    "load",
    "load_any",
    "load_named",
    "named_model",
    "published_ranks",
    "save",
    "to_encoding",
]


class TiktokenEncoding(Protocol):
    """The properties that identify a `tiktoken.Encoding`, or one of `bpe_tokenizer.compat.tiktoken`."""

    name: str

    @property
    def special_tokens_set(self) -> set[str]:
        """The texts of its special tokens."""


class LoadKwargs(TypedDict, total=False):
    """The arguments of `load` that a rank file does not hold.

    Args:
        split_pattern: The split patterns.
        special_tokens: The special tokens and their ids.
    """

    split_pattern: Sequence[str]
    special_tokens: dict[str, int]


def load(
    path: str | os.PathLike[str],
    *,
    split_pattern: str | Sequence[str] | None = None,
    special_tokens: SpecialTokens | None = None,
) -> Model:
    r"""Load a rank file.

    Args:
        path: The file. Published files are recognised by their content. Where encodings share a file, the
            file's name decides (`p50k_edit.tiktoken`, `o200k_harmony.tiktoken`); any other name means
            `p50k_base` and `o200k_base`.
        split_pattern: A name of `NAMED_PATTERNS`, a pattern, or several patterns; None for the pattern of the
            published encoding.
        special_tokens: A dict of text to id, or a list, whose tokens get the ids after the largest rank;
            `{}` for none; None for those of the published encoding.

    Raises:
        FormatError: The file cannot be read or is broken, or a special token contradicts it.
        OptionError: The file is not a published one, and the split pattern or special tokens are missing.
        PatternError: The split pattern is invalid.

    >>> import base64, tempfile
    >>> lines = [base64.b64encode(bytes([byte])).decode() + f" {byte}\n" for byte in range(256)]
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "my.tiktoken"
    ...     _ = path.write_text("".join(lines) + "aGk= 256\n")
    ...     load(path, split_pattern="gpt2", special_tokens={"<|end|>": 300}).core.merges
    [(b'h', b'i')]
    """
    file = check_path("path", path)
    data = read_bytes(file)
    digest = hashlib.sha256(data).hexdigest()
    known = find_published(digest, file.stem)
    if split_pattern is None:
        split_pattern = known and (known.split_pattern,)
    if special_tokens is None:
        special_tokens = known and known.special_tokens
    if split_pattern is None or special_tokens is None:
        missing = "split pattern" if split_pattern is None else "special tokens"
        argument = "split_pattern=" if split_pattern is None else "special_tokens= ({} for none)"
        why = "the content is not a published one" if known is None else "models name them differently"
        raise OptionError(
            f"{file}: a rank file does not hold the {missing}, and {why} (SHA-256 {digest}); pass {argument}"
        )
    ranks = _core.RankTable.parse(data, str(file))
    settings = {"split_patterns": resolve_split_pattern(split_pattern)}
    return _model(ranks, settings, special_tokens, str(file))


def load_any(
    source: str | os.PathLike[str] | TiktokenEncoding,
    split_pattern: str | Sequence[str] | None = None,
    special_tokens: SpecialTokens | None = None,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    local_files_only: bool = False,
) -> Model:
    """Load a rank file, a published encoding by its name, or an `Encoding`.

    Args:
        source: The path of a file, the name of an encoding, or an `Encoding`.
        split_pattern: As in `load`, for a file.
        special_tokens: As in `load`, for a file.
        cache_dir: As in `load_named`, for a name.
        local_files_only: As in `load_named`, for a name.

    Raises:
        OptionError: A pattern or special tokens are given for an encoding. Other errors are those of `load`
            and `load_named`.
    """
    if isinstance(source, os.PathLike) or (isinstance(source, str) and _is_path(source)):
        return load(source, split_pattern=split_pattern, special_tokens=special_tokens)
    if split_pattern is not None or special_tokens is not None:
        raise OptionError(
            f"{shorten(source)} is not a file, and an encoding has its own split pattern and special tokens"
        )
    if isinstance(source, str):
        return load_named(source, cache_dir=cache_dir, local_files_only=local_files_only)
    return from_encoding(source)  # type: ignore[arg-type]  # it refuses everything else


def _is_path(source: str) -> bool:
    """Whether a text is the path of a file that may exist, and not the name of an encoding."""
    with contextlib.suppress(OSError):  # a text that cannot be a path on this system
        return Path(source).is_file() or source.endswith(".tiktoken") or len(Path(source).parts) > 1
    return False


def load_named(
    name: str, *, cache_dir: str | os.PathLike[str] | None = None, local_files_only: bool = False
) -> Model:
    """Load an encoding that tiktoken publishes.

    The cache may hold its rank file as tiktoken stores it (under the SHA-1 of its URL) or as `NAME.tiktoken`.
    If not, the file is downloaded into the cache, as tiktoken does. It must have the published SHA-256.

    Args:
        name: `"gpt2"`, `"r50k_base"`, `"p50k_base"`, `"p50k_edit"`, `"cl100k_base"`, `"o200k_base"` or
            `"o200k_harmony"`.
        cache_dir: The cache directory; empty for no cache; None for tiktoken's: `TIKTOKEN_CACHE_DIR`,
            `DATA_GYM_CACHE_DIR`, or `data-gym-cache` in the directory of temporary files.
        local_files_only: Use the cache only, without the network.

    Raises:
        FormatError: The downloaded file does not have the published SHA-256.
        HubError: The file cannot be downloaded, or `local_files_only` is set and the cache does not hold it.
        OptionError: There is no such encoding.
        WriteError: The file cannot be written into `cache_dir`.
    """
    return named_model(name, published_ranks(name, cache_dir=cache_dir, local_files_only=local_files_only))


def named_model(name: str, ranks: _core.RankTable) -> Model:
    """Return the model of a published encoding with these ranks."""
    encoding = PUBLISHED[name]
    settings = {"split_patterns": [encoding.split_pattern]}
    return _model(ranks, settings, encoding.special_tokens or {}, name)


def published_ranks(
    name: str, *, cache_dir: str | os.PathLike[str] | None = None, local_files_only: bool = False
) -> _core.RankTable:
    """Return the tokens of a published encoding and their ranks; arguments as for `load_named`."""
    from bpe_tokenizer.formats.tiktoken.cache import Cache

    if not isinstance(name, str):
        raise ArgumentTypeError(f"name must be a str, not {type(name).__name__}")
    if name not in PUBLISHED:
        raise OptionError(
            f"unknown encoding {shorten(name)}{did_you_mean(name, PUBLISHED)} Choose one of "
            f"{', '.join(PUBLISHED)}, or give the path of a rank file"
        )
    cache = Cache.at(cache_dir)
    ranks = cached_ranks(name, cache)
    if ranks is not None:
        return ranks
    url, sha256 = PUBLISHED[name].ranks
    if local_files_only:
        raise HubError(
            f"{name}: {cache.path(url) or 'the cache, which is disabled,'} does not hold {url} with its "
            "published SHA-256, and local_files_only is True; load it once with the network, or copy the "
            "file there"
        )
    return _core.RankTable.parse(cache.fetch(url, sha256), name)


def cached_ranks(name: str, cache: Cache) -> _core.RankTable | None:
    """Return the tokens of a published encoding and their ranks; None if its file is not on this machine."""
    from bpe_tokenizer.formats.tiktoken.cache import has_sha256
    from bpe_tokenizer.formats.tiktoken.carried import rank_file

    url, sha256 = PUBLISHED[name].ranks
    data = cache.read(url, sha256)
    if data is None and cache.directory is not None:
        data = _file_by_name(cache.directory, url.rpartition("/")[2], sha256)
    if data is None and name == "gpt2":
        vocab, ids = cache.read(*VOCAB_BPE), cache.read(*ENCODER_JSON)
        if vocab is not None and ids is not None:
            from bpe_tokenizer.formats.tiktoken.data_gym import ranks_from_data_gym

            return _rank_table(ranks_from_data_gym(vocab, ids), name)
    if data is None:
        data = rank_file(sha256)
        data = data if data is not None and has_sha256(data, sha256) else None
    return None if data is None else _core.RankTable.parse(data, name)


def _file_by_name(directory: Path, name: str, sha256: str) -> bytes | None:
    """The file under its own name, if it has the published SHA-256."""
    from bpe_tokenizer.formats.tiktoken.cache import has_sha256

    try:
        data = (directory / name).read_bytes()
    except OSError:
        return None
    return data if has_sha256(data, sha256) else None


def save(model: Model, path: str | os.PathLike[str]) -> LoadKwargs:
    """Save the ranks of a model whose ids are ranks.

    A rank file is read as merges in the order of the ids, so a model is refused whose the merges differ
    (`merges.ranks_from_model` says exactly which). That never happens to one that this package trained
    without normalisation, or read from a rank file. The part that a special token plays, and what is put
    around a text, are not kept.

    Args:
        model: The model to save.
        path: The file; its directory is created.

    Returns:
        The arguments that the file does not hold: `load(path, **load_kwargs)` gives the same ids.

    Raises:
        FormatError: The format cannot hold something of the model.
        WriteError: The file cannot be written.

    >>> from bpe_tokenizer import BPETokenizer
    >>> import tempfile
    >>> tokenizer = BPETokenizer("gpt2", normalization=None)
    >>> model = tokenizer.train("low low lower", 258, special_tokens=["<|end|>"], verbose=False).model
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     load_kwargs = save(model, Path(directory) / "my.tiktoken")
    ...     load(Path(directory) / "my.tiktoken", **load_kwargs).core.merges == model.core.merges
    True
    >>> load_kwargs["special_tokens"]
    {'<|end|>': 256}
    """
    from bpe_tokenizer.atomic import make_directory, write_atomically
    from bpe_tokenizer.formats.capabilities import require_byte_level
    from bpe_tokenizer.formats.tiktoken.merges import ranks_from_model

    core = require_byte_level(model, ".tiktoken")
    special = to_special_tokens(core, ".tiktoken")
    data = write_ranks(ranks_from_model(core, ".tiktoken"))
    file = check_path("path", path)
    make_directory(file.parent)
    write_atomically({file: data})
    return {"split_pattern": core.split_patterns or [MATCH_ALL], "special_tokens": special}


def from_encoding(encoding: tiktoken.Encoding) -> Model:
    r"""Return the model of a `tiktoken.Encoding`.

    Args:
        encoding: An object of tiktoken's class, or of `bpe_tokenizer.compat.tiktoken`'s.

    Returns:
        The model, which gives the same ids. A custom pattern may leave characters unmatched; the model drops
        them, as tiktoken does.

    Raises:
        ArgumentTypeError: The object is not an `Encoding`.
        FormatError: A model cannot hold it: a byte is not a token, or two tokens share an id.

    >>> from bpe_tokenizer.compat.tiktoken import Encoding
    >>> ranks = {bytes([byte]): byte for byte in range(256)} | {b"hi": 256}
    >>> encoding = Encoding("mine", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={})
    >>> from_encoding(encoding).core.merges
    [(b'h', b'i')]
    """
    try:
        ranks, pat_str = encoding._mergeable_ranks, encoding._pat_str
        special, name = dict(encoding._special_tokens), f"the encoding {shorten(encoding.name)}"
    except (AttributeError, TypeError) as error:
        raise ArgumentTypeError(
            f"expected a tiktoken.Encoding, not {type(encoding).__name__}; from_tiktoken() also takes the "
            "name of a published encoding or the path of a rank file"
        ) from error
    return _model(_rank_table(ranks, name), model_settings(pat_str), special, name)


def to_encoding(model: Model, name: str) -> tiktoken.Encoding:
    """Return a `tiktoken.Encoding` that gives the same ids as a model.

    Args:
        model: The model.
        name: The name of the encoding.

    Returns:
        The encoding.

    Raises:
        FormatError: tiktoken cannot hold something of the model: what `save` refuses, several split patterns,
            one that may leave text unmatched, or a special token that begins with another.
        MissingDependencyError: tiktoken is not installed.
    """
    try:
        import tiktoken
    except ImportError as error:
        raise MissingDependencyError("tiktoken is not installed: pip install tiktoken") from error
    from bpe_tokenizer.formats.capabilities import require_byte_level
    from bpe_tokenizer.formats.tiktoken.merges import ranks_from_model

    core = model.core if _drops_unmatched(model.core) else require_byte_level(model, "tiktoken")
    special = to_special_tokens(core, "tiktoken")
    check_no_prefixes(special)
    ranks, pat_str = ranks_from_model(core, "tiktoken"), tiktoken_pattern(core, "tiktoken")
    try:
        return tiktoken.Encoding(name, pat_str=pat_str, mergeable_ranks=ranks, special_tokens=special)
    except ValueError as error:
        raise FormatError(f"split_patterns: tiktoken cannot run {shorten(pat_str)}: {error}") from error


def _rank_table(ranks: Mapping[bytes, int], name: str) -> _core.RankTable:
    return _core.RankTable.parse(write_ranks(ranks), name)


def _model(
    ranks: _core.RankTable, settings: Mapping[str, Any], special_tokens: SpecialTokens, source: str
) -> Model:
    """Build a model from ranks; `source` is the file or encoding, for messages."""
    added = to_added_tokens(ranks, special_tokens)
    # Special tokens that fill holes between the ranks belong to the vocabulary, as in a trained model.
    fillers: dict[int, bytes] = {}
    for token in added:
        content = token.content.encode()
        in_hole = token.id <= len(ranks) + len(fillers) and token.id not in fillers
        if in_hole and not ranks.has_rank(token.id) and content not in ranks:
            fillers[token.id] = content
    try:
        core = _core.Model.from_ranks(ranks, fillers, added_tokens=added, **settings)
    except (ModelError, PatternError) as error:
        raise FormatError(f"{source}: {error}") from error
    return Model(core)


def _drops_unmatched(core: _core.Model) -> bool:
    """Whether a model is one that `from_encoding` makes from a custom pattern."""
    step, others = next(iter(core.pre_tokenizers), None), (core.normalizers, core.decoder)
    return (
        isinstance(step, Split)
        and core.pre_tokenizers == [Split(pattern=step.pattern, behavior="Removed", invert=True)]
        and core.alphabet == "bytes"
        and core.requires_all_bytes
        and not any(others)
    )
