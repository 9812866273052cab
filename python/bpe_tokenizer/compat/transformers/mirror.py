"""The core's copy of a tokenizer of `tokenizers`, renewed when that tokenizer changes."""

from __future__ import annotations

import json
import threading
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bpe_tokenizer import _core
from bpe_tokenizer.compiled import CompiledModel
from bpe_tokenizer.errors import TokenizerError
from bpe_tokenizer.formats import huggingface
from bpe_tokenizer.formats.huggingface.tokens import MODEL_SETTINGS
from bpe_tokenizer.model import Model

__all__ = ["CoreTokenizer", "Mirror"]

# How many tokens of the vocabulary a fingerprint holds.
_SAMPLE = 32


class CoreTokenizer:
    """A model that runs, and which results of `tokenizers` it reproduces exactly.

    Args:
        model: The model.
        post_processor: The steps of the post-processor of the tokenizer of `tokenizers`.
        demoted: The ids of tokens that are no longer special, and that decoding still skips as such.
    """

    def __init__(
        self, model: Model, post_processor: Sequence[Mapping[str, Any]], demoted: Container[int] = ()
    ) -> None:
        self.model = model
        compiled = CompiledModel.compile(model)
        # The core finds all added tokens here, so the flag matters to decoding only.
        skipped = [token._replace(special=True) for token in model.core.added_tokens if token.id in demoted]
        compiled = compiled.with_added_tokens(skipped) if skipped else compiled
        self.compiled = compiled
        self.encoder = compiled.encoder
        prefix, suffix = compiled.prefix_suffix_ids
        self.prefix, self.suffix = list(prefix), list(suffix)
        core = model.core
        matches_exactly = not any(token.lstrip or token.rstrip for token in core.added_tokens)
        # Whether all ids that are added to a text have the type 0.
        self.has_only_type_0 = not any(_type_ids(post_processor))
        # Whether spans of ids are those of `tokenizers`: it never trims them, and texts stay unchanged.
        self.has_same_offsets = (
            core.alphabet == "bytes"
            and core.requires_all_bytes
            and not core.normalizers
            and not core.add_prefix_space
            and not _trims_offsets(post_processor)
            and matches_exactly
        )
        # `tokenizers` reports the text that an added token matched, which may have white space around it.
        self.has_same_token_strings = (
            core.alphabet == "bytes" and matches_exactly and core.unk_id is None and not core.normalizers
        )
        # `tokenizers` decodes an added token whose characters are all GPT-2's printable bytes to those bytes.
        self.has_same_texts = not core.normal_forms and (
            core.alphabet == "characters"
            or all(
                _core.from_printable(token.content) in (None, token.content.encode())
                for token in core.added_tokens
            )
        )

    @cached_property
    def token_strings(self) -> dict[int, str]:
        """The token string of each id."""
        return self.compiled.token_strings

    @cached_property
    def token_lengths(self) -> npt.NDArray[np.int64]:
        """The number of bytes of each id; 0 for an id without a token."""
        vocab = self.compiled.vocab
        lengths = np.zeros(self.compiled.n_vocab, dtype=np.int64)
        lengths[list(vocab)] = list(map(len, vocab.values()))
        return lengths


