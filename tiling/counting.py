"""Counts: how many transfers a copy needs, and how bad the busiest tile is, without a list."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from . import _count as _kernel
from .layout import CoordinateMapping, OwnerMap, TensorType
from .ownership import Int64
from .regions import Retile, Staging, retile, side_table
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
    tiles = copy.device_tiles
    loads = np.zeros((2, tiles), np.int64)
    sent, received = loads
    totals = None if copy.mapping.view is not None else _closed_form(copy, sent, received)
    if totals is not None:
        transfers, _, local, elements = totals
        return CopyCount(copy, transfers, local, elements * copy.itemsize, 0, sent, received)
    transfers, _, local, size, misaligned = runs(copy).count(sent, received)
    return CopyCount(copy, transfers, local, size, misaligned, sent, received)


def _closed_form(copy: Retile, sent: Int64, received: Int64) -> tuple[int, int, int, int] | None:
    """Transfers, destinations, local runs and elements as products of per-axis sums; None where they must be walked.

    Only copies without misaligned transfers are decided.
    """
    a, b = copy.source, copy.destination
    if (a.owned.is_linear and a.order.name == "Output") or (b.owned.is_linear and b.order.name == "Output"):
        return None
    linear = a.owned if a.owned.is_linear else b.owned
    return _kernel.count(
        side_table(a.owned, a.staged),
        side_table(b.owned, b.staged),
        np.array(copy.offsets, np.int64),
        copy.shares_padding,
        np.array(linear.shape, np.int64),
        a.owned.grain | b.owned.grain,
        a.owned.shape == b.owned.shape and not any(copy.offsets),
        None if a.owners is None else a.device,
        None if b.owners is None else b.device,
        a.owned.classes[0] if a.owners is None else a.class_of_tile,
        b.owned.classes[0] if b.owners is None else b.class_of_tile,
        sent,
        received,
    )
