"""The state of a Loader: its place in the epochs, as plain values."""

from __future__ import annotations

import operator
import zlib
from collections.abc import Sequence
from typing import Any

from pario.errors import ParioError
from pario.records.passes import Place

_VERSION = 1
#: The begin of the description of several files, among the facts of an order.
_FILES = "files "
#: The largest batch size, number of ranks and so on, so that their products fit into 64 bits.
_MOST = 2**31 - 1


def write_state(place: Place, records: int, order: list[Any]) -> dict[str, Any]:
    """The state at a place of ``records`` records in an order. It has the same keys at any place,
    because ``dcp.load`` restores only those of the state that it is given."""
    return {"version": _VERSION, **place._asdict(), "records": records, "order": order}


def read_state(state: Any, records: int, order: list[Any]) -> Place:
    """The place of a state; raises ParioError if it is damaged or belongs to other records."""
    version = state.get("version") if isinstance(state, dict) else None
    if version != _VERSION:
        raise ParioError(f"state of a Loader: version {version!r}: expected {_VERSION}")
    expect_same("records", state, records)
    # States of earlier versions do not describe the files.
    earlier = [one for one in order if not str(one).startswith(_FILES)]
    if state.get("order") != earlier:
        hint = "; expected the same files, weights, shuffle and steps that make batches"
        expect_same("order", state, order, hint)
    most = {"seed": 2**64 - 1, "epoch": 2**32 - 1, "position": records}
    seed, epoch, position = (
        check_whole(f"state of a Loader: {name}", state.get(name), 0, end)
        for name, end in most.items()
    )
    skip = check_whole("state of a Loader: skip", state.get("skip", 0), 0, 2**63)
    return Place(seed, epoch, position, skip)


def describe_files(counts: Sequence[int]) -> str:
    """A text that differs for other numbers of records in several files, or another order of
    them."""
    return f"{_FILES}{zlib.crc32(repr(list(counts)).encode()):08x}"


def expect_same(name: str, state: dict[str, Any], value: Any, hint: str = "") -> None:
    """Raises ParioError unless an entry of the state equals the present value."""
    if state.get(name) != value:
        raise ParioError(
            f"state of a Loader: {name} were {state.get(name)!r}, now they are {value!r}{hint}"
        )


def check_whole(name: str, value: Any, least: int, most: int = _MOST) -> int:
    """Converts a whole number, also one of numpy, to an int. Raises ParioError if it is out of
    range."""
    if not hasattr(value, "__index__"):
        raise ParioError(f"{name}={value!r}: expected a whole number, {least} to {most}")
    number = operator.index(value)
    if not least <= number <= most:
        raise ParioError(f"{name}={value!r}: expected {least} to {most}")
    return number
