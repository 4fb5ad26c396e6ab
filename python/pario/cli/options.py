"""The options of ``pario run``, each defined once: flags, help, and the variable of the library
that carries its value. The variable's row in src/core/hints/hints.def has the key of pario.toml."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pario.cli.measured import ALLOW, MEASURE, MEASURE_HELP
from pario.cli.numbers import between
from pario.cli.paths import path, path_text, staged_path_text

MOST_REPETITIONS = 1000


@dataclass(frozen=True)
class Option:
    """An option of the command line."""

    flags: tuple[str, ...]
    help: str
    parsing: Mapping[str, Any] = field(default_factory=dict)  # arguments of add_argument
    variable: str = ""  # the library's variable that carries the value; empty: none
    value: str = ""  # the value of the variable if a switch is set

    @property
    def name(self) -> str:
        """The attribute of the parsed arguments."""
        return str(self.parsing.get("dest", self.flags[-1].lstrip("-").replace("-", "_")))


_SWITCH = {"action": "store_true"}
_REPEATED = {"action": "append", "default": []}

RUN_OPTIONS: tuple[Option, ...] = (
    Option(
        ("-o", "--output"),
        "log directory (default: run.pario, then run-2.pario, ...)",
        {"type": path, "metavar": "DIR"},
    ),
    Option(
        ("--html",),
        "file of the HTML report (default: DIR/report.html)",
        {"type": path, "metavar": "FILE"},
    ),
    Option(("--json",), "print the report as JSON instead", _SWITCH),
    Option(("--all",), "report all findings, functions and files, not one screen", _SWITCH),
    Option(("--no-report",), "only record; `pario report DIR` shows the report later", _SWITCH),
    Option(
        ("--events-limit",),
        "bytes of events per process, 0 for counters only (default 256M)",
        {"metavar": "SIZE"},
        "PARIO_TRACE_EVENTS_LIMIT",
    ),
    Option(
        ("--files-limit",),
        "files per process with rows of their own (default 100000)",
        {"metavar": "N"},
        "PARIO_TRACE_FILES_LIMIT",
    ),
    Option(
        ("--no-arguments",),
        "record the names of programs without their arguments",
        _SWITCH,
        "PARIO_TRACE_ARGUMENTS",
        "no",
    ),
    Option(
        ("--no-sites",),
        "do not record the lines of the program that make the calls",
        _SWITCH,
        "PARIO_TRACE_SITES",
        "no",
    ),
    Option(
        ("--mpiio",),
        "run the program's MPI_File_* calls on pario's own MPI-IO",
        _SWITCH,
        "PARIO_MPIIO",
        "1",
    ),
    Option(
        ("--hint",),
        "a hint for pario's MPI-IO, for all files or those that match; may be repeated"
        " (docs/mpiio.md lists them)",
        {**_REPEATED, "metavar": "[GLOB:]KEY=VALUE"},
        "PARIO_MPIIO",
        "1",
    ),
    Option(
        ("--with",),
        "settings of I/O: a pario.toml (docs/settings.md)",
        {"type": path, "dest": "file", "metavar": "FILE"},
    ),
    Option(
        ("--fix",),
        "run, find the settings that repair it, run again with them, and compare",
        _SWITCH,
    ),
    Option(
        ("--dry-run",), "with --fix: write the settings and stop before the second run", _SWITCH
    ),
    Option(("--measure",), f"with --fix: {MEASURE_HELP}", MEASURE),
    Option(
        ("--allow",),
        "with --fix: apply risky settings, too (all, or keys that `pario settings reference` marks"
        " as risky)",
        ALLOW,
    ),
    Option(
        ("--repeat",),
        "run the command N times: DIR/1 to DIR/N, for pario compare; with --fix: N times as it is"
        " and N times with the settings (default: twice and once)",
        {"type": between(1, MOST_REPETITIONS), "default": 0, "metavar": "N"},
    ),
    Option(
        ("--verify",),
        "keep checksums of the output files that match, for pario compare --verify; may be"
        " repeated",
        {**_REPEATED, "type": path_text, "metavar": "GLOB"},
    ),
    Option(
        ("--stage",),
        "new files in DIR are below LOCAL, on this node, until the command has ended; may be"
        " repeated (docs/move.md)",
        {**_REPEATED, "type": staged_path_text, "metavar": "DIR=LOCAL"},
    ),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``pario run`` to a parser."""
    for option in RUN_OPTIONS:
        parser.add_argument(*option.flags, help=option.help, **option.parsing)


def chosen_variables(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the library's variables that the given options set."""
    return {
        option.variable: option.value or value
        for option in RUN_OPTIONS
        if option.variable and (value := getattr(arguments, option.name))
    }
