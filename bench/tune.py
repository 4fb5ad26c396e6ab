"""Compares `pario tune` in five replays with the best setting of an exhaustive sweep.

    python bench/tune.py --lab | --ceph MEGABYTES | --dir DIRECTORY [--booked] [program ...]

Ten programs (bench/held_out.py), on which no rule was developed, are recorded on the file system.
`pario tune` replays each five times in all and never runs it again. The sweep replays each
combination of settings once; then the run as it is, the tuned settings and the three best of the
sweep take turns in --runs rounds, and medians count. Prints a table in Markdown.

--lab creates a lab (docs/lab.md) for the measurement. With --booked, seconds are the busy time of
its busiest target, which follows from counts of requests and does not depend on other work of the
machine. --ceph creates a CephFS of four OSDs (root) whose links carry so many megabytes per second
each; its client caches at most 4 MiB of dirty data, so that programs wait for the links.

Programs with rows in today's file of results are skipped, so that an interrupted measurement
continues; programs that are named are measured again.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

import numpy as np  # noqa: E402
from held_out import INPUTS, PROGRAMS, RANKS  # noqa: E402
from measuring import make_parser  # noqa: E402
from places import mounted_lab, slow_ceph  # noqa: E402
from recording import Recorder  # noqa: E402

from pario.prove.lab.mount import Model, reset, status  # noqa: E402
from pario.prove.replay import Script, perform  # noqa: E402
from pario.prove.replay.limits import Limits  # noqa: E402
from pario.prove.replay.perform import Manner  # noqa: E402
from pario.prove.replay.script import NOT_OF_FILES  # noqa: E402
from pario.prove.tune.choice import MPIIO_ON, Choice  # noqa: E402
from pario.prove.tune.remedies import plan_tuning  # noqa: E402
from pario.prove.tune.trials import Measurement, Plan, Play, measure, player  # noqa: E402
from pario.see.analyze import analyze  # noqa: E402
from pario.see.tables import read  # noqa: E402
from pario.see.tables.model import Job  # noqa: E402

REPLAYS, FINALISTS = 5, 3
#: Limits of the caches of Ceph's client.
CLIENT = (
    "client_oc_max_dirty = 4194304\nclient_oc_target_dirty = 2097152\nclient_oc_size = 16777216"
)
OSDS = 4
#: The work of the programs: small requests cost less on the CephFS than on the lab.
CEPH_SCALE = 4
PROGRAM = Path(__file__).with_name("held_out.py")
LAUNCHER = Path(sys.executable).with_name("mpiexec")
HEADER = """\
| program | original, s | tuned, s | best of sweep, s | best / tuned | replays | tuning, s | \
gain per minute | settings |
|---|---|---|---|---|---|---|---|---|"""

#: A factor of a sweep: each option is set for some files, beside no setting.
Factor = list[Choice]


def streams(match: str, sizes: Sequence[str], **more: Sequence[str]) -> Factor:
    """Returns the options with buffers of these sizes, and each combination of more keys."""
    return [
        Choice.of(match, ("streams", "size", size), *(("streams", key, value) for key, value in of))
        for size in sizes
        for of in itertools.product(*([(key, value) for value in more[key]] for key in more))
    ]


def mpiio(match: str, **keys: Sequence[str]) -> Factor:
    """Returns the options with pario's MPI-IO, and each combination of hints."""
    return [
        MPIIO_ON.with_(Choice.of(match, *(("mpiio", key, value) for key, value in of)))
        for of in itertools.product(*([(key, value) for value in keys[key]] for key in keys))
    ]


SIZES = ("64K", "1M", "4M", "16M", "64M")


def writes(match: str) -> Factor:
    return streams(match, SIZES, count=("2", "8"))


def reads(match: str) -> Factor:
    whole = [Choice.of(match, ("streams", "whole", size)) for size in ("16M", "256M")]
    return whole + streams(match, SIZES[:4], prefetch=("2",))


def stripes(match: str) -> Factor:
    pairs = (("2", "1M"), ("8", "1M"), ("8", "4M"))
    return [
        Choice.of(
            match, ("striping", "striping_factor", count), ("striping", "striping_unit", unit)
        )
        for count, unit in pairs
    ]


def independent(match: str) -> Factor:
    kept = ("0", "1M", "16M", "64M")
    return mpiio(match, romio_ds_write=("enable", "disable", "automatic"), pario_write_behind=kept)


def collective(match: str) -> Factor:
    return mpiio(
        match,
        romio_cb_write=("enable", "disable"),
        cb_buffer_size=("4M", "16M", "64M"),
        pario_merge_collectives=("0", "64M"),
    )


