"""JAX's shardings: against JAX's own map of devices to slices, and its own bytes on the devices."""

import itertools
from math import prod

import engine
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiling
from tiling import F8F143, F16, F32, AxisTiling, OwnerMap, TensorType
from tiling.interop import PlacedType, count_placed

jax = pytest.importorskip("jax")
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 16)

from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from tiling.interop.jax import count_resharding, from_sharding, precision_of, to_sharding  # noqa: E402

NAMES = "xyz"


def mesh_of(sizes, devices=None):
    """A mesh of devices with these numbers (0, 1, .. by default)."""
    numbers = range(prod(sizes)) if devices is None else devices
    every = jax.devices()
    return Mesh(np.array([every[d] for d in numbers]).reshape(sizes), tuple(NAMES[: len(sizes)]))


def specs(axes, rank):
    """Every partition spec of this rank over these mesh axes: each axis in one entry or in none, in every order."""
    if not rank:
        yield P()
        return
    for chosen in itertools.chain.from_iterable(itertools.permutations(axes, k) for k in range(len(axes) + 1)):
        for ends in itertools.combinations_with_replacement(range(len(chosen) + 1), rank - 1):
            cuts = (0, *ends, len(chosen))
            yield P(*(chosen[a:b] or None for a, b in itertools.pairwise(cuts)))


def sizes_in(sharding, rank):
    """In how many blocks the sharding cuts each axis."""
    sizes = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_sizes, strict=True))
    entries = [() if e is None else e if isinstance(e, tuple) else (e,) for e in sharding.spec]
    return [prod(sizes[name] for name in entry) for entry in (*entries, *[()] * (rank - len(entries)))]


def regions(placed):
    """Device number -> [(start, logical end), ..] by axis."""
    table = placed.shards()
    bounds = np.stack([table.start, table.logical_end], axis=2).tolist()
    assert len(set(table.tile.tolist())) == len(table)
    return dict(zip(table.tile.tolist(), bounds, strict=True))


def jax_regions(sharding, shape):
    """The same, as JAX says it."""
    return {
        device.id: [list(s.indices(n)[:2]) for s, n in zip(index, shape, strict=True)]
        for device, index in sharding.devices_indices_map(shape).items()
    }


def check(sharding, shape):
    placed = from_sharding(sharding, shape, "float32")
    assert regions(placed) == jax_regions(sharding, shape)
    back = to_sharding(placed.type, sharding.mesh, placed.owners)
    assert back.is_equivalent_to(sharding, len(shape))
    assert regions(from_sharding(back, shape, F32)) == regions(placed)
    return placed


def shuffled(n, seed, of=None):
    return np.random.default_rng(seed).permutation(n if of is None else of)[:n].tolist()


MESHES = [
    ((1,), None),
    ((8,), None),
    ((8,), shuffled(8, 1)),
    ((2, 4), None),
    ((4, 2), shuffled(8, 2, of=16)),
    ((3, 1), [5, 2, 9]),
    ((2, 3, 2), None),
    ((2, 2, 4), shuffled(16, 3)),
    ((2, 1, 3), [5, 4, 3, 2, 1, 0]),
    ((1, 1, 1), [7]),
]


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@pytest.mark.parametrize(("sizes", "devices"), MESHES)
def test_all_specs_of_a_mesh(sizes, devices, rank):
    mesh = mesh_of(sizes, devices)
    for spec in specs(NAMES[: len(sizes)], rank):
        sharding = NamedSharding(mesh, spec)
        check(sharding, tuple(n * (axis + 1) for axis, n in enumerate(sizes_in(sharding, rank))))


def test_all_specs_are_all():
    assert len({str(spec) for spec in specs("xyz", 3)}) == 1 + 3 * 3 + 6 * 6 + 6 * 10
    assert {str(spec) for spec in specs("xy", 1)} == {
        str(P(entry)) for entry in (None, "x", "y", ("x", "y"), ("y", "x"))
    }


