"""The rank files that the package carries, so that the best-known encodings need no download.

Each is the lengths of its tokens, a byte each, and then the tokens, compressed with LZMA. The ranks count
from 0. `pack` made them of the published files, whose content comes back to the byte.
"""

from __future__ import annotations

import base64
from importlib import resources
from importlib.util import find_spec
from itertools import accumulate, pairwise

__all__ = ["CARRIED", "pack", "rank_file"]

# By the SHA-256 of the published file, which two names may share.
CARRIED = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": "r50k_base",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": "cl100k_base",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": "o200k_base",
}


def pack(ranks: bytes) -> bytes:
    r"""Return a rank file, whose ranks count from 0, as the package carries it.

    >>> _unpack(pack(b"YWI= 0\nYw== 1\n"))
    b'YWI= 0\nYw== 1\n'
    """
    import lzma

    tokens = [base64.b64decode(line.split()[0]) for line in ranks.splitlines()]
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "pb": 0}]
    return lzma.compress(bytes(map(len, tokens)) + b"".join(tokens), filters=filters)


def rank_file(sha256: str) -> bytes | None:
    """Return the published file with this SHA-256; None if the package does not carry it.

    A Python that was built without LZMA reads none.
    """
    if sha256 not in CARRIED or find_spec("_lzma") is None:
        return None
    return _unpack(resources.files(__package__).joinpath(f"{CARRIED[sha256]}.xz").read_bytes())


def _unpack(packed: bytes) -> bytes:
    import lzma

    data = lzma.decompress(packed)
    # Each token has at least a byte, so the lengths end where their sum is what follows them.
    count, total = 0, 0
    while count + total < len(data):
        total += data[count]
        count += 1
    bounds = pairwise(accumulate(data[:count], initial=count))
    return b"".join(
        b"%s %d\n" % (base64.b64encode(data[start:end]), rank) for rank, (start, end) in enumerate(bounds)
    )
