"""Regions: who needs what of whom. One copy, checked and laid out as the kernels take it.

Along every axis the partitions of the two sides are overlaid into *segments*: stretches that one source partition holds
and one destination partition takes. Regions are products of segments, so these few rows say everything; no region is
ever listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any, Final, Literal, get_args

import numpy as np

from . import _fill, _partition
from ._count import Analysis
from ._sides import SideTable
from .errors import CopyError, LayoutError, SizeError
from .layout import (
    MAX_SIZE,
    ROW_MAJOR,
    CoordinateMapping,
    ElementOrder,
    OwnerMap,
    Precision,
    TensorType,
    check_choice,
    check_instance,
)
from .ownership import AxisCut, Ownership, device_size, owner_tiles, resolve
from .storage import REST, digits
from .tables import Int32, Int64, check_rows

Staging = Literal["none", "source", "destination", "both"]
StagingChoice = Literal["auto", "none", "source", "destination", "both"]
Outside = Literal["error", "zero"]

STAGINGS: Final[tuple[str, ...]] = get_args(StagingChoice)
IDENTITY: Final = CoordinateMapping()
UNMOVED: Final = OwnerMap()

# Columns of a segment row; see Segment in _copy.pxd.
X0, X1, Y0, PART, Z0, ZSTEP = range(6)


def resolve_staging(source: TensorType, destination: TensorType, staging: str) -> Staging:
    """What `auto` means for these two orders; other names stand for themselves."""
    check_choice(staging, "staging", STAGINGS)
    if staging != "auto":
        return staging  # type: ignore[return-value]
    a, b = source.order, destination.order
    if a == b:
        return "none"
    if a.lanes_along is not None and a.lanes_along == b.lanes_along and source.precision.itemsize < 4:
        return "none"
    if b.name == "RowMajor":
        return "source"
    return "destination" if a.name == "RowMajor" else "both"


class Side:
    """One side of a copy as transfers see it: staged sides are row-major with logical widths."""

    __slots__ = ("__dict__", "device_tiles", "owned", "owners", "staged")

    def __init__(self, owned: Ownership, staged: bool, owners: OwnerMap | None, device_tiles: int, where: str) -> None:
        self.owned, self.staged, self.device_tiles = owned, staged, device_tiles
        self.owners = None if owners == UNMOVED else owners
        if self.owners is not None:
            self.device = owner_tiles(owners, owned.tile_count, device_tiles, where)

    @property
    def type(self) -> TensorType:
        return self.owned.type

    @property
    def order(self) -> ElementOrder:
        return ROW_MAJOR if self.staged else self.type.order

    @cached_property
    def device(self) -> Int32:
        """The device tile of each ordinal: (tile_count,) int32."""
        return owner_tiles(None, self.owned.tile_count, self.device_tiles)

    @cached_property
    def widths(self) -> list[Int64]:
        """Stored widths of each axis' partitions."""
        return [cut.logical_widths if self.staged else cut.widths for cut in self.owned.cuts]

    @cached_property
    def class_of_tile(self) -> Int32:
        """The class that each device tile holds, or -1: (device tiles,)."""
        held = np.full(self.device_tiles, -1, np.int32)
        held[self.device] = self.owned.classes[0]
        return held

    @cached_property
    def groups(self) -> tuple[Int64, Int32]:
        """CSR of each class' device tiles, ascending."""
        of_tile, row, ordinals = self.owned.classes
        tiles = self.device[ordinals]
        if self.owned.replicas > 1:
            tiles = tiles[np.lexsort((tiles, of_tile[ordinals]))]
        return row, tiles


@dataclass(frozen=True, slots=True, eq=False)
class Overlays:
    """The segments of every axis; rows as `Segment` in `_copy.pxd`, without its last two columns.

    `rows[a]` says where each source partition's segments begin in `segments[a]`; `carried[a]` has the padding elements
    that segments carry into each destination partition. With a view, the coordinate of one destination axis (`joint`,
    -1 for none) is a sum over two source axes; `joint_segments` overlays it.
    """

    rows: list[Int64]
    segments: list[Int64]
    carried: list[Int64]
    joint: int
    joint_segments: Int64


