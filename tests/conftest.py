"""Shared by all tests: hypothesis profiles (`--hypothesis-profile=long` for the long runs), and the data files."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

DATA = Path(__file__).parent / "data"

quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("default", max_examples=150, deadline=None, suppress_health_check=quiet)
settings.register_profile("quick", max_examples=25, deadline=None, suppress_health_check=quiet)
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=quiet)
settings.load_profile("default")


@pytest.fixture(scope="session")
def data():
    """Reads a file of tests/data."""
    return lambda name: json.loads((DATA / name).read_text("utf-8"))
