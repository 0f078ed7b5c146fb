"""Buffers: real bytes in the layouts that the types say, and copies carried out on them.

:func:`pack` lays an array out as the tiles hold it, :func:`unpack` reads it back, and :func:`execute` carries a plan
out. What they agree on is the proof of a plan: executing it on packed buffers gives what packing the moved array gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import Any, Final, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import _buffers
from .copying import CopyPlan
from .errors import BufferShapeError, CopyError, SizeError
from .layout import MAX_SIZE, MAX_TILES, OwnerMap, TensorType, check_instance, check_integer
from .ownership import Ownership, ShardTable, enumerate_shards, resolve
from .storage import digit_table
from .tables import Int64

LINE = 64  # bytes
UNSIGNED: Final = {size: np.dtype(f"u{size}") for size in (1, 2, 4)}

UInt8 = NDArray[np.uint8]


class Placement:
    """Where the shards of a type are in the one block behind all tiles' buffers.

    Attributes
    ----------
    bytes, itemsize : int
    start : (device tiles + 1,) int64
        Where each tile's buffer begins, in bytes.
    shards, first : _buffers.Shards
        All shards, and those that hold an element first (of replicas the lowest).
    """

    __slots__ = ("__dict__", "bytes", "first", "itemsize", "owned", "shards", "start", "table")

    def __init__(self, owned: Ownership, table: ShardTable) -> None:
        self.owned, self.table, self.itemsize = owned, table, owned.itemsize
        self.start = _starts(table.tile_bytes)
        self.bytes = int(self.start[-1])
        digits = digit_table(owned.type.order, owned.type.precision, owned.rank)
        columns = (table.start, table.logical_end, table.physical_end, self.start[table.tile] + table.offset)
        self.shards = self.first = _buffers.Shards(owned.itemsize, digits, *columns)
        if owned.replicas > 1:
            _, row, ordinals = owned.classes
            lowest = ordinals[row[:-1]]
            self.first = _buffers.Shards(owned.itemsize, digits, *(column[lowest] for column in columns))

    @property
    def staged_start(self) -> Int64:
        """As `start`, for row-major staging buffers of logical widths."""
        return self._staged[0]

    @property
    def staged_at(self) -> Int64:
        """Where each shard begins in the staging block: (n,)."""
        return self._staged[1]

    @cached_property
    def _staged(self) -> tuple[Int64, Int64]:
        table = self.table
        if self.owned.is_linear:  # which has no padding, so that staging only reorders
            return self.start, self.start[table.tile] + table.offset
        sizes = np.zeros(len(table.tile_bytes), np.int64)
        sizes[table.tile] = (table.logical_end - table.start).prod(axis=1) * self.itemsize
        start = _starts(sizes)
        return start, start[table.tile]


def _starts(sizes: Int64) -> Int64:
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    starts.flags.writeable = False  # they are shared by all buffers of a placement
    return starts


@lru_cache(maxsize=32)
def _placement(type: TensorType, owners: OwnerMap | None, device_tiles: int | None) -> Placement:
    owned = resolve(type)
    if owned.fullest * owned.tile_count > MAX_SIZE:
        raise SizeError(
            "the tiles' buffers are too large together",
            where="type",
            value=owned.fullest * owned.tile_count,
            accepted="at most 2^63-1 bytes",
        )
    return Placement(owned, enumerate_shards(type, owners, device_tiles))


def _place(type: TensorType, owners: OwnerMap | None, device_tiles: int | None) -> Placement:
    """The placement of checked arguments; the last ones are kept."""
    check_instance(type, "type", TensorType)
    if owners is not None:
        check_instance(owners, "owners", OwnerMap)
    if device_tiles is not None:
        device_tiles = check_integer(device_tiles, "device_tiles", 1, MAX_TILES)
    return _placement(type, owners, device_tiles)


class Buffers(Sequence[UInt8]):
    """The buffers of all tiles for one tensor: `buffers[tile]` is a (bytes,) uint8 view of the one block `data`.

    Parameters
    ----------
    type : TensorType
    owners : OwnerMap, optional
        Where the tiling's ordinals are on the device; the identity by default.
    device_tiles : int, optional
        By default the tile count, or more if an embedding names a higher tile.
    data : (bytes,) uint8, optional
        The block: every tile's buffer one after the other, as it came back from a device, say. By default new memory,
        which holds anything.
    dtype : data-type, optional
        What `unpack` gives back; by default unsigned integers of the precision's size.

    Raises
    ------
    BufferShapeError
        If `data` is not a contiguous uint8 array of the right size, or `dtype` not of the right size.
    TilingError, OrderError, OwnerError, SizeError
        If the type or the owner map is not legal, or memory for it can't be had.
    """

    __slots__ = ("_placement", "data", "dtype", "owners", "type")

    def __init__(
        self,
        type: TensorType,
        owners: OwnerMap | None = None,
        device_tiles: int | None = None,
        data: UInt8 | None = None,
        *,
        dtype: DTypeLike | None = None,
    ) -> None:
        self._placement = _place(type, owners, device_tiles)
        self.type, self.owners = type, owners
        self.dtype = _item_type(UNSIGNED[self._placement.itemsize] if dtype is None else dtype, type, "dtype")
        self.data: UInt8 = _memory(self._placement) if data is None else data
        if data is not None:
            _check_block(data, self._placement.bytes, "data")

    def __reduce__(self) -> Any:
        return _restored, (self.type, self.owners, self.device_tiles, self.data, self.dtype)

    @property
    def start(self) -> Int64:
        """Where each tile's buffer begins in `data`, and where the last one ends; bytes, (device tiles + 1,) int64."""
        return self._placement.start

    @property
    def device_tiles(self) -> int:
        """The number of tiles of the device."""
        return len(self._placement.start) - 1

    def __len__(self) -> int:
        return self.device_tiles

    @overload
    def __getitem__(self, tile: int) -> UInt8: ...
    @overload
    def __getitem__(self, tile: slice) -> list[UInt8]: ...
    def __getitem__(self, tile: int | slice) -> UInt8 | list[UInt8]:
        if isinstance(tile, slice):
            return [self[i] for i in range(*tile.indices(len(self)))]
        index = tile + len(self) if tile < 0 else tile
        if not 0 <= index < len(self):
            raise IndexError(f"tile {tile} of {len(self)}")
        return self.data[self.start[index] : self.start[index + 1]]

    def __repr__(self) -> str:
        return f"Buffers({self.type} on {len(self)} tiles, {len(self.data)} bytes of {self.dtype})"


