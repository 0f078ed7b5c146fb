"""`StorageMap.offset` and `coordinate` next to what they are measured by, in groups of one order and one size.

*numpy* is a careful twin by hand that gives the same numbers with the same checks; *copy* makes new arrays of the same
columns, the result's and what is read for it; *ravel_multi_index* and *unravel_index* apply to row-major storage alone.
"""

from functools import lru_cache

import numpy as np
import pytest
from common import TINY, copied

import tiling

SIZES = (1_000,) if TINY else (1_000, 100_000, 10_000_000)
MAPS = {
    "blocks 16x16": tiling.StorageMap(tiling.ElementOrder("Matrix", 16, 16), tiling.F16, (4608, 4608)),
    "blocks 16x16, padded": tiling.StorageMap(tiling.ElementOrder("Matrix", 16, 16), tiling.F16, (736, 1152)),
    "Left": tiling.StorageMap(tiling.ElementOrder("Left"), tiling.F16, (729, 1152)),
    "blocks 48x12": tiling.StorageMap(tiling.ElementOrder("Matrix", 48, 12), tiling.F16, (4608, 4608)),
    "rows": tiling.StorageMap(tiling.ROW_MAJOR, tiling.F16, (4608, 4608)),
}

of_orders = pytest.mark.parametrize("order", MAPS)
of_twins = pytest.mark.parametrize("order", [order for order in MAPS if order != "rows"])
of_sizes = pytest.mark.parametrize("size", SIZES)


@lru_cache(maxsize=1)
def numbers(order, size):
    """A map, coordinates anywhere in it, and their offsets."""
    map, random = MAPS[order], np.random.default_rng(size)
    points = np.empty((size, 2), np.int64)
    for axis, width in enumerate(map.widths):
        points[:, axis] = random.integers(0, width, size)
    return map, points, map.offset(points)


def run(benchmark, what, order, size, call, *arguments):
    """Time a call; a few rounds do where one is long."""
    benchmark.group = f"{what}, {order}, {size:,} rows"
    benchmark.extra_info["rows"] = size
    if size < 1_000_000:
        return benchmark(call, *arguments)
    return benchmark.pedantic(call, arguments, rounds=9, warmup_rounds=1)


# --- coordinates to offsets ------------------------------------------------------------------------------------------


def numpy_offset(map, points):
    """In place from one temporary to the next; divisors are constants, of which numpy makes shifts or reciprocals."""
    (rows, columns), (r, c) = map.widths, (points[:, 0], points[:, 1])
    if (points.view(np.uint64) >= np.array(map.widths, np.uint64)).any():
        raise ValueError("outside")
    if map.order.name == "Left":
        out = c >> 4
        out *= rows
        out += r
        out *= 16
        out += c & 15
    else:
        rb, cb = map.order.row_block, map.order.column_block
        out = r // rb
        out *= columns // cb
        out += c // cb
        out *= rb // 16
        low = r % rb
        out += low >> 4
        out *= cb
        out += c % cb
        out *= 16
        out += np.bitwise_and(r, 15, out=low)
    out *= 2
    return out


@of_sizes
@of_orders
def bench_offset(benchmark, order, size):
    map, points, offsets = numbers(order, size)
    assert (run(benchmark, "offset", order, size, map.offset, points) == offsets).all()


@of_sizes
@of_twins
def bench_offset_baseline_numpy(benchmark, order, size):
    map, points, offsets = numbers(order, size)
    assert (run(benchmark, "offset", order, size, numpy_offset, map, points) == offsets).all()


@of_sizes
def bench_offset_baseline_ravel_multi_index(benchmark, size):
    map, points, offsets = numbers("rows", size)

    def ravel():
        out = np.ravel_multi_index((points[:, 0], points[:, 1]), map.widths)
        out *= 2
        return out

    assert (run(benchmark, "offset", "rows", size, ravel) == offsets).all()


@of_sizes
@of_orders
def bench_offset_baseline_copy(benchmark, order, size):
    _, points, offsets = numbers(order, size)
    run(benchmark, "offset", order, size, copied, (points, offsets))


# --- offsets to coordinates ------------------------------------------------------------------------------------------


def numpy_coordinate(map, offsets):
    """As above; what is left of the offset goes from digit to digit."""
    rows, columns = map.widths
    if (offsets.view(np.uint64) >= map.bytes).any() or (offsets & 1).any():
        raise ValueError("not an element")
    out = np.empty((len(offsets), 2), np.int64)
    r, c = out[:, 0], out[:, 1]
    rest = offsets >> 1
    if map.order.name == "Left":
        np.bitwise_and(rest, 15, out=c)
        rest >>= 4
        high = rest // rows
        np.subtract(rest, high * rows, out=r)
        high *= 16
        c += high
        return out
    rb, cb = map.order.row_block, map.order.column_block
    np.bitwise_and(rest, 15, out=r)
    rest >>= 4
    for axis, count, divisor in ((c, cb, 1), (r, rb // 16, 16), (c, columns // cb, cb)):
        high = rest // count
        rest -= high * count
        rest *= divisor
        if divisor == 1:
            axis[:] = rest
        else:
            axis += rest
        rest = high
    rest *= rb
    r += rest
    return out


@of_sizes
@of_orders
def bench_coordinate(benchmark, order, size):
    map, points, offsets = numbers(order, size)
    assert (run(benchmark, "coordinate", order, size, map.coordinate, offsets) == points).all()


@of_sizes
@of_twins
def bench_coordinate_baseline_numpy(benchmark, order, size):
    map, points, offsets = numbers(order, size)
    assert (run(benchmark, "coordinate", order, size, numpy_coordinate, map, offsets) == points).all()


@of_sizes
def bench_coordinate_baseline_unravel_index(benchmark, size):
    map, points, offsets = numbers("rows", size)

    def unravel():
        return np.stack(np.unravel_index(offsets >> 1, map.widths), axis=1)

    assert (run(benchmark, "coordinate", "rows", size, unravel) == points).all()


@of_sizes
@of_orders
def bench_coordinate_baseline_copy(benchmark, order, size):
    _, points, offsets = numbers(order, size)
    run(benchmark, "coordinate", order, size, copied, (points, offsets))
