"""Shared by all tests: how much is tried (`--long` for the long runs), and the data files."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

DATA = Path(__file__).parent / "data"

quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("default", max_examples=150, deadline=None, suppress_health_check=quiet)
settings.register_profile("quick", max_examples=25, deadline=None, suppress_health_check=quiet)
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=quiet)
settings.load_profile("default")


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="many more random cases, and the tests marked `long`")


def pytest_configure(config):
    if config.getoption("--long"):
        os.environ["TILING_LONG"] = "1"  # read by test modules as they are imported
        settings.load_profile("long")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--long"):
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="takes minutes: --long"))


@pytest.fixture(scope="session")
def data():
    """Reads a file of tests/data."""
    return lambda name: json.loads((DATA / name).read_text("utf-8"))
