"""Peers that judge the labelled corpus in `bench/diagnosis.py`, with the table peers.toml.

They do not promise seconds, and the order of their messages means nothing here: a diagnosis is
right if any message names the problem, and no run is compared in seconds. A peer that fails on a
program makes no statement about it, and the reason is printed.

Drishti reads Darshan logs: it needs `drishti` (PyPI: drishti-io) and a Darshan runtime, built from
its sources with the MPI of this Python (`configure --disable-darshan-util --with-jobid-env=NONE
--with-log-path-by-env=DARSHAN_LOG_DIR CC=mpicc`).

dftracer's analyzer and WisIO read traces of dftracer, which the environment of each contains. The
analyzer prints tables of times; it makes statements only as "facts", by rules for the layers of the
benchmark DLIO. Its own rules about POSIX calls are applied here to all POSIX and stdio calls of
each process (`adapt_rules`).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from tests.diagnosis.corpus import Program
from tests.diagnosis.judging import Diagnosis

HERE = Path(__file__).parent
#: Logs of one run that are read, the largest first.
MOST_LOGS = 4
#: Seconds that an analysis of one run may take, and its attempts: the library that reads traces for
#: WisIO sometimes waits forever.
LIMIT = 300.0
ATTEMPTS = 3
#: A message of WisIO's page: its rule, and the operation for messages about metadata.
_WISIO_MESSAGE = re.compile(r"─ \[([A-Z][a-z][^\]]*)\](?:.*on the '(\w+)' operation)?")
_PRELOAD = "lib/python*/site-packages/dftracer/lib*/libdftracer_preload.so"
_FACT_RULES = "lib/python*/site-packages/dftracer/analyzer/configs/fact_rules/dlio.yaml"
#: Both analyzers start a cluster of Dask; one worker in their own process serves a small trace.
_CLUSTER = ("cluster.n_workers=1", "cluster.processes=false")


class Peer(Protocol):
    """A tool that records a run by variables, and makes statements about the record."""

    @property
    def name(self) -> str:
        """The name in the table."""

    def variables(self, folder: Path, program: Program) -> Mapping[str, str]:
        """Returns the variables that let a program be recorded into an empty folder."""

    def diagnose(self, folder: Path, seconds: float) -> Diagnosis:
        """Returns the statements about the recorded run, which took ``seconds``."""


def give_no_statement(name: str, reason: str, seconds: float) -> Diagnosis:
    """Returns the diagnosis of a peer that failed, and prints the reason."""
    print(f"no statement of {name}: {reason}", file=sys.stderr)
    return Diagnosis((), (), seconds, healthy=False, sentence=reason, ranked=False)


def translate(codes: Iterable[str], rules: Mapping[str, list[str]], seconds: float) -> Diagnosis:
    """Returns the rules of pario that a peer's messages stand for; healthy if there is none."""
    found = sorted(set(codes))
    names = tuple(dict.fromkeys(rule for code in found for rule in rules.get(code, ())))
    return Diagnosis(
        rules=names,
        seconds=(0.0,) * len(names),
        wall=seconds,
        healthy=not names,
        sentence=", ".join(found),
        ranked=False,
    )


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
        if not logs:
            return give_no_statement(self.name, "no Darshan log", seconds)
        tables = [table for log in logs[:MOST_LOGS] if (table := self._make_table(log))]
        if not tables:
            return give_no_statement(self.name, "no log could be read", seconds)
        codes = [code for table in tables for code in read_drishti(table)]
        return translate(codes, self.rules, seconds)

    def _make_table(self, log: Path) -> Path | None:
        _run([self.command, "--csv", "--issues", log], log.parent)
        table = log.parent / f"{log.stem}.csv"
        return table if table.exists() else None


def read_drishti(table: Path) -> list[str]:
    """Returns the codes of the messages in a CSV file of Drishti."""
    with table.open(newline="") as file:
        row = next(csv.DictReader(file))
    return [code for code, state in row.items() if state == "True"]


class NoStatementError(Exception):
    """The reason why a peer makes no statement about a run."""


