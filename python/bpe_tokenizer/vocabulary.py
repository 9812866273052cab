"""What a tokenizer knows: ids, tokens and their strings, merges, and the parts that special tokens play."""

from __future__ import annotations

import dataclasses
import difflib
import operator
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from bpe_tokenizer import _core
from bpe_tokenizer.compiled import Snapshot
from bpe_tokenizer.errors import ArgumentTypeError, NotTrainedError, SpecialTokenError
from bpe_tokenizer.model import Model
from bpe_tokenizer.special_tokens import Role

__all__ = ["Vocabulary", "as_ids", "as_row", "printable_bytes"]

Row: TypeAlias = Sequence[int] | npt.NDArray[Any]


class RoleToken:
    """The text of the token that plays a part; None where there is none.

    Set it to the text of an added token, or to None for no token.
    """

    def __init__(self, role: Role) -> None:
        self.role: Role = role

    @overload
    def __get__(self, instance: None, owner: type[Vocabulary]) -> RoleToken: ...
    @overload
    def __get__(self, instance: Vocabulary, owner: type[Vocabulary]) -> str | None: ...
    def __get__(self, instance: Vocabulary | None, owner: type[Vocabulary]) -> RoleToken | str | None:
        """Return the text."""
        if instance is None:
            return self
        found = instance._role(self.role)
        return found and found[0]

    def __set__(self, instance: Vocabulary, value: str | None) -> None:
        """Choose the token by its text."""
        instance._set_role(self.role, value)


class RoleTokenId:
    """The id of the token that plays a part; None where there is none.

    Set it to the id of an added token, or to None for no token.
    """

    def __init__(self, role: Role) -> None:
        self.role: Role = role

    @overload
    def __get__(self, instance: None, owner: type[Vocabulary]) -> RoleTokenId: ...
    @overload
    def __get__(self, instance: Vocabulary, owner: type[Vocabulary]) -> int | None: ...
    def __get__(self, instance: Vocabulary | None, owner: type[Vocabulary]) -> RoleTokenId | int | None:
        """Return the id."""
        if instance is None:
            return self
        found = instance._role(self.role)
        return found and found[1]

    def __set__(self, instance: Vocabulary, value: int | None) -> None:
        """Choose the token by its id."""
        if value is None:
            instance._set_role(self.role, None)
            return
        added = instance._trained().added.values()
        content = next((token.content for token in added if token.id == value), None)
        if content is None:
            raise SpecialTokenError(
                f"{self.role}_token_id cannot be {value!r}: no added token has that id; "
                "add_special_tokens({text: id}) adds one"
            )
        instance._set_role(self.role, content)


