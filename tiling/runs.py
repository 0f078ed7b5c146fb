"""Runs: a checked copy as the walking kernel takes it.

The kernel walks source shards in storage order and asks, at every stretch, for the destination's class and offset. Both
are sums over the axes, but that the stride of an axis' slowest digit depends on the widths of the others; a destination
has few different widths, so the strides are tabled by *kind*, a combination of them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ._copy import Runs
from .errors import SizeError
from .regions import PART, Retile, Side
from .storage import REST, digit_table, digits
from .tables import Int64

NO_AXIS: Final = -1


def runs(copy: Retile) -> Runs:
    """The kernel for one copy."""
    source, destination = copy.source, copy.destination
    owned, over = source.owned, copy.overlays
    first = np.cumsum([0, *(cut.partitions for cut in owned.cuts)]).astype(np.int64)
    starts = np.cumsum([0, *(len(s) for s in over.segments)])
    rows = _concatenate([row + start for row, start in zip(over.rows, starts, strict=False)])
    kinds, storage = _destination_storage(destination)
    columns = [
        _with_destination(s, destination, kinds, a) if a != over.joint else _padded(s)
        for a, s in enumerate(over.segments)
    ]
    segments = np.concatenate(columns) if columns else np.empty((0, 8), np.int64)
    joint = _with_destination(over.joint_segments, destination, kinds, over.joint) if over.joint >= 0 else segments[:0]
    of_tile, class_row, ordinals = owned.classes
    order = np.argsort(source.device, kind="stable")
    sends = (ordinals[class_row[of_tile]] == np.arange(owned.tile_count)).view(np.uint8)
    linear = None
    if owned.is_linear:
        linear = (owned.pieces[1], owned.pieces[2], np.array(owned.shape, np.int64))
    to_linear = None
    groups = destination.groups
    if destination.owned.is_linear:
        begin, _, piece_begin, ordinal = destination.owned.pieces
        offsets = piece_begin[:-1] - begin[ordinal]
        to_linear = (piece_begin, offsets, destination.order.name == "Output")
        groups = (np.arange(len(ordinal) + 1, dtype=np.int64), destination.device[ordinal])
    return Runs(
        copy.itemsize,
        (
            digit_table(source.order, source.type.precision, owned.rank),
            first,
            _concatenate(source.widths),
            np.array(owned.class_strides, np.int64),
            rows,
            segments,
        ),
        (source.device[order], of_tile[order], sends[order], source.class_of_tile),
        linear,
        storage,
        (
            *groups,
            destination.class_of_tile,
            np.array(destination.owned.class_strides, np.int64),
            np.array([cut.partitions for cut in destination.owned.cuts], np.int64),
        ),
        (over.joint, joint),
        to_linear,
    )


def walked(kernel: Runs, *loads: Int64) -> tuple[int, int, int, int, int]:
    """The kernel's count; an error where the walk would not end in a reasonable time."""
    totals = kernel.count(*loads)
    if totals is None:
        raise SizeError(
            "too many runs to be looked for one by one", accepted="fewer than 2^31 steps, or a copy in whole words"
        )
    return totals


def _concatenate(arrays: list[Int64]) -> Int64:
    return np.concatenate(arrays).astype(np.int64, copy=False) if arrays else np.empty(0, np.int64)


def _padded(segments: Int64) -> Int64:
    return np.concatenate([segments, np.zeros((len(segments), 2), np.int64)], axis=1)


def _with_destination(segments: Int64, destination: Side, kinds: list[Int64], axis: int) -> Int64:
    """Segments with what their destination partition adds to the class and to the kind of widths."""
    padded = _padded(segments)
    if not destination.owned.is_linear:
        padded[:, -2] = segments[:, PART] * destination.owned.class_strides[axis]
        padded[:, -1] = kinds[axis][segments[:, PART]]
    return padded


def _destination_storage(side: Side) -> tuple[list[Int64], tuple[Int64, Int64, Int64, tuple[int, int, int, int, int]]]:
    """What each partition adds to the kind, and the storage as the kernel takes it.

    Low digits (k, 4): axis, divisor, count, stride; the divisor of each axis' slowest digit (rank,); its stride by kind
    (kinds, rank); and the two fastest digits: axis, count, axis, count, stride, where a count of 0 is the rest and a
    stride of 0 goes by kind.
    """
    owned, rank = side.owned, side.owned.rank
    if owned.is_linear:  # as one whole row-major shard, which the kernel cuts at the pieces
        order_digits = tuple((axis, 1, REST) for axis in range(rank))
        widths = [np.array([extent], np.int64) for extent in owned.shape]
    else:
        order_digits = digits(side.order, side.type.precision, rank)
        widths = side.widths
    distinct = [np.unique(width, return_inverse=True) for width in widths]
    shape = tuple(len(values) for values, _ in distinct)
    lows: list[tuple[int, int, int, int]] = []
    divisors = np.ones(rank, np.int64)
    strides = np.empty((*shape, rank), np.int64)
    fastest: list[tuple[int, int, int, int]] = []  # axis, divisor, count, stride of the digits that move, fastest first
    constant = 1
    running = np.ones(shape, np.int64)
    for axis, divisor, count in reversed(order_digits):
        if count == REST:
            divisors[axis] = divisor
            strides[..., axis] = running * constant
            column = [-1 if a == axis else 1 for a in range(rank)]
            running = running * (distinct[axis][0] // divisor).reshape(column)
            moves = distinct[axis][0].max(initial=0) > divisor
        else:
            lows.append((axis, divisor, count, constant))
            moves = count > 1
        if moves:
            fastest.append((axis, divisor, count, 0 if count == REST else constant))
        constant *= count or 1
    fast = [NO_AXIS, 0, NO_AXIS, 0, 0]
    if fastest and fastest[0][1] == 1:
        fast[:2] = fastest[0][0], fastest[0][2]
        if len(fastest) > 1 and fastest[1][1] == 1:
            fast[2:] = fastest[1][0], fastest[1][2], fastest[1][3]
    steps = [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(rank)]
    kinds = [inverse.reshape(-1) * step for (_, inverse), step in zip(distinct, steps, strict=True)]
    table = strides.reshape(strides.size // max(rank, 1), rank)
    a, b, c, d, e = fast
    return kinds, (np.array(lows, np.int64).reshape(-1, 4), divisors, table, (a, b, c, d, e))
