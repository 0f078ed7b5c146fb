"""Bytes: `pack`, `unpack` and `execute`, against copying as many bytes, numpy's reshape and transpose, and einops.

A group's ratio to `copying` is the inverse of the fraction of memcpy.
"""

import numpy as np
import pytest
from common import TINY, phases

import tiling
from tiling import F16, Amp, AxisTiling, BlockMajor, TensorType

SHAPES = {"small": (25, 48) if TINY else (729, 1152), "large": (64, 64) if TINY else (4608, 4608)}
ORDERS = {
    "row-major": tiling.ROW_MAJOR,
    "16x16 blocks": BlockMajor("TransposedMatrix", 16, 16),
    "16x16 blocks, transposed": BlockMajor("Matrix", 16, 16),
    "Left": Amp("Left"),
    "TransposedLeft": Amp("TransposedLeft"),
}
BY_NUMPY = {  # of (row blocks, 16, column blocks, 16)
    "16x16 blocks": (2, 0, 1, 3),
    "16x16 blocks, transposed": (0, 2, 3, 1),
    "Left": (2, 0, 1, 3),
    "TransposedLeft": (0, 2, 3, 1),
}
CASES = [(size, name) for size in SHAPES for name in ORDERS]


def tensor(size, name):
    """One shard, its rows padded to whole blocks: 729 to 768."""
    rows = AxisTiling(0, 1, block_size=16, padding_multiple=16 if TINY else 256, padding="Zero")
    return TensorType.tiled(SHAPES[size], F16, [rows], order=ORDERS[name])


def random_array(shape):
    return np.random.default_rng(0).integers(1, 2**16, shape, np.uint16)


def padded(array, type):
    wide = np.zeros(
        (tiling.StorageMap(type.order, F16, tiling.enumerate_shards(type).physical_end[0]).widths), np.uint16
    )
    wide[: len(array)] = array
    return wide


@pytest.mark.parametrize("size, name", CASES)
def bench_pack(benchmark, size, name):
    benchmark.group = f"pack {size} {name}"
    type = tensor(size, name)
    out = tiling.Buffers(type)
    benchmark(tiling.pack, random_array(type.shape), type, out=out)


@pytest.mark.parametrize("size, name", CASES)
def bench_pack_baseline_copying(benchmark, size, name):
    """As many bytes as are written, padding included."""
    benchmark.group = f"pack {size} {name}"
    written = tiling.Buffers(tensor(size, name)).data
    benchmark(np.copyto, np.ones_like(written), np.full_like(written, 2))


