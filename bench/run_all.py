"""Runs the benchmarks in turn, records their results and renders the pages.

    python bench/run_all.py [--only "NAME ..."] [--until HH:MM | --minutes N] [--list]
        [--directory DIR]

`make benchmarks` runs it; ONLY, UNTIL, MINUTES and DIRECTORY are these options. Each benchmark
waits until the load of the machine allows recording. A benchmark that takes longer than its limit,
twice the seconds that `--list` shows, is interrupted and keeps its rows. If its requirements are
missing, or the time is too short for it, it is skipped; one that fails does not stop the others.
All of them are named at the end, where docs/benchmarks.md and docs/predictions.md are rendered.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

from environment import ROOT
from recording import LOAD_LIMIT

HERE = Path(__file__).parent
LIBRARY = "build/dev/src/libpario.so"
#: The start of a runner, too, raises the load.
LOAD_MARGIN = 0.05
PAUSE = 5.0
#: Signals that end a runner, and the seconds in which it may clean up after each.
ENDING = ((signal.SIGINT, 60.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, None))


@dataclass(frozen=True)
class Step:
    """A benchmark: its runner bench/RUNNER.py, and its options with {data} and {library}.

    Requirements are "root", "python:PACKAGE", a path with a slash, or a command.
    """

    runner: str
    words: str
    seconds: float  # on two idle cores
    needs: tuple[str, ...] = ()
    title: str = ""

    @property
    def name(self) -> str:
        return self.title or self.runner

    @property
    def limit(self) -> float:
        """The seconds after which it is interrupted."""
        return 2 * self.seconds

    def command(self, data: Path) -> list[str]:
        words = [word.format(data=data, library=LIBRARY) for word in self.words.split()]
        return [sys.executable, str(HERE / f"{self.runner}.py"), *words]

    def missing(self) -> list[str]:
        """Returns the requirements that this machine lacks."""
        return [need for need in self.needs if not is_met(need)]


def is_met(need: str) -> bool:
    kind, _, name = need.rpartition(":")
    if kind == "python":
        return find_spec(name) is not None
    if need == "root":
        return os.geteuid() == 0
    return (ROOT / need).exists() if "/" in need else shutil.which(need) is not None


#: The most valuable ones come first.
STEPS = (
    Step("small_files", "--directory {data} --files 20000 --cold", 90, ("root", "python:torch")),
    Step("move", "--directory {data} --files 20000", 60, ("tar", "zstd")),
    Step("readers", "", 60, ("python:darshan",)),
    Step("small_opens", "--files 10000", 150, ("/dev/fuse", "python:torch")),
    Step("mapped", "--library {library} --directory {data} --rounds 3", 140,
         ("root", "/dev/fuse", "python:torch", "python:safetensors")),
    Step("object_stores", "--directory {data}", 200, ("python:obstore", "python:moto")),
    Step("loader", "--directory {data} --records 6000 --seconds 2 --rounds 2 --rivals", 200,
         ("fio",)),
    Step("stripes", "--library {library} --counts 1,4,8,16 --mebibytes 64", 210,
         ("root", "/dev/fuse", ".venv/bin/mpiexec")),
    Step("replay", "--dir {data} --think --scale 0.5", 200),
    Step("patterns", "--dir {data} --place directory --place lab", 120, ("/dev/fuse",)),
    Step("hosts", "--library {library}", 120, ("root", "ip", "tc", ".venv-ompi/bin/mpiexec")),
    Step("tune", "--lab --booked scan lookup stations", 200, ("/dev/fuse",)),
    Step("micro", "", 100, ("build/release/bench/trace_bench",)),
    Step("overhead", "--library {library} --rounds 7 --calls 20000 --directory {data}", 30),
    Step("checkpoint", "--ranks 2 --megabytes 128 --files 1,node --directory {data}", 20),
    Step("checkpoint_rivals", "--directory {data}", 150),
    Step("checkpoint_rivals", "--directory {data} --sync", 150, title="durable_rivals"),
    Step("mpiio", "--library {library} --quick --directory {data} --ranks 2", 150),
    Step("records", "--directory {data} --size 256M --memory 64M", 20),
    Step("streams", "--library {library} --directory {data}", 120, ("strace",)),
    Step("flushes", "--library {library} --directory {data} --rounds 5", 10, ("gfortran",)),
    Step("several_arrays", "--library {library} --directory {data}", 10),
    Step("verify_records", "--directory {data}", 90),
    Step("whatif", "", 20, ("/dev/fuse",)),
    Step("mpiio", "--library {library} --map --ranks 2 --pattern calls:512 --pattern calls:4096"
         " --pattern calls:65536 --pattern calls:1048576 --pattern turns:512 --pattern turns:4096"
         " --pattern turns:65536 --pattern turns:1048576 --mebibytes 64 --rounds 15"
         " --directory {data}", 900, title="calls"),
    Step("diagnosis", "--runs 1 --dir {data}", 450),
    Step("fix", "--runs 3 --measure 40 --dir {data}", 700),
)  # fmt: skip


class Schedule:
    """The time that is left, and the wait for an idle machine."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float:
        return float("inf") if self._end is None else self._end - time.monotonic()

    def wait_until_idle(self, name: str, seconds: float) -> bool:
        """Waits until the load allows recording; False if the time is too short before."""
        begin, reported = time.monotonic(), -60.0
        while (load := os.getloadavg()[0]) >= LOAD_LIMIT - LOAD_MARGIN:
            waited = time.monotonic() - begin
            if self.left() < seconds:
                return False
            if waited - reported >= 60:
                reported = waited
                report(f"{name}: waits for an idle machine, {waited:.0f} s so far, load {load:.2f}")
            time.sleep(PAUSE)
        return self.left() >= seconds


