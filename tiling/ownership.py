"""Ownership: which tile owns which region of a tensor, and how many bytes.

:func:`resolve` checks a type once and keeps what follows from it; :func:`enumerate_shards` lists its shards. Everything
downstream works from the columns made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from . import _ownership, _partition
from .errors import OrderError, OwnerError, SizeError, TableError, TilingError
from .layout import (
    MAX_SIZE,
    MAX_TILES,
    AxisTiling,
    ElementOrder,
    OwnerMap,
    Precision,
    TensorType,
    check_instance,
    check_integer,
)
from .tables import APART, BOX, Int32, Int64, Table, check_rows, within_memory

MAX_RANK = 32
IDENTITY = OwnerMap()


def exact_sum(column: Int64) -> int:
    """The sum of a column of sizes, which may be over 2^63-1: by halves, as numpy's own sum wraps."""
    low = column & (2**32 - 1)
    return (int(((column - low) >> 32).sum()) << 32) + int(low.sum())


@dataclass(frozen=True, slots=True, eq=False)
class ShardTable(Table):
    """The shards of a tensor, as columns; n shards of rank r, by ordinal, then by piece.

    Attributes
    ----------
    tile : (n,) int32
        The device tile that owns the shard.
    start, logical_end, physical_end : (n, r) int64
        Half-open bounds in elements of the tensor; the physical end is with the padding that the tiling adds.
    bytes, offset : (n,) int64
        The shard's physical size, and its offset in its tile's buffer.
    tile_bytes : (device tiles,) int64
        The size of each device tile's buffer.
    """

    KIND: ClassVar = "shards"

    tile: Int32
    start: Int64 = field(metadata=BOX)
    logical_end: Int64 = field(metadata=BOX)
    physical_end: Int64 = field(metadata=BOX)
    bytes: Int64
    offset: Int64
    tile_bytes: Int64 = field(metadata=APART)

    def __len__(self) -> int:
        return len(self.tile)

    def __repr__(self) -> str:
        return f"ShardTable({len(self)} shards on {len(self.tile_bytes)} tiles, {exact_sum(self.bytes)} bytes)"

    def _facts(self) -> dict[str, int]:
        return {"device_tiles": len(self.tile_bytes)}

    @classmethod
    def _restored(cls, columns: dict[str, Any], facts: Mapping[str, str]) -> Self:
        tile, bytes, offset = columns["tile"], columns["bytes"], columns["offset"]
        for low, high in pairwise(("start", "logical_end", "physical_end")):
            wrong = np.flatnonzero((columns[low] > columns[high]).any(axis=1))
            if len(wrong):
                row, where = wrong[0], f"{high}[{wrong[0]}]"
                accepted = f"from {low} {columns[low][row].tolist()}"
                raise TableError("falls short", where=where, value=columns[high][row].tolist(), accepted=accepted)
        # A tile's shards follow each other without gaps, so the last one's end is the size of the tile's buffer.
        order = np.argsort(tile, kind="stable")
        end = (offset + bytes)[order]
        begin = np.where(np.diff(tile[order], prepend=-1) != 0, 0, np.roll(end, 1))
        wrong = order[(offset[order] != begin) | (end < begin)]
        if len(wrong):
            what = "not where the tile's shard before it ends, or too large"
            raise TableError(what, where=f"offset[{wrong[0]}]", value=int(offset[wrong[0]]))
        said, least = facts.get("device_tiles", ""), int(tile.max(initial=0)) + 1
        if not (said.isdecimal() and len(said) <= 10 and int(said) >= least):
            where = "tiling.device_tiles"
            raise TableError("not the device's tiles", where=where, value=said, accepted=f"integers from {least}")
        check_rows(int(said), "tiles", 8)
        tile_bytes = np.zeros(int(said), np.int64)
        tile_bytes[tile[order]] = end
        return cls(**columns, tile_bytes=tile_bytes)


