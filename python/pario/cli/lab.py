"""Mount a striped file system of pario (FUSE) with chosen bandwidth and latency, to try stripes and
programs: files lie on several targets; stripes are set as on Lustre or Ceph.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pario import wording
from pario.cli.arguments import add_action, add_flag, add_value
from pario.cli.numbers import between
from pario.cli.paths import path
from pario.errors import name_errors
from pario.messages import print_json, print_line, print_lines, print_note

if TYPE_CHECKING:
    from pario.see.report.table import Column

_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Subcommands and options of ``pario lab``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    start = _action(actions, "up", "mount a lab")
    add = start.add_argument
    add(
        "--targets",
        type=between(1, 256),
        default=8,
        metavar="N",
        help="targets that files are striped over (default 8)",
    )
    add(
        "--rate",
        type=_rate,
        default=50 << 20,
        metavar="SIZE",
        help="bytes per second of each target (default 50M; 0: no limit)",
    )
    add_value(start, "--latency", _duration, "TIME", "of each request (default 1ms)", 1_000_000)
    add(
        "--metadata",
        type=_duration,
        default=0,
        metavar="TIME",
        help="of each request about names, such as an open (default 0)",
    )
    add(
        "--lock-handover",
        type=_duration,
        default=2_000_000,
        metavar="TIME",
        help="when an object changes its writer (default 2ms)",
    )
    add_value(
        start, "--link", _rate, "SIZE", "bytes per second of each client (default 0: no limit)", 0
    )
    add(
        "--in-flight",
        type=between(0, 1024),
        default=8,
        metavar="N",
        help="writes per client and target that are not waited for (default 8)",
    )
    add(
        "--client",
        choices=("host", "process"),
        default="host",
        help="owner of locks: a host (network name space; default), or a process",
    )
    add(
        "--kind",
        choices=("lustre", "ceph"),
        default="lustre",
        help="file system whose attributes it accepts (default lustre)",
    )
    add_flag(start, "--cache", "let the kernel cache and read ahead; needed for shared mmap")
    add(
        "--backing",
        type=path,
        metavar="DIR",
        help="directory of its files (default: a new one beside it, removed by down)",
    )
    state = _action(actions, "status", "print the requests to each target")
    add_flag(state, "--json", "print JSON")
    add_flag(state, "--reset", "count from zero, afterwards")
    end = _action(actions, "down", "unmount a lab and delete its files, unless --backing was given")
    add_flag(end, "--force", "also if programs still use it")


def _action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser = add_action(actions, name, text)
    parser.add_argument(
        "directory",
        nargs="?",
        type=path,
        default=Path("lab"),
        metavar="DIR",
        help="where it is mounted (default: lab)",
    )
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Runs the subcommand."""
    return {"up": _up, "status": _status, "down": _down}[arguments.action](arguments)


def _rate(text: str) -> int:
    from pario.fix.stripe.commands import size_of

    try:
        return size_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text}; expected bytes per second, such as 50M, or 0"
        ) from error


def _duration(text: str) -> int:
    """Converts a duration such as 0.5ms to nanoseconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s)|0", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text}; expected a time such as 0.5ms, 100us, 1s, or 0")
    return round(float(found[1]) * _UNITS[found[2]]) if found[1] else 0


def _up(arguments: argparse.Namespace) -> int:
    from pario.prove.lab.mount import Model, up

    model = Model(
        targets=arguments.targets,
        rate=arguments.rate,
        latency=arguments.latency,
        metadata=arguments.metadata,
        lock_handover=arguments.lock_handover,
        link=arguments.link,
        in_flight=arguments.in_flight,
        ceph=arguments.kind == "ceph",
        process=arguments.client == "process",
        cache=arguments.cache,
    )
    outcome = up(arguments.directory, model, arguments.backing)
    for note in outcome.notes:
        print_note(f"pario lab: {note}")
    speed = f"{wording.block(model.rate)}/s" if model.rate else "unlimited speed"
    print_line(
        f"{outcome.point}: {wording.plural(model.targets, 'target')} of {speed}, files in"
        f" {outcome.backing}"
    )
    return 0


def _down(arguments: argparse.Namespace) -> int:
    from pario.prove.lab.mount import down

    with name_errors(arguments.directory):
        down(arguments.directory, arguments.force)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    from pario.prove.lab.mount import reset, status

    facts = status(arguments.directory)
    if arguments.reset:
        reset(arguments.directory)
    if arguments.json:
        print_json(facts)
    else:
        print_lines(_page(arguments.directory, facts))
    return 0


def _page(point: Path, facts: dict[str, Any]) -> Iterator[str]:
    from pario.see.report.table import SECONDS, Column
    from pario.see.report.text_table import align_columns, terminal_width

    limits = [
        f"{wording.block(facts[name])}/s {whose}"
        for name, whose in (("rate", "a target"), ("link", "a client"))
        if facts[name]
    ]
    times = [
        f"{words} {wording.seconds(facts[name] / 1e9)}"
        for name, words in (("latency_ns", "latency"), ("lock_handover_ns", "hand-over"))
    ]
    if facts["metadata_ns"]:
        times.append(f"metadata {wording.seconds(facts['metadata_ns'] / 1e9)}")
    cache = ["pages are cached"] if facts["cache"] else []
    clients = "processes" if facts["client"] == "process" else "hosts"
    yield f"{point}: {facts['kind']}, {', '.join([*limits, *times, *cache])}; clients are {clients}"
    kinds = ", ".join(f"{name} {wording.count(n)}" for name, n in facts["metadata"].items())
    yield f"metadata requests: {kinds}"
    rows: list[tuple[str, dict[str, int]]] = [
        (str(number), row) for number, row in enumerate(facts["targets"])
    ]
    if len(rows) > 1:
        rows.append(("all", {name: sum(row[name] for _, row in rows) for name in rows[0][1]}))
    columns: list[Column[tuple[str, dict[str, int]]]] = [
        Column("target", lambda row: row[0]),
        *map(_counter, ("writes", "bytes written", "reads", "bytes read", "others", "hand-overs")),
        Column("busy", lambda row: row[1]["busy_ns"] / 1e9, SECONDS, zeros=True),
    ]
    yield from (line.plain for line in align_columns(columns, rows, terminal_width()))


def _counter(title: str) -> Column[tuple[str, dict[str, int]]]:
    from pario.see.report.table import COUNT, Column

    name = title.replace(" ", "_").replace("-", "_")
    return Column(title, lambda row: row[1][name], COUNT, zeros=True)
