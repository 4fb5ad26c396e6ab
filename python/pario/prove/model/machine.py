"""Machines as text files: what each parameter is, and where it comes from."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pario import state, wording
from pario.errors import ParioError

FOLDER = Path(__file__).parent / "machines"
#: The machine that pario bench --calibrate has measured.
THIS = "this"
#: Parameters beside those of the native model: of a number in text, writes of a rank to a target
#: that it does not wait for, and requests that a rank has under way at a time when it reads in
#: order, or much at once.
OWN = ("number_seconds", "in_flight", "read_ahead")
#: Those that count things.
WHOLE = ("targets", "in_flight", "read_ahead")


@dataclass(frozen=True)
class _Range:
    """What a number in a machine's file may be."""

    least: float
    most: float
    whole: bool = False
    none: bool = False  # 0, too: no limit

    def check(self, name: str, value: Any) -> float:
        """The number; raises ValueError."""
        right = isinstance(value, int | float) and not isinstance(value, bool)
        right = (
            right
            and (self.least <= value <= self.most or (self.none and value == 0))
            and not (self.whole and value % 1)
        )
        if not right:
            zero, number = (
                "0 (no limit) or " if self.none else "",
                "a whole number" if self.whole else "a number",
            )
            raise ValueError(
                f"{name}: {value}; expected {zero}{number} from {self.least:g} to {self.most:g}"
            )
        return float(value)


_UNIT, _RANKS_PER_NODE = _Range(512, 2**40, whole=True), _Range(1, 1e6, whole=True)
_COUNT, _RATE, _SECONDS = _Range(1, 1e6, whole=True), _Range(1, 1e18, none=True), _Range(0, 1e6)


@dataclass(frozen=True)
class Machine:
    """A described machine."""

    name: str
    title: str
    kind: str  # of file system, as in src/core/layout/layout.def
    unit: int  # bytes per stripe, or the block
    ranks_per_node: int
    values: Mapping[str, float]
    sources: Mapping[str, str]  # of each value: where it stands, or what it was fitted to
    fitted: tuple[str, ...]
    remark: str = ""

    def with_values(self, changed: Mapping[str, float]) -> Machine:
        """The same with other values."""
        return replace(self, values={**self.values, **changed})

    def native(self) -> list[tuple[str, float]]:
        """Its parameters as the native model takes them."""
        return [(name, value) for name, value in self.values.items() if name not in OWN]


def names() -> list[str]:
    """Machines that pario brings along."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def path_of(name: str) -> Path:
    """The file of a machine: one of pario's own, any path that ends in .toml, or for ``this`` what
    was measured here last."""
    if name == THIS:
        measured = list(state.folder("machines").glob("*.toml"))
        if not measured:
            raise ParioError(
                "this machine has not been measured; pario bench --calibrate DIR does it"
            )
        return max(measured, key=lambda path: path.stat().st_mtime_ns)
    return Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"


def load(name: str) -> Machine:
    """Raises ParioError, which names the file and what is wrong with it."""
    path = path_of(name)
    try:
        with path.open("rb") as file:
            return _parse(THIS if name == THIS else path.stem, tomllib.load(file))
    except FileNotFoundError:
        raise ParioError(
            f"no machine {name}; there are {', '.join(names())}, or a file that ends in .toml"
        ) from None
    except (OSError, tomllib.TOMLDecodeError, TypeError, ValueError) as error:
        raise ParioError(f"{path}: {error}") from error


def text_of(machine: Machine) -> str:
    """Its file."""
    head = {
        "title": machine.title,
        "kind": machine.kind,
        "unit": machine.unit,
        "ranks_per_node": machine.ranks_per_node,
        "remark": machine.remark,
    }
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in head.items()
        if value != ""
    ]
    for name, value in machine.values.items():
        origin = "fitted" if name in machine.fitted else "source"
        lines += ["", "[parameters]"] if name == next(iter(machine.values)) else []
        lines.append(
            f"{name} = {{ value = {value:.10g}, {origin} ="
            f" {json.dumps(machine.sources[name], ensure_ascii=False)} }}"
        )
    return "\n".join(lines) + "\n"


def _parse(name: str, text: dict[str, Any]) -> Machine:
    from pario import _native

    for key in ("title", "kind"):
        if not isinstance(_needed(text, key), str):
            raise ValueError(f"{key}: {text[key]}; expected text")
    if text["kind"] not in (kinds := _native.model_kinds()):
        raise ValueError(f"kind: {text['kind']}; expected one of {', '.join(kinds)}")
    parameters = _parameters(text)
    return Machine(
        name,
        wording.printable(text["title"]),
        text["kind"],
        int(_UNIT.check("unit", _needed(text, "unit"))),
        int(_RANKS_PER_NODE.check("ranks_per_node", _needed(text, "ranks_per_node"))),
        {
            key: _range_of(key).check(key, _needed(parameter, "value", f"{key}: "))
            for key, parameter in parameters.items()
        },
        {
            key: str(parameter.get("source") or parameter["fitted"])
            for key, parameter in parameters.items()
        },
        tuple(key for key, parameter in parameters.items() if "fitted" in parameter),
        str(text.get("remark", "")),
    )


def _needed(table: Mapping[str, Any], key: str, where: str = "") -> Any:
    if key not in table:
        raise ValueError(f"{where}{key} is missing")
    return table[key]


def _parameters(text: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is said of each."""
    from pario import _native

    parameters = _needed(text, "parameters")
    if not isinstance(parameters, dict) or not all(
        isinstance(parameter, dict) for parameter in parameters.values()
    ):
        raise ValueError(
            "parameters: expected a table of tables, such as targets = { value = 4, source = ... }"
        )
    known = (*_native.model_parameters(), *OWN)
    for key, parameter in parameters.items():
        if key not in known:
            raise ValueError(f"no such parameter: {key}; there are {', '.join(known)}")
        if bool(parameter.get("source")) == bool(parameter.get("fitted")):
            raise ValueError(f"{key}: either source or fitted must say where it comes from")
    _needed(parameters, "targets", "parameters: ")
    return parameters


def _range_of(parameter: str) -> _Range:
    if parameter in WHOLE:
        return _COUNT
    return _RATE if parameter.endswith("_rate") else _SECONDS
