"""Copies: the engine's lists and counts against the twin's, for random copies of all kinds."""

import engine
import strategies
import twin
from hypothesis import given

import tiling


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
