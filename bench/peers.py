"""Peers that judge the labelled corpus in `bench/diagnosis.py`, with the table peers.toml.

Drishti reads Darshan logs: it needs `drishti` (PyPI: drishti-io) and a Darshan runtime, built from
its sources with the MPI of this Python (`configure --disable-darshan-util --with-jobid-env=NONE
--with-log-path-by-env=DARSHAN_LOG_DIR CC=mpicc`). It does not rank its messages or promise seconds:
a diagnosis is right if any message names the problem, and no run is compared in seconds.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.diagnosis.corpus import Program
from tests.diagnosis.judging import Diagnosis

HERE = Path(__file__).parent
#: Logs of one run that are read, the largest first.
MOST_LOGS = 4
#: Other diagnosing tools, for which this benchmark has no adapter yet.
WITHOUT_ADAPTER = ("WisIO", "dftracer's analyzer")


@dataclass(frozen=True)
class Drishti:
    """Drishti on Darshan logs."""

    command: Path
    runtime: Path  # libdarshan.so
    rules: Mapping[str, list[str]]
    name: str = "drishti"

    def variables(self, folder: Path, program: Program) -> Mapping[str, str]:
        """Returns the variables that let Darshan write a log for each process into a folder."""
        serial = {} if program.ranks else {"DARSHAN_ENABLE_NONMPI": "1"}
        return {"LD_PRELOAD": str(self.runtime), "DARSHAN_LOG_DIR": str(folder), **serial}

    def diagnose(self, folder: Path, seconds: float) -> Diagnosis:
        """Returns the messages about the largest logs below a folder."""
        logs = sorted(folder.glob("*.darshan"), key=lambda path: -path.stat().st_size)
        codes = {code for log in logs[:MOST_LOGS] for code in self._read_codes(log)}
        rules = tuple(rule for code in sorted(codes) for rule in self.rules.get(code, ()))
        return Diagnosis(
            rules=rules,
            seconds=(0.0,) * len(rules),
            wall=seconds,
            healthy=bool(logs) and not rules,
            sentence=", ".join(sorted(codes)) if logs else "no Darshan log",
            ranked=False,
        )

    def _read_codes(self, log: Path) -> list[str]:
        subprocess.run(
            [self.command, "--csv", "--issues", log],
            cwd=log.parent,
            capture_output=True,
            check=False,
        )
        table = log.parent / f"{log.stem}.csv"
        if not table.exists():
            return []
        with table.open(newline="") as file:
            row = next(csv.DictReader(file))
        return [code for code, state in row.items() if state == "True"]


Peer = Drishti


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the peers."""
    group = parser.add_argument_group("peers")
    group.add_argument("--drishti", type=Path, metavar="COMMAND", help="Drishti's command")
    group.add_argument("--darshan", type=Path, metavar="LIBRARY", help="libdarshan.so")


def find(options: argparse.Namespace) -> Iterator[Peer]:
    """Returns the chosen peers; names the others."""
    rules = tomllib.loads((HERE / "peers.toml").read_text())
    if options.drishti and options.darshan:
        yield Drishti(options.drishti.resolve(), options.darshan.resolve(), rules["drishti"])
    else:
        print("skipped Drishti: it needs --drishti and --darshan", file=sys.stderr)
    for name in WITHOUT_ADAPTER:
        print(f"skipped {name}: this benchmark has no adapter for it", file=sys.stderr)
