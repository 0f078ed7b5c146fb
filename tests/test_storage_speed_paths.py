"""The specialised paths of storage maps and shard tables, each against the definition, one number at a time.

Which path a map takes depends on its widths and on the length of the list, so each map is tried with short and with
long lists: the kernels' limits are 64 and 32,768 table entries, and blocks of 512 (tables of shards: 128) rows.
"""

import math
import random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tiling
from tiling import F8F143, F16, F32, ROW_MAJOR, BufferShapeError, ElementOrder, StorageMap, storage

F8 = F8F143(0)
TOP = 2**63 - 1
LENGTHS = (1, 63, 64, 65, 511, 512, 513, 1025, 5000)


# --- storage: the definition -----------------------------------------------------------------------------------------


def digits(order, lane, widths):
    """The digits of an order as the specification lists them, slowest first: (axis, divisor, count)."""
    if order.name == "RowMajor":
        return [(a, 1, w) for a, w in enumerate(widths)]
    r, c = len(widths) - 2, len(widths) - 1
    outer = [(a, 1, w) for a, w in enumerate(widths[:r])]
    rb, cb = order.row_block, order.column_block
    if order.name == "TransposedMatrix":
        r, c = c, r
    rows, columns = widths[r], widths[c]
    return {
        "Left": lambda: [(c, lane, columns // lane), *outer, (r, 1, rows), (c, 1, lane)],
        "Output": lambda: [(c, 16, columns // 16), *outer, (r, 1, rows), (c, 2, 4), (c, 8, 2), (c, 1, 2)],
        "TransposedLeft": lambda: [*outer, (r, lane, rows // lane), (c, 1, columns), (r, 1, lane)],
        "TransposedOutput": lambda: [*outer, (r, 16, rows // 16), (c, 1, columns), (r, 2, 4), (r, 8, 2), (r, 1, 2)],
        "TransposedRight": lambda: [*outer, (r, 16, rows // 16), (c, lane, columns // lane), (r, 1, 16), (c, 1, lane)],
        "Matrix": lambda: blocks(outer, r, c, rb, cb, rows, columns, lane),
        "TransposedMatrix": lambda: blocks(outer, r, c, rb, cb, rows, columns, lane),
    }[order.name]()


def blocks(outer, r, c, rb, cb, rows, columns, lane):
    return [*outer, (r, rb, rows // rb), (c, cb, columns // cb), (r, lane, rb // lane), (c, 1, cb), (r, 1, lane)]


def slow_offset(map, point):
    total = 0
    for axis, divisor, count in digits(map.order, map.precision.lane, map.widths):
        total = total * count + point[axis] // divisor % count
    return total * map.precision.itemsize


def corners(map, rng, rows):
    """Coordinates next to where digits turn, to the ends, and anywhere."""
    columns = []
    for axis, width in enumerate(map.widths):
        near = {0, 1, width - 1, width - 2, width // 2}
        for a, divisor, count in digits(map.order, map.precision.lane, map.widths):
            if a == axis:
                for at in (divisor, divisor * (count - 1), divisor * (count // 2), divisor * rng.randint(0, count)):
                    near |= {at - 1, at, at + 1}
        near = sorted(x for x in near if 0 <= x < width)
        columns.append([rng.choice(near) if rng.random() < 0.5 else rng.randrange(width) for _ in range(rows)])
    return [list(point) for point in zip(*columns, strict=True)] if columns else [[]] * rows


def check(map, points):
    array = np.array(points, np.int64).reshape(len(points), len(map.widths))
    want = [slow_offset(map, point) for point in points]
    got = map.offset(array)
    assert got.dtype == np.int64
    assert got.tolist() == want
    back = map.coordinate(np.array(want, np.int64))
    assert back.dtype == np.int64
    assert back.tolist() == array.tolist()


MAPS = {
    # a mask and a shift: digits that are powers of two
    "blocks of 16": (ElementOrder("Matrix", 16, 16), F16, (736, 1152)),
    "blocks of 32, transposed": (ElementOrder("TransposedMatrix", 32, 4), F8, (128, 192)),
    "blocks of two lanes": (ElementOrder("Matrix", 32, 16), F16, (96, 48)),
    "Left": (ElementOrder("Left"), F16, (729, 1152)),
    "Left, wide": (ElementOrder("Left"), F32, (70_001, 65_544)),
    "Output": (ElementOrder("Output"), F16, (45, 48)),
    "TransposedLeft": (ElementOrder("TransposedLeft"), F8, (96, 77)),
    "TransposedRight": (ElementOrder("TransposedRight"), F32, (48, 40)),
    "TransposedOutput": (ElementOrder("TransposedOutput"), F16, (48, 3)),
    "rows": (ROW_MAJOR, F32, (101, 103)),
    # all of the element's digits in the block's table
    "one block": (ElementOrder("Matrix", 16, 16), F16, (16, 16)),
    "all powers": (ElementOrder("Left"), F16, (64, 32)),
    "one digit left": (ROW_MAJOR, F16, (3, 64)),
    "one element": (ROW_MAJOR, F16, (1, 1)),
    # a table of the whole width, if the list is long enough for it
    "odd blocks": (ElementOrder("Matrix", 48, 12), F16, (480, 144)),
    "odd rows": (ElementOrder("Matrix", 48, 16), F16, (480, 144)),
    "odd columns": (ElementOrder("Matrix", 16, 12), F16, (480, 144)),
    "odd blocks of three lanes, transposed": (ElementOrder("TransposedMatrix", 96, 7), F8, (21, 288)),
    "a row of odd blocks": (ElementOrder("Matrix", 16, 12), F16, (16, 480)),
    "a column of odd blocks": (ElementOrder("Matrix", 48, 16), F16, (480, 16)),
    "one odd block": (ElementOrder("Matrix", 48, 12), F16, (48, 12)),
    # digit by digit: widths longer than any table
    "long odd rows": (ElementOrder("Matrix", 48, 12), F16, (48 * 1000, 144)),
    "long odd columns": (ElementOrder("Matrix", 48, 12), F16, (96, 12 * 5000)),
    "long odd both": (ElementOrder("Matrix", 48, 12), F16, (48 * 10**7, 12 * 10**6)),
    "long odd, transposed": (ElementOrder("TransposedMatrix", 24, 5), F32, (5 * 10**6, 24 * 10**5)),
    "a long power": (ElementOrder("Matrix", 2**17, 2**16), F16, (2**19, 2**18)),
    "a block of all rows": (ElementOrder("Matrix", 2**40, 3), F16, (2**40, 3 * 2**10)),
    "a wide odd block": (ElementOrder("Matrix", 32, 2**56 + 1), F8, (32, 2 * (2**56 + 1))),
    # other ranks
    "rank 0": (ROW_MAJOR, F32, ()),
    "rank 1": (ROW_MAJOR, F16, (1000,)),
    "rank 1, a power": (ROW_MAJOR, F16, (1024,)),
    "rank 1, top": (ROW_MAJOR, F8, (TOP,)),
    "rank 3": (ElementOrder("Left"), F16, (5, 40, 64)),
    "rank 3, rows": (ROW_MAJOR, F16, (3, 17, 21)),
    "rank 3, odd": (ElementOrder("Matrix", 48, 12), F16, (3, 96, 36)),
    "rank 3, long odd": (ElementOrder("Matrix", 48, 12), F16, (3, 48 * 1000, 36)),
    "rank 4": (ElementOrder("TransposedRight"), F8, (2, 3, 32, 64)),
    "rank 4, output": (ElementOrder("Output"), F32, (3, 2, 7, 48)),
    "rank 7": (ROW_MAJOR, F16, (2, 3, 4, 1, 5, 2, 7)),
    # offsets up to 2^63 - 1
    "2^62 rows": (ROW_MAJOR, F8, (2**62, 1)),
    "2^62 columns": (ROW_MAJOR, F8, (1, 2**62)),
    "near the top": (ROW_MAJOR, F8, (3_037_000_499, 3_037_000_499)),
    "near the top, rank 3": (ROW_MAJOR, F8, (2_097_151, 2_097_151, 2_097_151)),
    "Left near the top": (ElementOrder("Left"), F16, (1_518_500_249, 16 * 189_812_531)),
    "odd blocks near the top": (ElementOrder("Matrix", 48, 12), F16, (48 * 31_635_000, 12 * 253_082_000)),
    "an odd block near the top": (ElementOrder("Matrix", 16 * (2**57 - 1), 1), F32, (16 * (2**57 - 1), 1)),
}


@pytest.mark.parametrize("name", MAPS)
def test_offsets_and_coordinates_are_the_definitions(name):
    map = StorageMap(*MAPS[name])
    rng = random.Random(name)
    for rows in LENGTHS:
        check(map, corners(map, rng, rows))


@pytest.mark.parametrize("name", ["odd blocks", "long odd rows", "a long power", "Left, wide", "rank 3, odd", "rows"])
def test_lists_longer_than_any_table(name):
    map = StorageMap(*MAPS[name])
    points = corners(map, random.Random(name), 2000)
    repeats = 33  # 66,000 rows
    array = np.tile(np.array(points, np.int64), (repeats, 1))
    want = np.tile([slow_offset(map, point) for point in points], repeats)
    assert (map.offset(array) == want).all()
    assert (map.coordinate(want) == array).all()


@pytest.mark.parametrize("name", MAPS)
def test_the_ends_of_a_shard(name):
    map = StorageMap(*MAPS[name])
    ends = [[0] * len(map.widths), [w - 1 for w in map.widths]]
    assert map.offset(np.array(ends, np.int64).reshape(2, -1)).tolist() == [0, map.bytes - map.precision.itemsize]
    assert map.coordinate([0, map.bytes - map.precision.itemsize]).tolist() == ends


@st.composite
def maps(draw):
    """Any order with blocks of any divisors, and widths of any size that fits."""
    precision = draw(st.sampled_from((F8, F16, F32)))
    name = draw(st.sampled_from(("RowMajor", "Matrix", "TransposedMatrix", *tiling.layout.AMP_ROLES)))
    counts = st.one_of(st.integers(1, 8), st.sampled_from((1, 2, 31, 64, 1024)), st.integers(1, 2**20))
    row = column = 1
    order = ElementOrder(name) if name not in ("Matrix", "TransposedMatrix") else None
    if order is None:
        row, column = precision.lane * draw(counts), draw(counts)
        order = ElementOrder(name, row, column)
    elif name != "RowMajor":
        row, column = 32, 32  # meets every role's needs
    rank = draw(st.integers(0 if name == "RowMajor" else 2, 4))
    widths = [draw(counts) for _ in range(rank)]
    if rank >= 2 and name != "RowMajor":
        r, c = (rank - 1, rank - 2) if name == "TransposedMatrix" else (rank - 2, rank - 1)
        widths[r] *= row
        widths[c] *= column
    assume(math.prod(widths) * precision.itemsize <= TOP)
    return StorageMap(order, precision, widths)


@given(maps(), st.sampled_from((1, 40, 70, 600)), st.randoms(use_true_random=False))
def test_any_map_is_the_definition(map, rows, rng):
    check(map, corners(map, rng, rows))


# --- storage: division by reciprocals --------------------------------------------------------------------------------

DIVISORS = sorted(
    {1, 2, 3, 5, 7, 10, 641, 6_700_417, 3_037_000_499, 3_037_000_500, 2**61 - 1, TOP // 3, TOP // 2, TOP - 1, TOP}
    | {2**k + e for k in range(1, 63) for e in (-1, 0, 1) if 2**k + e > 1}
)


def multiples(divisor):
    """Numbers below 2^63 next to multiples of a divisor, the largest ones too."""
    most = TOP // divisor
    near = {0, 1, 2, most // 3, most // 2, most - 1, most}
    found = {q * divisor + e for q in near if q >= 0 for e in (-1, 0, 1)} | {TOP - 1}
    return sorted(x for x in found if 0 <= x < TOP)


def check_division(divisor, numbers):
    """Of a row-major matrix, coordinates are quotient and remainder by the second width."""
    rows = max(TOP // divisor, 1)
    numbers = [x for x in numbers if x < rows * divisor]
    map = StorageMap(ROW_MAJOR, F8, (rows, divisor))
    assert map.coordinate(np.array(numbers, np.int64)).tolist() == [list(divmod(x, divisor)) for x in numbers]


def check_division_of_coordinates(half, numbers):
    """The offset of row x in blocks of 16 * half rows is (x // 16 // half) * 16 * half + ..., so x itself."""
    block = 16 * half
    map = StorageMap(ElementOrder("Matrix", block, 1), F16, (max(TOP // 2 // block, 1) * block, 1))
    points = [[x] for x in numbers if x < map.widths[0]]
    array = np.array([[x, 0] for [x] in points], np.int64).reshape(-1, 2)
    assert map.offset(array).tolist() == [2 * x for [x] in points]


@pytest.mark.parametrize("divisor", DIVISORS)
def test_division_is_exact_at_the_edges(divisor):
    check_division(divisor, multiples(divisor))
    if divisor <= TOP // 32:
        check_division_of_coordinates(divisor, multiples(16 * divisor))


@given(st.integers(1, TOP), st.lists(st.integers(0, TOP - 1), min_size=1, max_size=70))
def test_division_is_exact(divisor, numbers):
    check_division(divisor, [*numbers, *(x // divisor * divisor for x in numbers), *multiples(divisor)])


@given(st.integers(1, 2**19), st.integers(0, 2**19), st.integers(1, 2**19), st.data())
def test_division_of_two_axes_is_exact(block, more, columns, data):
    """Blocks that are no power of two, in a matrix whose offsets go to 2^63 - 1."""
    rb = 16 * block
    order = ElementOrder("Matrix", rb, columns)
    rows = rb * max(1, TOP // 2 // (rb * columns * (more + 1)))
    map = StorageMap(order, F16, (rows, columns * (more + 1)))
    some = st.tuples(st.integers(0, map.widths[0] - 1), st.integers(0, map.widths[1] - 1)).map(list)
    check(map, data.draw(st.lists(some, min_size=1, max_size=20)))


# --- storage: what is outside ----------------------------------------------------------------------------------------

FORMS = ("blocks of 16", "odd blocks", "long odd both", "rank 1", "rank 1, top", "rank 3", "rank 4", "near the top")
ROWS = (0, 1, 510, 511, 512, 513, 1023, 1024, 1199)


@pytest.mark.parametrize("name", FORMS)
def test_the_first_bad_coordinate_is_named(name):
    map = StorageMap(*MAPS[name])
    points = np.zeros((1200, len(map.widths)), np.int64)
    for row in ROWS:
        for axis, width in enumerate(map.widths):
            for wrong in (-1, width, -(2**63), TOP, min(width + 2**40, TOP)):
                bad = points.copy()
                bad[row, axis] = wrong
                bad[row + 1 :, :] = -1  # later ones, on other axes too
                with pytest.raises(BufferShapeError, match=rf"coordinates\[{row}\]"):
                    map.offset(bad)


@pytest.mark.parametrize("name", FORMS)
def test_the_first_bad_offset_is_named(name):
    map = StorageMap(*MAPS[name])
    for row in ROWS:
        for wrong in (-1, -(2**63), map.bytes, TOP, *range(1, map.precision.itemsize)):
            bad = np.zeros(1200, np.int64)
            bad[row] = wrong
            bad[row + 1 :] = -1
            with pytest.raises(BufferShapeError, match=rf"offsets\[{row}\]"):
                map.coordinate(bad)


@pytest.mark.parametrize("widths", [(0,), (0, 5), (5, 0), (2**62, 2**62, 0), (0, 2**62, 2**62)])
def test_nothing_is_inside_of_an_empty_shard(widths):
    map = StorageMap(ROW_MAJOR, F32, widths)
    empty = np.empty((0, len(widths)), np.int64)
    assert map.offset(empty).tolist() == []
    assert map.coordinate(np.empty(0, np.int64)).shape == empty.shape
    with pytest.raises(BufferShapeError, match=r"coordinates\[0\]"):
        map.offset(np.zeros((3, len(widths)), np.int64))
    with pytest.raises(BufferShapeError, match=r"offsets\[0\]"):
        map.coordinate([0])


def test_rank_0_has_one_element():
    map = StorageMap(ROW_MAJOR, F32, ())
    assert map.offset(np.empty((3, 0), np.int64)).tolist() == [0, 0, 0]
    assert map.coordinate([0, 0]).shape == (2, 0)
    for wrong in (4, 2, -4):
        with pytest.raises(BufferShapeError, match=r"offsets\[1\]"):
            map.coordinate([0, wrong])


def test_lists_that_need_no_copy_are_not_copied():
    points = np.zeros((5, 2), np.int64)
    points.flags.writeable = False
    assert storage._integers(points, "coordinates", 2) is points
    map = StorageMap(*MAPS["Left"])
    assert map.offset(points).tolist() == [0] * 5
    assert map.offset(points[::2]).tolist() == [0] * 3
    assert map.offset(points.astype(np.int32)).tolist() == [0] * 5


# --- shard tables ----------------------------------------------------------------------------------------------------


def slow_shards(type, device, device_tiles):
    """The table of an axis-tiled tensor, tile by tile."""
    owned = tiling.ownership.resolve(type)
    rows, tile_bytes = [], [0] * device_tiles
    for t in range(type.tiling.tile_count):
        at = [t // stride % cut.partitions for stride, cut in zip(owned.strides, owned.cuts, strict=True)]
        box = [cut.bounds[:, k].tolist() for k, cut in zip(at, owned.cuts, strict=True)]
        size = math.prod(physical - start for start, _, physical in box) * type.precision.itemsize
        rows.append((device[t], *([b[k] for b in box] for k in range(3)), size, 0))
        tile_bytes[device[t]] = size
    return rows, tile_bytes


def slow_pieces(type, device, device_tiles):
    """The table of a linear tensor, piece by piece."""
    grain, tiles, columns = type.tiling.axes[0].block_size, type.tiling.tile_count, type.shape[-1]
    short, longer = divmod(math.prod(type.shape) // grain, tiles)
    rows, tile_bytes, at = [], [0] * device_tiles, 0
    for t in range(tiles):
        end = at + (short + (t < longer)) * grain
        while at < end:
            until = min(end, (at // columns + 1) * columns)
            start = [int(x) for x in np.unravel_index(at, type.shape)]
            stop = [x + 1 for x in start[:-1]] + [start[-1] + until - at]
            size = (until - at) * type.precision.itemsize
            rows.append((device[t], start, stop, stop, size, tile_bytes[device[t]]))
            tile_bytes[device[t]] += size
            at = until
    return rows, tile_bytes


def check_table(type, owners=None, device_tiles=None):
    table = tiling.enumerate_shards(type, owners, device_tiles)
    count, rank = type.tiling.tile_count, type.rank
    size = len(table.tile_bytes)
    assert size == (device_tiles or max(count, size if owners and owners.embedding else count))
    entries = owners.embedding if owners and owners.embedding else range(size)
    rotation = owners.rotation if owners else 0
    device = [entries[(t + rotation) % len(entries)] for t in range(count)]
    rows, tile_bytes = (slow_pieces if type.tiling.is_linear else slow_shards)(type, device, size)
    columns = (table.tile, table.start, table.logical_end, table.physical_end, table.bytes, table.offset)
    assert list(zip(*(c.tolist() for c in columns), strict=True)) == rows
    assert table.tile_bytes.tolist() == tile_bytes
    assert [c.shape for c in columns] == [(len(rows),), *[(len(rows), rank)] * 3, (len(rows),), (len(rows),)]
    assert [c.dtype for c in (*columns, table.tile_bytes)] == [np.int32, *[np.int64] * 6]
    assert all(c.flags.c_contiguous and c.flags.writeable and c.flags.aligned for c in (*columns, table.tile_bytes))
    return table


TYPES = {
    "rank 0": tiling.TensorType.tiled([], F16),
    "rank 0, replicas": tiling.TensorType.tiled([], F16, replicas=300),
    "one tile": tiling.TensorType.tiled([3, 4], F16),
    "replicas": tiling.TensorType.tiled([3, 4], F16, replicas=257),
    "one axis": tiling.TensorType.tiled([300], F16, {0: 299}),
    "more tiles than elements": tiling.TensorType.tiled([3, 2], F32, {0: 13, 1: 11}),
    "rank 4": tiling.TensorType.tiled([4, 8, 46, 64], F16, {0: 2, 1: 4, 2: 8, 3: 23}),
    "rank 4, replicas": tiling.TensorType.tiled([4, 8, 46, 64], F8, {3: 5, 1: 3, 0: 2}, replicas=3),
    "an empty axis": tiling.TensorType.tiled([0, 7], F16, {0: 2, 1: 3}),
}
LINEAR = {
    "rank 1": tiling.TensorType.linear([1000], F16, 7),
    "one tile": tiling.TensorType.linear([5, 3, 2], F16, 1),
    "tiles of rows": tiling.TensorType.linear([300, 4], F16, 150, 4),
    "rows of tiles": tiling.TensorType.linear([3, 400], F8, 300),
    "neither": tiling.TensorType.linear([7, 11, 13], F32, 137),
    "rank 4": tiling.TensorType.linear([3, 5, 7, 6], F16, 100, 3),
    "ones": tiling.TensorType.linear([1, 400, 1, 1], F16, 123),
    "one column": tiling.TensorType.linear([40, 10, 1], F16, 129, 2),
}


@pytest.mark.parametrize("type", [*TYPES.values(), *LINEAR.values()], ids=[*TYPES, *(f"linear, {n}" for n in LINEAR)])
def test_shard_tables_are_the_definition(type):
    count = type.tiling.tile_count
    check_table(type)
    check_table(type, tiling.OwnerMap(), count + 5)
    check_table(type, tiling.OwnerMap(rotation=min(2, count - 1)))
    check_table(type, tiling.OwnerMap(rotation=1), count + 9)
    check_table(type, tiling.OwnerMap(rotation=2, embedding=tuple(range(count + 3, 0, -1))), count + 4)


@st.composite
def strided(draw):
    """Axes whose digits number the tiles in any order, with replicas as any digit; coprime axes may share a digit."""
    parts = draw(st.lists(st.sampled_from((1, 1, 2, 3, 4, 5, 7, 9, 130)), min_size=0, max_size=4))
    replicas = draw(st.sampled_from((1, 1, 2, 3, 128)))
    assume(math.prod(parts) * replicas <= 3000)
    digits = [[axis] for axis in draw(st.permutations(range(len(parts))))]
    for k in range(len(digits) - 1, 0, -1):
        (a,), (b, *more) = digits[k - 1], digits[k]
        if not more and math.gcd(parts[a], parts[b]) == 1 and draw(st.booleans()):
            digits[k - 1 : k + 1] = [[a, b]]
            break
    digits.insert(draw(st.integers(0, len(digits))), [])
    strides, packed = [1] * len(parts), 1
    for digit in digits:
        for axis in digit:
            strides[axis] = packed
        packed *= math.prod(parts[axis] for axis in digit) if digit else replicas
    axes = [tiling.AxisTiling(axis, p, tile_stride=s) for axis, (p, s) in enumerate(zip(parts, strides, strict=True))]
    shape = [draw(st.integers(0, 3)) * p + draw(st.integers(0, p)) for p in parts]
    return shape, axes, replicas


@given(strided(), st.integers(0, 40), st.integers(0, 40))
def test_shard_tables_of_any_strides(made, rotation, more):
    shape, axes, replicas = made
    type = tiling.TensorType.tiled(shape, F16, axes, replicas=replicas)
    check_table(type)
    count = type.tiling.tile_count
    check_table(type, tiling.OwnerMap(rotation=rotation % count), count + more)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=4), st.integers(1, 6), st.integers(1, 400))
def test_linear_shard_tables(shape, grain, tiles):
    shape[-1] *= grain
    tiles = min(tiles, math.prod(shape) // grain)
    check_table(tiling.TensorType.linear(shape, F16, tiles, grain))


@pytest.mark.parametrize("type", [TYPES["rank 4"], LINEAR["neither"]], ids=["axes", "linear"])
def test_columns_are_apart(type):
    names = ("tile", "start", "logical_end", "physical_end", "bytes", "offset", "tile_bytes")
    want = {name: getattr(tiling.enumerate_shards(type), name).tolist() for name in names}
    for written in names:
        table = tiling.enumerate_shards(type)
        getattr(table, written)[...] = -7
        assert all(getattr(table, name).tolist() == want[name] for name in names if name != written)
    table = tiling.enumerate_shards(type)
    assert {name: getattr(table, name).tolist() for name in names} == want