@st.composite
def shardings(draw, mesh=None):
    """A sharding and its rank, over a mesh of 1 to 3 axes and any devices."""
    if mesh is None:
        sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).filter(lambda s: prod(s) <= 16))
        devices = draw(st.permutations(range(16)))[: prod(sizes)] if draw(st.booleans()) else None
        mesh = mesh_of(sizes, devices)
    rank = draw(st.integers(1, 3))
    entries = [[] for _ in range(rank)]
    for name in draw(st.permutations(mesh.axis_names)):
        entry = draw(st.integers(0, rank))
        if entry < rank:
            entries[entry].append(name)
    written = [draw(st.sampled_from([tuple(e), *e] if len(e) < 2 else [tuple(e)])) if e else None for e in entries]
    while written and written[-1] is None and draw(st.booleans()):
        written.pop()  # entries that are left out are None
    return NamedSharding(mesh, P(*written)), rank


@given(shardings(), st.data())
def test_any_sharding(case, data):
    sharding, rank = case
    shape = tuple(n * data.draw(st.integers(0, 5)) for n in sizes_in(sharding, rank))
    check(sharding, shape)


@given(shardings(), st.data())
def test_uneven_shapes_are_refused_where_jax_refuses_them(case, data):
    sharding, rank = case
    shape = tuple(data.draw(st.lists(st.integers(0, 20), min_size=rank, max_size=rank)))
    parts = sizes_in(sharding, rank)
    uneven = [axis for axis in range(rank) if shape[axis] % parts[axis]]
    if not uneven:
        check(sharding, shape)
        return
    with pytest.raises(ValueError):
        sharding.devices_indices_map(shape)
    with pytest.raises(tiling.TilingError) as caught:
        from_sharding(sharding, shape, F16)
    assert caught.value.where == f"shape[{uneven[0]}]"
    assert f"multiples of {parts[uneven[0]]}," in caught.value.accepted