class Mirror:
    """Keeps a `CoreTokenizer` equal to a tokenizer of `tokenizers`, which callers may change.

    Threads share it.

    Attributes:
        is_shared: Other code holds the tokenizer or a part of it and can change it at any time, so each use
            compares a fingerprint.
        refusal: Why the core cannot represent the tokenizer.
    """

    def __init__(self) -> None:
        self.is_shared = False
        self.refusal: TokenizerError | None = None
        self._changes = 1
        # The changes that `_core` knows of.
        self._known_changes = 0
        self._core: CoreTokenizer | None = None
        self._fingerprint: tuple[object, ...] | None = None
        # Re-entrant, because a signal handler can use the tokenizer inside these methods.
        self._lock = threading.RLock()

    def note_change(self) -> None:
        """Note that the tokenizer was changed through the class that owns it."""
        self._changes += 1

    def core(self, backend: Any) -> CoreTokenizer | None:
        """Return the core's tokenizer; None if the core cannot represent the `tokenizers.Tokenizer`."""
        if self._known_changes == self._changes and not self.is_shared:
            return self._core
        with self._lock:
            changes = self._changes
            fingerprint = _fingerprint(backend)
            if fingerprint != self._fingerprint:
                self._core = self._read(backend)
                self._fingerprint = fingerprint
            self._known_changes = changes
            return self._core

    def _read(self, backend: Any) -> CoreTokenizer | None:
        self.refusal = None
        if not _is_bpe(backend):
            return None
        try:
            model = huggingface.loads(backend.to_str())
            return CoreTokenizer(model, _steps(backend.post_processor), _demoted(backend))
        except TokenizerError as error:
            self.refusal = error
            return None

    def __deepcopy__(self, memo: dict[int, object]) -> Mirror:
        """Return a mirror of an equal tokenizer; the core's tokenizer is immutable."""
        copied = Mirror()
        with self._lock:
            copied.__dict__.update({**self.__dict__, "_lock": copied._lock})
        return copied

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle nothing: a new mirror reads the unpickled tokenizer."""
        return Mirror, ()


def _is_bpe(backend: Any) -> bool:
    return type(backend.model).__name__ == "BPE"


def _demoted(backend: Any) -> set[int]:
    """Return the ids of ordinary added tokens that once were special.

    `tokenizers` remembers them until it is saved, and leaves them out of a text without special tokens.
    """
    ordinary = _ordinary(backend.get_added_tokens_decoder())
    return {
        token_id
        for token_id in ordinary
        if not backend.decode([token_id], skip_special_tokens=True)
        and backend.decode([token_id], skip_special_tokens=False)
    }


def _ordinary(added: Mapping[int, Any]) -> list[int]:
    return [token_id for token_id, token in added.items() if not token.special]


def _fingerprint(backend: Any) -> tuple[object, ...]:
    """What distinguishes two states of a tokenizer, as far as ids and texts depend on it."""
    if not _is_bpe(backend):
        return ()  # whatever it is, the core does not represent it
    model = backend.model
    size = backend.get_vocab_size(with_added_tokens=False)
    sample = [backend.id_to_token(token_id) for token_id in range(0, size, size // _SAMPLE + 1)]
    # With dropout the ids are random; the core does not represent it.
    probe = [] if model.dropout else model.tokenize("".join(filter(None, sample)))
    parts = (backend.normalizer, backend.pre_tokenizer, backend.post_processor, backend.decoder)
    added = backend.get_added_tokens_decoder()
    flags = repr(added)  # of all tokens, in a quarter of the time of reading them one by one
    # Which of the ordinary ones once were special.
    kept = "special=False" in flags and backend.decode(_ordinary(added), skip_special_tokens=True)
    return (
        size,
        tuple(sample),
        tuple(token.id for token in probe),
        tuple((part and part.__getstate__()) for part in parts),
        type(model),
        tuple(getattr(model, name, None) for name in MODEL_SETTINGS),
        flags,
        kept,
    )


def _steps(post_processor: Any) -> list[dict[str, Any]]:
    """Return the steps of a post-processor as a tokenizer.json writes them."""
    if post_processor is None:
        return []
    found: dict[str, Any] = json.loads(post_processor.__getstate__())
    return found["processors"] if found["type"] == "Sequence" else [found]


def _type_ids(steps: Iterable[Mapping[str, Any]]) -> list[int]:
    pieces = [piece for step in steps for piece in step.get("single", ())]
    return [next(iter(piece.values()))["type_id"] for piece in pieces]


def _trims_offsets(steps: Iterable[Mapping[str, Any]]) -> bool:
    return any(step.get("trim_offsets") for step in steps)
