"""Counts: how many transfers a copy needs, and how bad the busiest tile is, without a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, Self

import numpy as np

from ._count import count_many
from .errors import FieldError, LayoutError, TableError
from .layout import CoordinateMapping, OwnerMap, TensorType, check_instance
from .ownership import MAX_RANK
from .regions import Outside, Retile, Staging, StagingChoice, check, retile, side_table
from .runs import runs, walked
from .tables import Int32, Int64, Table, check_rows, within_memory

CHUNK: Final = 256  # copies that `count_copies` counts in one call of the kernel


@dataclass(frozen=True, slots=True, eq=False)
class TileLoads(Table):
    """What each tile of a device has to send and to receive, as columns of n = device tiles rows.

    Attributes
    ----------
    tile : (n,) int32
        0, 1, .. n - 1.
    sent_words, received_words : (n,) int64
        4-byte words, rounded up per transfer; a multicast is sent once.
    """

    KIND: ClassVar = "tile_loads"

    tile: Int32
    sent_words: Int64
    received_words: Int64

    @classmethod
    def of(cls, sent_words: Int64, received_words: Int64) -> Self:
        return cls(np.arange(len(sent_words), dtype=np.int32), sent_words, received_words)

    def __len__(self) -> int:
        return len(self.tile)

    def __repr__(self) -> str:
        return f"TileLoads({len(self)} tiles)"

    @classmethod
    def _restored(cls, columns: dict[str, Any], facts: Mapping[str, str]) -> Self:
        wrong = np.flatnonzero(columns["tile"] != np.arange(len(columns["tile"])))
        if len(wrong):
            where, value = f"tile[{wrong[0]}]", int(columns["tile"][wrong[0]])
            raise TableError("not the tile", where=where, value=value, accepted=f"{wrong[0]}")
        return cls(**columns)


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
        """As resolved: "none", "source", "destination" or "both"."""
        return self.retile.staging

    @property
    def device_tiles(self) -> int:
        """The number of tiles of the device."""
        return self.retile.device_tiles

    @property
    def tile_loads(self) -> TileLoads:
        """The sent and received words as a table; the columns are this count's own."""
        return TileLoads.of(self.sent_words, self.received_words)

    @property
    def endpoint_lower_bound(self) -> int:
        """The busiest tile's words: no schedule of ordinary messages can finish in fewer cycles."""
        return int(max(self.sent_words.max(), self.received_words.max()))


@within_memory
def count_copy(
    source: TensorType,
    destination: TensorType,
    mapping: CoordinateMapping | None = None,
    *,
    staging: StagingChoice = "auto",
    outside: Outside = "error",
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
    check_rows(copy.device_tiles, "tiles", 16)
    sent, received = np.zeros((2, copy.device_tiles), np.int64)
    totals = None if copy.mapping.view is not None else copy.analysis.count(sent, received)
    if totals is not None:
        transfers, _, local, elements, misaligned = totals
        return CopyCount(copy, transfers, local, elements * copy.itemsize, misaligned, sent, received)
    transfers, _, local, size, misaligned = walked(runs(copy), sent, received)
    return CopyCount(copy, transfers, local, size, misaligned, sent, received)


@dataclass(frozen=True, slots=True, eq=False)
class CopyCounts(Table):
    """The totals of many copies, as columns of n rows; see :class:`CopyCount` for what they mean.

    Attributes
    ----------
    transfers, bytes, misaligned, local_runs, bound : (n,) int64
        The bound is the endpoint lower bound, in 4-byte words.
    destination_tile_bytes : (n,) int64
        The size of the fullest tile's buffer of the destination.
    """

    KIND: ClassVar = "copy_counts"

    transfers: Int64
    bytes: Int64
    misaligned: Int64
    local_runs: Int64
    bound: Int64
    destination_tile_bytes: Int64

    def __len__(self) -> int:
        return len(self.transfers)

    def __repr__(self) -> str:
        return f"CopyCounts({len(self)} copies)"


Pair = tuple[TensorType, TensorType] | tuple[TensorType, TensorType, CoordinateMapping | None]


def count_copies(
    pairs: Iterable[Pair],
    *,
    staging: StagingChoice = "auto",
    outside: Outside = "error",
    device_tiles: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CopyCounts:
    """Count many copies: a planner's candidates.

    Parameters
    ----------
    pairs : iterable of (source, destination) or (source, destination, mapping)
    staging, outside, device_tiles
        As for :func:`count_copy`, the same for all.
    executor : concurrent.futures.Executor, optional
        Where to count, in chunks; the kernels release the interpreter's lock, so threads serve.
    progress : callable, optional
        Called with the copies done and the copies in all, after every chunk.

    Raises
    ------
    LayoutError
        As `count_copy` does, for the first copy that is not legal; `where` begins with ``pairs[i]``.
    """
    if not isinstance(pairs, Iterable):
        raise FieldError("not a sequence of pairs", where="pairs", value=pairs, accepted="an iterable of tuples")
    if executor is not None:
        check_instance(executor, "executor", Executor)
    if progress is not None and not callable(progress):
        raise FieldError("wrong type", where="progress", value=progress, accepted="callable")
    asked = list(pairs)
    table = np.empty((6, len(asked)), np.int64)
    starts = range(0, len(asked), CHUNK)
    chunk = partial(_count_chunk, staging=staging, outside=outside, device_tiles=device_tiles)
    parts = [asked[start : start + CHUNK] for start in starts]
    for start, columns in zip(starts, (map if executor is None else executor.map)(chunk, parts, starts), strict=True):
        end = start + columns.shape[1]
        table[:, start:end] = columns
        if progress is not None:
            progress(end, len(asked))
    return CopyCounts(*table)


@within_memory
def _count_chunk(
    pairs: list[Pair], first: int, staging: StagingChoice, outside: Outside, device_tiles: int | None
) -> Int64:
    """Columns (6, n) in the order of `CopyCounts`."""
    copies = []
    for i, pair in enumerate(pairs):
        try:
            if not isinstance(pair, tuple) or len(pair) not in (2, 3):
                raise FieldError("not a pair", value=pair, accepted="(source, destination) or (.., .., mapping)")
            copies.append(check(*pair, staging=staging, outside=outside, device_tiles=device_tiles))
        except LayoutError as error:
            raise error.under(f"pairs[{first + i}]") from None
    table = np.zeros((6, len(pairs)), np.int64)
    table[5] = [copy.destination.owned.fullest for copy in copies]
    together = np.array([i for i, copy in enumerate(copies) if copy.is_stepped], np.int64)
    chosen = [copies[i] for i in together]
    offsets = np.zeros((len(chosen), MAX_RANK), np.int64)
    for row, copy in enumerate(chosen):
        if copy.mapping.offsets:
            offsets[row, : len(copy.viewed)] = copy.mapping.offsets
    out = np.empty((5, len(chosen)), np.int64)
    count_many(
        [side_table(copy.source.owned, copy.source.staged) for copy in chosen],
        [side_table(copy.destination.owned, copy.destination.staged) for copy in chosen],
        offsets,
        np.array([copy.shares_padding for copy in chosen], np.uint8),
        out,
    )
    table[0] = -1
    table[:5, together] = out
    for i in np.flatnonzero(table[0] < 0).tolist():
        count = _count(copies[i])
        table[:5, i] = count.transfers, count.bytes, count.misaligned, count.local_runs, count.endpoint_lower_bound
    return table
