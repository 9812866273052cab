"""Hugging Face: `tokenizer.json`, with `tokenizer_config.json` beside it.

The schema is that of the `tokenizers` library (its Rust types, as serde writes them); there is no other
description of it. What `transformers` makes of the second file is in its `tokenization_utils_base.py`.

`load` accepts byte-level BPE files whose ids `tokenizers` and we agree on, and refuses the rest by name.
Where the file says more than ids, we differ knowingly:

- `truncation` and `padding` are kept and given back by `save`, but take no effect, as in `transformers`:
  truncating and padding have to be asked for.
- `trim_offsets` and the template for pairs of texts are kept too; our offsets are never trimmed.
- An added token decodes to its text. The library takes a text like `é`, which consists of characters that
  byte-level files use for bytes, for those bytes; `save` writes a decoder step that keeps it from doing so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, ModelError, OptionError, PatternError, TokenizerError
from bpe_tokenizer.formats._atomic import write_atomically
from bpe_tokenizer.formats._hf_config import (
    KEPT,
    OWN,
    Config,
    added_tokens_decoder,
    config_path,
    digest,
    read_config,
    with_named_tokens,
)
from bpe_tokenizer.formats._hf_post_processor import read_post_processor, write_post_processor
from bpe_tokenizer.formats._hf_pre_tokenizer import (
    flatten,
    read_pre_tokenizer,
    write_pre_tokenizer,
)
from bpe_tokenizer.formats._hf_tokens import Tokens, added_token_fields, read_tokens, write_tokens
from bpe_tokenizer.formats._json import Field, parse_json, read_bytes, write_json
from bpe_tokenizer.formats._regex import regex_escape
from bpe_tokenizer.model import AddedToken, Model, PostProcessor
from bpe_tokenizer.special_tokens import ROLES, find_roles

__all__ = ["load", "save"]

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
_FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def load(directory: str | Path) -> Model:
    """Load a Hugging Face tokenizer.

    Args:
        directory: Holds `tokenizer.json`, and perhaps `tokenizer_config.json`, `special_tokens_map.json` and
            `chat_template.jinja`. Or the path of a `tokenizer.json` itself.

    Returns:
        The model. `Model.config` holds what is not interpreted; an empty text in `Model.named_tokens` is a
        role that no token plays, whatever the tokens' names.

    Raises:
        FormatError: A file is missing or broken, or holds what cannot be represented exactly.

    >>> from bpe_tokenizer import BPETokenizer
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     BPETokenizer().train("low low lower", vocab_size=258, verbose=False).save(directory)
    ...     load(directory).core.merges
    [(b'o', b'w'), (b'l', b'ow')]
    """
    path = _tokenizer_json(Path(directory))
    data = read_bytes(path)
    document = parse_json(path, data)
    config = read_config(path, data)
    unknown = sorted(document.members().keys() - _FIELDS)
    if unknown:
        raise document.get(unknown[0]).error("is no field of a tokenizer.json")
    version = document.get("version")
    if version.path in document.members() and version.text() != "1.0":
        raise version.refused("is not supported; only version 1.0 is")
    core = _read_core(document, config)
    named = config.named()
    strings = _token_strings(core)
    around = read_post_processor(document.get("post_processor"), strings)
    from_roles = (
        not config.own.is_null
        and config.own.get("post_processor").value == "roles"
        and around == _around_roles(_roles(core, named), core)
    )
    others = config.others() | _kept(document, around, strings)
    return Model(core, named, None if from_roles else around, others)


def save(model: Model, directory: str | Path, name: str = "tokenizer") -> list[Path]:
    """Save a tokenizer so that `tokenizers` and `transformers` read it.

    With the default name `tokenizers.Tokenizer.from_file(directory / "tokenizer.json")` and
    `transformers.AutoTokenizer.from_pretrained(directory)` open it. A crash leaves the old tokenizer or the
    new one.

    Args:
        model: What to save.
        directory: Made if it is not there.
        name: First part of the files' names: `{name}.json` and `{name}_config.json`.

    Returns:
        The files.

    Raises:
        FormatError: The format cannot hold something of the model.
        OptionError: The name is not the name of a file.
        OSError: A file cannot be written.
    """
    if not name or Path(name).name != name:
        raise OptionError(f"name is {name!r}; it must be the first part of a file's name, like 'tokenizer'")
    config = dict(model.config)
    kept = config.pop(KEPT, {})
    document = _document(model, kept)
    data = _to_bytes(document, "tokenizer.json")
    config |= _config(model, digest(data))
    path = Path(directory) / f"{name}.json"
    files = {path: data, config_path(path): _to_bytes(config, "tokenizer_config.json")}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(files)
    return list(files)


# -- reading --------------------------------------------------------------------------------------------


def _tokenizer_json(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.is_dir():
        raise FormatError(f"{path}: there is no such file or directory")
    if (path / "tokenizer.json").exists():
        return path / "tokenizer.json"
    for vocab, merges in (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")):
        if (path / vocab).exists() and (path / merges).exists():
            raise FormatError(
                f"{path}: holds no tokenizer.json, but GPT-2's {vocab} and {merges}, which are "
                "another format and do not say how text is split"
            )
    raise FormatError(f"{path}: holds no tokenizer.json")


def _read_core(document: Field, config: Config) -> _core.Model:
    normalization = _read_normalizer(document.get("normalizer"))
    pre_tokenizer = document.get("pre_tokenizer")
    patterns, add_prefix_space = read_pre_tokenizer(pre_tokenizer)
    tokens = read_tokens(document)
    added = with_named_tokens(config, tokens.added, tokens.vocab)
    _check_decoder(document.get("decoder"), added)
    size = config.own.get("vocab_size") if not config.own.is_null else None
    tokens = Tokens(tokens.vocab, tokens.merges, tokens.ignore_merges, added)
    try:
        return _core.Model.from_printable(
            tokens.inside(None if size is None or size.is_null else size.id()),
            tokens.merges,
            split_patterns=_recorded_patterns(config, pre_tokenizer, add_prefix_space) or patterns,
            normalization=normalization,
            added_tokens=added,
            ignore_merges=tokens.ignore_merges,
            add_prefix_space=add_prefix_space,
        )
    except (ModelError, PatternError) as error:
        raise document.get("model").error(str(error)) from error


def _read_normalizer(field: Field) -> str | None:
    """Nothing, one of the four normal forms, or a sequence of at most one of them."""
    forms = []
    for step in [] if field.is_null else flatten(field, "normalizers"):
        form = step.need("type")
        if form.text() not in _FORMS:
            raise form.refused(f"is not supported; {', '.join(_FORMS)} are")
        forms.append(form.text())
    if len(forms) > 1:
        raise field.error(f"has several steps ({', '.join(forms)}); only one is supported")
    return forms[0] if forms else None


def _check_decoder(field: Field, added: Sequence[AddedToken]) -> None:
    if field.is_null:
        raise field.error("must be there and be ByteLevel; without it tokens are joined with spaces")
    if field.value == _write_decoder(added):
        return
    steps = flatten(field, "decoders")
    for step in steps:
        if step.need("type").text() != "ByteLevel":
            raise step.get("type").refused("is not supported; only ByteLevel is")
    if len(steps) != 1:
        raise field.error(f"has {len(steps)} steps; it must be ByteLevel alone")


def _recorded_patterns(config: Config, pre_tokenizer: Field, add_prefix_space: bool) -> list[str] | None:
    """The split patterns as they were before they were saved, if saving them writes what stands there."""
    if config.own.is_null or config.own.get("split_patterns").is_null:
        return None
    patterns = [pattern.text() for pattern in config.own.get("split_patterns").items()]
    try:
        written = write_pre_tokenizer(patterns, add_prefix_space)
    except TokenizerError:
        return None
    return patterns if written == pre_tokenizer.value else None


def _kept(document: Field, around: PostProcessor, strings: Mapping[int, str]) -> dict[str, Any]:
    """The parts of a tokenizer.json that are only given back."""
    kept = {name: document.get(name).value for name in ("truncation", "padding", "post_processor")}
    if kept["post_processor"] == write_post_processor(around, strings.__getitem__):
        del kept["post_processor"]
    kept = {name: value for name, value in kept.items() if value is not None}
    return {KEPT: kept} if kept else {}


# -- writing --------------------------------------------------------------------------------------------


def _document(model: Model, kept: Mapping[str, Any]) -> dict[str, Any]:
    core = model.core
    tokens = write_tokens(core)
    return {
        "version": "1.0",
        "truncation": kept.get("truncation"),
        "padding": kept.get("padding"),
        "added_tokens": [{"id": token.id} | added_token_fields(token) for token in tokens.added],
        "normalizer": core.normalization and {"type": core.normalization},
        "pre_tokenizer": write_pre_tokenizer(core.split_patterns, core.add_prefix_space),
        "post_processor": _write_post_processor(model, kept.get("post_processor")),
        "decoder": _write_decoder(tokens.added),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": tokens.ignore_merges,
            "vocab": tokens.vocab,
            "merges": tokens.merges,
        },
    }


def _write_post_processor(model: Model, kept: object) -> dict[str, Any]:
    """The one that was loaded, if it still does what the model's does."""
    strings = _token_strings(model.core)
    around = model.post_processor
    if around is None:
        around = _around_roles(_roles(model.core, model.named_tokens), model.core)
    if isinstance(kept, dict):
        try:
            if read_post_processor(Field(Path("tokenizer.json"), "post_processor", kept), strings) == around:
                return kept
        except FormatError:
            pass  # its tokens are not there any more
    unknown = [token_id for token_id in (*around.prefix, *around.suffix) if token_id not in strings]
    if unknown:
        raise FormatError(f"post_processor: {unknown[0]} is the id of no token")
    return write_post_processor(around, strings.__getitem__)


