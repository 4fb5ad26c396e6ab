"""Compares `pario tune` in eight trials with the best setting of a full sweep.

    python bench/tune.py --dir DIRECTORY | --ceph MEGABYTES [--runs 3] [--booked] [program ...]

The settings of the sweep, the original and the tuned settings are replayed in turn, for six
programs on one file system (a lab: docs/lab.md). Prints a table in Markdown, of medians. With
--booked, seconds are the busy time of the busiest target of the lab, which does not depend on
other work of the machine.

With --ceph, the file system is a CephFS of four OSDs on this machine (root) whose links carry so
many megabytes per second each. Its client caches at most 4 MiB of dirty data, so that programs
wait for the links. The file of wrong_stripes lies on one OSD there.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from measuring import make_parser  # noqa: E402
from places import slow_ceph  # noqa: E402
from recording import Recorder  # noqa: E402
from tests.diagnosis import corpus  # noqa: E402
from tests.diagnosis.corpus import Tracing  # noqa: E402

from pario.cli.tune import line  # noqa: E402
from pario.fix.stripe.layout import Part, Wanted, set_stripes  # noqa: E402
from pario.prove.lab.mount import reset, status  # noqa: E402
from pario.prove.replay import Script, perform, script_of  # noqa: E402
from pario.prove.replay.perform import Manner  # noqa: E402
from pario.prove.tune import tune  # noqa: E402
from pario.prove.tune.choice import Choice  # noqa: E402
from pario.prove.tune.search import Measure, measurement  # noqa: E402
from pario.see.tables import read  # noqa: E402
from pario.see.tables.model import Job  # noqa: E402

#: Writes a file of one stripe, the default of new files, where many would be faster.
WRONG_STRIPES = (
    "import os; out = os.open('wide.dat', os.O_CREAT | os.O_WRONLY); "
    "[os.write(out, bytes(1 << 20)) for _ in range(96)]; os.close(out)"
)
SIZES, COUNTS, STRIPES = ("64K", "1M", "4M", "16M", "64M"), ("2", "8"), ("1", "2", "4", "8")
SCALES = {
    "write_per_value": 0.001,
    "one_rank": 0.1,
    "hole_rmw": 0.02,
    "wrong_stripes": 1,
    "seek_storm": 0.001,
    "missing_collectives": 0.005,
}
#: Limits of the caches of Ceph's client.
CLIENT = (
    "client_oc_max_dirty = 4194304\nclient_oc_target_dirty = 2097152\nclient_oc_size = 16777216"
)
OSDS, ONE_OBJECT = 4, 256 << 20
#: Requests cost less and bytes more there than on the lab.
CEPH_SCALES = {
    "write_per_value": 0.01,
    "one_rank": 0.1,
    "hole_rmw": 0.06,
    "seek_storm": 0.03,
    "missing_collectives": 0.02,
}
HEADER = """\
| program | original, s | tuned, s | best of sweep, s | best / tuned | trials | settings |
|---|---|---|---|---|---|---|"""


def list_settings(name: str) -> Iterator[Choice]:
    """Returns all settings of the sweep of a program."""
    on = Choice.of("", ("run", "mpiio", "yes"))
    if name in ("missing_collectives", "hole_rmw"):
        yield on
        for sieving, kept in itertools.product(
            ("enable", "disable", "automatic"), ("0", "1M", "16M", "64M")
        ):
            yield on.with_(
                Choice.of(
                    "*.dat",
                    ("mpiio", "romio_ds_write", sieving),
                    ("mpiio", "pario_write_behind", kept),
                )
            )
        return
    if name == "wrong_stripes":
        for count, unit in itertools.product(STRIPES, ("1M", "4M")):
            yield Choice.of(
                "*.dat", ("striping", "striping_factor", count), ("striping", "striping_unit", unit)
            )
    if name == "seek_storm":
        yield from (Choice.of("*.records", ("streams", "whole", size)) for size in ("16M", "256M"))
        yield from (
            Choice.of("*.records", ("streams", "size", size), ("streams", "prefetch", "2"))
            for size in SIZES[:4]
        )
        return
    for size, count in itertools.product(SIZES, COUNTS):
        yield Choice.of("*.dat", ("streams", "size", size), ("streams", "count", count))


def trace_program(name: str, built: Path, place: Path, log: Path, scale: float) -> Job:
    """Runs a program under pario, and reads its log."""
    library = corpus.library()
    assert library is not None
    if name == "wrong_stripes":
        traced = [sys.executable, "-m", "pario", "run", "--no-report", "-o", str(log)]
        command = [*traced, "--", sys.executable, "-c", WRONG_STRIPES]
        subprocess.run(command, cwd=place, check=True)
        return read([log])
    (program,) = corpus.select([name])
    corpus.prepare(program, built, place, scale)
    corpus.run(program, built, place, scale=scale, tracing=Tracing(library, log))
    return read([log])


def measure_busy_time(script: Script, lab: Path, mpiexec: tuple[str, ...]) -> Measure:
    """Returns a measure of the lab's busiest target, without the files made beforehand."""

    def replay(script: Script, choice: Choice) -> float:
        reset(lab)
        perform(script, lab, Manner(settings=choice.settings(), mpiexec=mpiexec))
        return max(int(target["busy_ns"]) for target in status(lab)["targets"]) / 1e9

    before = replay(replace(script, seats=[seat[:0] for seat in script.seats]), Choice())
    return lambda choice: replay(script, choice) - before


