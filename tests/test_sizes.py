"""Sizes beyond 16, 32 and nearly 64 bits: figures by hand, or from small cases that grow in a known way."""

import engine
import numpy as np
import pytest
import strategies
import twin
from hypothesis import given, settings
from hypothesis import strategies as st

import tiling
from tiling import (
    F8F143,
    F16,
    F32,
    LINEAR,
    ROW_MAJOR,
    Amp,
    AxisTiling,
    BlockMajor,
    CoordinateMapping,
    OwnerMap,
    StorageMap,
    TensorType,
)

F8 = F8F143(0)
MOST = 2**63 - 1


def whole(shape, precision=F16, **more):
    return TensorType.tiled(shape, precision, **more)


def figures(count):
    """A count's totals, and the first and last tile's words."""
    words = (count.sent_words[0], count.sent_words[-1], count.received_words[0], count.received_words[-1])
    return [count.transfers, count.local_runs, count.bytes, count.misaligned, *map(int, words)]


# --- offsets beyond 4 GiB --------------------------------------------------------------------------------------------


def test_offsets_beyond_32_bits():
    # 32 GiB: two tiles have half the rows each, and take half of the columns each.
    rows, columns = 2**14, 2**20
    plan = tiling.plan_copy(
        TensorType.tiled([rows, columns], F16, {0: 2}), TensorType.tiled([rows, columns], F16, {1: 2})
    )
    x, half, cut = plan.transfers, columns // 2 * 2, 16592
    pieces = -(-half // cut)
    assert len(x) == rows * pieces == tiling.count_copy(plan.source, plan.destination).transfers
    row, piece = np.divmod(np.arange(rows // 2 * pieces), pieces)
    first, second = slice(0, len(row)), slice(len(row), None)
    assert (x.source_offset[first] == row * 2 * half + half + piece * cut).all()  # the right half, to tile 1
    assert (x.source_offset[second] == row * 2 * half + piece * cut).all()
    assert (x.destination_offset[first] == row * half + piece * cut).all()
    assert (x.destination_offset[second] == (rows // 2 + row) * half + piece * cut).all()
    assert x.source_offset.max() > 2**33
    assert (x.bytes == np.tile(np.minimum(half - piece * cut, cut), 2)).all()
    assert plan.local.bytes.sum() == rows * half


def test_shard_tables_beyond_32_bits():
    table = tiling.enumerate_shards(TensorType.tiled([2**40, 2**20], F16, {0: 4, 1: 2}))
    assert table.start[-1].tolist() == [3 * 2**38, 2**19]
    assert table.physical_end[-1].tolist() == [2**40, 2**20]
    assert set(table.bytes.tolist()) == {2**58}
    table = tiling.enumerate_shards(TensorType.linear([3, 2**40], F32, 2))
    assert table.tile.tolist() == [0, 0, 1, 1]
    assert table.offset.tolist() == [0, 2**42, 0, 2**41]
    assert table.tile_bytes.tolist() == [3 * 2**41] * 2


ORDERS = [ROW_MAJOR, Amp("Left"), Amp("TransposedLeft"), Amp("TransposedRight"), BlockMajor("Matrix", 32, 16)]


def grown(name, rows):
    """Copies whose figures are linear in the rows, which are multiples of 256."""
    shape = [rows, 64]
    cut = TensorType.tiled(shape, F16, {0: 2})
    match name:
        case "rows to columns":
            return cut, TensorType.tiled(shape, F16, {1: 2}), {}
        case "rows to columns, in words":
            return TensorType.tiled(shape, F32, {0: 2}), TensorType.tiled(shape, F32, {1: 4}), {}
        case "odd columns":
            return TensorType.tiled([rows, 3], F16, {0: 2}), TensorType.tiled([rows, 3], F16, {1: 3}), {}
        case "transposed":
            return cut, whole(shape, order=Amp("TransposedLeft")), {"staging": "none"}
        case "blocks":
            blocks = BlockMajor("Matrix", 32, 16)
            return (
                TensorType.tiled(shape, F16, {0: 2}, order=blocks),
                TensorType.tiled(shape, F16, {1: 2}, order=blocks),
                {},
            )
        case "replicas":
            return cut, TensorType.tiled(shape, F16, {1: 2}, replicas=3), {}
        case "bytes, transposed":
            a = TensorType.tiled(shape, F8, {1: 2})
            return a, whole(shape, F8, order=Amp("TransposedLeft")), {"staging": "none"}
        case "moved away":
            return cut, TensorType.tiled(shape, F16, {1: 2}), {"destination_owners": OwnerMap(2), "device_tiles": 4}
    raise ValueError(name)


GROWN = [
    *("rows to columns", "rows to columns, in words", "odd columns", "transposed", "blocks", "replicas"),
    *("bytes, transposed", "moved away"),
]


@pytest.mark.parametrize("name", GROWN)
def test_counts_grow_with_the_tensor(name):
    def count(rows):
        a, b, more = grown(name, rows)
        return np.array(figures(tiling.count_copy(a, b, **more)), object)

    a, b, more = grown(name, 256)
    case = {"source": a.to_json(), "destination": b.to_json(), **more}
    if "destination_owners" in more:
        case["destination_owners"] = more["destination_owners"].to_json()
    small = twin.plan(**case)
    totals = [len(small.transfers), len(small.local), small.bytes, small.misaligned]
    assert figures(tiling.count_copy(a, b, **more))[:4] == totals
    # From 1,024 rows on nothing but the number of rows changes.
    first, step = count(1024), count(2048) - count(1024)
    # Runs that go through several digits of an order are looked for one by one; the others are counted by formula.
    for rows in (2**13, 2**14) if name == "transposed" else (2**31, 2**32 + 1024, 2**40, 2**50):
        assert count(rows).tolist() == (first + (rows - 1024) // 1024 * step).tolist()


@pytest.mark.parametrize("order", [*ORDERS, Amp("Output")], ids=repr)
def test_orders_move_whole(order):
    # The same order on both sides: one run, cut at 16,592 bytes, whatever the order.
    type = whole([2**11, 2**12], order=order)
    count = tiling.count_copy(type, type, destination_owners=OwnerMap(1), device_tiles=2)
    assert (count.transfers, count.bytes) == (-(-(2**24) // 16592), 2**24)


@pytest.mark.parametrize("rows", [2**8, 2**31, 2**40])
def test_panels_are_cut_by_dividing(rows):
    # Each of two tiles sends two of its four panels, each a run of half the rows of 32 bytes.
    a, b = (TensorType.tiled([rows, 64], F16, {axis: 2}, order=Amp("Left")) for axis in (0, 1))
    count = tiling.count_copy(a, b)
    assert (count.transfers, count.bytes) == (4 * -(-rows * 16 // 16592), 4 * rows * 16)


def test_blocks_that_no_divisor_joins():
    # Column blocks of 2^40 + 1 and 2^40 + 3 meet nowhere; finding that out must not take 2^40 steps.
    def panels(block):
        order = BlockMajor("Matrix", 64, block)
        cut = AxisTiling(1, 1, padding_multiple=block, padding="Zero")
        return TensorType.tiled([64, 2**20], F8, [cut], order=order)

    count = tiling.count_copy(
        panels(2**40 + 1), panels(2**40 + 3), staging="none", destination_owners=OwnerMap(1), device_tiles=2
    )
    assert count.bytes >= 64 * 2**20


def test_padding_that_is_carried_has_a_size_too():
    # Every shard and the tensor itself are small enough; all padded shards together are not.
    cuts = [AxisTiling(axis, 2, padding_multiple=4, padding="Zero") for axis in range(21)]
    padded = TensorType.tiled([5] * 21, F8, cuts)
    with pytest.raises(tiling.SizeError, match="too much padding"):
        tiling.count_copy(padded, padded, staging="none")


def test_counting_long_runs_takes_no_time():
    # Columns that are odd are walked, but what is one run is cut by dividing.
    odd = whole([2**31, 2**31 - 1], F8)
    count = tiling.count_copy(odd, odd, destination_owners=OwnerMap(1), device_tiles=2)
    assert count.transfers == -(-(2**31 * (2**31 - 1)) // 16592)


def test_counting_single_elements_takes_no_time():
    # Lanes along rows against lanes along columns: every byte is a message, none of them a whole word.
    rows = BlockMajor("Matrix", 32, 2**39)
    columns = BlockMajor("TransposedMatrix", 2**39, 16)
    padded = AxisTiling(0, 1, block_size=96, padding="Zero")
    count = tiling.count_copy(
        whole([32, 3 * 2**40], F8, order=rows),
        whole([32, 3 * 2**40], F8, axes=[padded], order=columns),
        staging="none",
        destination_owners=OwnerMap(1),
        device_tiles=2,
    )
    assert count.transfers == count.misaligned == 96 * 2**40


@pytest.mark.parametrize("tiles", [3, 2**21])
def test_counting_beside_a_linear_side_takes_no_time_by_its_messages(tiles):
    # 2^20 rows, each cut in 2^20 parts of two messages: 2^41 of them. Every row has a part on its own tile, or, with
    # half a row on each of 2^21 tiles, the tiles below 2^20 have one where it is in their half.
    rows = parts = 2**20
    line = TensorType.linear([rows, parts * 5000], F32, tiles, 2500)
    cut = TensorType.tiled([rows, parts * 5000], F32, {1: parts})
    kept = rows if tiles == 3 else parts // 2
    for source, destination in ((line, cut), (cut, line)):
        count = tiling.count_copy(source, destination)
        assert (count.transfers, count.local_runs) == (2 * (rows * parts - kept), kept)


# --- tile numbers, partitions, ranks ---------------------------------------------------------------------------------


def test_tile_numbers_beyond_16_bits():
    many, one = TensorType.sharded([100_000, 4], F16, 0, 100_000), whole([100_000, 4])
    plan = tiling.plan_copy(many, one)
    x = plan.transfers
    assert (x.source_tile == np.arange(1, 100_000)).all()
    assert (x.destination_offset == np.arange(1, 100_000) * 8).all()
    assert len(plan.local) == 1
    count = tiling.count_copy(many, one)
    assert figures(count) == [99_999, 1, 99_999 * 8, 0, 0, 2, 2 * 99_999, 0]
    assert tiling.count_copies([(many, one)]).transfers.tolist() == [99_999]


def test_multicasts_to_100_000_tiles():
    one, copies = whole([2, 4]), TensorType.replicated([2, 4], F16, 100_000)
    x = tiling.plan_copy(one, copies).transfers
    assert len(x) == 1
    assert (x.destination_tile == np.arange(1, 100_000)).all()
    owners = OwnerMap(7, tuple(range(200_000, 99_999, -1)))  # and tiles in another order, beyond their count
    x = tiling.plan_copy(one, copies, destination_owners=owners).transfers
    assert x.destination_tile.tolist() == sorted(owners.embedding[:-1] + owners.embedding[-1:])[1:] or len(x) == 1
    assert (np.diff(x.destination_tile) > 0).all()


def test_linear_over_100_000_tiles():
    linear = TensorType.linear([100_000, 6], F16, 100_000, grain=2)
    table = tiling.enumerate_shards(linear)
    assert len(table) == 100_000
    assert (table.tile_bytes == 12).all()
    assert tiling.count_copy(linear, TensorType.sharded([100_000, 6], F16, 0, 100_000)).local_runs == 100_000


def with_ones(made, rank):
    """The same type with axes of one element before the others."""
    made = tiling.TensorType.from_json(made).to_json()
    more = rank - len(made["shape"])
    made["shape"] = [1] * more + made["shape"]
    for axis in made["format"]["layout"]["tiling"]["axes"]:
        if axis["axis"] != "Linear" and "FromStart" in axis["axis"]:
            axis["axis"]["FromStart"] += more
    return made


@settings(max_examples=40)
@given(strategies.copies(long=0), st.sampled_from([8, 31, 32]))
def test_axes_of_one_element_change_nothing(case, rank):
    if not case["source"]["shape"] or case["mapping"] is not None:
        return
    order = lambda made: made["format"]["layout"]["order"]  # noqa: E731
    if "RowMajor" in (order(case["source"]), order(case["destination"])) and len(case["source"]["shape"]) < 2:
        case = case | {"staging": "none"}
    high = case | {name: with_ones(case[name], rank) for name in ("source", "destination")}
    low, high = (tiling.plan_copy(**engine.arguments(c)) for c in (case, high))
    assert engine.transfers(high) == engine.transfers(low)
    assert engine.local(high) == engine.local(low)
    assert engine.zero_fill(high) == engine.zero_fill(low)


@pytest.mark.parametrize("precision", ["F16", "F32", {"F8F143": {"scale_exponent": 1}}], ids=["F16", "F32", "F8"])
def test_rank_8_is_the_twins(precision):
    made = [
        TensorType.tiled([2, 1, 3, 2, 2, 1, 2, 4], tiling.Precision.from_json(precision), cuts).to_json()
        for cuts in ({0: 2, 2: 3, 7: 2}, {4: 2, 6: 2, 3: 2})
    ]
    want = twin.plan(source=made[0], destination=made[1])
    plan = tiling.plan_copy(*map(TensorType.from_json, made))
    assert engine.transfers(plan) == [(*row[:3], [tuple(end) for end in row[3]]) for row in want.transfers]
    assert tiling.count_copy(plan.source, plan.destination).bytes == want.bytes


def test_rank_32():
    # Twenty axes are two wide and twelve are one; five are cut on one side and five others on the other.
    shape = [1] * 6 + [2] * 20 + [1] * 6
    a = TensorType.tiled(shape, F32, dict.fromkeys(range(6, 11), 2))
    b = TensorType.tiled(shape, F32, dict.fromkeys(range(11, 16), 2))
    count, plan = tiling.count_copy(a, b), tiling.plan_copy(a, b)
    # 2^10 regions of 2^10 elements, each one run; the 2^5 between a tile and itself are local.
    assert (count.transfers, count.local_runs, count.bytes) == (2**10 - 2**5, 2**5, (2**10 - 2**5) * 2**12)
    assert len(plan.transfers) == count.transfers
    assert len(tiling.enumerate_shards(a)) == 32
    with pytest.raises(tiling.SizeError, match="rank"):
        tiling.enumerate_shards(whole([1] * 33))


# --- small ends ------------------------------------------------------------------------------------------------------

SMALL = {
    "zero-length axis": ([0, 5], {0: 2}, {1: 5}),
    "all axes zero": ([0, 0], {0: 3}, {1: 2}),
    "zero between huge ones": ([2**31, 0, 2**31], {0: 2}, {2: 2}),
    "one element": ([1, 1], {}, {}),
    "one element, many tiles": ([1], {0: 5}, {0: 3}),
    "rank 0": ([], {}, {}),
    "a tile that owns everything": ([6, 4], {0: 6}, {}),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_ends_are_the_twins(name):
    shape, first, second = SMALL[name]
    a, b = TensorType.tiled(shape, F16, first), TensorType.tiled(shape, F16, second)
    for source, destination in ((a, b), (b, a)):
        plan, count = tiling.plan_copy(source, destination), tiling.count_copy(source, destination)
        if max(shape, default=0) < 100:  # the twin goes element by element
            want = twin.plan(source=source.to_json(), destination=destination.to_json())
            assert engine.transfers(plan) == [(*row[:3], [tuple(end) for end in row[3]]) for row in want.transfers]
            assert engine.zero_fill(plan) == [tuple(row) for row in want.zero_fill]
        assert (count.transfers, count.local_runs) == (len(plan.transfers), len(plan.local))
        if 0 in shape:
            assert (count.transfers, count.bytes, count.endpoint_lower_bound) == (0, 0, 0)


# --- the largest numbers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type", "size"),
    [
        (whole([MOST], F8), MOST),
        (whole([2**62 - 1]), MOST - 1),
        (whole([2**62]), None),
        (whole([2**61 - 1], F32), MOST - 3),
        (whole([2**61], F32), None),
        (whole([2**31, 2**32 - 1], F8), 2**31 * (2**32 - 1)),
        (whole([2**31, 2**32], F8), None),
        (whole([3037000499, 3037000499], F8), 3037000499**2),  # the square below 2^63
        (whole([3037000500, 3037000500], F8), None),
        (whole([MOST, MOST, 0], F32), 0),
        (TensorType.tiled([1], F8, [AxisTiling(0, 1, shard_padding_multiple=2**61, padding="Zero")]), 2**61),
        (TensorType.tiled([1], F8, [AxisTiling(0, 1, shard_padding_multiple=MOST, padding="Zero")]), None),
        (TensorType.tiled([1], F8, [AxisTiling(0, 1, padding_multiple=MOST, padding="Zero")]), None),
        (TensorType.tiled([2**40], F8, [AxisTiling(0, 2, block_size=2**62, padding="Zero")]), None),
        (TensorType.tiled([MOST], F8, [AxisTiling(LINEAR, 1)]), MOST),
        (TensorType.tiled([2**62], F8, [AxisTiling(LINEAR, 3, block_size=2**60)]), 2**61),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_sizes_near_the_limit(type, size):
    if size is None:
        with pytest.raises(tiling.SizeError, match=r"2\^63-1"):
            tiling.enumerate_shards(type)
        with pytest.raises(tiling.SizeError):
            tiling.count_copy(type, type)
    else:
        table = tiling.enumerate_shards(type)
        assert int(table.tile_bytes.max()) == size
        assert table.bytes.min() >= 0


@pytest.mark.parametrize("number", [2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**53 + 1])
def test_extents_by_the_number(number):
    a, b = TensorType.tiled([number], F32, {0: 2}), whole([number], F32)
    plan, half = tiling.plan_copy(a, b, max_transfers=10**9) if number < 2**33 else None, -(-number // 2)
    count = tiling.count_copy(a, b)
    assert count.bytes == (number - half) * 4
    assert count.transfers == -(-count.bytes // 16592)
    assert count.received_words.tolist() == [number - half, 0]
    if plan is not None:
        assert len(plan.transfers) == count.transfers
        assert int(plan.transfers.destination_offset[-1] + plan.transfers.bytes[-1]) == number * 4


@pytest.mark.parametrize("offset", [-MOST, -(2**61), 2**61, MOST])
def test_offsets_that_do_not_fit(offset):
    with pytest.raises(tiling.LayoutError):
        tiling.count_copy(whole([4]), whole([4]), CoordinateMapping((offset,)), outside="zero")


@pytest.mark.parametrize("order", [*ORDERS, Amp("Output")], ids=repr)
@pytest.mark.parametrize("widths", [(2**20, 2**40), (2**40, 2**20), (2**31 - 32, 2**31)])
def test_storage_maps_of_huge_shards(order, widths):
    m = StorageMap(order, F16, widths)
    rng = np.random.default_rng(5)
    points = np.stack([rng.integers(0, width, 500) for width in widths], axis=1)
    points[:2] = [0, 0], [w - 1 for w in widths]
    offsets = m.offset(points)
    assert (m.coordinate(offsets) == points).all()
    assert (offsets[0], offsets[1]) == (0, m.bytes - 2)
    json = order.to_json()
    assert offsets[:50].tolist() == [twin.offset(json, "F16", widths, p) for p in points[:50].tolist()]
    for bad in ([-1, 0], [0, widths[1]], [MOST, 0], [-MOST - 1, 0], [0, MOST]):
        with pytest.raises(tiling.BufferShapeError):
            m.offset([bad])
    for bad in (-2, 1, m.bytes, MOST, MOST - 1, -MOST - 1):
        with pytest.raises(tiling.BufferShapeError):
            m.coordinate([bad])


def test_spans_of_huge_shards():
    m = StorageMap(ROW_MAJOR, F8, [MOST])
    assert m.spans([0], [MOST]).tolist() == [[0, MOST]]
    assert m.spans([MOST - 1], [MOST]).tolist() == [[MOST - 1, 1]]
    wide = StorageMap(ROW_MAJOR, F16, [4, 2**40])
    assert wide.spans([1, 5], [3, 7]).tolist() == [[2**41 + 10, 4], [2**42 + 10, 4]]


def test_spans_take_time_by_their_number():
    tall = StorageMap(ROW_MAJOR, F16, [2**40, 4])
    assert tall.spans([2**40 - 1, 0], [2**40, 2]).tolist() == [[(2**40 - 1) * 8, 4]]
    blocks = StorageMap(BlockMajor("Matrix", 32, 16), F16, [2**30, 2**20])
    assert blocks.spans([2**30 - 1, 0], [2**30, 1])[:, 1].tolist() == [2]


def test_zero_fill_takes_time_by_its_number():
    plan = tiling.plan_copy(whole([1, 4]), whole([2**40, 4]), CoordinateMapping((-5, 1)), outside="zero")
    assert plan.zero_fill.bytes.tolist() == [5 * 8, (2**40 - 5) * 8 - 6]


# --- sums that do not fit --------------------------------------------------------------------------------------------


def test_words_of_single_bytes():
    # Every byte is a message of a word: 2^62 words are received, which are four times as many bytes.
    a = TensorType.tiled([2**30, 2**32], F8, {1: 2})
    b = whole([2**30, 2**32], F8, order=Amp("TransposedLeft"))
    count = tiling.count_copy(a, b, staging="none", destination_owners=OwnerMap(2), device_tiles=3)
    assert count.transfers == count.bytes == count.misaligned == 2**62
    assert count.sent_words.tolist() == [2**61, 2**61, 0]
    assert count.received_words.tolist() == [0, 0, 2**62]


def test_padding_that_all_shards_carry():
    # Each of 1,024 shards is 2^61 bytes with its padding, which both sides share: 2^71 bytes in all.
    def cut(axis):
        return AxisTiling(axis, 2**5, shard_padding_multiple=2**30, padding="Zero")

    a, b = (TensorType.tiled([32, 32], F16, axes) for axes in ([cut(0), cut(1)], [cut(1), cut(0)]))
    with pytest.raises(tiling.SizeError):
        tiling.count_copy(a, b)
    with pytest.raises(tiling.SizeError):
        tiling.count_copies([(a, b)])
    assert tiling.count_copy(a, b, staging="both").bytes == (1024 - 32) * 2  # logical extents only


def test_lists_that_no_machine_holds_are_refused_by_their_count():
    # 2^61 transfers to eight tiles each: their product is 2^64.
    a = TensorType.tiled([2**30, 2**31], F8, {1: 2})
    b = TensorType.tiled([2**30, 2**31], F8, order=Amp("TransposedLeft"), replicas=8)
    more = {"staging": "none", "destination_owners": OwnerMap(2), "device_tiles": 10}
    assert tiling.count_copy(a, b, **more).transfers == 2**61
    with pytest.raises(tiling.TooManyTransfersError, match=str(2**61)):
        tiling.plan_copy(a, b, **more, max_transfers=10)
    with pytest.raises(tiling.SizeError, match=str(2**61)):
        tiling.plan_copy(a, b, **more)


def test_representations_do_not_wrap():
    table = tiling.enumerate_shards(TensorType.replicated([2**61], F16, 4))
    assert repr(table).endswith(f"{2**64} bytes)")


def test_phases_do_not_wrap():
    square = whole([2**31, 2**30], F16)
    count = tiling.count_copy(square, square, destination_owners=OwnerMap(1), device_tiles=2)
    assert count.sent_words.tolist() == [2**60, 0]
    phase = tiling.ExchangePhase([count] * 9)
    assert phase.bytes == 9 * 2**62
    with pytest.raises(tiling.SizeError):
        _ = phase.endpoint_lower_bound