def _restored(
    type: TensorType, owners: OwnerMap | None, device_tiles: int, data: UInt8, dtype: np.dtype[Any]
) -> Buffers:
    return Buffers(type, owners, device_tiles, data, dtype=dtype)


def _aligned(size: int) -> UInt8:
    """New memory from a cache line's beginning on, so that large moves write whole lines."""
    block = np.empty(size + LINE, np.uint8)
    first = -block.ctypes.data % LINE
    return block[first : first + size]


def _memory(placement: Placement) -> UInt8:
    try:
        return _aligned(placement.bytes)
    except (MemoryError, ValueError):
        raise SizeError("no memory for the buffers", where="type", value=f"{placement.bytes} bytes") from None


def _check_block(data: Any, size: int, where: str) -> None:
    """`data` must be the one block behind buffers of `size` bytes."""
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 1:
        shown = f"{data.ndim}-dimensional {data.dtype}" if isinstance(data, np.ndarray) else type(data).__name__
        raise BufferShapeError("not a flat array of bytes", where=where, value=shown, accepted=f"({size},) uint8")
    if len(data) != size:
        raise BufferShapeError("wrong size", where=where, value=len(data), accepted=f"{size} bytes")
    if not data.flags.c_contiguous:
        raise BufferShapeError("not contiguous", where=where, value=data.strides, accepted="strides (1,)")


def _item_type(dtype: DTypeLike, type: TensorType, where: str) -> np.dtype[Any]:
    """A data-type whose items are the tensor's bytes as they are."""
    itemsize = type.precision.itemsize
    try:
        made = np.dtype(dtype)
    except (TypeError, ValueError):
        raise BufferShapeError(
            "not a data-type", where=where, value=dtype, accepted=f"any of {itemsize} bytes, such as uint{8 * itemsize}"
        ) from None
    if made.itemsize != itemsize or made.hasobject or made.subdtype is not None:
        raise BufferShapeError(
            f"wrong item size for {type.precision}",
            where=where,
            value=str(made),
            accepted=f"any of {itemsize} bytes, such as uint{8 * itemsize}",
        )
    if not made.isnative:
        raise BufferShapeError(
            "bytes in the other order than the machine's",
            where=where,
            value=made.str,
            accepted=f"{made.newbyteorder('=')} (as array.astype gives it)",
        )
    return made