@given(shardings(), st.data())
def test_padded_shapes_are_those_of_the_next_multiple(case, data):
    sharding, rank = case
    shape = tuple(data.draw(st.lists(st.integers(0, 20), min_size=rank, max_size=rank)))
    placed = from_sharding(sharding, shape, F16, uneven="pad")
    assert placed.type.shape == shape
    padded = tuple(-(-n // parts) * parts for n, parts in zip(shape, sizes_in(sharding, rank), strict=True))
    table = placed.shards()
    assert (table.physical_end - table.start == sharding.shard_shape(padded)).all()
    whole = jax_regions(sharding, padded)
    for device, region in regions(placed).items():
        for (start, end), (first, last), n in zip(region, whole[device], shape, strict=True):
            assert (start, end) == (first, max(min(last, n), first))


# Types


@pytest.mark.parametrize(
    ("spec", "axes", "replicas", "owners"),
    [
        # Neighbours in the order of the mesh are digits of the tile number ...
        (P("x", "y"), [AxisTiling(1, 4), AxisTiling(0, 2)], 1, OwnerMap()),
        (P("y", "x"), [AxisTiling(0, 4), AxisTiling(1, 2)], 1, OwnerMap()),
        (P(("x", "y")), [AxisTiling(0, 8)], 1, OwnerMap()),
        (P("x"), [AxisTiling(0, 2)], 4, OwnerMap()),
        (P(None, "y"), [AxisTiling(1, 4, tile_stride=1)], 2, OwnerMap()),
        (P(), [], 8, OwnerMap()),
        # ... and others are digits of another one.
        (P(("y", "x")), [AxisTiling(0, 8)], 1, OwnerMap(0, (0, 4, 1, 5, 2, 6, 3, 7))),
    ],
)
def test_tiles_follow_the_mesh(spec, axes, replicas, owners):
    placed = from_sharding(NamedSharding(mesh_of((2, 4)), spec), (16, 8), "float16")
    assert placed == PlacedType(TensorType.tiled([16, 8], F16, axes, replicas=replicas), owners)


def test_the_first_replica_is_the_first_in_the_mesh():
    """Also where the axes of the mesh are rearranged: x and z cut, and of the devices along y the first one sends."""
    mesh = mesh_of((2, 2, 2), [3, 1, 7, 5, 2, 0, 6, 4])
    source = NamedSharding(mesh, P(("z", "x")))
    count = count_resharding(source, NamedSharding(mesh_of((1,), [15]), P()), (8,), F32)
    assert np.flatnonzero(count.sent_words).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [
        ("float32", F32),
        (np.float32, F32),
        (np.dtype(">f4"), F32),
        (jax.numpy.float16, F16),
        (jax.numpy.bfloat16, F16),
        ("bfloat16", F16),
        (jax.numpy.dtype("bfloat16"), F16),
        (jax.numpy.float8_e4m3fn, F8F143(0)),
        ("float8_e4m3fnuz", F8F143(0)),
        (F8F143(-3), F8F143(-3)),
    ],
)
def test_dtypes(dtype, precision):
    assert precision_of(dtype) == precision


@pytest.mark.parametrize(
    "dtype",
    ["int32", float, None, jax.numpy.int4, jax.numpy.float8_e5m2, bool, "complex64", 3, [], "f2", [("a", "i4")]],
)
def test_dtypes_that_no_precision_stands_for(dtype):
    with pytest.raises(tiling.FieldError, match=r"dtype: .*bfloat16, float8_e4m3fn,.*tiling\.Precision"):
        precision_of(dtype)


def test_key_arrays_have_no_precision():
    with pytest.raises(tiling.FieldError, match="key<fry>"):
        precision_of(jax.random.key(0).dtype)


# Bytes


@given(st.data())
@settings(max_examples=30)
def test_resharding_moves_what_jax_moves(data):
    """Our plan on JAX's bytes before it gives JAX's bytes after it, on every device."""
    sizes = data.draw(st.sampled_from([(4,), (2, 2), (2, 3), (2, 2, 2)]))
    mesh = mesh_of(sizes, data.draw(st.permutations(range(8)))[: prod(sizes)])
    (source, rank), (destination, _) = (
        data.draw(shardings(mesh).filter(lambda case: case[1] == 2)),
        data.draw(shardings(mesh).filter(lambda case: case[1] == 2)),
    )
    shape = tuple(
        int(np.lcm(a, b)) * data.draw(st.integers(1, 2))
        for a, b in zip(sizes_in(source, rank), sizes_in(destination, rank), strict=True)
    )
    values = np.arange(prod(shape), dtype=np.float32).reshape(shape)
    before, after = (from_sharding(s, shape, values.dtype) for s in (source, destination))
    plan = tiling.plan_copy(
        before.type, after.type, source_owners=before.owners, destination_owners=after.owners, device_tiles=16
    )
    given_array = jax.device_put(values, source)
    buffers = tiling.pack(values, before.type, before.owners, device_tiles=16)
    for shard in given_array.addressable_shards:
        assert bytes(buffers[shard.device.id]) == np.asarray(shard.data).tobytes()
    moved = tiling.execute(plan, buffers)
    for shard in jax.device_put(given_array, destination).addressable_shards:
        assert bytes(moved[shard.device.id]) == np.asarray(shard.data).tobytes()
    assert count_resharding(source, destination, shape, F32).transfers == len(plan.transfers)


# Counts, by hand


def test_gathering_counts_one_multicast_a_block():
    mesh = mesh_of((8,))
    rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    count = count_resharding(rows, whole, (64, 16), "float32")
    assert (count.transfers, count.bytes, count.local_runs) == (8, 64 * 16 * 4, 8)
    assert count.sent_words.tolist() == [128] * 8
    assert count.received_words.tolist() == [7 * 128] * 8
    back = count_resharding(whole, rows, (64, 16), "float32")
    assert (back.transfers, back.bytes, back.local_runs) == (0, 0, 8)


def test_rows_to_columns_of_a_mesh_that_nobody_has():
    """The README's figures: each of 8 devices keeps half of its columns' rows, and gets 2,048 pieces of the others."""
    mesh = AbstractMesh((2, 4), ("x", "y"))
    count = count_resharding(
        NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P(None, "y")), (4096, 4096), "bfloat16"
    )
    assert (count.transfers, count.local_runs, count.bytes) == (8 * 2048, 8 * 2048, 8 * 2048 * 1024 * 2)
    assert count.received_words.tolist() == [2048 * 512] * 8
    assert count.endpoint_lower_bound == 4 * 2048 * 512


