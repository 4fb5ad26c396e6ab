"""Registers the plugins for all tests and keeps the tests out of the user's cache."""

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
def cache_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Uses a cache directory of this session; programs that tests start inherit it."""
    place = str(tmp_path_factory.mktemp("cache"))
    with mock.patch.dict(os.environ, {"PARIO_CACHE": place}):
        yield
