"""Which whole documents fit into a shard with a limit of ids."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["documents_that_fit"]


def documents_that_fit(offsets: npt.NDArray[np.int64], start: int, held: int, limit: int) -> int:
    """Return the end of the documents that still fit into a shard.

    A document longer than the limit gets a shard for itself, and one without ids fits anywhere. So every
    shard has ids, and the shards do not depend on how the documents are batched.

    Args:
        offsets: The start of each document and the end of the last, in ids, int64.
        start: The first document that is not in a shard yet.
        held: Number of ids in the shard so far.
        limit: Maximum number of ids.

    Returns:
        The first document that does not fit; `start` if none does.

    >>> offsets = np.array([0, 4, 8, 20])
    >>> [documents_that_fit(offsets, *rest) for rest in [(0, 0, 9), (2, 8, 9), (2, 0, 9)]]
    [2, 2, 3]
    """
    begin = offsets[start]
    reach = begin + max(limit - held, 0)
    if held == 0:
        first_with_ids = int(np.searchsorted(offsets, begin, side="right"))
        reach = max(reach, offsets[min(first_with_ids, len(offsets) - 1)])
    return int(np.searchsorted(offsets, reach, side="right")) - 1
