"""Copies: which bytes go from which tile to which, as a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import ClassVar

import numpy as np

from . import _fill, _storage
from .compacting import StridedTransfers, compact
from .errors import AlignmentError, TooManyTransfersError
from .layout import CoordinateMapping, OwnerMap, TensorType, check_instance, check_integer
from .ownership import exact_sum
from .regions import Outside, Retile, Staging, StagingChoice, retile
from .runs import runs, walked
from .storage import digit_table
from .tables import EACH, STARTS, Int32, Int64, Table, check_rows, within_memory


@dataclass(frozen=True, slots=True, eq=False)
class Transfers(Table):
    """A transfer list, as columns in CSR form: n transfers to m destinations, by source tile, then source offset.

    Attributes
    ----------
    source_tile : (n,) int32
    source_offset, bytes : (n,) int64
        Bytes; offsets are into the tile's buffer (or its staging buffer).
    destination_start : (n + 1,) int64
        Transfer i goes to rows `destination_start[i]` to `destination_start[i + 1]` of the destination columns.
    destination_tile : (m,) int32
        Ascending within a transfer.
    destination_offset : (m,) int64
    """

    KIND: ClassVar = "transfers"

    source_tile: Int32
    source_offset: Int64
    bytes: Int64
    destination_start: Int64 = field(metadata=STARTS)
    destination_tile: Int32 = field(metadata=EACH)
    destination_offset: Int64 = field(metadata=EACH)

    def __len__(self) -> int:
        return len(self.source_tile)

    def compact(self) -> StridedTransfers:
        """The same list in strided form: neighbours of the same tiles and size at constant steps are one row.

        `Transfers(*strided.expand())` is this list again.
        """
        return compact(
            self.source_tile,
            self.source_offset,
            self.bytes,
            self.destination_start,
            self.destination_tile,
            self.destination_offset,
        )

    def __repr__(self) -> str:
        return f"Transfers({len(self)} to {len(self.destination_tile)} destinations, {exact_sum(self.bytes)} bytes)"


@dataclass(frozen=True, slots=True, eq=False)
class LocalRuns(Table):
    """Copies inside a tile, as columns of n rows: by tile, source offset, destination offset; all in bytes."""

    KIND: ClassVar = "local_runs"

    tile: Int32
    source_offset: Int64
    bytes: Int64
    destination_offset: Int64

    def __len__(self) -> int:
        return len(self.tile)

    def __repr__(self) -> str:
        return f"LocalRuns({len(self)}, {exact_sum(self.bytes)} bytes)"


@dataclass(frozen=True, slots=True, eq=False)
class Spans(Table):
    """Byte spans of tiles' buffers, as columns of n rows: by tile, then offset."""

    KIND: ClassVar = "spans"

    tile: Int32
    offset: Int64
    bytes: Int64

    def __len__(self) -> int:
        return len(self.tile)

    def __repr__(self) -> str:
        return f"Spans({len(self)}, {exact_sum(self.bytes)} bytes)"


@dataclass(frozen=True)
class CopyPlan:
    """What a copy does: transfers between tiles, runs inside tiles, and spans to zero.

    Attributes
    ----------
    transfers : Transfers
    local : LocalRuns
    """

    retile: Retile = field(repr=False)
    transfers: Transfers
    local: LocalRuns

    @property
    def staging(self) -> Staging:
        """As resolved: "none", "source", "destination" or "both"."""
        return self.retile.staging

    @property
    def device_tiles(self) -> int:
        """The number of tiles of the device."""
        return self.retile.device_tiles

    @property
    def source(self) -> TensorType:
        """The type that is read."""
        return self.retile.source.type

    @property
    def destination(self) -> TensorType:
        """The type that is written."""
        return self.retile.destination.type

    @cached_property
    def zero_fill(self) -> Spans:
        """What of the destination's buffers nothing writes; empty where the destination is staged.

        Raises
        ------
        SizeError
            If there are 2^31-1 spans or more.
        """
        return _zero_fill(self.retile)


@within_memory
def plan_copy(
    source: TensorType,
    destination: TensorType,
    mapping: CoordinateMapping | None = None,
    *,
    staging: StagingChoice = "auto",
    outside: Outside = "error",
    source_owners: OwnerMap | None = None,
    destination_owners: OwnerMap | None = None,
    device_tiles: int | None = None,
    require_aligned: bool = False,
    max_transfers: int | None = None,
) -> CopyPlan:
    """List the transfers that give a tensor a new tiling, order, or both.

    Parameters
    ----------
    source, destination : TensorType
        Of one precision and one rank.
    mapping : CoordinateMapping, optional
        Destination coordinate d takes the value at d + offsets, seen through the view; the identity by default.
    staging : {"auto", "none", "source", "destination", "both"}
        Which sides go through a row-major buffer; "auto" stages where the orders don't let bytes move directly.
    outside : {"error", "zero"}
        What to do with destination coordinates that read outside the source.
    source_owners, destination_owners : OwnerMap, optional
    device_tiles : int, optional
        By default the larger of the tile counts, or more if an embedding names a higher tile.
    require_aligned : bool
        Make a transfer whose offsets or size are not multiples of 4 bytes an error.
    max_transfers : int, optional
        Refuse a copy with more transfers before anything is listed.

    Raises
    ------
    CopyError, TilingError, OrderError, OwnerError, SizeError
        If the copy is not legal.
    AlignmentError
        Naming the first misaligned transfer, with `require_aligned`.
    TooManyTransfersError
        With the exact count, if it is over `max_transfers`.
    """
    check_instance(require_aligned, "require_aligned", bool)
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
    kernel = None if copy.is_regular else runs(copy)
    totals = copy.totals
    misaligned = 0
    if totals is None:
        assert kernel is not None
        count, ends, local, _, misaligned = walked(kernel)
    else:
        count, ends, local, _, misaligned = totals
    if max_transfers is not None and count > check_integer(max_transfers, "max_transfers", 0):
        raise TooManyTransfersError(
            "too many transfers", where="max_transfers", value=count, accepted=f"at most {max_transfers}"
        )
    for rows in (count, local, ends):  # in this order: the last is exact if the first passed
        check_rows(rows, "transfers", 28)
    transfers, inside = _allocate(count, ends, local)
    columns = (
        transfers.source_tile,
        transfers.source_offset,
        transfers.bytes,
        transfers.destination_start,
        transfers.destination_tile,
        transfers.destination_offset,
        inside.tile,
        inside.source_offset,
        inside.bytes,
        inside.destination_offset,
    )
    if kernel is None:
        filled = _fill.fill(copy.full_analysis, copy.destination.groups[1], *columns)
    else:
        filled = kernel.fill(*columns)
    assert filled == (count, ends, local), "the list is not as long as the count"
    if require_aligned and misaligned:
        raise _misaligned(transfers, misaligned)
    return CopyPlan(copy, transfers, inside)


