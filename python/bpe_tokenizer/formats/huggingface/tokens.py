"""Reads the tokens of a tokenizer.json, and decides which added tokens belong to the core's vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bpe_tokenizer import _core
from bpe_tokenizer.errors import shorten
from bpe_tokenizer.formats.capabilities import BYTE_TOKENS, NOT_IN_UTF8, PRINTABLE_BYTES
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import AddedToken

__all__ = ["MODEL_SETTINGS", "Tokens", "check_model", "read_tokens"]

# The settings of a BPE model, in files and as attributes of `tokenizers.models.BPE`.
MODEL_SETTINGS = (
    "dropout",
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "fuse_unk",
    "byte_fallback",
    "ignore_merges",
)
_MODEL_FIELDS = frozenset(("type", *MODEL_SETTINGS, "vocab", "merges"))
_TEXT_BYTES = frozenset(text for text, byte in PRINTABLE_BYTES.items() if byte not in NOT_IN_UTF8)


@dataclass(frozen=True)
class Tokens:
    """The tokens of a tokenizer.json, and the settings of its model.

    Args:
        table: The vocabulary and the merges.
        added: The added tokens, in the order of the file.
        ignore_merges: Whether a piece that is a token becomes that token without merging.
        unk: The unknown token.
        fuse_unk: Whether adjacent unknown tokens become one.
        byte_fallback: Whether byte tokens like `<0xE9>` replace the unknown token.
        in_bytes: Whether the file is byte-level: its token strings are printable bytes.
    """

    table: _core.TokenTable
    added: list[AddedToken] = field(default_factory=list)
    ignore_merges: bool = False
    unk: str | None = None
    fuse_unk: bool = False
    byte_fallback: bool = False
    in_bytes: bool = True

    def outside_vocab(self, recorded_size: int | None = None) -> set[str]:
        """Return the added tokens of the table that do not belong to the core's vocabulary.

        An added token is in `model.vocab` because it was reserved in training, or only to get its id. It
        belongs to the vocabulary if that leaves no hole in the ids: its id is at most the number of ordinary
        tokens and of added tokens with lower ids.

        Args:
            recorded_size: The recorded size of the vocabulary; used if the ids agree with it.
        """
        texts = [token.content for token in self.added]
        ids = zip(texts, self.table.ids(texts), strict=True)
        contents = {content: token_id for content, token_id in ids if token_id is not None}
        outside = self._outside(contents, recorded_size)
        if outside:
            used = self._used(set(contents))
            rest = {content: token_id for content, token_id in contents.items() if content not in used}
            outside = self._outside(rest, recorded_size)
        if self.in_bytes:
            # Of two tokens with the same bytes the core's vocabulary holds the one that merges make.
            outside |= {content for content in contents if self._has_other_spelling(content)}
        return outside

    def _outside(self, contents: Mapping[str, int], recorded_size: int | None) -> set[str]:
        size = len(self.table) - len(contents)
        if recorded_size is not None:
            outside = {content for content, token_id in contents.items() if token_id >= recorded_size}
            if size + len(contents) - len(outside) == recorded_size:
                return outside
        outside = set()
        for content, token_id in sorted(contents.items(), key=lambda item: item[1]):
            if token_id <= size:
                size += 1
            else:
                outside.add(content)
        return outside

    def _used(self, contents: set[str]) -> set[str | None]:
        """The tokens that encoding can give without matching an added token."""
        used = {*self.table.merged(contents), *BYTE_TOKENS, self.unk}
        symbols = {content for content in contents if len(content) == 1}
        used |= symbols.intersection(_TEXT_BYTES) if self.in_bytes else symbols
        if self.ignore_merges:
            used.update(token.content for token in self.added if not token.special)
        return used

    def _has_other_spelling(self, content: str) -> bool:
        written = _core.to_printable(content.encode())
        return written != content and written in self.table


def read_tokens(document: Field, table: _core.TokenTable | None, in_bytes: bool) -> Tokens:
    """Read the vocabulary, merges and added tokens of a tokenizer.json.

    Args:
        document: The file without its tables.
        table: The vocabulary, merges and added tokens; None if the file lacks one of the first two.
        in_bytes: Whether the file is byte-level.

    Raises:
        FormatError: They are broken, contradict each other, or need an unsupported kind of model.
    """
    model = document.need("model")
    if table is None:
        model.need("vocab").members()
        raise model.get("merges").error("is missing")
    tokens = Tokens(
        table,
        table.added_tokens(),
        ignore_merges=model.get("ignore_merges").flag(default=False),
        unk=None if model.get("unk_token").is_null else model.get("unk_token").text(),
        fuse_unk=model.get("fuse_unk").flag(default=False),
        byte_fallback=model.get("byte_fallback").flag(default=False),
        in_bytes=in_bytes,
    )
    return _with_unknown(model, tokens)


def check_model(model: Field) -> None:
    """Refuse a kind of model that is not supported.

    Args:
        model: The `model` of a tokenizer.json.

    Raises:
        FormatError: It is not a BPE model, or has an unsupported setting.
    """
    if "type" in model.members() and model.get("type").text() != "BPE":
        raise model.get("type").refused("is not supported; only BPE models are")
    unknown = sorted(model.members().keys() - _MODEL_FIELDS)
    if unknown:
        raise model.error(f"unknown field {shorten(unknown[0])} in a BPE model")
    dropout = model.get("dropout")
    if not (dropout.is_null or (type(dropout.value) in (int, float) and dropout.value == 0)):
        raise dropout.refused("makes encoding random, which is not supported; set it to null")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if not model.get(name).is_null and model.get(name).text():
            raise model.get(name).refused("is not supported; it must be null or empty")


def _with_unknown(model: Field, tokens: Tokens) -> Tokens:
    """Drop settings for unknown tokens that a vocabulary with every byte never needs; check the others."""
    table = tokens.table
    if tokens.in_bytes and all(byte in table for byte in PRINTABLE_BYTES):
        return replace(tokens, unk=None, byte_fallback=False)
    if tokens.in_bytes and tokens.byte_fallback and any(byte in table for byte in BYTE_TOKENS):
        raise model.get("byte_fallback").refused(
            "is not supported in a byte-level file that lacks bytes; set it to false"
        )
    if tokens.unk is not None and tokens.unk not in table:
        raise model.get("unk_token").refused(
            "is not in model.vocab, where Hugging Face tokenizers needs it; set it to null to drop text "
            "without a token"
        )
    return replace(tokens, byte_fallback=tokens.byte_fallback and not tokens.in_bytes)
