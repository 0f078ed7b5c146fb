"""Every benchmark runs once, tiny and untimed."""

import os
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_every_benchmark_runs():
    environment = {**os.environ, "TILING_BENCH_TINY": "1"}
    command = [sys.executable, str(BENCHMARKS / "run.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