class AxisCut:
    """How one axis is cut; made once for an extent and an axis tiling, and shared by all types that have them.

    Attributes
    ----------
    bounds : (3, partitions) int64
        Start, logical end and physical end of each partition, in elements.
    widths, logical_widths : (partitions,) int64
        Physical and logical widths.
    distinct : tuple of int
        The different physical widths, ascending; at most two are not 0.
    widest, widest_logical, total : int
        The largest widths, and the sum of the physical ones.
    """

    __slots__ = (
        "bounds", "distinct", "extent", "logical_widths", "partitions", "total", "widest", "widest_logical", "widths",
    )  # fmt: skip

    def __init__(self, extent: int, bounds: Int64) -> None:
        bounds.flags.writeable = False
        self.extent, self.bounds = extent, bounds
        self.partitions = int(bounds.shape[1])
        self.widths: Int64 = bounds[2] - bounds[0]
        self.logical_widths: Int64 = bounds[1] - bounds[0]
        few = self.partitions < 4096  # a list of millions takes ten times the memory
        self.distinct: tuple[int, ...] = tuple(
            sorted(set(self.widths.tolist())) if few else np.unique(self.widths).tolist()
        )
        self.widest: int = self.distinct[-1]
        self.widest_logical = int(self.logical_widths.max())
        self.total = exact_sum(self.widths)