def test_the_order_of_devices_counts():
    rows = NamedSharding(mesh_of((4,)), P("x"))
    turned = NamedSharding(mesh_of((4,), [3, 2, 1, 0]), P("x"))
    assert count_resharding(rows, rows, (8,), F32).transfers == 0
    count = count_resharding(rows, turned, (8,), F32)
    assert (count.transfers, count.local_runs) == (4, 0)
    other = NamedSharding(mesh_of((4,), [9, 8, 11, 10]), P("x"))
    count = count_resharding(rows, other, (8,), F32)
    assert (count.device_tiles, np.flatnonzero(count.received_words).tolist()) == (12, [8, 9, 10, 11])
    sides = [from_sharding(sharding, (8,), F32) for sharding in (rows, other)]
    assert count_placed(*sides).transfers == count.transfers


# What can't be read


EXPLICIT = AbstractMesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


@pytest.mark.parametrize(
    ("sharding", "shape", "more", "kind", "words"),
    [
        (
            NamedSharding(mesh_of((2, 4)), P(None, P.UNCONSTRAINED)),
            (8, 8),
            {},
            tiling.FieldError,
            r"spec\[1\]: .*None, a",
        ),
        (
            NamedSharding(mesh_of((2, 4)), P("x", None, "y")),
            (8, 8),
            {},
            tiling.FieldError,
            "sharding.spec: .*at most 2",
        ),
        (
            NamedSharding(EXPLICIT, P("x", unreduced={"y"})),
            (8,),
            {},
            tiling.FieldError,
            "spec.unreduced: .*partial sums",
        ),
        (NamedSharding(mesh_of((2, 4)), P("x")), (8, -1), {}, tiling.FieldError, r"shape\[1\]"),
        (NamedSharding(mesh_of((2, 4)), P("x")), 8, {}, tiling.FieldError, "shape"),
        (NamedSharding(mesh_of((2, 4)), P("x")), (8,), {"uneven": "round"}, tiling.FieldError, "uneven: .*error, pad"),
        (
            NamedSharding(mesh_of((2, 4)), P(None, ("y", "x"))),
            (8, 12),
            {},
            tiling.TilingError,
            r"shape\[1\]: the mesh axes y, x cut it in 8, .*got 12; accepted: multiples of 8, or uneven=\"pad\"",
        ),
        (NamedSharding(mesh_of((2,), [3, 3]), P("x")), (8,), {}, tiling.OwnerError, "mesh: .*twice, got 3"),
        (NamedSharding(Mesh(np.array([]), ("x",)), P()), (8,), {}, tiling.FieldError, "mesh: .*empty"),
        (NamedSharding(AbstractMesh((2, 0), ("x", "y")), P("y")), (8,), {}, tiling.FieldError, "mesh: .*empty"),
        (jax.sharding.SingleDeviceSharding(jax.devices()[0]), (8,), {}, tiling.FieldError, "accepted: NamedSharding"),
        (NamedSharding(AbstractMesh((1,) * 40, tuple(range(40))), P()), (8,), {}, tiling.SizeError, "mesh axes"),
        (NamedSharding(AbstractMesh((2**31 - 1,), ("x",)), P()), (8,), {}, tiling.SizeError, "devices"),
    ],
    ids=range(13),
)
def test_shardings_that_are_refused(sharding, shape, more, kind, words):
    with pytest.raises(kind, match=words):
        from_sharding(sharding, shape, F16, **more)
    with pytest.raises(kind, match=words):
        count_resharding(sharding, sharding, shape, F16, **more)