STDIO = [
    Choice.of("*.txt", ("stdio", "mode", "full"), ("stdio", "size", size))
    for size in ("64K", "1M", "8M")
]
SPACES: dict[str, list[Factor]] = {
    "particles": [writes("*.dat"), stripes("*.dat")],
    "volume": [writes("*.raw"), stripes("*.raw")],
    "frames": [writes("*.rgb"), stripes("*.rgb")],
    "scan": [reads("*.bin")],
    "lookup": [reads("*.bin")],
    "restart": [
        reads("*state.bin")[1:4],
        streams("*new.bin", ("1M", "8M"), count=("2", "8")),
        stripes("*new.bin"),
    ],
    "stations": [STDIO, stripes("*.txt")],
    "columns": [independent("*.dat"), stripes("*.dat")],
    "slabs": [collective("*.dat"), stripes("*.dat")],
    "halos": [independent("*.dat"), stripes("*.dat")],
}


def list_settings(name: str) -> Iterator[Choice]:
    """Yields all combinations of a program's sweep, each factor also without a setting."""
    for options in itertools.product(*([Choice(), *factor] for factor in SPACES[name])):
        made = Choice()
        for option in options:
            made = made.with_(option)
        if made.sections:
            yield made


def record_program(name: str, place: Path, scale: int = 1) -> tuple[Job, Plan]:
    """Runs a program under pario in a directory; returns its job, and the plan of its replays."""
    with tempfile.TemporaryDirectory(dir=place) as work, tempfile.TemporaryDirectory() as logs:
        if name in INPUTS:
            file, size, grows = INPUTS[name]
            Path(work, file).write_bytes(os.urandom(size * scale if grows else size))
        log = Path(logs, "log")
        start = [str(LAUNCHER), "-n", str(RANKS[name])] if name in RANKS else []
        program = [*start, sys.executable, str(PROGRAM), name, str(scale)]
        traced = [sys.executable, "-m", "pario", "run", "--no-report", "-o", str(log), "--"]
        subprocess.run([*traced, *program], cwd=work, check=True, stdout=sys.stderr)
        job = read([log])
        plan = plan_tuning(job, analyze(job), place, REPLAYS)
        return job, replace(plan, script=select_files(plan.script, f"{Path(work).resolve()}/"))


def select_files(script: Script, folder: str) -> Script:
    """Returns a script without the files outside a folder, such as those of Python itself."""
    own = np.array([path.startswith(folder) for path in script.paths])
    files = [made for made in script.files if own[made.path]]
    of_no_file = [np.isin(seat["verb"], NOT_OF_FILES) for seat in script.seats]
    seats = [
        seat[alone | own[np.where(alone, 0, seat["path"])]]
        for seat, alone in zip(script.seats, of_no_file, strict=True)
    ]
    return replace(script, seats=seats, files=files, directories=[])


def replay_booked(plan: Plan, mpiexec: Sequence[str]) -> Play:
    """Returns a replay whose seconds are the busy time of the lab's busiest target, without the
    files that are made beforehand."""

    def book(script: Script, choice: Choice) -> float:
        reset(plan.directory)
        perform(script, plan.directory, Manner(False, choice.settings(), mpiexec))
        return max(int(target["busy_ns"]) for target in status(plan.directory)["targets"]) / 1e9

    empty = replace(plan.script, seats=[seat[:0] for seat in plan.script.seats])
    before = book(empty, Choice())
    return lambda script, choice, _: book(script, choice) - before


def sweep_settings(name: str, replay: Callable[[Choice], float]) -> dict[Choice, float]:
    """Replays each combination once."""
    found = {}
    wanted = list(list_settings(name))
    for number, choice in enumerate(wanted, start=1):
        found[choice] = replay(choice)
        print_progress(f"sweep {number}/{len(wanted)}: {found[choice]:.3f} s {shorten(choice)}")
    return found


def shorten(choice: Choice) -> str:
    """Returns the settings without a temporary directory."""
    return re.sub(r"\S*/", "", choice.text()) or "none"


