"""Short lists: they are the twin's, nothing more can be folded, and what comes back is the list."""

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiling
from tiling import report
from tiling.compacting import StridedTransfers, compact

# transfers, rows
PHASES = {
    "phase 0": (8_612, 8_612),
    "phase 1": (29_652, 29_652),
    "phase 2": (88_718, 88_718),
    "phase 3": (32_961, 25_653),
    "phase 4": (164_610, 164_610),
    "phase 5": (88_507, 88_507),
}

# A transfer is (tile, offset, bytes, [(tile, offset), ...]); a row has (count, source step, destination step) before
# its destinations.


def wrap(value):
    """As int64."""
    return (value + 2**63) % 2**64 - 2**63


def step_between(a, b):
    """The steps from one transfer to the next if they may share a row, else None."""
    (*_, before), (*_, after) = a, b
    if (a[0], a[2], [tile for tile, _ in before]) != (b[0], b[2], [tile for tile, _ in after]):
        return None
    steps = {wrap(y - x) for (_, x), (_, y) in zip(before, after, strict=True)} or {0}
    return (wrap(b[1] - a[1]), *steps) if len(steps) == 1 else None


def fold(transfers):
    """The greedy rule, word for word."""
    rows = []
    while transfers:
        count, steps = 1, (0, 0)
        for before, after in pairwise(transfers):
            step = step_between(before, after)
            if step is None or (count > 1 and step != steps):
                break
            count, steps = count + 1, step
        tile, offset, size, ends = transfers[0]
        rows.append((tile, offset, size, count, *steps, ends))
        transfers = transfers[count:]
    return rows


def unfold(rows):
    return [
        (tile, wrap(offset + j * step), size, [(to, wrap(at + j * further)) for to, at in ends])
        for tile, offset, size, count, step, further, ends in rows
        for j in range(count)
    ]


def columns(transfers):
    ends = [end for *_, ends in transfers for end in ends]
    return (
        np.array([row[0] for row in transfers], np.int32),
        np.array([row[1] for row in transfers], np.int64),
        np.array([row[2] for row in transfers], np.int64),
        np.array([0, *np.cumsum([len(row[-1]) for row in transfers])], np.int64),
        np.array([tile for tile, _ in ends], np.int32),
        np.array([offset for _, offset in ends], np.int64),
    )


def as_rows(strided):
    start = strided.destination_start.tolist()
    ends = list(zip(strided.destination_tile.tolist(), strided.destination_offset.tolist(), strict=True))
    names = ("source_tile", "source_offset", "bytes", "count", "source_step", "destination_step")
    rows = zip(*(getattr(strided, name).tolist() for name in names), strict=True)
    return [(*row, ends[start[i] : start[i + 1]]) for i, row in enumerate(rows)]


def assert_same_columns(got, want):
    assert len(got) == len(want) == 6
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        assert a.flags.c_contiguous
        np.testing.assert_array_equal(a, b)


# Offsets from the whole range, but often from a narrow one, so that steps repeat by chance.
offsets = st.one_of(st.integers(0, 3), st.sampled_from([0, 2**63 - 1, -(2**63)]), st.integers(-(2**63), 2**63 - 1))
ends = st.one_of(
    st.tuples(st.tuples(st.integers(0, 1), offsets)),
    st.lists(st.tuples(st.integers(0, 2), offsets), max_size=3),
)
# Long rows reach past the ends of the kernel's stretches.
counts = st.one_of(st.integers(1, 4), st.sampled_from([1, 1, 1, 63, 127, 128, 129, 256, 300]))
few_sizes = st.sampled_from([4, 8])
made_rows = st.tuples(st.integers(0, 1), offsets, few_sizes, counts, offsets, offsets, ends.map(list))