def test_counts_say_which_side():
    good, open_ = (NamedSharding(mesh_of((2, 4)), P(entry)) for entry in ("x", P.UNCONSTRAINED))
    with pytest.raises(tiling.FieldError, match=r"^destination.sharding.spec\[0\]"):
        count_resharding(good, open_, (8,), F16)
    with pytest.raises(tiling.FieldError, match=r"^source.sharding.spec\[0\]"):
        count_resharding(open_, good, (8,), F16)


def test_reduced_axes_replicate():
    plain, marked = NamedSharding(EXPLICIT, P("x")), NamedSharding(EXPLICIT, P("x", reduced={"y"}))
    assert from_sharding(plain, (8,), F16) == from_sharding(marked, (8,), F16)


# And back


def test_types_as_shardings():
    mesh = mesh_of((2, 4))
    cut = TensorType.tiled([8, 8], F16, {1: 4, 0: 2})
    assert to_sharding(cut, mesh).spec == P("x", "y")
    assert to_sharding(cut, mesh_of((2, 2, 2))).spec == P("x", ("y", "z"))
    assert to_sharding(TensorType.tiled([8, 8], F16, {0: 2, 1: 4}), mesh_of((4, 2))).spec == P("y", "x")
    assert to_sharding(TensorType.replicated([8, 8], F16, 8), mesh).spec == P(None, None)
    assert to_sharding(cut, AbstractMesh((2, 4), ("a", "b"))).spec == P("a", "b")
    turned = OwnerMap(0, tuple(range(7, -1, -1)))
    assert to_sharding(cut, mesh_of((2, 4), range(7, -1, -1)), turned).spec == P("x", "y")
    rotated = OwnerMap(4)  # rows 0 and 1 of the mesh exchanged: tile 0 is device 4
    assert to_sharding(cut, mesh_of((2, 4), [4, 5, 6, 7, 0, 1, 2, 3]), rotated).spec == P("x", "y")
    # In blocks that come out equal, and padding that is allowed and not needed.
    blocks = TensorType.tiled([8, 8], F16, [AxisTiling(0, 8, block_size=1, padding_groups=2, padding="Zero")])
    assert to_sharding(blocks, mesh).spec == P(("x", "y"), None)


