"""Copies: the engine's lists and counts against the twin's, for random copies of all kinds."""

from itertools import product

import engine
import pytest
import strategies
import twin
from hypothesis import given

import tiling
from tiling import F32, TensorType


@given(strategies.copies())
def test_plans_are_the_twins(case):
    want, plan = twin.plan(**case), tiling.plan_copy(**engine.arguments(case))
    assert plan.staging == want.staging
    assert engine.transfers(plan) == [(*row[:3], [tuple(end) for end in row[3]]) for row in want.transfers]
    assert engine.local(plan) == [tuple(row) for row in want.local]
    assert engine.zero_fill(plan) == [tuple(row) for row in want.zero_fill]


@given(strategies.copies())
def test_counts_are_the_twins(case):
    want, count = twin.plan(**case), tiling.count_copy(**engine.arguments(case))
    assert count.staging == want.staging
    assert count.transfers == len(want.transfers)
    assert count.local_runs == len(want.local)
    assert count.bytes == want.bytes
    assert count.misaligned == want.misaligned
    assert count.sent_words.tolist() == want.sent_words
    assert count.received_words.tolist() == want.received_words
    assert count.endpoint_lower_bound == want.endpoint_lower_bound


@given(strategies.copies())
def test_counts_equal_lists(case):
    arguments = engine.arguments(case)
    plan, count = tiling.plan_copy(**arguments), tiling.count_copy(**arguments)
    by_list, by_count = tiling.ExchangePhase([plan]), tiling.ExchangePhase([count])
    assert by_count.transfers == by_list.transfers
    assert by_count.local_runs == by_list.local_runs
    assert by_count.bytes == by_list.bytes
    assert by_count.sent_words.tolist() == by_list.sent_words.tolist()
    assert by_count.received_words.tolist() == by_list.received_words.tolist()
    assert (
        by_list.maximum_identical_destinations == by_count.maximum_identical_destinations == min(len(plan.transfers), 1)
    )


ROTATED = [[16], [1, 16], [2, 8], [3, 1, 5]]


@pytest.mark.parametrize("shape", ROTATED, ids=str)
def test_linear_sides_on_rotated_tiles(shape):
    """Few rows over many tiles in any order: pieces of one row follow each other backwards, too."""
    line = TensorType.linear(shape, F32, 5).to_json()
    cut = TensorType.tiled(shape, F32, {len(shape) - 1: 3}).to_json()
    some = TensorType.tiled([*shape[:-1], shape[-1] - 4], F32, {len(shape) - 1: 2}).to_json()
    for source, destination in ((line, cut), (cut, line), (line, some)):
        for one, other in product(range(6), repeat=2):
            case = {
                "source": source,
                "destination": destination,
                "source_owners": {"rotation": one, "embedding": None},
                "destination_owners": {"rotation": other, "embedding": None},
                "device_tiles": 6,
            }
            want, plan = twin.plan(**case), tiling.plan_copy(**engine.arguments(case))
            assert engine.transfers(plan) == [(*row[:3], [tuple(end) for end in row[3]]) for row in want.transfers]
            assert engine.local(plan) == [tuple(row) for row in want.local]
