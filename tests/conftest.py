"""Registers the plugins for all tests."""

pytest_plugins = [
    "pytester",
    "tests.support.tiers",
    "tests.support.limits",
    "tests.support.selection",
    "tests.support.results",
]
