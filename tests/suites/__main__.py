"""Suites of programs that others wrote, with the MPI's own MPI-IO or with pario's.

run prints a line per program, and a closing one per suite and MPI; with --resume, programs that have passed are not run
again. table prints what has become of all that were run.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from tests.mpi.conftest import MPIS
from tests.suites.results import KINDS, Results, closing_line, kind_of, table
from tests.suites.runs import SECONDS, Result, run
from tests.suites.sources import SUITES, Unavailable, source
from tests.suites.table import Suite, suites


def _mpi(name: str) -> str:
    """mpich5 and mpich-5 are the same."""
    return next((known for known in MPIS if known.replace("-", "") == name.replace("-", "")), name)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/suites.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the suites and their programs")
    commands.add_parser("fetch", help=f"fetch all sources into {SUITES}")
    runs = commands.add_parser("run", help="build and run a suite")
    runs.add_argument("suite", choices=[*suites(), "all"])
    runs.add_argument("programs", nargs="*", help="only these")
    runs.add_argument("--mpi", type=_mpi, choices=[*MPIS, "all"], default="mpich-5")
    runs.add_argument("--pario", type=Path, metavar="LIB", help="libpario.so: its MPI-IO instead of the MPI's own")
    runs.add_argument("--seconds", type=float, default=SECONDS, help="after which a program has failed")
    runs.add_argument("--resume", action="store_true", help="only what has not passed yet")
    commands.add_parser("table", help="what has become of all that were run, in Markdown")
    return parser.parse_args()


def run_suites(arguments: argparse.Namespace) -> int:
    chosen = suites().values() if arguments.suite == "all" else [suites()[arguments.suite]]
    failed = False
    for mpi in MPIS if arguments.mpi == "all" else [arguments.mpi]:
        for suite in (suite for suite in chosen if mpi in suite.mpis):
            results = run_suite(suite, mpi, arguments)
            failed = failed or any(result.verdict == "failed" for result in results)
            print(closing_line(suite, mpi, results), flush=True)
    return 1 if failed else 0


def run_suite(suite: Suite, mpi: str, arguments: argparse.Namespace) -> list[Result]:
    kept = Results(mpi, kind_of(arguments.pario))
    results = []
    for program in suite.programs:
        if arguments.programs and program.name not in arguments.programs:
            continue
        result = kept.of(program) if arguments.resume else None
        if not result or result.verdict != "passed":
            result = run(suite, program, MPIS[mpi], arguments.pario, arguments.seconds)
            kept.add(result)
            print(f"{suite.name:13} {mpi:10} {program!s:32} {result.verdict:8} {result.why}".rstrip(), flush=True)
        results.append(result)
    return results


def print_list() -> None:
    for suite in suites().values():
        print(f"{suite.name}: {', '.join(str(program) for program in suite.programs)}")


def print_tables() -> None:
    for kind in KINDS:
        print("\n".join(table(kind)), end="\n\n")


def fetch() -> int:
    status = 0
    for name in sorted({suite.source for suite in suites().values()}):
        try:
            print(source(name))
        except Unavailable as unavailable:
            print(f"{name}: {unavailable}", file=sys.stderr)
            status = 1
    return status


def main() -> int:
    arguments = parse()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that what runs is ended too
    commands = {"run": lambda: run_suites(arguments), "list": print_list, "table": print_tables, "fetch": fetch}
    return commands[arguments.command]() or 0


if __name__ == "__main__":
    sys.exit(main())
