"""The tokens of a tokenizer.json: the vocabulary, the merges and the added tokens.

Hugging Face `tokenizers` does not read the ids of `added_tokens`: a token that stands in `model.vocab` has
its id there, and the others get the ids from `len(model.vocab)` on, in the order of the file
(`AddedVocabulary::add_tokens`, version 0.23). So a token whose id would come out differently has to stand
in `model.vocab`, though it is none of the tokens that merges make; holes between the ids are allowed there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats._json import Field
from bpe_tokenizer.model import AddedToken

__all__ = ["FLAGS", "Tokens", "added_token_fields", "read_tokens", "write_tokens"]

_MODEL_FIELDS = frozenset(
    (
        "type",
        "dropout",
        "unk_token",
        "continuing_subword_prefix",
        "end_of_word_suffix",
        "fuse_unk",
        "byte_fallback",
        "ignore_merges",
        "vocab",
        "merges",
    )
)
_BYTES = tuple(_core.to_printable(bytes([byte])) for byte in range(256))
FLAGS = ("special", "single_word", "lstrip", "rstrip", "normalized")


@dataclass(frozen=True)
class Tokens:
    """What a tokenizer.json says about tokens, in its own words.

    Args:
        vocab: Token strings and their ids, `model.vocab`.
        merges: Pairs of token strings, in the order of their ranks.
        ignore_merges: Whether a piece that is a token is that token.
        added: The added tokens, in the order of the file.
    """

    vocab: dict[str, int]
    merges: list[tuple[str, str]]
    ignore_merges: bool
    added: list[AddedToken]

    def inside(self, recorded_size: int | None = None) -> dict[str, int]:
        """Return the part of `vocab` that belongs to the vocabulary proper.

        An added token in `vocab` may be there because it belongs there (it was reserved when the vocabulary
        was learned), or only to get its id. It belongs there if the ids stay free of holes: the ids of the
        other tokens and of the added tokens before it come to no less than its own.

        Args:
            recorded_size: The size of the vocabulary, if it is known; used if the ids agree with it.
        """
        contents = {token.content for token in self.added if token.content in self.vocab}
        outside = self._outside(contents, recorded_size)
        if outside:
            # What merges make is part of the vocabulary, even if it is an added token as well.
            made = {part for left, right in self.merges for part in (left, right, left + right)}
            outside = self._outside(contents - made, recorded_size)
        return {token: token_id for token, token_id in self.vocab.items() if token not in outside}

    def _outside(self, contents: set[str], recorded_size: int | None) -> set[str]:
        size = len(self.vocab) - len(contents)
        if recorded_size is not None:
            outside = {content for content in contents if self.vocab[content] >= recorded_size}
            if size + len(contents) - len(outside) == recorded_size:
                return outside
        outside = set()
        for content in sorted(contents, key=self.vocab.__getitem__):
            if self.vocab[content] <= size:
                size += 1
            else:
                outside.add(content)
        return outside


def read_tokens(document: Field) -> Tokens:
    """Read the vocabulary, merges and added tokens of a tokenizer.json.

    Raises:
        FormatError: They are broken, contradict each other, or are not those of a byte-level BPE model.
    """
    model = document.need("model")
    _check_model(model)
    vocab = _read_vocab(model.need("vocab"))
    merges = _read_merges(model.need("merges"))
    ignore_merges = model.get("ignore_merges").flag(default=False)
    added = document.get("added_tokens")
    return Tokens(vocab, merges, ignore_merges, [] if added.is_null else _read_added_tokens(added, vocab))


def _check_model(model: Field) -> None:
    if "type" in model.members() and model.get("type").text() != "BPE":
        raise model.get("type").refused("is not supported; only BPE is")
    unknown = sorted(model.members().keys() - _MODEL_FIELDS)
    if unknown:
        raise model.get(unknown[0]).error("is no field of a BPE model")
    dropout = model.get("dropout")
    if not (dropout.is_null or (type(dropout.value) in (int, float) and dropout.value == 0)):
        raise dropout.refused("makes encoding random, which is not supported; set it to null")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if not model.get(name).is_null and model.get(name).text():
            raise model.get(name).refused("is not supported: no byte-level model has one")
    # With a token for each byte nothing is ever unknown, so these change nothing.
    if not model.get("unk_token").is_null:
        model.get("unk_token").text()
    model.get("fuse_unk").flag(default=False)
    model.get("byte_fallback").flag(default=False)


def _read_vocab(field: Field) -> dict[str, int]:
    vocab = field.members()
    tokens: dict[int, str] = {}
    for token, value in vocab.items():
        token_id = value if type(value) is int and 0 <= value < 2**32 - 1 else field.get(token).id()
        if token_id in tokens:
            raise field.error(f"{tokens[token_id]!r} and {token!r} both have the id {token_id}")
        tokens[token_id] = token
    for byte, written in enumerate(_BYTES):
        if written not in vocab:
            raise field.error(
                f"has no token for the byte 0x{byte:02x}, written {written!r}; byte-level files need all 256"
            )
    return vocab


def _read_merges(field: Field) -> list[tuple[str, str]]:
    """Pairs of strings, or the older "left right"; of a pair that stands twice the last counts."""
    merges: list[tuple[str, str]] = []
    paired = any(type(merge) is not str for merge in field.values())
    for index, merge in enumerate(field.values()):
        if not paired and merge.startswith("#version"):
            continue
        pair = merge if paired else merge.split(" ")
        if not (type(pair) is list and len(pair) == 2 and type(pair[0]) is str and type(pair[1]) is str):
            raise field.item(index).refused(
                "is not a merge: all must be pairs of strings, or all 'left right'"
            )
        merges.append((pair[0], pair[1]))
    if len(set(merges)) < len(merges):
        return list(dict.fromkeys(reversed(merges)))[::-1]
    return merges


def _read_added_tokens(field: Field, vocab: Mapping[str, int]) -> list[AddedToken]:
    tokens: dict[str, AddedToken] = {}
    following = len(vocab)
    for index, value in enumerate(field.values()):
        token = _plain_added_token(value) or _read_added_token(field.item(index))
        if token.content in tokens:
            raise field.item(index).get("content").refused("stands twice")
        given = vocab.get(token.content, following)
        following += token.content not in vocab
        if token.id != given:
            raise (
                field.item(index)
                .get("id")
                .refused(
                    f"is not the id that Hugging Face tokenizers give {token.content!r}, which is {given}; "
                    "correct it, or put the token into model.vocab with the id that it is to have"
                )
            )
        tokens[token.content] = token
    return list(tokens.values())


def _plain_added_token(value: Any) -> AddedToken | None:
    """Return the token if nothing is wrong with it; there may be hundreds of thousands."""
    if type(value) is not dict:
        return None
    members: list[Any] = [value.get(name) for name in ("content", "id", *FLAGS)]
    content, token_id, *flags = members
    if not (type(content) is str and content and type(token_id) is int and 0 <= token_id < 2**32 - 1):
        return None
    return AddedToken(content, token_id, *flags) if all(type(flag) is bool for flag in flags) else None


def _read_added_token(item: Field) -> AddedToken:
    """Read a token with care for what is wrong."""
    content = item.need("content").text()
    if not content:
        raise item.get("content").error("is empty")
    flags = {flag: item.need(flag).flag() for flag in FLAGS}
    return AddedToken(content, item.need("id").id(), **flags)


def write_tokens(core: _core.Model) -> Tokens:
    """Return the tokens of a model in the words of a tokenizer.json.

    Raises:
        FormatError: The file cannot hold them: two ids have the same text.
        ModelError: The same, of two tokens of the vocabulary.
    """
    vocab = core.printable_vocab()
    merges = core.printable_merges()
    added = [AddedToken(*token) for token in core.added_tokens]
    inside = set(core.added_ids_in_vocab)
    outside = [token for token in added if token.id not in inside]
    if [token.id for token in outside] != list(range(len(vocab), len(vocab) + len(outside))):
        for token in outside:
            _put(vocab, token)
    for token in outside:
        if vocab.get(token.content, token.id) != token.id:
            raise _taken(vocab, token)
    _check_made_twice([token for token in added if token.id in inside], merges)
    return Tokens(
        dict(sorted(vocab.items(), key=lambda item: item[1])),
        merges,
        core.ignore_merges,
        added,
    )


def _put(vocab: dict[str, int], token: AddedToken) -> None:
    if vocab.setdefault(token.content, token.id) != token.id:
        raise _taken(vocab, token)


def _taken(vocab: Mapping[str, int], token: AddedToken) -> FormatError:
    return FormatError(
        f"added_tokens: {token.content!r} has the id {token.id}, and the token of the vocabulary that is "
        f"written like it has {vocab[token.content]}; tokenizer.json can give a text one id only"
    )


def _check_made_twice(inside: Sequence[AddedToken], merges: Sequence[tuple[str, str]]) -> None:
    """Refuse tokens that merges make and that are added tokens, if the two are written differently."""
    written = {_core.to_printable(token.content.encode()): token for token in inside}
    different = {printable for printable, token in written.items() if printable != token.content}
    if not different:
        return
    for left, right in merges:
        for printable in different.intersection((left, right, left + right)):
            raise FormatError(
                f"added_tokens: {written[printable].content!r} (id {written[printable].id}) is also made by "
                f"merges, as {printable!r}; tokenizer.json cannot hold both spellings of an id"
            )


def added_token_fields(token: AddedToken) -> dict[str, Any]:
    """Return the fields of an added token but its id, as both files hold them."""
    return {
        "content": token.content,
        "single_word": token.single_word,
        "lstrip": token.lstrip,
        "rstrip": token.rstrip,
        "normalized": token.normalized,
        "special": token.special,
    }
