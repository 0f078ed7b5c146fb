"""What benchmarks share: sizes, the example's phases, and copying columns as the baseline of a list."""

import os
from dataclasses import fields

import tiling
from tiling import report

TINY = os.environ.get("TILING_BENCH_TINY") == "1"


def phases():
    """The built-in example's phases by name; tiny: the first and the last."""
    ((_, made),) = report.example_cases().graphs
    return {phase.name: phase for phase in (made[::5] if TINY else made)}


def plans(phase):
    return [tiling.plan_copy(c.source, c.destination, c.mapping, device_tiles=c.device_tiles) for c in phase.copies]


def counts(phase):
    return [tiling.count_copy(c.source, c.destination, c.mapping, device_tiles=c.device_tiles) for c in phase.copies]


def columns(table):
    return [getattr(table, field.name) for field in fields(table)]


def copied(arrays):
    """The baseline: the same columns, written into new arrays."""
    return [array.copy() for array in arrays]
