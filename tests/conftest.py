"""Registers the plugins for all tests, and groups tests for pytest-xdist."""

from __future__ import annotations

import pytest

pytest_plugins = [
    "pytester",
    "tests.support.limits",
    "tests.support.selection",
    "tests.support.results",
]
#: Fixtures that are expensive or large, by group: tests of a group share one worker, and so one of
#: each fixture (pytest-xdist --dist loadgroup).
GROUPS = {
    "ceph": "ceph",  # four servers with their data in memory, and five clients
    "slurm": "slurm",  # its daemons, and the hosts beneath
    "hosts": "hosts",
    "four_hosts": "hosts",
    "browser": "browser",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names = getattr(item, "fixturenames", [])
        if group := next((group for name, group in GROUPS.items() if name in names), None):
            item.add_marker(pytest.mark.xdist_group(group))
