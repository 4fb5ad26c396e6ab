"""Makes an analysis safe to show: its names come from programs and file systems, and may contain
any characters."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from pario.wording import printable

Shown = TypeVar("Shown")


def make_printable(shown: Shown) -> Shown:
    """Return the analysis, or comparison, with printable texts
    (:func:`pario.wording.printable`)."""
    result: Shown = _make_printable(shown)
    return result


def _make_printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple):
        return (
            value
            if value and isinstance(value[0], int | float)
            else tuple(_make_printable(item) for item in value)
        )
    if isinstance(value, dict):
        return {_make_printable(key): item for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(
            **{field.name: _make_printable(getattr(value, field.name)) for field in fields(value)}
        )
    return value
