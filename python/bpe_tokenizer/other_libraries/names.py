"""The names that other libraries give to what `BPETokenizer` and the package do, for errors that say ours."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from inspect import getattr_static
from opcode import opname
from typing import Any, Final

__all__ = ["OtherName", "OtherNames", "OtherSetting", "missing_root_error"]

_TIKTOKEN: Final = "bpe_tokenizer.compat.tiktoken has tiktoken's interface"
_TRANSFORMERS: Final = "bpe_tokenizer.compat.transformers has the interface of transformers"
_STREAM_DECODER: Final = "bpe_tokenizer.StreamDecoder(tokenizer), whose step(token_id) returns text"

# tiktoken: https://github.com/openai/tiktoken/blob/main/tiktoken/core.py
_OF_TIKTOKEN: Final = {
    "encode_ordinary": "encode(text), where special tokens are text",
    "encode_ordinary_batch": "encode_batch(texts), where special tokens are text",
    "encode_single_token": "token_to_id(text.encode()), None if the text is not one token",
    "encode_with_unstable": "truncate(text, max_tokens) or split_by_tokens(text, max_tokens)",
    "decode_single_token_bytes": "vocab[token_id]",
    "decode_tokens_bytes": "vocab[token_id] for each id",
    "decode_with_offsets": "encode_with_offsets(text)",
    "token_byte_values": "vocab.values()",
    "eot_token": "eos_token_id",
    "max_token_value": "n_vocab - 1",
    "special_tokens_set": "special_tokens",
    "is_special_token": "special_tokens.values()",
    "name": "to_tiktoken(name) for an Encoding with a name: a tokenizer has none",
    "_pat_str": "split_pattern",
    "_mergeable_ranks": "add_special_tokens({text: token_id}) to extend a tokenizer, vocab for its tokens",
    "_special_tokens": "add_special_tokens({text: token_id}) to extend a tokenizer, or special_tokens",
}
# transformers and tokenizers: https://huggingface.co/docs/transformers/main_classes/tokenizer
_OF_HUGGING_FACE: Final = {
    "add_tokens": "add_special_tokens([text, ...]), or extend(corpus, new_vocab_size) for learned tokens",
    "save_pretrained": "save(directory)",
    "from_file": "from_pretrained(directory) or load(path)",
    "from_str": "load(path)",
    "get_vocab_size": "vocab_size, or n_vocab for the rows of an embedding",
    "all_special_tokens": "special_tokens",
    "all_special_ids": "special_tokens.values()",
    "special_tokens_map": "special_tokens, and bos_token, eos_token, pad_token, unk_token",
    "additional_special_tokens": "special_tokens",
    "encode_plus": "__call__(text, return_dict=True)",
    "batch_encode_plus": "__call__(texts, return_dict=True)",
    "batch_decode": "decode_batch(rows)",
    "enable_padding": "encode_batch(texts, padding=True)",
    "enable_truncation": "encode_batch(texts, truncation=True, max_length=n)",
    "no_padding": "encode_batch(texts), which does not pad unless padding=True",
    "no_truncation": "encode_batch(texts), which does not truncate unless truncation=True",
    "train_from_iterator": "train(texts, vocab_size)",
    "train_new_from_iterator": "BPETokenizer(split_pattern).train(texts, vocab_size)",
    "model_max_length": "model.config.get('model_max_length')",
    "chat_template": "apply_chat_template(messages, template), or model.config.get('chat_template')",
    "cls_token": "special_tokens",
    "sep_token": "special_tokens",
    "mask_token": "special_tokens",
    "clean_up_tokenization_spaces": "decode(ids), which never cleans up",
    "padding_side": "encode_batch(texts, padding=True, padding_side='left')",
    "truncation_side": "encode_batch(texts, truncation=True, truncation_side='left')",
    "build_inputs_with_special_tokens": "encode(text, add_special_tokens=True)",
    "num_special_tokens_to_add": "count_tokens('', add_special_tokens=True)",
    "push_to_hub": "save(directory), then huggingface_hub.upload_folder: saving never touches the network",
    "decode_stream": _STREAM_DECODER,
    "DecodeStream": _STREAM_DECODER,
    "to_huggingface": "save(directory), or to_transformers() and to_tokenizers() for objects",
}
# sentencepiece: https://github.com/google/sentencepiece/blob/master/python/README.md
_OF_SENTENCEPIECE: Final = {
    "encode_as_ids": "encode(text)",
    "EncodeAsIds": "encode(text)",
    "encode_as_pieces": "tokenize(text)",
    "EncodeAsPieces": "tokenize(text)",
    "decode_ids": "decode(ids)",
    "DecodeIds": "decode(ids)",
    "decode_pieces": "convert_tokens_to_string(tokens)",
    "DecodePieces": "convert_tokens_to_string(tokens)",
    "piece_to_id": "token_to_id(token)",
    "PieceToId": "token_to_id(token)",
    "id_to_piece": "id_to_token(token_id)",
    "IdToPiece": "id_to_token(token_id)",
    "get_piece_size": "n_vocab, the rows of an embedding",
    "GetPieceSize": "n_vocab, the rows of an embedding",
    "bos_id": "bos_token_id",
    "eos_id": "eos_token_id",
    "pad_id": "pad_token_id",
    "unk_id": "unk_token_id",
    "Load": "BPETokenizer.load(path)",
    "piece_size": "n_vocab, the rows of an embedding",
    **dict.fromkeys(
        ("set_encode_extra_options", "SetEncodeExtraOptions"),
        "encode(text, add_special_tokens=True), which adds BOS and EOS as the tokenizer's files say",
    ),
    **dict.fromkeys(
        (
            *("nbest_encode", "nbest_encode_as_ids", "NBestEncodeAsIds"),
            *("sample_encode_as_ids", "SampleEncodeAsIds"),
        ),
        "encode(text): other segmentations of a text are not available",
    ),
    **dict.fromkeys(
        (
            *("nbest_encode_as_pieces", "NBestEncodeAsPieces"),
            *("sample_encode_as_pieces", "SampleEncodeAsPieces"),
        ),
        "tokenize(text): other segmentations of a text are not available",
    ),
    **dict.fromkeys(("is_control", "IsControl"), "special_tokens.values()"),
    **dict.fromkeys(("is_unknown", "IsUnknown"), "unk_token_id"),
    **dict.fromkeys(("is_unused", "IsUnused"), "vocab, which holds no unused ids"),
    **dict.fromkeys(("is_byte", "IsByte"), "vocab[token_id], whose length is 1 for a byte"),
    **dict.fromkeys(("get_score", "GetScore"), "merges, whose order is their rank: tokens have no scores"),
    "serialized_model_proto": "save_base64_json(path), or pickle.dumps(tokenizer) for bytes",
}
# minbpe: https://github.com/karpathy/minbpe
_OF_MINBPE: Final = {
    "register_special_tokens": "add_special_tokens({text: token_id})",
    "inverse_special_tokens": "special_tokens",
}
# Names that no library has, or several: what people expect beside ours.
_OF_OTHERS: Final = {
    "encode_iterable": "encode_streaming(chunks) for one text, or encode_batch(texts)",
    "stream_decoder": _STREAM_DECODER,
    "to_gguf": "save_gguf(path)",
    "to_minbpe": "save_minbpe(path)",
    "export": "save(directory), save_gguf(path), save_tiktoken(path) or save_minbpe(path)",
}
_FACES: Final[Mapping[str, tuple[Mapping[str, str], str]]] = {
    "tiktoken": (_OF_TIKTOKEN, _TIKTOKEN),
    "Hugging Face": (_OF_HUGGING_FACE, _TRANSFORMERS),
    "sentencepiece": (_OF_SENTENCEPIECE, ""),
    "minbpe": (_OF_MINBPE, ""),
    "": (_OF_OTHERS, ""),
}
# A program may define attributes with these names.
_MAY_BE_SET: Final = frozenset({"name", "export", "_pat_str", "_mergeable_ranks", "_special_tokens"})


class OtherName:
    """A name of another library. To read it raises an error that says ours; a program may set it.

    Args:
        name: The name.
        advice: What to use.
    """

    def __init__(self, name: str, advice: str) -> None:
        self._name = name
        self._advice = advice
        # What `help` shows.
        self.__doc__ = f"Use {advice}."

    def __get__(self, tokenizer: object, owner: type) -> Any:
        """Return what the object or a class of the program has under this name; or raise the error."""
        if tokenizer is not None and self._name in vars(tokenizer):
            return vars(tokenizer)[self._name]
        bound: Any = owner if tokenizer is None else tokenizer
        try:
            return getattr(super(OtherNames, bound), self._name)
        except AttributeError:
            raise self._error(tokenizer, owner) from None

    def _error(self, tokenizer: object, owner: type) -> AttributeError:
        message = f"{owner.__name__} has no attribute {self._name!r}; use {self._advice}"
        return AttributeError(message, name=self._name, obj=tokenizer)


class OtherSetting(OtherName):
    """A name that cannot be set either: a setting of another library would have no effect here."""

    def __set__(self, tokenizer: object, value: object) -> None:
        """Set it for a class of the program that has the name; or raise the error."""
        kind: Any = type(tokenizer)
        if not hasattr(super(OtherNames, kind), self._name):
            raise self._error(tokenizer, type(tokenizer))
        vars(tokenizer)[self._name] = value

    def __delete__(self, tokenizer: object) -> None:
        """Delete what was set; or raise the error."""
        if self._name not in vars(tokenizer):
            raise self._error(tokenizer, type(tokenizer))
        del vars(tokenizer)[self._name]


class OtherNames:
    """The names that other libraries use. Each raises an error that says what `BPETokenizer` has instead.

    They are descriptors, because a class with a `__getattr__` takes longer to find any of its methods.

    `help(BPETokenizer)` lists them at its end, and `dir(tokenizer)` leaves them out.

    >>> from bpe_tokenizer import BPETokenizer
    >>> BPETokenizer().encode_as_ids("low")
    Traceback (most recent call last):
    AttributeError: BPETokenizer has no attribute 'encode_as_ids'; use encode(text)
    """

    __slots__ = ()

    def __dir__(self) -> Iterable[str]:
        """Return the names of the attributes, without those of other libraries."""
        names = super().__dir__()
        return [name for name in names if not isinstance(getattr_static(self, name, None), OtherName)]


def _add_names() -> None:
    for names, face in _FACES.values():
        for name, advice in names.items():
            kind = OtherName if name in _MAY_BE_SET else OtherSetting
            setattr(OtherNames, name, kind(name, f"{advice} ({face})" if face else advice))


_add_names()


# The same for the package: what programs that were written for the other libraries import.
_OF_ROOTS: Final = {
    "AutoTokenizer": "bpe_tokenizer.compat.transformers.AutoTokenizer, or load(path)",
    "BasicTokenizer": "BPETokenizer().train(text, vocab_size)",
    "ByteLevelBPETokenizer": "BPETokenizer().train(corpus, vocab_size), or load(path)",
    "Encoding": "bpe_tokenizer.compat.tiktoken.Encoding, or BPETokenizer",
    "GPT4_SPLIT_PATTERN": "CL100K_SPLIT_PATTERN",
    "GPT4Tokenizer": "load('cl100k_base')",
    "PreTrainedTokenizerFast": "load(path), or bpe_tokenizer.compat.transformers.from_tokenizer(tokenizer)",
    "RegexTokenizer": "BPETokenizer().train(text, vocab_size)",
    "SentencePieceProcessor": "load(path)",
    "SentencePieceTrainer": "BPETokenizer().train(Path('corpus.txt'), vocab_size)",
    "Tokenizer": "BPETokenizer",
    "decode": "load(path).decode(ids)",
    "encode": "load(path).encode(text)",
    "encoding_for_model": "load('gpt-4o'), or bpe_tokenizer.compat.tiktoken.encoding_for_model",
    "from_pretrained": "load(path)",
    "get_encoding": "load('cl100k_base'), or bpe_tokenizer.compat.tiktoken.get_encoding",
    "get_stats": "train_bpe(corpus, vocab_size), or `from bpe_tokenizer.reference import count_pairs`",
    "list_encoding_names": "bpe_tokenizer.compat.tiktoken.list_encoding_names",
    "merge": "train_bpe(corpus, vocab_size), or `from bpe_tokenizer.reference import merge_pair`",
    "tiktoken": "bpe_tokenizer.compat.tiktoken",
    "transformers": "bpe_tokenizer.compat.transformers",
}


def missing_root_error(name: str) -> Exception:
    """Return the error for an attribute that the package does not have, for its `__getattr__` to raise.

    `from bpe_tokenizer import Tokenizer` asks `__getattr__` too, and replaces the message of an
    `AttributeError` by its own, but not that of an `ImportError`.

    >>> missing_root_error("get_encoding")
    AttributeError("module 'bpe_tokenizer' has no attribute 'get_encoding'; use load('cl100k_base'), or ...")
    """
    message = f"module 'bpe_tokenizer' has no attribute {name!r}"
    if name not in _OF_ROOTS:
        return AttributeError(message)
    message += f"; use {_OF_ROOTS[name]}"
    asking = sys._getframe(2)  # beyond the `__getattr__` of the package
    instruction = asking.f_code.co_code[asking.f_lasti] if asking.f_lasti >= 0 else 0
    return ImportError(message) if opname[instruction] == "IMPORT_FROM" else AttributeError(message)