def compare_settings(
    name: str, place: Path, arguments: argparse.Namespace, recorder: Recorder
) -> str:
    """Tunes a program and sweeps its settings; records the rows and returns that of the table."""
    scale = CEPH_SCALE if arguments.ceph else 1
    job, plan = record_program(name, place, scale)
    mpiexec = (str(LAUNCHER),) if plan.script.ranks else ()
    play = (
        replay_booked(plan, mpiexec)
        if arguments.booked
        else player(plan, mpiexec, Limits(job.wall))
    )
    begin = time.monotonic()
    tuned = measure(plan, play, lambda what, seconds: print_progress(f"{what}: {seconds}"))
    took = time.monotonic() - begin

    def replay(choice: Choice) -> float:
        return play(plan.script, choice, float("inf"))

    swept = sweep_settings(name, replay)
    chosen = tuned.chosen.remedy.choice if tuned.chosen else Choice()
    best = sorted(swept, key=swept.__getitem__)[:FINALISTS]
    ways = {"original": Choice(), "tuned": chosen}
    ways |= {f"sweep, number {place}": choice for place, choice in enumerate(best, start=1)}
    rounds = [{way: replay(choice) for way, choice in ways.items()} for _ in range(arguments.runs)]
    medians = {way: statistics.median(one[way] for one in rounds) for way in ways}
    winner = min((way for way in ways if way.startswith("sweep")), key=medians.__getitem__)
    case: dict[str, str | int] = {"program": name, "scale": scale}
    case |= {"place": describe_place(arguments), "booked": arguments.booked}
    for choice, seconds in swept.items():
        add_row(recorder, case, "sweep", choice, 1, seconds)
    for number, one in enumerate(rounds, start=1):
        for way in ("original", "tuned", winner):
            label = "best of the sweep" if way == winner else way
            of = (took, tuned.replays) if way == "tuned" else (None, None)
            add_row(recorder, case, label, ways[way], number, one[way], *of)
    return format_row(name, medians, winner, tuned, took, chosen)


def add_row(
    recorder: Recorder,
    case: dict[str, str | int],
    way: str,
    choice: Choice,
    number: int,
    seconds: float,
    tuning: float | None = None,
    replays: int | None = None,
) -> None:
    """Records a measurement; the tuned way has the seconds and the number of its replays."""
    recorder.add(
        **case,
        way=way,
        settings=shorten(choice),
        round=number,
        seconds=seconds,
        tuning_seconds=tuning,
        tuning_replays=replays,
    )


def format_row(
    name: str,
    medians: dict[str, float],
    winner: str,
    tuned: Measurement,
    took: float,
    chosen: Choice,
) -> str:
    """Returns the row of the table."""
    times = [medians[way] for way in ("original", "tuned", winner)]
    gain = (1 - times[1] / times[0]) / (took / 60)
    cells = [name, *(f"{seconds:.3f}" for seconds in times), f"{times[2] / times[1]:.2f}"]
    cells += [str(tuned.replays), f"{took:.0f}", f"{gain:.0%}", shorten(chosen)]
    return f"| {' | '.join(cells)} |"


def print_progress(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def describe_place(arguments: argparse.Namespace) -> str:
    if arguments.ceph:
        return f"ceph, {arguments.ceph} MB/s"
    return "lab" if arguments.lab else "directory"


def list_measured(arguments: argparse.Namespace) -> set[str]:
    """Returns the programs that today's results on this place have already."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    case = (describe_place(arguments), "yes" if arguments.booked else "no")
    return {
        row["program"]
        for path in (arguments.results / f"{day}-{arguments.machine}").glob("tune*.csv")
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())
        if (row.get("place"), row.get("booked")) == case
    }


@contextmanager
def create_place(arguments: argparse.Namespace) -> Iterator[Path]:
    """Creates the file system, without results of earlier tunes and calibrations."""
    with ExitStack() as stack:
        state = stack.enter_context(tempfile.TemporaryDirectory())
        os.environ["XDG_STATE_HOME"] = state
        if arguments.ceph:
            yield stack.enter_context(slow_ceph(OSDS, arguments.ceph, options=CLIENT))[0]
        elif arguments.lab:
            yield stack.enter_context(mounted_lab(Path(state, "lab"), Model()))
        else:
            yield arguments.dir.resolve()


def parse_arguments() -> argparse.Namespace:
    parser = make_parser(__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--lab", action="store_true")
    where.add_argument("--ceph", type=int, metavar="MEGABYTES")
    where.add_argument("--dir", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--booked", action="store_true")
    parser.add_argument("programs", nargs="*", metavar="program", help=", ".join(PROGRAMS))
    arguments = parser.parse_args()
    if arguments.booked and arguments.ceph:
        parser.error("--booked: only a lab books the time of its targets")
    if unknown := set(arguments.programs) - PROGRAMS.keys():
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    chosen = arguments.programs or [
        name for name in PROGRAMS if name not in list_measured(arguments)
    ]
    with (
        Recorder("tune", arguments, launchers=[LAUNCHER]) as recorder,
        create_place(arguments) as place,
    ):
        print(HEADER, flush=True)
        for number, name in enumerate(chosen, start=1):
            print_progress(f"program {number}/{len(chosen)}: {name}")
            print(compare_settings(name, place, arguments, recorder), flush=True)
    print(f"\nload average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