@pytest.mark.parametrize("size, name", [case for case in CASES if case[1] in BY_NUMPY])
def bench_pack_baseline_numpy(benchmark, size, name):
    """Of what is padded already."""
    benchmark.group = f"pack {size} {name}"
    type = tensor(size, name)
    array = random_array(type.shape)
    wide = padded(array, type)
    rows, columns = wide.shape
    moved = wide.reshape(rows // 16, 16, columns // 16, 16).transpose(BY_NUMPY[name])
    out = np.ones(moved.shape, np.uint16)
    benchmark(np.copyto, out, moved)
    assert np.array_equal(out.ravel(), tiling.pack(array, type).data.view(np.uint16))


@pytest.mark.parametrize("size, name", [case for case in CASES if case[1] in BY_NUMPY])
def bench_pack_baseline_einops(benchmark, size, name):
    einops = pytest.importorskip("einops")
    benchmark.group = f"pack {size} {name}"
    type = tensor(size, name)
    array = random_array(type.shape)
    wide = padded(array, type)
    letters = "rikj"  # row block, row, column block, column
    pattern = f"(r i) (k j) -> {' '.join(letters[a] for a in BY_NUMPY[name])}"
    packed = benchmark(lambda: np.ascontiguousarray(einops.rearrange(wide, pattern, i=16, j=16)))
    assert np.array_equal(packed.ravel(), tiling.pack(array, type).data.view(np.uint16))


@pytest.mark.parametrize("size, name", CASES)
def bench_unpack(benchmark, size, name):
    benchmark.group = f"unpack {size} {name}"
    type = tensor(size, name)
    array = random_array(type.shape)
    buffers, out = tiling.pack(array, type), tiling.unpack(tiling.Buffers(type))
    benchmark(tiling.unpack, buffers, out=out)
    assert np.array_equal(out, array)


@pytest.mark.parametrize("size, name", CASES)
def bench_unpack_baseline_copying(benchmark, size, name):
    benchmark.group = f"unpack {size} {name}"
    array = random_array(SHAPES[size])
    benchmark(np.copyto, np.ones_like(array), array)


# Many shards: what a device holds.

TILES = {0: 2, 1: 2} if TINY else {0: 16, 1: 36}


@pytest.mark.parametrize("name", ORDERS)
def bench_pack_tiles(benchmark, name):
    benchmark.group = f"pack onto tiles {name}"
    axes = [AxisTiling(axis, parts, block_size=16, padding="Zero") for axis, parts in TILES.items()]
    type = TensorType.tiled(SHAPES["large"], F16, axes, order=ORDERS[name])
    out = tiling.Buffers(type)
    benchmark(tiling.pack, random_array(type.shape), type, out=out)


@pytest.mark.parametrize("name", ORDERS)
def bench_pack_tiles_baseline_copying(benchmark, name):
    benchmark.group = f"pack onto tiles {name}"
    array = random_array(SHAPES["large"])
    benchmark(np.copyto, np.ones_like(array), array)


# Plans carried out: rows of all columns to all rows of a few columns, in runs of so many bytes; and the example's.

RUNS = [32, 128] if TINY else [32, 64, 128, 256, 512, 2304]


def retile(size, run):
    rows = TensorType.tiled(SHAPES[size], F16, [AxisTiling(0, 16, padding="Zero")])
    columns = [AxisTiling(1, max(SHAPES[size][1] * 2 // run, 1), block_size=16, padding="Zero")]
    return tiling.plan_copy(rows, TensorType.tiled(SHAPES[size], F16, columns))


def executed(benchmark, plans):
    pairs = []
    for plan in plans:
        source = tiling.pack(random_array(plan.source.shape), plan.source, device_tiles=plan.device_tiles)
        pairs.append((plan, source, tiling.execute(plan, source)))
    benchmark.extra_info["rows"] = sum(len(p.transfers.destination_tile) + len(p.local) for p in plans)
    benchmark(lambda: [tiling.execute(plan, source, out=out) for plan, source, out in pairs])


def copied(benchmark, plans):
    blocks = []
    for plan in plans:
        size = len(tiling.Buffers(plan.destination, device_tiles=plan.device_tiles).data)
        blocks.append((np.ones(size, np.uint8), np.full(size, 2, np.uint8)))
    benchmark(lambda: [np.copyto(to, from_) for to, from_ in blocks])


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("size", SHAPES)
def bench_execute(benchmark, size, run):
    benchmark.group = f"execute {size}, runs of {run} bytes"
    executed(benchmark, [retile(size, run)])


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("size", SHAPES)
def bench_execute_baseline_copying(benchmark, size, run):
    benchmark.group = f"execute {size}, runs of {run} bytes"
    copied(benchmark, [retile(size, run)])


PHASES = phases()


def example(name):
    copies = [c for c in PHASES[name].copies if c.source.precision == F16]
    return [tiling.plan_copy(c.source, c.destination, c.mapping, device_tiles=c.device_tiles) for c in copies]


@pytest.mark.parametrize("name", PHASES)
def bench_execute_phase(benchmark, name):
    benchmark.group = f"execute {name}"
    executed(benchmark, example(name))


@pytest.mark.parametrize("name", PHASES)
def bench_execute_phase_baseline_copying(benchmark, name):
    benchmark.group = f"execute {name}"
    copied(benchmark, example(name))
