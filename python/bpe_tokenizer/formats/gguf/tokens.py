"""The tokens of a GGUF file as llama.cpp sees them: texts, types, and which are added tokens.

llama.cpp decides by `tokenizer.ggml.token_type`, by the texts of tokens and by the names of models
(`llama_vocab::impl::load` in its `llama-vocab.cpp`). This module follows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.formats.gguf.file import Metadata
from bpe_tokenizer.model import AddedToken

__all__ = [
    "TOKENS",
    "TYPES",
    "TokenType",
    "Tokens",
    "added_tokens",
    "filler_text",
    "final_types",
    "read_tokens",
    "token_ids",
]

TOKENS = "tokenizer.ggml.tokens"
TYPES = "tokenizer.ggml.token_type"


class TokenType(IntEnum):
    """The types of tokens (`llama_token_type`), by their numbers in a file."""

    UNDEFINED = 0
    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


# Tokens that end a generation are control tokens, whatever their type.
_END_TOKENS = (
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
)
# So is the token of one of these roles, if no key names it.
_ROLE_TEXTS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("fim_pre_token_id", "prefix_token_id"): (
        "<|fim_prefix|>",
        "<fim-prefix>",
        "<fim_prefix>",
        "<｜fim▁begin｜>",
        "<PRE>",
        "▁<PRE>",
        "<|code_prefix|>",
        "<|prefix|>",
    ),
    ("fim_suf_token_id", "suffix_token_id"): (
        "<|fim_suffix|>",
        "<fim-suffix>",
        "<fim_suffix>",
        "<｜fim▁hole｜>",
        "<SUF>",
        "▁<SUF>",
        "<|code_suffix|>",
        "<|suffix|>",
    ),
    ("fim_mid_token_id", "middle_token_id"): (
        "<|fim_middle|>",
        "<fim-middle>",
        "<fim_middle>",
        "<｜fim▁end｜>",
        "<MID>",
        "▁<MID>",
        "<|code_middle|>",
        "<|middle|>",
    ),
    ("fim_pad_token_id",): ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    ("fim_rep_token_id",): (
        "<|fim_repo|>",
        "<|repo_name|>",
        "<fim-repo>",
        "<REPO>",
        "<reponame>",
    ),
    ("fim_sep_token_id",): ("<|file_sep|>",),
}
# Always user-defined (gpt-oss).
_ALWAYS_USER_DEFINED = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")

# The roles whose tokens end a generation too.
_END_ROLES = (
    "eos_token_id",
    "eot_token_id",
    "eom_token_id",
    "fim_pad_token_id",
    "fim_rep_token_id",
    "fim_sep_token_id",
)
# All other added tokens of Phi-3 strip the white space after them.
_NEVER_STRIPPING = ("<unk>", "<s>", "<|endoftext|>")

_ADDED_TYPES = (TokenType.UNKNOWN, TokenType.CONTROL, TokenType.USER_DEFINED)


@dataclass(frozen=True)
class Tokens:
    """The tokens of a file, as llama.cpp sees them.

    Args:
        table: The text of each id, as the file writes it.
        types: The type of each id.
    """

    table: _core.TokenTable
    types: Sequence[TokenType]

    def texts(self) -> Iterator[str]:
        """Return the texts in the order of the ids."""
        return map(self.table.text, range(len(self.table)))

    @cached_property
    def unusual(self) -> list[tuple[int, TokenType]]:
        """The ids whose type is not NORMAL, with their types: few of the hundreds of thousands."""
        normal = TokenType.NORMAL
        return [(index, kind) for index, kind in enumerate(self.types) if kind is not normal]

    def fillers(self) -> set[int]:
        """Return the ids that have no token: those of texts that fill a hole between the ids."""
        unused = [index for index, kind in self.unusual if kind is TokenType.UNUSED]
        return {index for index in unused if self.table.text(index) == filler_text(index)}


def filler_text(index: int) -> str:
    """Return the text for an id without a token, because llama.cpp needs a token for each id.

    No text can become it, because it has a space.

    >>> filler_text(300)
    '<unused 300>'
    """
    return f"<unused {index}>"


def read_tokens(metadata: Metadata) -> Tokens:
    """Read the tokens of a file.

    Raises:
        FormatError: The tokens are missing, not UTF-8, duplicates, or their types are ambiguous.
    """
    strings = metadata.strings(TOKENS)
    if not strings:
        raise metadata.error(TOKENS, "the list is empty")
    table = _core.TokenTable.from_strings(strings, f"{metadata.file}: {TOKENS}")
    numbers = metadata.numbers(TYPES, "i")
    if numbers is None:
        types = [TokenType.NORMAL] * len(table)
    elif len(numbers) < len(table):
        raise metadata.error(TYPES, f"has {len(numbers)} entries for {len(table)} tokens")
    else:
        types = list(map(_KINDS.__getitem__, numbers[: len(table)].tolist()))
    given = token_ids(metadata, len(table))
    try:
        return Tokens(table, final_types(table, types, given))
    except FormatError as error:
        raise metadata.error(TOKENS, str(error)) from None


class _Kinds(dict[int, TokenType]):
    def __missing__(self, number: int) -> TokenType:
        return TokenType.UNDEFINED


_KINDS = _Kinds({int(kind): kind for kind in TokenType})


def token_ids(metadata: Metadata, count: int) -> dict[str, int]:
    """Return the ids that a file names (`bos_token_id`, ...), without ids that have no token.

    Args:
        metadata: The metadata of the file.
        count: The number of tokens.
    """
    given = {}
    for key in metadata.values:
        name = key.removeprefix("tokenizer.ggml.")
        if name != key and name.endswith("_token_id"):
            value = metadata.integer(key)
            if value is not None and 0 <= value < count:
                given[name] = value
    return given


def final_types(
    ids: _core.TokenTable, types: Sequence[TokenType], given: Mapping[str, int]
) -> list[TokenType]:
    """Return the types of tokens as llama.cpp changes them by their texts.

    Args:
        ids: The id of each text.
        types: The types in the file.
        given: The ids that the file names.

    Raises:
        FormatError: Two tokens may have a role that makes a token a control token; llama.cpp takes the one
            that comes first in its hash table.

    >>> ids = _core.TokenTable.from_strings(_core.Strings([b"a", b"<|im_end|>"]), "tokens")
    >>> final_types(ids, [TokenType.NORMAL, TokenType.USER_DEFINED], {})
    [<TokenType.NORMAL: 1>, <TokenType.CONTROL: 3>]
    """
    final = list(types)
    for keys, texts in _ROLE_TEXTS.items():
        candidates = [ids[text] for text in texts if text in ids]
        if any(key in given for key in keys) or all(
            final[index] is TokenType.CONTROL for index in candidates
        ):
            continue
        if len(candidates) > 1:
            names = ", ".join(repr(text) for text in texts if text in ids)
            raise FormatError(
                f"each of {names} may be the token of tokenizer.ggml.{keys[0]}, which is missing; "
                f"llama.cpp would make either one a control token. Set tokenizer.ggml.{keys[0]}"
            )
        final[candidates[0]] = TokenType.CONTROL
    for text in _END_TOKENS:
        if text in ids:
            final[ids[text]] = TokenType.CONTROL
    for text in _ALWAYS_USER_DEFINED:
        if text in ids:
            final[ids[text]] = TokenType.USER_DEFINED
    calls = "<|call|>" in ids or "<|calls|>" in ids
    if "<|end|>" in ids and calls and ("<|return|>" in ids or "<|flush|>" in ids):
        final[ids["<|end|>"]] = TokenType.USER_DEFINED
    ends = {given[name] for name in _END_ROLES if name in given}
    if "</s>" in ids and ("<|tool_response>" in ids or ids.get("<|plamo:eos|>") in ends):
        final[ids["</s>"]] = TokenType.NORMAL
    return final


def added_tokens(
    tokens: Tokens, *, name: str = "", architecture: str = "", pre: str = ""
) -> list[AddedToken]:
    """Return the added tokens.

    Args:
        tokens: The tokens.
        name: The model's name, `general.name`.
        architecture: `general.architecture`.
        pre: `tokenizer.ggml.pre`.

    Raises:
        FormatError: The name requires tokens that are missing.
    """
    strips_left, strips_right = _stripping(tokens.table, name, architecture, pre)
    return [
        AddedToken(
            text := tokens.table.text(index),
            index,
            special=kind is not TokenType.USER_DEFINED,
            lstrip=text in strips_left,
            rstrip=strips_right and text not in _NEVER_STRIPPING,
        )
        for index, kind in tokens.unusual
        if kind in _ADDED_TYPES
    ]


def _stripping(ids: _core.TokenTable, name: str, architecture: str, pre: str) -> tuple[Collection[str], bool]:
    """The tokens that strip white space before them, and whether all strip white space after them."""
    name = name.lower()
    if any(part in pre for part in ("jina-v2-de", "jina-v2-es", "jina-v2-code")) or any(
        part in architecture for part in ("nomic-bert-moe", "jina-bert-v3")
    ):
        return ("<mask>",), False
    if "phi-3" in name or "phi3" in name:
        for text in ("</s>", *_NEVER_STRIPPING):
            if text not in ids:
                raise FormatError(
                    f"general.name is {shorten(name)}, for which llama.cpp needs a token {shorten(text)}"
                )
        return (), True
    return ("[MASK]",) if "modern-bert" in name else (), False
