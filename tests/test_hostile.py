"""Hostile input: only a `LayoutError` (or `OSError`, for files) comes out, soon and in little memory.

`pytest --long` multiplies the cases; `TILING_LOGS` names a folder of real logs to be broken as well.
"""

import copy
import json
import math
import os
import random
import re
import sys
import textwrap
import time
import tracemalloc
from pathlib import Path

import engine
import numpy as np
import pytest
import strategies
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from test_midgraph import DUMP, pretty

import tiling
from tiling import F16, ROW_MAJOR, Amp, BlockMajor, LayoutError, StorageMap, TensorType
from tiling.buildlog import parse_log, read_log
from tiling.cli import main
from tiling.midgraph import parse_midgraph
from tiling.report import CaseFile, CopyFields, Logged, PhaseFields

LONG = os.environ.get("TILING_LONG") == "1"
TESTS = Path(__file__).parent
LOGS = sorted((TESTS / "data" / "logs").glob("*.log"))
REAL_LOGS = sorted(Path(os.environ["TILING_LOGS"]).glob("*.log")) if "TILING_LOGS" in os.environ else []


def fuzz(examples):
    return settings(max_examples=examples * 40 if LONG else examples // 2, deadline=None)


def survives(call):
    """What a call returns, or None if it raised a `LayoutError`, which says something."""
    try:
        return call()
    except LayoutError as error:
        caught = error
    assert str(caught).strip()
    assert caught.what
    return None


class Bounds:
    """Time and traced memory that a block may take."""

    def __init__(self, seconds, size):
        self.seconds, self.size = seconds, size

    def __enter__(self):
        tracemalloc.start()
        self.start = time.perf_counter()

    def __exit__(self, kind, *_):
        peak, taken = tracemalloc.get_traced_memory()[1], time.perf_counter() - self.start
        tracemalloc.stop()
        if kind is None:
            assert peak <= self.size
            assert taken <= self.seconds


# --- JSON ------------------------------------------------------------------------------------------------------------

GONE, EXTRA = object(), object()
DEEP = json.loads("[" * 200 + "]" * 200)
VALUES = [
    *(GONE, EXTRA, None, True, False, "", "x", "F16", "Linear", "\x00", "\ud800", 0, -1, 1, 3, 1.0, 1.5, 1e300),
    *(math.nan, math.inf, -math.inf, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 2**70, -(2**63), -(2**70)),
    *([], {}, [[]], [None], {"": {}}, {"FromStart": -1}, {"FromEnd": 0}, {"F8F143": {}}, {"Amp": None}, DEEP),
    *({"BlockMajor": {"Matrix": []}}, list(range(1000)), "9" * 5000, {"a": DEEP}),
]
MAPPING = {"offsets": [1, 0], "view": {"split_axis": 0, "merge_axis": 1, "factor": 2, "reversed": False}}
OWNERS = {"rotation": 1, "embedding": [3, 1, 2]}
FULL = TensorType.tiled(
    [96, 64], tiling.F8F143(-4), {0: 3, 1: 2}, order=BlockMajor("Matrix", 32, 16), replicas=2
).to_json()
LEFT = TensorType.tiled([32, 32], F16, {"Linear": 2}, order=Amp("Left")).to_json()


def places(obj, path=()):
    """The paths of everything in a JSON value but itself."""
    items = obj.items() if isinstance(obj, dict) else enumerate(obj) if isinstance(obj, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def changed(obj, path, value):
    obj = copy.deepcopy(obj)
    at = obj
    for key in path[:-1]:
        at = at[key]
    if value is GONE:
        del at[path[-1]]
    elif value is EXTRA:
        at[path[-1]] = {"a": 1, **at[path[-1]]} if isinstance(at[path[-1]], dict) else {"a": at[path[-1]]}
    else:
        at[path[-1]] = value
    return obj


def as_text(obj):
    return json.dumps(obj, allow_nan=True)


def small(type):
    """Whether lists of a legal type are short."""
    table = survives(lambda: tiling.enumerate_shards(type))
    return table is not None and max(table.tile_bytes.max(), table.physical_end.max(initial=0)) < 4096


def use(first, second, mapping=None, **more):
    """Everything that takes types; the results have to be whole."""
    if not (small(first) and small(second)):
        return
    for a, b in ((first, second), (second, first), (first, first)):
        count = survives(lambda a=a, b=b: tiling.count_copy(a, b, mapping, **more))
        plan = survives(lambda a=a, b=b: tiling.plan_copy(a, b, mapping, **more))
        assert (count is None) == (plan is None)
        if count is not None:
            assert (count.transfers, count.local_runs) == (len(plan.transfers), len(plan.local))
            assert count.bytes == plan.transfers.bytes.sum()
            assert plan.zero_fill.bytes.min(initial=1) > 0
        many = survives(lambda a=a, b=b: tiling.count_copies([(a, b, mapping)]))
        assert many is None or len(many) == 1


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        (TensorType, FULL),
        (TensorType, LEFT),
        (tiling.CoordinateMapping, MAPPING),
        (tiling.OwnerMap, OWNERS),
        (tiling.AxisTiling, FULL["format"]["layout"]["tiling"]["axes"][0]),
    ],
    ids=["type", "linear", "mapping", "owners", "axis"],
)
def test_json_with_one_thing_wrong(kind, obj):
    tried = 0
    for path in places(obj):
        for value in VALUES:
            wrong = changed(obj, path, value)
            made = survives(lambda wrong=wrong: kind.from_json(wrong))
            if value is GONE and isinstance(path[-1], str) and path[-1] in ("shape", "format", "layout", "axis"):
                assert made is None
            text = as_text(wrong)
            again = survives(lambda text=text: kind.from_json(text))
            again = survives(lambda text=text: kind.from_json(text.encode()))
            if made is not None and again is not None:
                assert made == again == kind.from_json(made.to_json())
                if kind is TensorType:
                    survives(lambda made=made: tiling.enumerate_shards(made))
            tried += 3
    assert tried > 500


