"""Registers the plugins for all tests."""

pytest_plugins = [
    "pytester",
    "tests.support.selection",
    "tests.support.results",
]
