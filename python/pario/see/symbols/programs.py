"""Lines of addresses, by the program ``addr2line`` (binutils) or ``llvm-symbolizer``. Both find
separate debug information by build ID and debug link."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

#: Seconds for the addresses of one module. A module with more work stays without lines.
_PATIENCE = 60
_PLACE = re.compile(r"(?P<file>.*?):(?P<line>\d+)(?::\d+)?(?: \(discriminator \d+\))?")
_FORTRAN_MODULE = re.compile(r"__(?P<module>\w+?)_MOD_(?P<name>\w+)")
_FORTRAN = (".f", ".f77", ".f90", ".f95", ".f03", ".f08", ".for", ".ftn")


@dataclass(frozen=True)
class Line:
    """A place in the source; empty or 0: not known."""

    function: str
    file: str
    line: int


def find_lines(path: str, addresses: Sequence[int]) -> dict[int, list[Line]]:
    """Return the lines of addresses of a module: the line of the call, then those of the callers
    that it was inlined into. Empty without a program or without debug information."""
    words = ["addr2line", "-a", "-f", "-i", "-C", "-e", path]
    if shutil.which(words[0]) is None:
        words = ["llvm-symbolizer", "--print-address", "--inlines", "--demangle", f"--obj={path}"]
    if not addresses or shutil.which(words[0]) is None:
        return {}
    try:
        done = subprocess.run(
            words,
            input="".join(f"{address:#x}\n" for address in addresses),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            env={**os.environ, "LC_ALL": "C", "DEBUGINFOD_URLS": ""},
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return _parse(done.stdout, set(addresses))


def _parse(text: str, addresses: set[int]) -> dict[int, list[Line]]:
    """Parse lines of an address, then pairs of lines: function, and file:line."""
    found: dict[int, list[Line]] = {}
    parts: list[Line] = []
    function = ""
    for line in filter(None, text.splitlines()):
        if not function and line.startswith("0x") and _number(line) in addresses:
            parts = found.setdefault(_number(line), [])
        elif not function:
            function = line
        else:
            parts.append(_line(function, line))
            function = ""
    return found


def _number(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return -1


def _line(function: str, place: str) -> Line:
    match = _PLACE.fullmatch(place)
    file, line = (match["file"], int(match["line"])) if match else ("", 0)
    file = "" if file.startswith("??") else file
    return Line(_name("" if function.startswith("??") else function, file), file, line)


def _name(function: str, file: str) -> str:
    """Return the name of a function as in the source: Fortran adds to its names."""
    if function == "MAIN__":
        return "main program"
    if match := _FORTRAN_MODULE.fullmatch(function):
        return f"{match['module']}::{match['name']}"
    if file.lower().endswith(_FORTRAN):
        return function.rstrip("_")
    return function.partition("(")[0] if function.endswith(")") else function