def _allocate(count: int, ends: int, local: int) -> tuple[Transfers, LocalRuns]:
    """Unfilled columns, all in one block: one allocation is one trip to the system, and large ones get large pages."""
    rows = [count, count, count + 1, ends, local, local, local, count, ends, local]  # int64 columns first, then int32
    starts = [0, *accumulate(8 * n for n in rows[:7])]
    starts += [starts[-1] + n for n in accumulate(4 * n for n in rows[7:])]
    block = np.empty(starts[-1], np.uint8)
    wide = [np.ndarray(n, np.int64, block, at) for n, at in zip(rows[:7], starts, strict=False)]
    narrow = [np.ndarray(n, np.int32, block, at) for n, at in zip(rows[7:], starts[7:], strict=False)]
    return (
        Transfers(narrow[0], wide[0], wide[1], wide[2], narrow[1], wide[3]),
        LocalRuns(narrow[2], wide[4], wide[5], wide[6]),
    )


def _misaligned(x: Transfers, count: int) -> AlignmentError:
    ends = x.destination_offset[x.destination_start[:-1]]
    i = int(np.flatnonzero((x.source_offset | x.bytes | ends) & 3)[0])
    return AlignmentError(
        f"{count} transfers are not whole 4-byte words; the first goes from tile {x.source_tile[i]} "
        f"offset {x.source_offset[i]} "
        f"to tile {x.destination_tile[x.destination_start[i]]} offset {ends[i]}, {x.bytes[i]} bytes",
        where=f"transfers[{i}]",
        accepted="offsets and sizes in multiples of 4",
    )


@within_memory
def _zero_fill(copy: Retile) -> Spans:
    side = copy.destination
    if side.staged:
        return Spans(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64))
    owned, rank = side.owned, side.owned.rank
    if owned.is_linear:
        tile, start, width = _piece_boxes(side.device, owned.shape, owned.pieces[2], owned.pieces[3])
        low = np.empty_like(start)
        high = np.empty_like(start)
        for axis, (limit, offset) in enumerate(zip(copy.viewed, copy.offsets, strict=True)):
            low[:, axis] = np.clip(-offset - start[:, axis], 0, width[:, axis])
            high[:, axis] = np.clip(limit - offset - start[:, axis], 0, width[:, axis])
        partial = np.flatnonzero((low > 0).any(axis=1) | (high < width).any(axis=1))
        # A tile's gaps need all its pieces, so that offsets add up.
        chosen = np.flatnonzero(np.isin(tile, tile[partial]))
    else:
        order = np.argsort(side.device, kind="stable")
        of_tile = owned.classes[0][order].astype(np.int64)
        tile = side.device[order]
        low, high, width = (np.empty((len(tile), rank), np.int64) for _ in range(3))
        for axis, cut in enumerate(owned.cuts):
            part = of_tile // owned.class_strides[axis] % cut.partitions
            begin = cut.bounds[0] + copy.offsets[axis]
            covered = np.clip(copy.viewed[axis] - begin, 0, cut.logical_widths) + copy.overlays.carried[axis]
            low[:, axis] = np.clip(-begin, 0, cut.logical_widths)[part]
            high[:, axis] = covered[part]
            width[:, axis] = cut.widths[part]
        chosen = np.flatnonzero((low > 0).any(axis=1) | (high < width).any(axis=1))
    rows = (
        digit_table(side.order, side.type.precision, rank),
        np.ascontiguousarray(tile[chosen]),
        np.ascontiguousarray(width[chosen]),
        np.ascontiguousarray(low[chosen]),
        np.ascontiguousarray(high[chosen]),
        owned.itemsize,
    )
    count = _storage.fill_gaps(*rows, None, None)
    check_rows(count, "spans", 20)
    tiles, spans = np.empty(count, np.int32), np.empty((count, 2), np.int64)
    _storage.fill_gaps(*rows, tiles, spans)
    return Spans(tiles, np.ascontiguousarray(spans[:, 0]), np.ascontiguousarray(spans[:, 1]))


def _piece_boxes(device: Int32, shape: tuple[int, ...], begin: Int64, ordinal: Int32) -> tuple[Int32, Int64, Int64]:
    """Device tile (n,), start (n, rank) and widths (n, rank) of a linear tensor's pieces, by device tile."""
    start = np.stack(np.unravel_index(begin[:-1], shape), axis=1).astype(np.int64)
    width = np.ones_like(start)
    width[:, -1] = np.diff(begin)
    tile = device[ordinal]
    order = np.argsort(tile, kind="stable")
    return tile[order], start[order], width[order]
