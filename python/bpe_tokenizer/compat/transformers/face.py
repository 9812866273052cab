"""Subclasses of transformers' fast tokenizers whose texts and ids the core encodes and decodes.

The tokenizer of `tokenizers` in an object of transformers defines its behaviour, and callers may change it:
through the methods of transformers, or directly (`backend_tokenizer`). So it stays the only state. `Mirror`
derives an immutable tokenizer of the core from it and renews it after a change. A call that the core answers
exactly as transformers does runs there, and any other call runs in transformers' own method.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from types import CodeType
from typing import Any, cast

from bpe_tokenizer.arguments import thread_count
from bpe_tokenizer.compat.transformers.batches import (
    BatchOptions,
    batch_fields,
    changed_error,
    lazy_batch,
    rows_with_spans,
    tensor_fields,
)
from bpe_tokenizer.compat.transformers.mirror import CoreTokenizer, Mirror
from bpe_tokenizer.errors import FormatError, TokenizerError
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["face_class"]

_PACKAGE = __name__.rpartition(".")[0]
# Methods of transformers that use the tokenizer of `tokenizers` and neither change it nor pass it on, or that
# an override here follows.
_OWN_METHODS = (
    "__init__",
    "__len__",
    "_add_tokens",
    "_batch_encode_plus",
    "_convert_id_to_token",
    "_convert_token_to_id_with_added_voc",
    "_decode",
    "_encode_plus",
    "_encode_without_added_tokens",
    "_save_pretrained",
    "added_tokens_decoder",
    "added_tokens_encoder",
    "convert_ids_to_tokens",
    "convert_tokens_to_string",
    "get_added_vocab",
    "get_vocab",
    "num_special_tokens_to_add",
    "set_truncation_and_padding",
    "train_new_from_iterator",
    "update_post_processor",
    "vocab_size",
)
# The options of `_encode_plus` that the core handles; any other option is left to transformers.
_KNOWN_OPTIONS = frozenset(
    (
        "add_special_tokens",
        "is_split_into_words",
        "max_length",
        "pad_to_multiple_of",
        "padding_side",
        "padding_strategy",
        "return_attention_mask",
        "return_length",
        "return_offsets_mapping",
        "return_overflowing_tokens",
        "return_special_tokens_mask",
        "return_tensors",
        "return_token_type_ids",
        "split_special_tokens",
        "stride",
        "truncation_strategy",
        "verbose",
    )
)
# Those that transformers passes on unchanged.
_PLAIN_OPTIONS = frozenset(
    (
        "add_special_tokens",
        "return_attention_mask",
        "return_length",
        "return_offsets_mapping",
        "return_special_tokens_mask",
        "return_tensors",
        "return_token_type_ids",
        "verbose",
    )
)
_FIELDS = ("token_type_ids", "attention_mask", "special_tokens_mask", "length")


class CoreMixin:
    """Runs the calls of a fast tokenizer of transformers on the core; comes before its class."""

    # The class of transformers, and the code of its methods in _OWN_METHODS.
    _transformers_class: type
    _own_code: frozenset[CodeType]

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> Any:
        """Load a tokenizer as the class of transformers does."""
        if "_transformers_class" not in vars(cls):
            return super().from_pretrained(*args, **kwargs)  # type: ignore[misc]
        return adopt(cls._transformers_class.from_pretrained(*args, **kwargs), cls)  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Create a tokenizer as the class of transformers does."""
        super().__init__(*args, **kwargs)
        # Its own code held the tokenizer until now.
        self.__dict__["_mirror"] = Mirror()

    # -- the tokenizer of `tokenizers` ------------------------------------------------------------------

    @property
    def _tokenizer(self) -> Any:
        self._watch(sys._getframe(1).f_code)
        return self.__dict__.get("_tokenizer")

    @_tokenizer.setter
    def _tokenizer(self, tokenizer: Any) -> None:
        self.__dict__["_tokenizer"] = tokenizer
        self.__dict__["_mirror"] = Mirror()

    @property
    def backend_tokenizer(self) -> Any:
        """The tokenizer of `tokenizers`; changes of it take effect."""
        self._watch(sys._getframe(1).f_code)
        return self.__dict__.get("_tokenizer")

    def _watch(self, caller: CodeType) -> None:
        """Compare fingerprints from now on if the tokenizer goes to other code than that of transformers."""
        if caller not in self._own_code:
            self._its_mirror().is_shared = True

    def _its_mirror(self) -> Mirror:
        mirror: Mirror = self.__dict__.setdefault("_mirror", Mirror())
        return mirror

    def _core(self) -> CoreTokenizer | None:
        """The core's tokenizer; None if the core cannot represent this one."""
        return self._its_mirror().core(self.__dict__["_tokenizer"])

    def to_bpe_tokenizer(self) -> BPETokenizer:
        """Return this tokenizer, in its present state, as a `BPETokenizer`.

        Raises:
            FormatError: The core cannot represent it; transformers' own code then does all work.
        """
        core = self._core()
        if core is None:
            refusal: TokenizerError | None = self._its_mirror().refusal
            raise refusal or FormatError("the tokenizer of transformers is not a BPE tokenizer")
        return BPETokenizer.from_model(core.model)

    def _add_tokens(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super()._add_tokens(*args, **kwargs)  # type: ignore[misc]
        finally:
            self._its_mirror().note_change()

    def update_post_processor(self) -> Any:
        """Update the special tokens that are added to a text."""
        try:
            return super().update_post_processor()  # type: ignore[misc]
        finally:
            self._its_mirror().note_change()

    # -- texts to ids -----------------------------------------------------------------------------------

    def __call__(self, text: Any = None, *args: Any, **options: Any) -> Any:
        """Return the `BatchEncoding` of a text or of several."""
        # transformers spends more time on the arguments of a short text than the core on the text.
        is_plain = not args and _PLAIN_OPTIONS.issuperset(options)
        if is_plain and not hasattr(type(self), "_switch_to_input_mode"):
            batch = self._encode_in_core(text, options)
            if batch is not None:
                return batch
        return super().__call__(text, *args, **options)  # type: ignore[misc]

    def _encode_plus(self, text: Any, text_pair: Any = None, *args: Any, **options: Any) -> Any:
        if text_pair is None and not args:
            batch = self._encode_in_core(text, options)
            if batch is not None:
                return batch
        return super()._encode_plus(text, text_pair, *args, **options)  # type: ignore[misc]

    def _batch_encode_plus(self, batch_text_or_text_pairs: Any, *args: Any, **options: Any) -> Any:
        # transformers 4 encodes batches here.
        if not args and isinstance(batch_text_or_text_pairs, (list, tuple)):
            batch = self._encode_in_core(batch_text_or_text_pairs, options)
            if batch is not None:
                return batch
        return super()._batch_encode_plus(batch_text_or_text_pairs, *args, **options)  # type: ignore[misc]

    def _encode_in_core(self, text: Any, options: Mapping[str, Any]) -> Any:
        """Return what transformers returns; None for a call that is left to transformers."""
        is_batched = type(text) is not str
        texts = (list(text) if type(text) in (list, tuple) else []) if is_batched else [text]
        if not texts or set(map(type, texts)) != {str} or not _KNOWN_OPTIONS.issuperset(options):
            return None
        core = self._core()
        if core is None:
            return None
        wanted = options.get
        shape = self._batch_options(core, wanted)
        names: dict[str, Any] = {name: wanted(f"return_{name}") for name in _FIELDS}
        for name in ("token_type_ids", "attention_mask"):
            if names[name] is None:
                names[name] = name in self.model_input_names  # type: ignore[attr-defined]
        with_offsets = wanted("return_offsets_mapping", False)
        if (
            shape is None
            or wanted("is_split_into_words", False)
            or wanted("return_overflowing_tokens", False)
            or (with_offsets and not core.has_same_offsets)
            or (names["token_type_ids"] and not core.has_only_type_0)
        ):
            return None
        max_length, tensor_type = wanted("max_length"), wanted("return_tensors")
        threads = thread_count(None) if len(texts) > 1 else 1
        fields: Mapping[str, Any] | None = None
        if (
            tensor_type in ("np", "pt")
            and not with_offsets
            and not names["special_tokens_mask"]
            and not names["length"]
        ):
            fields = tensor_fields(core, texts, names, shape, threads)
        if fields is not None:
            longest = next(iter(fields["input_ids"]))
            self._warn_if_too_long(longest, max_length, wanted("verbose", True))
            if tensor_type == "pt":
                torch = import_library("torch", "torch")
                fields = {name: torch.from_numpy(array) for name, array in fields.items()}
            tensor_type = None
        else:
            spans = None
            if with_offsets:
                rows, spans = rows_with_spans(core, texts, threads)
            else:
                rows = core.encoder.encode_batch(texts, True, threads)
            fields = batch_fields(rows, spans, names, shape)
            longest = max(fields["input_ids"], key=len)
            self._warn_if_too_long(longest, max_length, wanted("verbose", True))
            if not is_batched and tensor_type is None:
                # Only lists of lists lose the dimension of the batch.
                fields = {name: rows[0] if type(rows[0]) is list else rows for name, rows in fields.items()}
        arguments = {**options, "return_tensors": None}

        def make() -> Any:
            if self._core() is not core or self._batch_options(core, wanted) != shape:
                raise changed_error()
            return self._make_encodings(texts, arguments)

        return lazy_batch(fields, make, tensor_type)

    def _make_encodings(self, texts: list[str], options: Mapping[str, Any]) -> Any:
        """The encodings of `tokenizers`, from transformers' own method."""
        theirs: Any = super()
        encode = getattr(theirs, "_batch_encode_plus", None) or theirs._encode_plus
        return encode(texts, **options).encodings

    def _warn_if_too_long(self, ids: Any, max_length: Any, verbose: Any) -> None:
        if max_length is None and len(ids) > self.model_max_length:  # type: ignore[attr-defined]
            self._eventual_warn_about_too_long_sequence(ids, max_length, verbose)  # type: ignore[attr-defined]

    def _batch_options(self, core: CoreTokenizer, wanted: Any) -> BatchOptions | None:
        """Return how to shape the rows; None for a request that is left to transformers."""
        add_special_tokens, split = wanted("add_special_tokens", True), wanted("split_special_tokens")
        if split is None:
            split = self.split_special_tokens  # type: ignore[attr-defined]
        if split is not False or type(add_special_tokens) is not bool or wanted("stride", 0) != 0:
            return None
        prefix, suffix = (core.prefix, core.suffix) if add_special_tokens else ([], [])
        truncation = wanted("truncation_strategy", "do_not_truncate")
        padding = wanted("padding_strategy", "do_not_pad")
        if truncation == "do_not_truncate" and padding == "do_not_pad":
            return BatchOptions(prefix, suffix)
        max_length, limit = wanted("max_length"), None
        if truncation != "do_not_truncate":
            if truncation not in ("longest_first", "only_first") or type(max_length) is not int:
                return None
            limit = max_length - len(prefix) - len(suffix)
            if limit <= 0:
                return None
        truncates_left = self._is_left(self.truncation_side)  # type: ignore[attr-defined]
        if padding == "do_not_pad":
            return None if truncates_left is None else BatchOptions(prefix, suffix, limit, truncates_left)
        side = wanted("padding_side")
        pads_left = self._is_left(self.padding_side if side is None else side)  # type: ignore[attr-defined]
        pad_id, pad_type_id = self.pad_token_id, self.pad_token_type_id  # type: ignore[attr-defined]
        multiple = wanted("pad_to_multiple_of")
        width = None
        if padding == "max_length":
            width = max_length
            if type(width) is not int or width < 0:
                return None
        elif padding != "longest":
            return None
        if multiple is None:
            multiple = 0
        numbers = (pad_id, pad_type_id, multiple)
        if any(type(number) is not int or number < 0 for number in numbers):
            return None
        if pads_left is None or truncates_left is None:
            return None
        return BatchOptions(
            prefix, suffix, limit, truncates_left, True, width, multiple, pads_left, pad_id, pad_type_id
        )

    @staticmethod
    def _is_left(side: object) -> bool | None:
        return side == "left" if side in ("left", "right") else None

    def encode(self, text: Any, *args: Any, **options: Any) -> Any:
        """Return the ids of a text."""
        if type(text) is str and not args and not options.keys() - {"add_special_tokens"}:
            core = self._core()
            add = options.get("add_special_tokens", True)
            if core is not None and type(add) is bool and self.split_special_tokens is False:  # type: ignore[attr-defined]
                ids = core.encoder.encode(text, True)
                if add and (core.prefix or core.suffix):
                    ids = core.prefix + ids + core.suffix
                self._warn_if_too_long(ids, None, True)
                return ids
        return super().encode(text, *args, **options)  # type: ignore[misc]

    def tokenize(self, text: Any, *args: Any, **options: Any) -> Any:
        """Return the token strings of a text."""
        if type(text) is str and not args and not options.keys() - {"add_special_tokens"}:
            core = self._core()
            if core is not None and core.has_same_token_strings:
                ids = self.encode(text, **{"add_special_tokens": False, **options})
                return list(map(core.token_strings.__getitem__, ids))
        return super().tokenize(text, *args, **options)  # type: ignore[misc]

    # -- ids to texts -----------------------------------------------------------------------------------

    def decode(self, token_ids: Any, *args: Any, **options: Any) -> Any:
        """Return the text of ids, or the texts of rows of ids."""
        if not args and type(token_ids) is list and token_ids:
            skip = options.get("skip_special_tokens", False)
            core = self._decoding_core(skip, options)
            if core is not None:
                is_batch = type(token_ids[0]) is list
                try:
                    if is_batch:
                        return core.encoder.decode_batch(token_ids, skip, "replace", thread_count(None))
                    return core.encoder.decode_text(token_ids, skip, "replace")
                except (TypeError, ValueError, LookupError, OverflowError):
                    pass  # transformers skips unknown ids, and has its own errors
        return super().decode(token_ids, *args, **options)  # type: ignore[misc]

    def _decoding_core(self, skip: object, options: Mapping[str, Any]) -> CoreTokenizer | None:
        if type(skip) is not bool or options.keys() - {"skip_special_tokens", "clean_up_tokenization_spaces"}:
            return None
        clean = options.get("clean_up_tokenization_spaces")
        if clean or (clean is None and self.clean_up_tokenization_spaces):  # type: ignore[attr-defined]
            return None
        core = self._core()
        return core if core is not None and core.has_same_texts else None

    # -- copies -----------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the class of transformers and the attributes."""
        kind = type(self)
        if "_transformers_class" in vars(kind):
            return _new, (kind._transformers_class,), self.__dict__
        return object.__new__, (kind,), self.__dict__


def _new(theirs: type) -> Any:
    """Return an object without attributes, for unpickling."""
    kind = face_class(cast("Hashable", theirs))
    return kind.__new__(kind)


@cache
def face_class(theirs: Any) -> Any:
    """Return the subclass of a class of fast tokenizers of transformers that runs on the core.

    Args:
        theirs: `PreTrainedTokenizerFast` or a subclass.
    """
    if issubclass(theirs, CoreMixin):
        return theirs
    attributes = {
        "__module__": _PACKAGE,
        "__qualname__": theirs.__name__,
        "__doc__": f"transformers' {theirs.__name__}, with the core of bpe_tokenizer.",
        "_transformers_class": theirs,
        "_own_code": frozenset(_own_code(theirs)),
    }
    return type(theirs.__name__, (CoreMixin, theirs), attributes)


def _own_code(theirs: type) -> Iterator[CodeType]:
    base = import_library("transformers", "transformers").PreTrainedTokenizerFast
    for name in _OWN_METHODS:
        function = vars(base).get(name)
        function = function.fget if isinstance(function, property) else function
        if function is not None:
            yield getattr(function, "__wrapped__", function).__code__
    yield from (vars(kind)["__init__"].__code__ for kind in theirs.__mro__ if _has_init(kind))


def _has_init(kind: type) -> bool:
    return hasattr(vars(kind).get("__init__"), "__code__")


def adopt(tokenizer: Any, kind: Any = None) -> Any:
    """Return an object of `face_class` with the attributes of a tokenizer that nobody else holds."""
    created = kind or face_class(cast("Hashable", type(tokenizer)))
    face = created.__new__(created)
    # With a mirror from the beginning: a fingerprint of the attributes does not change with the first call.
    face.__dict__.update(tokenizer.__dict__, _mirror=Mirror())
    return face
