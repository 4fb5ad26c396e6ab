"""Machines as text files: the value and the origin of each parameter."""

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
#: The name of the machine that pario bench --calibrate measured.
THIS = "this"
#: Parameters that the native model does not have: seconds per number in text; unfinished writes of
#: a rank to a target; requests in flight of a rank that reads in order, or much in one call.
OWN = ("number_seconds", "in_flight", "read_ahead")
#: Parameters that are whole numbers.
WHOLE = ("targets", "in_flight", "read_ahead")


@dataclass(frozen=True)
class _Range:
    """The allowed values of a number in a machine's file."""

    least: float
    most: float
    whole: bool = False
    none: bool = False  # 0 is allowed, too, and means no limit

    def check(self, name: str, value: Any) -> float:
        """Return the value as a number. Raises ValueError if it is not allowed."""
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
    sources: Mapping[str, str]  # of each value: its source, or the rows to which it was fitted
    fitted: tuple[str, ...]
    remark: str = ""
    mount: tuple[str, str] = ("", "")  # type and mount point of a measured file system

    def with_values(self, changed: Mapping[str, float]) -> Machine:
        """Return a copy of the machine with other values."""
        return replace(self, values={**self.values, **changed})

    def native(self) -> list[tuple[str, float]]:
        """The parameters of the native model."""
        return [(name, value) for name, value in self.values.items() if name not in OWN]


def names() -> list[str]:
    """The names of the machines that pario includes."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def path_of(name: str) -> Path:
    """The file of a machine: one that pario includes, any path that ends in .toml, or for ``this``
    the last one measured here. Raises ParioError."""
    if name == THIS:
        measured = list(state.folder(state.MACHINES).glob("*.toml"))
        if not measured:
            raise ParioError(
                "this machine has not been measured; pario bench --calibrate DIR does it"
            )
        return max(measured, key=lambda path: path.stat().st_mtime_ns)
    return Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"


def load(name: str) -> Machine:
    """Read a machine. Raises ParioError with the file and the error."""
    path = path_of(name)
    if not path.exists():
        raise ParioError(
            f"no machine {name}; there are {', '.join(names())}, or a file that ends in .toml"
        )
    return load_file(path, THIS if name == THIS else path.stem)


def load_file(path: Path, name: str) -> Machine:
    """Read the file of a machine. Raises ParioError with the file and the error."""
    try:
        with path.open("rb") as file:
            return _parse(name, tomllib.load(file))
    except (OSError, tomllib.TOMLDecodeError, TypeError, ValueError) as error:
        raise ParioError(f"{path}: {error}") from error


def text_of(machine: Machine) -> str:
    """The text of a machine's file."""
    head = {
        "title": machine.title,
        "kind": machine.kind,
        "unit": machine.unit,
        "ranks_per_node": machine.ranks_per_node,
        "remark": machine.remark,
        "mount": list(machine.mount) if all(machine.mount) else "",
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
        if not isinstance(_require(text, key), str):
            raise ValueError(f"{key}: {text[key]}; expected text")
    if text["kind"] not in (kinds := _native.model_kinds()):
        raise ValueError(f"kind: {text['kind']}; expected one of {', '.join(kinds)}")
    parameters = _parameters(text)
    return Machine(
        name,
        wording.printable(text["title"]),
        text["kind"],
        int(_UNIT.check("unit", _require(text, "unit"))),
        int(_RANKS_PER_NODE.check("ranks_per_node", _require(text, "ranks_per_node"))),
        {
            key: _range_of(key).check(key, _require(parameter, "value", f"{key}: "))
            for key, parameter in parameters.items()
        },
        {
            key: str(parameter.get("source") or parameter["fitted"])
            for key, parameter in parameters.items()
        },
        tuple(key for key, parameter in parameters.items() if "fitted" in parameter),
        str(text.get("remark", "")),
        _parse_mount(text.get("mount", ["", ""])),
    )


def _parse_mount(value: Any) -> tuple[str, str]:
    if not (isinstance(value, list) and len(value) == 2 and all(isinstance(v, str) for v in value)):
        raise ValueError(f"mount: {value}; expected a list of type and mount point")
    return value[0], value[1]


def _require(table: Mapping[str, Any], key: str, where: str = "") -> Any:
    if key not in table:
        raise ValueError(f"{where}{key} is missing")
    return table[key]


def _parameters(text: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the table of each parameter. Raises ValueError."""
    from pario import _native

    parameters = _require(text, "parameters")
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
            raise ValueError(f"{key}: either source or fitted must name its origin")
    _require(parameters, "targets", "parameters: ")
    return parameters


def _range_of(parameter: str) -> _Range:
    if parameter in WHOLE:
        return _COUNT
    return _RATE if parameter.endswith("_rate") else _SECONDS
