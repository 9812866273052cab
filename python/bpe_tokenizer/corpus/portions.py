"""Documents in portions of so many ids: a document is never cut."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["fitting"]


def fitting(offsets: npt.NDArray[np.int64], start: int, held: int, most: int) -> int:
    """Return the end of the documents that still fit into a portion.

    A document that is too long gets a portion of its own, and one without ids fits anywhere: so no portion
    is without ids, and however documents are batched, the portions are the same.

    Args:
        offsets: Where each document begins and the last ends, in ids.
        start: The first document that is in no portion yet.
        held: Ids that the portion has already.
        most: Ids that it should have at most.

    Returns:
        The first document that does not fit; `start` if none does.

    >>> offsets = np.array([0, 4, 8, 20])
    >>> fitting(offsets, 0, 0, 9), fitting(offsets, 2, 8, 9), fitting(offsets, 2, 0, 9)
    (2, 2, 3)
    """
    begin = offsets[start]
    reach = begin + max(most - held, 0)
    if held == 0:
        first_with_ids = int(np.searchsorted(offsets, begin, side="right"))
        reach = max(reach, offsets[min(first_with_ids, len(offsets) - 1)])
    return int(np.searchsorted(offsets, reach, side="right")) - 1
