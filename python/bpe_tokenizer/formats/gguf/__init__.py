"""GGUF: the tokenizer in the metadata of a model file of llama.cpp, `tokenizer.ggml.*`.

`load` reads a file as llama.cpp does (`llama-vocab.cpp` as vendored by llama-cpp-python 0.3.36), even where
the model's other files differ. It supports byte-level BPE (`gpt2`) with every name of `tokenizer.ggml.pre`,
and SentencePiece-style BPE (`llama`, `gemma4`). A missing name means "default", which may split text
differently from the model's training. The ids are those of `llama_tokenize`, with `parse_special` for
`allowed_special="all"` and `add_special` for `add_special_tokens=True`.

Known differences:

- The characters that Unicode 16 added have categories here, but not in llama.cpp (Unicode 15.1).
- Where added tokens overlap in a text (`>>TITLE<<|endoftext|>`), we find the first, llama.cpp the longer.
- Decoding is exact here; llama.cpp drops spaces before punctuation for most of its pre-tokenizers.
- A token that strips white space (Phi-3) strips all of Unicode's here, only ASCII's in llama.cpp.
- Plain text never becomes a special token here, even if it is a whole piece and `ignore_merges` is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.atomic import make_directory, write_atomically
from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.formats.gc_pause import gc_paused
from bpe_tokenizer.formats.gguf.file import Metadata, read_metadata, write_metadata
from bpe_tokenizer.formats.gguf.pre_tokenizers import BYTE_LEVEL, CHARACTERS, PreTokenizer
from bpe_tokenizer.formats.gguf.reading import read_byte_level, read_characters, read_scored
from bpe_tokenizer.formats.gguf.tokens import added_tokens, read_tokens, token_ids
from bpe_tokenizer.formats.gguf.writing import CONFIG_KEY, ROLE_IDS, TEMPLATE, metadata_pairs
from bpe_tokenizer.model import AddedToken, Model, PostProcessor

__all__ = ["load", "save"]

_MODEL = "tokenizer.ggml.model"
_PRE = "tokenizer.ggml.pre"
# The tokenizers of llama.cpp that are not supported.
_OTHER_MODELS: Mapping[str, str] = {
    "bert": "WordPiece",
    "t5": "a Unigram model",
    "rwkv": "RWKV's greedy tokenizer",
    "plamo2": "PLaMo-2's Unigram model",
    "hybriddna": "BPE with k-mers of DNA",
    "whitespace": "BPE over words without white space",
    "test": "llama.cpp's own for tests",
    "none": "no tokenizer",
    "no_vocab": "no tokenizer",
}
# The default ids of special tokens.
_DEFAULT_IDS: Mapping[str, Mapping[str, int]] = {
    "gpt2": {"bos_token_id": 11, "eos_token_id": 11},
    "llama": {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0},
    "gemma4": {},
}


@gc_paused()
def load(path: str | Path) -> Model:
    """Load the tokenizer of a GGUF file.

    Args:
        path: The file; of a model in several files the first.

    Returns:
        The model. `Model.config` holds the chat templates and, under "gguf", what `save` needs to write the
        same file, such as the ids of further special tokens.

    Raises:
        FormatError: The file is broken, or its tokenizer cannot be represented exactly.

    >>> load("model.gguf")
    Traceback (most recent call last):
    bpe_tokenizer.errors.TokenizerFileNotFoundError: model.gguf: cannot be read: No such file or directory
    """
    metadata = read_metadata(check_path("path", path), _is_wanted)
    model = _read_model_name(metadata)
    tokens = read_tokens(metadata)
    given = token_ids(metadata, len(tokens.table))
    pre, pre_tokenizer = _pre_tokenizer(metadata, model)
    names = {name: metadata.text(f"general.{name}", "") for name in ("name", "architecture")}
    names["pre"] = metadata.text(_PRE, "")
    try:
        added = added_tokens(tokens, **names)
    except FormatError as error:
        raise metadata.error("tokenizer.ggml.tokens", str(error)) from None
    defaults = dict(_DEFAULT_IDS[model])
    if pre in ("chatglm-bpe", "glm4", "glm5"):
        del defaults["bos_token_id"]
    ids = {name: index for name, index in defaults.items() if index < len(tokens.table)} | given
    if pre_tokenizer is None:
        core = read_scored(metadata, tokens, added, ids.get("unknown_token_id"))
    elif pre in CHARACTERS:
        core = read_characters(metadata, tokens, added, pre, pre_tokenizer)
    else:
        core = read_byte_level(metadata, tokens, added, pre_tokenizer)
    adds_bos = pre_tokenizer.add_bos if pre_tokenizer is not None else True
    around = _read_post_processor(
        metadata, ids, adds_bos, always=pre in ("gemma4", "granite-embed-multi-311m")
    )
    named = _role_tokens(ids if model == "llama" else given, added)
    return Model(core, named, around, _config(metadata, model, pre, given))


def save(model: Model, path: str | Path) -> None:
    """Save a tokenizer as a GGUF file without weights, like llama.cpp's `ggml-vocab-*.gguf`.

    llama.cpp opens it with `vocab_only`, and gives the same ids.

    Args:
        model: The model to save.
        path: The file; its directory is created. A crash leaves the old file or the new one.

    Raises:
        FormatError: llama.cpp would give other ids; names the unsupported part.
        WriteError: The file cannot be written.

    >>> from bpe_tokenizer import BPETokenizer
    >>> import tempfile
    >>> tokenizer = BPETokenizer(split_pattern="llama3", normalization=None)
    >>> tokenizer = tokenizer.train("low low lower", vocab_size=258, verbose=False)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     save(tokenizer.model, f"{directory}/low.gguf")
    ...     load(f"{directory}/low.gguf").core.merges
    [(b'o', b'w'), (b'l', b'ow')]
    """
    path = check_path("path", path)
    data = write_metadata(metadata_pairs(model))
    make_directory(path.parent)
    write_atomically({path: data})


def _is_wanted(key: str) -> bool:
    return key.startswith(("tokenizer.", "split.")) or key in ("general.architecture", "general.name")


def _read_model_name(metadata: Metadata) -> str:
    shard = metadata.integer("split.no")
    if _MODEL not in metadata.values and shard:
        raise FormatError(
            f"{metadata.file}: is part {shard + 1} of a model in several files; "
            "load the first part, whose name ends with -00001-of-..."
        )
    model = metadata.text(_MODEL)
    if model in _OTHER_MODELS:
        raise metadata.error(_MODEL, f"{shorten(model)} is {_OTHER_MODELS[model]}, which is not supported")
    if model not in _DEFAULT_IDS:
        raise metadata.error(
            _MODEL, f"unknown tokenizer {shorten(model)}; supported: {', '.join(_DEFAULT_IDS)}"
        )
    return model


def _pre_tokenizer(metadata: Metadata, model: str) -> tuple[str, PreTokenizer | None]:
    """The pre-tokenizer and its name; None for a kind of model without one."""
    if model == "llama":
        return "", None
    if model == "gemma4":
        return "gemma4", CHARACTERS["gemma4"]
    pre = metadata.text(_PRE, "") or "default"
    pre_tokenizer = BYTE_LEVEL.get(pre, CHARACTERS.get(pre))
    if pre == "whitespace":
        raise metadata.error(_PRE, f"{shorten(pre)} is {_OTHER_MODELS[pre]}, which is not supported")
    if pre_tokenizer is None:
        raise metadata.error(
            _PRE, f"unknown pre-tokenizer {shorten(pre)}; llama-cpp-python 0.3.36 does not know it either"
        )
    return pre, pre_tokenizer


def _read_post_processor(
    metadata: Metadata, ids: Mapping[str, int], adds_bos: bool, *, always: bool
) -> PostProcessor:
    around: list[tuple[int, ...]] = []
    for name, default in (("bos", adds_bos), ("eos", False)):
        key = f"tokenizer.ggml.add_{name}_token"
        added = metadata.flag(key, default) or (always and name == "bos")
        if added and f"{name}_token_id" not in ids:
            raise metadata.error(key, f"is true, but {name}_token_id is missing")
        around.append((ids[f"{name}_token_id"],) if added else ())
    return PostProcessor(*around)


def _role_tokens(ids: Mapping[str, int], added: list[AddedToken]) -> dict[str, str]:
    contents = {token.id: token.content for token in added}
    return {
        role: contents[ids[name]] for role, name in ROLE_IDS.items() if name in ids and ids[name] in contents
    }


def _config(metadata: Metadata, model: str, pre: str, given: Mapping[str, int]) -> dict[str, Any]:
    kept: dict[str, Any] = {"model": model}
    if pre:
        kept["pre"] = pre
    kept |= {name: index for name, index in given.items() if name not in ROLE_IDS.values()}
    config: dict[str, Any] = {CONFIG_KEY: kept}
    templates = {
        key.removeprefix(TEMPLATE).removeprefix("."): metadata.text(key)
        for key in metadata.values
        if key == TEMPLATE or key.startswith(f"{TEMPLATE}.")
    }
    if templates.keys() == {""}:
        config["chat_template"] = templates[""]
    elif templates:
        config["chat_template"] = [
            {"name": name or "default", "template": template} for name, template in templates.items()
        ]
    return config
