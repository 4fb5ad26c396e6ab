"""What ``pario tune`` finds in eight trials against the best of a full sweep, for six programs on one file system (a lab: docs/lab.md).

Each setting of the sweep, the original and what was found are replayed in turn; medians. Prints a table in Markdown. With --booked, seconds
are those for which the busiest target of the lab was occupied: they do not depend on what else the machine does.

With --ceph, it is a CephFS of four OSDs on this machine (root) whose links carry so many megabytes per second each. Its client holds back
4 MiB of what is written at most, so that it is the links that programs wait for. The file of wrong_stripes lies on one OSD there.

    python bench/tune.py --dir DIRECTORY | --ceph MEGABYTES [--runs 3] [--booked] [program ...]
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from places import slow_ceph  # noqa: E402
from tests.badio import programs  # noqa: E402
from tests.badio.programs import Tracing  # noqa: E402

from pario.cli.tune import line  # noqa: E402
from pario.lab.mount import reset, status  # noqa: E402
from pario.replay import Script, perform, script_of  # noqa: E402
from pario.replay.perform import Manner  # noqa: E402
from pario.stripe.layout import Part, Wanted, set_stripes  # noqa: E402
from pario.tables import read  # noqa: E402
from pario.tables.model import Job  # noqa: E402
from pario.tune import tune  # noqa: E402
from pario.tune.choice import Choice  # noqa: E402
from pario.tune.search import Measure, measurement  # noqa: E402

#: One stripe, as new files have by default, where many would be faster.
WRONG_STRIPES = "import os; out = os.open('wide.dat', os.O_CREAT | os.O_WRONLY); [os.write(out, bytes(1 << 20)) for _ in range(96)]; os.close(out)"
SIZES, COUNTS, STRIPES = ("64K", "1M", "4M", "16M", "64M"), ("2", "8"), ("1", "2", "4", "8")
SCALES = {
    "write_per_value": 0.001,
    "one_rank": 0.1,
    "hole_rmw": 0.02,
    "wrong_stripes": 1,
    "seek_storm": 0.001,
    "missing_collectives": 0.005,
}
#: Of Ceph's client: what it holds back and keeps.
CLIENT = (
    "client_oc_max_dirty = 4194304\nclient_oc_target_dirty = 2097152\nclient_oc_size = 16777216"
)
OSDS, ONE_OBJECT = 4, 256 << 20
#: Where requests cost less and bytes more than on the lab.
CEPH_SCALES = {
    "write_per_value": 0.01,
    "one_rank": 0.1,
    "hole_rmw": 0.06,
    "seek_storm": 0.03,
    "missing_collectives": 0.02,
}
HEADER = "| program | original, s | tuned, s | best of sweep, s | best / tuned | trials | settings |\n|---|---|---|---|---|---|---|"


def sweep(name: str) -> Iterator[Choice]:
    """All settings of a program's knobs."""
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


def recorded(name: str, built: Path, place: Path, log: Path, scale: float) -> Job:
    library = programs.library()
    assert library is not None
    if name == "wrong_stripes":
        words = [
            sys.executable,
            "-m",
            "pario",
            "run",
            "--no-report",
            "-o",
            str(log),
            "--",
            sys.executable,
            "-c",
            WRONG_STRIPES,
        ]
        subprocess.run(words, cwd=place, check=True)
        return read([log])
    (program,) = (program for program in programs.table() if program.name == name)
    programs.prepare(program, built, place, scale)
    programs.run(program, built, place, scale=scale, tracing=Tracing(library, log))
    return read([log])


def busiest(script: Script, lab: Path, mpiexec: tuple[str, ...]) -> Measure:
    """Measures by the seconds that the lab has booked, less those of the files that are made beforehand."""

    def booked(script: Script, choice: Choice) -> float:
        reset(lab)
        perform(script, lab, Manner(settings=choice.settings(), mpiexec=mpiexec))
        return max(int(target["busy_ns"]) for target in status(lab)["targets"]) / 1e9

    before = booked(replace(script, seats=[seat[:0] for seat in script.seats]), Choice())
    return lambda choice: booked(script, choice) - before


def compare(name: str, built: Path, place: Path, arguments: argparse.Namespace) -> str:
    """A row of the table."""
    with tempfile.TemporaryDirectory(dir=place) as work, tempfile.TemporaryDirectory() as log:
        scale = (CEPH_SCALES if arguments.ceph else {}).get(name, SCALES[name])
        job = recorded(name, built, Path(work), Path(log), scale)
    script = script_of(job)
    mpiexec = (str(programs.mpiexec()),) if script.ranks else ()
    measure = (
        busiest(script, place, mpiexec)
        if arguments.booked
        else measurement(script, place, mpiexec, pauses=False)
    )
    found = tune(
        job, place, measure, 8, lambda trial: print(f"  {line(trial)}", file=sys.stderr, flush=True)
    )
    tried = [Choice(), found.choice, *sweep(name)]
    rounds = [[measure(choice) for choice in tried] for _ in range(arguments.runs)]
    original, tuned, *rest = (statistics.median(times) for times in zip(*rounds, strict=True))
    best = min(range(len(rest)), key=rest.__getitem__)
    print(f"  best of the sweep: {tried[2 + best].text()}", file=sys.stderr, flush=True)
    text = found.choice.text() or f"none ({found.why})"
    return f"| {name} | {original:.2f} | {tuned:.2f} | {rest[best]:.2f} | {rest[best] / tuned:.2f} | {len(found.trials)} | {text} |"


def place_for(name: str, point: Path, on_ceph: bool) -> Path:
    """A directory for a program: on a CephFS, where files are spread over all OSDs unless told, one for wrong stripes."""
    place = point / name if on_ceph else point
    place.mkdir(exist_ok=True)
    if on_ceph and name == "wrong_stripes":
        set_stripes(place, Wanted((Part(unit=ONE_OBJECT, count=1),), object_size=ONE_OBJECT))
    return place


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--dir", type=Path)
    where.add_argument("--ceph", type=int, metavar="MEGABYTES")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--booked", action="store_true")
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        built = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        point = (
            stack.enter_context(slow_ceph(OSDS, arguments.ceph, options=CLIENT))[0]
            if arguments.ceph
            else arguments.dir
        )
        programs.build(built)
        print(HEADER, flush=True)
        for name in arguments.programs or SCALES:
            print(
                compare(name, built, place_for(name, point, bool(arguments.ceph)), arguments),
                flush=True,
            )
        print(f"\nload average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