class Vocabulary:
    """The part of `BPETokenizer` that answers questions about its vocabulary; see there."""

    _snapshot: Snapshot | None
    _split_patterns: tuple[str, ...]
    _normalization: str | None

    bos_token = RoleToken("bos")
    eos_token = RoleToken("eos")
    pad_token = RoleToken("pad")
    unk_token = RoleToken("unk")
    bos_token_id = RoleTokenId("bos")
    eos_token_id = RoleTokenId("eos")
    pad_token_id = RoleTokenId("pad")
    unk_token_id = RoleTokenId("unk")

    def _trained(self) -> Snapshot:
        snapshot = self._snapshot
        if snapshot is None:
            raise NotTrainedError(
                "the tokenizer has no vocabulary yet: call train(corpus), or start from "
                "BPETokenizer.from_pretrained(directory) or BPETokenizer.from_vocab(vocab, merges)"
            )
        return snapshot

    def _role(self, role: Role) -> tuple[str, int] | None:
        return self._snapshot.role_ids.get(role) if self._snapshot is not None else None

    def _set_role(self, role: Role, content: str | None) -> None:
        old = self._trained()
        if content is not None and content not in old.added:
            close = difflib.get_close_matches(str(content), old.added, n=3)
            hint = f"; close to it: {', '.join(map(repr, close))}" if close else ""
            raise SpecialTokenError(
                f"{role}_token cannot be {content!r}: it is no added token{hint}; "
                "add_special_tokens([text]) adds one"
            )
        named = {**old.model.named_tokens, role: content or ""}
        self._snapshot = Snapshot(dataclasses.replace(old.model, named_tokens=named), old.encoder)

    @property
    def model(self) -> Model:
        """Everything the tokenizer is, as one value; raises NotTrainedError before training."""
        return self._trained().model

    @property
    def vocab(self) -> dict[int, bytes]:
        """The bytes of every id, special tokens included, in the order of the ids (a new dict each time)."""
        return self._trained().model.core.vocab

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """The merges in the order they were learned (a new list each time)."""
        return self._trained().model.core.merges

    @property
    def special_tokens(self) -> dict[str, int]:
        """The id of every special token by its text, in the order of the ids (a new dict each time)."""
        return dict(self._snapshot.special) if self._snapshot is not None else {}

    @property
    def split_pattern(self) -> str | tuple[str, ...]:
        """The split pattern's text; several, applied one after the other, are a tuple.

        It is empty where a model does not cut text, or not simply at the matches of patterns.
        """
        patterns = self._split_patterns
        return patterns[0] if len(patterns) == 1 else patterns

    @property
    def normalization(self) -> str | None:
        """`"NFC"`, `"NFD"`, `"NFKC"`, `"NFKD"`; None for nothing, or where a loaded model does more."""
        return self._normalization

    @property
    def vocab_size(self) -> int:
        """Number of ids of the vocabulary, without special tokens outside it; 0 before training."""
        return self._snapshot.model.core.vocab_size if self._snapshot is not None else 0

    def __len__(self) -> int:
        """Number of distinct ids, with all special tokens; 0 before training."""
        return len(self._snapshot.model.core) if self._snapshot is not None else 0

    def __bool__(self) -> bool:
        """True: an untrained tokenizer is a tokenizer too."""
        return True

    def get_vocab(self) -> dict[str, int]:
        """Return the id of every token string, in the order of the ids.

        Returns:
            Tokens with their bytes written as GPT-2's printable characters, added tokens as their text.

        >>> from bpe_tokenizer import BPETokenizer
        >>> vocab = BPETokenizer().train("a b a b", vocab_size=257, verbose=False).get_vocab()
        >>> vocab["Ġb"], vocab["Ġ"]
        (256, 32)
        """
        ids = self._trained().token_ids
        return dict(sorted(ids.items(), key=lambda item: item[1]))

    @overload
    def convert_tokens_to_ids(self, tokens: str) -> int: ...  # type: ignore[overload-overlap]
    @overload
    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]: ...
    def convert_tokens_to_ids(self, tokens: str | Iterable[str]) -> int | list[int]:
        """Return the ids of token strings; -1 for one that is in no vocabulary entry.

        Args:
            tokens: A token string, or several.

        Returns:
            An id for a `str`, otherwise a list.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("a b a b", vocab_size=257, verbose=False)
        >>> tokenizer.convert_tokens_to_ids(["a", "Ġb", "nothing"])
        [97, 256, -1]
        """
        ids = self._trained().token_ids
        if isinstance(tokens, str):
            return ids.get(tokens, -1)
        return [ids.get(token, -1) for token in tokens]

    @overload
    def convert_ids_to_tokens(self, ids: int) -> str: ...
    @overload
    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]: ...
    def convert_ids_to_tokens(self, ids: int | Iterable[int]) -> str | list[str]:
        """Return the token strings of ids; "" for an id outside the vocabulary.

        Args:
            ids: An id, or several (a list, an array, a tensor).

        Returns:
            A `str` for a single id, otherwise a list.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("a b a b", vocab_size=257, verbose=False)
        >>> tokenizer.convert_ids_to_tokens([97, 256, 999])
        ['a', 'Ġb', '']
        """
        strings = self._trained().token_strings
        values = as_ids(ids)
        if isinstance(values, int):
            return strings.get(values, "")
        return [strings.get(token_id, "") for token_id in values]

    def convert_tokens_to_string(self, tokens: Iterable[str]) -> str:
        """Return the text of token strings; bytes that are not UTF-8 become U+FFFD.

        Args:
            tokens: Token strings, as `tokenize` gives them.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("a b a b", vocab_size=257, verbose=False)
        >>> tokenizer.convert_tokens_to_string(["a", "Ġb", "Ã", "©"])
        'a bé'
        """
        if isinstance(tokens, str):
            raise ArgumentTypeError(
                f"convert_tokens_to_string expects a list of token strings: write [{tokens!r}]"
            )
        snapshot = self._trained()
        if snapshot.model.core.decoder is not None:
            ids = (snapshot.token_ids.get(token) for token in tokens)
            return snapshot.encoder.decode([i for i in ids if i is not None]).decode(errors="replace")
        return b"".join(
            token.encode() if token in snapshot.added else printable_bytes(token) for token in tokens
        ).decode(errors="replace")


def printable_bytes(token: str) -> bytes:
    """Return the bytes of a token string; one that is not made of GPT-2's characters stands for itself."""
    decoded = _core.from_printable(token)
    return token.encode(errors="replace") if decoded is None else decoded


def as_ids(ids: Any) -> int | Sequence[int]:
    """Return ids as an `int` or a sequence of `int`, from anything that people keep them in.

    Args:
        ids: An integer, a list, another iterable, a NumPy array or a PyTorch tensor of 0 or 1 dimensions.

    Raises:
        ArgumentTypeError: It is none of these.
    """
    if isinstance(ids, list | tuple):
        return ids
    if hasattr(ids, "tolist"):
        ids = ids.tolist()
        if isinstance(ids, list) and ids and isinstance(ids[0], list):
            raise ArgumentTypeError("ids have more than one dimension; decode_batch() takes rows of ids")
        if isinstance(ids, list):
            return ids
    if hasattr(ids, "__index__"):
        return operator.index(ids)
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise ArgumentTypeError(f"ids must be an int or a sequence of int, not {type(ids).__name__}")
    return list(ids)


def as_row(ids: Any) -> int | Row:
    """Return what `as_ids` does, but an array as it is: the core reads it where it lies in memory."""
    if type(ids) is list or (type(ids) is np.ndarray and ids.ndim == 1):
        return ids
    if isinstance(ids, np.memmap):
        return as_row(ids.view(np.ndarray))
    return as_ids(ids)