@dataclass(frozen=True)
class TraceReader:
    """An analyzer of traces of dftracer, in a virtual environment that contains both."""

    environment: Path
    rules: Mapping[str, list[str]]
    name: ClassVar[str]
    compressed: ClassVar[bool]

    def variables(self, folder: Path, program: Program) -> Mapping[str, str]:
        """Returns the variables that let dftracer write a trace of each process into a folder."""
        del program
        return trace_variables(self.environment, folder, compressed=self.compressed)

    def diagnose(self, folder: Path, seconds: float) -> Diagnosis:
        """Returns the statements about the traces in a folder."""
        if reason := _analyze_traces(self.command(folder), folder):
            return give_no_statement(self.name, reason, seconds)
        try:
            codes = self.read(folder)
        except NoStatementError as reason:
            return give_no_statement(self.name, str(reason), seconds)
        return translate(codes, self.rules, seconds)

    def command(self, folder: Path) -> Sequence[object]:
        """Returns the command that analyzes the traces in a folder."""
        raise NotImplementedError

    def read(self, folder: Path) -> list[str]:
        """Returns the codes of the analyzer's messages. Raises NoStatementError."""
        raise NotImplementedError


class Dftracer(TraceReader):
    """dftracer's analyzer on traces of dftracer."""

    name = "dftracer"
    compressed = True

    def command(self, folder: Path) -> Sequence[object]:
        """Returns the analyzer's command, for the facts in a folder of answers."""
        rules = folder / "rules.yaml"
        rules.write_text(adapt_rules(_find(self.environment, _FACT_RULES).read_text()))
        words = ["facts.enabled=true", f"facts.eval_rule_file={rules}", "view_types=[proc_name]"]
        words += ["output=file", f"output.path={folder / 'answer'}"]
        return [self.environment / "bin/dfanalyzer", *words]

    def read(self, folder: Path) -> list[str]:
        """Returns the kinds of the facts."""
        totals = folder / "answer" / "raw_stats.json"
        if not totals.exists() or not int(json.loads(totals.read_text())["total_event_count"]):
            raise NoStatementError("dfanalyzer saw no call")
        facts = folder / "answer" / "facts.jsonl"
        return read_facts(facts.read_text()) if facts.exists() else []


def adapt_rules(text: str) -> str:
    """Returns the analyzer's rules for POSIX calls of DLIO's reader, for all calls of a process.

    The thresholds stay, with one exception: "small" is a mean below 1 MiB of a call, as in WisIO,
    where the rules come from, not of all bytes of a process. Rules about other layers find no
    column and are skipped by the analyzer.
    """
    text = text.replace("reader_posix", "posix").replace(
        "source_view: epoch", "source_view: proc_name"
    )
    return re.sub(r"posix_(read|write)_size_proc_mean", r"posix_\1_size_call_mean", text)


def read_facts(text: str) -> list[str]:
    """Returns the kinds of the facts in a file facts.jsonl."""
    envelopes = [json.loads(line) for line in text.splitlines()]
    return [fact["fact_type"] for envelope in envelopes for fact in envelope["facts"]]


class WisIO(TraceReader):
    """WisIO on traces of dftracer."""

    name = "wisio"
    compressed = False

    def command(self, folder: Path) -> Sequence[object]:
        """Returns WisIO's command."""
        del folder
        return [self.environment / "bin/wisio", "+analyzer=dftracer", "percentile=0.9"]

    def read(self, folder: Path) -> list[str]:
        """Returns the rules of the reasons of bottlenecks on WisIO's page."""
        return read_wisio((folder / "output.txt").read_text())


def read_wisio(page: str) -> list[str]:
    """Returns the rules of the messages on a page of WisIO; "rule: operation" for metadata."""
    return [
        f"{rule}: {operation}" if operation else rule
        for rule, operation in _WISIO_MESSAGE.findall(page)
    ]


