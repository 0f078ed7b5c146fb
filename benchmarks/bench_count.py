"""Counts: `count_copy` and `count_copies`, against listing and against dask's overlay of two chunkings."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from common import TINY, counts, phases, plans

import tiling
from tiling import F16, Amp, AxisTiling, CoordinateMapping, TensorType, regions

PHASES = phases()
MANY = 20 if TINY else 4_000


@pytest.mark.parametrize("name", PHASES)
def bench_count(benchmark, name):
    benchmark.group = f"count {name}"
    benchmark(counts, PHASES[name])


@pytest.mark.parametrize("name", PHASES)
def bench_count_cold(benchmark, name):
    benchmark.group = f"count {name}"

    def cold():
        regions._kept.cache_clear()
        return counts(PHASES[name])

    benchmark(cold)


@pytest.mark.parametrize("name", PHASES)
def bench_count_baseline_list(benchmark, name):
    benchmark.group = f"count {name}"
    benchmark(plans, PHASES[name])


@pytest.mark.parametrize("scale", [1, 1000])
def bench_count_growth(benchmark, scale):
    """A thousandfold extent: the count looks at partitions, not at elements."""
    benchmark.group = "count growth"
    source = TensorType.tiled([64, 1152 * scale], F16, {1: 24}, order=Amp("TransposedLeft"))
    destination = TensorType.tiled([64, 1152 * scale], F16, {1: 36}, order=Amp("TransposedLeft"))
    benchmark(tiling.count_copy, source, destination)


def candidates(n, seed=0):
    """Retiles of GEMM partials, of the shapes of phases 1 and 4, with random partitions."""
    draw, made = random.Random(seed), []
    while len(made) < n:
        columns, partials = draw.choice((1152, 4304)), draw.randint(2, 40)
        rows, cuts = draw.randint(1, 24), draw.randint(1, 60)
        to_rows, to_cuts = draw.randint(1, 24), draw.randint(20, 200)
        if not 200 <= partials * rows * cuts <= 1472 or to_rows * to_cuts > 1472:
            continue
        source = TensorType.tiled(
            [partials, 1, 729, columns], F16,
            [AxisTiling(-1, cuts, block_size=2, padding="Zero", tile_stride=rows * partials),
             AxisTiling(-2, rows, block_size=draw.choice((16, 32, 64, 96)), padding="Zero", tile_stride=1),
             AxisTiling(0, partials, tile_stride=rows)],
            order=Amp("TransposedLeft"),
        )  # fmt: skip
        destination = TensorType.tiled(
            [partials - 1, 1, 729, columns], F16,
            [AxisTiling(-1, to_cuts, block_size=2, padding="Zero", tile_stride=to_rows),
             AxisTiling(-2, to_rows, block_size=16, shard_padding_multiple=16, padding="Zero", tile_stride=1)],
            order=Amp("TransposedLeft"),
        )  # fmt: skip
        made.append((source, destination, CoordinateMapping((1, 0, 0, 0))))
    return made


@pytest.mark.parametrize("threads", [1, 2])
def bench_count_copies(benchmark, threads):
    """Types that a planner has asked for before; every pair is counted anew."""
    benchmark.group = "count_copies"
    benchmark.extra_info["rows"] = MANY
    pairs = candidates(MANY)
    with ThreadPoolExecutor(threads) as executor:
        benchmark(tiling.count_copies, pairs, device_tiles=1472, executor=executor if threads > 1 else None)


def bench_count_copies_cold(benchmark):
    """Types that were never seen."""
    benchmark.group = "count_copies"
    benchmark.extra_info["rows"] = MANY
    seeds = iter(range(1, 1000))
    benchmark.pedantic(
        tiling.count_copies, setup=lambda: ((candidates(MANY, next(seeds)),), {"device_tiles": 1472}), rounds=5
    )


def chunks(parts, extent):
    table = tiling.enumerate_shards(TensorType.tiled([extent], F16, [AxisTiling(0, parts, block_size=2)]))
    return tuple((table.logical_end - table.start)[:, 0].tolist())


def bench_overlay_baseline_dask(benchmark):
    """dask's overlay of the chunks of phase 4's retile: regions only, without bytes, tiles or runs."""
    rechunk = pytest.importorskip("dask.array.rechunk")
    benchmark.group = "count phase 4"
    rows, columns = (729, 96) if TINY else (729, 1152)
    old = ((1,) * 30, (64,) * 11 + (25,), chunks(4, columns))
    new = ((30,), (64,) * 10 + (48, 41), chunks(24 if TINY else 120, columns))
    assert sum(old[1]) == sum(new[1]) == rows
    benchmark(lambda: rechunk.intersect_chunks(old, new))