def _as_items(array: NDArray[Any], type: TensorType, where: str) -> NDArray[Any]:
    """An array of the tensor's shape, seen as unsigned integers of its item size."""
    _item_type(array.dtype, type, f"{where}.dtype")
    if array.shape != type.shape:
        raise BufferShapeError("wrong shape", where=where, value=array.shape, accepted=f"{type.shape}, the tensor's")
    return array.view(UNSIGNED[array.itemsize])


def _check_out(out: Buffers, type: TensorType, placement: Placement, taken: NDArray[Any]) -> None:
    """Buffers to write into must be the ones that would have been made, and not the memory that is read."""
    check_instance(out, "out", Buffers)
    if out.type is not type and out.type != type:
        raise BufferShapeError("of another type", where="out.type", value=out.type, accepted=str(type))
    there = out._placement
    if there is not placement:
        if len(there.start) != len(placement.start):
            raise BufferShapeError(
                "of another number of tiles",
                where="out.device_tiles",
                value=out.device_tiles,
                accepted=str(len(placement.start) - 1),
            )
        if not np.array_equal(there.table.tile, placement.table.tile):
            raise BufferShapeError("on other tiles", where="out.owners", value=out.owners, accepted="the same owners")
    _check_block(out.data, placement.bytes, "out.data")
    if not out.data.flags.writeable:
        raise BufferShapeError("read-only", where="out.data", accepted="writable memory")
    if np.may_share_memory(out.data, taken):
        raise BufferShapeError("the memory that is read", where="out.data", accepted="memory of its own")


def pack(
    array: ArrayLike,
    type: TensorType,
    owners: OwnerMap | None = None,
    device_tiles: int | None = None,
    *,
    out: Buffers | None = None,
) -> Buffers:
    """Lay an array out as the tiles hold it.

    Parameters
    ----------
    array : array_like
        Of the type's shape; any data-type of the precision's size in the machine's byte order, any strides.
    type : TensorType
    owners : OwnerMap, optional
        Where the tiling's ordinals are on the device; the identity by default.
    device_tiles : int, optional
        By default the tile count, or more if an embedding names a higher tile.
    out : Buffers, optional
        Buffers of the same type, owners and device to write into.

    Returns
    -------
    Buffers
        All replicas filled, padding zero. It is `out` where that was given.

    Raises
    ------
    BufferShapeError
        If the array's shape or item size are not the type's, or `out` does not fit; nothing is written then.
    TilingError, OrderError, OwnerError, SizeError
        If the type or the owner map is not legal.
    """
    placement = _place(type, owners, device_tiles)
    try:
        given = np.asarray(array)
    except (TypeError, ValueError) as error:
        raise BufferShapeError(f"not an array ({error})", where="array", accepted=f"shape {type.shape}") from None
    items = _as_items(given, type, "array")
    if out is None:
        out = Buffers(type, owners, device_tiles, dtype=given.dtype)
    else:
        _check_out(out, type, placement, given)
        out.dtype = given.dtype
    placement.shards.pack(items, out.data)
    return out


