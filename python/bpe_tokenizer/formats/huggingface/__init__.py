"""Hugging Face: `tokenizer.json` and `tokenizer_config.json`.

The schema of tokenizer.json is defined by the Rust types of the `tokenizers` library, as serde writes them.
`tokenization_utils_base.py` of `transformers` defines the config.

`load` accepts BPE files, byte-level ones and those that merge characters (converted from SentencePiece), if
`tokenizers` and this package give the same ids. It refuses all others by name. Known differences:

- `truncation` and `padding` are saved again but have no effect, as in `transformers`: callers ask for them.
- `trim_offsets` has an effect on offsets that do not tile the text.
- An added token decodes to its text; a `normalized` one to its text after normalisation, as in the library.
  The library decodes a text like `é`, whose characters are printable bytes of byte-level files, to those
  bytes; `save` writes a decoder step that prevents this. A text that only normalisation makes so is refused.
- A special token that is not allowed is plain text. The library finds it with `ignore_merges` if it is a
  whole piece, even when it encodes special tokens as text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.atomic import make_directory, write_atomically, write_errors
from bpe_tokenizer.errors import FormatError, OptionError, TokenizerFileNotFoundError, shorten
from bpe_tokenizer.formats.files import read_bytes, read_errors, read_together
from bpe_tokenizer.formats.gc_pause import gc_paused
from bpe_tokenizer.formats.huggingface.config import (
    DEFAULT_CONFIG,
    OWN_KEY,
    PASSTHROUGH_KEY,
    Config,
    added_tokens_decoder,
    check_roles,
    config_path,
    digest,
    read_config,
    template_files,
)
from bpe_tokenizer.formats.huggingface.documents_layout import (
    is_documents_layout,
    load_documents_layout,
)
from bpe_tokenizer.formats.huggingface.post_processor import read_post_processor, write_post_processor
from bpe_tokenizer.formats.huggingface.token_strings import TokenStrings
from bpe_tokenizer.formats.huggingface.tokenizer_json import read_core, write_core
from bpe_tokenizer.formats.json_file import Field, parse_json, to_bytes
from bpe_tokenizer.formats.probe import GPT2_PAIRS
from bpe_tokenizer.model import AddedToken, Model, PostProcessor
from bpe_tokenizer.patterns import pattern_name
from bpe_tokenizer.special_tokens import ROLES, find_roles

__all__ = ["load", "loads", "save", "to_json"]

_FIELDS = frozenset(
    (
        "version",
        "truncation",
        "padding",
        "added_tokens",
        "normalizer",
        "pre_tokenizer",
        "post_processor",
        "decoder",
        "model",
    )
)


@gc_paused()
def load(directory: str | os.PathLike[str]) -> Model:
    """Load a Hugging Face tokenizer.

    Args:
        directory: The directory of a `tokenizer.json`, with the optional files beside it:
            `tokenizer_config.json`, `special_tokens_map.json`, `added_tokens.json`, `chat_template.jinja` and
            `additional_chat_templates/*.jinja`; or the path of a `tokenizer.json`, which is read alone.

    Returns:
        The model. `Model.config` holds the uninterpreted fields. An empty text in `Model.named_tokens` is a
        role without a token, whatever the names of tokens suggest.

    Raises:
        FormatError: A file is missing or broken, or cannot be represented exactly.

    >>> from bpe_tokenizer import BPETokenizer
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     BPETokenizer().train("low low lower", vocab_size=258, verbose=False).save(directory)
    ...     load(directory).core.merges
    [(b'o', b'w'), (b'l', b'ow')]
    """
    with read_errors(directory):
        path = check_path("directory", directory)
        return _read(path, read_bytes(path), _nothing(path)) if path.is_file() else _load(_in_directory(path))


@gc_paused()
def loads(text: str, name: str = "tokenizer.json") -> Model:
    """Load a Hugging Face tokenizer from the text of a tokenizer.json, without the files next to it.

    Args:
        text: The text.
        name: What errors call it.

    Raises:
        FormatError: It is broken, or cannot be represented exactly.

    >>> loads("{}")
    Traceback (most recent call last):
    bpe_tokenizer.errors.FormatError: tokenizer.json: model: is missing
    """
    path = Path(name)
    return _read(path, text.encode("utf-8"), _nothing(path))


def _nothing(path: Path) -> Config:
    """No files beside a tokenizer.json."""
    nothing = Field(path, "", {})
    return Config(nothing, nothing.get(OWN_KEY), matches_document=False)


def _load(path: Path) -> Model:
    data, config = read_together(
        lambda: _read_files(path), (path, config_path(path)), lambda found: found[1].matches_document
    )
    return _read(path, data, config)


def _read(path: Path, data: bytes, config: Config) -> Model:
    rest, table = _core.TokenTable.parse(data, str(path))
    document = parse_json(path, rest)
    if is_documents_layout(document):
        return load_documents_layout(parse_json(path, data), config)
    unknown = sorted(document.members().keys() - _FIELDS)
    if unknown:
        raise document.error(f"unknown field {shorten(unknown[0])} in tokenizer.json")
    version = document.get("version")
    if version.path in document.members() and version.text() != "1.0":
        raise version.refused("is not supported; supported: version 1.0")
    core = read_core(document, table, config)
    named = config.role_tokens()
    strings = TokenStrings(core)
    around = read_post_processor(document.get("post_processor"), strings)
    from_roles = (
        not config.own.is_null
        and config.own.get("post_processor").value == "roles"
        and around == PostProcessor()
    )
    others = config.uninterpreted() | _passthrough(document, around, strings)
    return Model(core, named, None if from_roles else around, others)


def save(model: Model, directory: str | Path, name: str = "tokenizer") -> list[Path]:
    """Save a tokenizer so that `tokenizers` and `transformers` read it.

    `tokenizers.Tokenizer.from_file(directory / "tokenizer.json")` and
    `transformers.AutoTokenizer.from_pretrained(directory)` open it. A crash leaves the old tokenizer or the
    new one.

    Args:
        model: The model to save.
        directory: The directory; created if necessary.
        name: A name for people, which tokenizer_config.json records as `tokenizer_name`.

    Returns:
        The files.

    Raises:
        FormatError: The format cannot hold something of the model.
        OptionError: `name` is empty.
        WriteError: A file cannot be written.
    """
    if not name:
        raise OptionError("name is empty; it names the tokenizer in tokenizer_config.json")
    config = dict(model.config)
    config.pop(PASSTHROUGH_KEY, None)
    data = to_json(model)
    config = _config(model, digest(data), name, bool(config)) | (config or dict(DEFAULT_CONFIG))
    path = check_path("directory", directory) / "tokenizer.json"
    files = {path: data, config_path(path): to_bytes(config, "tokenizer_config.json")}
    make_directory(path.parent)
    write_atomically(files)
    if config.get("chat_template") is not None:
        with write_errors(path.parent):
            for older in template_files(path):
                older.unlink(missing_ok=True)  # it would count instead of the template in the config
    return list(files)


def to_json(model: Model) -> bytes:
    """Return the tokenizer.json of a model.

    Raises:
        FormatError: The format cannot hold something of the model.
    """
    return to_bytes(_document(model, model.config.get(PASSTHROUGH_KEY, {})), "tokenizer.json")


# -- reading --------------------------------------------------------------------------------------------


def _in_directory(path: Path) -> Path:
    """Return the tokenizer.json of a directory."""
    if not path.is_dir():
        raise TokenizerFileNotFoundError(
            f"{path}: no such file or directory; BPETokenizer.load takes published names, such as gpt2, "
            "gpt-4o and hf:owner/name"
        )
    if (path / "tokenizer.json").exists():
        return path / "tokenizer.json"
    for vocab, merges in GPT2_PAIRS:
        if (path / vocab).exists() and (path / merges).exists():
            raise FormatError(
                f"{path}: holds no tokenizer.json, but GPT-2's {vocab} and {merges}; "
                "load them with BPETokenizer.load"
            )
    raise FormatError(f"{path}: holds no tokenizer.json")


def _read_files(path: Path) -> tuple[bytes, Config]:
    data = read_bytes(path)
    return data, read_config(path, data)


def _passthrough(document: Field, around: PostProcessor, strings: TokenStrings) -> dict[str, Any]:
    """The parts of a tokenizer.json that `save` writes again without interpretation."""
    kept = {name: document.get(name).value for name in ("truncation", "padding", "post_processor")}
    if kept["post_processor"] == write_post_processor(around, strings.__getitem__):
        del kept["post_processor"]
    kept = {name: value for name, value in kept.items() if value is not None}
    return {PASSTHROUGH_KEY: kept} if kept else {}


# -- writing --------------------------------------------------------------------------------------------


def _document(model: Model, kept: Mapping[str, Any]) -> dict[str, Any]:
    parts = write_core(model.core)
    return {
        "version": "1.0",
        "truncation": kept.get("truncation"),
        "padding": kept.get("padding"),
        "added_tokens": parts["added_tokens"],
        "normalizer": parts["normalizer"],
        "pre_tokenizer": parts["pre_tokenizer"],
        "post_processor": _write_post_processor(model, kept.get("post_processor")),
        "decoder": parts["decoder"],
        "model": parts["model"],
    }


def _write_post_processor(model: Model, kept: object) -> dict[str, Any] | None:
    """The loaded post-processor if it still agrees with the model, or a new one."""
    strings = TokenStrings(model.core)
    around = model.post_processor or PostProcessor()  # BOS and EOS of the roles are for us only
    if isinstance(kept, dict):
        try:
            if read_post_processor(Field(Path("tokenizer.json"), "post_processor", kept), strings) == around:
                return kept
        except FormatError:
            pass  # the model has lost one of its tokens
    unknown = [token_id for token_id in (*around.prefix, *around.suffix) if token_id not in strings]
    if unknown:
        raise FormatError(f"post_processor: {unknown[0]} is not the id of a token")
    return write_post_processor(around, strings.__getitem__)


def _config(model: Model, tokenizer_json_sha256: str, name: str, has_config: bool) -> dict[str, Any]:
    core = model.core
    added = core.added_tokens
    roles = _role_contents(added, model.named_tokens)
    check_roles(roles, added)
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{f"{role}_token": content or None for role, content in roles.items()},
        "add_prefix_space": core.add_prefix_space,
        "clean_up_tokenization_spaces": False,
        "tokenizer_name": name,
        "split_pattern_name": pattern_name(core.split_patterns),
        "num_merges": len(core.merges),
        "added_tokens_decoder": added_tokens_decoder(added),
        OWN_KEY: {
            "version": 1,
            "tokenizer_json_sha256": tokenizer_json_sha256,
            "normalizers": core.normalizers,
            "pre_tokenizers": core.pre_tokenizers,
            "vocab_size": core.vocab_size,
            "post_processor": "roles" if model.post_processor is None else "file",
            "max_length": "file" if has_config else "default",
        },
    }


# -- both -----------------------------------------------------------------------------------------------


def _role_contents(added: Sequence[AddedToken], named: Mapping[str, str]) -> dict[str, str]:
    """The token of each role: the named one, or one found by its text; empty for none."""
    found = find_roles([token for token in added if token.special])
    roles = {role: named.get(role, found.get(role)) for role in ROLES}
    return {role: content for role, content in roles.items() if content is not None}