@st.composite
def dealt_lists(draw):
    """Lists from few values, so that all kinds of neighbours occur, over several of the kernel's stretches."""
    n = draw(st.sampled_from([1, 2, 3, 127, 128, 129, 130, 257, 500]))
    most_ends = draw(st.sampled_from([1, 1, 1, 2, 3]))
    change = draw(st.sampled_from([0.0, 0.02, 0.2, 0.5]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def changes(values):
        """n values, each of them the one before with a probability of 1 - change."""
        last = np.maximum.accumulate(np.where(random.random(n) < change, np.arange(n), 0))
        return random.choice(values, n)[last].tolist()

    tiles, sizes, at = changes([0, 1]), changes([4, 8]), np.cumsum(changes([4, 8])).tolist()
    number = changes(range(most_ends + 1)) if most_ends > 1 else [1] * n
    first, to, apart = changes([5, 6]), np.cumsum(changes([-4, 0, 8])).tolist(), changes([0, 16])
    return [
        (tiles[i], at[i], sizes[i], [(first[i] + e, to[i] + e * apart[i]) for e in range(number[i])]) for i in range(n)
    ]


lists = st.one_of(st.lists(made_rows, max_size=8).map(unfold), dealt_lists())


# Laws


@given(lists)
def test_rows_are_the_twins(transfers):
    assert as_rows(compact(*columns(transfers))) == fold(transfers)


@given(lists)
def test_the_list_comes_back(transfers):
    list_ = columns(transfers)
    given = [column.copy() for column in list_]
    strided = compact(*list_)
    assert_same_columns(strided.expand(), given)
    assert_same_columns(list_, given)
    assert strided.count.sum() == len(transfers)
    assert unfold(as_rows(strided)) == transfers


@given(lists)
def test_no_row_could_take_the_next_rows_first(transfers):
    rows = as_rows(compact(*columns(transfers)))
    for row, after in pairwise(rows):
        last, first = unfold([row])[-1], unfold([after])[0]
        step = step_between(last, first)
        assert step is None or (row[3] > 1 and step != row[4:6])


@given(st.lists(made_rows, max_size=8))
def test_any_rows_expand(rows):
    """Those that the fold would not make, too."""
    tile, offset, size, start, to_tile, to_offset = columns([(*row[:3], row[6]) for row in rows])
    count, *steps = (np.array([row[i] for row in rows], np.int64) for i in (3, 4, 5))
    strided = StridedTransfers(tile, offset, size, count, *steps, start, to_tile, to_offset)
    assert_same_columns(strided.expand(), columns(unfold(rows)))


# Cases


def test_an_empty_list():
    strided = compact(*columns([]))
    assert len(strided) == 0
    assert strided.destination_start.tolist() == [0]
    assert_same_columns(strided.expand(), columns([]))
    assert repr(strided) == "StridedTransfers(0 rows of 0 transfers, 0 bytes)"


def test_one_row():
    transfers = [(3, 100 + 24 * j, 8, [(7, 5000 - 8 * j), (9, 0 - 8 * j)]) for j in range(1000)]
    strided = compact(*columns(transfers))
    assert as_rows(strided) == [(3, 100, 8, 1000, 24, -8, [(7, 5000), (9, 0)])]
    assert repr(strided) == "StridedTransfers(1 rows of 1000 transfers, 8000 bytes)"


def test_the_second_transfer_fixes_the_steps_and_a_misfit_starts_a_row():
    """Though the second, 4, would go as well with those after it: greedy is from the front."""
    transfers = [(0, at, 4, [(1, 0)]) for at in (0, 4, 5, 6, 7)]
    assert [row[1:6] for row in as_rows(compact(*columns(transfers)))] == [(0, 4, 2, 4, 0), (5, 4, 3, 1, 0)]


def test_each_change_of_tiles_or_size_starts_a_row():
    transfers = [
        (0, 0, 4, [(1, 0), (2, 0)]),
        (0, 8, 4, [(1, 0), (2, 0)]),
        (0, 16, 2, [(1, 0), (2, 0)]),  # size
        (0, 24, 2, [(1, 0), (3, 0)]),  # a destination's tile
        (0, 32, 2, [(1, 0)]),  # the number of destinations
        (4, 40, 2, [(1, 0)]),  # the source tile
    ]
    assert [row[3] for row in as_rows(compact(*columns(transfers)))] == [2, 1, 1, 1, 1]


@pytest.mark.parametrize("ends", [[], [(1, 0), (1, 4)], [(1, 0), (2, 0)]])
def test_one_transfer_that_is_no_unicast(ends):
    """Wherever it stands among the kernel's stretches of transfers to one destination."""
    for i in range(300):
        transfers = [(0, 4 * j, 4, [(1, 4 * j)]) for j in range(300)]
        transfers[i] = (0, 4 * i, 4, [(tile, offset + 4 * i) for tile, offset in ends])
        strided = compact(*columns(transfers))
        assert as_rows(strided) == fold(transfers)
        assert_same_columns(strided.expand(), columns(transfers))


def test_destinations_that_advance_apart_do_not_fold():
    transfers = [(0, 8 * j, 4, [(1, 8 * j), (2, 16 * j)]) for j in range(4)]
    assert [row[3] for row in as_rows(compact(*columns(transfers)))] == [1, 1, 1, 1]


# Figures


def list_of(plan):
    x = plan.transfers
    return tuple(getattr(x, field.name) for field in fields(x))


@pytest.fixture(scope="module")
def phases():
    ((_, phases),) = report.example_cases().graphs
    return {phase.name: phase for phase in phases}


@pytest.mark.parametrize("name", PHASES)
def test_what_phases_fold_to(phases, name):
    """Nearly nothing: their tiles serve several others in turn. The exception are phase 3's weights, in rows of 4."""
    transfers = rows = 0
    for case in phases[name].copies:
        list_ = list_of(
            tiling.plan_copy(
                case.source, case.destination, case.mapping, staging=case.staging, device_tiles=case.device_tiles
            )
        )
        strided = compact(*list_)
        assert_same_columns(strided.expand(), list_)
        transfers, rows = transfers + len(list_[0]), rows + len(strided)
    assert (transfers, rows) == PHASES[name]


def test_panels_gathered_to_whole_rows_fold():
    """Tiles of 64 rows of 16 columns each send them to the one that has the rows whole."""
    panels = tiling.TensorType.tiled([256, 128], tiling.F16, {0: 4, 1: 8})
    rows = tiling.TensorType.tiled([256, 128], tiling.F16, {0: 4})
    list_ = list_of(tiling.plan_copy(panels, rows))
    strided = compact(*list_)
    assert (len(list_[0]), len(strided)) == (1792, 28)
    assert (strided.count == 64).all()
    assert (strided.source_step == 16 * 2).all()
    assert (strided.destination_step == 128 * 2).all()
    assert_same_columns(strided.expand(), list_)


# Bad input

NAMES = ("source_tile", "source_offset", "bytes", "destination_start", "destination_tile", "destination_offset")
GOOD = dict(zip(NAMES, columns([(0, 0, 4, [(1, 0), (2, 0)]), (0, 8, 4, [(1, 4)]), (0, 16, 4, [])]), strict=True))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda column: column.tolist(), "list"),
        (lambda column: column.astype(np.float64), "float64"),
        (lambda column: column.astype(np.uint64), "uint64"),
        (lambda column: column[:, None], "1-D"),
        (lambda column: np.repeat(column, 2)[::2], "contiguous"),
    ],
)
def test_columns_have_their_types(name, spoil, words):
    with pytest.raises(tiling.BufferShapeError, match=words) as raised:
        compact(**{**GOOD, name: spoil(GOOD[name])})
    assert raised.value.where == name