@fuzz(60)
@given(st.data())
def test_json_with_some_things_wrong(data):
    case = data.draw(strategies.copies(long=0))
    sides = []
    for name in ("source", "destination"):
        made = case[name]
        for _ in range(data.draw(st.integers(0, 3))):
            path = data.draw(st.sampled_from(list(places(made)) or [()]))
            value = data.draw(st.sampled_from(VALUES) | st.integers(-4, 70) | st.just([2, 3]))
            if path:
                made = changed(made, path, value)
        sides.append(survives(lambda made=made: TensorType.from_json(as_text(made))))
    if None not in sides:
        mapping = case["mapping"] and tiling.CoordinateMapping.from_json(case["mapping"])
        use(*sides, mapping, staging=case["staging"], outside=case["outside"])


@fuzz(100)
@given(st.text() | st.binary() | st.text('{}[]",:0123456789.eE-+tfn \n', max_size=60))
def test_json_that_is_any_text(text):
    for kind in (TensorType, tiling.OwnerMap, tiling.CoordinateMapping):
        survives(lambda kind=kind: kind.from_json(text))


@fuzz(100)
@given(st.integers(0, len(as_text(FULL))), st.binary(min_size=1, max_size=3), st.integers(0, 3))
def test_json_with_bytes_changed(at, by, length):
    data = as_text(FULL).encode()
    survives(lambda: TensorType.from_json(data[:at] + by + data[at + length :]))
    survives(lambda: TensorType.from_json(data[:at]))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@fuzz(100)
@given(json_values)
def test_any_value_is_read_or_refused(obj):
    kinds = (TensorType, tiling.Layout, tiling.AxisTiling, tiling.OwnerMap, tiling.CoordinateMapping, CaseFile)
    for kind in kinds:
        survives(lambda kind=kind: kind.from_json(obj))
    for variant in (tiling.Precision, tiling.ElementOrder, tiling.TensorAxis):
        survives(lambda variant=variant: variant.from_json(obj))


FEW = CaseFile(
    "few",
    {"a": TensorType.sharded([8, 4], F16, 0, 4), "b": TensorType.sharded([8, 4], F16, 1, 2)},
    (PhaseFields("one", (CopyFields("c", "a", "b", (0, 0), source_owners=tiling.OwnerMap(1)),), "g", Logged("l", 3)),),
    6,
    (Logged("m", 12, 2, 4),),
).to_json()


@fuzz(300)
@given(st.data())
def test_cases_with_some_things_wrong(data):
    made = FEW
    for _ in range(data.draw(st.integers(0, 3))):
        path = data.draw(st.sampled_from(list(places(made)) or [()]))
        if path:
            made = changed(made, path, data.draw(st.sampled_from(VALUES) | st.integers(-4, 70)))
    survives(lambda: CaseFile.from_json(as_text(made)).cases().report().to_json())


def test_variants_are_read_from_any_bytes():
    for variant in (tiling.Precision, tiling.ElementOrder, tiling.TensorAxis):
        for data in (b"", b"[", b"garbage", b"\xff", b"[" * 100_000, b'"\\ud800"', b"nan"):
            with pytest.raises(LayoutError):
                variant.from_json(data)


