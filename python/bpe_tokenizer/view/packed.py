"""Packed models: a whole tokenizer in few bytes, which the page reads.

`crates/wasm/src/packed.rs` describes the format and reads it. It is not for files: another version of the
package may have another format. `BPETokenizer.save` writes files.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from bpe_tokenizer import _core

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["pack"]

_SIGNATURE = b"\x89BPE\x02"


def pack(tokenizer: BPETokenizer) -> bytes:
    r"""Return a tokenizer as one block of bytes.

    Args:
        tokenizer: A tokenizer with a vocabulary.

    Raises:
        NotTrainedError: The tokenizer has no vocabulary.

    >>> from bpe_tokenizer import BPETokenizer
    >>> tokenizer = BPETokenizer().train("low low lower", 258, verbose=False)
    >>> pack(tokenizer)[:4]
    b'\x89BPE'
    """
    core = tokenizer.model.core
    (vocab, merges), settings = cast("Any", core.__getnewargs_ex__())
    header = json.dumps([settings, _roles(tokenizer)], ensure_ascii=False, separators=(",", ":")).encode()
    ids, tokens = np.array(list(vocab), dtype=np.int64), list(vocab.values())
    steps = np.diff(ids, prepend=-1) - 1
    return b"".join(
        [
            _SIGNATURE,
            _numbers([len(header)]),
            header,
            _numbers([len(tokens)]),
            _numbers(steps),
            _numbers([len(token) for token in tokens]),
            *tokens,
            _packed_merges(vocab, merges, settings),
        ]
    )


def _roles(tokenizer: BPETokenizer) -> dict[str, str]:
    """Return the texts of the special tokens by role."""
    roles = {role: getattr(tokenizer, f"{role}_token") for role in ("bos", "eos", "pad", "unk")}
    return {role: text for role, text in roles.items() if text}


def _packed_merges(
    vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]], settings: dict[str, Any]
) -> bytes:
    if settings["ignore_merges"] and _core.Model(vocab, None, **settings).merges == merges:
        return _numbers([0])
    # Of tokens with the same bytes, the core knows the one with the lowest id by its bytes.
    ids = {token: token_id for token_id, token in sorted(vocab.items(), reverse=True)}
    products = np.array([ids[left + right] for left, right in merges], dtype=np.int64)
    steps = np.diff(products, prepend=0)
    zigzag = np.where(steps < 0, -2 * steps - 1, 2 * steps)
    return b"".join(
        [_numbers([1, len(merges)]), _numbers(zigzag), _numbers([len(left) for left, _ in merges])]
    )


def _numbers(values: list[int] | npt.NDArray[np.int64]) -> bytes:
    """Return numbers below 2**35 in LEB128: seven bits a byte, the lowest first."""
    rest = np.asarray(values, dtype=np.int64)
    groups = np.stack([rest >> shift & 0x7F for shift in range(0, 35, 7)], axis=1).astype(np.uint8)
    ends = np.array([1 << shift for shift in range(7, 35, 7)])
    lengths = 1 + (rest[:, None] >= ends).sum(axis=1)
    places = np.arange(5)
    groups[places < lengths[:, None] - 1] |= 0x80
    kept: npt.NDArray[np.uint8] = groups[places < lengths[:, None]]
    return kept.tobytes()
