"""DTensor's placements: against a brute-force twin of torch's rule, and torch itself where it is installed."""

import itertools
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiling
from tiling import F16, F32, AxisTiling, OwnerMap, TensorType
from tiling.interop import count_placed
from tiling.interop.dtensor import Replicate, Shard, count_resharding, from_placements

RANKS, EXTENTS = st.integers(1, 3), st.integers(0, 30)


def chunk(indices, chunks):
    """`torch.chunk`: pieces of the size rounded up, in turn; where there are too few, the rest are empty."""
    size = -(-len(indices) // chunks)
    pieces = [indices[at : at + size] for at in range(0, len(indices), size)] if size else []
    return pieces + [indices[:0]] * (chunks - len(pieces))


def twin(shape, mesh_shape, placements, coordinate):
    """The tensor indices of each dimension that the rank at a mesh coordinate has."""
    indices = [list(range(extent)) for extent in shape]
    for size, placement, at in zip(mesh_shape, placements, coordinate, strict=True):
        if placement.is_shard():
            indices[placement.dim] = chunk(indices[placement.dim], size)[at]
    return indices


def regions(placed):
    """Rank -> the same; and whether any buffer has padding."""
    table = placed.shards()
    rows = zip(table.tile.tolist(), table.start.tolist(), table.logical_end.tolist(), strict=True)
    owned = {tile: [list(range(a, b)) for a, b in zip(start, end, strict=True)] for tile, start, end in rows}
    return owned, bool((table.physical_end != table.logical_end).any())


def attempt(*arguments, **more):
    """The placed type, or the error that says why there is none."""
    try:
        return from_placements(*arguments, **more)
    except tiling.TilingError as error:
        return error


@st.composite
def cases(draw, rank=RANKS, extents=EXTENTS):
    mesh_shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    shape = tuple(draw(extents) for _ in range(draw(rank)))
    dims = st.integers(0, len(shape) - 1)
    placements = [draw(st.one_of(st.builds(Replicate), st.builds(Shard, dims))) for _ in mesh_shape]
    ranks = np.arange(prod(mesh_shape))
    if draw(st.booleans()):
        ranks = np.array(draw(st.permutations(range(len(ranks) + 3)))[: len(ranks)])
    return shape, ranks.reshape(mesh_shape), placements


def expected(shape, ranks, placements):
    return {
        int(ranks[coordinate]): twin(shape, ranks.shape, placements, coordinate)
        for coordinate in np.ndindex(ranks.shape)
    }


@given(cases())
def test_chunks_are_those_of_torch(case):
    shape, *more = case
    placed = attempt(shape, F16, *more)
    assert isinstance(placed, tiling.TilingError) or regions(placed) == (expected(*case), False)


@given(cases())
def test_padded_chunks_are_those_of_torch(case):
    shape, *more = case
    exact, padded = attempt(shape, F16, *more), attempt(shape, F16, *more, uneven="pad")
    if isinstance(padded, tiling.TilingError):
        assert str(exact) == str(padded)
        assert "uneven" not in padded.accepted
        return
    assert regions(padded)[0] == expected(*case)
    assert 'uneven="pad"' in exact.accepted if isinstance(exact, tiling.TilingError) else exact == padded


@given(cases(extents=st.integers(0, 3)), st.data())
def test_even_shapes_always_work(case, data):
    shape, ranks, placements = case
    parts = [1] * len(shape)
    for placement, size in zip(placements, ranks.shape, strict=True):
        if placement.is_shard():
            parts[placement.dim] *= size
    shape = tuple(a * b for a, b in zip(shape, parts, strict=True))
    placed = from_placements(shape, F16, ranks, placements)
    assert regions(placed) == (expected(shape, ranks, placements), False)


def every_axis_tiling(extent, parts):
    """The widths of all ways in which an axis tiling cuts an extent without padding."""
    for groups, block in itertools.product(range(1, parts + 1), range(1, max(extent, 1) + 1)):
        type = TensorType.tiled([extent], F16, [AxisTiling(0, parts, padding_groups=groups, block_size=block)])
        try:
            table = tiling.enumerate_shards(type)
        except tiling.TilingError:
            continue
        yield (table.logical_end - table.start)[:, 0].tolist()


@pytest.mark.parametrize("mesh_shape", [(2,), (3,), (4,), (5,), (2, 2), (2, 3), (3, 2), (2, 4), (2, 2, 2)])
def test_what_is_refused_no_axis_tiling_has(mesh_shape):
    placements = [Shard(0)] * len(mesh_shape)
    for extent in range(20):
        if isinstance(attempt((extent,), F16, mesh_shape, placements), tiling.TilingError):
            coordinates = np.ndindex(mesh_shape)
            widths = [len(twin((extent,), mesh_shape, placements, at)[0]) for at in coordinates]
            assert widths not in list(every_axis_tiling(extent, prod(mesh_shape)))


@pytest.mark.parametrize(
    ("extent", "mesh", "cut"),
    [
        (12, (4,), AxisTiling(0, 4)),
        (11, (4,), AxisTiling(0, 4)),  # 3, 3, 3, 2
        (3, (4,), AxisTiling(0, 4)),  # 1, 1, 1, 0
        (10, (3,), AxisTiling(0, 3, block_size=2)),  # 4, 4, 2
        (6, (4,), AxisTiling(0, 4, block_size=2)),  # 2, 2, 2, 0
        (10, (2, 2), AxisTiling(0, 4, padding_groups=2)),  # 3, 2, 3, 2
        (9, (2, 2), AxisTiling(0, 4)),  # 3, 2, 2, 2
        (0, (4,), AxisTiling(0, 4)),
    ],
)
def test_exact_cuts(extent, mesh, cut):
    placed = from_placements((extent,), F32, mesh, [Shard(0)] * len(mesh))
    assert placed.type == TensorType.tiled([extent], F32, [cut])
    assert placed == from_placements((extent,), F32, mesh, [Shard(-1)] * len(mesh), uneven="pad")


def test_padded_cuts():
    padded = from_placements((10, 3), F32, (4,), [Shard(0)], uneven="pad")
    assert padded.type == TensorType.tiled([10, 3], F32, [AxisTiling(0, 4, padding_multiple=4, padding="Zero")])
    assert (np.diff([padded.shards().start, padded.shards().physical_end], axis=0)[0] == [3, 3]).all()
    grouped = from_placements((20,), F32, (2, 4), [Shard(0)] * 2, uneven="pad")
    cut = AxisTiling(0, 8, padding_groups=2, padding_multiple=4, padding="Zero")
    assert grouped.type == TensorType.tiled([20], F32, [cut])


# Meshes and counts


def test_meshes():
    placements = [Shard(1), Replicate()]
    by_shape = from_placements((4, 6), F16, (2, 3), placements)
    assert by_shape.owners == OwnerMap()
    assert by_shape == from_placements((4, 6), F16, np.arange(6).reshape(2, 3), placements)
    device_mesh = SimpleNamespace(mesh=np.array([[5, 4, 3], [2, 1, 0]]), shape=(2, 3))
    turned = from_placements((4, 6), F16, device_mesh, placements)
    assert turned.type == by_shape.type
    assert turned.owners == OwnerMap(0, (5, 4, 3, 2, 1, 0))
    assert from_placements((4, 6), F16, (), []).type == TensorType.replicated([4, 6], F16, 1)


def test_counts():
    rows, columns, whole = [Shard(0)], [Shard(1)], [Replicate()]
    count = count_resharding((8, 8), F32, (4,), rows, columns)
    assert (count.transfers, count.local_runs, count.bytes) == (4 * 3 * 2, 4 * 2, 4 * 3 * 2 * 2 * 4)
    assert count_resharding((8, 8), F32, (4,), rows, whole).transfers == 4
    assert count_resharding((8, 8), F32, (4,), whole, rows).transfers == 0
    other = from_placements((8, 8), F32, np.array([4, 5, 6, 7]), rows)
    assert count_placed(from_placements((8, 8), F32, (4,), rows), other).transfers == 4


@given(cases(rank=st.just(2)), st.data())
def test_counts_are_the_lengths_of_lists(case, data):
    shape, ranks, source = case
    destination = data.draw(st.permutations(source))
    sides = [attempt(shape, F32, ranks, placements, uneven="pad") for placements in (source, destination)]
    if any(isinstance(side, tiling.TilingError) for side in sides):
        return
    count = count_resharding(shape, F32, ranks, source, destination, uneven="pad")
    plan = tiling.plan_copy(
        sides[0].type, sides[1].type, source_owners=sides[0].owners, destination_owners=sides[1].owners
    )
    assert (count.transfers, count.bytes) == (len(plan.transfers), plan.transfers.bytes.sum())
    values = np.arange(prod(shape), dtype=np.float32).reshape(shape)
    buffers = tiling.pack(values, sides[0].type, sides[0].owners, device_tiles=plan.device_tiles)
    assert (tiling.unpack(tiling.execute(plan, buffers)).view(np.float32) == values).all()


# What can't be read


class Partial:
    """As torch's: neither of the two."""

    def is_shard(self):
        return False

    is_replicate = is_shard


@pytest.mark.parametrize(
    ("shape", "mesh", "placements", "kind", "words"),
    [
        ((8,), (2,), [Partial()], tiling.FieldError, r"placements\[0\]: neither .*Shard, Replicate"),
        ((8,), (2,), [Replicate], tiling.FieldError, r"placements\[0\]: not a placement.*Replicate\(\)"),
        ((8,), (2,), ["Shard(0)"], tiling.FieldError, r"placements\[0\]: not a placement"),
        ((8,), (2,), [Shard(1)], tiling.TilingError, r"placements\[0\].dim: .*rank 1, got 1; accepted: -1 to 0"),
        ((8,), (2,), [Shard(-2)], tiling.TilingError, r"placements\[0\].dim"),
        ((8,), (2,), [Shard(0.5)], tiling.FieldError, r"placements\[0\].dim"),
        ((), (2,), [Shard(0)], tiling.TilingError, "accepted: Replicate"),
        ((8,), (2, 2), [Shard(0)], tiling.FieldError, "placements: .*2 placements"),
        ((8,), (2,), "S", tiling.FieldError, "placements"),
        ((8,), (2,), 3, tiling.FieldError, "placements"),
        ((8,), [2], [Shard(0)], tiling.FieldError, "mesh: .*its shape as a tuple, or an integer array"),
        ((8,), np.array([0.0, 1.0]), [Shard(0)], tiling.FieldError, "mesh"),
        ((8,), np.array([True, False]), [Shard(0)], tiling.FieldError, "mesh"),
        ((8,), (0,), [Shard(0)], tiling.FieldError, r"mesh\[0\]"),
        ((8,), (2**31 - 1, 2**31 - 1), [Shard(0)] * 2, tiling.SizeError, "devices"),
        ((8,), (1,) * 33, [Shard(0)] * 33, tiling.SizeError, "mesh axes"),
        ((8,), np.array([0, 1, 1, 2]), [Shard(0)], tiling.OwnerError, "mesh: .*twice, got 1"),
        ((8,), np.array([0, -1]), [Shard(0)], tiling.OwnerError, "mesh: .*got -1"),
        ((8,), np.zeros(0, int), [Shard(0)], tiling.FieldError, "mesh: .*empty"),
        ((8, "x"), (2,), [Shard(0)], tiling.FieldError, r"shape\[1\]"),
        (8, (2,), [Shard(0)], tiling.FieldError, "shape"),
        (
            (10,),
            (4,),
            [Shard(0)],
            tiling.TilingError,
            r"shape\[0\]: no axis tiling .* 3, 3, 3, 1: .*got 10; accepted: multiples of 4, or uneven=\"pad\"",
        ),
        ((13,), (2, 3), [Shard(0)] * 2, tiling.TilingError, "3, 3, 1, 2, 2, 2: .*accepted: multiples of 6$"),
    ],
    ids=range(23),
)
def test_placements_that_are_refused(shape, mesh, placements, kind, words):
    with pytest.raises(kind, match=words):
        from_placements(shape, F16, mesh, placements)
    with pytest.raises(kind, match=words):
        count_resharding(shape, F16, mesh, placements, placements)


def test_other_arguments_that_are_refused():
    with pytest.raises(tiling.FieldError, match=r"precision.*Precision"):
        from_placements((8,), "F16", (2,), [Shard(0)])
    with pytest.raises(tiling.FieldError, match=r"uneven.*error, pad"):
        from_placements((8,), F16, (2,), [Shard(0)], uneven="round")
    with pytest.raises(tiling.FieldError, match=r"^destination.placements\[0\]"):
        count_resharding((8,), F16, (2,), [Shard(0)], [Partial()])
    with pytest.raises(tiling.FieldError, match=r"source.*PlacedType"):
        count_placed(TensorType.replicated([8], F16, 1), None)


# torch itself


@given(cases())
def test_the_twin_is_torch(case):
    torch = pytest.importorskip("torch")
    shape, ranks, placements = case
    for coordinate in np.ndindex(ranks.shape):
        indices = [torch.arange(extent) for extent in shape]
        for size, placement, at in zip(ranks.shape, placements, coordinate, strict=True):
            if placement.is_shard():
                pieces = indices[placement.dim].chunk(size)
                indices[placement.dim] = pieces[at] if at < len(pieces) else indices[placement.dim][:0]
        assert [i.tolist() for i in indices] == twin(shape, ranks.shape, placements, coordinate)


def test_placements_of_torch():
    pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.distributed.tensor")
    import torch

    ranks = torch.tensor([[3, 2], [1, 0]])
    assert from_placements((8, 8), F16, ranks, [theirs.Shard(-1), theirs.Replicate()]) == from_placements(
        (8, 8), F16, ranks.numpy(), [Shard(1), Replicate()]
    )
    for placement in (theirs.Partial(), theirs.placement_types._StridedShard(0, split_factor=2)):
        with pytest.raises(tiling.FieldError, match="neither shards nor replicates"):
            from_placements((8, 8), F16, ranks, [placement, theirs.Shard(0)])
