"""Storage: where an element of a shard lives.

Every order is a list of *digits* (axis, divisor, count), slowest first; an element's offset is the mixed-radix number
with digit values `(x[axis] // divisor) % count`, in elements. So an offset is a sum of one function per axis.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _storage
from .errors import BufferShapeError, OrderError, SizeError
from .layout import MAX_SIZE, ElementOrder, Precision, check_instance
from .ownership import MAX_RANK, order_needs
from .tables import Int64, check_rows, within_memory

REST = 0  # a digit's count where it is the rest of the axis' width


def digits(order: ElementOrder, precision: Precision, rank: int) -> tuple[tuple[int, int, int], ...]:
    """The digits of an order for a tensor's rank: (axis, divisor, count), slowest first; a count of 0 is the rest.

    Packed orders need rank 2 or more.
    """
    if order.name == "RowMajor":
        return tuple((axis, 1, REST) for axis in range(rank))
    r, c, lane = rank - 2, rank - 1, precision.lane
    outer = tuple((axis, 1, REST) for axis in range(r))
    if order.name in ("TransposedLeft", "TransposedOutput", "TransposedMatrix"):
        r, c = c, r  # the transposed orders are the others with the two axes exchanged
    match order.name:
        case "Left":
            return ((c, lane, REST), *outer, (r, 1, REST), (c, 1, lane))
        case "TransposedLeft":
            return (*outer, (c, lane, REST), (r, 1, REST), (c, 1, lane))
        case "Output":
            return ((c, 16, REST), *outer, (r, 1, REST), (c, 2, 4), (c, 8, 2), (c, 1, 2))
        case "TransposedOutput":
            return (*outer, (c, 16, REST), (r, 1, REST), (c, 2, 4), (c, 8, 2), (c, 1, 2))
        case "TransposedRight":
            return (*outer, (r, 16, REST), (c, lane, REST), (r, 1, 16), (c, 1, lane))
    rows, columns = order.row_block or 1, order.column_block or 1
    return (*outer, (r, rows, REST), (c, columns, REST), (r, lane, rows // lane), (c, 1, columns), (r, 1, lane))


def digit_table(order: ElementOrder, precision: Precision, rank: int) -> Int64:
    """`digits` as the kernels take them: (digits, 3) int64."""
    return np.array(digits(order, precision, rank), np.int64).reshape(-1, 3)


class StorageMap:
    """One shard's storage: coordinates to byte offsets, and back.

    Parameters
    ----------
    order : ElementOrder
    precision : Precision
    widths : sequence of int
        The shard's physical extents in elements, padding included.

    Raises
    ------
    OrderError
        If the widths do not meet the order's needs.
    """

    __slots__ = ("_table", "_widths", "bytes", "order", "precision", "widths")

    def __init__(self, order: ElementOrder, precision: Precision, widths: ArrayLike) -> None:
        check_instance(order, "order", ElementOrder)
        check_instance(precision, "precision", Precision)
        array = _integers(widths, "widths", 1)
        if len(array) and array.min() < 0:
            raise SizeError("negative width", where="widths", value=array.tolist(), accepted="at least 0")
        self.order, self.precision = order, precision
        self.widths: tuple[int, ...] = tuple(array.tolist())
        self.bytes: int = prod(self.widths) * precision.itemsize
        if self.bytes > MAX_SIZE or len(array) > MAX_RANK:
            raise SizeError(
                "the shard is too large", where="widths", value=self.widths, accepted=f"2^63-1 bytes, rank {MAX_RANK}"
            )
        if order.name != "RowMajor" and len(array) < 2:
            raise OrderError(f"{order} needs rank 2 or more", where="widths", value=self.widths)
        rows, columns, lane, block = order_needs(order, precision)
        met = block % lane == 0 and (order.name == "RowMajor" or (array[-2] % rows == 0 and array[-1] % columns == 0))
        if self.bytes and not met:
            raise OrderError(
                f"{order} of {precision} does not fit the widths",
                where="widths",
                value=self.widths,
                accepted=f"rows in multiples of {rows}, columns of {columns}, row blocks of {lane}",
            )
        self._widths = array
        self._table = digit_table(order, precision, len(array))

    def __repr__(self) -> str:
        return f"StorageMap({self.order} {self.precision} {list(self.widths)}, {self.bytes} bytes)"

    @within_memory
    def offset(self, coordinates: ArrayLike) -> Int64:
        """Byte offsets (n,) of coordinates (n, rank), in elements from the shard's start; padding included."""
        points = _integers(coordinates, "coordinates", 2)
        if points.shape[1] != len(self.widths):
            raise BufferShapeError(
                "wrong number of columns", where="coordinates", value=points.shape, accepted=f"(n, {len(self.widths)})"
            )
        out = np.empty(len(points), np.int64)
        bad = _storage.fill_offsets(self._table, self._widths, self.precision.itemsize, points, out)
        if bad >= 0:
            raise BufferShapeError(
                "outside the shard",
                where=f"coordinates[{bad}]",
                value=points[bad].tolist(),
                accepted=f"0 <= x < {list(self.widths)}",
            )
        return out

    @within_memory
    def coordinate(self, offsets: ArrayLike) -> Int64:
        """Coordinates (n, rank) of byte offsets (n,): the inverse of `offset`."""
        values = _integers(offsets, "offsets", 1)
        out = np.empty((len(values), len(self.widths)), np.int64)
        itemsize = self.precision.itemsize
        bad = _storage.fill_coordinates(self._table, self._widths, itemsize, values, self.bytes, out)
        if bad >= 0:
            raise BufferShapeError(
                "not the offset of an element",
                where=f"offsets[{bad}]",
                value=int(values[bad]),
                accepted=f"multiples of {itemsize} below {self.bytes}",
            )
        return out

    @within_memory
    def spans(self, start: ArrayLike, end: ArrayLike) -> Int64:
        """The maximal byte spans of a box, ascending: (k, 2) offset and bytes.

        The box is half-open, in elements from the shard's start, padding included.
        """
        low, high = _integers(start, "start", 1), _integers(end, "end", 1)
        if low.shape != high.shape or len(low) != len(self.widths):
            raise BufferShapeError(
                "wrong rank",
                where="start, end",
                value=(low.tolist(), high.tolist()),
                accepted=f"{len(self.widths)} numbers each",
            )
        if (low < 0).any() or (low > high).any() or (high > self._widths).any():
            raise BufferShapeError(
                "not a box of the shard",
                where="start, end",
                value=(low.tolist(), high.tolist()),
                accepted=f"0 <= start <= end <= {list(self.widths)}",
            )
        if (low == high).any():
            return np.empty((0, 2), np.int64)
        arguments = (self._table, self._widths, self.precision.itemsize, low, high)
        count = _storage.fill_spans(*arguments, None)
        check_rows(count, "spans", 16)
        out = np.empty((count, 2), np.int64)
        _storage.fill_spans(*arguments, out)
        return out


def _integers(values: Any, where: str, ndim: int) -> NDArray[np.int64]:
    """`values` as a C-contiguous int64 array; floats, booleans and unsigned numbers over 2^63-1 are refused."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        raise BufferShapeError("not an array", where=where, value=values, accepted=f"{ndim} dimensions") from None
    if array.size == 0 and not isinstance(values, np.ndarray):
        array = array.astype(np.int64).reshape(array.shape if array.ndim == ndim else (0,) * ndim)
    if array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise BufferShapeError(
            "not signed integers", where=where, value=str(array.dtype), accepted="int64, or what casts to it safely"
        )
    if array.ndim != ndim:
        raise BufferShapeError(
            "wrong number of dimensions", where=where, value=array.shape, accepted=f"{ndim} dimensions"
        )
    return np.ascontiguousarray(array, np.int64)