def measure_choices(
    case: dict[str, Any],
    choices: dict[str, Choice],
    measure: Measure,
    runs: int,
    recorder: Recorder,
) -> dict[str, float]:
    """Measures settings in turn; returns medians of seconds."""
    seconds: dict[str, list[float]] = {way: [] for way in choices}
    for number in range(1, runs + 1):
        for way, choice in choices.items():
            seconds[way].append(measure(choice))
            settings = re.sub(r"\S*/", "", choice.text())  # without a temporary directory
            recorder.add(**case, way=way, round=number, seconds=seconds[way][-1], settings=settings)
    return {way: statistics.median(times) for way, times in seconds.items()}


def compare_settings(
    name: str, built: Path, place: Path, arguments: argparse.Namespace, recorder: Recorder
) -> str:
    """Tunes a program and sweeps its settings; returns its row."""
    scale = (CEPH_SCALES if arguments.ceph else {}).get(name, SCALES[name])
    with tempfile.TemporaryDirectory(dir=place) as work, tempfile.TemporaryDirectory() as log:
        job = trace_program(name, built, Path(work), Path(log), scale)
    script = script_of(job)
    mpiexec = (str(corpus.mpiexec()),) if script.ranks else ()
    if arguments.booked:
        measure = measure_busy_time(script, place, mpiexec)
    else:
        measure = measurement(script, place, mpiexec, pauses=False)
    found = tune(job, place, measure, 8, lambda trial: print_progress(line(trial)))
    swept = {choice.text(): choice for choice in list_settings(name)}
    on = f"ceph, {arguments.ceph} MB/s" if arguments.ceph else "directory"
    case = {"program": name, "scale": scale, "place": on, "booked": arguments.booked}
    medians = measure_choices(
        case,
        {"original": Choice(), "tuned": found.choice, **swept},
        measure,
        arguments.runs,
        recorder,
    )
    best = min(swept, key=medians.__getitem__)
    print_progress(f"best of the sweep: {best}")
    times = [medians[way] for way in ("original", "tuned", best)]
    cells = [name, *(f"{seconds:.2f}" for seconds in times), f"{times[2] / times[1]:.2f}"]
    settings = found.choice.text() or f"none ({found.why})"
    return f"| {' | '.join([*cells, str(len(found.trials)), settings])} |"


def print_progress(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def make_place(name: str, point: Path, on_ceph: bool) -> Path:
    """Returns a directory for a program.

    A CephFS spreads files over all OSDs by default; wrong_stripes gets a directory on one OSD.
    """
    place = point / name if on_ceph else point
    place.mkdir(exist_ok=True)
    if on_ceph and name == "wrong_stripes":
        one = Wanted((Part(unit=ONE_OBJECT, count=1),), object_size=ONE_OBJECT)
        set_stripes(place, one)
    return place


def main() -> None:
    parser = make_parser(__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--dir", type=Path)
    where.add_argument("--ceph", type=int, metavar="MEGABYTES")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--booked", action="store_true")
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    launcher = corpus.mpiexec()
    with (
        Recorder(
            "tune",
            arguments,
            directories=[arguments.dir] if arguments.dir else [],
            launchers=[launcher] if launcher else [],
        ) as recorder,
        ExitStack() as stack,
    ):
        built = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        point = arguments.dir
        if arguments.ceph:
            ceph = slow_ceph(OSDS, arguments.ceph, options=CLIENT)
            point = stack.enter_context(ceph)[0]
        chosen = arguments.programs or list(SCALES)
        corpus.build(built, *(name for name in chosen if name != "wrong_stripes"))
        print(HEADER, flush=True)
        for name in chosen:
            place = make_place(name, point, bool(arguments.ceph))
            print(compare_settings(name, built, place, arguments, recorder), flush=True)
        print(f"\nload average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
