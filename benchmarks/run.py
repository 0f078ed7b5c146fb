"""Runs the benchmarks and prints a table of ratios: `python benchmarks/run.py [pytest arguments]`.

With TILING_BENCH_TINY=1 every benchmark runs once, tiny and untimed.
"""

import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from common import TINY

HERE = Path(__file__).parent


PYTEST = [
    str(HERE), "-q", "-p", "no:cacheprovider", f"--rootdir={HERE.parent}", "--override-ini=addopts=",
    "--override-ini=python_files=bench_*.py", "--override-ini=python_functions=bench_*",
]  # fmt: skip
TIMED = ["--benchmark-only", "--benchmark-disable-gc", "--benchmark-min-rounds=30", "--benchmark-max-time=0.5",
         "--benchmark-quiet"]  # fmt: skip


def run(arguments):
    if TINY:
        return pytest.main([*PYTEST, "--benchmark-disable", *arguments]), {"benchmarks": []}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        out.touch()
        status = pytest.main([*PYTEST, *TIMED, f"--benchmark-json={out}", *arguments])
        return status, json.loads(out.read_text() or '{"benchmarks": []}')


def table(results):
    """Medians by group, each with its ratio to the group's baselines and its rows a second."""
    groups = defaultdict(list)
    for result in results["benchmarks"]:
        groups[result["group"] or "other"].append(result)
    lines = ["| group | benchmark | median | against the baseline | rows/s |", "| --- | --- | ---: | --- | ---: |"]
    for group, members in groups.items():
        baselines = [m for m in members if "baseline" in m["name"]]
        for m in members:
            median, rows = m["stats"]["median"], m["extra_info"].get("rows")
            ratios = [
                f"{median / b['stats']['median']:.2f} x {b['name'].partition('baseline_')[2].partition('[')[0]}"
                for b in baselines
                if b is not m
            ]
            name = m["name"].removeprefix("bench_").replace("_", " ").partition("[")[0]
            speed = f"{rows / median / 1e6:,.3f} M" if rows else ""
            lines.append(f"| {group} | {name} | {median * 1e6:,.1f} µs | {', '.join(ratios)} | {speed} |")
    return "\n".join(lines)


if __name__ == "__main__":
    status, results = run(sys.argv[1:])
    if results["benchmarks"]:
        print(table(results))
    sys.exit(status)
