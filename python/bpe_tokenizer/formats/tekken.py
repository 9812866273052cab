r"""Mistral's `tekken.json`: special tokens with the first ids, then the ranks of byte-level tokens.

    {"config": {"pattern": "...", "num_vocab_tokens": 150000, "default_vocab_size": 131072,
                "default_num_special_tokens": 1000, "version": "v3"},
     "vocab": [{"rank": 0, "token_bytes": "AA==", "token_str": "\u0000"}, ...],
     "special_tokens": [{"rank": 0, "token_str": "<unk>", "is_control": true}, ...]}

The rules are those of `mistral_common`, version 1.13 (`tokens/tokenizers/tekken.py`):

- The special tokens have the ids from 0 on. They are those of the file; versions before v11 may list none and
  then have twenty known ones. `<SPECIAL_n>` fill the ids up to `default_num_special_tokens`.
- A token's id is its rank plus that number. Ids are ranks: the lowest is merged first, and a piece that is a
  token becomes that token. Ranks 0 to 255 are the bytes.
- The vocabulary ends at `default_vocab_size`, special tokens included; the file may hold more.
- A special token is found in a text only if it is allowed, whether or not it is a control token.

The file's settings for images, audio and chats do not concern a tokenizer and are dropped.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.errors import ModelError, PatternError, shorten
from bpe_tokenizer.formats.base64_json.tokens import token_of
from bpe_tokenizer.formats.json_file import Field, read_json
from bpe_tokenizer.model import AddedToken, Model

__all__ = ["load"]

# The known versions, and those whose files need not list their special tokens.
_VERSIONS = ("v1", "v2", "v3", "v7", "v11", "v13", "v15")
_WITHOUT_SPECIAL_TOKENS = ("v1", "v2", "v3", "v7")

_KNOWN_SPECIAL_TOKENS = (
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
)
_FIELDS = frozenset(("rank", "token_bytes", "token_str"))
# Mistral's files have 1,000. The bound protects against a file that asks for billions of fillers.
_MAX_SPECIAL = 100_000
_NAMES = {"bos": "<s>", "eos": "</s>", "pad": "<pad>", "unk": "<unk>"}


def load(path: str | Path) -> Model:
    r"""Load a `tekken.json`.

    Args:
        path: The file.

    Raises:
        FormatError: The file is broken, or its version is unknown.

    >>> import json, tempfile
    >>> from base64 import b64encode
    >>> tokens = [bytes([byte]) for byte in range(256)] + [b"lo"]
    >>> vocab = [{"rank": rank, "token_bytes": b64encode(token).decode(), "token_str": None}
    ...          for rank, token in enumerate(tokens)]
    >>> config = {"pattern": r"\S+|\s+", "num_vocab_tokens": 257, "default_vocab_size": 357,
    ...           "default_num_special_tokens": 100, "version": "v3"}
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "tekken.json")
    ...     _ = path.write_text(json.dumps({"config": config, "vocab": vocab}))
    ...     model = load(path)
    >>> model.core.vocab[1], model.core.vocab[99], model.core.vocab[356]
    (b'<s>', b'<SPECIAL_99>', b'lo')
    """
    document = read_json(check_path("path", path))
    config = document.need("config")
    special = _special_tokens(document, config)
    tokens = _tokens(document.need("vocab"), _size(config, len(special)))
    # A special token whose bytes are also an ordinary token stays out of the vocabulary: of two entries with
    # the same bytes, encoding would find only the lower id.
    ordinary = frozenset(tokens)
    vocab = {
        token_id: text.encode() for token_id, text in enumerate(special) if text.encode() not in ordinary
    }
    pattern = config.need("pattern")
    vocab.update((len(special) + rank, token) for rank, token in enumerate(tokens))
    try:
        _core.SplitPattern(pattern.text())
        core = _core.Model(
            vocab,
            None,
            split_patterns=[pattern.text()],
            added_tokens=[AddedToken(text, token_id) for token_id, text in enumerate(special)],
        )
    except (ModelError, PatternError) as error:
        raise document.error(str(error)) from error
    return Model(core, {role: text for role, text in _NAMES.items() if text in special})


def _special_tokens(document: Field, config: Field) -> list[str]:
    """The special tokens in the order of their ids, from 0."""
    version = config.need("version")
    if version.text() not in _VERSIONS:
        raise version.refused(f"is not supported; {', '.join(_VERSIONS)} are")
    count = config.need("default_num_special_tokens")
    if count.id() > _MAX_SPECIAL:
        raise count.refused(f"is too large; at most {_MAX_SPECIAL:,} are supported")
    listed = document.get("special_tokens")
    if not listed.is_null:
        texts = _listed(listed)
    elif version.text() in _WITHOUT_SPECIAL_TOKENS:
        texts = list(_KNOWN_SPECIAL_TOKENS)
    else:
        raise listed.error(f"is missing; files of version {version.text()} must list their special tokens")
    if len(texts) > count.id():
        raise count.refused(f"is less than the number of special tokens, {len(texts)}")
    texts += [f"<SPECIAL_{token_id}>" for token_id in range(len(texts), count.id())]
    if len(set(texts)) < len(texts):
        content = Counter(texts).most_common(1)[0][0]
        raise listed.error(f"duplicate special token {shorten(content)}, counting the fillers <SPECIAL_n>")
    return texts


def _listed(field: Field) -> list[str]:
    texts = []
    for index, item in enumerate(field.items()):
        text = item.need("token_str").text()
        if not text:
            raise item.get("token_str").error("is empty")
        if item.need("rank").id() != index:
            raise item.get("rank").refused(f"must be {index}, the index of {shorten(text)} in the list")
        texts.append(text)
    return texts


def _size(config: Field, special: int) -> int:
    """The number of ordinary tokens in the vocabulary."""
    size = config.need("default_vocab_size")
    if size.id() < special + 256:
        raise size.refused(f"leaves no room for 256 bytes after {special} special tokens")
    return size.id() - special


def _tokens(field: Field, size: int) -> list[bytes]:
    """The ordinary tokens in the order of their ranks."""
    if len(field.values()) < size:
        raise field.error(f"holds {len(field.values())} tokens, but config.default_vocab_size needs {size}")
    tokens = []
    for index, value in enumerate(field.values()[:size]):
        if type(value) is not dict or value.keys() != _FIELDS:
            raise field.item(index).refused(f"must have the fields {', '.join(sorted(_FIELDS))}")
        if type(value["rank"]) is not int or value["rank"] != index:
            raise field.item(index).get("rank").refused(f"must be {index}, its index in the list")
        token = token_of(value["token_bytes"])
        if not token:
            raise field.item(index).get("token_bytes").refused("is not a token in base64")
        if index < 256 and token != bytes([index]):
            raise field.item(index).get("token_bytes").refused(f"must be the byte 0x{index:02x}")
        tokens.append(token)
    if len(set(tokens)) < len(tokens):
        ranks: dict[bytes, int] = {}
        for index, token in enumerate(tokens):
            if ranks.setdefault(token, index) != index:
                raise field.item(index).error(f"is the same token as {field.item(ranks[token]).path}")
    return tokens