@pytest.mark.parametrize(
    ("type", "mesh", "owners", "kind", "words"),
    [
        (
            TensorType.tiled([8], F16, {0: 8}),
            (2, 2),
            None,
            tiling.OwnerError,
            "mesh: a tile.s owner is not in the mesh, got 4",
        ),
        (
            TensorType.tiled([8], F16, {0: 4}),
            (4,),
            OwnerMap(0, (0, 1, 2, 5)),
            tiling.OwnerError,
            "a device of the mesh owns no tile, got 3",
        ),
        (TensorType.tiled([8], F16, {0: 4}), (4,), OwnerMap(4), tiling.OwnerError, "rotation"),
        (TensorType.tiled([8], F16, {0: 4}), (4,), OwnerMap(1), tiling.TilingError, "axis 0 don't follow"),
        (
            TensorType.tiled([8], F16, {0: 4}),
            (4,),
            OwnerMap(0, (0, 2, 1, 3)),
            tiling.TilingError,
            "axis 0 don't follow",
        ),
        (TensorType.tiled([8, 8], F16, {1: 2, 0: 2}), (4,), None, tiling.TilingError, "axis 0 don't follow"),
        (TensorType.tiled([10], F16, {0: 4}), (4,), None, tiling.TilingError, "axis 0 are padded or not of one size"),
        (
            TensorType.tiled([10], F16, [AxisTiling(0, 4, padding_multiple=4, padding="Zero")]),
            (4,),
            None,
            tiling.TilingError,
            "divisors of 10",
        ),
        (
            TensorType.tiled([8], F16, [AxisTiling(0, 4, shard_padding_multiple=4, padding="Zero")]),
            (4,),
            None,
            tiling.TilingError,
            "padded",
        ),
        (TensorType.linear([8], F16, 4), (4,), None, tiling.TilingError, "no Linear"),
        (TensorType.replicated([16, 16], F16, 4, order=tiling.Amp("Left")), (4,), None, tiling.OrderError, "RowMajor"),
        (TensorType.tiled([8], F16, {1: 4}), (4,), None, tiling.TilingError, r"axes\[0\]"),
        ("type", (4,), None, tiling.FieldError, "TensorType"),
        (TensorType.tiled([8], F16, {0: 4}), (4,), (0, 1, 2, 3), tiling.FieldError, "OwnerMap"),
        (TensorType.tiled([8], F16, {0: 4}), None, None, tiling.FieldError, "mesh: .*Mesh, AbstractMesh"),
    ],
    ids=range(15),
)
def test_types_that_no_sharding_says(type, mesh, owners, kind, words):
    with pytest.raises(kind, match=words):
        to_sharding(type, mesh and mesh_of(mesh), owners)


@given(st.data())
def test_what_is_given_back_has_the_same_regions(data):
    """Strided tilings under any owner map: to_sharding is exact, or refuses what no spec of the mesh has."""
    sizes = data.draw(st.sampled_from([(4,), (2, 2), (2, 4), (2, 2, 2), (3, 2)]))
    n = prod(sizes)
    devices = data.draw(st.sampled_from([list(range(n)), list(reversed(range(n))), shuffled(n, 5)]))
    mesh = mesh_of(sizes, devices)
    cuts = data.draw(st.lists(st.sampled_from([2, 3, 4]), max_size=2).filter(lambda c: n % prod(c) == 0))
    strides = [data.draw(st.sampled_from([None, 1, 2, 4])) for _ in cuts]
    axes = [AxisTiling(axis, parts, tile_stride=s) for axis, (parts, s) in enumerate(zip(cuts, strides, strict=True))]
    type = TensorType.tiled([12, 8], F16, axes, replicas=n // prod(cuts))
    owners = data.draw(st.sampled_from([OwnerMap(), OwnerMap(0, tuple(devices)), OwnerMap(n // 2)]))
    try:
        ours = regions(PlacedType(type, owners))
    except tiling.TilingError:  # strides that don't reach every partition
        with pytest.raises(tiling.TilingError):
            to_sharding(type, mesh, owners)
        return
    try:
        sharding = to_sharding(type, mesh, owners)
    except tiling.TilingError:
        all_specs = (NamedSharding(mesh, spec) for spec in specs(NAMES[: len(sizes)], 2))
        fitting = [s for s in all_specs if not any(e % p for e, p in zip((12, 8), sizes_in(s, 2), strict=True))]
        assert all(jax_regions(s, (12, 8)) != ours for s in fitting)
    else:
        assert jax_regions(sharding, (12, 8)) == ours


# Without JAX


def test_jax_is_imported_when_it_is_needed():
    code = "import sys, tiling.interop.jax, tiling.interop.dtensor; print('jax' in sys.modules)"
    assert engine.python(code) == "False\n"


def test_without_jax_the_error_says_what_to_install():
    code = """
import sys
sys.modules["jax"] = None
import tiling, tiling.interop.jax
try:
    tiling.interop.jax.from_sharding(None, (), "float32")
except tiling.MissingExtraError as error:
    print(error)
"""
    assert engine.python(code) == "extra jax: jax is not installed; accepted: pip install 'tensor-tiling[jax]'\n"
