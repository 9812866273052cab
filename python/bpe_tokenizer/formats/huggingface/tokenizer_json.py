"""Converts the parts of a tokenizer.json that define the ids to the core's model, and back."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, ModelError, PatternError, TokenizerError, shorten
from bpe_tokenizer.formats.capabilities import BYTE_TOKENS, crosses_trailing_space
from bpe_tokenizer.formats.huggingface.added_tokens import check_byte_spellings, check_matching
from bpe_tokenizer.formats.huggingface.config import Config
from bpe_tokenizer.formats.huggingface.decoder import (
    is_decoded_as_bytes,
    read_byte_level_decoder,
    read_decoder,
    write_byte_level_decoder,
    write_decoder,
)
from bpe_tokenizer.formats.huggingface.normalizer import read_normalizer, write_normalizer
from bpe_tokenizer.formats.huggingface.pre_tokenizer import (
    published_spelling,
    read_pre_tokenizer,
    write_pre_tokenizer,
)
from bpe_tokenizer.formats.huggingface.token_strings import Written, added_token_fields, write_tokens
from bpe_tokenizer.formats.huggingface.tokens import Tokens, check_model, read_tokens
from bpe_tokenizer.formats.huggingface.tokens_beside import with_tokens_beside
from bpe_tokenizer.formats.json_file import Field, read_step
from bpe_tokenizer.model import NORMALIZERS, PRE_TOKENIZERS, AddedToken, Decoder, Step

__all__ = ["read_core", "write_core"]


def read_core(document: Field, table: _core.TokenTable | None, config: Config) -> _core.Model:
    """Read the core's model.

    Args:
        document: The tokenizer.json without its tables.
        table: The vocabulary, merges and added tokens; None if the file lacks one of the first two.
        config: The files next to it.

    Raises:
        FormatError: It cannot be represented exactly.
    """
    check_model(document.need("model"))
    normalizers, to_bytes = read_normalizer(document.get("normalizer"))
    pre_tokenizers, in_bytes = read_pre_tokenizer(document.get("pre_tokenizer"), to_bytes)
    tokens = read_tokens(document, table, in_bytes)
    tokens = replace(tokens, added=with_tokens_beside(config, tokens.added, tokens.table))
    forms = check_matching(document.get("added_tokens"), tokens.added, normalizers, to_bytes)
    if in_bytes:
        check_byte_spellings(document.get("added_tokens"), tokens.added, tokens.table, tokens.ignore_merges)
    settings: dict[str, Any] = {
        "normalizers": _recorded(
            config, "normalizers", document.get("normalizer"), normalizers, write_normalizer
        ),
        "pre_tokenizers": _recorded(
            config,
            "pre_tokenizers",
            document.get("pre_tokenizer"),
            pre_tokenizers,
            lambda steps: write_pre_tokenizer(steps, in_bytes),
            lambda steps: write_pre_tokenizer(published_spelling(steps), in_bytes),
        ),
        "added_tokens": tokens.added,
        "alphabet": "bytes" if in_bytes else "characters",
        "byte_fallback": tokens.byte_fallback,
        "unk_id": None if tokens.unk is None else tokens.table.get(tokens.unk),
        "fuse_unk": tokens.fuse_unk,
        "requires_all_bytes": False,
        "ignore_merges": tokens.ignore_merges,
        "decoder": _read_decoder(document.get("decoder"), tokens, forms),
    }
    outside_vocab = tokens.outside_vocab(_recorded_size(config))
    try:
        return _core.Model.from_table(tokens.table, outside_vocab, **settings)
    except (ModelError, PatternError) as error:
        raise document.get("model").error(str(error)) from error


def _read_decoder(field: Field, tokens: Tokens, forms: Mapping[int, str]) -> Decoder | None:
    """Read the decoder.

    Args:
        field: The decoder.
        tokens: The tokens.
        forms: The texts of the added tokens that normalisation changes, by id.
    """
    if not tokens.in_bytes:
        return read_decoder(field)
    if spelling := _find_byte_spelling(forms, tokens.table):
        raise field.error(spelling)
    return read_byte_level_decoder(field, _decoded(tokens.added, forms), forms)


def _recorded(
    config: Config,
    name: str,
    component: Field,
    steps: Sequence[Step],
    *writers: Callable[[Sequence[Step]], Any],
) -> Sequence[Step]:
    """The steps recorded in the config, if saving them gives the component of the file."""
    if config.own.is_null or config.own.get(name).is_null:
        return steps
    known = {**NORMALIZERS, **PRE_TOKENIZERS}
    recorded = [read_step(item, known) for item in config.own.get(name).items()]
    try:
        return recorded if any(write(recorded) == component.value for write in writers) else steps
    except TokenizerError:
        return steps


def _recorded_size(config: Config) -> int | None:
    if config.own.is_null or config.own.get("vocab_size").is_null:
        return None
    return config.own.get("vocab_size").id()


def _write_byte_level_decoder(core: _core.Model, tokens: Written) -> dict[str, Any]:
    if spelling := _find_byte_spelling(core.normal_forms, tokens.vocab):
        raise FormatError(f"added_tokens: {spelling}")
    return write_byte_level_decoder(_decoded(tokens.added, core.normal_forms))


def _find_byte_spelling(forms: Mapping[int, str], table: Container[str]) -> str | None:
    """Describe a normal form that the file also has as the token of other bytes."""
    for token_id, text in forms.items():
        if is_decoded_as_bytes(text) and text in table:
            return f"id {token_id} is {shorten(text)} after normalisation, which spells other bytes there"
    return None


def _decoded(added: Sequence[AddedToken], forms: Mapping[int, str]) -> list[AddedToken]:
    """The added tokens with the texts that the library decodes: their normal forms."""
    if not forms:
        return list(added)
    return [token._replace(content=forms.get(token.id, token.content)) for token in added]


def write_core(core: _core.Model) -> dict[str, Any]:
    """Return the parts of a tokenizer.json for the core's model.

    Raises:
        FormatError: The format cannot hold something of the model.
    """
    in_bytes = core.alphabet == "bytes"
    tokens = write_tokens(core)
    if core.keeps_gaps and not (
        core.requires_all_bytes if in_bytes else core.byte_fallback and tokens.vocab.keys() >= {*BYTE_TOKENS}
    ):
        raise FormatError("keeps_gaps: tokenizer.json cannot hold it; its readers merge across a gap")
    if in_bytes and core.decoder not in (None, Decoder(strip="joined")):
        raise FormatError("decoder: tokenizer.json cannot hold a decoder of characters for byte-level tokens")
    steps: Sequence[Step] = published_spelling(core.pre_tokenizers)
    if steps != core.pre_tokenizers and (not in_bytes or crosses_trailing_space(core.vocab.values())):
        steps = core.pre_tokenizers
    return {
        "added_tokens": [{"id": token.id} | added_token_fields(token) for token in tokens.added],
        "normalizer": write_normalizer(core.normalizers),
        "pre_tokenizer": write_pre_tokenizer(steps, in_bytes),
        "decoder": (
            _write_byte_level_decoder(core, tokens)
            if in_bytes and core.decoder is None
            else write_decoder(core.decoder)
        ),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": tokens.unk,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": core.fuse_unk,
            "byte_fallback": core.byte_fallback and not in_bytes,
            "ignore_merges": core.ignore_merges,
            "vocab": tokens.vocab,
            "merges": tokens.merges,
        },
    }
