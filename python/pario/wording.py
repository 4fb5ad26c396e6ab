"""Formats numbers, sizes and names for findings, terminal and HTML alike: pure functions of one
value to one short text.

Amounts of data have SI units; blocks, stripes and buffers, which are powers of two, have binary
ones.
"""

from __future__ import annotations

import math
import shlex
import signal
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

Number = TypeVar("Number", int, float)

#: Between groups of three digits.
GROUP = ","

#: A larger exit status is that of a signal, as shells have it.
BY_SIGNAL = 128

#: The exit status of a command that Ctrl-C has interrupted.
INTERRUPTED = BY_SIGNAL + signal.SIGINT

#: Shown for a value that is not known.
NOT_KNOWN = "not known"

_SIZE_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
#: Unicode categories: controls, invisible characters (some reorder the text around them),
#: surrogates, and unassigned code points.
_NOT_SHOWN = frozenset(("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"))
_BLOCK_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_COUNT_UNITS = ("", "k", "M", "G", "T", "P")


def _three_digits(value: float) -> str:
    """Three significant digits, never in exponent form: 1.23, 12.3, 123, 1234."""
    magnitude = abs(value)
    decimals = 2 if magnitude < 9.995 else 1 if magnitude < 99.95 else 0
    return f"{value:.{decimals}f}"


def seconds(value: float) -> str:
    """A duration: ``850 ns``, ``12.0 µs``, ``3.40 ms``, ``0.42 s``, ``12.3 s``, ``1,469 s``, ``2 h
    07 min``."""
    if not math.isfinite(value):
        return NOT_KNOWN
    if value == 0:
        return "0 s"
    if abs(value) < 0.01:
        return _small_seconds(value)
    if value < 3599.5:
        return f"{_three_digits(value)} s" if value < 999.5 else f"{count(value)} s"
    minutes = round(value / 60)
    return f"{count(minutes // 60)} h {minutes % 60:02d} min"


def seconds_range(least: float, most: float) -> str:
    """A range of durations: ``0.71 s to 1.42 s``."""
    return f"{seconds(least)} to {seconds(most)}"


def _small_seconds(value: float) -> str:
    for factor, unit in ((1e3, "ms"), (1e6, "µs")):
        if abs(value) * factor >= 1:
            return f"{_three_digits(value * factor)} {unit}"
    return f"{value * 1e9:.0f} ns"


def size(value: float) -> str:
    """Bytes in SI units: ``512 B``, ``2.05 kB``, ``12.3 GB``."""
    if not math.isfinite(value):
        return NOT_KNOWN
    scaled, unit = _scale(value, _SIZE_UNITS)
    return f"{scaled:.0f} B" if unit == "B" else f"{_three_digits(scaled)} {unit}"


def block(value: float) -> str:
    """Bytes of a block, stripe or buffer in binary units: ``4 KiB``, ``1.5 MiB``."""
    if not math.isfinite(value):
        return NOT_KNOWN
    scaled = float(value)
    for unit in _BLOCK_UNITS[:-1]:
        if abs(scaled) < 1024:
            return f"{scaled:.4g} {unit}"
        scaled /= 1024
    return f"{scaled:.4g} {_BLOCK_UNITS[-1]}"


def exact_size(value: float) -> str:
    """Bytes to the last one: ``2,048 B``."""
    return f"{count(value)} B"


def rate(value: float) -> str:
    """Bytes per second: ``1.20 GB/s``."""
    return f"{size(value)}/s"


def _scale(value: float, units: Sequence[str]) -> tuple[float, str]:
    scaled = float(value)
    for unit in units[:-1]:
        if abs(scaled) < 999.5:
            return scaled, unit
        scaled /= 1000
    return scaled, units[-1]


def count(value: float) -> str:
    """A number of things, in full: ``2,000,000``."""
    return f"{round(value):,}".replace(",", GROUP) if math.isfinite(value) else NOT_KNOWN


def short_count(value: float) -> str:
    """A number of things in short form: ``950``, ``1.2k``, ``34M``."""
    scaled, unit = _scale(value, _COUNT_UNITS)
    return (
        f"{scaled:.0f}{unit}"
        if not unit or scaled >= 9.95
        else f"{scaled:.1f}{unit}".replace(".0", "")
    )


