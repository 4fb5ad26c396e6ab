"""Rates of file systems that ``pario bench --calibrate`` measured on this host and kept."""

from __future__ import annotations

import platform
import tomllib
from dataclasses import dataclass

from pario import state


@dataclass(frozen=True)
class Rates:
    """The rates of one target, in bytes per second, and the seconds of a small request that a
    process waits for; 0: not measured."""

    read: float
    write: float
    request: float


def load_rates() -> dict[tuple[str, str], Rates]:
    """The kept rates by type and mount point; damaged files are skipped."""
    found = {}
    for path in sorted(
        state.folder(state.MACHINES).glob("*.toml"), key=lambda path: path.stat().st_mtime_ns
    ):
        try:
            text = tomllib.loads(path.read_text(encoding="utf-8"))
            type, mount = text["mount"]
            found[str(type), str(mount)] = _rates(text["parameters"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return found


def _rates(parameters: dict[str, dict[str, float]]) -> Rates:
    read, write, occupied, waited = (
        float(parameters.get(name, {}).get("value", 0.0))
        for name in ("read_rate", "write_rate", "request_seconds", "round_trip")
    )
    return Rates(read, write, occupied + waited)


def applies_to(hosts: list[str], network: bool) -> bool:
    """Tell whether the kept rates hold for a file system of a run: it is remote, or one of this
    host."""
    return network or platform.node() in hosts
