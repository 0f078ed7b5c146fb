"""Ownership and storage: tables and maps against the twin's."""

import itertools
import math

import engine
import numpy as np
import strategies
import twin
from hypothesis import given
from hypothesis import strategies as st

import tiling


@given(strategies.owned())
def test_shard_tables_are_the_twins(case):
    want = twin.shards(**case)
    owners = case["owners"] and tiling.OwnerMap.from_json(case["owners"])
    table = tiling.enumerate_shards(tiling.TensorType.from_json(case["type"]), owners, case["device_tiles"])
    got = engine.rows(table, "tile", "start", "logical_end", "physical_end", "bytes", "offset")
    assert got == [
        (s.tile, list(s.start), list(s.logical_end), list(s.physical_end), s.bytes, s.offset) for s in want.shards
    ]
    assert table.tile_bytes.tolist() == want.tile_bytes


@given(strategies.owned())
def test_each_element_is_owned_replicas_times(case):
    type = tiling.TensorType.from_json(case["type"])
    table = tiling.enumerate_shards(type)
    held = np.zeros(type.shape, np.int64)
    for start, end in zip(table.start.tolist(), table.logical_end.tolist(), strict=True):
        held[tuple(map(slice, start, end))] += 1
    assert (held == type.tiling.replicas).all()


@st.composite
def shards(draw):
    precision = draw(strategies.precisions)
    order = draw(strategies.orders(precision))
    rank = draw(st.integers(0 if order == "RowMajor" else 2, 4))
    widths = [draw(st.integers(0, 4)) for _ in range(max(rank - 2, 0))]
    widths += [draw(st.sampled_from((0, 1, 16, 32, 48, 64, 96))) for _ in range(min(rank, 2))]
    try:
        twin.check_needs(order, twin.itemsize_of(precision), widths)
    except twin.Invalid:
        widths[max(rank - 2, 0) :] = [192] * min(rank, 2)
    if math.prod(widths) > 40_000:
        widths[: max(rank - 2, 0)] = [1] * max(rank - 2, 0)
    return order, precision, widths


def storage_map(order, precision, widths):
    carrier = tiling.Layout.from_json(
        {"order": order, "tiling": {"tile_count": 1, "replicas": 1, "axes": []}, "memory_class": "Ipu21Standard"}
    )
    return tiling.StorageMap(carrier.order, tiling.Precision.from_json(precision), widths)


@given(shards(), st.integers(0, 2**32))
def test_storage_is_the_twins_bijection(shard, seed):
    map = storage_map(*shard)
    points = np.array(list(np.ndindex(map.widths)), np.int64).reshape(math.prod(map.widths), len(map.widths))
    offsets = map.offset(points)
    assert sorted(offsets.tolist()) == list(range(0, map.bytes, map.precision.itemsize))
    assert (map.coordinate(offsets) == points).all()
    for i in np.random.default_rng(seed).permutation(len(points))[:20]:
        assert offsets[i] == twin.offset(*shard, points[i].tolist())


@given(shards(), st.data())
def test_spans_are_the_boxes_offsets(shard, data):
    map = storage_map(*shard)
    bounds = [sorted((data.draw(st.integers(0, w)), data.draw(st.integers(0, w)))) for w in map.widths]
    start, end = [low for low, _ in bounds], [high for _, high in bounds]
    box = list(itertools.product(*(range(low, high) for low, high in bounds)))
    size = map.precision.itemsize
    covered = sorted(map.offset(np.array(box, np.int64).reshape(len(box), len(bounds))).tolist()) if box else []
    breaks = [i for i in range(len(covered) + 1) if i in (0, len(covered)) or covered[i] != covered[i - 1] + size]
    want = [[covered[a], (b - a) * size] for a, b in itertools.pairwise(breaks)]
    assert map.spans(start, end).tolist() == want