def unpack(buffers: Buffers, *, dtype: DTypeLike | None = None, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Read an array back: the inverse of `pack`, each element from the lowest shard that holds it.

    Parameters
    ----------
    buffers : Buffers
    dtype : data-type, optional
        Of the precision's size; by default what was packed.
    out : array, optional
        An array of the tensor's shape to write into, of any strides.

    Raises
    ------
    BufferShapeError
        If `dtype` or `out` do not fit; nothing is written then.
    """
    check_instance(buffers, "buffers", Buffers)
    type, placement = buffers.type, buffers._placement
    _check_block(buffers.data, placement.bytes, "buffers.data")
    if out is None:
        item_type = buffers.dtype if dtype is None else _item_type(dtype, type, "dtype")
        try:
            memory = _aligned(prod(type.shape) * placement.itemsize)
        except (MemoryError, ValueError):
            raise SizeError("no memory for the array", where="type.shape", value=type.shape) from None
        out = memory.view(item_type).reshape(type.shape)
    else:
        check_instance(out, "out", np.ndarray)
        if dtype is not None and _item_type(dtype, type, "dtype") != out.dtype:
            raise BufferShapeError("not the asked data-type", where="out", value=str(out.dtype), accepted=str(dtype))
        _as_items(out, type, "out")
        if not out.flags.writeable:
            raise BufferShapeError("read-only", where="out", accepted="writable memory")
        if np.may_share_memory(out, buffers.data):
            raise BufferShapeError("the memory that is read", where="out", accepted="memory of its own")
    placement.first.unpack(_as_items(out, type, "out"), buffers.data)
    return out


def execute(plan: CopyPlan, buffers: Buffers, *, out: Buffers | None = None) -> Buffers:
    """Carry a plan out: the source tensor's buffers in, the destination tensor's buffers out.

    Stages where the plan stages, copies the local runs and the transfers, and zeroes what nothing writes.

    Parameters
    ----------
    plan : CopyPlan
    buffers : Buffers
        Of the plan's source type, on the tiles of its source owners.
    out : Buffers, optional
        Buffers of the plan's destination type, owners and device to write into.

    Raises
    ------
    CopyError
        If the buffers are not the plan's source, or a run of the plan lies outside a buffer.
    BufferShapeError
        If `out` does not fit; nothing is written then.
    """
    check_instance(plan, "plan", CopyPlan)
    check_instance(buffers, "buffers", Buffers)
    a, b = plan.retile.source, plan.retile.destination
    if buffers.type != a.type:
        raise CopyError("not the plan's source", where="buffers.type", value=buffers.type, accepted=str(a.type))
    here = buffers._placement
    source = _place(a.type, a.owners, plan.device_tiles)
    if here is not source and not np.array_equal(here.table.tile, source.table.tile):
        raise CopyError(
            "not on the tiles of the plan's source",
            where="buffers.owners",
            value=(buffers.owners, buffers.device_tiles),
            accepted=f"{a.owners or OwnerMap()} of {plan.device_tiles} tiles",
        )
    _check_block(buffers.data, here.bytes, "buffers.data")
    destination = _place(b.type, b.owners, plan.device_tiles)
    if out is None:
        out = Buffers(b.type, b.owners, plan.device_tiles, dtype=buffers.dtype)
    else:
        _check_out(out, b.type, destination, buffers.data)
        out.dtype = buffers.dtype

    sent, sent_start = buffers.data, here.start
    if a.staged:
        sent, sent_start = _scratch(int(here.staged_start[-1]), zeroed=False), here.staged_start
        here.shards.stage(False, sent, here.staged_at, buffers.data)
    got, got_start = out.data, destination.start
    if b.staged:
        got_start = destination.staged_start
        got = _scratch(int(got_start[-1]), zeroed=not _is_covered(plan))
    x, local, zeros = plan.transfers, plan.local, plan.zero_fill
    _raise_outside(
        "local",
        _buffers.carry(
            sent,
            sent_start,
            got,
            got_start,
            local.tile,
            local.source_offset,
            local.bytes,
            None,
            local.tile,
            local.destination_offset,
        ),
    )
    _raise_outside(
        "transfers",
        _buffers.carry(
            sent,
            sent_start,
            got,
            got_start,
            x.source_tile,
            x.source_offset,
            x.bytes,
            x.destination_start,
            x.destination_tile,
            x.destination_offset,
        ),
    )
    _raise_outside("zero_fill", _buffers.clear(got, got_start, zeros.tile, zeros.offset, zeros.bytes))
    if b.staged:
        destination.shards.stage(True, got, destination.staged_at, out.data)
    return out


def _scratch(size: int, zeroed: bool) -> UInt8:
    try:
        return np.zeros(size, np.uint8) if zeroed else np.empty(size, np.uint8)
    except (MemoryError, ValueError):
        raise SizeError("no memory for the staging buffers", where="plan", value=f"{size} bytes") from None


def _is_covered(plan: CopyPlan) -> bool:
    """Whether every logical element of the destination is moved, so that its staging buffer needs no zeros."""
    copy = plan.retile
    shape = copy.destination.owned.shape
    return all(0 <= o <= limit - extent for o, limit, extent in zip(copy.offsets, copy.viewed, shape, strict=True))


def _raise_outside(where: str, row: int) -> None:
    if row >= 0:
        raise CopyError("a run outside its tile's buffer", where=f"plan.{where}[{row}]", accepted="the plan as made")