def trace_variables(environment: Path, folder: Path, *, compressed: bool) -> dict[str, str]:
    """Returns the variables that let dftracer write a trace of each process into a folder.

    The analyzer of dftracer sees no call in traces that are not compressed, and WisIO waits forever
    more often for those that are.
    """
    return {
        "LD_PRELOAD": str(_find(environment, _PRELOAD)),
        "DFTRACER_ENABLE": "1",
        "DFTRACER_INIT": "PRELOAD",
        "DFTRACER_LOG_FILE": str(folder / "trace"),
        "DFTRACER_DATA_DIR": "all",
        "DFTRACER_INC_METADATA": "1",
        "DFTRACER_TRACE_COMPRESSION": str(int(compressed)),
    }


def _find(environment: Path, pattern: str) -> Path:
    """Returns the file of a virtual environment. Raises FileNotFoundError if there is none."""
    if found := sorted(environment.glob(pattern)):
        return found[0]
    raise FileNotFoundError(environment / pattern)


def _analyze_traces(command: Sequence[object], folder: Path) -> str:
    """Runs an analyzer on the traces in a folder; returns the reason of a failure, else ""."""
    if not any(folder.glob("*.pfw*")):
        return "no trace of dftracer"
    places = [f"hydra.run.dir={folder}/run", f"cluster.local_directory={folder}/dask"]
    return _run([*command, f"trace_path={folder}", *_CLUSTER, *places], folder, ATTEMPTS)


def _run(command: Sequence[object], folder: Path, attempts: int = 1) -> str:
    """Runs a peer, whose page becomes output.txt; returns the reason of a failure, else "".

    A peer that does not end within the limit is ended, and started again ``attempts`` - 1 times.
    """
    # Wide lines keep each message on one line; dfanalyzer needs USER.
    variables = {"USER": "user", "DFTRACER_UTILS_THREADS": "1", **os.environ, "COLUMNS": "1000"}
    name = Path(str(command[0])).name
    page = folder / "output.txt"
    for _ in range(attempts):
        with page.open("w") as output, suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                [str(word) for word in command],
                cwd=folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=LIMIT,
                check=False,
            )
            break
    else:
        return f"{name} did not end within {LIMIT:g} s, {attempts} times"
    lines = page.read_text(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"{name} ended with status {done.returncode}: {last}" if done.returncode else ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the peers."""
    group = parser.add_argument_group("peers")
    group.add_argument("--drishti", type=Path, metavar="COMMAND", help="Drishti's command")
    group.add_argument("--darshan", type=Path, metavar="LIBRARY", help="libdarshan.so")
    for name, packages in (
        ("dftracer", "dftracer and dftracer-analyzer"),
        ("wisio", "dftracer and wisio[dftracer]"),
    ):
        text = f"virtual environment with {packages}"
        group.add_argument(f"--{name}", type=Path, metavar="VENV", help=text)


def find(options: argparse.Namespace) -> Iterator[Peer]:
    """Returns the chosen peers; names the others with the reason."""
    rules = tomllib.loads((HERE / "peers.toml").read_text())
    if options.drishti and options.darshan:
        yield Drishti(options.drishti.resolve(), options.darshan.resolve(), rules["drishti"])
    else:
        print("skipped Drishti: it needs --drishti and --darshan", file=sys.stderr)
    if reason := find_missing(options.dftracer, "--dftracer", "bin/dfanalyzer", _FACT_RULES):
        print(f"skipped dftracer's analyzer: {reason}", file=sys.stderr)
    else:
        yield Dftracer(options.dftracer.absolute(), rules["dftracer"])
    if reason := find_missing(options.wisio, "--wisio", "bin/wisio"):
        print(f"skipped WisIO: {reason}", file=sys.stderr)
    else:
        yield WisIO(options.wisio.absolute(), rules["wisio"])


def find_missing(environment: Path | None, option: str, *files: str) -> str:
    """Returns the reason why a peer on traces of dftracer cannot run; empty if it can."""
    if environment is None:
        return f"it needs {option}"
    for pattern in (_PRELOAD, *files):
        if not any(environment.glob(pattern)):
            return f"{environment} has no {pattern}"
    return ""
