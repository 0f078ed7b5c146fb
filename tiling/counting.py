"""Counts: how many transfers a copy needs, and how bad the busiest tile is, without a list."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .layout import CoordinateMapping, OwnerMap, TensorType
from .ownership import Int64
from .regions import Retile, Staging, retile
from .runs import runs


@dataclass(frozen=True)
class CopyCount:
    """A copy's totals; a multicast counts once, where it is sent.

    Attributes
    ----------
    transfers, local_runs : int
    bytes : int
        Sum of the transfers' sizes.
    misaligned : int
        Transfers whose offsets or size are not multiples of 4 bytes.
    sent_words, received_words : (device_tiles,) int64
        4-byte words, rounded up per transfer.
    """

    retile: Retile = field(repr=False)
    transfers: int
    local_runs: int
    bytes: int
    misaligned: int
    sent_words: Int64 = field(repr=False)
    received_words: Int64 = field(repr=False)

    @property
    def staging(self) -> Staging:
        return self.retile.staging

    @property
    def device_tiles(self) -> int:
        return self.retile.device_tiles

    @property
    def endpoint_lower_bound(self) -> int:
        """The busiest tile's words: no schedule of ordinary messages can finish in fewer cycles."""
        return int(max(self.sent_words.max(), self.received_words.max()))


def count_copy(
    source: TensorType,
    destination: TensorType,
    mapping: CoordinateMapping | None = None,
    *,
    staging: str = "auto",
    outside: str = "error",
    source_owners: OwnerMap | None = None,
    destination_owners: OwnerMap | None = None,
    device_tiles: int | None = None,
) -> CopyCount:
    """Count what :func:`tiling.plan_copy` would list, exactly; the arguments are the same."""
    copy = retile(
        source,
        destination,
        mapping,
        staging=staging,
        outside=outside,
        source_owners=source_owners,
        destination_owners=destination_owners,
        device_tiles=device_tiles,
    )
    return _count(copy)


def _count(copy: Retile) -> CopyCount:
    sent, received = np.zeros((2, copy.device_tiles), np.int64)
    totals = None if copy.mapping.view is not None else copy.analysis.count(sent, received)
    if totals is not None:
        transfers, _, local, elements = totals
        return CopyCount(copy, transfers, local, elements * copy.itemsize, 0, sent, received)
    transfers, _, local, size, misaligned = runs(copy).count(sent, received)
    return CopyCount(copy, transfers, local, size, misaligned, sent, received)
