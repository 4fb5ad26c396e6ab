"""Registers the plugins for all tests and keeps the tests out of the user's cache and state."""

import gc
import os
from collections.abc import Iterator
from unittest import mock

import pytest

pytest_plugins = [
    "pytester",
    "tests.support.tiers",
    "tests.support.limits",
    "tests.support.selection",
    "tests.support.results",
]


@pytest.fixture(scope="session", autouse=True)
def files_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Uses cache and state directories of this session; programs that tests start inherit them."""
    places = {
        name: str(tmp_path_factory.mktemp(name.lower()))
        for name in ("PARIO_CACHE", "XDG_STATE_HOME")
    }
    with mock.patch.dict(os.environ, places):
        yield


def pytest_collection_finish() -> None:
    """Keeps the collected tests, which live until the end, out of searches for garbage: these would
    take 5 % of the time."""
    gc.freeze()
