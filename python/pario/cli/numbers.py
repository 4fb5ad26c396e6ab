"""Types of arguments that are numbers, sizes, seconds or dates."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from math import inf, nan

_DAY = 86400.0


def size(text: str) -> int:
    """Bytes of a size such as 4M."""
    from pario.fix.stripe.commands import size_of

    try:
        return size_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text}; expected bytes, or a size such as 4M") from error


def positive_size(text: str) -> int:
    """Bytes of a size such as 4M, at least 1."""
    value = size(text)
    if value == 0:
        raise argparse.ArgumentTypeError(f"{text}; expected at least one byte")
    return value


def positive(text: str) -> int:
    """A whole number, at least 1."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text}; expected a number from 1 on")
    return int(text)


def seconds(text: str) -> float:
    """Seconds, above 0."""
    value = _number(text)
    if not 0 < value < inf:
        raise argparse.ArgumentTypeError(f"{text}; expected seconds, above 0")
    return value


def seconds_or_none(text: str) -> float:
    """Seconds; 0: none."""
    value = _number(text)
    if not 0 <= value < inf:
        raise argparse.ArgumentTypeError(f"{text}; expected seconds, 0 or more")
    return value


def _number(text: str) -> float:
    """The number in a text; NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return nan


def moment(text: str) -> float:
    """A date, with or without a time, in seconds since the epoch (UTC), or the days before now."""
    if re.fullmatch(r"\d{1,5}d", text):
        return time.time() - int(text[:-1]) * _DAY
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=found.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(
            f"{text}; expected a date such as 2026-11-30 or 2026-11-30T18:00, or days such as 7d"
        ) from error


def shape(text: str) -> tuple[int, ...]:
    """Lengths of axes, at least 1, such as 2x3x1."""
    words = text.split("x")
    if not all(word.isdecimal() and int(word) for word in words):
        raise argparse.ArgumentTypeError(f"{text}; expected numbers from 1 on, such as 2x3x1")
    return tuple(map(int, words))


def several(number: Callable[[str], int]) -> Callable[[str], tuple[int, ...]]:
    """The type of numbers separated by commas, each of the type ``number``."""
    return lambda text: tuple(map(number, text.split(",")))


def between(least: int, most: int) -> Callable[[str], int]:
    """The type of numbers from ``least`` to ``most``."""

    def number(text: str) -> int:
        is_short = text.isdecimal() and len(text) <= len(str(most))
        if not is_short or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text}; expected a number from {least} to {most:,}")
        return int(text)

    return number
