"""`enumerate_shards` next to what it is measured by, in groups of one type.

*copy* makes new arrays of the same columns; *numpy* is a careful twin by hand, from the same bounds of the axes.
"""

import math
from functools import lru_cache

import numpy as np
import pytest
from common import TINY, columns, copied

import tiling

# Partitions of the axes of a rank 4 tensor; tiles of a linear [729, 4304] (or a longer one, for more).
SIZES = ((2, 3, 2, 2),) if TINY else ((4, 8, 2, 23), (10, 20, 25, 20))
LINEAR_SIZES = (50,) if TINY else (1_472, 100_000)

of_axes = pytest.mark.parametrize("partitions", SIZES, ids=str)
of_linear = pytest.mark.parametrize("tiles", LINEAR_SIZES)


@lru_cache
def axes(partitions):
    """A type, padded on its last axis, and its table."""
    cuts = [tiling.AxisTiling(axis, parts) for axis, parts in enumerate(partitions[:-1])]
    cuts.append(tiling.AxisTiling(len(cuts), partitions[-1], block_size=16, padding="Zero"))
    type = tiling.TensorType.tiled((40, 64, 460, 729), tiling.F16, cuts)
    return type, tiling.enumerate_shards(type)


@lru_cache
def linear(tiles):
    type = tiling.TensorType.linear((math.ceil(tiles / 1_472) * 729, 4304), tiling.F16, tiles, 16)
    return type, tiling.enumerate_shards(type)


def run(benchmark, table, name, call, *arguments):
    benchmark.group = f"shards, {name}, {len(table):,} rows"
    benchmark.extra_info["rows"] = len(table)
    return benchmark(call, *arguments)


def same(arrays, table):
    return all((got == want).all() for got, want in zip(arrays, columns(table), strict=True))


def numpy_axes(bounds, shape, itemsize):
    """Columns of tiles whose first axis is the fastest digit: the axes' bounds, broadcast over all tiles."""
    count, rank = math.prod(shape), len(shape)
    boxes = [np.empty((count, rank), np.int64) for _ in range(3)]
    size = np.full(count, itemsize, np.int64)
    for axis in range(rank):
        along = [1] * rank
        along[rank - 1 - axis] = shape[axis]  # the fastest digit is the last axis of an array
        for box, values in zip(boxes, bounds[axis], strict=True):
            box[:, axis].reshape(shape[::-1])[...] = values.reshape(along)
        size.reshape(shape[::-1])[...] *= (bounds[axis][2] - bounds[axis][0]).reshape(along)
    return np.arange(count, dtype=np.int32), *boxes, size, np.zeros(count, np.int64), size.copy()


def numpy_linear(type, tiles):
    """Columns of row pieces: all cuts, at rows' and intervals' ends, sorted."""
    row, total = type.shape[-1], math.prod(type.shape)
    short, longer = divmod(total // 16, tiles)
    ordinals = np.arange(tiles, dtype=np.int64)
    begin = (ordinals * short + np.minimum(ordinals, longer)) * 16
    cuts = np.union1d(begin, np.arange(0, total, row, dtype=np.int64))
    size = np.diff(cuts, append=total)
    owner = np.searchsorted(begin, cuts, side="right") - 1
    start = np.empty((len(cuts), 2), np.int64)
    np.floor_divide(cuts, row, out=start[:, 0])
    np.subtract(cuts, start[:, 0] * row, out=start[:, 1])
    end = start + 1
    np.add(start[:, 1], size, out=end[:, 1])
    offset = (cuts - begin[owner]) * 2
    tile_bytes = np.diff(begin, append=total) * 2
    return owner.astype(np.int32), start, end, end.copy(), size * 2, offset, tile_bytes


@of_axes
def bench_shards(benchmark, partitions):
    type, table = axes(partitions)
    run(benchmark, table, partitions, tiling.enumerate_shards, type)


@of_axes
def bench_shards_baseline_copy(benchmark, partitions):
    _, table = axes(partitions)
    run(benchmark, table, partitions, copied, columns(table))


@of_axes
def bench_shards_baseline_numpy(benchmark, partitions):
    type, table = axes(partitions)
    bounds = [cut.bounds for cut in tiling.ownership.resolve(type).cuts]
    assert same(run(benchmark, table, partitions, numpy_axes, bounds, partitions, 2), table)


@of_linear
def bench_linear_shards(benchmark, tiles):
    type, table = linear(tiles)
    run(benchmark, table, "linear", tiling.enumerate_shards, type)


@of_linear
def bench_linear_shards_baseline_copy(benchmark, tiles):
    _, table = linear(tiles)
    run(benchmark, table, "linear", copied, columns(table))


@of_linear
def bench_linear_shards_baseline_numpy(benchmark, tiles):
    type, table = linear(tiles)
    assert same(run(benchmark, table, "linear", numpy_linear, type, tiles), table)