def _write_decoder(added: Sequence[AddedToken]) -> dict[str, Any]:
    """`ByteLevel`, and before it a step for each added token that it would take for bytes."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    replaced = [
        {
            "type": "Replace",
            "pattern": {"Regex": rf"\A{regex_escape(token.content)}\z"},
            "content": _core.to_printable(token.content.encode()),
        }
        for token in added
        if _core.from_printable(token.content) not in (None, token.content.encode())
    ]
    return {"type": "Sequence", "decoders": [*replaced, byte_level]} if replaced else byte_level


def _config(model: Model, tokenizer_json_sha256: str) -> dict[str, Any]:
    core = model.core
    added = [AddedToken(*token) for token in core.added_tokens]
    roles = _roles(core, model.named_tokens)
    contents = {token.content for token in added}
    for role, content in roles.items():
        if content and content not in contents:
            raise FormatError(
                f"{role}_token: {content!r} is no added token; Hugging Face transformers would make it one, "
                "and find it in texts. add_special_tokens() adds one"
            )
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{f"{role}_token": content or None for role, content in roles.items()},
        "add_prefix_space": core.add_prefix_space,
        "clean_up_tokenization_spaces": False,
        "added_tokens_decoder": added_tokens_decoder(added),
        OWN: {
            "version": 1,
            "tokenizer_json_sha256": tokenizer_json_sha256,
            "split_patterns": core.split_patterns,
            "vocab_size": core.vocab_size,
            "post_processor": "roles" if model.post_processor is None else "file",
        },
    }


def _to_bytes(value: Mapping[str, Any], file: str) -> bytes:
    try:
        return (write_json(value) + "\n").encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise FormatError(f"{file}: the model's config cannot be written as JSON: {error}") from error


# -- both -----------------------------------------------------------------------------------------------


def _roles(core: _core.Model, named: Mapping[str, str]) -> dict[str, str]:
    """The token of each role, found from the tokens' names where it is not given; empty: none."""
    special = [AddedToken(*token) for token in core.added_tokens if token[2]]
    found = find_roles(special)
    roles = {role: named.get(role, found.get(role)) for role in ROLES}
    return {role: content for role, content in roles.items() if content is not None}


def _around_roles(roles: Mapping[str, str], core: _core.Model) -> PostProcessor:
    """What `Model.post_processor` None stands for: BOS before and EOS after the text, where they exist."""
    ids = {token[0]: token[1] for token in core.added_tokens}
    before, after = ids.get(roles.get("bos", "")), ids.get(roles.get("eos", ""))
    return PostProcessor(() if before is None else (before,), () if after is None else (after,))


def _token_strings(core: _core.Model) -> dict[int, str]:
    strings = {token_id: _core.to_printable(token) for token_id, token in core.vocab.items()}
    strings.update((token[1], token[0]) for token in core.added_tokens)
    return strings
