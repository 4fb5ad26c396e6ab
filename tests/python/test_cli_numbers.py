"""Types of arguments that are numbers, sizes, seconds or dates."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from pario.cli import numbers


@pytest.mark.parametrize(
    ("type_of", "text", "value"),
    [
        (numbers.size, "0", 0),
        (numbers.size, "4M", 4 << 20),
        (numbers.positive_size, "1", 1),
        (numbers.positive, "12", 12),
        (numbers.seconds, "1.5", 1.5),
        (numbers.seconds, "2e-3", 0.002),
        (numbers.seconds_or_none, "0", 0.0),
        (numbers.seconds_or_none, "0.0", 0.0),
        (numbers.seconds_or_none, "30", 30.0),
        (numbers.moment, "1970-01-02", 86400.0),
        (numbers.moment, "1970-01-01T01:00", 3600.0),
        (numbers.moment, "1970-01-01T01:00+01:00", 0.0),
        (numbers.shape, "2x3x1", (2, 3, 1)),
        (numbers.several(numbers.positive), "1,20", (1, 20)),
        (numbers.between(0, 7), "0", 0),
        (numbers.between(0, 7), "7", 7),
    ],
)
def test_texts_become_values(type_of: Callable[[str], object], text: str, value: object) -> None:
    assert type_of(text) == value


@pytest.mark.parametrize(
    ("type_of", "expected", "texts"),
    [
        (numbers.size, "expected bytes, or a size such as 4M", "x 4Q -1"),
        (numbers.positive_size, "expected at least one byte", "0 0M"),
        (numbers.positive, "expected a number from 1 on", "0 -1 1.5 x"),
        (numbers.seconds, "expected seconds, above 0", "0 -1 nan inf x 3s"),
        (numbers.seconds_or_none, "expected seconds, 0 or more", "-1 nan inf x 3s"),
        (numbers.moment, "expected a date such as", "yesterday 2026-13-01 7 123456d"),
        (numbers.shape, "expected numbers from 1 on", "2x 0x3 2x-1 2,3"),
        (numbers.several(numbers.positive), "expected a number from 1 on", "1, 1,x ,"),
        (numbers.between(2, 1000), "expected a number from 2 to 1,000", "1 1001 00002 x"),
    ],
)
def test_other_texts_are_refused_with_the_expected_form(
    type_of: Callable[[str], object], expected: str, texts: str
) -> None:
    for text in texts.split():
        with pytest.raises(argparse.ArgumentTypeError, match=expected):
            type_of(text)


def test_days_are_counted_back_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()
    monkeypatch.setattr(numbers.time, "time", lambda: now)
    assert numbers.moment("7d") == datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp()
