"""The functions that a Loader applies to its records: transform, map and filter, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pario.records.workers import Missing


@dataclass(frozen=True)
class Steps:
    """Functions of a record, each with True if it is a filter. Can be pickled if they can."""

    functions: tuple[tuple[Callable[[Any], Any], bool], ...] = ()

    def __call__(self, record: Any) -> Any:
        """The result for a record, or ``Missing()``."""
        for function, filters in self.functions:
            result = function(record)
            if not filters:
                record = result
            elif not result:
                return Missing()
        return record

    def then(self, function: Callable[[Any], Any], filters: bool = False) -> Steps:
        """These functions, and another one after them."""
        return Steps((*self.functions, (function, filters)))