def share(value: float) -> str:
    """A part of a whole in per cent: ``58 %``, ``0.4 %``, ``<0.1 %``."""
    if not math.isfinite(value):
        return NOT_KNOWN
    percent = value * 100
    if percent == 0:
        return "0 %"
    if percent < 0.1:
        return "<0.1 %"
    return f"{percent:.1f} %" if percent < 0.95 else f"{percent:.0f} %"


def percent(part: float, whole: float) -> str:
    """:func:`share` of a part; 0 % if the whole is 0."""
    return share(part / whole if whole > 0 else 0.0)


def plural(number: float, one: str, many: str = "") -> str:
    """``1 file``, ``2,000 files``."""
    return f"{count(number)} {one if round(number) == 1 else many or one + 's'}"


def exit_status(status: int) -> str:
    """An exit status, with the signal that a status above 128 stands for: ``exit status 139
    (SIGSEGV)``."""
    try:
        return f"exit status {status} ({signal.Signals(status - BY_SIGNAL).name})"
    except ValueError:
        return f"exit status {status}"


def ranks(numbers: Iterable[int], limit: int = 6) -> str:
    """Ranks as ranges: ``0-3, 8``; with more than ``limit`` ranges the rest is counted."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in runs[:limit]]
    rest = sum(last - first + 1 for first, last in runs[limit:])
    return ", ".join(texts) + (f" and {count(rest)} more" if rest else "")


def moment(value: float) -> str:
    """Seconds since the epoch as a date, in UTC: a report must read the same everywhere."""
    return datetime.fromtimestamp(value, UTC).strftime("%d %B %Y, %H:%M:%S UTC").lstrip("0")


def date(value: float) -> str:
    """Seconds since the epoch as a day in UTC: ``2026-11-30``."""
    return iso_moment(value)[:10]


def iso_moment(value: float) -> str:
    """Seconds since the epoch as ISO 8601 in UTC: ``2026-11-30T18:00:00Z``; empty beyond the years
    that calendars have."""
    try:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return ""


def name(path: str) -> str:
    """The last two parts of a long path: enough to recognise it in a title."""
    return "/".join(path.rstrip("/").split("/")[-2:]) if len(path) > 40 else path


def hint_reason(key: str, value: str, reason: str) -> str:
    """The reason why a hint has no effect, after the hint unless the reason names it."""
    return reason if key in reason else f"{key}={value}: {reason or 'not in force'}"


def elide(text: str, width: int) -> str:
    """At most ``width`` characters: the middle of a longer text becomes an ellipsis, the end (a
    file's name) keeps two thirds."""
    if len(text) <= width:
        return text
    tail = max((width - 1) * 2 // 3, 0)
    head = max(width - 1 - tail, 0)
    return text[:head] + "…" + (text[-tail:] if tail else "")


def command(text: str, width: int) -> str:
    """A command in at most ``width`` characters: first its long paths lose their directories, then
    it loses its end."""
    if len(text) > width:
        text = " ".join(
            "…/" + word.rpartition("/")[2] if len(word) > 20 and word.startswith("/") else word
            for word in text.split(" ")
        )
    return text if len(text) <= width else text[: width - 1] + "…"


def printable(text: str) -> str:
    r"""The text with escapes in place of the characters that cannot be displayed.

    Control characters (no escape sequence of a path reaches the terminal), undecodable bytes
    (``\xff``), and the invisible characters that reorder text.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelt(character) for character in text)


def command_line(words: Iterable[str]) -> str:
    """The words as one line for bash, zsh or ksh, which :func:`printable` leaves as it is."""
    return " ".join(map(_quote, words))


def _quote(word: str) -> str:
    if printable(word) == word:
        return shlex.quote(word)
    escaped = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{printable(escaped)}'"


def _spelt(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was no UTF-8 (PEP 383)
        return f"\\x{code - 0xDC00:02x}"
    if character in "\n\t\r":
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[character]
    if unicodedata.category(character) in _NOT_SHOWN:
        return (
            f"\\x{code:02x}"
            if code < 0x100
            else f"\\u{code:04x}"
            if code < 0x10000
            else f"\\U{code:08x}"
        )
    return character
