"""The parsers in Python read mutated and stored files, or raise errors that name them."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.mutate import mutate
from tests.fuzz.python_parsers import PARSERS, Parser, try_file, try_mutations

#: A separate process reads each Darshan log, which takes a second.
_SLOW = {"darshan"}


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_valid_files_are_read(parser: Parser, tmp_path):
    for seed in parser.seeds():
        (tmp_path / parser.file).write_bytes(seed)
        parser.parse(tmp_path / parser.file)


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_kept_files_break_no_promise(parser: Parser, tmp_path):
    assert [try_file(parser, content, tmp_path) for content in parser.corpus()] == [""] * len(
        parser.corpus()
    )


@pytest.mark.system
@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_the_first_mutations_break_no_promise(parser: Parser):
    """Known defects show only in the longer campaign, python -m tests.fuzz.python_parsers."""
    numbers = iter(range(1 if parser.name in _SLOW else 15))
    assert try_mutations(parser, numbers, lambda: False)[1] == {}


def test_a_broken_promise_is_detected(tmp_path):
    def parse(path):
        return path.read_bytes().decode() and {}["key"]

    broken = Parser("broken", lambda: [b"text"], "a.txt", parse)
    assert try_file(broken, b"text", tmp_path) == "KeyError: 'key'"
    assert "UnicodeDecodeError" in try_file(broken, b"\xff", tmp_path)


def test_mutations_are_the_same_on_every_machine():
    seeds = [b'{"a": 12345, "b": "text"}', random.Random(1).randbytes(100)]
    assert [mutate(seeds, number) for number in range(50)] == [mutate(seeds, n) for n in range(50)]
    assert len({mutate(seeds, number) for number in range(50)}) > 40
