"""Short lists: `compact` and `expand`, each next to copying the columns of the list."""

import os
from dataclasses import fields

import numpy as np
import pytest

import tiling
from tiling import report
from tiling.compacting import compact

TINY = os.environ.get("TILING_BENCH_TINY") == "1"


def phase(name):
    """The largest list of a phase of the built-in example."""
    copies = next(phase.copies for phase in report.example_cases().graphs[0][1] if phase.name == name)
    plans = [tiling.plan_copy(c.source, c.destination, c.mapping, staging=c.staging) for c in copies]
    return max((plan.transfers for plan in plans), key=len)


def gathered():
    """Panels of 16 columns to whole rows: all that one tile sends to another is one row of the short list."""
    panels = tiling.TensorType.tiled([2048, 1280], tiling.F16, {0: 16, 1: 80})
    return tiling.plan_copy(panels, tiling.TensorType.tiled([2048, 1280], tiling.F16, {0: 16})).transfers


LISTS = {
    "phase 4": lambda: phase("phase 4"),  # nothing folds
    "phase 3, multicast": lambda: phase("phase 3"),
    "gathered": gathered,  # 128 transfers a row
}


def first(columns, n):
    """The columns of a list's first n transfers."""
    tile, offset, size, start, to_tile, to_offset = columns
    m = start[n]
    return tile[:n], offset[:n], size[:n], start[: n + 1], to_tile[:m], to_offset[:m]


@pytest.fixture(params=LISTS, scope="module")
def columns(request):
    x = LISTS[request.param]()
    return first([getattr(x, field.name) for field in fields(x)], 300 if TINY else len(x))


@pytest.fixture
def run(benchmark, request, columns):
    """Times a call, grouped by list."""
    benchmark.group = f"short lists: {request.node.callspec.params['columns']}"
    benchmark.extra_info["transfers"] = len(columns[0])
    return benchmark


def bench_copying_the_columns(run, columns):
    """The baseline: as many new arrays."""
    run(lambda: [column.copy() for column in columns])


def bench_compact(run, columns):
    strided = run(compact, *columns)
    assert strided.count.sum() == len(columns[0])


def bench_expand(run, columns):
    expanded = run(compact(*columns).expand)
    assert all(map(np.array_equal, expanded, columns))
