"""Buffers: bytes packed, unpacked and moved as the twin does, and plans proved by executing them."""

import engine
import numpy as np
import strategies
import twin
from hypothesis import given
from hypothesis import strategies as st

import tiling

seeds = st.integers(0, 2**32 - 1)


def filled(type, seed):
    """A random array for a type in JSON form, as unsigned integers of its item size without a zero byte."""
    t = twin.read_type(type)
    drawn = np.random.default_rng(seed).integers(1, 256, (*t.shape, t.itemsize), np.uint8)
    return drawn.view(f"u{t.itemsize}")[..., 0]


def as_lists(buffers):
    return [buffer.tobytes() for buffer in buffers]


def as_array(values, shape, itemsize):
    return np.array(values, f"u{itemsize}").reshape(shape)


def garbage(type, owners, device_tiles):
    """Buffers of which every byte is to be written."""
    made = tiling.Buffers(type, owners, device_tiles)
    made.data[:] = twin.GARBAGE
    return made


def laid_out(array, how):
    """The same values in another memory layout."""
    if array.ndim == 0:
        return array
    if how == "reversed":
        return np.ascontiguousarray(array[(slice(None, None, -1),) * array.ndim])[(slice(None, None, -1),) * array.ndim]
    if how == "fortran":
        return np.asfortranarray(array)
    if how == "strided":
        wide = np.zeros([2 * n + 1 for n in array.shape], array.dtype)
        wide[(slice(0, -1, 2),) * array.ndim] = array
        return wide[(slice(0, -1, 2),) * array.ndim]
    return array


layouts = st.sampled_from(["plain", "fortran", "reversed", "strided"])


def read(case):
    return (
        tiling.TensorType.from_json(case["type"]),
        case["owners"] and tiling.OwnerMap.from_json(case["owners"]),
        case["device_tiles"],
    )


@given(strategies.owned(), seeds, layouts)
def test_packed_bytes_are_the_twins(case, seed, how):
    array = filled(case["type"], seed)
    type, owners, device_tiles = read(case)
    want = twin.pack(array.ravel().tolist(), **case)
    out = garbage(type, owners, device_tiles)
    assert tiling.pack(laid_out(array, how), type, owners, device_tiles, out=out) is out
    assert as_lists(out) == want
    assert out.start.tolist() == [0, *np.cumsum([len(b) for b in want]).tolist()]


@given(strategies.owned(), seeds, layouts)
def test_unpacked_values_are_the_twins(case, seed, how):
    type, owners, device_tiles = read(case)
    buffers = garbage(type, owners, device_tiles)
    buffers.data[:] = np.random.default_rng(seed).integers(0, 256, len(buffers.data))  # replicas differ
    t = twin.read_type(case["type"])
    want = as_array(twin.unpack(as_lists(buffers), **case), t.shape, t.itemsize)
    assert np.array_equal(tiling.unpack(buffers), want)
    out = laid_out(np.zeros(t.shape, f"u{t.itemsize}"), how)
    assert tiling.unpack(buffers, out=out) is out
    assert np.array_equal(out, want)


@given(strategies.owned(), seeds)
def test_unpack_is_the_inverse(case, seed):
    array = filled(case["type"], seed)
    assert np.array_equal(tiling.unpack(tiling.pack(array, *read(case))), array)


def moved(case, array):
    """The array that the destination is to hold."""
    a, b = twin.read_type(case["source"]), twin.read_type(case["destination"])
    found = twin.move(array.ravel().tolist(), a.shape, b.shape, case["mapping"], case["outside"])
    return as_array(found, b.shape, b.itemsize)


@given(strategies.copies(), seeds)
def test_executing_a_plan_is_packing_the_moved_array(case, seed):
    array = filled(case["source"], seed)
    arguments = engine.arguments(case)
    plan = tiling.plan_copy(**arguments)
    source = tiling.pack(array, plan.source, arguments["source_owners"], plan.device_tiles)
    want = tiling.pack(moved(case, array), plan.destination, arguments["destination_owners"], plan.device_tiles)
    out = garbage(plan.destination, arguments["destination_owners"], plan.device_tiles)
    assert tiling.execute(plan, source, out=out) is out
    assert np.array_equal(out.data, want.data)
    assert np.array_equal(tiling.execute(plan, source).data, want.data)


@given(strategies.copies(long=0), seeds)
def test_executed_bytes_are_the_twins(case, seed):
    array = filled(case["source"], seed)
    want = twin.plan(**case)
    plan = tiling.plan_copy(**engine.arguments(case))
    source = tiling.pack(array, plan.source, plan.retile.source.owners, plan.device_tiles)
    assert as_lists(tiling.execute(plan, source)) == twin.execute(want, as_lists(source))


@given(strategies.copies())
def test_every_destination_byte_is_written_once(case):
    plan = tiling.plan_copy(**engine.arguments(case))
    side, x = plan.retile.destination, plan.transfers
    if side.staged:
        # Not what nothing moves there, but nothing twice.
        sizes = np.zeros(plan.device_tiles, np.int64)
        table = tiling.enumerate_shards(plan.destination, side.owners, plan.device_tiles)
        np.add.at(sizes, table.tile, (table.logical_end - table.start).prod(axis=1) * side.owned.itemsize)
    else:
        sizes = tiling.Buffers(plan.destination, side.owners, plan.device_tiles).start
        sizes = np.diff(sizes)
    start = np.concatenate([[0], np.cumsum(sizes)])
    size = np.repeat(x.bytes, np.diff(x.destination_start))
    spans = [
        (x.destination_tile, x.destination_offset, size),
        (plan.local.tile, plan.local.destination_offset, plan.local.bytes),
        (plan.zero_fill.tile, plan.zero_fill.offset, plan.zero_fill.bytes),
    ]
    tile, offset, size = (np.concatenate(columns) for columns in zip(*spans, strict=True))
    assert (offset >= 0).all()
    assert (offset + size <= sizes[tile]).all()
    steps = np.zeros(start[-1] + 1, np.int64)
    np.add.at(steps, start[tile] + offset, 1)
    np.add.at(steps, start[tile] + offset + size, -1)
    writes = np.cumsum(steps)[:-1]
    assert (writes <= 1).all()
    if not side.staged:
        assert (writes == 1).all()
