"""Buffers by hand: the built-in example's phases executed, data-types and memory layouts, reuse, and errors."""

import copy
import pickle
import re

import numpy as np
import pytest

import tiling
from tiling import (
    F8F143,
    F16,
    F32,
    Amp,
    AxisTiling,
    BlockMajor,
    BufferShapeError,
    CoordinateMapping,
    CopyError,
    FieldError,
    OwnerError,
    OwnerMap,
    SizeError,
    TensorType,
    report,
)

GARBAGE = 0xAA


def random_array(type, seed=0):
    """Unsigned integers of the precision's size, without a zero byte."""
    itemsize = type.precision.itemsize
    drawn = np.random.default_rng(seed).integers(1, 256, (*type.shape, itemsize), np.uint8)
    return drawn.view(f"u{itemsize}")[..., 0]


def garbage(type, owners=None, device_tiles=None):
    made = tiling.Buffers(type, owners, device_tiles)
    made.data[:] = GARBAGE
    return made


# --- the proof -------------------------------------------------------------------------------------------------------


def copies():
    ((_, phases),) = report.example_cases().graphs
    for phase in phases:
        for case in phase.copies:
            yield pytest.param(case, id=f"{phase.name}, {case.name}")


@pytest.mark.parametrize("case", list(copies()))
def test_phases_move_what_they_say(case):
    plan = tiling.plan_copy(case.source, case.destination, case.mapping, device_tiles=case.device_tiles)
    array = random_array(case.source)
    offsets = case.mapping.offsets or (0,) * array.ndim
    moved = array[tuple(slice(o, o + n) for o, n in zip(offsets, case.destination.shape, strict=True))]
    out = garbage(case.destination, device_tiles=case.device_tiles)
    source = tiling.pack(array, case.source, device_tiles=case.device_tiles)
    assert tiling.execute(plan, source, out=out) is out
    assert np.array_equal(out.data, tiling.pack(moved, case.destination, device_tiles=case.device_tiles).data)
    assert np.array_equal(tiling.unpack(out), moved)


# --- packing by hand -------------------------------------------------------------------------------------------------

PADDED = AxisTiling(0, 1, block_size=16, padding="Zero")


def test_block_major_by_numpy():
    type = TensorType.tiled([729, 1152], F16, [PADDED], order=BlockMajor("TransposedMatrix", 16, 16))
    array = random_array(type)
    padded = np.zeros((736, 1152), np.uint16)
    padded[:729] = array
    want = padded.reshape(46, 16, 72, 16).transpose(2, 0, 1, 3)  # by column blocks, row blocks, rows, columns
    assert tiling.pack(array, type)[0].tobytes() == want.tobytes()


def test_transposed_panels_by_numpy():
    type = TensorType.tiled([729, 1152], F16, [PADDED], order=Amp("TransposedLeft"))
    array = random_array(type)
    padded = np.zeros((736, 1152), np.uint16)
    padded[:729] = array
    want = padded.reshape(46, 16, 1152).transpose(0, 2, 1)
    assert tiling.pack(array, type)[0].tobytes() == want.tobytes()


ORDERS = [tiling.ROW_MAJOR, BlockMajor("Matrix", 32, 5), BlockMajor("TransposedMatrix", 64, 2)]
ORDERS += [Amp(role) for role in ("Left", "TransposedLeft", "TransposedRight", "Output", "TransposedOutput")]
SHAPES = [(1, 1), (16, 64), (150, 197), (4, 33, 70)]


