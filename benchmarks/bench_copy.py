"""Lists: `plan_copy` and `ExchangePhase`, against copying the same columns and hand-written numpy."""

import numpy as np
import pytest
from common import TINY, columns, copied, phases, plans

import tiling
from tiling import regions

PHASES = phases()


@pytest.mark.parametrize("name", PHASES)
def bench_list(benchmark, name):
    """A phase's lists; what a copy's analysis came to is kept from call to call."""
    benchmark.group = f"list {name}"
    benchmark.extra_info["rows"] = sum(len(plan.transfers) for plan in plans(PHASES[name]))
    benchmark(plans, PHASES[name])


@pytest.mark.parametrize("name", PHASES)
def bench_list_cold(benchmark, name):
    """The same, with every copy analysed anew."""
    benchmark.group = f"list {name}"

    def cold():
        regions._kept.cache_clear()
        return plans(PHASES[name])

    benchmark(cold)


@pytest.mark.parametrize("name", PHASES)
def bench_list_baseline_copying_its_columns(benchmark, name):
    benchmark.group = f"list {name}"
    made = [array for plan in plans(PHASES[name]) for array in columns(plan.transfers) + columns(plan.local)]
    benchmark(copied, made)


# Byte spans of a row-major retile by hand: every row is cut where either side's columns are.

SHAPE = (7, 96) if TINY else (729, 4304)
GRIDS = {"8x184 to 12x120": ((8, 184), (12, 120)), "8x184 to rows": ((8, 184), (SHAPE[0], 1))}


def grid(rows, columns):
    cuts = [tiling.AxisTiling(0, min(rows, SHAPE[0])), tiling.AxisTiling(1, min(columns, SHAPE[1] // 2), block_size=2)]
    return tiling.TensorType.tiled(SHAPE, tiling.F16, cuts)


def by_hand(source, destination):
    """The transfers' columns, by numpy: cut both axes at both sides' boundaries, and take the products."""
    table, other = tiling.enumerate_shards(source), tiling.enumerate_shards(destination)
    cuts = [np.union1d(table.start[:, a], other.start[:, a]) for a in (0, 1)]
    ends = np.append(cuts[1][1:], SHAPE[1])
    rows = np.arange(SHAPE[0])

    def side(t):
        starts = [np.unique(t.start[:, a]) for a in (0, 1)]
        widths = [np.diff(np.append(starts[a], SHAPE[a])) for a in (0, 1)]
        r = np.searchsorted(starts[0], rows, side="right") - 1
        c = np.searchsorted(starts[1], cuts[1], side="right") - 1
        tile = r[:, None] + len(starts[0]) * c[None, :]
        at = ((rows - starts[0][r])[:, None] * widths[1][c][None, :] + (cuts[1] - starts[1][c])[None, :]) * 2
        return tile, at

    (tile, at), (to, place) = side(table), side(other)
    size = np.broadcast_to((ends - cuts[1]) * 2, tile.shape)
    moves = tile != to
    order = np.lexsort((at[moves], tile[moves]))
    return [
        tile[moves][order].astype(np.int32), at[moves][order], size[moves][order],
        np.arange(moves.sum() + 1), to[moves][order].astype(np.int32), place[moves][order],
    ]  # fmt: skip


@pytest.mark.parametrize("name", GRIDS)
def bench_row_major(benchmark, name):
    benchmark.group = f"row-major {name}"
    benchmark(tiling.plan_copy, *(grid(*g) for g in GRIDS[name]))


@pytest.mark.parametrize("name", GRIDS)
def bench_row_major_baseline_numpy(benchmark, name):
    benchmark.group = f"row-major {name}"
    source, destination = (grid(*g) for g in GRIDS[name])
    made = benchmark(by_hand, source, destination)
    plan = tiling.plan_copy(source, destination)
    for got, want in zip(columns(plan.transfers), made, strict=True):
        assert (got == want).all()


# Growth: a list's time by its length.


@pytest.mark.parametrize("rows", [64] if TINY else [6_250, 62_500, 625_000])
def bench_growth(benchmark, rows):
    benchmark.group = f"list growth, {rows * 31:,} transfers"
    source = tiling.TensorType.tiled([rows, 64], tiling.F16, {1: 32})
    destination = tiling.TensorType.tiled([rows, 64], tiling.F16, {0: 32})
    plan = benchmark(tiling.plan_copy, source, destination)
    benchmark.extra_info["rows"] = len(plan.transfers)


@pytest.mark.parametrize("rows", [64] if TINY else [6_250, 62_500, 625_000])
def bench_growth_baseline_copying_its_columns(benchmark, rows):
    benchmark.group = f"list growth, {rows * 31:,} transfers"
    source = tiling.TensorType.tiled([rows, 64], tiling.F16, {1: 32})
    destination = tiling.TensorType.tiled([rows, 64], tiling.F16, {0: 32})
    benchmark(copied, columns(tiling.plan_copy(source, destination).transfers))


def bench_exchange_phase(benchmark):
    benchmark.group = "phase loads"
    made = plans(list(PHASES.values())[-1])
    benchmark(lambda: tiling.ExchangePhase(made).endpoint_lower_bound)