@pytest.mark.parametrize("name", NAMES[1:])
def test_columns_are_as_long_as_each_other(name):
    with pytest.raises(tiling.BufferShapeError) as raised:
        compact(**{**GOOD, name: GOOD[name][:-1]})
    assert raised.value.where == name.replace("destination_tile", "destination_offset")


@pytest.mark.parametrize(
    ("start", "where"),
    [
        ([1, 2, 3, 3], "destination_start[0]"),
        ([0, 2, 3, 2], "destination_start[3]"),
        ([0, 4, 3, 3], "destination_start[2]"),
        ([0, 4, 4, 3], "destination_start[3]"),
        ([0, -1, 3, 3], "destination_start[1]"),
        ([0, 2**63 - 1, 3, 3], "destination_start[2]"),
    ],
)
def test_destinations_start_in_order(start, where):
    start = np.array(start, np.int64)
    with pytest.raises(tiling.BufferShapeError) as raised:
        compact(**{**GOOD, "destination_start": start})
    assert raised.value.where == where
    with pytest.raises(tiling.BufferShapeError) as raised:
        replace(compact(**GOOD), destination_start=start).expand()
    assert raised.value.where == where


@pytest.mark.parametrize("count", [0, -1, -(2**63)])
def test_rows_stand_for_a_transfer_or_more(count):
    strided = replace(compact(**GOOD), count=np.array([1, count, 1], np.int64))
    with pytest.raises(tiling.BufferShapeError, match=str(count)) as raised:
        strided.expand()
    assert raised.value.where == "count[1]"


@pytest.mark.parametrize("name", ["count", "source_step", "destination_step"])
def test_repeats_are_columns_too(name):
    strided = compact(**GOOD)
    for column in (np.ones(2, np.int64), np.ones(3, np.int32), [1, 1, 1]):
        with pytest.raises(tiling.BufferShapeError) as raised:
            replace(strided, **{name: column}).expand()
        assert raised.value.where == name


@pytest.mark.parametrize(
    ("count", "total"),
    [
        ([2**63 - 1, 2**63 - 1, 1], 2**63 - 1),
        ([2**62, 2**62, 1], 2**62),
        ([1, 2**30, 2**30], 2**31 + 1),
        ([2**30, 1, 1], 2**31 + 1),  # destinations
    ],
)
def test_lists_that_no_machine_holds_are_refused(count, total):
    strided = replace(compact(**GOOD), count=np.array(count, np.int64))
    with pytest.raises(tiling.SizeError) as raised:
        strided.expand()
    assert raised.value.value == total
