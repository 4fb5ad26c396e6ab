"""Registers the plugins for all tests."""

pytest_plugins = [
    "pytester",
    "tests.support.processes",
    "tests.support.results",
]