@pytest.mark.parametrize("value", [10**5000, -(10**5000), [10**5000]], ids=["large", "small", "list"])
def test_numbers_that_python_does_not_write(value):
    # More than 4,300 digits have no `repr`; the error has to have a text all the same.
    with pytest.raises(LayoutError, match="partitions"):
        tiling.AxisTiling(0, value)


def test_reading_a_type_takes_memory_by_its_text():
    for text in (
        as_text(changed(FULL, ("shape",), [2**31] * 3000)),
        as_text(
            changed(FULL, ("format", "layout", "tiling", "axes"), [FULL["format"]["layout"]["tiling"]["axes"][0]] * 80)
        ),
        "[" * 10_000,
        '{"shape": ' * 1000,
        '{"shape": "' + "x" * 10_000,
    ):
        with Bounds(seconds=5, size=8_000_000):
            survives(lambda text=text: tiling.enumerate_shards(TensorType.from_json(text)))


# --- types that no machine holds -------------------------------------------------------------------------------------

# In a process of its own with 4 GB: every one is a SizeError, and none is killed or waits for memory.
GIANTS = {
    "replicas": "enumerate_shards(whole([4], F16, 2**31 - 1))",
    "replicas, counted": "count_copy(whole([4], F16, 2**31 - 1), whole([4], F16, 1))",
    "multicast, counted": "count_copy(whole([4], F16, 1), whole([4], F16, 2**31 - 1))",
    "partitions": "enumerate_shards(TensorType.sharded([4], F16, 0, 2**31 - 1))",
    "partitions, counted": "count_copy(TensorType.sharded([2**40], F16, 0, 2**31 - 1), whole([2**40], F16, 1))",
    "linear rows": "enumerate_shards(TensorType.linear([2**40, 1], F16, 4))",
    "fewer linear rows": "enumerate_shards(TensorType.linear([2**30, 1], F16, 4))",
    "linear tiles": "enumerate_shards(TensorType.linear([2**40], F16, 2**31 - 1))",
    "linear, counted": "count_copy(TensorType.linear([2**30, 1], F16, 4), whole([2**30, 1], F16, 1))",
    "device": "count_copy(whole([4], F16, 1), whole([4], F16, 1), device_tiles=2**31 - 1)",
    "smaller device": "count_copy(whole([4], F16, 1), whole([4], F16, 1), device_tiles=2**28)",
    "device, listed": "enumerate_shards(whole([4], F16, 1), device_tiles=2**31 - 1)",
    "embedding": "count_copy(whole([4], F16, 1), whole([4], F16, 1), source_owners=OwnerMap(0, (2**31 - 2,)))",
    "view": "count_copy(whole([2**40, 4], F16, 1), whole([1, 2**42], F16, 1), view(0, 1, 2**40))",
    "reversed view": "count_copy(whole([4, 2**40], F16, 1), whole([2**42, 1], F16, 1), view(0, 1, 2**40, True))",
    "strides": "count_copy(TensorType.tiled([4], F16, [AxisTiling(0, 2, tile_stride=3)], replicas=2**30 - 1), four)",
    "list": "plan_copy(TensorType.tiled([2**29, 4], F32, {1: 2}), TensorType.tiled([2**29, 4], F32, {0: 2}))",
}
CHILD = """
import faulthandler, resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
faulthandler.dump_traceback_later(50, exit=True)
from tiling import *

def view(*fields):
    return CoordinateMapping((), AxisView(*fields))

whole = TensorType.replicated
four = whole([4], F16, 1)
for name, code in {cases!r}.items():
    try:
        result = repr(eval(code))
    except BaseException as error:
        result = type(error).__name__
    print(name, result, sep=": ", flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizer needs terabytes of addresses")
def test_types_that_no_machine_holds():
    code = textwrap.dedent(CHILD).format(cases=GIANTS)
    done = engine.python(code, timeout=100, check=False)
    assert done.splitlines() == [f"{name}: SizeError" for name in GIANTS]


@pytest.mark.long
def test_what_can_only_be_walked_is_given_up():
    a, b = TensorType.replicated([2**40, 4], F16, 1), TensorType.tiled([2**39, 8], F16, {1: 2})
    halves = tiling.CoordinateMapping((), tiling.AxisView(0, 1, 2))
    with pytest.raises(tiling.SizeError):
        tiling.count_copy(a, b, halves)
    heads = TensorType.tiled([2**20, 2**21], F16)  # two elements of the first of 2^20 rows, each cut in 2^20 heads
    with pytest.raises(tiling.SizeError):
        tiling.count_copy(
            heads, TensorType.tiled([1, 2], F16), tiling.CoordinateMapping((), tiling.AxisView(1, 0, 2**20))
        )
    cuts = [TensorType.tiled([3] * 26, tiling.F8F143(0), dict.fromkeys(range(first, 26, 2), 2)) for first in (0, 1)]
    lanes = [
        TensorType.tiled(
            [3 * 2**40, columns],
            tiling.F8F143(0),
            [tiling.AxisTiling(1, 1, block_size=64, padding="Zero")],
            order=BlockMajor("TransposedMatrix", 64, block),
        )
        for columns, block in ((128, 3 * 2**39), (127, 2**39))
    ]
    with pytest.raises(tiling.SizeError):
        tiling.count_copy(*cuts)
    with pytest.raises(tiling.SizeError):
        tiling.count_copy(*lanes, tiling.CoordinateMapping((0, 1)), staging="none")
    with pytest.raises(tiling.SizeError):
        StorageMap(ROW_MAJOR, F16, [2**40, 4]).spans([0, 0], [2**40, 2])


# --- arguments of the wrong kind -------------------------------------------------------------------------------------

FOUR = TensorType.replicated([4], F16, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tiling.count_copies(5),
        lambda: tiling.count_copies([], progress=5),
        lambda: tiling.ExchangePhase(5),
        lambda: TensorType.tiled(5, F16),
        lambda: TensorType.tiled([4], F16, 5),
        lambda: TensorType.tiled([4], F16, [5]),
        lambda: tiling.TensorTiling(4, 2, 5),
    ],
)
def test_sequences_that_are_none(call):
    with pytest.raises(LayoutError):
        call()


@pytest.mark.parametrize("value", [None, 5, "x", b"x", [1], {}, 1.5, math.nan, object(), FOUR, lambda: 1])
def test_arguments_of_any_kind(value):
    for name in ("source", "destination", "mapping", "staging", "outside", "source_owners", "destination_owners"):
        arguments = {"source": FOUR, "destination": FOUR, name: value}
        if not (name.endswith(("mapping", "owners")) and value is None) and value is not FOUR:
            with pytest.raises(LayoutError):
                tiling.count_copy(**arguments)
            with pytest.raises(LayoutError):
                tiling.plan_copy(**arguments)
    if not isinstance(value, int) and value is not None:
        for call in (
            lambda: tiling.count_copy(FOUR, FOUR, device_tiles=value),
            lambda: tiling.plan_copy(FOUR, FOUR, max_transfers=value),
            lambda: tiling.enumerate_shards(FOUR, device_tiles=value),
            lambda: tiling.plan_copy(FOUR, FOUR, require_aligned=value),
            lambda: tiling.count_copies([value]),
            lambda: tiling.count_copies([], executor=value),
            lambda: tiling.ExchangePhase([value]),
        ):
            with pytest.raises(LayoutError):
                call()
    for call in (lambda: parse_log(value), lambda: parse_midgraph(value)):
        survives(call)
    if not isinstance(value, (str, bytes, int)):  # a number is an open file
        with pytest.raises(LayoutError):
            read_log(value)


# --- arrays ----------------------------------------------------------------------------------------------------------

SHARD = StorageMap(Amp("Left"), F16, [16, 32])
POINTS = np.argwhere(np.ones((16, 32), np.int64))


def shapes_of(array):
    """The same values in other memory, and whether they are to be taken."""
    wide = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
    wide[..., ::2] = array
    locked = array.copy()
    locked.flags.writeable = False
    yield array.astype(">i8"), True
    yield array.astype("<i2"), True
    yield array.astype(np.uint32), True
    yield np.asfortranarray(array), True
    yield wide[..., ::2], True
    yield array[::-1][::-1], True
    yield locked, True
    yield array.tolist(), True
    yield array.astype(np.uint64), False
    yield array.astype(np.float64), False
    yield array.astype(bool), False
    yield array.astype(complex), False
    yield array.astype(object), False
    yield array.astype(str), False
    yield array.astype("M8[s]"), False
    yield array.view([("a", np.int64)]), False
    yield array[None], False
    yield array.reshape(-1)[0], False
    yield b"12345678", False
    yield None, False


def test_storage_maps_take_arrays_of_any_memory():
    offsets = SHARD.offset(POINTS)
    for values, taken in shapes_of(POINTS):
        got = survives(lambda values=values: SHARD.offset(values))
        assert (got is not None) == taken
        assert got is None or (got == offsets).all()
    for values, taken in shapes_of(offsets):
        got = survives(lambda values=values: SHARD.coordinate(values))
        assert (got is not None) == taken
        assert got is None or (got == POINTS).all()
    for values, taken in shapes_of(np.array([3, 5])):
        got = survives(lambda values=values: SHARD.spans(values, [16, 32]))
        assert (got is not None) == taken
        assert (survives(lambda values=values: StorageMap(ROW_MAJOR, F16, values)) is not None) == taken


@pytest.mark.parametrize("values", [[[0, 1], [2]], [[0, 1], [2, [3]]], [1, [2]]], ids=["short", "deep", "mixed"])
def test_rows_of_different_lengths(values):
    for call in (SHARD.offset, SHARD.coordinate, lambda v: SHARD.spans(v, v), lambda v: StorageMap(ROW_MAJOR, F16, v)):
        with pytest.raises(LayoutError):
            call(values)


@fuzz(200)
@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 40), min_size=2, max_size=2), max_size=8))
def test_coordinates_and_offsets_of_any_value(rows):
    points = np.array(rows, np.int64).reshape(-1, 2)
    inside = ((points >= 0) & (points < [16, 32])).all()
    got = survives(lambda: SHARD.offset(points))
    assert (got is not None) == inside
    flat = points.reshape(-1)
    got = survives(lambda: SHARD.coordinate(flat))
    assert (got is not None) == bool(((flat >= 0) & (flat < SHARD.bytes) & (flat % 2 == 0)).all())
    if len(points) >= 2:
        low, high = points[0], points[1]
        got = survives(lambda: SHARD.spans(low, high))
        assert (got is not None) == bool(((low >= 0) & (low <= high) & (high <= [16, 32])).all())
        assert got is None or got[:, 1].sum() == np.prod(high - low) * 2


# --- arrays and buffers ----------------------------------------------------------------------------------------------

SHAPE = (20, 48)
PACKED = TensorType.tiled(SHAPE, F16, [tiling.AxisTiling(0, 3, block_size=16, padding="Zero")], order=Amp("Left"))
COPIES = [
    tiling.plan_copy(PACKED, TensorType.tiled(SHAPE, F16, {1: 4})),
    tiling.plan_copy(PACKED, TensorType.tiled(SHAPE, F16, {"Linear": 5})),
    tiling.plan_copy(PACKED, TensorType.replicated(SHAPE, F16, 3), destination_owners=tiling.OwnerMap(2)),
]
DTYPES = ["u1", "i1", "?", "u2", "i2", "f2", ">u2", ">f2", "u4", "f4", "u8", "c8", "M8[s]", "S2", "V2", "U1", "O"]
GUARD = 4096


@st.composite
def arrays(draw):
    """Arrays of any data-type, shape and memory; most are what `pack` takes, some almost."""
    shape = draw(st.sampled_from([SHAPE] * 6 + [SHAPE[::-1], (20,), (20, 47), (0, 48), (20, 48, 1), (), (960,)]))
    dtype = np.dtype(draw(st.sampled_from(["u2", "f2", "i2", "V2"] * 4 + DTYPES)))
    if dtype.hasobject:
        return np.full(shape, None)
    count = 4 * int(np.prod(shape))
    data = np.random.default_rng(0).integers(1, 255, count * dtype.itemsize, np.uint8).view(dtype)
    array = data[: count // 4].reshape(shape)
    match draw(st.integers(0, 7)):
        case 0:
            array = np.asfortranarray(array)
        case 1 if array.ndim:
            array = array[::-1]
        case 2 if array.ndim == 2:
            array = data.reshape(shape[0] * 2, shape[1] * 2)[::2, ::2]
        case 3 if array.ndim:
            array = np.broadcast_to(array[:1], array.shape)
        case 4:  # at no multiple of its item size
            array = np.frombuffer(b"x" + array.tobytes(), dtype, offset=1).reshape(shape)
    if draw(st.booleans()):
        array.flags.writeable = False
    return array


@fuzz(400)
@given(arrays(), arrays())
def test_arrays_are_packed_or_refused(array, other):
    right = array.shape == SHAPE and array.dtype.itemsize == 2 and array.dtype.isnative and not array.dtype.hasobject
    buffers = survives(lambda: tiling.pack(array, PACKED))
    assert (buffers is not None) == right
    if buffers is None:
        return
    back = tiling.unpack(buffers)
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    # And any array to write into: done, or not touched.
    before = other.tobytes()
    got = survives(lambda: tiling.unpack(buffers, out=other))
    assert got is None or got is other
    assert other.tobytes() == (before if got is None else array.tobytes())


@fuzz(400)
@given(st.data())
def test_plans_of_any_columns_write_nowhere_else(data):
    plan = copy.deepcopy(data.draw(st.sampled_from(COPIES)))
    rows = data.draw(st.sampled_from([plan.transfers, plan.local, plan.zero_fill]))
    names = [n for n in rows.__slots__ if len(getattr(rows, n))]
    for _ in range(data.draw(st.integers(1, 3)) if names else 0):
        column = getattr(rows, data.draw(st.sampled_from(names)))
        at = data.draw(st.integers(0, len(column) - 1))
        limit = np.iinfo(column.dtype)
        edges = [limit.min, limit.max, limit.max // 2, -1, 0, 1, len(column), int(column[at]) + 1, int(column[at]) - 1]
        column[at] = data.draw(st.sampled_from([e for e in edges if limit.min <= e <= limit.max]))
    source = tiling.pack(np.ones(SHAPE, np.uint16), plan.source, device_tiles=plan.device_tiles)
    size = len(tiling.Buffers(plan.destination, plan.retile.destination.owners, plan.device_tiles).data)
    block = np.full(size + 2 * GUARD, 0xAB, np.uint8)
    out = tiling.Buffers(
        plan.destination, plan.retile.destination.owners, plan.device_tiles, block[GUARD : GUARD + size]
    )
    survives(lambda: tiling.execute(plan, source, out=out))
    assert (block[:GUARD] == 0xAB).all()
    assert (block[GUARD + size :] == 0xAB).all()


COLUMNS = [
    *(np.zeros(3, np.int32), np.arange(0, 24, 8), np.full(3, 8), np.arange(4), np.ones(3, np.int32)),
    np.arange(100, 124, 8),
]


@pytest.mark.parametrize("which", range(6))
def test_lists_of_other_arrays_are_not_folded(which):
    assert len(tiling.Transfers(*COLUMNS).compact()) == 1
    good = COLUMNS[which]
    locked = good.copy()
    locked.flags.writeable = False
    right = [*COLUMNS]
    right[which] = locked
    assert len(tiling.Transfers(*right).compact()) == 1
    wrong = [
        *(good[:-1], np.append(good, good[-1]), good[None], good.astype(np.int16), good.astype(np.float64)),
        *(good.astype(good.dtype.newbyteorder(">")), np.repeat(good, 2)[::2], good[::-1], good.tolist(), None, "x"),
        good.astype(np.int64 if good.dtype == np.int32 else np.int32),
    ]
    for column in wrong:
        columns = [*COLUMNS]
        columns[which] = column
        with pytest.raises(tiling.BufferShapeError):
            tiling.Transfers(*columns).compact()


@fuzz(100)
@given(st.data())
def test_lists_of_any_values_fold_and_come_back(data):
    n = data.draw(st.integers(0, 6))
    numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)
    ends = np.cumsum([0, *data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))])
    start = np.array(data.draw(st.just(ends.tolist()) | st.lists(numbers, min_size=n + 1, max_size=n + 1)), np.int64)

    def column(dtype, length):
        limits = np.iinfo(dtype)
        values = numbers.filter(lambda v: limits.min <= v <= limits.max)
        return np.array(data.draw(st.lists(values, min_size=length, max_size=length)), dtype)

    m = int(ends[-1])
    rows = (
        column(np.int32, n),
        column(np.int64, n),
        column(np.int64, n),
        start,
        column(np.int32, m),
        column(np.int64, m),
    )
    strided = survives(tiling.Transfers(*rows).compact)
    legal = start[0] == 0 and start[-1] == m and (np.diff(start.astype(object)) >= 0).all()
    assert (strided is not None) == bool(legal)
    if strided is not None:
        for one, other in zip(strided.expand(), rows, strict=True):
            assert (one == other).all()


@fuzz(60)
@given(st.data())
def test_strided_lists_of_any_values(data):
    numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5)
    fields = {f: getattr(tiling.Transfers(*COLUMNS).compact(), f) for f in tiling.StridedTransfers.__slots__}
    name = data.draw(st.sampled_from(list(fields)))
    limits = np.iinfo(fields[name].dtype)
    value = data.draw(numbers.filter(lambda v: limits.min <= v <= limits.max))
    fields[name] = np.full_like(fields[name], value)
    if name != "count" or value < 10**6 or value > 2**40:
        survives(tiling.StridedTransfers(**fields).expand)


# --- dumps and logs --------------------------------------------------------------------------------------------------


def check_log(data, path):
    """Read bytes as a log; a log that is read has to be usable."""
    path.write_bytes(data)
    log = survives(lambda: read_log(path))
    if log is None:
        return 0
    assert log.entries >= log.timestamped >= 0
    assert 0 <= log.skipped <= log.entries
    for graph in log.graphs:
        graph.phases()
        repr(graph)
    return 1


def logs():
    return [pytest.param(path, id=path.stem) for path in LOGS + REAL_LOGS]


def scattered(path, quick):
    """Every how manyth: all cases of the small logs, and of the real ones if there is time."""
    return 1 if LONG or path in LOGS else quick


@pytest.mark.parametrize("path", logs())
def test_logs_cut_anywhere(path, tmp_path):
    data, read = path.read_bytes(), 0
    for at in range(0, len(data), 97 * scattered(path, 97)):
        read += check_log(data[:at], tmp_path / "cut.log")
        if LONG:
            read += check_log(data[at:], tmp_path / "cut.log")
    assert read  # some are cut between entries


STAMP = "2026-03-01T08:00:00Z  INFO "
FAILURE = "tile allocation does not fit tile=1 class=a bytes=1 tensor_type="
JUNK = [b"{", b"}", b"(", b"]", b'"', b"\\", b"\n", b"=", b"\x00", b"\xff", b"MidGraph {", STAMP.encode()]


def broken(data, rng):
    """Some bytes changed, left out, doubled or put in."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at, more = rng.randrange(len(data)), rng.choice((1, 2, 10, 100))
        match rng.randrange(5):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                del data[at : at + more]
            case 2:
                data[at:at] = data[at : at + more]
            case 3:
                data[at:at] = rng.choice(JUNK)
            case 4:
                data[at:at] = str(rng.choice((-1, 2**31, 2**63, 2**64, 10**50))).encode()
        if not data:
            return b""
    return bytes(data)


