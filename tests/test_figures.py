"""Figures that must come out: the phases that a compiler logged, and small cases worked out in full."""

import engine
import numpy as np
import pytest

import tiling
from tiling import report

# transfers, local runs, endpoint lower bound
PHASES = {
    "phase 0": (8_612, 106, 26_880),
    "phase 1": (29_652, 5_400, 6_272),
    "phase 2": (88_718, 64, 1_152),
    "phase 3": (32_961, 245, 25_344),
    "phase 4": (164_610, 5_130, 9_600),
    "phase 5": (88_507, 67, 320),
}


@pytest.fixture(scope="module")
def phases():
    ((_, phases),) = report.example_cases().graphs
    return {phase.name: phase for phase in phases}


@pytest.mark.parametrize("name", PHASES)
def test_logged_phases_by_lists(phases, name):
    plans = [
        tiling.plan_copy(c.source, c.destination, c.mapping, staging=c.staging, device_tiles=c.device_tiles)
        for c in phases[name].copies
    ]
    phase = tiling.ExchangePhase(plans)
    assert (phase.transfers, phase.local_runs, phase.endpoint_lower_bound) == PHASES[name]
    assert phase.maximum_identical_destinations == 1
    # Each part of the traffic, seen from the other side.
    source, destination, words = phase.traffic
    assert np.bincount(destination, words, phase.device_tiles).astype(int).tolist() == phase.received_words.tolist()
    assert (np.diff(source.astype(np.int64) * phase.device_tiles + destination) > 0).all()
    ends = sum(len(plan.transfers.destination_tile) for plan in plans)
    assert phase.fragments.sum() == phase.transfers + ends


@pytest.mark.parametrize("name", PHASES)
def test_logged_phases_by_counts(phases, name):
    phase = tiling.ExchangePhase([case.count() for case in phases[name].copies])
    assert (phase.transfers, phase.local_runs, phase.endpoint_lower_bound) == PHASES[name]
    assert phase.maximum_identical_destinations == 1


def test_shared_padding_keeps_phase_4_whole(phases):
    """Without carried padding the last rows' runs would break: the difference is what the rule is for."""
    case = phases["phase 4"].copies[1]
    padded = [t.tiling.axes[1].shard_padding_multiple for t in (case.source, case.destination)]
    assert padded == [1, 16]
    assert case.count().transfers == 159_132


def test_copies_in_full(data):
    for case in data("copies.json"):
        arguments, want = engine.arguments(case["copy"]), case["expected"]
        plan, count = tiling.plan_copy(**arguments), tiling.count_copy(**arguments)
        x = want["transfers"]
        rows = zip(
            x["tile"], x["offset"], x["bytes"], [[tuple(end) for end in ends] for ends in x["ends"]], strict=True
        )
        assert engine.transfers(plan) == list(rows), case["name"]
        assert engine.local(plan) == [tuple(row) for row in want["local"]], case["name"]
        assert engine.zero_fill(plan) == [tuple(row) for row in want["zero"]], case["name"]
        assert plan.staging == count.staging == want["staging"], case["name"]
        assert count.transfers == len(x["tile"]), case["name"]
        assert count.local_runs == len(want["local"]), case["name"]
        assert count.misaligned == want["misaligned"], case["name"]
        assert count.sent_words.tolist() == want["sent"], case["name"]
        assert count.received_words.tolist() == want["received"], case["name"]


def test_shards_in_full(data):
    for case in data("shards.json"):
        table = tiling.enumerate_shards(tiling.TensorType.from_json(case["type"]))
        assert table.tile.tolist() == case["tile"], case["name"]
        bounds = np.stack([table.start, table.logical_end, table.physical_end], axis=-1)
        assert bounds.tolist() == case["bounds"], case["name"]
        assert table.offset.tolist() == case["offset"], case["name"]
        assert table.tile_bytes.tolist() == case["tile_bytes"], case["name"]


def test_storage_in_full(data):
    for case in data("storage.json"):
        order = tiling.ElementOrder.from_json(case["order"])
        map = tiling.StorageMap(order, tiling.Precision.from_json(case["precision"]), case["widths"])
        assert map.offset(case["points"]).tolist() == case["offsets"]
        assert map.coordinate(case["offsets"]).tolist() == case["points"]


def test_the_example_of_uneven_partitions():
    """729 rows in 12 partitions of 16-row blocks: 46 blocks, ten of 64 rows, then 48, then 41 padded to 48."""
    cut = tiling.AxisTiling(0, 12, block_size=16, shard_padding_multiple=16, padding="Zero")
    table = tiling.enumerate_shards(tiling.TensorType.tiled([729, 8], tiling.F16, [cut]))
    assert table.start[:, 0].tolist() == [64 * k for k in range(11)] + [688]
    assert table.logical_end[9:, 0].tolist() == [640, 688, 729]
    assert table.physical_end[9:, 0].tolist() == [640, 688, 736]
    assert tiling.enumerate_shards(tiling.TensorType.tiled([10], tiling.F16, {0: 3})).logical_end[:, 0].tolist() == [
        4,
        7,
        10,
    ]


def test_runs_are_cut_at_the_longest_message():
    whole = tiling.TensorType.replicated([20_000], tiling.F16, 1)
    three = tiling.TensorType.replicated([20_000], tiling.F16, 3)
    plan = tiling.plan_copy(whole, three)
    assert engine.transfers(plan) == [
        (0, 0, 16_592, [(1, 0), (2, 0)]),
        (0, 16_592, 16_592, [(1, 16_592), (2, 16_592)]),
        (0, 33_184, 6_816, [(1, 33_184), (2, 33_184)]),
    ]
    assert engine.local(plan) == [(0, 0, 40_000, 0)]


def test_runs_join_where_orders_coincide():
    """Row-major rows as wide as a block's columns: the step from one lane's last element to the next lane's first is
    the step to the next row, so two single elements are one run."""
    carrier = tiling.TensorType.tiled([32, 16], tiling.F16)
    blocks = tiling.TensorType.tiled([32, 16], tiling.F16, order=tiling.BlockMajor("Matrix", 32, 16))
    there = tiling.OwnerMap(rotation=1)
    plan = tiling.plan_copy(carrier, blocks, staging="none", destination_owners=there, device_tiles=2)
    joined = [t for t in engine.transfers(plan) if t[2] > 2]
    assert joined == [(0, 2 * 255, 4, [(1, 2 * 255)])]
