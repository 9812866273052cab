"""A tokenizer as a file: JSON for loading, and a listing for people.

JSON holds text, but a token may be a part of a character, so tokens are in base64:

    {"format": "bpe_tokenizer.reference", "version": 1, "class": "RegexBPETokenizer",
     "settings": {"pattern": "..."}, "special_tokens": {"<|endoftext|>": 100257},
     "vocab": {"0": "AA==", ..., "256": "bG8="}, "merges": [["bA==", "bw=="]]}
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .text import FilePath, TokenizerError, printable

if TYPE_CHECKING:
    from .characters import CharBPETokenizer
    from .naive import NaiveBPETokenizer

HEADER = {"format": "bpe_tokenizer.reference", "version": 1}
SETTINGS = ("pattern", "byte_level")  # The arguments of the classes.


def write_tokenizer(tokenizer: NaiveBPETokenizer, path: FilePath) -> None:
    """Write a tokenizer to a JSON file."""
    special = tokenizer.inverse_special_tokens
    vocab = {token_id: to_base64(token) for token_id, token in tokenizer.vocab.items()}
    saved = {
        **HEADER,
        "class": type(tokenizer).__name__,
        "settings": {name: vars(tokenizer)[name] for name in SETTINGS if name in vars(tokenizer)},
        "special_tokens": tokenizer.special_tokens,
        "vocab": {str(token_id): token for token_id, token in vocab.items() if token_id not in special},
        "merges": [[vocab[left], vocab[right]] for left, right in tokenizer.merges],
    }
    write_json(path, saved)


def to_base64(token: bytes | str) -> str:
    """Write a token in base64.

    >>> to_base64(b"lo"), to_base64("Ġ")
    ('bG8=', 'xKA=')
    """
    return b64encode(token.encode() if isinstance(token, str) else token).decode("ascii")


def bytes_from_base64(token: str) -> bytes:
    """Read a token of bytes."""
    return b64decode(token, validate=True)


def text_from_base64(token: str) -> str:
    """Read a token of characters."""
    return b64decode(token, validate=True).decode()


def read_tokenizer(kind: type[NaiveBPETokenizer], path: FilePath) -> NaiveBPETokenizer:
    """Read a tokenizer from a JSON file.

    Args:
        kind: The class of the tokenizer that the file must hold.
        path: The file.

    Raises:
        TokenizerError: The file is of another kind or invalid: the message names the file and the field.
    """
    saved, name = read_json(path), "format"
    try:
        for name, expected in {**HEADER, "class": kind.__name__}.items():
            if saved[name] != expected:
                raise ValueError(f"{saved[name]!r} is not {expected!r}")
        name = "settings"
        tokenizer = kind(**saved[name])
        smallest = tokenizer.smallest_tokens("")
        parse = bytes_from_base64 if isinstance(smallest[0], bytes) else text_from_base64
        name = "vocab"
        vocab = {int(key): parse(token) for key, token in saved[name].items()}
        ids = {token: token_id for token_id, token in vocab.items()}
        if len(ids) < len(saved[name]):
            raise ValueError("two ids are the same token, or two keys the same id")
        name = "merges"
        pairs = [(parse(left), parse(right)) for left, right in saved[name]]
        check_merges({*smallest, *(token for token in ids if len(token) == 1)}, pairs, set(ids))
        tokenizer.become(vocab, {(ids[a], ids[b]): ids[a + b] for a, b in pairs})
        name = "special_tokens"
        tokenizer.register_special_tokens(dict(saved[name]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = "it is missing" if isinstance(error, KeyError) else error
        raise TokenizerError(f"{path}: field {name!r}: {reason}") from error
    return tokenizer


def check_merges(known: set[Any], pairs: list[tuple[Any, Any]], vocab: set[Any]) -> None:
    """Check that the smallest tokens and the results of the merges are exactly the vocabulary."""
    for rank, (left, right) in enumerate(pairs):
        if left not in known or right not in known:
            raise ValueError(f"rank {rank} uses a token that no earlier merge makes")
        known.add(left + right)
    if known != vocab:
        raise ValueError(f"{printable(min(known ^ vocab))} is made by no merge, or is not in the vocabulary")


def write_listing(tokenizer: NaiveBPETokenizer, path: FilePath) -> None:
    """Write a text file with a line for each token and the two tokens that it was made from."""
    special = tokenizer.inverse_special_tokens
    lines = [repr(tokenizer)]
    for token_id in sorted({*tokenizer.vocab, *special}):
        tree = tokenizer.merge_tree(token_id)
        parts = " = " + " + ".join(printable(part.token) for part in tree.parts) if tree.parts else ""
        token = f"{special[token_id]!r} special token" if token_id in special else printable(tree.token)
        lines.append(f"{token_id:>7}  {token}{parts}")
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_openai_files(tokenizer: CharBPETokenizer, vocab_path: FilePath, merges_path: FilePath) -> None:
    """Write the two files of GPT-2."""
    write_json(vocab_path, tokenizer.inverse_vocab)
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in tokenizer.bpe_ranks)]
    Path(merges_path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_openai_files(
    vocab_path: FilePath, merges_path: FilePath
) -> tuple[dict[str, int], dict[tuple[str, str], None]]:
    """Read the two files of GPT-2: the id of each token, and the merges in order, each once.

    Raises:
        TokenizerError: A file is invalid, or the two do not match: the message says where.
    """
    ids = read_json(vocab_path)
    if not all(type(token_id) is int for token_id in ids.values()) or len(set(ids.values())) < len(ids):
        raise TokenizerError(f"{vocab_path}: expected an integer for each token, and no integer twice")
    known = {token for token in ids if len(token) == 1}
    merges: dict[tuple[str, str], None] = {}
    for number, line in enumerate(Path(merges_path).read_text(encoding="utf-8").split("\n"), 1):
        pair = line.split(" ")
        if not line or (number == 1 and line.startswith("#version")):
            continue
        if len(pair) != 2 or not known.issuperset(pair) or "".join(pair) not in ids:
            where = f"{merges_path}, line {number}: {line!r}"
            raise TokenizerError(f"{where} is not two tokens of earlier lines whose merge has an id")
        known.add("".join(pair))
        merges.setdefault((pair[0], pair[1]))
    return ids, merges


def save_tokenizer(
    token_to_id: Mapping[str, int],
    merges: Iterable[tuple[str, str]],
    special_tokens: Mapping[str, int],
    save_directory: FilePath,
    tokenizer_name: str = "bpe_tokenizer",
) -> None:
    """Write the tokenizer of `words` to a directory: `tokenizer.json` and `tokenizer_config.json`.

    Args:
        token_to_id: The id of each token.
        merges: The merges, in order.
        special_tokens: The id of each special token.
        save_directory: The directory; it is made if it does not exist.
        tokenizer_name: A name for the config.
    """
    directory, lines = Path(save_directory), [f"{left} {right}" for left, right in merges]
    directory.mkdir(parents=True, exist_ok=True)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    by_id = sorted(special_tokens.items(), key=lambda entry: entry[1])
    saved = {
        "version": "1.0",
        "type": "BPE",
        "model": {"type": "BPE", "vocab": dict(token_to_id), "merges": lines},
        "special_tokens": {
            text: {"id": token_id, "content": text} for text, token_id in special_tokens.items()
        },
        "added_tokens": [{"id": token_id, "content": text, **flags} for text, token_id in by_id],
    }
    write_json(directory / "tokenizer.json", saved)
    roles = {"bos": ("bos", "begin"), "eos": ("eos", "end"), "unk": ("unk",), "pad": ("pad",)}
    config: dict[str, object] = {
        "tokenizer_class": "BPETokenizer",
        "model_max_length": 131_072,
        "tokenizer_name": tokenizer_name,
        "vocab_size": len(token_to_id),
        "num_merges": len(lines),
    }
    for role, words in roles.items():
        found = (text for text in special_tokens if any(word in text.lower() for word in words))
        config[f"{role}_token"] = next(found, None)
    write_json(directory / "tokenizer_config.json", config)


def load_tokenizer(
    load_directory: FilePath,
) -> tuple[dict[str, int], list[tuple[str, str]], dict[str, int]]:
    """Read what `save_tokenizer` wrote: the id of each token, the merges and the special tokens.

    Raises:
        FileNotFoundError: The directory has no `tokenizer.json`.
        TokenizerError: The file is not such a file.
    """
    path = Path(load_directory, "tokenizer.json")
    saved = read_json(path)
    try:
        special = saved.get("special_tokens", {}).items()
        merges = saved["model"]["merges"]  # Newer files of Hugging Face's write a merge as a list of two.
        pairs = [merge if isinstance(merge, list) else merge.split(" ", 1) for merge in merges]
        vocab = {str(token): int(token_id) for token, token_id in saved["model"]["vocab"].items()}
        return (
            vocab,
            [(str(left), str(right)) for left, right in pairs],
            {str(text): int(record["id"]) for text, record in special},
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TokenizerError(f"{path}: not a file of save_tokenizer: {error}") from error


def write_json(path: FilePath, value: object) -> None:
    """Write a JSON file."""
    Path(path).write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def read_json(path: FilePath) -> Any:
    """Read a JSON object, or raise a `TokenizerError`."""
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise TokenizerError(f"{path}: not a JSON file: {error}") from error
    if not isinstance(value, dict):
        raise TokenizerError(f"{path}: expected a JSON object, got a {type(value).__name__}")
    return value