@pytest.mark.parametrize("path", logs())
def test_logs_with_bytes_changed(path, tmp_path):
    rng, data = random.Random(path.stem), path.read_bytes()
    for _ in range((2000 if LONG else 40) // (1 if path in LOGS else 10)):
        check_log(broken(data, rng), tmp_path / "broken.log")


@pytest.mark.parametrize("text", [DUMP, pretty(DUMP)], ids=["compact", "pretty"])
def test_dumps_cut_and_changed(text):
    rng, data = random.Random(3), text.encode()
    for at in range(0, len(data), 7 if LONG else 97):
        assert survives(lambda at=at: parse_midgraph(data[:at].decode())) is None  # a part is no dump
    for _ in range(5000 if LONG else 60):
        graph = survives(lambda: parse_midgraph(broken(data, rng).decode(errors="replace")))
        if graph is not None:
            graph.phases()


TOKENS = [
    *("MidGraph {", "TensorType {", "Some(", "a=", "a: ", "[", "]", "{", "}", "(", ")", '"', "\\", "'", "1", "-", ".."),
    *(", ", "\n", " ", "close", "x{y=1}:", "\u00e9", "\x00", STAMP, FAILURE),
]


@fuzz(100)
@given(st.lists(st.sampled_from(TOKENS), max_size=30))
def test_logs_of_any_tokens(tokens):
    text = "".join(tokens)
    survives(lambda: parse_log(text))
    survives(lambda: parse_midgraph("MidGraph { " + text))


REPEATED = [
    *("[", "(", "{", "}", '"', "'", "\\", "a=[", "a=(1, ", "a={", 'a="', "MidGraph", "MidGraph {", "MidGraph { a: "),
    *("a=1 ", "9", "-", "..", "Some(", "a: [", "\n", "\r\n", " ", "\x00", "\u00e9", "a=MidGraph {", "x{", "x{a=1}:"),
    *(STAMP, f"{STAMP}a=[", f'{STAMP}MidGraph {{ a: "', "2026-", f'{STAMP}s{{a="', "TensorType { shape: ["),
    f"{STAMP}{FAILURE}TensorType {{",
]


REPEATED_IDS = [repr(repeated)[1:-1][:40] for repeated in REPEATED]


@pytest.mark.parametrize("repeated", REPEATED, ids=REPEATED_IDS)
def test_logs_of_one_thing_many_times_in_little_memory(repeated):
    size = 10_000
    text = repeated * (size // len(repeated))
    for made in (text, STAMP + text, f"{STAMP}a={text}"):
        with Bounds(seconds=20, size=500 * size):
            survives(lambda made=made: parse_log(made))
    with Bounds(seconds=20, size=500 * size):
        survives(lambda: parse_midgraph("MidGraph { a: " + text))


@pytest.mark.parametrize("repeated", REPEATED, ids=REPEATED_IDS)
def test_logs_of_one_thing_many_times_in_little_time(repeated):
    # Time goes by the size, a second at most: what goes by its square takes a minute already here.
    text = repeated * ((1_000_000 if LONG else 300_000) // len(repeated))
    start = time.perf_counter()
    survives(lambda: parse_log(STAMP + text))
    survives(lambda: parse_midgraph("MidGraph { a: " + text))
    assert time.perf_counter() - start < 30


def test_files_that_are_none(tmp_path):
    for path in (tmp_path, tmp_path / "missing.log", tmp_path / ("x" * 5000)):
        with pytest.raises(OSError):
            read_log(path)
    with pytest.raises(LayoutError):
        read_log("a\x00b")


# --- the command -----------------------------------------------------------------------------------------------------


def command(*arguments):
    """Run the command: done, or one line of error and nothing else."""
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code in (0, 1, 2)
    if result.exit_code == 2 and "Usage:" not in result.stderr:
        assert result.stdout == ""
        assert re.fullmatch(r"tiling: error: .+\n", result.stderr)
    return result.exit_code


FILES = [
    *(
        b"",
        b"\x00",
        b"\xff\xfe",
        b"{",
        b"null",
        b"[]",
        b"NaN",
        b"MidGraph",
        b"MidGraph {",
        b"MidGraph { }",
        b"\n" * 100,
    ),
    *(as_text(FULL).encode(), as_text(FULL).encode()[:-1], as_text(FULL).encode("utf-16"), b"[" * 100_000),
    as_text(changed(FULL, ("shape",), [2**62, 2**62])).encode(),
]


@pytest.mark.parametrize("data", FILES, ids=range(len(FILES)))
def test_commands_with_such_files(data, tmp_path):
    path, good = tmp_path / "given", tmp_path / "good.json"
    path.write_bytes(data)
    good.write_text(as_text(FULL), "utf-8")
    for arguments in (["report", path], ["copy", path, good], ["copy", good, path], ["copy", path, path, "--list"]):
        command(*arguments)
        command(*arguments, "--json")
    assert command("copy", good, good) == 0


def test_commands_with_broken_logs(tmp_path):
    rng, path = random.Random(11), tmp_path / "given.log"
    for source in LOGS:
        data = source.read_bytes()
        for _ in range(200 if LONG else 10):
            path.write_bytes(rng.choice((broken(data, rng), data[: rng.randrange(len(data))])))
            command("report", path, *rng.choice(([], ["--csv"], ["--json"], ["--check"])))


@pytest.mark.parametrize(
    "options",
    [
        *(
            ["--offsets", o]
            for o in ("", ",", "x", "1", "1,2,3", "9" * 5000, "1.5,0", f"{2**63},0", f"{2**62},0", "-1,0")
        ),
        *(
            ["--view", v]
            for v in ("", "0,1", "0,1,0", "0,0,2", "9,1,2", "0,1,2,reversed", "0,1,2,back", f"0,1,{2**70}")
        ),
        *(["--device-tiles", d] for d in ("0", "-1", "x", "1", str(2**31), str(2**70), "9" * 5000)),
        *(["--staging", "x"], ["--outside", "x"], ["--outside", "zero", "--offsets", "5,5"], ["--nothing"]),
    ],
    ids=lambda options: " ".join(options)[:40],
)
def test_commands_with_such_options(options, tmp_path):
    path = tmp_path / "type.json"
    path.write_text(as_text(FULL), "utf-8")
    command("copy", path, path, *options)
    command("copy", path, path, "--list", *options)


def test_commands_with_paths_that_are_none(tmp_path):
    for path in (tmp_path, tmp_path / "missing", tmp_path / ("x" * 5000)):
        assert command("report", path) == 2
        assert command("copy", path, path) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_commands_with_names_that_are_no_text(tmp_path):
    path, log, page, out = (tmp_path / os.fsdecode(b"\xff" + end) for end in (b".json", b".log", b".html", b".csv"))
    path.write_text(as_text(FULL), "utf-8")
    log.write_bytes(LOGS[0].read_bytes())
    for arguments in (["copy", path, path], ["shards", path], ["report", log]):
        for more in ([], ["--csv"], ["--json"], ["-o", out]):
            assert command(*arguments, *more) == 0
    assert command("example", "-o", path) == 0
    pytest.importorskip("plotly")
    assert command("explore", "-o", page) == 0
