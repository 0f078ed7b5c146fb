"""Short lists: a transfer list with its regular stretches folded to strided rows, and back.

DMA engines and exchange programs repeat a transfer by a count and a step. Neighbours of a list that go between the same
tiles, with equal sizes and constant steps, become one row; what comes back is the same list, value for value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul
from typing import ClassVar

import numpy as np

from . import _compact
from .errors import BufferShapeError
from .tables import EACH, POSITIVE, SIGNED, STARTS, Int32, Int64, Table, check_column, check_rows, check_starts

# A transfer list: source_tile, source_offset, bytes, destination_start, destination_tile, destination_offset.
Columns = tuple[Int32, Int64, Int64, Int64, Int32, Int64]


@dataclass(frozen=True, slots=True, eq=False)
class StridedTransfers(Table):
    """A transfer list in strided form: n rows to m destinations, in the list's order.

    Row i stands for `count[i]` transfers: the j-th, from 0, is read at `source_offset[i] + j * source_step[i]` and goes
    to each of the row's destinations, at their `destination_offset + j * destination_step[i]`.

    Attributes
    ----------
    source_tile : (n,) int32
    source_offset, bytes : (n,) int64
        Bytes; of the first transfer. All transfers of a row have its size.
    count : (n,) int64
        Transfers, 1 or more.
    source_step, destination_step : (n,) int64
        Bytes, of any sign; 0 where the count is 1, and a destination step of 0 where there are no destinations.
    destination_start : (n + 1,) int64
        Row i goes to rows `destination_start[i]` to `destination_start[i + 1]` of the destination columns.
    destination_tile : (m,) int32
    destination_offset : (m,) int64
        Bytes; of the first transfer.
    """

    KIND: ClassVar = "strided_transfers"
    LINE: ClassVar = "row"

    source_tile: Int32
    source_offset: Int64
    bytes: Int64
    count: Int64 = field(metadata=POSITIVE)
    source_step: Int64 = field(metadata=SIGNED)
    destination_step: Int64 = field(metadata=SIGNED)
    destination_start: Int64 = field(metadata=STARTS)
    destination_tile: Int32 = field(metadata=EACH)
    destination_offset: Int64 = field(metadata=EACH)

    def __len__(self) -> int:
        return len(self.source_tile)

    def __repr__(self) -> str:
        size = sum(map(mul, self.count.tolist(), self.bytes.tolist()))
        return f"StridedTransfers({len(self)} rows of {int(self.count.sum())} transfers, {size} bytes)"

    def expand(self) -> Columns:
        """The list, as new columns in the order of the fields of `Transfers`.

        Returns
        -------
        source_tile, source_offset, bytes, destination_start, destination_tile, destination_offset
            As they were given to :func:`compact`.

        Raises
        ------
        BufferShapeError
            If the columns don't go together.
        SizeError
            If the list has 2^31-1 rows or more.
        """
        head, repeats = self._head(), self._repeats()
        _check_list(head)
        for name, column in zip(("count", "source_step", "destination_step"), repeats, strict=True):
            check_column(name, column, np.int64, len(self))
        least, most, transfers, ends = _compact.count_transfers(self.destination_start, self.count)
        if least < 1:
            where = f"count[{int(self.count.argmin())}]"
            raise BufferShapeError("a row without transfers", where=where, value=least, accepted="from 1")
        for total in (most, transfers, ends):  # in this order: each is exact if those before it passed
            check_rows(total, "transfers")
        columns, _ = _empty(transfers, ends, 0)
        _compact.fill_transfers(head, repeats, columns)
        return columns

    def _head(self) -> Columns:
        """The rows' first transfers, as a list."""
        return (
            self.source_tile,
            self.source_offset,
            self.bytes,
            self.destination_start,
            self.destination_tile,
            self.destination_offset,
        )

    def _repeats(self) -> tuple[Int64, Int64, Int64]:
        return self.count, self.source_step, self.destination_step


def compact(
    source_tile: Int32,
    source_offset: Int64,
    bytes: Int64,
    destination_start: Int64,
    destination_tile: Int32,
    destination_offset: Int64,
) -> StridedTransfers:
    """Fold a transfer list, greedily and in its order.

    A row starts at the first transfer. The second joins it if it has the same source tile, size and list of destination
    tiles, and all its destination offsets are equally far from the first one's; that fixes both steps. Those after it
    join while all that stays the same, and the first that doesn't fit starts the next row. A row has one destination
    step: a multicast whose destinations advance by different steps is not folded.

    Only neighbours fold. A canonical list goes by source offset, so a tile that serves several others in turn has no
    two neighbours between the same tiles: its list stays as long as it is, at 64 bytes a row instead of 40.

    Parameters
    ----------
    source_tile : (n,) int32
    source_offset, bytes : (n,) int64
        Bytes.
    destination_start : (n + 1,) int64
        From 0 to m, never falling.
    destination_tile : (m,) int32
    destination_offset : (m,) int64
        Bytes.

    Raises
    ------
    BufferShapeError
        If the columns are not C-contiguous arrays of these types and lengths, or `destination_start` falls.
    """
    columns = (source_tile, source_offset, bytes, destination_start, destination_tile, destination_offset)
    _check_list(columns)
    single = np.empty(len(source_tile), np.uint8)
    rows, ends = _compact.mark_rows(columns, single)
    head, repeats = _empty(rows, ends, 3)
    _compact.fill_rows(columns, single, head, repeats)
    tile, offset, size, start, to_tile, to_offset = head
    count, source_step, destination_step = repeats
    return StridedTransfers(tile, offset, size, count, source_step, destination_step, start, to_tile, to_offset)


def _empty(transfers: int, ends: int, more: int) -> tuple[Columns, tuple[Int64, ...]]:
    """A list's columns to fill, and `more` int64 columns of n rows: all of them parts of one block.

    One large block comes from and goes back to the allocator at once; many smaller ones are new pages every time, which
    cost more than what is written to them.
    """
    lengths = (transfers, transfers, transfers + 1, ends, *[transfers] * more)
    stop = [*accumulate(lengths)]
    block = np.empty(stop[-1] * 8 + (transfers + ends) * 4, np.uint8)
    wide, tiles = block[: stop[-1] * 8].view(np.int64), block[stop[-1] * 8 :].view(np.int32)
    offset, size, start, to_offset, *others = (wide[j - n : j] for j, n in zip(stop, lengths, strict=True))
    return (tiles[:transfers], offset, size, start, tiles[transfers:], to_offset), tuple(others)


def _check_list(columns: Columns) -> None:
    """Refuse columns that the kernels can't trust: after this, every index in them is in range."""
    source_tile, source_offset, size, start, to_tile, to_offset = columns
    check_column("source_tile", source_tile, np.int32)
    check_column("destination_tile", to_tile, np.int32)
    transfers, ends = len(source_tile), len(to_tile)
    check_column("source_offset", source_offset, np.int64, transfers)
    check_column("bytes", size, np.int64, transfers)
    check_column("destination_start", start, np.int64, transfers + 1)
    check_column("destination_offset", to_offset, np.int64, ends)
    check_starts(start, ends)