@dataclass(eq=False)
class Retile:
    """One copy, checked. `viewed` is the shape that destination coordinates are offset into."""

    source: Side
    destination: Side
    staging: Staging
    mapping: CoordinateMapping
    viewed: tuple[int, ...]
    device_tiles: int

    def __getstate__(self) -> dict[str, Any]:
        """Analyses point into memory; whoever gets this copy from another process makes its own."""
        return {name: value for name, value in self.__dict__.items() if name not in ("analysis", "full_analysis")}

    @property
    def itemsize(self) -> int:
        return self.source.owned.itemsize

    @property
    def offsets(self) -> tuple[int, ...]:
        return self.mapping.offsets or (0,) * len(self.viewed)

    @property
    def shares_padding(self) -> bool:
        """Whether padding that both sides have is carried, so that it breaks no run."""
        return self.staging == "none" and self.mapping.view is None

    @cached_property
    def overlays(self) -> Overlays:
        return _overlays(self)

    @cached_property
    def is_stepped(self) -> bool:
        """Whether there is no view, and tiles can be stepped through in their own order."""
        if self.mapping.view is not None or self.source.owners is not None or self.destination.owners is not None:
            return False
        a, b = self.source.owned, self.destination.owned
        return a.replicas == 1 and a.is_stepped and b.is_stepped and not a.is_linear and not b.is_linear

    @cached_property
    def analysis(self) -> Analysis:
        """The closed form's analysis, of a copy without a view; enough to count."""
        return self._analyse(with_tiles=not self.is_stepped)

    @cached_property
    def full_analysis(self) -> Analysis:
        """The same, enough to list."""
        return self._analyse(with_tiles=True) if self.is_stepped else self.analysis

    def _analyse(self, with_tiles: bool) -> Analysis:
        a, b = self.source, self.destination
        tables = (side_table(a.owned, a.staged), side_table(b.owned, b.staged))
        device = None
        if with_tiles:
            for table, side in zip(tables, (a, b), strict=True):
                if not table.has_classes:
                    of_tile, row, ordinals = side.owned.classes
                    table.load_classes(of_tile, side.owned.class_partitions, row, ordinals)
            device = (
                None if a.owners is None else a.device,
                None if a.owners is None else np.argsort(a.device).astype(np.int32),
                None if b.owners is None else b.device,
                a.owned.classes[0] if a.owners is None else a.class_of_tile,
                b.owned.classes[0] if b.owners is None else b.class_of_tile,
            )
        return Analysis(
            tables[0],
            tables[1],
            np.array(self.offsets, np.int64),
            self.shares_padding,
            np.array((a if a.owned.is_linear else b).owned.shape, np.int64),
            a.owned.shape == b.owned.shape and not any(self.offsets),
            device,
        )

    @cached_property
    def totals(self) -> tuple[int, int, int, int, int] | None:
        """Transfers, destinations, local runs, elements and misaligned transfers; None where they must be walked."""
        return None if self.mapping.view is not None else self.analysis.count()

    @cached_property
    def is_regular(self) -> bool:
        """Whether the list is filled without looking for runs."""
        return self.totals is not None and _fill.is_filled(self.analysis)


def _overlay(source: Int64, destination: Int64, offset: int, share: bool) -> tuple[Int64, Int64, Int64]:
    """Rows, segments and carried padding of two (3, partitions) bounds; see `_partition.fill_overlay`."""
    rows = np.empty(source.shape[1] + 1, np.int64)
    segments = np.zeros((source.shape[1] + destination.shape[1], 6), np.int64)
    carried = np.empty(destination.shape[1], np.int64)
    count = _partition.fill_overlay(source, destination, offset, share, rows, segments, carried)
    return rows, segments[:count], carried