@pytest.mark.parametrize("precision", [F8F143(-4), F16, F32], ids=str)
@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_offset_is_the_storage_maps(shape, order, precision):
    """Sizes that no other test reaches: several vectors, blocks and remainders in one shard."""
    rows, columns = (-(-n // 320) * 320 for n in shape[-2:])
    axes = [AxisTiling(-2, 1, padding_multiple=rows, padding="Zero")]
    axes += [AxisTiling(-1, 1, padding_multiple=columns, padding="Zero")]
    type = TensorType.tiled(shape, precision, axes, order=order)
    array = random_array(type)
    out = garbage(type)
    tiling.pack(array, type, out=out)
    places = tiling.StorageMap(order, precision, (*shape[:-2], rows, columns))
    want = np.zeros(places.bytes // precision.itemsize, array.dtype)
    want[places.offset(np.argwhere(np.ones(shape, bool))) // precision.itemsize] = array.ravel()
    assert np.array_equal(out[0].view(array.dtype), want)
    assert np.array_equal(tiling.unpack(out), array)
    assert np.array_equal(tiling.unpack(out, out=np.asfortranarray(np.zeros_like(array))), array)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_large_arrays(order):
    """Stores go around the cache from some size on."""
    type = TensorType.tiled(
        [2900, 3000], F16, [AxisTiling(a, 1, block_size=320, padding="Zero") for a in (0, 1)], order=order
    )
    array = random_array(type)
    out = garbage(type)
    buffers = tiling.pack(array, type, out=out)
    places = tiling.StorageMap(order, F16, (3200, 3200))
    want = np.zeros(places.bytes // 2, np.uint16)
    rows, columns = np.arange(2900), np.arange(3000)
    zero = np.zeros(1, np.int64)
    by_row = places.offset(np.stack(np.broadcast_arrays(rows, zero), axis=1)) // 2
    by_column = places.offset(np.stack(np.broadcast_arrays(zero, columns), axis=1)) // 2
    want[by_row[:, None] + by_column] = array
    assert np.array_equal(buffers.data.view(np.uint16), want)
    assert np.array_equal(tiling.unpack(buffers), array)
    # Odd places of the memory, where vectors are not aligned.
    block = np.full(len(out.data) + 2, GARBAGE, np.uint8)
    shifted = tiling.Buffers(type, data=block[2:])
    tiling.pack(array, type, out=shifted)
    assert np.array_equal(shifted.data, buffers.data)


def test_large_copies():
    source = TensorType.tiled([4096, 2304], F16, {0: 16})
    for columns in (16, 48, 128, 1152):
        destination = TensorType.tiled([4096, 2304], F16, {1: 2304 // columns})
        plan = tiling.plan_copy(source, destination)
        array = random_array(source)
        out = garbage(destination, device_tiles=plan.device_tiles)
        tiling.execute(plan, tiling.pack(array, source), out=out)
        assert np.array_equal(out.data, tiling.pack(array, destination, device_tiles=plan.device_tiles).data)


TWO = TensorType.tiled([4, 6], F16, {1: 2}, replicas=2)


def test_buffers_are_views_of_one_block():
    buffers = tiling.pack(np.arange(24, dtype=np.float16).reshape(4, 6), TWO, device_tiles=6)
    assert len(buffers) == buffers.device_tiles == 6
    assert buffers.start.tolist() == [0, 24, 48, 72, 96, 96, 96]
    assert buffers.type is TWO
    assert buffers.owners is None
    assert buffers.dtype == np.float16
    assert [len(b) for b in buffers] == [24, 24, 24, 24, 0, 0]
    assert buffers[0].view(np.float16).tolist() == [0, 1, 2, 6, 7, 8, 12, 13, 14, 18, 19, 20]
    assert np.array_equal(buffers[1], buffers[0])  # a replica
    assert np.array_equal(buffers[-3], buffers[2])
    assert len(buffers[1:4]) == 3
    buffers[2][:] = 7
    assert (buffers.data[48:72] == 7).all()
    assert repr(buffers).endswith("on 6 tiles, 96 bytes of float16)")
    with pytest.raises(IndexError, match="tile 6 of 6"):
        buffers[6]
    with pytest.raises(ValueError, match="read-only"):
        buffers.start[0] = 1


def test_bytes_from_elsewhere():
    array = random_array(TWO)
    block = tiling.pack(array, TWO).data.copy()
    block.flags.writeable = False
    assert np.array_equal(tiling.unpack(tiling.Buffers(TWO, data=block)), array)
    staged = tiling.plan_copy(TWO, TensorType.tiled([4, 6], F16, {0: 2}), staging="both")
    assert np.array_equal(tiling.unpack(tiling.execute(staged, tiling.Buffers(TWO, data=block))), array)


@pytest.mark.parametrize("dtype", ["f2", "u2", "i2", "S2", "V2", [("a", "u1"), ("b", "i1")]])
def test_any_kind_of_two_bytes(dtype):
    array = random_array(TWO)
    buffers = tiling.pack(array.view(dtype), TWO)
    assert np.array_equal(buffers.data, tiling.pack(array, TWO).data)
    assert tiling.unpack(buffers).dtype == np.dtype(dtype)
    assert tiling.unpack(buffers).tobytes() == array.tobytes()
    assert np.array_equal(tiling.unpack(buffers, dtype="u2"), array)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_machine_learning_types(name):
    dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), name))
    type = TensorType.tiled([32, 64], F16 if dtype.itemsize == 2 else F8F143(0), {0: 2}, order=Amp("Left"))
    array = np.arange(32 * 64).reshape(32, 64).astype(dtype)
    assert tiling.unpack(tiling.pack(array, type)).dtype == dtype
    assert tiling.unpack(tiling.pack(array, type)).tobytes() == array.tobytes()


@pytest.mark.parametrize("precision, dtypes", [(F32, ["f4", "u4", "i4"]), (F8F143(1), ["u1", "i1", "?"])], ids=str)
def test_other_sizes(precision, dtypes):
    type = TensorType.tiled([16, 32], precision, {0: 4}, order=Amp("Left"))
    array = random_array(type)
    for dtype in dtypes:
        assert tiling.unpack(tiling.pack(array.view(dtype), type)).tobytes() == array.tobytes()


def test_any_strides():
    type = TensorType.tiled([32, 48], F16, {0: 2, 1: 3}, order=Amp("TransposedLeft"))
    array = random_array(type)
    want = tiling.pack(array, type).data
    wide = np.zeros((32, 96), np.uint16)
    wide[:, ::2] = array
    unaligned = np.zeros(32 * 48 * 2 + 1, np.uint8)[1:].view(np.uint16).reshape(32, 48)
    unaligned[:] = array
    for same in (np.asfortranarray(array), wide[:, ::2], array[::-1, ::-1].copy()[::-1, ::-1], unaligned):
        assert np.array_equal(tiling.pack(same, type).data, want)
    broadcast = np.broadcast_to(array[:, :1], (32, 48))
    assert np.array_equal(tiling.unpack(tiling.pack(broadcast, type)), broadcast)


def test_degenerate_tensors():
    scalar = TensorType.tiled([], F32, replicas=3)
    assert [b.view(np.float32)[0] for b in tiling.pack(np.float32(2.5), scalar)] == [2.5] * 3
    assert tiling.unpack(tiling.pack(np.float32(2.5), scalar)) == 2.5
    empty = TensorType.tiled([0, 5], F16, {1: 5})
    assert tiling.unpack(tiling.pack(np.zeros((0, 5), np.float16), empty)).shape == (0, 5)
    padded = TensorType.tiled([1, 3], F16, [AxisTiling(0, 3, shard_padding_multiple=2, padding="Zero")])
    out = garbage(padded)
    tiling.pack(np.ones((1, 3), np.int16), padded, out=out)
    assert out.data.view(np.int16).tolist() == [1] * 3 + [0] * (len(out.data) // 2 - 3)


def test_buffers_go_between_processes():
    buffers = tiling.pack(random_array(TWO).view("f2"), TWO, OwnerMap(1), 5)
    for same in (pickle.loads(pickle.dumps(buffers)), copy.deepcopy(buffers)):
        assert (same.type, same.owners, same.device_tiles, same.dtype) == (TWO, OwnerMap(1), 5, np.float16)
        assert np.array_equal(same.data, buffers.data)
        assert not np.may_share_memory(same.data, buffers.data)


def test_out_is_reused():
    first, second = random_array(TWO, 1), random_array(TWO, 2)
    out = tiling.pack(first, TWO)
    before = out.data
    assert tiling.pack(second.view("f2"), TWO, out=out) is out
    assert out.data is before
    assert out.dtype == np.float16
    array = np.empty((4, 6), np.int16)
    assert tiling.unpack(out, out=array) is array
    assert np.array_equal(array.view("u2"), second)
    plan = tiling.plan_copy(TWO, TWO, source_owners=OwnerMap(1), device_tiles=4)
    source = tiling.pack(first, TWO, OwnerMap(1), 4)
    assert np.array_equal(tiling.execute(plan, source, out=out).data, tiling.pack(first, TWO, device_tiles=4).data)
    assert out.dtype == np.uint16


def test_a_device_that_is_larger_than_the_source():
    """The plan's device has the destination's tiles; the source's own buffers will do where they are the same."""
    source, destination = TensorType.tiled([8, 4], F16, {0: 2}), TensorType.tiled([8, 4], F16, {0: 8})
    plan, array = tiling.plan_copy(source, destination), random_array(source)
    assert np.array_equal(tiling.unpack(tiling.execute(plan, tiling.pack(array, source))), array)


# --- errors ----------------------------------------------------------------------------------------------------------

ARRAY = random_array(TWO)
ROWS = TensorType.tiled([4, 6], F16, {0: 2})


def frozen(buffers):
    buffers.data.flags.writeable = False
    return buffers


def with_data(data):
    buffers = tiling.pack(ARRAY, TWO)
    buffers.data = data
    return buffers


PACK_ERRORS = [
    (
        {"array": np.zeros((4, 6), np.float32)},
        BufferShapeError,
        "array.dtype: wrong item size for F16, got 'float32'; accepted: any of 2 bytes, such as uint16",
    ),
    ({"array": np.zeros((4, 6), object)}, BufferShapeError, "array.dtype: wrong item size for F16, got 'object'"),
    (
        {"array": ARRAY.astype(">u2")},
        BufferShapeError,
        "array.dtype: bytes in the other order than the machine's, got '>u2'; accepted: uint16",
    ),
    (
        {"array": np.zeros((6, 4), "u2")},
        BufferShapeError,
        "array: wrong shape, got (6, 4); accepted: (4, 6), the tensor's",
    ),
    ({"array": [[1, 2], [3]]}, BufferShapeError, "array: not an array"),
    ({"type": "F16"}, FieldError, "type: wrong type, got 'F16'; accepted: TensorType"),
    ({"owners": 1}, FieldError, "owners: wrong type, got 1; accepted: OwnerMap"),
    ({"device_tiles": 3}, OwnerError, "device_tiles"),
    ({"device_tiles": [4]}, FieldError, "device_tiles: not an integer in range, got [4]"),
    ({"device_tiles": 4.0}, FieldError, "device_tiles: not an integer in range, got 4.0"),
    ({"out": np.zeros(96, np.uint8)}, FieldError, "out: wrong type"),
    (
        {"out": tiling.Buffers(ROWS)},
        BufferShapeError,
        "out.type: of another type, got TensorType([4, 6] F16 RowMajor, 2 tiles",
    ),
    (
        {"out": tiling.Buffers(TWO, device_tiles=5)},
        BufferShapeError,
        "out.device_tiles: of another number of tiles, got 5; accepted: 4",
    ),
    (
        {"out": tiling.Buffers(TWO, OwnerMap(1))},
        BufferShapeError,
        "out.owners: on other tiles, got OwnerMap(rotation 1)",
    ),
    ({"out": frozen(tiling.Buffers(TWO))}, BufferShapeError, "out.data: read-only; accepted: writable memory"),
    ({"out": with_data(np.zeros(95, np.uint8))}, BufferShapeError, "out.data: wrong size, got 95; accepted: 96 bytes"),
    ({"out": with_data(np.zeros(192, np.uint8)[::2])}, BufferShapeError, "out.data: not contiguous, got (2,)"),
    (
        {"out": with_data(np.zeros(48, np.uint16))},
        BufferShapeError,
        "out.data: not a flat array of bytes, got '1-dimensional uint16'; accepted: (96,) uint8",
    ),
    ({"out": with_data(bytearray(96))}, BufferShapeError, "out.data: not a flat array of bytes, got 'bytearray'"),
    (
        {"array": np.broadcast_to(np.uint16(1), (2**40, 2**20)), "type": TensorType.tiled([2**40, 2**20], F16)},
        SizeError,
        "type: no memory for the buffers",
    ),
    (
        {
            "array": np.broadcast_to(np.uint16(1), (2**40, 2**20)),
            "type": TensorType.tiled([2**40, 2**20], F16, replicas=8),
        },
        SizeError,
        "type: the tiles' buffers are too large together",
    ),
]


@pytest.mark.parametrize("wrong, kind, message", PACK_ERRORS, ids=[m for _, _, m in PACK_ERRORS])
def test_pack_errors(wrong, kind, message):
    arguments = {"array": ARRAY, "type": TWO, **wrong}
    out = arguments.get("out")
    before = bytes(out.data) if isinstance(out, tiling.Buffers) else None
    with pytest.raises(kind, match=re.escape(message)):
        tiling.pack(**arguments)
    assert before is None or bytes(out.data) == before


def test_memory_that_is_read_is_not_written():
    buffers = tiling.pack(ARRAY, TWO)
    view = buffers.data[:48].view(np.uint16).reshape(4, 6)
    with pytest.raises(BufferShapeError, match=r"out.data: the memory that is read; accepted: memory of its own"):
        tiling.pack(view, TWO, out=buffers)
    with pytest.raises(BufferShapeError, match=r"out: the memory that is read"):
        tiling.unpack(buffers, out=view)
    with pytest.raises(BufferShapeError, match=r"out.data: the memory that is read"):
        tiling.execute(tiling.plan_copy(TWO, TWO), buffers, out=buffers)


UNPACK_ERRORS = [
    ({"buffers": [b"x"]}, FieldError, "buffers: wrong type"),
    (
        {"buffers": with_data(np.zeros(97, np.uint8))},
        BufferShapeError,
        "buffers.data: wrong size, got 97; accepted: 96 bytes",
    ),
    ({"dtype": "f4"}, BufferShapeError, "dtype: wrong item size for F16, got 'float32'"),
    ({"dtype": "nothing"}, BufferShapeError, "dtype: not a data-type, got 'nothing'"),
    ({"out": [0]}, FieldError, "out: wrong type, got [0]; accepted: ndarray"),
    ({"out": np.zeros((4, 5), "u2")}, BufferShapeError, "out: wrong shape, got (4, 5); accepted: (4, 6), the tensor's"),
    ({"out": np.zeros((4, 6), "u4")}, BufferShapeError, "out.dtype: wrong item size for F16"),
    (
        {"out": np.zeros((4, 6), "u2"), "dtype": "f2"},
        BufferShapeError,
        "out: not the asked data-type, got 'uint16'; accepted: f2",
    ),
    ({"out": np.broadcast_to(np.uint16(0), (4, 6))}, BufferShapeError, "out: read-only; accepted: writable memory"),
]


@pytest.mark.parametrize("wrong, kind, message", UNPACK_ERRORS, ids=[m for _, _, m in UNPACK_ERRORS])
def test_unpack_errors(wrong, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        tiling.unpack(**{"buffers": tiling.pack(ARRAY, TWO), **wrong})


PLAN = tiling.plan_copy(TWO, ROWS, source_owners=OwnerMap(1), device_tiles=4)
GIVEN = tiling.pack(ARRAY, TWO, OwnerMap(1), 4)
EXECUTE_ERRORS = [
    ({"plan": 1}, FieldError, "plan: wrong type, got 1; accepted: CopyPlan"),
    ({"buffers": []}, FieldError, "buffers: wrong type, got []; accepted: Buffers"),
    ({"buffers": tiling.Buffers(ROWS)}, CopyError, "buffers.type: not the plan's source, got TensorType([4, 6] F16"),
    (
        {"buffers": tiling.pack(ARRAY, TWO)},
        CopyError,
        "buffers.owners: not on the tiles of the plan's source, got (None, 4); accepted: "
        "OwnerMap(rotation 1) of 4 tiles",
    ),
    (
        {"buffers": tiling.pack(ARRAY, TWO, OwnerMap(1), 5)},
        CopyError,
        "buffers.owners: not on the tiles of the plan's source",
    ),
    ({"out": tiling.Buffers(TWO)}, BufferShapeError, "out.type: of another type"),
    (
        {"out": tiling.Buffers(ROWS)},
        BufferShapeError,
        "out.device_tiles: of another number of tiles, got 2; accepted: 4",
    ),
    ({"out": frozen(tiling.Buffers(ROWS, device_tiles=4))}, BufferShapeError, "out.data: read-only"),
]


@pytest.mark.parametrize("wrong, kind, message", EXECUTE_ERRORS, ids=[m for _, _, m in EXECUTE_ERRORS])
def test_execute_errors(wrong, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        tiling.execute(**{"plan": PLAN, "buffers": GIVEN, **wrong})


def test_buffers_errors():
    with pytest.raises(BufferShapeError, match=r"data: wrong size, got 95; accepted: 96 bytes"):
        tiling.Buffers(TWO, data=np.zeros(95, np.uint8))
    with pytest.raises(BufferShapeError, match=r"dtype: wrong item size for F16, got 'uint8'"):
        tiling.Buffers(TWO, dtype="u1")


@pytest.mark.parametrize(
    "column, value",
    [
        ("source_offset", 23),
        ("source_offset", -2),
        ("source_tile", 4),
        ("source_tile", -1),
        ("bytes", 1 << 40),
        ("bytes", -8),
        ("destination_tile", 7),
        ("destination_offset", 1 << 40),
        ("destination_offset", -1),
        ("destination_start", 1 << 40),
        ("destination_start", -5),
    ],
)
def test_a_changed_plan_writes_nowhere_else(column, value):
    """Columns are writable arrays; what was made of them must not reach memory outside the buffers."""
    plan = tiling.plan_copy(TWO, ROWS)
    getattr(plan.transfers, column)[-1] = value
    with pytest.raises(CopyError, match=r"plan.transfers\[\d+\]: a run outside its tile's buffer"):
        tiling.execute(plan, tiling.pack(ARRAY, TWO))


def test_views_and_offsets():
    source = TensorType.tiled([2, 8, 12], F16, {1: 4})
    destination = TensorType.tiled([6, 8, 4], F16, {0: 3})
    view = tiling.AxisView(split_axis=2, merge_axis=0, factor=3)
    plan = tiling.plan_copy(source, destination, CoordinateMapping(view=view))
    array = random_array(source)
    heads = array.reshape(2, 8, 3, 4).transpose(0, 2, 1, 3).reshape(6, 8, 4)
    assert np.array_equal(tiling.unpack(tiling.execute(plan, tiling.pack(array, source))), heads)
    shifted = tiling.plan_copy(source, source, CoordinateMapping((0, 2, -3)), outside="zero", staging="both")
    want = np.zeros_like(array)
    want[:, :6, 3:] = array[:, 2:, :-3]
    assert np.array_equal(tiling.unpack(tiling.execute(shifted, tiling.pack(array, source))), want)
