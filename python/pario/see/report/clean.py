"""Makes an analysis safe to show: names in it come from programs and file systems, which may put
anything there."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from pario.wording import printable

Shown = TypeVar("Shown")


def cleaned(shown: Shown) -> Shown:
    """The same analysis, or comparison, in which every text is printable
    (:func:`pario.wording.printable`)."""
    result: Shown = _cleaned(shown)
    return result


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, tuple):
        return (
            value
            if value and isinstance(value[0], int | float)
            else tuple(_cleaned(item) for item in value)
        )
    if isinstance(value, dict):
        return {_cleaned(key): item for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(
            **{field.name: _cleaned(getattr(value, field.name)) for field in fields(value)}
        )
    return value
