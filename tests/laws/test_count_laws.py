"""The closed form against the walk: whatever it decides, walking every run gives the same."""

import engine
import numpy as np
import strategies
from hypothesis import given, reject
from hypothesis import strategies as st

import tiling
from tiling.regions import check
from tiling.runs import runs

EVEN = [1, 32, 64, 96, 128]


def totals(copy):
    """The closed form's and the walk's: transfers, destinations, local runs, bytes, sent, received; or None."""
    loads, walked = np.zeros((2, 2, copy.device_tiles), np.int64)
    closed = copy.analysis.count(*loads)
    *counted, misaligned = runs(copy).count(*walked)
    if closed is None:
        return None
    return (
        (*closed[:3], closed[3] * copy.itemsize, closed[4], loads.tolist()),
        (*counted, misaligned, walked.tolist()),
    )


@given(strategies.copies().filter(lambda case: not (case["mapping"] or {}).get("view")))
def test_what_is_decided_is_what_is_walked(case):
    both = totals(check(**engine.arguments(case)))
    if both is not None:
        assert both[0] == both[1]


@st.composite
def aligned_types(draw, shape, precision, order):
    """Cuts at whole lanes, so that the closed form decides; sides may be linear."""
    if draw(st.integers(0, 4)) == 0 and order == tiling.ROW_MAJOR:
        return tiling.TensorType.linear(shape, precision, draw(st.integers(1, 12)), 32)
    cuts = []
    for axis in draw(st.permutations(range(len(shape)))):
        if draw(st.booleans()):
            block = draw(st.sampled_from((32, 64) if axis >= len(shape) - 2 else (1, 2)))
            pads = draw(st.sampled_from((1, 1, 96)))
            cuts.append(
                tiling.AxisTiling(
                    axis, draw(st.integers(1, 4)), block_size=block, shard_padding_multiple=pads, padding="Zero"
                )
            )
    return tiling.TensorType.tiled(shape, precision, cuts, order=order, replicas=draw(st.integers(1, 3)))


ORDERS = [
    tiling.ROW_MAJOR,
    *map(tiling.Amp, ("Left", "TransposedLeft", "TransposedRight", "Output", "TransposedOutput")),
    *(tiling.BlockMajor(kind, 32, columns) for kind in ("Matrix", "TransposedMatrix") for columns in (16, 32)),
]


@st.composite
def aligned_copies(draw):
    shape = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2)))] + [
        draw(st.sampled_from(EVEN)) for _ in "rc"
    ]
    precision = draw(st.sampled_from((tiling.F16, tiling.F32, tiling.F8F143(0))))
    source = draw(aligned_types(shape, precision, draw(st.sampled_from(ORDERS))))
    smaller = [draw(st.integers(max(n - 1, 1), n)) for n in shape[:-2]] + [
        draw(st.sampled_from([m for m in EVEN if m <= n])) for n in shape[-2:]
    ]
    offsets = [0 if n == m else draw(st.sampled_from((0, n - m))) for n, m in zip(shape, smaller, strict=True)]
    destination = draw(aligned_types(smaller, precision, draw(st.sampled_from((source.order, *ORDERS)))))
    staging = draw(st.sampled_from(("auto", "none", "source", "both")))
    tiles = max(source.tiling.tile_count, destination.tiling.tile_count)
    turned = tiling.OwnerMap(draw(st.sampled_from((0, 0, tiles - 1, tiles // 2))))
    case = {
        "source": source,
        "destination": destination,
        "mapping": tiling.CoordinateMapping(offsets),
        "staging": staging,
        "source_owners": draw(st.sampled_from((None, turned))),
        "destination_owners": draw(st.sampled_from((None, turned))),
    }
    try:
        check(**case)
    except tiling.LayoutError:  # one column, in an order that needs more
        reject()
    return case


@given(aligned_copies())
def test_aligned_copies_are_decided_rightly(case):
    copy = check(**case)
    both = totals(copy)
    if both is not None:
        assert both[0] == both[1]
    plan = tiling.plan_copy(**case)
    walked = runs(copy)
    count, ends, local, *_ = walked.count()
    columns = [np.empty(n, kind) for n, kind in zip(
        (count, count, count, count + 1, ends, ends, local, local, local, local),
        (np.int32, np.int64, np.int64, np.int64, np.int32, np.int64, np.int32, np.int64, np.int64, np.int64),
        strict=True,
    )]  # fmt: skip
    walked.fill(*columns)
    x, y = plan.transfers, plan.local
    listed = (x.source_tile, x.source_offset, x.bytes, x.destination_start, x.destination_tile, x.destination_offset,
              y.tile, y.source_offset, y.bytes, y.destination_offset)  # fmt: skip
    for got, want in zip(listed, columns, strict=True):
        assert got.tolist() == want.tolist()


@given(st.lists(aligned_copies(), max_size=6))
def test_many_counts_are_the_single_ones(cases):
    pairs = [(case["source"], case["destination"], case["mapping"]) for case in cases]
    many = tiling.count_copies(pairs)
    for i, pair in enumerate(pairs):
        one = tiling.count_copy(*pair)
        assert (many.transfers[i], many.bytes[i], many.misaligned[i]) == (one.transfers, one.bytes, one.misaligned)
        assert (many.local_runs[i], many.bound[i]) == (one.local_runs, one.endpoint_lower_bound)
        assert many.destination_tile_bytes[i] == tiling.enumerate_shards(pair[1]).tile_bytes.max()
