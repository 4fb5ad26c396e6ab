"""Locks of paths that their last user removes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pario import locks


@pytest.fixture
def opener(tmp_path):
    """A path, and a function that makes and opens it."""
    path = tmp_path / "held"

    def open_directory() -> int:
        path.mkdir(exist_ok=True)
        return os.open(path, os.O_RDONLY)

    return path, open_directory


def count_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_last_of_two_users_may_remove_the_path(opener):
    path, make = opener
    one, other = locks.hold(path, make), locks.hold(path, make)
    assert not locks.is_last(path, one)
    os.close(other)
    assert locks.is_last(path, one)
    os.close(one)


def test_a_user_that_must_be_alone_is_refused(opener):
    path, make = opener
    one = locks.hold(path, make)
    before = count_descriptors()
    with pytest.raises(BlockingIOError):
        locks.hold(path, make, alone=True)
    assert count_descriptors() == before
    os.close(one)


def test_a_path_that_is_removed_meanwhile_is_made_again(opener):
    path, make = opener
    removals = 2

    def make_and_lose() -> int:
        nonlocal removals
        descriptor = make()
        if removals:
            removals -= 1
            path.rmdir()
        return descriptor

    before = count_descriptors()
    descriptor = locks.hold(path, make_and_lose)
    assert (removals, path.is_dir(), count_descriptors()) == (0, True, before + 1)
    os.close(descriptor)


def test_a_path_that_is_missing_when_it_is_opened_is_made_again(opener):
    path, make = opener
    errors = [FileNotFoundError()]

    def fail_once() -> int:
        if errors:
            raise errors.pop()
        return make()

    os.close(locks.hold(path, fail_once))
    assert not errors


def test_a_path_whose_directory_is_missing_is_an_error(tmp_path):
    path = tmp_path / "missing" / "held"
    with pytest.raises(FileNotFoundError):
        locks.hold(path, lambda: path.mkdir() or os.open(path, os.O_RDONLY))


def test_the_user_of_a_removed_path_is_not_the_last_of_a_new_one(opener):
    path, make = opener
    stale = make()
    path.rmdir()
    current = locks.hold(path, make)
    assert not locks.is_last(path, stale)
    os.close(stale)
    os.close(current)
