"""Ranks from the two files of https://github.com/openai/gpt-2, as tiktoken computes them for `gpt2`.

`vocab.bpe` holds the merges in order, `encoder.json` the ids.
"""

from __future__ import annotations

from pathlib import Path

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, shorten
from bpe_tokenizer.formats.capabilities import PRINTABLE_BYTES
from bpe_tokenizer.formats.gpt2.pair import merge_lines
from bpe_tokenizer.formats.json_file import parse_json

__all__ = ["ranks_from_data_gym"]

# Special tokens that an encoder.json may list with the ordinary tokens.
_SPECIAL = frozenset((b"<|endoftext|>", b"<|startoftext|>"))


def ranks_from_data_gym(
    vocab_bpe: bytes,
    encoder_json: bytes,
    *,
    clobber_one_byte_tokens: bool = False,
    names: tuple[str, str] = ("vocab.bpe", "encoder.json"),
) -> dict[bytes, int]:
    r"""Return the tokens of GPT-2's files and their ranks.

    Args:
        vocab_bpe: A line with the version, then one merge on each line; blank lines are skipped.
        encoder_json: Every token with its id.
        clobber_one_byte_tokens: Take the ids of single bytes from `encoder_json`. If false, they are 0 to
            255 in the order of GPT-2's printable characters, and `encoder_json` must agree.
        names: The names of the two files, for messages.

    Raises:
        FormatError: A file is broken, or the files contradict each other.

    >>> bytes_first = sorted(range(256), key=lambda byte: ord(_core.to_printable(bytes([byte]))))
    >>> tokens = [_core.to_printable(bytes([byte])) for byte in bytes_first] + ["ab"]
    >>> import json
    >>> ids = json.dumps({token: number for number, token in enumerate(tokens)}).encode()
    >>> ranks_from_data_gym(b"#version: 0.2\na b\n", ids)[b"ab"]
    256
    """
    ranks = {bytes([PRINTABLE_BYTES[text]]): rank for rank, text in enumerate(sorted(PRINTABLE_BYTES))}
    for token in _merged_tokens(vocab_bpe, names[0]):
        if token in ranks:
            raise FormatError(f"{names[0]}: duplicate token {shorten(token)}: two lines make it")
        ranks[token] = len(ranks)
    listed = _listed(encoder_json, names[1])
    if clobber_one_byte_tokens:
        ranks |= {token: rank for token, rank in listed.items() if len(token) == 1}
    if ranks != listed:
        token = min(token for token, _ in ranks.items() ^ listed.items())
        raise FormatError(
            f"{names[1]}: the token {shorten(token)} has the id {listed.get(token)}, "
            f"but the rank {ranks.get(token)} in {names[0]}"
        )
    return ranks


def _merged_tokens(vocab_bpe: bytes, name: str) -> list[bytes]:
    if not vocab_bpe.startswith(b"#version"):
        raise FormatError(f"{name}: line 1 must be the version, like '#version: 0.2'")
    return [_to_bytes(where, left + right) for where, left, right in merge_lines(name, vocab_bpe)]


def _to_bytes(where: str, written: str) -> bytes:
    token = _core.from_printable(written)
    if token is None:
        raise FormatError(f"{where}: {shorten(written)} has a character outside the 256 printable bytes")
    return token


def _listed(encoder_json: bytes, name: str) -> dict[bytes, int]:
    document = parse_json(Path(name), encoder_json)
    tokens = {_to_bytes(name, written): written for written in document.members()}
    return {token: document.get(tokens[token]).id() for token in tokens if token not in _SPECIAL}
