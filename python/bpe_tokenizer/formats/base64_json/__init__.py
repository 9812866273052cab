r"""Our own JSON: everything that a model is. Tokens and merges are in base64, as a token may not be text.

    {"format": "bpe_tokenizer", "version": 1,
     "pre_tokenizers": [["Split", "\\S+|\\s+", "Isolated", false]], "ignore_merges": false, ...,
     "added_tokens": [{"id": 257, "content": "<|end|>", "special": true, ...}],
     "vocab": {"0": "AA==", ..., "256": "bG8="}, "merges": [["bA==", "bw=="]]}

It is the one format that holds every model. The names and values are those of the core's `Model`: a missing
name has its default, and an unknown name is refused. `lesson.py` reads the files of
`bpe_tokenizer.reference`.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.atomic import make_directory, write_atomically
from bpe_tokenizer.errors import FormatError, TokenizerError
from bpe_tokenizer.formats.base64_json import lesson
from bpe_tokenizer.formats.base64_json.tokens import read_merges, read_vocab
from bpe_tokenizer.formats.json_file import Field, read_fields, read_json, read_step, write_json
from bpe_tokenizer.model import (
    NORMALIZERS,
    PRE_TOKENIZERS,
    AddedToken,
    Decoder,
    Metaspace,
    Model,
    PostProcessor,
    Replace,
    Split,
    Step,
)
from bpe_tokenizer.special_tokens import ROLES

__all__ = ["FORMAT", "load", "save"]

FORMAT = "bpe_tokenizer"
_VERSION = 1

_ALPHABETS = ("bytes", "characters")
# The settings of the core's Model.
_SWITCHES = ("byte_fallback", "fuse_unk", "keeps_gaps", "requires_all_bytes", "ignore_merges")
_SETTINGS = ("normalizers", "pre_tokenizers", "alphabet", "unk_id", "decoder", *_SWITCHES)
_STEPS = {"normalizers": NORMALIZERS, "pre_tokenizers": PRE_TOKENIZERS}
_FIELDS = frozenset(
    (
        "format",
        "version",
        *_SETTINGS,
        "named_tokens",
        "post_processor",
        "config",
        "added_tokens",
        "vocab",
        "merges",
    )
)


def load(path: str | Path) -> Model:
    """Load a tokenizer that was saved as base64 JSON, by this package or by `bpe_tokenizer.reference`.

    Args:
        path: The file.

    Raises:
        FormatError: The file is broken, or a reference tokenizer that cannot be represented exactly.
    """
    document = read_json(check_path("path", path))
    kind = document.need("format")
    if kind.text() == lesson.FORMAT:
        return lesson.read(document)
    if kind.text() != FORMAT:
        raise kind.refused(f"must be {FORMAT!r}")
    if document.need("version").value != _VERSION:
        raise document.get("version").refused(f"is not supported; only version {_VERSION} is")
    unknown = sorted(document.members().keys() - _FIELDS)
    if unknown:
        raise document.get(unknown[0]).error("unknown field of base64 JSON")
    vocab = read_vocab(document.need("vocab"))
    merges = read_merges(document.need("merges"))
    added = document.get("added_tokens")
    added_tokens = [] if added.is_null else [_read_added_token(item) for item in added.items()]
    settings: Any = _read_settings(document)
    try:
        core = _core.Model(vocab, merges, added_tokens=added_tokens, **settings)
    except TokenizerError as error:
        raise document.error(str(error)) from error
    named = document.get("named_tokens")
    config = document.get("config")
    return Model(
        core,
        {} if named.is_null else _read_named_tokens(named),
        _read_post_processor(document.get("post_processor"), core),
        {} if config.is_null else config.members(),
    )


def save(model: Model, path: str | Path) -> None:
    r"""Save everything that a model is.

    Args:
        model: The model to save.
        path: The file; its directory is created.

    Raises:
        FormatError: The model's config cannot be written as JSON.
        WriteError: The file cannot be written.

    >>> import tempfile
    >>> core = _core.Model({byte: bytes([byte]) for byte in range(256)}, [], split_patterns=[r"\d"])
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save(Model(core), Path(directory, "small.json"))
    ...     load(Path(directory, "small.json")).core.split_patterns
    ['\\d']
    """
    core = model.core
    added = core.added_tokens
    outside = {token.id for token in added}.difference(core.added_ids_in_vocab)
    around = model.post_processor
    document = {
        "format": FORMAT,
        "version": _VERSION,
        **{name: getattr(core, name) for name in _SETTINGS},
        "named_tokens": dict(model.named_tokens),
        "post_processor": around and _post_processor(around),
        "config": dict(model.config),
        "added_tokens": [token._asdict() for token in added],
        "vocab": {str(i): _to_base64(token) for i, token in core.vocab.items() if i not in outside},
        "merges": [(_to_base64(left), _to_base64(right)) for left, right in core.merges],
    }
    try:
        data = (write_json(document) + "\n").encode("utf-8")
        if json.loads(json.dumps(document["config"])) != document["config"]:
            raise ValueError("it changes when it is read again")
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"config: cannot be written as JSON: {error}") from error
    path = check_path("path", path)
    make_directory(path.parent)
    write_atomically({path: data})


def _post_processor(around: PostProcessor) -> dict[str, Any]:
    written: dict[str, Any] = {"prefix": list(around.prefix), "suffix": list(around.suffix)}
    if around.pair is not None:
        written["pair"] = [list(ids) for ids in around.pair]
    return written


def _to_base64(token: bytes) -> str:
    return b64encode(token).decode("ascii")


def _read_settings(document: Field) -> dict[str, Any]:
    """The keyword arguments of a model that the file has."""
    settings: dict[str, Any] = {}
    for name in _SETTINGS:
        field = document.get(name)
        if field.is_null:
            continue
        if name in _SWITCHES:
            settings[name] = field.flag()
        elif name in _STEPS:
            settings[name] = [_read_step(item, _STEPS[name]) for item in field.items()]
        elif name == "decoder":
            settings[name] = _read_decoder(field)
        else:
            settings[name] = field.id() if name == "unk_id" else field.one_of(_ALPHABETS)
    return settings


def _read_decoder(field: Field) -> Decoder:
    decoder = read_fields(field, Decoder())
    if len(decoder.space) != 1:
        raise field.item(0).refused("must be one character")
    return decoder


def _read_step(field: Field, known: Mapping[str, Step]) -> Step:
    step = read_step(field, known)
    if isinstance(step, Metaspace) and len(step.replacement) != 1:
        raise field.item(1).refused("must be one character")
    if isinstance(step, Replace | Split):
        try:
            _core.SplitPattern(step.pattern)
        except TokenizerError as error:
            raise field.error(str(error)) from error
    return step


def _read_added_token(field: Field) -> AddedToken:
    content, token_id = field.need("content").text(), field.need("id").id()
    return AddedToken(content, token_id, *(field.need(flag).flag() for flag in AddedToken._fields[2:]))


def _read_named_tokens(field: Field) -> dict[str, str]:
    for role in field.members():
        if role not in ROLES:
            raise field.get(role).error(f"unknown role; use one of {', '.join(ROLES)}")
        field.get(role).text()
    return field.members()


def _read_post_processor(field: Field, core: _core.Model) -> PostProcessor | None:
    if field.is_null:
        return None
    known = core.vocab.keys()

    def ids(field: Field) -> tuple[int, ...]:
        for item in field.items():
            if item.id() not in known:
                raise item.refused("is not the id of a token")
        return tuple(item.id() for item in field.items())

    pair = field.get("pair")
    around = PostProcessor(ids(field.need("prefix")), ids(field.need("suffix")))
    if pair.is_null:
        return around
    if len(pair.items()) not in (0, 3):
        raise pair.refused("must hold the ids before, between and after two texts")
    return replace(around, pair=tuple(map(ids, pair.items())))
