"""The examples in the docstrings of the checkpoint API run, and every public object has one."""

import doctest

import pytest

from pario import checkpoint

#: Exceptions need no example.
OBJECTS = [name for name in checkpoint.__all__ if name != "CheckpointError"]


@pytest.mark.parametrize("name", OBJECTS)
def test_the_examples_of(name):
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = finder.find(getattr(checkpoint, name), name, globs={})
    assert found[0].examples, f"{name} has no example"
    for test in found:
        result = doctest.DocTestRunner().run(test)
        assert not result.failed, f"{test.name}: {result.failed} of {result.attempted} examples"


@pytest.mark.parametrize("name", OBJECTS)
def test_parameters_and_results_are_documented(name):
    text = getattr(checkpoint, name).__doc__
    assert "Parameters\n" in text or name == "State", name
