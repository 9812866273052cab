"""The layout of a tokenizer.json that the project's source documents print.

Such a file has the split pattern as text and no pre-tokeniser:

    {"version": "1.0", "type": "BPE", "model": {"type": "BPE", "vocab": {...}, "merges": ["a b", ...]},
     "split_pattern": "...", "special_tokens": {"<|eos|>": {"id": 300, "content": "<|eos|>"}}}

The documents' code normalises a text to NFC, splits it with Python's `regex` module, and merges. It drops
characters that the pattern leaves unmatched; this package keeps them as pieces.
"""

from __future__ import annotations

from bpe_tokenizer import _core
from bpe_tokenizer.errors import ModelError, PatternError, shorten
from bpe_tokenizer.formats.huggingface.config import Config
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.formats.python_regex import python_objection
from bpe_tokenizer.model import AddedToken, Model

__all__ = ["is_documents_layout", "load_documents_layout"]


def is_documents_layout(document: Field) -> bool:
    """Return whether a tokenizer.json has the documents' layout."""
    members = document.members()
    return "split_pattern" in members and "pre_tokenizer" not in members and members.get("type") == "BPE"


def load_documents_layout(document: Field, config: Config) -> Model:
    """Read a tokenizer.json of the documents' layout.

    Args:
        document: The whole file.
        config: The files next to it.

    Raises:
        FormatError: A field is missing or wrong, the pattern means something else to the core, or a special
            token has the id of a learned token.
    """
    pattern = document.need("split_pattern")
    if objection := python_objection(pattern.text()):
        raise pattern.error(objection)
    special = {text: _special_id(document.get("special_tokens"), text) for text in _special_texts(document)}
    vocab_field = document.need("model").need("vocab")
    vocab = {token: vocab_field.get(token).id() for token in vocab_field.members()}
    learned = {token_id: token for token, token_id in vocab.items() if token not in special}
    for text, token_id in special.items():
        field = document.get("special_tokens").get(text).get("id")
        if token_id in learned:
            raise field.refused(
                f"is also the id of the learned token {shorten(learned[token_id])}, which it would replace; "
                "train again with ids that are not in use"
            )
        if vocab.get(text, token_id) != token_id:
            raise field.refused(f"contradicts model.vocab, where it is {vocab[text]}")
    merges_field = document.get("model").need("merges")
    merges = [_merge(item) for item in merges_field.items()]
    added = [AddedToken(text, token_id) for text, token_id in special.items()]
    try:
        core = _core.Model.from_printable(
            vocab,
            merges,
            split_patterns=[pattern.text()],
            normalization="NFC",
            added_tokens=sorted(added, key=lambda token: token.id),
        )
    except (ModelError, PatternError) as error:
        raise document.get("model").error(str(error)) from error
    return Model(core, config.role_tokens(), None, config.uninterpreted())


def _special_texts(document: Field) -> list[str]:
    field = document.get("special_tokens")
    return [] if field.is_null else list(field.members())


def _special_id(field: Field, text: str) -> int:
    entry = field.get(text)
    content = entry.get("content")
    if not content.is_null and content.text() != text:
        raise content.refused("is not the key of its entry")
    return entry.need("id").id()


def _merge(item: Field) -> tuple[str, str]:
    parts = item.text().split(" ")
    if len(parts) != 2:
        raise item.refused("must be two tokens with a space between them")
    return parts[0], parts[1]
