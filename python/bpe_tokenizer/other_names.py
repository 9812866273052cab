"""The names that other libraries give to what `BPETokenizer` does, for the error of an unknown attribute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bpe_tokenizer.errors import did_you_mean

__all__ = ["is_other_name", "missing_attribute", "missing_root_name"]

_TIKTOKEN: Final = "bpe_tokenizer.compat.tiktoken has tiktoken's interface"
_TRANSFORMERS: Final = "bpe_tokenizer.compat.transformers has the interface of transformers"

# tiktoken: https://github.com/openai/tiktoken/blob/main/tiktoken/core.py
_OF_TIKTOKEN: Final = {
    "encode_ordinary": "encode(text), where special tokens are text",
    "encode_ordinary_batch": "encode_batch(texts), where special tokens are text",
    "encode_single_token": "token_to_id(token), or `token in tokenizer`",
    "encode_with_unstable": "truncate(text, max_tokens) or split_by_tokens(text, max_tokens)",
    "decode_single_token_bytes": "vocab[token_id]",
    "decode_tokens_bytes": "vocab[token_id] for each id",
    "decode_with_offsets": "encode_with_offsets(text)",
    "token_byte_values": "vocab.values()",
    "eot_token": "eos_token_id",
    "max_token_value": "n_vocab - 1",
    "special_tokens_set": "special_tokens",
    "is_special_token": "special_tokens.values()",
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
}
# minbpe: https://github.com/karpathy/minbpe
_OF_MINBPE: Final = {
    "register_special_tokens": "add_special_tokens({text: token_id})",
    "inverse_special_tokens": "special_tokens",
}
_FACES: Final[Mapping[str, tuple[Mapping[str, str], str]]] = {
    "tiktoken": (_OF_TIKTOKEN, _TIKTOKEN),
    "Hugging Face": (_OF_HUGGING_FACE, _TRANSFORMERS),
    "sentencepiece": (_OF_SENTENCEPIECE, ""),
    "minbpe": (_OF_MINBPE, ""),
}


# The same for the package: what programs that were written for the other libraries import.
_OF_ROOTS: Final = {
    "AutoTokenizer": "bpe_tokenizer.compat.transformers.AutoTokenizer, or load(path)",
    "BasicTokenizer": "BPETokenizer().train(text, vocab_size)",
    "GPT4Tokenizer": "load('cl100k_base')",
    "RegexTokenizer": "BPETokenizer().train(text, vocab_size)",
    "SentencePieceProcessor": "load(path)",
    "SentencePieceTrainer": "BPETokenizer().train(Path('corpus.txt'), vocab_size)",
    "Tokenizer": "BPETokenizer",
    "encoding_for_model": "load('gpt-4o'), or bpe_tokenizer.compat.tiktoken.encoding_for_model",
    "get_encoding": "load('o200k_base'), or bpe_tokenizer.compat.tiktoken.get_encoding",
}


def is_other_name(name: str) -> bool:
    """Return whether another library gives this name to something of a tokenizer.

    >>> is_other_name("padding_side"), is_other_name("note")
    (True, False)
    """
    return any(name in names for names, _ in _FACES.values())


def missing_root_name(name: str) -> str:
    """Return the message of the error for an attribute that the package does not have.

    >>> missing_root_name("get_encoding")
    "module 'bpe_tokenizer' has no attribute 'get_encoding'; use load('o200k_base'), or ..."
    """
    return f"module 'bpe_tokenizer' has no attribute {name!r}" + (
        f"; use {_OF_ROOTS[name]}" if name in _OF_ROOTS else ""
    )


def missing_attribute(tokenizer: object, name: str) -> str:
    """Return the message of the error for an attribute that a tokenizer does not have.

    >>> from bpe_tokenizer import BPETokenizer
    >>> missing_attribute(BPETokenizer(), "encode_as_ids")
    "BPETokenizer has no attribute 'encode_as_ids'; use encode(text)"
    """
    message = f"{type(tokenizer).__name__} has no attribute {name!r}"
    for names, face in _FACES.values():
        if name in names:
            return f"{message}; use {names[name]}" + (f" ({face})" if face else "")
    public = [known for known in dir(type(tokenizer)) if not known.startswith("_")]
    return message if name.startswith("_") else message + did_you_mean(name, public).removesuffix(".")
