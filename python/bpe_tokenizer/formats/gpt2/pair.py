"""Finds GPT-2's two files, reads them, and checks them against each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

from bpe_tokenizer.atomic import unfinished
from bpe_tokenizer.errors import FormatError, TokenizerFileNotFoundError, shorten
from bpe_tokenizer.formats.capabilities import PRINTABLE_BYTES
from bpe_tokenizer.formats.files import decode_text, read_bytes
from bpe_tokenizer.formats.huggingface.config import OWN_KEY
from bpe_tokenizer.formats.json_file import Field, parse_json
from bpe_tokenizer.formats.probe import GPT2_PAIRS

__all__ = ["DIGEST", "digest", "find_pair", "merge_lines", "read_merges", "read_pair", "read_vocab"]

# The key under `OWN_KEY` of tokenizer_config.json with the digest of the two files.
DIGEST = "pair_sha256"


def find_pair(path: Path, merges: Path | None) -> tuple[Path, Path]:
    """Find the two files.

    Args:
        path: The directory of the two files, the vocabulary file, or the merges file under its usual name.
        merges: The merges file; None to find it.

    Returns:
        The paths of the vocabulary and of the merges.

    Raises:
        FormatError: A file is missing.
    """
    if merges is not None:
        return path, merges
    if path.is_dir():
        found = [pair for pair in GPT2_PAIRS if all((path / name).exists() for name in pair)]
        if len(found) == 1:
            return path / found[0][0], path / found[0][1]
        if found:
            raise FormatError(
                f"{path}: holds both {' and '.join(pair[0] for pair in found)}; give the path of one"
            )
        raise FormatError(f"{path}: holds neither vocab.json and merges.txt nor encoder.json and vocab.bpe")
    if not path.exists():
        raise TokenizerFileNotFoundError(f"{path}: no such file or directory")
    for pair in GPT2_PAIRS:
        for name in pair:
            if path.name.endswith(name):
                start = path.name.removesuffix(name)
                vocab, beside = (path.with_name(start + other) for other in pair)
                other = beside if path == vocab else vocab
                if not other.exists():
                    raise FormatError(
                        f"{path}: {other.name} is missing from its directory; a tokenizer needs both files"
                    )
                return vocab, beside
    raise FormatError(
        f"{path}: is not named vocab.json, merges.txt, encoder.json or vocab.bpe; pass the merges file too"
    )


def read_pair(vocab_path: Path, merges_path: Path) -> tuple[bytes, bytes]:
    """Return the bytes of the two files; if `save` wrote them, of the two that were saved together.

    Raises:
        FormatError: A file cannot be read, or only one of the files was replaced.
    """
    vocab, merges = read_bytes(vocab_path), read_bytes(merges_path)
    config_path = vocab_path.with_name("tokenizer_config.json")
    recorded = _recorded_digest(config_path) if vocab_path.name in dict(GPT2_PAIRS) else None
    if recorded is None:
        return vocab, merges
    # `save` moves the config into place first; a crash may leave the other files under temporary names.
    vocabs = [vocab, *map(read_bytes, unfinished(vocab_path))]
    others = [merges, *map(read_bytes, unfinished(merges_path))]
    for together in product(vocabs, others):
        if digest(*together) == recorded:
            return together
    raise FormatError(
        f"{config_path}: {OWN_KEY}.{DIGEST}: {vocab_path.name} and {merges_path.name} were not saved "
        f"together with it; save them again, or remove {OWN_KEY!r} from it if they were edited on purpose"
    )


def _recorded_digest(config_path: Path) -> str | None:
    if not config_path.exists():
        return None
    own = parse_json(config_path, read_bytes(config_path)).get(OWN_KEY)
    return None if own.is_null or own.get(DIGEST).is_null else own.get(DIGEST).text()


def digest(vocab: bytes, merges: bytes) -> str:
    """Return the SHA-256 of the digests of the two files."""
    return hashlib.sha256(hashlib.sha256(vocab).digest() + hashlib.sha256(merges).digest()).hexdigest()


def read_vocab(document: Field) -> dict[str, int]:
    """Return the token strings and their ids.

    Raises:
        FormatError: An id is invalid or a duplicate, or a byte has no token.
    """
    vocab = document.members()
    owners: dict[int, str] = {}
    for token, value in vocab.items():
        token_id = value if type(value) is int and 0 <= value < 2**32 - 1 else document.get(token).id()
        if owners.setdefault(token_id, token) != token:
            raise document.error(
                f"duplicate id {token_id}: tokens {shorten(owners[token_id])} and {shorten(token)}"
            )
    for written, byte in PRINTABLE_BYTES.items():
        if written not in vocab:
            raise document.error(
                f"has no token for the byte 0x{byte:02x}, written {shorten(written)}; it is not a vocabulary "
                "of GPT-2's kind"
            )
    return vocab


def read_merges(path: Path, data: bytes, vocab: Mapping[str, int]) -> tuple[list[tuple[str, str]], bool]:
    """Read the merges.

    Args:
        path: The file, for messages.
        data: Its bytes.
        vocab: The tokens that merges may name and make.

    Returns:
        The merges in the order of their ranks, without duplicates, and whether the last line ends in a
        newline.

    Raises:
        FormatError: A line is not a merge, or a token is not in the vocabulary.
    """
    merges: dict[tuple[str, str], None] = {}
    for where, left, right in merge_lines(str(path), data):
        for token in (left, right, left + right):
            if token not in vocab:
                raise FormatError(f"{where}: {shorten(token)} is not in the vocabulary")
        # Of duplicate merges the last counts, as in every other reader.
        merges.pop((left, right), None)
        merges[left, right] = None
    return list(merges), not data or data.endswith(b"\n")


def merge_lines(file: str, data: bytes) -> Iterator[tuple[str, str, str]]:
    r"""Yield the merges of a file: the place of each for messages, and its two tokens.

    Blank lines and a first line `#version` are skipped.

    Args:
        file: The file's name, for messages.
        data: Its bytes.

    Raises:
        FormatError: A line is not a merge.

    >>> list(merge_lines("merges.txt", b"#version: 0.2\na b\n"))
    [('merges.txt: line 2', 'a', 'b')]
    """
    lines = decode_text(data, file).split("\n")
    for number, line in enumerate((line.removesuffix("\r") for line in lines), 1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        left, _, right = line.partition(" ")
        where = f"{file}: line {number}"
        if not left or not right or " " in right:
            raise FormatError(
                f"{where}: {shorten(line)} is not a merge: it must be two tokens separated by a space"
            )
        yield where, left, right