def run_step(step: Step, data: Path, schedule: Schedule) -> str:
    """Runs a benchmark; returns "recorded", or the reason why it is not."""
    if missing := step.missing():
        return f"skipped: missing: {', '.join(missing)}"
    if not schedule.wait_until_idle(step.name, step.seconds):
        left = max(schedule.left(), 0)
        return f"skipped: it takes about {step.seconds:g} s, {left:.0f} s are left"
    report(f"{step.name}: about {step.seconds:g} s")
    limit = min(step.limit, schedule.left())
    status = run_command(step.command(data), limit)
    if status is None:
        return f"interrupted after {limit:.0f} s: its rows are incomplete"
    return f"failed: it ended with status {status}" if status else "recorded"


def run_command(command: Sequence[str], limit: float) -> int | None:
    """Returns the status of a command; None if it took longer and was interrupted."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end_process(process)


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Interrupts the process group of a process that still runs."""
    for number, patience in ENDING:
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            report(f"process {process.pid} did not end after {number.name}")


def report(text: str) -> None:
    print(f"--- {datetime.now():%H:%M:%S} {text}", file=sys.stderr, flush=True)


def render_pages() -> None:
    """Renders the pages that come from the results."""
    render, predict = (
        [sys.executable, str(HERE / f"{name}.py")] for name in ("render", "predictions")
    )
    subprocess.run(render, check=True)
    done = subprocess.run(predict, check=True, stdout=subprocess.PIPE)
    (ROOT / "docs" / "predictions.md").write_bytes(done.stdout)


@contextmanager
def make_data_directory(parent: Path) -> Iterator[Path]:
    """Makes the directory to measure; the same name each time, for the recorded commands."""
    data = parent / "pario-benchmarks"
    data.mkdir(exist_ok=True)  # that of a killed run
    try:
        yield data
    finally:
        shutil.rmtree(data, ignore_errors=True)


def parse_until(text: str, now: datetime) -> float:
    """Returns the seconds until a time of the day, at most twelve hours ahead."""
    try:
        clock = datetime.strptime(text, "%H:%M").time()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a time such as 23:50") from None
    left = (datetime.combine(now, clock) - now) % timedelta(days=1)
    if left > timedelta(hours=12):
        raise argparse.ArgumentTypeError(f"{text} has passed")
    return left.total_seconds()


def parse_arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar='"NAME ..."', help="run these, in this order")
    time_limit = parser.add_mutually_exclusive_group()
    time_limit.add_argument(
        "--until",
        dest="seconds",
        metavar="HH:MM",
        type=lambda text: parse_until(text, datetime.now()),
    )
    time_limit.add_argument(
        "--minutes", dest="seconds", metavar="N", type=lambda text: 60 * float(text)
    )
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="to measure")
    parser.add_argument("--list", action="store_true", help="print the commands with their seconds")
    arguments = parser.parse_args(words)
    table = {step.name: step for step in STEPS}
    if unknown := set(arguments.only.split()) - table.keys():
        parser.error(f"--only {' '.join(sorted(unknown))}; expected some of {' '.join(table)}")
    arguments.steps = [table[name] for name in arguments.only.split()] or list(STEPS)
    return arguments


def list_steps(steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        command = " ".join(step.command(Path("DIR"))[2:])
        missing = f"  # missing: {', '.join(step.missing())}" if step.missing() else ""
        yield f"{step.seconds:5g} s  {step.name}: python bench/{step.runner}.py {command}{missing}"


def run_all(steps: Sequence[Step], parent: Path, schedule: Schedule) -> dict[str, str]:
    """Runs benchmarks; returns the outcome of each. Ctrl-C ends the rest."""
    outcomes: dict[str, str] = {}
    with make_data_directory(parent) as data:
        for step in steps:
            try:
                outcomes[step.name] = run_step(step, data, schedule)
            except KeyboardInterrupt:
                outcomes[step.name] = "interrupted: its rows are incomplete"
                break
            report(f"{step.name}: {outcomes[step.name]}")
    return outcomes


def main(words: Sequence[str] | None = None) -> int:
    # A shell without job control starts background jobs that ignore it, as their children do.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments = parse_arguments(words)
    if arguments.list:
        print("\n".join(list_steps(arguments.steps)))
        return 0
    outcomes = run_all(arguments.steps, arguments.directory.resolve(), Schedule(arguments.seconds))
    render_pages()
    print("\n| benchmark | outcome |\n|---|---|")
    print("\n".join(f"| {name} | {outcome} |" for name, outcome in outcomes.items()))
    return int(any(outcome.startswith("failed") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