def _split_overlay(source: AxisCut, destination: AxisCut, offset: int, factor: int, width: int) -> tuple[Int64, Int64]:
    """A forward view's split axis: source coordinate h*width + v meets destination coordinate v - offset.

    h goes to the joint coordinate. The destination's partitions are laid out `factor` times, once per h.
    """
    parts = destination.partitions
    check_rows(factor * parts, "segments of the view", 200)
    low, high = (np.clip(bound + offset, 0, width) for bound in destination.bounds[:2])
    h = np.repeat(np.arange(factor, dtype=np.int64), parts)
    bounds = np.ascontiguousarray(
        [np.tile(low, factor) + h * width, np.tile(high, factor) + h * width, np.tile(high, factor) + h * width]
    )
    rows, segments, _ = _overlay(source.bounds, bounds, 0, False)
    owner = np.repeat(np.arange(source.partitions), np.diff(rows))
    head, part = np.divmod(segments[:, PART], parts)
    segments[:, Y0] = segments[:, X0] + source.bounds[0][owner] - head * width - offset - destination.bounds[0][part]
    segments[:, PART] = part
    segments[:, Z0] = head
    return rows, segments


def _merged_overlay(source: AxisCut, destination: AxisCut, offset: int, factor: int, width: int) -> tuple[Int64, Int64]:
    """A reversed view's merge axis: source coordinate m*factor + h meets destination coordinate m - offset.

    h * width goes to the joint coordinate, so every coordinate is a segment of its own.
    """
    check_rows(source.extent, "segments of the view", 160)
    merged = np.arange(source.extent, dtype=np.int64)
    m, h = np.divmod(merged, factor)
    whole = np.array([[0], [source.extent // factor], [source.extent // factor]], np.int64)
    _, over, _ = _overlay(whole, destination.bounds, offset, False)
    at = np.searchsorted(over[:, X1], m, side="right")
    held = at < len(over)
    held[held] = over[at[held], X0] <= m[held]
    filled = source.logical_widths > 0
    starts, owners = source.bounds[0][filled], np.flatnonzero(filled)
    merged, m, h, at = merged[held], m[held], h[held], at[held]
    owner = owners[np.searchsorted(starts, merged, side="right") - 1]
    x = merged - source.bounds[0][owner]
    segments = np.zeros((len(x), 6), np.int64)
    segments[:, X0], segments[:, X1] = x, x + 1
    segments[:, Y0] = over[at, Y0] + m - over[at, X0]
    segments[:, PART] = over[at, PART]
    segments[:, Z0] = h * width
    return np.searchsorted(owner, np.arange(source.partitions + 1)).astype(np.int64), segments


def _moving(source: AxisCut, step: int) -> tuple[Int64, Int64]:
    """The source axis that only the joint coordinate depends on: one segment per partition, `step` per coordinate."""
    filled = source.logical_widths > 0
    segments = np.zeros((int(filled.sum()), 6), np.int64)
    segments[:, X1] = source.logical_widths[filled]
    segments[:, Z0] = source.bounds[0][filled] * step
    segments[:, ZSTEP] = step
    return np.concatenate([[0], np.cumsum(filled)]).astype(np.int64), segments


def _view_shape(shape: tuple[int, ...], mapping: CoordinateMapping) -> tuple[int, ...]:
    """The shape that destination coordinates are offset into: the source's, or its view's."""
    view = mapping.view
    if view is None:
        return shape
    for name, axis in (("split_axis", view.split_axis), ("merge_axis", view.merge_axis)):
        if axis >= len(shape):
            raise CopyError(
                "axis out of range", where=f"mapping.view.{name}", value=axis, accepted=f"0 to {len(shape) - 1}"
            )
    narrow, wide = (view.merge_axis, view.split_axis) if view.reversed else (view.split_axis, view.merge_axis)
    if shape[narrow] % view.factor:
        raise CopyError(
            f"the factor does not divide axis {narrow}",
            where="mapping.view.factor",
            value=view.factor,
            accepted=f"divisors of {shape[narrow]}",
        )
    viewed = list(shape)
    viewed[narrow] //= view.factor
    viewed[wide] *= view.factor
    return tuple(viewed)


def _resolved(type: TensorType, where: str) -> Ownership:
    try:
        return resolve(type)
    except LayoutError as error:
        raise error.under(where) from None


def _check_inside(
    destination: tuple[int, ...], viewed: tuple[int, ...], offsets: tuple[int, ...], outside: str
) -> None:
    for axis, (extent, limit, offset) in enumerate(zip(destination, viewed, offsets, strict=True)):
        if outside == "error" and 0 not in destination and not 0 <= offset <= limit - extent:
            raise CopyError(
                f"axis {axis} of the destination reads {offset} to {offset + extent}, outside 0 to {limit}",
                where=f"mapping.offsets[{axis}]",
                value=offset,
                accepted=f"0 to {limit - extent}" if extent <= limit else 'outside="zero"',
            )
        if extent + limit + abs(offset) > MAX_SIZE // 4:
            raise SizeError(
                "coordinates too large", where=f"mapping.offsets[{axis}]", value=offset, accepted="sums below 2^61"
            )


def retile(
    source: TensorType, destination: TensorType, mapping: CoordinateMapping | None = None, **more: Any
) -> Retile:
    """Check a copy; the arguments are those of :func:`tiling.plan_copy`.

    What the last copies came to is kept: a planner asks for the same ones again, and a list is filled faster than its
    copy is analysed.
    """
    try:
        return _kept(source, destination, mapping, **more)
    except TypeError:  # something unhashable, which the checks name
        return check(source, destination, mapping, **more)


def check(
    source: TensorType,
    destination: TensorType,
    mapping: CoordinateMapping | None = None,
    *,
    staging: StagingChoice = "auto",
    outside: Outside = "error",
    source_owners: OwnerMap | None = None,
    destination_owners: OwnerMap | None = None,
    device_tiles: int | None = None,
) -> Retile:
    """Check a copy; see `retile`, which keeps the last ones."""
    check_instance(source, "source", TensorType)
    check_instance(destination, "destination", TensorType)
    mapping = IDENTITY if mapping is None else mapping
    check_instance(mapping, "mapping", CoordinateMapping)
    for where, owners in (("source_owners", source_owners), ("destination_owners", destination_owners)):
        if owners is not None:
            check_instance(owners, where, OwnerMap)
    check_choice(outside, "outside", ("error", "zero"))
    if source.precision != destination.precision:
        raise CopyError(
            "a copy does not change precision",
            where="destination.format.precision",
            value=destination.precision,
            accepted=str(source.precision),
        )
    if source.rank != destination.rank:
        raise CopyError(
            "the ranks differ", where="destination.shape", value=list(destination.shape), accepted=f"rank {source.rank}"
        )
    if mapping.offsets and len(mapping.offsets) != source.rank:
        raise CopyError(
            "wrong number of offsets",
            where="mapping.offsets",
            value=list(mapping.offsets),
            accepted=f"none, or {source.rank}",
        )
    viewed = _view_shape(source.shape, mapping)
    offsets = mapping.offsets or (0,) * source.rank
    _check_inside(destination.shape, viewed, offsets, outside)
    resolved = resolve_staging(source, destination, staging)
    a, b = _resolved(source, "source"), _resolved(destination, "destination")
    carried = prod(min(x.total, y.total) for x, y in zip(a.cuts, b.cuts, strict=True))
    if resolved == "none" and mapping.view is None and carried * a.itemsize > MAX_SIZE:
        raise SizeError(
            "the copy carries too much padding", where="destination", value=destination, accepted="at most 2^63-1 bytes"
        )
    tiles = device_size([(a.tile_count, source_owners), (b.tile_count, destination_owners)], device_tiles)
    return Retile(
        Side(a, resolved in ("source", "both"), source_owners, tiles, "source_owners"),
        Side(b, resolved in ("destination", "both"), destination_owners, tiles, "destination_owners"),
        resolved,
        mapping,
        viewed,
        tiles,
    )


_kept = lru_cache(maxsize=256)(check)


def _overlays(copy: Retile) -> Overlays:
    view, viewed = copy.mapping.view, copy.viewed
    rows: list[Int64] = []
    segments: list[Int64] = []
    carried: list[Int64] = []
    joint, joint_segments = -1, np.empty((0, 6), np.int64)
    cuts = zip(copy.source.owned.cuts, copy.destination.owned.cuts, copy.offsets, strict=True)
    for axis, (cut, other, offset) in enumerate(cuts):
        carry = np.zeros(other.partitions, np.int64)
        if view is None or axis not in (view.split_axis, view.merge_axis):
            row, over, carry = _overlay(cut.bounds, other.bounds, offset, copy.shares_padding)
        elif axis == (view.split_axis if view.reversed else view.merge_axis):
            joint = axis
            row, over = _moving(cut, 1 if view.reversed else view.factor)
            whole = np.array([[0], [viewed[axis]], [viewed[axis]]], np.int64)
            joint_segments = _overlay(whole, other.bounds, offset, False)[1]
        elif view.reversed:
            row, over = _merged_overlay(cut, other, offset, view.factor, copy.source.owned.shape[view.split_axis])
        else:
            row, over = _split_overlay(cut, other, offset, view.factor, viewed[axis])
        rows.append(row)
        segments.append(over)
        carried.append(carry)
    return Overlays(rows, segments, carried, joint, joint_segments)


# --- sides as the counting kernels take them -------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def moving_digits(
    order: ElementOrder, precision: Precision, rank: int, moves: tuple[bool, ...]
) -> tuple[tuple[int, int, int], ...]:
    """An order's digits, fastest first, without those that never move and with neighbours of one axis joined.

    (axis, divisor, count); a count of 0 is the rest of the axis, and `moves` says of each axis whether its rest moves
    anywhere. Two digits join where the slower one goes on where the faster one ends, so that steps through either are
    steps of one digit.
    """
    moving: list[tuple[int, int, int]] = []
    for axis, divisor, count in reversed(digits(order, precision, rank)):
        if count == 1 or (count == REST and not moves[axis]):
            continue
        if moving and moving[-1][0] == axis and moving[-1][1] * moving[-1][2] == divisor:
            divisor, count = moving[-1][1], moving[-1][2] * count
            moving.pop()
        moving.append((axis, divisor, count))
    return tuple(moving)


@lru_cache(maxsize=1024)
def rest_divisors(order: ElementOrder, precision: Precision, rank: int) -> tuple[int, ...]:
    """The divisor of the digit that is the rest of each axis."""
    rests = {axis: divisor for axis, divisor, count in digits(order, precision, rank) if count == REST}
    return tuple(rests[axis] for axis in range(rank))


@lru_cache(maxsize=16384)
def side_table(owned: Ownership, staged: bool) -> SideTable:
    """What the closed form needs of one side; made once for a resolved type."""
    order, precision = ROW_MAJOR if staged else owned.type.order, owned.type.precision
    divisors = rest_divisors(order, precision, owned.rank)
    moves = tuple(
        (cut.widest_logical if staged else cut.widest) > divisor
        for cut, divisor in zip(owned.cuts, divisors, strict=True)
    )
    table = SideTable(
        owned.itemsize,
        staged,
        [cut.bounds for cut in owned.cuts],
        owned.strides,
        moving_digits(order, precision, owned.rank, moves),
        owned.tile_count,
        owned.replicas,
        owned.is_stepped and not owned.is_linear,
    )
    if owned.is_linear:
        table.load_pieces(owned.pieces[1], owned.pieces[2], owned.grain, order.name == "Output")
    return table