class Ownership:
    """What follows from a type's tiling alone: how each axis is cut, and which ordinal owns which combination.

    `strides` are the tile strides of all axes (1 where an axis is whole). For a linear tensor `cuts` has each axis
    whole, and `grain` its elements that are never cut apart; otherwise `grain` is 0. A *class* is a combination of
    partition coordinates; tiles of one class are replicas.
    """

    def __init__(self, type: TensorType, cuts: tuple[AxisCut, ...], strides: tuple[int, ...], grain: int) -> None:
        tiling = type.tiling
        self.type, self.cuts, self.strides, self.grain = type, cuts, strides, grain
        self.shape, self.rank = type.shape, len(type.shape)
        self.itemsize: int = type.precision.itemsize
        self.tile_count, self.replicas = tiling.tile_count, tiling.replicas
        self.is_linear = grain > 0

    @cached_property
    def is_stepped(self) -> bool:
        """Whether the tile number is a mixed-radix number of the partitions, with replicas in its gaps.

        Then every combination occurs equally often, and tiles can be gone through by stepping each coordinate.
        """
        running, gaps = 1, 1
        cut = sorted(
            (stride, c.partitions) for stride, c in zip(self.strides, self.cuts, strict=True) if c.partitions > 1
        )
        for stride, partitions in cut:
            gap, rest = divmod(stride, running)
            if rest or not gap:
                return False
            gaps *= gap
            running = stride * partitions
        return gaps * (self.tile_count // running) == self.replicas and self.tile_count % running == 0

    @cached_property
    def fullest(self) -> int:
        """The size of the fullest tile's buffer, in bytes."""
        if self.is_linear:
            grains = prod(self.shape) // self.grain
            return -(-grains // self.tile_count) * self.grain * self.itemsize
        return prod(cut.widest for cut in self.cuts) * self.itemsize

    @cached_property
    def class_strides(self) -> tuple[int, ...]:
        """What one partition of each axis adds to the class number (the last axis is the fastest)."""
        strides, stride = [], 1
        for cut in reversed(self.cuts):
            strides.append(stride)
            stride *= cut.partitions
        return tuple(reversed(strides))

    @cached_property
    def classes(self) -> tuple[Int32, Int64, Int32]:
        """The class of each ordinal (tile_count,), and CSR: rows (classes + 1,) into ordinals (tile_count,), ascending.

        A linear tensor has one class per tile.
        """
        check_rows(self.tile_count, "tiles", 16)
        of_tile = np.empty(self.tile_count, np.int32)
        row = np.empty(self.tile_count // self.replicas + 1, np.int64)
        tiles = np.empty(self.tile_count, np.int32)
        axes = [
            (stride, cut.partitions, s)
            for stride, cut, s in zip(self.strides, self.cuts, self.class_strides, strict=True)
            if cut.partitions > 1
        ]
        if self.is_linear:
            axes = [(1, self.tile_count, 1)]
        bad = _ownership.fill_classes(np.array(axes, np.int64).reshape(-1, 3), self.replicas, of_tile, row, tiles)
        if bad >= 0:
            at = tuple(bad // s % cut.partitions for cut, s in zip(self.cuts, self.class_strides, strict=True))
            raise TilingError(
                "the tile strides do not reach every partition equally: "
                f"partition {at} does not occur on {self.replicas} tiles",
                where="tiling.axes",
                value=[stride for stride, _, _ in axes],
                accepted="strides with which every combination of partitions occurs exactly `replicas` times",
            )
        return of_tile, row, tiles

    @cached_property
    def class_partitions(self) -> Int32:
        """The partition of each axis that a class has: (classes, rank) int32."""
        shape = tuple(cut.partitions for cut in self.cuts)
        if self.is_linear or not shape:
            return np.zeros((self.tile_count // self.replicas, self.rank), np.int32)
        return np.ascontiguousarray(np.indices(shape, np.int32).reshape(len(shape), -1).T)

    @cached_property
    def shard_axes(self) -> tuple[Int64, Int64]:
        """The axes as the shard table's kernel takes them.

        Of each axis the tile stride, the partitions and its first column of the bounds (rank, 3); and the bounds of all
        axes side by side (3, sum of partitions).
        """
        axes, first = np.empty((self.rank, 3), np.int64), 0
        for k, (stride, cut) in enumerate(zip(self.strides, self.cuts, strict=True)):
            axes[k] = stride, cut.partitions, first
            first += cut.partitions
        return axes, np.concatenate([np.empty((3, 0), np.int64), *(cut.bounds for cut in self.cuts)], axis=1)

    @cached_property
    def pieces(self) -> tuple[Int64, Int64, Int64, Int32]:
        """A linear tensor's row pieces.

        First element of each tile's interval (tiles + 1,), number of pieces before each tile (tiles + 1,), first
        element of each piece (pieces + 1,), and the ordinal that owns it (pieces,).
        """
        check_rows(self.tile_count, "tiles", 16)
        begin, first = np.empty(self.tile_count + 1, np.int64), np.empty(self.tile_count + 1, np.int64)
        count = _ownership.count_pieces(
            prod(self.shape) // self.grain, self.grain, self.tile_count, self.shape[-1], begin, first
        )
        check_rows(count, "shards of the linear tiling", 12)
        piece_begin, ordinal = np.empty(count + 1, np.int64), np.empty(count, np.int32)
        _ownership.fill_pieces(begin, first, self.shape[-1], piece_begin, ordinal)
        return begin, first, piece_begin, ordinal


@lru_cache(maxsize=16384)
def _cut_axis(extent: int, tiling: AxisTiling, entry: int) -> AxisCut:
    """Cut one axis; errors name the tiling's entry."""
    where = f"tiling.axes[{entry}]"
    parts, groups, block = tiling.partitions, tiling.padding_groups, tiling.block_size
    if parts % groups:
        raise TilingError(
            "the padding groups do not divide the partitions",
            where=f"{where}.padding_groups",
            value=groups,
            accepted=f"divisors of {parts}",
        )
    if extent % groups:
        raise TilingError(
            "the padding groups do not divide the extent",
            where=f"{where}.padding_groups",
            value=groups,
            accepted=f"divisors of {extent}",
        )
    if tiling.padding_multiple % block:
        raise TilingError(
            "the padded axis is not whole blocks",
            where=f"{where}.padding_multiple",
            value=tiling.padding_multiple,
            accepted=f"multiples of block_size {block}",
        )
    logical, per_group = extent // groups, parts // groups
    padded = -(-logical // tiling.padding_multiple) * tiling.padding_multiple
    widest = -(-(padded // block) // per_group) * block
    widest = -(-widest // tiling.shard_padding_multiple) * tiling.shard_padding_multiple
    if (groups + 1) * max(padded, widest) + widest > MAX_SIZE:
        raise SizeError(
            "the padded axis is too long", where=where, value=groups * padded, accepted="at most 2^63-1 elements"
        )
    check_rows(parts, "partitions", 48)
    bounds = np.empty((3, parts), np.int64)
    _partition.fill_bounds(
        logical,
        groups,
        per_group,
        block,
        padded // block,
        tiling.shard_padding_multiple,
        bounds[0],
        bounds[1],
        bounds[2],
    )
    if tiling.padding == "Reject":
        if padded != logical:
            raise TilingError(
                f"the axis needs padding from {logical} to {padded} elements under Reject",
                where=f"{where}.padding_multiple",
                value=tiling.padding_multiple,
                accepted=f'divisors of {logical}, or padding "Zero"',
            )
        padding = np.flatnonzero(bounds[2] - bounds[1])
        if len(padding):
            raise TilingError(
                f"partition {padding[0]} needs padding under Reject",
                where=f"{where}.shard_padding_multiple",
                value=tiling.shard_padding_multiple,
                accepted='a divisor of every partition\'s width, or padding "Zero"',
            )
    return AxisCut(extent, bounds)


@lru_cache(maxsize=4096)
def _whole(extent: int) -> AxisCut:
    return AxisCut(extent, np.array([[0], [extent], [extent]], np.int64))


def _check_linear(type: TensorType) -> None:
    tiling, axis = type.tiling, type.tiling.axes[0]
    if len(tiling.axes) > 1:
        raise TilingError(
            "Linear does not mix with other axes",
            where="tiling.axes",
            value=[a.axis for a in tiling.axes],
            accepted="Linear alone",
        )
    if not type.shape or prod(type.shape) == 0:
        raise TilingError("Linear needs rank 1 or more and at least one element", where="shape", value=list(type.shape))
    for name, value in (
        ("padding_groups", axis.padding_groups),
        ("shard_padding_multiple", axis.shard_padding_multiple),
    ):
        if value != 1:
            raise TilingError("Linear has none", where=f"tiling.axes[0].{name}", value=value, accepted="1")
    if axis.tile_stride is not None:
        raise TilingError(
            "Linear has no stride", where="tiling.axes[0].tile_stride", value=axis.tile_stride, accepted="None"
        )
    if tiling.replicas != 1:
        raise TilingError("Linear has no replicas", where="tiling.replicas", value=tiling.replicas, accepted="1")
    if axis.partitions != tiling.tile_count:
        raise TilingError(
            "tile_count is not what the partitions imply",
            where="tiling.tile_count",
            value=tiling.tile_count,
            accepted=str(axis.partitions),
        )
    grains, rest = divmod(prod(type.shape), axis.block_size)
    if rest:
        raise TilingError(
            f"the {prod(type.shape)} elements are not whole grains",
            where="tiling.axes[0].block_size",
            value=axis.block_size,
            accepted=f"divisors of {prod(type.shape)}",
        )
    if grains < tiling.tile_count:
        raise TilingError(
            f"fewer grains ({grains}) than tiles",
            where="tiling.tile_count",
            value=tiling.tile_count,
            accepted=f"at most {grains}",
        )


@lru_cache(maxsize=16384)
@within_memory
def resolve(type: TensorType) -> Ownership:
    """Check that a type's tiling and order fit its shape, and keep what follows from it.

    Raises
    ------
    TilingError, OrderError, SizeError
        Naming the axis or field.
    """
    shape, precision, layout = type.shape, type.format.precision, type.format.layout
    tiling, rank = layout.tiling, len(shape)
    if rank > MAX_RANK:
        raise SizeError("rank too high", where="shape", value=rank, accepted=f"ranks to {MAX_RANK}")
    if prod(shape) * precision.itemsize > MAX_SIZE:
        raise SizeError("the tensor is too large", where="shape", value=list(shape), accepted="at most 2^63-1 bytes")
    cuts = [_whole(extent) for extent in shape]
    strides = [1] * rank
    if tiling.is_linear:
        _check_linear(type)
        owned = Ownership(type, tuple(cuts), tuple(strides), tiling.axes[0].block_size)
        check_order(layout.order, precision, owned)
        return owned
    packed = tiling.replicas
    seen = 0
    for i, axis in enumerate(tiling.axes):
        a = axis.axis.resolve(rank)
        if not 0 <= a < rank:
            raise TilingError(
                f"axis out of range for rank {rank}",
                where=f"tiling.axes[{i}].axis",
                value=axis.axis,
                accepted=f"FromStart 0 to {rank - 1}, FromEnd 1 to {rank}" if rank else "no axes",
            )
        if seen >> a & 1:
            raise TilingError(f"axis {a} is tiled twice", where=f"tiling.axes[{i}].axis", value=axis.axis)
        seen |= 1 << a
        cuts[a] = _cut_axis(shape[a], axis, i)
        strides[a] = packed if axis.tile_stride is None else axis.tile_stride
        packed *= axis.partitions
    if packed != tiling.tile_count:
        raise TilingError(
            "tile_count is not replicas times the partitions",
            where="tiling.tile_count",
            value=tiling.tile_count,
            accepted=str(packed),
        )
    owned = Ownership(type, tuple(cuts), tuple(strides), 0)
    if owned.fullest > MAX_SIZE:
        raise SizeError("a shard is too large", where="tiling", value=tiling, accepted="at most 2^63-1 bytes")
    if not owned.is_stepped:
        owned.classes  # noqa: B018  (checks the strides)
    check_order(layout.order, precision, owned)
    return owned


@lru_cache(maxsize=1024)
def order_needs(order: ElementOrder, precision: Precision) -> tuple[int, int, int, int]:
    """What an order needs of a shard: (row divisor, column divisor, lane divisor, block that the lane divides)."""
    lane = precision.lane
    match order.name:
        case "Left":
            return 1, lane, 1, 1
        case "Output":
            return 1, 16, 1, 1
        case "TransposedLeft":
            return lane, 1, 1, 1
        case "TransposedOutput":
            return 16, 1, 1, 1
        case "TransposedRight":
            return 16, lane, 1, 1
        case "Matrix":
            return order.row_block or 1, order.column_block or 1, lane, order.row_block or 1
        case "TransposedMatrix":
            return order.column_block or 1, order.row_block or 1, lane, order.row_block or 1
    return 1, 1, 1, 1


def check_order(order: ElementOrder, precision: Precision, owned: Ownership) -> None:
    """Every shard with a stored element must meet the order's needs."""
    if order.name == "RowMajor":
        return
    if owned.rank < 2:
        raise OrderError(f"{order} needs rank 2 or more", where="order", value=f"rank {owned.rank}")
    rows, columns, lane, block = order_needs(order, precision)
    distinct = [cut.distinct for cut in owned.cuts]
    if owned.is_linear:
        distinct = [(1,)] * (owned.rank - 1) + [tuple(np.unique(np.diff(owned.pieces[2])).tolist())]
    if any(widths[-1] == 0 for widths in distinct):
        return
    for axis, divisor, name in ((-2, rows, "rows"), (-1, columns, "columns")):
        wrong = [width for width in distinct[axis] if width % divisor]
        if wrong:
            # A shard that shows it: this width, and a stored one of every other axis.
            shown = [widths[-1] for widths in distinct]
            shown[axis] = wrong[0]
            raise OrderError(
                f"{order} of {precision} needs {name} in multiples of {divisor}",
                where="order",
                value=f"a shard of widths {shown}",
                accepted=f"multiples of {divisor} on axis {axis}",
            )
    if block % lane:
        raise OrderError(
            f"{order} of {precision} needs row blocks in multiples of the lane",
            where="order.row_block",
            value=block,
            accepted=f"multiples of {lane}",
        )


def device_size(counts: list[tuple[int, OwnerMap | None]], device_tiles: int | None) -> int:
    """The number of tiles of the device: as given, or the larger of the tile counts and what embeddings name."""
    needed = max(count for count, _ in counts)
    if device_tiles is not None:
        device_tiles = check_integer(device_tiles, "device_tiles", 1, MAX_TILES)
    else:
        named = [max(o.embedding, default=-1) + 1 for _, o in counts if o is not None and o.embedding is not None]
        device_tiles = max(needed, *named) if named else needed
    if not needed <= device_tiles <= MAX_TILES:
        raise OwnerError(
            "too few tiles on the device", where="device_tiles", value=device_tiles, accepted=f"{needed} to 2^31-1"
        )
    return device_tiles


def owner_tiles(owners: OwnerMap | None, tile_count: int, device_tiles: int, where: str = "owners") -> Int32:
    """The device tile of each ordinal (tile_count,) int32."""
    owners = IDENTITY if owners is None else owners
    check_rows(tile_count, "tiles", 20)
    ordinals = np.arange(tile_count, dtype=np.int64)
    size = device_tiles if owners.embedding is None else len(owners.embedding)
    if owners.embedding is not None:
        if size < tile_count:
            raise OwnerError(
                "the embedding has fewer entries than the tiling has tiles",
                where=f"{where}.embedding",
                value=size,
                accepted=f"at least {tile_count}",
            )
        outside = [tile for tile in owners.embedding if tile >= device_tiles]
        if outside:
            raise OwnerError(
                "the embedding names a tile that the device does not have",
                where=f"{where}.embedding",
                value=outside[0],
                accepted=f"tiles 0 to {device_tiles - 1}",
            )
        if len(set(owners.embedding)) < size:
            raise OwnerError("the embedding names a tile twice", where=f"{where}.embedding", accepted="distinct tiles")
    if owners.rotation >= size:
        raise OwnerError(
            "the rotation is too large", where=f"{where}.rotation", value=owners.rotation, accepted=f"0 to {size - 1}"
        )
    turned = (ordinals + owners.rotation) % size
    if owners.embedding is None:
        return turned.astype(np.int32)
    return np.array(owners.embedding, np.int32)[turned]


@within_memory
def enumerate_shards(type: TensorType, owners: OwnerMap | None = None, device_tiles: int | None = None) -> ShardTable:
    """List a tensor's shards.

    Parameters
    ----------
    type : TensorType
    owners : OwnerMap, optional
        Where the tiling's ordinals are on the device; the identity by default.
    device_tiles : int, optional
        The device's tiles; by default the tile count, or more if an embedding names a higher tile.

    Returns
    -------
    ShardTable
        Its columns are parts of one block of memory, which any of them keeps alive.

    Raises
    ------
    TilingError, OrderError, OwnerError, SizeError
        If the type or the owner map is not legal.
    """
    check_instance(type, "type", TensorType)
    if owners is not None:
        check_instance(owners, "owners", OwnerMap)
    owned = resolve(type)
    device: Int32 | None = None  # the identity
    if owners is None and device_tiles is None:
        device_tiles = owned.tile_count
    else:
        device_tiles = device_size([(owned.tile_count, owners)], device_tiles)
        if owners is not None and owners != IDENTITY:
            device = owner_tiles(owners, owned.tile_count, device_tiles)
    rank = owned.rank
    count = len(owned.pieces[3]) if owned.is_linear else owned.tile_count
    check_rows(count, "shards", 24 * rank + 20)
    check_rows(device_tiles, "tiles", 8)
    # All columns in one block, in the kernels' order: short tables take one allocation, long ones get large pages.
    box, ends = count * rank, count * (3 * rank + 2) + device_tiles
    words = np.empty(ends + (count + 1) // 2, np.int64)
    if owned.is_linear:
        _, _, piece_begin, ordinal = owned.pieces
        shape = np.array(owned.shape, np.int64)
        _ownership.fill_linear_shards(shape, piece_begin, ordinal, device, owned.itemsize, device_tiles, words)
    else:
        axes, bounds = owned.shard_axes
        _ownership.fill_shards(axes, bounds, device, owned.itemsize, count, device_tiles, words)
    return ShardTable(
        words[ends:].view(np.int32)[:count],
        words[:box].reshape(count, rank),
        words[box : 2 * box].reshape(count, rank),
        words[2 * box : 3 * box].reshape(count, rank),
        words[3 * box : 3 * box + count],
        words[3 * box + count : 3 * box + 2 * count],
        words[3 * box + 2 * count : ends],
    )
