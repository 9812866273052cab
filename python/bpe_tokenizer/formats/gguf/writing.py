"""Writes a model as GGUF metadata that gives the same ids in llama.cpp."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.formats.capabilities import BYTE_TOKENS, drop_normalization, unmergeable_token
from bpe_tokenizer.formats.gguf.file import ValueType
from bpe_tokenizer.formats.gguf.patterns import matching_names
from bpe_tokenizer.formats.gguf.pre_tokenizers import BYTE_LEVEL, PreTokenizer
from bpe_tokenizer.formats.gguf.reading import MERGES, SCORES, lacks_bytes
from bpe_tokenizer.formats.gguf.tokens import (
    TOKENS,
    TYPES,
    Tokens,
    TokenType,
    added_tokens,
    filler_text,
    final_types,
)
from bpe_tokenizer.formats.gguf.writing_characters import Written, write_characters
from bpe_tokenizer.model import Model, PostProcessor
from bpe_tokenizer.special_tokens import ROLES, find_roles

__all__ = ["CONFIG_KEY", "ROLE_IDS", "TEMPLATE", "metadata_pairs"]

# The key of `Model.config` for what only a GGUF file holds.
CONFIG_KEY = "gguf"
TEMPLATE = "tokenizer.chat_template"
ROLE_IDS = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "pad": "padding_token_id",
    "unk": "unknown_token_id",
}
# Names of models for which llama.cpp lets tokens strip white space; "" is a model without stripping.
_MODEL_NAMES = ("", "phi-3", "modern-bert")
# llama.cpp needs a token for every id; this bounds the fillers.
_MAX_HOLES = 1 << 20

Pairs = list[tuple[str, ValueType, Any]]


def metadata_pairs(model: Model) -> Pairs:
    """Return the metadata of a GGUF file that holds only a tokenizer.

    Raises:
        FormatError: llama.cpp would give other ids; names the unsupported part.
    """
    core = model.core
    kept = model.config.get(CONFIG_KEY)
    kept = kept if isinstance(kept, Mapping) else {}
    texts, types = _tokens(core)
    tokens = Tokens(_table(texts), types)
    ids, adds = _ids(model, kept, len(texts))
    if core.alphabet == "bytes":
        written = _write_byte_level(core, kept.get("pre"))
    else:
        written = write_characters(core, texts, adds["bos"])
    name = _check_added(core, tokens, ids, written.pre or "")
    pairs: Pairs = [("general.architecture", ValueType.STRING, "llama")]
    if name:
        pairs.append(("general.name", ValueType.STRING, name))
    pairs.append(("tokenizer.ggml.model", ValueType.STRING, written.model))
    if written.pre:
        pairs.append(("tokenizer.ggml.pre", ValueType.STRING, written.pre))
    pairs += [(TOKENS, ValueType.STRING, texts), (TYPES, ValueType.INT32, [int(kind) for kind in types])]
    if written.scores is not None:
        pairs.append((SCORES, ValueType.FLOAT32, written.scores))
    if written.merges is not None:
        pairs.append((MERGES, ValueType.STRING, written.merges))
    pairs += [(f"tokenizer.ggml.{key}", ValueType.UINT32, value) for key, value in ids.items()]
    if written.add_space_prefix is not None:
        pairs.append(("tokenizer.ggml.add_space_prefix", ValueType.BOOL, written.add_space_prefix))
    pairs += [(f"tokenizer.ggml.add_{role}_token", ValueType.BOOL, value) for role, value in adds.items()]
    return pairs + _templates(model.config.get("chat_template"))


# -- tokens ---------------------------------------------------------------------------------------------


def _tokens(core: _core.Model) -> tuple[list[str], list[TokenType]]:
    """The text and type of every id up to the largest."""
    vocab = core.vocab
    if not vocab:
        raise FormatError("vocab: the model has no tokens, and llama.cpp cannot open such a file")
    count = max(vocab) + 1
    if count - len(vocab) > _MAX_HOLES:
        raise FormatError(
            f"ids: llama.cpp needs a token for each id up to the largest, {count - 1}; "
            f"this model has {len(vocab)} tokens"
        )
    texts = list(map(filler_text, range(count)))
    types = [TokenType.UNUSED] * count
    for index, data in vocab.items():
        texts[index] = _core.to_printable(data) if core.alphabet == "bytes" else data.decode()
        types[index] = TokenType.NORMAL
        if core.byte_fallback and texts[index] in BYTE_TOKENS:
            types[index] = TokenType.BYTE
    for token in core.added_tokens:
        texts[token.id] = token.content
        types[token.id] = TokenType.CONTROL if token.special else TokenType.USER_DEFINED
    return texts, types


def _table(texts: Sequence[str]) -> _core.TokenTable:
    zero = next((text for text in texts if "\0" in text), None)
    if zero is not None:
        raise FormatError(f"vocab: the token {shorten(zero)} has a zero byte, where llama.cpp ends its text")
    ids: dict[str, int] = {}
    for index, text in enumerate(texts):
        if ids.setdefault(text, index) != index:
            raise FormatError(
                f"vocab: the ids {ids[text]} and {index} are both written {shorten(text)}, and llama.cpp "
                "refuses duplicate texts"
            )
    return _core.TokenTable.from_strings(_core.Strings([text.encode() for text in texts]), "vocab")


def _check_added(core: _core.Model, tokens: Tokens, ids: Mapping[str, int], pre: str) -> str:
    """Return a model name for which llama.cpp finds the same added tokens."""
    wanted = core.added_tokens
    for token in wanted:
        if token.single_word:
            raise FormatError(f"single_word: llama.cpp finds {shorten(token.content)} inside words too")
        if token.normalized and core.normalizers:
            raise FormatError(
                f"normalized: llama.cpp does not find {shorten(token.content)} in normalised text"
            )
    wanted = [token._replace(normalized=False) for token in wanted]
    tokens = dataclasses.replace(tokens, types=final_types(tokens.table, tokens.types, ids))
    for name in _MODEL_NAMES:
        if not name or any(token.lstrip or token.rstrip for token in wanted):
            try:
                found = added_tokens(tokens, name=name, pre=pre)
            except FormatError:
                if not name:
                    raise
                continue
            if found == wanted:
                return name
    expected = {token.id: token for token in wanted}
    for token in added_tokens(tokens):
        if token.id not in expected:
            raise FormatError(
                f"vocab: llama.cpp takes {shorten(token.content)} for an added token because of its text; "
                f"add_special_tokens({{{token.content!r}: {token.id}}}) makes it one here too"
            )
        if token.special != expected[token.id].special:
            raise FormatError(
                f"special: llama.cpp {'takes' if token.special else 'does not take'} "
                f"{shorten(token.content)} for a control "
                "token because of its text"
            )
    raise FormatError("lstrip, rstrip: llama.cpp has no model whose added tokens strip white space like this")


# -- ids ------------------------------------------------------------------------------------------------


def _ids(model: Model, kept: Mapping[str, Any], count: int) -> tuple[dict[str, int], dict[str, bool]]:
    """The ids that a file names, and whether BOS and EOS are added to a text."""
    roles = _role_ids(model)
    around = model.post_processor
    if around is None:
        bos, eos = ((roles[role],) if role in roles else () for role in ("bos", "eos"))
        around = PostProcessor(bos, eos)
    for role, added in (("bos", around.prefix), ("eos", around.suffix)):
        if len(added) > 1:
            raise FormatError(
                f"post_processor: llama.cpp adds at most one token on each side of a text, not {added}"
            )
        if added and role in model.named_tokens and roles.get(role) != added[0]:
            raise FormatError(
                f"post_processor: llama.cpp adds only the {role.upper()} token, not the id {added[0]}"
            )
        if added:
            roles[role] = added[0]
    ids = {ROLE_IDS[role]: index for role, index in roles.items()}
    for key, value in kept.items():
        if key.endswith("_token_id") and type(value) is int and 0 <= value < count:
            ids.setdefault(key, value)
    return ids, {"bos": bool(around.prefix), "eos": bool(around.suffix)}


def _role_ids(model: Model) -> dict[str, int]:
    added = model.core.added_tokens
    by_name = find_roles(token for token in added if token.special)
    contents: dict[str, str] = {str(role): content for role, content in by_name.items()}
    contents.update(model.named_tokens)
    by_content = {token.content: token.id for token in added}
    by_bytes = {data: index for index, data in reversed(model.core.vocab.items())}
    roles: dict[str, int] = {}
    for role in ROLES:
        content = contents.get(role)
        if content:
            index = by_content.get(content, by_bytes.get(content.encode()))
            if index is not None:
                roles[role] = index
    return roles


def _templates(template: object) -> Pairs:
    if template is None:
        return []
    pairs: dict[str, str] = {}
    entries = [{"name": "default", "template": template}] if isinstance(template, str) else template
    for entry in entries if isinstance(entries, list) else [None]:
        name, text = (entry.get("name"), entry.get("template")) if isinstance(entry, dict) else (None, None)
        key = TEMPLATE if name == "default" else f"{TEMPLATE}.{name}"
        if not isinstance(name, str) or not isinstance(text, str) or key in pairs:
            raise FormatError(
                "chat_template: must be a string, or a list of objects with a name and a template"
            )
        pairs[key] = text
    return [(key, ValueType.STRING, text) for key, text in pairs.items()]


# -- bytes ----------------------------------------------------------------------------------------------


def _write_byte_level(core: _core.Model, kept_pre: object) -> Written:
    if core.decoder is not None:
        raise FormatError("decoder: llama.cpp decodes byte-level tokens to their bytes only")
    if core.normalizers:
        steps = ", ".join(step.type for step in core.normalizers)
        raise FormatError(
            f"normalization: llama.cpp does not normalise text, so a GGUF file cannot hold {steps}"
            + (f". {drop_normalization(core.normalization)}" if core.normalization else "")
        )
    if core.add_prefix_space:
        raise FormatError("add_prefix_space: llama.cpp does not support it for byte-level models")
    if core.split_patterns is None:
        steps = ", ".join(step.type for step in core.pre_tokenizers)
        raise FormatError(f"pre_tokenizers: llama.cpp splits with patterns only, not with {steps}")
    vocab = core.vocab
    if (core.unk_id is not None or not core.keeps_gaps) and lacks_bytes(vocab.values()):
        raise FormatError("unk_id: llama.cpp drops a byte without a token, after merging")
    _check_added_in_vocab(core, vocab)
    names = matching_names(core.split_patterns, set(vocab.values()))
    pre = _choose_pre(core, names, kept_pre)
    # Of duplicate merges this package uses the last, llama.cpp the first.
    merges = dict.fromkeys(reversed(core.printable_merges()))
    return Written("gpt2", pre, [f"{left} {right}" for left, right in reversed(merges)])


def _check_added_in_vocab(core: _core.Model, vocab: Mapping[int, bytes]) -> None:
    """Check that merging makes no added token whose text differs from its spelling as bytes."""
    inside = set(core.added_ids_in_vocab)
    unlike = {vocab[index] for index in inside if _core.to_printable(vocab[index]) != vocab[index].decode()}
    if not unlike:
        return
    for left, right in core.merges:
        for part in (left, right, left + right):
            if part in unlike:
                raise FormatError(
                    f"added_tokens: {shorten(part.decode())} is an added token that merging makes too; "
                    "llama.cpp cannot do both"
                )
    for part in unlike:
        if len(part) == 1:
            raise FormatError(f"added_tokens: {shorten(part.decode())} is also the token of a byte")


def _choose_pre(core: _core.Model, names: Mapping[str, PreTokenizer], kept_pre: object) -> str:
    """Choose a name with the model's `ignore_merges`, or one for which it makes no difference."""
    if isinstance(kept_pre, str) and BYTE_LEVEL.get(kept_pre) in names.values():
        names = {kept_pre: BYTE_LEVEL[kept_pre], **names}
    alike = [name for name, pre in names.items() if pre.ignore_merges == core.ignore_merges]
    others = [name for name in names if name not in alike]
    special = _special_as_piece(core)
    for name in alike:
        if not (names[name].ignore_merges and special):
            return name
    unmade = unmergeable_token(core) if others else None
    for name in others:
        if unmade is None and not (names[name].ignore_merges and special):
            return name
    if unmade is None:
        raise FormatError(
            f"added_tokens: llama.cpp would take the plain text {shorten(special)} for the token"
        )
    rule = "always merges" if core.ignore_merges else "does not merge a piece that is a token"
    raise FormatError(
        f"ignore_merges: with these split patterns llama.cpp {rule}; that changes the token "
        f"{shorten(unmade[1])}"
    )


def _special_as_piece(core: _core.Model) -> str | None:
    """A special token whose text is a single piece of plain text."""
    plain = _core.Encoder(core.with_added_tokens([]))
    for token in core.added_tokens:
        if token.special and len(plain.pieces(token.content)) == 1:
            return token.content
    return None
